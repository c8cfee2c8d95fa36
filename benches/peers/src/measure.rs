//! Interleaved repetitions: the peers take turns in each round, in a varying order, so that noise
//! on the machine affects them equally.

use crate::bench::Peer;
use clap::Args;
use rand::seq::SliceRandom;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The approximate length of a turn of short calls.
const TURN: Duration = Duration::from_millis(2);
/// If calls of every peer take at least this long, they are timed one by one, the same number for
/// each peer, and the fastest of a turn counts. Otherwise, the mean of a turn counts.
const ALONE: Duration = Duration::from_micros(50);
const MOST_ALONE: f64 = 8.0;
/// Peers whose calls take longer than this, and more than ten times as long as the fastest, only
/// run in a few rounds.
const SLOW: Duration = Duration::from_millis(30);
const ROUNDS_OF_SLOW_PEERS: usize = 3;
/// A round is quiet if other processes used less than this share of one CPU.
const QUIET: f64 = 0.1;

/// How long to measure.
#[derive(Args, Clone, Copy)]
pub struct Effort {
    /// Quiet rounds per case, with hardly any other work on the machine.
    #[arg(long, default_value_t = 20)]
    pub rounds: usize,
    /// Seconds after which a case ends even without enough quiet rounds.
    #[arg(long, default_value_t = 8.0)]
    pub seconds: f64,
}

/// Seconds per call of one peer.
#[derive(Clone, Copy)]
pub struct Times {
    pub min: f64,
    pub median: f64,
    pub rounds: usize,
}

/// One round: the load from other processes as a share of one CPU, and the seconds per call of each
/// peer that ran.
struct Round {
    load: f64,
    times: Vec<Option<f64>>,
}

/// The measurements of some peers.
pub struct Measured {
    rounds: Vec<Round>,
}

impl Measured {
    pub fn quiet_rounds(&self) -> usize {
        self.rounds.iter().filter(|round| round.load < QUIET).count()
    }

    /// The times of a peer: the minimum of all rounds, and the median of quiet rounds, or of all
    /// rounds if it ran in no quiet one.
    pub fn times(&self, peer: usize) -> Times {
        let all = self.sorted(|round| round.times[peer], false);
        let median = self.median(|round| round.times[peer]);
        let median = median.expect("each peer has its turn in the first round");
        Times { min: all[0], median, rounds: all.len() }
    }

    /// The time of a peer in each round, or `None` if it did not run.
    pub fn turns(&self, peer: usize) -> Vec<Option<f64>> {
        self.rounds.iter().map(|round| round.times[peer]).collect()
    }

    /// The least time of the peers `others`, divided by the time of `peer`: the median over rounds.
    /// Slowdowns longer than a round affect both times.
    pub fn ratio(&self, others: Range<usize>, peer: usize) -> Option<f64> {
        self.median(|round| {
            let least = round.times[others.clone()].iter().copied().flatten().reduce(f64::min)?;
            Some(least / round.times[peer]?)
        })
    }

    /// The median over quiet rounds, or over all rounds if no quiet one has a value.
    fn median(&self, of: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
        let quiet = self.sorted(&of, true);
        let sorted = if quiet.is_empty() { self.sorted(&of, false) } else { quiet };
        let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
        Some((low + high) / 2.0)
    }

    fn sorted(&self, of: impl Fn(&Round) -> Option<f64>, quiet: bool) -> Vec<f64> {
        let rounds = self.rounds.iter().filter(|round| !quiet || round.load < QUIET);
        let mut all: Vec<f64> = rounds.filter_map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    }
}

/// CPU seconds used by all processes, and by this one.
#[cfg(target_os = "linux")]
fn cpu_seconds() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // SAFETY: zeros are a valid `rusage`, and the calls only require that `usage` is writable.
    let (ticks, usage) = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        (libc::sysconf(libc::_SC_CLK_TCK) as f64, usage)
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + 1e-6 * time.tv_usec as f64;
    // user, nice and system; irq, softirq and steal.
    let all = fields.get(..3)?.iter().sum::<f64>() + fields.get(5..8)?.iter().sum::<f64>();
    Some((all / ticks, seconds(usage.ru_utime) + seconds(usage.ru_stime)))
}

#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> Option<(f64, f64)> {
    None
}

/// The load from other processes while something runs, as a share of one CPU; 0 if it is unknown.
fn others(run: impl FnOnce()) -> f64 {
    let (start, before) = (Instant::now(), cpu_seconds());
    run();
    let (Some((all, own)), Some((all_after, own_after))) = (before, cpu_seconds()) else { return 0.0 };
    ((all_after - all) - (own_after - own)).max(0.0) / start.elapsed().as_secs_f64()
}

/// Waits until the machine is quiet, or until a deadline.
pub fn wait_for_quiet(until: Instant) {
    while Instant::now() < until && others(|| std::thread::sleep(Duration::from_millis(60))) > QUIET {}
}

pub fn measure(peers: &mut [Peer], effort: Effort) -> Measured {
    let first: Vec<Duration> = peers.iter_mut().map(|peer| (peer.time)(1).min((peer.time)(1))).collect();
    let fastest = first.iter().min().copied().unwrap_or_default();
    let long = fastest >= ALONE;
    let calls: Vec<usize> = peers
        .iter_mut()
        .zip(&first)
        .map(|(peer, &first)| {
            // The first calls of a tiny case are not representative.
            let call = if first < TURN / 100 { (peer.time)(1000) / 1000 } else { first };
            let call = if long { fastest } else { call };
            let most = if long { MOST_ALONE } else { 1e7 };
            (TURN.as_secs_f64() / call.as_secs_f64().max(1e-10)).ceil().clamp(1.0, most) as usize
        })
        .collect();
    let slow = |at: usize| first[at] > SLOW && first[at] > fastest * 10;

    let end = Instant::now() + Duration::from_secs_f64(effort.seconds);
    let mut order: Vec<usize> = (0..peers.len()).collect();
    let mut measured = Measured { rounds: Vec::new() };
    while measured.quiet_rounds() < effort.rounds
        && (Instant::now() < end || measured.rounds.len() < ROUNDS_OF_SLOW_PEERS)
    {
        wait_for_quiet(end.min(Instant::now() + Duration::from_millis(500)));
        order.shuffle(&mut rand::rng());
        let mut times = vec![None; peers.len()];
        let load = others(|| {
            for &at in &order {
                if slow(at) && measured.rounds.len() >= ROUNDS_OF_SLOW_PEERS {
                    continue;
                }
                if !slow(at) {
                    (peers[at].time)(1); // the caches hold another peer's data
                }
                let turn = if !long {
                    (peers[at].time)(calls[at]).as_secs_f64() / calls[at] as f64
                } else {
                    let fastest = (0..calls[at]).map(|_| (peers[at].time)(1)).min();
                    fastest.unwrap_or_default().as_secs_f64()
                };
                times[at] = Some(turn);
            }
        });
        measured.rounds.push(Round { load, times });
    }
    measured
}
