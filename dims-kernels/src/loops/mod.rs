//! Loops: nests over the axes of several operands, the steps of plans, and their listeners.

pub mod axes;
#[cfg(feature = "std")]
pub mod modes;
pub mod nest;
pub mod rows;
pub mod steps;
pub mod stride;
