//! Sizes of dims: static, or known only at run time.
//!
//! Error messages show a static size as [`Static<N>`]. Where a static size must be a product or a
//! sum of other sizes, typenum does the arithmetic.

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
    label = "the static sizes differ",
    note = "if a dim is generic, its size must be known: `D: AnyDim + Brand<Size = Dyn>`, with `use typed_dims::types::{{brand::Brand, size::Dyn}};`"
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

/// A dim or a tuple of dims whose sizes can change: none of them is static.
///
/// This is the bound of operations that change a size, such as
/// [`repeat`](crate::operators::shift::Rearranging::repeat). Before such an operation, rename a dim
/// with a static size to a dim without one. A generic dim needs the bound
/// `D: AnyDim + Brand<Size = Dyn>`.
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

/// The condition that the size of a brand is static.
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
        label = "give it a size, `{D}.of(2)`; it needs none if it is local, if it has a static size, or if a tensor of the expression has this dim"
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

/// Computes with two sizes: typenums, or [`Dyn`].
pub trait SizeWith<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sum, or [`Dyn`] if one of the sizes is [`Dyn`].
    type Sum;
    /// The product, or [`Dyn`] if one of the sizes is [`Dyn`].
    type Product;
    /// Whether they may be equal. [`Dyn`] may equal any size.
    type MaySame: Bool;
}

/// Implements [`SizeWith`] for two sizes: their sum, their product, and whether they may be equal.
macro_rules! with_sizes {
    ($([$($params:ident)*] $own:ty, $other:ty: $sum:ty, $product:ty, $may_same:ty;)*) => {$(
        impl<$($params),*> SizeWith<$other> for $own {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Sum = $sum;
            type Product = $product;
            type MaySame = $may_same;
        }
    )*};
}

with_sizes! {
    [O] Dyn, O: Dyn, Dyn, True;
    [] UTerm, Dyn: Dyn, Dyn, True;
    [U B] UInt<U, B>, Dyn: Dyn, Dyn, True;
    [] UTerm, UTerm: UTerm, UTerm, True;
    [U B] UInt<U, B>, UTerm: Self, UTerm, False;
    [U B] UTerm, UInt<U, B>: UInt<U, B>, UTerm, False;
}

impl<U, B, V, C> SizeWith<UInt<V, C>> for UInt<U, B>
where
    UInt<U, B>: Add<UInt<V, C>> + Mul<UInt<V, C>> + IsEqual<UInt<V, C>>,
    typenum::Eq<Self, UInt<V, C>>: Bool,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Sum = Sum<Self, UInt<V, C>>;
    type Product = Prod<Self, UInt<V, C>>;
    // Converts to our booleans, for which the traits with messages are implemented.
    type MaySame = <typenum::Eq<Self, UInt<V, C>> as Bool>::And<True>;
}

/// The combined sizes of the dims of a list. They give strides, because the stride of an axis is
/// the volume of the axes after it.
pub trait SizesTogether {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Their sum as a typenum, or [`Dyn`] if one of the sizes is [`Dyn`].
    type Total;
    /// The product of the static sizes, as a typenum.
    type Volume;
    /// The dims without a static size.
    type Unsized;
}

impl SizesTogether for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Total = UTerm;
    type Volume = U1;
    type Unsized = ();
}

#[diagnostic::do_not_recommend]
impl<H, T: SizesTogether> SizesTogether for (H, T)
where
    H: Brand<Num: SizeWith<T::Total> + SizeWith<T::Volume>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Total = <H::Num as SizeWith<T::Total>>::Sum;
    type Volume = <IsStatic<H> as Bool>::If<<H::Num as SizeWith<T::Volume>>::Product, T::Volume>;
    type Unsized = <IsStatic<H> as Bool>::If<T::Unsized, (H, T::Unsized)>;
}

/// Whether the size of a brand is static.
type IsStatic<D> = <<D as Brand>::Size as Size>::IsStatic;

/// The product of the sizes of the list `L` as a typenum, or [`Dyn`] if one of them is [`Dyn`].
pub type ProductOf<L> =
    <<<L as SizesTogether>::Unsized as NestedPairs>::IsEmpty as Bool>::If<<L as SizesTogether>::Volume, Dyn>;
