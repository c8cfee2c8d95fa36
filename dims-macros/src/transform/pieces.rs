//! Joined and split arrays: maps the parts of a result to parts of the operands.
//!
//! An array with sums of axes has a part for each choice of their groups: `h (w1 + w2)` has the
//! parts `h w1` and `h w2`. A part of a result copies the part of an operand with the same axes. If
//! there is none, it repeats a part with fewer axes along the missing ones.

use crate::pattern::axes::{Numbered, Slot, Table, Term};
use crate::pattern::errors::Errors;
use crate::pattern::near::list;
use crate::pattern::words::Words;

/// A part of a result, and the part of an operand that it copies.
#[derive(Clone, Debug)]
pub struct Part {
    pub input: usize,
    pub from: Vec<usize>,
    pub to: Vec<usize>,
}

/// An array with one group chosen from each of its sums.
struct Choice {
    array: usize,
    groups: Vec<usize>,
    terms: Vec<Term>,
}

/// The parts of each output, if the call joins or splits arrays.
pub fn find(
    inputs: &[Numbered],
    outputs: &[Numbered],
    table: &Table,
    words: &Words,
    errors: &mut Errors,
) -> Vec<Vec<Part>> {
    let whole = |arrays: &[Numbered]| {
        arrays.len() == 1 && !arrays[0].slots.iter().any(|slot| matches!(slot, Slot::Sum(_)))
    };
    if whole(inputs) && whole(outputs) {
        return vec![Vec::new(); outputs.len()];
    }
    let sources: Vec<Choice> = inputs.iter().enumerate().flat_map(|(at, array)| choices(at, array)).collect();
    let mut used = vec![false; sources.len()];
    let mut parts = Vec::new();
    for (at, output) in outputs.iter().enumerate() {
        let mut own = Vec::new();
        for target in choices(at, output) {
            let Some(source) = source_of(&target, &sources, &used) else {
                let names = shown(&target, table);
                let what =
                    if names.is_empty() { "no axes".into() } else { format!("the axes {}", list(&names)) };
                errors.at(
                    words,
                    &output.place,
                    format!("a part of this result has {what}, but no part of an operand has the same axes"),
                );
                continue;
            };
            used[source] = true;
            let source = &sources[source];
            own.push(Part { input: source.array, from: source.groups.clone(), to: target.groups });
        }
        parts.push(own);
    }
    if errors.is_empty()
        && let Some(lost) = used.iter().position(|used| !used)
    {
        let names = shown(&sources[lost], table);
        let what = if names.is_empty() { "no axes".into() } else { format!("the axes {}", list(&names)) };
        let place = &inputs[sources[lost].array].place;
        let all: Vec<String> = sources.iter().map(|source| shown(source, table).join(" ")).collect();
        let hint = match sources.len() > outputs.len() {
            true => format!("; write a result for each part: `-> {}`", all.join(", ")),
            false => String::new(),
        };
        errors.at(words, place, format!("the part with {what} is in no result{hint}"));
    }
    parts
}

/// The part of an operand for the axes of `target`: an unused part with exactly these axes,
/// otherwise any part with exactly these axes, otherwise the unused part with the most of these
/// axes and no others.
fn source_of(target: &Choice, sources: &[Choice], used: &[bool]) -> Option<usize> {
    let same = |source: &Choice| source.terms.len() == target.terms.len() && within(source, target);
    let mut exact = (0..sources.len()).filter(|&at| same(&sources[at]));
    let all: Vec<usize> = exact.by_ref().collect();
    if let Some(at) = all.iter().copied().find(|&at| !used[at]).or_else(|| all.first().copied()) {
        return Some(at);
    }
    (0..sources.len())
        .filter(|&at| !used[at] && within(&sources[at], target))
        .max_by_key(|&at| (sources[at].terms.len(), std::cmp::Reverse(at)))
}

fn within(source: &Choice, target: &Choice) -> bool {
    source.terms.iter().all(|term| target.terms.contains(term))
}

fn shown(choice: &Choice, table: &Table) -> Vec<String> {
    let name = |term: &Term| match term {
        Term::Rest => "...".to_owned(),
        Term::Axis(axis) => table.entries[*axis].name.clone(),
    };
    choice.terms.iter().map(name).collect()
}

/// All choices of groups from the sums of an array. The last sum varies fastest.
fn choices(at: usize, array: &Numbered) -> Vec<Choice> {
    let mut choices = vec![Choice { array: at, groups: Vec::new(), terms: Vec::new() }];
    for slot in &array.slots {
        let groups = slot.groups();
        let is_sum = matches!(slot, Slot::Sum(_));
        choices = choices
            .iter()
            .flat_map(|choice| {
                groups.iter().enumerate().map(move |(number, terms)| {
                    let mut own = choice.groups.clone();
                    if is_sum {
                        own.push(number);
                    }
                    let mut all = choice.terms.clone();
                    for term in terms.iter() {
                        if !all.contains(term) {
                            all.push(*term);
                        }
                    }
                    Choice { array: at, groups: own, terms: all }
                })
            })
            .collect();
    }
    choices
}
