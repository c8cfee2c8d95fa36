//! Principal components of the handwritten digits, as a picture: all images in the plane of the
//! first two components, and the mean image of each digit at its position.
//!
//! ```text
//! cargo run --release --example components --features linalg -- components.svg
//! ```

use digits::{Class, Digits, Example, Labels, Pixel};
use plotters::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};
use typed_dims::prelude::*;

dims! {
    /// Directions in which images differ. The first has the greatest variance.
    pub struct Component;
}

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");

type Images = Tensor<f64, (Example, Pixel)>;

/// The mean of images, and the directions in which they differ.
struct Components {
    mean: Tensor<f64, (Pixel,)>,
    /// Orthogonal, each of length 1.
    directions: Tensor<f64, (Component, Pixel)>,
    /// The variance of the images in each direction.
    variances: Tensor<f64, (Component,)>,
}

impl Components {
    fn of(images: &Images) -> Self {
        let mean = images.mean(Example);
        let centered = (images - &mean).eval();
        let (_, lengths, directions) = centered.svd(Example, Pixel, Component);
        let variances = (lengths.square() / (images.size(Example) - 1) as f64).eval();
        Components { mean, directions, variances }
    }

    /// The coordinates of images along the directions.
    fn project(&self, images: &Images) -> Tensor<f64, (Example, Component)> {
        (images - &self.mean).contract(&self.directions, Pixel)
    }
}

/// The mean image of each digit.
fn means(images: &Images, labels: &Labels) -> Tensor<f64, (Class, Pixel)> {
    let is_of = labels.eq(Class).cast::<f64>().eval();
    (is_of.contract(images, Example) / is_of.sum(Example)).eval()
}

/// The pixels of an image with this center and height.
fn stamp(
    image: &Tensor<f64, (Pixel,)>,
    (x, y): (f64, f64),
    height: f64,
    ink: impl Fn(f64) -> RGBAColor,
) -> Vec<Rectangle<(f64, f64)>> {
    let corner = |row: usize, column: usize| {
        (x + height * (column as f64 / 8.0 - 0.5), y - height * (row as f64 / 8.0 - 0.5))
    };
    let pixel = |(at, &value): (usize, &f64)| {
        let (row, column) = (at / 8, at % 8);
        Rectangle::new([corner(row, column), corner(row + 1, column + 1)], ink(value).filled())
    };
    image.view().order(Pixel).iter().enumerate().map(pixel).collect()
}

/// Draws the plane of the first two components. Below it are the mean image and the first seven
/// components.
fn draw(path: &Path, found: &Components, images: &Images, labels: &Labels) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (800, 900)).into_drawing_area();
    area.fill(&WHITE)?;
    let (plane, strip) = area.split_vertically(800);

    let mut chart = ChartBuilder::on(&plane).build_cartesian_2d(-2.5..2.5, -2.5..2.5)?;
    let at = found.project(images).order((Example, Component));
    let dots = at.outer_iter().zip(labels.view().order(Example)).map(|(at, label)| {
        let hue = label as f64 / Class::SIZE as f64;
        Circle::new((at[0], at[1]), 3, HSLColor(hue, 0.8, 0.5).mix(0.5).filled())
    });
    chart.draw_series(dots)?;
    let means = means(images, labels);
    let centers = (&means - &found.mean).contract(&found.directions, Pixel).order((Class, Component));
    for (class, center) in centers.outer_iter().enumerate() {
        let image = means.view().index(Class, class as isize).eval();
        chart.draw_series(stamp(&image, (center[0], center[1]), 0.4, |ink| BLACK.mix(ink)))?;
    }

    let mut chart = ChartBuilder::on(&strip).build_cartesian_2d(-0.5..7.5, -0.5..0.5)?;
    chart.draw_series(stamp(&found.mean, (0.0, 0.0), 0.9, |ink| BLACK.mix(ink)))?;
    for place in 1..8 {
        let direction = found.directions.view().index(Component, place - 1).eval();
        let most = direction.view().abs().max(Pixel).order(());
        let ink = |value: f64| if value < 0.0 { BLUE.mix(-value / most) } else { RED.mix(value / most) };
        chart.draw_series(stamp(&direction, (place as f64, 0.0), 0.9, ink))?;
    }
    area.present()?;
    Ok(())
}

fn read() -> Result<(Images, Labels), Box<dyn Error>> {
    let digits = Digits::read(Path::new(DATA))?;
    let (images, labels) = digits.batch(&(0..digits.len()).collect::<Vec<_>>());
    Ok((images.cast().eval(), labels))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (images, labels) = read()?;
    let found = Components::of(&images);
    let shares = (&found.variances / found.variances.sum(Component)).cumsum(Component).order(Component);
    for count in [1, 2, 5, 10, 20, 40] {
        println!("{count:>3} of 64 components: {:>5.1} % of the variance", 100.0 * shares[count - 1]);
    }
    let path =
        std::env::args_os().nth(1).map_or_else(|| std::env::temp_dir().join("components.svg"), PathBuf::from);
    draw(&path, &found, &images, &labels)?;
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

    /// The expected values are from `examples/reference.py`.
    #[test]
    fn components_are_those_of_scikit_learn() {
        let all: Value =
            serde_json::from_str(include_str!("../../reference.json")).expect("the file is JSON");
        let close = |found: Vec<f64>, name: &str| {
            let expected = numbers(&all["components"][name]);
            let is_close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() <= 1e-12);
            assert!(found.len() == expected.len() && is_close, "{name}: {found:?} instead of {expected:?}");
        };
        let (images, labels) = read().unwrap();
        let found = Components::of(&images);
        close(found.mean.view().order(Pixel).to_vec(), "mean");
        close(found.variances.view().slice(Component, ..8).order(Component).to_vec(), "variances");
        let shares = &found.variances / found.variances.sum(Component);
        close(shares.slice(Component, ..8).order(Component).to_vec(), "shares");
        // In the reference, the element of greatest magnitude in each direction is positive.
        let greatest = found.directions.view().abs().argmax(Pixel);
        let sign = found.directions.view().take(Pixel, greatest).signum();
        let directions = (&found.directions * sign).slice(Component, ..2).order((Component, Pixel));
        close(directions.into_iter().collect(), "directions");
        let means = (means(&images, &labels) - &found.mean).order((Class, Pixel));
        close(means.slice(s![.., ..3]).iter().copied().collect(), "class_means");
    }

    #[test]
    fn the_picture_is_whole() {
        let path = std::env::temp_dir().join(format!("typed_dims_components_{}.svg", std::process::id()));
        let (images, labels) = read().unwrap();
        draw(&path, &Components::of(&images), &images, &labels).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let count = |name| document.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!(count("circle"), labels.size(Example));
        assert!(count("rect") > 8 * Pixel::SIZE, "{} pixels", count("rect"));
    }
}
