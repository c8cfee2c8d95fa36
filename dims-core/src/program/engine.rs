//! Programs as data for engines that run them elsewhere, such as on a GPU; and the tensors of a
//! value as bytes.
//!
//! An engine gets a program from [`Program::to_engine`] and the elements of its inputs from
//! [`tensors_of`], and passes the elements of results to [`with_elements`]. Tensors are passed with
//! their axes in the order of the type: dims first, then positional axes, the last axis innermost.

pub use super::inputs::PartFamily;
use super::inputs::RecordInputs;
use super::record::Program;
use super::result::strided;
use super::signature::{InputPath, InputSetting, InputSignature, StateLineAxes, dense};
use crate::error::DimError;
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::type_name;
use kernels::error::Origin;
use kernels::memory::axes::Axis;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::saved;
use kernels::trace::{DescribedValue, Held, NodeAxis, SavedRecording};

/// A program as data: see [`Program::to_engine`].
#[derive(Clone, Debug)]
pub struct EngineProgram {
    /// The steps and constants.
    pub recording: SavedRecording,
    /// Describes the values of inputs, then those of steps.
    pub values: Vec<DescribedValue>,
    /// The tensors of the inputs. Their values come first in the recording.
    pub inputs: Vec<EngineInput>,
    /// The tensors of the results. Their values are the outputs of the recording.
    pub results: Vec<EngineResult>,
    /// The settings of the inputs, such as the decay of an average. The program is valid only for
    /// these.
    pub settings: Vec<EngineSetting>,
}

/// A setting of a value: see [`settings_of`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSetting {
    /// The path of the value that has it, such as `1` for the second input.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its value, as `Debug` writes it.
    pub value: String,
}

/// A tensor of a program's inputs.
#[derive(Clone, Debug)]
pub struct EngineInput {
    /// The tensor.
    pub tensor: EngineTensor,
    /// The names of its dims, which are the first axes. (The keys of dims are not known in a
    /// restored program.)
    pub dims: Vec<String>,
    /// Its axes in the memory order of the recorded value, from the outermost to the innermost.
    pub order: Vec<usize>,
}

/// A tensor of a program's results: elements of an output of the recording.
#[derive(Clone, Debug)]
pub struct EngineResult {
    /// The tensor.
    pub tensor: EngineTensor,
    /// The position, within the output, of the element whose index is 0 along every axis.
    pub start: usize,
    /// The stride of each axis in the output.
    pub strides: Vec<isize>,
}

/// The type and the axes of a tensor.
#[derive(Clone, Debug)]
pub struct EngineTensor {
    /// Its path in the inputs, the results or another value, such as `0.weight`.
    pub path: String,
    /// The element type.
    pub dtype: DType,
    /// The axes in the order of the type, dims first.
    pub axes: Vec<EngineAxis>,
    /// The source location of the tensor in the user's code, if it is known.
    pub origin: Origin,
}

/// An axis of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct EngineAxis {
    /// Its dim; `None` for a positional axis.
    pub dim: Option<DimKey>,
    /// Its size.
    pub size: usize,
}

impl EngineTensor {
    fn of<T: Element, S: Dims, R: Rank>(path: &Path, tensor: &Named<T, S, R>) -> Result<Self, DimError> {
        let path = InputPath::new(path);
        let Some(dtype) = DType::of::<T>() else {
            let (tensor, name) = (path.named("tensor"), type_name::<T>());
            let what = format!("{tensor}: programs do not support elements of type `{name}`");
            return Err(DimError::Shape { what });
        };
        let (path, axes) = (path.to_string(), engine_axes(S::KEYS.as_slice(), &tensor.expr.sizes()));
        Ok(EngineTensor { path, dtype, axes, origin: tensor.expr.origin() })
    }

    /// The sizes of all axes.
    pub fn sizes(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| axis.size).collect()
    }
}

/// Axes with these sizes: those of the dims, and then positional ones.
fn engine_axes(dims: &[DimKey], sizes: &[usize]) -> Vec<EngineAxis> {
    let dims = dims.iter().copied().map(Some).chain(core::iter::repeat(None));
    dims.zip(sizes).map(|(dim, &size)| EngineAxis { dim, size }).collect()
}

impl<In, Out: Parameters> Program<In, Out> {
    /// The program as data, with copies of its constants.
    ///
    /// # Errors
    ///
    /// Returns an error if a step calls a user-defined function (the error names the operation), if
    /// the elements of a constant have a type that programs do not know, or if dims are
    /// [dynamic](super::dynamic).
    pub fn to_engine(&self) -> Result<EngineProgram, DimError>
    where
        In: RecordInputs,
    {
        if self.open.is_some() {
            let what =
                "engines do not run programs with dynamic dims: record the function for one size".into();
            return Err(DimError::Shape { what });
        }
        let parts = &self.parts;
        let recording = parts.recording.saved()?;
        let mut values = parts.recording.described();
        let inputs = parts.signature.tensors.iter().enumerate().map(|(number, own)| {
            if let Some(line) = &own.line {
                let axis = |(dim, size): (Option<DimKey>, usize)| NodeAxis {
                    name: dim.map_or("..", |dim| dim.name),
                    id: dim.map(|dim| dim.id),
                    size,
                };
                values[number].axes = Some(line.axes().map(axis).collect());
                let axes: Vec<EngineAxis> = line.axes().map(|(dim, size)| EngineAxis { dim, size }).collect();
                let order = (0..axes.len()).collect();
                let (path, dtype) = (own.path.to_string(), own.dtype);
                let (tensor, dims) = (EngineTensor { path, dtype, axes, origin: None }, line.dims().names());
                return EngineInput { tensor, dims, order };
            }
            let axes = engine_axes(own.dims.keys(), &own.sizes);
            let tensor = EngineTensor { path: own.path.to_string(), dtype: own.dtype, axes, origin: None };
            EngineInput { tensor, dims: own.dims.names(), order: own.order.to_vec() }
        });
        let inputs: Vec<EngineInput> = inputs.collect();
        let mut tensors = FoundTensors::default();
        Out::walk([&self.result], &mut Path::new(), &mut tensors)?;
        let results = tensors.found.into_iter().zip(&parts.layouts).map(|(own, layout)| {
            let tensor = EngineTensor { origin: layout.origin, ..own.tensor };
            let strides = match (own.is_line, &layout.strides[..]) {
                (true, &[stride]) => {
                    let mut step = stride;
                    let mut strides: Vec<isize> = tensor
                        .axes
                        .iter()
                        .rev()
                        .map(|axis| {
                            let own = step;
                            // (The product may wrap if another axis is empty.)
                            step = step.wrapping_mul(axis.size as isize);
                            own
                        })
                        .collect();
                    strides.reverse();
                    strides
                }
                (_, strides) => strides.to_vec(),
            };
            EngineResult { tensor, start: layout.start, strides }
        });
        Ok(EngineProgram {
            recording,
            values,
            inputs,
            results: results.collect(),
            settings: parts.signature.settings.iter().map(EngineSetting::of).collect(),
        })
    }

    /// A result with the right sizes. Its tensors own one element each, except for the state of
    /// optimizers, which owns all its elements.
    ///
    /// # Errors
    ///
    /// Returns an error if the elements of a tensor have a type that programs do not know.
    pub fn result_without_elements(&self) -> Result<Out, DimError> {
        without_elements(&self.result)
    }
}

/// A value with the same sizes. Its tensors own one element each, except for the state of
/// optimizers, which owns all its elements.
///
/// # Errors
///
/// Returns an error if the elements of a tensor have a type that programs do not know.
pub fn without_elements<P: Parameters>(value: &P) -> Result<P, DimError> {
    P::walk([value], &mut Path::new(), &mut FoundTensors::default())
}

/// The positions in `inputs` of the tensors that are passed by value.
pub fn moved_inputs<In: RecordInputs>(inputs: &[EngineInput]) -> Vec<usize> {
    let mut paths = Vec::new();
    In::moved(&mut Vec::new(), &mut paths);
    let is_within = |own: &str, path: &[usize]| {
        let mut segments = own.split('.');
        path.iter().all(|index| segments.next() == Some(index.to_string().as_str()))
    };
    let is_moved = |own: &str| paths.iter().any(|path| is_within(own, path));
    (0..inputs.len()).filter(|&at| is_moved(&inputs[at].tensor.path)).collect()
}

/// The tensors of a value, in the order of its fields, without their elements.
///
/// # Errors
///
/// Returns an error if the elements of a tensor have a type that programs do not know.
pub fn types_of<P: Parameters>(value: &P) -> Result<Vec<EngineTensor>, DimError> {
    let mut tensors = FoundTensors::default();
    P::walk([value], &mut Path::new(), &mut tensors)?;
    Ok(tensors.found.into_iter().map(|own| own.tensor).collect())
}

impl EngineSetting {
    fn of(own: &InputSetting) -> Self {
        let InputSetting { path, name, value } = own;
        EngineSetting { path: path.to_string(), name: name.to_string(), value: value.text() }
    }
}

/// The settings of a value, in the order of its fields.
///
/// # Errors
///
/// Returns an error if the elements of a tensor have a type that programs do not know.
pub fn settings_of<P: Parameters>(value: &P) -> Result<Vec<EngineSetting>, DimError> {
    let mut found = InputSignature::default();
    P::walk([value], &mut Path::new(), &mut found)?;
    Ok(found.settings.iter().map(EngineSetting::of).collect())
}

/// A tensor of a value, with its elements.
pub struct HostTensor {
    /// The tensor.
    pub tensor: EngineTensor,
    held: Option<Arc<dyn Held>>,
    /// Whether the tensor is the state of an optimizer, stored as one line of elements.
    is_line: bool,
}

impl HostTensor {
    /// The elements, little-endian, the last axis innermost. `isize` and `usize` take eight bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.held.as_ref().map_or_else(Vec::new, saved::bytes_of)
    }
}

/// The tensors of a value, in the order of its fields; and the value without elements.
///
/// # Errors
///
/// Returns an error if the elements of a tensor have a type that programs do not know, if they
/// belong to a gradient or a recording, or if memory runs out.
pub fn tensors_of<P: Parameters>(value: &P) -> Result<(Vec<HostTensor>, P), DimError> {
    let mut tensors = FoundTensors { elements: true, ..FoundTensors::default() };
    let template = P::walk([value], &mut Path::new(), &mut tensors)?;
    Ok((tensors.found, template))
}

#[derive(Default)]
struct FoundTensors {
    elements: bool,
    /// The axes of the next tensor, if it is one line of elements.
    line: Option<StateLineAxes>,
    found: Vec<HostTensor>,
}

impl Walk<1> for FoundTensors {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let line = self.line.take();
        let mut own = EngineTensor::of(path, tensor)?;
        let held = match self.elements {
            true if tensor.expr.is_traced() => {
                let tensor = InputPath::new(path).named("tensor");
                let what = format!("{tensor} belongs to a gradient or to a function that is being recorded");
                return Err(DimError::Shape { what });
            }
            true => {
                let order: Vec<usize> = (0..own.axes.len()).collect();
                Some(dense(tensor, &order)?.expr.buffer().held())
            }
            false => None,
        };
        if let Some(line) = &line {
            own.axes = line.axes().map(|(dim, size)| EngineAxis { dim, size }).collect();
        }
        self.found.push(HostTensor { tensor: own, held, is_line: line.is_some() });
        Ok(strided(tensor, alloc::vec![T::default()], 0, &|_, axis| axis.stride = 0, None))
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.line = Some(StateLineAxes::new(keys, sizes));
    }
}

/// The value `template` with other elements, which are given for each tensor as
/// [`HostTensor::bytes`] returns them.
///
/// # Errors
///
/// Returns an error if a tensor gets more or fewer elements than it has, or invalid ones.
pub fn with_elements<P: Parameters>(template: &P, elements: Vec<Vec<u8>>) -> Result<P, DimError> {
    P::walk([template], &mut Path::new(), &mut GivenElements(elements.into_iter()))
}

struct GivenElements(alloc::vec::IntoIter<Vec<u8>>);

impl Walk<1> for GivenElements {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let sizes: Vec<usize> = tensor.expr.axes().map(|axis| axis.size).collect();
        let data: Option<Vec<T>> = self.0.next().and_then(|bytes| saved::elements_of_bytes(&bytes));
        let Some(data) = data.filter(|data| data.len() == sizes.iter().product::<usize>()) else {
            let tensor = InputPath::new(path).named("tensor");
            let what = format!("{tensor} got too many, too few or invalid elements");
            return Err(DimError::Shape { what });
        };
        let change =
            |at: usize, axis: &mut Axis| axis.stride = sizes[at + 1..].iter().product::<usize>() as isize;
        Ok(strided(tensor, data, 0, &change, tensor.expr.origin()))
    }
}

/// The parts of a result, as `F` converts them: one for each item of a tuple; any other result is
/// one part.
pub type EngineParts<Out, F> = <Out as RecordInputs>::Parts<F>;

/// Splits a result into its parts.
pub fn parts_of<Out: RecordInputs<Value = Out>, F: PartFamily>(
    template: Out,
    family: &mut F,
) -> EngineParts<Out, F> {
    Out::parts(template, family)
}
