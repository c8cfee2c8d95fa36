//! The executor of steps.

#[cfg(feature = "std")]
use super::Pulled;
use super::{AnyBuffer, StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::loops::steps::{PlanStep, note};
use crate::machine::threads;
use crate::memory::buffer::Buffer;
#[cfg(feature = "std")]
use crate::memory::registry;
use crate::scalar::Element;
#[cfg(feature = "std")]
use crate::trace::{Field, Held, Node, NodeStep, Part, Rule, StridedPlace, names_of_variables};
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::{self, Vec};
#[cfg(feature = "std")]
use core::panic::Location;

/// The results of a step that ran, to be taken one by one.
pub struct Executed(vec::IntoIter<Box<dyn AnyBuffer>>);

impl Executed {
    /// The next result.
    ///
    /// # Panics
    ///
    /// If there is none, or its elements have another type.
    #[expect(clippy::should_implement_trait, reason = "each result has a type of its own")]
    pub fn next<T: Element>(&mut self) -> Buffer<T> {
        StepResults::next(&mut self.0)
    }
}

/// Runs a step: chooses threads, computes the results, notes the step in the plan, and records it where an operand is known to a program.
#[track_caller]
pub fn execute<K: StepKind + Clone>(
    kind: &K,
    operands: &mut [&mut dyn AnyBuffer],
) -> Result<Executed, Error> {
    run(kind, operands, &|| Box::new(kind.clone()))
}

/// [`execute`], which is compiled once.
#[track_caller]
fn run(
    kind: &dyn StepKind,
    operands: &mut [&mut dyn AnyBuffer],
    own: &dyn Fn() -> Box<dyn StepKind>,
) -> Result<Executed, Error> {
    #[cfg(feature = "std")]
    let read = known(kind, operands)?;
    #[cfg(not(feature = "std"))]
    let _ = own;
    let threads = threads::parts(kind.parallel());
    #[cfg(feature = "std")]
    let keeps = read.is_some();
    #[cfg(not(feature = "std"))]
    let keeps = false;
    let results = kind.run(&mut StepOperands::new(operands, keeps), threads)?;
    let bytes = results.values.iter().map(|value| value.bytes()).sum();
    if bytes > 0 {
        note(|| {
            let [lines, len] = kind.lines();
            PlanStep::Lines { work: kind.name(), lines, len, bytes, threads }
        });
    }
    let values: Vec<Box<dyn AnyBuffer>> = results.values.into_vec();
    #[cfg(feature = "std")]
    if let Some(operands) = read {
        return Ok(Executed(recorded(own().into(), operands, values, results.kept).into_iter()));
    }
    Ok(Executed(values.into_iter()))
}

/// The operands of a step, if a program knows one of them.
#[cfg(feature = "std")]
fn known(kind: &dyn StepKind, operands: &[&mut dyn AnyBuffer]) -> Result<Option<Vec<Arc<dyn Held>>>, Error> {
    if !registry::is_active() {
        return Ok(None);
    }
    if !operands.iter().any(|own| own.is_known()) {
        return Ok(None);
    }
    let operands: Vec<Arc<dyn Held>> = operands.iter().map(|own| own.memory()).collect();
    operands.iter().filter_map(|own| own.node()).for_each(|node| node.note_read());
    if !kind.has_derivative()
        && operands.iter().filter_map(|own| own.node()).any(|node| node.is_differentiated())
    {
        let names = names_of_variables(operands.iter().filter_map(|own| own.node()));
        return Err(Error::NoDerivative { operation: kind.name(), names });
    }
    Ok(Some(operands))
}

/// The results, those of floats as steps of a program.
#[cfg(feature = "std")]
#[cold]
#[track_caller]
fn recorded(
    kind: Arc<dyn StepKind>,
    operands: Vec<Arc<dyn Held>>,
    mut values: Vec<Box<dyn AnyBuffer>>,
    kept: Option<Arc<dyn Held>>,
) -> Vec<Box<dyn AnyBuffer>> {
    let is_recorded = operands.iter().filter_map(|own| own.node()).any(|node| node.is_recorded());
    let kept = kept.map(|kept| match kept.dtype() {
        Some(dtype) if is_recorded => {
            // (What is kept is computed again, too.)
            let operands = operands.iter().map(whole).collect();
            let rule = StepRule { kind: Arc::clone(&kind), operands, number: KEPT, kept: None };
            let mut buffer = super::operands::buffer_of(&kept).expect("programs know the type");
            let step = NodeStep::Rule(Box::new(rule));
            buffer.trace(Node::new(dtype, kept.len(), step, Some(Location::caller())));
            buffer.memory()
        }
        _ => kept,
    });
    for (number, value) in values.iter_mut().enumerate() {
        let Some(dtype) = value.dtype().filter(|dtype| is_recorded || dtype.is_float()) else { continue };
        let operands = operands.iter().map(whole).collect();
        let rule = StepRule { kind: Arc::clone(&kind), operands, number, kept: kept.clone() };
        let step = NodeStep::Rule(Box::new(rule));
        value.trace(Node::new(dtype, value.count(), step, Some(Location::caller())));
    }
    values
}

/// All elements of some memory, along one loop.
#[cfg(feature = "std")]
fn whole(held: &Arc<dyn Held>) -> Field {
    Field::held(&[held.len()], held, StridedPlace::strided(0, [1]))
}

/// The number of what a step keeps for its derivative, among its results.
#[cfg(feature = "std")]
const KEPT: usize = usize::MAX;

/// A step that a program records.
#[cfg(feature = "std")]
struct StepRule {
    kind: Arc<dyn StepKind>,
    operands: Vec<Field>,
    /// Which of the results.
    number: usize,
    kept: Option<Arc<dyn Held>>,
}

#[cfg(feature = "std")]
impl Rule for StepRule {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn operands(&self) -> Vec<&Field> {
        self.operands.iter().collect()
    }

    fn take_operands(&mut self) -> Vec<Field> {
        core::mem::take(&mut self.operands)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let mut buffers: Vec<Box<dyn AnyBuffer>> = Vec::new();
        for own in &operands {
            buffers.push(super::operands::buffer_of(own.memory()?)?);
        }
        let mut borrowed: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| &mut **own).collect();
        let threads = threads::parts(self.kind.parallel());
        let operands = &mut StepOperands::new(&mut borrowed, self.number == KEPT);
        Some(self.kind.run(operands, threads).map(|results| match results.kept {
            Some(kept) if self.number == KEPT => kept,
            _ => results.values[self.number].memory(),
        }))
    }

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        self.pull_by(value, cotangent, recorded, &|_| true)
    }

    fn pull_by(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
        asked: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let StepRule { operands, number, kept, .. } = self;
        self.kind.pull(&Pulled {
            operands,
            kept: kept.as_ref(),
            number: *number,
            value,
            cotangent: &cotangent,
            recorded,
            asked,
        })
    }
}
