//! A Kalman filter for one track, applied to many: `#[batched]` accepts additional dims.
//!
//! Objects move at a nearly constant velocity, and their positions are observed with noise. For
//! each object, the filter stores the mean and the covariance of position and velocity. R. E.
//! Kalman, 1960.
//!
//! ```text
//! cargo run --example kalman
//! ```

use typed_dims::prelude::*;

dims! {
    /// Position and velocity.
    pub struct State = 2;
    /// Position and velocity, for the columns of matrices.
    pub struct Other = 2;
    /// Moving objects.
    pub struct Track;
}

/// The belief after one time step and one observation of the position. `noise` is the variance of
/// observations, and `drift` that of changes of velocity.
#[batched]
fn update(
    mean: Tensor<f32, (State,)>,
    cov: Tensor<f32, (State, Other)>,
    seen: Tensor<f32, ()>,
    noise: f32,
    drift: f32,
) -> (Tensor<f32, (State,)>, Tensor<f32, (State, Other)>) {
    dims!(from = 2, other = 2);
    // The matrix [1 1; 0 1] adds the velocity to the position.
    let motion = select(State.le(from), 1.0f32, 0.0);
    let motion_of_other = select(Other.le(other), 1.0f32, 0.0);
    let mean = (motion * mean.rename(State, from)).sum(from);
    let cov = (motion * motion_of_other * cov.rename(State, from).rename(Other, other)).sum((from, other));
    let cov = (cov + select(State.eq(1) & Other.eq(1), drift, 0.0f32)).eval();
    // Only the position is observed, so the gain is a column of the covariance, divided by the
    // variance of the surprise.
    let surprise = seen - (&mean).index(State, 0);
    let gain = ((&cov).index(Other, 0) / ((&cov).index(State, 0).index(Other, 0) + noise)).eval();
    let mean = (&mean + &gain * surprise).eval();
    let cov = (&cov - &gain * (&cov).index(State, 0)).eval();
    (mean, cov)
}

fn main() {
    let tracks = 3;
    let mut mean = zeros::<f32, _>((State, Track.of(tracks)));
    let unsure = |(row, column, _)| if row == column { 100.0 } else { 0.0 };
    let mut cov = from_fn((State, Other, Track.of(tracks)), unsure);
    println!("    time  true position      seen  believed  velocity   (track 1)");
    for time in 1..=8 {
        let wobble = |track: usize| ((time * 7 + track * 3) as f32).sin();
        let seen = from_fn(Track.of(tracks), |track| (track * time) as f32 + wobble(track));
        (mean, cov) = update(&mean, &cov, &seen, 0.5, 0.001);
        let value = |state: isize| (&mean).index(State, state).index(Track, 1).order(());
        let seen = (&seen).index(Track, 1).order(());
        println!("{time:>8} {:>14.2} {seen:>9.2} {:>9.2} {:>9.2}", time as f32, value(0), value(1));
    }
    let variance = (&cov).index(State, 0).index(Other, 0).order(Track);
    println!("variance of the positions at the end: {variance:.3}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter of one track, number by number.
    fn by_loops(mean: [f32; 2], cov: [[f32; 2]; 2], seen: f32) -> ([f32; 2], [[f32; 2]; 2]) {
        let mean = [mean[0] + mean[1], mean[1]];
        let moved = [[cov[0][0] + cov[1][0], cov[0][1] + cov[1][1]], cov[1]];
        let mut cov = [[moved[0][0] + moved[0][1], moved[0][1]], [moved[1][0] + moved[1][1], moved[1][1]]];
        cov[1][1] += 0.001;
        let surprise = seen - mean[0];
        let gain = [cov[0][0] / (cov[0][0] + 0.5), cov[1][0] / (cov[0][0] + 0.5)];
        let row = cov[0];
        let mean = [mean[0] + gain[0] * surprise, mean[1] + gain[1] * surprise];
        let after = |s: usize, o: usize| cov[s][o] - gain[s] * row[o];
        (mean, [[after(0, 0), after(0, 1)], [after(1, 0), after(1, 1)]])
    }

    #[test]
    fn many_tracks_are_each_as_one() {
        let tracks = 4;
        let mut mean = from_fn((State, Track.of(tracks)), |(s, t)| (s + 2 * t) as f32);
        let mut cov =
            from_fn((State, Other, Track.of(tracks)), |(s, o, t)| if s == o { 1.0 + t as f32 } else { 0.5 });
        let mut expected: Vec<_> = (0..tracks)
            .map(|t| ([2.0 * t as f32, 1.0 + 2.0 * t as f32], [[1.0 + t as f32, 0.5], [0.5, 1.0 + t as f32]]))
            .collect();
        for time in 0..5 {
            let see = |t: usize| ((3 * t + 5 * time) as f32).cos();
            (mean, cov) = update(&mean, &cov, from_fn(Track.of(tracks), see), 0.5, 0.001);
            let (found, sure) = ((&mean).order((Track, State)), (&cov).order((Track, State, Other)));
            for (t, expected) in expected.iter_mut().enumerate() {
                *expected = by_loops(expected.0, expected.1, see(t));
                for s in 0..2 {
                    assert!((found[[t, s]] - expected.0[s]).abs() < 1e-4);
                    (0..2).for_each(|o| assert!((sure[[t, s, o]] - expected.1[s][o]).abs() < 1e-4));
                }
            }
        }
    }
}
