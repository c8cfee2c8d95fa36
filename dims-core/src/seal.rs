//! Sealed traits: only this crate implements them.
//!
//! Plans and kernels access memory by the axes, sizes and positions that traits supply. Most such
//! traits have an item of the type [`Seal`], which no other crate can name, so an `impl` elsewhere
//! does not compile. `docs/dev/trust.md` lists all such traits, and what kernels rely on in each.

/// The type of the item that seals a trait.
///
/// It is public because public traits mention it, but its module is private. The type of an
/// associated constant cannot be inferred, so an `impl` elsewhere would have to name it.
pub struct Seal(());

/// The value that each impl in this crate gives.
pub(crate) const SEAL: Seal = Seal(());

/// An argument that only this crate can pass. Hidden methods of public traits take one if they
/// trust their other arguments, so no other crate can call these methods.
#[derive(Clone, Copy)]
pub struct Private(());

/// The value that callers in this crate pass.
pub(crate) const PRIVATE: Private = Private(());
