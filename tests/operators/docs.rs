//! `docs/operators.md`, written from the entries, and the counts in the README beside this file.

use crate::derivatives::{Derivative, derivative};
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
    let slope = match derivative(operator) {
        Derivative::Yes => "yes".to_owned(),
        Derivative::Zero => "zero".to_owned(),
        Derivative::None { reason, .. } => format!("none: {reason}"),
    };
    let names = operator.names.map(|name| if name.is_empty() { "-".into() } else { format!("`{name}`") });
    let code =
        |text: &str| constants(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|");
    let errors: Vec<String> = operator.errors.iter().map(|error| format!("\"{}\"", error().1)).collect();
    format!(
        "| `{}` | {} | {} → [{}] | {} | {} | {} | {} | {} | {} | {} |",
        code(operator.call),
        operator.doc.trim().replace('|', "\\|"),
        inputs.join(", "),
        operator.out.join(" "),
        if operator.refuses { "all".into() } else { set(operator.along) },
        operator.dtypes.join(", ").replace('<', "\\<"), // a page takes `<f64>` for HTML
        slope,
        if errors.is_empty() { "-".into() } else { errors.join("; ").replace('|', "\\|") },
        names[0],
        names[1],
        names[2]
    )
}

/// A call with constants as they are written where rustc knows their type: `of(0.5)`, or `of::<T>(0.5)`, is 0.5. (`K.of(2)` gives a dim a size.)
fn constants(call: &str) -> String {
    let mut shown = call.replace("of::<T>(", "of(");
    // (The tests see two results as one.)
    if let Some(both) = call.strip_prefix("both!(").and_then(|call| call.strip_suffix(')')) {
        shown = both.to_owned();
    }
    let is_constant = |at: usize, shown: &str| shown[..at].ends_with([' ', '(']);
    while let Some(at) = shown.match_indices("of(").map(|(at, _)| at).find(|&at| is_constant(at, &shown)) {
        let end = at + shown[at..].find(')').expect("a closing bracket");
        shown = format!("{}{}{}", &shown[..at], &shown[at + 3..end], &shown[end + 1..]);
    }
    shown
}

/// Which element types mix: what stands before the tables.
const TYPES: &str = r#"
## Element types

Operands of one operation have one element type. Nothing is converted in silence: where types differ, rustc says so, and `cast` converts as Rust's
`as` does.

| mixture | result |
|---|---|
| a tensor of `T` and a tensor of `T`, in arithmetic (`+ - * / %`, `maximum`, `powf`, ..) | `T`; integers wrap around, and panic where they are divided by 0 |
| a tensor of `T` and a scalar of `T`, on either side | `T`; a literal takes the tensor's type, `x * 2.0`, `1.0 - x`, `ids % 2` |
| a tensor of `isize` and a dim, `x + i` | `isize`: a dim is the tensor of its indices |
| tensors of two element types, or a scalar of another type: `f32` and `f64`, `i32` and `f32`, `f32` and `bool`, `f32` and a dim | refused: "cannot be combined with a tensor of `f32`"; write `x.cast::<f64>() + y` |
| comparisons of `T` and `T`: `lt le gt ge eq ne`; `is_nan` and the like | `bool` |
| `& \| ^ !` of `bool`, or of one integer type | the same type |
| `select` with a condition of `bool`, and `T` and `T` | `T` |
| `sum`, `prod`, `max`, `min`, `cumsum`, `cumprod`, `sort` of `T` | `T`; sums and products of integers wrap around, those of `f16` and `bf16` are accumulated in `f32` |
| `scatter_add` of `T` | `T`; those of `f16` and `bf16` are accumulated in `f32`, too, but `add_assign` into an array of them rounds each sum |
| `mean`, `var`, `std`, `softmax`, norms of layers, losses, of floats | the same type; integers are refused: "cast the tensor first: `.cast::<f32>()`" |
| `exp`, `sqrt`, `sin`, .. | the same type: floats and complex numbers; integers are refused |
| `abs` and `norm` of `Complex<T>` | `T` |
| `any`, `all` of `bool` | `bool` |
| `count`, `argmax`, `argmin`, `argsort`, positions of `topk`, `nonzero` | `usize` |
| an index, in `at`, `take` or `scatter_add`, and targets of `cross_entropy` | any integer type; it does not take part in the result's type |
| `map`, `zip_map`, and [operations of your own](custom-operators.md) | what they return; they can take two element types |
| `cast::<U>()` | `U`: `bool` gives 0 and 1, a number gives `true` where it is not 0, a complex number loses its imaginary part |

```rust
use typed_dims::prelude::*;

dims!(i, j);
let (x, n) = (ndarray::array![1.5f32, -2.0], ndarray::array![1i32, 2, 3]);
let mixed = (x.at(i).cast::<f64>() * n.at(j).cast::<f64>() + 0.5).sum(j).order(i);
assert_eq!(mixed, ndarray::array![1.5 * 6.0 + 1.5, -2.0 * 6.0 + 1.5]);
```

```compile_fail
use typed_dims::prelude::*;

dims!(i, j);
let (x, n) = (ndarray::array![1.5f32, -2.0], ndarray::array![1i32, 2, 3]);
let mixed = x.at(i) * n.at(j); // `f32` and `i32`
```
"#;

fn page() -> String {
    let families = families();
    let count: usize = families.iter().map(|family| family.operators.len()).sum();
    let mut page = format!(
        "# Operators\n\nThis page is written from the entries in `tests/operators/` (`UPDATE=1 cargo test --test operators docs`): {count} \
         operators, each compared with plain loops there. In the column *dims*, an argument has the dims in its brackets, and the \
         result those behind the arrow; every operator takes tensors with any further dims as well, different ones for each \
         argument, and loops over them. *Along* are the dims that it treats specially; where that is *all*, further dims are refused, because how large the result is depends on all \
         elements. *Element types* are those that the tests run; \
         operations on single elements of `f16` and `bf16`, with the feature `half`, compute in `f32` and round their result once. \
         The *derivative* is `zero` where values are constant piece by piece, or no floats; `none` is an error that names the operation, and `yes` has been \
         compared with differences in `f64`, in reverse and in forward mode and in second order.\n"
    );
    page.push_str(TYPES);
    for Family { title, about, operators } in &families {
        write!(page, "\n## {title}\n\n{about}\n\n| call | computes | dims | along | element types | derivative | errors | PyTorch | JAX | NumPy |\n|---|---|---|---|---|---|---|---|---|---|\n").unwrap();
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

/// "Adding one to the library" shows lines that are there, and fewer than 15 of them.
#[test]
fn docs_show_an_addition_as_it_is() {
    let text = std::fs::read_to_string(file("docs/custom-operators.md")).expect("a page on custom operators");
    let diff = text.split("```diff\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a diff");
    let (mut changed, mut count) = (String::new(), 0);
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            changed = std::fs::read_to_string(file(path)).unwrap_or_else(|_| panic!("there is no {path}"));
        } else if let Some(added) = line.strip_prefix('+') {
            count += 1;
            assert!(changed.contains(added.trim()), "{added} is not there");
        }
    }
    assert!((1..15).contains(&count), "{count} lines");
}

/// No operator has two entries.
#[test]
fn names_are_unique() {
    let mut names = BTreeSet::new();
    for operator in families().iter().flat_map(|family| &family.operators) {
        assert!(names.insert(operator.name), "{} has two entries", operator.name);
    }
}
