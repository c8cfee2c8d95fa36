//! Operators whose operands meet axis by axis.

use super::super::node::{Call, Results, axis};
use super::super::value::{Axis, Size, Value};

/// Operands that broadcast: their axes meet from the right.
pub fn elementwise(call: &mut Call<'_>) -> Results {
    let known: Option<Vec<usize>> = (0..call.inputs.len()).map(|at| Some(call.axes(at)?.len())).collect();
    let Some(ranks) = known else { return Ok(Vec::new()) };
    let rank = ranks.iter().copied().max().unwrap_or(0);
    for (at, &second) in ranks.iter().enumerate().skip(1) {
        for right in 1..=second {
            // With the first operand that means something there.
            let first = (0..at).find(|&first| {
                ranks[first] >= right
                    && call.axes(first).is_some_and(|axes| axes[ranks[first] - right].meaning.is_some())
            });
            if let Some(first) = first {
                call.meet((first, ranks[first] - right), (at, second - right), false);
            }
        }
    }
    let mut out = vec![Axis::sized(Size::Fixed(1)); rank];
    for at in 0..ranks.len() {
        let axes = call.axes(at).unwrap_or_default();
        for (axis, out) in axes.iter().rev().zip(out.iter_mut().rev()) {
            *out = if out.size.is_one() {
                if axis.size.is_one() { axis.joined(out) } else { with_meaning(axis, out) }
            } else if axis.size.is_one() {
                with_meaning(out, axis)
            } else {
                out.joined(axis)
            };
        }
    }
    Ok(vec![Value::with_axes(out)])
}

/// An axis that another one of size 1 is spread along: its own meaning counts.
fn with_meaning(axis: &Axis, spread: &Axis) -> Axis {
    Axis { size: axis.size.clone(), meaning: axis.meaning.clone().or_else(|| spread.meaning.clone()) }
}

/// Inputs one after the other along an axis.
pub fn concat(call: &mut Call<'_>) -> Results {
    let integers: Option<Vec<Size>> = call
        .inputs
        .iter()
        .map(|value| {
            Some(
                value
                    .integers
                    .as_ref()
                    .filter(|_| value.axes.as_ref().is_some_and(|axes| axes.len() == 1))?
                    .to_vec(),
            )
        })
        .collect::<Option<Vec<_>>>()
        .map(|lists| lists.concat());
    let known: Vec<usize> = (0..call.inputs.len()).filter(|&at| call.axes(at).is_some()).collect();
    let Some(&first) = known.first() else { return Ok(Vec::new()) };
    let rank = call.axes(first).map_or(0, |axes| axes.len());
    let along = axis(call.int("axis").ok_or("there is no `axis`")?, rank)?;
    let mut out = call.axes(first).unwrap_or_default().to_vec();
    for &at in &known[1..] {
        let found = call.axes(at).map_or(0, |axes| axes.len());
        if found != rank {
            return Err(format!("its inputs have {rank} and {found} axes"));
        }
        for place in 0..rank {
            call.meet((first, place), (at, place), true);
        }
        let axes = call.axes(at).unwrap_or_default();
        for (place, (out, axis)) in out.iter_mut().zip(axes.iter()).enumerate() {
            let joined = out.joined(axis);
            *out = if place == along { joined.resized(added(&out.size, &axis.size)) } else { joined };
        }
    }
    if known.len() < call.inputs.len() {
        out[along].size = Size::Unknown;
    }
    if let Some(integers) = integers {
        return Ok(vec![Value::list(integers)]);
    }
    Ok(vec![Value::with_axes(out)])
}

fn added(a: &Size, b: &Size) -> Size {
    match (a, b) {
        (Size::Fixed(a), Size::Fixed(b)) => a.checked_add(*b).map_or(Size::Unknown, Size::Fixed),
        _ => Size::Unknown,
    }
}
