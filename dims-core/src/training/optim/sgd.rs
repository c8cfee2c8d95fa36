//! Stochastic gradient descent.

use super::settings::{at_least_0, error};
use super::update::{always, compiled, number};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::in_place::Formula;
use kernels::scalar::Real;

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
    state: State<P>,
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
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

impl<P: Parameters> Optimizer<P> for Sgd<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        let Sgd { momentum, nesterov, weight_decay, .. } = *self;
        let rate = self.rate();
        at_least_0("Sgd", "learning rate", rate)?;
        at_least_0("Sgd", "momentum", momentum)?;
        at_least_0("Sgd", "weight decay", weight_decay)?;
        if nesterov && momentum == 0.0 {
            return Err(error("`Sgd` with `nesterov` has no momentum: set `momentum` to more than 0".into()));
        }
        let formula = Descent { rate, momentum, nesterov, weight_decay };
        if momentum == 0.0 {
            self.state.step::<1, 1>(&mut always(formula), parameters, [gradient])
        } else {
            self.state.step::<2, 1>(&mut always(formula), parameters, [gradient])
        }
    }

    with_state!("Sgd", |sgd| if sgd.momentum == 0.0 { &[] } else { &["velocity"] });
}

#[derive(Clone, Copy)]
struct Descent {
    rate: f64,
    momentum: f64,
    nesterov: bool,
    weight_decay: f64,
}

compiled! { Descent: 1 1; Descent: 2 1; }

impl Formula<1, 1> for Descent {
    #[inline(always)]
    fn apply<F: Real>(&self, [p]: [F; 1], [g]: [F; 1]) -> [F; 1] {
        [p - number::<F>(self.rate) * (g + number::<F>(self.weight_decay) * p)]
    }
}

impl Formula<2, 1> for Descent {
    #[inline(always)]
    fn apply<F: Real>(&self, [p, velocity]: [F; 2], [g]: [F; 1]) -> [F; 2] {
        let momentum = number::<F>(self.momentum);
        let g = g + number::<F>(self.weight_decay) * p;
        let velocity = momentum * velocity + g;
        let step = if self.nesterov { g + momentum * velocity } else { velocity };
        [p - number::<F>(self.rate) * step, velocity]
    }
}
