//! Gradients, and the structs of tensors that they are taken of.
//!
//! [`Parameters`] says which tensors a value is made of.

pub mod parameters;

pub use parameters::Parameters;
