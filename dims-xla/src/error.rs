//! The errors of this crate.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

/// An error of this crate, of `typed-dims`, of the plugin, or of XLA.
///
/// ```
/// use typed_dims_xla::XlaError;
///
/// let message = "no such operation".to_owned();
/// let error = XlaError::Xla { function: "PJRT_Client_Compile", code: 3, message };
/// assert_eq!(error.code_name(), Some("INVALID_ARGUMENT"));
/// assert_eq!(
///     error.to_string(),
///     "XLA reported an error: no such operation (INVALID_ARGUMENT, code 3, from `PJRT_Client_Compile`)",
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum XlaError {
    /// No PJRT plugin was found, or none of those found could be used.
    PluginNotFound {
        /// The paths that were tried. `*` stands for any part of a name.
        searched: Vec<PathBuf>,
        /// The plugins that exist but could not be used, each with the reason.
        failed: Vec<(PathBuf, String)>,
    },
    /// A file could not be loaded as a PJRT plugin.
    PluginNotLoaded {
        /// The file.
        path: PathBuf,
        /// The reason, often from the operating system's loader.
        reason: String,
    },
    /// The plugin has a version of the PJRT interface that this crate cannot use.
    PluginVersion {
        /// The file.
        path: PathBuf,
        /// The mismatch.
        reason: String,
    },
    /// The plugin does not have a function of the PJRT interface.
    Unsupported {
        /// The name of the function in `pjrt_c_api.h`.
        function: &'static str,
    },
    /// XLA reported an error.
    Xla {
        /// The function that reported it.
        function: &'static str,
        /// The code of the error in Abseil's numbering. [`XlaError::code_name`] returns its name.
        code: i32,
        /// XLA's text.
        message: String,
    },
    /// A function of the plugin reported no error, but returned a value that this crate cannot use.
    Unexpected {
        /// The name of the function in `pjrt_c_api.h`.
        function: &'static str,
        /// What this crate expects.
        expected: String,
        /// What the function returned.
        found: String,
    },
    /// An argument of a method or a program cannot be used, an output of a program has a type that
    /// this crate does not support, or the plugin's file is unreadable or has changed since it was
    /// loaded.
    Arguments {
        /// The value and the reason.
        message: String,
    },
    /// A step of a program cannot be expressed in StableHLO.
    NotLowered {
        /// The reason.
        what: String,
        /// The operation.
        operation: &'static str,
        /// Its location in the user's program.
        origin: Option<&'static std::panic::Location<'static>>,
    },
    /// A check of a call failed.
    Check {
        /// The problem, such as "an index is out of range".
        what: &'static str,
        /// The operation.
        operation: &'static str,
        /// Its location in the user's program.
        origin: Option<&'static std::panic::Location<'static>>,
    },
    /// A sharding does not fit a program or a value.
    Sharding {
        /// The reason, with the value, its dims and the mesh axis.
        message: String,
    },
    /// `typed-dims` returned an error for a program or a value.
    Program {
        /// The error.
        error: Box<typed_dims::DimError>,
    },
    /// The folder of a cache of executables cannot be used.
    Cache {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl XlaError {
    /// The name of the code of an error that XLA reported, such as `INVALID_ARGUMENT`. Codes that
    /// Abseil does not define are `UNKNOWN`. `None` for errors that XLA did not report.
    #[must_use]
    pub fn code_name(&self) -> Option<&'static str> {
        let XlaError::Xla { code, .. } = self else { return None };
        Some(match code {
            1 => "CANCELLED",
            3 => "INVALID_ARGUMENT",
            4 => "DEADLINE_EXCEEDED",
            5 => "NOT_FOUND",
            6 => "ALREADY_EXISTS",
            7 => "PERMISSION_DENIED",
            8 => "RESOURCE_EXHAUSTED",
            9 => "FAILED_PRECONDITION",
            10 => "ABORTED",
            11 => "OUT_OF_RANGE",
            12 => "UNIMPLEMENTED",
            13 => "INTERNAL",
            14 => "UNAVAILABLE",
            15 => "DATA_LOSS",
            16 => "UNAUTHENTICATED",
            _ => "UNKNOWN",
        })
    }

    #[cfg(feature = "pjrt")]
    pub(crate) fn arguments(message: impl Into<String>) -> XlaError {
        XlaError::Arguments { message: message.into() }
    }

    #[cfg(feature = "pjrt")]
    pub(crate) fn unexpected(
        function: &'static str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> XlaError {
        XlaError::Unexpected { function, expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for XlaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XlaError::PluginNotFound { searched, failed } => not_found(f, searched, failed),
            XlaError::PluginNotLoaded { path, reason } => {
                write!(f, "cannot load `{}` as a PJRT plugin: {reason}", path.display())
            }
            XlaError::PluginVersion { path, reason } => {
                write!(f, "cannot use the PJRT plugin `{}`: {reason}", path.display())
            }
            XlaError::Unsupported { function } => write!(f, "the PJRT plugin has no function `{function}`"),
            XlaError::Xla { function, code, message } => {
                let name = self.code_name().unwrap_or("UNKNOWN");
                write!(
                    f,
                    "XLA reported an error: {} ({name}, code {code}, from `{function}`)",
                    message.trim_end()
                )
            }
            XlaError::Unexpected { function, expected, found } => {
                write!(
                    f,
                    "`{function}` of the PJRT plugin returned {found}, but this crate expects {expected}"
                )
            }
            XlaError::Arguments { message } => f.write_str(message),
            XlaError::NotLowered { what, operation, origin } => {
                write!(f, "XLA cannot run `{operation}`")?;
                if let Some(origin) = origin {
                    write!(f, " at {origin}")?;
                }
                write!(f, ": {what}")
            }
            XlaError::Check { what, operation, origin } => {
                write!(f, "`{operation}`")?;
                if let Some(origin) = origin {
                    write!(f, " at {origin}")?;
                }
                write!(f, ": {what}")
            }
            XlaError::Sharding { message } => f.write_str(message),
            XlaError::Program { error } => error.fmt(f),
            XlaError::Cache { folder, reason } => {
                write!(f, "cannot use `{}` as a cache of executables: {reason}", folder.display())
            }
        }
    }
}

/// Lists the plugins that failed, the paths that were tried, and how to install a plugin.
fn not_found(f: &mut fmt::Formatter<'_>, searched: &[PathBuf], failed: &[(PathBuf, String)]) -> fmt::Result {
    f.write_str(if failed.is_empty() { "no PJRT plugin was found" } else { "no PJRT plugin could be used" })?;
    if !failed.is_empty() {
        f.write_str("\nfound, but not usable:")?;
        for (path, reason) in failed {
            write!(f, "\n  {}: {reason}", path.display())?;
        }
    }
    if !searched.is_empty() {
        f.write_str("\nlooked for:")?;
        for path in searched {
            write!(f, "\n  {}", path.display())?;
        }
    }
    f.write_str(
        "\ninstall a plugin into a Python environment:\
         \n  NVIDIA GPUs: pip install \"jax-cuda13-plugin[with-cuda]\" (or jax-cuda12-plugin)\
         \n  AMD GPUs: pip install jax-rocm7-pjrt\
         \n  TPUs: pip install libtpu\
         \n  CPUs: pip install lammps-jax-pjrt-cpu\
         \nor set TYPED_DIMS_PJRT_PLUGIN to the path of a plugin (to get one without installing it: `pip download --no-deps`, then `unzip`)",
    )
}

impl Error for XlaError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            XlaError::Program { error } => Some(&**error),
            _ => None,
        }
    }
}

impl From<typed_dims::DimError> for XlaError {
    fn from(error: typed_dims::DimError) -> Self {
        XlaError::Program { error: Box::new(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        let what = "a matrix is not positive definite";
        let error = XlaError::Check { what, operation: "cholesky", origin: None };
        assert_eq!(error.to_string(), "`cholesky`: a matrix is not positive definite");
        let (expected, found) = ("16 bytes".to_owned(), "20 bytes".to_owned());
        let error = XlaError::Unexpected { function: "PJRT_Buffer_ToHostBuffer", expected, found };
        assert_eq!(
            error.to_string(),
            "`PJRT_Buffer_ToHostBuffer` of the PJRT plugin returned 20 bytes, but this crate expects 16 bytes"
        );
    }
}
