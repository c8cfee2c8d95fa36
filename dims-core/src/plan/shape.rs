//! The sizes of the loop axes, unified over all operands of an expression.

use crate::error::{DimError, Origin, list_sizes};
use crate::types::brand::DimInfo;
use crate::types::dim::{DimList, UNSIZED};
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::String;
use alloc::vec::Vec;
use kernels::memory::axes::Axis;
use smallvec::SmallVec;

/// The number of elements of an array with these sizes. `None` if this number overflows, or if the
/// elements, of `bytes` bytes each, take more than `isize::MAX` bytes.
///
/// As in ndarray, sizes of 0 are skipped in the overflow check, so that strides and products of
/// some of the sizes do not overflow, even if there are no elements.
#[inline]
pub fn volume(sizes: impl Iterator<Item = usize>, bytes: usize) -> Option<usize> {
    let mut volume: usize = 1;
    let mut empty = false;
    for size in sizes {
        match size {
            0 => empty = true,
            size => volume = volume.checked_mul(size)?,
        }
    }
    let fits = volume.checked_mul(bytes.max(1))? <= isize::MAX as usize;
    fits.then_some(if empty { 0 } else { volume })
}

/// A `Shape` with at most this number of axes needs no allocation.
const INLINE: usize = 8;

/// The sizes of the loop axes, and where those of the dims came from.
pub struct Shape {
    keys: &'static Keys,
    /// Sizes of the dims, then of the positional axes.
    sizes: SmallVec<[usize; INLINE]>,
    /// Origins of the dims' sizes.
    origins: SmallVec<[Origin; INLINE]>,
    /// Positions of dims, and the smallest size that is [proposed](Shape::propose) for each.
    proposed: SmallVec<[(usize, usize); 2]>,
}

impl Shape {
    /// Loop axes for the dims `U`, of unknown sizes, and for the positional axes `R`, of size 1.
    #[inline]
    pub fn new<U: Dims, R: Rank>() -> Self {
        Shape::of_keys(U::KEYS, R::N)
    }

    /// Loop axes for dims with these keys, of unknown sizes, and for `positional` positional axes,
    /// of size 1.
    #[inline]
    pub fn of_keys(keys: &'static Keys, positional: usize) -> Self {
        let named = keys.as_slice().len();
        let axes = named + positional;
        if axes > INLINE {
            let mut sizes = SmallVec::from_elem(UNSIZED, named);
            sizes.resize(axes, 1);
            let origins = SmallVec::from_elem(None, named);
            return Shape { keys, sizes, origins, proposed: SmallVec::new() };
        }
        let mut sizes = [1; INLINE];
        sizes[..named].fill(UNSIZED);
        let sizes = SmallVec::from_buf_and_len(sizes, axes);
        let origins = SmallVec::from_buf_and_len([None; INLINE], named);
        Shape { keys, sizes, origins, proposed: SmallVec::new() }
    }

    /// Loop axes for the dims `U`, with unknown sizes, and for positional axes of these sizes.
    #[inline]
    pub fn of_axes<U: Dims>(positional: &[usize]) -> Self {
        let mut shape = Shape::of_keys(U::KEYS, positional.len());
        shape.set_positional(positional);
        shape
    }

    fn set_positional(&mut self, sizes: &[usize]) {
        let named = self.named_len();
        self.sizes[named..].copy_from_slice(sizes);
    }

    /// Unifies the size of the `at`th dim with an operand's.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn unify(&mut self, at: usize, size: usize, origin: Origin) -> Result<(), DimError> {
        let first = self.sizes[at];
        if first == size || size == UNSIZED {
            return Ok(());
        }
        let fixed = self.keys.as_slice()[at].fixed;
        if first != UNSIZED || fixed.is_some_and(|fixed| fixed != size) {
            return Err(self.conflict(at, size, origin));
        }
        self.sizes[at] = size;
        self.origins[at] = origin;
        Ok(())
    }

    #[cold]
    fn conflict(&self, at: usize, second: usize, second_origin: Origin) -> DimError {
        let key = &self.keys.as_slice()[at];
        if let (Some(fixed), UNSIZED) = (key.fixed, self.sizes[at]) {
            return DimError::StaticSize { dim: key.name, fixed, found: second, origin: second_origin };
        }
        DimError::SizeConflict {
            dim: key.name,
            first: self.sizes[at],
            first_origin: self.origins[at],
            second,
            second_origin,
        }
    }

    /// Unifies the size of a positional axis with an operand's. `from_right` is the number of the
    /// axis, counted from the last one, which is 0. Size 1 broadcasts.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn unify_positional(&mut self, from_right: usize, size: usize) -> Result<(), DimError> {
        // An operand's type fixes its number of positional axes, and the loops have at least as
        // many. Sizes of dims come before those of positional axes, so an index beyond the
        // positional axes would hit a dim.
        let loops = self.sizes.len() - self.named_len();
        assert!(from_right < loops, "an operand has more positional axes than its type says");
        let at = self.sizes.len() - 1 - from_right;
        let first = &mut self.sizes[at];
        if *first == 1 {
            *first = size;
        } else if size != 1 && *first != size {
            return Err(DimError::Broadcast { axis: from_right, first: *first, second: size });
        }
        Ok(())
    }

    /// Proposes a size for the `at`th dim, which [`finish`](Shape::finish) uses if the dim has no
    /// other. The smallest proposal for a dim or one of its primes wins.
    pub fn propose(&mut self, at: usize, size: usize) {
        match self.proposed.iter_mut().find(|own| own.0 == at) {
            Some((_, least)) => *least = size.min(*least),
            None => self.proposed.push((at, size)),
        }
    }

    /// Positions of dims, and the smallest size that is [proposed](Shape::propose) for each.
    pub fn proposed(&self) -> &[(usize, usize)] {
        &self.proposed
    }

    /// Gives each dim without a size the size of its prime or of the dim that it is a prime of, its
    /// static size, or the smallest size proposed for one of these dims. An error if a dim has none
    /// of these, or if a dim and its prime have different sizes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn finish(&mut self) -> Result<(), DimError> {
        if self.keys.has_primes() {
            self.unify_primes()?;
        }
        if self.sizes.contains(&UNSIZED) { self.set_unsized() } else { Ok(()) }
    }

    /// Checks that dims and their primes have the same size. If only some of them have one, gives
    /// it to the others.
    pub(crate) fn unify_primes(&mut self) -> Result<(), DimError> {
        self.keys.check_primes(|at| self.known(at))?;
        for at in 0..self.named_len() {
            if self.sizes[at] == UNSIZED
                && let Some(kin) = self.keys.kin_of(at).find(|&kin| self.sizes[kin] != UNSIZED)
            {
                (self.sizes[at], self.origins[at]) = self.known(kin);
            }
        }
        Ok(())
    }

    fn set_unsized(&mut self) -> Result<(), DimError> {
        let keys = self.keys.as_slice();
        for (key, size) in keys.iter().zip(&mut self.sizes) {
            if *size == UNSIZED {
                let of_kin = self.proposed.iter().filter(|own| keys[own.0].is_kin(key));
                let proposed = || of_kin.map(|own| own.1).min();
                *size = key.fixed.or_else(proposed).ok_or(DimError::Unsized { dim: key.name })?;
            }
        }
        Ok(())
    }

    /// The number of dims; the positional axes follow them.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn named_len(&self) -> usize {
        self.origins.len()
    }

    /// The keys of the dims.
    pub fn keys(&self) -> &'static Keys {
        self.keys
    }

    /// The sizes of all loop axes: the dims, then the positional axes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The position of the dim with this key, if it is one of the loop axes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn position(&self, key: &DimKey) -> Option<usize> {
        self.keys.position(key)
    }

    /// The size of the `at`th loop axis.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn size(&self, at: usize) -> usize {
        self.sizes[at]
    }

    /// The size of the `at`th dim, or [`UNSIZED`], and where it came from.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn known(&self, at: usize) -> (usize, Origin) {
        (self.sizes[at], self.origins[at])
    }

    /// Checks that the size given with a dim, as in `Batch.of(2)`, is the dim's size here.
    pub fn check_given(&self, dim: &DimInfo<'_>) -> Result<(), DimError> {
        match (dim.given, self.position(&dim.key())) {
            (Some((second, second_origin)), Some(at)) if self.sizes[at] != second => {
                let (first, first_origin) = self.known(at);
                Err(DimError::SizeConflict { dim: dim.name, first, first_origin, second, second_origin })
            }
            _ => Ok(()),
        }
    }

    /// [`check_given`](Shape::check_given) for each dim of a list.
    pub fn check_all_given(&self, dims: &impl DimList) -> Result<(), DimError> {
        let mut result = Ok(());
        dims.each(|dim| {
            if result.is_ok() {
                result = self.check_given(&dim);
            }
        });
        result
    }

    /// The sizes of the positional axes.
    #[cfg_attr(not(debug_assertions), inline)]
    pub fn positional(&self) -> &[usize] {
        &self.sizes[self.named_len()..]
    }

    /// The chosen loop axes with their sizes, for messages.
    pub fn describe(&self, axes: &[usize]) -> String {
        let sizes = &self.sizes;
        let names = self.keys.as_slice();
        list_sizes(
            axes.iter().map(|&at| (names.get(at).map_or("positional axis", |key| key.name), sizes[at])),
        )
    }

    /// All loop axes, in order.
    pub fn all_axes(&self) -> SmallVec<[usize; INLINE]> {
        (0..self.sizes.len()).collect()
    }

    /// The product of the sizes of some axes: a number of elements. An error if this number, or the
    /// size of the elements in bytes, overflows: see [`volume`].
    pub fn volume(&self, axes: &[usize], bytes: usize) -> Result<usize, DimError> {
        let sizes = self.sizes();
        volume(axes.iter().map(|&at| sizes[at]), bytes)
            .ok_or_else(|| DimError::TooLarge { dims: self.describe(axes) })
    }

    /// The sizes of these axes, in this order.
    pub fn sizes_in(&self, order: &[usize]) -> SmallVec<[usize; INLINE]> {
        order.iter().map(|&axis| self.size(axis)).collect()
    }

    /// Makes a [`TooLarge`](DimError::TooLarge) error show the sizes of the result, whose axes are
    /// `kept`.
    #[cold]
    pub fn name_dims(&self, error: DimError, kept: &[usize]) -> DimError {
        match error {
            DimError::TooLarge { .. } => DimError::TooLarge { dims: self.describe(kept) },
            error => error,
        }
    }
}

/// The error for a result that does not fit into an array.
#[cold]
pub fn misfit(axes: &[Axis], order: &[usize], shape: &Shape) -> DimError {
    let found: Vec<_> = axes.iter().map(|axis| axis.size).collect();
    let fit = if order.len() == 1 { "does not fit" } else { "do not fit" };
    let what = format!("{} {fit} into an array of shape {found:?}", shape.describe(order));
    DimError::Shape { what }
}
