//! Tiles: pieces of the innermost loop, and writing the elements of one.

use super::prefetch::TilePrefetch;
use super::{Kernel, TILE, Tile};
use crate::loops::nest::{Nest, Odometer};
use crate::machine::isa::Isa;
use core::mem::MaybeUninit;
use smallvec::SmallVec;

#[inline(always)]
pub fn fill_tile<I: Isa, K: Kernel>(kernel: &K, out: &mut [MaybeUninit<K::Elem>]) {
    fill_from::<I, K>(kernel, 0, out);
}

/// As [`fill_tile`], a few cache lines at a time, with a prefetch before each.
#[inline(always)]
pub fn fill_tile_with_prefetch<I: Isa, K: Kernel>(
    kernel: &K,
    out: &mut [MaybeUninit<K::Elem>],
    prefetch: TilePrefetch<K::Elem>,
) {
    let mut start = 0;
    for piece in out.chunks_mut(prefetch.piece()) {
        prefetch.prefetch(start, piece.len());
        fill_from::<I, K>(kernel, start, piece);
        start += piece.len();
    }
}

/// Writes the elements of a tile from its `start`th on.
#[inline(always)]
pub fn fill_from<I: Isa, K: Kernel>(kernel: &K, start: usize, out: &mut [MaybeUninit<K::Elem>]) {
    for (x, out) in out.iter_mut().enumerate() {
        // SAFETY: a tile that has these elements was just loaded, without a mask.
        out.write(unsafe { kernel.get::<I>(start + x) });
    }
}

/// Walks through a loop nest, tile by tile. (No closure is called with the tiles: its body would be compiled for the
/// instructions of the baseline wherever it is not inlined.)
pub struct Tiles<'n> {
    odometer: Odometer<'n>,
    at: SmallVec<[usize; 8]>,
    inner: usize,
    len: usize,
    moved: Option<(usize, usize)>,
}

impl<'n> Tiles<'n> {
    /// Before the first tile.
    #[inline(always)]
    pub fn new(nest: &'n Nest) -> Self {
        let (&inner, outer) = nest.sizes.split_last().expect("a nest has a loop");
        let at = SmallVec::from_elem(0, nest.sizes.len());
        Tiles { odometer: Odometer::new(outer), at, inner, len: TILE.min(inner), moved: None }
    }

    /// The tile at hand, if there is one.
    #[inline(always)]
    pub fn tile(&self) -> Option<Tile<'_>> {
        let done = self.odometer.is_done() || self.len == 0;
        (!done).then_some(Tile { at: &self.at, len: self.len, mask: None, moved: self.moved })
    }

    /// Goes on to the next tile.
    #[inline(always)]
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

/// Rows of a loop nest that are computed by one call: `rows` tiles of `len` elements each. The first one is at the position `at`, and each of the
/// others one step further along the last loop but one.
pub struct Run<'r> {
    /// The position of the first element. It may be changed, and is as it was after the run.
    pub at: &'r mut [usize],
    /// How many rows.
    pub rows: usize,
    /// The elements of each, at most [`TILE`].
    pub len: usize,
    /// See [`Tile::moved`], of the first row.
    pub moved: Option<(usize, usize)>,
}

/// Walks through a loop nest in its order, by runs of at most `most` elements, or of one row. `f` returns whether to go on.
///
/// Lines of more elements than a tile are cut; shorter ones are taken several at a time.
pub fn for_each_run(nest: &Nest, most: usize, f: &mut dyn FnMut(Run<'_>) -> bool) {
    if nest.sizes.contains(&0) {
        return;
    }
    let depth = nest.depth();
    let inner = nest.sizes[depth - 1];
    let mut at = SmallVec::from_buf_and_len([0; 8], depth.min(8));
    at.resize(depth, 0);
    if inner > TILE || depth == 1 {
        let mut tiles = Odometer::new(&nest.sizes[..depth - 1]);
        while !tiles.is_done() {
            let mut moved = None;
            let mut start = 0;
            while start < inner {
                let len = TILE.min(inner - start);
                at[depth - 1] = start;
                if !f(Run { at: &mut at, rows: 1, len, moved }) {
                    return;
                }
                start += len;
                moved = Some((depth - 1, len));
            }
            at[depth - 1] = 0;
            tiles.advance(&mut at[..depth - 1]);
        }
        return;
    }
    let along = depth - 2;
    let (size, most) = (nest.sizes[along], (most / inner).max(1));
    let mut outer = Odometer::new(&nest.sizes[..along]);
    while !outer.is_done() {
        let mut start = 0;
        while start < size {
            let rows = most.min(size - start);
            at[along] = start;
            if !f(Run { at: &mut at, rows, len: inner, moved: None }) {
                return;
            }
            start += rows;
        }
        at[along] = 0;
        outer.advance(&mut at[..along]);
    }
}
