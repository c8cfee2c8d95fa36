//! Names of axes as text: `Batch, Feat: DATA_FEATURE = 64`. This is like the syntax of `dims!`, but
//! a role is written as its [`NAME`](crate::types::role::Role::NAME), followed by the roles that it
//! refines: `Row: Pixel/DATA_FEATURE`.

use super::FileError;
use crate::types::set::DimKey;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use kernels::error::Plural;

/// The name, roles and static size of an axis in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisName {
    /// The dim's name.
    pub name: String,
    /// Its role, followed by the roles that it refines.
    pub roles: Vec<String>,
    /// Its static size, if it has one.
    pub fixed: Option<usize>,
}

/// The names of dims in the format of a file.
pub fn written<'k>(keys: impl Iterator<Item = &'k DimKey> + Clone) -> Result<String, FileError> {
    if let Some(name) = DimKey::repeated_name(keys.clone()) {
        let what = format!("a file cannot tell two dims named `{name}` apart: rename one of them");
        return Err(FileError::Unwritable { what });
    }
    let mut text = String::new();
    for (at, key) in keys.enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(&one(key.name, key.roles, key.fixed));
    }
    Ok(text)
}

/// The name of an axis, its roles, and its size, as text.
pub fn one(name: &str, roles: &[impl AsRef<str>], size: Option<usize>) -> String {
    let mut text = name.to_string();
    for (at, role) in roles.iter().enumerate() {
        text.push_str(if at == 0 { ": " } else { "/" });
        text.push_str(role.as_ref());
    }
    if let Some(size) = size {
        let _ = write!(text, " = {size}");
    }
    text
}

/// Parses the names in a file for axes of these sizes.
pub fn read(text: &str, sizes: &[usize]) -> Result<Vec<AxisName>, FileError> {
    let invalid = |what: String| FileError::format(format!("the names of dims `{}` {what}", shortened(text)));
    let mut axes: Vec<AxisName> = Vec::new();
    if text.trim().is_empty() && sizes.is_empty() {
        return Ok(axes);
    }
    for part in text.split(',') {
        let (name, fixed) = match part.split_once('=') {
            None => (part, None),
            Some((name, size)) => match size.trim().parse() {
                Ok(size) => (name, Some(size)),
                Err(_) => return Err(invalid(format!("have no number after `{}=`", shortened(name)))),
            },
        };
        let (name, roles) = match name.split_once(':') {
            None => (name, Vec::new()),
            Some((name, roles)) => (name, roles.split('/').map(|role| role.trim().to_string()).collect()),
        };
        let name = name.trim();
        if name.is_empty() || axes.iter().any(|axis| axis.name == name) {
            return Err(invalid("must not be empty or repeat".into()));
        }
        let Some(&size) = sizes.get(axes.len()) else {
            return Err(invalid(format!("are too many for {}", Plural(sizes.len(), "axis", "axes"))));
        };
        if let Some(fixed) = fixed.filter(|&fixed| fixed != size) {
            return Err(invalid(format!("say {fixed} for an axis of size {size}")));
        }
        axes.push(AxisName { name: name.into(), roles, fixed });
    }
    if axes.len() != sizes.len() {
        return Err(invalid(format!("name {} of {}", axes.len(), Plural(sizes.len(), "axis", "axes"))));
    }
    Ok(axes)
}

/// The first bytes of a `.npy` file.
pub const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// A kind of file with tensors. Printing it gives its name in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// An `.npz` archive.
    Npz,
    /// A `.npy` file.
    Npy,
    /// A safetensors file.
    Safetensors,
}

impl FileKind {
    /// The kind of file that begins like these bytes. No file begins like two kinds: a safetensors
    /// file begins with the length of its header, and the first bytes of the other kinds, read as a
    /// length, are too large.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'P', b'K', 3, 4, (1..), ..] | [b'P', b'K', 5, 6, ..] => Some(FileKind::Npz),
            _ if bytes.starts_with(NPY_MAGIC) => Some(FileKind::Npy),
            // The length of a header that is not too long, and its first byte.
            [_, _, _, 0..=5, 0, 0, 0, 0, b'{', ..] => Some(FileKind::Safetensors),
            _ => None,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Npz => "an `.npz` archive",
            FileKind::Npy => "a `.npy` file",
            FileKind::Safetensors => "a safetensors file",
        })
    }
}

/// Text from a file, for a message: escaped, and truncated if it is long.
pub fn shortened(text: &str) -> String {
    escaped(text, 60)
}

/// The text of another crate's error, for a message. It can contain text from a file, but is only
/// truncated if it is very long, because the reason may stand at its end.
pub fn reason(error: &impl ToString) -> String {
    escaped(&error.to_string(), 200)
}

/// The first `most` characters, escaped.
fn escaped(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars().take(most) {
        // Quotes need no escaping, because messages quote with backticks.
        if matches!(c, '\'' | '"') { out.push(c) } else { out.extend(c.escape_debug()) }
    }
    if text.chars().nth(most).is_some() {
        out.push_str("..");
    }
    out
}
