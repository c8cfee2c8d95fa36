//! AdamW, and how fast it learns when.

use std::f32::consts::PI;
use typed_dims::prelude::*;

/// The decay of the mean of gradients.
const BETA_1: f32 = 0.9;
/// The decay of the mean of their squares.
const BETA_2: f32 = 0.99;
/// Added to the root of that mean.
const EPSILON: f32 = 1e-8;
/// The decay of weights, times the rate.
const DECAY: f32 = 0.1;

/// I. Loshchilov, F. Hutter, 2019, "Decoupled weight decay regularization".
pub struct AdamW<P> {
    /// The running mean of gradients.
    pub first: P,
    /// The running mean of their squares.
    pub second: P,
    /// How many steps it has made.
    pub steps: usize,
}

impl<P: Parameters> AdamW<P> {
    /// An optimizer that has made no step.
    pub fn new(weights: &P) -> Self {
        AdamW { first: weights.zero(), second: weights.zero(), steps: 0 }
    }

    /// Moves each weight against its gradient.
    pub fn step(&mut self, weights: &mut P, gradient: &P, rate: f32) {
        self.steps += 1;
        self.first = self.first.zip_elements(gradient, |m: f32, g| m + (1.0 - BETA_1) * (g - m));
        self.second = self.second.zip_elements(gradient, |v: f32, g| BETA_2 * v + (1.0 - BETA_2) * g * g);
        let (unbias_1, unbias_2) = (1.0 - self.power(BETA_1), (1.0 - self.power(BETA_2)).sqrt());
        let step = self
            .first
            .zip_elements(&self.second, |m: f32, v| rate * m / unbias_1 / (v.sqrt() / unbias_2 + EPSILON));
        *weights = weights.zip_elements(&step, |w: f32, step| w - rate * DECAY * w - step);
    }

    fn power(&self, beta: f32) -> f32 {
        f64::from(beta).powf(self.steps as f64) as f32
    }
}

/// The rate of a step: a warm-up, then half a cosine from the highest rate down to a tenth of it.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The highest rate.
    pub rate: f32,
    /// Steps until it is reached.
    pub warm_up: usize,
    /// All steps.
    pub steps: usize,
}

impl Schedule {
    /// The rate of the step `at`, counted from 0.
    pub fn rate(&self, at: usize) -> f32 {
        if at < self.warm_up {
            return self.rate * (at + 1) as f32 / self.warm_up as f32;
        }
        let done = (at - self.warm_up) as f32 / self.steps.saturating_sub(self.warm_up).max(1) as f32;
        self.rate * (0.1 + 0.45 * (1.0 + (PI * done.min(1.0)).cos()))
    }
}
