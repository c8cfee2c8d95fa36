//! The reasons why a file cannot be read.

use std::fmt;
use std::path::PathBuf;

/// The reason why a model, or a part of it, cannot be read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        error: String,
    },
    /// The content is not a model, or has too many parts.
    NotAModel {
        /// The reason.
        why: String,
    },
    /// An input or an output cannot be an array with dims.
    Tensor {
        /// The name of the tensor, escaped and shortened for display.
        name: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for OnnxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnnxError::Unreadable { path, error } => {
                write!(f, "`{}` cannot be read: {error}", path.display())
            }
            OnnxError::NotAModel { why } => write!(f, "this is not an ONNX model: {why}"),
            OnnxError::Tensor { name, why } => write!(f, "the tensor `{name}` {why}"),
        }
    }
}

impl std::error::Error for OnnxError {}

/// Shortens an error message of the protobuf decoder. A long path keeps only its first and last
/// part: `ModelProto.graph: ..: GraphProto.node: the file ends too early`.
pub(crate) fn brief(error: &str) -> String {
    let error = error.strip_prefix("failed to decode Protobuf message: ").unwrap_or(error);
    let error = error.replace("buffer underflow", "the file ends too early");
    let parts: Vec<&str> = error.split(": ").collect();
    match &parts[..] {
        [first, .., before, last] if parts.len() > 6 => format!("{first}: ..: {before}: {last}"),
        _ => error,
    }
}

/// A name from a file, for display: control characters, direction marks and some other invisible
/// characters are escaped, and a long name is cut off.
pub(crate) fn shown(name: &str) -> String {
    const MOST: usize = 60;
    let mut text = String::new();
    for (at, letter) in name.chars().enumerate() {
        if at == MOST {
            text.push_str("..");
            break;
        }
        let plain = !letter.is_control() && (letter == ' ' || !letter.is_whitespace());
        // Marks that change the text direction, and other invisible characters.
        let plain = plain
            && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if plain { text.push(letter) } else { text.extend(letter.escape_unicode()) }
    }
    text
}
