//! Compares the meaning of sentences by their all-MiniLM-L6-v2 embeddings.
//!
//! ```text
//! cargo run --release -p minilm -- --model DIR "a sentence" "another one"
//! cargo run --release -p minilm -- --model DIR --file sentences.txt --out embeddings.npy
//! ```

use clap::Parser;
use comfy_table::{Cell, Color, Table};
use indicatif::{ProgressBar, ProgressStyle};
use minilm::files::Files;
use minilm::text::{Reader, embed};
use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use typed_dims::file::npy;
use typed_dims::prelude::*;

/// Prints the similarity of sentences by their all-MiniLM-L6-v2 embeddings, or writes the embedding
/// of each line of a file.
#[derive(Parser)]
#[command(name = "minilm")]
struct Args {
    /// The folder with model.safetensors, config.json and tokenizer.json
    #[arg(long)]
    model: PathBuf,
    /// Sentences to compare with each other
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    sentences: Vec<String>,
    /// A text file with one sentence per line
    #[arg(long, requires = "out")]
    file: Option<PathBuf>,
    /// The output file for the embeddings: lines x 384 numbers, as .npy
    #[arg(long, requires = "file")]
    out: Option<PathBuf>,
    /// Sentences in a batch
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    batch: u16,
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
    let files = Files::open(&args.model)?;
    let encoder = files.encoder()?;
    let reader = Reader::open(&args.model, files.settings)?;
    let batch = args.batch.into();
    if let (Some(file), Some(out)) = (&args.file, &args.out) {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let lines: Vec<&str> = text.lines().collect();
        let start = Instant::now();
        let bar = progress(lines.len());
        let embeddings = embed(&encoder, &reader.words(&lines)?, batch, |n| bar.inc(n as u64));
        bar.finish_and_clear();
        write(out, &embeddings)?;
        let seconds = start.elapsed().as_secs_f64();
        let (count, rate) = (lines.len(), lines.len() as f64 / seconds);
        println!("{count} lines in {seconds:.2} s ({rate:.0} per second): {}", out.display());
        return Ok(());
    }
    let embeddings = embed(&encoder, &reader.words(&args.sentences)?, batch, |_| ());
    let likeness = einsum!(embeddings[i, w] * embeddings[j, w] => [i, j]);
    println!("{}", table(&args.sentences, &likeness));
    Ok(())
}

fn write(path: &Path, embeddings: &Array2<f32>) -> Result<(), Box<dyn Error>> {
    dims!(line, width);
    Ok(npy::save(path, embeddings.at((line, width)))?)
}

/// A progress bar, if stderr is a terminal.
fn progress(lines: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{pos}/{len} lines {wide_bar} {per_sec}, {eta} left");
    ProgressBar::new(lines as u64).with_style(style.expect("the template is well-formed"))
}

/// A table of the cosine similarities of all pairs, from -1 to 1. More similar pairs have darker
/// cells. A terminal shows the cells in color.
fn table(sentences: &[String], likeness: &Array2<f32>) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::UTF8_FULL_CONDENSED);
    let numbers = (1..=sentences.len()).map(Cell::new);
    table.set_header([Cell::new(""), Cell::new("sentence")].into_iter().chain(numbers));
    for (at, (sentence, row)) in sentences.iter().zip(likeness.rows()).enumerate() {
        let short: String = sentence.chars().take(40).collect();
        let cells = row.iter().map(|&likeness| shade(likeness));
        table.add_row([Cell::new(at + 1), Cell::new(short)].into_iter().chain(cells));
    }
    table
}

fn shade(likeness: f32) -> Cell {
    let level = likeness.clamp(0.0, 1.0);
    let mark = [' ', '░', '▒', '▓', '█'][(4.0 * level).round() as usize];
    let text = format!("{likeness:>5.2} {mark}{mark}");
    if !std::io::stdout().is_terminal() {
        return Cell::new(text);
    }
    let part = |from: f32, to: f32| (from + level * (to - from)) as u8;
    let color = Color::Rgb { r: part(250.0, 20.0), g: part(250.0, 90.0), b: part(250.0, 160.0) };
    let ink = if level > 0.5 { Color::White } else { Color::Black };
    Cell::new(text).bg(color).fg(ink)
}
