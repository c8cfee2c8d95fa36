//! Errors of files.

use crate::error::DimError;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why a tensor could not be read from a file, or written to one.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused.
    Io {
        /// The file.
        what: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The bytes are not such a file: cut off, contradictory, or something else.
    Format {
        /// The problem.
        what: String,
    },
    /// A file cannot have this: what was to be written is the reason, not a file.
    Unwritable {
        /// The problem.
        what: String,
    },
    /// There is no tensor of that name.
    Missing {
        /// The name.
        tensor: String,
        /// Those that there are.
        has: Vec<String>,
    },
    /// The elements in the file are of another type.
    Elements {
        /// The tensor.
        tensor: String,
        /// The type in the file.
        file: String,
        /// The type that was asked for.
        wanted: &'static str,
    },
    /// The axes in the file are not the dims that were asked for.
    Dims {
        /// The tensor.
        tensor: String,
        /// The axes in the file, with their names if it has any, and their sizes.
        file: String,
        /// The dims that were asked for.
        wanted: String,
        /// What does not fit.
        why: String,
    },
    /// The file's elements cannot be looked at where they are.
    NotInPlace {
        /// The tensor.
        tensor: String,
        /// Why not.
        why: &'static str,
    },
    /// A size does not fit, or there is no memory for the tensor.
    Size(DimError),
}

impl FileError {
    /// The same about a file, whose path is said where it is the file that is wrong.
    pub(crate) fn of(self, path: &std::path::Path) -> Self {
        match self {
            FileError::Format { what } => FileError::Format { what: format!("{}: {what}", path.display()) },
            other => other,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Io { what, error } => write!(f, "{what}: {error}"),
            FileError::Format { what } => write!(f, "not a valid file: {what}"),
            FileError::Unwritable { what } => write!(f, "cannot be written: {what}"),
            FileError::Missing { tensor, has } => {
                write!(f, "there is no tensor `{tensor}` in the file, which has ")?;
                if has.is_empty() { f.write_str("none") } else { write!(f, "`{}`", has.join("`, `")) }
            }
            FileError::Elements { tensor, file, wanted } => {
                write!(
                    f,
                    "tensor `{tensor}` has elements of type {file} in the file, but `{wanted}` was asked for"
                )
            }
            FileError::Dims { tensor, file, wanted, why } => {
                write!(
                    f,
                    "tensor `{tensor}` has the axes {file} in the file, but the dims {wanted} were asked for: {why}"
                )
            }
            FileError::NotInPlace { tensor, why } => {
                write!(f, "tensor `{tensor}` cannot be looked at in place: {why}; `load` makes a copy")
            }
            FileError::Size(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            FileError::Io { error, .. } => Some(error),
            FileError::Size(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DimError> for FileError {
    fn from(error: DimError) -> Self {
        FileError::Size(error)
    }
}
