//! User-defined operators. Scalar operators fuse like those of the library. Operators on whole
//! arrays are applied at each position of the dims of one or several tensors.
//!
//! [`docs/custom-operators.md`](https://github.com/typed-dims/typed-dims/blob/main/docs/custom-operators.md)
//! shows both.

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
use crate::seal::PRIVATE;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::rank::{Rank, RankOf};
use crate::types::set::Union;
use kernels::ops::custom::Custom;
pub use kernels::ops::custom::{Derivative, ScalarOp};
use kernels::scalar::Element;
use ndarray::{Array, ArrayD};
use twins::panicking_twin;

/// A [`ScalarOp`] on elements of one or two tensors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on `{Args}`",
    label = "no such operation for elements of this type",
    note = "write `impl ScalarOp<{Args}> for {Self}`; an operation on two tensors takes a pair, `ScalarOp<(f32, f32)>`; if there is a third value, make it a field of the operation, or compose two operations"
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

/// An operation on whole arrays: a function of ndarray arrays, applied to the positional axes of
/// one or several tensors.
///
/// The tensors can have any dims in addition. `Args` is the element type, and `In` the number of
/// positional axes. `x.apply_array(Op)` applies the operation `Op`. For an operation on 2 to 6
/// arrays, `Args` and `In` are tuples, as in the example below; [`apply_arrays`] applies it.
///
/// By default, `one` is called for each position of the dims (each *example*) in turn, and
/// [`explain`](crate::plan::explain::explain) shows the number of calls. With `batch`, there is one
/// call for all examples.
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
/// // One matrix, several right-hand sides.
/// let x = apply_arrays((a.at((.., ..)), b.at((n, ..))), SolveLower);
/// assert_eq!(x.order(n), array![[1.0, 2.0], [2.0, 0.0], [0.0, 1.0]]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on arrays of `{Args}`",
    label = "no such operation for elements of this type",
    note = "write `impl ArrayOp<{Args}> for {Self}`"
)]
pub trait ArrayOp<Args: 'static> {
    /// The number of positional axes of the arguments: `U1` for a vector, `(U2, U1)` for a matrix
    /// and a vector.
    type In: Takes<Args>;
    /// The number of positional axes of the result.
    type Out: RankOf;
    /// The element type of the result.
    type Elem: Element;
    /// The name in plans and messages.
    const NAME: &'static str;

    /// The operation on one example, which is an `ArrayView` or a tuple of them. The results for
    /// all examples must have the same shape.
    fn one(&self, arrays: <Self::In as Takes<Args>>::Views<'_>) -> Array<Self::Elem, NdOf<Self::Out>>;

    /// The operation on all examples at once. The results are stacked along axis 0. `None` if there
    /// is no batched version.
    ///
    /// For one tensor the argument is an `ArrayViewD` with the examples along axis 0. For several
    /// tensors it is a tuple of [`Examples`].
    fn batch(&self, _arrays: <Self::In as Takes<Args>>::Examples<'_>) -> Option<ArrayD<Self::Elem>> {
        None
    }

    /// The derivative of the operation. Without it, taking a gradient through the operation is an
    /// error, unless its results are `bool`s or integers of at most 64 bits, which are constants.
    /// An operation with results of any other type that is not a float, such as complex numbers,
    /// cannot have a derivative. Gradients with respect to arrays of integers or `bool`s are
    /// ignored.
    ///
    /// The pull-back gives first derivatives. A directional derivative (`jvp`) calls it for each
    /// element of the result. For derivatives of higher order, use
    /// [`custom_vjp`](crate::grad::custom_vjp).
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

/// The result of [`apply`](ApplyOp::apply): the operation `O` applied to a tensor `A`.
pub type Applied<O, A> = Named<
    <O as OperatesOn<<A as AsTensor>::Elem>>::Out,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Unary<Custom<O>, <A as AsTensor>::Expr>,
>;

/// The result of [`apply_with`](ApplyOp::apply_with): the operation `O` applied to a tensor `A` and
/// an operand `B` with elements of type `V`.
pub type AppliedWith<O, A, B, V> = Named<
    <O as OperatesOn<(<A as AsTensor>::Elem, V)>>::Out,
    <<A as AsTensor>::Dims as Union<<B as Operand<V>>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as Operand<V>>::Rank>,
    Binary<Custom<O>, <A as AsTensor>::Expr, <B as Operand<V>>::Expr>,
>;

/// The ndarray dimension type for `N` axes.
pub type NdOf<N> = <<N as RankOf>::Rank as Rank>::Nd;

/// The result of [`apply_array`](ApplyOp::apply_array) and of [`apply_arrays`].
pub type ArrayOut<O, X> = Named<
    <O as ArrayOp<<X as Tensors>::Elems>>::Elem,
    <X as Tensors>::Dims,
    <<O as ArrayOp<<X as Tensors>::Elems>>::Out as RankOf>::Rank,
>;

/// The condition that an operation takes as many axes as a tensor has positional axes.
#[diagnostic::on_unimplemented(
    message = "the operation takes arrays of `{Self}`, but the tensor has positional axes of `{R}`",
    label = "leave as many axes positional as the operation takes, and name the others: `x.at((n, ..))`"
)]
pub trait AxesOf<R>: Rank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R: Rank> AxesOf<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Methods that apply user-defined operators to tensors.
pub trait ApplyOp: AsTensor {
    /// Applies the operation to each element. Lazy.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<O: OperatesOn<Self::Elem>>(self, op: O) -> Applied<O, Self> {
        Named::from_expr(Unary { op: Custom(op), a: self.into_named().expr })
    }

    /// Applies the operation to each element and the element of `other` at the same position. Lazy.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply_with<O: OperatesOn<(Self::Elem, V)>, B, V>(self, other: B, op: O) -> AppliedWith<O, Self, B, V>
    where
        B: Operand<V>,
        Self::Dims: Union<B::Dims>,
    {
        Named::from_expr(Binary { op: Custom(op), a: self.into_named().expr, b: other.into_expr() })
    }

    /// Applies the operation to the array of the tensor's positional axes, at each position of its
    /// dims. It runs immediately.
    ///
    /// # Panics
    ///
    /// If [`try_apply_array`](ApplyOp::try_apply_array) returns an error, or the operation panics.
    ///
    /// # Errors
    ///
    /// The errors of [`try_apply_arrays`].
    #[panicking_twin("so are results of different shapes")]
    fn try_apply_array<O: ArrayOp<Self::Elem, In: RankOf<Rank = N>>, N: AxesOf<Self::Rank>>(
        self,
        op: O,
    ) -> Result<ArrayOut<O, Self>, DimError>
    where
        Self: Computable,
    {
        calls::execute_calls(&op, |shape, order| self.hold(shape, order, PRIVATE))
    }
}

impl<A: AsTensor + ?Sized> ApplyOp for A {}

/// Applies the operation to the arrays of the tensors' positional axes, at each position of all
/// their dims. It runs immediately.
///
/// ```text
/// out at (n, m, ..) = op(a at (n, m, ..), b at (n, m, ..), ..)
/// ```
///
/// The tensors can have different dims, and are broadcast without copying. [`ArrayOp`] has an
/// example.
///
/// # Panics
///
/// If [`try_apply_arrays`] returns an error, or the operation panics.
///
/// # Errors
///
/// If the tensors have different sizes for a dim, if an index is out of range, if the results of
/// single examples have different shapes, if the array that `batch` returns has the wrong number of
/// axes or does not have one result for each example, if there are no examples and no `batch`, so
/// that the shape of a result is unknown, or if the operation has no derivative, and a gradient or
/// a recorded function traces a tensor.
#[panicking_twin]
pub fn try_apply_arrays<X: Tensors + WithAxes<O::In>, O: ArrayOp<X::Elems>>(
    tensors: X,
    op: O,
) -> Result<ArrayOut<O, X>, DimError> {
    calls::execute_calls(&op, |shape, order| tensors.hold(shape, order, PRIVATE))
}
