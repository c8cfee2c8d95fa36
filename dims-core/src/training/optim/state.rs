//! The state of optimizers.

use super::Schedule;
use super::by_path::{ByPath, MomentLayout, ParameterState};
use super::groups::{GroupSettings, Members, is_in};
use super::scalars::StepsTaken;
use super::unchanged::{FreezeCall, Unchanged};
use super::update::{ElementStep, WITH_GRADIENT, prepare, update};
use crate::error::DimError;
#[cfg(feature = "safetensors")]
use crate::expr::step::check_taken;
use crate::grad::Parameters;
use crate::tensors::named::Named;
use alloc::borrow::ToOwned;
#[cfg(feature = "safetensors")]
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

/// The state of an optimizer: the number of steps, and the moments and master weights of each
/// parameter, by name.
///
/// ```
/// use typed_dims::optim::{Adam, Optimizer};
/// use typed_dims::prelude::*;
///
/// dims! { struct In; struct Out; }
/// let mut layer = (ones::<f32, _>((In.of(2), Out.of(3))), zeros::<f32, _>(Out.of(3)));
/// let gradient = layer.map_elements(|_: f32| 0.5);
/// let mut optimizer = Adam::new(0.1);
/// optimizer.step(&mut layer, &gradient);
///
/// let weight = optimizer.state().parameter("0").expect("the first one of the tuple");
/// let mean: Tensor<f32, (In, Out)> = weight.moments()[0].tensor().expect("of these dims");
/// assert!((mean.order((In, Out))[[1, 2]] - 0.05).abs() < 1e-7);
/// ```
#[derive(Clone, Debug)]
pub struct State<P> {
    pub(super) steps: StepsTaken,
    pub(super) schedule: Schedule,
    pub(super) frozen: Vec<FreezeCall>,
    pub(super) by_path: ByPath,
    pub(super) marker: PhantomData<fn() -> P>,
}

impl<P: Parameters> State<P> {
    pub(super) fn new(schedule: Schedule) -> Self {
        State {
            steps: StepsTaken::default(),
            schedule,
            frozen: Vec::new(),
            by_path: ByPath::with_masters(),
            marker: PhantomData,
        }
    }

    /// The number of steps taken, read from [`step_count`](State::step_count).
    ///
    /// # Panics
    ///
    /// If the tensor depends on inputs of a recorded function.
    #[track_caller]
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The tensor that counts the steps taken.
    pub fn step_count(&self) -> &Named<u64, ()> {
        self.steps.tensor()
    }

    /// The schedule's learning rate for the next step, as a tensor computed from
    /// [`step_count`](State::step_count).
    pub fn rate(&self) -> Named<f64, ()> {
        self.schedule.rate(self.step_count())
    }

    /// The number of steps that a parameter has taken. Steps while it was frozen, or before it was
    /// added, do not count. For a name without a state, this is the number of steps of the
    /// optimizer, unless [`restore_steps_of`](State::restore_steps_of) has set another number.
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
    ///
    /// # Panics
    ///
    /// If the number of steps depends on inputs of a recorded function.
    #[track_caller]
    pub fn steps_of(&self, parameter: &str) -> u64 {
        self.steps().saturating_sub(self.by_path.missed(parameter))
    }

    /// The parameters that have taken fewer steps than the optimizer: names and numbers of steps.
    #[cfg(feature = "safetensors")]
    pub(crate) fn behind(&self) -> impl Iterator<Item = (String, u64)> {
        let behind = self.by_path.parameters().iter().filter(|parameter| parameter.missed() > 0);
        behind.map(|parameter| (parameter.name(), self.steps().saturating_sub(parameter.missed())))
    }

    /// Returns an error if a gradient or a recorded function traces a number of steps, a moment or
    /// master weights.
    #[cfg(feature = "safetensors")]
    pub(crate) fn check_taken(&self, operation: &'static str) -> Result<(), DimError> {
        let missed = self.parameters().iter().filter_map(|parameter| parameter.missed.as_ref());
        for count in core::iter::once(&self.steps).chain(missed) {
            check_taken(count.tensor().expr.all(), operation)?;
        }
        for parameter in self.parameters() {
            parameter.all_tensors().try_for_each(|tensor| tensor.check_taken(operation))?;
        }
        Ok(())
    }

    /// The state of each parameter. Empty before the first step and after
    /// [`restore`](State::restore), unless the optimizer was prepared or its state loaded.
    pub fn parameters(&self) -> &[ParameterState] {
        self.by_path.parameters()
    }

    /// The state of the parameter with this name, or `None` if it has no state yet.
    pub fn parameter(&self, name: &str) -> Option<&ParameterState> {
        self.by_path.parameters().iter().find(|parameter| parameter.is_named(name))
    }

    /// Whether the optimizer keeps master weights: see
    /// [`Optimizer::master_weights`](super::Optimizer::master_weights).
    pub fn has_master_weights(&self) -> bool {
        self.by_path.has_masters()
    }

    /// Sets the number of steps of the optimizer and of all parameters to `steps`, and the moments
    /// to 0. Master weights start again from the parameters.
    pub fn restore(&mut self, steps: u64) {
        self.restore_with(steps, ByPath::default());
    }

    /// Like [`restore`](State::restore), with the state of each parameter.
    pub(crate) fn restore_with(&mut self, steps: u64, by_path: ByPath) {
        self.steps = StepsTaken::new(steps);
        self.by_path.restore(by_path);
    }

    /// Sets the number of steps that a parameter has taken. The maximum is the number of steps of
    /// the optimizer.
    ///
    /// # Panics
    ///
    /// If the number of steps of the optimizer depends on inputs of a recorded function.
    #[track_caller]
    pub fn restore_steps_of(&mut self, parameter: &str, steps: u64) {
        self.by_path.set_missed(parameter, self.steps().saturating_sub(steps));
    }

    pub(super) fn prepare(&mut self, parameters: &P, moments: MomentLayout) -> Result<(), DimError> {
        let unchanged = Unchanged { frozen: self.frozen.clone() };
        prepare(&mut self.by_path, Some(&self.steps), parameters, moments, &unchanged)
    }

    /// Takes a step, which updates each parameter and its `M - 1` moments.
    pub(super) fn step<const K: usize, const M: usize>(
        &mut self,
        step: &mut dyn ElementStep<K, M, 1>,
        parameters: &mut P,
        gradient: &P,
    ) -> Result<(), DimError> {
        let unchanged = Unchanged { frozen: self.frozen.clone() };
        let kept = Some((&mut self.by_path, Some(&self.steps)));
        update(step, parameters, [gradient], WITH_GRADIENT, kept, &unchanged)?;
        self.count_step(&unchanged);
        Ok(())
    }

    /// Counts a step, which the frozen parameters have missed.
    pub(super) fn count_step(&mut self, unchanged: &Unchanged) {
        self.steps.add_one();
        self.by_path.miss(unchanged);
    }

    pub(super) fn group(&mut self, members: Members, settings: GroupSettings) {
        self.by_path.groups_mut().add(members, settings);
    }

    pub(super) fn freeze(&mut self, name: &str) {
        let mut last = self.frozen.iter().rev().take_while(|call| call.freezes);
        if !last.any(|call| call.name == name) {
            self.frozen.retain(|call| call.name != name);
            self.frozen.push(FreezeCall { name: name.to_owned(), freezes: true, must_match: true });
        }
    }

    pub(super) fn unfreeze(&mut self, name: &str) {
        // If this reverts a call, such as `freeze` with a misspelled name, it is no error if no
        // parameter matches.
        let mut must_match = true;
        self.frozen.retain(|call| {
            // `*.bias` also matches `bias`.
            let top = call.name.strip_prefix("*.");
            let is_kept = !is_in(name, &call.name) || top.is_some_and(|top| !is_in(name, top));
            must_match &= is_kept || !call.freezes && call.must_match;
            is_kept
        });
        if self.frozen.iter().any(|call| call.freezes) {
            self.frozen.push(FreezeCall { name: name.to_owned(), freezes: false, must_match });
        } else {
            self.frozen.clear();
        }
    }
}
