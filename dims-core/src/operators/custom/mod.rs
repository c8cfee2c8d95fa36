//! Operators of users: scalar ones, which fuse like those of the library, and ones on whole arrays, of one tensor or of several, which are batched.
//!
//! [`docs/custom-operators.md`](https://github.com/typed-dims/typed-dims/blob/main/docs/custom-operators.md) shows both.

mod calls;
mod pull_back;
mod several;

pub use pull_back::{PullBack, PullBackOf};

pub use several::{
    Arguments, ArraysOp, ArraysOut, Examples, PullBacks, PullBacksOf, Takes, Tensors, WithAxes, apply_arrays,
    try_apply_arrays,
};

use crate::error::{DimError, unwrap};
use crate::execute::lines::arranged;
use crate::expr::evaluate::evaluate;
use crate::expr::{Binary, Operand, Unary};
use crate::plan::axes::AxisList;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::rank::{Rank, RankOf};
use crate::types::set::Union;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use calls::{ArrayCalls, ArrayResults};
use core::marker::PhantomData;
use kernels::error::Error;
use kernels::loops::axes::{Order, Sizes};
use kernels::ops::custom::Custom;
pub use kernels::ops::custom::{Derivative, ScalarOp};
use kernels::scalar::Element;
#[cfg(feature = "std")]
use kernels::step::StepDerivative;
use kernels::step::StepOperands;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD, IxDyn};

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

/// An operation on whole arrays of rank `In`, the positional axes of a tensor, which yields arrays of rank `Out`.
///
/// One impl makes an operator of it, `x.apply_array(Op)`, for tensors with any dims besides those axes. Without a rule of its own for
/// batches, `one` is called for each example, one after the other, and [`explain`](crate::plan::explain::explain) says so. With `batch`
/// there is one call for all of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on arrays of `{T}`",
    label = "no such operation for elements of this type",
    note = "write `impl ArrayOp<{T}> for {Self}`"
)]
pub trait ArrayOp<T: Element> {
    /// How many positional axes it takes: `U1` for vectors.
    type In: RankOf;
    /// How many it yields.
    type Out: RankOf;
    /// The type of the elements that it yields.
    type Elem: Element;
    /// The name in plans.
    const NAME: &'static str;

    /// The operation on one example. All results of one call must have the same shape.
    fn one(&self, x: ArrayView<'_, T, NdOf<Self::In>>) -> Array<Self::Elem, NdOf<Self::Out>>;

    /// The operation on many examples at once, one behind the other along axis 0 of `x` and of the result; `None` where there is no
    /// rule for that.
    fn batch(&self, _x: ArrayViewD<'_, T>) -> Option<ArrayD<Self::Elem>> {
        None
    }

    /// How gradients go through the operation. Without it, a gradient through it is an error.
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
    fn pull_back(&self) -> Option<PullBackOf<Self, T>>
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

/// The result of [`apply_array`](ApplyOp::apply_array).
pub type ArrayOut<O, A> = Named<
    <O as ArrayOp<<A as AsTensor>::Elem>>::Elem,
    <A as AsTensor>::Dims,
    <<O as ArrayOp<<A as AsTensor>::Elem>>::Out as RankOf>::Rank,
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
    #[track_caller]
    fn apply_array<O: ArrayOp<Self::Elem, In: RankOf<Rank = N>>, N: AxesOf<Self::Rank>>(
        self,
        op: O,
    ) -> ArrayOut<O, Self>
    where
        Self: Computable,
    {
        unwrap(self.try_apply_array(op))
    }

    /// As [`apply_array`](ApplyOp::apply_array), but what sizes decide is an error; so are results of different shapes.
    #[track_caller]
    fn try_apply_array<O: ArrayOp<Self::Elem, In: RankOf<Rank = N>>, N: AxesOf<Self::Rank>>(
        self,
        op: O,
    ) -> Result<ArrayOut<O, Self>, DimError>
    where
        Self: Computable,
    {
        apply_array(self, op)
    }
}

impl<A: AsTensor + ?Sized> ApplyOp for A {}

#[track_caller]
fn apply_array<A: Computable, O: ArrayOp<A::Elem>>(tensor: A, op: O) -> Result<ArrayOut<O, A>, DimError> {
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let named = order.len() - <A::Rank as Rank>::N;
    let mut data = evaluate::<A::Dims, A::Rank, _>(tensor.expr, &shape, order)?;
    let sizes = shape.sizes_in(order);
    let (dims, axes) = sizes.split_at(named);
    let calls = CallsOfOne { op: &op, count: dims.iter().product(), axes, element: PhantomData };
    let (out, found) = calls::run(calls, &mut [&mut data])?;
    let sizes: Sizes = dims.iter().chain(&found).copied().collect();
    let order: Order = order[..named].iter().copied().chain(named..named + found.len()).collect();
    arranged(out, &order, &sizes)
}

/// An operation on one array, for each of some examples.
struct CallsOfOne<'a, O, T> {
    op: &'a O,
    count: usize,
    /// The sizes of an example.
    axes: &'a [usize],
    element: PhantomData<T>,
}

const SAME_SIZES: &str = "the sizes are the shape of the data";

impl<T: Element, O: ArrayOp<T>> ArrayCalls for CallsOfOne<'_, O, T> {
    const NAME: &'static str = O::NAME;
    const RANK: usize = <<O::Out as RankOf>::Rank as Rank>::N;
    #[cfg(feature = "std")]
    const REMEDY: &'static str = "give the operation a pull-back, as `fn pull_back` of its `ArrayOp`";
    type Elem = O::Elem;

    fn count(&self) -> usize {
        self.count
    }

    fn batch(&self, operands: &StepOperands<'_, '_>) -> Option<ArrayD<O::Elem>> {
        let all: Sizes = [self.count].into_iter().chain(self.axes.iter().copied()).collect();
        self.op.batch(ArrayViewD::from_shape(IxDyn(&all), operands.of(0)).expect(SAME_SIZES))
    }

    fn each(
        &self,
        operands: &StepOperands<'_, '_>,
        results: &mut ArrayResults<O::Elem>,
    ) -> Result<(), Error> {
        let (data, one) = (operands.of::<T>(0), self.axes.iter().product::<usize>());
        for call in 0..self.count {
            let x = ArrayViewD::from_shape(IxDyn(self.axes), &data[call * one..][..one]).expect(SAME_SIZES);
            let x = x.into_dimensionality().expect("the ranks are the same");
            results.push(&self.op.one(x))?;
        }
        Ok(())
    }

    #[cfg(feature = "std")]
    fn pull_back(&self) -> Option<Arc<dyn StepDerivative>> {
        let function = self.op.pull_back()?.function;
        let x_shape = self.axes.into();
        Some(Arc::new(pull_back::PullOfOne { name: O::NAME, count: self.count, x_shape, function }))
    }
}
