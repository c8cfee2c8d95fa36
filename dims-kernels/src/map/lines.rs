//! RowWriter of an expression: all that is compiled for it, once for each instruction set. Nests, threads and memory are compiled for the element type alone.

use super::elementwise::in_parts;
use crate::load::prefetch::TilePrefetch;
use crate::load::tiles::{Run, fill_tile_with_prefetch};
use crate::load::{Faults, Kernel, Tile};
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
enum BroadcastSide {
    None,
    Left,
    Right,
}

/// The lines of a kernel.
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
    fn rows(&mut self, run: Run<'_>, out: &mut [MaybeUninit<K::Elem>], large: bool, faults: &mut Faults) {
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
    run: Run<'r>,
    out: &'r mut [MaybeUninit<K::Elem>],
    large: bool,
    faults: &'r mut Faults,
}

impl<K: Kernel> Task for TileRows<'_, K> {
    type Out = ();
    const WIDE: bool = K::LONG;

    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.side {
            BroadcastSide::Right if K::HAS_RIGHT_OPERAND => self.broadcast::<I, false>(),
            BroadcastSide::Left if K::HAS_LEFT_OPERAND => self.broadcast::<I, true>(),
            _ => self.loaded::<I>(),
        }
    }
}

impl<K: Kernel> TileRows<'_, K> {
    #[inline(always)]
    fn loaded<I: Isa>(self) {
        let TileRows { kernel, run: Run { at, rows, len, mut moved }, out, large, faults, .. } = self;
        let along = at.len().saturating_sub(2);
        let first = at[along];
        for (row, out) in out.chunks_exact_mut(len).take(rows).enumerate() {
            if row > 0 {
                at[along] = first + row;
                moved = Some((along, 1));
            }
            kernel.load::<I>(&Tile { at, len, mask: None, moved }, faults);
            // After a fault nothing is computed: what stands in for the element could, for one, be divided by.
            if faults.any() {
                return;
            }
            let prefetch = TilePrefetch::of(large, kernel, at, out);
            fill_tile_with_prefetch::<I, K>(kernel, out, prefetch);
        }
        at[along] = first;
    }

    /// As `loaded`, where operands on one side [are broadcast](Kernel::has_broadcast_operand) along the innermost loop.
    #[inline(always)]
    fn broadcast<I: Isa, const LEFT: bool>(self) {
        let TileRows { kernel, run: Run { at, rows, len, mut moved }, out, large, faults, .. } = self;
        let along = at.len().saturating_sub(2);
        let first = at[along];
        for (row, out) in out.chunks_exact_mut(len).take(rows).enumerate() {
            if row > 0 {
                at[along] = first + row;
                moved = Some((along, 1));
            }
            kernel.load_broadcast::<I, LEFT>(&Tile { at, len, mask: None, moved }, faults);
            if faults.any() {
                return;
            }
            let reader = kernel.tile_reader::<I, LEFT>();
            let prefetch = TilePrefetch::of(large, kernel, at, out);
            let mut start = 0;
            for piece in out.chunks_mut(prefetch.piece()) {
                prefetch.prefetch(start, piece.len());
                for (x, out) in piece.iter_mut().enumerate() {
                    // SAFETY: a tile that has this element was just loaded, without a mask.
                    out.write(unsafe { K::get_broadcast::<I, LEFT>(&reader, start + x) });
                }
                start += piece.len();
            }
        }
        at[along] = first;
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

    #[inline(always)]
    fn run<I: Isa>(self) {
        self.kernel.write_line::<I>(self.at, self.out, self.faults);
    }
}
