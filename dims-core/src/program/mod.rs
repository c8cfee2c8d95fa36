//! Functions that are recorded, to be called with other inputs.
//!
//! [`record`] calls a function once. What runs with its inputs is recorded step by step, elements of all types: floats, integers, masks. The [`Program`] runs the same
//! steps with other inputs of the same sizes.
//!
//! ```
//! use typed_dims::prelude::*;
//! use typed_dims::program::record;
//!
//! dims! { pub struct Word; pub struct Feat; pub struct Seq; }
//! type Table = Tensor<f32, (Word, Feat)>;
//! type Ids = Tensor<i64, (Seq,)>;
//!
//! fn mean(table: &Table, ids: &Ids) -> Tensor<f32, (Feat,)> {
//!     table.take(Word, ids).mean(Seq)
//! }
//!
//! let table = from_fn((Word.of(4), Feat.of(2)), |(word, feat)| (10 * word + feat) as f32);
//! let program = record(|(table, ids)| mean(table, ids), (&table, &from_vec(Seq.of(2), vec![0, 1]))).unwrap();
//! let means = program.call((&table, &from_vec(Seq.of(2), vec![2, 3])));
//! assert_eq!(means.order(Feat), ndarray::array![25.0, 26.0]);
//! ```
//!
//! What the function reads by itself (an element as a number, the elements as an array, a size that values decide) cannot be recorded: it is an error, as the program could
//! not read it again. Tensors that the function captures are constants, and so are fields with `#[parameters(constant)]` and numbers: the program has those of the recorded call.
//! So a seed that is to be another one in each call is a tensor among the inputs: see [`Seed`](crate::random::Seed).

use crate::error::{DimError, unwrap};
use crate::expr::evaluate::laid_out;
use crate::grad::Inputs;
use crate::grad::lent::{Lend, LentOf};
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::axes::AxisBlock;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::type_name;
use core::marker::PhantomData;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::{GradientCall, Held, Node, NotRepeatable, Recording};
use smallvec::SmallVec;

/// A function that was recorded: see [`record`].
pub struct Program<In: Inputs, Out> {
    recording: Recording,
    /// What each input is.
    given: Vec<InputTensor>,
    /// The result of the recorded inputs.
    result: Out,
    inputs: PhantomData<fn(In)>,
}

/// Calls a function once, and records what it runs.
///
/// `inputs` are references to tensors, to structs with `#[derive(Parameters)]`, or a tuple of such. The function gets the same, as for [`grad`](crate::grad::grad).
///
/// # Errors
///
/// If a step cannot be run again, or there is no memory. (An operation that cannot be recorded panics in `f`, unless `f` uses the `try_` form.)
pub fn record<In: Inputs, Out: Parameters>(
    f: impl for<'t> FnOnce(LentOf<'t, In>) -> Out,
    inputs: In,
) -> Result<Program<In, Out>, DimError> {
    let mut variables = RecordedInputs::default();
    let traced = inputs.walk(&mut Path::new(), &mut variables)?;
    let value = f(<In as Lend<'_>>::lend(&traced));
    let mut outputs = Outputs(Vec::new());
    let result = Out::walk([&value], &mut Path::new(), &mut outputs)?;
    variables.call.end();
    let (nodes, given) = (core::mem::take(&mut variables.nodes), core::mem::take(&mut variables.given));
    let recording = Recording::new(nodes, outputs.0).map_err(|NotRepeatable { operation, origin }| {
        let at = crate::error::OriginSuffix(origin);
        DimError::Shape {
            what: format!("`{operation}` cannot be recorded{at}: programs cannot run it again"),
        }
    })?;
    Ok(Program { recording, given, result, inputs: PhantomData })
}

impl<In: Inputs, Out: Parameters> Program<In, Out> {
    /// The result of the function for these inputs, which have the sizes of the recorded ones.
    ///
    /// # Panics
    ///
    /// Where [`try_call`](Program::try_call) returns an error.
    #[track_caller]
    pub fn call<I: Inputs<Value = In::Value>>(&self, inputs: I) -> Out {
        unwrap(self.try_call(inputs))
    }

    /// As [`call`](Program::call), but what sizes and indices decide is an error.
    ///
    /// # Errors
    ///
    /// If an input has other sizes than the recorded one, an index is out of range, or there is no memory.
    pub fn try_call<I: Inputs<Value = In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        let mut given = GivenInputs { expected: self.given.iter(), held: Vec::new() };
        inputs.walk(&mut Path::new(), &mut given)?;
        if let Some(missing) = given.expected.next() {
            return Err(DimError::Shape { what: format!("there is no input `{}`", missing.path) });
        }
        let results = self.recording.run(given.held)?;
        Out::walk([&self.result], &mut Path::new(), &mut CallResults(results.into_iter()))
    }

    /// How many steps the program has.
    pub fn steps(&self) -> usize {
        self.recording.len()
    }
}

/// Makes inputs of all tensors. When this is dropped, the recording has ended.
struct RecordedInputs {
    call: Arc<GradientCall>,
    nodes: Vec<Arc<Node>>,
    given: Vec<InputTensor>,
}

/// What a program knows of a tensor of its inputs.
struct InputTensor {
    path: String,
    dtype: DType,
    sizes: SmallVec<[usize; 8]>,
}

impl Default for RecordedInputs {
    fn default() -> Self {
        RecordedInputs { call: Arc::new(GradientCall::recording()), nodes: Vec::new(), given: Vec::new() }
    }
}

impl Drop for RecordedInputs {
    fn drop(&mut self) {
        self.call.end();
    }
}

/// The sizes of all axes, dims first.
fn sizes_of<T, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> SmallVec<[usize; 8]> {
    let axes = tensor.expr.named().as_slice().iter().chain(tensor.expr.positional().as_slice());
    axes.map(|axis| axis.size).collect()
}

/// The elements as results lie, in memory of their own.
fn dense<T: Element, S: Dims, R: Rank>(tensor: &Named<T, S, R>) -> Result<Named<T, S, R>, DimError> {
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(laid_out::<S, R, _>(&tensor.expr, &shape)?))
}

impl Walk<1> for RecordedInputs {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let Some(dtype) = DType::of::<T>() else {
            let name = type_name::<T>();
            return Err(DimError::Shape { what: format!("input `{path}`: programs do not know `{name}`") });
        };
        let own = dense(tensor)?;
        let data = own.expr.all().to_vec();
        let name = (!path.segments().is_empty()).then(|| alloc::boxed::Box::new(path.clone()) as _);
        let node = Node::variable(dtype, data.len(), name, &self.call);
        self.nodes.push(Arc::clone(&node));
        self.given.push(InputTensor { path: path.to_string(), dtype, sizes: sizes_of(tensor) });
        Ok(Named::from_expr(own.expr.with_buffer(Buffer::traced(data, node))))
    }
}

/// The memory of each tensor of a result.
struct Outputs(Vec<Arc<dyn Held>>);

impl Walk<1> for Outputs {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.0.push(tensor.expr.buffer().held());
        Ok(tensor.clone())
    }
}

/// The memory of each input of a call.
struct GivenInputs<'p> {
    expected: core::slice::Iter<'p, InputTensor>,
    held: Vec<Arc<dyn Held>>,
}

impl Walk<1> for GivenInputs<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let found = sizes_of(tensor);
        let describe = |sizes: &[usize]| {
            let names = S::KEYS.as_slice().iter().map(|key| key.name);
            crate::error::list_sizes(
                names.chain(core::iter::repeat("positional axis")).zip(sizes.iter().copied()),
            )
        };
        let path = path.to_string();
        let what = match self.expected.next() {
            Some(own) if own.path != path => {
                format!("input `{path}` stands where `{}` was recorded", own.path)
            }
            Some(own) if DType::of::<T>() != Some(own.dtype) => {
                format!("input `{path}` has elements of `{}`, others than were recorded", type_name::<T>())
            }
            Some(own) if own.sizes != found => format!(
                "input `{path}` has {}, but the program was recorded for {}",
                describe(&found),
                describe(&own.sizes)
            ),
            Some(_) if tensor.expr.is_traced() => format!(
                "input `{path}` belongs to a gradient or to another function that is recorded: call the function itself there"
            ),
            Some(_) => String::new(),
            None => format!("input `{path}` was not recorded"),
        };
        if !what.is_empty() {
            return Err(DimError::Shape { what });
        }
        let own = dense(tensor)?;
        self.held.push(own.expr.buffer().held());
        Ok(own)
    }
}

/// The result of a call, in the place of the recorded one.
struct CallResults(alloc::vec::IntoIter<Arc<dyn Held>>);

impl Walk<1> for CallResults {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let held = self.0.next().expect("there is a value for each tensor of the result");
        let buffer = Buffer::of_held(&held).expect("a step has the type that it was recorded with");
        Ok(Named::from_expr(tensor.expr.with_buffer(buffer)))
    }
}
