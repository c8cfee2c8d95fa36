//! Code that only programs with gradients or recorded functions need.
//!
//! Any expression can be recorded, so all programs refer to the code that records. Its large parts,
//! including the interpreter of [scalar programs](crate::program), are reached through pointers
//! that the first variable sets. In builds without debug assertions, a program without variables
//! does not refer to these parts, so they are not linked.

use std::sync::OnceLock;

/// A value that the first variable sets.
pub(super) struct Linked<T>(OnceLock<T>);

impl<T> Linked<T> {
    pub(super) const fn new() -> Self {
        Linked(OnceLock::new())
    }

    pub(super) fn set(&self, value: T) {
        self.0.get_or_init(|| value);
    }

    /// The value. It is set, because nothing is traced without a variable.
    pub(super) fn get(&self) -> &T {
        self.0.get().expect("the first variable has set the pointers")
    }
}
