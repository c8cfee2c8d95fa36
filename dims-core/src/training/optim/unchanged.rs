//! Tensors that a step of an optimizer leaves as they are.

use super::groups::is_in;
use crate::grad::parameters::Path;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A call of `freeze` or `unfreeze`.
#[derive(Clone)]
pub(super) struct FreezeCall {
    /// A pattern for the names of parameters, or of parts that contain parameters.
    pub(super) name: String,
    pub(super) freezes: bool,
    /// Whether it is an error if no parameter matches.
    pub(super) must_match: bool,
}

/// Ignores `must_match`, which does not affect which parameters are frozen.
impl PartialEq for FreezeCall {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.freezes) == (&other.name, other.freezes)
    }
}

impl fmt::Debug for FreezeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.freezes { "" } else { "unfreeze " })?;
        self.name.fmt(f)
    }
}

#[derive(Default)]
pub(super) struct Unchanged {
    /// For each parameter, the last call that matches its name counts.
    pub(super) frozen: Vec<FreezeCall>,
}

impl Unchanged {
    pub(super) fn has(&self, path: &Path) -> bool {
        if self.frozen.is_empty() {
            return false;
        }
        let name = path.to_string();
        self.frozen.iter().rfind(|call| is_in(&call.name, &name)).is_some_and(|call| call.freezes)
    }
}
