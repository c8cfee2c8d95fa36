//! Without the standard library nothing is recorded.

use crate::error::DimError;
use crate::expr::Expr;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::set::Dims;
use alloc::vec::Vec;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;

/// Whether anything is traced.
#[inline(always)]
pub(crate) fn is_active() -> bool {
    false
}

pub(crate) type Traced = Option<core::convert::Infallible>;

#[inline(always)]
pub(crate) fn traced<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    _: &E,
    _: &Shape,
) -> Result<Traced, DimError> {
    Ok(None)
}

#[inline(always)]
pub(crate) fn mapped<T: Element>(data: Vec<T>, _: Traced, _: &[usize]) -> Buffer<T> {
    data.into()
}

#[inline(always)]
pub(crate) fn untraced_slice<T>(_: &[T], _: &'static str) -> Result<(), DimError> {
    Ok(())
}

#[inline(always)]
pub(crate) fn reduced<T: Element>(
    data: Vec<T>,
    _: Traced,
    _: &[usize],
    _: &[usize],
    _: kernels::program::code::ReductionKind,
    _: &'static str,
) -> Result<Buffer<T>, DimError> {
    Ok(data.into())
}

#[inline(always)]
pub(crate) fn along<T: Element>(
    data: Vec<T>,
    _: Traced,
    _: &[usize],
    _: &[usize],
    _: kernels::program::code::LineWork,
    _: &'static str,
) -> Result<Buffer<T>, DimError> {
    Ok(data.into())
}

pub(crate) type Part = core::convert::Infallible;
pub(crate) type PlacedParts = Vec<Part>;

#[inline(always)]
pub(crate) fn part_at(_: Traced, _: usize, _: &[isize]) -> Option<Part> {
    None
}

#[inline(always)]
pub(crate) fn placed<T: Element>(data: Vec<T>, _: PlacedParts) -> Buffer<T> {
    data.into()
}

#[inline(always)]
pub(crate) fn whole_at<T: Element>(_: &Buffer<T>, _: usize) -> Option<Part> {
    None
}

#[inline(always)]
pub(crate) fn scattered(
    _: Traced,
    _: &[isize],
    _: (Vec<isize>, &[usize]),
    _: Option<&[usize]>,
) -> PlacedParts {
    PlacedParts::new()
}

#[inline(always)]
pub(crate) fn refuse<T: Element, U: Dims, R: Rank, E: Expr + ?Sized>(
    _: &E,
    _: &Shape,
    _: &'static str,
) -> Result<(), DimError> {
    Ok(())
}

#[inline(always)]
pub(crate) fn note_read<E: Expr + ?Sized>(_: &E) {}

#[inline(always)]
pub(crate) fn is_traced<T: Element, U: Dims, E: Expr + ?Sized>(_: &E, _: &Shape) -> Result<bool, DimError> {
    Ok(false)
}

#[inline(always)]
pub(crate) fn untraced<T: Element>(buffer: Buffer<T>, _: &'static str) -> Result<Vec<T>, DimError> {
    Ok(buffer.into_vec())
}
