//! Errors at run time, with the names and sizes of dims.
//!
//! Most operations that depend on sizes or indices at run time have a `try_` form that returns
//! [`DimError`]. The form without `try_` panics with the same text.

use alloc::string::String;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::fmt;
use core::panic::Location;
use kernels::error::{MatrixOperation, Plural};
use kernels::load::gather::OF_LABEL;

pub use kernels::error::Origin;

/// Why an operation on tensors could not run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DimError {
    /// One dim was given two sizes.
    SizeConflict {
        /// The dim's name.
        dim: &'static str,
        /// The first size.
        first: usize,
        /// Where the first size came from.
        first_origin: Origin,
        /// The second size.
        second: usize,
        /// Where the second size came from.
        second_origin: Origin,
    },
    /// A dim and its [prime](crate::types::prime), which must have the same size, were given
    /// different sizes.
    PrimeConflict {
        /// The name of the dim that had its size first.
        dim: &'static str,
        /// Its size.
        first: usize,
        /// Where the first size came from.
        first_origin: Origin,
        /// The name of the other dim.
        other: &'static str,
        /// Its size.
        second: usize,
        /// Where the second size came from.
        second_origin: Origin,
    },
    /// A dim with a static size was bound to an axis of another size, or given another size.
    StaticSize {
        /// The dim's name.
        dim: &'static str,
        /// Its static size.
        fixed: usize,
        /// The other size.
        found: usize,
        /// Where the dim was bound or given the size.
        origin: Origin,
    },
    /// The size of a dim was needed, but nothing has given it one.
    Unsized {
        /// The dim's name.
        dim: &'static str,
    },
    /// An index is out of range for its axis.
    OutOfBounds {
        /// The axis or the dim, and the dims that the index is computed from, if any.
        what: String,
        /// The index.
        index: i128,
        /// The size of the axis.
        size: usize,
        /// Where the array was bound, or where the operation was called.
        origin: Origin,
    },
    /// A range is out of bounds for its axis, or ends before it starts.
    RangeOutOfBounds {
        /// The axis or the dim.
        what: String,
        /// Where the range starts.
        start: i128,
        /// Where it ends, exclusive.
        end: i128,
        /// The size of the axis.
        size: usize,
    },
    /// An axis cannot be split into the dims of a group.
    Split {
        /// The dim that was split, if the axis has a name.
        dim: Option<&'static str>,
        /// The group as written, with known sizes filled in.
        group: String,
        /// The size of the axis.
        size: usize,
        /// The reason.
        why: &'static str,
        /// Where the axis was bound.
        origin: Origin,
    },
    /// The number of axes of an array differs from the number that was bound.
    Rank {
        /// The array's number of axes.
        found: usize,
        /// The number of axes bound.
        bound: usize,
    },
    /// An axis of a pattern was given two sizes.
    AxisConflict {
        /// The axis, as the pattern names it.
        axis: &'static str,
        /// The first size.
        first: usize,
        /// Where the first size came from.
        first_place: String,
        /// The second size.
        second: usize,
        /// Where the second size came from.
        second_place: String,
        /// The pattern.
        pattern: &'static str,
    },
    /// The number of axes of an array does not fit a pattern.
    PatternRank {
        /// The array's number of axes.
        found: usize,
        /// The number of axes that the pattern names.
        named: usize,
        /// Whether the pattern allows more axes: with `...`, or with `*` in `pack!`.
        spread: bool,
    },
    /// Two positional axes have different sizes, and neither size is 1, or an assignment would have
    /// to broadcast its target.
    Broadcast {
        /// The axis, counted from the right, starting at 0.
        axis: usize,
        /// The size in one operand.
        first: usize,
        /// The size in another operand.
        second: usize,
    },
    /// The number of elements does not match the shape.
    Length {
        /// The dims with their sizes.
        dims: String,
        /// The expected number of elements.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// A reduction that needs at least one element got none.
    EmptyReduction {
        /// The reduction.
        op: &'static str,
        /// The dims that were reduced.
        dims: String,
    },
    /// A result is too large for the address space or the available memory.
    TooLarge {
        /// A description of the result's size, such as its dims with their sizes.
        dims: String,
    },
    /// A gradient cannot be taken through an operation.
    NoDerivative {
        /// The operation.
        operation: &'static str,
        /// Where it ran.
        origin: Origin,
        /// The names of the parameters that the operation depends on. If there are more than four,
        /// the first three are named and the others are counted. Only parameters in a struct, a
        /// tuple or a list have names.
        parameters: String,
    },
    /// A gradient cannot be taken through an operation unless the program is changed. For example,
    /// a user-defined function has no derivative.
    NoOwnDerivative {
        /// The operation.
        operation: &'static str,
        /// What to change, such as how to give the function a derivative.
        remedy: &'static str,
        /// Where the operation ran.
        origin: Origin,
        /// The parameters that it depends on, as in [`NoDerivative`](DimError::NoDerivative).
        parameters: String,
    },
    /// A function with a custom derivative uses a traced tensor that is not one of its inputs.
    NotAnInput {
        /// The function.
        operation: &'static str,
        /// Where it was called.
        origin: Origin,
        /// The parameters that the tensor depends on, as in
        /// [`NoDerivative`](DimError::NoDerivative).
        parameters: String,
    },
    /// A loss does not depend on a parameter.
    Unused {
        /// The parameter's path, such as `layers.3.weight`; empty for a single tensor.
        parameter: String,
        /// Where the gradient was taken.
        origin: Origin,
    },
    /// No parameter of a gradient has float elements.
    NoFloats {
        /// Where the gradient was taken.
        origin: Origin,
    },
    /// An operation failed for a matrix: for example, the matrix is singular or not positive
    /// definite, has an element that is infinite or NaN, or a result is too large.
    Matrix {
        /// The operation, such as `det`.
        operation: &'static str,
        /// The derivative of the operation that failed: `gradient` or `second derivative`. `None` if
        /// the operation itself failed.
        derivative: Option<&'static str>,
        /// Why it failed, such as `is singular`.
        failure: String,
        /// The index of the matrix in the batch of one call.
        at: usize,
        /// Its position in the batch, such as `b = 3, t = 7`, or `index 7 of 8` in gradients and in
        /// calls to recorded programs. It may be empty if there is only one matrix. In a loop of
        /// calls, such as `map_each`, the position of the example comes first.
        place: String,
    },
    /// Any other error. For example, sizes do not fit together, an argument is out of range, or an
    /// operation cannot be recorded.
    Shape {
        /// The text of the error.
        what: String,
    },
}

/// A source location, appended to a message.
pub(crate) struct OriginSuffix(pub(crate) Origin);

impl fmt::Display for OriginSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, " (at {}:{}:{})", place.file(), place.line(), place.column()),
            None => Ok(()),
        }
    }
}

/// The source location of a step, appended to its name. `is_backward` is true if the step computes
/// a gradient.
pub(crate) struct StepSuffix {
    pub(crate) place: Origin,
    pub(crate) is_backward: bool,
}

impl fmt::Display for StepSuffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place, self.is_backward) {
            (place, false) => OriginSuffix(place).fmt(f),
            (Some(place), true) => {
                write!(f, " (gradient, at {}:{}:{})", place.file(), place.line(), place.column())
            }
            (None, true) => f.write_str(" (gradient)"),
        }
    }
}

/// The parameters that an operation depends on, appended to its name.
struct ParametersSuffix<'a>(&'a str);

impl fmt::Display for ParametersSuffix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ", which depends on {}", self.0) }
    }
}

/// Converts a position along an axis, which counts from the end if it is negative, to the position
/// counted from the start.
pub(crate) fn from_start(position: i128, size: usize) -> i128 {
    if position < 0 { position + size as i128 } else { position }
}

/// Whether both ends of a range are within an axis, but in the wrong order.
fn ends_before_start(start: i128, end: i128, size: usize) -> bool {
    let (from, to) = (from_start(start, size), from_start(end, size));
    from > to && to >= 0 && from <= size as i128
}

/// A function that tells whether the dim with this name is dynamic and is being recorded at this
/// size.
#[cfg(feature = "std")]
pub(crate) type IsRecordedSize = fn(&str, usize) -> bool;

#[cfg(feature = "std")]
std::thread_local! {
    /// Set while a function with dynamic dims is recorded on this thread.
    static IS_RECORDED_SIZE: Cell<Option<IsRecordedSize>> = const { Cell::new(None) };
}

/// Sets the function that tells messages which sizes exist only in a recording. Returns the
/// previous function.
#[cfg(feature = "std")]
pub(crate) fn set_recorded_sizes(own: Option<IsRecordedSize>) -> Option<IsRecordedSize> {
    IS_RECORDED_SIZE.replace(own)
}

/// Whether a function with dynamic dims is being recorded on this thread.
#[cfg(feature = "std")]
fn is_recording_dynamic() -> bool {
    IS_RECORDED_SIZE.get().is_some()
}

/// Without the standard library, nothing is recorded.
#[cfg(not(feature = "std"))]
fn is_recording_dynamic() -> bool {
    false
}

/// Whether this is a size at which a dynamic dim with this name is being recorded on this thread.
#[cfg(feature = "std")]
fn is_recorded_size(dim: &str, size: usize) -> bool {
    IS_RECORDED_SIZE.get().is_some_and(|is_recorded| is_recorded(dim, size))
}

/// Without the standard library, nothing is recorded.
#[cfg(not(feature = "std"))]
fn is_recorded_size(_: &str, _: usize) -> bool {
    false
}

/// The end of a message with these dims and sizes. If one of the sizes is not the user's, but a
/// size at which a dynamic dim is being recorded, it says so. Otherwise it is empty.
pub(crate) struct RecordedSizeNote<'d>(pub(crate) &'d [(&'d str, usize)]);

impl fmt::Display for RecordedSizeNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.iter().find(|(dim, size)| is_recorded_size(dim, *size)) {
            Some((dim, size)) => {
                write!(f, "; `{dim}` is dynamic, and {size} is a size at which it is recorded")
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for DimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimError::SizeConflict { dim, first, first_origin, second, second_origin } => write!(
                f,
                "dim `{dim}` has size {first}{}, but was also given size {second}{}{}",
                OriginSuffix(*first_origin),
                OriginSuffix(*second_origin),
                RecordedSizeNote(&[(*dim, *first), (*dim, *second)])
            ),
            DimError::PrimeConflict { dim, first, first_origin, other, second, second_origin } => write!(
                f,
                "dim `{dim}` has size {first}{}, but `{other}`, which must have the same size, was given size {second}{}{}",
                OriginSuffix(*first_origin),
                OriginSuffix(*second_origin),
                RecordedSizeNote(&[(*dim, *first), (*other, *second)])
            ),
            DimError::StaticSize { dim, fixed, found, origin } => {
                write!(
                    f,
                    "dim `{dim}` has the static size {fixed}, but was given size {found}{}{}",
                    OriginSuffix(*origin),
                    RecordedSizeNote(&[(*dim, *found)])
                )
            }
            DimError::Unsized { dim } => write!(
                f,
                "the size of dim `{dim}` is not known here: bind it to an axis first, or give it a size, `{dim}.of(n)` if it is \
                 declared, `dims!({dim} = n)` if it is local"
            ),
            DimError::OutOfBounds { what, index, size, origin } => {
                write!(
                    f,
                    "index {index} of {what} is out of range for an axis of size {size}{}",
                    OriginSuffix(*origin)
                )?;
                if *index < 0 && what.ends_with(OF_LABEL) {
                    return write!(
                        f,
                        "; to leave out padding, use `cross_entropy_with` and `CrossEntropy::new().ignore_index({index})`"
                    );
                }
                // Only a computed index fails here: a plain negative integer counts from the end.
                if *index < 0 && *index >= -(*size as i128) {
                    f.write_str("; to count negative indices from the end, write `index.from_end(size)`")?;
                    // The macros that index arrays by tensors take no `from_end`.
                    if what.starts_with("axis ") {
                        f.write_str(", or add the size to the index in `tensor!` and `gather!`")?;
                    }
                }
                Ok(())
            }
            DimError::RangeOutOfBounds { what, start, end, size }
                if ends_before_start(*start, *end, *size) =>
            {
                write!(f, "the range {start}..{end} of {what} ends before it starts")
            }
            DimError::RangeOutOfBounds { what, start, end, size } => {
                write!(f, "the range {start}..{end} of {what} is out of range for an axis of size {size}")
            }
            DimError::Split { dim, group, size, why, origin } => {
                match dim {
                    Some(dim) => write!(f, "dim `{dim}`")?,
                    None => f.write_str("an axis")?,
                }
                write!(f, " of size {size} cannot be split into {group}: {why}{}", OriginSuffix(*origin))
            }
            DimError::Rank { found, bound } => {
                let were = if *bound == 1 { "was" } else { "were" };
                write!(f, "the array has {}, but {bound} {were} bound", Plural(*found, "axis", "axes"))
            }
            DimError::AxisConflict { axis, first, first_place, second, second_place, pattern }
                if first_place == second_place =>
            {
                write!(
                    f,
                    "axis `{axis}` has the sizes {first} and {second} {first_place}, in the pattern `{pattern}`"
                )
            }
            DimError::AxisConflict { axis, first, first_place, second, second_place, pattern } => write!(
                f,
                "axis `{axis}` has size {first} {first_place}, but {second} {second_place}, in the pattern `{pattern}`"
            ),
            DimError::PatternRank { found, named, spread } => {
                let least = if *spread { "at least " } else { "" };
                write!(
                    f,
                    "the array has {}, but the pattern names {least}{named}",
                    Plural(*found, "axis", "axes")
                )
            }
            DimError::Broadcast { axis, first, second } => write!(
                f,
                "positional axis {axis} from the right has size {first} in one operand and {second} in another"
            ),
            DimError::Length { dims, expected, found } => {
                let were = if *found == 1 { "was" } else { "were" };
                let elements = Plural(*expected, "element", "elements");
                write!(f, "a tensor with {dims} has {elements}, but {found} {were} given")
            }
            DimError::EmptyReduction { op, dims } => {
                write!(f, "`{op}` over {dims} has no elements to choose from")
            }
            DimError::TooLarge { dims } => {
                write!(f, "a result with {dims} does not fit into memory")?;
                if is_recording_dynamic() {
                    f.write_str("; each dynamic dim is recorded at sizes of about 500 or more: make fewer dims dynamic")?;
                }
                Ok(())
            }
            DimError::NoDerivative { operation, origin, parameters } => write!(
                f,
                "no gradient can be taken through `{operation}`{}{}: use operations that have a derivative, or write `x.detach()` for its operand if no gradient is wanted",
                OriginSuffix(*origin),
                ParametersSuffix(parameters)
            ),
            // (The operand can be a struct, which has no `detach`.)
            DimError::NoOwnDerivative {
                operation,
                remedy: remedy @ (OUTSIDE | EACH_FIELD),
                origin,
                parameters,
            } => write!(
                f,
                "no gradient can be taken through `{operation}`{}{}: {remedy}",
                OriginSuffix(*origin),
                ParametersSuffix(parameters)
            ),
            DimError::NoOwnDerivative { operation, remedy, origin, parameters } => write!(
                f,
                "no gradient can be taken through `{operation}`{}{}: {remedy}, or write `x.detach()` for its operand if no gradient is wanted",
                OriginSuffix(*origin),
                ParametersSuffix(parameters)
            ),
            DimError::NotAnInput { operation, origin, parameters } => write!(
                f,
                "`{operation}`{} uses a traced tensor that is not one of its inputs{}: add it to them, or write `x.detach()` if no gradient with respect to it is wanted",
                OriginSuffix(*origin),
                ParametersSuffix(parameters)
            ),
            DimError::Unused { parameter, origin } => {
                let name = match parameter.as_str() {
                    "" => "the parameter".into(),
                    name => format!("the parameter `{name}`"),
                };
                // A part of a tuple or a list has a number instead of a name.
                let last = parameter.rsplit('.').next();
                let is_field = last.is_some_and(|last| last.starts_with(|c: char| !c.is_ascii_digit()));
                let constant = if is_field { ", mark its field `#[parameters(constant)]`" } else { "" };
                write!(
                    f,
                    "the loss does not depend on {name}, so it has no gradient{}: use it{constant}, or call `vjp`, which returns a gradient of 0 for it",
                    OriginSuffix(*origin)
                )
            }
            DimError::NoFloats { origin } => write!(
                f,
                "no input of the gradient has float elements{}: only floats have gradients",
                OriginSuffix(*origin)
            ),
            DimError::Matrix { operation, derivative, failure, place, .. } => {
                let (operation, derivative) = (*operation, *derivative);
                write!(f, "{}: the matrix ", MatrixOperation { operation, derivative })?;
                if !place.is_empty() {
                    write!(f, "at {place} ")?;
                }
                f.write_str(failure)
            }
            DimError::Shape { what } => f.write_str(what),
        }
    }
}

impl core::error::Error for DimError {}

/// The size of a dim, and where it came from.
pub(crate) struct SizeFrom {
    pub(crate) dim: &'static str,
    pub(crate) size: usize,
    pub(crate) origin: Origin,
}

impl DimError {
    /// The error for two different sizes of one dim, or of a dim and its prime.
    #[cold]
    pub(crate) fn two_sizes(first: SizeFrom, second: SizeFrom) -> DimError {
        let (dim, other) = (first.dim, second.dim);
        let (first, first_origin) = (first.size, first.origin);
        let (second, second_origin) = (second.size, second.origin);
        if dim == other {
            DimError::SizeConflict { dim, first, first_origin, second, second_origin }
        } else {
            DimError::PrimeConflict { dim, first, first_origin, other, second, second_origin }
        }
    }
}

impl From<kernels::error::Error> for DimError {
    #[cold]
    fn from(error: kernels::error::Error) -> Self {
        use kernels::error::Error;
        match error {
            Error::OutOfBounds { what, index, size, origin } => {
                DimError::OutOfBounds { what, index, size, origin }
            }
            #[cfg(feature = "linalg")]
            Error::Matrix { operation, derivative, failure, at, batch } => {
                let place = if batch == 1 { String::new() } else { format!("index {at} of {batch}") };
                DimError::Matrix { operation, derivative, failure: format!("{failure}"), at, place }
            }
            Error::TooLarge { elements } => DimError::TooLarge { dims: format!("{elements} elements") },
            error => DimError::Shape { what: format!("{error}") },
        }
    }
}

/// The error for an operation without a derivative. `names` are those of the variables that the
/// operation depends on.
#[cold]
#[track_caller]
pub(crate) fn no_derivative(operation: &'static str, names: &[String]) -> DimError {
    DimError::NoDerivative { operation, origin: Some(Location::caller()), parameters: list_names(names) }
}

/// The remedy for an operation in place, such as a step of an optimizer.
pub(crate) const OUTSIDE: &str = "call it outside of the function that you differentiate";

/// The remedy for a closure that is called with the elements of all fields.
pub(crate) const EACH_FIELD: &str =
    "write tensor operations for each field, for example `&layer.w - &gradient.w * 0.1`";

/// Like [`no_derivative`], with another remedy: for example, to give a user's operation a
/// derivative.
#[cold]
#[track_caller]
pub(crate) fn no_own_derivative(operation: &'static str, remedy: &'static str, names: &[String]) -> DimError {
    let (origin, parameters) = (Some(Location::caller()), list_names(names));
    DimError::NoOwnDerivative { operation, remedy, origin, parameters }
}

/// The first few names, and the number of the others.
pub(crate) fn list_names(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut list: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => {}
        1 => list.push(format!("`{}`", names[SHOWN])),
        more => list.push(format!("{more} more")),
    }
    match list.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => list.concat(),
    }
}

/// The value, or a panic with the error's text at the caller's location.
#[track_caller]
#[inline]
pub fn unwrap<T, E: fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fail(&error),
    }
}

/// Panics with the error's text at the caller's location.
#[track_caller]
#[cold]
#[inline(never)]
pub fn fail(error: &dyn fmt::Display) -> ! {
    panic!("{error}")
}

/// Dims and sizes for messages: "dims `Batch` = 2, `Seq` = 3", or "no dims".
pub(crate) fn list_sizes<'a>(dims: impl IntoIterator<Item = (&'a str, usize)>) -> String {
    let parts: Vec<String> = dims.into_iter().map(|(name, size)| format!("`{name}` = {size}")).collect();
    match parts.len() {
        0 => "no dims".into(),
        1 => format!("dim {}", parts[0]),
        _ => format!("dims {}", parts.join(", ")),
    }
}
