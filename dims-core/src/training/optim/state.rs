//! What optimizers keep between steps.

use super::Schedule;
use super::update::{Unchanged, copied, is_any};
use crate::error::DimError;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, Walk, is_learned};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// What an optimizer keeps between steps: their number, and moments, each of which has a tensor for every parameter.
#[derive(Clone, Debug)]
pub struct State<P> {
    pub(super) steps: u64,
    /// How many of the steps a parameter was frozen for, by its name. Those that took all steps are not here.
    missed: BTreeMap<String, u64>,
    pub(super) moments: Vec<P>,
    pub(super) schedule: Schedule,
    pub(super) frozen: Vec<String>,
}

impl<P: Parameters> State<P> {
    pub(super) fn new(schedule: Schedule) -> Self {
        State { steps: 0, missed: BTreeMap::new(), moments: Vec::new(), schedule, frozen: Vec::new() }
    }

    /// How many steps were taken. (Where a file says that they are 2^64 - 1, they are not counted any further.)
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How many steps a parameter has taken: all but those for which it was frozen.
    ///
    /// ```
    /// use typed_dims::optim::{Adam, Optimizer};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feature; }
    /// let mut pair = (zeros::<f32, _>(Feature.of(2)), zeros::<f32, _>(Feature.of(2)));
    /// let gradient = (ones(Feature.of(2)), ones(Feature.of(2)));
    /// let mut optimizer = Adam::new(0.1);
    /// optimizer.freeze("1");
    /// optimizer.step(&mut pair, &gradient);
    /// assert_eq!((optimizer.state().steps_of("0"), optimizer.state().steps_of("1")), (1, 0));
    /// ```
    pub fn steps_of(&self, parameter: &str) -> u64 {
        self.steps.saturating_sub(self.missed.get(parameter).copied().unwrap_or(0))
    }

    /// The names and the steps of the parameters that have taken fewer steps than the optimizer.
    #[cfg(feature = "safetensors")]
    pub(crate) fn behind(&self) -> impl Iterator<Item = (&str, u64)> {
        self.missed.keys().map(|name| (name.as_str(), self.steps_of(name)))
    }

    /// The moments; none before the first step. Of a tensor that never takes a step they are zeros.
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

    /// Goes on with other moments, after `steps` steps, which all parameters have taken.
    pub fn restore(&mut self, steps: u64, moments: Vec<P>) {
        self.steps = steps;
        self.missed = BTreeMap::new();
        self.moments = moments;
    }

    /// Sets how many steps a parameter has taken. (More than the optimizer has taken are all of these.)
    pub fn restore_steps_of(&mut self, parameter: &str, steps: u64) {
        let missed = self.steps.saturating_sub(steps);
        if missed > 0 {
            self.missed.insert(parameter.to_owned(), missed);
        } else {
            self.missed.remove(parameter);
        }
    }

    /// The groups of parameters that the next step updates separately: one for each number of missed steps.
    pub(super) fn groups(&self) -> SmallVec<[u64; 4]> {
        let mut groups: SmallVec<[u64; 4]> =
            core::iter::once(0).chain(self.missed.values().copied()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// What stays as it is in a step, for one of the groups or for all.
    pub(super) fn unchanged(&self, group: Option<u64>) -> Unchanged {
        let missed = group.filter(|_| !self.missed.is_empty()).map(|group| (self.missed.clone(), group));
        Unchanged { frozen: self.frozen.clone(), missed }
    }

    /// Counts a step of the parameters that are not frozen.
    pub(super) fn count(&mut self, parameters: &P) -> Result<(), DimError> {
        self.steps = self.steps.saturating_add(1);
        if self.frozen.is_empty() {
            return Ok(());
        }
        P::visit(
            [],
            [parameters],
            &mut Path::new(),
            &mut SkippedSteps { frozen: &self.frozen, missed: &mut self.missed },
        )
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

/// Counts a step that frozen parameters do not take.
struct SkippedSteps<'s> {
    frozen: &'s [String],
    missed: &'s mut BTreeMap<String, u64>,
}

impl Visitor<0, 1> for SkippedSteps<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        _: [&mut Named<T, S, R>; 0],
        _: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if is_learned::<T>() && is_any(self.frozen, path) {
            let missed = self.missed.entry(path.to_string()).or_default();
            *missed = missed.saturating_add(1);
        }
        Ok(())
    }
}
