//! Results of `order`: an array, or a tensor with the remaining dims.

use crate::error::DimError;
use crate::expr::step::taken;
use crate::storage::Evaluated;
use crate::storage::array::array;
use crate::tensors::named::Named;
use crate::types::brand::SetElement;
use crate::types::rank::*;
use crate::types::set::Dims;
use crate::types::tuples::each_tuple;
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use ndarray::{Array, ArrayD, Dim, IxDyn};

/// The dims that remain after `order`. They determine its result: without remaining dims, an array,
/// or a single element if there are no axes; otherwise a tensor with the new positional axes on the
/// left.
pub trait OrderResult<T, R: Rank>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the result.
    type Out;
    #[doc(hidden)]
    fn build(data: Vec<T>, sizes: &[usize]) -> Self::Out;
    /// Like `build`. It is an error if the elements are traced and the result is an array.
    #[doc(hidden)]
    fn build_of(data: Buffer<T>, sizes: &[usize], operation: &'static str) -> Result<Self::Out, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T: kernels::scalar::Element, R: ArrayRank> OrderResult<T, R> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = R::Array<T>;

    #[inline]
    #[track_caller]
    fn build(data: Vec<T>, sizes: &[usize]) -> R::Array<T> {
        R::array(data, sizes)
    }

    #[inline]
    #[track_caller]
    fn build_of(data: Buffer<T>, sizes: &[usize], operation: &'static str) -> Result<R::Array<T>, DimError> {
        Ok(R::array(taken(data, operation)?, sizes))
    }
}

/// A rank, and the type that `order` returns for it if no dims remain.
pub trait ArrayRank: Rank {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// An ndarray array; for rank 0 the element itself.
    type Array<T>;
    #[doc(hidden)]
    fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T>;
}

impl ArrayRank for Rank0 {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Array<T> = T;

    #[inline]
    fn array<T>(data: Vec<T>, _: &[usize]) -> T {
        data.into_iter().next().expect("a tensor without axes has one element")
    }
}

macro_rules! arrays {
    ($($rank:ident $n:literal;)*) => {$(
        impl ArrayRank for $rank {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Array<T> = Array<T, <$rank as Rank>::Nd>;

            #[inline]
            #[track_caller]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> Self::Array<T> {
                let sizes: [usize; $n] = sizes.try_into().expect("one size for each axis");
                array(Dim(sizes), data)
            }
        }
    )*};
}

arrays! { Rank1 1; Rank2 2; Rank3 3; Rank4 4; Rank5 5; Rank6 6; }

macro_rules! dynamic_arrays {
    ($($rank:ident)*) => {$(
        impl ArrayRank for $rank {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Array<T> = ArrayD<T>;

            #[inline]
            #[track_caller]
            fn array<T>(data: Vec<T>, sizes: &[usize]) -> ArrayD<T> {
                array(IxDyn(sizes), data)
            }
        }
    )*};
}

dynamic_arrays! {
    Rank7 Rank8 Rank9 Rank10 Rank11 Rank12 Rank13 Rank14 Rank15 Rank16 Rank17 Rank18 Rank19 Rank20 Rank21 Rank22 Rank23
    Rank24 Rank25 Rank26
}

macro_rules! left_over {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<T, R: Rank, $($d: SetElement),*> OrderResult<T, R> for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Named<T, Self, R>;

            #[inline]
            #[track_caller]
            fn build(data: Vec<T>, sizes: &[usize]) -> Named<T, Self, R> {
                Named::from_expr(Evaluated::laid_out(data, sizes))
            }

            #[inline]
            #[track_caller]
            fn build_of(data: Buffer<T>, sizes: &[usize], _: &'static str) -> Result<Named<T, Self, R>, DimError> {
                Ok(Named::from_expr(Evaluated::laid_out(data, sizes)))
            }
        }
    };
}

each_tuple!(left_over);
