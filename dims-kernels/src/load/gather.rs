//! Computed indices of a gather: each index adds `index x stride` to the offset, and is checked
//! against its axis.

use crate::error::Origin;
use crate::load::{Faults, IndexFault, Kernel, Tile};
use crate::machine::isa::Isa;
use crate::scalar::IndexInt;
use alloc::string::String;
use alloc::vec::Vec;

/// The computed indices of one operand.
///
/// # Safety
///
/// Each returned offset leads from one element of the operand to another: every index is checked
/// against its axis.
pub unsafe trait GatherIndices {
    /// Whether the type has any indices.
    const ANY: bool;

    /// See [`Kernel::PARALLEL`].
    const PARALLEL: bool;

    /// Whether any index has to be computed per element. Affine indices that stay within their axis
    /// are already part of the strides.
    fn is_active(&self) -> bool;

    /// Whether the offset is the same along the innermost loop.
    fn is_uniform(&self) -> bool;

    /// Computes the indices of a tile.
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults);

    /// The offset that the indices add for the tile's `x`th element; `None` if an index is out of
    /// range.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::get`].
    unsafe fn offset<I: Isa>(&self, x: usize, faults: &mut Faults) -> Option<isize>;

    /// Fills `places` with pointers for consecutive positions of the loop `along`, starting from
    /// `at`; the positions along the other loops are those of `at`. The `n`th pointer, counted from
    /// 0, is `line.0 + n * line.1`, plus the offset of the indices at its position. If an index is
    /// out of range, the pointers are unspecified. The next tile must be loaded without
    /// [`moved`](Tile::moved).
    fn places<I: Isa, T>(
        &mut self,
        at: &mut [usize],
        along: usize,
        line: (*const T, isize),
        places: &mut [*const T],
        faults: &mut Faults,
    );
}

// SAFETY: without indices, every offset is 0.
unsafe impl GatherIndices for () {
    const ANY: bool = false;
    const PARALLEL: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_active(&self) -> bool {
        false
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, _: &Tile<'_>, _: &mut Faults) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn offset<I: Isa>(&self, _: usize, _: &mut Faults) -> Option<isize> {
        Some(0)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn places<I: Isa, T>(
        &mut self,
        _: &mut [usize],
        _: usize,
        (start, step): (*const T, isize),
        places: &mut [*const T],
        _: &mut Faults,
    ) {
        for (number, place) in places.iter_mut().enumerate() {
            *place = start.wrapping_offset(number as isize * step);
        }
    }
}

/// The axis that an index selects from.
#[derive(Clone, Copy, Debug)]
pub struct IndexedAxis {
    /// The stride of the axis.
    pub stride: isize,
    /// The size of the axis.
    pub size: usize,
    /// The position of the axis in the array.
    pub axis: usize,
    /// The name of its dim, if it has one.
    pub dim: Option<&'static str>,
    /// The names of the dims that the index is computed from, for messages.
    pub names: fn() -> Vec<&'static str>,
    /// Whether the index is a class label.
    pub is_label: bool,
    /// Where the array was bound.
    pub origin: Origin,
}

/// A computed index, and the remaining ones.
pub struct Computed<K, X> {
    /// The index.
    pub index: K,
    /// Whether the index has to be computed for each element. Otherwise it is already part of the
    /// operand's strides.
    pub active: bool,
    /// The axis that the index selects from.
    pub target: IndexedAxis,
    /// The remaining indices.
    pub rest: X,
}

// SAFETY: `index` is checked against the axis that it selects from, and `rest` checks the remaining
// indices.
unsafe impl<K: Kernel, X: GatherIndices> GatherIndices for Computed<K, X>
where
    K::Elem: IndexInt,
{
    const ANY: bool = true;
    const PARALLEL: bool = K::PARALLEL && X::PARALLEL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_active(&self) -> bool {
        self.active || self.rest.is_active()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        (!self.active || self.index.is_uniform()) && self.rest.is_uniform()
    }

    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        if self.active {
            self.index.load::<I>(tile, faults);
        }
        self.rest.load::<I>(tile, faults);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn offset<I: Isa>(&self, x: usize, faults: &mut Faults) -> Option<isize> {
        // SAFETY: the caller's promise.
        let rest = unsafe { self.rest.offset::<I>(x, faults) };
        if !self.active {
            return rest;
        }
        // SAFETY: the caller's promise.
        let own = self.target.place(unsafe { self.index.get::<I>(x) }, faults)?;
        rest.map(|rest| rest + own)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn places<I: Isa, T>(
        &mut self,
        at: &mut [usize],
        along: usize,
        line: (*const T, isize),
        places: &mut [*const T],
        faults: &mut Faults,
    ) {
        // If this is the last index and active, the loop below starts from `line`. Letting `rest`
        // write the pointers first, and then reading them again, takes longer.
        if X::ANY || !self.active {
            self.rest.places::<I, T>(at, along, line, places, faults);
        }
        if !self.active {
            return;
        }
        let first = at[along];
        let steps = self.index.steps(at, along);
        for (number, place) in places.iter_mut().enumerate() {
            let index = if let Some((start, stride)) = steps {
                // SAFETY: this is an element of the index, at this position of the loops.
                unsafe { *start.wrapping_offset(number as isize * stride) }
            } else {
                at[along] = first + number;
                self.index.load::<I>(&Tile { at, len: 1, mask: None, moved: None }, faults);
                // SAFETY: the tile of one element was just loaded without a mask.
                unsafe { self.index.get::<I>(0) }
            };
            let Some(offset) = self.target.place(index, faults) else { break };
            let start = if X::ANY { *place } else { line.0.wrapping_offset(number as isize * line.1) };
            *place = start.wrapping_offset(offset);
        }
        at[along] = first;
    }
}

impl IndexedAxis {
    /// The offset of the element with this index from the origin of the axis, if the index is in
    /// range.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<N: IndexInt>(&self, index: N, faults: &mut Faults) -> Option<isize> {
        let position = index.to_position(self.size);
        if position.is_none() {
            faults.record(move || IndexFault {
                what: self.describe(),
                index: index.to_i128(),
                size: self.size,
                origin: self.origin,
            });
        }
        position.map(|position| position as isize * self.stride)
    }

    pub(crate) fn describe(&self) -> String {
        let what = computed_axis((self.dim, self.axis), (self.names)().into_iter());
        if self.is_label { what + OF_LABEL } else { what }
    }
}

/// Ends the description of an axis along which the index is a class label.
pub const OF_LABEL: &str = ", given as a label,";

/// Describes an axis in an error, by its dim or by its position. The index along it is computed
/// from the dims `names`.
pub fn computed_axis<'n>((dim, axis): (Option<&str>, usize), names: impl Iterator<Item = &'n str>) -> String {
    let what = match dim {
        Some(dim) => format!("dim `{dim}`"),
        None => format!("axis {axis}"),
    };
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => what,
        1 => format!("{what}, computed from dim {},", names[0]),
        _ => format!("{what}, computed from dims {},", names.join(", ")),
    }
}
