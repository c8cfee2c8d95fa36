//! Binding: the axes of an array become dims of a tensor.
//!
//! `a.at((i, k))` reads its binders from left to right; see [`Binder`] for the kinds of binders.
//! Nothing is copied: the result is a view.

pub mod at;
pub mod binder;
pub(crate) mod binding;
pub(crate) mod computed;
pub mod source;
pub mod split;

pub use at::{At, Binds};
pub use binder::{Binder, Ellipsis, UnitAxis};
pub use source::{Axes, Source};
