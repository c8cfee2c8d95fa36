//! Converts owned arrays to tensors, and tensors to contiguous elements, mostly without copying.

use crate::bind::at::HasAxes;
use crate::bind::source::{NdRank, check_rank};
use crate::error::DimError;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::distinct::{OneAxisEach, SortOnce, SortedOnce};
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::{Dims, NoDim};
use alloc::vec::Vec;
use core::panic::Location;
use kernels::memory::axes::Axis;
use ndarray::{Array, Dimension};
use twins::panicking_twin;

/// Dims for all axes of an array, each dim once.
pub trait AxisDims<R>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims as a set.
    type Set: Dims;
}

impl<L, R> AxisDims<R> for L
where
    L: DimList<Brands: SortOnce>,
    NoDim<ListedTwice<L>>: OneAxisEach<ListedTwice<L>, L>,
    R: HasAxes<CountOf<L>, Rank0>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Set = <<SortedList<L> as SortedOnce>::List as List>::Tuple;
}

/// The result of sorting the dims `L`.
type SortedList<L> = <<L as DimList>::Brands as SortOnce>::Out;
/// A dim that `L` names twice, or [`Nothing`](crate::types::set::Nothing).
type ListedTwice<L> = <SortedList<L> as SortedOnce>::Twice;

/// The number of dims listed.
pub type CountOf<L> = <<L as DimList>::Brands as NestedPairs>::Count;

/// Converts owned arrays to tensors: ndarray arrays and vectors. If their features are enabled,
/// also mdarray arrays, nalgebra matrices and images of the crate `image`.
pub trait IntoTensor {
    /// The type of the elements.
    type Elem;
    /// The number of axes.
    type Rank;

    /// The array as a tensor with a dim for each axis. Nothing is copied, except arrays stored
    /// inline: nalgebra matrices and mdarray arrays with static sizes.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Batch; struct Feat = 2; }
    /// let x = ndarray::array![[1.0, 2.0], [3.0, 4.0]].into_tensor((Batch, Feat));
    /// assert_eq!(x.dims(), [("Batch", 2), ("Feat", 2)]);
    /// let wrong = ndarray::array![[1.0, 2.0, 3.0]].try_into_tensor((Batch, Feat)).map(|_| ());
    /// assert!(matches!(wrong, Err(DimError::StaticSize { dim: "Feat", fixed: 2, found: 3, .. })));
    /// ```
    #[panicking_twin]
    fn try_into_tensor<L: AxisDims<Self::Rank>>(self, dims: L) -> Result<Named<Self::Elem, L::Set>, DimError>
    where
        Self: Sized;
}

impl<T, D: Dimension + NdRank> IntoTensor for Array<T, D> {
    type Elem = T;
    type Rank = D::Rank;

    #[track_caller]
    fn try_into_tensor<L: AxisDims<D::Rank>>(self, dims: L) -> Result<Named<T, L::Set>, DimError> {
        let origin = Some(Location::caller());
        let mut axes = <L::Set as Dims>::Axes::filled(Axis::default());
        let mut at = 0;
        let mut failed = None;
        let (sizes, strides) = (self.shape().to_vec(), self.strides().to_vec());
        dims.each(|dim| {
            if let (Some(&size), Some(&stride)) = (sizes.get(at), strides.get(at)) {
                if let Err(error) = dim.unify(size, origin) {
                    failed.get_or_insert(error);
                }
                let place = L::Set::KEYS.position(&dim.key()).expect("the dim is in the set");
                axes.as_mut_slice()[place] = Axis::new(size, stride);
            }
            at += 1;
        });
        check_rank(sizes.len(), at)?;
        if let Some(error) = failed {
            return Err(error);
        }
        L::KEYS.check_primes(|at| (sizes[at], origin))?;
        let (data, start) = self.into_raw_vec_and_offset();
        Ok(Named::from_expr(Evaluated::strided(data, start.unwrap_or(0), axes, [], origin)))
    }
}

impl<T> IntoTensor for Vec<T> {
    type Elem = T;
    type Rank = crate::types::rank::Rank1;

    #[track_caller]
    fn try_into_tensor<L: AxisDims<crate::types::rank::Rank1>>(
        self,
        dims: L,
    ) -> Result<Named<T, L::Set>, DimError> {
        ndarray::Array1::from_vec(self).try_into_tensor(dims)
    }
}

/// A tensor of contiguous elements, with a dim for each axis. The last axis is innermost or, with
/// `by_columns`, the first.
///
/// # Panics
///
/// If `sizes` is not the shape of `data`.
#[cfg(any(feature = "candle", feature = "image", feature = "mdarray", feature = "nalgebra"))]
#[track_caller]
pub(crate) fn contiguous<T, R, L: AxisDims<R>>(
    data: Vec<T>,
    sizes: &[usize],
    by_columns: bool,
    dims: L,
    origin: crate::error::Origin,
) -> Result<Named<T, L::Set>, DimError> {
    let mut axes = Vec::with_capacity(sizes.len());
    let mut unified = Ok(());
    dims.each(|dim| {
        if let (Ok(()), Some(&size)) = (&unified, sizes.get(axes.len())) {
            unified = dim.unify(size, origin);
        }
        axes.push(L::Set::KEYS.position(&dim.key()).expect("the dim is in the set"));
    });
    check_rank(sizes.len(), axes.len())?;
    unified?;
    L::KEYS.check_primes(|at| (sizes[at], origin))?;
    let mut sizes = sizes.to_vec();
    if by_columns {
        axes.reverse();
        sizes.reverse();
    }
    Ok(Named::from_expr(Evaluated::in_order(data, &axes, &sizes)))
}

/// The elements of a tensor with exactly the dims `D`, and its sizes in the order of `D`. The
/// elements are contiguous in that order or, with `by_columns`, in the reverse order. An owned
/// tensor that is already stored in this way gives up its memory, unless a clone shares it. Returns
/// an error if the tensor is traced.
#[track_caller]
pub(crate) fn elements_in<A, D, X>(
    tensor: A,
    dims: &D,
    by_columns: bool,
    operation: &'static str,
) -> Result<(Vec<A::Elem>, Vec<usize>), DimError>
where
    A: crate::tensors::tensor::Computable<Rank = Rank0>,
    D: crate::types::set::DimsOf<A::Dims, X>,
    X: Dims,
{
    let order = const { &crate::plan::axes::AxisList::of(<D as DimList>::KEYS, A::Dims::KEYS) };
    let tensor = tensor.into_named();
    let shape = tensor.unified_shape()?;
    shape.check_all_given(dims)?;
    let mut order = order.as_slice().to_vec();
    let sizes = shape.sizes_in(&order).into_vec();
    if by_columns {
        order.reverse();
    }
    let data =
        crate::expr::evaluate::evaluate_for::<A::Dims, Rank0, _>(tensor.expr, &shape, &order, operation)?;
    Ok((data, sizes))
}
