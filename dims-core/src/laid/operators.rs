//! Operators on tensors with a typed layout. (The operators of the tensor to which a [`Laid`]
//! derefs would lose the layout.)

use super::{Laid, Memory};
use crate::expr::{Binary, Scalar, Unary};
use crate::operators::elementwise::{LeftOf, ScalarOut, UnaryOut};
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::rank::Rank0;
use crate::types::set::{Dims, SetOf};
use kernels::ops;
use kernels::scalar::{Element, Logic, Num, Ordered, Signed};

macro_rules! binary {
    ($($trait:ident $method:ident $op:ident [$bound:ident];)*) => {$(
        binary!(@side [] Laid<T, L, M>, $trait $method $op $bound);
        binary!(@side ['a,] &'a Laid<T, L, M>, $trait $method $op $bound);
    )*};
    (@side [$($lifetime:tt)*] $side:ty, $trait:ident $method:ident $op:ident $bound:ident) => {
        impl<$($lifetime)* T: $bound + Element, L: SetOf + Dims, M: Memory<Elem = T>, B> core::ops::$trait<B> for $side
        where
            <Self as AsTensor>::Expr: LeftOf<ops::$op, T, L::Set, Rank0, B>,
        {
            type Output = <<Self as AsTensor>::Expr as LeftOf<ops::$op, T, L::Set, Rank0, B>>::Out;

            #[cfg_attr(not(unoptimized), inline(always))]
            #[track_caller]
            fn $method(self, other: B) -> Self::Output {
                self.into_named().expr.left_of(ops::$op, other)
            }
        }
    };
}

binary! {
    Add add Add [Num];
    Sub sub Sub [Num];
    Mul mul Mul [Num];
    Div div Div [Num];
    Rem rem Rem [Ordered];
    BitAnd bitand And [Logic];
    BitOr bitor Or [Logic];
    BitXor bitxor Xor [Logic];
}

macro_rules! unary {
    ($($trait:ident $method:ident [$bound:ident];)*) => {$(
        unary!(@side [] Laid<T, L, M>, $trait $method $bound);
        unary!(@side ['a,] &'a Laid<T, L, M>, $trait $method $bound);
    )*};
    (@side [$($lifetime:tt)*] $side:ty, $trait:ident $method:ident $bound:ident) => {
        impl<$($lifetime)* T: $bound + Element, L: SetOf + Dims, M: Memory<Elem = T>> core::ops::$trait for $side {
            type Output = UnaryOut<ops::$trait, Self>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self) -> Self::Output {
                Named::from_expr(Unary { op: ops::$trait, a: self.into_named().expr })
            }
        }
    };
}

unary! {
    Neg neg [Signed];
    Not not [Logic];
}

/// Operators with a scalar on the left.
macro_rules! scalars {
    ($($t:ty),*) => {$(
        scalars!(@sides $t: Add add, Sub sub, Mul mul, Div div);
    )*};
    (@sides $t:ty: $($trait:ident $method:ident),*) => {$(
        scalars!(@side [] Laid<$t, L, M>, $t, $trait $method);
        scalars!(@side ['a,] &'a Laid<$t, L, M>, $t, $trait $method);
    )*};
    (@side [$($lifetime:tt)*] $side:ty, $t:ty, $trait:ident $method:ident) => {
        impl<$($lifetime)* L: SetOf + Dims, M: Memory<Elem = $t>> core::ops::$trait<$side> for $t {
            type Output = ScalarOut<ops::$trait, $t, $side>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: $side) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: other.into_named().expr })
            }
        }
    };
}

scalars!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
scalars!(num_complex::Complex32, num_complex::Complex64);
#[cfg(feature = "half")]
scalars!(half::f16, half::bf16);

macro_rules! remainders {
    ($($t:ty),*) => { $(scalars!(@sides $t: Rem rem);)* };
}

remainders!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f32, f64);
#[cfg(feature = "half")]
remainders!(half::f16, half::bf16);
