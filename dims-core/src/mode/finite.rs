//! Finds NaN and infinities in results.

use super::{Mode, Ran, with};
use crate::error::{Origin, StepSuffix};
use alloc::boxed::Box;
use core::error::Error;
use core::fmt;
use kernels::loops::steps::PlanStep;

/// A step with NaN or an infinity in its result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NotFinite {
    /// The step.
    pub step: Box<PlanStep>,
    /// The source location of the operation, if known. For a step of a gradient, the location of
    /// the operation that the step differentiates.
    pub place: Origin,
    /// Whether the step computes a gradient.
    pub is_backward: bool,
    /// The index in memory order of the first element that is not finite.
    pub element: usize,
    /// The number of elements of the result.
    pub len: usize,
    /// The element's value, or the absolute value of a complex element: NaN or an infinity.
    pub value: f64,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotFinite { step, place, is_backward, element, len, value } = self;
        let place = StepSuffix { place: *place, is_backward: *is_backward };
        write!(
            f,
            "the first element that is not finite is {value}, at index {element} of {len}, in the result of this step{place}:\n{step}"
        )
    }
}

impl Error for NotFinite {}

/// Finds the first step with NaN or an infinity in its result: the mode of [`check_finite`].
#[derive(Clone, Debug, Default)]
pub struct CheckFinite {
    found: Option<NotFinite>,
}

impl CheckFinite {
    /// The first step with NaN or an infinity in its result, if any.
    pub fn found(&self) -> Option<&NotFinite> {
        self.found.as_ref()
    }
}

impl Mode for CheckFinite {
    fn ran(&mut self, ran: &Ran<'_>) {
        if self.found.is_some() {
            return;
        }
        for result in ran.results {
            let Some(values) = result.values() else { continue };
            if let Some((element, value)) = values.enumerate().find(|(_, value)| !value.is_finite()) {
                let Ran { step, place, is_backward, .. } = *ran;
                let (step, len) = (Box::new(step.clone()), result.len());
                self.found = Some(NotFinite { step, place, is_backward, element, len, value });
                return;
            }
        }
    }
}

/// Runs `f` and returns its result, or the first step on this thread with NaN or an infinity in its
/// result.
///
/// ```
/// use typed_dims::mode;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct Word; }
/// let counts = from_vec(Word.of(3), vec![2.0, 0.0, 1.0]);
/// let error = mode::check_finite(|| counts.ln().eval()).unwrap_err();
/// assert_eq!((error.element, error.value), (1, f64::NEG_INFINITY));
/// assert!(error.place.is_some_and(|place| place.file() == file!()));
/// ```
///
/// `f` runs to its end in either case. Intended infinities, as in a mask, are reported too: all
/// float and complex results must be finite. (Results written to memory with gaps are not checked.)
///
/// # Errors
///
/// If the result of a step has NaN or an infinity: the first such step, its source location, and
/// the element.
pub fn check_finite<T>(f: impl FnOnce() -> T) -> Result<T, NotFinite> {
    let mut mode = CheckFinite::default();
    let result = with(&mut mode, f);
    match mode.found {
        Some(found) => Err(found),
        None => Ok(result),
    }
}
