//! Lion.

use super::settings::{at_least_0, below_1};
use super::update::{always, compiled, number};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::in_place::Formula;
use kernels::scalar::Real;

/// `p -= rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * p)`, then `m = beta2 * m + (1 - beta2) * g`, where `g` is the gradient. This is
/// `optax.lion`.
///
/// (X. Chen and others, 2023, "Symbolic discovery of optimization algorithms". They advise a rate three to ten times smaller than AdamW's, and a weight decay as
/// many times larger.)
#[derive(Clone, Debug)]
pub struct Lion<P> {
    state: State<P>,
    betas: (f64, f64),
    weight_decay: f64,
}

impl<P> Lion<P> {
    /// Steps with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the line
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Lion { state: State::new(rate.into()), betas: (0.9, 0.99), weight_decay: 0.001 }
    }

    /// Which shares of the mean of `g` stay, for the step and for the next mean; 0.9 and 0.99 unless they are set. Each is 0 or more, and less than 1.
    #[must_use]
    pub fn betas(self, beta1: f64, beta2: f64) -> Self {
        Lion { betas: (beta1, beta2), ..self }
    }

    /// How much of each parameter goes at each step, times the learning rate: 0 or more, and 0.001 unless it is set.
    #[must_use]
    pub fn weight_decay(self, weight_decay: f64) -> Self {
        Lion { weight_decay, ..self }
    }
}

impl<P: Parameters> Optimizer<P> for Lion<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        let Lion { betas, weight_decay, .. } = *self;
        let rate = self.rate();
        at_least_0("Lion", "learning rate", rate)?;
        below_1("Lion", "first beta", betas.0)?;
        below_1("Lion", "second beta", betas.1)?;
        at_least_0("Lion", "weight decay", weight_decay)?;
        let formula = Signs { rate, betas, weight_decay };
        self.state.step::<2, 1>(&mut always(formula), parameters, [gradient])
    }

    with_state!("Lion", |_| &["mean"]);
}

#[derive(Clone, Copy)]
struct Signs {
    rate: f64,
    betas: (f64, f64),
    weight_decay: f64,
}

compiled! { Signs: 2 1; }

impl Formula<2, 1> for Signs {
    #[inline(always)]
    fn apply<F: Real>(&self, [p, mean]: [F; 2], [g]: [F; 1]) -> [F; 2] {
        let mix = |beta: f64| number::<F>(1.0 - beta) * g + number::<F>(beta) * mean;
        let direction = mix(self.betas.0);
        // (0 and NaN are neither greater nor less, and stay.)
        let sign = if direction > F::ZERO {
            F::ONE
        } else if direction < F::ZERO {
            -F::ONE
        } else {
            direction
        };
        [p - number::<F>(self.rate) * (sign + number::<F>(self.weight_decay) * p), mix(self.betas.1)]
    }
}
