//! The operators of dims, which stand for the indices along themselves.

use super::{BinaryOut, ScalarOut, UnaryOut, binary, unary};
use crate::expr::{Binary, Iota, Operand, Scalar};
use crate::tensors::named::Named;
use crate::tensors::tensor::AsTensor;
use crate::types::brand::{Brand, Declared};
use crate::types::dim::{Dim, Of};
use crate::types::open::NoSize;
use crate::types::rank::Rank0;
use crate::types::set::Union;
use kernels::ops;

macro_rules! dim_operators {
    ($($trait:ident $method:ident;)*) => {$(
        impl<'a, B: Brand, O: Operand<isize>> core::ops::$trait<O> for &'a Dim<B>
        where
            (B,): Union<O::Dims>,
        {
            type Output = BinaryOut<ops::$trait, Self, O>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: O) -> Self::Output {
                binary(ops::$trait, self, other)
            }
        }

        impl<D: Declared, O: Operand<isize>> core::ops::$trait<O> for Of<D>
        where
            (D,): Union<O::Dims>,
        {
            type Output = BinaryOut<ops::$trait, Self, O>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, other: O) -> Self::Output {
                binary(ops::$trait, self, other)
            }
        }

        impl<'a, B: Brand> core::ops::$trait<&'a Dim<B>> for isize {
            type Output = ScalarOut<ops::$trait, isize, &'a Dim<B>>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, dim: &'a Dim<B>) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: dim.into_named().expr })
            }
        }

        impl<D: Declared> core::ops::$trait<Of<D>> for isize {
            type Output = ScalarOut<ops::$trait, isize, Of<D>>;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn $method(self, dim: Of<D>) -> Self::Output {
                Named::from_expr(Binary { op: ops::$trait, a: Scalar(self), b: dim.into_named().expr })
            }
        }
    )*};
}

dim_operators! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
    Rem rem;
}

// `n - 1 - i` for the size `n` of an array. With two integer types on the left the literal in `9 - i` is an `i32`, as rustc
// falls back to that, so there is a third one.
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

impl<B: Brand> core::ops::Neg for &Dim<B> {
    type Output = UnaryOut<ops::Neg, Self>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn neg(self) -> Self::Output {
        unary(ops::Neg, self)
    }
}

/// The indices along a declared dim, as its operators take them. (Written out: of `NamedOf<D>`, rustc would work out each projection for each item
/// of each dim's impls.)
#[doc(hidden)]
pub type IndicesAlong<D> = Named<isize, (D,), Rank0, Iota<'static, D, NoSize<D>>>;

/// An operation on a number and the indices along a declared dim.
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

/// The operators of a declared dim; `dims!` calls it for each.
#[doc(hidden)]
#[macro_export]
macro_rules! declared_dim_operators {
    ($dim:ident) => {
        $crate::declared_dim_operators!(@ $dim Add add, Sub sub, Mul mul, Div div, Rem rem);
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
