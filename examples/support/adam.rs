//! Adam (D. P. Kingma, J. Ba, 2015), for the examples that learn.

use typed_dims::prelude::*;

/// The running means of a gradient and of its square, for parameters of any type.
pub struct Adam<P> {
    mean: P,
    square: P,
    steps: i32,
    rate: f64,
}

impl<P: Parameters> Adam<P> {
    pub fn new(parameters: &P, rate: f64) -> Self {
        Adam { mean: parameters.zero(), square: parameters.zero(), steps: 0, rate }
    }

    /// The parameters after a step against the gradient.
    pub fn step(&mut self, parameters: &P, gradient: &P) -> P {
        self.steps += 1;
        self.mean = self.mean.zip_elements(gradient, |mean: f64, g| 0.9 * mean + 0.1 * g);
        self.square = self.square.zip_elements(gradient, |square: f64, g| 0.999 * square + 0.001 * g * g);
        let (mean, square) = (1.0 - 0.9_f64.powi(self.steps), 1.0 - 0.999_f64.powi(self.steps));
        let towards = |m: f64, s: f64| self.rate * (m / mean) / ((s / square).sqrt() + 1e-8);
        parameters.zip_elements(&self.mean.zip_elements(&self.square, towards), |p: f64, step| p - step)
    }
}
