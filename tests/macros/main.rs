//! The macros for arrays: their notations, and the places where a call can stand.

mod comprehensions;
mod einops;
mod einsum;
mod hygiene;
mod in_macro_rules;
mod packing;
mod pedantic;
#[path = "../reference/mod.rs"]
mod reference;
