//! Trains a decoder on a text, character by character, and samples from it.
//!
//! ```text
//! cargo run --release -p gpt -- train
//! cargo run --release -p gpt -- train --engine xla --mesh data=2,model=2 --text book.txt
//! cargo run --release -p gpt -- sample --prompt "In the beginning"
//! ```

use clap::{Args, Parser, Subcommand};
use engine::{Engine, EngineArgs};
use gpt::report::{self, Line};
use gpt::sample::{self, sample};
use gpt::text::{Corpus, Vocabulary, bible, check_length};
use gpt::train::{Options, Training};
use indicatif::{ProgressBar, ProgressStyle};
use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use typed_dims::prelude::*;
use typed_dims_xla::XlaError;

/// The number of steps between two measurements of the test loss. Each measurement saves a
/// checkpoint.
const PERIOD: usize = 100;

/// Trains a character-level decoder, and samples text from it.
#[derive(Parser)]
#[command(name = "gpt")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// The folder for the checkpoint, the measurements and the plot
    #[arg(long, global = true, default_value = "target/gpt")]
    out: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Trains from scratch, or resumes from the checkpoint
    Train(Train),
    /// Samples text from a trained decoder
    Sample(Sample),
    /// Saves the initial weights and the training passages, for `python/train.py`
    Export(Train),
}

#[derive(Args)]
struct Train {
    /// Resume from the checkpoint, with its settings
    #[arg(long)]
    resume: bool,
    /// Number of training steps
    #[arg(long, default_value_t = 1500)]
    steps: usize,
    /// Number of layers
    #[arg(long, default_value_t = 4)]
    layers: usize,
    /// Number of attention heads
    #[arg(long, default_value_t = 4)]
    heads: usize,
    /// Features of a token: a multiple of twice the number of heads
    #[arg(long, default_value_t = 128)]
    width: usize,
    /// Characters in a passage
    #[arg(long, default_value_t = 128)]
    context: usize,
    /// Passages in a batch
    #[arg(long, default_value_t = 16)]
    batch: usize,
    /// The peak learning rate
    #[arg(long, default_value_t = 3e-3)]
    rate: f32,
    /// Seed of the initial weights and of the training passages
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A text file to train on, instead of the Bible
    #[arg(long)]
    text: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Args)]
struct Sample {
    /// The beginning of the text
    #[arg(long, default_value = "In the beginning")]
    prompt: String,
    /// Number of characters to sample
    #[arg(long, default_value_t = 600)]
    count: usize,
    /// Divides the scores: below 1, likely characters become more likely
    #[arg(long, default_value_t = 0.8)]
    temperature: f32,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn main() -> ExitCode {
    let Cli { command, out } = Cli::parse();
    let done = match command {
        Command::Train(args) => train(&args, &out),
        Command::Sample(args) => write(&args, &out),
        Command::Export(args) => export(&args, &out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn checkpoint(out: &Path) -> PathBuf {
    out.join("checkpoint.safetensors")
}

fn checked(args: &Train) -> Result<(), String> {
    if args.heads == 0 || args.width == 0 || !args.width.is_multiple_of(2 * args.heads) {
        return Err(format!(
            "the width {} is not a positive multiple of twice the number of heads, {}",
            args.width, args.heads
        ));
    }
    if args.layers == 0 || args.context == 0 || args.batch == 0 {
        return Err("layers, context and batch must be at least 1".into());
    }
    Ok(())
}

fn train(args: &Train, out: &Path) -> Result<(), Box<dyn Error>> {
    checked(args)?;
    std::fs::create_dir_all(out)?;
    let (text, engine) = (text(args)?, args.engine.start()?);
    let mut training = match args.resume {
        true => Training::open(&checkpoint(out), &engine)?,
        false => fresh(args, &text, &engine)?,
    };
    let corpus = Corpus::new(training.vocabulary.encode(&text)?);
    let Options { steps, context, .. } = training.options;
    check_length(&corpus.test, context)?;
    println!(
        "{} weights on {engine}; {} characters to learn from, {} to test with, {} distinct characters",
        training.with_state(|(gpt, _)| gpt.count_elements())?,
        corpus.training.len(),
        corpus.test.len(),
        training.vocabulary.len(),
    );

    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed))?;
    let metrics = out.join("loss.csv");
    let mut lines = report::read(&metrics, training.steps())?;
    let bar = progress(steps, training.steps());
    let begin = Instant::now();
    while training.steps() < steps && !stop.load(Ordering::Relaxed) {
        let (start, rate) = (Instant::now(), training.rate());
        let loss = training.step(&corpus)?;
        let tokens_per_second = training.tokens() as f64 / start.elapsed().as_secs_f64();
        let (step, last) = (training.steps(), training.steps() == steps);
        let test_loss =
            (step.is_multiple_of(PERIOD) || last).then(|| training.test_loss(&corpus)).transpose()?;
        lines.push(Line { step, loss, test_loss, rate, tokens_per_second });
        bar.set_message(format!("loss {loss:.3}, {tokens_per_second:.0} tokens/s"));
        bar.inc(1);
        if let Some(test_loss) = test_loss {
            let line =
                format!("step {step}: loss {loss:.4}, test {test_loss:.4}, {tokens_per_second:.0} tokens/s");
            if bar.is_hidden() {
                println!("{line}")
            } else {
                bar.println(line)
            }
            keep(&training, &lines, out)?;
        }
    }
    bar.finish_and_clear();
    keep(&training, &lines, out)?;
    let files = out.display();
    println!("{} of {steps} steps, {:.0} s; {files}", training.steps(), begin.elapsed().as_secs_f64());
    Ok(())
}

fn text(args: &Train) -> Result<String, Box<dyn Error>> {
    match &args.text {
        None => bible(),
        Some(path) => {
            Ok(std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
    }
}

fn fresh(args: &Train, text: &str, engine: &Engine) -> Result<Training, XlaError> {
    let &Train { steps, layers, heads, width, context, batch, rate, seed, .. } = args;
    // With 8/3 of the width, the three matrices of SwiGLU have as many weights as two matrices with
    // four times the width.
    let inner = (8 * width).div_ceil(3).next_multiple_of(8);
    let warm_up = steps / 15;
    let options = Options { layers, heads, width, inner, context, batch, steps, warm_up, rate, seed };
    Training::new(options, Vocabulary::of(text), engine)
}

fn export(args: &Train, out: &Path) -> Result<(), Box<dyn Error>> {
    checked(args)?;
    std::fs::create_dir_all(out)?;
    let text = text(args)?;
    let training = fresh(args, &text, &Engine::Cpu)?;
    let corpus = Corpus::new(training.vocabulary.encode(&text)?);
    training.export(&corpus, args.steps, &out.join("passages.safetensors"))?;
    training.save(&checkpoint(out))
}

/// Saves the checkpoint, the measurements and the plot.
fn keep(training: &Training, lines: &[Line], out: &Path) -> Result<(), Box<dyn Error>> {
    training.save(&checkpoint(out))?;
    report::write(&out.join("loss.csv"), lines)?;
    report::draw(&out.join("loss.svg"), lines)
}

/// A progress bar, if stderr is a terminal.
fn progress(steps: usize, made: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {msg}, {eta} left");
    let bar = ProgressBar::new(steps as u64).with_style(style.expect("the template is well-formed"));
    bar.with_position(made as u64)
}

fn write(args: &Sample, out: &Path) -> Result<(), Box<dyn Error>> {
    let training = Training::open(&checkpoint(out), &Engine::Cpu)?;
    let prompt = training.vocabulary.encode(&args.prompt)?;
    if prompt.is_empty() {
        return Err("the prompt is empty".into());
    }
    if args.temperature <= 0.0 || !args.temperature.is_finite() {
        return Err(format!("the temperature {} is not a finite number above 0", args.temperature).into());
    }
    let context = training.options.context.max(2);
    let options =
        sample::Options { count: args.count, temperature: args.temperature, context, seed: args.seed };
    print!("{}", args.prompt);
    let start = Instant::now();
    let mut failed = Ok(());
    training.with_state(|(gpt, _)| {
        sample(gpt, &[prompt], options, |ids| {
            let mut out = std::io::stdout();
            let written = write!(out, "{}", training.vocabulary.decode(ids)).and_then(|()| out.flush());
            if failed.is_ok() {
                failed = written;
            }
        })
    })?;
    failed?;
    let rate = args.count as f64 / start.elapsed().as_secs_f64();
    println!();
    eprintln!("{rate:.0} characters per second");
    Ok(())
}
