//! Traits that this crate alone implements.
//!
//! Plans and kernels read memory along axes, sizes and positions that traits yield as constants or values. A trait of this kind has an
//! item of the type [`Seal`], which no other crate can name; so an `impl` elsewhere does not compile, whatever it claims.
//! `docs/dev/trust.md` lists these traits, and the facts that are trusted of each.

/// The type of the item that seals a trait.
///
/// It is public because public traits mention it, and out of reach because its module is private. An associated constant needs its
/// type in writing, so nothing can stand in for the name.
pub struct Seal(());

/// The value that each impl in this crate gives.
pub(crate) const SEAL: Seal = Seal(());
