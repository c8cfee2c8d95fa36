//! Trains a network of two layers to read handwritten digits.
//!
//! ```text
//! cargo run --release --example digits -- --seed 1 --epochs 40 --hidden 256
//! cargo run --release --example digits -- --engine xla --mesh data=2,model=2
//! ```

mod model;
mod train;

use clap::Parser;
use digits::{Class, Digits};
use engine::EngineArgs;
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use train::{Options, Outcome};
use typed_dims::prelude::*;

/// Trains a network on one half of the UCI handwritten digits, and tests it on the other half.
#[derive(Parser)]
#[command(name = "digits")]
struct Args {
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A gzipped file of lines with 64 pixels and a class
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz"), hide_default_value = true)]
    data: PathBuf,
    /// Number of passes over the images
    #[arg(long, default_value_t = 40)]
    epochs: usize,
    /// Units of the hidden layer
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    hidden: u16,
    #[command(flatten)]
    engine: EngineArgs,
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
    let start = Instant::now();
    let digits = Digits::read(&args.data)?;
    let engine = args.engine.start()?;
    let training = digits.len() / 2;
    println!("{} images: {training} to train on, {} to test with", digits.len(), digits.len() - training);
    println!("training on {engine}");

    let options = Options { seed: args.seed, epochs: args.epochs, hidden: args.hidden.into() };
    let progress = Progress::new(options.epochs);
    let outcome = train::run(&digits, options, &engine, |epoch, loss| progress.show(epoch, loss))?;
    progress.finish();

    report(&outcome);
    println!("\ntest accuracy: {:.4} ({:.2} s)", outcome.accuracy, start.elapsed().as_secs_f64());
    Ok(())
}

/// A progress bar on a terminal; otherwise at most ten lines.
struct Progress {
    bar: Option<ProgressBar>,
    epochs: usize,
}

impl Progress {
    fn new(epochs: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("epoch {pos}/{len} {wide_bar} {msg}");
            ProgressBar::new(epochs as u64).with_style(style.expect("the template is well-formed"))
        });
        Progress { bar, epochs }
    }

    fn show(&self, epoch: usize, loss: f32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("loss {loss:.4}"));
            bar.set_position(epoch as u64);
        } else if epoch.is_multiple_of(self.epochs.div_ceil(10)) || epoch == self.epochs {
            println!("epoch {epoch}/{}: loss {loss:.4}", self.epochs);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }
}

/// The confusion matrix as a table.
fn report(Outcome { confusion, .. }: &Outcome) {
    let line =
        |cells: &mut dyn Iterator<Item = String>| cells.map(|cell| format!("{cell:>5}")).collect::<String>();
    let classes = || 0..Class::SIZE;
    println!("\nrows: the digit, columns: what it was read as\n");
    println!("      |{} | correct", line(&mut classes().map(|class| class.to_string())));
    println!("------+{}-+--------", "-----".repeat(Class::SIZE));

    dims!(truth, guess);
    let confusion = confusion.at((truth, guess));
    let totals = confusion.sum(guess).order(truth);
    for class in classes() {
        let row = confusion.index(truth, class).order(guess);
        let cells = row.iter().map(|&count| if count == 0 { ".".into() } else { count.to_string() });
        let share = 100.0 * row[class] as f64 / totals[class].max(1) as f64;
        println!("{class:>5} |{} | {share:>5.1} %", line(&mut { cells }));
    }
}
