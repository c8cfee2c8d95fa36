//! A network that solves a differential equation: heat along a rod with cold ends.
//!
//! ```text
//! du/dt = 0.1 d2u/dx2   for x and t between 0 and 1   u(x, 0) = sin(pi x)   u(0, t) = u(1, t) = 0
//! ```
//!
//! The loss is the mean squared residual of the equation. `jvp` computes the derivative of the
//! network with respect to `t`, and `jvp` of `jvp` the second derivative with respect to `x`. The
//! gradient with respect to the weights goes through both. M. Raissi, P. Perdikaris, G. E.
//! Karniadakis, 2019, "Physics-informed neural networks".
//!
//! ```text
//! cargo run --release --example heat_equation
//! ```

use std::f64::consts::PI;
use typed_dims::grad::{jvp, value_and_grad};
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;

dims! {
    /// Points in space and time.
    pub struct Point;
    /// Features of the first layer.
    pub struct Hidden = 16;
    /// Features of the second layer.
    pub struct Hidden2 = 16;
}

/// A number for each point.
type Field = Tensor<f64, (Point,)>;

const DIFFUSION: f64 = 0.1;

#[derive(Parameters)]
struct Network {
    by_x: Tensor<f64, (Hidden,)>,
    by_t: Tensor<f64, (Hidden,)>,
    bias: Tensor<f64, (Hidden,)>,
    inner: Tensor<f64, (Hidden, Hidden2)>,
    inner_bias: Tensor<f64, (Hidden2,)>,
    outer: Tensor<f64, (Hidden2,)>,
}

impl Network {
    fn new() -> Self {
        Network {
            by_x: randn(Hidden, 1),
            by_t: randn(Hidden, 2),
            bias: randn(Hidden, 3),
            inner: (randn((Hidden, Hidden2), 4) * 0.25).eval(),
            inner_bias: zeros(Hidden2),
            outer: (randn(Hidden2, 5) * 0.25).eval(),
        }
    }

    /// The temperature. For any weights, it satisfies the initial and boundary conditions.
    fn temperature(&self, x: &Field, t: &Field) -> Field {
        let first = (x * &self.by_x + t * &self.by_t + &self.bias).tanh();
        let second = ((first * &self.inner).sum(Hidden) + &self.inner_bias).tanh();
        let free = (second * &self.outer).sum(Hidden2);
        ((x * PI).sin() + t * x * (1.0 - x) * free).eval()
    }

    /// The residual of the equation at each point: `du/dt - DIFFUSION * d2u/dx2`.
    fn residual(&self, x: &Field, t: &Field) -> Field {
        let one = ones::<f64, _>(Point.of(x.size(Point)));
        let (_, by_t) = jvp(|t| self.temperature(x, t), t, &one);
        let slope = |x: &Field| jvp(|x| self.temperature(x, t), x, &one).1;
        let (_, curvature) = jvp(slope, x, &one);
        (by_t - curvature * DIFFUSION).eval()
    }
}

/// The solution, for comparison.
fn exact(x: &Field, t: &Field) -> Field {
    ((x * PI).sin() * (t * (-DIFFUSION * PI * PI)).exp()).eval()
}

/// Learns from random points, and returns the loss of each step.
fn learn(network: &mut Network, points: usize, steps: usize) -> Vec<f64> {
    let (x, t) = (rand(Point.of(points), 6), rand(Point.of(points), 7));
    let mut adam = Adam::new(0.01);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let loss = |network: &Network| network.residual(&x, &t).square().mean(Point);
        let (value, gradient) = value_and_grad(loss, &mut *network);
        adam.step(network, &gradient);
        losses.push(value);
    }
    losses
}

fn main() {
    let mut network = Network::new();
    for (step, loss) in learn(&mut network, 128, 600).iter().enumerate().step_by(100) {
        println!("step {step:>4}: mean squared residual {loss:.6}");
    }
    let (x, t) = (rand(Point.of(1000), 8), rand(Point.of(1000), 9));
    let error = (network.temperature(&x, &t) - exact(&x, &t)).abs().max(Point).order(());
    println!("at 1000 random points, the temperature is off by at most {error:.5}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns() {
        let losses = learn(&mut Network::new(), 16, 25);
        assert!(losses[24] < losses[0] / 3.0, "{losses:?}");
    }

    #[test]
    fn the_residual_is_that_of_differences() {
        let network = Network::new();
        let (x, t) = (rand(Point.of(5), 1), rand(Point.of(5), 2));
        let at = |dx: f64, dt: f64| network.temperature(&(&x + dx).eval(), &(&t + dt).eval());
        let by_t = (at(0.0, 1e-4) - at(0.0, -1e-4)) / 2e-4;
        let curvature = (at(1e-4, 0.0) - at(0.0, 0.0) * 2.0 + at(-1e-4, 0.0)) / 1e-8;
        let error = network.residual(&x, &t) - (by_t - curvature * DIFFUSION);
        assert!(error.abs().max(Point).order(()) < 1e-6);
    }
}
