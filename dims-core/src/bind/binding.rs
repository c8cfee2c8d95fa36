//! The state of one `at` while its binders are read.

use super::source::Axes;
use crate::error::{DimError, Origin};
use crate::storage::axes::AxisBlock;
use crate::types::brand::DimInfo;
use crate::types::dim::UNSIZED;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::String;
use kernels::load::gather::computed_axis;
use kernels::memory::axes::Axis;

/// The axes as bound by the binders read so far.
pub struct Binding<'b> {
    axes: Axes,
    next: usize,
    /// The number of axes that `Ellipsis` stands for.
    pub rest: usize,
    /// The offset of the first element.
    pub offset: isize,
    /// Where `at` was called.
    pub origin: Origin,
    /// The dim that `lookup` binds again, if any. The source then has one axis, and messages name
    /// the axis after this dim.
    pub dim: Option<&'static str>,
    /// The dims of the bound tensor; `named` has the axis of each dim bound so far.
    keys: &'static [DimKey],
    named: &'b mut [Axis],
    /// The positional axes; the first `left` are known.
    positional: &'b mut [Axis],
    left: usize,
}

impl<'b> Binding<'b> {
    /// The state before the first binder. Binders write into `named`, one axis for each dim of `S`,
    /// and into `positional`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new<S: Dims>(
        axes: Axes,
        rest: usize,
        origin: Origin,
        named: &'b mut S::Axes,
        positional: &'b mut [Axis],
    ) -> Self {
        let named = named.as_mut_slice();
        named.fill(Axis::new(UNSIZED, 0));
        Binding {
            axes,
            next: 0,
            rest,
            offset: 0,
            origin,
            dim: None,
            keys: S::KEYS.as_slice(),
            named,
            positional,
            left: 0,
        }
    }

    /// The next axis of the source, and its number.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn take(&mut self) -> (Axis, usize) {
        let at = self.next;
        self.next += 1;
        (self.axes[at], at)
    }

    /// Leaves an axis positional.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn leave(&mut self, axis: Axis) {
        self.positional[self.left] = axis;
        self.left += 1;
    }

    /// Binds an axis to a dim. A dim that is bound twice moves along both axes at once: the
    /// diagonal.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn bind(&mut self, dim: &DimInfo<'_>, axis: Axis) -> Result<(), DimError> {
        dim.unify(axis.size, self.origin)?;
        self.name(dim.key(), axis)
    }

    /// Like [`bind`](Binding::bind), but does not unify the size with the dim's own.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn name(&mut self, key: DimKey, axis: Axis) -> Result<(), DimError> {
        let at = self.keys.iter().position(|own| own.same(&key)).expect("the dim is one of the tensor's");
        let own = &mut self.named[at];
        if own.size == UNSIZED {
            own.size = axis.size;
        } else if axis.size != UNSIZED && own.size != axis.size {
            return Err(DimError::SizeConflict {
                dim: key.name,
                first: own.size,
                first_origin: self.origin,
                second: axis.size,
                second_origin: self.origin,
            });
        }
        own.stride = match own.stride.checked_add(axis.stride) {
            Some(stride) => stride,
            // Nothing moves along an axis of size 0 or 1, so its stride does not matter.
            None if own.size <= 1 => 0,
            None => return Err(too_far(&key, own.stride, axis.stride)),
        };
        Ok(())
    }

    /// Checks that dims and their primes have the same size. `keys` are the keys of the bound
    /// tensor.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn check_primes(&self, keys: &Keys) -> Result<(), DimError> {
        keys.check_primes(|at| (self.named[at].size, self.origin))
    }

    /// Adds the dims `S`, which the source already has, with their `axes`.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn carry<S: Dims>(&mut self, axes: &S::Axes) -> Result<(), DimError> {
        for (key, &axis) in S::KEYS.as_slice().iter().zip(axes.as_slice()) {
            self.name(*key, axis)?;
        }
        Ok(())
    }
}

/// The name of axis number `at` in messages. If `lookup` binds a dim again, `dim` is that dim, and
/// the axis is named after it.
#[cold]
pub(super) fn axis_name(dim: Option<&'static str>, at: usize) -> String {
    computed_axis((dim, at), core::iter::empty())
}

#[cold]
fn too_far(key: &DimKey, first: isize, second: isize) -> DimError {
    let what = format!(
        "dim `{}` moves along axes whose strides, {first} and {second}, have too large a sum",
        key.name
    );
    DimError::Shape { what }
}
