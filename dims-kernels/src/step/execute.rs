//! The executor of steps.

use super::{AnyBuffer, Step, StepOperands, StepResults};
#[cfg(feature = "std")]
use super::{Pulled, StepDerivative};
use crate::error::{Error, Origin};
#[cfg(feature = "std")]
use crate::loops::modes::told_all;
#[cfg(feature = "std")]
use crate::loops::steps::PlanStep;
use crate::loops::steps::note_if;
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
use core::any::Any;
use core::panic::Location;
#[cfg(feature = "std")]
use std::sync::OnceLock;

/// The results of a step that ran, returned one by one.
pub struct Executed(vec::IntoIter<Box<dyn AnyBuffer>>);

impl Executed {
    /// The next result.
    ///
    /// # Panics
    ///
    /// If there are no more results, or the elements of the next one have another type.
    #[expect(clippy::should_implement_trait, reason = "each result has a type of its own")]
    pub fn next<T: Element>(&mut self) -> Buffer<T> {
        StepResults::next(&mut self.0)
    }
}

/// Runs a step: chooses the number of threads, computes the results, adds the step to the plan, and
/// records it if an operand is part of a program.
#[track_caller]
pub fn execute(step: &dyn Step, operands: &mut [&mut dyn AnyBuffer]) -> Result<Executed, Error> {
    execute_at(step, operands, Some(Location::caller()))
}

/// [`execute`] for a step of the backward pass, which has no location in the user's program.
/// The step is part of a program only if the pull-back is `recorded`.
#[cfg(feature = "std")]
pub(super) fn execute_backward(
    step: &dyn Step,
    operands: &mut [&mut dyn AnyBuffer],
    recorded: bool,
) -> Result<Executed, Error> {
    if recorded {
        execute_at(step, operands, None)
    } else {
        Ok(Executed(run(step, operands, false)?.values.into_vec().into_iter()))
    }
}

#[track_caller]
fn execute_at(
    step: &dyn Step,
    operands: &mut [&mut dyn AnyBuffer],
    origin: Origin,
) -> Result<Executed, Error> {
    #[cfg(feature = "std")]
    let read = known(step, operands)?;
    #[cfg(feature = "std")]
    let keeps = read.is_some();
    #[cfg(not(feature = "std"))]
    let keeps = false;
    #[cfg(not(feature = "std"))]
    let _ = origin;
    #[cfg(feature = "std")]
    if let Some((derivative, operands)) = &read
        && let Some(results) = hollow_results(step, derivative, operands)
    {
        let StepResults { values, kept } = results?;
        let (derivative, operands) = (Arc::clone(derivative), operands.clone());
        return Ok(Executed(recorded(derivative, operands, values.into_vec(), kept, origin).into_iter()));
    }
    let results = run(step, operands, keeps)?;
    let values: Vec<Box<dyn AnyBuffer>> = results.values.into_vec();
    #[cfg(feature = "std")]
    if let Some((derivative, operands)) = read {
        return Ok(Executed(recorded(derivative, operands, values, results.kept, origin).into_iter()));
    }
    Ok(Executed(values.into_iter()))
}

/// Computes the results of a step, and notes it in the plan.
#[track_caller]
fn run(step: &dyn Step, operands: &mut [&mut dyn AnyBuffer], keeps: bool) -> Result<StepResults, Error> {
    let threads = threads::parts(step.parallel());
    let results = step.run(&mut StepOperands::new(operands, keeps), threads)?;
    let _is_noted = note_if(|| {
        let bytes = results.values.iter().map(|value| value.bytes()).sum();
        step.plan(bytes, threads)
    });
    #[cfg(feature = "std")]
    if _is_noted {
        told_all(results.values.iter().map(|value| value.as_result()));
    }
    Ok(results)
}

/// Makes [hollow](crate::memory::hollow) results for a [kind](super::StepKind); `None` if the kind
/// cannot be saved.
#[cfg(feature = "std")]
pub(super) type HollowResults = fn(&dyn Any) -> Option<Result<StepResults, Error>>;

/// Set by the first recording from sizes. Binaries that never record from sizes do not link the
/// function.
#[cfg(feature = "std")]
pub(super) static HOLLOW: OnceLock<HollowResults> = OnceLock::new();

/// [Hollow](crate::memory::hollow) results of a step, if one of its operands is hollow. `None`
/// otherwise, and for some steps, such as those that call the user's functions. Such steps run
/// anyway: hollow memory reads as zeros.
#[cfg(feature = "std")]
#[cold]
fn hollow_results(
    step: &dyn Step,
    derivative: &Arc<dyn StepDerivative>,
    operands: &[Arc<dyn Held>],
) -> Option<Result<StepResults, Error>> {
    if !operands.iter().filter_map(|own| own.node()).any(|node| node.is_hollow()) {
        return None;
    }
    step.hollow().or_else(|| HOLLOW.get()?(derivative.as_kind()?))
}

/// The derivative of a step and the memory of its operands, if a program that is being recorded
/// contains one of the operands. Returns an error if the program needs a derivative that the step
/// lacks, or if the program is recorded to run again and no part of the step can be recorded.
#[cfg(feature = "std")]
#[expect(clippy::type_complexity, reason = "it is used once")]
fn known(
    step: &dyn Step,
    operands: &[&mut dyn AnyBuffer],
) -> Result<Option<(Arc<dyn StepDerivative>, Vec<Arc<dyn Held>>)>, Error> {
    if !registry::is_active() {
        return Ok(None);
    }
    if !operands.iter().any(|own| own.is_known()) {
        return Ok(None);
    }
    let memory: Vec<Arc<dyn Held>> = operands.iter().map(|own| own.memory()).collect();
    memory.iter().filter_map(|own| own.node()).for_each(|node| node.note_read());
    let nodes = || memory.iter().filter_map(|own| own.node());
    let derivative = step.derivative();
    let operation = step.name();
    if nodes().any(|node| node.is_differentiated())
        && !derivative.as_ref().is_some_and(|own| own.has_derivative())
    {
        let names = names_of_variables(nodes());
        return Err(match step.remedy() {
            Some(remedy) => Error::NoOwnDerivative { operation, remedy, names },
            None => Error::NoDerivative { operation, names },
        });
    }
    match derivative {
        Some(derivative) => Ok(Some((derivative, memory))),
        None if nodes().any(|node| node.is_recorded()) => Err(Error::NotRecorded { operation }),
        None => Ok(None),
    }
}

/// Records the results as steps of a program, and returns them. Only results whose elements are
/// floats are recorded, unless the program is recorded to run again.
#[cfg(feature = "std")]
#[cold]
fn recorded(
    derivative: Arc<dyn StepDerivative>,
    operands: Vec<Arc<dyn Held>>,
    mut values: Vec<Box<dyn AnyBuffer>>,
    kept: Option<Arc<dyn Held>>,
    origin: Origin,
) -> Vec<Box<dyn AnyBuffer>> {
    let is_recorded = operands.iter().filter_map(|own| own.node()).any(|node| node.is_recorded());
    let kept = kept.map(|kept| match kept.dtype() {
        Some(dtype) if is_recorded => {
            // Each call of the program must compute the kept elements, too, so they are recorded as
            // a step.
            let operands = operands.iter().map(whole).collect();
            let rule = StepRule { derivative: Arc::clone(&derivative), operands, number: KEPT, kept: None };
            let mut buffer = super::operands::buffer_of(&kept).expect("programs know the type");
            let (len, step) = (kept.len(), NodeStep::Rule(Box::new(rule)));
            // If the memory were still shared, it would be copied.
            drop(kept);
            buffer.trace(Node::new(dtype, len, step, origin));
            buffer.memory()
        }
        _ => kept,
    });
    for (number, value) in values.iter_mut().enumerate() {
        let Some(dtype) = value.dtype().filter(|dtype| is_recorded || dtype.is_float()) else { continue };
        let operands: Vec<Field> = operands.iter().map(whole).collect();
        let step = derivative.node_step(&operands, number).unwrap_or_else(|| {
            let derivative = Arc::clone(&derivative);
            NodeStep::Rule(Box::new(StepRule { derivative, operands, number, kept: kept.clone() }))
        });
        value.trace(Node::new(dtype, value.count(), step, origin));
    }
    values
}

/// All elements of some memory, along one loop.
#[cfg(feature = "std")]
pub(super) fn whole(held: &Arc<dyn Held>) -> Field {
    let (sizes, place) = ([held.len()], StridedPlace::strided(0, [1]));
    if held.dtype().is_some() {
        Field::held(&sizes, held, place)
    } else {
        Field::unknown(&sizes, held, place)
    }
}

/// The rule of a step with one result. The operands may be fields over any loops.
#[cfg(feature = "std")]
pub fn rule_of(derivative: impl StepDerivative + 'static, operands: Vec<Field>) -> impl Rule + 'static {
    StepRule { derivative: Arc::new(derivative), operands, number: 0, kept: None }
}

/// The result number that stands for the kept elements.
#[cfg(feature = "std")]
pub(super) const KEPT: usize = usize::MAX;

/// A step that a program records.
#[cfg(feature = "std")]
pub(super) struct StepRule {
    pub(super) derivative: Arc<dyn StepDerivative>,
    pub(super) operands: Vec<Field>,
    /// The number of the result, or [`KEPT`].
    pub(super) number: usize,
    pub(super) kept: Option<Arc<dyn Held>>,
}

#[cfg(feature = "std")]
impl Rule for StepRule {
    fn name(&self) -> &'static str {
        self.derivative.name()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        self.operands.iter().collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        self.operands.iter_mut().collect()
    }

    fn end_gradients(&mut self) {
        self.kept = None;
    }

    fn is_repeatable(&self) -> bool {
        self.derivative.is_repeatable()
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let mut buffers: Vec<Box<dyn AnyBuffer>> = Vec::new();
        for own in &operands {
            buffers.push(super::operands::buffer_of(own.memory()?)?);
        }
        let mut borrowed: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| &mut **own).collect();
        let operands = &mut StepOperands::new(&mut borrowed, self.number == KEPT);
        Some(self.derivative.repeat(operands)?.map(|results| match results.kept {
            Some(kept) if self.number == KEPT => kept,
            _ => results.values[self.number].memory(),
        }))
    }

    fn plan(&self, _: &[Field], _: usize, bytes: usize) -> Option<PlanStep> {
        self.derivative.plan_again(bytes)
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
        self.derivative.pull(&Pulled {
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
