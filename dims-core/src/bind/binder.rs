//! What can stand for an axis in `at`.

use super::binding::Binding;
use crate::error::{DimError, OriginSuffix};
use crate::expr::index::{ComputedIndex, IndexExprs};
use crate::expr::{Affine, Expr};
use crate::plan::explain::names;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::dim::{DimRef, Each, UNSIZED};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::union::Sort;
use crate::types::set::{DimKey, Dims};
use crate::types::tuples::{each_tuple, nested};
use alloc::string::String;
use core::marker::PhantomData;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use kernels::load::gather::{IndexedAxis, computed_axis};
use kernels::memory::axes::Axis;
use kernels::scalar::IndexInt;
use ndarray::NewAxis;
use smallvec::SmallVec;

/// Leaves all axes that no other binder takes positional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ellipsis;

/// Takes an axis of size 1 away, as NumPy's `squeeze` does; another size is an error. (`0` picks the first element of any axis.)
///
/// ```
/// use typed_dims::prelude::*;
///
/// let a = ndarray::array![[1], [2], [3]];
/// dims!(i);
/// assert_eq!(a.at((i, UnitAxis)).order(i), ndarray::array![1, 2, 3]);
/// let error = a.try_at((UnitAxis, i)).map(|_| ()).unwrap_err().to_string();
/// assert!(error.starts_with("axis 0 has size 3, but `UnitAxis` takes an axis of size 1 (at "));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct UnitAxis;

/// What stands for one axis of an array in `at`:
///
/// | binder | effect |
/// |---|---|
/// | a dim `i`, `Batch` | the axis becomes the dim; a dim used twice takes the diagonal |
/// | `..` | the axis stays positional |
/// | [`Ellipsis`] | all axes that are left stay positional |
/// | `NewAxis` | none of the array's axes: a positional axis of size 1 is put in |
/// | [`UnitAxis`] | takes away an axis of size 1 |
/// | an integer `3`, `-1` | picks one element; a negative one counts from the end |
/// | a range `1..4` | the axis stays positional, cut to the range |
/// | a tuple `(h, w)` | splits the axis; the last dim is the fastest, and one may be without a size |
/// | [`Each((h, w))`](crate::types::dim::Each) | as `h, w`: one axis for each |
/// | an index expression `2 * i + 1` | a strided view; one dim may be without a size, and gets the greatest one that fits (a declared dim only if no other operand has a size for it, so that its elements are looked up one by one: `I.of(n)` makes it a view). A dim that is shorter than the axis reads a part of it: `i + 0` the first elements, where `i` alone is an error |
/// | a tensor of integers | selects by value; each value is checked when its element is read |
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be bound to an axis",
    label = "expected a dim, `..`, `Ellipsis`, an integer, a range, a tuple of dims, or a tensor of integers"
)]
pub trait Binder {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims that the binder introduces, sorted, as nested pairs.
    #[doc(hidden)]
    type Dims;
    /// What has been read of the array's axes after this binder, if `S` had been before it.
    #[doc(hidden)]
    type Reads<S: Reading>: Reading;
    /// Binds the next axis.
    #[doc(hidden)]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<IndicesOf<Self, S>, DimError>
    where
        Self: Sized;
}

/// The computed indices after a binder.
pub type IndicesOf<B, S> = <<B as Binder>::Reads<S> as Reading>::Indices;

/// What the binders so far have read of an array's axes, as a type.
pub trait Reading {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// How many axes they have taken, `Ellipsis` aside.
    type Taken: Rank;
    /// How many of those have stayed positional.
    type Left: Rank;
    /// How many times `Ellipsis` was among them.
    type Ellipses: Rank;
    /// The computed indices.
    type Indices: IndexExprs;
    /// One axis more has become a dim, or was picked from.
    type Goes: Reading<Indices = Self::Indices>;
    /// One axis more stays positional.
    type Stays: Reading<Indices = Self::Indices>;
    /// A positional axis comes that the array does not have.
    type Grows: Reading<Indices = Self::Indices>;
    /// there was an `Ellipsis`.
    type Skips: Reading<Indices = Self::Indices>;
    /// One axis more is selected from by the computed index `E`.
    type Computes<E: Expr<Elem: IndexInt>>: Reading<Indices = ComputedIndex<E, Self::Indices>>;
}

/// See [`Reading`].
pub struct Read<Taken, Left, Ellipses, Indices>(PhantomData<(Taken, Left, Ellipses, Indices)>);

/// Before the first binder.
pub type Unread = Read<Rank0, Rank0, Rank0, ()>;

impl<T: Rank, L: Rank, E: Rank, X: IndexExprs> Reading for Read<T, L, E, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Taken = T;
    type Left = L;
    type Ellipses = E;
    type Indices = X;
    type Goes = Read<T::Succ, L, E, X>;
    type Stays = Read<T::Succ, L::Succ, E, X>;
    type Grows = Read<T, L::Succ, E, X>;
    type Skips = Read<T, L, E::Succ, X>;
    type Computes<I: Expr<Elem: IndexInt>> = Read<T::Succ, L, E, ComputedIndex<I, X>>;
}

/// A binder that can stand alone: `a.at(i)`. A tuple cannot, because at the top it is the list of binders.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be bound to an axis",
    label = "expected a dim, `..`, `Ellipsis`, an integer, a range, a tuple of dims, or a tensor of integers"
)]
pub trait Single: Binder {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> Binder for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = (D::Brand, ());
    type Reads<S: Reading> = S::Goes;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<S::Indices, DimError> {
        let (axis, _) = binding.take();
        binding.bind(&self.info(), axis)?;
        Ok(indices)
    }
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> Single for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl Binder for RangeFull {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Reads<S: Reading> = S::Stays;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<S::Indices, DimError> {
        let (axis, _) = binding.take();
        binding.leave(axis);
        Ok(indices)
    }
}

impl Single for RangeFull {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl Binder for Ellipsis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Reads<S: Reading> = S::Skips;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<S::Indices, DimError> {
        for _ in 0..binding.rest {
            let (axis, _) = binding.take();
            binding.leave(axis);
        }
        Ok(indices)
    }
}

impl Single for Ellipsis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl Binder for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Reads<S: Reading> = S::Grows;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<S::Indices, DimError> {
        binding.leave(Axis::new(1, 0));
        Ok(indices)
    }
}

impl Single for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl Binder for UnitAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = ();
    type Reads<S: Reading> = S::Goes;

    #[inline]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<S::Indices, DimError> {
        let (axis, at) = binding.take();
        if axis.size != 1 {
            let (size, origin) = (axis.size, OriginSuffix(binding.origin));
            let what = format!("axis {at} has size {size}, but `UnitAxis` takes an axis of size 1{origin}");
            return Err(DimError::Shape { what });
        }
        Ok(indices)
    }
}

impl Single for UnitAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Integers with which one element or a range of an axis is picked; negative ones count from the end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a position",
    label = "expected an integer; a tensor of integers selects by `take`: `x.take(dim, ids)`"
)]
pub trait Position: Copy {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn to_i128(self) -> i128;
}

/// `position` counted from the start.
fn from_start(position: i128, size: usize) -> i128 {
    if position < 0 { position + size as i128 } else { position }
}

/// Cuts an axis to the elements from `start` to `end`, exclusive.
pub(crate) fn cut(
    axis: Axis,
    start: i128,
    end: i128,
    what: impl Fn() -> String,
) -> Result<(Axis, isize), DimError> {
    let (from, to) = (from_start(start, axis.size), from_start(end, axis.size));
    if from < 0 || to > axis.size as i128 || from > to {
        return Err(DimError::RangeOutOfBounds { what: what(), start, end, size: axis.size });
    }
    let (from, to) = (from as usize, to as usize);
    // (Where nothing is left, the start may lie farther behind than can be counted.)
    let offset = if from < to { from as isize * axis.stride } else { 0 };
    Ok((Axis::new(to - from, axis.stride), offset))
}

/// The position of one element of an axis.
pub(crate) fn pick(
    axis: Axis,
    index: i128,
    what: impl Fn() -> String,
    origin: crate::error::Origin,
) -> Result<isize, DimError> {
    let position = from_start(index, axis.size);
    if position < 0 || position >= axis.size as i128 {
        return Err(DimError::OutOfBounds { what: what(), index, size: axis.size, origin });
    }
    Ok(position as isize * axis.stride)
}

macro_rules! positions {
    ($($t:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Position for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn to_i128(self) -> i128 { self as i128 }
        }

        #[diagnostic::do_not_recommend]
        impl Binder for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = ();
            type Reads<S: Reading> = S::Goes;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn bind<S: Reading>(self, binding: &mut Binding<'_>, indices: S::Indices) -> Result<S::Indices, DimError> {
                let (axis, at) = binding.take();
                binding.offset += pick(axis, self as i128, || format!("axis {at}"), binding.origin)?;
                Ok(indices)
            }
        }

        impl Single for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
    )*};
}

positions!(i32 i64 isize usize u32 u64);

macro_rules! ranges {
    ($($range:ident |$r:ident, $size:ident| $start:expr, $end:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<P: Position> Binder for $range<P> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = ();
            type Reads<S: Reading> = S::Stays;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn bind<S: Reading>(self, binding: &mut Binding<'_>, indices: S::Indices) -> Result<S::Indices, DimError> {
                let (axis, at) = binding.take();
                let ($r, $size) = (self, axis.size as i128);
                let _ = $size;
                let (axis, offset) = cut(axis, $start, $end, || format!("axis {at}"))?;
                binding.offset += offset;
                binding.leave(axis);
                Ok(indices)
            }
        }

        impl<P: Position> Single for $range<P> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
    )*};
}

ranges! {
    Range |r, size| r.start.to_i128(), r.end.to_i128();
    RangeFrom |r, size| r.start.to_i128(), size;
    RangeTo |r, size| 0, r.end.to_i128();
    RangeInclusive |r, size| r.start().to_i128(), after(r.end().to_i128(), size);
    RangeToInclusive |r, size| 0, after(r.end.to_i128(), size);
}

/// The end behind an inclusive one; `-1` is the last element.
pub(crate) fn after(end: i128, size: i128) -> i128 {
    if end == -1 { size } else { end.saturating_add(1) }
}

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

/// Binds an axis to an index expression: by strides if it is affine and stays within the axis, else element by element.
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
        dim: None,
        names: || names(S::KEYS),
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

/// Where the values of an index lie.
pub(crate) enum IndexReach {
    /// All within the axis.
    Within,
    /// Elsewhere, or nobody knows yet. A declared dim may be without a size, and then have the greatest with which they lie within.
    Unknown { open: Option<(DimKey, usize)> },
}

/// Binds an axis to `offset + sum of coefficient x dim`. If not all its values are known to lie within the axis, the
/// dims are bound without a stride, and the index has to be computed and checked where it is read.
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
        // A declared dim without a size gets it from other operands, when all is run, or else the greatest that fits.
        let open = match declared[..] {
            [(dim, coefficient)] if open.is_none() => {
                values.room(axis, coefficient).map(|size| (dim.key(), size))
            }
            _ => None,
        };
        return Ok(IndexReach::Unknown { open });
    }
    if let Some((dim, coefficient)) = open {
        // The one dim without a size gets the greatest size with which the index stays within the axis.
        let size = match values.room(axis, coefficient) {
            Some(size) => size,
            None if coefficient == 0 => return Err(DimError::Unsized { dim: dim.name }),
            None => {
                let what = computed_axis(at, affine.terms.iter().map(|(dim, _)| dim.name));
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
        binding.offset += axis.stride * affine.offset;
    }
    Ok(if within { IndexReach::Within } else { IndexReach::Unknown { open: None } })
}

/// The values of an index: from the least to the greatest, or none if a dim of it is empty.
struct IndexValues {
    least: i128,
    greatest: i128,
    empty: bool,
}

impl IndexValues {
    fn constant(offset: isize) -> Self {
        IndexValues { least: offset as i128, greatest: offset as i128, empty: false }
    }

    /// The values with one more term, of a dim of this size.
    fn add(&mut self, coefficient: isize, size: usize) {
        self.empty |= size == 0;
        // A reach that `i128` cannot count lies outside of every axis, and so does one that saturates.
        let reach = (coefficient as i128).saturating_mul((size as i128 - 1).max(0));
        self.least = self.least.saturating_add(reach.min(0));
        self.greatest = self.greatest.saturating_add(reach.max(0));
    }

    fn are_within(&self, axis: Axis) -> bool {
        self.empty || (self.least >= 0 && self.greatest < axis.size as i128)
    }

    /// A value that is not within an axis, if not all are.
    fn outside(&self) -> i128 {
        if self.least < 0 { self.least } else { self.greatest }
    }

    /// The greatest size of a dim with which `coefficient` times its index, added to any of the values, stays within an axis. None if not even index 0 does, or every size does.
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

macro_rules! groups {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> Binder for ($($d,)*)
        where
            nested![$($d::Brand),*]: Sort,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = <nested![$($d::Brand),*] as Sort>::Out;
            type Reads<S: Reading> = S::Goes;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn bind<S: Reading>(self, binding: &mut Binding<'_>, indices: S::Indices) -> Result<S::Indices, DimError> {
                super::split::split(&[$(self.$n.info()),*], binding)?;
                Ok(indices)
            }
        }
    };
}

each_tuple!(groups);

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> Binder for Each<($($d,)*)>
        where
            nested![$($d::Brand),*]: Sort,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = <nested![$($d::Brand),*] as Sort>::Out;
            type Reads<S: Reading> = goes![S; $($d)*];

            #[cfg_attr(not(unoptimized), inline(always))]
            fn bind<S: Reading>(self, binding: &mut Binding<'_>, indices: S::Indices) -> Result<S::Indices, DimError> {
                $(
                    let (axis, _) = binding.take();
                    binding.bind(&self.0.$n.info(), axis)?;
                )*
                Ok(indices)
            }
        }
    };
}

/// One more axis has become a dim for each parameter.
macro_rules! goes {
    ($read:ty;) => { $read };
    ($read:ty; $head:ident $($tail:ident)*) => { goes![<$read as Reading>::Goes; $($tail)*] };
}

each_tuple!(lists);

impl<L> Single for Each<L>
where
    Each<L>: Binder,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
