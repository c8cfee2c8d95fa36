//! NAdam.

use super::implement::optimizer;
use super::moments::{betas, check_moments, decayed, kept, next_moments};
use super::settings::{at_least_0, decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use core::f64::consts::E;
use kernels::map::formula::{Formula, Quantity};
use num_traits::Float;

/// Adam with Nesterov momentum. With Adam's `m` and `v` at step `t`, counted from 1, let
/// `u(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2)` and `U(t) = u(1) * .. * u(t)`. Then
/// `p -= rate * ((1 - u(t)) / (1 - U(t)) * g + u(t + 1) / (1 - U(t + 1)) * m) / (sqrt(v / (1 - beta2^t)) + epsilon)`,
/// where `g` is the gradient. This is `torch.optim.NAdam`.
///
/// (T. Dozat, 2016, "Incorporating Nesterov momentum into Adam".)
///
/// ```
/// use typed_dims::optim::NAdam;
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let mut w = ones::<f64, _>(Feature.of(2));
/// let mut optimizer = NAdam::new(2e-3);
/// for _ in 0..1000 {
///     let gradient = (&w * 2.0).eval(); // of the sum of squares
///     optimizer.step(&mut w, &gradient);
/// }
/// assert!(w.order(Feature)[0].abs() < 0.05);
/// ```
#[derive(Clone, Debug)]
pub struct NAdam<P> {
    pub(super) state: State<P>,
    pub(super) settings: NAdamSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NAdamSettings {
    pub(super) betas: (f64, f64),
    pub(super) epsilon: f64,
    pub(super) momentum_decay: f64,
    pub(super) weight_decay: f64,
    pub(super) decoupled: bool,
    pub(super) maximize: bool,
}

impl<P> NAdam<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`]. PyTorch's default is
    /// 0.002.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        let settings = NAdamSettings {
            betas: (0.9, 0.999),
            epsilon: 1e-8,
            momentum_decay: 0.004,
            weight_decay: 0.0,
            decoupled: false,
            maximize: false,
        };
        NAdam { state: State::new(rate.into()), settings }
    }
}

betas! { NAdam "0.9 and 0.999" }

settings! { NAdam, NAdamSettings {
    /// The number added to the denominator: 0 or more, default 1e-8.
    epsilon,
    /// How fast the momentum `u(t)` approaches `beta1`: 0 or more, default 0.004.
    momentum_decay,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
    weight_decay,
} {
    /// Decouples the weight decay from the moments, as in [`AdamW`](super::AdamW):
    /// `p -= rate * weight_decay * p`.
    decoupled,
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

impl NAdamSettings {
    fn check(&self) -> Result<(), DimError> {
        check_moments("NAdam", self.betas, self.epsilon, self.weight_decay)?;
        at_least_0("NAdam", "momentum decay", self.momentum_decay)
    }

    /// `u(t)`
    fn momentum<Q: Quantity>(&self, step: Q) -> Q {
        let number = |value: f64| step.constant(value);
        let falling = number(0.96).powf(step * number(self.momentum_decay));
        number(self.betas.0) * (number(1.0) - number(0.5) * falling)
    }

    /// `U(t)`, without a loop over the steps. With `q = 0.96^momentum_decay`, `U(t)` is `beta1^t`
    /// times the product `(1 - q / 2) * .. * (1 - q^t / 2)`. If `q < 1`, the logarithm of this
    /// product is the sum of `c[n] * (q^(n * t) - 1)` over `n >= 1`, where
    /// `c[n] = q^n / (1 - q^n) / (n * 2^n)`. If `q` is nearly 1, `c[n]` is large and its factor
    /// `q^(n * t) - 1` is small. So the sum is computed as the product of `q^t - 1`, without
    /// cancellation, and the sum of `(c[n] + c[n + 1] + ..) * q^((n - 1) * t)` over `n >= 1`.
    fn product<Q: Quantity>(&self, step: Q) -> Q {
        // Further terms are smaller than the rounding error.
        const TERMS: i32 = 50;
        let number = |value: f64| step.constant(value);
        let ln_q = self.momentum_decay * Float::ln(0.96_f64);
        // With a smaller decay, all powers of `q` are 1 up to rounding, and `c[n]` can overflow.
        if ln_q > -1e-100 {
            return number(self.betas.0 / 2.0).powf(step);
        }
        let coefficient = |n: i32| {
            let n = f64::from(n);
            -Float::exp(n * ln_q) / Float::exp_m1(n * ln_q) / (n * Float::powf(2.0_f64, n))
        };
        let exponent = step * number(ln_q);
        let power = number(E).powf(exponent);
        let series = (2..=18_i32)
            .rev()
            .fold(number(1.0), |sum, n| number(1.0) + exponent / number(f64::from(n)) * sum);
        let difference = Q::choose(exponent.is_less(number(-0.5)), power - number(1.0), exponent * series);
        let mut rest = 0.0;
        let sum = (1..=TERMS).rev().fold(number(0.0), |sum, n| {
            rest += coefficient(n);
            sum * power + number(rest)
        });
        number(self.betas.0).powf(step) * number(E).powf(difference * sum)
    }
}

decaying! { NAdamSettings }
compiled! { NAdamSettings: 4 3 1; }
optimizer! { NAdam by |_: &NAdamSettings| () => {
    () => 4 3 ["mean", "square"],
} }

impl OfStep<4> for NAdamSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 4] {
        let one = rate.constant(1.0);
        let (now, next) = (self.momentum(step), self.momentum(step + one));
        let product = self.product(step);
        let of_gradient = rate * (one - now) / (one - product);
        let of_mean = rate * next / (one - product * next);
        let correction = one - rate.constant(self.betas.1).powf(step);
        [of_gradient, of_mean, correction, if self.decoupled { kept(rate, self.weight_decay) } else { one }]
    }
}

impl Formula<4, 3, 1> for NAdamSettings {
    const NAME: &'static str = "nadam";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(
        &self,
        [of_gradient, of_mean, correction, kept]: [Q; 4],
        [p, mean, square]: [Q; 3],
        [g]: [Q; 1],
    ) -> [Q; 3] {
        let g = decayed(g, p, if self.decoupled { 0.0 } else { self.weight_decay }, self.maximize);
        let [mean, square] = next_moments(self.betas, [mean, square], g);
        let scale = (square / correction).sqrt() + p.constant(self.epsilon);
        [p * kept - (of_gradient * g + of_mean * mean) / scale, mean, square]
    }
}
