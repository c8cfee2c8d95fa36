//! Dropout.

#[cfg(feature = "std")]
use super::{Pulled, execute::execute_backward};
use super::{StepKind, StepOperands, StepResults};
use crate::error::Error;
use crate::machine::threads;
#[cfg(feature = "std")]
use crate::memory::buffer::Buffer;
use crate::random::{DrawNumbers, RandomStream, unit};
use crate::scalar::Real;
#[cfg(feature = "std")]
use crate::trace::{Field, Node, Part, StridedPlace};
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// Each element times `1 / (1 - p)`, or 0 with probability `p`. Operands: `count` elements, and the
/// seed if `seed` is `None`. Result: `count` elements.
///
/// Its derivative applies the same dropout to the cotangent.
#[derive(Clone, Debug)]
pub struct DropElements<T> {
    /// The number of elements.
    pub count: usize,
    /// The probability that an element becomes 0, from 0 to 1.
    pub p: f64,
    /// The seed, unless it is an operand.
    pub seed: Option<u64>,
    /// The position of each element's number in the seed's sequence.
    pub numbers: DrawNumbers,
    /// The type of the elements.
    pub element: PhantomData<T>,
}

impl<T: Real> StepKind for DropElements<T> {
    fn name(&self) -> &'static str {
        "dropout"
    }

    fn lines(&self) -> [usize; 2] {
        [1, self.count]
    }

    fn parallel(&self) -> usize {
        self.count
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        let DropElements { p, ref numbers, .. } = *self;
        let seed = self.seed.unwrap_or_else(|| operands.of::<u64>(1)[0]);
        // With `p = 1` nothing is kept, so the scale is never used.
        let scale = <T::Wide as num_traits::NumCast>::from(1.0 / (1.0 - p))
            .expect("an `f64` can be rounded to any float type");
        let mut data = operands.take::<T>(0);
        let each = data.len().div_ceil(threads).max(1);
        let parts: Vec<_> = data.chunks_mut(each).enumerate().collect();
        threads::each(parts, |(part, data)| {
            numbers.each(part * each, data, |value, at| {
                let is_dropped = unit(RandomStream::Dropout, seed, at) < p;
                *value = if is_dropped { num_traits::Zero::zero() } else { T::narrow(value.widen() * scale) };
            });
        });
        Ok(StepResults::one(data))
    }

    #[cfg(feature = "std")]
    fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
        let Some(node) = step.asked_operand(0) else { return Ok(Vec::new()) };
        let mut cotangent = Buffer::<T>::of_held(step.cotangent).expect("a cotangent has the result's type");
        let given = match self.seed {
            Some(_) => execute_backward(self, &mut [&mut cotangent], step.recorded),
            None => {
                let mut seed = step.operands[1].buffer::<u64>().expect("the second operand is the seed");
                execute_backward(self, &mut [&mut cotangent, &mut seed], step.recorded)
            }
        };
        let given = given?.next::<T>().held();
        let place = StridedPlace::strided(0, [1]);
        let field = Field::held(&[self.count], &given, place.clone());
        Ok(vec![(Arc::clone(node), Part { field, place })])
    }
}
