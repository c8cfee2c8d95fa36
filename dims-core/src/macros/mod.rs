//! What the macros expand to: patterns of axes, and comprehensions.

pub mod comprehension;
pub mod pattern;
