//! Results whose size depends on the elements: `nonzero`, `masked_select`, `unique`.
//!
//! Pass a new local dim for such a result, `dims!(n);`, which gets its size here. No other tensor
//! has this dim, so elements selected by one mask cannot be combined by mistake with elements
//! selected by another, even if their sizes happen to agree.
//!
//! The size could differ between the examples of a batch, so all dims must be named; rustc reports
//! any that are not. For a batch, use [`map_each`](crate::batch::map_each): its closure declares a
//! new dim for each example, and returns something whose size is the same for all, such as a sum, a
//! count, or the first few.

use crate::error::DimError;
use crate::execute::assign::NoneLeft;
use crate::execute::lines::{Lines, arranged, axes_in};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, Evaluable};
use crate::types::brand::Brand;
use crate::types::dim::Dim;
use crate::types::rank::Rank0;
use crate::types::set::rename::CanGain;
use crate::types::set::{Dims, DimsOf, Union};
use alloc::vec::Vec;
use kernels::scalar::Ordered;
use kernels::step::moves::MoveRows;
use kernels::step::sorting::ascending;
use twins::panicking_twin;

/// Sets the size of the dim, which must not have one yet.
#[track_caller]
fn grown<B: Brand>(dim: &Dim<B>, size: usize) -> Result<(), DimError> {
    if let Some(size) = dim.try_size() {
        let what = format!(
            "dim `{}` has {size} elements already; a result of unknown size needs a new dim",
            B::NAME
        );
        return Err(DimError::Shape { what });
    }
    dim.try_set_size(size)
}

/// The result of [`unique`](Dynamic::unique) for a tensor of `T` with the dims `S`. `B` is the new
/// dim.
pub struct Unique<T, B: Brand, S: Dims>
where
    (B,): Dims,
{
    /// The different elements, in ascending order.
    pub values: Named<T, (B,)>,
    /// The number of occurrences of each value.
    pub counts: Named<usize, (B,)>,
    /// For each element of the tensor, its position in `values`.
    pub inverse: Named<usize, S>,
}

/// Operations whose result's size depends on the tensor's elements. They run at once.
pub trait Dynamic: AsTensor {
    /// The positions of the elements that are true, in ascending order, along the new dim `n`. For
    /// a tuple of dims, positions are row-major over the tuple, as for `argmax`.
    ///
    /// All dims of the tensor must be named, because the number of positions could differ along
    /// other dims.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_nonzero<D, X, B>(self, dims: D, n: &Dim<B>) -> Result<Named<usize, (B,)>, DimError>
    where
        Self: Evaluable<Elem = bool, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::of::<Self, D>(self, "nonzero")?;
        lines.shape.check_all_given(&dims)?;
        let found: Vec<usize> = positions(&lines.data).collect();
        grown(n, found.len())?;
        let sizes = [found.len()];
        arranged(found, &[0], &sizes)
    }

    /// The elements where the mask is true, along the new dim `n`, in row-major order of `dims`:
    /// `x[mask]` in NumPy.
    ///
    /// `dims` must be all dims of the mask. The tensor may have extra dims, which are kept.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_masked_select<M, D, X, Y, Z, B>(
        self,
        mask: M,
        dims: D,
        n: &Dim<B>,
    ) -> Result<Named<Self::Elem, Z, Self::Rank>, DimError>
    where
        Self: Evaluable,
        M: Computable<Elem = bool, Rank = Rank0>,
        D: DimsOf<M::Dims, X> + DimsOf<Self::Dims, Y>,
        X: NoneLeft,
        Y: Union<(B,), Out = Z> + CanGain<B>,
        Z: Dims,
        B: Brand,
    {
        let mut lines = Lines::recorded::<Self, D>(self)?;
        lines.shape.check_all_given(&dims)?;
        let mask = Lines::of::<M, D>(mask, "masked_select")?;
        let (size, of_mask) = (
            |at: usize| lines.shape.size(lines.order[lines.kept + at]),
            |at: usize| mask.shape.size(mask.order[at]),
        );
        if !(0..mask.order.len()).all(|at| size(at) == of_mask(at)) {
            let what = format!("a mask of {} does not fit {}", mask.describe(), lines.describe());
            return Err(DimError::Shape { what });
        }
        let found: Vec<usize> = positions(&mask.data).collect();
        grown(n, found.len())?;
        let mut axes = axes_in::<Z, Self::Dims>(lines.order[..lines.kept].iter().copied());
        axes.push(Z::KEYS.position(&n.key()).expect("the new dim is one of the result's"));
        lines.check_volume::<Self::Elem>(found.len())?;
        let kind = MoveRows {
            name: "masked_select",
            outer: lines.count(),
            size: lines.len(),
            inner: 1,
            sources: found.iter().copied().map(Some).collect(),
            fill: Self::Elem::default(),
        };
        let out = lines.execute(&kind)?.next::<Self::Elem>();
        arranged(out, &axes, &lines.sizes(&[found.len()]))
    }

    /// The distinct elements in ascending order, along the new dim `n`, with the count of each, and
    /// the position of each element's value. All NaNs are one value, the last one.
    ///
    /// All dims of the tensor must be named, because the number of values could differ along other
    /// dims.
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_unique<D, X, B>(self, dims: D, n: &Dim<B>) -> Result<Unique<Self::Elem, B, Self::Dims>, DimError>
    where
        Self: Evaluable<Elem: Ordered, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::recorded::<Self, ()>(self)?;
        lines.shape.check_all_given(&dims)?;
        lines.check_unrecorded("unique")?;
        let mut order: Vec<usize> = (0..lines.data.len()).collect();
        order.sort_by(|&a, &b| ascending(&lines.data[a], &lines.data[b]));
        runs("unique", lines, order, n)
    }

    /// The first element of each run of equal elements, along the new dim `n`, with the length of
    /// each run, and the run of each element. NaN equals NaN.
    ///
    /// For a tuple of dims, elements are compared in row-major order of the tuple. All dims of the
    /// tensor must be named, as for [`unique`](Dynamic::unique).
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Seq; }
    /// dims!(n);
    /// let runs = from_vec(Seq.of(6), vec![1, 1, 2, 1, 1, 1]).unique_consecutive(Seq, n);
    /// assert_eq!(runs.values.order(n), ndarray::array![1, 2, 1]);
    /// assert_eq!(runs.counts.order(n), ndarray::array![2, 1, 3]);
    /// assert_eq!(runs.inverse.order(Seq), ndarray::array![0, 0, 1, 2, 2, 2]);
    /// ```
    #[panicking_twin("so is a dim `n` that has a size already")]
    fn try_unique_consecutive<D, X, B>(
        self,
        dims: D,
        n: &Dim<B>,
    ) -> Result<Unique<Self::Elem, B, Self::Dims>, DimError>
    where
        Self: Evaluable<Elem: Ordered, Rank = Rank0>,
        D: DimsOf<Self::Dims, X>,
        X: NoneLeft,
        B: Brand,
    {
        let lines = Lines::recorded::<Self, D>(self)?;
        lines.shape.check_all_given(&dims)?;
        lines.check_unrecorded("unique_consecutive")?;
        let order = (0..lines.data.len()).collect();
        runs("unique_consecutive", lines, order, n)
    }
}

impl<A: AsTensor + ?Sized> Dynamic for A {}

/// The runs of equal elements, when the elements are visited in this order.
#[track_caller]
fn runs<T: Ordered, B: Brand, S: Dims>(
    name: &'static str,
    mut lines: Lines<T>,
    order: Vec<usize>,
    n: &Dim<B>,
) -> Result<Unique<T, B, S>, DimError>
where
    (B,): Dims,
{
    let (mut first, mut counts, mut inverse) = (Vec::new(), Vec::<usize>::new(), vec![0; order.len()]);
    for at in order {
        let is_new = first.last().is_none_or(|&last| ascending(&lines.data[last], &lines.data[at]).is_ne());
        if is_new {
            first.push(at);
            counts.push(0);
        }
        *counts.last_mut().expect("a value has been found") += 1;
        inverse[at] = first.len() - 1;
    }
    let sizes = [first.len()];
    grown(n, first.len())?;
    let all: Vec<usize> = lines.order.iter().map(|&axis| lines.shape.size(axis)).collect();
    let inverse = arranged(inverse, &lines.order, &all)?;
    // (The gradient of a value goes to its first occurrence.)
    let kind = MoveRows {
        name,
        outer: 1,
        size: lines.data.len(),
        inner: 1,
        sources: first.into_iter().map(Some).collect(),
        fill: T::default(),
    };
    let values = lines.execute(&kind)?.next::<T>();
    Ok(Unique { values: arranged(values, &[0], &sizes)?, counts: arranged(counts, &[0], &sizes)?, inverse })
}

/// The positions at which a line is true.
fn positions(line: &[bool]) -> impl Iterator<Item = usize> {
    line.iter().enumerate().filter(|(_, holds)| **holds).map(|(at, _)| at)
}
