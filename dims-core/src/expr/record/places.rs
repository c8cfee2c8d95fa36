//! Parts of a result: elements of a traced tensor that were joined or scattered.

use super::recording::{PlacedParts, Traced};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use kernels::loops::nest::Odometer;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use kernels::trace::{Field, Part, StridedPlace, Table};
use smallvec::SmallVec;

/// The elements of a buffer as a part of a result in which they lie from `start` on.
#[inline]
pub(crate) fn whole_at<T: Element>(data: &Buffer<T>, start: usize) -> Option<Part> {
    if !data.is_traced() {
        return None;
    }
    let field = Field::held(&[data.len()], &data.held(), StridedPlace::strided(0, [1]));
    Some(Part { field, place: StridedPlace::strided(start as isize, [1]) })
}

/// Elements that were written to places which are looked up: the strides along the loops, and offsets that vary along some of them. Where several have one
/// place they were added, or the last one stays, the loops one inside of the other in an order.
pub(crate) fn scattered(
    traced: Traced,
    strides: &[isize],
    (offsets, along): (Vec<isize>, &[usize]),
    last_stays: Option<&[usize]>,
) -> PlacedParts {
    let Some(field) = traced else { return PlacedParts::new() };
    let field = match last_stays {
        None => *field,
        Some(order) => last_of_each(&field, strides, (&offsets, along), order),
    };
    let table = Some(Box::new(Table::new(offsets, &field.sizes, along)));
    let place = StridedPlace { table, ..StridedPlace::strided(0, strides.iter().copied()) };
    vec![Part { field, place }]
}

/// The field with zeros but for the last element of each place.
fn last_of_each(
    field: &Field,
    strides: &[isize],
    (offsets, along): (&[isize], &[usize]),
    order: &[usize],
) -> Field {
    let sizes = &field.sizes[..];
    let in_table = StridedPlace::contiguous(sizes, along).strides;
    let ordered: SmallVec<[usize; 8]> = order.iter().map(|&axis| sizes[axis]).collect();
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, order.len());
    let mut places = Vec::with_capacity(ordered.iter().product());
    let mut odometer = Odometer::new(&ordered);
    while !odometer.is_done() {
        let moved = |strides: &[isize]| {
            order.iter().zip(&at).map(|(&axis, &at)| strides[axis].wrapping_mul(at as isize)).sum::<isize>()
        };
        places.push(moved(strides) + offsets[moved(&in_table) as usize]);
        odometer.advance(&mut at);
    }
    let mut last = BTreeMap::new();
    places.iter().enumerate().for_each(|(number, &place)| {
        last.insert(place, number);
    });
    let stays: Vec<bool> = places.iter().enumerate().map(|(number, place)| last[place] == number).collect();
    let stays = Field::held(sizes, &Buffer::from(stays).held(), StridedPlace::contiguous(sizes, order));
    field.map([&stays], |build, a, [stays]| {
        let zero = build.float(0.0, build.kind(a));
        build.select(stays, a, zero)
    })
}
