//! Adaptive pooling: splits an axis into nearly equal parts, which can overlap, and reduces each
//! part to one row.

#[cfg(feature = "std")]
use super::{Pulled, moves::looked_up};
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::memory::allocate::reserve;
#[cfg(feature = "std")]
use crate::memory::buffer::Buffer;
#[cfg(feature = "std")]
use crate::ops::code::BinaryOpcode;
use crate::scalar::{Analytic, Element, Num, Ordered};
#[cfg(feature = "std")]
use crate::trace::{Field, Held, Node, Part, StridedPlace};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The split of each block of rows:
/// `part i = rows floor(i * size / len) .. ceil((i + 1) * size / len)`.
#[derive(Clone, Copy, Debug)]
pub struct PartSizes {
    /// The number of blocks.
    pub outer: usize,
    /// The number of rows of a block: at least one, if there are results.
    pub size: usize,
    /// The number of parts of a block.
    pub len: usize,
    /// The number of elements of a row.
    pub inner: usize,
}

/// The mean of each part. Operand: `outer` blocks of `size` rows of `inner` elements. Result:
/// `outer` blocks of `len` rows.
#[derive(Clone, Copy, Debug)]
pub struct MeanOfParts<T> {
    /// The parts.
    pub parts: PartSizes,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Analytic> StepKind for MeanOfParts<T> {
    fn name(&self) -> &'static str {
        "adaptive_avg_pool"
    }

    fn lines(&self) -> [usize; 2] {
        self.parts.lines()
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let data = operands.of::<T>(0);
        Ok(StepResults::one(self.parts.combined(data, T::widen, |a, b| a.add(b), T::mean_of)?))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let pairs = self.parts.pairs();
        let parts = pairs.chunk_by(|a, b| a.0 == b.0);
        let weights = parts.flat_map(|part| part.iter().map(|_| 1.0 / part.len() as f64));
        let weights = Buffer::from(weights.collect::<Vec<f64>>()).held();
        self.parts.pull(step, &pairs, &weights, &[1])
    }
}

/// The greatest element of each part. Operand and result: as for [`MeanOfParts`].
#[derive(Clone, Copy, Debug)]
pub struct MaxOfParts<T> {
    /// The parts.
    pub parts: PartSizes,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Ordered> StepKind for MaxOfParts<T> {
    fn name(&self) -> &'static str {
        "adaptive_max_pool"
    }

    fn lines(&self) -> [usize; 2] {
        self.parts.lines()
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, _: usize) -> Result<StepResults, Error> {
        let data = operands.of::<T>(0);
        let out = self.parts.combined(data, |value| value, T::maximum, |best, _| best)?;
        #[cfg(feature = "std")]
        if operands.keeps() {
            let shares = self.parts.shares_of_greatest(&self.parts.pairs(), data, &out);
            return Ok(StepResults::one(out).keeping(shares));
        }
        Ok(StepResults::one(out))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let shares = step.kept.expect("the step keeps shares");
        self.parts.pull(step, &self.parts.pairs(), shares, &[0, 1, 2])
    }
}

impl PartSizes {
    fn lines(&self) -> [usize; 2] {
        [self.outer, self.size * self.inner]
    }

    /// The first row of a part, and the row after its last.
    pub(super) fn bounds(&self, part: usize) -> (usize, usize) {
        let (len, size) = (self.len as u128, self.size as u128);
        let bound = |part: usize, up: u128| ((part as u128 * size + up) / len) as usize;
        (bound(part, 0), bound(part + 1, len - 1))
    }

    /// The number of rows of all parts together, or `None` if it overflows. The last row of a part
    /// is also the first of the next one, unless the parts meet between two rows.
    #[cfg(feature = "std")]
    pub(super) fn rows_of_all(&self) -> Option<usize> {
        if self.len == 0 {
            return Some(0);
        }
        let (mut met, mut rest) = (self.size, self.len);
        while rest != 0 {
            (met, rest) = (rest, met % rest);
        }
        // The greatest common divisor is the number of parts that end between two rows, or at the
        // end of the last row.
        self.size.checked_add(self.len - met)
    }

    fn combined<T: Element, W: Copy>(
        &self,
        data: &[T],
        widen: impl Fn(T) -> W,
        combine: impl Fn(W, W) -> W,
        finish: impl Fn(W, usize) -> T,
    ) -> Result<Vec<T>, Error> {
        let PartSizes { outer, size, len, inner } = *self;
        let total = outer * len * inner;
        let mut out = reserve(total)?;
        if total == 0 {
            return Ok(out);
        }
        let mut states: Vec<W> = Vec::with_capacity(inner);
        for block in data.chunks_exact(size * inner) {
            for part in 0..len {
                let (from, to) = self.bounds(part);
                states.clear();
                states.extend(block[from * inner..(from + 1) * inner].iter().map(|&value| widen(value)));
                for row in block[(from + 1) * inner..to * inner].chunks_exact(inner) {
                    for (state, &value) in states.iter_mut().zip(row) {
                        *state = combine(*state, widen(value));
                    }
                }
                out.extend(states.iter().map(|&state| finish(state, to - from)));
            }
        }
        Ok(out)
    }

    /// All pairs of a part and one of its rows.
    #[cfg(feature = "std")]
    fn pairs(&self) -> Vec<(usize, usize)> {
        let rows = |part: usize| {
            let (from, to) = self.bounds(part);
            (from..to).map(move |row| (part, row))
        };
        (0..self.len).flat_map(rows).collect()
    }

    /// The derivative. The loops are over blocks, pairs, and elements of a row. The weights vary
    /// along the loops `along`.
    #[cfg(feature = "std")]
    fn pull(
        &self,
        step: &Pulled<'_>,
        pairs: &[(usize, usize)],
        weights: &Arc<dyn Held>,
        along: &[usize],
    ) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let PartSizes { outer, size, len, inner } = *self;
        let sizes = [outer, pairs.len(), inner];
        let Some(held) = step.operands[0].memory().filter(|_| !sizes.contains(&0)) else {
            return Ok(Vec::new());
        };
        let weights = Field::held(&sizes, weights, StridedPlace::contiguous(&sizes, along));
        let place = |rows: usize, of: fn(&(usize, usize)) -> usize| looked_up(&sizes, rows, pairs, of);
        let field = Field::held(&sizes, held, place(size, |pair| pair.1));
        let field = field.map([&weights], |build, a, [b]| {
            let weight = build.cast_kind(build.kind(a), b);
            build.binary(BinaryOpcode::Mul, a, weight)
        });
        step.sum(&[Part { field, place: place(len, |pair| pair.0) }])
    }

    /// For each result and each element of its part: the share of the result's derivative that goes
    /// to the element. Equal maxima have equal shares.
    #[cfg(feature = "std")]
    fn shares_of_greatest<T: Ordered>(&self, pairs: &[(usize, usize)], x: &[T], y: &[T]) -> Vec<f64> {
        let PartSizes { outer, size, len, inner } = *self;
        let mut weights = Vec::with_capacity(outer * pairs.len() * inner);
        for block in 0..outer {
            let is_greatest = |(part, row): (usize, usize), at: usize| {
                x[(block * size + row) * inner + at] == y[(block * len + part) * inner + at]
            };
            for part in pairs.chunk_by(|a, b| a.0 == b.0) {
                let many: Vec<usize> =
                    (0..inner).map(|at| part.iter().filter(|&&pair| is_greatest(pair, at)).count()).collect();
                for &pair in part {
                    // A NaN result equals no element, so all its shares are NaN.
                    let share = |at: usize| match many[at] {
                        0 => f64::NAN,
                        many if is_greatest(pair, at) => 1.0 / many as f64,
                        _ => 0.0,
                    };
                    weights.extend((0..inner).map(share));
                }
            }
        }
        weights
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_parts_are_counted() {
        for (size, len) in (0..30).flat_map(|size| (0..30).map(move |len| (size, len))) {
            let parts = PartSizes { outer: 1, size, inner: 1, len };
            let rows = (0..len).map(|part| parts.bounds(part)).map(|(from, to)| to - from);
            assert_eq!(parts.rows_of_all(), Some(rows.sum()), "{len} parts of {size} rows");
        }
    }
}
