//! mdarray's arrays (feature `mdarray`).
//!
//! Bind arrays and views as you bind those of ndarray: `m.at((i, j))`. [`into_tensor`](IntoTensor)
//! converts an owned array, and [`into_mdarray`](super::IntoForeign::into_mdarray) converts back.
//! Arrays whose sizes are all static store their elements inline, so these are copied. Otherwise
//! the elements of an array are not copied, and those of a tensor only if they are in another
//! order, if a clone shares them, or if the tensor is a view.

use crate::bind::source::RankDyn;
use crate::creation::convert::{AxisDims, CountOf, IntoTensor, contiguous, elements_in};
use crate::error::{DimError, Origin};
use crate::laid::LaidWhole;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::{Rank0, Rank1, Rank2, Rank3, Rank4, Rank5, Rank6};
use crate::types::set::DimsOf;
use ::mdarray::{Array, Const, Dim, DynRank, Shape};
use alloc::vec::Vec;
use core::panic::Location;

/// A shape of mdarray with up to six axes, or with a dynamic number of axes.
pub trait MdShape: Shape {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes.
    type Rank;
    /// The size of each axis, if it is static. Empty if the number of axes is dynamic.
    #[doc(hidden)]
    const FIXED: &'static [Option<usize>];
}

/// The size of an axis of mdarray: `usize` or `Const`. (mdarray's `Dim` is a safe trait, so unsafe
/// code cannot rely on the sizes of other types.)
pub trait MdSize: Dim {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl MdSize for usize {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
impl<const N: usize> MdSize for Const<N> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Shapes of arrays that a tensor with `N` dims can be converted to.
#[diagnostic::on_unimplemented(
    message = "an array of the shape `{Self}` must have one axis for each dim",
    label = "expected one axis for each dim, or `DynRank`"
)]
pub trait ShapeOf<N>: MdShape {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

macro_rules! shapes {
    ($($rank:ident ($($size:ident)*);)*) => {$(
        impl<$($size: MdSize),*> MdShape for ($($size,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Rank = $rank;
            const FIXED: &'static [Option<usize>] = &[$($size::SIZE),*];
        }
        #[diagnostic::do_not_recommend]
        impl<$($size: MdSize),*> ShapeOf<$rank> for ($($size,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
    )*};
}

shapes! {
    Rank0 ();
    Rank1 (A);
    Rank2 (A B);
    Rank3 (A B C);
    Rank4 (A B C D);
    Rank5 (A B C D E);
    Rank6 (A B C D E F);
}

impl MdShape for DynRank {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rank = RankDyn;
    const FIXED: &'static [Option<usize>] = &[];
}
#[diagnostic::do_not_recommend]
impl<N> ShapeOf<N> for DynRank {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<T, S: MdShape> IntoTensor for Array<T, S> {
    type Elem = T;
    type Rank = S::Rank;

    #[track_caller]
    fn try_into_tensor<L: AxisDims<S::Rank>>(self, dims: L) -> Result<Named<T, L::Set>, DimError> {
        let origin = Some(Location::caller());
        let sizes: Vec<usize> = (0..self.rank()).map(|axis| self.dim(axis)).collect();
        contiguous(self.into_vec(), &sizes, false, dims, origin)
    }
}

/// See [`into_mdarray`](super::IntoForeign::into_mdarray).
#[track_caller]
pub(super) fn array_of<A, S, D, X>(tensor: A, dims: &D) -> Result<Array<A::Elem, S>, DimError>
where
    A: Computable<Rank = Rank0>,
    S: ShapeOf<CountOf<D>>,
    D: DimsOf<A::Dims, X>,
    X: LaidWhole<D>,
{
    let second_origin: Origin = Some(Location::caller());
    let (data, sizes) = elements_in::<A, D, X>(tensor, dims, false, "into_mdarray")?;
    for ((&first, &fixed), key) in sizes.iter().zip(S::FIXED).zip(<D as DimList>::KEYS.as_slice()) {
        if let Some(second) = fixed
            && first != second
        {
            let dim = key.name;
            return Err(DimError::SizeConflict { dim, first, first_origin: None, second, second_origin });
        }
    }
    Ok(Array::from(data).into_shape(S::from_dims(&sizes)))
}
