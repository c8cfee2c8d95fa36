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

mod execute;
pub mod moves;
mod operands;
pub mod sorting;

pub use execute::{Executed, execute};
pub use operands::{AnyBuffer, StepOperands, StepResults};

use crate::error::Error;
#[cfg(feature = "std")]
use crate::trace::{Field, Held, Node, Part};
#[cfg(feature = "std")]
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;

/// What a step computes from its operands, as data. Operands and results lie contiguously.
pub trait StepKind: Send + Sync + 'static {
    /// What plans and messages call it.
    fn name(&self) -> &'static str;

    /// How many lines of results there are, and how many elements each is made of, for plans.
    fn lines(&self) -> [usize; 2];

    /// So many elements are worked on, if parts of them can be worked on by several threads; else 0.
    fn parallel(&self) -> usize {
        0
    }

    /// Computes the results.
    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error>;

    /// Whether the results have derivatives by the operands.
    #[cfg(feature = "std")]
    fn has_derivative(&self) -> bool {
        true
    }

    /// The derivative: for operands, the parts `d operand += ..`.
    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error>;
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
}
