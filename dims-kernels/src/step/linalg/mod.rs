//! Linear algebra on batches of matrices: factorizations, systems of equations, eigenvalues and
//! matrix functions.
//!
//! A [`MatrixStep`] runs one [`MatrixWork`] on each matrix of a batch. Operands and results are
//! contiguous and row-major, one matrix after another.
//!
//! ```text
//! MatrixStep  ->  threads: each for some matrices of the batch, or several for one matrix
//!             ->  lanes: several small matrices at once
//!             or  solving, spectral, functions, exponential: one matrix, with `faer`
//! ```
//!
//! [`MatrixWork`] defines the operands and results, `pull` and `algebra` the derivatives.

mod accuracy;
#[cfg(feature = "std")]
mod algebra;
mod driver;
mod eigen;
mod element;
mod exponential;
mod functions;
mod lanes;
mod pade;
#[cfg(feature = "std")]
mod pull;
#[cfg(feature = "std")]
mod pull_factors;
#[cfg(feature = "std")]
mod pulled;
mod range;
mod results;
#[cfg(feature = "std")]
mod saved;
mod solving;
mod spectral;
mod stack;
#[cfg(test)]
mod tests;
mod views;
mod workspace;

pub use crate::ops::matrix::{MatrixResult, MatrixSizes, MatrixWork, ReadTriangle};
pub use eigen::EigenStep;
pub use element::{MatrixElement, RealMatrixElement};
#[cfg(feature = "std")]
pub(super) use saved::{restored, saved};

#[cfg(feature = "std")]
use super::Pulled;
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
#[cfg(feature = "std")]
use crate::trace::{Node, Part};
#[cfg(feature = "std")]
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Runs a [`MatrixWork`] on each matrix of a batch.
#[derive(Clone, Copy, Debug)]
pub struct MatrixStep<T> {
    /// The work.
    pub work: MatrixWork,
    /// The number of matrices and their sizes.
    pub sizes: MatrixSizes,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T> MatrixStep<T> {
    /// The step that runs `work` on matrices of these sizes.
    pub fn new(work: MatrixWork, sizes: MatrixSizes) -> Self {
        MatrixStep { work, sizes, element: PhantomData }
    }
}

impl<T: MatrixElement> StepKind for MatrixStep<T> {
    fn name(&self) -> &'static str {
        self.work.name()
    }

    fn lines(&self) -> [usize; 2] {
        [self.sizes.batch, self.sizes.rows * self.sizes.columns]
    }

    fn parallel(&self) -> usize {
        self.sizes.multiplications() / 64
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        driver::run(self, operands, threads)
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        pull::pull::<T>(self, step)
    }
}
