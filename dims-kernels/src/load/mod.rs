//! Kernels of expressions: what makes the elements of a tile available, for the loops of other modules. Sizes have been checked before.

use alloc::string::String;

pub mod gather;
pub mod nodes;
pub(crate) mod prefetch;
pub mod select;
pub mod strided;
pub(crate) mod tiles;

use crate::error::{Error, Origin};
use crate::machine::isa::Isa;
use core::mem::MaybeUninit;

/// The most elements that a kernel has at hand at once: a few buffers of this length fit into the first-level cache.
pub const TILE: usize = 512;

/// A piece of the innermost loop.
#[derive(Clone, Copy)]
pub struct Tile<'t> {
    /// The position in every loop of the nest, the innermost last.
    pub at: &'t [usize],
    /// How many elements of the innermost loop, at most [`TILE`].
    pub len: usize,
    /// Which elements are wanted; all of them if there is no mask.
    pub mask: Option<&'t [bool]>,
    /// The one loop in which the position differs from that of the tile that was loaded before, and by how much; nothing if
    /// there was none before, or more has changed.
    pub moved: Option<(usize, usize)>,
}

/// A lowered expression: makes a tile's elements available, one by one.
///
/// What is strided, gathered or masked happens in [`load`](Kernel::load), so that [`get`](Kernel::get) is straight-line
/// code on neighbouring elements, which the compiler vectorises.
///
/// # Safety
///
/// Loops trust the constants and the places: kernels of one expression may run on several threads if [`PARALLEL`](Kernel::PARALLEL); whatever
/// [`starts`](Kernel::starts), [`steps`](Kernel::steps) and [`pairs`](Kernel::pairs) yield are elements for all positions of the nest, and a loaded tile has
/// all of its elements.
pub unsafe trait Kernel: Sized {
    /// The type of the elements.
    type Elem: Copy + 'static;

    /// Whether every element can be computed, also those that a `select` does not take: nothing divides by an integer 0, and
    /// no closure of the user's is called.
    const TOTAL: bool = true;

    /// Whether kernels of one expression can run on several threads: not with closures of the user's in them.
    const PARALLEL: bool = true;

    /// Whether elements are not the same everywhere, in every nest.
    const VARIES: bool = true;

    /// Whether the elements of a tile go on in equal steps: positions along dims, and constants. There are such behind the end of a tile as well.
    const STEADY: bool = false;

    /// Whether the elements of a tile are truth values that change at most once along it.
    const MONOTONE: bool = false;

    /// Whether lines consist of two parts, each of which has elements of one operand: so [`write_line`](Kernel::write_line) computes no others.
    const IN_PARTS: bool = false;

    /// Whether elements may lie at computed places.
    const GATHERS: bool = false;

    /// Whether it computes much for each element, by functions that the compiler vectorises: worth code for the widest vectors.
    const LONG: bool = false;

    /// Whether some operand is the left one of an operation, and may be broadcast along a tile: see
    /// [`has_broadcast_operand`](Kernel::has_broadcast_operand).
    const HAS_LEFT_OPERAND: bool = false;
    /// As `HAS_LEFT_OPERAND`, for right operands.
    const HAS_RIGHT_OPERAND: bool = false;

    /// Whether elements are read from memory as they are, so that [`starts`](Kernel::starts) and [`steps`](Kernel::steps) may say where. Loops over such
    /// memory are not compiled for others.
    const READS: bool = false;

    /// Whether all operands are elements in memory or constants, so that [`pairs`](Kernel::pairs) of rows may be found. Loops over pairs are not compiled for others.
    const PAIRS: bool = false;

    /// A copy of all that [`get_broadcast`](Kernel::get_broadcast) needs to read a tile.
    type TileReader;

    /// Prefetches a tile's elements, where they are neighbours. It may lie behind the end of a loop: nothing is read. If
    /// elements are at computed places, the tile must be one of the nest, and the next one must be loaded without [`moved`](Tile::moved).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, _: &Tile<'_>) {}

    /// Where rows lie that are read as they are: `starts[r]` is the element at `at`, `r` steps further along the loop `along`, and its
    /// neighbours in memory are its neighbours along the innermost loop. Returns whether this is so, which it is for tensors
    /// alone; a place that cannot be had is recorded as a fault. The next tile must be loaded without [`moved`](Tile::moved).
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

    /// Where the elements along a loop lie, from `at` on, and how far apart, if they are read from memory as they are.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn steps(&self, _at: &[usize], _along: usize) -> Option<(*const Self::Elem, isize)> {
        None
    }

    /// A pointer to the elements of an operand from `at` on, for prefetching: of one whose elements are neighbours and as large as the results. `at` may lie behind the end of a loop; nothing is read.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn source(&self, _at: &[usize]) -> Option<*const Self::Elem> {
        None
    }

    /// Prepares the elements of a tile. Elements that cannot be had are recorded as faults.
    ///
    /// `I` must be that of [`get`](Kernel::get): a condition that rounds differently there would take elements that were masked out here.
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults);

    /// The tile's `x`th element.
    ///
    /// # Safety
    ///
    /// `x` is less than the length of the tile that was loaded last; or the elements are [steady](Kernel::STEADY) or [monotone](Kernel::MONOTONE), or do not
    /// [vary](Kernel::VARIES). An element that was masked out has some value or other.
    unsafe fn get<I: Isa>(&self, x: usize) -> Self::Elem;

    /// Writes the elements from `at` on along the innermost loop: as many of them as there are places, which may be more than a tile has. Where there
    /// is a fault, nothing is said of the places. The next tile must be loaded without [`moved`](Tile::moved).
    #[cfg_attr(not(unoptimized), inline(always))]
    fn write_line<I: Isa>(
        &mut self,
        at: &mut [usize],
        out: &mut [MaybeUninit<Self::Elem>],
        faults: &mut Faults,
    ) {
        write_tiles::<I, Self>(self, at, out, faults);
    }

    /// Whether all left operands of operations (`LEFT`), or all right ones, are broadcast along the innermost loop, as a scale and a bias
    /// often are. Then [`get_broadcast`](Kernel::get_broadcast) has them in registers: to read them from a buffer again for every element takes
    /// longer than most operations do.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn has_broadcast_operand<const LEFT: bool>(&self) -> bool {
        false
    }

    /// As [`load`](Kernel::load), where the kernel [has broadcast operands](Kernel::has_broadcast_operand): of operands on that side, one element.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn load_broadcast<I: Isa, const LEFT: bool>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.load::<I>(tile, faults);
    }

    /// The reader of the tile that [`load_broadcast`](Kernel::load_broadcast) loaded last. (It is no reference to the kernel, so the compiler
    /// knows that stores to the output do not change it.)
    fn tile_reader<I: Isa, const LEFT: bool>(&self) -> Self::TileReader;

    /// The tile's `x`th element.
    ///
    /// # Safety
    ///
    /// As for [`get`](Kernel::get), of the tile after whose load the reader was made.
    unsafe fn get_broadcast<I: Isa, const LEFT: bool>(reader: &Self::TileReader, x: usize) -> Self::Elem;

    /// A copy of all that [`pair_reader`](Kernel::pair_reader) needs.
    type Pairs;

    /// Where elements lie from `at` on, in a nest that pairs rows: operands are in memory, and on one side of others (that of `LEFT`) each is the
    /// same along the innermost loop, while what is on the other side has neighbours there, and is the same along the loop `row`. The third loop
    /// is `along`. `paired` is false for what is on that side itself. Nothing if it is not so, or something [can fault](Kernel::can_fault).
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

    /// The element that lies `row` and `step` positions further along the two loops, of an operand that is broadcast along the innermost.
    ///
    /// # Safety
    ///
    /// There were such pairs, not `paired`, and the nest has this position.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn broadcast_element<I: Isa>(_pairs: &Self::Pairs, _row: usize, _step: usize) -> Self::Elem {
        unreachable!("the kernel has no pairs")
    }

    /// As [`tile_reader`](Kernel::tile_reader), for the tile that lies `row` and `step` positions further along the two loops: nothing needs to be loaded.
    ///
    /// # Safety
    ///
    /// There were such pairs, and the nest has this position.
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

    /// Whether loading can fault, so that elements which a `select` does not take must be masked.
    fn can_fault(&self) -> bool;
}

/// As [`Kernel::write_line`], tile by tile.
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
        tiles::fill_tile::<I, K>(kernel, out);
        at[last] += out.len();
    }
    at[last] = start;
}

/// What a monotone kernel is at first along `len` elements from the start of a tile that was loaded without a mask, and where it changes (at
/// `len` if it does not). That is looked for around the guess, which becomes the place where it is found.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn change<I: Isa, K: Kernel<Elem = bool>>(kernel: &K, len: usize, guess: &mut usize) -> (bool, usize) {
    // SAFETY: elements of the tile, which has one at least, or behind its end, where its operands go on in equal steps.
    let value = |x: usize| unsafe { kernel.get::<I>(x) };
    let first = value(0);
    if value(len - 1) == first {
        return (first, len);
    }
    let (mut same, mut other) = (0, len - 1);
    // From the guess on in steps that double; without one, or once they lead too far, by halves.
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

/// An index that was out of range in an element that was really read.
#[derive(Clone, Debug)]
pub struct IndexFault {
    /// The dims that make up the index.
    pub what: String,
    /// The index.
    pub index: i128,
    /// The size of the axis.
    pub size: usize,
    /// Where the array was bound.
    pub origin: Origin,
}

/// Faults so far; the first one is kept.
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
