//! The time and memory of steps.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The system's allocator, counting live bytes.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if live > PEAK.load(Ordering::Relaxed) {
        PEAK.store(live, Ordering::Relaxed);
    }
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // (Both blocks exist at the same time if the system has to move the elements.)
        count(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(start, layout, size) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The peak memory of a step in bytes, not counting memory that was allocated before the step. The
/// memory pool is turned off during the step.
fn peak(step: &mut dyn FnMut()) -> usize {
    typed_dims::pipeline::storage::memory::set_pool_limit(0);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    step();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    typed_dims::pipeline::storage::memory::set_pool_limit(POOL);
    peak
}

/// The default limit of the memory pool.
const POOL: usize = 64 << 20;

/// The processor time of this thread. Other programs on the machine affect it less than wall time.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes to the struct.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "threads have clocks");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = processor_time();
    run();
    (processor_time() - start).as_secs_f64()
}

/// The shortest time of each step in microseconds. The steps take turns.
fn race(rounds: usize, steps: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; steps.len()];
    let mut calls = vec![1_u32; steps.len()];
    for (step, calls) in steps.iter_mut().zip(&mut calls) {
        step();
        *calls = (0.005 / seconds(&mut *step)).clamp(1.0, 10_000.0) as u32;
    }
    for _ in 0..rounds {
        for ((step, &calls), least) in steps.iter_mut().zip(&calls).zip(&mut least) {
            let time = seconds(|| (0..calls).for_each(|_| step()));
            *least = least.min(time / f64::from(calls) * 1e6);
        }
    }
    least
}

/// Which steps run, and in how many rounds.
pub struct Bench {
    pub rounds: usize,
    pub part: String,
}

impl Bench {
    pub fn is_asked(&self, name: &str) -> bool {
        name.contains(&self.part)
    }

    pub fn print<'s>(&self, name: &str, traced: &'s mut dyn FnMut(), by_hand: Option<&'s mut dyn FnMut()>) {
        self.print_all(name, traced, by_hand, None);
    }

    /// Like [`print`](Self::print), with the columns for the recorded step filled in.
    pub fn print_all<'s>(
        &self,
        name: &str,
        traced: &'s mut dyn FnMut(),
        by_hand: Option<&'s mut dyn FnMut()>,
        recorded: Option<&'s mut dyn FnMut()>,
    ) {
        let mebibytes = |step: &mut dyn FnMut()| peak(step) as f64 / f64::from(1 << 20);
        let memory = mebibytes(traced);
        let mut steps: Vec<&'s mut dyn FnMut()> = vec![traced];
        let hand_at = by_hand.map(|step| {
            steps.push(step);
            steps.len() - 1
        });
        let (mut recorded_at, mut recorded_memory) = (None, String::new());
        if let Some(step) = recorded {
            // The first call prepares the program.
            step();
            recorded_memory = format!("{:.2}", mebibytes(step));
            recorded_at = Some(steps.len());
            steps.push(step);
        }
        let times = race(self.rounds, &mut steps);
        let time = |at: Option<usize>| at.map_or_else(String::new, |at| format!("{:.1}", times[at]));
        let ratio =
            |at: Option<usize>| at.map_or_else(String::new, |at| format!("{:.2}", times[0] / times[at]));
        println!(
            "{name:<28} {:>10.1} {:>10} {:>8} {:>10} {:>8} {memory:>10.2} {recorded_memory:>10}",
            times[0],
            time(hand_at),
            ratio(hand_at),
            time(recorded_at),
            ratio(recorded_at),
        );
    }
}
