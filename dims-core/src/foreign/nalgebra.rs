//! nalgebra's matrices (feature `nalgebra`).
//!
//! Bind matrices, vectors and views as you bind arrays: `m.at((i, j))`. Binding copies nothing:
//! tensors support nalgebra's column-major layout. `m.into_tensor((Row, Col))` converts an owned
//! matrix, and [`into_matrix`](super::IntoForeign::into_matrix) converts back. A matrix has two
//! axes, unless its type has one static column: then it is a vector, with one axis.

use crate::creation::convert::{AxisDims, CountOf, IntoTensor, contiguous, elements_in};
use crate::error::{DimError, Origin};
use crate::laid::LaidWhole;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0, Rank1, Rank2};
use crate::types::set::{Bool, DimsOf};
use ::nalgebra::{
    ArrayStorage, Const, DMatrix, DVector, Dim, Dyn, Matrix, RawStorage, SMatrix, ToTypenum, VecStorage,
};
use alloc::vec::Vec;
use core::panic::Location;
use typenum::{IsEqual, U1};

/// A number of columns in nalgebra's types. With one static column there is one axis, otherwise
/// there are two.
pub trait Columns: Dim {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes.
    type Rank: Rank;
}

impl Columns for Dyn {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rank = Rank2;
}

impl<const C: usize> Columns for Const<C>
where
    Const<C>: ToTypenum<Typenum: IsEqual<U1, Output: Bool>>,
    <IsOne<C> as Bool>::If<Rank1, Rank2>: Rank,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Rank = <IsOne<C> as Bool>::If<Rank1, Rank2>;
}

/// Whether there is exactly one static column.
type IsOne<const C: usize> = <<Const<C> as ToTypenum>::Typenum as IsEqual<U1>>::Output;

/// Implements [`IntoTensor`] for matrices that own their elements.
macro_rules! owning {
    ($(($($params:tt)*) $matrix:ty, $rows:ty, $columns:ty, $storage:ty, $elements:expr;)*) => {$(
        impl<T, $($params)*> IntoTensor for $matrix
        where
            $columns: Columns,
            $storage: RawStorage<T, $rows, $columns>,
        {
            type Elem = T;
            type Rank = <$columns as Columns>::Rank;

            #[track_caller]
            fn try_into_tensor<L: AxisDims<Self::Rank>>(self, dims: L) -> Result<Named<T, L::Set>, DimError> {
                let origin = Some(Location::caller());
                let shape = self.shape();
                let elements: fn($storage) -> Vec<T> = $elements;
                contiguous(elements(self.data), &[shape.0, shape.1][..Self::Rank::N], true, dims, origin)
            }
        }
    )*};
}

owning! {
    (R: Dim, C: Dim) Matrix<T, R, C, VecStorage<T, R, C>>, R, C, VecStorage<T, R, C>, Vec::from;
    (const R: usize, const C: usize) SMatrix<T, R, C>, Const<R>, Const<C>, ArrayStorage<T, R, C>, |all| {
        all.0.into_iter().flatten().collect()
    };
}

/// Matrices that a tensor can be converted to: `DMatrix` and `SMatrix` for two dims, `DVector` and
/// `SVector` for one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix or vector with one axis for each dim and elements of type `{T}`",
    label = "a vector has one axis, a matrix has two"
)]
pub trait Columnar<T, N>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn of_columns(
        data: Vec<T>,
        sizes: &[usize],
        names: &[&'static str],
        origin: Origin,
    ) -> Result<Self, DimError>;
}

#[diagnostic::do_not_recommend]
impl<T> Columnar<T, Rank2> for DMatrix<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn of_columns(data: Vec<T>, sizes: &[usize], _: &[&'static str], _: Origin) -> Result<Self, DimError> {
        Ok(DMatrix::from_vec_storage(VecStorage::new(Dyn(sizes[0]), Dyn(sizes[1]), data)))
    }
}

#[diagnostic::do_not_recommend]
impl<T> Columnar<T, Rank1> for DVector<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn of_columns(data: Vec<T>, sizes: &[usize], _: &[&'static str], _: Origin) -> Result<Self, DimError> {
        Ok(DVector::from_vec_storage(VecStorage::new(Dyn(sizes[0]), Const, data)))
    }
}

#[diagnostic::do_not_recommend]
impl<T, N, const R: usize, const C: usize> Columnar<T, N> for SMatrix<T, R, C>
where
    Const<C>: Columns<Rank = N>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    fn of_columns(
        data: Vec<T>,
        sizes: &[usize],
        names: &[&'static str],
        second_origin: Origin,
    ) -> Result<Self, DimError> {
        for ((&found, &dim), first) in sizes.iter().zip(names).zip([R, C]) {
            if found != first {
                return Err(DimError::SizeConflict {
                    dim,
                    first: found,
                    first_origin: None,
                    second: first,
                    second_origin,
                });
            }
        }
        let mut data = data.into_iter();
        let columns = core::array::from_fn(|_| {
            core::array::from_fn(|_| data.next().expect("there are as many elements as the sizes say"))
        });
        Ok(SMatrix::from_array_storage(ArrayStorage(columns)))
    }
}

/// See [`into_matrix`](super::IntoForeign::into_matrix).
#[track_caller]
pub(super) fn matrix_of<A, M, D, X>(tensor: A, dims: &D) -> Result<M, DimError>
where
    A: Computable<Rank = Rank0>,
    D: DimsOf<A::Dims, X>,
    X: LaidWhole<D>,
    M: Columnar<A::Elem, CountOf<D>>,
{
    let origin = Some(Location::caller());
    let (data, sizes) = elements_in::<A, D, X>(tensor, dims, true, "into_matrix")?;
    let names: Vec<&'static str> = <D as DimList>::KEYS.as_slice().iter().map(|key| key.name).collect();
    M::of_columns(data, &sizes, &names, origin)
}
