//! Sizes of dims: static, or known only at run time.
//!
//! Messages show [`Static<N>`]. Where a static size must be a product of others, typenum does the
//! arithmetic.

use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::DimList;
use crate::types::dim::DimRef;
use crate::types::set::list::NestedPairs;
use crate::types::set::{Bool, False, FirstWith, NoDim, Satisfies, True};
use core::ops::{Add, Mul};
use typenum::{IsEqual, Prod, Sum, U1, UInt, UTerm};

/// A size that is known only at run time.
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
    /// [`True`] if it is static.
    #[doc(hidden)]
    type IsStatic: Bool;
}

impl Size for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const FIXED: Option<usize> = None;
    type IsStatic = False;
}

impl<const N: usize> Size for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const FIXED: Option<usize> = Some(N);
    type IsStatic = True;
}

/// Whether two dims can name the same axis: their sizes are equal, or at least one is [`Dyn`].
#[diagnostic::on_unimplemented(
    message = "`{Old}` has the size `{Self}` and `{New}` has the size `{Other}`: one cannot be renamed to the other",
    label = "the static sizes differ"
)]
pub trait SameSize<Other, Old, New> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<const N: usize, Old, New> SameSize<Static<N>, Old, New> for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<const N: usize, Old, New> SameSize<Dyn, Old, New> for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<O: Size, Old, New> SameSize<O, Old, New> for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that can be the rows of square matrices with the columns `C`: their static sizes do not
/// differ.
pub trait SquareWith<C: DimRef>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<R: DimRef, C: DimRef> SquareWith<C> for R
where
    <R::Brand as Brand>::Size: SameLength<<C::Brand as Brand>::Size, R::Brand, C::Brand>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The sizes of the rows and the columns of square matrices: they are equal, or at least one is
/// known only at run time.
#[diagnostic::on_unimplemented(
    message = "matrices with `{Rows}` of size `{Self}` and `{Columns}` of size `{Other}` are not square",
    label = "square matrices are needed here, but the static sizes differ"
)]
pub trait SameLength<Other, Rows, Columns> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<const N: usize, Rows, Columns> SameLength<Static<N>, Rows, Columns> for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<const N: usize, Rows, Columns> SameLength<Dyn, Rows, Columns> for Static<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<O: Size, Rows, Columns> SameLength<O, Rows, Columns> for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim or a tuple of dims whose size can change: none has a static size.
///
/// The bound of operations that change a size, such as
/// [`repeat`](crate::operators::shift::Rearranging::repeat). Rename a dim with a static size first,
/// to a dim without one.
pub trait Resizable: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<D: DimList<Brands: FirstWith<StaticSize>>> Resizable for D
where
    NoDim<StaticOf<D>>: ChangesSize<StaticOf<D>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first of several dims that has a static size, or [`Nothing`](crate::types::set::Nothing).
type StaticOf<D> = <<D as DimList>::Brands as FirstWith<StaticSize>>::Found;

/// The condition on a brand that its size is static.
pub struct StaticSize;

#[diagnostic::do_not_recommend]
impl<D: Brand> Satisfies<StaticSize> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <D::Size as Size>::IsStatic;
}

condition! {
    /// Every dim of a list has a size; `D` is the first without one, or
    /// [`Nothing`](crate::types::set::Nothing).
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` has no size",
        label = "give it a size, `{D}.of(2)`; it needs none if it is local, has a static size, or a tensor of the expression has it"
    )]
    pub trait HasSize<D> for True;
}

condition! {
    /// The condition that no dim with a static size changes its size.
    #[diagnostic::on_unimplemented(
        message = "`{D}` has a static size, which this would change",
        label = "rename it to a dim without a static size first: `x.rename({D}, ..)`; a part can have its own dim: `x.slice_to({D}, .., Part)`"
    )]
    pub trait ChangesSize<D> for True;
}

/// The product of two sizes as typenums; [`Dyn`] if one of them is.
pub trait Times<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The product.
    type Out;
}

impl<O> Times<O> for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl Times<Dyn> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl<U, B> Times<Dyn> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl Times<UTerm> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = UTerm;
}
impl<U, B> Times<UTerm> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = UTerm;
}
impl<U, B> Times<UInt<U, B>> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = UTerm;
}
impl<U1, B1, U2, B2> Times<UInt<U2, B2>> for UInt<U1, B1>
where
    UInt<U1, B1>: Mul<UInt<U2, B2>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Prod<Self, UInt<U2, B2>>;
}

/// The sum of two sizes as typenums; [`Dyn`] if one of them is.
pub trait Plus<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sum.
    type Out;
}

impl<O> Plus<O> for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl Plus<Dyn> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl<U, B> Plus<Dyn> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Dyn;
}
impl Plus<UTerm> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = UTerm;
}
impl<U, B> Plus<UTerm> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Self;
}
impl<U, B> Plus<UInt<U, B>> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = UInt<U, B>;
}
impl<U1, B1, U2, B2> Plus<UInt<U2, B2>> for UInt<U1, B1>
where
    UInt<U1, B1>: Add<UInt<U2, B2>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Sum<Self, UInt<U2, B2>>;
}

/// The sum of the sizes of a list.
pub trait TotalOf {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sum as a typenum; [`Dyn`] if one of the sizes is.
    type Total;
}
impl TotalOf for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Total = UTerm;
}
#[diagnostic::do_not_recommend]
impl<H, T: TotalOf> TotalOf for (H, T)
where
    H: Brand<Num: Plus<T::Total>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Total = <H::Num as Plus<T::Total>>::Out;
}

/// The product of the sizes of a list, as far as rustc knows them. (The stride of an axis is the
/// volume of the axes after it.)
pub trait VolumeOf {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The product of the static sizes, as a typenum.
    type Static;
    /// The dims without a static size.
    type Others;
}
impl VolumeOf for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Static = U1;
    type Others = ();
}
#[diagnostic::do_not_recommend]
impl<H, T: VolumeOf> VolumeOf for (H, T)
where
    H: Brand<Num: Times<T::Static>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Static = <IsStatic<H> as Bool>::If<<H::Num as Times<T::Static>>::Out, T::Static>;
    type Others = <IsStatic<H> as Bool>::If<T::Others, (H, T::Others)>;
}

/// Whether the size of a brand is static.
type IsStatic<D> = <<D as Brand>::Size as Size>::IsStatic;

/// The product of the sizes of the list `L` as a typenum; [`Dyn`] if one of them is.
pub type ProductOf<L> =
    <<<L as VolumeOf>::Others as NestedPairs>::IsEmpty as Bool>::If<<L as VolumeOf>::Static, Dyn>;

/// Whether two typenum sizes may be equal. [`Dyn`] may equal any size.
pub trait MaySame<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Out: Bool;
}

impl<O> MaySame<O> for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}
impl MaySame<Dyn> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}
impl<U, B> MaySame<Dyn> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}
impl MaySame<UTerm> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}
impl<U, B> MaySame<UTerm> for UInt<U, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = False;
}
impl<U, B> MaySame<UInt<U, B>> for UTerm {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = False;
}
impl<U, B, U2, B2> MaySame<UInt<U2, B2>> for UInt<U, B>
where
    UInt<U, B>: IsEqual<UInt<U2, B2>>,
    typenum::Eq<Self, UInt<U2, B2>>: Bool,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    // (Converts to our booleans, on which the traits with messages are implemented.)
    type Out = <typenum::Eq<Self, UInt<U2, B2>> as Bool>::And<True>;
}
