//! Errors of files.

use crate::error::DimError;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::path::Path;

/// An error that occurs when tensors are read from a file or written to one.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// An error from the operating system, or memory for the file is exhausted.
    Io {
        /// The file, the tensor or the buffer.
        what: String,
        /// The error.
        error: std::io::Error,
    },
    /// The bytes are not a valid file of the format, or unpack to more than the limit.
    Format {
        /// The problem.
        what: String,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
    /// The format cannot represent the value to write, or its name is already used in the file.
    Unwritable {
        /// The problem.
        what: String,
    },
    /// There is no tensor with this name.
    Missing {
        /// The name.
        tensor: String,
        /// The names of the tensors in the file.
        has: Vec<String>,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
    /// The elements in the file are of another type.
    Elements {
        /// The tensor.
        tensor: String,
        /// The type in the file.
        file: String,
        /// The requested type.
        wanted: &'static str,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
    /// The axes in the file are not the requested dims.
    Dims {
        /// The tensor.
        tensor: String,
        /// The axes in the file, with their sizes and any names.
        file: String,
        /// The requested dims.
        wanted: String,
        /// The mismatch.
        why: String,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
    /// The file's elements cannot be viewed in place.
    NotInPlace {
        /// The tensor.
        tensor: String,
        /// The reason.
        why: &'static str,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
    /// A size does not fit, there is no memory for the tensor, or the tensor to write cannot be
    /// computed or is traced by a gradient or a recorded function.
    Size {
        /// The tensor, if it is known.
        tensor: Option<String>,
        /// The error.
        error: Box<DimError>,
        /// The file, if it was opened by its path.
        path: Option<Box<Path>>,
    },
}

impl FileError {
    /// The error for bytes that are not a valid file.
    pub(crate) fn format(what: impl Into<String>) -> Self {
        FileError::Format { what: what.into(), path: None }
    }

    /// Adds the path of the file to the error, unless the error already has a path.
    pub(crate) fn of(mut self, file: Option<&Path>) -> Self {
        match &mut self {
            FileError::Format { path, .. }
            | FileError::Missing { path, .. }
            | FileError::Elements { path, .. }
            | FileError::Dims { path, .. }
            | FileError::NotInPlace { path, .. }
            | FileError::Size { path, .. } => {
                if path.is_none() {
                    *path = file.map(Box::from);
                }
            }
            FileError::Io { .. } | FileError::Unwritable { .. } => {}
        }
        self
    }

    /// Adds the tensor's name to an error about the format, or about a view.
    pub(crate) fn of_tensor(mut self, name: &str) -> Self {
        match &mut self {
            FileError::Format { what, .. } => *what = format!("tensor `{name}`: {what}"),
            FileError::NotInPlace { tensor, .. } => *tensor = name.into(),
            _ => {}
        }
        self
    }

    /// Adds the tensor's name to an error about a size.
    pub(crate) fn about(mut self, name: &str) -> Self {
        if let FileError::Size { tensor: tensor @ None, .. } = &mut self {
            *tensor = Some(name.into());
        }
        self
    }

    fn path(&self) -> Option<&Path> {
        match self {
            FileError::Format { path, .. }
            | FileError::Missing { path, .. }
            | FileError::Elements { path, .. }
            | FileError::Dims { path, .. }
            | FileError::NotInPlace { path, .. }
            | FileError::Size { path, .. } => path.as_deref(),
            FileError::Io { .. } | FileError::Unwritable { .. } => None,
        }
    }
}

/// Element types between which `cast` converts. The message suggests `cast` only for these.
const NUMBERS: [&str; 15] = [
    "bool", "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "f32", "f64", "f16",
    "bf16",
];

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(self, FileError::Format { .. }) {
            f.write_str("not a valid file: ")?;
        }
        if let Some(path) = self.path() {
            write!(f, "{}: ", path.display())?;
        }
        match self {
            FileError::Io { what, error } => write!(f, "{what}: {error}"),
            FileError::Format { what, .. } => f.write_str(what),
            FileError::Unwritable { what } => write!(f, "cannot be written: {what}"),
            FileError::Missing { tensor, has, .. } => {
                write!(f, "there is no tensor `{tensor}` in the file, which has ")?;
                if has.is_empty() { f.write_str("no tensors") } else { write!(f, "`{}`", has.join("`, `")) }
            }
            FileError::Elements { tensor, file, wanted, .. } => {
                write!(
                    f,
                    "tensor `{tensor}` has elements of type {file} in the file, but `{wanted}` was asked for"
                )?;
                match &file[..] {
                    real if NUMBERS.contains(&real) && NUMBERS.contains(wanted) => {
                        write!(f, ": load it as `{real}`, and convert it by `.cast::<{wanted}>()`")
                    }
                    _ => Ok(()),
                }
            }
            FileError::Dims { tensor, file, wanted, why, .. } => {
                write!(
                    f,
                    "tensor `{tensor}` has the axes {file} in the file, but the dims {wanted} were asked for: {why}"
                )
            }
            FileError::NotInPlace { tensor, why, .. } => {
                write!(
                    f,
                    "tensor `{tensor}` cannot be viewed in place: {why}; `load` or `load_as` makes a copy"
                )
            }
            FileError::Size { tensor: Some(tensor), error, .. } => write!(f, "tensor `{tensor}`: {error}"),
            FileError::Size { tensor: None, error, .. } => error.fmt(f),
        }
    }
}

impl core::error::Error for FileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            FileError::Io { error, .. } => Some(error),
            FileError::Size { error, .. } => Some(&**error),
            _ => None,
        }
    }
}

impl From<DimError> for FileError {
    fn from(error: DimError) -> Self {
        FileError::Size { tensor: None, error: Box::new(error), path: None }
    }
}
