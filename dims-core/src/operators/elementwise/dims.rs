//! The operators of dims. As a value, a dim is the tensor of its indices.

use super::{BinaryOut, ScalarOut, UnaryOut, binary, unary};
use crate::expr::{Binary, Iota, Operand, Scalar};
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::brand::{Brand, Declared};
use crate::types::dim::{Dim, Of};
use crate::types::open::NoSize;
use crate::types::prime::{LocalPrime, Prime};
use crate::types::rank::Rank0;
use crate::types::set::Union;
use kernels::ops;

macro_rules! dim_operators {
    ($($trait:ident $method:ident;)*) => {$(
        dim_operators!(@ $trait $method ['a, B: Brand] &'a Dim<B>, B);
        dim_operators!(@ $trait $method [D: Declared] Of<D>, D);
        dim_operators!(@ $trait $method ['a, B: Brand] LocalPrime<'a, B>, B);
        dim_operators!(@ $trait $method [D: Declared] Prime<D>, Prime<D>);
    )*};
    (@ $trait:ident $method:ident [$($params:tt)*] $dim:ty, $brand:ty) => {
        impl<$($params)*, O: Operand<isize>> core::ops::$trait<O> for $dim
        where
            ($brand,): Union<O::Dims>,
        {
            type Output = BinaryOut<ops::$trait, Self, O>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: O) -> Self::Output {
                binary(ops::$trait, self, other)
            }
        }

        impl<$($params)*> core::ops::$trait<$dim> for isize {
            type Output = ScalarOut<ops::$trait, isize, $dim>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, dim: $dim) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: dim.into_named().expr })
            }
        }
    };
}

dim_operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
}

// `n - 1 - i` for the size `n` of an array. With more than one impl, rustc falls back to `i32` for
// the literal in `9 - i`, so there is an impl for `i32` too.
macro_rules! sizes_less_dims {
    ($($t:ty),*) => {$(
        impl<'a, B: Brand> core::ops::Sub<&'a Dim<B>> for $t {
            type Output = ScalarOut<ops::Sub, isize, &'a Dim<B>>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn sub(self, dim: &'a Dim<B>) -> Self::Output {
                self as isize - dim
            }
        }
    )*};
}

sizes_less_dims!(usize, i32);

macro_rules! negative_dims {
    ($([$($params:tt)*] $dim:ty;)*) => {$(
        impl<$($params)*> core::ops::Neg for $dim {
            type Output = UnaryOut<ops::Neg, Self>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn neg(self) -> Self::Output {
                unary(ops::Neg, self)
            }
        }
    )*};
}

negative_dims! {
    ['a, B: Brand] &'a Dim<B>;
    [D: Declared] Of<D>;
    ['a, B: Brand] LocalPrime<'a, B>;
    [D: Declared] Prime<D>;
}

/// The indices along a declared dim, as operands of its operators. (The type is written out: with
/// `NamedOf<D>`, rustc would normalize the projections again in each impl of each dim.)
#[doc(hidden)]
pub type IndicesAlong<D> = Named<isize, (D,), Rank0, Iota<'static, D, NoSize<D>>>;

/// The result of an operation on a number and the indices along a declared dim.
#[doc(hidden)]
pub type NumberAndIndices<O, D> =
    Named<isize, (D,), Rank0, Binary<O, Scalar<isize>, Iota<'static, D, NoSize<D>>>>;

/// See [`IndicesAlong`].
#[doc(hidden)]
#[cfg_attr(not(unoptimized), inline(always))]
pub fn indices_along<D: Declared>(dim: D) -> IndicesAlong<D> {
    Named::from_expr(Iota::new(dim))
}

/// See [`NumberAndIndices`].
#[doc(hidden)]
#[cfg_attr(not(unoptimized), inline(always))]
pub fn number_and_indices<O, D: Declared>(op: O, number: isize, dim: D) -> NumberAndIndices<O, D> {
    Named::from_expr(Binary { op, a: Scalar(number), b: Iota::new(dim) })
}

/// Implements the operators of a declared dim. `dims!` calls it.
#[doc(hidden)]
#[macro_export]
macro_rules! declared_dim_operators {
    ($dim:ident) => {
        $crate::declared_dim_operators!(@ $dim Add add, Sub sub, Mul mul, Div div, Rem rem);

        impl ::core::ops::Neg for $dim {
            type Output = <$crate::operators::elementwise::IndicesAlong<$dim> as ::core::ops::Neg>::Output;

            #[inline(always)]
            fn neg(self) -> Self::Output {
                ::core::ops::Neg::neg($crate::operators::elementwise::indices_along::<$dim>(self))
            }
        }
    };
    (@ $dim:ident $($trait:ident $method:ident),*) => {$(
        impl<__Operand> ::core::ops::$trait<__Operand> for $dim
        where
            $crate::operators::elementwise::IndicesAlong<$dim>: ::core::ops::$trait<__Operand>,
        {
            type Output = <$crate::operators::elementwise::IndicesAlong<$dim> as ::core::ops::$trait<__Operand>>::Output;

            #[inline(always)]
            fn $method(self, other: __Operand) -> Self::Output {
                ::core::ops::$trait::$method($crate::operators::elementwise::indices_along::<$dim>(self), other)
            }
        }

        impl ::core::ops::$trait<$dim> for ::core::primitive::isize {
            type Output = $crate::operators::elementwise::NumberAndIndices<$crate::ops::$trait, $dim>;

            #[inline(always)]
            fn $method(self, dim: $dim) -> Self::Output {
                $crate::operators::elementwise::number_and_indices::<$crate::ops::$trait, $dim>($crate::ops::$trait, self, dim)
            }
        }
    )*};
}
