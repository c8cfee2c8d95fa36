//! Binders: what can be passed for an axis in `at`.

use super::binding::{Binding, axis_name};
use crate::error::{DimError, OriginSuffix, from_start};
use crate::expr::Expr;
use crate::expr::index::{ComputedIndex, IndexExprs};
use crate::types::dim::{DimRef, Each};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::distinct::{Canonical, SortOnce};
use crate::types::tuples::{each_tuple, nested};
use alloc::string::String;
use core::marker::PhantomData;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use kernels::memory::axes::Axis;
use kernels::scalar::IndexInt;
use ndarray::NewAxis;

/// Stands for all axes that no other binder takes, and leaves them positional (without dims).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ellipsis;

/// Removes an axis of size 1, like NumPy's `squeeze`; another size is an error.
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

/// An argument of `at`, for the axes of an array:
///
/// | binder | effect |
/// |---|---|
/// | a dim `i`, `Batch` | the axis becomes the dim; a dim used twice takes the diagonal |
/// | `..` | leaves the axis positional: it remains an axis without a dim |
/// | [`Ellipsis`] | leaves all remaining axes positional |
/// | `NewAxis` | inserts a positional axis of size 1; takes no axis of the array |
/// | [`UnitAxis`] | removes an axis of size 1 |
/// | an integer `3`, `-1` | picks one position, and removes the axis; a negative one counts from the end |
/// | a range `1..4` | slices the axis to the range, and leaves it positional |
/// | a tuple `(h, w)` | splits the axis, last dim innermost; one size may be unknown |
/// | [`Each((h, w))`](crate::types::dim::Each) | like `h, w`: takes one axis for each dim |
/// | an index expression `2 * i + 1` | a strided view, if all indices are within the axis; otherwise each index is checked when it is used |
/// | a tensor of integers | selects the elements at these positions; each is checked when it is used, and a negative one is an error |
///
/// One dim of an index expression may have no size; it gets the largest size for which all indices
/// are within the axis. If this dim is declared, it may get its size from another operand instead.
/// So its size is known only when the expression runs, and elements are looked up one by one; write
/// `I.of(n)` to get a view. In an index expression, a dim may be shorter than the axis: `i + 0`
/// reads the first elements, whereas `i` alone is an error.
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
    /// The state after this binder, if the state before it is `S`.
    #[doc(hidden)]
    type Reads<S: Reading>: Reading;
    #[doc(hidden)]
    fn bind<S: Reading>(
        self,
        binding: &mut Binding<'_>,
        indices: S::Indices,
    ) -> Result<IndicesOf<Self, S>, DimError>
    where
        Self: Sized;
}

/// The computed indices after the binder `B`, if the state before it is `S`.
pub type IndicesOf<B, S> = <<B as Binder>::Reads<S> as Reading>::Indices;

/// The state while binders are read one after another, as a type.
pub trait Reading {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of axes taken, without those of `Ellipsis`.
    type Taken: Rank;
    /// The number of positional axes, without those of `Ellipsis`.
    type Left: Rank;
    /// The number of `Ellipsis` binders.
    type Ellipses: Rank;
    /// The computed indices.
    type Indices: IndexExprs;
    /// The state after an axis that becomes dims or is removed.
    type Goes: Reading<Indices = Self::Indices>;
    /// The state after an axis that is left positional.
    type Stays: Reading<Indices = Self::Indices>;
    /// The state after a new positional axis.
    type Grows: Reading<Indices = Self::Indices>;
    /// The state after an `Ellipsis`.
    type Skips: Reading<Indices = Self::Indices>;
    /// The state after an axis that the computed index `E` selects from.
    type Computes<E: Expr<Elem: IndexInt>>: Reading<Indices = ComputedIndex<E, Self::Indices>>;
}

/// See [`Reading`].
pub struct Read<Taken, Left, Ellipses, Indices>(PhantomData<(Taken, Left, Ellipses, Indices)>);

/// The state before the first binder.
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

/// A binder that can be used without a tuple: `a.at(i)`. A tuple cannot, because `at` takes it as a
/// list of binders.
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
            let (name, size) = (axis_name(binding.dim, at), axis.size);
            let origin = OriginSuffix(binding.origin);
            let what = format!("{name} has size {size}, but `UnitAxis` takes an axis of size 1{origin}");
            return Err(DimError::Shape { what });
        }
        Ok(indices)
    }
}

impl Single for UnitAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// An integer that picks one element of an axis or is an end of a range. Negative integers count
/// from the end of the axis.
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

/// Slices an axis to the elements from `start` to `end`, exclusive.
#[inline]
pub(crate) fn cut(
    axis: Axis,
    start: i128,
    end: i128,
    what: &dyn Fn() -> String,
) -> Result<(Axis, isize), DimError> {
    let (from, to) = (from_start(start, axis.size), from_start(end, axis.size));
    if from < 0 || to > axis.size as i128 || from > to {
        return Err(DimError::RangeOutOfBounds { what: what(), start, end, size: axis.size });
    }
    let (from, to) = (from as usize, to as usize);
    #[cfg(feature = "std")]
    kernels::trace::note_range(from..to, axis.size, what);
    // (The product may wrap if another axis is empty, because strides can then have any value. An
    // empty range may start after the last element, so its offset is 0.)
    let offset = if from < to { (from as isize).wrapping_mul(axis.stride) } else { 0 };
    Ok((Axis::new(to - from, axis.stride), offset))
}

/// The offset of one element of an axis, in elements.
#[inline]
pub(crate) fn pick(
    axis: Axis,
    index: i128,
    what: &dyn Fn() -> String,
    origin: crate::error::Origin,
) -> Result<isize, DimError> {
    let position = from_start(index, axis.size);
    if position < 0 || position >= axis.size as i128 {
        return Err(DimError::OutOfBounds { what: what(), index, size: axis.size, origin });
    }
    #[cfg(feature = "std")]
    kernels::trace::note_range(position as usize..position as usize + 1, axis.size, what);
    // (As in `cut`, the product may wrap.)
    Ok((position as isize).wrapping_mul(axis.stride))
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
                let ((axis, at), dim) = (binding.take(), binding.dim);
                binding.offset += pick(axis, self as i128, &|| axis_name(dim, at), binding.origin)?;
                Ok(indices)
            }
        }

        impl Single for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
    )*};
}

positions!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

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
                let (axis, offset) = cut(axis, $start, $end, &|| format!("axis {at}"))?;
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

/// Converts an inclusive end of a range to an exclusive one. The inclusive end `-1` is the last
/// element.
pub(crate) fn after(end: i128, size: i128) -> i128 {
    if end == -1 { size } else { end.saturating_add(1) }
}

macro_rules! groups {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> Binder for ($($d,)*)
        where
            nested![$($d::Brand),*]: SortOnce,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = Canonical<nested![$($d::Brand),*]>;
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
            nested![$($d::Brand),*]: SortOnce,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Dims = Canonical<nested![$($d::Brand),*]>;
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

/// The state after each of the dims has taken one axis.
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
