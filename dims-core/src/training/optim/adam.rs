//! Adam and AdamW.

use super::settings::{at_least_0, below_1};
use super::update::{compiled, made_by, number};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::in_place::Formula;
use kernels::scalar::Real;
use num_traits::Float;

/// The settings of both.
#[derive(Clone, Copy, Debug)]
struct MomentSettings {
    betas: (f64, f64),
    epsilon: f64,
    weight_decay: f64,
}

impl MomentSettings {
    fn new(weight_decay: f64) -> Self {
        MomentSettings { betas: (0.9, 0.999), epsilon: 1e-8, weight_decay }
    }

    fn step<P: Parameters>(
        &self,
        kind: &str,
        state: &mut State<P>,
        rate: f64,
        decoupled: bool,
        parameters: &mut P,
        gradient: &P,
    ) -> Result<(), DimError> {
        let MomentSettings { betas: (beta1, beta2), epsilon, weight_decay } = *self;
        at_least_0(kind, "learning rate", rate)?;
        below_1(kind, "first beta", beta1)?;
        below_1(kind, "second beta", beta2)?;
        at_least_0(kind, "epsilon", epsilon)?;
        at_least_0(kind, "weight decay", weight_decay)?;
        // (The correction depends on the steps that a parameter has taken.)
        let all = state.steps();
        let mut formulas = made_by(|missed: u64| {
            let steps = all.saturating_sub(missed).saturating_add(1);
            let correction = |beta: f64| 1.0 - Float::powf(beta, steps as f64);
            Adaptive {
                step: rate / correction(beta1),
                new_mean: 1.0 - beta1,
                old_square: beta2,
                new_square: 1.0 - beta2,
                correction: Float::sqrt(correction(beta2)),
                epsilon,
                in_gradient: if decoupled { 0.0 } else { weight_decay },
                kept: if decoupled { 1.0 - rate * weight_decay } else { 1.0 },
            }
        });
        state.step::<3, 1>(&mut formulas, parameters, [gradient])
    }
}

macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, $decoupled:literal, $(#[$decay:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<P> {
            state: State<P>,
            moments: MomentSettings,
        }

        impl<P: Parameters> $name<P> {
            /// Which shares of the means of `g` and of `g^2` stay at each step; 0.9 and 0.999 unless they are set. Each is 0 or more, and less than 1.
            #[must_use]
            pub fn betas(self, beta1: f64, beta2: f64) -> Self {
                $name { moments: MomentSettings { betas: (beta1, beta2), ..self.moments }, ..self }
            }

            /// The number added to the denominator, 0 or more; 1e-8 unless it is set.
            #[must_use]
            pub fn epsilon(self, epsilon: f64) -> Self {
                $name { moments: MomentSettings { epsilon, ..self.moments }, ..self }
            }

            $(#[$decay])*
            #[must_use]
            pub fn weight_decay(self, weight_decay: f64) -> Self {
                $name { moments: MomentSettings { weight_decay, ..self.moments }, ..self }
            }
        }

        impl<P: Parameters> Optimizer<P> for $name<P> {
            fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
                let rate = self.rate();
                self.moments.step(stringify!($name), &mut self.state, rate, $decoupled, parameters, gradient)
            }

            with_state!(stringify!($name), |_| &["mean", "square"]);
        }
    };
}

adam! {
    /// `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g^2`, then `p -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)`
    /// at step `t`, counted from 1, where `g` is the gradient. This is `torch.optim.Adam`. A parameter that was frozen counts the steps that it has taken itself.
    ///
    /// (D. P. Kingma, J. Ba, 2015, "Adam: A method for stochastic optimization".)
    Adam, false,
    /// The share of each parameter that is added to its gradient, 0 or more; 0 unless it is set.
}

adam! {
    /// [`Adam`] whose weight decay is apart from the moments: `p -= rate * weight_decay * p` at each step. This is `torch.optim.AdamW`.
    ///
    /// (I. Loshchilov, F. Hutter, 2019, "Decoupled weight decay regularization".)
    AdamW, true,
    /// How much of each parameter goes at each step, times the learning rate: 0 or more, and 0.01 unless it is set.
}

// (Not in the macro, and in one line: rustc quotes the line if `P` is no parameter.)
impl<P> Adam<P> {
    /// Steps with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip]
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Adam { state: State::new(rate.into()), moments: MomentSettings::new(0.0) }
    }
}

impl<P> AdamW<P> {
    /// Steps with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip]
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        AdamW { state: State::new(rate.into()), moments: MomentSettings::new(0.01) }
    }
}

struct Adaptive {
    step: f64,
    new_mean: f64,
    old_square: f64,
    new_square: f64,
    correction: f64,
    epsilon: f64,
    in_gradient: f64,
    kept: f64,
}

compiled! { Adaptive: 3 1; }

impl Formula<3, 1> for Adaptive {
    #[inline(always)]
    fn apply<F: Real>(&self, [p, mean, square]: [F; 3], [g]: [F; 1]) -> [F; 3] {
        let g = g + number::<F>(self.in_gradient) * p;
        let p = p * number::<F>(self.kept);
        let mean = mean + number::<F>(self.new_mean) * (g - mean);
        let square = number::<F>(self.old_square) * square + number::<F>(self.new_square) * g * g;
        let scale = Float::sqrt(square) / number::<F>(self.correction) + number::<F>(self.epsilon);
        [p - number::<F>(self.step) * (mean / scale), mean, square]
    }
}
