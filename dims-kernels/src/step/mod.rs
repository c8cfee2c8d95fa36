//! Steps: what one operator computes from operands in memory, as data, and the one function that runs them.
//!
//! An operator that is not an expression says what is to run by a [`StepKind`]: a plain value such as [`MoveRows`](moves::MoveRows) or [`SortLines`](sorting::SortLines), which knows
//! sizes and settings, and no memory. [`execute`] does the rest: threads, memory, the note for plans, the kernel, and what derivatives need to know.
//!
//! ```text
//! operator  ->  StepKind + operands  ->  execute: threads -> kernel -> plan -> derivative  ->  results
//! ```
//!
//! A kind is one file: what it is, how it runs, and its derivative.
//!
//! Functions of users may borrow what they like, so a step that calls one is no kind: it is a [`Step`] that lives as long as the call. What is kept of it is its derivative.

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

/// What a step computes from its operands, as data. Operands and results lie contiguously.
pub trait StepKind: Send + Sync + 'static {
    /// What plans and messages call it.
    fn name(&self) -> &'static str;

    /// How many lines of results there are, and how many elements each is made of, for plans.
    fn lines(&self) -> [usize; 2];

    /// What plans say of a run on so many threads, whose results take so many bytes.
    fn plan(&self, bytes: usize, threads: usize) -> PlanStep {
        let [lines, len] = self.lines();
        PlanStep::Lines { work: self.name(), lines, len, bytes, threads }
    }

    /// So many elements are worked on, if parts of them can be worked on by several threads; else 0.
    fn parallel(&self) -> usize {
        0
    }

    /// Computes the results.
    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error>;

    /// The results without elements, of kinds that programs record as something else.
    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        None
    }

    /// Whether the results have derivatives by the operands.
    #[cfg(feature = "std")]
    fn has_derivative(&self) -> bool {
        true
    }

    /// How a program records one of the results, if it is something that programs know already. Else the derivative is that of the kind.
    #[cfg(feature = "std")]
    fn node_step(&self, _operands: &[Field], _number: usize) -> Option<NodeStep> {
        None
    }

    /// The derivative: for operands, the parts `d operand += ..`. It is asked for where a program records the step as such.
    #[cfg(feature = "std")]
    fn pull(&self, _step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        unreachable!("`{}` has a derivative, or programs know what it computes", self.name())
    }
}

/// What [`execute`] runs: a [`StepKind`], or what borrows a function of the user for a run.
pub trait Step {
    /// What plans and messages call it.
    fn name(&self) -> &'static str;

    /// What plans say of the run on so many threads, whose results take so many bytes. It is asked for after the run.
    fn plan(&self, bytes: usize, threads: usize) -> Option<PlanStep>;

    /// So many elements are worked on, if parts of them can be worked on by several threads; else 0.
    fn parallel(&self) -> usize {
        0
    }

    /// Computes the results.
    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error>;

    /// What is kept of the step for derivatives, and to run it again; nothing if there is neither.
    #[cfg(feature = "std")]
    fn derivative(&self) -> Option<Arc<dyn StepDerivative>>;

    /// As [`StepKind::hollow`].
    #[cfg(feature = "std")]
    fn hollow(&self) -> Option<Result<StepResults, Error>> {
        None
    }

    /// How the user gives the step a derivative, if the step is the user's.
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

/// The derivative of a step: what is kept of a step that ran, if a gradient may be asked for.
#[cfg(feature = "std")]
pub trait StepDerivative: Send + Sync {
    /// The name of the step.
    fn name(&self) -> &'static str;

    /// Whether there is a derivative.
    fn has_derivative(&self) -> bool {
        true
    }

    /// For operands, the parts `d operand += ..`.
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error>;

    /// As [`StepKind::node_step`].
    fn node_step(&self, _operands: &[Field], _number: usize) -> Option<NodeStep> {
        None
    }

    /// The step as a [`StepKind`] in its type, if it is one.
    fn as_kind(&self) -> Option<&dyn Any> {
        None
    }

    /// Whether the step can be run again.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// Runs the step again, with other operands; nothing if it cannot be.
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

    fn repeat(&self, operands: &mut StepOperands<'_, '_>) -> Option<Result<StepResults, Error>> {
        Some(StepKind::run(self, operands, threads::parts(StepKind::parallel(self))))
    }
}

/// A derivative that a function computes.
#[cfg(feature = "std")]
pub struct PullFunction<F> {
    /// The name of the step.
    pub name: &'static str,
    /// The parts `d operand += ..`.
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

/// A step whose derivative is asked for.
#[cfg(feature = "std")]
pub struct Pulled<'s> {
    /// The operands, each along one loop over its elements.
    pub operands: &'s [Field],
    /// What the step kept for its derivative.
    pub kept: Option<&'s Arc<dyn Held>>,
    /// Which of its results the cotangent is of.
    pub number: usize,
    /// The elements of that result.
    pub value: &'s Arc<dyn Held>,
    /// The cotangent: one element for each of them.
    pub cotangent: &'s Arc<dyn Held>,
    /// Whether the derivative is recorded as well.
    pub recorded: bool,
    /// Which nodes are asked for.
    pub asked: &'s dyn Fn(u64) -> bool,
}

#[cfg(feature = "std")]
impl Pulled<'_> {
    /// The derivative of a result that is the sum of these parts, each a field of operands at its place.
    pub fn sum(&self, parts: &[Part]) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        crate::trace::pull_parts(parts, self.cotangent, self.recorded, self.asked)
    }

    /// An operand that the derivative is asked for by.
    pub fn asked_operand(&self, number: usize) -> Option<&Arc<Node>> {
        self.operands[number].nodes().next().filter(|node| (self.asked)(node.id))
    }

    /// What the derivative computed from some memory, as a step that has a derivative itself. It has no place in the user's program.
    ///
    /// # Panics
    ///
    /// If the elements are no floats.
    pub fn computed<T: Element>(
        &self,
        data: Vec<T>,
        operands: &[Arc<dyn Held>],
        derivative: impl StepDerivative + 'static,
    ) -> Buffer<T> {
        let dtype = DType::of::<T>().expect("only floats are recorded");
        let rule = rule_of(derivative, operands.iter().map(execute::whole).collect());
        let node = Node::new(dtype, data.len(), NodeStep::Rule(Box::new(rule)), None);
        Buffer::traced(data, node)
    }
}
