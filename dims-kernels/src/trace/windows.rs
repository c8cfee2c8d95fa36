//! The gradient with respect to the operand of windows, as a sum for each element.
//!
//! A convolution reads `x[h + k]` at position `h` of a window and offset `k` within it, so its
//! gradient is
//!
//! ```text
//! dx[h + k] += sum over f of dy[f, h] * w[f, k]
//! ```
//!
//! As written, this computes a sum for each offset within each window, and adds each of these sums
//! to `dx`. With zeros before and after `dy`, the gradient is again a convolution, which a matrix
//! product computes:
//!
//! ```text
//! dx[y] = sum over f, k of dy[f, y - k] * w[f, k]
//! ```

use crate::error::Error;
use crate::loops::axes::Order;
use crate::memory::buffer::Buffer;
use crate::memory::listener::freed;
use crate::ops::code::{BinaryOpcode, Number};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Real;
use crate::trace::compute::{add_at, filled, kept, mapped, whole_lines};
use crate::trace::products::with_constants;
use crate::trace::{Field, FieldSource, Part, StridedPlace};
use alloc::vec::Vec;
use smallvec::SmallVec;

/// Two loops along which a place has the same stride: positions of a window, and offsets within it.
#[derive(Clone, Copy)]
struct WindowLoops {
    position: usize,
    within: usize,
    /// The size of a window minus 1.
    beside: usize,
}

/// The windows of a place, with `beside` at most half of the positions; empty if the place has
/// another pattern.
fn windows(place: &StridedPlace, sizes: &[usize]) -> SmallVec<[WindowLoops; 2]> {
    if place.table.is_some() || sizes.contains(&0) {
        return SmallVec::new();
    }
    let order = kept(place, sizes);
    let mut found: SmallVec<[WindowLoops; 2]> = SmallVec::new();
    for pair in order.windows(2) {
        let (within, position) = (pair[0], pair[1]);
        if place.strides[within] != place.strides[position] {
            continue;
        }
        let beside = sizes[within] - 1;
        if 2 * beside > sizes[position] || found.last().is_some_and(|last| last.position == within) {
            return SmallVec::new();
        }
        found.push(WindowLoops { position, within, beside });
    }
    found
}

fn varies(field: &Field, axis: usize) -> bool {
    field.operands.iter().any(|own| own.place.varies(axis))
}

/// The loops along which a field varies.
fn support(field: &Field) -> Order {
    (0..field.sizes.len()).filter(|&axis| field.sizes[axis] != 1 && varies(field, axis)).collect()
}

/// A product that is added into windows, as a part that sums over the windows instead. One factor
/// must vary with the position but not with the offset within a window. Of the others, none may
/// vary with the position, and at least one must vary with the offset.
///
/// The zeros around the positions are multiplied by the other factors, so these must be finite.
pub(super) fn gathered<T: ProgramOutput + Real>(part: &Part) -> Result<Option<Part>, Error> {
    let Part { field, place } = part;
    let windows = windows(place, &field.sizes);
    let Some(&first) = windows.first() else { return Ok(None) };
    let (factors, constants) = field.program.factors();
    let fields = factors.into_iter().map(|value| field.with_result(value)).collect();
    let Some((mut factors, scale)) = with_constants::<T>(fields, &constants) else { return Ok(None) };
    let Some(at) = factors.iter().position(|own| varies(own, first.position)) else { return Ok(None) };
    let given = factors.swap_remove(at);
    let fits = |window: &WindowLoops| {
        varies(&given, window.position)
            && !varies(&given, window.within)
            && factors.iter().any(|own| varies(own, window.within))
            && !factors.iter().any(|own| varies(own, window.position))
    };
    if !windows.iter().all(fits) || Number::of(T::ZERO).map(|(_, kind)| kind) != Some(field.kind()) {
        return Ok(None);
    }

    let mut sizes = field.sizes.clone();
    for window in &windows {
        sizes[window.position] += window.beside;
    }
    let mut product = beside_zeros::<T>(&given, &windows, &sizes)?;
    product.names.clone_from(&field.names);
    for factor in &factors {
        let Some(reversed) = reversed::<T>(factor, &windows, &sizes)? else { return Ok(None) };
        product = product.map([&reversed], |build, a, [b]| build.binary(BinaryOpcode::Chain, a, b));
    }
    let mut place = place.clone();
    windows.iter().for_each(|window| place.strides[window.within] = 0);
    Ok(Some(Part { field: if scale == 1.0 { product } else { product.scaled(scale) }, place }))
}

/// The elements of `given`, with zeros before and after them along the positions, as a field with
/// loops of these sizes. Within a window, the last offset comes first.
fn beside_zeros<T: ProgramOutput + Real>(
    given: &Field,
    windows: &[WindowLoops],
    sizes: &[usize],
) -> Result<Field, Error> {
    let axes = support(given);
    let mut padded = given.sizes.clone();
    windows.iter().for_each(|window| padded[window.position] += 2 * window.beside);
    let mut lying = StridedPlace::contiguous(&padded, &axes);
    let mut place = lying.clone();
    for window in windows {
        place.offset += window.beside as isize * lying.strides[window.position];
        lying.strides[window.within] = lying.strides[window.position];
    }
    let len = axes.iter().map(|&axis| padded[axis]).product();
    let mut data = filled::<T>(len)?;
    let field = given.only(&axes);
    match whole_lines::<T>(&field, &place) {
        Some((lines, order)) => add_at(&mut data, &place, &field.sizes, &lines, &order),
        None => {
            let order = kept(&place, &field.sizes);
            let values = mapped::<T>(&field, &order)?;
            add_at(&mut data, &place, &field.sizes, &values, &order);
            freed(values.as_ptr(), values.len());
        }
    }
    Ok(Field::of(sizes, FieldSource::Memory(Buffer::from(data).held()), lying))
}

/// The elements of another factor along loops of these sizes, from the last offset of each window
/// to the first; `None` if an element is not finite.
fn reversed<T: ProgramOutput + Real>(
    factor: &Field,
    windows: &[WindowLoops],
    sizes: &[usize],
) -> Result<Option<Field>, Error> {
    let axes = support(factor);
    let data: Vec<T> = mapped(&factor.only(&axes), &axes)?;
    if !data.iter().all(|value| value.is_finite()) {
        return Ok(None);
    }
    let mut place = StridedPlace::contiguous(&factor.sizes, &axes);
    for window in windows {
        let stride = &mut place.strides[window.within];
        place.offset += window.beside as isize * *stride;
        *stride = -*stride;
    }
    Ok(Some(Field::of(sizes, FieldSource::Memory(Buffer::from(data).held()), place)))
}
