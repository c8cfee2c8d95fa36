//! Checks an einsum.

use super::EinsumCall;
use crate::pattern::axes::{Numbered, Rules, Slot, Table, number, solvable};
use crate::pattern::call::given;
use crate::pattern::errors::Errors;
use crate::pattern::near::{counted, hint};
use crate::pattern::parse::{Array, Axis, AxisKind, Sides, parse};
use crate::pattern::words::Notation;
use syn::Expr;

/// An einsum without errors.
pub struct ValidEinsum {
    pub table: Table,
    pub inputs: Vec<Numbered>,
    pub output: Numbered,
    pub given: Vec<(usize, Expr)>,
}

const GROUPED_DOTS: &str = "`...` cannot be in a group here: the sizes of its axes would be unknown";

/// Checks a call. Use the result only if there are no errors.
pub fn check(call: &EinsumCall, notation: Notation, errors: &mut Errors) -> ValidEinsum {
    let words = &call.words;
    let mut table = Table::default();
    let Sides { left, right } = parse(words, errors);
    let well_formed = errors.is_empty();
    let letters = notation == Notation::Names
        && well_formed
        && is_of_letters(&left, right.as_ref().map(|(right, _)| &right[..]));
    if letters {
        let what = "a pattern after its operands consists of names with spaces between them; a pattern of letters comes first";
        let example = "`einsum!(\"ik,kj->ij\", a, b)`";
        errors.at(words, &left[0].place, format!("{what}: {example}"));
    }
    let rules = Rules {
        // (In letter notation, digits have been refused already.)
        numbers: Some("an axis given as a number would be summed silently: give it a name"),
        dots_in_groups: Some(GROUPED_DOTS),
        sums: Some("`einsum!` cannot join or split arrays with `+`: use `rearrange!`"),
        ..Rules::USUAL
    };
    let inputs: Vec<Numbered> =
        left.iter().map(|array| number(array, &rules, &mut table, words, errors)).collect();
    if inputs.len() != call.operands.len() && well_formed {
        let (arrays, operands) = (inputs.len(), call.operands.len());
        let is_are = if operands == 1 { "is" } else { "are" };
        let what = format!("the pattern has {}, but {operands} {is_are} given", counted(arrays, "operand"));
        errors.span(call.span, format!("{what}\n  {}", words.shown()));
    }
    // If words or operands are wrong or missing, the result may seem to have axes that no operand
    // has.
    let well_formed = well_formed && inputs.len() == call.operands.len();
    let output = match right {
        Some((outputs, arrow)) => {
            if let [_, second, ..] = &outputs[..]
                && well_formed
            {
                errors.at(words, &second.place, "an einsum has one result");
            }
            let known = table.entries.len();
            let rules = Rules {
                numbers: Some("an einsum cannot add an axis to the result: use `repeat!`"),
                dots_in_groups: None,
                twice: Some("is in the result twice: name it once; an einsum cannot make a diagonal matrix"),
                ..rules
            };
            let output = number(&outputs[0], &rules, &mut table, words, errors);
            for (axis, place) in &output.places {
                let Some(axis) = *axis else { continue };
                if axis >= known && table.entries[axis].number.is_none() && !letters && well_formed {
                    let name = table.entries[axis].name.clone();
                    let names: Vec<&str> =
                        table.names().filter(|own| table.find(own).unwrap() < known).collect();
                    let hint = if name.chars().count() > 1 { hint(&name, names) } else { String::new() };
                    errors.at(
                        words,
                        place,
                        format!("`{name}` is an index of the result, but of no operand{hint}"),
                    );
                }
            }
            if inputs.iter().any(Numbered::has_rest) && !output.has_rest() && well_formed {
                let place = if output.slots.is_empty() { &arrow } else { &output.place };
                errors.at(words, place, "`...` is in an operand, but not in the result: the axes that it stands for would be summed silently");
            }
            output
        }
        None => implicit(&inputs, &table, words.end.clone()),
    };
    let given = given(&call.sizes, &table, errors);
    if errors.is_empty() {
        solvable(&inputs, &given, &table, words, errors);
    }
    ValidEinsum { table, inputs, output, given }
}

/// Whether a pattern of names was probably meant as letters: each array has a single name, and the
/// result's name is not a name of an operand, but consists of letters of the operands' names.
fn is_of_letters(left: &[Array], right: Option<&[Array]>) -> bool {
    let one = |array: &Array| match &array.axes[..] {
        [Axis { kind: AxisKind::Name(name), .. }] => Some(name.clone()),
        _ => None,
    };
    let Some(names) = left.iter().map(one).collect::<Option<Vec<_>>>() else { return false };
    let Some([result]) = right else { return false };
    let Some(result) = one(result) else { return false };
    !names.contains(&result) && result.chars().all(|letter| names.iter().any(|name| name.contains(letter)))
}

/// The result of a pattern without `->`: `...`, if an operand has it, and then the indices that
/// occur once in the operands, in alphabetical order, uppercase first.
fn implicit(inputs: &[Numbered], table: &Table, place: crate::pattern::words::Place) -> Numbered {
    let count = |axis: usize| {
        inputs.iter().flat_map(|input| &input.places).filter(|(own, _)| *own == Some(axis)).count()
    };
    let mut axes: Vec<usize> = (0..table.entries.len()).filter(|&axis| count(axis) == 1).collect();
    axes.sort_by(|&a, &b| table.entries[a].name.cmp(&table.entries[b].name));
    let rest = inputs.iter().any(Numbered::has_rest);
    let mut slots: Vec<Slot> = if rest { vec![Slot::Rest] } else { Vec::new() };
    slots.extend(axes.iter().map(|&axis| Slot::Axis(axis)));
    let mut places: Vec<_> =
        slots.iter().filter(|slot| **slot == Slot::Rest).map(|_| (None, place.clone())).collect();
    places.extend(axes.into_iter().map(|axis| (Some(axis), place.clone())));
    Numbered { slots, places, place }
}
