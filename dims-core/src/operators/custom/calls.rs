//! Calls a user's operation on arrays as a step: once for each example, or once for all of them.

use super::ArrayOp;
use super::arrays::{ArrayLayout, each};
use super::tensors::{HeldTensors, Takes};
use crate::error::DimError;
use crate::execute::lines::arranged;
use crate::execute::step::execute;
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::tensors::named::Named;
use crate::types::rank::{Rank, Rank0, RankOf};
use crate::types::set::Dims;
use alloc::string::String;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::marker::PhantomData;
use kernels::error::Error;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::steps::PlanStep;
#[cfg(feature = "std")]
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::step::{AnyBuffer, Step, StepOperands, StepResults};
#[cfg(feature = "std")]
use kernels::step::{PullFunction, Pulled, StepDerivative};
use ndarray::{Array, Dimension};

/// Runs the operation for each position of the dims `D` of all tensors. `hold` unifies the tensors'
/// sizes, and computes the tensors with their dims in the given order.
#[track_caller]
pub(super) fn execute_calls<D: Dims, Args: 'static, O: ArrayOp<Args>>(
    op: &O,
    hold: impl FnOnce(&mut Shape, &[usize]) -> Result<HeldTensors, DimError>,
) -> Result<Named<O::Elem, D, <O::Out as RankOf>::Rank>, DimError> {
    let named = D::KEYS.as_slice().len();
    let order = AxisList::in_memory_of::<D, <O::Out as RankOf>::Rank>().as_slice();
    let dims: Order = order.iter().copied().filter(|&axis| axis < named).collect();
    let mut shape = Shape::new::<D, Rank0>();
    let (mut tensors, layouts) = hold(&mut shape, &dims)?;
    shape.finish()?;
    let counts = shape.sizes_in(&dims);
    let too_large = || DimError::TooLarge { dims: shape.describe(&shape.all_axes()[..named]) };
    let count = volume(counts.iter().copied(), 1).ok_or_else(too_large)?;
    let found = RefCell::default();
    let step = ArrayStep { op, count, counts: &counts, layouts: &layouts, found, args: PhantomData::<Args> };
    let mut operands: Vec<&mut dyn AnyBuffer> = tensors.iter_mut().map(|tensor| &mut **tensor).collect();
    let out = execute(&step, &mut operands)?.next();
    let found = step.found.into_inner().sizes;
    let sizes: Sizes = counts.iter().chain(&found).copied().collect();
    let order: Order = dims.iter().copied().chain(named..named + found.len()).collect();
    arranged(out, &order, &sizes)
}

/// The concatenated results of an operation for all examples.
struct ArrayResults<E> {
    operation: &'static str,
    data: Vec<E>,
    /// The sizes of one result.
    sizes: Option<Sizes>,
}

impl<E: Element> ArrayResults<E> {
    /// Appends the result for the next example.
    fn push<D: Dimension>(&mut self, result: &Array<E, D>) -> Result<(), Error> {
        let first = self.sizes.get_or_insert_with(|| Sizes::from_slice(result.shape()));
        if first[..] != *result.shape() {
            let what = format!("its results have the shapes {first:?} and {:?}", result.shape());
            return Err(Error::Operation { name: self.operation, what });
        }
        self.data.extend(result.iter().copied());
        Ok(())
    }
}

/// The step that runs an operation on all examples. Its operands are the tensors.
struct ArrayStep<'a, O, Args> {
    op: &'a O,
    /// The number of examples.
    count: usize,
    /// The sizes of all dims.
    counts: &'a [usize],
    layouts: &'a [ArrayLayout],
    found: RefCell<FoundByCalls>,
    args: PhantomData<Args>,
}

/// Facts that are known only after a run.
#[derive(Default)]
struct FoundByCalls {
    /// The sizes of one result.
    sizes: Sizes,
    /// Whether there was a call for each example.
    one_by_one: bool,
}

impl<Args: 'static, O: ArrayOp<Args>> ArrayStep<'_, O, Args> {
    /// The results of one call for each example.
    fn each(&self, operands: &StepOperands<'_, '_>) -> Result<(Vec<O::Elem>, Sizes), Error> {
        let mut results = ArrayResults { operation: O::NAME, data: Vec::new(), sizes: None };
        each(self.counts, |at| results.push(&self.op.one(O::In::views(operands, self.layouts, at))))?;
        Ok((results.data, results.sizes.unwrap_or_default()))
    }
}

impl<Args: 'static, O: ArrayOp<Args>> Step for ArrayStep<'_, O, Args> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn plan(&self, bytes: usize, _: usize) -> Option<PlanStep> {
        let calls = self.count;
        let step = || PlanStep::Calls { function: O::NAME, calls, steps: Vec::new(), bytes };
        self.found.borrow().one_by_one.then(step)
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let (count, rank) = (self.count, <<O::Out as RankOf>::Rank as Rank>::N);
        let fail = |what: String| Err(Error::Operation { name: O::NAME, what });
        let (data, found) = match self.op.batch(O::In::examples(operands, self.layouts, self.counts)) {
            Some(all) if all.ndim() != rank + 1 || all.shape()[0] != count => {
                let shape = all.shape();
                return fail(format!(
                    "`batch` returned an array of shape {shape:?}; the number of axes must be {}, \
                     and the size of axis 0 must be {count}",
                    rank + 1
                ));
            }
            Some(all) => {
                let sizes = Sizes::from_slice(&all.shape()[1..]);
                (all.iter().copied().collect(), FoundByCalls { sizes, one_by_one: false })
            }
            None if count == 0 => {
                return fail("without examples, the sizes of its results are unknown".into());
            }
            None => {
                let (data, sizes) = self.each(operands)?;
                (data, FoundByCalls { sizes, one_by_one: true })
            }
        };
        let results = StepResults::one::<O::Elem>(data);
        #[cfg(feature = "std")]
        let results = if operands.keeps() { results.keeping(found.sizes.to_vec()) } else { results };
        self.found.replace(found);
        Ok(results)
    }

    // (The derivative is stored without the operation. It reads the sizes of a result from the data
    // that the step keeps.)
    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>> {
        match DType::of::<O::Elem>() {
            Some(dtype) if dtype.is_float() => {
                let pull_back = self.op.pull_back()?;
                Some(Arc::new(pull_back.of_calls(O::NAME, self.counts.into(), self.layouts.into())))
            }
            // Integers and `bool`s are constants.
            Some(_) => Some(Arc::new(PullFunction { name: O::NAME, pull: |_: &Pulled<'_>| Ok(Vec::new()) })),
            // (Other element types may be differentiable, but programs do not support them.)
            None => None,
        }
    }

    #[cfg(feature = "std")]
    fn remedy(&self) -> Option<&'static str> {
        // (A `pull_back` is only called for element types that programs support.)
        DType::of::<O::Elem>().map(|_| "implement `pull_back` in its `impl ArrayOp`")
    }
}

/// The sizes of one result, which the step keeps for its derivative.
#[cfg(feature = "std")]
pub(super) fn sizes_of_result(step: &Pulled<'_>) -> Sizes {
    let kept = step.kept.and_then(Buffer::<usize>::of_held).expect("the step keeps the sizes of a result");
    Sizes::from_slice(&kept)
}
