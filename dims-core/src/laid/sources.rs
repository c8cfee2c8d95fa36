//! Converts vectors, slices and arrays to tensors with a typed layout, without copying.

use super::{InOrder, IntoLaid, Laid, LaidIn, Memory, order_of};
use crate::bind::source::{NdRank, RankDyn, check_rank};
use crate::bind::split::sizes_of;
use crate::creation::convert::AxisDims;
use crate::error::{DimError, OriginSuffix};
use crate::types::set::SetOf;
use crate::types::set::distinct::SortOnce;
use crate::types::set::list::List;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::scalar::Element;
use ndarray::{Array, ArrayBase, ArrayView, ArrayViewMut, Data, DataMut, Dimension};

macro_rules! flat {
    ($([$($params:tt)*] $memory:ty;)*) => {$(
        impl<$($params)*> IntoLaid for $memory {
            type Memory = Self;
            type Rank = RankDyn;

            #[track_caller]
            fn try_into_laid<D: AxisDims<RankDyn, Brands: List + SortOnce>>(
                self,
                dims: D,
            ) -> Result<LaidIn<Self, D>, DimError>
            where
                InOrder<D>: SetOf,
            {
                let origin = Some(Location::caller());
                let sizes = sizes_of(&dims, self.count(), origin).map_err(not_so_many)?;
                D::KEYS.check_primes(|at| (sizes[at], origin))?;
                let order = const { &order_of::<D, <InOrder<D> as SetOf>::Set>() }.as_slice();
                Ok(Laid::of(self, order, &sizes))
            }
        }
    )*};
}

flat! {
    [T: Element] Vec<T>;
    ['a, T: Element] &'a [T];
    ['a, T: Element] &'a mut [T];
}

macro_rules! borrowed_vectors {
    ($($vector:ty, $slice:ty;)*) => {$(
        impl<'a, T: Element> IntoLaid for $vector {
            type Memory = $slice;
            type Rank = RankDyn;

            #[track_caller]
            fn try_into_laid<D: AxisDims<RankDyn, Brands: List + SortOnce>>(
                self,
                dims: D,
            ) -> Result<LaidIn<$slice, D>, DimError>
            where
                InOrder<D>: SetOf,
            {
                <$slice>::try_into_laid(self, dims)
            }
        }
    )*};
}

borrowed_vectors! {
    &'a Vec<T>, &'a [T];
    &'a mut Vec<T>, &'a mut [T];
}

macro_rules! arrays {
    ($([$($params:tt)*] $array:ty, $memory:ty, |$a:ident| $elements:expr;)*) => {$(
        impl<$($params)* T: Element, N: Dimension + NdRank> IntoLaid for $array {
            type Memory = $memory;
            type Rank = N::Rank;

            #[track_caller]
            fn try_into_laid<D: AxisDims<N::Rank, Brands: List + SortOnce>>(
                self,
                dims: D,
            ) -> Result<LaidIn<$memory, D>, DimError>
            where
                InOrder<D>: SetOf,
            {
                let origin = Some(Location::caller());
                let sizes = self.shape().to_vec();
                let (mut names, mut unified) = (Vec::new(), Ok(()));
                dims.each(|dim| {
                    if let (Ok(()), Some(&size)) = (&unified, sizes.get(names.len())) {
                        unified = dim.unify(size, origin);
                    }
                    names.push(dim.name);
                });
                check_rank(sizes.len(), names.len())?;
                unified?;
                D::KEYS.check_primes(|at| (sizes[at], origin))?;
                let $a = self;
                let memory: Result<$memory, NotSo> = $elements;
                let memory = memory.map_err(|why| why.error(&names, &sizes))?;
                let order = const { &order_of::<D, <InOrder<D> as SetOf>::Set>() }.as_slice();
                Ok(Laid::of(memory, order, &sizes))
            }
        }
    )*};
}

arrays! {
    [] Array<T, N>, Vec<T>, |a| {
        let (in_order, len) = (a.is_standard_layout(), a.len());
        let (data, offset) = a.into_raw_vec_and_offset();
        match (in_order, data.len() == len && offset.unwrap_or(0) == 0) {
            (true, true) => Ok(data),
            (true, false) => Err(NotSo::Alone),
            (false, _) => Err(NotSo::InOrder),
        }
    };
    ['a,] ArrayView<'a, T, N>, &'a [T], |a| a.to_slice().ok_or(NotSo::InOrder);
    ['a,] ArrayViewMut<'a, T, N>, &'a mut [T], |a| a.into_slice().ok_or(NotSo::InOrder);
    ['a, S: Data<Elem = T>,] &'a ArrayBase<S, N>, &'a [T], |a| a.as_slice().ok_or(NotSo::InOrder);
    ['a, S: DataMut<Elem = T>,] &'a mut ArrayBase<S, N>, &'a mut [T], |a| a.as_slice_mut().ok_or(NotSo::InOrder);
}

/// Why the elements of an array do not have the required layout.
enum NotSo {
    /// They are not in the order of the array's axes.
    InOrder,
    /// They are only part of their vector, because the array was sliced.
    Alone,
}

impl NotSo {
    #[cold]
    fn error(self, names: &[&str], sizes: &[usize]) -> DimError {
        let names = names.join(", ");
        let why = match self {
            NotSo::InOrder => format!("are not stored in the order ({names})"),
            NotSo::Alone => "are only part of their vector".into(),
        };
        DimError::Shape {
            what: format!(
                "the elements of an array of shape {sizes:?} {why}; `.at(({names})).laid(({names}))` copies them"
            ),
        }
    }
}

/// Rewords a split error for a vector or a slice, which has no axis to split.
#[cold]
fn not_so_many(error: DimError) -> DimError {
    match error {
        DimError::Split { group, size, why, origin, .. } => {
            let place = OriginSuffix(origin);
            DimError::Shape { what: format!("{size} elements cannot be laid out as {group}: {why}{place}") }
        }
        error => error,
    }
}
