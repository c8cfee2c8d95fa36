//! `docs/operators.md`, written from the entries, and the counts in the README beside this file.

use crate::families;
use crate::table::{Family, Operator};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn set(dims: &[&str]) -> String {
    if dims.is_empty() { "()".into() } else { dims.join(" ") }
}

fn row(operator: &Operator) -> String {
    let inputs: Vec<String> = operator
        .parameters
        .iter()
        .map(|own| format!("{}: {}[{}]", own.name, own.elem, own.dims.join(" ")))
        .collect();
    let dtypes: Vec<_> = operator.cases.iter().map(|case| case.dtype).collect();
    let names = operator.names.map(|name| if name.is_empty() { "-".into() } else { format!("`{name}`") });
    let code = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let errors: Vec<String> = operator.errors.iter().map(|error| format!("\"{}\"", error().1)).collect();
    format!(
        "| `{}` | {} | {} → [{}] | {} | {} | {} | {} | {} | {} |",
        code(operator.call),
        operator.doc.trim().replace('|', "\\|"),
        inputs.join(", "),
        operator.out.join(" "),
        set(operator.along),
        dtypes.join(", "),
        if errors.is_empty() { "-".into() } else { errors.join("; ").replace('|', "\\|") },
        names[0],
        names[1],
        names[2]
    )
}

fn page() -> String {
    let families = families();
    let count: usize = families.iter().map(|family| family.operators.len()).sum();
    let mut page = format!(
        "# Operators\n\nThis page is written from the entries in `tests/operators/` (`UPDATE=1 cargo test --test operators docs`): {count} \
         operators, each compared with plain loops there. In the column *dims*, an argument has the dims in its brackets, and the \
         result those behind the arrow; every operator takes tensors with any further dims as well, different ones for each \
         argument, and loops over them. *Along* are the dims that it treats specially. *Element types* are those that the tests run.\n"
    );
    for Family { title, about, operators } in &families {
        write!(page, "\n## {title}\n\n{about}\n\n| call | computes | dims | along | element types | errors | PyTorch | JAX | NumPy |\n|---|---|---|---|---|---|---|---|---|\n").unwrap();
        for operator in operators {
            writeln!(page, "{}", row(operator)).unwrap();
        }
    }
    page
}

/// The page is what the entries say.
#[test]
fn docs_are_up_to_date() {
    let (path, page) = (file("docs/operators.md"), page());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file("docs")).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/operators.md is out of date: UPDATE=1 cargo test --test operators docs");
}

/// The README beside this file shows how many there are.
#[test]
fn docs_count_in_the_readme() {
    let count: usize = families().iter().map(|family| family.operators.len()).sum();
    let path = file("tests/operators/README.md");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let line = format!("**{count} operators**");
    if std::env::var_os("UPDATE").is_some() {
        let (start, rest) = text.split_once("**").expect("the README shows the count");
        let (_, end) = rest.split_once("**").expect("the count is in bold");
        std::fs::write(&path, format!("{start}{line}{end}")).unwrap();
    } else {
        assert!(
            text.contains(&line),
            "the README does not say {line}: UPDATE=1 cargo test --test operators docs"
        );
    }
}

/// No operator has two entries.
#[test]
fn names_are_unique() {
    let mut names = BTreeSet::new();
    for operator in families().iter().flat_map(|family| &family.operators) {
        assert!(names.insert(operator.name), "{} has two entries", operator.name);
    }
}
