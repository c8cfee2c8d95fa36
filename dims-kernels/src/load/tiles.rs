//! Iteration over a nest in tiles or in runs of rows, and code that writes the elements of a tile.

use super::prefetch::TilePrefetch;
use super::{Kernel, TILE, Tile};
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::Isa;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

/// Writes the first elements of a tile, one for each slot.
///
/// # Safety
///
/// As for [`fill_from`].
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn fill_tile<I: Isa, K: Kernel>(kernel: &K, out: &mut [MaybeUninit<K::Elem>]) {
    // SAFETY: the caller's promise.
    unsafe { fill_from::<I, K>(kernel, 0, out) };
}

/// Like [`fill_tile`], in pieces, with a prefetch before each piece.
///
/// # Safety
///
/// As for [`fill_from`].
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn fill_tile_with_prefetch<I: Isa, K: Kernel>(
    kernel: &K,
    out: &mut [MaybeUninit<K::Elem>],
    prefetch: TilePrefetch<K::Elem>,
) {
    let mut start = 0;
    for piece in out.chunks_mut(prefetch.piece()) {
        prefetch.prefetch(start, piece.len());
        // SAFETY: the caller's promise.
        unsafe { fill_from::<I, K>(kernel, start, piece) };
        start += piece.len();
    }
}

/// Writes the elements of a tile from its `start`th on, one for each slot.
///
/// # Safety
///
/// The kernel has loaded a tile with these elements, without a mask and without a fault.
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn fill_from<I: Isa, K: Kernel>(kernel: &K, start: usize, out: &mut [MaybeUninit<K::Elem>]) {
    for (x, out) in out.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        out.write(unsafe { kernel.get::<I>(start + x) });
    }
}

/// Iterates over a loop nest, tile by tile. It does not call a closure with the tiles, because the
/// closure's body would be compiled for the baseline instructions wherever it is not inlined.
pub struct Tiles<'n> {
    odometer: Odometer<'n>,
    at: SmallVec<[usize; 8]>,
    inner: usize,
    len: usize,
    moved: Option<(usize, usize)>,
}

impl<'n> Tiles<'n> {
    /// Starts at the first tile.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new(nest: &'n Nest) -> Self {
        let (&inner, outer) = nest.sizes.split_last().expect("a nest has a loop");
        let at = SmallVec::from_elem(0, nest.sizes.len());
        Tiles { odometer: Odometer::new(outer), at, inner, len: TILE.min(inner), moved: None }
    }

    /// The current tile, unless all are done.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn tile(&self) -> Option<Tile<'_>> {
        let done = self.odometer.is_done() || self.len == 0;
        (!done).then_some(Tile { at: &self.at, len: self.len, mask: None, moved: self.moved })
    }

    /// Moves to the next tile.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn advance(&mut self) {
        let (start, outer) = self.at.split_last_mut().expect("a nest has a loop");
        *start += self.len;
        self.moved = Some((outer.len(), self.len));
        if *start == self.inner {
            *start = 0;
            let moved = self.odometer.advance(outer).map(|at| (at, 1));
            self.moved = if self.len == self.inner { moved } else { None };
        }
        self.len = TILE.min(self.inner - self.at.last().expect("a nest has a loop"));
    }
}

/// Rows of a loop nest that are computed by one call: `rows` rows of `len` elements along the
/// innermost loop. The first row starts at the position `at`, and each later row one step further
/// along the second innermost loop.
pub struct TileRun<'r> {
    /// The position of the first element. Callees may change it along the loops of the run.
    pub at: &'r mut [usize],
    /// The number of rows.
    pub rows: usize,
    /// The number of elements of each row.
    pub len: usize,
}

impl TileRun<'_> {
    /// The number of elements of the run.
    pub fn elements(&self) -> usize {
        self.rows * self.len
    }
}

/// Iterates over a loop nest in order, in runs of at most `most` elements: whole rows, or a part of
/// one. `f` returns whether to continue.
pub fn for_each_run(nest: &Nest, most: usize, f: &mut dyn FnMut(TileRun<'_>) -> bool) {
    if nest.sizes.contains(&0) {
        return;
    }
    let last = nest.depth() - 1;
    let inner = nest.sizes[last];
    let mut at = SmallVec::from_buf_and_len([0; 8], nest.depth().min(8));
    at.resize(nest.depth(), 0);
    // The number of loops outside of all runs, and the number of rows at each of their positions.
    let (outer, size) = if last > 0 && inner <= most { (last - 1, nest.sizes[last - 1]) } else { (last, 1) };
    let rows = (most / inner).max(1);
    let mut odometer = Odometer::new(&nest.sizes[..outer]);
    while !odometer.is_done() {
        let (mut row, mut start) = (0, 0);
        while row < size {
            let rows = rows.min(size - row);
            let len = most.min(inner - start);
            if outer < last {
                at[outer] = row;
            }
            at[last] = start;
            if !f(TileRun { at: &mut at, rows, len }) {
                return;
            }
            start += len;
            if start == inner {
                start = 0;
                row += rows;
            }
        }
        at[outer..].fill(0);
        odometer.advance(&mut at[..outer]);
    }
}
