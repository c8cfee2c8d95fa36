//! Pointwise operations. The shapes and data dimensions of two streams must match.

use super::Stream;
use super::contraction::Multiplier;
use super::ledger::{CostClass, StreamShape};
use crate::error::{DimError, unwrap};
use crate::expr::evaluate::evaluate_for;
use crate::expr::{Binary, Expr, Scalar, Unary};
use crate::laid::{Laid, Memory};
use crate::operators::elementwise::LeftOf;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::brand::{Brand, Rest};
use crate::types::rank::Rank0;
use crate::types::set::ordered::Minus;
use crate::types::set::{Dims, SetOf};
use core::marker::PhantomData;
use core::ops::{Add, Div, Mul, Neg, Rem, Sub};
use kernels::loops::axes::Order;
use kernels::ops::{self, BinaryOp, Map, UnaryOp};
use kernels::scalar::{Analytic, CastTo, Element, Num, Ordered, Real, Signed};
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// Applies a function of tensors to this stream.
    ///
    /// ```text
    /// (*) [a b! c] -> [a b! c]
    /// ```
    ///
    /// The function gets a tensor whose axes are all inside `Rest`. If it is generic over these
    /// axes, as `swish` is below, it cannot name any of them, so it cannot reduce, slice or
    /// contract them: its type proves that it is pointwise. Other tensors in the function must not
    /// add dims to the result.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// /// Written for tensors of any dims.
    /// fn swish<B: Dims>(x: &Tensor<f32, (Rest<B>,)>) -> Tensor<f32, (Rest<B>,)> {
    ///     (x * x.sigmoid()).eval()
    /// }
    ///
    /// dims! { pub struct Time; pub struct Feat; }
    /// let x = from_vec((Time.of(1), Feat.of(2)), vec![0.0, 2.0]).stream((Time, Feat), Feat);
    /// let y: Stream<f32, (Time, Feat), Feat> = x.pointwise(|x| swish(&x));
    /// assert_eq!(y.to_array(), ndarray::array![[0.0, 2.0 / (1.0 + (-2.0f32).exp())]]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the result cannot be computed or does not fit into memory, its sizes differ from those of
    /// the stream, or the function panics.
    #[panicking_twin(but = "a result that does not fit into memory, or has other sizes, is an error")]
    pub fn try_pointwise<Y: Computable<Rank = Rank0, Dims: AllAxes<(Rest<L>,)>>>(
        &self,
        f: impl FnOnce(Named<T, (Rest<L>,)>) -> Y,
    ) -> Result<Stream<Y::Elem, L, D>, DimError> {
        let order: Order = (0..self.sizes().len()).collect();
        let tensor = Named::from_expr(Evaluated::in_order(self.to_vec()?, &order, &self.sizes()));
        let result = f(tensor).into_named();
        let shape = result.unified_shape()?;
        // (The type determines the axes of the result, but not their sizes: the result may be
        // computed from another stream's tensor.)
        if shape.sizes() != &self.sizes()[..] {
            let what = format!(
                "a pointwise function yields sizes {:?} for a stream of sizes {:?}",
                shape.sizes(),
                &self.sizes()[..]
            );
            return Err(DimError::Shape { what });
        }
        let data = evaluate_for::<Y::Dims, Rank0, _>(result.expr, &shape, &order, "a stream")?;
        let out: Stream<Y::Elem, L, D> = Stream::from_vec(data, &self.sizes())?;
        out.note(CostClass::Compute, || "pointwise".into(), || vec![self.shape()]);
        Ok(out)
    }
}

/// The condition that the dims of a tensor are `A`: all axes of a stream, inside `Rest`.
#[diagnostic::on_unimplemented(
    message = "a pointwise function keeps the axes of the stream, `{A}`, but this one yields a tensor with dims `{Self}`",
    label = "this function is not pointwise",
    note = "its other operands must be numbers or tensors without dims; combine tensors with dims by methods of the stream, `x + &bias`"
)]
pub trait AllAxes<A> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<A: Dims> AllAxes<A> for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The right operand of a pointwise operation on a stream of `T` with the axes `L` and the data
/// dimension `D`. It is a stream of the same type or a reference to one, a single `T`, or a
/// constant: a tensor whose dims are among the axes. A number or a constant can also be the left
/// operand of `+`, `-`, `*` and `/`, and a constant that of `%`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not match a stream of `{T}` with the axes `{L}` and the data dimension `{D}`",
    label = "expected a stream with these axes in this order and this data dimension, a constant over these axes, or one `{T}`",
    note = "a constant must have no other dims than the axes; to sum over one that both have, write `x.contract(&constant, dim)`"
)]
pub trait StreamOperand<T, L, D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The elements.
    type Expr<'a>: Expr<Elem = T>
    where
        Self: 'a;
    /// The elements.
    #[doc(hidden)]
    fn operand(&self) -> Self::Expr<'_>;
    /// The axes with their sizes; `None` for a single `T`.
    #[doc(hidden)]
    fn operand_shape(&self) -> Result<Option<StreamShape>, DimError>;
}

macro_rules! streams {
    ($($stream:ty),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, L: Dims, D: Brand> StreamOperand<T, L, D> for $stream {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Expr<'a>
                = View<'a, T, L>
            where
                Self: 'a;

            fn operand(&self) -> View<'_, T, L> {
                self.in_memory().expr
            }

            fn operand_shape(&self) -> Result<Option<StreamShape>, DimError> {
                Ok(Some(self.shape()))
            }
        }
    )*};
}

streams!(Stream<T, L, D>, &Stream<T, L, D>);

#[diagnostic::do_not_recommend]
impl<T: Element, L, D> StreamOperand<T, L, D> for T {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Expr<'a> = Scalar<T>;

    fn operand(&self) -> Scalar<T> {
        Scalar(*self)
    }

    fn operand_shape(&self) -> Result<Option<StreamShape>, DimError> {
        Ok(None)
    }
}

/// Axes of a stream that include all dims of the set `S`.
///
/// (This is a bound on the axes because, for `x * y` of tensors, rustc tries the impls of streams
/// before it knows the type of `y`. It stops at a bound on unknown axes. It would check a bound on
/// `S` for all dims of `S`, at every operator, even in programs without streams.)
pub trait AxesFor<S>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<L: Dims, S: Dims<List: Minus<L::List, Out = ()>>> AxesFor<S> for L {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

macro_rules! constants {
    ($([$($params:tt)*] $tensor:ty, $set:ty, $constant:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Element, L: AxesFor<$set>, D, $($params)*> StreamOperand<T, L, D> for $constant {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Expr<'a>
                = <&'a $tensor as AsTensor>::Expr
            where
                Self: 'a;

            fn operand(&self) -> Self::Expr<'_> {
                let tensor: &$tensor = self;
                tensor.into_named().expr
            }

            fn operand_shape(&self) -> Result<Option<StreamShape>, DimError> {
                self.multiplier_shape().map(Some)
            }
        }
    )*};
}

constants! {
    [S: Dims, E: Expr<Elem = T>] Named<T, S, Rank0, E>, S, Named<T, S, Rank0, E>;
    [S: Dims, E: Expr<Elem = T>] Named<T, S, Rank0, E>, S, &Named<T, S, Rank0, E>;
    [O: SetOf + Dims, M: Memory<Elem = T>] Laid<T, O, M>, O::Set, Laid<T, O, M>;
    [O: SetOf + Dims, M: Memory<Elem = T>] Laid<T, O, M>, O::Set, &Laid<T, O, M>;
}

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    fn unary<O: UnaryOp<T>>(&self, name: &'static str, op: O) -> Result<Stream<O::Out, L, D>, DimError> {
        let out = Stream::evaluate(Named::from_expr(Unary { op, a: self.in_memory().expr }))?;
        out.note(CostClass::Compute, || name.into(), || vec![self.shape()]);
        Ok(out)
    }

    fn binary<V: Element, O: BinaryOp<T, V>, R: StreamOperand<V, L, D>>(
        &self,
        name: &'static str,
        op: O,
        other: &R,
    ) -> Result<Stream<O::Out, L, D>, DimError> {
        let shape = other.operand_shape()?;
        let both = Binary { op, a: self.in_memory().expr, b: other.operand() };
        let out = Stream::evaluate(Named::from_expr(both))?;
        out.note(
            CostClass::Compute,
            || name.into(),
            || core::iter::once(self.shape()).chain(shape).collect(),
        );
        Ok(out)
    }

    /// Applies `f` to each element. The cost is compute.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; }
    /// let x = from_vec(Time.of(3), vec![-1.5f32, 0.5, 2.0]).stream(Time, Time);
    /// let y: Stream<bool, (Time,), Time> = x.map(|x| x > 0.0);
    /// assert_eq!(y.to_array(), ndarray::array![false, true, true]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the result does not fit into memory.
    #[panicking_twin]
    pub fn try_map<U: Element>(&self, f: impl Fn(T) -> U) -> Result<Stream<U, L, D>, DimError> {
        self.unary("map", Map(f))
    }

    /// Converts each element to another type, like Rust's `as`. The cost is compute.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; }
    /// let x = from_vec(Time.of(2), vec![1i64, 4]).stream(Time, Time);
    /// let y: Stream<f32, (Time,), Time> = x.cast::<f32>().sqrt();
    /// assert_eq!(y.to_array(), ndarray::array![1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the result does not fit into memory.
    #[track_caller]
    pub fn cast<U: Element>(&self) -> Stream<U, L, D>
    where
        T: CastTo<U>,
    {
        unwrap(self.unary("cast", ops::Cast(PhantomData)))
    }

    /// Applies `f` to each element and the other operand's element at the same position. The cost
    /// is compute. The shapes and data dimensions of two streams must match.
    ///
    /// ```text
    /// [a b! c] (*) [a b! c] -> [a b! c]
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; }
    /// let x = from_vec(Time.of(3), vec![1, 2, 3]).stream(Time, Time);
    /// let y = x.zip_map(&(&x * 2), |x, y| (y, x));
    /// assert_eq!(y.to_array(), ndarray::array![(2, 1), (4, 2), (6, 3)]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the operands have different sizes for a dim, or the result does not fit into memory.
    #[panicking_twin]
    pub fn try_zip_map<V: Element, U: Element, R: StreamOperand<V, L, D>>(
        &self,
        other: R,
        f: impl Fn(T, V) -> U,
    ) -> Result<Stream<U, L, D>, DimError> {
        self.binary("zip_map", Map(f), &other)
    }

    /// The greater of the two elements at each position; NaN if either is NaN. The cost is compute.
    /// The shapes and data dimensions of two streams must match.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Time; }
    /// let x = from_vec(Time.of(3), vec![1, 5, 3]).stream(Time, Time);
    /// assert_eq!(x.maximum(2).minimum(x.map(|_| 4)).to_array(), ndarray::array![2, 4, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the operands have different sizes for a dim, or the result does not fit into memory.
    #[panicking_twin]
    pub fn try_maximum<R: StreamOperand<T, L, D>>(&self, other: R) -> Result<Self, DimError>
    where
        T: Ordered,
    {
        self.binary("maximum", ops::Maximum, &other)
    }

    /// The lesser of the two elements at each position, like [`maximum`](Stream::maximum).
    ///
    /// # Panics
    ///
    /// See [`maximum`](Stream::maximum).
    #[panicking_twin]
    pub fn try_minimum<R: StreamOperand<T, L, D>>(&self, other: R) -> Result<Self, DimError>
    where
        T: Ordered,
    {
        self.binary("minimum", ops::Minimum, &other)
    }
}

// The bounds are written with each operation: if a bound does not hold, rustc quotes its line,
// which then shows the operation.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:ident [$($bound:tt)*];)*) => {
        /// Operations on each element. The cost is compute. For other functions, use
        /// [`map`](Stream::map) with a closure.
        impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {$(
            $(#[$doc])*
            ///
            /// # Panics
            ///
            /// If the result does not fit into memory.
            #[track_caller]
            pub fn $name(&self) -> Self
            where
                T: $($bound)*,
            {
                unwrap(self.unary(stringify!($name), ops::$op))
            }
        )*}
    };
}

unary! {
    /// `e^x`
    exp Exp [Analytic];
    /// The natural logarithm.
    ln Ln [Analytic];
    /// The square root.
    sqrt Sqrt [Analytic];
    /// `1 / sqrt(x)`
    rsqrt Rsqrt [Analytic];
    /// `1 / x`
    recip Recip [Analytic];
    /// `x * x`
    square Square [Num];
    /// The hyperbolic tangent.
    tanh Tanh [Analytic];
    /// `1 / (1 + e^-x)`
    sigmoid Sigmoid [Real];
    /// `max(x, 0)`
    relu Relu [Ordered];
    /// `x / 2 * (1 + erf(x / sqrt 2))`, the exact form.
    gelu Gelu [Real];
    /// `x * sigmoid(x)`
    silu Silu [Real];
}

macro_rules! operators {
    ($($trait:ident $method:ident [$bound:ident];)*) => {$(
        impl<T: $bound, L: Dims, D: Brand, R: StreamOperand<T, L, D>> $trait<R> for &Stream<T, L, D> {
            type Output = Stream<T, L, D>;

            #[track_caller]
            fn $method(self, other: R) -> Stream<T, L, D> {
                unwrap(self.binary(stringify!($method), ops::$trait, &other))
            }
        }

        impl<T: $bound, L: Dims, D: Brand, R: StreamOperand<T, L, D>> $trait<R> for Stream<T, L, D> {
            type Output = Stream<T, L, D>;

            #[track_caller]
            fn $method(self, other: R) -> Stream<T, L, D> {
                unwrap(self.binary(stringify!($method), ops::$trait, &other))
            }
        }
    )*};
}

operators! {
    Add add [Num];
    Sub sub [Num];
    Mul mul [Num];
    Div div [Num];
    Rem rem [Ordered];
}

impl<T: Signed, L: Dims, D: Brand> Neg for &Stream<T, L, D> {
    type Output = Stream<T, L, D>;

    #[track_caller]
    fn neg(self) -> Stream<T, L, D> {
        unwrap(self.unary("neg", ops::Neg))
    }
}

impl<T: Signed, L: Dims, D: Brand> Neg for Stream<T, L, D> {
    type Output = Stream<T, L, D>;

    #[track_caller]
    fn neg(self) -> Stream<T, L, D> {
        -&self
    }
}

/// `left op stream`, for a left operand that implements [`StreamOperand`].
#[track_caller]
fn from_left<T: Num, L: Dims, D: Brand, O: BinaryOp<T, T, Out = T>, C: StreamOperand<T, L, D>>(
    op: O,
    left: &C,
    stream: &Stream<T, L, D>,
) -> Stream<T, L, D> {
    let shape = unwrap(left.operand_shape());
    let both = Binary { op, a: left.operand(), b: stream.in_memory().expr };
    let out = unwrap(Stream::evaluate(Named::from_expr(both)));
    let name = || O::NAME.into();
    out.note(CostClass::Compute, name, || shape.into_iter().chain([stream.shape()]).collect());
    out
}

// One impl for each element type. A generic impl would conflict with the impls for tensors, because
// rustc assumes that other crates can implement `Operand` for streams of their element types.
macro_rules! on_the_right {
    ($($t:ty),*) => {$(
        on_the_right!(@constant [] Stream<$t, L, D>, $t);
        on_the_right!(@constant ['s,] &'s Stream<$t, L, D>, $t);
        on_the_right!(@scalar $t: Add add, Sub sub, Mul mul, Div div);
    )*};
    (@constant [$($lifetime:tt)*] $stream:ty, $t:ty) => {
        #[diagnostic::do_not_recommend]
        impl<$($lifetime)* O: BinaryOp<$t, $t, Out = $t>, S: Dims, E: Expr<Elem = $t>, L: AxesFor<S>, D: Brand>
            LeftOf<O, $t, S, Rank0, $stream> for E
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Stream<$t, L, D>;

            #[track_caller]
            fn left_of(self, op: O, right: $stream) -> Stream<$t, L, D> {
                from_left(op, &Named::<$t, S, Rank0, E>::from_expr(self), &right)
            }
        }
    };
    (@scalar $t:ty: $($trait:ident $method:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<L: Dims, D: Brand> $trait<&Stream<$t, L, D>> for $t {
            type Output = Stream<$t, L, D>;

            #[track_caller]
            fn $method(self, stream: &Stream<$t, L, D>) -> Stream<$t, L, D> {
                from_left(ops::$trait, &self, stream)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<L: Dims, D: Brand> $trait<Stream<$t, L, D>> for $t {
            type Output = Stream<$t, L, D>;

            #[track_caller]
            fn $method(self, stream: Stream<$t, L, D>) -> Stream<$t, L, D> {
                from_left(ops::$trait, &self, &stream)
            }
        }
    )*};
}

on_the_right!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
on_the_right!(num_complex::Complex32, num_complex::Complex64);
#[cfg(feature = "half")]
on_the_right!(half::f16, half::bf16);
