//! The tensors of an optimizer's state.

use crate::error::DimError;
use crate::expr::evaluate::{evaluate_tensor, evaluate_tensor_in};
use crate::expr::step::{check_taken, is_recorded};
use crate::grad::parameters::{Path, sizes_differ};
#[cfg(feature = "std")]
use crate::plan::explain::node_axis;
use crate::plan::shape::volume;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::{Rank, Rank1};
use crate::types::set::{DimKey, Dims};
use alloc::borrow::Cow;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use kernels::loops::nest::Odometer;
use kernels::memory::allocate::reserve;
use kernels::memory::buffer::Buffer;
use kernels::scalar::{Element, Real};
#[cfg(feature = "std")]
use kernels::trace::{Held, reordered};
use smallvec::SmallVec;

/// A tensor of an optimizer's state for a parameter. It has the dims and sizes of the parameter;
/// moments of [`Adafactor`](super::Adafactor) can lack some or all axes. Its elements are `f64` for
/// a parameter of `f64`, and `f32` for all others.
#[derive(Clone, Debug)]
pub struct StateTensor {
    axes: StateAxes,
    /// All axes, from the outermost one in memory to the innermost.
    order: AxisNumbers,
    elements: StateElements,
}

/// The axes of a parameter, or of its state.
#[derive(Clone, PartialEq)]
pub(crate) struct StateAxes {
    pub(crate) keys: DimKeys,
    /// The sizes of the dims, then of the positional axes.
    pub(crate) sizes: AxisNumbers,
}

pub(crate) type AxisNumbers = SmallVec<[usize; 4]>;

/// The keys of the dims, in the order of their set.
#[derive(Clone)]
pub(crate) struct DimKeys(Cow<'static, [DimKey]>);

impl DimKeys {
    pub(crate) fn as_slice(&self) -> &[DimKey] {
        &self.0
    }

    /// Whether `others` are the same dims in the same order.
    fn are(&self, others: &[DimKey]) -> bool {
        let own = self.as_slice();
        core::ptr::eq(own, others)
            || own.len() == others.len() && own.iter().zip(others).all(|(own, other)| own.same(other))
    }
}

impl PartialEq for DimKeys {
    fn eq(&self, other: &Self) -> bool {
        self.are(other.as_slice())
    }
}

/// The elements of a state tensor, contiguous in memory.
#[derive(Clone)]
pub(crate) enum StateElements {
    F32(Buffer<f32>),
    F64(Buffer<f64>),
}

/// The elements of a [`StateTensor`] as a tensor with one positional axis.
pub(super) enum StateLine {
    F32(Named<f32, (), Rank1>),
    F64(Named<f64, (), Rank1>),
}

macro_rules! line_parts {
    ($($name:ident $name_mut:ident $variant:ident $t:ty;)*) => {
        impl StateLine {$(
            pub(super) fn $name(&self) -> Option<&Named<$t, (), Rank1>> {
                match self {
                    StateLine::$variant(line) => Some(line),
                    _ => None,
                }
            }

            pub(super) fn $name_mut(&mut self) -> Option<&mut Named<$t, (), Rank1>> {
                match self {
                    StateLine::$variant(line) => Some(line),
                    _ => None,
                }
            }
        )*}
    };
}

line_parts! { single single_mut F32 f32; double double_mut F64 f64; }

fn flat<W: StateElem>(data: Buffer<W>) -> Named<W, (), Rank1> {
    let len = data.len();
    Named::from_expr(Evaluated::in_order(data, &[0], &[len]).with_origin(None))
}

/// The elements of a line, contiguous in memory.
fn elements_of<W: StateElem>(line: Named<W, (), Rank1>) -> Result<Buffer<W>, DimError> {
    if line.expr.is_contiguous(&[0]) {
        return Ok(line.expr.into_buffer());
    }
    let shape = line.unified_shape()?;
    Ok(evaluate_tensor::<(), Rank1, _>(&line.expr, &shape)?.into_buffer())
}

pub(crate) trait StateElem: Real {
    fn elements(data: Buffer<Self>) -> StateElements;
    fn of(elements: &StateElements) -> Option<&Buffer<Self>>;
    fn of_mut(elements: &mut StateElements) -> Option<&mut Buffer<Self>>;
}

macro_rules! state_elems {
    ($($t:ty, $variant:ident;)*) => {$(
        impl StateElem for $t {
            fn elements(data: Buffer<Self>) -> StateElements {
                StateElements::$variant(data)
            }

            fn of(elements: &StateElements) -> Option<&Buffer<Self>> {
                match elements {
                    StateElements::$variant(data) => Some(data),
                    _ => None,
                }
            }

            fn of_mut(elements: &mut StateElements) -> Option<&mut Buffer<Self>> {
                match elements {
                    StateElements::$variant(data) => Some(data),
                    _ => None,
                }
            }
        }
    )*};
}

state_elems! { f32, F32; f64, F64; }

impl fmt::Debug for StateElements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateElements::F32(data) => data.fmt(f),
            StateElements::F64(data) => data.fmt(f),
        }
    }
}

impl fmt::Debug for StateAxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.keys.as_slice().iter().map(|key| Some(key.name)).chain(core::iter::repeat(None));
        f.debug_list().entries(names.zip(&self.sizes)).finish()
    }
}

impl StateAxes {
    pub(crate) fn of<T: Element, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> Self {
        let keys = DimKeys(Cow::Borrowed(S::KEYS.as_slice()));
        StateAxes { keys, sizes: tensor.expr.sizes()[..].into() }
    }

    /// The axes, except those for whose numbers `is_removed` returns `true`.
    pub(super) fn without(&self, is_removed: impl Fn(usize) -> bool) -> Self {
        let kept = |at: &usize| !is_removed(*at);
        let keys = self.keys.as_slice().iter().enumerate().filter(|(at, _)| kept(at));
        let keys = DimKeys(Cow::Owned(keys.map(|(_, key)| *key).collect()));
        let sizes = (0..self.sizes.len()).filter(kept).map(|at| self.sizes[at]).collect();
        StateAxes { keys, sizes }
    }

    /// Returns an error if a tensor has other dims or sizes.
    pub(super) fn check<T: Element, S: Dims, R: Rank>(
        &self,
        path: &Path,
        tensor: &Named<T, S, R>,
    ) -> Result<(), DimError> {
        self.check_axes(path, S::KEYS.as_slice(), &tensor.expr.sizes())
    }

    fn check_axes(&self, path: &Path, keys: &[DimKey], sizes: &[usize]) -> Result<(), DimError> {
        if !self.keys.are(keys) || self.sizes.len() != sizes.len() {
            let what = format!("the state of `{path}` belongs to a tensor with other dims");
            return Err(DimError::Shape { what });
        }
        match sizes.iter().zip(&self.sizes).position(|(size, own)| size != own) {
            Some(at) => {
                let sides = ["the parameters", "the optimizer's state"];
                Err(sizes_differ(path, sides, self.keys.as_slice(), at, [sizes[at], self.sizes[at]]))
            }
            None => Ok(()),
        }
    }
}

impl StateTensor {
    /// Makes master weights from the elements of a tensor.
    #[cfg(feature = "half")]
    pub(crate) fn new<W: StateElem, S: Dims, R: Rank>(tensor: Named<W, S, R>) -> Result<Self, DimError> {
        let axes = StateAxes::of(&tensor);
        let order = tensor.expr.order_in_memory();
        let tensor = lying_otherwise(&tensor, &order)?.unwrap_or(tensor);
        Ok(StateTensor { axes, order: order[..].into(), elements: W::elements(tensor.expr.into_buffer()) })
    }

    /// A state tensor from elements that are contiguous in this order of axes.
    #[cfg(feature = "safetensors")]
    pub(crate) fn in_order<W: StateElem>(axes: StateAxes, order: &[usize], elements: Vec<W>) -> Self {
        StateTensor { axes, order: order.into(), elements: W::elements(elements.into()) }
    }

    /// Zeros, with the axes in this memory order. `None` if they do not fit into memory.
    pub(super) fn zeros<W: StateElem>(axes: &StateAxes, order: AxisNumbers) -> Option<Self> {
        let len = volume(axes.sizes.iter().copied(), size_of::<W>())?;
        let mut data = reserve::<W>(len).ok()?;
        data.resize(len, W::ZERO);
        Some(StateTensor { axes: axes.clone(), order, elements: W::elements(data.into()) })
    }

    pub(crate) fn keys(&self) -> &[DimKey] {
        self.axes.keys.as_slice()
    }

    pub(super) fn axes(&self) -> &StateAxes {
        &self.axes
    }

    /// The sizes of the dims, then those of the positional axes.
    pub fn sizes(&self) -> &[usize] {
        &self.axes.sizes
    }

    /// The tensor, if it has this element type and these dims, and no positional axes. It shares
    /// its memory with the state (copy on write).
    pub fn tensor<T: Element, S: Dims>(&self) -> Option<Named<T, S>> {
        self.typed()
    }

    /// Like [`tensor`](StateTensor::tensor), with positional axes.
    fn typed<T: Element, S: Dims, R: Rank>(&self) -> Option<Named<T, S, R>> {
        let data: &dyn Any = match &self.elements {
            StateElements::F32(data) => data,
            StateElements::F64(data) => data,
        };
        let data = data.downcast_ref::<Buffer<T>>()?;
        if !self.axes.keys.are(S::KEYS.as_slice())
            || self.order.len() != self.axes.keys.as_slice().len() + R::N
        {
            return None;
        }
        let sizes: AxisNumbers = self.order.iter().map(|&at| self.axes.sizes[at]).collect();
        let tensor = Evaluated::in_order(data.clone(), &self.order, &sizes);
        Some(Named::from_expr(tensor.with_origin(None)))
    }

    /// Reorders the axes in memory, for a state with all axes of its parameter.
    pub(super) fn lie_along<S: Dims, R: Rank>(&mut self, order: &[usize]) -> Result<(), DimError> {
        if self.order[..] == *order {
            return Ok(());
        }
        self.elements = match &self.elements {
            StateElements::F32(_) => self.lying_along::<f32, S, R>(order)?,
            StateElements::F64(_) => self.lying_along::<f64, S, R>(order)?,
        };
        self.order = order.into();
        Ok(())
    }

    fn lying_along<W: StateElem, S: Dims, R: Rank>(
        &self,
        order: &[usize],
    ) -> Result<StateElements, DimError> {
        let Some(tensor) = self.typed::<W, S, R>() else { return Ok(self.elements.clone()) };
        Ok(match lying_otherwise(&tensor, order)? {
            Some(copy) => W::elements(copy.expr.into_buffer()),
            None => self.elements.clone(),
        })
    }

    /// Reorders the axes in memory, for a state that may lack axes of its parameter.
    pub(super) fn reorder(&mut self, order: &[usize]) -> Result<(), DimError> {
        if self.order[..] == *order {
            return Ok(());
        }
        // From here on, the axes are numbered in the requested order.
        let sizes: AxisNumbers = order.iter().map(|&axis| self.axes.sizes[axis]).collect();
        let number =
            |axis: &usize| order.iter().position(|own| own == axis).expect("the order has each axis once");
        let stored: AxisNumbers = self.order.iter().map(number).collect();
        self.elements = match &self.elements {
            StateElements::F32(data) => StateElements::F32(in_order_of_axes(data, &sizes, &stored)?),
            StateElements::F64(data) => StateElements::F64(in_order_of_axes(data, &sizes, &stored)?),
        };
        self.order = order.into();
        Ok(())
    }

    /// The elements in memory, or `None` if they have another type.
    pub(super) fn buffer<W: StateElem>(&self) -> Option<&Buffer<W>> {
        W::of(&self.elements)
    }

    /// Like [`buffer`](StateTensor::buffer), mutably. The number of elements must not change.
    pub(super) fn buffer_mut<W: StateElem>(&mut self) -> Option<&mut Buffer<W>> {
        W::of_mut(&mut self.elements)
    }

    /// Names the axes of the elements in the recorded step that computed them, if there is one.
    pub(super) fn name_axes(&self) {
        #[cfg(feature = "std")]
        if let Some(node) = self.held().node() {
            let axis = |&at: &usize| node_axis(self.axes.keys.as_slice(), at, self.axes.sizes[at]);
            node.lies_along(|| self.order.iter().map(axis).collect());
        }
    }

    /// The elements in memory order, or `None` if they have another type.
    pub(super) fn elements_mut<W: StateElem>(&mut self) -> Option<&mut [W]> {
        W::of_mut(&mut self.elements).map(|data| &mut data[..])
    }

    /// Like [`elements_mut`](StateTensor::elements_mut), immutably.
    pub(super) fn elements<W: StateElem>(&self) -> Option<&[W]> {
        W::of(&self.elements).map(|data| &data[..])
    }

    #[cold]
    pub(super) fn of_other_elements() -> DimError {
        DimError::Shape { what: "the state of a parameter has the wrong element type: it must be `f64` for a parameter of `f64`, otherwise `f32`".into() }
    }

    /// Whether the elements depend on inputs of a recorded function.
    pub(super) fn is_recorded(&self) -> bool {
        match &self.elements {
            StateElements::F32(data) => is_recorded(data),
            StateElements::F64(data) => is_recorded(data),
        }
    }

    /// Returns an error if a gradient or a recorded function traces the elements.
    pub(super) fn check_taken(&self, operation: &'static str) -> Result<(), DimError> {
        match &self.elements {
            StateElements::F32(data) => check_taken(data, operation),
            StateElements::F64(data) => check_taken(data, operation),
        }
    }

    #[cfg(feature = "std")]
    pub(super) fn held(&self) -> Arc<dyn Held> {
        match &self.elements {
            StateElements::F32(data) => data.held(),
            StateElements::F64(data) => data.held(),
        }
    }

    /// Replaces the elements. The new ones must be in the same memory order.
    #[cfg(feature = "std")]
    pub(super) fn replace(&mut self, held: &Arc<dyn Held>) {
        let same = "a state keeps its type";
        self.elements = match &self.elements {
            StateElements::F32(_) => StateElements::F32(Buffer::of_held(held).expect(same)),
            StateElements::F64(_) => StateElements::F64(Buffer::of_held(held).expect(same)),
        };
        self.name_axes();
    }

    /// The elements as one line, in the order of the axes, the last axis fastest.
    pub(super) fn line(&self) -> Result<StateLine, DimError> {
        Ok(match &self.elements {
            StateElements::F32(data) => StateLine::F32(flat(self.in_line(data)?)),
            StateElements::F64(data) => StateLine::F64(flat(self.in_line(data)?)),
        })
    }

    fn in_line<W: StateElem>(&self, data: &Buffer<W>) -> Result<Buffer<W>, DimError> {
        if self.order.iter().copied().eq(0..self.order.len()) {
            return Ok(data.clone());
        }
        in_order_of_axes(data, &self.axes.sizes, &self.order)
    }

    /// A state tensor with the same axes and the elements of `line`, which are in the order of the
    /// axes.
    ///
    /// # Errors
    ///
    /// If the line has another length, or if a copy of its elements does not fit into memory.
    pub(super) fn with_line(&self, line: StateLine) -> Result<Self, DimError> {
        let elements = match line {
            StateLine::F32(line) => StateElements::F32(elements_of(line)?),
            StateLine::F64(line) => StateElements::F64(elements_of(line)?),
        };
        let len = |elements: &StateElements| match elements {
            StateElements::F32(data) => data.len(),
            StateElements::F64(data) => data.len(),
        };
        let (found, needed) = (len(&elements), len(&self.elements));
        if found != needed {
            let what = format!("a tensor of an optimizer's state needs {needed} elements, but has {found}");
            return Err(DimError::Shape { what });
        }
        Ok(StateTensor { axes: self.axes.clone(), order: (0..self.order.len()).collect(), elements })
    }

    /// The elements in the order of the axes, the last axis fastest. `None` if they have
    /// another type.
    #[cfg(feature = "safetensors")]
    pub(crate) fn in_order_of_axes<W: StateElem>(&self) -> Option<Cow<'_, [W]>> {
        let data = W::of(&self.elements)?;
        if self.order.iter().copied().eq(0..self.order.len()) {
            return Some(Cow::Borrowed(data));
        }
        Some(Cow::Owned(copied_in_order_of_axes(data, &self.axes.sizes, &self.order)))
    }
}

/// Reorders elements, which are contiguous in this `order`, into the order of the axes.
fn in_order_of_axes<W: StateElem>(
    data: &Buffer<W>,
    sizes: &[usize],
    order: &[usize],
) -> Result<Buffer<W>, DimError> {
    #[cfg(feature = "std")]
    if data.is_traced() {
        let held = reordered(&data.held(), sizes, order)?;
        return Ok(Buffer::of_held(&held).expect("the step has the type of its operand"));
    }
    Ok(copied_in_order_of_axes(data, sizes, order).into())
}

pub(crate) fn copied_in_order_of_axes<W: Copy>(data: &[W], sizes: &[usize], order: &[usize]) -> Vec<W> {
    let mut strides: AxisNumbers = SmallVec::from_elem(0, sizes.len());
    let mut step = 1;
    for &at in order.iter().rev() {
        strides[at] = step;
        step *= sizes[at];
    }
    let (Some((&last, sizes)), Some((&along, strides))) = (sizes.split_last(), strides.split_last()) else {
        return data.to_vec();
    };
    let mut out = Vec::with_capacity(data.len());
    let mut at: AxisNumbers = SmallVec::from_elem(0, sizes.len());
    let mut odometer = Odometer::new(sizes);
    while !odometer.is_done() {
        let first: usize = at.iter().zip(strides).map(|(&at, &stride)| at * stride).sum();
        out.extend((0..last).map(|x| data[first + x * along]));
        odometer.advance(&mut at);
    }
    out
}

/// A copy of a tensor, with elements that are contiguous in this order of axes. `None` if the
/// elements of `tensor` already are.
pub(super) fn lying_otherwise<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    order: &[usize],
) -> Result<Option<Named<T, S, R>>, DimError> {
    if tensor.expr.is_contiguous(order) {
        return Ok(None);
    }
    let shape = tensor.unified_shape()?;
    Ok(Some(Named::from_expr(evaluate_tensor_in::<S, R, _>(&tensor.expr, &shape, order)?)))
}
