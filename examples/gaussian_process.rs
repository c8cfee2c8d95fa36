//! Gaussian process regression: a map of heights from 40 measurements, with standard deviations.
//!
//! The variance of the heights, their length scales to the east and to the north, and the noise of
//! the measurements are learned by maximizing the likelihood with Adam. See C. E. Rasmussen and
//! C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, algorithm 2.1.
//!
//! ```text
//! cargo run --release --example gaussian_process --features linalg
//! ```

use std::f64::consts::TAU;
use typed_dims::grad::value_and_grad;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::optim::{Adam, Optimizer, Schedule};
use typed_dims::prelude::*;

dims! {
    /// Places whose height was measured.
    pub struct Point;
    /// The east and north coordinates of a place.
    pub struct Coordinate = 2;
    /// Rows of the map.
    pub struct Row;
    /// Columns of the map.
    pub struct Column;
}

/// Measured heights, and the places where they were measured.
struct Survey {
    places: Tensor<f64, (Point, Coordinate)>,
    heights: Tensor<f64, (Point,)>,
}

/// The parameters of the covariance, as logarithms, so that all of them are positive.
#[derive(Parameters)]
struct Kernel {
    variance: Tensor<f64, ()>,
    /// The length scale along each coordinate.
    scales: Tensor<f64, (Coordinate,)>,
    /// The variance of the error of a measurement.
    noise: Tensor<f64, ()>,
}

/// The covariance of the heights of two places.
#[batched]
fn covariance(
    kernel: &Kernel,
    a: &Tensor<f64, (Coordinate,)>,
    b: &Tensor<f64, (Coordinate,)>,
) -> Tensor<f64, ()> {
    let squared = ((a - b) / (&kernel.scales).exp()).square().sum(Coordinate);
    (&kernel.variance - squared * 0.5).exp().eval()
}

impl Kernel {
    /// The lower triangular factor of the covariance of the measurements.
    fn factor(&self, survey: &Survey) -> Tensor<f64, (Point, Prime<Point>)> {
        let heights = covariance(self, &survey.places, (&survey.places).prime(Point));
        let errors = select(Point.eq(prime(Point)), (&self.noise).exp(), 0.0);
        (heights + errors).cholesky(Point, prime(Point))
    }

    /// The negative logarithm of the likelihood of the heights.
    fn loss(&self, survey: &Survey) -> Tensor<f64, ()> {
        let factor = self.factor(survey);
        let white = factor.view().solve_triangular(&survey.heights, Point, prime(Point), Triangular::Lower);
        let half_log_det = factor.diagonal(Point, prime(Point), 0).ln().sum(Point);
        let count = survey.heights.size(Point) as f64;
        (half_log_det + (white.square().sum(prime(Point)) + count * TAU.ln()) * 0.5).eval()
    }
}

/// The learned kernel, and its loss.
fn learn(survey: &Survey, steps: u64) -> (Kernel, f64) {
    let mut kernel =
        Kernel { variance: full((), 0.0), scales: zeros(Coordinate), noise: full((), 0.1_f64.ln()) };
    let mut adam = Adam::new(Schedule::cosine(0.1, steps));
    for _ in 0..steps {
        let (_, gradient) = value_and_grad(|kernel| kernel.loss(survey), &mut kernel);
        adam.step(&mut kernel, &gradient);
    }
    let loss = kernel.loss(survey).order(());
    (kernel, loss)
}

/// The predicted height of a place, and its standard deviation.
#[batched]
fn predict(
    kernel: &Kernel,
    survey: &Survey,
    at: &Tensor<f64, (Coordinate,)>,
) -> (Tensor<f64, ()>, Tensor<f64, ()>) {
    let (factor, shared) = (kernel.factor(survey), covariance(kernel, &survey.places, at));
    let white = factor.view().solve_triangular(&survey.heights, Point, prime(Point), Triangular::Lower);
    let shared = factor.solve_triangular(shared, Point, prime(Point), Triangular::Lower);
    let variance = (&kernel.variance).exp() - (&shared).square().sum(prime(Point));
    (shared.contract(&white, prime(Point)), variance.sqrt().eval())
}

/// The land: hills to the east, and a slope to the north.
#[batched]
fn truth(at: &Tensor<f64, (Coordinate,)>) -> Tensor<f64, ()> {
    let (east, north) = (at.index(Coordinate, 0), at.index(Coordinate, 1));
    ((east * 2.0).sin() + (north * 0.7).cos() * 0.4).eval()
}

fn main() {
    let count = Point.of(40);
    let places = (rand::<f64, _>((count, Coordinate), 1) * 4.0).eval();
    let heights = (truth(&places) + randn::<f64, _>(count, 2) * 0.1).eval();
    let survey = Survey { places, heights };
    let (kernel, loss) = learn(&survey, 300);
    let scales = (&kernel.scales).exp().order(Coordinate);
    println!("heights are alike over {:.2} to the east and {:.2} to the north", scales[0], scales[1]);
    println!(
        "the standard deviation of measurement errors is {:.3}, and was 0.1 in the data",
        ((&kernel.noise).order(()) / 2.0).exp()
    );
    println!("log likelihood: {:.3}\n", -loss);

    let (row, column) = (Row.of(12), Column.of(36));
    let east = column.cast::<f64>() * (4.0 / 36.0) + 4.0 / 72.0;
    let north = row.cast::<f64>() * (4.0 / 12.0) + 4.0 / 24.0;
    let map = select(Coordinate.eq(0), east, north).eval();
    let (height, error) = predict(&kernel, &survey, &map);
    println!("The heights (north is down):\n{}", height.heat_map(Row, Column));
    println!("Their standard deviations:\n{}", error.heat_map(Row, Column));
    let off = ((height - truth(&map)) / error).square().mean((Row, Column)).order(());
    println!("true heights are off by {:.2} standard deviations, on average", off.sqrt());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The numbers that `reference.py` computes with scikit-learn.
    fn reference() -> Value {
        let all: Value = serde_json::from_str(include_str!("reference.json")).expect("the file is JSON");
        all["gaussian_process"].clone()
    }

    fn numbers(value: &Value) -> Vec<f64> {
        match value {
            Value::Array(list) => list.iter().flat_map(numbers).collect(),
            number => vec![number.as_f64().expect("the value is a number")],
        }
    }

    fn survey(reference: &Value) -> Survey {
        let heights = numbers(&reference["height"]);
        let count = Point.of(heights.len());
        let places = from_vec((count, Coordinate), numbers(&reference["at"]));
        Survey { places, heights: from_vec(count, heights) }
    }

    fn close(found: &[f64], expected: &Value, most: f64) {
        let expected = numbers(expected);
        let is_close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= most * b.abs().max(1.0));
        assert!(found.len() == expected.len() && is_close, "{found:?} instead of {expected:?}");
    }

    #[test]
    fn the_likelihood_and_its_gradient_are_those_of_scikit_learn() {
        let reference = reference();
        let survey = survey(&reference);
        let mut kernel =
            Kernel { variance: full((), 0.0), scales: zeros(Coordinate), noise: full((), 0.1_f64.ln()) };
        let (loss, gradient) = value_and_grad(|kernel| kernel.loss(&survey), &mut kernel);
        close(&[-loss], &reference["first_log_likelihood"], 1e-11);
        let mut found = vec![-gradient.variance.order(())];
        found.extend(gradient.scales.order(Coordinate).mapv(|slope| -slope));
        found.push(-gradient.noise.order(()));
        close(&found, &reference["first_gradient"], 1e-10);
    }

    #[test]
    fn the_optimum_and_its_predictions_are_those_of_scikit_learn() {
        let reference = reference();
        let survey = survey(&reference);
        let (kernel, loss) = learn(&survey, 400);
        let queries: Tensor<f64, (Row, Coordinate)> =
            from_vec((Row.of(6), Coordinate), numbers(&reference["queries"]));
        let (mean, error) = predict(&kernel, &survey, &queries);
        close(&[-loss], &reference["log_likelihood"], 1e-8);
        close(&[kernel.variance.exp().order(())], &reference["variance"], 1e-4);
        close(kernel.scales.exp().order(Coordinate).as_slice().unwrap(), &reference["scales"], 1e-4);
        close(&[kernel.noise.exp().order(())], &reference["noise"], 1e-4);
        close(mean.order(Row).as_slice().unwrap(), &reference["mean"], 1e-5);
        close(error.order(Row).as_slice().unwrap(), &reference["error"], 1e-5);
    }
}
