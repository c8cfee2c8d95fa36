//! A node, with the known properties of its inputs.

use super::report::{DenotationMismatch, WrongAxis};
use super::value::{Axis, Meaning, Value, agree};
use crate::error::shown;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use std::rc::Rc;

/// After this many mismatches of a node, further ones are not listed. No real node has that many
/// inputs.
const MOST_MISMATCHES: usize = 100;

/// The results of an operator, or the reason why it cannot be computed.
pub type Results = Result<Vec<Value>, String>;

/// A node that is being checked: operators read it, and report mismatches.
pub struct Call<'a> {
    pub node: &'a NodeProto,
    /// The name of the node in messages.
    pub label: String,
    pub inputs: Vec<Value>,
    pub mismatches: Vec<DenotationMismatch>,
}

impl<'a> Call<'a> {
    pub fn new(node: &'a NodeProto, label: String, inputs: Vec<Value>) -> Self {
        Call { node, label, inputs, mismatches: Vec::new() }
    }

    /// Whether the input exists: an omitted one has an empty name.
    pub fn has(&self, input: usize) -> bool {
        self.node.input.get(input).is_some_and(|name| !name.is_empty())
    }

    pub fn input(&self, input: usize) -> Value {
        self.inputs.get(input).cloned().unwrap_or_default()
    }

    /// The axes of an input, if they are known.
    pub fn axes(&self, input: usize) -> Option<Rc<[Axis]>> {
        self.inputs.get(input)?.axes.clone()
    }

    fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.node.attribute.iter().find(|attribute| attribute.name == name)
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        self.attribute(name)?.i
    }

    pub fn ints(&self, name: &str) -> Option<&'a [i64]> {
        Some(&self.attribute(name)?.ints)
    }

    pub fn text(&self, name: &str) -> Option<&'a str> {
        std::str::from_utf8(self.attribute(name)?.s.as_ref()?).ok()
    }

    pub fn tensor(&self, name: &str) -> Option<&'a TensorProto> {
        self.attribute(name)?.t.as_deref()
    }

    pub fn graph(&self, name: &str) -> Option<&'a GraphProto> {
        self.attribute(name)?.g.as_deref()
    }

    /// Integers that are an attribute in older versions of an operator, and an input in newer ones.
    /// `Ok(None)` if they are omitted.
    ///
    /// # Errors
    ///
    /// Returns `Err(())` if they exist but are not known.
    pub fn ints_or_input(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, ()> {
        match self.ints(name) {
            Some(ints) => Ok(Some(ints.to_vec())),
            None if self.has(input) => self.inputs[input].numbers().map(Some).ok_or(()),
            None => Ok(None),
        }
    }

    /// Expects an input in a format: one meaning for each axis, or `None` for any. With `spread`,
    /// the last entry of `format` applies to any number of axes, including none. Mismatches are
    /// reported, and the mismatched axes lose their meaning.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of axes does not fit the format.
    pub fn expect(&mut self, input: usize, format: &[Option<&str>], spread: bool) -> Result<(), String> {
        let Some(axes) = self.axes(input) else { return Ok(()) };
        let least = format.len() - usize::from(spread);
        if axes.len() < least || (!spread && axes.len() > least) {
            let more = if spread { " or more" } else { "" };
            let name = shown(&self.node.input[input]);
            return Err(format!("input `{name}` has {}; {least}{more} are expected", counted(axes.len())));
        }
        let expected: Vec<Meaning> =
            (0..axes.len()).map(|at| format[at.min(format.len() - 1)].map(Into::into)).collect();
        let wrong = |at: usize| match (&axes[at].meaning, &expected[at]) {
            (Some(found), Some(expected)) if found != expected => Some(WrongAxis {
                axis: at,
                found: found.to_string(),
                expected: expected.to_string(),
                like: None,
            }),
            _ => None,
        };
        let wrong: Vec<WrongAxis> = (0..axes.len()).filter_map(wrong).collect();
        self.report(input, wrong, expected);
        Ok(())
    }

    /// Reports a mismatch if two axes do not agree. The meaning of an axis of size 1 does not
    /// count, unless `strict`.
    pub fn meet(&mut self, first: (usize, usize), second: (usize, usize), strict: bool) {
        let (Some(left), Some(right)) = (self.axes(first.0), self.axes(second.0)) else { return };
        let (a, b) = (&left[first.1], &right[second.1]);
        if agree(&a.meaning, &b.meaning) || (!strict && (a.size.is_one() || b.size.is_one())) {
            return;
        }
        let (Some(expected), Some(found)) = (&a.meaning, &b.meaning) else { return };
        let like = format!("axis {} of `{}`", first.1, shown(&self.node.input[first.0]));
        let wrong = WrongAxis {
            axis: second.1,
            found: found.to_string(),
            expected: expected.to_string(),
            like: Some(like),
        };
        let mut all: Vec<Meaning> = right.iter().map(|axis| axis.meaning.clone()).collect();
        all[second.1] = a.meaning.clone();
        self.report(second.0, vec![wrong], all);
    }

    /// Reports the wrong axes of an input, and drops their meanings.
    fn report(&mut self, input: usize, wrong: Vec<WrongAxis>, expected: Vec<Meaning>) {
        let Some(axes) = self.axes(input) else { return };
        if wrong.is_empty() || self.mismatches.len() >= MOST_MISMATCHES {
            return;
        }
        let mut quiet = axes.to_vec();
        for axis in &wrong {
            quiet[axis.axis].meaning = None;
        }
        let names = |meanings: Vec<Meaning>| {
            meanings.into_iter().map(|name| name.map(|name| name.to_string())).collect()
        };
        let earlier = self.mismatches.iter_mut().find(|earlier| earlier.position == input);
        match earlier {
            Some(earlier) => {
                for wrong in wrong {
                    earlier.expected[wrong.axis] = Some(wrong.expected.clone());
                    earlier.axes.push(wrong);
                }
            }
            None => self.mismatches.push(DenotationMismatch {
                node: self.label.clone(),
                operator: self.node.op_type.clone(),
                position: input,
                is_result: false,
                value: self.node.input[input].clone(),
                axes: wrong,
                found: names(axes.iter().map(|axis| axis.meaning.clone()).collect()),
                expected: names(expected),
            }),
        }
        self.inputs[input].axes = Some(quiet.into());
    }
}

/// `1 axis`, `2 axes`
pub fn counted(axes: usize) -> String {
    if axes == 1 { "1 axis".to_owned() } else { format!("{axes} axes") }
}

/// The axis with this number. Negative numbers count from the end.
pub fn axis(number: i64, axes: usize) -> Result<usize, String> {
    let at = if number < 0 { number.checked_add(axes as i64) } else { Some(number) };
    at.and_then(|at| usize::try_from(at).ok())
        .filter(|&at| at < axes)
        .ok_or_else(|| format!("there is no axis {number} in {}", counted(axes)))
}

/// A mask of the axes with these numbers, which must be distinct.
pub fn axes_of(numbers: &[i64], axes: usize) -> Result<Vec<bool>, String> {
    let mut chosen = vec![false; axes];
    for &number in numbers {
        let at = axis(number, axes)?;
        if std::mem::replace(&mut chosen[at], true) {
            return Err(format!("axis {number} is named twice"));
        }
    }
    Ok(chosen)
}
