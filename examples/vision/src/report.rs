//! The measurements of a training run: lines of CSV, and a plot of the loss and the error rate.

use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

/// The measurements after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// The number of epochs so far.
    pub epoch: usize,
    /// The mean loss of the epoch.
    pub loss: f32,
    /// The share of test images that are classified correctly.
    pub accuracy: f64,
}

/// Writes the lines to a file.
pub fn write(path: &Path, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let mut file = csv::Writer::from_path(path)?;
    file.write_record(["epoch", "loss", "accuracy"])?;
    for Line { epoch, loss, accuracy } in lines {
        file.write_record([epoch.to_string(), loss.to_string(), accuracy.to_string()])?;
    }
    Ok(file.flush()?)
}

/// The least value that the plot shows.
const LEAST: f64 = 0.0005;

/// Plots the loss and the error rate over the epochs.
pub fn draw(path: &Path, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let epochs = lines.last().map_or(1, |line| line.epoch);
    let area = SVGBackend::new(path, (720, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(48)
        .build_cartesian_2d(0..epochs, (LEAST..2.0).log_scale())?;
    chart.configure_mesh().x_desc("epoch").light_line_style(WHITE).draw()?;
    let key = |color: RGBColor| move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2));
    let loss = lines.iter().map(|line| (line.epoch, f64::from(line.loss)));
    chart.draw_series(LineSeries::new(loss, BLUE.stroke_width(2)))?.label("training loss").legend(key(BLUE));
    // A logarithmic axis has no 0.
    let errors = lines.iter().map(|line| (line.epoch, (1.0 - line.accuracy).max(LEAST)));
    chart.draw_series(LineSeries::new(errors, RED.stroke_width(2)))?.label("test errors").legend(key(RED));
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    area.present()?;
    Ok(())
}
