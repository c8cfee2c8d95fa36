//! Strides that rustc knows: the product of the static sizes behind an axis, and the dims behind it that have no static size.

use crate::brand::Brand;
use crate::set::Bool;
use crate::set::ordered::{IsNone, Minus, SameBrand};
use crate::set::{False, True};
use crate::size::{Dyn, MaySame, SizesAgree, SizesDiffer, Static, Times};
use typenum::U1;

/// The product of the sizes of a list, as far as rustc knows them.
pub trait VolumeOf {
    /// The product of the static sizes, as a typenum.
    type Static;
    /// The dims without one.
    type Others;
}
impl VolumeOf for () {
    type Static = U1;
    type Others = ();
}
#[diagnostic::do_not_recommend]
impl<H, T> VolumeOf for (H, T)
where
    H: Brand<Size: CountsIn<H, T>>,
{
    type Static = <H::Size as CountsIn<H, T>>::Static;
    type Others = <H::Size as CountsIn<H, T>>::Others;
}

/// One step of [`VolumeOf`]: the size of `H` is asked.
pub trait CountsIn<H, T> {
    /// See [`VolumeOf`].
    type Static;
    /// See [`VolumeOf`].
    type Others;
}
#[diagnostic::do_not_recommend]
impl<H, T: VolumeOf> CountsIn<H, T> for Dyn {
    type Static = T::Static;
    type Others = (H, T::Others);
}
#[diagnostic::do_not_recommend]
impl<H: Brand<Num: Times<T::Static>>, T: VolumeOf, const N: usize> CountsIn<H, T> for Static<N> {
    type Static = <H::Num as Times<T::Static>>::Out;
    type Others = T::Others;
}

/// The stride of the brand `D` in a list: the product of the sizes behind it.
pub trait StrideOf<D> {
    /// See [`VolumeOf`].
    type Static;
    /// See [`VolumeOf`].
    type Others;
}
impl<D> StrideOf<D> for () {
    type Static = U1;
    type Others = ();
}
#[diagnostic::do_not_recommend]
impl<H, T, D> StrideOf<D> for (H, T)
where
    H: SameBrand<D, Out: StrideStep<T, D>>,
{
    type Static = <H::Out as StrideStep<T, D>>::Static;
    type Others = <H::Out as StrideStep<T, D>>::Others;
}

/// One step of [`StrideOf`].
pub trait StrideStep<T, D> {
    /// See [`VolumeOf`].
    type Static;
    /// See [`VolumeOf`].
    type Others;
}
#[diagnostic::do_not_recommend]
impl<T: VolumeOf, D> StrideStep<T, D> for True {
    type Static = T::Static;
    type Others = T::Others;
}
#[diagnostic::do_not_recommend]
impl<T: StrideOf<D>, D> StrideStep<T, D> for False {
    type Static = T::Static;
    type Others = T::Others;
}

/// The first brand of a list whose stride is the product of the static size `S` and the dims `Q`; `D` if there is none.
pub trait WithStride<S, Q, D> {
    /// [`True`] or [`False`].
    type Holds;
    /// The brand.
    type Data: Brand;
}
impl<S, Q, D: Brand> WithStride<S, Q, D> for () {
    type Holds = False;
    type Data = D;
}
#[diagnostic::do_not_recommend]
impl<H, T, S, Q, D> WithStride<S, Q, D> for (H, T)
where
    T: VolumeOf<Static: MaySame<S, Out: AsBool>, Others: SameDims<Q>>,
    Found<T, S, Q>: FoundStep<H, T, S, Q, D>,
{
    type Holds = <Found<T, S, Q> as FoundStep<H, T, S, Q, D>>::Holds;
    type Data = <Found<T, S, Q> as FoundStep<H, T, S, Q, D>>::Data;
}

/// Whether the volume of `T` is that of `S` and `Q`.
type Found<T, S, Q> = <<<<T as VolumeOf>::Static as MaySame<S>>::Out as AsBool>::Out as Bool>::And<
    <<T as VolumeOf>::Others as SameDims<Q>>::Out,
>;

/// One step of [`WithStride`].
pub trait FoundStep<H, T, S, Q, D> {
    /// See [`WithStride`].
    type Holds;
    /// See [`WithStride`].
    type Data: Brand;
}
#[diagnostic::do_not_recommend]
impl<H: Brand, T, S, Q, D> FoundStep<H, T, S, Q, D> for True {
    type Holds = True;
    type Data = H;
}
#[diagnostic::do_not_recommend]
impl<H, T: WithStride<S, Q, D>, S, Q, D> FoundStep<H, T, S, Q, D> for False {
    type Holds = T::Holds;
    type Data = T::Data;
}

/// A comparison of sizes as a type-level boolean.
pub trait AsBool {
    /// [`True`] or [`False`].
    type Out: Bool;
}
impl AsBool for SizesAgree {
    type Out = True;
}
impl AsBool for SizesDiffer {
    type Out = False;
}

/// Whether two lists have the same brands, in whatever order.
pub trait SameDims<O> {
    /// [`True`] or [`False`].
    type Out: Bool;
}
#[diagnostic::do_not_recommend]
impl<Q, O> SameDims<O> for Q
where
    Q: Minus<O, Out: IsNone>,
    O: Minus<Q, Out: IsNone>,
{
    type Out = <<<Q as Minus<O>>::Out as IsNone>::Out as Bool>::And<<<O as Minus<Q>>::Out as IsNone>::Out>;
}
