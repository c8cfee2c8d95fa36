//! What the tests in `tests/` share: finding the cases, reading golden messages, and asking rustc.
//!
//! A *case* is a program in `fail/<topic>/`, which must not compile. It names, in a line `//~ words: a | b`, the words that its
//! message has under every rustc; beside it lies the golden message, word for word, for the rustc in `RUSTC_VERSION`.

pub mod budget;
pub mod case;
pub mod check;
pub mod rustc;
