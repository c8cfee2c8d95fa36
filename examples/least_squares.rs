//! Least squares with error bars: the expansion of the universe, from Hubble's data.
//!
//! E. Hubble, *A relation between distance and radial velocity among extra-galactic nebulae*, 1929,
//! table 1. (The distances are too small by a factor of about seven.)
//!
//! ```text
//! cargo run --example least_squares --features linalg -- hubble.svg
//! ```

use plotters::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};
use typed_dims::prelude::*;

dims! {
    /// Observed nebulae.
    pub struct Nebula;
    /// The terms of the line: a constant, and one proportional to the distance.
    pub struct Term = 2;
    /// Distances at which the line is drawn.
    pub struct Grid;
}

/// Distance in megaparsecs, and velocity in kilometres per second.
const NEBULAE: [(f64, f64); 24] = [
    (0.032, 170.0),
    (0.034, 290.0),
    (0.214, -130.0),
    (0.263, -70.0),
    (0.275, -185.0),
    (0.275, -220.0),
    (0.45, 200.0),
    (0.5, 290.0),
    (0.5, 270.0),
    (0.63, 200.0),
    (0.8, 300.0),
    (0.9, -30.0),
    (0.9, 650.0),
    (0.9, 150.0),
    (0.9, 500.0),
    (1.0, 920.0),
    (1.1, 450.0),
    (1.1, 500.0),
    (1.4, 500.0),
    (1.7, 960.0),
    (2.0, 500.0),
    (2.0, 850.0),
    (2.0, 800.0),
    (2.0, 1090.0),
];

/// Half the width of a 95 % confidence interval, in standard errors: the 0.975 quantile of
/// Student's t distribution with 22 degrees of freedom.
const QUANTILE: f64 = 2.073_873_067_904_02;

/// The terms at a distance: 1, and the distance.
#[batched]
fn terms(distance: &Tensor<f64, ()>) -> Tensor<f64, (Term,)> {
    select(Term.eq(0), 1.0, distance).eval()
}

/// A fitted line, with the covariance of its parameters.
struct Fit {
    parameters: Tensor<f64, (Term,)>,
    covariance: Tensor<f64, (Term, Prime<Term>)>,
}

impl Fit {
    fn new(distance: &Tensor<f64, (Nebula,)>, velocity: &Tensor<f64, (Nebula,)>) -> Self {
        let x = terms(distance);
        let parameters = x.view().lstsq(velocity, Nebula, Term);
        let residual = velocity - x.contract(&parameters, Term);
        let variance = residual.square().sum(Nebula) / (distance.size(Nebula) - Term::SIZE) as f64;
        let precision = x.contract(x.view().prime(Term), Nebula);
        let covariance = (precision.inverse(Term, prime(Term)) * variance).eval();
        Fit { parameters, covariance }
    }

    /// The standard error of each parameter.
    fn errors(&self) -> Array1<f64> {
        (&self.covariance).diagonal(Term, prime(Term), 0).sqrt().order(Term)
    }
}

/// The velocity at a distance, and its standard error.
#[batched]
fn line(fit: &Fit, distance: &Tensor<f64, ()>) -> (Tensor<f64, ()>, Tensor<f64, ()>) {
    let x = terms(distance);
    let variance = x.contract(&fit.covariance, Term).contract((&x).prime(Term), prime(Term));
    (x.contract(&fit.parameters, Term), variance.sqrt().eval())
}

/// Draws the nebulae, the line, and its 95 % confidence interval at each distance.
fn draw(path: &Path, fit: &Fit) -> Result<(), Box<dyn Error>> {
    let grid = linspace(Grid.of(100), 0.0, 2.2);
    let (velocity, error) = line(fit, &grid);
    let (low, high) = (&velocity - &error * QUANTILE, &velocity + &error * QUANTILE);
    let at = (&grid).order(Grid);
    let curve = |y: Array1<f64>| at.iter().copied().zip(y).collect::<Vec<_>>();
    let (line, low, high) = (curve((&velocity).order(Grid)), curve(low.order(Grid)), curve(high.order(Grid)));
    let band = low.into_iter().chain(high.into_iter().rev()).collect::<Vec<_>>();

    let area = SVGBackend::new(path, (720, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..2.2, -400.0..1300.0)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("distance in Mpc").y_desc("velocity in km/s").light_line_style(WHITE).draw()?;
    chart.draw_series([Polygon::new(band, BLUE.mix(0.15))])?;
    chart.draw_series(LineSeries::new(line, BLUE.stroke_width(2)))?;
    chart.draw_series(NEBULAE.map(|nebula| Circle::new(nebula, 3, BLACK.filled())))?;
    area.present()?;
    Ok(())
}

fn hubble() -> Fit {
    let (distance, velocity): (Vec<_>, Vec<_>) = NEBULAE.into_iter().unzip();
    let count = Nebula.of(NEBULAE.len());
    Fit::new(&from_vec(count, distance), &from_vec(count, velocity))
}

fn main() -> Result<(), Box<dyn Error>> {
    let fit = hubble();
    let (found, errors) = ((&fit.parameters).order(Term), fit.errors());
    println!("velocity = {:.0} + {:.0} * distance", found[0], found[1]);
    println!("the expansion: {:.0} ± {:.0} km/s per Mpc", found[1], errors[1]);
    println!("the constant:  {:.0} ± {:.0} km/s", found[0], errors[0]);
    let covariance = (&fit.covariance).order((Term, prime(Term)));
    println!("their correlation: {:.2}", covariance[[0, 1]] / (errors[0] * errors[1]));
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("hubble.svg"), PathBuf::from);
    draw(&path, &fit)?;
    println!("{}", path.display());
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

    /// Compares with NumPy and SciPy: see `reference.py`.
    #[test]
    fn the_fit_and_its_band_are_those_of_scipy() {
        let all: Value = serde_json::from_str(include_str!("reference.json")).expect("the file is JSON");
        let close = |found: Vec<f64>, name: &str| {
            let expected = numbers(&all["least_squares"][name]);
            let is_close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-11 * b.abs());
            assert!(found.len() == expected.len() && is_close, "{name}: {found:?} instead of {expected:?}");
        };
        let fit = hubble();
        let grid = from_vec(Grid.of(3), numbers(&all["least_squares"]["at"]));
        let (curve, error) = line(&fit, &grid);
        close(curve.order(Grid).to_vec(), "curve");
        close((error * QUANTILE).order(Grid).to_vec(), "band");
        close(fit.parameters.order(Term).to_vec(), "parameters");
        close(fit.covariance.order((Term, prime(Term))).into_iter().collect(), "covariance");
    }

    #[test]
    fn the_picture_is_whole() {
        let path = std::env::temp_dir().join(format!("typed_dims_hubble_{}.svg", std::process::id()));
        draw(&path, &hubble()).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let count = |name| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!(count("circle"), NEBULAE.len());
        assert_eq!(count("polygon"), 1);
    }
}
