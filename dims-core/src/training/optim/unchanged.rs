//! Tensors that a step leaves as they are.

use crate::grad::parameters::Path;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Tensors that a step leaves as they are.
#[derive(Default)]
pub(super) struct Unchanged {
    /// The names of parameters, or of parts.
    pub(super) frozen: Vec<String>,
}

impl Unchanged {
    pub(super) fn has(&self, path: &Path) -> bool {
        is_any(&self.frozen, path)
    }
}

/// Whether a name is `part`, or begins with it and a dot.
pub(super) fn is_in(part: &str, name: &str) -> bool {
    name.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a tensor is one of these parts, or belongs to one.
fn is_any(parts: &[String], path: &Path) -> bool {
    if parts.is_empty() {
        return false;
    }
    let name = path.to_string();
    parts.iter().any(|part| is_in(part, &name))
}
