//! Generates `docs/operators.md` from the entries, and the count in this folder's README.

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
        .map(|own| format!("{}: {}[{}]", own.name, own.elem, shown_dims(operator, own.dims).join(" ")))
        .collect();
    let slope = match derivative(operator) {
        Derivative::Yes => "yes".to_owned(),
        // The derivative with respect to `y` is 1 where `x` is 0.
        Derivative::Zero if operator.name == "heaviside" => "zero where `x` is not 0".to_owned(),
        Derivative::Zero => "zero".to_owned(),
        Derivative::None { reason, .. } => format!("none: {reason}"),
    };
    let names = operator.names.map(|name| if name.is_empty() { "-".into() } else { format!("`{name}`") });
    let code = |text: &str| text.replace('|', "\\|");
    let errors: Vec<String> = operator.errors.iter().map(|error| format!("\"{}\"", error().1)).collect();
    format!(
        "| `{}` | {} | {} → [{}] | {} | {} | {} | {} | {} | {} | {} | {} |",
        code(&shown(operator)),
        operator.doc.trim().replace('|', "\\|"),
        inputs.join(", "),
        shown_dims(operator, operator.out).join(" "),
        if operator.refuses { "all".into() } else { set(&shown_dims(operator, operator.along)) },
        operator.dtypes.join(", ").replace('<', "\\<"), // Markdown takes `<f64>` for HTML
        slope,
        crate::recorded::refusal_of_xla(operator).map_or("yes".into(), |reason| format!("no: {reason}")),
        if errors.is_empty() { "-".into() } else { errors.join("; ").replace('|', "\\|") },
        names[0],
        names[1],
        names[2]
    )
}

/// The dims of an entry as a user writes them. The tests rename local and primed dims, because
/// entries cannot name them.
fn shown_dims<'d>(operator: &Operator, dims: &[&'d str]) -> Vec<&'d str> {
    let (is_local, has_prime) = (operator.call.contains("dims!(n)"), operator.call.contains("prime(J)"));
    let shown = |dim: &&'d str| match *dim {
        "V" if is_local => "n",
        "C" if has_prime => "J'",
        dim => dim,
    };
    dims.iter().map(shown).collect()
}

/// The call of an entry as a user writes it.
fn shown(operator: &Operator) -> String {
    let call = operator.call.split_whitespace().collect::<Vec<_>>().join(" ");
    // The entry of `order` has the call `x`, because each test ends with `order`.
    if call == "x" {
        return format!("x.order(({}))", operator.out.join(", "));
    }
    let within = |name: &str| call.strip_prefix(name).and_then(|call| call.strip_suffix(')'));
    // Only the tests need the code after `;` in `shown!`, and the conversion by `both!`.
    let call = match (within("shown!("), within("both!(")) {
        (Some(call), _) => call.split_once(';').map_or(call, |(call, _)| call),
        (_, Some(call)) => call,
        _ => &call,
    };
    without_generic_types(&constants(call))
}

/// A call with `f32` instead of `T`, as a user writes it.
fn without_generic_types(call: &str) -> String {
    let mut shown =
        call.replace("::<T", "::<f32").replace("T::INFINITY", "f32::INFINITY").replace("T::default()", "0.0");
    shown = shown.replace(") as T", ") as f32").replace(": T", "");
    while let Some((before, after)) = shown.split_once(" as T") {
        let number = before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next().expect("a literal");
        let fraction = if number.contains('.') { "" } else { ".0" };
        shown = format!("{before}{fraction}{after}");
    }
    shown
}

/// A call with constants as literals: `of(0.5)`, or `of::<T>(0.5)`, becomes 0.5. `K.of(2)` is not
/// changed, because it gives a dim a size.
fn constants(call: &str) -> String {
    let mut shown = call.replace("of::<T>(", "of(");
    let is_constant = |at: usize, shown: &str| shown[..at].ends_with([' ', '(']);
    while let Some(at) = shown.match_indices("of(").map(|(at, _)| at).find(|&at| is_constant(at, &shown)) {
        let end = at + shown[at..].find(')').expect("the call has a closing bracket");
        shown = format!("{}{}{}", &shown[..at], &shown[at + 3..end], &shown[end + 1..]);
    }
    shown
}

/// The text before the tables: which element types mix.
const TYPES: &str = r#"
## Element types

There are no implicit conversions: the operands of an arithmetic operation or a comparison have the same element type. `cast` converts elements.

| operands | result |
|---|---|
| a tensor of `T` and a tensor of `T`, in arithmetic (`+ - * / %`, `maximum`, `powf`, ..) | `T`; integers wrap around; `/` and `%` by the integer 0 panic, but give 0 when a recorded program is called |
| a tensor of `T` and a scalar of `T` | `T`; a literal takes the tensor's type: `x * 2.0`, `1.0 - x`, `ids % 2` |
| a tensor of `isize` and a dim, `x + i` | `isize`, the type of a dim's indices |
| tensors of two element types, or a scalar of another type: `f32` and `f64`, `i32` and `f32`, `f32` and `bool`, `f32` and a dim | compile error, such as "cannot be combined with a tensor of `f32`"; write `x.cast::<f64>() + y` |
| comparisons of `T` and `T`: `lt le gt ge eq ne`; `is_nan` and the like | `bool` |
| `& \| ^ !` of `bool`, or of one integer type | the same type |
| `select` of `T` and `T`, with a condition of `bool` | `T` |
| `sum`, `prod`, `max`, `min`, `cumsum`, `cumprod`, `sort` of `T` | `T`; sums and products of integers wrap around; those of `f16` and `bf16` are accumulated in `f32` |
| `scatter_add`, `fold` of `T` | `T`; `f16` and `bf16` are accumulated in `f32`, but `add_assign` into an array of them rounds after each addition |
| `mean`, `var`, `std`, `softmax`, `layer_norm` and the like, and most losses, of floats | the same type; for integers a compile error: "cast the tensor first: `.cast::<f32>()`" |
| `exp`, `sqrt`, `sin`, .. | the same type; only for floats, and some also for complex numbers |
| `abs` and `norm` of `Complex<T>` | `T` |
| `any`, `all` of `bool` | `bool` |
| `count`, `argmax`, `argmin`, `argsort`, positions of `topk`, `nonzero` | `usize` |
| a tensor of indices, in `at`, `take` or `scatter_add`, and targets of `cross_entropy` | any integer type; it does not affect the type of the result |
| `map`, `zip_map`, and [custom operators](custom-operators.md) | the type that the function returns; the operands can have different types |
| `cast::<U>()` | `U`, converted like Rust's `as`; `bool` gives 0 and 1; real numbers other than 0 give `true`; a cast from complex to real drops the imaginary part |

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
        "# Operators\n\n{count} entries for operators, with their names in PyTorch, JAX and NumPy. Search for the name that you know. The methods are in the prelude, and so are the functions, unless their section names another module. Of the types in the calls, `Triangular` is in `typed_dims::operators::linalg::systems`, `Interpolation` in `typed_dims::operators::interpolate`, and `CrossEntropy` in `typed_dims::nn`. `permutation` and `batches`, which return indices in random order, are in `typed_dims::creation::random`.\n\n\
         | column | meaning |\n|---|---|\n\
         | dims | the dims of the arguments, and after the arrow the dims of the result. (For some operators, mostly those that return several tensors, these are the dims of a tensor that the tests compute from the results.) Unless the next column says *all*, arguments can have extra dims, over which the operator loops |\n\
         | along | the dims that the operator treats specially. *all*: no other dims are allowed |\n\
         | element types | the element types that the tests use for `T`. `f16` and `bf16` need the feature `half`; each elementwise operation on them computes in `f32` and rounds once |\n\
         | derivative | *yes*; *zero*; or *none*: an error, with the reason in this column |\n\
         | XLA | whether a recorded program with the operator runs on XLA: *yes*, or *no* with the reason |\n\
         | errors | the messages of errors that the tests cause; there can be others |\n\n\
         The tests in `tests/operators`, from which this page is generated, compare each operator with plain loops, and derivatives with difference quotients.\n"
    );
    page.push_str(TYPES);
    for Family { title, about, operators } in &families {
        write!(page, "\n## {title}\n\n{about}\n\n| call | computes | dims | along | element types | derivative | XLA | errors | PyTorch | JAX | NumPy |\n|---|---|---|---|---|---|---|---|---|---|---|\n").unwrap();
        for operator in operators {
            writeln!(page, "{}", row(operator)).unwrap();
        }
    }
    page
}

/// The page includes the entries of the feature `linalg`.
#[cfg(feature = "linalg")]
#[test]
fn docs_are_up_to_date() {
    let (path, page) = (file("docs/operators.md"), page());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file("docs")).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/operators.md is out of date: run `UPDATE=1 cargo test --all-features --test operators docs`"
    );
}

#[cfg(feature = "linalg")]
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
            "tests/operators/README.md does not say {line}: run `UPDATE=1 cargo test --all-features --test operators docs`"
        );
    }
}

/// The diff in the section "Adding an operation to the library" adds fewer than 15 lines, and each
/// is in the file that it changes.
#[test]
fn docs_show_an_addition_as_it_is() {
    let text = std::fs::read_to_string(file("docs/custom-operators.md")).expect("the page can be read");
    let diff = text
        .split("```diff\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("the page has a diff");
    let (mut changed, mut count) = (String::new(), 0);
    for line in diff.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            changed = std::fs::read_to_string(file(path)).unwrap_or_else(|_| panic!("there is no {path}"));
        } else if let Some(added) = line.strip_prefix('+') {
            count += 1;
            assert!(changed.contains(added.trim()), "the changed file has no line `{added}`");
        }
    }
    assert!((1..15).contains(&count), "the section shows {count} lines");
}

#[test]
fn names_are_unique() {
    let mut names = BTreeSet::new();
    for operator in families().iter().flat_map(|family| &family.operators) {
        assert!(names.insert(operator.name), "{} has two entries", operator.name);
    }
}
