//! Means of gradients and of their squares, and weight decay, for several optimizers.

use super::settings::{at_least_0, below_1};
use crate::error::DimError;
use kernels::map::formula::Quantity;

/// Checks the settings that optimizers with means of gradients and of their squares share.
pub(super) fn check_moments(
    name: &str,
    betas: (f64, f64),
    epsilon: f64,
    weight_decay: f64,
) -> Result<(), DimError> {
    below_1(name, "first beta", betas.0)?;
    below_1(name, "second beta", betas.1)?;
    at_least_0(name, "epsilon", epsilon)?;
    at_least_0(name, "weight decay", weight_decay)
}

/// `g`, negated if `maximize`, plus `weight_decay * p`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn decayed<Q: Quantity>(g: Q, p: Q, weight_decay: f64, maximize: bool) -> Q {
    g.negated_if(maximize) + p.constant(weight_decay) * p
}

/// The new means of the gradient and its square.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn next_moments<Q: Quantity>(betas: (f64, f64), [mean, square]: [Q; 2], g: Q) -> [Q; 2] {
    let number = |value: f64| g.constant(value);
    let mean = mean + number(1.0 - betas.0) * (g - mean);
    [mean, number(betas.1) * square + number(1.0 - betas.1) * g * g]
}

/// The factor by which decoupled weight decay multiplies a parameter.
pub(super) fn kept<Q: Quantity>(rate: Q, weight_decay: f64) -> Q {
    rate.constant(1.0) - rate * rate.constant(weight_decay)
}

macro_rules! betas {
    ($name:ident $default:literal) => {
        impl<P> $name<P> {
            #[doc = concat!(
                                "Sets the decay rates of the means of the gradient and of its square: 0 or more, less than 1, default ", $default,
                                "."
                            )]
            #[must_use]
            pub fn betas(mut self, beta1: f64, beta2: f64) -> Self {
                self.settings.betas = (beta1, beta2);
                self
            }
        }
    };
}
pub(super) use betas;
