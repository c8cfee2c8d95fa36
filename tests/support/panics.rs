//! Panic messages.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The panic message of a function that must panic.
#[track_caller]
pub fn message<T>(f: impl FnOnce() -> T) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { panic!("the function does not panic") };
    *payload.downcast::<String>().expect("the message is text")
}
