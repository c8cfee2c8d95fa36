//! Steps: operators on operands in memory, described as data, and the function that runs them.
//!
//! An operator that is not an expression describes its work with a [`StepKind`]: a plain value such
//! as [`MoveRows`](moves::MoveRows) or [`SortLines`](sorting::SortLines) with sizes and settings
//! but no operands. [`execute`] chooses the number of threads, runs the kernel, adds the step to
//! the plan, and keeps what derivatives need.
//!
//! ```text
//! operator -> StepKind, operands -> execute (threads, kernel, plan, derivative) -> results
//! ```
//!
//! Related kinds share a file, or the folder `linalg`.
//!
//! The user's functions may borrow local data, so a step that calls one is not a kind: it is a
//! [`Step`] that lives as long as the call. Only its derivative is kept.

pub mod draw;
pub mod dropout;
mod execute;
#[cfg(feature = "linalg")]
pub mod linalg;
pub mod lines;
pub mod moves;
mod operands;
pub mod places;
pub mod pooling;
#[cfg(feature = "std")]
mod restored;
#[cfg(feature = "std")]
mod saved;
pub mod sorting;

#[cfg(feature = "std")]
pub use execute::rule_of;
pub use execute::{Executed, execute};
pub use operands::{AnyBuffer, StepOperands, StepResults};
#[cfg(feature = "std")]
pub use saved::record_from_sizes;

use crate::error::Error;
use crate::loops::steps::PlanStep;
#[cfg(feature = "std")]
use crate::machine::threads;
#[cfg(feature = "std")]
use crate::memory::buffer::Buffer;
#[cfg(feature = "std")]
use crate::ops::code::DType;
#[cfg(feature = "std")]
use crate::scalar::Element;
#[cfg(feature = "std")]
use crate::trace::{Field, Held, Node, NodeStep, Part};
#[cfg(feature = "std")]
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::any::Any;

/// The work of a step, as data. Operands and results are contiguous.
pub trait StepKind: Send + Sync + 'static {
    /// The name in plans and messages.
    fn name(&self) -> &'static str;

    /// The number of lines, and the number of elements per line, for plans.
    fn lines(&self) -> [usize; 2];

    /// Describes a run on `threads` threads with results of `bytes` bytes, for the plan.
    fn plan(&self, bytes: usize, threads: usize) -> PlanStep {
        let [lines, len] = self.lines();
        PlanStep::Lines { work: self.name(), lines, len, bytes, threads }
    }

    /// The amount of work that several threads can share, counted in elements; 0 if there is none.
    fn parallel(&self) -> usize {
        0
    }

    /// Computes the results.
    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error>;

    /// The results as hollow memory, whose elements are not computed, for kinds that
    /// [`node_step`](Self::node_step) replaces by another step. For other kinds, hollow results are
    /// made from the saved form of the kind.
    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        None
    }

    /// Whether the results have derivatives with respect to the operands.
    #[cfg(feature = "std")]
    fn has_derivative(&self) -> bool {
        true
    }

    /// The step that a program records for result `number` in place of the kind, if there is one.
    /// Otherwise the kind itself is recorded, and [`pull`](Self::pull) is its derivative.
    #[cfg(feature = "std")]
    fn node_step(&self, _operands: &[Field], _number: usize) -> Option<NodeStep> {
        None
    }

    /// The derivative: the parts that are added to the operands' gradients, each with the operand's
    /// node. Called only if a program records the kind itself.
    #[cfg(feature = "std")]
    fn pull(&self, _step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        unreachable!("`{}` has a derivative, or programs know its computation", self.name())
    }
}

/// A step for [`execute`]: a [`StepKind`], or another value, such as one that borrows the user's
/// function for a run.
pub trait Step {
    /// The name in plans and messages.
    fn name(&self) -> &'static str;

    /// Describes a run on `threads` threads with results of `bytes` bytes, for the plan; `None` to
    /// leave the step out of the plan. Called after the run.
    fn plan(&self, bytes: usize, threads: usize) -> Option<PlanStep>;

    /// The amount of work that several threads can share, counted in elements; 0 if there is none.
    fn parallel(&self) -> usize {
        0
    }

    /// Computes the results.
    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error>;

    /// The part of the step that is kept for derivatives and for running it again; `None` if
    /// neither is possible.
    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>>;

    /// See [`StepKind::hollow`].
    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        None
    }

    /// How to give the step a derivative, if it calls the user's function.
    #[cfg(feature = "std")]
    fn remedy(&self) -> Option<&'static str> {
        None
    }
}

impl<K: StepKind + Clone> Step for K {
    fn name(&self) -> &'static str {
        StepKind::name(self)
    }

    fn plan(&self, bytes: usize, threads: usize) -> Option<PlanStep> {
        (bytes > 0).then(|| StepKind::plan(self, bytes, threads))
    }

    fn parallel(&self) -> usize {
        StepKind::parallel(self)
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        StepKind::run(self, operands, threads)
    }

    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>> {
        Some(Arc::new(self.clone()))
    }

    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        StepKind::hollow(self)
    }
}

/// The part of a step that a recorded program keeps: its derivative, and how to run it again.
#[cfg(feature = "std")]
pub trait StepDerivative: Send + Sync {
    /// The name of the step.
    fn name(&self) -> &'static str;

    /// Whether there is a derivative.
    fn has_derivative(&self) -> bool {
        true
    }

    /// The derivative: the parts that are added to the operands' gradients, each with the operand's
    /// node.
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error>;

    /// See [`StepKind::node_step`].
    fn node_step(&self, _operands: &[Field], _number: usize) -> Option<NodeStep> {
        None
    }

    /// The step as a value of its type, if it is a [`StepKind`].
    fn as_kind(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether the step can be run again.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// Describes another run, with a result of `bytes` bytes, for the plan; `None` to leave it out.
    fn plan_again(&self, _bytes: usize) -> Option<PlanStep> {
        None
    }

    /// Runs the step again with other operands; `None` if it cannot run again.
    fn repeat(&self, _operands: &mut StepOperands<'_, '_>) -> Option<Result<StepResults, Error>> {
        None
    }
}

#[cfg(feature = "std")]
impl<K: StepKind> StepDerivative for K {
    fn name(&self) -> &'static str {
        StepKind::name(self)
    }

    fn has_derivative(&self) -> bool {
        StepKind::has_derivative(self)
    }

    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        StepKind::pull(self, step)
    }

    fn node_step(&self, operands: &[Field], number: usize) -> Option<NodeStep> {
        StepKind::node_step(self, operands, number)
    }

    fn as_kind(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn plan_again(&self, bytes: usize) -> Option<PlanStep> {
        (bytes > 0).then(|| StepKind::plan(self, bytes, threads::parts(StepKind::parallel(self))))
    }

    fn repeat(&self, operands: &mut StepOperands<'_, '_>) -> Option<Result<StepResults, Error>> {
        Some(StepKind::run(self, operands, threads::parts(StepKind::parallel(self))))
    }
}

/// A derivative that a function computes.
#[cfg(feature = "std")]
pub struct PullFunction<F> {
    /// The name of the step.
    pub name: &'static str,
    /// Computes the derivative: the parts that are added to the operands' gradients, each with the
    /// operand's node.
    pub pull: F,
}

#[cfg(feature = "std")]
impl<F> StepDerivative for PullFunction<F>
where
    F: Fn(&Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> + Send + Sync,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        (self.pull)(step)
    }
}

/// A step during the backward pass.
#[cfg(feature = "std")]
pub struct Pulled<'s> {
    /// The operands: each along one loop over its elements, or the fields passed to [`rule_of`].
    pub operands: &'s [Field],
    /// The elements that the step kept for its derivative.
    pub kept: Option<&'s Arc<dyn Held>>,
    /// The number of the result to which the cotangent belongs.
    pub number: usize,
    /// The elements of that result.
    pub value: &'s Arc<dyn Held>,
    /// The cotangent: one element for each element of that result.
    pub cotangent: &'s Arc<dyn Held>,
    /// Whether the derivative is recorded as well.
    pub recorded: bool,
    /// Whether the gradient with respect to the node with this id is needed.
    pub asked: &'s dyn Fn(u64) -> bool,
}

#[cfg(feature = "std")]
impl Pulled<'_> {
    /// The derivative of a result that is the sum of these parts of the operands.
    pub fn sum(&self, parts: &[Part]) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        crate::trace::pull_parts(parts, self.cotangent, self.recorded, self.asked)
    }

    /// The operand's node, if the gradient with respect to it is needed.
    pub fn asked_operand(&self, number: usize) -> Option<&Arc<Node>> {
        self.operands[number].nodes().next().filter(|node| (self.asked)(node.id))
    }

    /// Records `data`, which this derivative computed from `operands`, as a step whose own
    /// derivative is `derivative`. The step has no location in the user's program.
    ///
    /// # Panics
    ///
    /// If programs do not know the element type.
    pub fn computed<T: Element>(
        &self,
        data: Vec<T>,
        operands: &[Arc<dyn Held>],
        derivative: impl StepDerivative + 'static,
    ) -> Buffer<T> {
        let dtype = DType::of::<T>().expect("programs know the element type");
        let rule = rule_of(derivative, operands.iter().map(execute::whole).collect());
        let node = Node::new(dtype, data.len(), NodeStep::Rule(Box::new(rule)), None);
        Buffer::traced(data, node)
    }
}
