//! The macros for arrays, and their notations. A gradient on any thread changes some plans, so no
//! test of this binary computes one.

mod comprehensions;
mod einops;
mod einsum;
mod packing;
#[path = "../reference/mod.rs"]
mod reference;
