//! What methods of tensors can be called on: tensors, references to tensors, and dims.

use crate::error::DimError;
use crate::expr::sized::{NoSize, Without};
use crate::expr::{Expr, Iota};
use crate::tensors::named::Named;
use crate::types::brand::{Brand, Declared};
use crate::types::condition::condition;
use crate::types::dim::{Dim, DimList, Of};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, NoDim};
use core::ops::Deref;
use kernels::scalar::Element;

/// A tensor, a reference to one, or a dim, which stands for its indices 0, 1, 2, .. along itself.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "a tensor is expected here",
    note = "bind an array to dims to make it a tensor, `a.at((i, j))`; convert a stream with `x.as_tensor()`"
)]
pub trait AsTensor: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem;
    /// The dims.
    type Dims: Dims;
    /// The positional axes.
    type Rank: Rank;
    /// Where the elements come from: an [`Expr`], which is looked at where the tensor is computed.
    type Expr;
    /// The tensor.
    #[doc(hidden)]
    fn into_named(self) -> NamedOf<Self>;
    /// The expression, for operations that run at once and leave the tensor to its owner.
    #[doc(hidden)]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr>;
}

/// An expression that is read and stays as it is. That of a dim is made where it is read.
#[doc(hidden)]
pub enum BorrowedExpr<'a, E> {
    Reference(&'a E),
    Made(E),
}

impl<E> Deref for BorrowedExpr<'_, E> {
    type Target = E;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn deref(&self) -> &E {
        match self {
            BorrowedExpr::Reference(expr) => expr,
            BorrowedExpr::Made(expr) => expr,
        }
    }
}

/// A tensor whose elements can be computed. Every [`AsTensor`] is one; the bound is apart because rustc would prove it anew, down to
/// the leaves of the expression, at every operation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "a tensor is expected here",
    note = "bind an array to dims to make it a tensor, `a.at((i, j))`; convert a stream with `x.as_tensor()`"
)]
pub trait Computable: AsTensor<Elem: Element, Expr: Expr<Elem = <Self as AsTensor>::Elem>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<A: AsTensor<Elem: Element, Expr: Expr<Elem = <A as AsTensor>::Elem>>> Computable for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A tensor that can be computed on its own: each of its dims has a size.
///
/// A declared dim as a value has the size of the tensors that it is combined with, `x * Seq.cast::<f32>()`. Without such a tensor it needs one of its own,
/// `Seq.of(8).cast::<f32>()`.
///
/// It is the bound of functions that compute a tensor of any kind:
///
/// ```
/// use typed_dims::prelude::*;
/// use typed_dims::tensors::tensor::Evaluable;
///
/// dims! { struct Seq; }
/// fn listed(x: impl Evaluable<Elem = f32, Dims = (Seq,), Rank = typed_dims::types::rank::Rank0>) -> Array1<f32> {
///     x.order(Seq)
/// }
/// assert_eq!(listed(Seq.of(3).cast::<f32>()), ndarray::array![0.0, 1.0, 2.0]);
/// ```
pub trait Evaluable: Computable {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<A: Computable> Evaluable for A
where
    OpenOf<A>: Without<A::Expr>,
    NoDim<Unsized<A>>: SizeKnown<Unsized<A>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The declared dims that are values in an expression, whose sizes other operands must have.
type OpenOf<A> = <<A as AsTensor>::Expr as Expr>::Open;
/// The first dim for which there is no size, or [`Nothing`](crate::types::set::Nothing).
type Unsized<A> = <OpenOf<A> as Without<<A as AsTensor>::Expr>>::First;

condition! {
    /// The condition that a dim has a size.
    #[diagnostic::on_unimplemented(
        message = "the dim `{D}` has no size here",
        label = "write `{D}.of(n)`, or combine it with a tensor that has the dim `{D}`"
    )]
    pub trait SizeKnown<D> for True;
}

/// The tensor, once the sizes that come with `dims` are found to be its own: see [`Of`](crate::types::dim::Of).
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn checked<A: Computable, D: DimList>(tensor: A, dims: &D) -> Result<NamedOf<A>, DimError> {
    let tensor = tensor.into_named();
    read_checked(&tensor, dims)?;
    Ok(tensor)
}

/// The expression of the tensor, once the sizes that come with `dims` are found to be its own.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn read_checked<'t, A: Computable, D: DimList>(
    tensor: &'t A,
    dims: &D,
) -> Result<BorrowedExpr<'t, A::Expr>, DimError> {
    let expr = tensor.borrowed();
    if D::GIVES_SIZE {
        reference::<A>(&expr).unified_shape()?.check_all_given(dims)?;
    }
    Ok(expr)
}

/// A tensor that reads the expression of another one.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn reference<A: AsTensor>(expr: &A::Expr) -> Named<A::Elem, A::Dims, A::Rank, &A::Expr> {
    Named::from_expr(expr)
}

/// The tensor that a value is.
pub type NamedOf<A> =
    Named<<A as AsTensor>::Elem, <A as AsTensor>::Dims, <A as AsTensor>::Rank, <A as AsTensor>::Expr>;

impl<T, S: Dims, R: Rank, E> AsTensor for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = S;
    type Rank = R;
    type Expr = E;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> Self {
        self
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, E> {
        BorrowedExpr::Reference(&self.expr)
    }
}

impl<'a, T, S: Dims, R: Rank, E> AsTensor for &'a Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = S;
    type Rank = R;
    type Expr = &'a E;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(&self.expr)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, &'a E> {
        BorrowedExpr::Made(&self.expr)
    }
}

impl<'a, B: Brand> AsTensor for &'a Dim<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = isize;
    type Dims = (B,);
    type Rank = Rank0;
    type Expr = Iota<'a, B>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(Iota::new(self))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr> {
        BorrowedExpr::Made(Iota::new(*self))
    }
}

#[diagnostic::do_not_recommend]
impl<D: Declared> AsTensor for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = isize;
    type Dims = (D,);
    type Rank = Rank0;
    type Expr = Iota<'static, D, NoSize<D>>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(Iota::new(self))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr> {
        BorrowedExpr::Made(Iota::new(*self))
    }
}

impl<D: Declared> AsTensor for Of<D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = isize;
    type Dims = (D,);
    type Rank = Rank0;
    type Expr = Iota<'static, D>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_named(self) -> NamedOf<Self> {
        Named::from_expr(Iota::new(self))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr> {
        BorrowedExpr::Made(Iota::new(*self))
    }
}
