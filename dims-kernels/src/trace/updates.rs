//! In-place changes as steps: a recorded function computes new elements instead of overwriting
//! memory.

use crate::error::{Error, Origin};
use crate::loops::steps::PlanStep;
use crate::map::formula::UpdateProgram;
use crate::map::in_place::squares;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, match_dtype};
use crate::program::interpreter::ProgramOutput;
use crate::scalar::Real;
use crate::trace::compute::mapped;
use crate::trace::link::Linked;
use crate::trace::rules::NodeParts;
use crate::trace::{
    Field, FieldOperand, FieldSource, Held, Node, NodeStep, Part, PerLoop, Rule, StridedPlace,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// The results of an update: new elements for each operand that changes, or the numbers of a
/// `Direction`.
pub struct UpdatedElements {
    /// The new elements; `f32` for half precisions.
    pub changed: Vec<Arc<dyn Held>>,
    /// The first buffer of `changed`, rounded to half precision, if the program updates parameters
    /// of half precision.
    pub rounded: Option<Arc<dyn Held>>,
}

type UpdateSteps = fn(&UpdateProgram, &[Arc<dyn Held>], usize, Origin) -> Result<UpdatedElements, Error>;

static UPDATED: Linked<UpdateSteps> = Linked::new();

/// Links the code that updates need.
pub(super) fn link() {
    UPDATED.set(updated_linked);
}

/// Runs an [`UpdateProgram`], and records its results as steps. The operands are in the order of
/// the program. Scalars have one element, all other operands `len`.
///
/// # Panics
///
/// If the number of operands is wrong, an operand has the wrong length, or nothing has been traced
/// yet.
pub fn updated(
    program: &UpdateProgram,
    operands: &[Arc<dyn Held>],
    len: usize,
    origin: Origin,
) -> Result<UpdatedElements, Error> {
    (UPDATED.get())(program, operands, len, origin)
}

/// The part of [`updated`] that is reached through a [linked](super::link) pointer.
fn updated_linked(
    update: &UpdateProgram,
    operands: &[Arc<dyn Held>],
    len: usize,
    origin: Origin,
) -> Result<UpdatedElements, Error> {
    assert_eq!(operands.len(), update.operands(), "one operand for each operand of the program");
    let operands = operands.iter().enumerate().map(|(number, held)| {
        let is_scalar = number < update.scalars;
        assert_eq!(held.len(), if is_scalar { 1 } else { len }, "operands have the update's length");
        let place = StridedPlace::strided(0, [isize::from(!is_scalar && len != 1)]);
        FieldOperand { source: FieldSource::Memory(Arc::clone(held)), place }
    });
    let whole = Field {
        sizes: PerLoop::from_slice(&[len]),
        program: Arc::new(update.program.clone()),
        operands: operands.collect(),
        names: None,
    };
    let mut changed = Vec::new();
    let mut rounded = None;
    for (at, &result) in update.results.iter().enumerate() {
        let field = whole.with_result(result);
        let exact = if update.program.kind(result) == DType::F64.kind() { DType::F64 } else { DType::F32 };
        if at == 0 && update.follows {
            // `rounded` is computed from the field again, not from `changed`, so that gradients and
            // later calls of the recorded function read the operands of the program.
            let follower = whole.operands.last().expect("the program reads the followed value");
            rounded = Some(step_of(field.clone(), follower.source.dtype(), origin)?);
        }
        changed.push(step_of(field, exact, origin)?);
    }
    Ok(UpdatedElements { changed, rounded })
}

/// Reorders elements, as a step: from `order`, in which they are contiguous, to the order of the
/// axes.
pub fn reordered(held: &Arc<dyn Held>, sizes: &[usize], order: &[usize]) -> Result<Arc<dyn Held>, Error> {
    let field = Field::held(sizes, held, StridedPlace::contiguous(sizes, order));
    step_of(field, held.dtype().expect("programs know the type"), None)
}

/// Converts elements of half precision to `f32`, as a step.
#[cfg(feature = "half")]
pub fn widened_elements(held: &Arc<dyn Held>) -> Result<Arc<dyn Held>, Error> {
    let sizes = [held.len()];
    step_of(Field::held(&sizes, held, StridedPlace::contiguous(&sizes, &[0])), DType::F32, None)
}

/// The elements of a field in the order of its loops, as the result of a step.
fn step_of(field: Field, dtype: DType, origin: Origin) -> Result<Arc<dyn Held>, Error> {
    fn of<T: ProgramOutput>(field: Field, dtype: DType, origin: Origin) -> Result<Arc<dyn Held>, Error> {
        let order: Vec<usize> = (0..field.sizes.len()).collect();
        let data = mapped::<T>(&field, &order)?;
        let place = StridedPlace::contiguous(&field.sizes, &order);
        let node = Node::new(dtype, data.len(), NodeStep::Parts(vec![Part { field, place }]), origin);
        Ok(Buffer::traced(data, node).held())
    }
    match_dtype!(dtype, T => of::<T>(field, dtype, origin))
}

/// The sum of the squares of all elements of some buffers, in `f64`, as the result of a step.
pub fn sum_of_squares(memories: &[Arc<dyn Held>], origin: Origin) -> Result<Buffer<f64>, Error> {
    let operands: Vec<Field> = memories
        .iter()
        .map(|held| {
            let sizes = [held.len()];
            Field::held(&sizes, held, StridedPlace::contiguous(&sizes, &[0]))
        })
        .collect();
    // Elements that are not computed have no sum.
    let sum = if operands.iter().any(Field::is_hollow) { 0.0 } else { total(&operands) };
    let node = Node::new(DType::F64, 1, NodeStep::Rule(Box::new(SumOfSquares { operands })), origin);
    node.lies_along(Default::default);
    Ok(Buffer::traced(vec![sum], node))
}

pub(in crate::trace) struct SumOfSquares {
    pub(in crate::trace) operands: Vec<Field>,
}

fn total(operands: &[Field]) -> f64 {
    fn of<T: Real>(field: &Field) -> f64 {
        squares(&field.buffer::<T>().expect("the memory has elements of this type"))
    }
    let each = operands.iter().map(|field| match field.memory().and_then(|held| held.dtype()) {
        Some(DType::F32) => of::<f32>(field),
        Some(DType::F64) => of::<f64>(field),
        #[cfg(feature = "half")]
        Some(DType::F16) => of::<half::f16>(field),
        #[cfg(feature = "half")]
        Some(DType::Bf16) => of::<half::bf16>(field),
        _ => unreachable!("only floats have a norm"),
    });
    each.fold(0.0, |sum, squares| sum + squares)
}

impl Rule for SumOfSquares {
    fn name(&self) -> &'static str {
        "sum of squares"
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

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some(Ok(Buffer::from(vec![total(&operands)]).held()))
    }

    fn plan(&self, operands: &[Field], _: usize, bytes: usize) -> Option<PlanStep> {
        let len = operands.iter().flat_map(|own| &own.sizes).sum();
        Some(PlanStep::Lines { work: self.name(), lines: 1, len, bytes, threads: 1 })
    }

    fn pull(&self, _: &Arc<dyn Held>, cotangent: Arc<dyn Held>, _: bool) -> Result<NodeParts, Error> {
        let pulled = self.operands.iter().map(|own| {
            let given = Field::held(&own.sizes, &cotangent, StridedPlace::strided(0, [0]));
            let slope = own.map([&given], |build, a, [given]| {
                let a = build.cast_kind(DType::F64.kind(), a);
                let twice = build.binary(BinaryOpcode::Add, a, a);
                build.binary(BinaryOpcode::Mul, twice, given)
            });
            slope_parts(own, slope)
        });
        Ok(pulled.flatten().collect())
    }
}

/// The gradient with respect to the nodes of an operand that reads elements unchanged.
fn slope_parts(own: &Field, slope: Field) -> NodeParts {
    let part = |node: &Arc<Node>| {
        let kind = node.dtype.kind();
        let field = slope.map([], |build, a, []| build.cast_kind(kind, a));
        (Arc::clone(node), Part { field, place: StridedPlace::contiguous(&own.sizes, &[0]) })
    };
    own.nodes().map(part).collect()
}
