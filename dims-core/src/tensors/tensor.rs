//! The receivers of tensor methods: tensors, references to tensors, and dims.

use crate::error::DimError;
use crate::expr::sized::{NoSize, Without};
use crate::expr::{Expr, Iota};
use crate::tensors::named::Named;
use crate::types::brand::{Brand, Declared};
use crate::types::dim::{Dim, DimList, Of};
use crate::types::prime::LocalPrime;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::{Dims, NoDim};
use crate::types::size::HasSize;
use core::ops::Deref;
use kernels::scalar::Element;

/// A tensor, a reference to one, or a dim, which stands for its indices 0, 1, 2, ..
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "a tensor is expected here; bind an array to dims first: `a.at((i, j))`",
    note = "convert a stream with `x.as_tensor()`",
    note = "of several results, take one: `.0` of a tuple, or a field such as `.values` or `.output`"
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
    /// The source of the elements: an [`Expr`], though only operations that compute the tensor
    /// require this bound.
    type Expr;
    /// The tensor.
    #[doc(hidden)]
    fn into_named(self) -> NamedOf<Self>;
    /// The expression, for operations that run immediately and only borrow the tensor.
    #[doc(hidden)]
    fn borrowed(&self) -> BorrowedExpr<'_, Self::Expr>;
}

/// An expression that is borrowed, or made for a dim or for a reference to a tensor.
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

/// A tensor whose elements can be computed: every [`AsTensor`] whose expression is an [`Expr`].
/// This bound is not part of [`AsTensor`], because rustc would then prove it again at every
/// operation, down to the leaves of the expression.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor",
    label = "a tensor is expected here; bind an array to dims first: `a.at((i, j))`",
    note = "convert a stream with `x.as_tensor()`",
    note = "of several results, take one: `.0` of a tuple, or a field such as `.values` or `.output`"
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
/// If a declared dim without a static size is used as a value, it takes its size from the tensors
/// that it is combined with, as in `x * Seq.cast::<f32>()`. Without such a tensor, give it a size:
/// `Seq.of(8).cast::<f32>()`.
///
/// Use this trait as the bound of functions that compute any kind of tensor:
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
    NoDim<Unsized<A>>: HasSize<Unsized<A>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A tensor of `bool`s.
#[diagnostic::on_unimplemented(
    message = "the elements of `{Self}` are not `bool`s",
    label = "`bool`s are needed here: compare numbers, for example `x.gt(0.0)`; bind an array, `mask.at((i, j))`"
)]
pub trait Truths: AsTensor<Elem = bool> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<A: AsTensor<Elem = bool>> Truths for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The declared dims that are used as values in an expression and need a size from another operand.
type OpenOf<A> = <<A as AsTensor>::Expr as Expr>::Open;
/// The first dim without a size, or [`Nothing`](crate::types::set::Nothing).
type Unsized<A> = <OpenOf<A> as Without<<A as AsTensor>::Expr>>::First;

/// The tensor, after checking that sizes given with `dims` are the tensor's: see
/// [`Of`](crate::types::dim::Of).
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn checked<A: Computable, D: DimList>(tensor: A, dims: &D) -> Result<NamedOf<A>, DimError> {
    let tensor = tensor.into_named();
    read_checked(&tensor, dims)?;
    Ok(tensor)
}

/// The expression of the tensor, after checking that sizes given with `dims` are the tensor's.
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

/// A tensor that borrows an expression.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn reference<A: AsTensor>(expr: &A::Expr) -> Named<A::Elem, A::Dims, A::Rank, &A::Expr> {
    Named::from_expr(expr)
}

/// The [`Named`] tensor that `A` converts to.
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

impl<'a, B: Brand> AsTensor for LocalPrime<'a, B> {
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
