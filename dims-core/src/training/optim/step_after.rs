//! A step of an optimizer, after a number of earlier steps.

use super::State;
use super::groups::GroupSettings;
use super::scalars::{StepScalars, StepsTaken, formula_by_tensors};
use super::settings::{AT_LEAST_0, Decaying, at_least_0, error, is_at_least_0};
use super::update::{Compiled, ElementStep, OfStep};
use crate::error::DimError;
use crate::execute::reduce::Reductions;
use crate::grad::Parameters;
use crate::operators::elementwise::Elementwise;
use crate::tensors::named::Named;
use kernels::map::in_place::Passes;

pub(super) struct StepAfter<C, const K: usize> {
    /// The formula with the settings of the optimizer.
    optimizer: C,
    /// The formula with the settings of the current parameter.
    formula: C,
    settings: GroupSettings,
    after: TakenBefore,
    /// The scalars that were computed last, and the number of missed steps that they are for.
    last: Option<(u64, StepScalars<K>)>,
}

/// The learning rate of a step, and the number of steps before it.
enum TakenBefore {
    Numbers(f64, u64),
    /// As tensors, if they depend on inputs of a recorded function.
    Tensors(Named<f64, ()>, Named<u64, ()>),
}

impl<C: Decaying, const K: usize> StepAfter<C, K> {
    /// The next step of the optimizer of this name. Returns an error if a learning rate or a
    /// setting of a group is out of range. If the number of steps is recorded, the rates of all
    /// steps are checked.
    pub(super) fn new<P: Parameters>(name: &str, formula: C, state: &State<P>) -> Result<Self, DimError> {
        let (rate, after) = if state.steps.is_recorded() {
            (state.schedule.worst(), TakenBefore::Tensors(state.rate(), state.step_count().clone()))
        } else {
            let steps = state.steps.get();
            let rate = state.schedule.at(steps);
            (rate, TakenBefore::Numbers(rate, steps))
        };
        let is_recorded = matches!(after, TakenBefore::Tensors(..));
        if is_recorded && !is_at_least_0(rate) && state.schedule.begins_in_range() {
            let what =
                format!("`{name}` with a schedule that reaches the learning rate {rate}: {AT_LEAST_0}");
            return Err(error(what));
        }
        at_least_0(name, "learning rate", rate)?;
        let steps = if let TakenBefore::Numbers(_, steps) = after { Some(steps) } else { None };
        state.by_path.groups().check(name, steps)?;
        let settings = GroupSettings::default();
        Ok(StepAfter { optimizer: formula, formula, settings, after, last: None })
    }
}

impl<C: Compiled<K, M, N> + OfStep<K> + Decaying, const K: usize, const M: usize, const N: usize>
    ElementStep<K, M, N> for StepAfter<C, K>
{
    fn begin(&mut self, settings: &GroupSettings) {
        self.begin_parameter(settings);
    }

    fn passes(&self) -> &dyn Passes<K, M, N> {
        self.formula.passes()
    }

    fn scalars(&mut self, missed: Option<&StepsTaken>) -> StepScalars<K> {
        self.scalars_after(missed)
    }

    fn has_recorded_scalars(&self) -> bool {
        self.is_recorded()
    }
}

impl<C: OfStep<K> + Decaying, const K: usize> StepAfter<C, K> {
    pub(super) fn begin_parameter(&mut self, settings: &GroupSettings) {
        if *settings != self.settings {
            self.settings = *settings;
            self.formula = match settings.own_weight_decay() {
                Some(weight_decay) => self.optimizer.with_weight_decay(weight_decay),
                None => self.optimizer,
            };
            self.last = None;
        }
    }

    pub(super) fn scalars_after(&mut self, missed: Option<&StepsTaken>) -> StepScalars<K> {
        let missed = match (&self.after, missed) {
            (TakenBefore::Tensors(rate, steps), Some(missed)) if missed.is_recorded() => {
                let step = (steps - missed.tensor() + 1).eval();
                return StepScalars::Tensors(self.of_step_by_tensors(rate, steps, &step));
            }
            (_, missed) => missed.map_or(0, StepsTaken::get),
        };
        if let Some((last, scalars)) = &self.last
            && *last == missed
        {
            return scalars.clone();
        }
        let scalars = match &self.after {
            TakenBefore::Numbers(rate, steps) => {
                let step = steps.saturating_sub(missed).saturating_add(1);
                StepScalars::Numbers(self.formula.of_step(self.settings.rate_at(*rate, *steps), step as f64))
            }
            TakenBefore::Tensors(rate, steps) => {
                StepScalars::Tensors(self.of_step_by_tensors(rate, steps, &(steps + 1 - missed).eval()))
            }
        };
        self.last = Some((missed, scalars.clone()));
        scalars
    }
}

impl<C: OfStep<K>, const K: usize> StepAfter<C, K> {
    pub(super) fn formula(&self) -> &C {
        &self.formula
    }

    /// Whether the number of earlier steps depends on inputs of a recorded function.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.after, TakenBefore::Tensors(..))
    }

    /// The scalars for step number `step` of a parameter, after `steps` steps of the optimizer.
    fn of_step_by_tensors(
        &self,
        rate: &Named<f64, ()>,
        steps: &Named<u64, ()>,
        step: &Named<u64, ()>,
    ) -> [Named<f64, ()>; K] {
        let (rate, step) = (self.settings.rate_tensor(rate, steps), step.cast::<f64>().eval());
        formula_by_tensors([&rate, &step], |[rate, step]| self.formula.of_step(rate, step))
    }
}
