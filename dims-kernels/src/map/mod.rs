//! Elementwise passes, to new and to existing memory.

pub mod elementwise;
pub mod formula;
pub mod in_place;
pub(crate) mod lines;
pub mod lowered;
pub mod norms;
pub mod update;

pub use lines::in_parts;
