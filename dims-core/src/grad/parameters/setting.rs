//! Constant fields, as recorded functions see them.

use super::{Path, Walk};
use core::fmt::Debug;

/// The same `#[parameters(constant)]` field of `N` values. `#[derive(Parameters)]` calls `tell` on
/// it: rustc picks [`ComparedSetting::tell`] if the field's type meets its bounds, and
/// [`OtherSetting::tell`] otherwise.
#[doc(hidden)]
pub struct Setting<'f, X, const N: usize>(pub [&'f X; N]);

/// Numbers and other plain values. A recorded function compares them with those it was recorded
/// with.
#[doc(hidden)]
pub trait ComparedSetting<const N: usize> {
    const SEAL: crate::seal::Seal;
    fn tell<W: Walk<N>>(&self, name: &'static str, path: &Path, walk: &mut W) -> Result<(), W::Error>;
}

impl<X: Copy + PartialEq + Debug + Send + Sync + 'static, const N: usize> ComparedSetting<N>
    for Setting<'_, X, N>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn tell<W: Walk<N>>(&self, name: &'static str, path: &Path, walk: &mut W) -> Result<(), W::Error> {
        walk.setting(path, name, self.0)
    }
}

/// Fields of all other types. Recorded functions do not compare them.
#[doc(hidden)]
pub trait OtherSetting<const N: usize> {
    const SEAL: crate::seal::Seal;
    fn tell<W: Walk<N>>(&self, name: &'static str, path: &Path, walk: &mut W) -> Result<(), W::Error>;
}

impl<X, const N: usize> OtherSetting<N> for &Setting<'_, X, N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn tell<W: Walk<N>>(&self, _: &'static str, _: &Path, _: &mut W) -> Result<(), W::Error> {
        Ok(())
    }
}
