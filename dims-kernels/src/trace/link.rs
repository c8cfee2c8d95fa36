//! Code that only programs with gradients need.
//!
//! Each expression can be recorded, so all programs refer to the code that records. Its large parts, with
//! the interpreter of programs, are reached by pointers that the first variable sets: a program that makes
//! no variable refers to none of them, and links none.

use std::sync::OnceLock;

/// What the first variable sets.
pub(super) struct Linked<T>(OnceLock<T>);

impl<T> Linked<T> {
    pub(super) const fn new() -> Self {
        Linked(OnceLock::new())
    }

    pub(super) fn set(&self, value: T) {
        self.0.get_or_init(|| value);
    }

    /// What a variable has set: there is one, or nothing would be traced.
    pub(super) fn get(&self) -> &T {
        self.0.get().expect("the first variable has set the pointers")
    }
}
