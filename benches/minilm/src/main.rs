//! Sentences per second of examples/minilm, candle's BERT and PyTorch (transformers), on the same
//! tokens, each on one thread if run as below. The first two take turns; PyTorch runs after them.
//! The seconds are CPU time, which depends little on other load on the machine.
//!
//! ```text
//! RAYON_NUM_THREADS=1 cargo run --release -- --model DIR --file sentences.txt --python python3
//! ```

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use clap::Parser;
use comfy_table::Table;
use cpu_time::ProcessTime;
use minilm::files::{Files, read_json};
use minilm::model::{Batch, Width};
use minilm::text::{Reader, padded};
use ndarray::Array2;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;
use typed_dims::pipeline::execute::order::OrderExt;

#[derive(Parser)]
struct Args {
    /// The folder of the model
    #[arg(long)]
    model: PathBuf,
    /// One sentence per line
    #[arg(long)]
    file: PathBuf,
    /// A Python interpreter with torch and transformers. Without this option, PyTorch is left out
    #[arg(long)]
    python: Option<PathBuf>,
    /// Number of runs of typed-dims and candle; the best one counts
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Only runs typed-dims, for a profiler
    #[arg(long)]
    ours: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let files = Files::open(&args.model)?;
    let encoder = files.encoder()?;
    let text = std::fs::read_to_string(&args.file)?;
    let lines: Vec<&str> = text.lines().collect();
    let sentences = Reader::open(&args.model, files.settings)?.words(&lines)?;
    let candle = Candle::open(&args)?;

    let mut table = Table::new();
    table.set_header(["sentences per CPU second", "typed-dims", "candle", "PyTorch"]);
    for batch in [1, 32] {
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        let mut difference = 0f32;
        for _ in 0..args.runs {
            let start = ProcessTime::now();
            let a = in_batches(&sentences, batch, |sentences| {
                Ok(encoder.encode(&padded(sentences)).order((Batch, Width)))
            })?;
            ours = ours.min(start.elapsed().as_secs_f64());
            if !args.ours {
                let start = ProcessTime::now();
                let b = in_batches(&sentences, batch, |sentences| candle.encode(sentences))?;
                theirs = theirs.min(start.elapsed().as_secs_f64());
                difference = (a - b).iter().fold(difference, |most, x| most.max(x.abs()));
            }
        }
        let rate = |seconds: f64| format!("{:.1}", sentences.len() as f64 / seconds);
        let torch = match &args.python {
            Some(python) if !args.ours => pytorch(python, &args, batch)?,
            _ => "-".into(),
        };
        let candle = if args.ours { "-".into() } else { rate(theirs) };
        table.add_row([format!("batches of {batch}"), rate(ours), candle, torch]);
        if !args.ours {
            eprintln!("batches of {batch}: largest difference from candle {difference:.1e}");
        }
    }
    let tokens: usize = sentences.iter().map(Vec::len).sum();
    println!("{} sentences, {tokens} tokens\n{table}", sentences.len());
    Ok(())
}

fn pytorch(python: &PathBuf, args: &Args, batch: usize) -> Result<String, Box<dyn Error>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/minilm_reference.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--model").arg(&args.model).arg("--file").arg(&args.file);
    let out = command.args(["--threads", "1", "--time", &batch.to_string()]).output()?;
    let line = String::from_utf8(out.stdout)?;
    let last = line.lines().last().ok_or("no output of the Python script")?;
    let rate: serde_json::Value = serde_json::from_str(last)?;
    Ok(format!("{:.1}", rate["per_second"].as_f64().ok_or("no rate in the output of the Python script")?))
}

/// One row for each of `sentences`, in their order. All libraries get the same batches, of
/// sentences sorted by length.
fn in_batches(
    sentences: &[Vec<u32>],
    batch: usize,
    mut encode: impl FnMut(&[&[u32]]) -> Result<Array2<f32>, Box<dyn Error>>,
) -> Result<Array2<f32>, Box<dyn Error>> {
    let mut by_length: Vec<usize> = (0..sentences.len()).collect();
    by_length.sort_by_key(|&at| std::cmp::Reverse(sentences[at].len()));
    let mut out = Array2::zeros((sentences.len(), 384));
    for chunk in by_length.chunks(batch) {
        let together: Vec<&[u32]> = chunk.iter().map(|&at| sentences[at].as_slice()).collect();
        for (&at, row) in chunk.iter().zip(encode(&together)?.rows()) {
            out.row_mut(at).assign(&row);
        }
    }
    Ok(out)
}

/// candle's BERT, with mean pooling.
struct Candle {
    model: BertModel,
}

impl Candle {
    fn open(args: &Args) -> Result<Self, Box<dyn Error>> {
        let config: Config = read_json(&args.model.join("config.json"))?;
        let path = args.model.join("model.safetensors");
        // SAFETY: the file is not changed while the program runs.
        let vars = unsafe { VarBuilder::from_mmaped_safetensors(&[path], DType::F32, &Device::Cpu)? };
        Ok(Candle { model: BertModel::load(vars, &config)? })
    }

    fn encode(&self, sentences: &[&[u32]]) -> Result<Array2<f32>, Box<dyn Error>> {
        let longest = sentences.iter().map(|ids| ids.len()).max().unwrap_or(0);
        let shape = (sentences.len(), longest);
        let at = |f: &dyn Fn(&[u32], usize) -> u32| -> Vec<u32> {
            sentences.iter().flat_map(|ids| (0..longest).map(move |at| f(ids, at))).collect()
        };
        let ids = Tensor::from_vec(at(&|ids, at| ids.get(at).copied().unwrap_or(0)), shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(at(&|ids, at| (at < ids.len()).into()), shape, &Device::Cpu)?;
        let out = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let mean = out.broadcast_mul(&mask)?.sum(1)?.broadcast_div(&mask.sum(1)?)?;
        let rows = mean.broadcast_div(&mean.sqr()?.sum_keepdim(1)?.sqrt()?)?;
        Ok(Array2::from_shape_vec(rows.dims2()?, rows.flatten_all()?.to_vec1()?)?)
    }
}
