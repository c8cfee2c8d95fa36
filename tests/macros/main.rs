//! The macros for arrays, and their notations. No test of this program takes a gradient: while there
//! is one on any thread, some plans are others.

mod comprehensions;
mod einops;
mod einsum;
mod packing;
#[path = "../reference/mod.rs"]
mod reference;
