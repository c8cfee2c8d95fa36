//! The tensors of a program's result: where their elements come from, and how they are laid out.

use super::signature::{InputPath, InputSetting, RecordedSetting, SettingValue, StateLineAxes};
use crate::error::{DimError, Origin};
use crate::grad::parameters::{Path, Walk};
use crate::storage::axes::AxisBlock;
use crate::storage::evaluated::{Evaluated, IntoElements};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::iter::Zip;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::Held;
use smallvec::SmallVec;

/// Collects the memory and the layout of each tensor of a result, and the settings. The walk
/// returns a value with the same sizes. Its tensors own one element each, except for the state of
/// optimizers, which owns all its elements.
#[derive(Default)]
pub(super) struct RecordedResults {
    /// The axes of the next tensor, if it is an optimizer's state.
    line: Option<StateLineAxes>,
    pub(super) held: Vec<Arc<dyn Held>>,
    pub(super) layouts: Vec<ResultLayout>,
    pub(super) settings: Vec<InputSetting>,
}

/// The type of a tensor, and its layout.
pub(super) struct ResultLayout {
    /// `None` if programs do not know the type of the elements.
    pub(super) dtype: Option<DType>,
    pub(super) keys: &'static Keys,
    pub(super) start: usize,
    /// The sizes, dims first.
    pub(super) sizes: SmallVec<[usize; 8]>,
    /// The strides, in the order of `sizes`.
    pub(super) strides: SmallVec<[isize; 8]>,
    /// The axes, if the tensor is an optimizer's state.
    pub(super) line: Option<StateLineAxes>,
    pub(super) origin: Origin,
}

/// The error for a tensor of a result that does not have the recorded dims or elements.
#[cold]
fn unrecorded_result(path: &Path) -> DimError {
    let result = InputPath::new(path).named("result");
    DimError::Shape { what: format!("{result} has other dims or elements than were recorded") }
}

/// The sizes and the strides of axes: those of the dims, and the positional ones.
fn sizes_and_strides(axes: [&[Axis]; 2]) -> (SmallVec<[usize; 8]>, SmallVec<[isize; 8]>) {
    axes.into_iter().flatten().map(|axis| (axis.size, axis.stride)).unzip()
}

impl ResultLayout {
    /// Whether a tensor with this element type, these dims and this number of axes can have this
    /// layout. Dims with a static size must have that size in the layout, and primes the sizes of
    /// their dims.
    pub(super) fn has_type(&self, dtype: Option<DType>, keys: &Keys, axes: usize) -> bool {
        let fits = |(key, &size): (&DimKey, &usize)| key.fixed.is_none_or(|fixed| fixed == size);
        self.dtype == dtype
            && self.sizes.len() == axes
            && axes >= keys.as_slice().len()
            && keys.as_slice().iter().zip(&self.sizes).all(fits)
            && keys.check_primes(|at| (self.sizes[at], None)).is_ok()
    }

    /// Returns an error if a tensor of a result cannot have this layout. (A user's implementation
    /// of `Parameters::walk` can visit other tensors in a call than it did in the recording.)
    fn check<T: Element, S: Dims, R: Rank>(&self, path: &Path) -> Result<(), DimError> {
        self.check_type(path, DType::of::<T>(), S::KEYS, S::KEYS.as_slice().len() + R::N)
    }

    fn check_type(
        &self,
        path: &Path,
        dtype: Option<DType>,
        keys: &Keys,
        axes: usize,
    ) -> Result<(), DimError> {
        let is_same = self.keys.is_same(keys) && self.has_type(dtype, keys, axes);
        if is_same { Ok(()) } else { Err(unrecorded_result(path)) }
    }
}

impl Walk<1> for RecordedResults {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let expr = &tensor.expr;
        let (sizes, strides) = sizes_and_strides(expr.axis_slices());
        let layout = ResultLayout {
            dtype: DType::of::<T>(),
            keys: S::KEYS,
            start: expr.start(),
            sizes,
            strides,
            line: self.line.take(),
            origin: expr.origin(),
        };
        self.held.push(expr.buffer().held());
        self.layouts.push(layout);
        Ok(strided(tensor, alloc::vec![T::default()], 0, &|_, axis| axis.stride = 0, None))
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.line = Some(StateLineAxes::new(keys, sizes));
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        [value]: [&X; 1],
    ) -> Result<(), DimError> {
        self.settings.push(setting(path, name, Box::new(value.clone())));
        Ok(())
    }
}

/// A setting of a result.
pub(super) fn setting(path: &Path, name: &'static str, value: Box<dyn SettingValue>) -> InputSetting {
    let (path, name) = (InputPath::new(path), Cow::Borrowed(name));
    InputSetting { path, name, value: RecordedSetting::new(value) }
}

/// A tensor with other elements and the axes of `of`, modified by `change`.
pub(super) fn strided<T: Element, S: Dims, R: Rank, B: IntoElements<T>>(
    of: &Named<T, S, R>,
    data: B,
    start: usize,
    change: &dyn Fn(usize, &mut Axis),
    origin: Origin,
) -> Named<T, S, R> {
    let (mut named, mut positional) = (*of.expr.named(), *of.expr.positional());
    change_axes([named.as_mut_slice(), positional.as_mut_slice()], change);
    Named::from_expr(Evaluated::strided(data, start, named, positional, origin))
}

fn change_axes(axes: [&mut [Axis]; 2], change: &dyn Fn(usize, &mut Axis)) {
    axes.into_iter().flatten().enumerate().for_each(|(at, axis)| change(at, axis));
}

/// Replaces the tensors of a result with those that a call computed.
pub(super) struct CallResults<'p>(
    pub(super) Zip<alloc::vec::IntoIter<Arc<dyn Held>>, core::slice::Iter<'p, ResultLayout>>,
);

impl Walk<1> for CallResults<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let (held, layout) = self.0.next().ok_or_else(|| unrecorded_result(path))?;
        layout.check::<T, S, R>(path)?;
        let buffer = Buffer::of_held(&held).ok_or_else(|| unrecorded_result(path))?;
        let change = |at: usize, axis: &mut Axis| *axis = Axis::new(layout.sizes[at], layout.strides[at]);
        Ok(strided(tensor, buffer, layout.start, &change, layout.origin))
    }
}

/// Collects the memory of each tensor of a result, to be overwritten.
#[derive(Default)]
pub(super) struct ResultMemories(pub(super) Vec<Arc<dyn Held>>);

impl Walk<1> for ResultMemories {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.0.push(tensor.expr.buffer().held());
        Ok(tensor.clone())
    }
}

/// Replaces the tensors of a result, whose elements must be zeros, with zeros of the sizes in these
/// layouts.
pub(super) struct Zeros<'p>(pub(super) core::slice::Iter<'p, ResultLayout>);

impl Walk<1> for Zeros<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let layout = self.0.next().ok_or_else(|| unrecorded_result(path))?;
        if tensor.expr.sizes() == layout.sizes {
            return Ok(tensor.clone());
        }
        layout.check::<T, S, R>(path)?;
        let change = |at: usize, axis: &mut Axis| *axis = Axis::new(layout.sizes[at], 0);
        Ok(strided(tensor, alloc::vec![T::default()], 0, &change, layout.origin))
    }
}
