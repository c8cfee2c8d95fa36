//! Stochastic gradient descent.

use super::settings::{at_least_0, error};
use super::update::{OfStep, StepAfter, StepPrograms, compiled};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};
use kernels::program::code::DType;

/// Gradient descent, with momentum if it is given one: `velocity = momentum * velocity + g`, then `p -= rate * velocity`, where `g` is the gradient.
///
/// With [`nesterov`](Sgd::nesterov) the step is `p -= rate * (g + momentum * velocity)`; with [`weight_decay`](Sgd::weight_decay) `weight_decay * p` is added to `g` first. This is `torch.optim.SGD`.
///
/// ```
/// use typed_dims::optim::Sgd;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (ones::<f32, _>(Feature.of(2)), full(Feature.of(2), 0.5));
/// let mut optimizer = Sgd::new(0.1).momentum(0.9);
/// optimizer.step(&mut w, &gradient); // by 0.1 * 0.5
/// optimizer.step(&mut w, &gradient); // by 0.1 * (0.9 * 0.5 + 0.5)
/// assert!((w.order(Feature)[0] - 0.855).abs() < 1e-6);
/// ```
#[derive(Clone, Debug)]
pub struct Sgd<P> {
    pub(super) state: State<P>,
    pub(super) momentum: f64,
    pub(super) nesterov: bool,
    pub(super) weight_decay: f64,
}

impl<P> Sgd<P> {
    /// Descent with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the line
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Sgd { state: State::new(rate.into()), momentum: 0.0, nesterov: false, weight_decay: 0.0 }
    }

    /// Which share of the velocity stays at each step: 0 or more, and 0 unless it is set.
    #[must_use]
    pub fn momentum(self, momentum: f64) -> Self {
        Sgd { momentum, ..self }
    }

    /// Looks ahead along the velocity, after Nesterov. A step without [`momentum`](Sgd::momentum) is an error then.
    #[must_use]
    pub fn nesterov(self) -> Self {
        Sgd { nesterov: true, ..self }
    }

    /// The share of each parameter that is added to its gradient: 0 or more, and 0 unless it is set.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Sgd { weight_decay, ..self }
    }
}

impl<P> Sgd<P> {
    fn formula(&self) -> Descent {
        let Sgd { momentum, nesterov, weight_decay, .. } = *self;
        Descent { momentum, nesterov, weight_decay }
    }
}

impl<P: Parameters> Optimizer<P> for Sgd<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        let Sgd { momentum, nesterov, weight_decay, .. } = *self;
        at_least_0("Sgd", "momentum", momentum)?;
        at_least_0("Sgd", "weight decay", weight_decay)?;
        if nesterov && momentum == 0.0 {
            return Err(error("`Sgd` with `nesterov` has no momentum: set `momentum` to more than 0".into()));
        }
        let mut step = StepAfter::new("Sgd", self.formula(), &self.state)?;
        if momentum == 0.0 {
            self.state.step::<1, 1>(&mut step, parameters, gradient)
        } else {
            self.state.step::<1, 2>(&mut step, parameters, gradient)
        }
    }

    fn programs(&self, elements: DType) -> Option<StepPrograms> {
        let formula = self.formula();
        Some(match self.momentum == 0.0 {
            true => StepPrograms::of::<_, 1, 1, 1>(&formula, elements),
            false => StepPrograms::of::<_, 1, 2, 1>(&formula, elements),
        })
    }

    with_state!("Sgd", |sgd| if sgd.momentum == 0.0 { &[] } else { &["velocity"] });
}

#[derive(Clone, Copy)]
struct Descent {
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
}

compiled! { Descent: 1 1 1; Descent: 1 2 1; }

impl OfStep<1> for Descent {
    fn of_step<Q: Quantity>(&self, rate: Q, _: Q) -> [Q; 1] {
        [rate]
    }
}

impl Formula<1, 1, 1> for Descent {
    const NAME: &'static str = "sgd";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p]: [Q; 1], [g]: [Q; 1]) -> [Q; 1] {
        [p - rate * (g + p.constant(self.weight_decay) * p)]
    }
}

impl Formula<1, 2, 1> for Descent {
    const NAME: &'static str = "sgd with momentum";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, velocity]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let momentum = p.constant(self.momentum);
        let g = g + p.constant(self.weight_decay) * p;
        let velocity = momentum * velocity + g;
        let step = if self.nesterov { g + momentum * velocity } else { velocity };
        [p - rate * step, velocity]
    }
}
