//! NaN and infinities.

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
    /// What it computed.
    pub step: Box<PlanStep>,
    /// The place in the program that asked for it, or for the step whose gradient it computes, if that is known.
    pub place: Origin,
    /// Whether it computes a gradient.
    pub is_backward: bool,
    /// Which element of the result it is, in the order in which these lie: the first one that is not finite.
    pub element: usize,
    /// How many elements the result has.
    pub len: usize,
    /// The element: NaN or an infinity.
    pub value: f64,
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotFinite { step, place, is_backward, element, len, value } = self;
        let place = StepSuffix { place: *place, is_backward: *is_backward };
        write!(
            f,
            "element {element} of {len} is {value}, the first that is not finite, in the result of this step{place}:\n{step}"
        )
    }
}

impl Error for NotFinite {}

/// Finds the first step with NaN or an infinity in its result: a mode, as [`check_finite`] runs it.
#[derive(Clone, Debug, Default)]
pub struct CheckFinite {
    found: Option<NotFinite>,
}

impl CheckFinite {
    /// The first step with NaN or an infinity in its result, if there was one.
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

/// Runs `f`, and returns what it returns, or the first step on this thread with NaN or an infinity in its result.
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
/// `f` runs to its end in either case. An infinity that is meant, as in a mask, is found as well: results of floats and complex numbers are to be finite. Elements that no step computed, such as
/// those of an array, count where a step copies or reads them into its result.
///
/// # Errors
///
/// The step, the place in the program that asked for it, and the element.
pub fn check_finite<T>(f: impl FnOnce() -> T) -> Result<T, NotFinite> {
    let mut mode = CheckFinite::default();
    let result = with(&mut mode, f);
    match mode.found {
        Some(found) => Err(found),
        None => Ok(result),
    }
}
