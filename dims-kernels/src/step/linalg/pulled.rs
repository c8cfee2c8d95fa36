//! The operands, results and cotangent of a matrix step that is differentiated.

use super::algebra::{Algebra, Matrices};
use super::{MatrixElement, MatrixResult, MatrixStep, MatrixWork};
use crate::error::Error;
use crate::step::Pulled;
use crate::trace::Held;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A matrix step that is differentiated.
pub(super) struct PulledMatrices<'p, 's, T> {
    pub(super) step: &'p MatrixStep<T>,
    pub(super) own: &'p Pulled<'s>,
    pub(super) algebra: Algebra<T>,
}

impl<T: MatrixElement> PulledMatrices<'_, '_, T> {
    pub(super) fn operand(&self, number: usize) -> Matrices {
        let held = self.own.operands[number].memory().expect("an operand of a step is in memory");
        let sizes = self.step.sizes;
        let columns = if number == 0 { sizes.columns } else { sizes.right };
        Matrices::new(held, 0, [sizes.rows, columns])
    }

    /// The cotangent as matrices of this shape.
    pub(super) fn cotangent(&self, shape: [usize; 2]) -> Matrices {
        Matrices::new(self.own.cotangent, 0, shape)
    }

    /// The result as matrices of this shape.
    pub(super) fn value(&self, shape: [usize; 2]) -> Matrices {
        Matrices::new(self.own.value, 0, shape)
    }

    /// All results of an operation on the first operand, each as memory and the index of its first
    /// element. If the step kept its results, `work` is the operation of the step, and the
    /// derivative is not recorded, the kept results are returned. Otherwise the operation runs
    /// here. A recorded derivative also records this run, so that it can itself be differentiated.
    pub(super) fn results(&self, work: MatrixWork) -> Result<Vec<(Arc<dyn Held>, usize)>, Error> {
        let sizes = self.step.sizes;
        if let Some(kept) = self.own.kept
            && work == self.step.work
            && !self.own.recorded
        {
            let mut start = 0;
            let piece = |own: &MatrixResult| {
                let from = start;
                start += own.count() * sizes.batch;
                (Arc::clone(kept), from)
            };
            return Ok(work.yields(sizes).iter().map(piece).collect());
        }
        let held = self.algebra.run(&MatrixStep::new(work, sizes), &[&self.operand(0)])?;
        Ok(held.into_iter().map(|own| (own, 0)).collect())
    }
}
