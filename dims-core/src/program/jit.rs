//! Functions that are recorded on the first call, and again for new sizes.

use super::inputs::{Hand, HandedOf, InputsOf};
use super::record::{Program, RecordedInputs, check_elements, recorded};
use super::signature::InputSignature;
use crate::error::DimError;
use crate::grad::parameters::{Parameters, Path};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use twins::panicking_twin;

/// A function that is recorded when it is called: see [`jit`].
pub struct Jit<In, Out, F> {
    f: F,
    /// The maximum number of programs that are kept.
    most: usize,
    /// The most recently called program comes first.
    programs: Mutex<Vec<Arc<Recorded<In, Out>>>>,
    inputs: PhantomData<fn(In) -> Out>,
}

/// The program for inputs of one signature.
struct Recorded<In, Out> {
    signature: InputSignature,
    /// `None` until the thread that holds the lock has recorded it.
    program: Mutex<Option<Arc<Program<In, Out>>>>,
    /// The thread that is recording the program.
    recorder: Mutex<Option<ThreadId>>,
}

/// Marks the thread that created this value as the recorder, until the value is dropped.
struct Recorder<'r>(&'r Mutex<Option<ThreadId>>);

impl<'r> Recorder<'r> {
    fn new(recorder: &'r Mutex<Option<ThreadId>>) -> Self {
        *locked(recorder) = Some(thread::current().id());
        Recorder(recorder)
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        *locked(self.0) = None;
    }
}

/// Wraps a function so that its first call records it, and later calls run the recorded program.
///
/// The function is recorded again for inputs with other sizes, with more or fewer tensors (an
/// optimizer has no moments before its first step), with other settings (an optimizer after
/// `set_rate` or `freeze`, another number in a `#[parameters(constant)]` field), or with axes
/// stored in another order. The 16 most recently called programs are kept: see
/// [`keep`](Jit::keep).
///
/// Name the types of the inputs, because rustc checks the closure before it sees a call:
/// `jit::<(&Network, &Images), _>(|(net, x)| net.scores(x))`. The function gets inputs by reference
/// or by value, as these types say.
///
/// Several threads can call at once. While one thread records a program, the calls of other threads
/// that need this program wait. A call with tensors of an outer gradient or of an outer recording
/// runs the function itself.
///
/// Captured tensors and numbers keep the values of the recorded call. Side effects happen only when
/// the function itself runs. See the [module documentation](super).
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::program::jit;
///
/// dims! { pub struct Row; pub struct Col; }
/// type Matrix = Tensor<f32, (Row, Col)>;
///
/// let normalized = jit::<&Matrix, _>(|x| (x / x.norm(Col)).eval());
/// for rows in [2, 3, 2] {
///     let x = randn((Row.of(rows), Col.of(5)), 1);
///     assert_eq!(normalized.call(&x), (&x / x.view().norm(Col)).eval());
/// }
/// assert_eq!(normalized.programs(), 2);
/// ```
pub fn jit<In, Out>(
    f: impl for<'t> Fn(HandedOf<'t, In>) -> Out + ReturnsTensors<Out>,
) -> Jit<In, Out, impl for<'t> Fn(HandedOf<'t, In>) -> Out>
where
    In: for<'t> Hand<'t>,
{
    Jit { f, most: 16, programs: Mutex::default(), inputs: PhantomData }
}

/// A function whose result is [`Parameters`]. The bound is on the function, because rustc would
/// report a bound on the result twice.
#[diagnostic::on_unimplemented(
    message = "`{Out}` is not made of tensors",
    label = "this function returns it; a tensor that owns its elements is expected, or a struct with `#[derive(Parameters)]`",
    note = "compute an expression first, `x.eval()`; a number is a tensor without dims, and `loss_and_grad` returns the loss as one"
)]
pub trait ReturnsTensors<Out> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<F, Out: Parameters> ReturnsTensors<Out> for F {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<In, Out, F> Jit<In, Out, F>
where
    In: for<'t> Hand<'t>,
    Out: Parameters,
    F: for<'t> Fn(HandedOf<'t, In>) -> Out,
{
    /// Keeps at most `programs` programs, or one if `programs` is 0. The least recently called
    /// program is dropped first. The default is 16.
    #[must_use]
    pub fn keep(self, programs: usize) -> Self {
        Jit { most: programs.max(1), ..self }
    }

    /// The number of programs that are kept now.
    pub fn programs(&self) -> usize {
        locked(&self.programs).len()
    }

    /// Computes the result of the function for these inputs.
    ///
    /// # Panics
    ///
    /// Panics if [`try_call`](Jit::try_call) returns an error, or if the function itself runs and
    /// panics.
    ///
    /// # Errors
    ///
    /// Returns an error if the function cannot be recorded (see [`record`](super::record())), if an
    /// input is a [`spec`](super::spec()), if an index is out of range, if an operation has no
    /// result for a matrix, or if memory runs out. A call that records runs the function itself: if
    /// an operation has no result there, it panics, unless the function uses its `try_` form.
    #[panicking_twin]
    pub fn try_call<I: InputsOf<In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        check_elements::<I>()?;
        // Most calls have the same signature as the previous call.
        let inputs = match self.latest() {
            Some(program) => match program.call_exactly(inputs) {
                Ok(result) => return result,
                Err(inputs) => inputs,
            },
            None => inputs,
        };
        self.call_first(inputs)
    }

    /// Writes the result of the function for these inputs into `out`: see [`Program::call_into`].
    ///
    /// # Panics
    ///
    /// Panics if [`try_call_into`](Jit::try_call_into) returns an error, or if the function itself
    /// runs and panics.
    ///
    /// # Errors
    ///
    /// Like [`try_call`](Jit::try_call). If a step fails, `out` is unchanged or its elements are
    /// zeros.
    #[panicking_twin]
    pub fn try_call_into<I: InputsOf<In::Value>>(&self, inputs: I, out: &mut Out) -> Result<(), DimError> {
        check_elements::<I>()?;
        let inputs = match self.latest() {
            Some(program) => match program.call_exactly_into(inputs, out) {
                Ok(result) => return result,
                Err(inputs) => inputs,
            },
            None => inputs,
        };
        *out = self.call_first(inputs)?;
        Ok(())
    }

    /// Calls the program for these inputs, after recording it if necessary. Runs the function
    /// itself if an input is traced, or if this thread is recording the program.
    fn call_first<I: InputsOf<In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        let mut signature = InputSignature::default();
        let value = inputs.walk(&mut Path::new(), &mut signature)?;
        let run_itself = |value| (self.f)(In::hand(&mut In::slots(value)));
        if signature.is_traced() {
            return Ok(run_itself(value));
        }
        let recorded = self.recorded(signature);
        if *locked(&recorded.recorder) == Some(thread::current().id()) {
            // The function calls itself while this thread records it. Waiting for the program would
            // never end.
            return Ok(run_itself(value));
        }
        let program = {
            let mut program = locked(&recorded.program);
            if program.is_none() {
                let _recorder = Recorder::new(&recorded.recorder);
                *program = Some(Arc::new(self.record(&value)?));
            }
            Arc::clone(program.as_ref().expect("the program was recorded"))
        };
        drop(value);
        program.try_call(inputs)
    }

    /// The most recently called program, if it is recorded already.
    fn latest(&self) -> Option<Arc<Program<In, Out>>> {
        let recorded = locked(&self.programs).first().cloned()?;
        let program = recorded.program.try_lock().ok()?;
        program.clone()
    }

    fn record(&self, value: &In::Value) -> Result<Program<In, Out>, DimError> {
        let mut variables = RecordedInputs::new(false);
        let traced = Parameters::walk([value], &mut Path::new(), &mut variables)?;
        recorded(&mut |handed| (self.f)(handed), traced, variables)
    }

    /// The entry of the program for this signature, moved to the front.
    fn recorded(&self, signature: InputSignature) -> Arc<Recorded<In, Out>> {
        let mut programs = locked(&self.programs);
        let recorded = match programs.iter().position(|own| own.signature == signature) {
            Some(at) => programs.remove(at),
            None => Arc::new(Recorded { signature, program: Mutex::default(), recorder: Mutex::default() }),
        };
        programs.insert(0, Arc::clone(&recorded));
        programs.truncate(self.most);
        recorded
    }
}

/// Locks a mutex, even after a panic: a function that panicked while it was recorded has no program
/// yet, and the next call records it.
fn locked<X>(mutex: &Mutex<X>) -> MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
