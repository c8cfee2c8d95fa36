//! Finds the axes that stay, go, or are new, and checks that the macro allows them.

use super::TransformKind;
use super::pieces::{self, Part};
use crate::pattern::axes::{Numbered, Rules, Table, number, solvable};
use crate::pattern::call::{Call, given};
use crate::pattern::errors::Errors;
use crate::pattern::near::{counted, hint, list, nearest};
use crate::pattern::parse::{Sides, parse};
use crate::pattern::words::Words;
use syn::spanned::Spanned;
use syn::{Expr, ExprClosure, Pat, Type, TypePath};

/// A call without errors.
pub struct ValidTransform {
    pub table: Table,
    pub inputs: Vec<Numbered>,
    pub outputs: Vec<Numbered>,
    /// The parts of each output: none unless the call joins or splits arrays.
    pub pieces: Vec<Vec<Part>>,
    pub given: Vec<(usize, Expr)>,
    /// The name of the reduction, if it is not a closure.
    pub op: Option<&'static str>,
}

/// The reductions, by name.
const OPS: &[&str] = &[
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "any",
    "all",
    "var",
    "std",
    "norm",
    "logsumexp",
    "argmax",
    "argmin",
    "count",
];

/// Names of reductions in other libraries.
const ALIASES: &[(&str, &str)] = &[
    ("average", "mean"),
    ("avg", "mean"),
    ("amax", "max"),
    ("maximum", "max"),
    ("amin", "min"),
    ("minimum", "min"),
    ("product", "prod"),
    ("add", "sum"),
    ("variance", "var"),
    ("stddev", "std"),
    ("count_nonzero", "count"),
];

const GROUPED_DOTS: &str = "`...` cannot be in a group on the left: the sizes of its axes would be unknown";

impl TransformKind {
    fn left(self) -> Rules {
        let numbers = match self {
            TransformKind::Rearrange => Some(
                "an axis given as a number cannot be matched with one on the other side, but `rearrange!` keeps all axes: give it a name",
            ),
            TransformKind::View => Some(
                "an axis given as a number cannot be matched with one on the other side, but `rearrange_view!` keeps all axes: give it a name",
            ),
            TransformKind::Repeat => {
                Some("an axis given as a number would be lost, but `repeat!` keeps all axes: give it a name")
            }
            TransformKind::Reduce => None,
        };
        Rules { numbers, dots_in_groups: Some(GROUPED_DOTS), sums: self.sums(), ..Rules::USUAL }
    }

    fn right(self) -> Rules {
        let numbers = match self {
            TransformKind::Rearrange => Some(
                "an axis given as a number would be new, but `rearrange!` cannot add axes other than `1`: use `repeat!`",
            ),
            TransformKind::View => Some(
                "an axis given as a number would be new, but `rearrange_view!` cannot add axes other than `1`: use `repeat!`",
            ),
            TransformKind::Reduce => Some(
                "an axis given as a number would be new, but `reduce!` cannot add axes other than `1`: use `repeat!`",
            ),
            TransformKind::Repeat => None,
        };
        let twice = Some("is named twice on the right: each axis of a result needs its own name");
        Rules { numbers, sums: self.sums(), twice, ..Rules::USUAL }
    }

    fn sums(self) -> Option<&'static str> {
        match self {
            TransformKind::Rearrange => None,
            TransformKind::View => Some(
                "`rearrange_view!` returns one view of one array: to join or split arrays, use `rearrange!`",
            ),
            TransformKind::Reduce | TransformKind::Repeat => {
                Some("only `rearrange!` can join and split arrays with `+`")
            }
        }
    }
}

/// Checks a call. Use the result only if there are no errors.
pub fn check(call: &Call, kind: TransformKind, errors: &mut Errors) -> ValidTransform {
    let words = &call.words;
    let mut table = Table::default();
    let Sides { left, right } = parse(words, errors);
    let well_formed = errors.is_empty();
    let Some((right, _)) = right else {
        // A misspelled arrow has already been reported.
        if well_formed {
            let what = format!("expected `->` and the axes of the result: `{}`", kind.form().example);
            errors.at(words, &words.end, what);
        }
        return ValidTransform {
            table,
            inputs: Vec::new(),
            outputs: Vec::new(),
            pieces: Vec::new(),
            given: Vec::new(),
            op: None,
        };
    };
    let inputs: Vec<_> =
        left.iter().map(|array| number(array, &kind.left(), &mut table, words, errors)).collect();
    let known = table.entries.len();
    let outputs: Vec<_> =
        right.iter().map(|array| number(array, &kind.right(), &mut table, words, errors)).collect();
    if inputs.len() != call.operands.len() && errors.is_empty() {
        let (arrays, operands) = (inputs.len(), call.operands.len());
        let commas = match (arrays > operands, inputs[0].only_name(&table)) {
            (false, _) => String::new(),
            (true, Some(name)) => {
                format!("; `{name}` is read as an axis: separate axes with spaces, and arrays with commas")
            }
            (true, None) => "; separate axes with spaces, and arrays with commas".into(),
        };
        let is_are = if operands == 1 { "is" } else { "are" };
        let what = format!(
            "the pattern has {} on the left, but {} {is_are} given{commas}",
            counted(arrays, "array"),
            counted(operands, "operand"),
        );
        errors.at(words, &inputs.last().expect("there is at least one input").place, what);
    }
    if kind == TransformKind::View
        && let [Expr::Array(list)] = &call.operands[..]
    {
        let what = "a list of arrays is not one array in memory, so there is no view of it: use `rearrange!`";
        errors.span(list.bracket_token.span.join(), what);
    }
    if kind != TransformKind::Rearrange
        && let Some(second) = outputs.get(1)
        && errors.is_empty()
    {
        let is_new = |axis: usize| axis >= known && table.entries[axis].number.is_none();
        let new = outputs[0].places.iter().filter_map(|(axis, _)| *axis).find(|&axis| is_new(axis));
        let what = match (&second.places[..], new) {
            ([(Some(size), _)], Some(new)) if table.entries[*size].number.is_some() => {
                let (name, size) = (&table.entries[new].name, &table.entries[*size].name);
                format!("give the size with the name of its axis: `{name} = {size}`")
            }
            _ => format!("`{}!` has one result", kind.form().name),
        };
        errors.at(words, &second.place, what);
    }
    // If words or operands are missing or wrong, an axis on both sides may seem to be on one side.
    if well_formed && inputs.len() == call.operands.len() {
        sides(kind, &inputs, &outputs, &table, known, words, errors);
    }
    let given = given(&call.sizes, &table, errors);
    let mut pieces = Vec::new();
    if errors.is_empty() {
        let sizes = solvable(&inputs, &given, &table, words, errors);
        unknown_sizes(&outputs, &sizes, &table, words, errors);
        pieces = pieces::find(&inputs, &outputs, &table, words, errors);
    }
    let op = call.op.as_ref().filter(|op| op.closure.is_none()).and_then(|op| {
        let known = OPS.iter().find(|own| **own == op.name);
        if known.is_none() {
            let alias = ALIASES.iter().find(|(alias, _)| *alias == op.name);
            let hint = match alias {
                Some((_, own)) => format!("; did you mean `{own}`?"),
                None => hint(&op.name, OPS.iter().copied()),
            };
            let names: Vec<String> = OPS.iter().map(|name| (*name).to_owned()).collect();
            let hint = if hint.is_empty() { "." } else { &hint };
            let what = format!("`{}` is not a reduction{hint} The reductions are {}", op.name, list(&names));
            errors.span(op.span, format!("{what}; write any other as a closure, `|part| median(part)`"));
        }
        known.copied()
    });
    if let Some(closure) = call.op.as_ref().and_then(|op| op.closure.as_ref()) {
        takes_a_slice(closure, errors);
    }
    ValidTransform { table, inputs, outputs, pieces, given, op }
}

/// Checks that a closure has one parameter, a slice. The type can be checked here only if it is
/// declared; rustc checks the rest.
fn takes_a_slice(closure: &ExprClosure, errors: &mut Errors) {
    const EXAMPLE: &str = "takes the elements along the reduced axes as a slice, `|part: &[f64]| part[0]`";
    let [Pat::Type(parameter)] = closure.inputs.iter().collect::<Vec<_>>()[..] else {
        if closure.inputs.len() != 1 {
            let place = closure.inputs.iter().nth(1).map_or(closure.or1_token.span(), Spanned::span);
            let count = closure.inputs.len();
            errors.span(place, format!("this closure has {count} parameters, but a closure {EXAMPLE}"));
        }
        return;
    };
    // A named type may be an alias of a slice.
    let can_be = match &*parameter.ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) => !is_number(path),
            Type::Array(_) | Type::Tuple(_) | Type::Reference(_) => false,
            _ => true,
        },
        Type::Path(path) => !is_number(path),
        Type::Array(_) | Type::Slice(_) | Type::Tuple(_) => false,
        _ => true,
    };
    if !can_be {
        errors.span(parameter.ty.span(), format!("a closure {EXAMPLE}"));
    }
}

/// Whether a type is a primitive number or `bool`.
fn is_number(path: &TypePath) -> bool {
    const NUMBERS: [&str; 15] = [
        "bool", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
        "usize",
    ];
    path.path.get_ident().is_some_and(|name| NUMBERS.iter().any(|number| name == number))
}

/// Checks that each axis is on both sides, where the macro requires that.
fn sides(
    kind: TransformKind,
    inputs: &[Numbered],
    outputs: &[Numbered],
    table: &Table,
    known: usize,
    words: &Words,
    errors: &mut Errors,
) {
    let in_output = |axis: usize| outputs.iter().any(|output| output.has(axis));
    let left_names = || table.names().filter(|name| table.find(name).is_some_and(|axis| axis < known));
    let right_names = || table.names().filter(|name| table.find(name).is_some_and(in_output));
    let of_name = |axis: &Option<usize>| axis.filter(|&axis| table.entries[axis].number.is_none());
    if kind != TransformKind::Reduce {
        let mut reported = Vec::new();
        for (axis, place) in inputs.iter().flat_map(|input| &input.places) {
            let Some(axis) = of_name(axis).filter(|&axis| !in_output(axis)) else { continue };
            // A diagonal has several places with the same name.
            if reported.contains(&axis) {
                continue;
            }
            reported.push(axis);
            let name = &table.entries[axis].name;
            // A misspelled name is reported once: on the right, where the name is unknown.
            let mut new = right_names().filter(|own| table.find(own).is_some_and(|axis| axis >= known));
            if kind != TransformKind::Repeat && new.any(|own| nearest(own, left_names()) == Some(name)) {
                continue;
            }
            let what = match kind {
                TransformKind::Repeat => "but `repeat!` keeps all axes".to_owned(),
                kind => {
                    format!("but `{}!` keeps all axes: to reduce it, use `reduce!`", kind.form().name)
                }
            };
            errors.at(words, place, format!("the axis `{name}` is missing on the right, {what}"));
        }
    }
    if kind != TransformKind::Repeat {
        for (axis, place) in outputs.iter().flat_map(|output| &output.places) {
            let Some(axis) = of_name(axis).filter(|&axis| axis >= known) else { continue };
            let name = &table.entries[axis].name;
            let hint = hint(name, left_names());
            let what = format!("`{}!` cannot add axes other than `1`: use `repeat!`", kind.form().name);
            errors.at(words, place, format!("the axis `{name}` is missing on the left, but {what}{hint}"));
        }
    }
    let spread = |arrays: &[Numbered]| {
        arrays.iter().find_map(|array| {
            array.places.iter().find(|(axis, _)| axis.is_none()).map(|(_, place)| place.clone())
        })
    };
    match (spread(inputs), spread(outputs)) {
        (Some(place), None) if kind != TransformKind::Reduce => {
            errors.at(
                words,
                &place,
                "`...` is missing on the right: the axes that it stands for would be lost",
            );
        }
        (None, Some(place)) => {
            errors.at(
                words,
                &place,
                "`...` is missing on the left: on the right, it stands for axes that the operand already has",
            );
        }
        _ => {}
    }
}

/// Checks that the size of each new axis is given.
fn unknown_sizes(outputs: &[Numbered], known: &[bool], table: &Table, words: &Words, errors: &mut Errors) {
    for (axis, place) in outputs.iter().flat_map(|output| &output.places) {
        if let Some(axis) = axis.filter(|&axis| !known[axis]) {
            let name = &table.entries[axis].name;
            errors.at(words, place, format!("the axis `{name}` is new: give its size, `{name} = 2`"));
        }
    }
}
