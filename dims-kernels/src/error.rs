//! The errors of this crate.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::panic::Location;

/// A location in the user's source code, if it is known.
pub type Origin = Option<&'static Location<'static>>;

/// A number of things, in a message: `1 axis`, `2 axes`.
pub struct Plural<'a>(pub usize, pub &'a str, pub &'a str);

impl fmt::Display for Plural<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Plural(count, one, many) = self;
        write!(f, "{count} {}", if count == 1 { one } else { many })
    }
}

/// Why a step has no result for a matrix.
#[cfg(feature = "linalg")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixFailure {
    /// It has no inverse.
    Singular,
    /// It is not positive definite.
    NotPositiveDefinite,
    /// It has an element that is infinite or NaN.
    NotFinite,
    /// The right-hand side of its system has an element that is infinite or NaN.
    RightSideNotFinite,
    /// A result is too large for its type.
    OutOfRange,
    /// Its elements are so large that rounding them changes all digits of the result.
    TooLarge,
    /// The iteration for its eigenvalues or singular values did not converge.
    NotConverged,
    /// The gradient of a result has an element that is infinite or NaN.
    ResultGradientNotFinite,
}

#[cfg(feature = "linalg")]
impl fmt::Display for MatrixFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MatrixFailure::Singular => "is singular",
            MatrixFailure::NotPositiveDefinite => "is not positive definite",
            MatrixFailure::NotFinite => "has an element that is infinite or NaN",
            MatrixFailure::RightSideNotFinite => {
                "has a right-hand side with an element that is infinite or NaN"
            }
            MatrixFailure::OutOfRange => "has a result that is too large for its type",
            MatrixFailure::TooLarge => "is so large that no digit of the result would be right",
            MatrixFailure::NotConverged => "has eigenvalues or singular values that were not found",
            MatrixFailure::ResultGradientNotFinite => {
                "has a result whose gradient has an element that is infinite or NaN"
            }
        })
    }
}

/// A matrix operation or its derivative, in messages.
pub struct MatrixOperation<'a> {
    /// The operation, such as `det`.
    pub operation: &'a str,
    /// The derivative, such as `gradient`; `None` for the operation itself.
    pub derivative: Option<&'a str>,
}

impl fmt::Display for MatrixOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(derivative) = self.derivative {
            write!(f, "the {derivative} of ")?;
        }
        write!(f, "`{}`", self.operation)
    }
}

/// Why a computation failed, or why a recorded function cannot be saved or restored.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A computed index is out of range for the axis that it selects from.
    OutOfBounds {
        /// A description of the axis, and of the dims that the index is computed from.
        what: String,
        /// The index.
        index: i128,
        /// The size of the axis.
        size: usize,
        /// Where the array was bound or, if that is unknown, where the failed step was called.
        origin: Origin,
    },
    /// The memory for a result cannot be allocated.
    TooLarge {
        /// The number of elements of the result.
        elements: usize,
    },
    /// A step without a derivative depends on variables of a gradient.
    NoDerivative {
        /// The step.
        operation: &'static str,
        /// The names of the variables.
        names: Vec<String>,
    },
    /// A user-defined step without a derivative depends on variables of a gradient. The user can
    /// define the derivative.
    NoOwnDerivative {
        /// The step.
        operation: &'static str,
        /// How to define it.
        remedy: &'static str,
        /// The names of the variables.
        names: Vec<String>,
    },
    /// A user-defined operation returned something invalid.
    Operation {
        /// The operation.
        name: &'static str,
        /// A description of the problem.
        what: String,
    },
    /// A step that cannot be run again depends on inputs of a recorded function.
    NotRecorded {
        /// The step.
        operation: &'static str,
    },
    /// A probability is not between 0 and 1.
    Probability {
        /// The function that draws numbers with this probability.
        operation: &'static str,
        /// The probability.
        p: f64,
    },
    /// A recorded function cannot be saved.
    Saved {
        /// The message.
        what: String,
    },
    /// A saved function cannot be restored, because its data is damaged.
    Damaged {
        /// A description of the damage.
        what: String,
        /// The number of the step that cannot be restored, if it is known.
        step: Option<usize>,
    },
    /// A step has no result for a matrix.
    #[cfg(feature = "linalg")]
    Matrix {
        /// The step.
        operation: &'static str,
        /// The derivative of the step that failed, such as `gradient`; `None` if the step itself
        /// failed.
        derivative: Option<&'static str>,
        /// Why the step has no result for the matrix.
        failure: MatrixFailure,
        /// The index of the matrix in the batch.
        at: usize,
        /// The number of matrices in the batch.
        batch: usize,
    },
    /// A pull-back failed.
    PullBack {
        /// The message.
        what: String,
    },
}

impl Error {
    /// Adds the source location of the failed step to an out-of-bounds error that has none.
    #[cfg(feature = "std")]
    pub(crate) fn at(mut self, place: Origin) -> Self {
        if let Error::OutOfBounds { origin, .. } = &mut self {
            *origin = origin.or(place);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfBounds { what, index, size, .. } => {
                write!(f, "index {index} of {what} is out of range for an axis of size {size}")
            }
            Error::NoDerivative { operation, .. } | Error::NoOwnDerivative { operation, .. } => {
                write!(f, "`{operation}` has no derivative")
            }
            Error::Operation { name, what } => write!(f, "the operation `{name}`: {what}"),
            Error::NotRecorded { operation } => {
                write!(f, "`{operation}` cannot be recorded: programs cannot run it again")
            }
            Error::Probability { operation, p } => {
                write!(f, "`{operation}` with the probability {p}: it must be between 0 and 1")
            }
            #[cfg(feature = "linalg")]
            &Error::Matrix { operation, derivative, failure, at, batch } => {
                write!(f, "{}: the matrix ", MatrixOperation { operation, derivative })?;
                match batch {
                    1 => write!(f, "{failure}"),
                    batch => write!(f, "at index {at} of {batch} {failure}"),
                }
            }
            Error::PullBack { what } | Error::Saved { what } => f.write_str(what),
            Error::Damaged { what, step } => {
                write!(f, "the saved program is damaged: {what}")?;
                step.map_or(Ok(()), |step| write!(f, " (step {step})"))
            }
            Error::TooLarge { elements } => {
                write!(f, "a result with {elements} elements does not fit into memory")
            }
        }
    }
}

impl core::error::Error for Error {}
