//! Loops: nests over the axes of several operands, and the steps that plans consist of.

pub mod axes;
pub mod nest;
pub mod rows;
pub mod steps;
pub mod stride;
