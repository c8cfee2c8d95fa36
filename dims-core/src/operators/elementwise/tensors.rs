//! The operators of tensors: `+ - * / % & | ^ !` and unary `-`. `+ - * / %` also take a scalar on
//! the left.

use super::{Joined, UnaryOut, binary, unary};
use crate::expr::{Binary, Operand, Scalar};
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Union};
use kernels::ops::{self, BinaryOp};
use kernels::scalar::*;

/// An expression that can be the left operand of `O`, with `B` on the right. The expression is that
/// of a tensor of `T` with the dims `S` and the positional axes `R`. `B` is an [`Operand`], or a
/// [`Stream`](crate::stream::Stream).
///
/// (One trait covers both, because rustc does not explain why neither of two operator impls fits.
/// It is implemented for the expression and not for the tensor: if the unmet bound were on the type
/// that the operator is implemented for, rustc would not show this message.)
#[diagnostic::on_unimplemented(
    message = "a constant of `{T}` with the dims `{S}` does not match `{B}`",
    label = "expected a constant whose dims are among the axes of the stream",
    note = "to sum over a dim that both have, write `stream.contract(&constant, dim)`"
)]
pub trait LeftOf<O, T, S, R, B>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result.
    type Out;
    /// The operation.
    #[doc(hidden)]
    fn left_of(self, op: O, right: B) -> Self::Out;
}

impl<O: BinaryOp<T, T>, T: Element, S: Dims + Union<B::Dims>, R: Rank, E, B: Operand<T>> LeftOf<O, T, S, R, B>
    for E
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Joined<O, T, S, R, E, B>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn left_of(self, op: O, right: B) -> Self::Out {
        Named::from_expr(Binary { op, a: self, b: right.into_expr() })
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident [$bound:ident];)*) => {$(
        impl<T: $bound, S: Dims, R: Rank, E: LeftOf<ops::$trait, T, S, R, B>, B> core::ops::$trait<B>
            for Named<T, S, R, E>
        {
            type Output = E::Out;

            #[cfg_attr(not(unoptimized), inline(always))]
            #[track_caller]
            fn $method(self, other: B) -> E::Out {
                self.expr.left_of(ops::$trait, other)
            }
        }

        impl<'a, T: $bound, S: Dims, R: Rank, E, B> core::ops::$trait<B> for &'a Named<T, S, R, E>
        where
            &'a E: LeftOf<ops::$trait, T, S, R, B>,
        {
            type Output = <&'a E as LeftOf<ops::$trait, T, S, R, B>>::Out;

            #[cfg_attr(not(unoptimized), inline(always))]
            #[track_caller]
            fn $method(self, other: B) -> Self::Output {
                (&self.expr).left_of(ops::$trait, other)
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

macro_rules! logic_operators {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<T: Logic, S: Dims, R: Rank, E, B: Operand<T>> core::ops::$trait<B> for Named<T, S, R, E>
        where
            S: Union<B::Dims>,
        {
            type Output = Joined<ops::$op, T, S, R, E, B>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: B) -> Self::Output {
                binary(ops::$op, self, other)
            }
        }

        impl<'a, T: Logic, S: Dims, R: Rank, E, B: Operand<T>> core::ops::$trait<B>
            for &'a Named<T, S, R, E>
        where
            S: Union<B::Dims>,
        {
            type Output = Joined<ops::$op, T, S, R, &'a E, B>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: B) -> Self::Output {
                binary(ops::$op, self, other)
            }
        }
    )*};
}

logic_operators! {
    BitAnd bitand And;
    BitOr bitor Or;
    BitXor bitxor Xor;
}

impl<T: Signed, S: Dims, R: Rank, E> core::ops::Neg for Named<T, S, R, E> {
    type Output = UnaryOut<ops::Neg, Self>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn neg(self) -> Self::Output {
        unary(ops::Neg, self)
    }
}

impl<T: Signed, S: Dims, R: Rank, E> core::ops::Neg for &Named<T, S, R, E> {
    type Output = UnaryOut<ops::Neg, Self>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn neg(self) -> Self::Output {
        unary(ops::Neg, self)
    }
}

impl<T: Logic, S: Dims, R: Rank, E> core::ops::Not for Named<T, S, R, E> {
    type Output = UnaryOut<ops::Not, Self>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn not(self) -> Self::Output {
        unary(ops::Not, self)
    }
}

impl<T: Logic, S: Dims, R: Rank, E> core::ops::Not for &Named<T, S, R, E> {
    type Output = UnaryOut<ops::Not, Self>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn not(self) -> Self::Output {
        unary(ops::Not, self)
    }
}

/// The result of an operation with a scalar on the left of a tensor.
pub type ScalarOut<O, T, A> = Named<
    <O as BinaryOp<T, T>>::Out,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Binary<O, Scalar<T>, <A as AsTensor>::Expr>,
>;

macro_rules! left_scalars {
    ($($t:ty),*) => {$(
        left_scalars!(@ops $t: Add add, Sub sub, Mul mul, Div div);
    )*};
    (@ops $t:ty: $($trait:ident $method:ident),*) => {$(
        impl<S: Dims, R: Rank, E> core::ops::$trait<Named<$t, S, R, E>> for $t {
            type Output = ScalarOut<ops::$trait, $t, Named<$t, S, R, E>>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: Named<$t, S, R, E>) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: other.expr })
            }
        }

        impl<'a, S: Dims, R: Rank, E> core::ops::$trait<&'a Named<$t, S, R, E>> for $t {
            type Output = ScalarOut<ops::$trait, $t, &'a Named<$t, S, R, E>>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: &'a Named<$t, S, R, E>) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: &other.expr })
            }
        }
    )*};
}

left_scalars!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
left_scalars!(num_complex::Complex32, num_complex::Complex64);
#[cfg(feature = "half")]
left_scalars!(half::f16, half::bf16);

macro_rules! left_remainders {
    ($($t:ty),*) => { $(left_scalars!(@ops $t: Rem rem);)* };
}

left_remainders!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
#[cfg(feature = "half")]
left_remainders!(half::f16, half::bf16);
