//! Kernels of expressions: they make the elements of a tile available to the loops of other
//! modules. Sizes have already been checked.

use alloc::string::String;

pub(crate) mod any;
pub mod gather;
pub mod nodes;
pub(crate) mod prefetch;
pub mod select;
pub mod strided;
pub(crate) mod tiles;

use crate::error::{Error, Origin};
use crate::machine::isa::Isa;
use core::mem::MaybeUninit;

/// The maximum number of elements that a kernel makes available at once: a few buffers of this
/// length fit into the first-level cache.
pub const TILE: usize = 512;

/// A piece of the innermost loop.
#[derive(Clone, Copy)]
pub struct Tile<'t> {
    /// The position of the first element along every loop of the nest, the innermost loop last.
    pub at: &'t [usize],
    /// The number of elements along the innermost loop, at most [`TILE`].
    pub len: usize,
    /// Which elements are wanted; all of them if there is no mask.
    pub mask: Option<&'t [bool]>,
    /// The only loop along which the position differs from that of the previously loaded tile, and
    /// the difference. `None` is always correct, and required if there was no previous tile, or if
    /// the positions differ along several loops.
    pub moved: Option<(usize, usize)>,
}

/// A lowered expression: makes the elements of a tile available, one by one.
///
/// Strides, gathers and masks are handled in [`load`](Kernel::load), so that the compiler can
/// vectorize [`get`](Kernel::get).
///
/// # Safety
///
/// Loops trust the constants and pointers of a kernel. Kernels of one expression may run on several
/// threads if [`PARALLEL`](Kernel::PARALLEL). If there is no fault, the pointers that
/// [`starts`](Kernel::starts), [`steps`](Kernel::steps) and [`pairs`](Kernel::pairs) return lead to
/// elements for all positions of the nest, and a loaded tile has all of its elements.
pub unsafe trait Kernel: Sized {
    /// The type of the elements.
    type Elem: Copy + 'static;

    /// Whether every element can be computed, even those that a `select` does not take: there is no
    /// integer division, which panics for 0, and no closure or operation of the user.
    const TOTAL: bool = true;

    /// Whether kernels of one expression can run on several threads; `false` if the expression
    /// contains closures of the user.
    const PARALLEL: bool = true;

    /// Whether elements may vary; `false` if they are the same everywhere, in every nest.
    const VARIES: bool = true;

    /// Whether consecutive elements of a tile differ by a constant step, as constants and positions
    /// along dims do. Then elements past the end of a tile can be computed as well.
    const STEADY: bool = false;

    /// Whether the elements are `bool`s that change at most once along a line. Then elements past
    /// the end of a tile can be computed as well.
    const MONOTONE: bool = false;

    /// Whether a line consists of two parts, each with elements of one operand, so that
    /// [`write_line`](Kernel::write_line) computes only elements that it writes.
    const IN_PARTS: bool = false;

    /// Whether [`prefetch`](Kernel::prefetch) and [`starts`](Kernel::starts) may compute indices to
    /// find elements.
    const GATHERS: bool = false;

    /// Whether the kernel computes much for each element, in functions that the compiler
    /// vectorizes. Then code for the widest vectors is worthwhile.
    const LONG: bool = false;

    /// Whether loops check whether left operands are broadcast: see
    /// [`has_broadcast_operand`](Kernel::has_broadcast_operand).
    const HAS_LEFT_OPERAND: bool = false;
    /// Like `HAS_LEFT_OPERAND`, for right operands.
    const HAS_RIGHT_OPERAND: bool = false;

    /// Whether elements may be read from memory unchanged, so that [`starts`](Kernel::starts) and
    /// [`steps`](Kernel::steps) can return pointers to them. Loops over such memory are not
    /// compiled for other kernels.
    const READS: bool = false;

    /// Whether [`pairs`](Kernel::pairs) may find pairs of rows. Loops over pairs are not compiled
    /// for other kernels.
    const PAIRS: bool = false;

    /// A copy of everything that [`get_broadcast`](Kernel::get_broadcast) needs to read a tile.
    type TileReader;

    /// Prefetches a tile's elements if they are contiguous. The tile may be past the end of a loop,
    /// unless elements are at computed indices. With such indices, the next tile must be loaded
    /// without [`moved`](Tile::moved).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, _: &Tile<'_>) {}

    /// Finds rows that are read from memory unchanged: `starts[r]` points to the element `r` steps
    /// after `at` along the loop `along`, and the row is contiguous along the innermost loop.
    /// Returns whether there are such rows; only kernels that [read](Kernel::READS) memory have
    /// them. An index that is out of range is recorded as a fault; then the pointers are
    /// unspecified. The next tile must be loaded without [`moved`](Tile::moved).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn starts<I: Isa>(
        &mut self,
        _at: &mut [usize],
        _along: usize,
        _starts: &mut [*const Self::Elem],
        _faults: &mut Faults,
    ) -> bool {
        false
    }

    /// If elements are read from memory unchanged: a pointer to the element at `at`, and the stride
    /// along the loop `along`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn steps(&self, _at: &[usize], _along: usize) -> Option<(*const Self::Elem, isize)> {
        None
    }

    /// A pointer to the elements of an operand from `at` on, for prefetching. The operand is
    /// contiguous, and its elements have the size of the results. Nothing is read, so `at` may be
    /// past the end of a loop.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn source(&self, _at: &[usize]) -> Option<*const Self::Elem> {
        None
    }

    /// Prepares the elements of a tile. Elements whose index is out of range are recorded as
    /// faults.
    ///
    /// `I` must be the same as in [`get`](Kernel::get). If the numbers that a condition compares
    /// were rounded differently there, it could select elements that were masked out here.
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults);

    /// The `x`th element of the tile.
    ///
    /// # Safety
    ///
    /// `x` is less than the length of the last loaded tile, or the elements are
    /// [steady](Kernel::STEADY) or [monotone](Kernel::MONOTONE), or do not [vary](Kernel::VARIES).
    /// An element that was masked out has an unspecified value.
    unsafe fn get<I: Isa>(&self, x: usize) -> Self::Elem;

    /// Writes the elements from `at` on along the innermost loop, one for each slot. There may be
    /// more slots than a tile has elements. After a fault, slots may be uninitialized. The next
    /// tile must be loaded without [`moved`](Tile::moved).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn write_line<I: Isa>(
        &mut self,
        at: &mut [usize],
        out: &mut [MaybeUninit<Self::Elem>],
        faults: &mut Faults,
    ) {
        write_tiles::<I, Self>(self, at, out, faults);
    }

    /// Whether all left operands of operations (`LEFT`), or all right operands, are broadcast along
    /// the innermost loop, as scales and biases often are. Then
    /// [`get_broadcast`](Kernel::get_broadcast) keeps them in registers: reading them from a buffer
    /// for every element takes longer than most operations.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        false
    }

    /// Like [`load`](Kernel::load), if the kernel
    /// [has broadcast operands](Kernel::has_broadcast_operand): loads only one element of operands
    /// on that side.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn load_broadcast<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.load::<I>(tile, faults);
    }

    /// The reader of the tile that [`load_broadcast`](Kernel::load_broadcast) loaded last. It does
    /// not refer to the kernel, so the compiler knows that stores to the output do not change it.
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> Self::TileReader;

    /// The `x`th element of the tile.
    ///
    /// # Safety
    ///
    /// As for [`get`](Kernel::get), for the tile of the reader. The kernel has loaded no other tile
    /// since the reader was made.
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(reader: &Self::TileReader, x: usize) -> Self::Elem;

    /// A copy of everything that [`broadcast_element`](Kernel::broadcast_element) and
    /// [`pair_reader`](Kernel::pair_reader) need.
    type Pairs;

    /// Finds the operands from `at` on, for a nest that computes pairs of rows. Operands on one
    /// side of operations (the left one if `LEFT`) are broadcast along the innermost loop. Operands
    /// on the other side are contiguous along it, and broadcast along the loop `row`. `along` is
    /// the innermost reduced loop. `paired` is false if this kernel is itself an operand on the
    /// broadcast side of another kernel: it is then read with `broadcast_element`, otherwise with
    /// `pair_reader`. `None` if an operand has other strides or [can fault](Kernel::can_fault).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn pairs<const LEFT: bool>(
        &self,
        _at: &[usize],
        _row: usize,
        _along: usize,
        _paired: bool,
    ) -> Option<Self::Pairs> {
        None
    }

    /// The element of an operand that is broadcast along the innermost loop, `row` and `step`
    /// positions further along the loops `row` and `along` of [`pairs`](Kernel::pairs).
    ///
    /// # Safety
    ///
    /// [`pairs`](Kernel::pairs) returned `_pairs`, with `paired` false, and the nest has this
    /// position.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>(_pairs: &Self::Pairs, _row: usize, _step: usize) -> Self::Elem {
        unreachable!("the kernel has no pairs")
    }

    /// Like [`tile_reader`](Kernel::tile_reader), for the tile `row` and `step` positions further
    /// along the loops `row` and `along` of [`pairs`](Kernel::pairs). Nothing needs to be loaded.
    ///
    /// # Safety
    ///
    /// [`pairs`](Kernel::pairs) returned `_pairs`, with `paired` true and the same `LEFT`, and the
    /// nest has this position.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn pair_reader<I: Isa, const LEFT: bool>(
        _pairs: &Self::Pairs,
        _row: usize,
        _step: usize,
    ) -> Self::TileReader {
        unreachable!("the kernel has no pairs")
    }

    /// Whether all elements along the innermost loop are known to be the same.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn is_uniform(&self) -> bool {
        false
    }

    /// Whether loading can fault. Then elements that a `select` does not take must be masked.
    fn can_fault(&self) -> bool;
}

/// [`Kernel::write_line`] tile by tile.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn write_tiles<I: Isa, K: Kernel>(
    kernel: &mut K,
    at: &mut [usize],
    out: &mut [MaybeUninit<K::Elem>],
    faults: &mut Faults,
) {
    let last = at.len() - 1;
    let start = at[last];
    for out in out.chunks_mut(TILE) {
        kernel.load::<I>(&Tile { at, len: out.len(), mask: None, moved: None }, faults);
        if faults.any() {
            break;
        }
        // SAFETY: the tile was just loaded, without a mask and without a fault.
        unsafe { tiles::fill_tile::<I, K>(kernel, out) };
        at[last] += out.len();
    }
    at[last] = start;
}

/// The value of a monotone kernel at the start of the tile that was loaded, and the position among
/// the `len` elements from there on where it changes (`len` if it does not). The search starts at
/// `guess`, which is set to the position if there is a change.
///
/// # Safety
///
/// The kernel is [monotone](Kernel::MONOTONE), and has loaded a tile. `len` is not 0.
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn change<I: Isa, K: Kernel<Elem = bool>>(
    kernel: &K,
    len: usize,
    guess: &mut usize,
) -> (bool, usize) {
    // SAFETY: a monotone kernel has elements in the tile and past its end.
    let value = |x: usize| unsafe { kernel.get::<I>(x) };
    let first = value(0);
    if value(len - 1) == first {
        return (first, len);
    }
    let (mut same, mut other) = (0, len - 1);
    // Steps from the guess double. Where a step would leave the remaining range, the range is
    // bisected.
    let (mut next, mut step) = (*guess, if *guess < other { 1 } else { len });
    while same + 1 < other {
        let middle = if same < next && next < other { next } else { same.midpoint(other) };
        if value(middle) == first {
            same = middle;
            next = middle.saturating_add(step);
        } else {
            other = middle;
            next = middle.saturating_sub(step);
        }
        step = step.saturating_mul(2);
    }
    *guess = other;
    (first, other)
}

/// An index outside of the axis that it selects from.
#[derive(Clone, Debug)]
pub struct IndexFault {
    /// A description of the axis, and of the dims that the index is computed from.
    pub what: String,
    /// The index.
    pub index: i128,
    /// The size of the axis.
    pub size: usize,
    /// Where the array was bound.
    pub origin: Origin,
}

/// The faults so far. Only the first is kept.
#[derive(Debug, Default)]
pub struct Faults {
    first: Option<IndexFault>,
}

impl Faults {
    /// Records a fault.
    #[cold]
    pub fn record(&mut self, fault: impl FnOnce() -> IndexFault) {
        self.first.get_or_insert_with(fault);
    }

    /// Whether there was a fault.
    #[inline]
    pub fn any(&self) -> bool {
        self.first.is_some()
    }

    /// The first fault as an error.
    #[inline]
    pub fn into_result(self) -> Result<(), Error> {
        match self.first {
            None => Ok(()),
            Some(IndexFault { what, index, size, origin }) => {
                Err(Error::OutOfBounds { what, index, size, origin })
            }
        }
    }
}

/// The methods of a kernel that cannot fault and whose `load` makes a line of the tile's elements
/// available and keeps a pointer to it in `current`.
macro_rules! read_line {
    ($t:ty) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        unsafe fn get<I: Isa>(&self, x: usize) -> $t {
            // SAFETY: the line has an element for each element of the tile.
            unsafe { *self.current.add(x) }
        }

        #[cfg_attr(not(unoptimized), inline(always))]
        fn tile_reader<I: Isa, const LEFT: bool>(&self) -> *const $t {
            self.current
        }

        #[cfg_attr(not(unoptimized), inline(always))]
        unsafe fn get_broadcast<I: Isa, const LEFT: bool>(reader: &*const $t, x: usize) -> $t {
            // SAFETY: the reader points to the line of the tile that was loaded last, which has an
            // element for each element of the tile.
            unsafe { *reader.add(x) }
        }

        #[cfg_attr(not(unoptimized), inline(always))]
        fn can_fault(&self) -> bool {
            false
        }
    };
}
pub(crate) use read_line;
