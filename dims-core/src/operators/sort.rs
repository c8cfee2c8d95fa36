//! Sorting and order statistics: `sort`, `argsort`, `topk`, `median`, `quantile`.

use crate::error::DimError;
use crate::execute::lines::Lines;
use crate::execute::reduce::{Reduced, TensorOf};
use crate::execute::step::RowBlocks;
use crate::operators::rearranged::moved;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked, read_checked, reference};
use crate::types::brand::DimInfo;
use crate::types::dim::DimRef;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use core::marker::PhantomData;
use core::panic::Location;
use kernels::memory::runs::RowRun;
use kernels::scalar::{Ordered, Real};
use kernels::step::Executed;
use kernels::step::sorting::{Extremum, Quantile, SortLines, SortWanted, TopK};
use twins::panicking_twin;

/// A position along a dim for each element of a tensor.
pub type Positions<A> = Named<usize, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

/// Elements chosen over dims of a tensor, and their positions. Both have the remaining dims `X`.
pub type WithIndex<A, X> = (Reduced<<A as AsTensor>::Elem, A, X>, Reduced<usize, A, X>);

/// The sorted elements along a dim, their original positions, or both.
#[track_caller]
fn in_order<A, D>(
    tensor: A,
    descending: bool,
    wanted: SortWanted,
) -> Result<(Lines<A::Elem>, Executed), DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let mut lines = Lines::recorded::<A, D>(tensor)?;
    let (count, len) = (lines.count(), lines.len());
    let results = lines.execute(&SortLines {
        lines: count,
        len,
        descending,
        wanted,
        element: PhantomData::<A::Elem>,
    })?;
    Ok((lines, results))
}

#[track_caller]
fn sort<A, D>(tensor: A, descending: bool) -> Result<TensorOf<A>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let (lines, mut results) = in_order::<A, D>(tensor, descending, SortWanted::Values)?;
    lines.tensor(results.next::<A::Elem>(), lines.len())
}

#[track_caller]
fn argsort<A, D>(tensor: A, descending: bool) -> Result<Positions<A>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let (lines, mut results) = in_order::<A, D>(tensor, descending, SortWanted::Positions)?;
    lines.tensor(results.next::<usize>(), lines.len())
}

#[track_caller]
fn sort_with_indices<A, D>(tensor: A, descending: bool) -> Result<(TensorOf<A>, Positions<A>), DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let (lines, mut results) = in_order::<A, D>(tensor, descending, SortWanted::Both)?;
    Ok((
        lines.tensor(results.next::<A::Elem>(), lines.len())?,
        lines.tensor(results.next::<usize>(), lines.len())?,
    ))
}

#[track_caller]
fn extremum<A, D, X>(tensor: A, greatest: bool, op: &'static str) -> Result<WithIndex<A, X>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimsOf<A::Dims, X>,
    X: Dims,
{
    let mut lines = Lines::recorded::<A, D>(tensor)?;
    let (count, len) = (lines.count(), lines.len());
    if len == 0 && count > 0 {
        return Err(DimError::EmptyReduction { op, dims: lines.describe() });
    }
    let mut results =
        lines.execute(&Extremum { lines: count, len, greatest, element: PhantomData::<A::Elem> })?;
    Ok((
        lines.reduced::<A::Elem, X, A::Rank, A::Dims>(results.next::<A::Elem>())?,
        lines.reduced::<usize, X, A::Rank, A::Dims>(results.next::<usize>())?,
    ))
}

#[track_caller]
fn quantile<A, D, X>(tensor: A, q: A::Elem, name: &'static str) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimsOf<A::Dims, X>,
    X: Dims,
{
    let mut lines = Lines::recorded::<A, D>(tensor)?;
    let (count, len) = (lines.count(), lines.len());
    if len == 0 && count > 0 {
        return Err(DimError::EmptyReduction { op: name, dims: lines.describe() });
    }
    let mut results = lines.execute(&Quantile { name, lines: count, len, q })?;
    lines.reduced::<A::Elem, X, A::Rank, A::Dims>(results.next::<A::Elem>())
}

#[track_caller]
fn first<A: Computable>(tensor: A, dim: DimInfo<'_>, k: usize) -> Result<TensorOf<A>, DimError> {
    moved(RowBlocks::of(tensor, dim)?, dim, k, &[RowRun::new(0, k, 1)], Default::default())
}

/// Sorting and order statistics along dims. All operations run immediately.
pub trait Sorting: AsTensor {
    /// The elements in ascending order along a dim. NaN comes last.
    #[panicking_twin]
    fn try_sort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort::<NamedOf<Self>, D>(checked(self, &dim)?, false)
    }

    /// The elements in descending order along a dim. NaN comes first.
    #[panicking_twin]
    fn try_sort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort::<NamedOf<Self>, D>(checked(self, &dim)?, true)
    }

    /// The positions along a dim that put its elements into ascending order. The sort is stable,
    /// and NaN comes last.
    ///
    /// ```text
    /// x.take(i, x.argsort(i))      is x.sort(i)
    /// ```
    #[panicking_twin]
    fn try_argsort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dim: D,
    ) -> Result<Positions<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        argsort::<_, D>(reference::<Self>(&*read_checked(self, &dim)?), false)
    }

    /// The positions along a dim that put its elements into descending order. The sort is stable,
    /// and NaN comes first.
    #[panicking_twin]
    fn try_argsort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dim: D,
    ) -> Result<Positions<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        argsort::<_, D>(reference::<Self>(&*read_checked(self, &dim)?), true)
    }

    /// The elements in ascending order along a dim, and their original positions:
    /// `(values, positions)`, like [`sort`](Sorting::sort) and [`argsort`](Sorting::argsort) in one
    /// pass. The sort is stable, and NaN comes last.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let x = from_vec(Seq.of(3), vec![2.0, 3.0, 1.0]);
    /// let (values, positions) = (&x).sort_with_indices(Seq);
    /// assert_eq!(values.order(Seq), ndarray::array![1.0, 2.0, 3.0]);
    /// assert_eq!(positions.order(Seq), ndarray::array![2, 0, 1]);
    /// ```
    #[panicking_twin]
    fn try_sort_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort_with_indices::<NamedOf<Self>, D>(checked(self, &dim)?, false)
    }

    /// The elements in descending order along a dim, and their original positions:
    /// `(values, positions)`, like [`sort_descending`](Sorting::sort_descending) and
    /// [`argsort_descending`](Sorting::argsort_descending) in one pass. The sort is stable, and NaN
    /// comes first.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let x = from_vec(Seq.of(3), vec![2.0, 3.0, 1.0]);
    /// let (values, positions) = (&x).sort_descending_with_indices(Seq);
    /// assert_eq!(values.order(Seq), ndarray::array![3.0, 2.0, 1.0]);
    /// assert_eq!(positions.order(Seq), ndarray::array![1, 0, 2]);
    /// ```
    #[panicking_twin]
    fn try_sort_descending_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort_with_indices::<NamedOf<Self>, D>(checked(self, &dim)?, true)
    }

    /// The greatest element over dims and its position: `(value, position)`, like
    /// [`max`](crate::execute::reduce::Reductions::max) and
    /// [`argmax`](crate::execute::reduce::Reductions::argmax), but the elements are computed once.
    /// Among equal elements, the first one is chosen. For a tuple of dims, the position is
    /// row-major over the tuple. NaN counts as the greatest element.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Col; }
    /// let x = from_vec((Row.of(2), Col.of(3)), vec![2, 7, 1, 4, 3, 5]);
    /// let (values, positions) = (&x).max_with_index(Col);
    /// assert_eq!(values.order(Row), ndarray::array![7, 5]);
    /// assert_eq!(positions.order(Row), ndarray::array![1, 2]);
    /// ```
    #[panicking_twin("so is reducing a dim of size 0")]
    fn try_max_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<WithIndex<Self, X>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        extremum::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), true, "max_with_index")
    }

    /// The least element over dims and its position: `(value, position)`, like
    /// [`min`](crate::execute::reduce::Reductions::min) and
    /// [`argmin`](crate::execute::reduce::Reductions::argmin), but the elements are computed once.
    /// Among equal elements, the first one is chosen. For a tuple of dims, the position is
    /// row-major over the tuple. NaN counts as the least element.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Row; struct Col; }
    /// let x = from_vec((Row.of(2), Col.of(3)), vec![2, 7, 1, 4, 3, 5]);
    /// let (values, positions) = (&x).min_with_index(Col);
    /// assert_eq!(values.order(Row), ndarray::array![1, 3]);
    /// assert_eq!(positions.order(Row), ndarray::array![2, 1]);
    /// ```
    #[panicking_twin("so is reducing a dim of size 0")]
    fn try_min_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<WithIndex<Self, X>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        extremum::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), false, "min_with_index")
    }

    /// The `k` greatest elements along a dim in descending order, and their original positions:
    /// `(values, positions)`. Among equal elements, the first ones are chosen. NaN counts as the
    /// greatest element.
    ///
    /// The dim has `k` elements in both results.
    #[panicking_twin("so are fewer than `k` elements")]
    fn try_topk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        k: usize,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        let mut lines = Lines::recorded::<Self, D>(self)?;
        let (count, len) = (lines.count(), lines.len());
        if k > len {
            let what = format!("there are fewer than {k} elements along {}", lines.describe());
            return Err(DimError::Shape { what });
        }
        dim.info().resized().unify(k, Some(Location::caller()))?;
        let mut results =
            lines.execute(&TopK { lines: count, len, k, element: PhantomData::<Self::Elem> })?;
        Ok((lines.tensor(results.next::<Self::Elem>(), k)?, lines.tensor(results.next::<usize>(), k)?))
    }

    /// The `k` least elements along a dim in ascending order, and their original positions:
    /// `(values, positions)`. Among equal elements, the first ones are chosen. NaN counts as the
    /// greatest element.
    ///
    /// The dim has `k` elements in both results.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// let (values, positions) = from_vec(Seq.of(4), vec![4, 2, 7, 1]).topk_smallest(Seq, 2);
    /// assert_eq!(values.order(Seq), ndarray::array![1, 2]);
    /// assert_eq!(positions.order(Seq), ndarray::array![3, 1]);
    /// ```
    #[panicking_twin("so are fewer than `k` elements")]
    fn try_topk_smallest<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        k: usize,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        dim.info().resized().unify(k, Some(Location::caller()))?;
        let (lines, mut results) = in_order::<NamedOf<Self>, D>(self.into_named(), false, SortWanted::Both)?;
        if k > lines.len() {
            let what = format!("there are fewer than {k} elements along {}", lines.describe());
            return Err(DimError::Shape { what });
        }
        let values: TensorOf<Self> = lines.tensor(results.next::<Self::Elem>(), lines.len())?;
        let positions: Positions<Self> = lines.tensor(results.next::<usize>(), lines.len())?;
        Ok((first(&values, dim.info(), k)?, first(&positions, dim.info(), k)?))
    }

    /// The median over dims: the middle element in order, or the mean of the two in the middle. NaN
    /// if any element is NaN.
    #[panicking_twin("so is reducing a dim of size 0")]
    fn try_median<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        let half = num_traits::NumCast::from(0.5).expect("every float type has the value 0.5");
        quantile::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), half, "median")
    }

    /// The `q`-quantile over dims, from the least element for `q = 0` to the greatest for 1,
    /// interpolated linearly between elements. NaN if any element is NaN.
    #[panicking_twin("so are reducing a dim of size 0, and a `q` that is not between 0 and 1")]
    fn try_quantile<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        q: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        if !(num_traits::Zero::zero()..=num_traits::One::one()).contains(&q) {
            return Err(DimError::Shape {
                what: format!("`quantile` with the probability {q:?}: it must be between 0 and 1"),
            });
        }
        quantile::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), q, "quantile")
    }
}

impl<A: AsTensor + ?Sized> Sorting for A {}
