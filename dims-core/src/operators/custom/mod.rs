//! Operators of users: scalar ones, which fuse like those of the library, and ones on whole arrays, of one tensor or of several, which are batched.
//!
//! [`docs/custom-operators.md`](https://github.com/typed-dims/typed-dims/blob/main/docs/custom-operators.md) shows both.

mod arrays;
mod calls;
mod pull_back;
#[cfg(feature = "std")]
mod pulled;
mod tensors;

pub use pull_back::{PullBack, PullBackOf};
pub use tensors::{Examples, Takes, Tensors, WithAxes};

use crate::error::DimError;
use crate::expr::{Binary, Operand, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::rank::{Rank, RankOf};
use crate::types::set::Union;
use kernels::ops::custom::Custom;
pub use kernels::ops::custom::{Derivative, ScalarOp};
use kernels::scalar::Element;
use ndarray::{Array, ArrayD};
use twins::panicking_twin;

/// A [`ScalarOp`] on elements of a tensor.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on `{Args}`",
    label = "no such operation for elements of this type",
    note = "write `impl ScalarOp<{Args}> for {Self}`; an operation on two tensors takes a pair, `ScalarOp<(f32, f32)>`; make a third value a field of the operation, or apply a second operation to it"
)]
pub trait OperatesOn<Args> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the result.
    type Out: Element;
}

#[diagnostic::do_not_recommend]
impl<Args, O: ScalarOp<Args>> OperatesOn<Args> for O {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = O::Out;
}

/// An operation on whole arrays, the positional axes of a tensor or of several: a function of ndarray arrays.
///
/// One impl makes an operator of it, for tensors with any dims besides those axes. `Args` is the type of the elements, and `In` the number of axes.
/// `x.apply_array(Op)` applies it. An operation on 2 to 6 arrays has tuples in their places, as here; [`apply_arrays`] applies it.
///
/// Without a rule of its own for batches, `one` is called for each example, one after the other, and
/// [`explain`](crate::plan::explain::explain) says so. With `batch` there is one call for all of them.
///
/// ```
/// use typed_dims::ndarray::{Array1, ArrayView1, ArrayView2, array};
/// use typed_dims::operators::custom::apply_arrays;
/// use typed_dims::prelude::*;
///
/// /// Solves `a x = b` for a triangular `a`, whose elements above the diagonal are not read.
/// struct SolveLower;
///
/// impl ArrayOp<(f64, f64)> for SolveLower {
///     type In = (U2, U1);
///     type Out = U1;
///     type Elem = f64;
///     const NAME: &'static str = "solve_lower";
///
///     fn one(&self, (a, b): (ArrayView2<'_, f64>, ArrayView1<'_, f64>)) -> Array1<f64> {
///         let mut x = b.to_owned();
///         for i in 0..x.len() {
///             let known: f64 = (0..i).map(|j| a[[i, j]] * x[j]).sum();
///             x[i] = (x[i] - known) / a[[i, i]];
///         }
///         x
///     }
/// }
///
/// let (a, b) = (array![[2.0, 0.0], [1.0, 4.0]], array![[2.0, 9.0], [4.0, 2.0], [0.0, 4.0]]);
/// dims!(n);
/// let x = apply_arrays((a.at((.., ..)), b.at((n, ..))), SolveLower); // one matrix, several right sides
/// assert_eq!(x.order(n), array![[1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on arrays of `{Args}`",
    label = "no such operation for elements of this type",
    note = "write `impl ArrayOp<{Args}> for {Self}`"
)]
pub trait ArrayOp<Args: 'static> {
    /// How many positional axes it takes: `U1` for vectors, `(U2, U1)` for a matrix and a vector.
    type In: Takes<Args>;
    /// How many it yields.
    type Out: RankOf;
    /// The type of the elements that it yields.
    type Elem: Element;
    /// The name in plans.
    const NAME: &'static str;

    /// The operation on one example: an `ArrayView`, or a tuple of them. All results of one call must have the same shape.
    fn one(&self, arrays: <Self::In as Takes<Args>>::Views<'_>) -> Array<Self::Elem, NdOf<Self::Out>>;

    /// The operation on many examples at once, one behind the other along axis 0 of the result; `None` where there is no rule for that.
    ///
    /// Of one tensor it gets an `ArrayViewD`, with the examples along axis 0 too; of several, a tuple of [`Examples`].
    fn batch(&self, _arrays: <Self::In as Takes<Args>>::Examples<'_>) -> Option<ArrayD<Self::Elem>> {
        None
    }

    /// How gradients go through the operation. Without it, a gradient through it is an error. The gradient of an array of integers or truth values is not
    /// looked at.
    ///
    /// It is for first derivatives, and for directional ones (`jvp`), which call it once for each element of the result. A function with derivatives of
    /// higher order is a function of tensors: see [`custom_vjp`](crate::grad::custom_vjp).
    ///
    /// ```
    /// use typed_dims::operators::custom::PullBackOf;
    /// use typed_dims::grad::grad;
    /// use typed_dims::ndarray::{Array1, ArrayView1};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Batch; pub struct In; }
    ///
    /// /// Each element times the sum of all.
    /// struct TimesSum;
    ///
    /// impl ArrayOp<f64> for TimesSum {
    ///     type In = U1;
    ///     type Out = U1;
    ///     type Elem = f64;
    ///     const NAME: &'static str = "times_sum";
    ///
    ///     fn one(&self, x: ArrayView1<'_, f64>) -> Array1<f64> {
    ///         &x * x.sum()
    ///     }
    ///
    ///     fn pull_back(&self) -> Option<PullBackOf<Self, f64>> {
    ///         Some(PullBackOf::<Self, f64>::new(|x, _y, dy| &dy * x.sum() + dy.dot(&x)))
    ///     }
    /// }
    ///
    /// let x = from_vec((Batch.of(2), In.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
    /// let dx = grad(|x| x.order(In).apply_array(TimesSum).at(In).sum((Batch, In)), &x);
    /// assert_eq!(dx.order((Batch, In)), ndarray::array![[6.0, 6.0], [14.0, 14.0]]);
    /// ```
    fn pull_back(&self) -> Option<PullBackOf<Self, Args>>
    where
        Self: Sized,
    {
        None
    }
}

/// The result of [`apply`](ApplyOp::apply): a tensor `A` after the operation `O`.
pub type Applied<O, A> = Named<
    <O as OperatesOn<<A as AsTensor>::Elem>>::Out,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Unary<Custom<O>, <A as AsTensor>::Expr>,
>;

/// The result of [`apply_with`](ApplyOp::apply_with): a tensor `A` and an operand `B` of `V` after the operation `O`.
pub type AppliedWith<O, A, B, V> = Named<
    <O as OperatesOn<(<A as AsTensor>::Elem, V)>>::Out,
    <<A as AsTensor>::Dims as Union<<B as Operand<V>>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as Operand<V>>::Rank>,
    Binary<Custom<O>, <A as AsTensor>::Expr, <B as Operand<V>>::Expr>,
>;

/// The ndarray dimension of a number of axes.
pub type NdOf<N> = <<N as RankOf>::Rank as Rank>::Nd;

/// The result of [`apply_array`](ApplyOp::apply_array) and of [`apply_arrays`].
pub type ArrayOut<O, X> = Named<
    <O as ArrayOp<<X as Tensors>::Elems>>::Elem,
    <X as Tensors>::Dims,
    <<O as ArrayOp<<X as Tensors>::Elems>>::Out as RankOf>::Rank,
>;

/// An operation takes as many axes as a tensor has positional ones.
#[diagnostic::on_unimplemented(
    message = "an operation on arrays of `{Self}` cannot be applied to a tensor with positional axes of `{R}`",
    label = "bind the axes that the operation lacks: `x.at((n, ..))`"
)]
pub trait AxesOf<R>: Rank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank> AxesOf<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Users' operators as methods of tensors.
pub trait ApplyOp: AsTensor {
    /// The operation of each element. Lazy.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<O: OperatesOn<Self::Elem>>(self, op: O) -> Applied<O, Self> {
        Named::from_expr(Unary { op: Custom(op), a: self.into_named().expr })
    }

    /// The operation of each element and of the other tensor's at the same position. Lazy.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply_with<O: OperatesOn<(Self::Elem, V)>, B, V>(self, other: B, op: O) -> AppliedWith<O, Self, B, V>
    where
        B: Operand<V>,
        Self::Dims: Union<B::Dims>,
    {
        Named::from_expr(Binary { op: Custom(op), a: self.into_named().expr, b: other.into_expr() })
    }

    /// The operation of the array that the tensor's positional axes are, for each position of its dims. It runs at once.
    ///
    /// # Panics
    ///
    /// Where [`try_apply_array`](ApplyOp::try_apply_array) returns an error, and if the operation panics.
    #[panicking_twin("so are results of different shapes")]
    fn try_apply_array<O: ArrayOp<Self::Elem, In: RankOf<Rank = N>>, N: AxesOf<Self::Rank>>(
        self,
        op: O,
    ) -> Result<ArrayOut<O, Self>, DimError>
    where
        Self: Computable,
    {
        calls::execute_calls(&op, |shape, order| self.hold(shape, order))
    }
}

impl<A: AsTensor + ?Sized> ApplyOp for A {}

/// The operation of the arrays that the tensors' positional axes are, for each position of all their dims. It runs at once.
///
/// ```text
/// out at (n, m, ..) = op(a at (n, m, ..), b at (n, m, ..), ..)
/// ```
///
/// Each tensor can have dims of its own. One that lacks a dim of another one is the same all along it, and is not copied for that.
/// [`ArrayOp`] has an example.
///
/// # Panics
///
/// Where [`try_apply_arrays`] returns an error, and if the operation panics.
///
/// # Errors
///
/// If the tensors have different sizes for a dim, if the results of single examples have different shapes, or if there is no example and
/// no rule for batches, so that nothing says how large results are.
#[panicking_twin]
pub fn try_apply_arrays<X: Tensors + WithAxes<O::In>, O: ArrayOp<X::Elems>>(
    tensors: X,
    op: O,
) -> Result<ArrayOut<O, X>, DimError> {
    calls::execute_calls(&op, |shape, order| tensors.hold(shape, order))
}
