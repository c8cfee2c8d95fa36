//! Tensors that a step of an optimizer leaves as they are.

use super::groups::is_in;
use crate::grad::parameters::Path;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

#[derive(Default)]
pub(super) struct Unchanged {
    /// Patterns for the names of parameters, or of parts that contain parameters.
    pub(super) frozen: Vec<String>,
}

impl Unchanged {
    pub(super) fn has(&self, path: &Path) -> bool {
        is_any(&self.frozen, path)
    }
}

fn is_any(parts: &[String], path: &Path) -> bool {
    if parts.is_empty() {
        return false;
    }
    let name = path.to_string();
    parts.iter().any(|part| is_in(part, &name))
}
