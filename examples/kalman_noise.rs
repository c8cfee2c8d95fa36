//! A Kalman filter that learns the variances of its noise from the gradient of the likelihood of
//! the observations.
//!
//! The filter of `kalman.rs` takes the variances of observations and of changes of velocity as
//! arguments. Here both are learned. The filter computes the likelihood of each observation, given
//! the previous ones, and the gradient goes through the whole filter.
//!
//! ```text
//! cargo run --release --example kalman_noise
//! ```

use typed_dims::grad::value_and_grad;
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;

dims! {
    /// Position and velocity.
    pub struct State = 2;
    /// Position and velocity, for the columns of matrices.
    pub struct Other = 2;
    /// Moving objects.
    pub struct Track;
    /// Times of observations.
    pub struct Time;
}

/// Observed positions.
type Seen = Tensor<f64, (Time, Track)>;

/// The logarithms of the variances, so that the variances are positive.
#[derive(Parameters)]
struct Noise {
    /// The logarithm of the variance of an observation.
    seen: Tensor<f64, ()>,
    /// The logarithm of the variance of a change of velocity.
    drift: Tensor<f64, ()>,
}

/// The negative logarithm of the likelihood, without a constant term, averaged over all
/// observations.
///
/// The covariance has no `Track`: it does not depend on the observations.
fn loss(noise: &Noise, seen: &Seen) -> Tensor<f64, ()> {
    dims!(from = 2, other = 2);
    let motion = select(State.le(from), 1.0, 0.0).eval();
    let motion_of_other = select(Other.le(other), 1.0, 0.0).eval();
    let (noise, drift) = ((&noise.seen).exp().eval(), (&noise.drift).exp().eval());
    let mut mean: Tensor<f64, (Track, State)> = zeros((Track.of(seen.size(Track)), State));
    let mut cov: Tensor<f64, (State, Other)> = select(State.eq(Other), 100.0, 0.0).eval();
    let mut surprises = Vec::new();
    for time in 0..seen.size(Time) {
        mean = (&motion * mean.rename(State, from)).sum(from);
        let moved =
            (&motion * &motion_of_other * cov.rename(State, from).rename(Other, other)).sum((from, other));
        cov = (moved + select(State.eq(1) & Other.eq(1), &drift, 0.0)).eval();
        let column = (&cov).index(Other, 0).eval();
        let variance = ((&column).index(State, 0) + &noise).eval();
        let error = (seen.index(Time, time as isize) - (&mean).index(State, 0)).eval();
        surprises.push(((&error).square() / &variance + (&variance).ln()).eval());
        let gain = column / variance;
        mean = (mean + &gain * error).eval();
        cov = (&cov - gain * (&cov).index(State, 0)).eval();
    }
    (stack(Time, surprises) * 0.5).mean((Time, Track))
}

/// The observations of random tracks with these variances.
fn simulate(times: usize, tracks: usize, noise: f64, drift: f64) -> Seen {
    let (errors, changes) =
        (randn((Time.of(times), Track.of(tracks)), 1), randn((Time.of(times), Track.of(tracks)), 2));
    let velocities: Seen = (changes * drift.sqrt()).cumsum(Time);
    (velocities.cumsum(Time) + errors * noise.sqrt()).eval()
}

/// Learns the variances, and returns them.
fn learn(seen: &Seen, steps: usize) -> (f64, f64) {
    let mut noise = Noise { seen: full((), 0.0), drift: full((), 0.0) };
    let mut adam = Adam::new(0.2);
    for step in 0..steps {
        let (value, gradient) = value_and_grad(|noise| loss(noise, seen), &mut noise);
        adam.step(&mut noise, &gradient);
        if step % 20 == 0 {
            println!("step {step:>4}: loss {value:.4}");
        }
    }
    (noise.seen.exp().order(()), noise.drift.exp().order(()))
}

fn main() {
    let (noise, drift) = learn(&simulate(60, 20, 0.5, 0.01), 80);
    println!("variance of an observation: {noise:.3} (true value: 0.5)");
    println!("variance of a change of velocity: {drift:.4} (true value: 0.01)");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loss of one track, number by number.
    fn by_loops(seen: &[f64], noise: f64, drift: f64) -> f64 {
        let (mut mean, mut cov, mut sum) = ([0.0; 2], [[100.0, 0.0], [0.0, 100.0]], 0.0);
        for seen in seen {
            mean[0] += mean[1];
            cov = [
                [cov[0][0] + 2.0 * cov[0][1] + cov[1][1], cov[0][1] + cov[1][1]],
                [cov[0][1] + cov[1][1], cov[1][1] + drift],
            ];
            let (variance, error) = (cov[0][0] + noise, seen - mean[0]);
            sum += 0.5 * (error * error / variance + f64::ln(variance));
            let gain = [cov[0][0] / variance, cov[1][0] / variance];
            mean = [mean[0] + gain[0] * error, mean[1] + gain[1] * error];
            cov = [0, 1].map(|s| [0, 1].map(|o| cov[s][o] - gain[s] * cov[0][o]));
        }
        sum / seen.len() as f64
    }

    #[test]
    fn the_loss_and_its_gradient_are_those_of_loops() {
        let seen = simulate(10, 3, 0.5, 0.01);
        let noise = Noise { seen: full((), -0.3), drift: full((), -2.0) };
        let (value, gradient) = value_and_grad(|noise| loss(noise, &seen), &noise);
        let rows = (&seen).order((Track, Time));
        let at = |a: f64, b: f64| {
            rows.rows().into_iter().map(|row| by_loops(&row.to_vec(), a.exp(), b.exp())).sum::<f64>() / 3.0
        };
        assert!((value - at(-0.3, -2.0)).abs() < 1e-12);
        let slopes =
            [at(-0.3 + 1e-5, -2.0) - at(-0.3 - 1e-5, -2.0), at(-0.3, -2.0 + 1e-5) - at(-0.3, -2.0 - 1e-5)];
        let found = [gradient.seen.order(()), gradient.drift.order(())];
        assert!(
            found.iter().zip(slopes).all(|(found, slope)| (found - slope / 2e-5).abs() < 1e-8),
            "{found:?}"
        );
    }

    #[test]
    fn it_learns() {
        let (noise, drift) = learn(&simulate(25, 12, 0.5, 0.01), 40);
        assert!(
            (0.35..0.7).contains(&noise) && (0.005..0.02).contains(&drift),
            "noise {noise}, drift {drift}"
        );
    }
}
