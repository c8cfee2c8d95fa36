//! Results whose size depends on the elements: `nonzero`, `masked_select`, `unique`,
//! `unique_consecutive`.
//!
//! For such a result, declare a new local dim with `dims!(n);` and pass it. The operation sets the
//! size of the dim. Elements selected by different masks then have different dims, so they cannot
//! be combined by mistake, even if their sizes agree.
//!
//! The size could differ between the examples of a batch. So pass all dims of the tensor or, for
//! `masked_select`, of the mask. rustc reports any that are missing. For a batch, use
//! [`map_each`](crate::batch::map_each): its closure declares a new dim for each example, and
//! returns something whose size is the same for all examples, such as a sum, a count, or the first
//! few elements.

use crate::error::DimError;
use crate::execute::lines::{Lines, arranged};
use crate::tensors::named::Named;
use crate::types::brand::Brand;
use crate::types::dim::Dim;
use crate::types::set::Dims;
use alloc::vec::Vec;
use kernels::memory::runs::RowRun;
use kernels::scalar::Ordered;
use kernels::step::moves::MoveRows;
use kernels::step::sorting::ascending;

/// Sets the size of the dim, which must not have one yet.
#[track_caller]
pub(super) fn grown<B: Brand>(dim: &Dim<B>, size: usize) -> Result<(), DimError> {
    if let Some(size) = dim.try_size() {
        let what = format!(
            "dim `{}` has {size} elements already; a result of unknown size needs a new dim",
            B::NAME
        );
        return Err(DimError::Shape { what });
    }
    dim.try_set_size(size)
}

/// The result of [`unique`](crate::operators::select::Selecting::unique) and
/// [`unique_consecutive`](crate::operators::select::Selecting::unique_consecutive) for a tensor of
/// `T` with the dims `S`. `B` is the new dim.
pub struct Unique<T, B: Brand, S: Dims>
where
    (B,): Dims,
{
    /// The distinct elements in ascending order, or the first element of each run.
    pub values: Named<T, (B,)>,
    /// The number of occurrences of each value, or the length of each run.
    pub counts: Named<usize, (B,)>,
    /// For each element of the tensor, its position in `values`.
    pub inverse: Named<usize, S>,
}

/// The runs of equal elements of a tensor, whose elements are visited in `order`.
#[track_caller]
pub(super) fn runs<T: Ordered, B: Brand, S: Dims>(
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
        sources: RowRun::split(first.len(), &|at| first[at])?.into(),
        fill: T::default(),
    };
    let values = lines.execute(&kind)?.next::<T>();
    Ok(Unique { values: arranged(values, &[0], &sizes)?, counts: arranged(counts, &[0], &sizes)?, inverse })
}

/// The positions at which a line is true.
pub(super) fn positions(line: &[bool]) -> impl Iterator<Item = usize> {
    line.iter().enumerate().filter(|(_, holds)| **holds).map(|(at, _)| at)
}
