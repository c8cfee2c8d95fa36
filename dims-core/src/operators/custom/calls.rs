//! The calls of a user's operation on arrays, as a step: one call for each example, or one for all of them.

use crate::error::DimError;
use crate::execute::step::execute;
use alloc::string::String;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use kernels::error::Error;
use kernels::loops::axes::Sizes;
use kernels::loops::steps::PlanStep;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "std")]
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::step::{AnyBuffer, Step, StepOperands, StepResults};
#[cfg(feature = "std")]
use kernels::step::{PullFunction, Pulled, StepDerivative};
use ndarray::{Array, ArrayD, Dimension};

/// What is called, and how often. The operands of the step are the tensors.
pub(super) trait ArrayCalls {
    /// The operation.
    const NAME: &'static str;
    /// How many axes its results have.
    const RANK: usize;
    /// How the user gives it a derivative.
    #[cfg(feature = "std")]
    const REMEDY: &'static str;
    /// The type of the elements that it yields.
    type Elem: Element;

    /// How many examples there are.
    fn count(&self) -> usize;

    /// The operation on all examples at once, if there is a rule for that.
    fn batch(&self, operands: &StepOperands<'_, '_>) -> Option<ArrayD<Self::Elem>>;

    /// The operation on each example.
    fn each(
        &self,
        operands: &StepOperands<'_, '_>,
        results: &mut ArrayResults<Self::Elem>,
    ) -> Result<(), Error>;

    /// The derivative, if the operation has one. It is kept, and the operation is not. (It finds the sizes of a result in what the step keeps.)
    #[cfg(feature = "std")]
    fn pull_back(&self) -> Option<Arc<dyn StepDerivative>>;
}

/// Runs the calls. The results are those of one example behind the other, each of the sizes that are told.
#[track_caller]
pub(super) fn run<C: ArrayCalls>(
    calls: C,
    operands: &mut [&mut dyn AnyBuffer],
) -> Result<(Buffer<C::Elem>, Sizes), DimError> {
    let step = ArrayStep { calls, found: RefCell::default() };
    let results = execute(&step, operands)?.next();
    Ok((results, step.found.into_inner().sizes))
}

/// The results of an operation, for one example behind the other.
pub(super) struct ArrayResults<E> {
    operation: &'static str,
    data: Vec<E>,
    /// The sizes of one of them.
    sizes: Option<Sizes>,
}

impl<E: Element> ArrayResults<E> {
    /// The result for the next example.
    pub(super) fn push<D: Dimension>(&mut self, result: &Array<E, D>) -> Result<(), Error> {
        let first = self.sizes.get_or_insert_with(|| Sizes::from_slice(result.shape()));
        if first[..] != *result.shape() {
            let what = format!("its results have the shapes {first:?} and {:?}", result.shape());
            return Err(Error::Operation { name: self.operation, what });
        }
        self.data.extend(result.iter().copied());
        Ok(())
    }
}

/// Calls as a step.
struct ArrayStep<C> {
    calls: C,
    found: RefCell<FoundByCalls>,
}

/// What the last run found.
#[derive(Default)]
struct FoundByCalls {
    /// The sizes of one result.
    sizes: Sizes,
    /// Whether there was a call for each example.
    one_by_one: bool,
}

impl<C: ArrayCalls> Step for ArrayStep<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn plan(&self, bytes: usize, _: usize) -> Option<PlanStep> {
        let calls = self.calls.count();
        let step = || PlanStep::Calls { function: C::NAME, calls, steps: Vec::new(), bytes };
        self.found.borrow().one_by_one.then(step)
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let count = self.calls.count();
        let fail = |what: String| Err(Error::Operation { name: C::NAME, what });
        let (data, found) = match self.calls.batch(operands) {
            Some(all) if all.ndim() != C::RANK + 1 || all.shape()[0] != count => {
                let shape = all.shape();
                return fail(format!("it yields an array of shape {shape:?} for {count} examples"));
            }
            Some(all) => {
                let sizes = Sizes::from_slice(&all.shape()[1..]);
                (all.iter().copied().collect(), FoundByCalls { sizes, one_by_one: false })
            }
            None if count == 0 => {
                return fail("without examples, the sizes of its results are unknown".into());
            }
            None => {
                let mut results = ArrayResults { operation: C::NAME, data: Vec::new(), sizes: None };
                self.calls.each(operands, &mut results)?;
                let sizes = results.sizes.unwrap_or_default();
                (results.data, FoundByCalls { sizes, one_by_one: true })
            }
        };
        let results = StepResults::one::<C::Elem>(data);
        #[cfg(feature = "std")]
        let results = if operands.keeps() { results.keeping(found.sizes.to_vec()) } else { results };
        self.found.replace(found);
        Ok(results)
    }

    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>> {
        match DType::of::<C::Elem>() {
            Some(dtype) if dtype.is_float() => self.calls.pull_back(),
            // Integers and truth values are constants.
            Some(_) => Some(Arc::new(PullFunction { name: C::NAME, pull: |_: &Pulled<'_>| Ok(Vec::new()) })),
            // (Programs know no other floats: the results may depend on the operands.)
            None => None,
        }
    }

    #[cfg(feature = "std")]
    fn remedy(&self) -> Option<&'static str> {
        Some(C::REMEDY)
    }
}

/// The sizes of one result, in the derivative of the calls.
#[cfg(feature = "std")]
pub(super) fn sizes_of_result(step: &Pulled<'_>) -> Sizes {
    let kept = step.kept.and_then(Buffer::<usize>::of_held).expect("the step keeps the sizes of a result");
    Sizes::from_slice(&kept)
}
