//! Adagrad.

use super::implement::optimizer;
use super::moments::decayed;
use super::settings::{at_least_0, decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// `sum = sum + g^2`, then `p -= rate / (1 + (t - 1) * rate_decay) * g / (sqrt(sum) + epsilon)` at
/// step `t`, counted from 1, where `g` is the gradient. This is `torch.optim.Adagrad`. Elements
/// with small or infrequent gradients keep a large rate.
///
/// (J. Duchi, E. Hazan, Y. Singer, 2011, "Adaptive subgradient methods for online learning and
/// stochastic optimization".)
///
/// ```
/// use typed_dims::optim::Adagrad;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let (mut w, gradient) = (ones::<f64, _>(Feature.of(2)), full(Feature.of(2), 0.5));
/// let mut optimizer = Adagrad::new(0.01);
/// optimizer.step(&mut w, &gradient); // by 0.01 * 0.5 / sqrt(0.25)
/// optimizer.step(&mut w, &gradient); // by 0.01 * 0.5 / sqrt(0.5)
/// assert!((w.order(Feature)[0] - (1.0 - 0.01 - 0.005 / 0.5_f64.sqrt())).abs() < 1e-9);
/// ```
#[derive(Clone, Debug)]
pub struct Adagrad<P> {
    pub(super) state: State<P>,
    pub(super) settings: AdagradSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AdagradSettings {
    pub(super) rate_decay: f64,
    pub(super) first_sum: f64,
    pub(super) epsilon: f64,
    pub(super) weight_decay: f64,
    pub(super) maximize: bool,
}

impl<P> Adagrad<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`]. PyTorch's default is
    /// 0.01.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        let settings = AdagradSettings {
            rate_decay: 0.0,
            first_sum: 0.0,
            epsilon: 1e-10,
            weight_decay: 0.0,
            maximize: false,
        };
        Adagrad { state: State::new(rate.into()), settings }
    }
}

settings! { Adagrad, AdagradSettings {
    /// How fast the rate falls: 0 or more, default 0. PyTorch calls it `lr_decay`.
    rate_decay,
    /// A number added to each sum of squares: 0 or more, default 0. PyTorch calls it
    /// `initial_accumulator_value`. The state stores the sum without it.
    first_sum,
    /// The number added to the denominator: 0 or more, default 1e-10.
    epsilon,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
    weight_decay,
} {
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

impl AdagradSettings {
    fn check(&self) -> Result<(), DimError> {
        at_least_0("Adagrad", "decay of the rate", self.rate_decay)?;
        at_least_0("Adagrad", "first sum", self.first_sum)?;
        at_least_0("Adagrad", "epsilon", self.epsilon)?;
        at_least_0("Adagrad", "weight decay", self.weight_decay)
    }
}

decaying! { AdagradSettings }
compiled! { AdagradSettings: 1 2 1; }
optimizer! { Adagrad by |_: &AdagradSettings| () => {
    () => 1 2 ["sum"],
} }

impl OfStep<1> for AdagradSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 1] {
        let one = rate.constant(1.0);
        [rate / (one + (step - one) * rate.constant(self.rate_decay))]
    }
}

impl Formula<1, 2, 1> for AdagradSettings {
    const NAME: &'static str = "adagrad";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, sum]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let number = |value: f64| p.constant(value);
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let sum = sum + g * g;
        let root = (sum + number(self.first_sum)).sqrt() + number(self.epsilon);
        [p - rate * (g / root), sum]
    }
}
