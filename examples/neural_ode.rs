//! A neural ordinary differential equation: a network learns the field `dz/dt = f(z)` from spirals
//! that follow it.
//!
//! The gradient goes through all Runge-Kutta steps, which need no special code. R. T. Q. Chen et
//! al., 2018, "Neural Ordinary Differential Equations".
//!
//! ```text
//! cargo run --release --example neural_ode
//! ```

use typed_dims::grad::value_and_grad;
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;

dims! {
    /// The two coordinates.
    pub struct State = 2;
    /// The coordinates of the point at which the field is computed.
    pub struct From = 2;
    /// Features of the network.
    pub struct Hidden = 16;
    /// Starting points of spirals.
    pub struct Start;
    /// Points on a spiral.
    pub struct Time;
}

type Points = Tensor<f64, (Start, State)>;

/// The field as a network with one hidden layer, which reads the cubes of the coordinates.
#[derive(Parameters)]
struct Field {
    inner: Tensor<f64, (State, Hidden)>,
    bias: Tensor<f64, (Hidden,)>,
    outer: Tensor<f64, (Hidden, State)>,
}

impl Field {
    fn new() -> Self {
        let (inner, outer) = (randn((State, Hidden), 1), randn((Hidden, State), 2));
        Field { inner: (inner * 0.5).eval(), bias: zeros(Hidden), outer: (outer * 0.25).eval() }
    }

    fn at(&self, z: &Points) -> Points {
        let hidden = ((z.powi(3) * &self.inner).sum(State) + &self.bias).tanh();
        (hidden * &self.outer).sum(Hidden)
    }
}

/// The field to be learned: a rotation with friction, applied to the cubes of the coordinates.
fn truth(z: &Points) -> Points {
    let rotation = from_vec((From, State), vec![-0.1, 2.0, -2.0, -0.1]);
    (z.powi(3).rename(State, From) * rotation).sum(From)
}

/// One step of the classical Runge-Kutta method.
fn runge_kutta(field: impl Fn(&Points) -> Points, z: &Points, dt: f64) -> Points {
    let k1 = field(z);
    let k2 = field(&(z + &k1 * (dt / 2.0)).eval());
    let k3 = field(&(z + &k2 * (dt / 2.0)).eval());
    let k4 = field(&(z + &k3 * dt).eval());
    (z + (k1 + k2 * 2.0 + k3 * 2.0 + k4) * (dt / 6.0)).eval()
}

/// The points on the spirals that begin at `start`.
fn spirals(
    field: impl Fn(&Points) -> Points,
    start: &Points,
    steps: usize,
) -> Tensor<f64, (Start, State, Time)> {
    let mut all = vec![start.clone()];
    for step in 0..steps {
        all.push(runge_kutta(&field, &all[step], 0.05));
    }
    stack(Time, all)
}

/// Learns the field, and returns the loss of each epoch.
fn learn(field: &mut Field, starts: usize, steps: usize, epochs: usize) -> Vec<f64> {
    let start = (rand((Start.of(starts), State), 3) * 3.0 - 1.5).eval();
    let seen = spirals(truth, &start, steps);
    let mut adam = Adam::new(0.02);
    let mut losses = Vec::new();
    for _ in 0..epochs {
        let loss = |field: &Field| {
            (spirals(|z| field.at(z), &start, steps) - &seen).square().mean((Start, State, Time))
        };
        let (value, gradient) = value_and_grad(loss, &mut *field);
        adam.step(field, &gradient);
        losses.push(value);
    }
    losses
}

fn main() {
    let mut field = Field::new();
    for (epoch, loss) in learn(&mut field, 32, 20, 400).iter().enumerate().step_by(50) {
        println!("epoch {epoch:>4}: mean squared error {loss:.6}");
    }
    let start = from_vec((Start.of(1), State), vec![1.4, 0.0]);
    let (found, expected) = (spirals(|z| field.at(z), &start, 20), spirals(truth, &start, 20));
    println!("a new spiral ends at {:.3}", (&found).index(Time, -1).order((Start, State)));
    println!("          instead of {:.3}", (&expected).index(Time, -1).order((Start, State)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_learns() {
        let losses = learn(&mut Field::new(), 4, 5, 30);
        assert!(losses[29] < losses[0] / 4.0, "{losses:?}");
    }

    #[test]
    fn a_step_is_of_fourth_order() {
        // A rotation with a known solution: half the step gives about a sixteenth of
        // the error.
        let turn = |z: &Points| {
            (z.rename(State, From) * from_vec((From, State), vec![0.0, 1.0, -1.0, 0.0])).sum(From)
        };
        let error = |steps: usize| {
            let mut z = from_vec((Start.of(1), State), vec![1.0, 0.0]);
            for _ in 0..steps {
                z = runge_kutta(turn, &z, 1.0 / steps as f64);
            }
            let end = from_vec(State, vec![1.0_f64.cos(), 1.0_f64.sin()]);
            (z - end).abs().max((Start, State)).order(())
        };
        let ratio = error(8) / error(16);
        assert!((14.0..18.0).contains(&ratio), "{ratio}");
    }
}
