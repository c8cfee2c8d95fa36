//! Integers that are shapes of other values. They are tracked, so that reshaped values keep the
//! meaning of their axes.

use super::super::node::{Call, Results, axis};
use super::super::value::{Axis, Size, Value};

/// A constant of the graph.
pub fn constant(call: &mut Call<'_>) -> Results {
    Ok(vec![if let Some(tensor) = call.tensor("value") {
        Value::constant(tensor)
    } else if let Some(list) = call.ints("value_ints") {
        Value::list(list.iter().copied().map(Size::Fixed).collect())
    } else if let Some(single) = call.int("value_int") {
        Value::single(Size::Fixed(single))
    } else {
        Value::unknown()
    }])
}

/// A tensor whose shape is an input or an attribute.
pub fn of_shape(call: &mut Call<'_>) -> Results {
    let shape = match call.ints("shape") {
        Some(shape) => Some(shape.iter().copied().map(Size::Fixed).collect()),
        None => call.input(0).elements().map(|shape| shape.to_vec()),
    };
    Ok(shape
        .map(|shape| Value::with_axes(shape.into_iter().map(Axis::sized).collect()))
        .into_iter()
        .collect())
}

/// The sizes of the axes, from `start` to `end`.
pub fn shape(call: &mut Call<'_>) -> Results {
    let Some(axes) = call.axes(0) else { return Ok(vec![Value::with_axes(vec![Axis::UNKNOWN])]) };
    let count = axes.len() as i64;
    let bound =
        |number: i64| if number < 0 { number.saturating_add(count) } else { number }.clamp(0, count) as usize;
    let (start, end) = (bound(call.int("start").unwrap_or(0)), bound(call.int("end").unwrap_or(count)));
    let sizes = axes.get(start..end).unwrap_or_default().iter().map(|axis| axis.size.clone());
    Ok(vec![Value::list(sizes.collect())])
}

/// The number of elements.
pub fn size() -> Results {
    Ok(vec![Value::single(Size::Unknown)])
}

/// A range of numbers.
pub fn range() -> Results {
    Ok(vec![Value::with_axes(vec![Axis::UNKNOWN])])
}

/// A part along some axes. If the input is a short list of integers, the part's elements may also
/// be known.
pub fn slice(call: &mut Call<'_>) -> Results {
    let value = call.input(0);
    let Some(axes) = &value.axes else { return Ok(Vec::new()) };
    let list = |name: &str, input: usize| call.ints_or_input(name, input).ok().flatten();
    let (starts, ends, along) = (list("starts", 1), list("ends", 2), list("axes", 3));
    let steps = call.ints_or_input("steps", 4);
    if let (Some(integers), [_], Some([start]), Some([end])) =
        (&value.integers, &axes[..], starts.as_deref(), ends.as_deref())
        && steps.is_ok_and(|steps| steps.is_none_or(|steps| steps == [1]))
    {
        let count = integers.len() as i64;
        let bound = |number: i64| {
            if number < 0 { number.saturating_add(count) } else { number }.clamp(0, count) as usize
        };
        let part = integers.get(bound(*start)..bound(*end)).unwrap_or_default();
        return Ok(vec![Value::list(part.to_vec())]);
    }
    let mut out = axes.to_vec();
    match along {
        Some(along) => {
            for number in along {
                out[axis(number, axes.len())?].size = Size::Unknown;
            }
        }
        // Without `axes`, the slices apply to the first axes. If `axes` is unknown, they may apply
        // to any. In both cases, it suffices to treat all sizes as unknown.
        None => out.iter_mut().for_each(|axis| axis.size = Size::Unknown),
    }
    Ok(vec![Value::with_axes(out)])
}
