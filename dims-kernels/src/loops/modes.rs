//! Modes are listeners. They are told which steps ran on their thread, where the results are
//! stored, and which memory was freed.
//!
//! A noted step is *pending* until [`told`] or a function like it reports the result, [`ran`] is
//! called, or the next step is noted. Then all modes are told about the step.
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
use core::mem::{replace, take, transmute};
use core::panic::Location;
use core::slice;
use num_complex::Complex;

/// A listener for the steps that run on its thread while [`with`] runs a function.
///
/// Steps that a mode itself runs in its methods are not reported.
pub trait Mode {
    /// A step ran.
    fn ran(&mut self, ran: &Ran<'_>);

    /// A tensor's memory was freed, or was moved out of the library into an array. It may be memory
    /// that no step computed, such as the result of `zeros`.
    fn freed(&mut self, freed: &FreedMemory) {
        let _ = freed;
    }
}

/// A step that ran.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Ran<'r> {
    /// The step.
    pub step: &'r PlanStep,
    /// The source location that asked for it, or for the step whose gradient it computes, if known.
    pub place: Origin,
    /// Whether it computes a gradient.
    pub is_backward: bool,
    /// The number of enclosing loops of calls that began while the mode listened. Such a loop is
    /// itself a step ([`PlanStep::Calls`]), which is reported after the steps of the calls, and
    /// lists them.
    pub loops: usize,
    /// The memory of the results. The slice is empty if the memory is not reported: for example, if
    /// the result stays within an operation, as a packed operand of a product does, or is not
    /// contiguous.
    pub results: &'r [ResultMemory<'r>],
}

impl<'r> Ran<'r> {
    /// The memory of the first result.
    pub fn result(&self) -> Option<&'r ResultMemory<'r>> {
        self.results.first()
    }
}

/// Memory that was freed, or that an array took over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FreedMemory {
    /// The address of the first byte.
    pub address: usize,
    /// The size of all its elements in bytes.
    pub bytes: usize,
}

/// The memory of a result: contiguous elements, in memory order.
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

    /// The same memory, marked as the caller's if `is_given` is true.
    pub(crate) fn with_given(self, is_given: bool) -> Self {
        ResultMemory { is_given, ..self }
    }

    /// The address of the first byte.
    pub fn address(&self) -> usize {
        self.start.addr()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size of all elements in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The name of the element type, such as `f32`.
    pub fn element(&self) -> &'static str {
        self.name
    }

    /// Whether the result was written to memory of the caller, as by `assign` and `order_into`.
    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// The elements, if they have the type `T`.
    pub fn elements<T: Element>(&self) -> Option<&'r [T]> {
        if TypeId::of::<T>() != self.element {
            return None;
        }
        // SAFETY: these are the start and the length of a slice of this type, which is borrowed for
        // `'r`.
        Some(unsafe { slice::from_raw_parts(self.start.cast(), self.len) })
    }

    /// The elements as `f64`s: 0 and 1 for `bool`s, absolute values for complex numbers. Large
    /// integers are rounded. `None` for types that this does not convert, such as `i128`.
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
            Complex<f32>, |x| f64::from(x.re).hypot(x.im.into());
            // (The absolute value of a large number can overflow.)
            Complex<f64>, |x| if x.is_finite() { x.re.hypot(x.im).min(f64::MAX) } else { x.re.hypot(x.im) };
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

/// The listeners of a thread, and what has not been reported to them yet.
#[derive(Default)]
struct Listeners {
    /// The outermost mode is the first.
    modes: Vec<Listener>,
    pending: Option<PendingStep>,
    /// The memory that was freed since the step became pending.
    freed: Vec<FreedMemory>,
    /// The number of loops of calls that the thread is in.
    loops: usize,
    /// The number of outermost modes to which the steps that run are [reported as one](as_one).
    muted: usize,
}

struct Listener {
    mode: *mut (dyn Mode + 'static),
    /// The common prefix of the paths of the library's files, which are not reported as source
    /// locations.
    sources: &'static str,
    /// The number of loops of calls that the thread was in when the mode began to listen.
    loops: usize,
}

struct PendingStep {
    step: PlanStep,
    place: &'static Location<'static>,
    /// The source location of the recorded step that runs again.
    recorded: Origin,
    backward: Option<Origin>,
    loops: usize,
    /// The number of outermost modes that do not hear of this step.
    muted: usize,
}

std::thread_local! {
    static LISTENERS: RefCell<Listeners> = RefCell::default();
    static BACKWARD: Cell<Option<Origin>> = const { Cell::new(None) };
    static RECORDED: Cell<Origin> = const { Cell::new(None) };
}

/// Runs `f` while a mode listens. Source locations in files whose paths begin with `sources` are
/// not reported.
pub fn with<T>(mode: &mut (dyn Mode + '_), sources: &'static str, f: impl FnOnce() -> T) -> T {
    // Steps that ran earlier are not reported to this mode.
    ran();
    let mode: *mut (dyn Mode + '_) = mode;
    // SAFETY: only the lifetime differs. The pointer is used only until `Listening` is dropped, and
    // the mode is borrowed for longer.
    let mode = unsafe { transmute::<*mut (dyn Mode + '_), *mut (dyn Mode + 'static)>(mode) };
    LISTENERS.with_borrow_mut(|own| own.modes.push(Listener { mode, sources, loops: own.loops }));
    let listening = Listening { before: set_listener(Some(freed)) };
    let result = f();
    ran();
    drop(listening);
    result
}

/// A mode listens until this is dropped, even by a panic.
struct Listening {
    before: Option<FreedListener>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        set_listener(self.before);
        LISTENERS.with_borrow_mut(|own| {
            own.modes.pop();
            // A step that panicked is not reported.
            own.pending = None;
            if own.modes.is_empty() {
                own.freed.clear();
            }
        });
    }
}

/// While modes are told something, nothing listens: steps that they run themselves are not
/// reported.
struct Hearing {
    listeners: Listeners,
    before: Option<FreedListener>,
    backward: Option<Origin>,
    recorded: Origin,
}

impl Hearing {
    fn begin() -> Self {
        Hearing {
            listeners: LISTENERS.take(),
            before: set_listener(None),
            backward: BACKWARD.take(),
            recorded: RECORDED.take(),
        }
    }
}

impl Drop for Hearing {
    fn drop(&mut self) {
        LISTENERS.set(take(&mut self.listeners));
        set_listener(self.before);
        BACKWARD.set(self.backward);
        RECORDED.set(self.recorded);
    }
}

/// Tells all modes about the pending step, if there is one, and about freed memory that has not
/// been reported yet.
fn hear(results: &[ResultMemory<'_>]) {
    if LISTENERS.with_borrow(|own| own.pending.is_none() && own.freed.is_empty()) {
        return;
    }
    let mut hearing = Hearing::begin();
    let Listeners { modes, pending, freed, .. } = &mut hearing.listeners;
    if let Some(PendingStep { step, place, recorded, backward, loops, muted }) = pending.take() {
        let place = Some(place).filter(|place| !is_own(place)).or(recorded);
        for Listener { mode, sources, loops: outer } in modes.iter().skip(muted) {
            let place = place.filter(|place| !place.file().starts_with(sources));
            let ran = Ran {
                step: &step,
                place: place.or(backward.flatten()),
                is_backward: backward.is_some(),
                loops: loops - outer,
                results,
            };
            // SAFETY: the mode is borrowed exclusively by `with`, which has not returned. None of
            // its methods is running, because nothing listens while one runs.
            unsafe { &mut **mode }.ran(&ran);
        }
    }
    for freed in freed.drain(..) {
        for Listener { mode, .. } in modes.iter() {
            // SAFETY: as for `ran`.
            unsafe { &mut **mode }.freed(&freed);
        }
    }
}

/// Whether a source location is in this crate.
fn is_own(place: &Location<'_>) -> bool {
    const OWN: &str = file!();
    let sources = &OWN[..OWN.len() - "loops/modes.rs".len()];
    place.file().starts_with(sources)
}

/// Notes a pending step, if anything listens on this thread. The source location is the user's if
/// every function between the user's code and this one has `#[track_caller]`.
#[cfg_attr(not(unoptimized), inline(always))]
#[track_caller]
pub fn note(step: impl FnOnce() -> PlanStep) {
    if is_listening() {
        push(step(), Location::caller());
    }
}

/// Like [`note`], but notes nothing if `step` returns `None`. Returns whether it noted a step.
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
    let (recorded, backward) = (RECORDED.get(), BACKWARD.get());
    LISTENERS.with_borrow_mut(|own| {
        let (loops, muted) = (own.loops, own.muted);
        if own.modes.len() > muted {
            own.pending = Some(PendingStep { step, place, recorded, backward, loops, muted });
        }
    });
}

/// Reports this result of the pending step.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn told<T: Element>(data: &[T]) {
    if is_listening() {
        tell(data, false);
    }
}

/// Reports this result of the pending step, which was written to the caller's memory.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn told_given<T: Element>(data: &[T]) {
    if is_listening() {
        tell(data, true);
    }
}

#[cold]
#[inline(never)]
fn tell<T: Element>(data: &[T], is_given: bool) {
    hear(&[ResultMemory::of(data).with_given(is_given)]);
}

/// Reports this result of the pending step. An array takes the result over from the tensor.
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

/// Reports these results of the pending step.
#[inline]
pub fn told_all<'r>(results: impl Iterator<Item = ResultMemory<'r>>) {
    if is_listening() {
        hear(&results.collect::<Vec<_>>());
    }
}

/// Reports that the pending step ran, without the memory of its result.
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

/// Memory was freed: modes are told about it after the pending step, which may have read it.
fn freed(address: usize, bytes: usize) {
    if std::thread::panicking() {
        return;
    }
    LISTENERS.with_borrow_mut(|own| own.freed.push(FreedMemory { address, bytes }));
    if LISTENERS.with_borrow(|own| own.pending.is_none()) {
        hear(&[]);
    }
}

/// Runs `f`, which makes one or more calls of a loop. Returns its result and the steps that ran,
/// which become part of the loop's step; no steps if nothing listens.
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

struct StepsOfCall(Vec<PlanStep>);

impl Mode for StepsOfCall {
    fn ran(&mut self, ran: &Ran<'_>) {
        if ran.loops == 0 {
            self.0.push(ran.step.clone());
        }
    }
}

/// Counts one more loop of calls on this thread, until it is dropped.
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

/// Runs `f` without reporting its steps to the modes that listen now. The caller notes one step for
/// all of them. Modes that begin to listen within `f` are told about its steps.
pub fn as_one<T>(f: impl FnOnce() -> T) -> T {
    ran();
    let before = LISTENERS.with_borrow_mut(|own| {
        let listening = own.modes.len();
        replace(&mut own.muted, listening)
    });
    let _reported = ReportedAsOne { before };
    f()
}

struct ReportedAsOne {
    before: usize,
}

impl Drop for ReportedAsOne {
    fn drop(&mut self) {
        LISTENERS.with_borrow_mut(|own| own.muted = self.before);
    }
}

/// While this value exists, a step of a recorded program runs again on this thread. The steps that
/// it notes have the source location that was passed to [`at`](RunsAgain::at).
pub struct RunsAgain {
    before: Origin,
}

impl RunsAgain {
    /// Starts to run a recorded step with this source location again.
    pub fn at(place: Origin) -> Self {
        RunsAgain { before: RECORDED.replace(place) }
    }
}

impl Drop for RunsAgain {
    fn drop(&mut self) {
        // A pending step recorded the source location when it was noted.
        RECORDED.set(self.before);
    }
}

/// While this value exists, steps noted on this thread are reported as computing the gradient of
/// the step whose source location was passed to [`of`](Backward::of).
pub struct Backward(Option<Origin>);

impl Backward {
    /// Starts to compute the gradient of a step with this source location.
    pub fn of(place: Origin) -> Self {
        Backward(BACKWARD.replace(Some(place)))
    }
}

impl Drop for Backward {
    fn drop(&mut self) {
        // A pending step of this gradient recorded the source location when it was noted.
        BACKWARD.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source locations of the steps that a mode hears of.
    #[derive(Default)]
    struct Places(Vec<Origin>);

    impl Mode for Places {
        fn ran(&mut self, ran: &Ran<'_>) {
            self.0.push(ran.place);
        }
    }

    /// A mode that runs a step itself, with a mode of its own.
    #[derive(Default)]
    struct Nested {
        own: Places,
        inner: Places,
    }

    impl Mode for Nested {
        fn ran(&mut self, ran: &Ran<'_>) {
            self.own.ran(ran);
            with(&mut self.inner, "no path", step);
        }
    }

    fn step() {
        note(|| PlanStep::Lines { work: "sort", lines: 1, len: 1, bytes: 4, threads: 1 });
    }

    #[test]
    fn modes_within_one_step_hear_of_its_steps() {
        let (mut outer, mut inner) = (Places::default(), Places::default());
        with(&mut outer, "no path", || {
            as_one(|| {
                step();
                with(&mut inner, "no path", step);
                step();
            });
            step();
        });
        assert_eq!((outer.0.len(), inner.0.len()), (1, 1));
    }

    #[test]
    fn steps_of_modes_do_not_have_the_source_location_of_the_recorded_step() {
        let place = Some(Location::caller());
        let _again = RunsAgain::at(place);
        let mut nested = Nested::default();
        with(&mut nested, "no path", step);
        assert_eq!((nested.own.0, nested.inner.0), (vec![place], vec![None]));
        assert_eq!(RECORDED.get(), place);
    }
}
