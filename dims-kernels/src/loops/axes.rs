//! Sets and lists of loop axes.

use core::cmp::Reverse;
use smallvec::SmallVec;

/// Contractions have fewer loop axes than this.
pub const MOST_AXES: usize = 128;

/// A set of loop axes, as bits.
pub type AxisSet = u128;

/// Loop axes in order.
pub type Order = SmallVec<[usize; 8]>;

/// A number for each axis of a list: its size, or a position along it.
pub type Sizes = SmallVec<[usize; 8]>;

/// The axes of a set in ascending order. Every product calls this often, so it takes one step per
/// axis of the set, not one per possible axis.
#[inline]
pub fn each(axes: AxisSet) -> impl Iterator<Item = usize> + Clone {
    let some = |left: AxisSet| (left != 0).then_some(left);
    core::iter::successors(some(axes), move |left| some(left & (left - 1)))
        .map(|left| left.trailing_zeros() as usize)
}

/// The number of positions along the axes.
#[inline]
pub fn volume(axes: AxisSet, sizes: &[usize]) -> f64 {
    each(axes).map(|axis| sizes[axis] as f64).product()
}

/// The set of the axes in an order.
#[inline]
pub fn set(order: &[usize]) -> AxisSet {
    order.iter().fold(0, |axes, &axis| axes | 1 << axis)
}

/// Sorts axes, or items that belong to axes, by a key. The sort is stable.
///
/// It is an insertion sort, since axes are few, and the standard library's sort compiles to much
/// more code for each type of key.
pub fn sort_few<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && key(&items[at - 1]) > key(&items[at]) {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Whether strides show that no two positions of some loops have the same element: each stride, in
/// absolute value, is greater than the reach of the loops with lesser strides. `loops` are strides
/// and sizes; no size is 0.
pub fn are_distinct(loops: impl Iterator<Item = (isize, usize)>) -> bool {
    let mut loops: SmallVec<[(usize, usize); 8]> =
        loops.filter(|own| own.1 != 1).map(|(stride, size)| (stride.unsigned_abs(), size)).collect();
    sort_few(&mut loops, |&steps| steps);
    let mut reach = 0;
    loops.iter().all(|&(stride, size)| {
        let free = stride > reach;
        reach += stride * (size - 1);
        free
    })
}

/// Axes from the greatest stride to the least, in absolute value.
pub fn sorted(axes: AxisSet, strides: &[isize]) -> Order {
    let mut order: Order = each(axes).collect();
    sort_few(&mut order, |&axis| Reverse(strides[axis].unsigned_abs()));
    order
}
