//! Trains a residual network from scratch to read handwritten digits.
//!
//! ```text
//! cargo run --release -p vision -- --seed 1 --epochs 60
//! ```

use clap::Parser;
use digits::Digits;
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use typed_dims::prelude::*;
use vision::report::{self, Line};
use vision::train::{self, Options};

/// Trains a residual network on one half of the UCI handwritten digits, and tests it on the other
/// half.
#[derive(Parser)]
#[command(name = "vision")]
struct Args {
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A gzipped file of lines with 64 pixels and a class
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz"), hide_default_value = true)]
    data: PathBuf,
    /// The folder for the measurements and the plot
    #[arg(long, default_value = "target/vision")]
    out: PathBuf,
    /// Number of passes over the images
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..))]
    epochs: u16,
    /// Channels of the feature maps
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    channels: u16,
    /// Number of residual blocks
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    blocks: u16,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let &Args { seed, epochs, channels, blocks, .. } = args;
    let start = Instant::now();
    let digits = Digits::read(&args.data)?;
    std::fs::create_dir_all(&args.out)?;
    let training = digits.len() / 2;
    println!("{} images: {training} to train on, {} to test with", digits.len(), digits.len() - training);
    let options = Options { seed, epochs: epochs.into(), channels: channels.into(), blocks: blocks.into() };
    let bar = progress(options.epochs);
    let mut lines = Vec::new();
    let (network, accuracy) = train::run(&digits, options, |line| {
        let Line { epoch, loss, accuracy } = line;
        bar.set_message(format!("loss {loss:.4}, test accuracy {accuracy:.4}"));
        bar.inc(1);
        if bar.is_hidden() && (epoch % 10 == 0 || epoch == options.epochs) {
            println!("epoch {epoch}: loss {loss:.4}, test accuracy {accuracy:.4}");
        }
        lines.push(line);
    });
    bar.finish_and_clear();
    report::write(&args.out.join("loss.csv"), &lines)?;
    report::draw(&args.out.join("loss.svg"), &lines)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{} weights, test accuracy {accuracy:.4}, {seconds:.0} s", network.count_elements());
    Ok(())
}

/// A progress bar, if stderr is a terminal.
fn progress(epochs: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("epoch {pos}/{len} {wide_bar} {msg}");
    ProgressBar::new(epochs as u64).with_style(style.expect("the template is well-formed"))
}
