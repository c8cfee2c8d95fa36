//! Modes: values that hear which steps ran on their thread, with the memory of the results, and which memory was freed.
//!
//! A kernel notes its step before it runs. The step is *pending* until whoever has the result tells it ([`told`], [`ran`]), or the next step is noted. Then all modes hear it.
//!
//! ```text
//! note(step)  ->  kernel  ->  told(&result)  ->  Mode::ran of each mode
//! ```

use super::steps::PlanStep;
use crate::error::Origin;
use crate::memory::listener::{self, FreedListener, is_listening, set_listener};
use crate::scalar::Element;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::{TypeId, type_name};
use core::cell::{Cell, RefCell};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{take, transmute};
use core::panic::Location;
use core::slice;
use num_complex::Complex;

/// Hears what runs on its thread while [`with`] runs a function.
///
/// What a mode runs itself in its methods, no mode hears.
pub trait Mode {
    /// A step ran.
    fn ran(&mut self, ran: &Ran<'_>);

    /// A tensor's memory was freed, or left the library in an array. It may be memory that no step computed, such as that of `zeros`.
    fn freed(&mut self, freed: &FreedMemory) {
        let _ = freed;
    }
}

/// A step that ran.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ran<'r> {
    /// What ran.
    pub step: &'r PlanStep,
    /// The place in the program that asked for it, or for the step whose gradient it computes, if that is known.
    pub place: Origin,
    /// Whether it computes a gradient.
    pub is_backward: bool,
    /// In how many loops of calls it ran. Such a loop is a step of its own ([`PlanStep::Calls`]): it comes after the steps of the calls, and lists them.
    pub loops: usize,
    /// The memory of the results. Most steps have one result. There is none where it is kept within an operation, as a copy of an operand of a product is.
    pub results: &'r [ResultMemory<'r>],
}

impl<'r> Ran<'r> {
    /// The memory of the first result.
    pub fn result(&self) -> Option<&'r ResultMemory<'r>> {
        self.results.first()
    }
}

/// Memory that was freed, or that an array has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreedMemory {
    /// Where it begins.
    pub address: usize,
    /// The bytes of its elements.
    pub bytes: usize,
}

/// The memory of a result: elements one behind the other, in the order in which they lie.
#[derive(Clone, Copy)]
pub struct ResultMemory<'r> {
    start: *const u8,
    len: usize,
    bytes: usize,
    element: TypeId,
    name: &'static str,
    is_given: bool,
    marker: PhantomData<&'r [u8]>,
}

impl<'r> ResultMemory<'r> {
    /// The memory of these elements.
    pub fn of<T: Element>(data: &'r [T]) -> Self {
        ResultMemory {
            start: data.as_ptr().cast(),
            len: data.len(),
            bytes: size_of_val(data),
            element: TypeId::of::<T>(),
            name: type_name::<T>(),
            is_given: false,
            marker: PhantomData,
        }
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.start.addr()
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The type of the elements, such as `f32`.
    pub fn element(&self) -> &'static str {
        self.name
    }

    /// Whether the result was written to memory that the program gave, as `assign` and `order_into` do.
    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// The elements, if `T` is their type.
    pub fn elements<T: Element>(&self) -> Option<&'r [T]> {
        if TypeId::of::<T>() != self.element {
            return None;
        }
        // SAFETY: these are the start and the length of a slice of this type, which is borrowed for `'r`.
        Some(unsafe { slice::from_raw_parts(self.start.cast(), self.len) })
    }

    /// The elements as numbers, if they are: of `bool`s 0 and 1, of complex numbers the absolute values.
    pub fn values(&self) -> Option<Box<dyn Iterator<Item = f64> + 'r>> {
        macro_rules! of {
            ($($element:ty, |$x:ident| $value:expr;)*) => {$(
                if let Some(elements) = self.elements::<$element>() {
                    return Some(Box::new(elements.iter().map(|&$x| $value)));
                }
            )*};
        }
        of! {
            f32, |x| x.into(); f64, |x| x; bool, |x| x.into();
            i8, |x| x.into(); i16, |x| x.into(); i32, |x| x.into(); i64, |x| x as f64; isize, |x| x as f64;
            u8, |x| x.into(); u16, |x| x.into(); u32, |x| x.into(); u64, |x| x as f64; usize, |x| x as f64;
            Complex<f32>, |x| f64::from(x.re).hypot(x.im.into()); Complex<f64>, |x| x.re.hypot(x.im);
        }
        #[cfg(feature = "half")]
        of! { half::f16, |x| x.into(); half::bf16, |x| x.into(); }
        None
    }
}

impl fmt::Debug for ResultMemory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} at {:#x}", self.len, self.name, self.address())
    }
}

/// Who listens on a thread, and what they are to hear.
#[derive(Default)]
struct Listeners {
    /// The outermost comes first.
    modes: Vec<Listener>,
    pending: Option<PendingStep>,
    /// What was freed since the step is pending.
    freed: Vec<FreedMemory>,
    /// In how many loops of calls the thread is.
    loops: usize,
}

struct Listener {
    mode: *mut (dyn Mode + 'static),
    /// How the paths of the library's files begin: they are no places of the program.
    sources: &'static str,
    /// In how many loops of calls the thread was when the mode began to listen.
    loops: usize,
}

/// A step that was noted, and whose result was not told yet.
struct PendingStep {
    step: PlanStep,
    place: &'static Location<'static>,
    backward: Option<Origin>,
    loops: usize,
}

std::thread_local! {
    static LISTENERS: RefCell<Listeners> = RefCell::default();
    static BACKWARD: Cell<Option<Origin>> = const { Cell::new(None) };
}

/// Runs `f` while a mode listens. Places in files whose paths begin with `sources` are no places of the program.
pub fn with<T>(mode: &mut (dyn Mode + '_), sources: &'static str, f: impl FnOnce() -> T) -> T {
    // (What ran before, this mode does not hear.)
    ran();
    let mode: *mut (dyn Mode + '_) = mode;
    // SAFETY: only the lifetime differs. The pointer is used until `Listening` is dropped, and the mode is borrowed longer.
    let mode = unsafe { transmute::<*mut (dyn Mode + '_), *mut (dyn Mode + 'static)>(mode) };
    LISTENERS.with_borrow_mut(|own| own.modes.push(Listener { mode, sources, loops: own.loops }));
    let listening = Listening { before: set_listener(Some(freed)) };
    let result = f();
    ran();
    drop(listening);
    result
}

/// A mode listens, until this is dropped, also by a panic.
struct Listening {
    before: Option<FreedListener>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        set_listener(self.before);
        LISTENERS.with_borrow_mut(|own| {
            own.modes.pop();
            // (A step that panicked did not run.)
            own.pending = None;
            if own.modes.is_empty() {
                own.freed.clear();
            }
        });
    }
}

/// Modes hear something, and nobody listens meanwhile: not to what they run themselves.
struct Hearing {
    listeners: Listeners,
    before: Option<FreedListener>,
    backward: Option<Origin>,
}

impl Hearing {
    fn begin() -> Self {
        Hearing { listeners: LISTENERS.take(), before: set_listener(None), backward: BACKWARD.take() }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        LISTENERS.set(take(&mut self.listeners));
        set_listener(self.before);
        BACKWARD.set(self.backward);
    }
}

/// All modes hear the pending step, if there is one, and what was freed since then.
fn hear(results: &[ResultMemory<'_>]) {
    if LISTENERS.with_borrow(|own| own.pending.is_none() && own.freed.is_empty()) {
        return;
    }
    let mut hearing = Hearing::begin();
    let Listeners { modes, pending, freed, .. } = &mut hearing.listeners;
    if let Some(PendingStep { step, place, backward, loops }) = pending.take() {
        for Listener { mode, sources, loops: outer } in modes.iter() {
            let place = Some(place).filter(|place| !place.file().starts_with(sources));
            let ran = Ran {
                step: &step,
                place: place.filter(|place| !is_own(place)).or(backward.flatten()),
                is_backward: backward.is_some(),
                loops: loops - outer,
                results,
            };
            // SAFETY: the mode is borrowed exclusively by `with`, which has not returned, and no method of it runs: nobody listens during one.
            unsafe { &mut **mode }.ran(&ran);
        }
    }
    for freed in freed.drain(..) {
        for Listener { mode, .. } in modes.iter() {
            // SAFETY: as above.
            unsafe { &mut **mode }.freed(&freed);
        }
    }
}

/// Whether a place is in this crate.
fn is_own(place: &Location<'_>) -> bool {
    const OWN: &str = file!();
    let sources = &OWN[..OWN.len() - "loops/modes.rs".len()];
    place.file().starts_with(sources)
}

/// Notes a pending step, if anybody listens on this thread. Its place in the program is known if all functions between there and here track their callers.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub fn note(step: impl FnOnce() -> PlanStep) {
    if is_listening() {
        push(step(), Location::caller());
    }
}

/// The same for what may be no step of plans. Returns whether a step is pending now.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub fn note_if(step: impl FnOnce() -> Option<PlanStep>) -> bool {
    if is_listening()
        && let Some(step) = step()
    {
        push(step, Location::caller());
        return true;
    }
    false
}

#[cold]
#[inline(never)]
fn push(step: PlanStep, place: &'static Location<'static>) {
    hear(&[]);
    let backward = BACKWARD.get();
    LISTENERS.with_borrow_mut(|own| {
        own.pending = Some(PendingStep { step, place, backward, loops: own.loops });
    });
}

/// The pending step has this result.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn told<T: Element>(data: &[T]) {
    if is_listening() {
        tell(data, false);
    }
}

/// The pending step has this result, in memory that the program gave.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn told_given<T: Element>(data: &[T]) {
    if is_listening() {
        tell(data, true);
    }
}

#[cold]
#[inline(never)]
fn tell<T: Element>(data: &[T], is_given: bool) {
    hear(&[ResultMemory { is_given, ..ResultMemory::of(data) }]);
}

/// The pending step has this result, which an array has from now on, and no tensor.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn told_array<T: Element>(data: &[T]) {
    if is_listening() {
        tell_array(data);
    }
}

#[cold]
#[inline(never)]
fn tell_array<T: Element>(data: &[T]) {
    tell(data, false);
    listener::freed(data.as_ptr(), data.len());
}

/// The pending step has these results.
#[inline]
pub fn told_all<'r>(results: impl Iterator<Item = ResultMemory<'r>>) {
    if is_listening() {
        hear(&results.collect::<Vec<_>>());
    }
}

/// The pending step ran. Its result is in no memory that could be told.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn ran() {
    if is_listening() {
        ended();
    }
}

#[cold]
#[inline(never)]
fn ended() {
    hear(&[]);
}

/// Memory was freed: modes hear it after the pending step, which may have read it.
fn freed(address: usize, bytes: usize) {
    if std::thread::panicking() {
        return;
    }
    LISTENERS.with_borrow_mut(|own| own.freed.push(FreedMemory { address, bytes }));
    if LISTENERS.with_borrow(|own| own.pending.is_none()) {
        hear(&[]);
    }
}

/// Runs one call of a loop, and returns its steps, which are those of another step: of the loop.
pub fn aside<T>(f: impl FnOnce() -> T) -> (T, Vec<PlanStep>) {
    if !is_listening() {
        return (f(), Vec::new());
    }
    let mut steps = StepsOfCall(Vec::new());
    let inside = InsideLoop::begin();
    let result = with(&mut steps, "", f);
    drop(inside);
    (result, steps.0)
}

/// The steps of a call.
struct StepsOfCall(Vec<PlanStep>);

impl Mode for StepsOfCall {
    fn ran(&mut self, ran: &Ran<'_>) {
        if ran.loops == 0 {
            self.0.push(ran.step.clone());
        }
    }
}

/// The thread is in one more loop of calls, until this is dropped.
struct InsideLoop;

impl InsideLoop {
    fn begin() -> Self {
        ran();
        LISTENERS.with_borrow_mut(|own| own.loops += 1);
        InsideLoop
    }
}

impl Drop for InsideLoop {
    fn drop(&mut self) {
        LISTENERS.with_borrow_mut(|own| own.loops -= 1);
    }
}

/// While it lives, the steps that this thread notes compute the gradient of a step that the program asked for at a place.
pub struct Backward(Option<Origin>);

impl Backward {
    /// The gradient of the step at this place.
    pub fn of(place: Origin) -> Self {
        Backward(BACKWARD.replace(Some(place)))
    }
}

impl Drop for Backward {
    fn drop(&mut self) {
        // (The steps of this gradient took their place down when they were noted.)
        BACKWARD.set(self.0);
    }
}
