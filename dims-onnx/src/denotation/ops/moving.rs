//! Operators that permute, destroy or create axes.

use super::super::node::{Call, Results, axes_of, axis, counted};
use super::super::regroup::{From, Wanted, regroup};
use super::super::value::{Axis, Size, Value};
use std::rc::Rc;

/// `for i, j in enumerate(perm): out[i] = in[j]`
pub fn transpose(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let reversed: Vec<i64> = (0..axes.len() as i64).rev().collect();
    let perm = call.ints("perm").unwrap_or(&reversed);
    if perm.len() != axes.len() || axes_of(perm, axes.len()).is_err() {
        return Err(format!("`perm` is not a permutation of {}", counted(axes.len())));
    }
    let out: Result<Vec<Axis>, String> =
        perm.iter().map(|&from| Ok(axes[axis(from, axes.len())?].clone())).collect();
    Ok(vec![Value::with_axes(out?)])
}

/// The same elements with other axes: see `regroup`.
pub fn reshape(call: &mut Call<'_>) -> Results {
    let wanted: Option<Vec<Size>> = match call.ints("shape") {
        Some(shape) => Some(shape.iter().copied().map(Size::Fixed).collect()),
        None => call.input(1).elements().map(|shape| shape.to_vec()),
    };
    let Some(wanted) = wanted else { return Ok(Vec::new()) };
    let zero_is_a_size = call.int("allowzero").unwrap_or(0) == 1;
    let mut inferred = 0;
    let mut asked = Vec::new();
    for size in wanted {
        asked.push(match size {
            Size::Fixed(0) if !zero_is_a_size => Wanted::Copied,
            Size::Fixed(-1) => {
                inferred += 1;
                Wanted::Size(Size::Unknown)
            }
            Size::Fixed(size) if size < 0 => return Err(format!("an axis is reshaped to the size {size}")),
            size => Wanted::Size(size),
        });
    }
    if inferred > 1 {
        return Err("more than one size is -1".to_owned());
    }
    let Some(axes) = call.axes(0) else {
        let sized = |wanted| if let Wanted::Size(size) = wanted { Axis::sized(size) } else { Axis::UNKNOWN };
        return Ok(vec![Value::with_axes(asked.into_iter().map(sized).collect())]);
    };
    let sizes: Vec<Size> = axes.iter().map(|axis| axis.size.clone()).collect();
    let out = regroup(&sizes, &asked)?.into_iter().map(|(from, size)| match from {
        From::Same(at) => axes[at].resized(size),
        From::Merged(all) => merged(&axes, &all, size),
        From::New => Axis::sized(size),
    });
    Ok(vec![Value::with_axes(out.collect())])
}

/// Merges axes. The result has their common meaning.
fn merged(axes: &Rc<[Axis]>, all: &[usize], size: Size) -> Axis {
    let mut many = all.iter().map(|&at| &axes[at]).filter(|axis| !axis.size.is_one());
    let meaning = many.next().and_then(|first| first.meaning.clone());
    let meaning = meaning.filter(|meaning| many.all(|axis| axis.means(meaning)));
    Axis { size, meaning }
}

/// Merges the axes before `axis`, and the axes from `axis` on.
pub fn flatten(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(vec![Value::with_axes(vec![Axis::UNKNOWN; 2])]) };
    let number = call.int("axis").unwrap_or(1);
    let at = if number == axes.len() as i64 { axes.len() } else { axis(number, axes.len())? };
    let part = |range: std::ops::Range<usize>| {
        let all: Vec<usize> = range.collect();
        merged(&axes, &all, product(&axes, &all))
    };
    Ok(vec![Value::with_axes(vec![part(0..at), part(at..axes.len())])])
}

/// The product of sizes. It is known if all are numbers, or if all but one are 1.
fn product(axes: &Rc<[Axis]>, all: &[usize]) -> Size {
    let sizes = all.iter().map(|&at| &axes[at].size).filter(|size| !size.is_one());
    let product = sizes.cloned().reduce(|a, b| match (a, b) {
        (Size::Fixed(a), Size::Fixed(b)) => a.checked_mul(b).map_or(Size::Unknown, Size::Fixed),
        _ => Size::Unknown,
    });
    product.unwrap_or(Size::Fixed(1))
}

/// Removes axes of size 1.
pub fn squeeze(call: &mut Call<'_>) -> Results {
    let value = call.input(0);
    let Some(axes) = value.axes else { return Ok(Vec::new()) };
    let Ok(named) = call.ints_or_input("axes", 1) else { return Ok(Vec::new()) };
    let gone: Vec<bool> = match named {
        Some(named) => axes_of(&named, axes.len())?,
        // All axes of size 1 are removed, so all sizes must be known.
        None if axes.iter().any(|axis| !matches!(axis.size, Size::Fixed(_))) => return Ok(Vec::new()),
        None => axes.iter().map(|axis| axis.size.is_one()).collect(),
    };
    let left = axes.iter().zip(gone).filter(|(_, gone)| !gone).map(|(axis, _)| axis.clone()).collect();
    Ok(vec![Value { integers: value.integers, ..Value::with_axes(left) }])
}

/// Adds axes of size 1.
pub fn unsqueeze(call: &mut Call<'_>) -> Results {
    let value = call.input(0);
    let Some(axes) = value.axes else { return Ok(Vec::new()) };
    let Ok(Some(named)) = call.ints_or_input("axes", 1) else { return Ok(Vec::new()) };
    let new = axes_of(&named, axes.len() + named.len())?;
    let mut old = axes.iter().cloned();
    let out: Vec<Axis> = new
        .into_iter()
        .map(|new| if new { Axis::sized(Size::Fixed(1)) } else { old.next().unwrap_or(Axis::UNKNOWN) })
        .collect();
    // A single integer becomes a list of one. With more axes, it is not a shape.
    let integers = value.integers.filter(|_| out.len() == 1);
    Ok(vec![Value { integers, ..Value::with_axes(out) }])
}

/// Repeats axes of size 1, and adds axes on the left.
pub fn expand(call: &mut Call<'_>) -> Results {
    let (Some(axes), Some(shape)) = (call.axes(0), call.input(1).elements()) else { return Ok(Vec::new()) };
    let rank = axes.len().max(shape.len());
    let out = (0..rank).rev().map(|right| {
        let axis = axes.len().checked_sub(right + 1).map(|at| &axes[at]);
        let size = shape.len().checked_sub(right + 1).map(|at| &shape[at]).filter(|size| !size.is_one());
        match (axis, size) {
            (Some(axis), Some(size)) if axis.size.is_one() => axis.resized(size.clone()),
            (Some(axis), Some(size)) => axis.resized(axis.size.or(size)),
            (Some(axis), None) => axis.clone(),
            (None, size) => Axis::sized(size.cloned().unwrap_or(Size::Fixed(1))),
        }
    });
    Ok(vec![Value::with_axes(out.collect())])
}

/// Replaces the selected axis by the axes of the indices.
pub fn gather(call: &mut Call<'_>) -> Results {
    let value = call.input(0);
    let (Some(axes), Some(indices)) = (value.axes, call.axes(1)) else { return Ok(Vec::new()) };
    let at = axis(call.int("axis").unwrap_or(0), axes.len())?;
    if axes.len() == 1
        && let (Some(integers), Some(positions)) = (value.integers, call.input(1).numbers())
    {
        let picked: Result<Vec<Size>, String> =
            positions.iter().map(|&position| picked(&integers, position)).collect();
        return Ok(vec![match &picked?[..] {
            [one] if indices.is_empty() => Value::single(one.clone()),
            many if indices.len() == 1 => Value::list(many.to_vec()),
            _ => Value::unknown(),
        }]);
    }
    let out: Vec<Axis> = axes[..at].iter().chain(indices.iter()).chain(&axes[at + 1..]).cloned().collect();
    Ok(vec![Value::with_axes(out)])
}

/// The element at a position. Negative positions count from the end.
fn picked(integers: &[Size], position: i64) -> Result<Size, String> {
    let at = if position < 0 { position.saturating_add(integers.len() as i64) } else { position };
    let integer = usize::try_from(at).ok().and_then(|at| integers.get(at));
    integer.cloned().ok_or_else(|| format!("element {position} is looked up in a list of {}", integers.len()))
}

/// Adds an axis of classes.
pub fn one_hot(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let at = axis(call.int("axis").unwrap_or(-1), axes.len() + 1)?;
    let mut axes = axes.to_vec();
    axes.insert(at, Axis::UNKNOWN);
    Ok(vec![Value::with_axes(axes)])
}

/// Removes the reduced axes, or gives them size 1.
pub fn reduce(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let reduced = match call.ints_or_input("axes", 1) {
        Err(()) => return Ok(Vec::new()),
        Ok(Some(named)) if !named.is_empty() => axes_of(&named, axes.len())?,
        Ok(_) => vec![call.int("noop_with_empty_axes").unwrap_or(0) == 0; axes.len()],
    };
    Ok(vec![without(call, &axes, &reduced)])
}

pub fn arg_reduce(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(Vec::new()) };
    let reduced = axes_of(&[call.int("axis").unwrap_or(0)], axes.len())?;
    Ok(vec![without(call, &axes, &reduced)])
}

fn without(call: &Call<'_>, axes: &Rc<[Axis]>, reduced: &[bool]) -> Value {
    let keep = call.int("keepdims").unwrap_or(1) != 0;
    let left = axes.iter().zip(reduced).filter_map(|(axis, &reduced)| match (reduced, keep) {
        (false, _) => Some(axis.clone()),
        (true, true) => Some(axis.reduced()),
        (true, false) => None,
    });
    Value::with_axes(left.collect())
}
