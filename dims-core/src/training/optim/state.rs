//! What optimizers keep between steps.

use super::Schedule;
use super::update::{copied, is_any};
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Walk, is_learned};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::scalar::Element;

/// What an optimizer keeps between steps: their number, and moments, each of which has a tensor for every parameter.
#[derive(Clone, Debug)]
pub struct State<P> {
    pub(super) steps: u64,
    pub(super) moments: Vec<P>,
    pub(super) schedule: Schedule,
    pub(super) frozen: Vec<String>,
}

impl<P: Parameters> State<P> {
    pub(super) fn new(schedule: Schedule) -> Self {
        State { steps: 0, moments: Vec::new(), schedule, frozen: Vec::new() }
    }

    /// How many steps were taken.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The moments; none before the first step.
    pub fn moments(&self) -> &[P] {
        &self.moments
    }

    /// The moments, which are zero before the first step.
    pub(super) fn moments_for<const K: usize>(&mut self, parameters: &P) -> Result<&mut [P; K], DimError> {
        while self.moments.len() < K {
            let mut zeros = MomentZeros { frozen: &self.frozen };
            self.moments.push(P::walk([parameters], &mut Path::new(), &mut zeros)?);
        }
        Ok(self.moments.first_chunk_mut().expect("there are as many now"))
    }

    /// Goes on with other moments, after `steps` steps.
    pub fn restore(&mut self, steps: u64, moments: Vec<P>) {
        self.steps = steps;
        self.moments = moments;
    }

    pub(super) fn freeze(&mut self, name: &str) {
        if !self.frozen.iter().any(|frozen| frozen == name) {
            self.frozen.push(name.to_owned());
        }
    }

    pub(super) fn unfreeze(&mut self, name: &str) {
        self.frozen.retain(|frozen| frozen != name);
    }
}

/// A zero for each element that changes. Other tensors have one zero for all elements.
struct MomentZeros<'f> {
    frozen: &'f [String],
}

impl Walk<1> for MomentZeros<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let (mut named, mut positional) = (*tensor.expr.named(), *tensor.expr.positional());
        for axis in named.as_mut_slice().iter_mut().chain(positional.as_mut_slice()) {
            axis.stride = 0;
        }
        let zero = Evaluated::strided(vec![T::default()], 0, named, positional, None);
        let zero = Named::from_expr(zero);
        if is_learned::<T>() && !is_any(self.frozen, path) { copied(tensor, &zero) } else { Ok(zero) }
    }
}
