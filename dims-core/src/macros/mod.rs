//! The runtime of the macros: patterns of axes, and comprehensions.

pub mod comprehension;
pub mod pattern;
