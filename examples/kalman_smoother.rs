//! A Kalman smoother: positions on many tracks, each estimated from all observations.
//!
//! The filter of `kalman.rs` sees one coordinate. This one sees two, so it solves a system of
//! equations at each time step. The smoother then runs through the steps in reverse. H. E. Rauch,
//! F. Tung and C. T. Striebel, *Maximum likelihood estimates of linear dynamic systems*, 1965.
//!
//! `predict`, `update` and `smooth` are the formulas for one track: their bodies do not name
//! `Track`.
//!
//! ```text
//! cargo run --example kalman_smoother --features linalg -- tracks.svg
//! ```

use plotters::prelude::*;
use std::error::Error;
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};
use typed_dims::prelude::*;

dims! {
    /// The east and north coordinates of the position, and their velocities.
    pub struct State = 4;
    /// The observed coordinates: the position.
    pub struct Seen = 2;
    /// Moving objects.
    pub struct Track;
    /// Times of observations.
    pub struct Time;
}

type Positions = Tensor<f64, (Time, Seen, Track)>;

/// How states change, and how they are observed.
struct Model {
    motion: Tensor<f64, (State, Prime<State>)>,
    /// The covariance of random changes of the state.
    drift: Tensor<f64, (State, Prime<State>)>,
    sight: Tensor<f64, (Seen, State)>,
    /// The covariance of the errors of observation.
    error: Tensor<f64, (Seen, Prime<Seen>, Track)>,
}

impl Model {
    /// A model in which velocities are nearly constant. `drift` is the variance of a change of
    /// velocity, and `accuracy` the standard deviation of the errors in each track's observations.
    fn new(drift: f64, accuracy: &Tensor<f64, (Track,)>) -> Self {
        let (from, same) = (prime(State), State.eq(prime(State)));
        let moved = (State + 2).eq(from);
        let crossed = moved | (from + 2).eq(State);
        let variance = select(State.lt(2), 1.0 / 3.0, 1.0);
        Model {
            motion: select(same | moved, 1.0, 0.0).eval(),
            drift: (select(same, variance, select(crossed, 0.5, 0.0)) * drift).eval(),
            sight: select(Seen.eq(State), 1.0, 0.0).eval(),
            error: select(Seen.eq(prime(Seen)), accuracy.square(), 0.0).eval(),
        }
    }
}

/// The mean of a state, and its covariance.
#[derive(Clone)]
struct Belief {
    mean: Tensor<f64, (State, Track)>,
    cov: Tensor<f64, (State, Prime<State>, Track)>,
}

impl Belief {
    /// The belief about the next state.
    fn predict(&self, model: &Model) -> Belief {
        let Model { motion, drift, .. } = model;
        let moved = motion.compose(&self.cov, State).compose(motion.transpose(State), State);
        Belief { mean: motion.contract((&self.mean).prime(State), prime(State)), cov: (moved + drift).eval() }
    }

    /// The belief after an observation.
    fn update(&self, model: &Model, seen: &Tensor<f64, (Seen, Track)>) -> Belief {
        let Model { sight, error, .. } = model;
        let across = sight.contract(&self.cov, State);
        let spread = across.contract(sight.prime(Seen).prime(State), prime(State)) + error;
        let gain = spread.solve(&across, Seen, prime(Seen)).unprime(Seen).unprime(State).eval();
        let surprise = seen - sight.contract(&self.mean, State);
        Belief {
            mean: (&self.mean + gain.contract(surprise, Seen)).eval(),
            cov: (&self.cov - gain.contract(&across, Seen)).eval(),
        }
    }

    /// The belief that also takes later observations into account. `next` is what this belief
    /// predicts about the next state, and `later` is the belief about that state after all
    /// observations.
    fn smooth(&self, model: &Model, next: &Belief, later: &Belief) -> Belief {
        // The gain is `self.cov motion^T next.cov^-1`. Its transpose is the solution of a system of
        // equations.
        let across = model.motion.compose(&self.cov, State);
        let gain = (&next.cov).solve(across.prime(prime(State)), State, prime(State));
        let gain = gain.unprime(State).unprime(prime(State)).transpose(State).eval();
        let (mean, cov) = (&later.mean - &next.mean, &later.cov - &next.cov);
        let change = gain.compose(cov, State).compose((&gain).transpose(State), State);
        Belief {
            mean: (&self.mean + gain.contract(mean.prime(State), prime(State))).eval(),
            cov: (&self.cov + change).eval(),
        }
    }
}

/// The beliefs at each time: from the observations up to then, and from all observations.
fn follow(model: &Model, seen: &Positions) -> (Vec<Belief>, Vec<Belief>) {
    let track = Track.of(seen.size(Track));
    let cov = select(State.eq(prime(State)), 100.0, 0.0).expand(track).eval();
    let mut belief = Belief { mean: zeros((State, track)), cov };
    let (mut predicted, mut filtered) = (Vec::new(), Vec::new());
    for time in 0..seen.size(Time) {
        let next = belief.predict(model);
        belief = next.update(model, &seen.index(Time, time as isize).eval());
        predicted.push(next);
        filtered.push(belief.clone());
    }
    let mut smoothed = vec![belief];
    for (own, next) in filtered.iter().zip(predicted.iter().skip(1)).rev() {
        let later = smoothed.last().expect("there is a smoothed belief");
        smoothed.push(own.smooth(model, next, later));
    }
    smoothed.reverse();
    (filtered, smoothed)
}

/// The mean positions of the beliefs.
fn positions(beliefs: &[Belief]) -> Positions {
    stack(Time, beliefs.iter().map(|belief| (&belief.mean).slice_to(State, ..2, Seen)).collect::<Vec<_>>())
}

/// Flowers with two, three, .. petals, one for each track.
fn flowers(times: usize, tracks: usize) -> Positions {
    let turn = linspace(Time.of(times), 0.0, TAU);
    let petals = Track.of(tracks).cast::<f64>() + 2.0;
    let radius = ((&turn * petals).cos() * 3.0 + 7.0).eval();
    stack(Seen, (&radius * (&turn).cos(), &radius * (&turn).sin()))
}

/// Draws the tracks side by side: the observed positions and the smoothed ones.
fn draw(path: &Path, seen: &Positions, smoothed: &Positions) -> Result<(), Box<dyn Error>> {
    let tracks = seen.size(Track);
    let area = SVGBackend::new(path, (300 * tracks as u32, 300)).into_drawing_area();
    area.fill(&WHITE)?;
    for (track, part) in area.split_evenly((1, tracks)).into_iter().enumerate() {
        let mut chart = ChartBuilder::on(&part).margin(8).build_cartesian_2d(-13.0..13.0, -13.0..13.0)?;
        let points = |of: &Positions| {
            let rows = of.index(Track, track as isize).order((Time, Seen));
            rows.outer_iter().map(|row| (row[0], row[1])).collect::<Vec<_>>()
        };
        chart.draw_series(points(seen).into_iter().map(|at| Circle::new(at, 2, BLACK.mix(0.4).filled())))?;
        chart.draw_series(LineSeries::new(points(smoothed), BLUE.stroke_width(2)))?;
    }
    area.present()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let accuracy = from_vec(Track.of(3), vec![0.2, 0.5, 1.0]);
    let path = flowers(120, 3);
    let seen = (&path + randn::<f64, _>((Time.of(120), Seen, Track.of(3)), 1) * &accuracy).eval();
    let (filtered, smoothed) = follow(&Model::new(0.1, &accuracy), &seen);
    let (filtered, smoothed) = (positions(&filtered), positions(&smoothed));
    let off = |found: &Positions| (found - &path).square().sum(Seen).mean(Time).sqrt().order(Track);
    println!("how far positions are from the true ones, on each track:");
    println!("as seen:        {:.2}", off(&seen));
    println!("from the past:  {:.2}", off(&filtered));
    println!("from all times: {:.2}", off(&smoothed));
    let file =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("tracks.svg"), PathBuf::from);
    draw(&file, &seen, &smoothed)?;
    println!("{}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn numbers(value: &Value) -> Vec<f64> {
        match value {
            Value::Array(list) => list.iter().flat_map(numbers).collect(),
            number => vec![number.as_f64().expect("the value is a number")],
        }
    }

    /// Compares with a NumPy program that smooths one track at a time: see `reference.py`.
    #[test]
    fn each_track_is_smoothed_as_by_numpy() {
        let all: Value = serde_json::from_str(include_str!("reference.json")).expect("the file is JSON");
        let reference = &all["kalman_smoother"];
        let close = |found: Vec<f64>, name: &str| {
            let expected = numbers(&reference[name]);
            let is_close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-10);
            assert!(found.len() == expected.len() && is_close, "{name}: {found:?} instead of {expected:?}");
        };
        let accuracy = numbers(&reference["accuracy"]);
        let accuracy = from_vec(Track.of(accuracy.len()), accuracy);
        let seen = Array3::from_shape_vec((12, 3, 2), numbers(&reference["seen"])).unwrap();
        let seen = seen.into_tensor((Time, Track, Seen));
        let (_, smoothed) = follow(&Model::new(0.1, &accuracy), &seen);
        let means = stack(Time, smoothed.iter().map(|belief| belief.mean.view()).collect::<Vec<_>>());
        close(means.order((Time, Track, State)).into_iter().collect(), "mean");
        let variances = smoothed.iter().map(|belief| belief.cov.view().diagonal(State, prime(State), 0));
        let variances = stack(Time, variances.collect::<Vec<_>>());
        close(variances.order((Time, Track, State)).into_iter().collect(), "variance");
        let first = smoothed[0].cov.view().order((Track, State, prime(State)));
        close(first.into_iter().collect(), "first_covariance");
    }

    #[test]
    fn the_picture_is_whole() {
        let path = std::env::temp_dir().join(format!("typed_dims_tracks_{}.svg", std::process::id()));
        let seen = flowers(10, 2);
        draw(&path, &seen, &seen).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let count = |name| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!((count("circle"), count("polyline")), (20, 2));
    }
}
