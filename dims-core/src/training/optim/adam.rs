//! Adam and AdamW.

use super::implement::optimizer;
use super::moments::{betas, check_moments, decayed, kept, next_moments};
use super::settings::{decaying, settings};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// The settings of [`Adam`] and [`AdamW`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AdamSettings {
    pub(super) betas: (f64, f64),
    pub(super) epsilon: f64,
    pub(super) weight_decay: f64,
    pub(super) amsgrad: bool,
    pub(super) maximize: bool,
    /// Whether the weight decay is decoupled from the moments.
    decoupled: bool,
}

impl AdamSettings {
    fn new(weight_decay: f64, decoupled: bool) -> Self {
        let betas = (0.9, 0.999);
        AdamSettings { betas, epsilon: 1e-8, weight_decay, amsgrad: false, maximize: false, decoupled }
    }

    fn check(&self) -> Result<(), DimError> {
        check_moments(
            if self.decoupled { "AdamW" } else { "Adam" },
            self.betas,
            self.epsilon,
            self.weight_decay,
        )
    }

    fn is_amsgrad(&self) -> bool {
        self.amsgrad
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn moments<Q: Quantity>(&self, p: Q, moments: [Q; 2], g: Q) -> [Q; 2] {
        let of_gradient = if self.decoupled { 0.0 } else { self.weight_decay };
        next_moments(self.betas, moments, decayed(g, p, of_gradient, self.maximize))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn stepped<Q: Quantity>(&self, [step, correction, kept]: [Q; 3], p: Q, mean: Q, square: Q) -> Q {
        let scale = square.sqrt() / correction + p.constant(self.epsilon);
        p * kept - step * (mean / scale)
    }
}

macro_rules! adam {
    ($(#[$doc:meta])* $name:ident, $(#[$decay:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name<P> {
            pub(super) state: State<P>,
            pub(super) settings: AdamSettings,
        }

        betas! { $name "0.9 and 0.999" }

        settings! { $name, AdamSettings {
            /// The number added to the denominator: 0 or more, default 1e-8.
            epsilon,
            $(#[$decay])*
            weight_decay,
        } {
            /// Divides by the root of the largest `v` so far, instead of the root of the current
            /// `v`.
            ///
            /// (S. J. Reddi, S. Kale, S. Kumar, 2018, "On the convergence of Adam and beyond".)
            amsgrad,
            /// Maximizes: steps along the gradient instead of against it.
            maximize,
        } }

        optimizer! { $name by AdamSettings::is_amsgrad => {
            false => 3 3 ["mean", "square"],
            true => 3 4 ["mean", "square", "largest_square"],
        } }
    };
}

adam! {
    /// `m = beta1 * m + (1 - beta1) * g`, `v = beta2 * v + (1 - beta2) * g^2`, then
    /// `p -= rate * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)` at step `t`, counted
    /// from 1, where `g` is the gradient. This is `torch.optim.Adam`. For a parameter that was
    /// frozen or added later, `t` counts only its own steps.
    ///
    /// (D. P. Kingma, J. Ba, 2015, "Adam: A method for stochastic optimization".)
    ///
    /// ```
    /// use typed_dims::optim::Adam;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feature; }
    /// let (mut w, gradient) = (ones::<f64, _>(Feature.of(2)), full(Feature.of(2), 7.0));
    /// let mut optimizer = Adam::new(0.1).betas(0.9, 0.99).amsgrad();
    /// optimizer.step(&mut w, &gradient); // by the rate, whatever the norm of the gradient
    /// assert!((w.order(Feature)[0] - 0.9).abs() < 1e-9);
    /// ```
    Adam,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
}

adam! {
    /// [`Adam`] with decoupled weight decay: `p -= rate * weight_decay * p` at each step. This is
    /// `torch.optim.AdamW`.
    ///
    /// (I. Loshchilov, F. Hutter, 2019, "Decoupled weight decay regularization".)
    ///
    /// ```
    /// use typed_dims::optim::AdamW;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feature; }
    /// let (mut w, gradient) = (full::<f64, _>(Feature.of(2), 2.0), zeros(Feature.of(2)));
    /// AdamW::new(0.1).weight_decay(0.5).step(&mut w, &gradient);
    /// assert_eq!(w.order(Feature)[0], 2.0 * (1.0 - 0.1 * 0.5));
    /// ```
    AdamW,
    /// Subtracts this multiple of each parameter, times the learning rate, at each step: 0 or more,
    /// default 0.01.
}

// `new` is not in the macro, and its signature is on one line, because rustc quotes that line if
// `P` does not implement `Parameters`.
impl<P> Adam<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip]
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Adam { state: State::new(rate.into()), settings: AdamSettings::new(0.0, false) }
    }
}

impl<P> AdamW<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip]
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        AdamW { state: State::new(rate.into()), settings: AdamSettings::new(0.01, true) }
    }
}

decaying! { AdamSettings }
compiled! { AdamSettings: 3 3 1; AdamSettings: 3 4 1; }

impl OfStep<3> for AdamSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 3] {
        let AdamSettings { betas: (beta1, beta2), weight_decay, .. } = *self;
        let one = rate.constant(1.0);
        let correction = |beta: f64| one - rate.constant(beta).powf(step);
        let kept = if self.decoupled { kept(rate, weight_decay) } else { one };
        [rate / correction(beta1), correction(beta2).sqrt(), kept]
    }
}

impl Formula<3, 3, 1> for AdamSettings {
    const NAME: &'static str = "adam";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, numbers: [Q; 3], [p, mean, square]: [Q; 3], [g]: [Q; 1]) -> [Q; 3] {
        let [mean, square] = self.moments(p, [mean, square], g);
        [self.stepped(numbers, p, mean, square), mean, square]
    }
}

impl Formula<3, 4, 1> for AdamSettings {
    const NAME: &'static str = "amsgrad";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, numbers: [Q; 3], [p, mean, square, largest]: [Q; 4], [g]: [Q; 1]) -> [Q; 4] {
        let [mean, square] = self.moments(p, [mean, square], g);
        // A comparison with NaN is false, so a `square` that is NaN becomes the largest.
        let largest = Q::choose(square.is_at_most(largest), largest, square);
        [self.stepped(numbers, p, mean, largest), mean, square, largest]
    }
}
