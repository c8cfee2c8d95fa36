//! Recorded programs: the steps that computed a tensor from others, as data, and their gradients.
//!
//! A [`Node`] represents the elements of one buffer. Its [step](NodeStep) says how they were
//! computed. Most steps are [parts](Part):
//!
//! ```text
//! out[place] += program(operands)      over loops
//! ```
//!
//! Parts cover maps, sums, products, slices, windows, lookups and joins. They are closed under
//! transposition: the gradient of a part with respect to an operand is a part that writes where the
//! operand was read. Other steps are variables and [rules]. The gradient of a rule consists of such
//! parts.
//!
//! A [`registry`] lists the memory of all traced buffers. A view, a slice or a binding finds its
//! node there by the address of its elements, so tensors and views need no field for the node.
//! While nothing is traced, each expression only tests one flag.

mod backward;
mod compute;
mod describe;
mod evaluate;
pub mod field;
mod field_gradients;
mod link;
mod listing;
mod place;
mod products;
mod ranges;
pub mod record;
mod replay;
pub mod rules;
pub mod saved;
#[cfg(test)]
mod tests;
mod updates;
mod windows;

pub use crate::memory::held::{Held, Marker};
pub use crate::memory::registry::{self, is_active};
pub use backward::{
    Gradients, depends_on_others, gradients, had_constant_cotangent, names_of_variables, pull_parts,
    with_computed_cotangents,
};
pub use compute::with_rule;
pub use evaluate::evaluate;
pub use field::Field;
pub use listing::{ListedAxis, ListedPlace, ListedStep, ListedValue, Listing, listing};
pub use place::{StridedPlace, Table};
pub use ranges::{RangeReason, ReadRange, note_least, note_one_size, note_range, with_ranges};
#[doc(hidden)]
pub use replay::run_plainly;
pub use replay::{NotRepeatable, Recording};
pub use saved::{
    BakedIn, DescribedValue, Misfit, Numeral, OpenFinder, OpenNumbers, OpenSizes, ROUNDS, SavedRecording,
};
#[cfg(feature = "half")]
pub use updates::widened_elements;
pub use updates::{UpdatedElements, reordered, sum_of_squares, updated};

use crate::error::{Error, Origin};
use crate::load::gather::IndexedAxis;
use crate::loops::steps::PlanStep;
use crate::memory::buffer::Buffer;
use crate::ops::code::DType;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt::Display;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use smallvec::SmallVec;
use std::sync::OnceLock;

impl dyn Held {
    /// The type of the elements, if programs support it.
    pub fn dtype(&self) -> Option<DType> {
        DType::of_id(self.element())
    }

    /// The step that computed the elements, if a program records or has recorded it.
    pub fn node(&self) -> Option<&Arc<Node>> {
        let mark: &dyn Any = &**self.mark()?;
        mark.downcast_ref()
    }

    /// Whether a program that is still being recorded knows the elements.
    pub fn is_traced(&self) -> bool {
        self.mark().is_some_and(|mark| mark.is_live())
    }
}

impl Marker for Arc<Node> {
    fn is_live(&self) -> bool {
        self.is_traced()
    }

    fn is_recorded(&self) -> bool {
        Node::is_recorded(self)
    }
}

impl<T: Send + Sync + 'static> Buffer<T> {
    /// Elements computed by a step of a recorded program.
    pub fn traced(data: Vec<T>, node: Arc<Node>) -> Self {
        Buffer::marked(data, Box::new(node))
    }
}

impl<T> Buffer<T> {
    /// The step that computed the elements, if a program records or has recorded it.
    #[inline]
    pub fn node(&self) -> Option<&Arc<Node>> {
        let mark: &dyn Any = &**self.mark()?;
        mark.downcast_ref()
    }
}

/// Sets the [linked](link) pointers.
fn link_gradients() {
    record::link();
    rules::link();
    updates::link();
}

/// Sizes, strides or indices of loops.
pub type PerLoop<T> = SmallVec<[T; 6]>;

/// Computes the offsets of a table: the sum of some indices, each times the stride of the axis that
/// the index selects from.
#[derive(Clone)]
struct TableSource {
    indices: Vec<TableIndex>,
    /// The order of loops in which the offsets are contiguous.
    order: PerLoop<usize>,
}

/// A computed index into an axis.
#[derive(Clone)]
struct TableIndex {
    index: Field,
    stride: isize,
    size: usize,
    /// The axis, for messages. `None` for an axis of a restored recording.
    axis: Option<IndexedAxis>,
}

impl TableIndex {
    /// Whether the index is not computed while a function is recorded from sizes. (False if the
    /// axis has no elements, because every index is then out of range.)
    fn is_hollow(&self) -> bool {
        self.size > 0 && self.index.is_hollow()
    }
}

/// The elements that an operand reads.
#[derive(Clone)]
pub enum FieldSource {
    /// Elements in memory.
    Memory(Arc<dyn Held>),
    /// Positions along the loops.
    Position,
}

impl FieldSource {
    /// The step that computed the elements, if a program records or has recorded it.
    pub fn node(&self) -> Option<&Arc<Node>> {
        match self {
            FieldSource::Memory(held) => held.node(),
            FieldSource::Position => None,
        }
    }

    /// Whether the elements are floats. Gradients only flow through floats.
    pub fn is_float(&self) -> bool {
        match self {
            FieldSource::Memory(held) => held.dtype().is_some_and(DType::is_float),
            FieldSource::Position => false,
        }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        match self {
            FieldSource::Memory(held) => held.dtype().expect("programs read types that they know"),
            FieldSource::Position => DType::Isize,
        }
    }
}

/// An operand of a program: elements along the loops.
#[derive(Clone)]
pub struct FieldOperand {
    /// The elements.
    pub source: FieldSource,
    /// The index of the element at each position of the loops.
    pub place: StridedPlace,
}

/// `out[place] += program(operands)`, over the loops of the field.
#[derive(Clone)]
pub struct Part {
    /// The summand.
    pub field: Field,
    /// The place in the node's elements to which the summand is added.
    pub place: StridedPlace,
}

impl Part {
    /// Whether the part reads elements or offsets that are not computed while a function is
    /// recorded from sizes.
    pub(crate) fn is_hollow(&self) -> bool {
        self.field.is_hollow() || self.place.nodes().iter().any(|node| node.is_hollow())
    }

    /// Whether a program knows the elements that the part reads, or computes the part's place.
    pub(crate) fn is_traced(&self) -> bool {
        self.field.is_traced() || self.place.nodes().iter().any(|node| node.is_recorded())
    }
}

/// The computation of a node's elements.
pub enum NodeStep {
    /// A [variable](Node::variable) of a call, and its name, if it has one.
    Variable(Option<Box<dyn Display + Send + Sync>>),
    /// The sum of parts, added to zeros.
    Parts(Vec<Part>),
    /// A step with its own rule.
    Rule(Box<dyn Rule>),
}

impl NodeStep {
    /// The calls that have not ended and whose variables the step depends on.
    fn calls(&self) -> Calls {
        let mut calls = Calls::new();
        let mut add = |nodes: Vec<&Arc<Node>>| {
            for call in nodes.into_iter().flat_map(|node| &node.calls) {
                if !call.has_ended() && !calls.iter().any(|own| Arc::ptr_eq(own, call)) {
                    calls.push(Arc::clone(call));
                }
            }
        };
        match self {
            NodeStep::Variable(_) => {}
            NodeStep::Parts(parts) => parts.iter().for_each(|part| {
                add(part.field.all_nodes());
                add(part.place.nodes());
            }),
            NodeStep::Rule(rule) => rule.operands().into_iter().map(Field::all_nodes).for_each(add),
        }
        calls
    }
}

/// A step that is not a sum of parts, but has a gradient that consists of parts.
pub trait Rule: Send + Sync {
    /// The name of the step.
    fn name(&self) -> &'static str;

    /// The rule as a value of its type. Recordings with a rule that returns `None` cannot be saved.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// The fields that the step reads.
    fn operands(&self) -> Vec<&Field>;

    /// The fields that the step reads, mutably.
    fn operands_mut(&mut self) -> Vec<&mut Field>;

    /// Frees the data that only the gradient needs.
    fn end_gradients(&mut self) {}

    /// The gradient: parts that add to the gradients of operands. `value` has the elements of the
    /// result, and `cotangent` one element for each of them. A rule may overwrite the cotangent if
    /// nothing else holds its memory. `recorded` says whether the pull-back is recorded.
    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error>;

    /// The gradient for the requested nodes. Parts for other nodes may be missing.
    fn pull_by(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
        _asked: &dyn Fn(u64) -> bool,
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        self.pull(value, cotangent, recorded)
    }

    /// The gradient as steps that can run again, but have no derivative. `None` if the steps of
    /// [`pull`](Rule::pull) are as fast.
    fn pull_to_run_again(
        &self,
        _value: &Arc<dyn Held>,
        _cotangent: &Arc<dyn Held>,
    ) -> Result<Option<Vec<(Arc<Node>, Part)>>, Error> {
        Ok(None)
    }

    /// Whether the step can run again.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// Computes the result for other operands, in the order of [`operands`](Rule::operands); `None`
    /// if the step cannot run again.
    fn run(&self, _operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        None
    }

    /// The step in plans, run with these operands. The result has `len` elements and `bytes` bytes.
    /// `None` if the step reports the plans of its own parts while it runs.
    fn plan(&self, operands: &[Field], len: usize, bytes: usize) -> Option<PlanStep>;

    /// The gradient for a cotangent that is a sum of parts with few elements, if the step can use
    /// the parts directly. This avoids writing and reading zeros. `recorded` says whether the
    /// gradient is recorded to run again.
    fn pull_parts(
        &self,
        _value: &Arc<dyn Held>,
        _parts: &[Part],
        _recorded: bool,
    ) -> Result<Option<Vec<(Arc<Node>, Part)>>, Error> {
        Ok(None)
    }
}

/// A call that takes gradients, or that records a function. Values that depend on its variables are
/// traced until the call ends.
#[derive(Debug, Default)]
pub struct GradientCall {
    has_ended: AtomicBool,
    /// Whether values of any type that depend on its variables are recorded to run again. Otherwise
    /// only floats are recorded, for gradients.
    records: bool,
    /// Whether the inputs of the recorded function have no elements. Then steps that depend on them
    /// need not compute their results.
    is_hollow: bool,
}

impl GradientCall {
    /// A call that records a function to run it again with other inputs.
    pub fn recording() -> Self {
        GradientCall { records: true, ..GradientCall::default() }
    }

    /// A call that records a function whose inputs have sizes, but no elements.
    pub fn recording_sizes() -> Self {
        GradientCall { is_hollow: true, ..GradientCall::recording() }
    }

    /// Ends the call: values that depend only on its variables become constants.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

/// The calls whose variables a step depends on. There are several if calls are nested.
type Calls = SmallVec<[Arc<GradientCall>; 1]>;

/// An axis of a node's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAxis {
    /// The name of its dim, or `..` for a positional axis.
    pub name: &'static str,
    /// The id of its dim; `None` for a positional axis.
    pub id: Option<u64>,
    /// Its size.
    pub size: usize,
}

/// The axes of a node. Most tensors have few enough for inline storage.
pub type NodeAxes = SmallVec<[NodeAxis; 4]>;

/// One step of a recorded program.
pub struct Node {
    /// The number of the step. Later steps have greater numbers.
    pub id: u64,
    /// The type of the elements.
    pub dtype: DType,
    /// The number of elements.
    pub len: usize,
    /// The axes, from the outermost in memory to the innermost, once they are known.
    axes: OnceLock<NodeAxes>,
    /// The computation of the elements.
    pub step: NodeStep,
    /// The source location in the user's program.
    pub origin: Origin,
    /// The calls whose variables the step depends on, without calls that had already ended when the
    /// node was made. For elements that are not floats, these are only calls that record a
    /// function.
    calls: Calls,
    /// Whether anything has read the elements.
    read: AtomicBool,
}

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Node {
    /// A new step.
    pub fn new(dtype: DType, len: usize, step: NodeStep, origin: Origin) -> Arc<Self> {
        let mut calls = step.calls();
        if !dtype.is_float() {
            calls.retain(|call| call.records);
        }
        Node::of_calls(dtype, len, step, origin, calls)
    }

    fn of_calls(dtype: DType, len: usize, step: NodeStep, origin: Origin, calls: Calls) -> Arc<Self> {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (axes, read) = (OnceLock::new(), AtomicBool::new(false));
        Arc::new(Node { id, dtype, len, axes, step, origin, calls, read })
    }

    /// A variable of a call, with a name if it has one: a value with respect to which the call
    /// takes gradients, or an input of the function that the call records.
    pub fn variable(
        dtype: DType,
        len: usize,
        name: Option<Box<dyn Display + Send + Sync>>,
        call: &Arc<GradientCall>,
    ) -> Arc<Self> {
        link_gradients();
        let calls = core::iter::once(Arc::clone(call)).collect();
        Node::of_calls(dtype, len, NodeStep::Variable(name), None, calls)
    }

    /// A node with the number, type, length and source location of this one, but without the
    /// operands of its step, so that they can be freed.
    fn name_only(&self) -> Arc<Self> {
        let (axes, read) = (OnceLock::new(), AtomicBool::new(false));
        let Node { id, dtype, len, origin, .. } = *self;
        Arc::new(Node {
            id,
            dtype,
            len,
            axes,
            step: NodeStep::Variable(None),
            origin,
            calls: Calls::new(),
            read,
        })
    }

    /// The axes of the elements, from the outermost in memory to the innermost, if they are known.
    pub fn axes(&self) -> Option<&[NodeAxis]> {
        self.axes.get().map(|axes| &axes[..])
    }

    /// Sets the axes of the elements, unless they are set already.
    ///
    /// # Panics
    ///
    /// If the number of positions is not the number of elements.
    pub fn lies_along(&self, axes: impl FnOnce() -> NodeAxes) {
        self.axes.get_or_init(|| {
            let axes = axes();
            let positions = axes.iter().fold(1usize, |positions, axis| positions.saturating_mul(axis.size));
            assert_eq!(positions, self.len, "the axes have a position for each element");
            axes
        });
    }

    /// A variable of a call, made from a value that another call traces: `step` copies that value.
    pub fn identity(dtype: DType, len: usize, step: NodeStep, call: &Arc<GradientCall>) -> Arc<Self> {
        let mut calls = step.calls();
        calls.push(Arc::clone(call));
        Node::of_calls(dtype, len, step, None, calls)
    }

    /// Whether a call that has not ended traces the elements.
    pub fn is_traced(&self) -> bool {
        self.calls.iter().any(|call| !call.has_ended())
    }

    /// Whether the step depends on inputs of a function that is being recorded to run again.
    pub fn is_recorded(&self) -> bool {
        self.calls.iter().any(|call| call.records && !call.has_ended())
    }

    /// Whether the node depends on an input without elements, and so need not be computed.
    pub fn is_hollow(&self) -> bool {
        self.calls.iter().any(|call| call.is_hollow && !call.has_ended())
    }

    /// Whether gradients may be taken with respect to a value that the step depends on.
    pub fn is_differentiated(&self) -> bool {
        self.dtype.is_float() && self.calls.iter().any(|call| !call.records && !call.has_ended())
    }

    /// Marks the elements as read.
    pub fn note_read(&self) {
        self.read.store(true, Ordering::Relaxed);
    }

    /// Whether the elements were read. A variable that was not read may be reported as unused.
    pub fn is_read(&self) -> bool {
        self.read.load(Ordering::Relaxed)
    }

    /// The nodes that the step reads and that gradients flow through.
    pub fn inputs(&self) -> Vec<&Arc<Node>> {
        match &self.step {
            NodeStep::Variable(_) => Vec::new(),
            NodeStep::Parts(parts) => parts.iter().flat_map(|part| part.field.nodes()).collect(),
            NodeStep::Rule(rule) => rule.operands().into_iter().flat_map(Field::nodes).collect(),
        }
    }

    /// The memory that the step's operands read, except memory without a node.
    fn sources(&self) -> Vec<&Arc<dyn Held>> {
        let fields = match &self.step {
            NodeStep::Variable(_) => Vec::new(),
            NodeStep::Parts(parts) => parts.iter().map(|part| &part.field).collect(),
            NodeStep::Rule(rule) => rule.operands(),
        };
        let operands = fields.into_iter().flat_map(|field| &field.operands);
        let held = operands.filter_map(|own| match &own.source {
            FieldSource::Memory(held) => Some(held),
            FieldSource::Position => None,
        });
        held.filter(|held| held.node().is_some()).collect()
    }
}

/// Drops long chains of nodes iteratively instead of recursively.
impl Drop for Node {
    fn drop(&mut self) {
        fn take(step: &mut NodeStep, open: &mut Vec<FieldSource>) {
            match core::mem::replace(step, NodeStep::Variable(None)) {
                NodeStep::Variable(_) => {}
                NodeStep::Parts(mut parts) => {
                    open.extend(parts.iter_mut().flat_map(|part| part.field.take_sources()))
                }
                NodeStep::Rule(mut rule) => {
                    open.extend(rule.operands_mut().into_iter().flat_map(Field::take_sources))
                }
            }
        }
        let mut open = Vec::new();
        take(&mut self.step, &mut open);
        while let Some(source) = open.pop() {
            let FieldSource::Memory(held) = source else { continue };
            let mark: Option<Box<dyn Any>> = held.into_mark().map(|mark| mark as _);
            let node = mark.and_then(|mark| mark.downcast::<Arc<Node>>().ok());
            if let Some(mut node) = node.and_then(|node| Arc::into_inner(*node)) {
                take(&mut node.step, &mut open);
            }
        }
    }
}
