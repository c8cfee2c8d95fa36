//! Methods of public traits that this crate alone calls and overrides.
//!
//! Loops trust the results of the [routines](crate::compiled) of an element type. Each takes a [`KernelSeal`]: no other crate can name the type, so none can
//! override the method.

/// The first argument of such a method. It is public because public traits mention it, and out of reach because its module is private.
pub struct KernelSeal(());

/// The value that calls in this crate pass.
pub(crate) const SEAL: KernelSeal = KernelSeal(());
