//! Errors in loading weights.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use std::path::{Path, PathBuf};

/// Why a struct or an optimizer could not be loaded. The message lists all problems, one on each
/// line.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadError {
    faults: Vec<Fault>,
    /// The file, if it was opened by its path.
    path: Option<PathBuf>,
    /// The old and the new name of a dim that may have been renamed, for a remedy in the message.
    renamed: Option<[String; 2]>,
}

impl LoadError {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        LoadError { faults, path: None, renamed: None }
    }

    /// Adds a remedy, if a dim may have been renamed.
    #[cfg(feature = "safetensors")]
    pub(crate) fn with_renamed(self, renamed: Option<[String; 2]>) -> Self {
        LoadError { renamed, ..self }
    }

    /// Adds the path of the file.
    pub(crate) fn of(self, path: Option<&Path>) -> Self {
        LoadError { path: path.map(Path::to_path_buf), ..self }
    }

    /// All problems. For a struct, the problems of fields come first, in the order of the fields,
    /// then the unused arrays, by name.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

/// One problem in loading a value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// An array cannot be read.
    Unreadable {
        /// Its name.
        name: String,
        /// The reason.
        why: String,
    },
    /// The elements of an array cannot be borrowed from the file.
    NotInPlace {
        /// Its name.
        name: String,
        /// The reason.
        why: &'static str,
    },
    /// There is no array of this name.
    Missing {
        /// The name.
        name: String,
        /// The element type and the axes of the field.
        expected: String,
    },
    /// An array is not used by any field.
    LeftOver {
        /// Its name.
        name: String,
        /// Its sizes.
        sizes: Vec<usize>,
    },
    /// The elements are of another type.
    Element {
        /// The name of the array.
        name: String,
        /// The type of the field's elements.
        expected: &'static str,
        /// The type in the file.
        found: String,
    },
    /// The number of axes, their names or their roles differ.
    Axes {
        /// The name of the array.
        name: String,
        /// The axes of the field.
        expected: String,
        /// The axes in the file.
        found: String,
    },
    /// An axis cannot be split into the dims of a group.
    Split {
        /// The name of the array.
        name: String,
        /// The group, with the sizes that are known.
        group: String,
        /// The size of the axis.
        size: usize,
    },
    /// A dim already has a different size.
    Size {
        /// The name of the array.
        name: String,
        /// The dim.
        dim: &'static str,
        /// Its size in this array.
        size: usize,
        /// The size that it already has.
        first: usize,
        /// The array that this size is from. `None` if the size was given, is static, or is that of
        /// the tensor to load into.
        from: Option<String>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unreadable { name, why } => write!(f, "`{name}` cannot be read: {why}"),
            Fault::NotInPlace { name, why } => {
                write!(
                    f,
                    "`{name}` cannot be borrowed from the file: {why}; a field of type `Tensor` takes a copy"
                )
            }
            Fault::Missing { name, expected } => write!(f, "`{name}` is missing: expected {expected}"),
            Fault::LeftOver { name, sizes } => {
                write!(f, "`{name}` of sizes {sizes:?} is not used by any field")
            }
            Fault::Element { name, expected, found } => {
                write!(f, "`{name}` has elements of type {found}, not {expected}")
            }
            Fault::Axes { name, expected, found } => {
                write!(f, "`{name}` has the axes {found}, but its field has the axes {expected}")
            }
            Fault::Split { name, group, size } => {
                write!(f, "`{name}` has an axis of size {size}, which cannot be split into {group}")
            }
            Fault::Size { name, dim, size, first, from } => {
                write!(f, "dim `{dim}` has size {size} in `{name}`")?;
                match from {
                    Some(from) => write!(f, " and size {first} in `{from}`"),
                    None => write!(f, ", expected {first}"),
                }
            }
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "the weights in {} do not fit:", path.display())?,
            None => f.write_str("the weights do not fit:")?,
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))?;
        match &self.renamed {
            Some([old, new]) => {
                write!(
                    f,
                    "\n  if `{old}` is the old name of `{new}`, write `saved.renaming(\"{old}\", {new})`"
                )
            }
            None => Ok(()),
        }
    }
}

impl core::error::Error for LoadError {}
