//! Functions that are recorded at the first call, and for each new tuple of sizes.

use super::inputs::{Hand, HandedOf, RecordInputs};
use super::record::{InputSetting, InputTensor, Program, RecordedInputs, RecordedKinds, recorded};
use crate::error::{DimError, unwrap};
use crate::grad::parameters::{Parameters, Path, Walk};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::marker::PhantomData;
use kernels::scalar::Element;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// A function that is recorded by its calls: see [`jit`].
pub struct Jit<In, Out, F> {
    f: F,
    /// How many programs are kept.
    most: usize,
    /// Those that were called last come first.
    programs: Mutex<Vec<Arc<Recorded<In, Out>>>>,
    inputs: PhantomData<fn(In) -> Out>,
}

/// The program for inputs of some sizes and settings.
struct Recorded<In, Out> {
    given: RecordedKinds,
    /// Nothing until it is recorded, by the thread that has the lock.
    program: Mutex<Option<Arc<Program<In, Out>>>>,
    /// The thread that records it now.
    recorder: Mutex<Option<ThreadId>>,
}

/// While it lives, this thread records.
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

/// A function that is recorded at its first call, and again for each new tuple of sizes, and whose programs are run by further calls. Settings of optimizers count as sizes: after `set_rate` or
/// `freeze` it is recorded again.
///
/// The types of the inputs are named, as rustc checks the function before it sees a call: `jit::<(&Network, &Images), _>(|(net, x)| net.scores(x))`. The function gets by value what is
/// passed by value.
///
/// Where the axes of a tensor lie in memory in another order, sums may be rounded in another way: that is recorded anew, too.
///
/// The programs for the last 16 tuples of sizes are kept: see [`keep`](Jit::keep). Other threads can call at the same time; while one thread records, those that call with the same
/// sizes wait. In a gradient or a function that is recorded, by whose inputs a call is made, the function itself runs; so it does where it calls itself while it is recorded.
///
/// What the function captures, and what it does besides computing, belongs to the recorded call: see [`record`](super::record()).
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

/// A function whose result is made of [`Parameters`]. (A bound of the function, as rustc would name a bound of the result twice.)
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
    /// Keeps the programs for so many tuples of sizes, those that were called last; at least one.
    #[must_use]
    pub fn keep(self, programs: usize) -> Self {
        Jit { most: programs.max(1), ..self }
    }

    /// How many programs are kept.
    pub fn programs(&self) -> usize {
        locked(&self.programs).len()
    }

    /// The result of the function for these inputs.
    ///
    /// # Panics
    ///
    /// Where [`try_call`](Jit::try_call) returns an error, and where the function itself panics when it is recorded.
    #[track_caller]
    pub fn call<I: RecordInputs<Value = In::Value>>(&self, inputs: I) -> Out {
        unwrap(self.try_call(inputs))
    }

    /// As [`call`](Jit::call), but what cannot be recorded is an error, and so is what sizes and indices decide.
    ///
    /// # Errors
    ///
    /// If a step cannot be run again, an index is out of range, or there is no memory.
    pub fn try_call<I: RecordInputs<Value = In::Value>>(&self, inputs: I) -> Result<Out, DimError> {
        let mut given = KindsOfInputs::default();
        let value = inputs.walk(&mut Path::new(), &mut given)?;
        if given.is_traced {
            let mut slots = In::slots(value);
            return Ok((self.f)(In::hand(&mut slots)));
        }
        let recorded = self.recorded(given.given);
        if *locked(&recorded.recorder) == Some(thread::current().id()) {
            // (The function calls itself: it would wait for the program that it is recorded as.)
            let mut slots = In::slots(value);
            return Ok((self.f)(In::hand(&mut slots)));
        }
        let program = {
            let mut program = locked(&recorded.program);
            if program.is_none() {
                let _recorder = Recorder::new(&recorded.recorder);
                *program = Some(Arc::new(self.record(&value)?));
            }
            Arc::clone(program.as_ref().expect("it was recorded"))
        };
        drop(value);
        program.try_call(inputs)
    }

    fn record(&self, value: &In::Value) -> Result<Program<In, Out>, DimError> {
        let mut variables = RecordedInputs::default();
        let traced = Parameters::walk([value], &mut Path::new(), &mut variables)?;
        recorded(&self.f, traced, variables)
    }

    /// The place of the program for these sizes, which comes first now.
    fn recorded(&self, given: RecordedKinds) -> Arc<Recorded<In, Out>> {
        let mut programs = locked(&self.programs);
        let recorded = match programs.iter().position(|own| own.given == given) {
            Some(at) => programs.remove(at),
            None => Arc::new(Recorded { given, program: Mutex::default(), recorder: Mutex::default() }),
        };
        programs.insert(0, Arc::clone(&recorded));
        programs.truncate(self.most);
        recorded
    }
}

/// (If a function panics while it is recorded, there is no program, and the next call records it.)
fn locked<X>(mutex: &Mutex<X>) -> MutexGuard<'_, X> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sizes of all tensors, and the settings; and whether a tensor belongs to a gradient or a function that is recorded.
#[derive(Default)]
struct KindsOfInputs {
    given: RecordedKinds,
    is_traced: bool,
}

impl Walk<1> for KindsOfInputs {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.given.tensors.push(InputTensor::of(path, tensor)?);
        self.is_traced |= tensor.expr.is_traced();
        Ok(tensor.clone())
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
