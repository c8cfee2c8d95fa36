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
//! node there by the address of its elements, so tensors and views need no field for it. While
//! nothing is traced, each expression only tests one flag.

mod backward;
mod compute;
mod describe;
mod evaluate;
pub mod field;
mod field_gradients;
mod link;
mod listing;
mod products;
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
pub use backward::{Gradients, depends_on_others, gradients, names_of_variables, pull_parts};
pub use compute::with_rule;
pub use evaluate::evaluate;
pub use field::Field;
pub use listing::{ListedAxis, ListedPlace, ListedStep, ListedValue, Listing, listing};
#[doc(hidden)]
pub use replay::run_plainly;
pub use replay::{NotRepeatable, Recording};
pub use saved::{
    BakedIn, DescribedValue, Numeral, OpenFinder, OpenNumbers, OpenSizes, ROUNDS, SavedRecording,
};
#[cfg(feature = "half")]
pub use updates::widened_elements;
pub use updates::{UpdatedElements, reordered, sum_of_squares, updated};

use crate::error::{Error, Origin};
use crate::memory::axes::{contiguous, is_within};
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

/// The index of the element at each position of some loops: `offset + sum of position * stride`,
/// plus an offset from a table if there is one.
#[derive(Default)]
pub struct StridedPlace {
    /// The index of the element at the origin of the loops, without the offset from the table.
    pub offset: isize,
    /// The stride along each loop.
    pub strides: PerLoop<isize>,
    /// The table of the offsets to add.
    pub table: Option<Box<Table>>,
}

/// Offsets along some loops.
#[derive(Clone)]
pub struct Table {
    offsets: Arc<[isize]>,
    /// The index of the offset at the origin of the loops.
    start: isize,
    /// The least and the greatest offset.
    bounds: (isize, isize),
    /// The stride in the table along each loop.
    strides: PerLoop<isize>,
    /// The source of the offsets, if each run of the recorded program computes them again.
    source: Option<Arc<TableSource>>,
}

/// Computes the offsets of a table: the sum of some indices, each times the stride of the axis that
/// it selects from.
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
}

impl Table {
    /// Offsets that are contiguous in an order of some of the loops, and constant along the others.
    ///
    /// # Panics
    ///
    /// If the number of offsets is not the number of positions along the loops in `order`.
    pub fn new(offsets: Vec<isize>, sizes: &[usize], order: &[usize]) -> Self {
        assert_eq!(
            offsets.len(),
            order.iter().map(|&axis| sizes[axis]).product::<usize>(),
            "one offset for each position"
        );
        let least = offsets.iter().copied().min().unwrap_or(0);
        let greatest = offsets.iter().copied().max().unwrap_or(0);
        let strides = StridedPlace::contiguous(sizes, order).strides;
        Table { offsets: offsets.into(), start: 0, bounds: (least, greatest), strides, source: None }
    }

    /// Offsets that are indices into `size` elements, contiguous in an order of some of the loops.
    /// The index must not vary along the other loops. If the index is recorded to run again, each
    /// run computes the offsets again.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    pub fn computed(index: Field, size: usize, order: &[usize]) -> Result<Self, Error> {
        Table::of_rows(index, size, 1, order)
    }

    /// Like [`computed`](Self::computed), but the index selects a row, and rows are `stride`
    /// elements apart.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    pub(crate) fn of_rows(index: Field, size: usize, stride: isize, order: &[usize]) -> Result<Self, Error> {
        let mut offsets = if index.is_hollow() {
            // Each run computes the offsets.
            vec![0; order.iter().map(|&axis| index.sizes[axis]).product()]
        } else {
            compute::mapped::<isize>(&index, order)?
        };
        assert!(
            offsets.iter().all(|&at| usize::try_from(at).is_ok_and(|at| at < size)),
            "indices are in range"
        );
        offsets.iter_mut().for_each(|at| *at *= stride);
        let mut table = Table::new(offsets, &index.sizes, order);
        if index.all_nodes().iter().any(|node| node.is_recorded()) {
            let index = TableIndex { index, stride, size };
            table.source =
                Some(Arc::new(TableSource { indices: vec![index], order: order.iter().copied().collect() }));
        }
        Ok(table)
    }

    /// The least and the greatest offset. For offsets that each run computes, the bounds of all
    /// possible offsets.
    fn reach(&self) -> (isize, isize) {
        let Some(source) = &self.source else { return self.bounds };
        source.indices.iter().fold((0, 0), |(least, greatest), own| {
            let far = own.stride.saturating_mul(own.size.saturating_sub(1) as isize);
            (least.saturating_add(far.min(0)), greatest.saturating_add(far.max(0)))
        })
    }

    /// The stride in the table along each loop.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The offset at a position of the table, counted from the origin of the loops.
    fn at(&self, position: isize) -> isize {
        self.offsets[(self.start + position) as usize]
    }
}

impl Clone for StridedPlace {
    /// Copies the strides as a slice, because recording and gradients copy many places, and
    /// `SmallVec::clone` copies one element at a time.
    fn clone(&self) -> Self {
        StridedPlace {
            offset: self.offset,
            strides: PerLoop::from_slice(&self.strides),
            table: self.table.clone(),
        }
    }
}

impl StridedPlace {
    /// Elements at these strides.
    pub fn strided(offset: isize, strides: impl IntoIterator<Item = isize>) -> Self {
        StridedPlace { offset, strides: strides.into_iter().collect(), table: None }
    }

    /// Elements that are contiguous in an order of some of the loops, and constant along the
    /// others.
    pub fn contiguous(sizes: &[usize], order: &[usize]) -> Self {
        StridedPlace::strided(0, contiguous(order, sizes))
    }

    /// Whether two places are the same, with offsets from the same table.
    fn is_same(&self, other: &StridedPlace) -> bool {
        let tables = match (&self.table, &other.table) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(&a.offsets, &b.offsets) && a.start == b.start && a.strides == b.strides
            }
            _ => false,
        };
        tables && self.offset == other.offset && self.strides == other.strides
    }

    /// Panics unless all positions of the loops are among `len` elements.
    fn assert_within(&self, sizes: &[usize], len: usize) {
        assert_eq!(sizes.len(), self.strides.len(), "one stride for each loop");
        if sizes.contains(&0) {
            return;
        }
        let (mut least, mut most) = (self.offset as i128, self.offset as i128);
        let mut reach = |size: usize, stride: isize| {
            let far = (size as i128 - 1) * stride as i128;
            least += far.min(0);
            most += far.max(0);
        };
        sizes.iter().zip(&self.strides).for_each(|(&size, &stride)| reach(size, stride));
        if let Some(table) = &self.table {
            let own = sizes.iter().copied().zip(table.strides.iter().copied());
            assert!(
                is_within(table.offsets.len(), table.start as i128, own),
                "the loops stay within the table"
            );
            least += table.bounds.0 as i128;
            most += table.bounds.1 as i128;
        }
        assert!(
            least >= 0 && most < len as i128,
            "the loops stay within the elements: {least} to {most} of {len}"
        );
    }

    /// The index of the element at a position of the loops.
    fn position(&self, at: &[usize]) -> usize {
        let along = |strides: &[isize]| {
            strides.iter().zip(at).map(|(&stride, &at)| stride * at as isize).sum::<isize>()
        };
        let table = self.table.as_ref().map_or(0, |table| table.at(along(&table.strides)));
        (self.offset + along(&self.strides) + table) as usize
    }

    /// The index of each element's line, for lines of `len` elements, if the loops only move by
    /// whole lines. A table may move elements within their line.
    fn of_lines(&self, sizes: &[usize], len: usize) -> Option<StridedPlace> {
        let len = isize::try_from(len).ok()?;
        let (line, at) = (self.offset.div_euclid(len), self.offset.rem_euclid(len));
        let (least, greatest) = self.table.as_ref().map_or((0, 0), |table| table.reach());
        let is_whole = (0..sizes.len()).all(|axis| sizes[axis] == 1 || self.strides[axis] % len == 0);
        let strides = self.strides.iter().map(|stride| stride / len);
        (is_whole && at + least >= 0 && at + greatest < len).then(|| StridedPlace::strided(line, strides))
    }

    /// Whether the indices of the elements may differ along a loop.
    pub fn varies(&self, axis: usize) -> bool {
        self.strides[axis] != 0 || self.table.as_ref().is_some_and(|table| table.strides[axis] != 0)
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
    /// The positions of the elements along the loops.
    pub place: StridedPlace,
}

/// `out[place] += program(operands)`, over the loops of the field.
#[derive(Clone)]
pub struct Part {
    /// The summand.
    pub field: Field,
    /// The place that it is added to.
    pub place: StridedPlace,
}

impl Part {
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

    /// The rule as a value of its type, if recordings with it can be saved.
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
    /// Whether the inputs of the recorded function have no elements. Then nothing is computed from
    /// them.
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
    /// The calls whose variables the step depends on, without those that had ended when it was
    /// made. For elements that are not floats, these are only calls that record a function.
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

    /// A step that is also a variable of a call: the identity of a value that another call traces.
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

    /// Whether the node depends on an input without elements, and so is not computed.
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

    /// The memory that the step's operands read, if it has a node.
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
