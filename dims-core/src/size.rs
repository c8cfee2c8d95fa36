//! Sizes of dims: known to rustc, or to the run alone.
//!
//! [`Static<N>`] is what people read in messages; typenum does the arithmetic behind it, where one static size must be
//! the product of others.

use core::ops::Mul;
use typenum::{IsEqual, Prod, UInt, UTerm};

/// The size of a dim that only the run knows.
#[derive(Clone, Copy, Debug)]
pub struct Dyn;

/// A size that is part of the type: `N` elements.
#[derive(Clone, Copy, Debug)]
pub struct Static<const N: usize>;

/// [`Dyn`] or [`Static<N>`].
pub trait Size {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The size, where rustc knows it.
    const FIXED: Option<usize>;
}

impl Size for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const FIXED: Option<usize> = None;
}

impl<const N: usize> Size for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const FIXED: Option<usize> = Some(N);
}

/// The sizes of two dims that may be names of one axis: equal ones, or at least one that only the run knows.
#[diagnostic::on_unimplemented(
    message = "`{Old}` has the size `{Self}` and `{New}` has the size `{Other}`: one cannot be renamed to the other",
    label = "the static sizes differ"
)]
pub trait SameSize<Other, Old, New> {}
#[diagnostic::do_not_recommend]
impl<const N: usize, Old, New> SameSize<Static<N>, Old, New> for Static<N> {}
#[diagnostic::do_not_recommend]
impl<const N: usize, Old, New> SameSize<Dyn, Old, New> for Static<N> {}
#[diagnostic::do_not_recommend]
impl<O: Size, Old, New> SameSize<O, Old, New> for Dyn {}

/// The product of two sizes as typenums; [`Dyn`] if one of them is.
pub trait Times<O> {
    /// The product.
    type Out;
}

impl<O> Times<O> for Dyn {
    type Out = Dyn;
}
impl Times<Dyn> for UTerm {
    type Out = Dyn;
}
impl<U, B> Times<Dyn> for UInt<U, B> {
    type Out = Dyn;
}
impl Times<UTerm> for UTerm {
    type Out = UTerm;
}
impl<U, B> Times<UTerm> for UInt<U, B> {
    type Out = UTerm;
}
impl<U, B> Times<UInt<U, B>> for UTerm {
    type Out = UTerm;
}
impl<U1, B1, U2, B2> Times<UInt<U2, B2>> for UInt<U1, B1>
where
    UInt<U1, B1>: Mul<UInt<U2, B2>>,
{
    type Out = Prod<Self, UInt<U2, B2>>;
}

/// The verdict that sizes may be the same.
pub struct SizesAgree;
/// The verdict that static sizes are not the same.
pub struct SizesDiffer;

/// Whether two sizes as typenums may be the same; they may if one of them is [`Dyn`].
pub trait MaySame<O> {
    /// [`SizesAgree`] or [`SizesDiffer`].
    type Out;
}

impl<O> MaySame<O> for Dyn {
    type Out = SizesAgree;
}
impl MaySame<Dyn> for UTerm {
    type Out = SizesAgree;
}
impl<U, B> MaySame<Dyn> for UInt<U, B> {
    type Out = SizesAgree;
}
impl MaySame<UTerm> for UTerm {
    type Out = SizesAgree;
}
impl<U, B> MaySame<UTerm> for UInt<U, B> {
    type Out = SizesDiffer;
}
impl<U, B> MaySame<UInt<U, B>> for UTerm {
    type Out = SizesDiffer;
}
impl<U, B, U2, B2> MaySame<UInt<U2, B2>> for UInt<U, B>
where
    UInt<U, B>: IsEqual<UInt<U2, B2>>,
    typenum::Eq<Self, UInt<U2, B2>>: Verdict,
{
    type Out = <typenum::Eq<Self, UInt<U2, B2>> as Verdict>::Out;
}

/// A typenum bit as a verdict.
pub trait Verdict {
    /// [`SizesAgree`] or [`SizesDiffer`].
    type Out;
}
impl Verdict for typenum::B1 {
    type Out = SizesAgree;
}
impl Verdict for typenum::B0 {
    type Out = SizesDiffer;
}
