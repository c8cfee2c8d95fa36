//! The loops over rows that are compiled for each expression and each instruction set. The code for
//! nests, threads and memory is compiled once for each element type.

use crate::load::prefetch::TilePrefetch;
use crate::load::tiles::{TileRun, fill_tile_with_prefetch};
use crate::load::{Faults, Kernel, TILE, Tile};
use crate::loops::nest::Nest;
use crate::machine::isa::{Isa, Task, dispatch};
use core::mem::MaybeUninit;

/// The interface of an expression to the loops.
pub trait RowWriter<T> {
    /// Writes the elements of a run, unless there is a fault. If the result is `large`, elements
    /// are prefetched.
    fn rows(&mut self, run: TileRun<'_>, out: &mut [MaybeUninit<T>], large: bool, faults: &mut Faults);

    /// Whether lines of the nest are computed in [parts](Kernel::IN_PARTS).
    fn in_parts(&self, nest: &Nest) -> bool;

    /// Writes the elements of a line from `at` on, in parts, unless there is a fault.
    fn line(&mut self, at: &mut [usize], out: &mut [MaybeUninit<T>], faults: &mut Faults);
}

/// Whether all left operands of operations, or all right operands, are broadcast along the
/// innermost loop. Those operands stay in registers.
#[derive(Clone, Copy)]
enum BroadcastSide {
    None,
    Left,
    Right,
}

/// Computes the lines of a kernel.
pub struct Compute<K> {
    kernel: K,
    side: BroadcastSide,
}

impl<K: Kernel> Compute<K> {
    #[inline]
    pub fn new(kernel: K) -> Self {
        let side = if K::HAS_RIGHT_OPERAND && kernel.has_broadcast_operand::<false>() {
            BroadcastSide::Right
        } else if K::HAS_LEFT_OPERAND && kernel.has_broadcast_operand::<true>() {
            BroadcastSide::Left
        } else {
            BroadcastSide::None
        };
        Compute { kernel, side }
    }
}

impl<K: Kernel> RowWriter<K::Elem> for Compute<K> {
    fn rows(&mut self, run: TileRun<'_>, out: &mut [MaybeUninit<K::Elem>], large: bool, faults: &mut Faults) {
        dispatch(TileRows { kernel: &mut self.kernel, side: self.side, run, out, large, faults });
    }

    fn in_parts(&self, nest: &Nest) -> bool {
        matches!(self.side, BroadcastSide::None) && in_parts::<K>(nest, 1)
    }

    fn line(&mut self, at: &mut [usize], out: &mut [MaybeUninit<K::Elem>], faults: &mut Faults) {
        if const { K::IN_PARTS } {
            dispatch(WriteParts { kernel: &mut self.kernel, at, out, faults });
        }
    }
}

struct TileRows<'r, K: Kernel> {
    kernel: &'r mut K,
    side: BroadcastSide,
    run: TileRun<'r>,
    out: &'r mut [MaybeUninit<K::Elem>],
    large: bool,
    faults: &'r mut Faults,
}

impl<K: Kernel> Task for TileRows<'_, K> {
    type Out = ();
    const WIDE: bool = K::LONG;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        match self.side {
            BroadcastSide::Right if K::HAS_RIGHT_OPERAND => self.broadcast::<I, false>(),
            BroadcastSide::Left if K::HAS_LEFT_OPERAND => self.broadcast::<I, true>(),
            _ => self.loaded::<I>(),
        }
    }
}

impl<K: Kernel> TileRows<'_, K> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn loaded<I: Isa>(self) {
        let TileRows { kernel, run: TileRun { at, rows, len }, out, large, faults, .. } = self;
        let mut tiles = TilesOfRows::new(at, rows, len);
        for row in out.chunks_exact_mut(len) {
            for out in row.chunks_mut(TILE) {
                kernel.load::<I>(&tiles.tile(out.len()), faults);
                // After a fault nothing is computed: the substitute for an element out of range
                // could be a zero divisor.
                if faults.any() {
                    return;
                }
                let prefetch = TilePrefetch::of(large, kernel, tiles.at, out);
                // SAFETY: the tile was just loaded, without a mask and without a fault.
                unsafe { fill_tile_with_prefetch::<I, K>(kernel, out, prefetch) };
                tiles.advance(out.len());
            }
            tiles.next_row();
        }
    }

    /// Like `loaded`, but for a kernel whose left operands, or right operands, all
    /// [are broadcast](Kernel::has_broadcast_operand) along the innermost loop.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn broadcast<I: Isa, const LEFT: bool>(self) {
        let TileRows { kernel, run: TileRun { at, rows, len }, out, large, faults, .. } = self;
        let mut tiles = TilesOfRows::new(at, rows, len);
        for row in out.chunks_exact_mut(len) {
            for out in row.chunks_mut(TILE) {
                kernel.load_broadcast::<I, LEFT>(&tiles.tile(out.len()), faults);
                if faults.any() {
                    return;
                }
                let reader = kernel.tile_reader::<I, LEFT>();
                let prefetch = TilePrefetch::of(large, kernel, tiles.at, out);
                let mut start = 0;
                for piece in out.chunks_mut(prefetch.piece()) {
                    prefetch.prefetch(start, piece.len());
                    for (x, out) in piece.iter_mut().enumerate() {
                        // SAFETY: a tile that has this element was just loaded, without a mask.
                        out.write(unsafe { K::get_broadcast::<I, LEFT>(&reader, start + x) });
                    }
                    start += piece.len();
                }
                tiles.advance(out.len());
            }
            tiles.next_row();
        }
    }
}

/// Iterates over the tiles of a run of rows.
struct TilesOfRows<'r> {
    at: &'r mut [usize],
    moved: Option<(usize, usize)>,
    /// Whether there are several rows. If so, each row is a whole innermost loop.
    several: bool,
    /// Whether each row is one tile.
    short: bool,
}

impl<'r> TilesOfRows<'r> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn new(at: &'r mut [usize], rows: usize, len: usize) -> Self {
        TilesOfRows { at, moved: None, several: rows > 1, short: len <= TILE }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn tile(&self, len: usize) -> Tile<'_> {
        Tile { at: self.at, len, mask: None, moved: self.moved }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn advance(&mut self, len: usize) {
        if !self.short {
            let last = self.at.len() - 1;
            self.at[last] += len;
            self.moved = Some((last, len));
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn next_row(&mut self) {
        if self.several {
            let last = self.at.len() - 1;
            self.at[last] = 0;
            self.at[last - 1] += 1;
            self.moved = if self.short { Some((last - 1, 1)) } else { None };
        }
    }
}

struct WriteParts<'r, K: Kernel> {
    kernel: &'r mut K,
    at: &'r mut [usize],
    out: &'r mut [MaybeUninit<K::Elem>],
    faults: &'r mut Faults,
}

impl<K: Kernel> Task for WriteParts<'_, K> {
    type Out = ();
    const WIDE: bool = K::LONG;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        self.kernel.write_line::<I>(self.at, self.out, self.faults);
    }
}

/// Whether a nest that is split into `shares` is computed in [parts of lines](Kernel::IN_PARTS). If
/// the kernel has such parts, expensive expressions use them unless the lines are short, and
/// memory-bound expressions use them if the lines are long and a share does not fit into the core's
/// caches.
pub fn in_parts<K: Kernel>(nest: &Nest, shares: usize) -> bool {
    let len = nest.sizes.last().copied().unwrap_or(0);
    K::IN_PARTS
        && if K::LONG {
            len >= 64
        } else {
            len >= 1024 && nest.positions() / shares * size_of::<K::Elem>() >= 1 << 17
        }
}
