//! [`record`] and [`Program`].

use super::inputs::{Hand, HandedOf, InputsOf, RecordInputs};
use super::open::{OpenProgram, record_open};
use super::result::{CallResults, RecordedResults, ResultLayout, ResultMemories, Zeros};
use super::signature::{GivenInputs, InputSetting, InputSignature, dense};
use crate::error::{DimError, OriginSuffix};
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Debug, Display};
use core::marker::PhantomData;
use kernels::loops::steps::{PlanStep, note};
use kernels::memory::buffer::Buffer;
use kernels::memory::hollow;
use kernels::scalar::Element;
use kernels::trace::{
    GradientCall, Held, ListedPlace, ListedValue, Listing, Node, NotRepeatable, Recording, listing,
};
use twins::panicking_twin;

/// A recorded function: see [`record`].
pub struct Program<In, Out> {
    pub(super) parts: ProgramParts,
    /// A value with the structure and the sizes of a result. Its tensors own one element each,
    /// except for the state of optimizers, which owns all its elements.
    pub(super) result: Out,
    /// The program for other sizes, if some dims are dynamic.
    pub(super) open: Option<OpenProgram>,
    pub(super) inputs: PhantomData<fn(In) -> Out>,
}

/// The parts of a program whose types do not depend on those of the recorded function. (Code for
/// them is compiled only once.)
pub(super) struct ProgramParts {
    pub(super) recording: Recording,
    /// Which inputs it accepts.
    pub(super) signature: InputSignature,
    /// The layout of each tensor of a result.
    pub(super) layouts: Vec<ResultLayout>,
    /// The settings of the result.
    pub(super) settings: Vec<InputSetting>,
    pub(super) listing: Listing,
}

/// Calls a function once, or several times if dims are [dynamic](super::dynamic), and records its
/// steps as a program.
///
/// `inputs` can be a tensor, a struct with `#[derive(Parameters)]`, an optimizer, or a tuple of
/// these. The function gets inputs by reference or by value, as they are passed: see
/// [`RecordInputs`].
///
/// # Errors
///
/// Returns an error if a step cannot be run again or does not allow [dynamic](super::dynamic) dims,
/// if the function captures a tensor of an outer gradient or of an outer recorded function, if it
/// reads random numbers made in a [`spec`](super::spec()), which does not draw them, if programs do
/// not support the elements of an input, or if memory runs out.
///
/// # Panics
///
/// Operations that cannot be recorded panic in `f`, and so do operations that have no result for
/// the given inputs, such as the inverse of a singular matrix. Their `try_` forms return the error
/// instead. (A [`spec`](super::spec()) has no elements, so no operation on it lacks a result.)
#[track_caller]
pub fn record<In: for<'t> Hand<'t>, Out: Parameters>(
    mut f: impl for<'t> FnMut(HandedOf<'t, In>) -> Out,
    inputs: In,
) -> Result<Program<In, Out>, DimError> {
    record_inputs(&mut f, &inputs)
}

/// [`record`], compiled once for all functions with the same inputs and results.
#[track_caller]
fn record_inputs<'f, In: for<'t> Hand<'t> + 'f, Out: Parameters>(
    f: &mut (dyn for<'t> FnMut(HandedOf<'t, In>) -> Out + 'f),
    inputs: &In,
) -> Result<Program<In, Out>, DimError> {
    let mut open = Vec::new();
    inputs.open(&mut open);
    if open.is_empty() {
        return record_once(f, inputs);
    }
    let mut first = None;
    let (parts, open) = record_open(open, &mut |round| {
        let Program { parts, result, .. } = record_once(f, inputs)?;
        if round == 0 {
            first = Some(result);
        }
        Ok(parts)
    })?;
    let result = first.expect("the first round was recorded");
    Ok(Program { parts, result, open: Some(open), inputs: PhantomData })
}

#[track_caller]
fn record_once<'f, In: for<'t> Hand<'t> + 'f, Out: Parameters>(
    f: &mut (dyn for<'t> FnMut(HandedOf<'t, In>) -> Out + 'f),
    inputs: &In,
) -> Result<Program<In, Out>, DimError> {
    let mut variables = RecordedInputs::new(In::SIZES_ALONE);
    let traced = inputs.walk(&mut Path::new(), &mut variables)?;
    recorded(f, traced, variables)
}

/// [`explain`](crate::plan::explain::explain) warns of captured tensors that have more bytes than
/// this.
const LARGE: usize = 1 << 20;

/// Records a function whose inputs are already variables.
#[track_caller]
pub(super) fn recorded<'f, In, Out>(
    f: &mut (dyn for<'t> FnMut(HandedOf<'t, In>) -> Out + 'f),
    traced: In::Value,
    variables: RecordedInputs,
) -> Result<Program<In, Out>, DimError>
where
    In: for<'t> Hand<'t> + 'f,
    Out: Parameters,
{
    let mut slots = In::slots(traced);
    let value = f(In::hand(&mut slots));
    let mut results = RecordedResults::default();
    let result = Out::walk([&value], &mut Path::new(), &mut results)?;
    let RecordedResults { held, layouts, settings, .. } = results;
    let (mut recording, signature, listing) = repeatable(held, variables)?;
    // These are the only other owners of the memory that `release` frees.
    drop((value, slots));
    recording.release();
    let parts = ProgramParts { recording, signature, layouts, settings, listing };
    Ok(Program { parts, result, open: None, inputs: PhantomData })
}

/// The steps that compute these results, in a form that can run again. (This function does not
/// depend on the types of the recorded function, so it is compiled only once.)
#[track_caller]
fn repeatable(
    held: Vec<Arc<dyn Held>>,
    mut variables: RecordedInputs,
) -> Result<(Recording, InputSignature, Listing), DimError> {
    variables.call.end();
    check_captured(&held, variables.nodes.first().map_or(0, |node| node.id))?;
    let (nodes, signature) =
        (core::mem::take(&mut variables.nodes), core::mem::take(&mut variables.signature));
    let names = signature.tensors.iter().map(|own| own.path.to_string());
    let named = nodes.iter().cloned().zip(names).collect::<Vec<_>>();
    let listing = listing(&named, &held);
    for constant in listing.constants.iter().filter(|constant| constant.bytes > LARGE) {
        note(|| PlanStep::Captured {
            place: constant.origin.as_ref().and_then(ListedPlace::location),
            bytes: constant.bytes,
        });
    }
    let recording = Recording::new(nodes, held).map_err(|NotRepeatable { operation, origin }| {
        let at = OriginSuffix(origin);
        DimError::Shape {
            what: format!("`{operation}` cannot be recorded{at}: programs cannot run it again"),
        }
    })?;
    Ok((recording, signature, listing))
}

/// Returns an error if a result depends on variables of an outer gradient, or on inputs of an outer
/// recording, because the program would treat these as constants. `first` is the id of the first
/// input; nodes of outer calls have lower ids.
fn check_captured(results: &[Arc<dyn Held>], first: u64) -> Result<(), DimError> {
    let Some(mut node) = results.iter().filter_map(|held| held.node()).find(|node| node.is_traced()) else {
        return Ok(());
    };
    // Find the step that reads the outer variable.
    while let Some(input) = node.inputs().into_iter().find(|input| input.id >= first && input.is_traced()) {
        node = input;
    }
    let at = OriginSuffix(node.origin);
    let what = if node.is_hollow() {
        format!(
            "the recorded function reads random numbers{at}, and `spec` does not draw them: record it with a value instead of `spec`, or make the numbers with `from_fn`"
        )
    } else {
        format!(
            "the recorded function captures a tensor of an outer gradient or of an outer recorded function{at}: pass it as an input"
        )
    };
    Err(DimError::Shape { what })
}

/// Returns an error if an input of a call gives only sizes.
pub(super) fn check_elements<I: RecordInputs>() -> Result<(), DimError> {
    if I::SIZES_ALONE {
        let what = "an input of a call is a `spec`, which has no elements: pass a tensor".into();
        return Err(DimError::Shape { what });
    }
    Ok(())
}

/// Calls with inputs of any type, which are checked against the recorded inputs.
impl<In, Out: Parameters> Program<In, Out> {
    /// See [`try_call`](Program::try_call).
    pub(super) fn call_checked<I: RecordInputs>(&self, inputs: I) -> Result<Out, DimError> {
        let instance = instance(self.open.as_ref(), &self.parts, &inputs)?;
        let parts = instance.as_deref().unwrap_or(&self.parts);
        let held = bound(&inputs, GivenInputs::new(&parts.signature))?;
        // From here on, inputs that were passed by value have no other owner, unless their memory
        // is shared. So the program can reuse that memory.
        drop(inputs);
        run(&self.result, parts, held, Vec::new())
    }

    /// See [`try_call_into`](Program::try_call_into).
    fn call_checked_into<I: RecordInputs>(&self, inputs: I, out: &mut Out) -> Result<(), DimError> {
        let instance = instance(self.open.as_ref(), &self.parts, &inputs)?;
        let parts = instance.as_deref().unwrap_or(&self.parts);
        let held = bound(&inputs, GivenInputs::new(&parts.signature))?;
        drop(inputs);
        run_into(&self.result, parts, held, out)
    }

    /// Like [`try_call`](Program::try_call), or returns the inputs if they do not have exactly the
    /// recorded signature.
    pub(super) fn call_exactly<I: RecordInputs>(&self, inputs: I) -> Result<Result<Out, DimError>, I> {
        let parts = &self.parts;
        let Ok(held) = bound(&inputs, GivenInputs::exactly(&parts.signature)) else { return Err(inputs) };
        drop(inputs);
        Ok(run(&self.result, parts, held, Vec::new()))
    }

    /// Like [`try_call_into`](Program::try_call_into), or returns the inputs if they do not have
    /// exactly the recorded signature.
    pub(super) fn call_exactly_into<I: RecordInputs>(
        &self,
        inputs: I,
        out: &mut Out,
    ) -> Result<Result<(), DimError>, I> {
        let parts = &self.parts;
        let Ok(held) = bound(&inputs, GivenInputs::exactly(&parts.signature)) else { return Err(inputs) };
        drop(inputs);
        Ok(run_into(&self.result, parts, held, out))
    }
}

/// The parts of a program for the sizes of these inputs, if some dims are dynamic.
fn instance<I: RecordInputs>(
    open: Option<&OpenProgram>,
    parts: &ProgramParts,
    inputs: &I,
) -> Result<Option<Arc<ProgramParts>>, DimError> {
    let Some(open) = open else { return Ok(None) };
    let mut signature = InputSignature::default();
    inputs.walk(&mut Path::new(), &mut signature)?;
    open.instance(&signature, &parts.layouts).map(Some)
}

/// Runs a program. `like` has the structure of its result. The elements of `like` do not matter.
fn run<Out: Parameters>(
    like: &Out,
    parts: &ProgramParts,
    inputs: Vec<Arc<dyn Held>>,
    room: Vec<Arc<dyn Held>>,
) -> Result<Out, DimError> {
    let results = parts.recording.run(inputs, room)?;
    let mut results = CallResults(results.into_iter().zip(&parts.layouts));
    Out::walk([like], &mut Path::new(), &mut results)
}

/// Like [`run`], into the memory of `out`.
fn run_into<Out: Parameters>(
    like: &Out,
    parts: &ProgramParts,
    inputs: Vec<Arc<dyn Held>>,
    out: &mut Out,
) -> Result<(), DimError> {
    let mut room = ResultMemories::default();
    Out::walk([&*out], &mut Path::new(), &mut room)?;
    // Otherwise `out` would also own the memory in `room`, and steps could not overwrite it.
    *out = Out::walk([like], &mut Path::new(), &mut Zeros(parts.layouts.iter()))?;
    *out = run(like, parts, inputs, room.0)?;
    Ok(())
}

/// The memory of all inputs.
fn bound<I: RecordInputs>(inputs: &I, mut given: GivenInputs<'_>) -> Result<Vec<Arc<dyn Held>>, DimError> {
    inputs.walk(&mut Path::new(), &mut given)?;
    given.finish()
}

impl<In: RecordInputs, Out: Parameters> Program<In, Out> {
    /// Computes the result of the function for other inputs. Except along
    /// [dynamic](super::dynamic) dims, they must have the sizes of the recorded inputs.
    ///
    /// On the same number of threads, the result has the same bits as that of the function if the
    /// axes of the inputs are stored in the recorded order. The exceptions are some sums of
    /// products, layer norms in half precision, and sums and fractions in programs with
    /// [dynamic](super::dynamic) dims, which may be rounded differently. Inputs in another order are
    /// copied first, so their sums may be rounded differently.
    ///
    /// # Errors
    ///
    /// Returns an error if the number of tensors, their sizes or the settings of an input differ
    /// from the recorded ones, if an input is a [`spec`](super::spec()), if an input belongs to a
    /// gradient or to a function that is being recorded, if an index is out of range (even if its
    /// element is not used, as in a `select`), if an operation has no result for a matrix, or if
    /// memory runs out.
    #[panicking_twin]
    pub fn try_call<I: InputsOf<In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        check_elements::<I>()?;
        self.call_checked(inputs)
    }

    /// Writes the result that [`call`](Program::call) would return for these inputs into `out`.
    ///
    /// The results of elementwise steps and of most sums and products are written into the memory
    /// of `out` if it has their sizes and is not shared. Otherwise `out` gets other memory.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::program::record;
    ///
    /// dims! { pub struct Row; pub struct Col; }
    /// type Matrix = Tensor<f32, (Row, Col)>;
    ///
    /// let x: Matrix = ones((Row.of(2), Col.of(3)));
    /// let program = record(|x: &Matrix| x.view().sum(Col), &x)?;
    /// let mut sums = program.call(&x);
    /// for at in 1..4 {
    ///     program.call_into(&full((Row.of(2), Col.of(3)), at as f32), &mut sums);
    ///     assert_eq!((&sums).max(Row).order(()), 3.0 * at as f32);
    /// }
    /// # Ok::<(), DimError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`try_call`](Program::try_call). If the inputs are rejected, `out` is unchanged. If a
    /// step fails, the elements of `out` are zeros.
    #[panicking_twin]
    pub fn try_call_into<I: InputsOf<In::Value>>(&self, inputs: I, out: &mut Out) -> Result<(), DimError> {
        check_elements::<I>()?;
        self.call_checked_into(inputs, out)
    }

    /// The number of steps.
    pub fn steps(&self) -> usize {
        self.parts.recording.len()
    }

    /// The inputs, constants, steps and results as data. Inputs, constants and steps have element
    /// types, and dims and sizes if these are known. Printing the program shows the listing as
    /// text.
    ///
    /// Steps are listed as they were recorded, each with an estimate of the number of its scalar
    /// operations, and with the size of its result in bytes.
    pub fn listing(&self) -> &Listing {
        &self.parts.listing
    }

    /// The tensors that the function captured, each with the source location of the first step that
    /// reads it. [`explain`](crate::plan::explain::explain) warns of captured tensors over 1 MiB.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    /// use typed_dims::program::record;
    ///
    /// dims! { pub struct Feat; }
    /// let weight: Tensor<f32, (Feat,)> = ones(Feat.of(3));
    /// let program = record(|x: &Tensor<f32, (Feat,)>| (x * &weight).sum(Feat), &ones(Feat.of(3)))?;
    /// let [constant] = program.constants() else { panic!("only the weight is captured") };
    /// assert_eq!(constant.bytes, 12);
    /// assert!(constant.origin.as_ref().expect("the location of the product").file().ends_with(".rs"));
    /// # Ok::<(), DimError>(())
    /// ```
    pub fn constants(&self) -> &[ListedValue] {
        &self.parts.listing.constants
    }

    /// Draws the listing as an SVG document, with a box for each line of its text.
    pub fn to_svg(&self) -> String {
        crate::draw::program(&self.parts.listing)
    }
}

/// Writes one line for each input, constant and step, and one for the results.
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
impl<In, Out> Display for Program<In, Out> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.parts.listing, f)
    }
}

/// Makes each tensor of the inputs a variable of the recording, which ends when this is dropped.
pub(super) struct RecordedInputs {
    call: Arc<GradientCall>,
    sizes_alone: bool,
    nodes: Vec<Arc<Node>>,
    signature: InputSignature,
}

impl RecordedInputs {
    /// Starts a recording without inputs. With `sizes_alone`, its inputs will have no elements.
    pub(super) fn new(sizes_alone: bool) -> Self {
        let call = if sizes_alone {
            kernels::step::record_from_sizes();
            GradientCall::recording_sizes()
        } else {
            GradientCall::recording()
        };
        let (nodes, signature) = (Vec::new(), InputSignature::default());
        RecordedInputs { call: Arc::new(call), sizes_alone, nodes, signature }
    }
}

impl Drop for RecordedInputs {
    fn drop(&mut self) {
        self.call.end();
    }
}

impl Walk<1> for RecordedInputs {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.signature.tensor(path, [tensor])?;
        let given = self.signature.tensors.last().expect("the tensor was added");
        let own = dense(tensor, &given.order)?;
        let all = own.expr.all();
        let reserved = if self.sizes_alone { hollow::reserved(all.len())? } else { None };
        let data = reserved.unwrap_or_else(|| all.to_vec());
        let name = (!path.segments().is_empty()).then(|| Box::new(path.clone()) as _);
        let node = Node::variable(given.dtype, data.len(), name, &self.call);
        self.nodes.push(Arc::clone(&node));
        Ok(Named::from_expr(own.expr.with_buffer(Buffer::traced(data, node))))
    }

    fn setting<X: Clone + PartialEq + Debug + Send + Sync + 'static>(
        &mut self,
        path: &Path,
        name: &'static str,
        of: [&X; 1],
    ) -> Result<(), DimError> {
        self.signature.setting(path, name, of)
    }

    fn line_along(&mut self, keys: &[DimKey], sizes: &[usize]) {
        self.signature.line_along(keys, sizes);
    }
}
