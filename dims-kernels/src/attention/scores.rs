//! The mask and the bias of an attention, computed tile by tile.

use crate::compiled::compiled;
use crate::error::Error;
use crate::load::{Faults, Kernel, Tile, change};
use crate::loops::nest::OperandRows;
use crate::machine::isa::{Baseline, Isa, Task, dispatch};
use crate::program::lowered::LoweredProgram;
use crate::scalar::{Num, Real};
use alloc::boxed::Box;

/// A mask and a bias, as kernels.
pub struct LoweredScores<M, B> {
    /// Which scores count.
    pub mask: M,
    /// The bias that is added to the scores.
    pub bias: Option<B>,
}

/// A mask and a bias that are computed for a tile of scores. All other parts of an attention are
/// generic only over the type of the elements.
pub trait Change<T> {
    /// Whether the mask is a constant.
    fn is_uniform(&self) -> bool;

    /// Whether there is a bias.
    fn is_biased(&self) -> bool;

    /// Computes the mask of a tile.
    fn masked(&mut self, tile: ScoreTile<'_>, allowed: &mut [bool]) -> Result<Allowed, Error>;

    /// Computes the bias of a tile, if there is one, at least for the scores that the mask allows.
    /// Returns whether any score can be greater than minus infinity.
    fn biased(
        &mut self,
        tile: ScoreTile<'_>,
        allowed: Option<&[bool]>,
        bias: &mut [T],
    ) -> Result<bool, Error>;
}

/// A tile of scores: `rows` queries and `width` keys from the position `at` on.
pub struct ScoreTile<'a> {
    pub(super) at: &'a mut [usize],
    /// The index of the loop over queries.
    pub(super) query: usize,
    pub(super) rows: usize,
    pub(super) width: usize,
}

impl<T: Real, M: Kernel<Elem = bool>, B: Kernel<Elem: Real<Wide = T>>> Change<T> for LoweredScores<M, B> {
    fn is_uniform(&self) -> bool {
        !M::VARIES
    }

    fn is_biased(&self) -> bool {
        self.bias.is_some()
    }

    fn masked(&mut self, tile: ScoreTile<'_>, allowed: &mut [bool]) -> Result<Allowed, Error> {
        if !M::VARIES {
            // SAFETY: a kernel that does not vary consists of constants, so there is nothing to
            // load.
            let all = unsafe { self.mask.get::<Baseline>(0) };
            return Ok(if all { Allowed::All } else { Allowed::None });
        }
        dispatch(Ask { mask: &mut self.mask, tile, allowed })
    }

    fn biased(
        &mut self,
        tile: ScoreTile<'_>,
        allowed: Option<&[bool]>,
        out: &mut [T],
    ) -> Result<bool, Error> {
        let Some(bias) = &mut self.bias else { return Ok(true) };
        dispatch(Bias { bias, tile, allowed, out })
    }
}

compiled! {
    for f32 f64:

    /// The mask and the bias that these programs compute. Takes the next rows of `rows`: one for
    /// each operand of `mask`, then of `bias`. `None` if `T` is neither `f32` nor `f64`.
    ///
    /// # Safety
    ///
    /// `rows` has a row for each operand of both programs. The row of an operand maps each position
    /// of the nest to one of the operand's elements, which outlive the result.
    ///
    /// # Panics
    ///
    /// If `mask` does not yield `bool`s, or `bias` does not yield elements of the register type
    /// `T`.
    pub unsafe fn lowered_scores<'k, 'r, T: Real>(
        mask: &'k LoweredProgram<'k>,
        bias: Option<&'k LoweredProgram<'k>>,
        rows: &'r mut OperandRows<'k>,
    ) -> Option<Box<dyn Change<T> + 'k>> {
        // SAFETY: the caller's promise.
        Some(unsafe { of_programs(mask, bias, rows) })
    } else {
        None
    }
}

/// The body of [`lowered_scores`].
///
/// # Safety
///
/// As for [`lowered_scores`].
unsafe fn of_programs<'k, T: Real<Wide = T>>(
    mask: &'k LoweredProgram<'k>,
    bias: Option<&'k LoweredProgram<'k>>,
    rows: &mut OperandRows<'k>,
) -> Box<dyn Change<T> + 'k> {
    // SAFETY: the caller's promise.
    let mask = unsafe { mask.kernel::<bool>(rows) };
    // SAFETY: the caller's promise.
    Box::new(LoweredScores { mask, bias: bias.map(|bias| unsafe { bias.kernel::<T>(rows) }) })
}

/// The keys of a tile that a mask allows.
#[derive(Clone, Copy, PartialEq)]
pub enum Allowed {
    /// No key.
    None,
    /// Only keys in `from..to`, but not necessarily all of them.
    Some {
        /// The first key that counts.
        from: usize,
        /// The key after the last one that counts.
        to: usize,
    },
    /// All keys.
    All,
}

struct Ask<'m, M> {
    mask: &'m mut M,
    tile: ScoreTile<'m>,
    allowed: &'m mut [bool],
}

impl<M: Kernel<Elem = bool>> Task for Ask<'_, M> {
    type Out = Result<Allowed, Error>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Self::Out {
        let Ask { mask, tile: ScoreTile { at, query, rows, width }, allowed } = self;
        let mut faults = Faults::default();
        let first = at[query];
        let (mut from, mut to, mut all) = (width, 0, true);
        let mut guess = 0;
        for (row, allowed) in allowed.chunks_exact_mut(width).take(rows).enumerate() {
            at[query] = first + row;
            mask.load::<I>(
                &Tile { at, len: width, mask: None, moved: (row > 0).then_some((query, 1)) },
                &mut faults,
            );
            if faults.any() {
                break;
            }
            if M::MONOTONE {
                // SAFETY: the tile was just loaded, and is not empty.
                let (first, until) = unsafe { change::<I, M>(mask, width, &mut guess) };
                allowed[..until].fill(first);
                allowed[until..].fill(!first);
                let (start, end) = if first { (0, until) } else { (until, width) };
                if start < end {
                    (from, to) = (from.min(start), to.max(end));
                }
                all &= first && until == width;
                continue;
            }
            for (x, allowed) in allowed.iter_mut().enumerate() {
                // SAFETY: a tile of this width was just loaded, without a mask.
                *allowed = unsafe { mask.get::<I>(x) };
            }
            if let Some(start) = allowed.iter().position(|&allowed| allowed) {
                let end = allowed.iter().rposition(|&allowed| allowed).map_or(0, |last| last + 1);
                (from, to) = (from.min(start), to.max(end));
            }
            all &= !allowed.contains(&false);
        }
        at[query] = first;
        faults.into_result()?;
        Ok(match (from < to, all) {
            (false, _) => Allowed::None,
            (true, true) => Allowed::All,
            (true, false) => Allowed::Some { from, to },
        })
    }
}

struct Bias<'m, B, T> {
    bias: &'m mut B,
    tile: ScoreTile<'m>,
    allowed: Option<&'m [bool]>,
    out: &'m mut [T],
}

impl<T: Real, B: Kernel<Elem: Real<Wide = T>>> Task for Bias<'_, B, T> {
    type Out = Result<bool, Error>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) -> Self::Out {
        let Bias { bias, tile: ScoreTile { at, query, rows, width }, allowed, out } = self;
        let mut faults = Faults::default();
        let first = at[query];
        let mut counts = false;
        for (row, out) in out.chunks_exact_mut(width).take(rows).enumerate() {
            at[query] = first + row;
            let mask = allowed.map(|allowed| &allowed[row * width..][..width]);
            // Under a mask, each row is loaded anew: the previous row had another mask.
            let moved = (row > 0 && mask.is_none()).then_some((query, 1));
            bias.load::<I>(&Tile { at, len: width, mask, moved }, &mut faults);
            // After a fault, nothing is computed: an element may have been replaced by a
            // substitute, which could be 0, and the kernel could divide by it.
            if faults.any() {
                break;
            }
            for (x, out) in out.iter_mut().enumerate() {
                // Masked scores are not used, so any value will do, but users' closures must not be
                // called for them.
                if B::TOTAL || mask.is_none_or(|mask| mask[x]) {
                    // SAFETY: a tile of this width was just loaded.
                    *out = unsafe { bias.get::<I>(x) }.widen();
                }
            }
            counts |= out.iter().any(|&value| value != T::LOWEST);
        }
        at[query] = first;
        faults.into_result()?;
        Ok(counts)
    }
}
