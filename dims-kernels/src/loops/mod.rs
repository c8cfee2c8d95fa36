//! Loops: nests over the axes of several operands, the steps that plans consist of, and who hears of them.

pub mod axes;
#[cfg(feature = "std")]
pub mod modes;
pub mod nest;
pub mod rows;
pub mod steps;
pub mod stride;
