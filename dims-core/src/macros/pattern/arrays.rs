//! The arrays of an operand in memory.

use kernels::memory::axes::Axis;
use kernels::memory::elements::Elements;
use smallvec::SmallVec;

/// One operand in memory: for each of its arrays, the elements and the strides along dims and axes.
/// Only a list has several arrays.
pub struct Arrays<'a, T> {
    /// The arrays. A list's arrays have a stride of 0 along the list.
    pub items: SmallVec<[(Elements<'a, T>, SmallVec<[isize; 8]>); 1]>,
    /// Whether the operand is a list.
    pub is_list: bool,
}

impl<'a, T> Arrays<'a, T> {
    /// One array with these axes. Its strides along the `named` dims are 0.
    pub fn one(elements: Elements<'a, T>, named: usize, axes: &[Axis]) -> Self {
        Arrays::new([(elements, axes)].into_iter(), false, named)
    }

    /// The arrays of a list. Their strides along the `named` dims are 0.
    pub fn list<'i>(items: impl Iterator<Item = (Elements<'a, T>, &'i [Axis])>, named: usize) -> Self {
        Arrays::new(items, true, named)
    }

    fn new<'i>(
        items: impl Iterator<Item = (Elements<'a, T>, &'i [Axis])>,
        is_list: bool,
        named: usize,
    ) -> Self {
        let strides = |axes: &[Axis]| {
            let list = if is_list { named + 1 } else { named };
            core::iter::repeat_n(0, list).chain(axes.iter().map(|axis| axis.stride)).collect()
        };
        let items = items.map(|(elements, axes)| (elements, strides(axes))).collect();
        Arrays { items, is_list }
    }
}
