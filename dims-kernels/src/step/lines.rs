//! Work along lines that are contiguous in memory, such as normalizations.

use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
#[cfg(feature = "std")]
use crate::loops::steps::PlanStep;
use crate::memory::allocate::reserve;
#[cfg(feature = "std")]
use crate::ops::code::{DType, LineWork, ReductionKind};
use crate::scalar::{Element, Real};
#[cfg(feature = "std")]
use crate::scan::norm::{Standardize, moments};
use crate::scan::norm::{StandardizeAffine, standardize_with_moments};
use crate::scan::{self, LineOp};
#[cfg(feature = "std")]
use crate::trace::rules::{LineRule, ReductionRule};
#[cfg(feature = "std")]
use crate::trace::{Field, Held, Node, NodeStep, Part, Rule, StridedPlace};
#[cfg(feature = "std")]
use crate::{
    machine::threads,
    memory::{buffer::Buffer, hollow},
};
use alloc::vec::Vec;
#[cfg(feature = "std")]
use alloc::{boxed::Box, sync::Arc};
#[cfg(feature = "std")]
use core::any::Any;
use core::marker::PhantomData;

/// Work along each line, in place. Operand: `lines` lines of `len` elements. Result: as many lines.
#[derive(Clone, Copy, Debug)]
pub struct WorkLines<T, W> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line.
    pub len: usize,
    /// The work.
    pub work: W,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Element, W: LineOp<T> + 'static> StepKind for WorkLines<T, W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let mut data = operands.take::<T>(0);
        scan::in_place(&mut data, self.len, 1, threads, self.work);
        Ok(StepResults::one(data))
    }

    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        Some(hollow::reserved::<T>(self.lines * self.len).transpose()?.map(StepResults::one))
    }

    #[cfg(feature = "std")]
    fn has_derivative(&self) -> bool {
        self.work.derivative() != LineWork::Opaque
    }

    #[cfg(feature = "std")]
    fn node_step(&self, operands: &[Field], _: usize) -> Option<NodeStep> {
        Some(worked_on::<T>(&operands[0], [self.lines, self.len], self.work.derivative()))
    }
}

/// Normalizes each line to mean 0 and variance 1, then multiplies it by a gain and adds a bias.
/// Operands: `lines` lines of `len` elements, one line of gains, and one line of biases. Result:
/// `lines` lines of `len` elements.
///
/// The step has no derivative. If a derivative is needed, the operator normalizes the lines in one
/// step, and applies the gain and the bias as an expression.
#[derive(Clone, Copy, Debug)]
pub struct StandardizeAffineLines<T> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line.
    pub len: usize,
    /// The number added to the variance.
    pub eps: T,
}

impl<T: Real> StepKind for StandardizeAffineLines<T> {
    fn name(&self) -> &'static str {
        <StandardizeAffine<'_, T> as LineOp<T>>::NAME
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let mut data = operands.take::<T>(0);
        let (gain, bias) = (operands.of::<T>(1), operands.of::<T>(2));
        scan::in_place(&mut data, self.len, 1, threads, StandardizeAffine { eps: self.eps, gain, bias });
        Ok(StepResults::one(data))
    }

    #[cfg(feature = "std")]
    fn has_derivative(&self) -> bool {
        false
    }
}

/// Normalizes each line to mean 0 and variance 1, and returns the mean and the variance that it
/// had. Operand: `lines` lines of `len` elements. Results: as many lines, and one mean and one
/// variance per line.
#[derive(Clone, Copy, Debug)]
pub struct StandardizeWithMoments<T> {
    /// The number of lines.
    pub lines: usize,
    /// The number of elements of a line.
    pub len: usize,
    /// The number added to the variance.
    pub eps: T,
}

impl<T: Real> StepKind for StandardizeWithMoments<T> {
    fn name(&self) -> &'static str {
        "standardize, with moments"
    }

    fn lines(&self) -> [usize; 2] {
        [self.lines, self.len]
    }

    fn parallel(&self) -> usize {
        self.lines * self.len
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let mut data = operands.take::<T>(0);
        let zeros = || -> Result<Vec<T>, Error> {
            let mut zeros = reserve(self.lines)?;
            zeros.resize(self.lines, T::ZERO);
            Ok(zeros)
        };
        let (mut mean, mut var) = (zeros()?, zeros()?);
        standardize_with_moments(&mut data, [&mut mean, &mut var], self.eps, threads);
        Ok(StepResults::one(data).and(mean).and(var))
    }

    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        let all = || {
            let [data, mean, var] = [self.lines * self.len, self.lines, self.lines].map(hollow::zeros::<T>);
            Ok(StepResults::one(data?).and(mean?).and(var?))
        };
        Some(all())
    }

    #[cfg(feature = "std")]
    fn node_step(&self, operands: &[Field], number: usize) -> Option<NodeStep> {
        let sizes = [self.lines, self.len];
        Some(match number {
            0 => worked_on::<T>(&operands[0], sizes, Standardize(self.eps).derivative()),
            1 => moment::<T>(&operands[0], sizes, ReductionKind::Mean),
            _ => moment::<T>(&operands[0], sizes, ReductionKind::Variance { ddof: 0.0, root: false }),
        })
    }
}

/// The contiguous lines of an operand, along two loops.
#[cfg(feature = "std")]
fn along_lines(operand: &Field, sizes: [usize; 2]) -> Field {
    let held = operand.memory().expect("an operand of a step is in memory");
    Field::held(&sizes, held, StridedPlace::contiguous(&sizes, &[0, 1]))
}

/// Work along the lines of an operand.
#[cfg(feature = "std")]
fn worked_on<T: Element>(operand: &Field, sizes: [usize; 2], work: LineWork) -> NodeStep {
    let dtype = DType::of::<T>().expect("programs know the element type");
    let (field, order, lines) = (along_lines(operand, sizes), vec![0, 1], vec![1]);
    NodeStep::Rule(Box::new(LineRule { field, order, lines, work, dtype, is_masked: false }))
}

/// The mean or the variance of the lines of an operand.
#[cfg(feature = "std")]
fn moment<T: Real>(operand: &Field, sizes: [usize; 2], reduction: ReductionKind) -> NodeStep {
    let dtype = DType::of::<T>().expect("programs know the element type");
    let (field, kept, reduced) = (along_lines(operand, sizes), vec![0], vec![1]);
    let reduction = ReductionRule { field, kept, reduced, reduction, dtype };
    // `MomentOfLines` needs lines that have elements.
    if sizes[1] > 0 && reduction.field.is_recorded() {
        NodeStep::Rule(Box::new(MomentOfLines { reduction, element: PhantomData::<T> }))
    } else {
        reduction.into_step()
    }
}

/// The mean or the variance of lines. When the rule runs again, it rounds like
/// [`StandardizeWithMoments`]. Its gradient is the gradient of the reduction.
#[cfg(feature = "std")]
pub(super) struct MomentOfLines<T> {
    pub(super) reduction: ReductionRule,
    pub(super) element: PhantomData<T>,
}

#[cfg(feature = "std")]
impl<T: Real> Rule for MomentOfLines<T> {
    fn name(&self) -> &'static str {
        match self.reduction.reduction {
            ReductionKind::Mean => "mean of lines",
            _ => "variance of lines",
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.reduction.operands()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.reduction.operands_mut()
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, mut operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let field = operands.pop()?;
        let (data, start) = field.lying::<T>(&[0, 1])?;
        let (lines, len) = (field.sizes[0], field.sizes[1]);
        let data = &data[start..][..lines * len];
        let moments_of = || -> Result<Vec<T>, Error> {
            let zeros = || -> Result<Vec<T>, Error> {
                let mut data = reserve(lines)?;
                data.resize(lines, T::ZERO);
                Ok(data)
            };
            let [mut mean, mut var] = [zeros()?, zeros()?];
            moments(data, [&mut mean, &mut var], threads::parts(data.len()));
            Ok(if self.reduction.reduction == ReductionKind::Mean { mean } else { var })
        };
        Some(moments_of().map(|data| Buffer::from(data).held()))
    }

    fn plan(&self, operands: &[Field], len: usize, bytes: usize) -> Option<PlanStep> {
        self.reduction.plan(operands, len, bytes)
    }

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        self.reduction.pull(value, cotangent, recorded)
    }
}
