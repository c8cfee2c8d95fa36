//! The measurements of a training run: lines of CSV, and a plot of the loss.

use plotters::prelude::*;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;

/// The measurements of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The number of steps so far.
    pub step: usize,
    /// The loss of the step's batch, in nats per character.
    pub loss: f32,
    /// The loss of test passages, if it was measured.
    pub test_loss: Option<f32>,
    /// The learning rate of the step.
    pub rate: f64,
    /// Characters trained on per second.
    pub tokens_per_second: f64,
}

/// Reads the lines of a file up to the step `up_to`. There are none if the file does not exist.
pub fn read(path: &Path, up_to: usize) -> Result<Vec<Line>, Box<dyn Error>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let lines = csv::Reader::from_path(path)?.into_deserialize().collect::<Result<Vec<Line>, _>>()?;
    Ok(lines.into_iter().filter(|line| line.step <= up_to).collect())
}

/// Writes the lines to a file.
pub fn write(path: &Path, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let mut file = csv::Writer::from_path(path)?;
    for line in lines {
        file.serialize(line)?;
    }
    Ok(file.flush()?)
}

/// Plots the losses over the steps.
pub fn draw(path: &Path, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let steps = lines.last().map_or(1, |line| line.step);
    let highest = lines.iter().map(|line| line.loss).fold(1.0, f32::max);
    let area = SVGBackend::new(path, (720, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0..steps, 0.0..highest)?;
    chart
        .configure_mesh()
        .x_desc("step")
        .y_desc("loss, nats per character")
        .light_line_style(WHITE)
        .draw()?;
    let training = lines.iter().map(|line| (line.step, line.loss));
    let test = lines.iter().filter_map(|line| Some((line.step, line.test_loss?)));
    let key = |color: RGBColor| move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2));
    chart.draw_series(LineSeries::new(training, BLUE.mix(0.6)))?.label("training").legend(key(BLUE));
    chart.draw_series(LineSeries::new(test, RED.stroke_width(2)))?.label("test").legend(key(RED));
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    area.present()?;
    Ok(())
}
