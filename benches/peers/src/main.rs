//! Compares typed-dims with its alternatives in Rust: the same cases and data, in one process, in
//! turns.

mod bench;
mod cases;
mod check;
mod decoder;
mod gemms;
mod measure;
mod plain;
mod probe;
mod report;
mod rotation;

use bench::Peer;
use cases::{CASES, Case};
use clap::{Args, Parser, Subcommand};
use measure::Effort;
use probe::Limits;
use report::{Entry, Language, Record, Report};
use rotation::Turn;
use std::error::Error;
use std::iter;
use std::path::PathBuf;

/// Times typed-dims and its alternatives on the same cases.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the cases.
    List,
    /// Measures cases.
    Run(Run),
    /// Measures the decoder of `examples/gpt` in typed-dims, candle and burn: training steps, and
    /// sampling with a cache.
    Decoder(decoder::Options),
    /// Writes the inputs of a case as .npy files, and the result as `out.npy`.
    Export {
        /// The name of the case.
        case: String,
        /// An existing folder.
        folder: PathBuf,
    },
    /// Merges files of results and prints them as tables.
    Table {
        /// Files from `run --json` or compare.py. Later files override earlier ones.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Prints the times of all peers as well.
        #[arg(long)]
        full: bool,
    },
}

#[derive(Args)]
struct Run {
    /// Cases, by name or prefix; all if none are given.
    cases: Vec<String>,
    /// The number of threads for each peer.
    #[arg(long, short, default_value_t = 1)]
    threads: usize,
    /// Peers, by prefix of their names; all if none are given.
    #[arg(long, short)]
    peer: Vec<String>,
    /// Keeps arrays out of the cache, except in tiny cases and training steps: calls cycle through
    /// copies of the arrays that fill 1 GiB.
    #[arg(long, conflicts_with = "json")]
    from_memory: bool,
    /// A file of results to create or to add to.
    #[arg(long, short)]
    json: Option<PathBuf>,
    #[command(flatten)]
    effort: Effort,
}

fn main() -> Result<(), Box<dyn Error>> {
    match Cli::parse().command {
        Command::List => {
            for case in CASES {
                println!("{:16} {}", case.name, case.formula);
            }
            Ok(())
        }
        Command::Run(run) => run_cases(&run),
        Command::Decoder(options) => {
            set_threads(options.threads)?;
            decoder::run(&options)
        }
        Command::Export { case, folder } => {
            let case = selected(&[case])?[0];
            let mut bench = case.bench(1, false);
            bench.export(&folder)?;
            let result = (bench.peers[0].result)();
            Ok(ndarray_npy::write_npy(folder.join("out.npy"), &ndarray::Array1::from(result))?)
        }
        Command::Table { files, full } => {
            let mut report = Report::default();
            for file in files {
                report.merge(Report::read(&file)?);
            }
            print_tables(&report, full);
            Ok(())
        }
    }
}

/// For each name, the case with exactly that name, otherwise all cases whose names start with it.
/// Without names, all cases.
fn selected(names: &[String]) -> Result<Vec<&'static Case>, String> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let exact = |name: &String| CASES.iter().find(|case| case.name == *name);
    let mut all = Vec::new();
    for name in names {
        let found: Vec<_> = match exact(name) {
            Some(case) => vec![case],
            None => CASES.iter().filter(|case| case.name.starts_with(name.as_str())).collect(),
        };
        if found.is_empty() {
            return Err(format!("no case begins with `{name}`; `peers list` prints all cases"));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Gives all libraries the same number of threads; `matrixmultiply` uses at most 4.
fn set_threads(threads: usize) -> Result<(), Box<dyn Error>> {
    for name in ["RAYON_NUM_THREADS", "MATMUL_NUM_THREADS"] {
        // SAFETY: no other thread has started yet, so none reads the environment.
        unsafe { std::env::set_var(name, threads.to_string()) };
    }
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?)
}

fn run_cases(run: &Run) -> Result<(), Box<dyn Error>> {
    let cases = selected(&run.cases)?;
    set_threads(run.threads)?;
    measure::wait_for_quiet(std::time::Instant::now() + std::time::Duration::from_secs(5));
    let limits = Limits::probe(run.threads);
    eprintln!(
        "threads: {}, GFLOP/s: {:.0} in f32, {:.0} in f64",
        run.threads,
        1e-9 * limits.f32_flops,
        1e-9 * limits.f64_flops,
    );
    for case in &cases {
        let copies = if run.from_memory { case.copies_beyond_caches() } else { 1 };
        let wanted = |peer: &Peer| {
            run.peer.is_empty() || run.peer.iter().any(|name| peer.name.starts_with(name.as_str()))
        };
        let set_up = || {
            let mut peers = case.bench(run.threads, copies > 1).peers;
            peers.retain(wanted);
            peers
        };
        let turn = Turn::new();
        let mut peers = set_up();
        check::agree(case, &mut peers)?;
        if copies > 1 {
            let setups = iter::once(peers).chain(iter::repeat_with(set_up)).take(copies);
            peers = rotation::in_turns(setups, &turn);
        }
        let count = peers.len();
        peers.extend(case.memory(run.threads, copies, &turn));
        let measured = measure::measure(&mut peers, run.effort);
        let probes = count..peers.len();
        let entries: Vec<Entry> = (0..count)
            .map(|at| {
                let times = measured.times(at);
                let memory = measured.ratio(probes.clone(), at);
                Entry {
                    peer: peers[at].name.into(),
                    language: Language::Rust,
                    min: times.min,
                    median: times.median,
                    rounds: times.rounds,
                    turns: measured.turns(at),
                    of_limit: memory.map(|memory| case.of_limit(&limits, times.min, memory)),
                }
            })
            .collect();
        eprint!("{} ({} quiet rounds), ms:", case.name, measured.quiet_rounds());
        for entry in &entries {
            eprint!("  {} {:.4}", entry.peer, 1e3 * entry.min);
        }
        eprintln!();
        let record = Record {
            case: case.name.into(),
            threads: run.threads,
            quiet_rounds: measured.quiet_rounds(),
            entries,
        };
        let report = Report { machine: machine(), limits: vec![limits.clone()], records: vec![record] };
        if let Some(path) = &run.json {
            let mut all = Report::read(path)?;
            all.merge(report);
            all.write(path)?;
        } else {
            print_tables(&report, false);
        }
    }
    Ok(())
}

/// The CPU's name, the number of CPUs, and the operating system.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{}, {cpus} CPUs, {}", model.unwrap_or(std::env::consts::ARCH), std::env::consts::OS)
}

fn print_tables(report: &Report, full: bool) {
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let mut threads: Vec<usize> = report.records.iter().map(|record| record.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    for threads in threads {
        println!(
            "\n{threads} thread{}\n\n{}",
            if threads == 1 { "" } else { "s" },
            report.summary(threads, &names)
        );
        if full {
            for language in [Language::Rust, Language::Python] {
                println!("\n{}", report.full(threads, &names, language));
            }
        }
    }
}
