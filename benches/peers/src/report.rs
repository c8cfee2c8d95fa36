//! Results: a JSON file that later runs extend, and tables.

use crate::probe::{Bound, Limits};
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// The content of a file of results.
#[derive(Default, Serialize, Deserialize)]
pub struct Report {
    pub machine: String,
    pub limits: Vec<Limits>,
    pub records: Vec<Record>,
}

/// The measurements of one case with `threads` threads.
#[derive(Clone, Serialize, Deserialize)]
pub struct Record {
    pub case: String,
    pub threads: usize,
    pub quiet_rounds: usize,
    pub entries: Vec<Entry>,
}

/// The measurements of one peer in one case.
#[derive(Clone, Serialize, Deserialize)]
pub struct Entry {
    pub peer: String,
    pub language: Language,
    /// Seconds per call.
    pub min: f64,
    pub median: f64,
    pub rounds: usize,
    /// Seconds per call in each round, or `None` if the peer did not run. All peers of a language
    /// take turns in the same rounds.
    #[serde(default)]
    pub turns: Vec<Option<f64>>,
    /// The share of a call's time that the probed limits account for, and which limit applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<(f64, Bound)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    Rust,
    Python,
}

impl Entry {
    fn is_ours(&self) -> bool {
        self.peer.starts_with("typed-dims")
    }

    /// Whether the peer is a loop written for this case.
    fn is_plain(&self) -> bool {
        self.peer.starts_with("plain")
    }

    /// The least time divided by another peer's, and the quartiles of this ratio over the rounds in
    /// which both ran, or, for peers in different languages, over all pairs of rounds.
    fn ratio(&self, other: &Entry) -> String {
        let ratio = |(ours, other): (&Option<f64>, &Option<f64>)| Some((*ours)? / (*other)?);
        let mut ratios: Vec<f64> = if self.language == other.language {
            self.turns.iter().zip(&other.turns).filter_map(ratio).collect()
        } else {
            let each = |ours| other.turns.iter().map(move |other| (ours, other));
            self.turns.iter().flat_map(each).filter_map(ratio).collect()
        };
        ratios.sort_unstable_by(f64::total_cmp);
        let least = self.min / other.min;
        let Some(last) = ratios.len().checked_sub(1) else { return format!("{least:.2}") };
        let quartile = |quarters: usize| ratios[(quarters * last + 2) / 4];
        format!("{least:.2} [{:.2}, {:.2}]", quartile(1), quartile(3))
    }
}

impl Report {
    /// The content of the file, or an empty report if it does not exist.
    pub fn read(path: &Path) -> Result<Report, Box<dyn Error>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Report::default()),
            Err(error) => Err(error.into()),
        }
    }

    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        Ok(std::fs::write(path, serde_json::to_string_pretty(self)?)?)
    }

    /// Adds the measurements of `other`. They replace those of the same case, number of threads and
    /// language.
    pub fn merge(&mut self, other: Report) {
        if !other.machine.is_empty() {
            self.machine = other.machine;
        }
        for limits in other.limits {
            self.limits.retain(|known| known.threads != limits.threads);
            self.limits.push(limits);
        }
        for record in other.records {
            let same = |known: &&mut Record| known.case == record.case && known.threads == record.threads;
            let Some(known) = self.records.iter_mut().find(same) else {
                self.records.push(record);
                continue;
            };
            let measured = |language| record.entries.iter().any(|entry| entry.language == language);
            known.entries.retain(|entry| !measured(entry.language));
            known.entries.extend(record.entries);
            known.quiet_rounds = record.quiet_rounds;
        }
    }

    /// One line for each way to compute a case with typed-dims, next to the fastest peers.
    pub fn summary(&self, threads: usize, cases: &[&str]) -> Table {
        let mut table = table(
            &[
                "case",
                "typed-dims, ms",
                "median",
                "fastest Rust peer",
                "ms",
                "ratio",
                "plain loop",
                "ratio",
                "fastest of Python",
                "ms",
                "ratio",
                "of the limit",
            ],
            &[1, 2, 4, 5, 6, 7, 9, 10, 11],
        );
        for record in self.ordered(threads, cases) {
            let fastest = |of: &dyn Fn(&Entry) -> bool| {
                record.entries.iter().filter(|entry| of(entry)).min_by(|a, b| a.min.total_cmp(&b.min))
            };
            let rust =
                fastest(&|entry| entry.language == Language::Rust && !entry.is_ours() && !entry.is_plain());
            let plain = fastest(&Entry::is_plain);
            let python = fastest(&|entry| entry.language == Language::Python);
            for ours in record.entries.iter().filter(|entry| entry.is_ours()) {
                let variant = ours.peer.trim_start_matches("typed-dims").trim();
                let name = |entry: Option<&Entry>| entry.map_or("-".into(), |entry| entry.peer.clone());
                let time = |entry: Option<&Entry>| entry.map_or("-".into(), |entry| milliseconds(entry.min));
                let ratio = |entry: Option<&Entry>| entry.map_or("-".into(), |entry| ours.ratio(entry));
                let share = ours.of_limit.map_or("-".into(), |(share, bound)| {
                    let of = if bound == Bound::Arithmetic { "FMA" } else { "bytes" };
                    format!("{:.0} % {of}", 100.0 * share)
                });
                table.add_row([
                    if variant.is_empty() {
                        record.case.clone()
                    } else {
                        format!("{}, {variant}", record.case)
                    },
                    milliseconds(ours.min),
                    milliseconds(ours.median),
                    name(rust),
                    time(rust),
                    ratio(rust),
                    time(plain),
                    ratio(plain),
                    name(python),
                    time(python),
                    ratio(python),
                    share,
                ]);
            }
        }
        table
    }

    /// The least times of the peers in `language`, in milliseconds.
    pub fn full(&self, threads: usize, cases: &[&str], language: Language) -> Table {
        let records = self.ordered(threads, cases);
        let mut peers: Vec<&str> = Vec::new();
        for entry in records.iter().flat_map(|record| &record.entries) {
            if entry.language == language && !peers.contains(&entry.peer.as_str()) {
                peers.push(&entry.peer);
            }
        }
        let header: Vec<&str> = std::iter::once("case, ms").chain(peers.iter().copied()).collect();
        let numbers: Vec<usize> = (1..header.len()).collect();
        let mut table = table(&header, &numbers);
        for record in records {
            let times: BTreeMap<&str, f64> =
                record.entries.iter().map(|entry| (entry.peer.as_str(), entry.min)).collect();
            let cells =
                peers.iter().map(|peer| times.get(peer).map_or("-".into(), |&time| milliseconds(time)));
            table.add_row(std::iter::once(record.case.clone()).chain(cells));
        }
        table
    }

    fn ordered(&self, threads: usize, cases: &[&str]) -> Vec<&Record> {
        let find = |case: &&str| {
            self.records.iter().find(|record| record.case == **case && record.threads == threads)
        };
        cases.iter().filter_map(find).collect()
    }
}

/// An empty table. The columns at the positions `numbers` are right-aligned.
pub fn table(header: &[&str], numbers: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    for &at in numbers {
        table.column_mut(at).expect("the header has this column").set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Seconds as milliseconds. Shorter times have more decimals.
fn milliseconds(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    match ms {
        10.0.. => format!("{ms:.1}"),
        1.0.. => format!("{ms:.2}"),
        0.01.. => format!("{ms:.3}"),
        _ => format!("{ms:.6}"),
    }
}
