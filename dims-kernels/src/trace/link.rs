//! Code that only binaries with gradients or recorded functions need.
//!
//! Any expression can be recorded, so all binaries refer to the code that records. Its large parts,
//! including the interpreter of [scalar programs](crate::program), are reached through pointers
//! that are set when a variable is made or a recording is restored. In builds without debug
//! assertions, a binary that does neither does not refer to these parts, so they are not linked.

use std::sync::OnceLock;

/// A value that is set when the first variable is made or the first recording is restored.
pub(super) struct Linked<T>(OnceLock<T>);

impl<T> Linked<T> {
    pub(super) const fn new() -> Self {
        Linked(OnceLock::new())
    }

    pub(super) fn set(&self, value: T) {
        self.0.get_or_init(|| value);
    }

    /// The value. Panics if it is not set, which means that nothing has been traced yet.
    pub(super) fn get(&self) -> &T {
        self.0.get().expect("the first variable or restored recording has set the pointers")
    }
}
