//! Operators whose operands must agree axis by axis.

use super::super::node::{Call, Results, axis, counted};
use super::super::value::{Axis, MOST_INTEGERS, Size, Value};
use std::rc::Rc;

/// Operands that broadcast: their axes are aligned from the right.
pub fn elementwise(call: &mut Call<'_>) -> Results {
    let known: Option<Vec<usize>> = (0..call.inputs.len()).map(|at| Some(call.axes(at)?.len())).collect();
    let Some(ranks) = known else { return Ok(Vec::new()) };
    let rank = ranks.iter().copied().max().unwrap_or(0);
    // The axes at one position, counted from the right, of all operands that have that many axes.
    let places = |back: usize| {
        ranks.iter().enumerate().filter_map(move |(at, rank)| Some((at, rank.checked_sub(back)?)))
    };
    let mut out = Vec::new();
    for back in (1..=rank).rev() {
        let places: Vec<_> = places(back).collect();
        out.push(meet_all(call, &places));
    }
    let integers = (rank <= 1).then(|| arithmetic(call)).flatten();
    Ok(vec![Value { integers, ..Value::with_axes(out) }])
}

/// Sums, differences, products and quotients of shapes.
fn arithmetic(call: &Call<'_>) -> Option<Rc<[Size]>> {
    let operation: fn(i64, i64) -> Option<i64> = match call.node.op_type.as_str() {
        "Add" => i64::checked_add,
        "Sub" => i64::checked_sub,
        "Mul" => i64::checked_mul,
        // Negative numbers are not sizes.
        "Div" => |a, b| if a >= 0 && b > 0 { Some(a / b) } else { None },
        _ => return None,
    };
    let [a, b] = &call.inputs[..] else { return None };
    let (a, b) = (a.integers.as_ref()?, b.integers.as_ref()?);
    let count = a.len().max(b.len());
    let at = |list: &Rc<[Size]>, at: usize| list.get(if list.len() == 1 { 0 } else { at }).cloned();
    let one = |place: usize| match (at(a, place)?, at(b, place)?) {
        (Size::Fixed(a), Size::Fixed(b)) => Some(operation(a, b).map_or(Size::Unknown, Size::Fixed)),
        _ => Some(Size::Unknown),
    };
    (0..count).map(one).collect()
}

/// The axis that results from broadcasting axes, given as `(input, axis)`. Axes whose size is not 1
/// must agree with the first of them that has a meaning.
pub fn meet_all(call: &mut Call<'_>, places: &[(usize, usize)]) -> Axis {
    let at = |call: &Call<'_>, (input, axis): (usize, usize)| call.axes(input).map(|axes| axes[axis].clone());
    let mut first: Option<(usize, usize)> = None;
    for &place in places {
        if let Some(first) = first {
            call.meet(first, place, false);
        } else if at(call, place).is_some_and(|axis| axis.meaning.is_some() && !axis.size.is_one()) {
            first = Some(place);
        }
    }
    places
        .iter()
        .filter_map(|&place| at(call, place))
        .reduce(|a, b| broadcast(&a, &b))
        .unwrap_or(Axis::UNKNOWN)
}

/// Broadcasts one axis along another. If only one of them has size 1, the meaning of the other one
/// takes precedence.
fn broadcast(a: &Axis, b: &Axis) -> Axis {
    match (a.size.is_one(), b.size.is_one()) {
        (true, false) => with_meaning(b, a),
        (false, true) => with_meaning(a, b),
        _ => a.joined(b),
    }
}

fn with_meaning(axis: &Axis, spread: &Axis) -> Axis {
    Axis { size: axis.size.clone(), meaning: axis.meaning.clone().or_else(|| spread.meaning.clone()) }
}

/// Inputs concatenated along an axis.
pub fn concat(call: &mut Call<'_>) -> Results {
    let known: Vec<usize> = (0..call.inputs.len()).filter(|&at| call.axes(at).is_some()).collect();
    let Some(&first) = known.first() else { return Ok(Vec::new()) };
    let rank = call.axes(first).map_or(0, |axes| axes.len());
    let along = axis(call.int("axis").ok_or("there is no `axis`")?, rank)?;
    let mut out = call.axes(first).unwrap_or_default().to_vec();
    // For each axis, the first input in which it has a meaning.
    let mut meant: Vec<Option<usize>> = out.iter().map(|axis| axis.meaning.as_ref().map(|_| first)).collect();
    for &at in &known[1..] {
        let found = call.axes(at).map_or(0, |axes| axes.len());
        if found != rank {
            return Err(format!("one input has {}, another {found}", counted(rank)));
        }
        for (place, &meant) in meant.iter().enumerate() {
            if let Some(earlier) = meant {
                call.meet((earlier, place), (at, place), true);
            }
        }
        let axes = call.axes(at).unwrap_or_default();
        for (meant, axis) in meant.iter_mut().zip(axes.iter()) {
            *meant = meant.or_else(|| axis.meaning.as_ref().map(|_| at));
        }
        for (place, (out, axis)) in out.iter_mut().zip(axes.iter()).enumerate() {
            let joined = out.joined(axis);
            *out = if place == along { joined.resized(added(&out.size, &axis.size)) } else { joined };
        }
    }
    if known.len() < call.inputs.len() {
        out[along].size = Size::Unknown;
    }
    // The elements of lists are concatenated, too, because models build shapes in this way.
    let lists: Option<Vec<Rc<[Size]>>> = call.inputs.iter().map(Value::elements).collect();
    let integers = lists.filter(|lists| rank == 1 && are_few(lists)).map(|lists| lists.concat().into());
    Ok(vec![Value { integers, ..Value::with_axes(out) }])
}

/// Whether the elements of the lists are few enough to be kept.
fn are_few(lists: &[Rc<[Size]>]) -> bool {
    lists.iter().map(|list| list.len()).sum::<usize>() <= MOST_INTEGERS
}

fn added(a: &Size, b: &Size) -> Size {
    match (a, b) {
        (Size::Fixed(a), Size::Fixed(b)) => a.checked_add(*b).map_or(Size::Unknown, Size::Fixed),
        _ => Size::Unknown,
    }
}
