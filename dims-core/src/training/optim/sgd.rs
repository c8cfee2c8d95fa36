//! Stochastic gradient descent.

use super::implement::optimizer;
use super::moments::decayed;
use super::settings::{at_least_0, decaying, error, settings, up_to_1};
use super::update::{OfStep, compiled};
use super::{Schedule, State};
use crate::error::DimError;
use crate::grad::Parameters;
use kernels::map::formula::{Formula, Quantity};

/// Gradient descent with optional momentum: `velocity = momentum * velocity + g`, then
/// `p -= rate * velocity`, where `g` is the gradient.
///
/// With [`nesterov`](Sgd::nesterov), the step is `p -= rate * (g + momentum * velocity)`. With
/// [`weight_decay`](Sgd::weight_decay), `weight_decay * p` is added to `g` first. This is
/// `torch.optim.SGD`.
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
    pub(super) settings: SgdSettings,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SgdSettings {
    pub(super) momentum: f64,
    pub(super) dampening: f64,
    pub(super) weight_decay: f64,
    pub(super) nesterov: bool,
    pub(super) maximize: bool,
}

impl<P> Sgd<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`].
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        Sgd { state: State::new(rate.into()), settings: SgdSettings::default() }
    }
}

settings! { Sgd, SgdSettings {
    /// The share of the velocity that is kept at each step: 0 or more, default 0.
    momentum,
    /// With [`momentum`](Sgd::momentum), scales each gradient except the first by `1 - dampening`:
    /// `velocity = momentum * velocity + (1 - dampening) * g`. From 0 to 1, default 0.
    dampening,
    /// Adds this multiple of each parameter to its gradient: 0 or more, default 0.
    weight_decay,
} {
    /// Uses Nesterov momentum. A step is an error if there is no [`momentum`](Sgd::momentum), or if
    /// there is [`dampening`](Sgd::dampening).
    nesterov,
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

impl SgdSettings {
    fn check(&self) -> Result<(), DimError> {
        let SgdSettings { momentum, dampening, weight_decay, nesterov, .. } = *self;
        at_least_0("Sgd", "momentum", momentum)?;
        up_to_1("Sgd", "dampening", dampening)?;
        at_least_0("Sgd", "weight decay", weight_decay)?;
        if nesterov && momentum == 0.0 {
            return Err(error("`Sgd` with `nesterov` has no momentum: set `momentum` to more than 0".into()));
        }
        if nesterov && dampening != 0.0 {
            return Err(error("`Sgd` with `nesterov` has `dampening`: remove one of the two".into()));
        }
        Ok(())
    }

    fn has_momentum(&self) -> (bool, bool) {
        (self.momentum != 0.0, self.dampening != 0.0)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn along<Q: Quantity>(&self, rate: Q, p: Q, velocity: Q, g: Q) -> [Q; 2] {
        let step = if self.nesterov { g + p.constant(self.momentum) * velocity } else { velocity };
        [p - rate * step, velocity]
    }
}

decaying! { SgdSettings }
compiled! { SgdSettings: 1 1 1; SgdSettings: 1 2 1; SgdSettings: 2 2 1; }
optimizer! { Sgd by SgdSettings::has_momentum => {
    (false, _) => 1 1 [],
    (true, false) => 1 2 ["velocity"],
    (true, true) => 2 2 ["velocity"],
} }

impl OfStep<1> for SgdSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, _: Q) -> [Q; 1] {
        [rate]
    }
}

impl OfStep<2> for SgdSettings {
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 2] {
        let (one, later) = (rate.constant(1.0), rate.constant(1.0 - self.dampening));
        [rate, Q::choose(step.is_at_most(one), one, later)]
    }
}

impl Formula<1, 1, 1> for SgdSettings {
    const NAME: &'static str = "sgd";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p]: [Q; 1], [g]: [Q; 1]) -> [Q; 1] {
        [p - rate * decayed(g, p, self.weight_decay, self.maximize)]
    }
}

impl Formula<1, 2, 1> for SgdSettings {
    const NAME: &'static str = "sgd with momentum";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate]: [Q; 1], [p, velocity]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let velocity = p.constant(self.momentum) * velocity + g;
        self.along(rate, p, velocity, g)
    }
}

impl Formula<2, 2, 1> for SgdSettings {
    const NAME: &'static str = "sgd with dampening";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<Q: Quantity>(&self, [rate, share]: [Q; 2], [p, velocity]: [Q; 2], [g]: [Q; 1]) -> [Q; 2] {
        let g = decayed(g, p, self.weight_decay, self.maximize);
        let velocity = p.constant(self.momentum) * velocity + share * g;
        self.along(rate, p, velocity, g)
    }
}
