//! Adam and AdamW.

use super::settings::{at_least_0, below_1};
use super::update::{OfStep, StepAfter, StepPrograms, compiled};
use super::{Optimizer, Schedule, State, with_state};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};
use kernels::program::code::DType;

/// The settings of both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MomentSettings {
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
        decoupled: bool,
        parameters: &mut P,
        gradient: &P,
    ) -> Result<(), DimError> {
        let MomentSettings { betas: (beta1, beta2), epsilon, weight_decay } = *self;
        below_1(kind, "first beta", beta1)?;
        below_1(kind, "second beta", beta2)?;
        at_least_0(kind, "epsilon", epsilon)?;
        at_least_0(kind, "weight decay", weight_decay)?;
        // (The correction depends on the steps that a parameter has taken.)
        let mut step = StepAfter::new(kind, self.formula(decoupled), state)?;
        state.step(&mut step, parameters, gradient)
    }

    fn formula(self, decoupled: bool) -> Adaptive {
        Adaptive { settings: self, decoupled }
    }
}

macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, $decoupled:literal, $(#[$decay:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<P> {
            pub(super) state: State<P>,
            pub(super) moments: MomentSettings,
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
                self.moments.step(stringify!($name), &mut self.state, $decoupled, parameters, gradient)
            }

            fn programs(&self, elements: DType) -> Option<StepPrograms> {
                Some(StepPrograms::of(&self.moments.formula($decoupled), elements))
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
    settings: MomentSettings,
    /// Whether the weight decay is apart from the moments.
    decoupled: bool,
}

compiled! { Adaptive: 3 3 1; }

impl OfStep<3> for Adaptive {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 3] {
        let MomentSettings { betas: (beta1, beta2), weight_decay, .. } = self.settings;
        let one = rate.constant(1.0);
        let correction = |beta: f64| one - rate.constant(beta).powf(step);
        let kept = if self.decoupled { one - rate * rate.constant(weight_decay) } else { one };
        [rate / correction(beta1), correction(beta2).sqrt(), kept]
    }
}

impl Formula<3, 3, 1> for Adaptive {
    const NAME: &'static str = "adam";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(
        &self,
        [step, correction, kept]: [Q; 3],
        [p, mean, square]: [Q; 3],
        [g]: [Q; 1],
    ) -> [Q; 3] {
        let MomentSettings { betas: (beta1, beta2), epsilon, weight_decay } = self.settings;
        let number = |value: f64| p.constant(value);
        let g = g + number(if self.decoupled { 0.0 } else { weight_decay }) * p;
        let mean = mean + number(1.0 - beta1) * (g - mean);
        let square = number(beta2) * square + number(1.0 - beta2) * g * g;
        let scale = square.sqrt() / correction + number(epsilon);
        [p * kept - step * (mean / scale), mean, square]
    }
}
