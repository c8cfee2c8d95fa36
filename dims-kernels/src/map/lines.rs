//! Rows of an expression: all that is compiled for it, once for each instruction set. Nests, threads and memory are compiled for the element type alone.

use super::elementwise::in_parts;
use crate::load::prefetch::Fetches;
use crate::load::tiles::{Run, fill_tile_ahead};
use crate::load::{Faults, Kernel, TILE, Tile};
use crate::loops::nest::Nest;
use crate::machine::isa::{Isa, Task, dispatch};
use core::mem::MaybeUninit;

/// An expression as loops see it.
pub trait RowWriter<T> {
    /// Writes the elements of a run, unless there is a fault. `large` says that no cache near by is expected to have the result.
    fn rows(&mut self, run: Run<'_>, out: &mut [MaybeUninit<T>], large: bool, faults: &mut Faults);

    /// Whether lines of the nest are computed in [parts](Kernel::IN_PARTS).
    fn in_parts(&self, nest: &Nest) -> bool;

    /// Writes the elements of a line of such a nest, from `at` on, unless there is a fault.
    fn line(&mut self, at: &mut [usize], out: &mut [MaybeUninit<T>], faults: &mut Faults);
}

/// On which side of the others there are operands that are the same along the innermost loop: they stay in registers.
#[derive(Clone, Copy)]
enum Side {
    None,
    Left,
    Right,
}

/// The lines of a kernel.
pub struct Compute<K> {
    kernel: K,
    side: Side,
}

impl<K: Kernel> Compute<K> {
    #[inline]
    pub fn new(kernel: K) -> Self {
        let side = if K::HAS_RIGHT && kernel.is_beside::<false>() {
            Side::Right
        } else if K::HAS_LEFT && kernel.is_beside::<true>() {
            Side::Left
        } else {
            Side::None
        };
        Compute { kernel, side }
    }
}

impl<K: Kernel> RowWriter<K::Elem> for Compute<K> {
    fn rows(&mut self, run: Run<'_>, out: &mut [MaybeUninit<K::Elem>], large: bool, faults: &mut Faults) {
        dispatch(Rows { kernel: &mut self.kernel, side: self.side, run, out, large, faults });
    }

    fn in_parts(&self, nest: &Nest) -> bool {
        matches!(self.side, Side::None) && in_parts::<K>(nest, 1)
    }

    fn line(&mut self, at: &mut [usize], out: &mut [MaybeUninit<K::Elem>], faults: &mut Faults) {
        if const { K::IN_PARTS } {
            dispatch(InParts { kernel: &mut self.kernel, at, out, faults });
        }
    }
}

struct Rows<'r, K: Kernel> {
    kernel: &'r mut K,
    side: Side,
    run: Run<'r>,
    out: &'r mut [MaybeUninit<K::Elem>],
    large: bool,
    faults: &'r mut Faults,
}

impl<K: Kernel> Task for Rows<'_, K> {
    type Out = ();
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.side {
            Side::Right if K::HAS_RIGHT => self.held::<I, false>(),
            Side::Left if K::HAS_LEFT => self.held::<I, true>(),
            _ => self.loaded::<I>(),
        }
    }
}

impl<K: Kernel> Rows<'_, K> {
    #[inline(always)]
    fn loaded<I: Isa>(self) {
        let Rows { kernel, run: Run { at, rows, len }, out, large, faults, .. } = self;
        let mut tiles = TilesOfRows::new(at, rows, len);
        for row in out.chunks_exact_mut(len) {
            for out in row.chunks_mut(TILE) {
                kernel.load::<I>(&tiles.tile(out.len()), faults);
                // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
                if faults.any() {
                    return;
                }
                let fetches = Fetches::of(large, kernel, tiles.at, out);
                fill_tile_ahead::<I, K>(kernel, out, fetches);
                tiles.advance(out.len());
            }
            tiles.next_row();
        }
        tiles.rewind();
    }

    /// As `loaded`, where operands on one side [are the same](Kernel::is_beside) along the innermost loop.
    #[inline(always)]
    fn held<I: Isa, const LEFT: bool>(self) {
        let Rows { kernel, run: Run { at, rows, len }, out, large, faults, .. } = self;
        let mut tiles = TilesOfRows::new(at, rows, len);
        for row in out.chunks_exact_mut(len) {
            for out in row.chunks_mut(TILE) {
                kernel.load_beside::<I, LEFT>(&tiles.tile(out.len()), faults);
                if faults.any() {
                    return;
                }
                let held = kernel.hold::<I, LEFT>();
                let fetches = Fetches::of(large, kernel, tiles.at, out);
                let mut start = 0;
                for piece in out.chunks_mut(fetches.piece()) {
                    fetches.fetch(start, piece.len());
                    for (x, out) in piece.iter_mut().enumerate() {
                        // SAFETY: a tile that has this element was just loaded, without a mask.
                        out.write(unsafe { K::get_beside::<I, LEFT>(&held, start + x) });
                    }
                    start += piece.len();
                }
                tiles.advance(out.len());
            }
            tiles.next_row();
        }
        tiles.rewind();
    }
}

/// The tiles of a run of rows, one after the other.
struct TilesOfRows<'r> {
    at: &'r mut [usize],
    moved: Option<(usize, usize)>,
    /// The loop that the run goes along, if it has several rows, and the position of its first row there.
    along: usize,
    first: usize,
    /// Where the rows start along the innermost loop, and whether each is one tile.
    start: usize,
    short: bool,
    several: bool,
}

impl<'r> TilesOfRows<'r> {
    #[inline(always)]
    fn new(at: &'r mut [usize], rows: usize, len: usize) -> Self {
        let along = at.len().saturating_sub(2);
        let (first, start) = (at[along], at[at.len() - 1]);
        TilesOfRows { at, moved: None, along, first, start, short: len <= TILE, several: rows > 1 }
    }

    #[inline(always)]
    fn tile(&self, len: usize) -> Tile<'_> {
        Tile { at: self.at, len, mask: None, moved: self.moved }
    }

    /// Goes on along the row.
    #[inline(always)]
    fn advance(&mut self, len: usize) {
        if !self.short {
            let last = self.at.len() - 1;
            self.at[last] += len;
            self.moved = Some((last, len));
        }
    }

    #[inline(always)]
    fn next_row(&mut self) {
        if self.several {
            let last = self.at.len() - 1;
            self.at[last] = self.start;
            self.at[self.along] += 1;
            self.moved = if self.short { Some((self.along, 1)) } else { None };
        }
    }

    #[inline(always)]
    fn rewind(self) {
        let last = self.at.len() - 1;
        self.at[self.along] = self.first;
        self.at[last] = self.start;
    }
}

struct InParts<'r, K: Kernel> {
    kernel: &'r mut K,
    at: &'r mut [usize],
    out: &'r mut [MaybeUninit<K::Elem>],
    faults: &'r mut Faults,
}

impl<K: Kernel> Task for InParts<'_, K> {
    type Out = ();
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) {
        self.kernel.write_line::<I>(self.at, self.out, self.faults);
    }
}
