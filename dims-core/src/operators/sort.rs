//! Sorting along a dim, and what is found by order: `sort`, `argsort`, `topk`, `median`, `quantile`.

use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::expr::record;
use crate::named::Named;
use crate::rank::Rank;
use crate::reduce::{Reduced, TensorOf};
use crate::run::lines::{Lines, arranged};
use crate::set::{Dims, DimsOf};
use crate::size::Resizable;
use crate::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked, read_checked, reference};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::panic::Location;
use kernels::memory::buffer::Buffer;
use kernels::scalar::{Num, Ordered, Real};

/// Positions along a dim, for each element of a tensor.
pub type Positions<A> = Named<usize, <A as AsTensor>::Dims, <A as AsTensor>::Rank>;

/// Elements that were chosen over dims of a tensor, and where they are: the dims `X` are left.
pub type WithIndex<A, X> = (Reduced<<A as AsTensor>::Elem, A, X>, Reduced<usize, A, X>);

/// The order of elements: not-a-number is the greatest, as in NumPy and PyTorch.
pub(crate) fn ascending<T: Ordered>(a: &T, b: &T) -> Ordering {
    match (a.is_nan_value(), b.is_nan_value()) {
        (false, false) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
        (a, b) => a.cmp(&b),
    }
}

/// The positions of a line in the order of their elements; equal ones as they stand.
fn positions<T: Ordered>(line: &[T], descending: bool, out: &mut [usize]) {
    out.iter_mut().enumerate().for_each(|(at, out)| *out = at);
    out.sort_by(|&a, &b| directed(descending, ascending(&line[a], &line[b])));
}

fn directed(descending: bool, order: Ordering) -> Ordering {
    if descending { order.reverse() } else { order }
}

#[track_caller]
fn sort<A, D>(tensor: A, descending: bool) -> Result<TensorOf<A>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let lines = Lines::recorded::<A, D>(tensor)?;
    if lines.data.is_traced() {
        return Ok(sorted_lines(&lines, descending)?.0);
    }
    let len = lines.len();
    lines.in_place("sort", len, |line| line.sort_by(|a, b| directed(descending, ascending(a, b))))
}

#[track_caller]
fn argsort<A, D>(tensor: A, descending: bool) -> Result<Positions<A>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    let lines = Lines::recorded::<A, D>(tensor)?;
    let len = lines.len();
    let out = lines.map("argsort", len, |line, out| positions(line, descending, out))?;
    arranged(out, &lines.order, &lines.sizes(&[len]))
}

#[track_caller]
fn sort_with_indices<A, D>(tensor: A, descending: bool) -> Result<(TensorOf<A>, Positions<A>), DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimRef,
{
    sorted_lines(&Lines::recorded::<A, D>(tensor)?, descending)
}

/// The elements of each line in order, and where they were.
#[track_caller]
fn sorted_lines<T: Ordered, S: Dims, R: Rank>(
    lines: &Lines<T>,
    descending: bool,
) -> Result<(Named<T, S, R>, Named<usize, S, R>), DimError> {
    let len = lines.len();
    let found = lines.map::<(T, usize)>("sort", len, |line, out| {
        out.iter_mut().enumerate().for_each(|(at, out)| *out = (line[at], at));
        out.sort_by(|(a, _), (b, _)| directed(descending, ascending(a, b)));
    })?;
    let sizes = lines.sizes(&[len]);
    let (values, at) = chosen(lines, found, len);
    Ok((arranged(values, &lines.order, &sizes)?, arranged(at, &lines.order, &sizes)?))
}

/// Elements of lines, `len` of each, and their positions on them: the gradient of an element goes to where it was.
#[track_caller]
fn chosen<T: Ordered>(lines: &Lines<T>, found: Vec<(T, usize)>, len: usize) -> (Buffer<T>, Vec<usize>) {
    let (values, at): (Vec<_>, Vec<usize>) = found.into_iter().unzip();
    let values = record::chosen(values, &lines.data, 0.0, || {
        (at.iter().enumerate().map(|(result, &at)| lines.offset(result, len, at)).collect(), None)
    });
    (values, at)
}

/// The order in which `min` chooses: not-a-number is less than all others, too.
fn ascending_nan_first<T: Ordered>(a: &T, b: &T) -> Ordering {
    match (a.is_nan_value(), b.is_nan_value()) {
        (false, false) => ascending(a, b),
        (a, b) => b.cmp(&a),
    }
}

/// The first element of each line in an order, and where it is.
#[track_caller]
fn first_with_index<A, D, X>(
    tensor: A,
    order: impl Fn(&A::Elem, &A::Elem) -> Ordering + Send + Sync,
    op: &'static str,
) -> Result<WithIndex<A, X>, DimError>
where
    A: Computable<Elem: Ordered>,
    D: DimsOf<A::Dims, X>,
    X: Dims,
{
    let lines = Lines::recorded::<A, D>(tensor)?;
    if lines.len() == 0 && lines.count() > 0 {
        return Err(DimError::EmptyReduction { op, dims: lines.describe() });
    }
    let found = lines.map::<(A::Elem, usize)>(op, 1, |line, out| {
        let mut best = (line[0], 0);
        for (at, value) in line.iter().enumerate().skip(1) {
            if order(value, &best.0) == Ordering::Less {
                best = (*value, at);
            }
        }
        out[0] = best;
    })?;
    let (values, at) = chosen(&lines, found, 1);
    Ok((
        lines.reduced::<A::Elem, X, A::Rank, A::Dims>(values)?,
        lines.reduced::<usize, X, A::Rank, A::Dims>(at)?,
    ))
}

/// The element at a share `q` of a line's order; between two, the line through them.
fn quantile_of<T: Real>(line: &mut [T], q: T) -> T {
    if let Some(&nan) = line.iter().find(|value| value.is_nan()) {
        return nan;
    }
    let (at, share) = place_of(line.len(), q);
    let (_, &mut low, above) = line.select_nth_unstable_by(at, ascending);
    match above.iter().copied().min_by(ascending) {
        Some(high) if share > num_traits::Zero::zero() && low != high => {
            let (low, high) = (low.widen(), high.widen());
            let step = high - low;
            // The distance of two numbers can be greater than any of them; that to an infinity times a share of it is infinite.
            T::narrow(match num_traits::Float::is_finite(step) {
                true => low + step * share,
                false => low * (<T::Wide as Num>::ONE - share) + high * share,
            })
        }
        _ => low,
    }
}

/// Operations that put the elements along a dim into order. They run at once.
pub trait Sorting: AsTensor {
    /// The elements in ascending order along a dim; not-a-number comes last.
    ///
    /// # Panics
    ///
    /// Where [`try_sort`](Sorting::try_sort) returns an error.
    #[track_caller]
    fn sort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_sort(dim))
    }

    /// As [`sort`](Sorting::sort), but what sizes decide is an error.
    #[track_caller]
    fn try_sort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort::<NamedOf<Self>, D>(checked(self, &dim)?, false)
    }

    /// The elements in descending order along a dim; not-a-number comes first.
    ///
    /// # Panics
    ///
    /// Where [`try_sort_descending`](Sorting::try_sort_descending) returns an error.
    #[track_caller]
    fn sort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(self, dim: D) -> TensorOf<Self>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_sort_descending(dim))
    }

    /// As [`sort_descending`](Sorting::sort_descending), but what sizes decide is an error.
    #[track_caller]
    fn try_sort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort::<NamedOf<Self>, D>(checked(self, &dim)?, true)
    }

    /// The positions along a dim that put its elements into ascending order; equal elements stay in theirs, and not-a-number comes
    /// last.
    ///
    /// ```text
    /// x.take(i, x.argsort(i))      is x.sort(i)
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_argsort`](Sorting::try_argsort) returns an error.
    #[track_caller]
    fn argsort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(&self, dim: D) -> Positions<Self>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_argsort(dim))
    }

    /// As [`argsort`](Sorting::argsort), but what sizes decide is an error.
    #[track_caller]
    fn try_argsort<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dim: D,
    ) -> Result<Positions<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        argsort::<_, D>(reference::<Self>(&*read_checked(self, &dim)?), false)
    }

    /// The positions along a dim that put its elements into descending order; equal elements stay in theirs, and not-a-number comes
    /// first.
    ///
    /// # Panics
    ///
    /// Where [`try_argsort_descending`](Sorting::try_argsort_descending) returns an error.
    #[track_caller]
    fn argsort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(&self, dim: D) -> Positions<Self>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_argsort_descending(dim))
    }

    /// As [`argsort_descending`](Sorting::argsort_descending), but what sizes decide is an error.
    #[track_caller]
    fn try_argsort_descending<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dim: D,
    ) -> Result<Positions<Self>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        argsort::<_, D>(reference::<Self>(&*read_checked(self, &dim)?), true)
    }

    /// The elements in ascending order along a dim, and where they were: `(values, positions)`, as [`sort`](Sorting::sort) and
    /// [`argsort`](Sorting::argsort) in one pass. Equal elements stay in their order, and not-a-number comes last.
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
    ///
    /// # Panics
    ///
    /// Where [`try_sort_with_indices`](Sorting::try_sort_with_indices) returns an error.
    #[track_caller]
    fn sort_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> (TensorOf<Self>, Positions<Self>)
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_sort_with_indices(dim))
    }

    /// As [`sort_with_indices`](Sorting::sort_with_indices), but what sizes decide is an error.
    #[track_caller]
    fn try_sort_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort_with_indices::<NamedOf<Self>, D>(checked(self, &dim)?, false)
    }

    /// The elements in descending order along a dim, and where they were: `(values, positions)`, as [`sort_descending`](Sorting::sort_descending) and
    /// [`argsort_descending`](Sorting::argsort_descending) in one pass. Equal elements stay in their order, and not-a-number comes first.
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
    ///
    /// # Panics
    ///
    /// Where [`try_sort_descending_with_indices`](Sorting::try_sort_descending_with_indices) returns an error.
    #[track_caller]
    fn sort_descending_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> (TensorOf<Self>, Positions<Self>)
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_sort_descending_with_indices(dim))
    }

    /// As [`sort_descending_with_indices`](Sorting::sort_descending_with_indices), but what sizes decide is an error.
    #[track_caller]
    fn try_sort_descending_with_indices<D: DimRef + DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dim: D,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        sort_with_indices::<NamedOf<Self>, D>(checked(self, &dim)?, true)
    }

    /// The greatest element over dims and where it is: `(value, position)`, as [`max`](crate::reduce::Reductions::max) and
    /// [`argmax`](crate::reduce::Reductions::argmax), but the elements are computed once. Of equal elements it is the first; for a tuple of
    /// dims the position is that in all of them, the last dim fastest. A not-a-number is the greatest one.
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
    ///
    /// # Panics
    ///
    /// Where [`try_max_with_index`](Sorting::try_max_with_index) returns an error.
    #[track_caller]
    fn max_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> WithIndex<Self, X>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_max_with_index(dims))
    }

    /// As [`max_with_index`](Sorting::max_with_index), but what sizes decide is an error; so is having no elements.
    #[track_caller]
    fn try_max_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<WithIndex<Self, X>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        let descending = |a: &Self::Elem, b: &Self::Elem| ascending(b, a);
        first_with_index::<_, D, X>(
            reference::<Self>(&*read_checked(self, &dims)?),
            descending,
            "max_with_index",
        )
    }

    /// The least element over dims and where it is: `(value, position)`, as [`min`](crate::reduce::Reductions::min) and
    /// [`argmin`](crate::reduce::Reductions::argmin), but the elements are computed once. Of equal elements it is the first; for a tuple of
    /// dims the position is that in all of them, the last dim fastest. A not-a-number is the least one.
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
    ///
    /// # Panics
    ///
    /// Where [`try_min_with_index`](Sorting::try_min_with_index) returns an error.
    #[track_caller]
    fn min_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> WithIndex<Self, X>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_min_with_index(dims))
    }

    /// As [`min_with_index`](Sorting::min_with_index), but what sizes decide is an error; so is having no elements.
    #[track_caller]
    fn try_min_with_index<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<WithIndex<Self, X>, DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        first_with_index::<_, D, X>(
            reference::<Self>(&*read_checked(self, &dims)?),
            ascending_nan_first,
            "min_with_index",
        )
    }

    /// The `k` greatest elements along a dim in descending order, and where they were: `(values, positions)`. Of equal elements the
    /// first ones are taken; not-a-number is the greatest.
    ///
    /// The dim has `k` elements in both results.
    ///
    /// # Panics
    ///
    /// Where [`try_topk`](Sorting::try_topk) returns an error.
    #[track_caller]
    fn topk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        k: usize,
    ) -> (TensorOf<Self>, Positions<Self>)
    where
        Self: Evaluable<Elem: Ordered>,
    {
        unwrap(self.try_topk(dim, k))
    }

    /// As [`topk`](Sorting::topk), but what sizes decide is an error; so are fewer than `k` elements.
    #[track_caller]
    fn try_topk<D: DimRef + DimsOf<Self::Dims, X> + Resizable, X: Dims>(
        self,
        dim: D,
        k: usize,
    ) -> Result<(TensorOf<Self>, Positions<Self>), DimError>
    where
        Self: Evaluable<Elem: Ordered>,
    {
        let lines = Lines::recorded::<Self, D>(self)?;
        let len = lines.len();
        if k > len {
            let what = format!("there are no {k} greatest elements along {}", lines.describe());
            return Err(DimError::Shape { what });
        }
        dim.info().resized().unify(k, Some(Location::caller()))?;
        let found = lines.map::<(Self::Elem, usize)>("topk", k, |line, out| {
            let order = |a: &usize, b: &usize| ascending(&line[*b], &line[*a]).then(a.cmp(b));
            let mut all: Vec<usize> = (0..line.len()).collect();
            if k < all.len() {
                all.select_nth_unstable_by(k, order);
                all.truncate(k);
            }
            all.sort_unstable_by(order);
            for (out, at) in out.iter_mut().zip(all) {
                *out = (line[at], at);
            }
        })?;
        let sizes = lines.sizes(&[k]);
        let (values, at) = chosen(&lines, found, k);
        Ok((arranged(values, &lines.order, &sizes)?, arranged(at, &lines.order, &sizes)?))
    }

    /// The median over dims: the middle element in order, or the mean of the two in the middle; not-a-number if there is one.
    ///
    /// # Panics
    ///
    /// Where [`try_median`](Sorting::try_median) returns an error.
    #[track_caller]
    fn median<D: DimsOf<Self::Dims, X>, X: Dims>(&self, dims: D) -> Reduced<Self::Elem, Self, X>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_median(dims))
    }

    /// As [`median`](Sorting::median), but what sizes decide is an error; so is having no elements.
    #[track_caller]
    fn try_median<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        let half = num_traits::NumCast::from(0.5).expect("a float can be a half");
        quantile::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), half, "median")
    }

    /// The element at the share `q` of the order over dims, from 0 for the least to 1 for the greatest; between two elements, the
    /// point of the line through them. Not-a-number if there is one.
    ///
    /// # Panics
    ///
    /// Where [`try_quantile`](Sorting::try_quantile) returns an error.
    #[track_caller]
    fn quantile<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        q: Self::Elem,
    ) -> Reduced<Self::Elem, Self, X>
    where
        Self: Evaluable<Elem: Real>,
    {
        unwrap(self.try_quantile(dims, q))
    }

    /// As [`quantile`](Sorting::quantile), but what sizes decide is an error; so are having no elements, and a `q` that is not between 0
    /// and 1.
    #[track_caller]
    fn try_quantile<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        q: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        if !(num_traits::Zero::zero()..=num_traits::One::one()).contains(&q) {
            return Err(DimError::Shape { what: format!("a quantile of {q:?}; it must be between 0 and 1") });
        }
        quantile::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), q, "quantile")
    }
}

#[track_caller]
fn quantile<A, D, X>(tensor: A, q: A::Elem, op: &'static str) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimsOf<A::Dims, X>,
    X: Dims,
{
    let lines = Lines::recorded::<A, D>(tensor)?;
    if lines.len() == 0 && lines.count() > 0 {
        return Err(DimError::EmptyReduction { op, dims: lines.describe() });
    }
    let out = lines.map(op, 1, |line, out| out[0] = quantile_of(&mut line.to_vec(), q))?;
    let (_, share) = place_of(lines.len(), q);
    let share = num_traits::ToPrimitive::to_f64(&share).unwrap_or(0.0);
    let out = record::chosen(out, &lines.data, share, || neighbours(&lines, q));
    lines.reduced::<A::Elem, X, A::Rank, A::Dims>(out)
}

/// Between which elements of a line a quantile lies: the number of the lower one in order, and the share of the next one.
fn place_of<T: Real>(len: usize, q: T) -> (usize, T::Wide) {
    let last = len.saturating_sub(1);
    let place = q.widen() * <T::Wide as num_traits::NumCast>::from(last).expect("a float can be any size");
    let below = num_traits::Float::floor(place);
    (num_traits::ToPrimitive::to_usize(&below).unwrap_or(0).min(last), place - below)
}

/// Where the two elements are between which the quantile of each line lies. If there is a not-a-number, both are the first of those.
fn neighbours<T: Real>(lines: &Lines<T>, q: T) -> (Vec<isize>, Option<Vec<isize>>) {
    let len = lines.len();
    let (at, _) = place_of(len, q);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    let mut order = alloc::vec![0; len];
    for (number, line) in lines.data.chunks_exact(len.max(1)).enumerate() {
        positions(line, false, &mut order);
        let pair = match line.iter().position(|value| value.is_nan()) {
            Some(nan) => [nan; 2],
            None => [order[at], order[(at + 1).min(len - 1)]],
        };
        low.push(lines.offset(number, 1, pair[0]));
        high.push(lines.offset(number, 1, pair[1]));
    }
    (low, Some(high))
}

impl<A: AsTensor + ?Sized> Sorting for A {}
