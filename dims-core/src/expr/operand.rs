//! Operands of operations: tensors, references to them, scalars, and dims.

use super::sized::NoSize;
use super::{Iota, Scalar};
use crate::types::brand::{Brand, Declared};
use crate::types::dim::{Dim, Of};
use crate::types::prime::LocalPrime;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::remove::{Surplus, Within};
use crate::types::set::shared::Covered;
use crate::types::set::{Dims, Fails, FirstWith, NoDim};
use kernels::scalar::Element;

/// An operand of operations on tensors of `T`.
///
/// It is a tensor with elements of type `T`, a reference to one, or a single `T`, which is the same
/// at all positions. If `T` is `isize`, it can also be a dim, which stands for its indices.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tensor of `{T}`",
    label = "expected a tensor of `{T}`, or one value of type `{T}`",
    note = "tensors of different element types do not mix: convert one with `.cast::<{T}>()`, a number with `as {T}`; an array becomes a tensor when it is bound, `b.at((i, j))`; of a double reference `&&b`, remove one `&`"
)]
pub trait Operand<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims of the operand.
    type Dims: Dims;
    /// Its positional axes.
    type Rank: Rank;
    /// Its elements: an [`Expr`](super::Expr). (The operation that runs it has that bound.)
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
impl<'a, B: Brand> Operand<isize> for LocalPrime<'a, B> {
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

/// An [`Operand`] whose dims are all in `S`, such as the targets of predictions, a gain, a bias, or
/// a number.
pub trait Subset<T, S: Dims>: Operand<T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<T, S, Y> Subset<T, S> for Y
where
    S: Dims,
    Y: Operand<T, Dims: Dims<List: FirstWith<Fails<Within<S::List>>>>>,
    NoDim<Surplus<Y::Dims, S>>: Covered<Surplus<Y::Dims, S>, S>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
