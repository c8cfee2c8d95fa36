//! Parts of a result: elements of a traced tensor that were joined or scattered.

#[cfg(feature = "std")]
use super::recording::placed;
use super::recording::{Part, PlacedParts, Traced};
use alloc::vec::Vec;
#[cfg(feature = "std")]
use alloc::{boxed::Box, collections::BTreeMap};
#[cfg(feature = "std")]
use kernels::loops::nest::Odometer;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::program::code::BinaryOpcode;
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::trace::{Field, StridedPlace, Table};
#[cfg(feature = "std")]
use smallvec::SmallVec;

/// Elements times constants, contiguous in an order of all loops: `factor` of the number of an element. (`traced` are the elements before.)
#[inline]
#[track_caller]
pub(crate) fn scaled<T: Element>(
    data: Vec<T>,
    traced: Traced,
    order: &[usize],
    factor: impl Fn(usize) -> T,
) -> Buffer<T> {
    #[cfg(feature = "std")]
    if let Some(own) = traced {
        let field = &own.field;
        let factors: Vec<T> = (0..data.len()).map(factor).collect();
        let factors = Buffer::from(factors).held();
        let factors = Field::held(&field.sizes, &factors, StridedPlace::contiguous(&field.sizes, order));
        let field = field.map([&factors], |build, a, [b]| build.binary(BinaryOpcode::Mul, a, b));
        let place = StridedPlace::contiguous(&field.sizes, order);
        return placed(data, vec![Part { field, place }]);
    }
    let _ = (traced, order, factor);
    data.into()
}

/// The elements of a buffer as a part of a result in which they lie from `start` on.
#[inline]
pub(crate) fn whole_at<T: Element>(data: &Buffer<T>, start: usize) -> Option<Part> {
    #[cfg(feature = "std")]
    if data.is_traced() {
        let field = Field::held(&[data.len()], &data.held(), StridedPlace::strided(0, [1]));
        return Some(Part { field, place: StridedPlace::strided(start as isize, [1]) });
    }
    let _ = (data, start);
    None
}

/// Where the rows of some pairs lie among `rows` of each block, along the loops over blocks, pairs and elements of a row.
#[cfg(feature = "std")]
fn looked_up(
    sizes: &[usize; 3],
    rows: usize,
    pairs: &[(usize, usize)],
    of: fn(&(usize, usize)) -> usize,
) -> StridedPlace {
    let inner = sizes[2];
    let offsets = pairs.iter().map(|pair| (of(pair) * inner) as isize).collect();
    let table = Some(Box::new(Table::new(offsets, sizes, &[1])));
    StridedPlace { table, ..StridedPlace::strided(0, [(rows * inner) as isize, 0, 1]) }
}

/// Rows of `inner` elements that were combined along an axis: that at `pair.0` is the sum of those at `pair.1`, each times its weight. The weights are those of
/// the blocks, pairs and elements of a row, the last fastest. There are `outer` blocks, each of `size` rows before and `len` rows now.
#[cold]
pub(crate) fn weighted<T: Element>(
    data: &Buffer<T>,
    [outer, size, len, inner]: [usize; 4],
    pairs: &[(usize, usize)],
    weights: Vec<f64>,
) -> PlacedParts {
    #[cfg(feature = "std")]
    {
        let sizes = [outer, pairs.len(), inner];
        let place = |rows: usize, of: fn(&(usize, usize)) -> usize| looked_up(&sizes, rows, pairs, of);
        let weights =
            Field::held(&sizes, &Buffer::from(weights).held(), StridedPlace::contiguous(&sizes, &[0, 1, 2]));
        let field = Field::held(&sizes, &data.held(), place(size, |pair| pair.1));
        let field = field.map([&weights], |build, a, [b]| {
            let weight = build.cast_kind(build.kind(a), b);
            build.binary(BinaryOpcode::Mul, a, weight)
        });
        vec![Part { field, place: place(len, |pair| pair.0) }]
    }
    #[cfg(not(feature = "std"))]
    {
        let _ = (data, outer, size, len, inner, pairs, weights);
        PlacedParts::new()
    }
}

/// Elements that were written to places which are looked up: the strides along the loops, and offsets that vary along some of them. Where several have one
/// place they were added, or the last one stays, the loops one inside of the other in an order.
pub(crate) fn scattered(
    traced: Traced,
    strides: &[isize],
    (offsets, along): (Vec<isize>, &[usize]),
    last_stays: Option<&[usize]>,
) -> PlacedParts {
    #[cfg(feature = "std")]
    if let Some(own) = traced {
        let field = match last_stays {
            None => own.field,
            Some(order) => last_of_each(&own.field, strides, (&offsets, along), order),
        };
        let table = Some(Box::new(Table::new(offsets, &field.sizes, along)));
        let place = StridedPlace { table, ..StridedPlace::strided(0, strides.iter().copied()) };
        return vec![Part { field, place }];
    }
    let _ = (traced, strides, offsets, along, last_stays);
    PlacedParts::new()
}

/// The field with zeros but for the last element of each place.
#[cfg(feature = "std")]
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
