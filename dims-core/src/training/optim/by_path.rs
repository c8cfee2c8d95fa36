//! State by path: tensors that are kept for each parameter, in an element type of their own.

use super::scalars::StepsTaken;
use super::update::{Unchanged, lying_otherwise, sizes_of};
use crate::error::DimError;
#[cfg(feature = "half")]
use crate::expr::Unary;
use crate::expr::evaluate::laid_out;
#[cfg(feature = "half")]
use crate::expr::evaluate::laid_out_in;
use crate::expr::step::is_recorded;
use crate::grad::parameters::{Path, sizes_differ};
#[cfg(feature = "std")]
use crate::plan::explain::node_axis;
use crate::plan::shape::volume;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::types::rank::{Rank, Rank1};
use crate::types::set::{Dims, Keys};
use alloc::borrow::Cow;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, TypeId};
use core::fmt;
use kernels::loops::nest::Odometer;
use kernels::memory::allocate::reserve;
use kernels::memory::buffer::Buffer;
#[cfg(feature = "half")]
use kernels::ops::Map;
use kernels::scalar::{Element, Real};
#[cfg(all(feature = "std", feature = "half"))]
use kernels::trace::widened_elements;
#[cfg(feature = "std")]
use kernels::trace::{Held, reordered};
use smallvec::SmallVec;

/// What is kept for all parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByPath {
    /// In the order of a walk.
    parameters: Vec<ParameterState>,
    /// How many steps those have missed that are not in the list yet.
    missed: BTreeMap<String, u64>,
    /// Whether parameters of half precision have master weights.
    masters: bool,
    /// Whether there is nothing but master weights.
    only_masters: bool,
}

/// What an optimizer keeps for one parameter.
#[derive(Clone, Debug)]
pub struct ParameterState {
    pub(super) path: Path,
    /// How many steps of the optimizer the parameter was frozen for; nothing if it never was.
    pub(super) missed: Option<StepsTaken>,
    pub(super) axes: StateAxes,
    /// Whether the state is of `f64`.
    pub(super) double: bool,
    pub(super) moments: SmallVec<[StateTensor; 2]>,
    pub(super) master: Option<StateTensor>,
}

/// A tensor that an optimizer keeps for a parameter. It has the dims and sizes of the parameter, and elements of an own type: `f64` for a parameter of `f64`, and `f32` for
/// all others.
#[derive(Clone, Debug)]
pub struct StateTensor {
    axes: StateAxes,
    /// All axes, from the outermost one in memory to the innermost.
    order: AxisNumbers,
    elements: StateElements,
}

/// The axes of a parameter.
#[derive(Clone)]
pub(super) struct StateAxes {
    keys: &'static Keys,
    /// Of the dims, then of the positional axes.
    sizes: AxisNumbers,
}

type AxisNumbers = SmallVec<[usize; 4]>;

/// Elements of state, which lie contiguously.
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
    Ok(laid_out::<(), Rank1, _>(&line.expr, &shape)?.into_buffer())
}

/// Types of such elements.
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
    fn of<T: Element, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> Self {
        StateAxes { keys: S::KEYS, sizes: sizes_of(tensor).collect() }
    }

    /// Whether a set has these dims.
    fn has_dims<S: Dims>(&self) -> bool {
        let (own, others) = (self.keys.as_slice(), S::KEYS.as_slice());
        core::ptr::eq(own, others)
            || own.len() == others.len() && own.iter().zip(others).all(|(own, other)| own.same(other))
    }

    /// An error if a tensor has other sizes.
    fn check<T: Element, S: Dims, R: Rank>(
        &self,
        path: &Path,
        tensor: &Named<T, S, R>,
    ) -> Result<(), DimError> {
        if !self.has_dims::<S>() || self.sizes.len() != self.keys.as_slice().len() + R::N {
            let what = format!("the state of `{path}` is that of a tensor with other dims");
            return Err(DimError::Shape { what });
        }
        let mut sizes = sizes_of(tensor).zip(&self.sizes).enumerate();
        match sizes.find(|(_, (size, own))| size != *own) {
            Some((at, (size, &own))) => Err(sizes_differ(path, self.keys, at, size, own)),
            None => Ok(()),
        }
    }
}

impl StateTensor {
    /// Makes a state of the elements of a tensor, for master weights and for states read from checkpoints.
    #[cfg_attr(not(any(feature = "safetensors", feature = "half")), allow(dead_code))]
    pub(crate) fn new<W: StateElem, S: Dims, R: Rank>(tensor: Named<W, S, R>) -> Result<Self, DimError> {
        let axes = StateAxes::of(&tensor);
        let order = tensor.expr.order_in_memory();
        let tensor = lying_otherwise(&tensor, &order)?.unwrap_or(tensor);
        Ok(StateTensor { axes, order: order[..].into(), elements: W::elements(tensor.expr.into_buffer()) })
    }

    /// The keys of the dims.
    pub(crate) fn keys(&self) -> &'static Keys {
        self.axes.keys
    }

    /// The size of each dim, then those of the positional axes.
    pub fn sizes(&self) -> &[usize] {
        &self.axes.sizes
    }

    /// The tensor, if it has this element type and these dims, and no positional axes. It shares its memory with the state until one of both changes.
    pub fn tensor<T: Element, S: Dims>(&self) -> Option<Named<T, S>> {
        self.typed()
    }

    /// The same, with positional axes.
    fn typed<T: Element, S: Dims, R: Rank>(&self) -> Option<Named<T, S, R>> {
        let data: &dyn Any = match &self.elements {
            StateElements::F32(data) => data,
            StateElements::F64(data) => data,
        };
        let data = data.downcast_ref::<Buffer<T>>()?;
        if !self.axes.has_dims::<S>() || self.order.len() != self.axes.keys.as_slice().len() + R::N {
            return None;
        }
        let sizes: AxisNumbers = self.order.iter().map(|&at| self.axes.sizes[at]).collect();
        let tensor = Evaluated::in_order(data.clone(), &self.order, &sizes);
        Some(Named::from_expr(tensor.with_origin(None)))
    }

    /// Reorders the axes in memory.
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

    /// The elements in memory order, or `None` if they have another type.
    pub(super) fn elements_mut<W: StateElem>(&mut self) -> Option<&mut [W]> {
        W::of_mut(&mut self.elements).map(|data| &mut data[..])
    }

    /// Whether the elements depend on inputs of a recorded function.
    pub(super) fn is_recorded(&self) -> bool {
        match &self.elements {
            StateElements::F32(data) => is_recorded(data),
            StateElements::F64(data) => is_recorded(data),
        }
    }

    /// The memory of the elements.
    #[cfg(feature = "std")]
    pub(super) fn held(&self) -> Arc<dyn Held> {
        match &self.elements {
            StateElements::F32(data) => data.held(),
            StateElements::F64(data) => data.held(),
        }
    }

    /// The same axes with other elements in memory order.
    #[cfg(feature = "std")]
    pub(super) fn replace(&mut self, held: &Arc<dyn Held>) {
        if let Some(node) = held.node() {
            let axis = |&at: &usize| node_axis(self.axes.keys, at, self.axes.sizes[at]);
            node.lies_along(|| self.order.iter().map(axis).collect());
        }
        let same = "a state keeps its type";
        self.elements = match &self.elements {
            StateElements::F32(_) => StateElements::F32(Buffer::of_held(held).expect(same)),
            StateElements::F64(_) => StateElements::F64(Buffer::of_held(held).expect(same)),
        };
    }

    /// The elements as one line, in the order of the axes, the last one fastest.
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
        #[cfg(feature = "std")]
        if is_recorded(data) {
            let held = reordered(&data.held(), &self.axes.sizes, &self.order)?;
            return Ok(Buffer::of_held(&held).expect("the step has the type of its operand"));
        }
        Ok(self.in_order_of_axes::<W>().expect("the elements are of this type").into_owned().into())
    }

    /// The same axes with the elements of a line, in the order of the axes.
    ///
    /// # Panics
    ///
    /// Panics if the line has another length.
    pub(super) fn with_line(&self, line: StateLine) -> Result<Self, DimError> {
        let elements = match line {
            StateLine::F32(line) => StateElements::F32(elements_of(line)?),
            StateLine::F64(line) => StateElements::F64(elements_of(line)?),
        };
        let len = |elements: &StateElements| match elements {
            StateElements::F32(data) => data.len(),
            StateElements::F64(data) => data.len(),
        };
        assert_eq!(len(&elements), len(&self.elements), "an element for each position");
        Ok(StateTensor { axes: self.axes.clone(), order: (0..self.order.len()).collect(), elements })
    }

    /// The elements in the order of the axes, the last one fastest.
    pub(crate) fn in_order_of_axes<W: StateElem>(&self) -> Option<Cow<'_, [W]>> {
        let data = W::of(&self.elements)?;
        if self.order.iter().copied().eq(0..self.order.len()) {
            return Some(Cow::Borrowed(data));
        }
        let sizes = &self.axes.sizes;
        let mut strides: AxisNumbers = SmallVec::from_elem(0, sizes.len());
        let mut step = 1;
        for &at in self.order.iter().rev() {
            strides[at] = step;
            step *= sizes[at];
        }
        let (Some((&last, sizes)), Some((&along, strides))) = (sizes.split_last(), strides.split_last())
        else {
            return Some(Cow::Borrowed(data));
        };
        let mut out = Vec::with_capacity(data.len());
        let mut at: AxisNumbers = SmallVec::from_elem(0, sizes.len());
        let mut odometer = Odometer::new(sizes);
        while !odometer.is_done() {
            let first: usize = at.iter().zip(strides).map(|(&at, &stride)| at * stride).sum();
            out.extend((0..last).map(|x| data[first + x * along]));
            odometer.advance(&mut at);
        }
        Some(Cow::Owned(out))
    }
}

impl ParameterState {
    fn new<T: Element, S: Dims, R: Rank>(
        path: &Path,
        tensor: &Named<T, S, R>,
        missed: Option<StepsTaken>,
    ) -> Self {
        ParameterState {
            path: path.clone(),
            missed,
            axes: StateAxes::of(tensor),
            double: TypeId::of::<T>() == TypeId::of::<f64>(),
            moments: SmallVec::new(),
            master: None,
        }
    }

    /// A tensor of zeros, with the axes in this order.
    fn zeros(&self, order: AxisNumbers) -> Result<StateTensor, DimError> {
        fn of<W: StateElem>(sizes: &[usize]) -> Option<StateElements> {
            let len = volume(sizes.iter().copied(), size_of::<W>())?;
            let mut data = reserve::<W>(len).ok()?;
            data.resize(len, W::ZERO);
            Some(W::elements(data.into()))
        }
        let elements = if self.double { of::<f64>(&self.axes.sizes) } else { of::<f32>(&self.axes.sizes) };
        match elements {
            Some(elements) => Ok(StateTensor { axes: self.axes.clone(), order, elements }),
            None => Err(DimError::TooLarge { dims: format!("the state of `{}`", self.path) }),
        }
    }

    /// A moment; zeros before the first step of the parameter.
    #[cfg(feature = "safetensors")]
    pub(crate) fn moment(&self, at: usize) -> Result<Cow<'_, StateTensor>, DimError> {
        match self.moments.get(at) {
            Some(moment) => Ok(Cow::Borrowed(moment)),
            None => self.zeros((0..self.axes.sizes.len()).collect()).map(Cow::Owned),
        }
    }

    /// Adds a further moment.
    #[cfg(feature = "safetensors")]
    pub(crate) fn add_moment(&mut self, moment: StateTensor) {
        self.moments.push(moment);
    }

    #[cfg(feature = "safetensors")]
    pub(crate) fn set_master(&mut self, master: StateTensor) {
        self.master = Some(master);
    }

    /// Where the parameter is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the parameter.
    pub fn name(&self) -> String {
        self.path.to_string()
    }

    /// Whether the parameter has this name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.path.to_string() == name
    }

    /// The moments, in the order of [`Optimizer::moments`](super::Optimizer::moments); none before the first step of the parameter.
    pub fn moments(&self) -> &[StateTensor] {
        &self.moments
    }

    /// The parameter before it was rounded to half precision, if the optimizer keeps that: see [`Optimizer::master_weights`](super::Optimizer::master_weights).
    pub fn master(&self) -> Option<&StateTensor> {
        self.master.as_ref()
    }

    /// How many steps of the optimizer the parameter was frozen for.
    pub(super) fn missed(&self) -> u64 {
        self.missed.as_ref().map_or(0, StepsTaken::get)
    }

    /// How many steps of the optimizer the parameter was frozen for, its moments and its master.
    pub(super) fn parts(&mut self) -> (Option<&StepsTaken>, &mut [StateTensor], Option<&mut StateTensor>) {
        (self.missed.as_ref(), &mut self.moments, self.master.as_mut())
    }

    /// Makes ready for a step of a tensor, which needs `moments` and perhaps a master.
    fn prepare<T: Element, S: Dims, R: Rank>(
        &mut self,
        tensor: &Named<T, S, R>,
        moments: usize,
        master: bool,
    ) -> Result<(), DimError> {
        while self.moments.len() < moments {
            let zeros = self.zeros(tensor.expr.order_in_memory()[..].into())?;
            self.moments.push(zeros);
        }
        if !master {
            self.master = None;
        }
        #[cfg(feature = "half")]
        if master && is_half::<T>() && self.master.is_none() {
            self.master = Some(StateTensor::new(widened(tensor)?)?);
        }
        Ok(())
    }
}

/// Whether elements are of half precision.
fn is_half<T: Element>() -> bool {
    #[cfg(feature = "half")]
    let halves = [TypeId::of::<half::f16>(), TypeId::of::<half::bf16>()];
    #[cfg(not(feature = "half"))]
    let halves: [TypeId; 0] = [];
    halves.contains(&TypeId::of::<T>())
}

/// A tensor of half precision in `f32`, with its axes in the same order.
#[cfg(feature = "half")]
fn widened<T: Element, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> Result<Named<f32, S, R>, DimError> {
    #[cfg(feature = "std")]
    if is_recorded(tensor.expr.buffer()) {
        let order = tensor.expr.order_in_memory();
        let copy = lying_otherwise(tensor, &order)?;
        let own = &copy.as_ref().unwrap_or(tensor).expr;
        let wide = widened_elements(&own.buffer().held())?;
        let sizes: AxisNumbers = sizes_of(tensor).collect();
        let sizes: AxisNumbers = order.iter().map(|&at| sizes[at]).collect();
        let data = Buffer::of_held(&wide).expect("the step yields `f32`");
        return Ok(Named::from_expr(Evaluated::in_order(data, &order, &sizes).with_origin(None)));
    }
    let widen = |element: T| {
        let element: &dyn Any = &element;
        let wide = element.downcast_ref::<half::f16>().map(|a| a.to_f32());
        wide.or_else(|| element.downcast_ref::<half::bf16>().map(|a| a.to_f32())).expect("of half precision")
    };
    let shape = tensor.unified_shape()?;
    let wide = Unary { op: Map(widen), a: &tensor.expr };
    Ok(Named::from_expr(laid_out_in::<S, R, _>(wide, &shape, &tensor.expr.order_in_memory())?))
}

/// A number of missed steps.
fn missed_steps(missed: u64) -> Option<StepsTaken> {
    (missed > 0).then(|| StepsTaken::new(missed))
}

impl ByPath {
    /// Nothing yet; parameters of half precision get master weights.
    pub(crate) fn with_masters() -> Self {
        ByPath { masters: true, ..ByPath::default() }
    }

    /// The same, with nothing else.
    pub(super) fn of_masters() -> Self {
        ByPath { only_masters: true, ..ByPath::with_masters() }
    }

    pub(super) fn has_masters(&self) -> bool {
        self.masters
    }

    pub(super) fn set_masters(&mut self, masters: bool) {
        self.masters = masters;
    }

    pub(super) fn parameters(&self) -> &[ParameterState] {
        &self.parameters
    }

    pub(super) fn parameters_mut(&mut self) -> &mut [ParameterState] {
        &mut self.parameters
    }

    /// The same state with other parameters.
    pub(super) fn with_parameters(&self, parameters: Vec<ParameterState>) -> Self {
        ByPath { parameters, missed: self.missed.clone(), ..*self }
    }

    /// Goes on with what another one keeps.
    pub(super) fn restore(&mut self, other: ByPath) {
        let masters = self.masters;
        *self = ByPath { masters, ..other };
    }

    /// How many steps those have missed that are not in the list yet.
    pub(super) fn all_missed(&self) -> &BTreeMap<String, u64> {
        &self.missed
    }

    /// How many steps the parameter of this name has missed.
    pub(super) fn missed(&self, name: &str) -> u64 {
        match self.parameters.iter().find(|parameter| parameter.is_named(name)) {
            Some(parameter) => parameter.missed(),
            None => self.missed.get(name).copied().unwrap_or(0),
        }
    }

    pub(super) fn set_missed(&mut self, name: &str, missed: u64) {
        match self.parameters.iter_mut().find(|parameter| parameter.is_named(name)) {
            Some(parameter) => parameter.missed = missed_steps(missed),
            None => drop(self.missed.insert(name.to_owned(), missed)),
        }
    }

    /// Counts a step that those which stay as they are have missed.
    pub(super) fn miss(&mut self, unchanged: &Unchanged) {
        if unchanged.frozen.is_empty() {
            return;
        }
        for parameter in &mut self.parameters {
            if unchanged.has(&parameter.path) {
                parameter.missed.get_or_insert_default().add_one();
            }
        }
    }

    /// The place of a parameter in the list, which is most often the one that is asked `next`.
    fn place(&self, next: usize, path: &Path) -> Option<usize> {
        let is_of = |parameter: &ParameterState| parameter.path == *path;
        if self.parameters.get(next).is_some_and(is_of) {
            return Some(next);
        }
        self.parameters.iter().position(is_of)
    }
}

/// A walk along what is kept for the parameters.
pub(crate) struct StateWalk<'s> {
    by_path: &'s mut ByPath,
    next: usize,
    /// How many steps a parameter has missed that comes later than the others.
    late: Option<&'s StepsTaken>,
}

impl<'s> StateWalk<'s> {
    /// Starts at the first one, after so many steps.
    pub(crate) fn new(by_path: &'s mut ByPath, steps: Option<&'s StepsTaken>) -> Self {
        let late = if by_path.parameters.is_empty() { None } else { steps };
        StateWalk { by_path, next: 0, late }
    }

    /// What is kept for the next parameter.
    ///
    /// # Errors
    ///
    /// If it is kept for a tensor of other sizes.
    pub(crate) fn next<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        tensor: &Named<T, S, R>,
    ) -> Result<&mut ParameterState, DimError> {
        let place = self.by_path.place(self.next, path);
        let ByPath { parameters, missed, .. } = &mut *self.by_path;
        let place = match place {
            Some(place) => {
                parameters[place].axes.check(path, tensor)?;
                place
            }
            None => {
                let missed = match missed.remove(&path.to_string()) {
                    Some(missed) => missed_steps(missed),
                    None => self.late.cloned(),
                };
                let place = self.next.min(parameters.len());
                parameters.insert(place, ParameterState::new(path, tensor, missed));
                place
            }
        };
        self.next = place + 1;
        Ok(&mut parameters[place])
    }

    /// What is kept for the next parameter with elements of `T`, which was made [ready](StateWalk::prepare).
    pub(super) fn ready<T: Element>(&mut self, path: &Path) -> Option<&mut ParameterState> {
        if self.skips::<T>() {
            return None;
        }
        let place = self.by_path.place(self.next, path)?;
        self.next = place + 1;
        self.by_path.parameters.get_mut(place)
    }

    /// Whether nothing is kept for parameters with elements of `T`.
    fn skips<T: Element>(&self) -> bool {
        self.by_path.only_masters && !is_half::<T>()
    }

    /// Makes what is kept for the next parameter ready for a step, which needs so many moments. A parameter that `stays` as it is gets none.
    pub(super) fn prepare<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        tensor: &Named<T, S, R>,
        moments: usize,
        stays: bool,
    ) -> Result<(), DimError> {
        if self.skips::<T>() {
            return Ok(());
        }
        let masters = self.by_path.masters;
        let parameter = self.next(path, tensor)?;
        if stays { Ok(()) } else { parameter.prepare(tensor, moments, masters) }
    }
}
