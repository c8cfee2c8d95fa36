//! Loop nests over the axes of several operands, the steps of plans, and listeners for these steps.

pub mod axes;
#[cfg(feature = "std")]
pub mod modes;
pub mod nest;
pub mod rows;
pub mod steps;
pub mod stride;
