//! Converts steps on matrices to data and back.

use super::{MatrixElement, MatrixResult, MatrixSizes, MatrixStep, MatrixWork};
use crate::error::Error;
use crate::ops::code::DType;
use crate::step::restored::{Restored, of};
use crate::trace::saved::{SavedKind, SavedType, check, checked_volume, refused};
use core::any::Any;
use smallvec::SmallVec;

/// The step as data, if it is a [`MatrixStep`] of `f32` or `f64`.
pub(in crate::step) fn saved(kind: &dyn Any) -> Option<SavedKind> {
    fn of_type<T: MatrixElement>(kind: &dyn Any) -> Option<SavedKind> {
        let &MatrixStep { work, sizes, .. } = kind.downcast_ref::<MatrixStep<T>>()?;
        Some(SavedKind::Matrices { dtype: DType::of::<T>()?, work, sizes })
    }
    of_type::<f32>(kind).or_else(|| of_type::<f64>(kind))
}

/// Checks the sizes and the element type of a step, and restores it.
pub(in crate::step) fn restored(
    dtype: DType,
    work: MatrixWork,
    sizes: MatrixSizes,
) -> Result<Restored, Error> {
    let MatrixSizes { batch, rows, columns, right } = sizes;
    let most = rows.max(columns);
    checked_volume([batch, most, most.max(right), 4])?;
    check(!work.is_square() || rows == columns, "a matrix must be square")?;
    match dtype {
        DType::F32 => of_type::<f32>(dtype, work, sizes),
        DType::F64 => of_type::<f64>(dtype, work, sizes),
        _ => Err(refused("a matrix step does not support elements of this type")),
    }
}

fn of_type<T: MatrixElement>(dtype: DType, work: MatrixWork, sizes: MatrixSizes) -> Result<Restored, Error> {
    let takes = work.takes(sizes).into_iter().map(|count| of(dtype, count * sizes.batch));
    let takes: SmallVec<[SavedType; 3]> = takes.collect();
    let result = |own: &MatrixResult| match own {
        MatrixResult::Positions(count) => of(DType::Usize, count * sizes.batch),
        own => of(dtype, own.count() * sizes.batch),
    };
    let yields: SmallVec<[SavedType; 3]> = work.yields(sizes).iter().map(result).collect();
    let kept = yields.iter().filter(|own| own.dtype == dtype).map(|own| own.len).sum();
    let keeps = work.keeps().then(|| of(dtype, kept));
    Ok(Restored::new(MatrixStep::<T>::new(work, sizes), &takes, &yields, keeps))
}
