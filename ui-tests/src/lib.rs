//! Shared code of the tests in `tests/`: finding the cases, reading golden messages, limiting their
//! length, and checking programs with cargo.
//!
//! A *case* is a program in `fail/<topic>/` that must not compile. A line `//~ words: a | b` lists
//! the words that its message must contain with any rustc. The golden message is in a file next to
//! the program, verbatim, for the rustc in `RUSTC_VERSION`.

pub mod budget;
pub mod case;
pub mod check;
pub mod rustc;
