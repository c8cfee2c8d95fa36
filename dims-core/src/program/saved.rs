//! Comparing and saving programs.

#[cfg(feature = "serde")]
mod formats;

use super::inputs::RecordInputs;
use super::open::{OpenDims, OpenProgram};
use super::record::{Program, ProgramParts};
use super::result::{ResultLayout, setting, strided};
use super::signature::{
    InputPath, InputSetting, InputSignature, InputTensor, RecordedDims, RecordedSetting, StateLineAxes,
    are_named, other_dims,
};
use crate::error::DimError;
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::type_name;
use core::fmt::Debug;
use core::marker::PhantomData;
use kernels::memory::axes::{Axis, is_within};
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::saved::FARTHEST;
use kernels::trace::{Listing, Numeral, Recording, SavedRecording};

/// A program as plain data, to be saved with `serde` (feature `serde`): see [`Program::to_saved`].
///
/// Two saved programs are equal if they have the same inputs, steps, constants, settings and
/// results. Source locations do not count.
#[derive(Clone, Debug)]
pub struct SavedProgram {
    /// The program for its sizes, or for the recorded sizes if some dims are dynamic.
    pub(super) content: SavedContent,
    /// The dynamic dims, if there are any.
    pub(super) open: Option<OpenDims>,
    pub(super) listing: Listing,
}

impl PartialEq for SavedProgram {
    fn eq(&self, other: &Self) -> bool {
        (&self.content, &self.open) == (&other.content, &other.open)
    }
}

#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SavedContent {
    pub(super) recording: SavedRecording,
    inputs: Vec<SavedInput>,
    settings: Vec<SavedSetting>,
    results: Vec<SavedResult>,
    settings_of_results: Vec<SavedSetting>,
}

/// A tensor of the inputs.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavedInput {
    path: InputPath,
    dtype: DType,
    /// The names of the dims, in order. For an optimizer's state, the dims of the axes in `state`.
    dims: Vec<String>,
    sizes: Vec<usize>,
    /// The axes from the outermost in memory to the innermost.
    order: Vec<usize>,
    /// The sizes of the axes, if the tensor is an optimizer's state, which is one line of elements.
    state: Option<Vec<usize>>,
}

/// A setting, with its value as `Debug` writes it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavedSetting {
    path: InputPath,
    name: String,
    value: String,
}

/// A tensor of the results.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct SavedResult {
    start: usize,
    /// The names of the dims, as in `SavedInput`.
    dims: Vec<String>,
    sizes: Vec<usize>,
    strides: Vec<isize>,
    /// The sizes of the axes of an optimizer's state, as in `SavedInput`.
    state: Option<Vec<usize>>,
}

fn saved_settings(settings: &[InputSetting]) -> Vec<SavedSetting> {
    let saved = |InputSetting { path, name, value }: &InputSetting| SavedSetting {
        path: path.clone(),
        name: name.clone().into_owned(),
        value: value.text(),
    };
    settings.iter().map(saved).collect()
}

fn restored_settings(settings: &[SavedSetting]) -> Vec<InputSetting> {
    let restored = |SavedSetting { path, name, value }: &SavedSetting| InputSetting {
        path: path.clone(),
        name: Cow::Owned(name.clone()),
        value: RecordedSetting::Text(value.clone()),
    };
    settings.iter().map(restored).collect()
}

fn damaged(what: &str) -> DimError {
    DimError::Shape { what: format!("the saved program is damaged: {what}") }
}

impl SavedContent {
    /// Calls `visit` with the sizes of all inputs, and with the starts, sizes and strides of all
    /// results.
    pub(super) fn sizes(&mut self, visit: &mut dyn FnMut(Numeral<'_>)) {
        for SavedInput { sizes, state, .. } in &mut self.inputs {
            let sizes = sizes.iter_mut().chain(state.iter_mut().flatten());
            sizes.for_each(|size| visit(Numeral::Unsigned(size)));
        }
        for SavedResult { start, sizes, strides, state, .. } in &mut self.results {
            visit(Numeral::Unsigned(start));
            let sizes = sizes.iter_mut().chain(state.iter_mut().flatten());
            sizes.for_each(|size| visit(Numeral::Unsigned(size)));
            strides.iter_mut().for_each(|stride| visit(Numeral::Signed(stride)));
        }
    }

    /// Whether the results have optimizer state of the same sizes as those of `other`.
    pub(super) fn has_states_of(&self, other: &Self) -> bool {
        let states = |own: &Self| own.results.iter().map(|own| own.state.clone()).collect::<Vec<_>>();
        states(self) == states(other)
    }

    /// Calls `visit` with the numbers of [`sizes`](Self::sizes), then with those of the recording.
    pub(super) fn numbers(&mut self, visit: &mut dyn FnMut(Numeral<'_>)) {
        self.sizes(visit);
        self.recording.numbers(visit);
    }

    fn new(
        recording: SavedRecording,
        signature: &InputSignature,
        layouts: &[ResultLayout],
        settings: &[InputSetting],
    ) -> Self {
        let state = |line: &Option<StateLineAxes>| line.as_ref().map(|line| line.sizes().to_vec());
        let input = |InputTensor { path, dtype, dims, sizes, order, line, .. }: &InputTensor| SavedInput {
            path: path.clone(),
            dtype: *dtype,
            dims: line.as_ref().map_or(dims, StateLineAxes::dims).names(),
            sizes: sizes.to_vec(),
            order: order.to_vec(),
            state: state(line),
        };
        let names = |keys: &Keys| keys.as_slice().iter().map(|key| key.name.into()).collect();
        let result = |ResultLayout { keys, start, sizes, strides, line, .. }: &ResultLayout| SavedResult {
            start: *start,
            dims: line.as_ref().map_or_else(|| names(keys), |line| line.dims().names()),
            sizes: sizes.to_vec(),
            strides: strides.to_vec(),
            state: state(line),
        };
        SavedContent {
            recording,
            inputs: signature.tensors.iter().map(input).collect(),
            settings: saved_settings(&signature.settings),
            results: layouts.iter().map(result).collect(),
            settings_of_results: saved_settings(settings),
        }
    }

    /// The signature of the inputs. Returns an error if it does not fit the recording.
    pub(super) fn signature(&self) -> Result<InputSignature, DimError> {
        let types: Vec<(DType, usize)> = self.recording.inputs().collect();
        if types.len() != self.inputs.len() {
            return Err(damaged("the number of inputs is not the number that the steps read"));
        }
        let mut tensors = Vec::new();
        for (SavedInput { path, dtype, dims, sizes, order, state }, (own, len)) in
            self.inputs.iter().zip(types)
        {
            let is_order = order.len() == sizes.len() && (0..sizes.len()).all(|axis| order.contains(&axis));
            let is_line = is_line_of(state.as_deref(), sizes, *dtype);
            check_dims(dims, state.as_deref().unwrap_or(sizes))?;
            if own != *dtype || volume(sizes, dtype.bytes()) != Some(len) || !is_order || !is_line {
                return Err(damaged("an input differs in its type or its sizes from what the steps read"));
            }
            let (path, sizes, order) = (path.clone(), sizes.as_slice().into(), order.as_slice().into());
            tensors.push(InputTensor {
                path,
                dtype: *dtype,
                dims: RecordedDims::Names(if state.is_none() { dims.clone() } else { Vec::new() }),
                sizes,
                order,
                is_traced: false,
                line: state.as_deref().map(|state| StateLineAxes::restored(dims, state)),
            });
        }
        Ok(InputSignature { tensors, settings: restored_settings(&self.settings), line: None })
    }

    /// The layout of each result, without its dims. Returns an error if they do not fit the
    /// recording.
    pub(super) fn layouts(&self) -> Result<Vec<ResultLayout>, DimError> {
        let types: Vec<(DType, usize)> = self.recording.results().collect();
        if types.len() != self.results.len() {
            return Err(damaged("there are more or fewer results than steps compute"));
        }
        let layout = |(SavedResult { start, dims, sizes, strides, state }, (dtype, len)): (
            &SavedResult,
            (DType, usize),
        )| {
            check_dims(dims, state.as_deref().unwrap_or(sizes))?;
            let axes = || sizes.iter().copied().zip(strides.iter().copied());
            let is_known = sizes.len() == strides.len()
                && volume(sizes, dtype.bytes()).is_some()
                && is_line_of(state.as_deref(), sizes, dtype)
                && are_near(*start, axes())
                && is_within(len, *start as i128, axes())
                && are_apart(axes());
            if !is_known {
                return Err(damaged("a result has elements that no step computes"));
            }
            let (start, sizes, strides) = (*start, sizes.as_slice().into(), strides.as_slice().into());
            let line = state.as_deref().map(|state| StateLineAxes::restored(dims, state));
            Ok(ResultLayout {
                dtype: Some(dtype),
                keys: <()>::KEYS,
                start,
                sizes,
                strides,
                line,
                origin: None,
            })
        };
        self.results.iter().zip(types).map(layout).collect()
    }
}

/// Checks that a tensor does not have more dims than axes.
fn check_dims(dims: &[String], sizes: &[usize]) -> Result<(), DimError> {
    if dims.len() > sizes.len() {
        return Err(damaged("a tensor has more dims than axes"));
    }
    Ok(())
}

/// Whether a tensor with these sizes can be an optimizer's state with axes of the sizes `state`,
/// which must be one line of all its elements. True if `state` is `None`, for other tensors.
fn is_line_of(state: Option<&[usize]>, sizes: &[usize], dtype: DType) -> bool {
    state.is_none_or(|state| sizes.len() == 1 && volume(state, dtype.bytes()) == Some(sizes[0]))
}

/// Whether all positions are small enough for sums of strides not to overflow. Each axis is given
/// as a size and a stride. (Nothing else limits the strides of axes with at most one element.)
fn are_near(start: usize, axes: impl Iterator<Item = (usize, isize)>) -> bool {
    let reach = |(size, stride): (usize, isize)| size.max(1) as i128 * stride.unsigned_abs() as i128;
    axes.map(reach).fold(start as i128, i128::saturating_add) <= FARTHEST as i128
}

/// Whether different positions along axes (each a size and a stride) are known to be different
/// elements, except along axes with stride 0. Without this, a result could not be changed in place.
fn are_apart(axes: impl Iterator<Item = (usize, isize)> + Clone) -> bool {
    if axes.clone().any(|(size, _)| size == 0) {
        return true;
    }
    let reach = |(size, stride): (usize, isize)| {
        let stride = stride.unsigned_abs();
        (size > 1 && stride > 0).then(|| (stride, stride.saturating_mul(size - 1)))
    };
    let mut reaches: Vec<(usize, usize)> = axes.filter_map(reach).collect();
    reaches.sort_unstable();
    let mut inner = 0_usize;
    reaches.into_iter().all(|(stride, reach)| {
        let is_outside = stride > inner;
        inner = inner.saturating_add(reach);
        is_outside
    })
}

/// The product of sizes. `None` if that many elements cannot be addressed. For this check, a size
/// of 0 counts as 1.
fn volume(sizes: &[usize], bytes: usize) -> Option<usize> {
    let all = sizes.iter().try_fold(bytes.max(1), |all: usize, &size| all.checked_mul(size.max(1)))?;
    isize::try_from(all).ok()?;
    Some(sizes.iter().product())
}

impl<In, Out> Program<In, Out> {
    /// The program as plain data, with copies of its constants.
    ///
    /// With the feature `serde`, the data can be written in any format of `serde`, with a version
    /// number. [`SavedProgram::restore`] converts it back to a program.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::program::{Program, record};
    ///
    /// dims! { pub struct Row; }
    /// type Line = Tensor<f32, (Row,)>;
    ///
    /// let x: Line = ones(Row.of(3));
    /// let program = record(|x: &Line| (x * 2.0).eval(), &x)?;
    /// let saved = program.to_saved()?;
    /// let restored: Program<&Line, Line> = saved.restore(&x)?;
    /// assert!(restored == program);
    /// assert_eq!(restored.call(&x), program.call(&x));
    /// # Ok::<(), DimError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a step calls a user-defined function (the error names the operation), or
    /// if the elements of a constant have a type that programs do not know.
    pub fn to_saved(&self) -> Result<SavedProgram, DimError> {
        if let Some(open) = &self.open {
            return Ok(open.to_saved());
        }
        Ok(self.parts.saved_as(self.parts.recording.saved()?))
    }
}

impl ProgramParts {
    /// The program as plain data, with its recording saved already.
    pub(super) fn saved_as(&self, recording: SavedRecording) -> SavedProgram {
        let content = SavedContent::new(recording, &self.signature, &self.layouts, &self.settings);
        SavedProgram { content, open: None, listing: self.listing.clone() }
    }
}

/// Programs are equal if they have the same steps, constants, inputs, settings and results. Source
/// locations do not count. Constants are compared bit by bit.
///
/// A program that [cannot be saved](Program::to_saved) is equal only to itself.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::record;
///
/// dims! { pub struct Row; }
/// type Line = Tensor<f32, (Row,)>;
///
/// let x: Line = ones(Row.of(3));
/// let scaled = |by: f32| record(move |x: &Line| (x * by).eval(), &x);
/// assert!(scaled(2.0)? == scaled(2.0)?);
/// assert!(scaled(2.0)? != scaled(3.0)?);
/// # Ok::<(), DimError>(())
/// ```
impl<In, Out> PartialEq for Program<In, Out> {
    fn eq(&self, other: &Self) -> bool {
        if core::ptr::eq(self, other) {
            return true;
        }
        match (self.to_saved(), other.to_saved()) {
            (Ok(own), Ok(other)) => own == other,
            _ => false,
        }
    }
}

impl SavedProgram {
    /// The program. `like` is a value with the structure and the sizes of the result, such as one
    /// that a call returned. Its elements do not matter. If dims are [dynamic](super::dynamic), its
    /// sizes do not matter either.
    ///
    /// The data need not be trusted: everything that steps rely on is checked. The inputs have the
    /// type `In`. Their paths, sizes and settings, and the names and the order of their dims, are
    /// checked when the program is called.
    ///
    /// # Errors
    ///
    /// Returns an error if the data is damaged, or if `like` has other tensors, dims, sizes or
    /// settings than the result.
    pub fn restore<In: RecordInputs, Out: Parameters>(
        &self,
        like: &Out,
    ) -> Result<Program<In, Out>, DimError> {
        self.restored(like, true)
    }

    /// Like [`restore`](Self::restore). With `sized`, `like` must have the sizes of the result,
    /// unless some dims are dynamic.
    fn restored<In, Out: Parameters>(&self, like: &Out, sized: bool) -> Result<Program<In, Out>, DimError> {
        let recording = self.content.recording.restore()?;
        let mut like_results = ResultsLike {
            layouts: self.content.layouts()?.into_iter(),
            results: self.content.results.iter(),
            settings: self.content.settings_of_results.iter(),
            found: Vec::new(),
            sized: sized && self.open.is_none(),
            line: None,
        };
        let result = Out::walk([like], &mut Path::new(), &mut like_results)?;
        let parts = self.parts(recording, like_results.finish()?)?;
        let open = self.open.clone();
        let open = open.map(|open| OpenProgram::new(self.content.clone(), open, self.listing.clone()));
        Ok(Program { parts, result, open, inputs: PhantomData })
    }

    fn parts(&self, recording: Recording, layouts: Vec<ResultLayout>) -> Result<ProgramParts, DimError> {
        let (signature, settings) =
            (self.content.signature()?, restored_settings(&self.content.settings_of_results));
        Ok(ProgramParts { recording, signature, layouts, settings, listing: self.listing.clone() })
    }

    /// The parts of the program, with results of the same types as those of another program.
    pub(super) fn parts_like(&self, others: &[ResultLayout]) -> Result<ProgramParts, DimError> {
        let recording = self.content.recording.restore()?;
        let mut layouts = self.content.layouts()?;
        if layouts.len() != others.len() {
            return Err(damaged("there are more or fewer results for these sizes"));
        }
        for (at, (own, other)) in layouts.iter_mut().zip(others).enumerate() {
            if !own.has_type(other.dtype, other.keys, other.sizes.len()) || own.line != other.line {
                return Err(damaged(&format!("result {at} has other dims or elements for these sizes")));
            }
            own.keys = other.keys;
        }
        self.parts(recording, layouts)
    }
}

/// Makes tensors that have the saved sizes of the results and own one element each.
struct ResultsLike<'s> {
    layouts: alloc::vec::IntoIter<ResultLayout>,
    results: core::slice::Iter<'s, SavedResult>,
    settings: core::slice::Iter<'s, SavedSetting>,
    found: Vec<ResultLayout>,
    /// Whether the tensors must have the saved sizes. (An optimizer also stores the sizes of its
    /// state outside of its tensors, and a walk does not change these.)
    sized: bool,
    /// The axes of the next tensor, if it is an optimizer's state.
    line: Option<StateLineAxes>,
}

impl ResultsLike<'_> {
    /// The layouts of all results. Returns an error if the value has fewer tensors or settings than
    /// the saved result.
    fn finish(mut self) -> Result<Vec<ResultLayout>, DimError> {
        if self.layouts.next().is_some() || self.settings.next().is_some() {
            return Err(DimError::Shape {
                what: "the saved program has more results or settings than the given value".into(),
            });
        }
        Ok(self.found)
    }

    /// The layout of the next tensor, which must have this element type, these dims and these axes.
    /// `name` is the name of the element type, for messages.
    fn next(
        &mut self,
        path: &Path,
        (dtype, name): (Option<DType>, &str),
        keys: &'static Keys,
        axes: [&[Axis]; 2],
    ) -> Result<ResultLayout, DimError> {
        let line = self.line.take();
        let sizes: Vec<usize> = axes.into_iter().flatten().map(|axis| axis.size).collect();
        let (Some(layout), Some(saved)) = (self.layouts.next(), self.results.next()) else {
            let what = format!("{} is not in the saved program", InputPath::new(path).named("result"));
            return Err(DimError::Shape { what });
        };
        let is_fit = layout.has_type(dtype, keys, sizes.len())
            && layout.line == line
            && (!self.sized || sizes[..] == layout.sizes[..]);
        let is_named = line.is_some() || are_named(keys.as_slice(), &saved.dims);
        if is_fit && is_named {
            return Ok(ResultLayout { keys, ..layout });
        }
        let result = InputPath::new(path).named("result");
        let what = match layout.dtype {
            Some(own) if dtype != Some(own) => {
                format!("{result} has elements of `{name}`, but the program was saved with `{}`", own.name())
            }
            _ if !is_named => other_dims(&result, keys.as_slice(), &saved.dims),
            _ => format!("{result} has other axes or sizes than that of the saved program"),
        };
        Err(DimError::Shape { what })
    }
}

impl Walk<1> for ResultsLike<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let dtype = (DType::of::<T>(), type_name::<T>());
        let layout = self.next(path, dtype, S::KEYS, tensor.expr.axis_slices())?;
        let change = |at: usize, axis: &mut Axis| *axis = Axis::new(layout.sizes[at], 0);
        let own = strided(tensor, alloc::vec![T::default()], 0, &change, None);
        self.found.push(layout);
        Ok(own)
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
        let InputSetting { path, name, value } = setting(path, name, Box::new(value.clone()));
        let what = match self.settings.next() {
            Some(own) if own.path == path && own.name == name && own.value == value.text() => return Ok(()),
            Some(own) if own.path == path && own.name == name => {
                format!("is {}, but the value of the saved result is {}", value.text(), own.value)
            }
            _ => String::from("is not in the saved result"),
        };
        Err(DimError::Shape { what: format!("the setting `{name}` of {} {what}", path.named("result")) })
    }
}
