//! The state of one `at` while its binders are read.

use super::source::Axes;
use crate::brand::DimInfo;
use crate::dim::UNSIZED;
use crate::error::{DimError, Origin};
use crate::set::{DimKey, Dims};
use crate::storage::axes::{Axis, AxisBlock};
use smallvec::SmallVec;

/// What the binders read so far have made of the source's axes.
pub struct Binding {
    axes: Axes,
    next: usize,
    /// How many axes `Ellipsis` stands for.
    pub rest: usize,
    /// How far the first element has moved.
    pub offset: isize,
    /// Where `at` was called.
    pub origin: Origin,
    named: SmallVec<[(DimKey, Axis); 8]>,
    positional: SmallVec<[Axis; 4]>,
}

impl Binding {
    /// Nothing read yet.
    #[inline(always)]
    pub fn new(axes: Axes, rest: usize, origin: Origin) -> Self {
        Binding {
            axes,
            next: 0,
            rest,
            offset: 0,
            origin,
            named: SmallVec::new(),
            positional: SmallVec::new(),
        }
    }

    /// The next axis of the source, and its number.
    #[inline(always)]
    pub fn take(&mut self) -> (Axis, usize) {
        let at = self.next;
        self.next += 1;
        (self.axes[at], at)
    }

    /// An axis stays positional.
    #[inline(always)]
    pub fn leave(&mut self, axis: Axis) {
        self.positional.push(axis);
    }

    /// An axis becomes a dim. A dim that is bound twice moves along both axes at once: the diagonal.
    #[inline(always)]
    pub fn bind(&mut self, dim: &DimInfo<'_>, axis: Axis) -> Result<(), DimError> {
        dim.meet(axis.size, self.origin)?;
        self.name(dim.key(), axis)
    }

    /// As [`bind`](Binding::bind), for a dim whose size has been looked at.
    #[inline(always)]
    pub fn name(&mut self, key: DimKey, axis: Axis) -> Result<(), DimError> {
        match self.named.iter_mut().find(|(own, _)| own.same(&key)) {
            None => self.named.push((key, axis)),
            Some((_, own)) => {
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
                own.stride += axis.stride;
            }
        }
        Ok(())
    }

    /// The axes of the dims `S`, which are those that were named, and the positional axes.
    #[inline(always)]
    pub fn finish<S: Dims, R: AxisBlock>(self) -> (S::Axes, R) {
        let mut named = S::Axes::filled(Axis::new(UNSIZED, 0));
        for (own, key) in named.as_mut_slice().iter_mut().zip(S::KEYS.as_slice()) {
            if let Some((_, axis)) = self.named.iter().find(|(other, _)| other.same(key)) {
                *own = *axis;
            }
        }
        let mut positional = R::filled(Axis::default());
        positional.as_mut_slice().copy_from_slice(&self.positional);
        (named, positional)
    }

    /// The axes that the source's dims have already.
    #[inline(always)]
    pub fn carry<S: Dims>(&mut self, axes: &S::Axes) {
        self.named.extend(S::KEYS.as_slice().iter().copied().zip(axes.as_slice().iter().copied()));
    }
}
