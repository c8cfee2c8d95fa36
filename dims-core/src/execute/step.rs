//! Steps of operators that are not expressions.
//!
//! An operator computes its operands here, describes its computation as a [`StepKind`], and gets
//! the result as a tensor. It handles no memory, plans or derivatives.

use crate::error::{DimError, list_sizes, no_derivative, no_own_derivative};
use crate::expr::Expr;
use crate::expr::evaluate::evaluate;
use crate::plan::axes::{AxisList, check_primes_of};
use crate::plan::shape::{Shape, volume};
use crate::storage::Evaluated;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::Computable;
use crate::types::brand::DimInfo;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys};
use alloc::string::String;
use alloc::vec::Vec;
use kernels::error::Error;
use kernels::loops::axes::Sizes;
use kernels::loops::steps::{PlanStep, aside, note, ran};
use kernels::memory::buffer::Buffer;
use kernels::memory::runs::RowRun;
use kernels::scalar::Element;
use kernels::step::{AnyBuffer, Executed, Step, StepKind};

/// Runs a step. Its source location is the caller's.
#[track_caller]
pub(crate) fn execute(step: &dyn Step, operands: &mut [&mut dyn AnyBuffer]) -> Result<Executed, DimError> {
    match kernels::step::execute(step, operands) {
        Ok(results) => Ok(results),
        Err(Error::NoDerivative { operation, names }) => Err(no_derivative(operation, &names)),
        Err(Error::NoOwnDerivative { operation, remedy, names }) => {
            Err(no_own_derivative(operation, remedy, &names))
        }
        Err(error) => Err(error.into()),
    }
}

/// Notes that something needs at least `least` elements, and has `size` elements. Programs check
/// this for the sizes of each call.
pub(crate) fn note_least(least: usize, size: usize, what: &dyn Fn() -> String) {
    #[cfg(feature = "std")]
    kernels::trace::note_least(least, size, what);
    #[cfg(not(feature = "std"))]
    let _ = (least, size, what);
}

/// Notes that something, such as a mask, is known only for an axis of this size. Programs are not
/// recorded for other sizes.
pub(crate) fn note_one_size(size: usize, what: &dyn Fn() -> String) {
    #[cfg(feature = "std")]
    kernels::trace::note_one_size(size, what);
    #[cfg(not(feature = "std"))]
    let _ = (size, what);
}

/// A tensor as blocks of rows along one of its dims. The elements are contiguous in the order of
/// results.
pub(crate) struct RowBlocks<T> {
    data: Buffer<T>,
    /// The sizes of all axes, in that order.
    sizes: Sizes,
    /// The position of the dim in that order.
    at: usize,
    /// Whether the dim is one of several: see [`one_of_several`](RowBlocks::one_of_several).
    one_of_several: bool,
}

impl<T: Element> RowBlocks<T> {
    #[track_caller]
    pub(crate) fn of<A: Computable<Elem = T>>(tensor: A, dim: DimInfo<'_>) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let shape = tensor.unified_shape()?;
        Self::of_shape(tensor, &shape, dim)
    }

    /// Like [`of`](RowBlocks::of), for an operator that changes the sizes of several dims, one
    /// after the other. Until the last dim is changed, a dim and its prime can have different
    /// sizes, so the operator checks only its last result. All operands must have sizes.
    #[track_caller]
    pub(crate) fn one_of_several<A: Computable<Elem = T>>(
        tensor: A,
        dim: DimInfo<'_>,
    ) -> Result<Self, DimError> {
        let tensor = tensor.into_named();
        let shape = tensor.unchecked_shape()?;
        Ok(RowBlocks { one_of_several: true, ..Self::of_shape(tensor, &shape, dim)? })
    }

    #[track_caller]
    fn of_shape<S: Dims, R: Rank, E: Expr<Elem = T>>(
        tensor: Named<T, S, R, E>,
        shape: &Shape,
        dim: DimInfo<'_>,
    ) -> Result<Self, DimError> {
        let axis = position(shape, dim);
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        let at = order.iter().position(|&own| own == axis).expect("the dim is one of the axes");
        let data = evaluate::<S, R, _>(tensor.expr, shape, order)?;
        let sizes = shape.sizes_in(order).into_iter().collect();
        Ok(RowBlocks { data, sizes, at, one_of_several: false })
    }

    /// The number of blocks.
    pub(crate) fn outer(&self) -> usize {
        self.sizes[..self.at].iter().product()
    }

    /// The number of rows of a block: the size of the dim.
    pub(crate) fn size(&self) -> usize {
        self.sizes[self.at]
    }

    /// The number of elements of a row.
    pub(crate) fn inner(&self) -> usize {
        self.sizes[self.at + 1..].iter().product()
    }

    /// Runs a step that makes a block of `len` rows from each block. The result has the tensor's
    /// dims `S`.
    #[track_caller]
    pub(crate) fn execute<S: Dims, R: Rank, K: StepKind + Clone>(
        mut self,
        kind: &K,
        len: usize,
    ) -> Result<Named<T, S, R>, DimError> {
        self.sizes[self.at] = len;
        if !self.one_of_several {
            check_primes_of::<S, R>(&self.sizes)?;
        }
        let result = match execute(kind, &mut [&mut self.data]) {
            Err(DimError::TooLarge { .. }) => return Err(self.too_large::<S, R>()),
            result => result?.next(),
        };
        Ok(Named::from_expr(Evaluated::laid_out(result, &self.sizes)))
    }

    /// Fails if the size of a result with `len` rows in each block overflows.
    pub(crate) fn check_volume<S: Dims, R: Rank>(&mut self, len: usize) -> Result<(), DimError> {
        let own = core::mem::replace(&mut self.sizes[self.at], len);
        let fits = volume(self.sizes.iter().copied(), size_of::<T>()).is_some();
        let result = if fits { Ok(()) } else { Err(self.too_large::<S, R>()) };
        self.sizes[self.at] = own;
        result
    }

    /// The rows that the `len` rows of each block of the result come from, as runs: the row `at`
    /// comes from `from(at)`. Returns an error if they do not fit into memory.
    pub(crate) fn runs<S: Dims, R: Rank>(
        &mut self,
        len: usize,
        from: &dyn Fn(usize) -> usize,
    ) -> Result<Vec<RowRun>, DimError> {
        let rows = if self.outer() * self.inner() == 0 { 0 } else { len };
        RowRun::split(rows, from).map_err(|_| {
            self.sizes[self.at] = len;
            self.too_large::<S, R>()
        })
    }

    #[cold]
    fn too_large<S: Dims, R: Rank>(&self) -> DimError {
        too_large(S::KEYS, AxisList::in_memory_of::<S, R>().as_slice(), &self.sizes)
    }
}

/// The error for a tensor with these sizes, in an order of its axes.
fn too_large(keys: &Keys, order: &[usize], sizes: &[usize]) -> DimError {
    let name = |&axis: &usize| keys.as_slice().get(axis).map_or("positional axis", |key| key.name);
    DimError::TooLarge { dims: list_sizes(order.iter().map(name).zip(sizes.iter().copied())) }
}

/// Calls of a function. Plans show their steps as parts of one step.
pub(crate) struct NotedCalls {
    function: &'static str,
    calls: usize,
    steps: Vec<PlanStep>,
}

impl NotedCalls {
    /// Plans show `function` as the name.
    pub(crate) fn of(function: &'static str) -> Self {
        NotedCalls { function, calls: 0, steps: Vec::new() }
    }

    /// Runs `count` calls.
    pub(crate) fn run<T>(&mut self, count: usize, calls: impl FnOnce() -> T) -> T {
        let (result, steps) = aside(calls);
        self.calls += count;
        self.steps.extend(steps);
        result
    }

    /// Notes the calls, whose results take `bytes` bytes in total.
    #[track_caller]
    pub(crate) fn finish(self, bytes: usize) {
        let NotedCalls { function, calls, steps } = self;
        note(|| PlanStep::Calls { function, calls, steps, bytes });
        ran();
    }
}
