//! The variables of a gradient, and the gradients with respect to them.

use crate::error::{DimError, Origin};
use crate::expr::evaluate::evaluate_tensor;
use crate::grad::parameters::{Mismatch, Parameters, Path, Sides, Visitor, Walk, is_learned, same_sizes};
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;
use core::panic::Location;
use kernels::memory::allocate::reserve;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::hollow::reserved;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::{
    Field, GradientCall, Gradients, Held, Node, NodeStep, Part, PerLoop, StridedPlace, evaluate,
};

/// The elements of a tensor, and where they lie in memory.
pub(super) struct Elements {
    pub(super) held: Arc<dyn Held>,
    sizes: PerLoop<usize>,
    place: StridedPlace,
}

impl Elements {
    pub(super) fn of<T: Element, S: Dims, R: Rank>(tensor: &Evaluated<T, S, R>) -> Self {
        let axes = [tensor.named().as_slice(), tensor.positional().as_slice()];
        Elements::along(tensor.buffer().held(), tensor.start(), axes)
    }

    fn along(held: Arc<dyn Held>, start: usize, [named, positional]: [&[Axis]; 2]) -> Self {
        let axes = || named.iter().chain(positional);
        let strides = axes().map(|axis| if axis.size == 1 { 0 } else { axis.stride });
        let place = StridedPlace::strided(start as isize, strides);
        Elements { held, sizes: axes().map(|axis| axis.size).collect(), place }
    }

    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The offset and the strides of the elements.
    pub(super) fn place(&self) -> &StridedPlace {
        &self.place
    }

    /// The position in memory of the element with this row-major index.
    pub(super) fn at(&self, number: usize) -> usize {
        let (mut rest, mut place) = (number, self.place.offset);
        for (&size, &stride) in self.sizes.iter().zip(&self.place.strides).rev() {
            place += (rest % size) as isize * stride;
            rest /= size;
        }
        place as usize
    }

    /// Other elements in the same layout.
    pub(super) fn with_held(&self, held: Arc<dyn Held>) -> Self {
        Elements { held, sizes: self.sizes.clone(), place: self.place.clone() }
    }

    pub(super) fn field(&self) -> Field {
        Field::held(&self.sizes, &self.held, self.place.clone())
    }

    /// The elements in the memory layout of another tensor with the same sizes.
    pub(super) fn lying_as(&self, other: &Elements) -> Result<Arc<dyn Held>, DimError> {
        let field = Field::held(&self.sizes, &self.held, self.place.clone());
        let dtype = other.held.dtype().expect("each float type has a `DType`");
        let part = Part { field, place: other.place.clone() };
        Ok(evaluate(&[part], other.held.len(), dtype, true)?)
    }
}

/// Makes variables of all floats. Dropping this ends their gradient call.
#[derive(Default)]
pub struct Variables {
    pub(super) call: Arc<GradientCall>,
    pub(super) nodes: Vec<Arc<Node>>,
    /// The tensors of the variables. A node does not keep its elements alive.
    pub(super) elements: Vec<Elements>,
    /// The id of the first variable in place: see [`InPlace`].
    in_place: Option<u64>,
    /// Whether there are tensors of other element types.
    others: bool,
}

impl Variables {
    /// Returns an error if there are tensors, but none of floats.
    #[track_caller]
    pub(super) fn check(&self) -> Result<(), DimError> {
        if self.nodes.is_empty() && self.others {
            return Err(DimError::NoFloats { origin: Some(Location::caller()) });
        }
        Ok(())
    }
}

impl Drop for Variables {
    fn drop(&mut self) {
        self.call.end();
    }
}

impl Walk<1> for Variables {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if !is_learned::<T>() {
            self.others = true;
            return Ok(tensor.clone());
        }
        let marked =
            tensor.expr.buffer().node().filter(|node| self.in_place.is_some_and(|first| node.id >= first));
        let (variable, node) = match marked {
            Some(node) => (tensor.expr.clone(), Arc::clone(node)),
            None => variable(&tensor.expr, path, &self.call)?,
        };
        self.nodes.push(node);
        self.elements.push(Elements::of(&variable));
        Ok(Named::from_expr(variable))
    }
}

/// Marks floats as variables in place, if their memory is not shared or traced, and each element
/// has only one position.
struct Marking {
    call: Arc<GradientCall>,
    /// The id of the first variable.
    first: Option<u64>,
}

impl Visitor<1, 0> for Marking {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&mut Named<T, S, R>; 1],
        []: [&Named<T, S, R>; 0],
    ) -> Result<(), DimError> {
        let own = &mut tensor.expr;
        if is_learned::<T>() && own.is_unshared() && !repeats(own) {
            let node = Node::variable(dtype_of::<T>(), own.all().len(), named(path), &self.call);
            self.first.get_or_insert(node.id);
            own.trace(node);
        }
        Ok(())
    }
}

/// Turns the variables with this id or a larger one back into constants.
struct Ending(u64);

impl Visitor<1, 0> for Ending {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&mut Named<T, S, R>; 1],
        []: [&Named<T, S, R>; 0],
    ) -> Result<(), DimError> {
        if tensor.expr.buffer().node().is_some_and(|node| node.id >= self.0) {
            tensor.expr.end_trace();
        }
        Ok(())
    }
}

/// A value whose tensors are variables in place until this is dropped.
pub struct InPlace<'m, P: Parameters> {
    value: &'m mut P,
    marking: Marking,
}

impl<'m, P: Parameters> InPlace<'m, P> {
    pub(super) fn new(value: &'m mut P, path: &mut Path, variables: &Variables) -> Result<Self, DimError> {
        // `own` is made before the visit. Its drop makes the variables constant again, even after
        // an error.
        let mut own = InPlace { value, marking: Marking { call: Arc::clone(&variables.call), first: None } };
        P::visit([&mut *own.value], [], path, &mut own.marking)?;
        Ok(own)
    }

    /// The value for the function, with variables in place, or in copies if the memory could not be
    /// marked.
    pub(super) fn variables(&self, path: &mut Path, variables: &mut Variables) -> Result<P, DimError> {
        variables.in_place = self.marking.first;
        let value = P::walk([&*self.value], path, variables);
        variables.in_place = None;
        value
    }
}

impl<P: Parameters> Drop for InPlace<'_, P> {
    fn drop(&mut self) {
        if let Some(first) = self.marking.first {
            // Only a user's implementation can return an error. Tensors that it has not visited
            // remain variables of a finished call, which other calls treat as constants.
            let _ = P::visit([&mut *self.value], [], &mut Path::new(), &mut Ending(first));
        }
    }
}

/// Whether one element is read at several positions. Each position then has its own gradient. The
/// result is false if the memory is empty, because the strides may then be 0.
fn repeats<T: Element, S: Dims, R: Rank>(tensor: &Evaluated<T, S, R>) -> bool {
    !tensor.all().is_empty()
        && (has_repeats(tensor.named().as_slice()) || has_repeats(tensor.positional().as_slice()))
}

fn has_repeats(axes: &[Axis]) -> bool {
    axes.iter().any(|axis| axis.size > 1 && axis.stride == 0)
}

fn dtype_of<T: Element>() -> DType {
    DType::of::<T>().expect("each float type has a `DType`")
}

/// The name of a variable in errors: its path.
fn named(path: &Path) -> Option<Box<dyn Display + Send + Sync>> {
    (!path.segments().is_empty()).then(|| Box::new(path.clone()) as _)
}

/// A copy of a tensor as a variable, and its node. For a traced tensor, the copy is recorded as an
/// identity.
fn variable<T: Element, S: Dims, R: Rank>(
    tensor: &Evaluated<T, S, R>,
    path: &Path,
    call: &Arc<GradientCall>,
) -> Result<(Evaluated<T, S, R>, Arc<Node>), DimError> {
    if repeats(tensor) {
        let shape = Named::<T, S, R, _>::from_expr(tensor).unified_shape()?;
        let dense = evaluate_tensor::<S, R, _>(tensor, &shape)?;
        return variable(&dense, path, call);
    }
    let (data, held) = (copied(tensor)?, tensor.buffer().held());
    let node = match held.node().filter(|node| node.is_traced()) {
        None => Node::variable(dtype_of::<T>(), data.len(), named(path), call),
        Some(outer) => {
            outer.note_read();
            let place = StridedPlace::strided(0, [1]);
            let field = Field::held(&[held.len()], &held, place.clone());
            Node::identity(dtype_of::<T>(), data.len(), NodeStep::Parts(vec![Part { field, place }]), call)
        }
    };
    Ok((tensor.with_buffer(Buffer::traced(data, Arc::clone(&node))), node))
}

/// Copies all elements into memory from the pool. Hollow memory has no elements to copy, so memory
/// is only reserved.
fn copied<T: Element, S: Dims, R: Rank>(tensor: &Evaluated<T, S, R>) -> Result<Vec<T>, DimError> {
    let elements = tensor.all();
    if tensor.buffer().node().is_some_and(|node| node.is_hollow())
        && let Some(data) = reserved(elements.len())?
    {
        return Ok(data);
    }
    let mut data = reserve(elements.len())?;
    data.extend_from_slice(elements);
    Ok(data)
}

/// The gradients with respect to variables, in the order of the walk that made them.
pub(super) struct Collected<'g> {
    pub(super) gradients: &'g mut Gradients,
    pub(super) nodes: core::slice::Iter<'g, Arc<Node>>,
    /// The source location of the call, if unread variables are an error. Otherwise their gradient
    /// is zero.
    pub(super) refused: Origin,
}

impl Walk<1> for Collected<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if !is_learned::<T>() {
            return Ok(Named::from_expr(tensor.expr.with_buffer(zeros(tensor.expr.all().len())?)));
        }
        let node = self.nodes.next().expect("one variable for each tensor");
        let gradient = match self.gradients.take(node) {
            Some(held) => Buffer::of_held(&held).expect("a gradient has the type of its variable"),
            None if self.refused.is_none() || node.is_read() || node.len == 0 => zeros(node.len)?,
            None => return Err(DimError::Unused { parameter: path.to_string(), origin: self.refused }),
        };
        Ok(Named::from_expr(tensor.expr.with_buffer(gradient)))
    }
}

fn zeros<T: Element>(len: usize) -> Result<Buffer<T>, DimError> {
    let mut data = reserve(len)?;
    data.resize(len, T::default());
    Ok(data.into())
}

/// The gradients with respect to variables, each with the direction of its variable as the
/// cotangent.
pub(super) struct Directed<'g> {
    pub(super) gradients: &'g mut Gradients,
    pub(super) nodes: core::slice::Iter<'g, Arc<Node>>,
    /// As in [`Collected`].
    pub(super) refused: Origin,
    pub(super) pairs: Vec<(Arc<dyn Held>, Arc<dyn Held>)>,
}

impl Walk<2> for Directed<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        both: [&Named<T, S, R>; 2],
    ) -> Result<Named<T, S, R>, DimError> {
        let mut pair = FloatPairs::new(WITH_DIRECTION);
        let variable = pair.tensor(path, both)?;
        if let Some((_, direction)) = pair.pairs.pop() {
            let node = self.nodes.next().expect("one variable for each tensor");
            match self.gradients.take(node) {
                Some(gradient) => self.pairs.push((gradient, direction)),
                None if self.refused.is_none() || node.is_read() || node.len == 0 => {}
                None => return Err(DimError::Unused { parameter: path.to_string(), origin: self.refused }),
            }
        }
        Ok(variable)
    }

    fn mismatch(&mut self, path: &Path, what: Mismatch) -> DimError {
        what.between(WITH_DIRECTION, path)
    }
}

const WITH_DIRECTION: Sides = ["the parameters", "the direction"];

/// The floats of a value, and those of another value of the same type and sizes, copied to the same
/// layout.
pub(super) struct FloatPairs {
    pub(super) pairs: Vec<(Arc<dyn Held>, Arc<dyn Held>)>,
    sides: Sides,
}

impl FloatPairs {
    pub(super) fn new(sides: Sides) -> Self {
        FloatPairs { pairs: Vec::new(), sides }
    }

    /// The floats of the value of a function, and those of its cotangent.
    pub(super) fn with_cotangent() -> Self {
        FloatPairs::new(["the value", "the cotangent"])
    }
}

impl Walk<2> for FloatPairs {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [value, given]: [&Named<T, S, R>; 2],
    ) -> Result<Named<T, S, R>, DimError> {
        if is_learned::<T>() {
            same_sizes(path, self.sides, [value, given])?;
            let value = Elements::of(&value.expr);
            let given = Elements::of(&given.expr).lying_as(&value)?;
            self.pairs.push((value.held, given));
        }
        Ok(value.clone())
    }

    fn mismatch(&mut self, path: &Path, what: Mismatch) -> DimError {
        what.between(self.sides, path)
    }
}

/// Copies a value, and detaches the tensors whose nodes satisfy the predicate.
pub(super) struct Detached<F>(pub(super) F);

impl Detached<fn(&Arc<Node>) -> bool> {
    pub(super) fn all() -> Self {
        Detached(|_| true)
    }
}

impl<F: Fn(&Arc<Node>) -> bool> Walk<1> for Detached<F> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if tensor.expr.buffer().node().is_some_and(|node| !(self.0)(node)) {
            return Ok(tensor.clone());
        }
        Ok(Named::from_expr(detached(&tensor.expr)?))
    }
}

/// The same elements, copied if they are traced.
pub(super) fn detached<T: Element, S: Dims, R: Rank>(
    tensor: &Evaluated<T, S, R>,
) -> Result<Evaluated<T, S, R>, DimError> {
    if !tensor.is_traced() {
        return Ok(tensor.clone());
    }
    let mut elements = reserve(tensor.all().len())?;
    elements.extend_from_slice(tensor.all());
    Ok(tensor.with_buffer(elements.into()))
}
