//! [`record`], and the programs that it makes.

use super::inputs::{Hand, HandedOf, RecordInputs};
use crate::error::{DimError, Origin, unwrap};
use crate::expr::evaluate::laid_out_in;
use crate::grad::parameters::{Parameters, Path, Walk, order_in_memory};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::axes::AxisBlock;
use crate::storage::evaluated::{Evaluated, IntoElements};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::{Any, type_name};
use core::fmt::Debug;
use core::iter::Zip;
use core::marker::PhantomData;
use kernels::loops::steps::{PlanStep, note};
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::trace::{GradientCall, Held, ListedValue, Listing, Node, NotRepeatable, Recording, listing};
use smallvec::SmallVec;

/// A function that was recorded: see [`record`].
pub struct Program<In, Out> {
    recording: Recording,
    /// What each input is.
    given: RecordedKinds,
    /// A value of the result's type, whose tensors have the right sizes, and one element each.
    result: Out,
    /// How each tensor of a result lies.
    layouts: Vec<ResultLayout>,
    listing: Listing,
    inputs: PhantomData<fn(In) -> Out>,
}

/// Calls a function once, and records what it runs.
///
/// `inputs` are tensors, structs with `#[derive(Parameters)]`, optimizers, or a tuple of these, by reference or by value. The function gets the same: see [`RecordInputs`].
///
/// # Errors
///
/// If a step cannot be run again, or there is no memory. (An operation that cannot be recorded panics in `f`, unless `f` uses the `try_` form.)
#[track_caller]
pub fn record<In: for<'t> Hand<'t>, Out: Parameters>(
    f: impl for<'t> FnOnce(HandedOf<'t, In>) -> Out,
    inputs: In,
) -> Result<Program<In, Out>, DimError> {
    let mut variables = RecordedInputs::default();
    let traced = inputs.walk(&mut Path::new(), &mut variables)?;
    recorded(f, traced, variables)
}

/// Captured tensors of more bytes are worth a warning of [`explain`](crate::plan::explain::explain).
const LARGE: usize = 1 << 20;

/// Records a function of inputs that are variables.
#[track_caller]
pub(super) fn recorded<In, Out>(
    f: impl for<'t> FnOnce(HandedOf<'t, In>) -> Out,
    traced: In::Value,
    mut variables: RecordedInputs,
) -> Result<Program<In, Out>, DimError>
where
    In: for<'t> Hand<'t>,
    Out: Parameters,
{
    let mut slots = In::slots(traced);
    let value = f(In::hand(&mut slots));
    let mut outputs = Outputs::default();
    let result = Out::walk([&value], &mut Path::new(), &mut outputs)?;
    let Outputs { held, layouts } = outputs;
    variables.call.end();
    check_captured(&held, variables.nodes.first().map_or(0, |node| node.id))?;
    let (nodes, given) = (core::mem::take(&mut variables.nodes), core::mem::take(&mut variables.given));
    let names = given.tensors.iter().map(|own| own.path.to_string());
    let named = nodes.iter().cloned().zip(names).collect::<Vec<_>>();
    let listing = listing(&named, &held);
    for constant in listing.constants.iter().filter(|constant| constant.bytes > LARGE) {
        note(|| PlanStep::Captured { by: constant.origin, bytes: constant.bytes });
    }
    let mut recording = Recording::new(nodes, held).map_err(|NotRepeatable { operation, origin }| {
        let at = crate::error::OriginSuffix(origin);
        DimError::Shape {
            what: format!("`{operation}` cannot be recorded{at}: programs cannot run it again"),
        }
    })?;
    // (So that nobody else has the memory.)
    drop((value, slots));
    recording.release();
    Ok(Program { recording, given, result, layouts, listing, inputs: PhantomData })
}

/// An error if a result depends on variables of a gradient, or on inputs of another function that is recorded: these would be constants of the program. `first` is the number of the
/// first input; what others record has a lower one.
fn check_captured(results: &[Arc<dyn Held>], first: u64) -> Result<(), DimError> {
    let Some(mut node) = results.iter().filter_map(|held| held.node()).find(|node| node.is_traced()) else {
        return Ok(());
    };
    // The first step that reads what others record.
    while let Some(input) = node.inputs().into_iter().find(|input| input.id >= first && input.is_traced()) {
        node = input;
    }
    let at = crate::error::OriginSuffix(node.origin);
    Err(DimError::Shape {
        what: format!(
            "the recorded function captures a tensor that belongs to a gradient or to another function that is recorded{at}: make it one of the inputs"
        ),
    })
}

impl<In: RecordInputs, Out: Parameters> Program<In, Out> {
    /// The result of the function for these inputs, which have the sizes of the recorded ones.
    ///
    /// It has the bits that the function computes on the same number of threads, for inputs whose axes lie in memory in the order of the recorded ones. Others are copied into that
    /// order.
    ///
    /// # Panics
    ///
    /// Where [`try_call`](Program::try_call) returns an error.
    #[track_caller]
    pub fn call<I: RecordInputs<Value = In::Value>>(&self, inputs: I) -> Out {
        unwrap(self.try_call(inputs))
    }

    /// As [`call`](Program::call), but what sizes and indices decide is an error.
    ///
    /// # Errors
    ///
    /// If an input has other sizes or settings than the recorded one, an index is out of range, or there is no memory.
    pub fn try_call<I: RecordInputs<Value = In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        let RecordedKinds { tensors, settings } = &self.given;
        let mut given = GivenInputs { expected: tensors.iter(), settings: settings.iter(), held: Vec::new() };
        inputs.walk(&mut Path::new(), &mut given)?;
        if let Some(missing) = given.expected.next() {
            return Err(DimError::Shape { what: format!("there is no input `{}`", missing.path) });
        }
        if let Some(InputSetting { path, name, .. }) = given.settings.next() {
            let what = format!("{} has no setting `{name}`", input(path));
            return Err(DimError::Shape { what });
        }
        // (What was moved in, nobody else has from now on: its memory can be used again.)
        drop(inputs);
        let results = self.recording.run(given.held)?;
        let mut results = CallResults(results.into_iter().zip(&self.layouts));
        Out::walk([&self.result], &mut Path::new(), &mut results)
    }

    /// How many steps the program has.
    pub fn steps(&self) -> usize {
        self.recording.len()
    }

    /// The inputs, constants, steps and results, each with its element type, dims and sizes: what the program prints.
    ///
    /// Steps are listed as they were recorded. For each there is the number of its scalar operations, and of the bytes of its result.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// The tensors that the function captured, each with the place in the program of the step that read it first. [`explain`](crate::plan::explain::explain) warns of those of more than 1 MiB.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::program::record;
    ///
    /// dims! { pub struct Feat; }
    /// let weight: Tensor<f32, (Feat,)> = ones(Feat.of(3));
    /// let program = record(|x: &Tensor<f32, (Feat,)>| (x * &weight).sum(Feat), &ones(Feat.of(3)))?;
    /// let [constant] = program.constants() else { panic!("the weight alone is captured") };
    /// assert_eq!(constant.bytes, 12);
    /// assert!(constant.origin.expect("the place of the product").file().ends_with(".rs"));
    /// # Ok::<(), DimError>(())
    /// ```
    pub fn constants(&self) -> &[ListedValue] {
        &self.listing.constants
    }

    /// The listing as an SVG document: a box for each step, one below the other.
    pub fn to_svg(&self) -> String {
        crate::draw::program(&self.listing)
    }
}

/// The steps, one a line.
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::record;
///
/// dims! { pub struct Row; pub struct Col; }
/// let program = record(
///     |(a, x): (&Tensor<f32, (Row, Col)>, &Tensor<f32, (Col,)>)| (a * x).sum(Col).relu().eval(),
///     (&ones((Row.of(2), Col.of(3))), &ones(Col.of(3))),
/// )?;
/// let text = program.to_string();
/// let lines: Vec<&str> = text.lines().map(|line| line.split(" (at ").next().unwrap()).collect();
/// assert_eq!(lines, [
///     "%1 = `0`: f32 [Row = 2, Col = 3]",
///     "%2 = `1`: f32 [Col = 3]",
///     "%3 = sum(mul(%1, %2)): f32 [Row = 2]",
///     "%4 = relu(%3): f32 [Row = 2]",
///     "results: %4",
/// ]);
/// # Ok::<(), DimError>(())
/// ```
impl<In, Out> core::fmt::Display for Program<In, Out> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(&self.listing, f)
    }
}

/// Makes inputs of all tensors. When this is dropped, the recording has ended.
pub(super) struct RecordedInputs {
    call: Arc<GradientCall>,
    nodes: Vec<Arc<Node>>,
    given: RecordedKinds,
}

/// What inputs are, other than their elements: a program is for inputs that are the same.
#[derive(Default, PartialEq)]
pub(super) struct RecordedKinds {
    pub(super) tensors: Vec<InputTensor>,
    pub(super) settings: Vec<InputSetting>,
}

/// A setting of an input, as the rate of an optimizer.
pub(super) struct InputSetting {
    path: Path,
    name: &'static str,
    value: Box<dyn SettingValue>,
}

/// The value of a setting.
trait SettingValue: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn is_same(&self, other: &dyn Any) -> bool;
    fn describe(&self) -> String;
}

impl<X: PartialEq + Debug + Send + Sync + 'static> SettingValue for X {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<X>().is_some_and(|other| other == self)
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }
}

impl InputSetting {
    pub(super) fn new<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        path: &Path,
        name: &'static str,
        value: &X,
    ) -> Self {
        InputSetting { path: path.clone(), name, value: Box::new(value.clone()) }
    }
}

impl PartialEq for InputSetting {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.name) == (&other.path, other.name) && (*self.value).is_same((*other.value).as_any())
    }
}

/// How messages call an input.
fn input(path: &Path) -> String {
    if path.segments().is_empty() { "the input".into() } else { format!("input `{path}`") }
}

/// What a program knows of a tensor of its inputs.
#[derive(PartialEq)]
pub(super) struct InputTensor {
    path: Path,
    dtype: DType,
    sizes: SmallVec<[usize; 8]>,
    /// The axes, from the outermost one in memory to the innermost: sums over elements that lie in another order may be rounded in another way.
    order: SmallVec<[usize; 8]>,
}

impl InputTensor {
    pub(super) fn of<T: Element, S: Dims, R: Rank>(
        path: &Path,
        tensor: &Named<T, S, R>,
    ) -> Result<Self, DimError> {
        let Some(dtype) = DType::of::<T>() else {
            let name = type_name::<T>();
            let what = format!("{}: programs do not know elements of `{name}`", input(path));
            return Err(DimError::Shape { what });
        };
        let (sizes, order) = (sizes_of(tensor), order_in_memory(tensor));
        Ok(InputTensor { path: path.clone(), dtype, sizes, order })
    }
}

impl Default for RecordedInputs {
    fn default() -> Self {
        RecordedInputs {
            call: Arc::new(GradientCall::recording()),
            nodes: Vec::new(),
            given: RecordedKinds::default(),
        }
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

/// The elements in an order of all axes, without gaps: the tensor itself, if it lies so, and keeps no steps of an earlier call.
fn dense<T: Element, S: Dims, R: Rank>(
    tensor: &Named<T, S, R>,
    order: &[usize],
) -> Result<Named<T, S, R>, DimError> {
    if tensor.expr.buffer().node().is_none() && tensor.expr.is_contiguous(order) {
        return Ok(tensor.clone());
    }
    let shape = tensor.unified_shape()?;
    Ok(Named::from_expr(laid_out_in::<S, R, _>(&tensor.expr, &shape, order)?))
}

impl Walk<1> for RecordedInputs {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let given = InputTensor::of(path, tensor)?;
        let dtype = given.dtype;
        let own = dense(tensor, &given.order)?;
        self.given.tensors.push(given);
        let data = own.expr.all().to_vec();
        let name = (!path.segments().is_empty()).then(|| alloc::boxed::Box::new(path.clone()) as _);
        let node = Node::variable(dtype, data.len(), name, &self.call);
        self.nodes.push(Arc::clone(&node));
        Ok(Named::from_expr(own.expr.with_buffer(Buffer::traced(data, node))))
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        [value]: [&X; 1],
    ) -> Result<(), DimError> {
        self.given.settings.push(InputSetting::new(path, name, value));
        Ok(())
    }
}

/// The memory of each tensor of a result, and how it lies there.
#[derive(Default)]
struct Outputs {
    held: Vec<Arc<dyn Held>>,
    layouts: Vec<ResultLayout>,
}

/// How a tensor lies in memory.
struct ResultLayout {
    start: usize,
    /// Dims first.
    strides: SmallVec<[isize; 8]>,
    origin: Origin,
}

impl Walk<1> for Outputs {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let expr = &tensor.expr;
        let layout = ResultLayout {
            start: expr.start(),
            strides: expr.axes().map(|axis| axis.stride).collect(),
            origin: expr.origin(),
        };
        self.held.push(expr.buffer().held());
        self.layouts.push(layout);
        Ok(strided(tensor, alloc::vec![T::default()], 0, |_| 0, None))
    }
}

/// Elements with the sizes of a tensor, and other strides.
fn strided<T: Element, S: Dims, R: Rank, B: IntoElements<T>>(
    of: &Named<T, S, R>,
    data: B,
    start: usize,
    stride: impl Fn(usize) -> isize,
    origin: Origin,
) -> Named<T, S, R> {
    let (mut named, mut positional) = (*of.expr.named(), *of.expr.positional());
    let axes = named.as_mut_slice().iter_mut().chain(positional.as_mut_slice());
    axes.enumerate().for_each(|(at, axis)| axis.stride = stride(at));
    Named::from_expr(Evaluated::strided(data, start, named, positional, origin))
}

/// The memory of each input of a call.
struct GivenInputs<'p> {
    expected: core::slice::Iter<'p, InputTensor>,
    settings: core::slice::Iter<'p, InputSetting>,
    held: Vec<Arc<dyn Held>>,
}

impl Walk<1> for GivenInputs<'_> {
    type Error = DimError;
    const STATE: bool = true;

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
        let (own, expected) = (input(path), self.expected.next());
        let what = match expected {
            Some(expected) if expected.path != *path => {
                format!("{own} stands where `{}` was recorded", expected.path)
            }
            Some(expected) if DType::of::<T>() != Some(expected.dtype) => {
                format!("{own} has elements of `{}`, others than were recorded", type_name::<T>())
            }
            Some(expected) if expected.sizes != found => format!(
                "{own} has {}, but the program was recorded for {}",
                describe(&found),
                describe(&expected.sizes)
            ),
            Some(_) if tensor.expr.is_traced() => format!(
                "{own} belongs to a gradient or to another function that is recorded: call the function itself there"
            ),
            Some(_) => String::new(),
            None => format!("{own} was not recorded"),
        };
        let Some(expected) = expected.filter(|_| what.is_empty()) else {
            return Err(DimError::Shape { what });
        };
        let own = dense(tensor, &expected.order)?;
        self.held.push(own.expr.buffer().held());
        Ok(own)
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        [value]: [&X; 1],
    ) -> Result<(), DimError> {
        let what = match self.settings.next() {
            Some(own) if own.path == *path && own.name == name && own.value.is_same(value) => return Ok(()),
            Some(own) if own.path == *path && own.name == name => format!(
                "`{name}` of {} is {value:?}, but the program was recorded for {}: record it again; `jit` does so by itself",
                input(path),
                own.value.describe()
            ),
            _ => format!("the setting `{name}` of {} was not recorded", input(path)),
        };
        Err(DimError::Shape { what })
    }
}

/// The result of a call: its memory, and how each tensor lies.
struct CallResults<'p>(Zip<alloc::vec::IntoIter<Arc<dyn Held>>, core::slice::Iter<'p, ResultLayout>>);

impl Walk<1> for CallResults<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let (held, layout) = self.0.next().expect("there is a value for each tensor of the result");
        let buffer = Buffer::of_held(&held).expect("a step has the type that it was recorded with");
        Ok(strided(tensor, buffer, layout.start, |at| layout.strides[at], layout.origin))
    }
}
