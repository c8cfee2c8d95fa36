//! What can stand on either side of an operation: tensors, references to them, scalars, and dims.

use super::sized::NoSize;
use super::{Iota, Scalar};
use crate::types::brand::{Brand, Declared};
use crate::types::dim::{Dim, Of};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
use kernels::scalar::Element;

/// A value that takes part in operations on tensors of `T`.
///
/// Tensors and references to tensors of the same element type; a single `T`, which is the same everywhere; and for
/// `T = isize` dims, which stand for their indices.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tensor of `{T}`",
    label = "expected a tensor of `{T}`, or one value of type `{T}`",
    note = "tensors of different element types do not mix: convert one with `.cast::<{T}>()`, a number with `as {T}`; an array becomes a tensor when it is bound, `b.at((i, j))`"
)]
pub trait Operand<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims that the value has.
    type Dims: Dims;
    /// Its positional axes.
    type Rank: Rank;
    /// Its elements: an [`Expr`](super::Expr), which is looked at where the operation runs.
    type Expr;
    /// The elements.
    #[doc(hidden)]
    fn into_expr(self) -> Self::Expr;
}

#[diagnostic::do_not_recommend]
impl<T: Element> Operand<T> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Rank = Rank0;
    type Expr = Scalar<T>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Scalar<T> {
        Scalar(self)
    }
}

#[diagnostic::do_not_recommend]
impl<'a, B: Brand> Operand<isize> for &'a Dim<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = (B,);
    type Rank = Rank0;
    type Expr = Iota<'a, B>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Iota<'a, B> {
        Iota::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<D: Declared> Operand<isize> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = (D,);
    type Rank = Rank0;
    type Expr = Iota<'static, D, NoSize<D>>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Iota<'static, D, NoSize<D>> {
        Iota::new(self)
    }
}

#[diagnostic::do_not_recommend]
impl<D: Declared> Operand<isize> for Of<D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = (D,);
    type Rank = Rank0;
    type Expr = Iota<'static, D>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> Iota<'static, D> {
        Iota::new(self)
    }
}
