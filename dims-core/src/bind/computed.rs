//! Computed indices as binders: tensors of integers, whose values are positions along the axis.

use super::binder::{Binder, Reading, Single};
use super::binding::Binding;
use crate::error::DimError;
use crate::expr::index::{ComputedIndex, IndexExprs};
use crate::expr::{Affine, Expr};
use crate::plan::explain::names;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::dim::UNSIZED;
use crate::types::rank::Rank0;
use crate::types::set::{DimKey, Dims};
use kernels::load::gather::{IndexedAxis, computed_axis};
use kernels::memory::axes::Axis;
use kernels::scalar::IndexInt;
use smallvec::SmallVec;

#[diagnostic::do_not_recommend]
impl<T: IndexInt, S: Dims, E: Expr<Elem = T>> Binder for Named<T, S, Rank0, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = S::List;
    type Reads<Q: Reading> = Q::Computes<E>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<Q: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: Q::Indices,
    ) -> Result<ComputedIndex<E, Q::Indices>, DimError> {
        computed::<S, E, Q::Indices>(self.expr, binding, indices)
    }
}

impl<T: IndexInt, S: Dims, E: Expr<Elem = T>> Single for Named<T, S, Rank0, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl<'a, T: IndexInt, S: Dims, E: Expr<Elem = T>> Binder for &'a Named<T, S, Rank0, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = S::List;
    type Reads<Q: Reading> = Q::Computes<&'a E>;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<Q: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: Q::Indices,
    ) -> Result<ComputedIndex<&'a E, Q::Indices>, DimError> {
        computed::<S, &'a E, Q::Indices>(&self.expr, binding, indices)
    }
}

impl<T: IndexInt, S: Dims, E: Expr<Elem = T>> Single for &Named<T, S, Rank0, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Binds an axis to an index expression: by strides if it is affine and stays within the axis,
/// otherwise element by element.
#[inline]
fn computed<S: Dims, E: Expr, X: IndexExprs>(
    index: E,
    binding: &mut Binding<'_>,
    rest: X,
) -> Result<ComputedIndex<E, X>, DimError> {
    let (axis, at) = binding.take();
    let target = IndexedAxis {
        stride: axis.stride,
        size: axis.size,
        axis: at,
        dim: binding.dim,
        names: || names(S::KEYS),
        is_label: false,
        origin: binding.origin,
    };
    let (active, open) = match index.affine() {
        Some(affine) => match bind_affine(&affine, axis, at, binding)? {
            IndexReach::Within => (false, None),
            IndexReach::Unknown { open } => (true, open),
        },
        None => {
            let mut shape = Shape::new::<S, Rank0>();
            index.unify::<S, Rank0>(&mut shape)?;
            for (key, &size) in S::KEYS.as_slice().iter().zip(shape.sizes()) {
                binding.name(*key, Axis::new(size, 0))?;
            }
            (true, None)
        }
    };
    Ok(ComputedIndex { index, active, target, dims: S::KEYS.as_slice(), open, rest })
}

/// Whether the values of an index are within the axis.
pub(crate) enum IndexReach {
    /// All are within the axis.
    Within,
    /// Some may be outside, or a dim lacks a size. If only one dim lacks a size, and that dim is
    /// declared, `open` is the dim and the largest size for which all values are within the axis,
    /// if such a size exists.
    Unknown { open: Option<(DimKey, usize)> },
}

/// Binds an axis to `offset + sum of coefficient x dim`. If not all values are known to be within
/// the axis, the dims are bound without a stride, and the index is computed and checked when it is
/// read.
pub(crate) fn bind_affine(
    affine: &Affine<'_>,
    axis: Axis,
    at: usize,
    binding: &mut Binding<'_>,
) -> Result<IndexReach, DimError> {
    let mut values = IndexValues::constant(affine.offset);
    let mut open = None;
    let mut declared: SmallVec<[_; 2]> = SmallVec::new();
    for (dim, coefficient) in &affine.terms {
        match dim.size() {
            Some(size) => values.add(*coefficient, size),
            None if dim.cell.is_some() => {
                if let Some((other, _)) = open.replace((dim, *coefficient)) {
                    return Err(DimError::Unsized { dim: other.name });
                }
            }
            None => declared.push((dim, *coefficient)),
        }
    }
    if !declared.is_empty() {
        for (dim, _) in &affine.terms {
            binding.name(dim.key(), Axis::new(dim.size().unwrap_or(UNSIZED), 0))?;
        }
        // Another operand may give a declared dim its size when the expression runs. Otherwise, a
        // single dim without a size gets the largest that fits.
        let open = match declared[..] {
            [(dim, coefficient)] if open.is_none() => {
                values.room(axis, coefficient).map(|size| (dim.key(), size))
            }
            _ => None,
        };
        return Ok(IndexReach::Unknown { open });
    }
    if let Some((dim, coefficient)) = open {
        let size = match values.room(axis, coefficient) {
            Some(size) => size,
            None if coefficient == 0 => return Err(DimError::Unsized { dim: dim.name }),
            None => {
                let names = affine.terms.iter().map(|(dim, _)| dim.name);
                let what = computed_axis((binding.dim, at), names);
                let (index, size, origin) = (values.outside(), axis.size, binding.origin);
                return Err(DimError::OutOfBounds { what, index, size, origin });
            }
        };
        dim.unify(size, binding.origin)?;
        values.add(coefficient, size);
    }
    let within = values.are_within(axis);
    for (dim, coefficient) in &affine.terms {
        let stride = if within { axis.stride.wrapping_mul(*coefficient) } else { 0 };
        let size = dim.size().expect("every dim of the index has a size by now");
        dim.unify(size, binding.origin)?;
        binding.name(dim.key(), Axis::new(size, stride))?;
    }
    if within && !values.empty {
        #[cfg(feature = "std")]
        {
            let (range, dim) = (values.least as usize..values.greatest as usize + 1, binding.dim);
            kernels::trace::note_range(range, axis.size, &|| super::binding::axis_name(dim, at));
        }
        // (As in `cut`, the product may wrap.)
        binding.offset = binding.offset.wrapping_add(axis.stride.wrapping_mul(affine.offset));
    }
    Ok(if within { IndexReach::Within } else { IndexReach::Unknown { open: None } })
}

/// The range of the values of an index. If it is `empty`, one of the dims has size 0, so there are
/// no values.
struct IndexValues {
    least: i128,
    greatest: i128,
    empty: bool,
}

impl IndexValues {
    fn constant(offset: isize) -> Self {
        IndexValues { least: offset as i128, greatest: offset as i128, empty: false }
    }

    /// Adds a term for a dim of this size.
    fn add(&mut self, coefficient: isize, size: usize) {
        self.empty |= size == 0;
        // A range that overflows `i128` is not within any axis. Neither is the saturated range that
        // replaces it.
        let reach = (coefficient as i128).saturating_mul((size as i128 - 1).max(0));
        self.least = self.least.saturating_add(reach.min(0));
        self.greatest = self.greatest.saturating_add(reach.max(0));
    }

    fn are_within(&self, axis: Axis) -> bool {
        self.empty || (self.least >= 0 && self.greatest < axis.size as i128)
    }

    /// A value that is outside the axis, provided that some value is.
    fn outside(&self) -> i128 {
        if self.least < 0 { self.least } else { self.greatest }
    }

    /// The largest size of another dim for which all values stay within the axis when `coefficient`
    /// times the dim's index is added to them. The size is 0 if there are no values, or if the
    /// values leave the axis only at the end toward which the dim moves, by at most `|coefficient|`
    /// positions. `None` if they leave it in another way, or if there are values and `coefficient`
    /// is 0.
    fn room(&self, axis: Axis, coefficient: isize) -> Option<usize> {
        if self.empty {
            return Some(0);
        }
        if coefficient == 0 {
            return None;
        }
        let last = axis.size as i128 - 1;
        let (room, is_outside) = if coefficient > 0 {
            (last - self.greatest, self.least < 0)
        } else {
            (self.least, self.greatest > last)
        };
        let size = room.div_euclid(coefficient.unsigned_abs() as i128) + 1;
        if is_outside { None } else { usize::try_from(size).ok() }
    }
}
