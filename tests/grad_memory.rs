//! The memory that gradients keep, counted by the allocator. There is a single test, because the
//! memory of other tests would be counted too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use typed_dims::grad::{checkpoint, grad};
use typed_dims::prelude::*;

/// The system's allocator, counting the bytes in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

dims! { struct I; struct J; }
type Line = Tensor<f64, (I,)>;

/// The result of `f`, and the peak memory during the call, without the memory in use before.
fn most<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let result = f();
    (result, MOST.load(Ordering::Relaxed) - before)
}

/// Eight steps. The gradient keeps the result of each step.
fn layer((x, w): &(Line, Line)) -> Line {
    let mut y = x.clone();
    for _ in 0..4 {
        let scaled = (&y * w).eval();
        y = scaled.tanh().eval();
    }
    y
}

#[test]
fn bytes() {
    checkpoints_keep_their_inputs_alone();
    cotangents_of_few_elements_are_not_spread();
    parameters_are_not_copied_in_place();
    values_are_freed_when_they_have_been_read();
    cotangents_of_lines_become_gradients();
}

/// Only the result of a softmax and its cotangents are in memory. The gradient reuses the memory of
/// the cotangents.
fn cotangents_of_lines_become_gradients() {
    let mut scores = from_fn((I.of(60), J.of(500)), |(i, j)| ((i * 500 + j) as f64).sin());
    let (_, most) = most(|| grad(|x| x.softmax(J).square().sum((I, J)), &mut scores));
    let bytes = 60 * 500 * size_of::<f64>();
    assert!(most < 5 * bytes / 2, "{most} bytes for scores of {bytes}");
}

/// Once the gradient of a factor is computed, the value that it was multiplied by is freed.
fn values_are_freed_when_they_have_been_read() {
    const FACTORS: usize = 12;
    let len = 50_000;
    let mut factors: Vec<Line> =
        (0..FACTORS).map(|at| from_fn(I.of(len), |i| (i * at) as f64 / 1e6)).collect();
    let product = |factors: &Vec<Line>| {
        let mut y = ones(I.of(len));
        for factor in factors {
            y = (&y * factor).eval();
        }
        y.sum(I)
    };
    let (_, most) = most(|| grad(product, &mut factors));
    let values = most / (len * size_of::<f64>());
    assert!(values < FACTORS + 5, "{values} values are in memory for {FACTORS} factors");
}

/// `&mut w` only needs memory for the gradient; `&w` also needs a copy of the parameter.
fn parameters_are_not_copied_in_place() {
    let mut w = from_fn((I.of(300), J.of(1000)), |(i, j)| ((i * 1000 + j) as f64).sin());
    let bytes = 300 * 1000 * size_of::<f64>();
    let (_, in_place) = most(|| grad(|w| w.square().sum((I, J)), &mut w));
    assert!(in_place < bytes + bytes / 10, "{in_place} bytes for a gradient of {bytes}");
    // The memory of the first gradient is reused for the copy or for the second gradient.
    let (_, copied) = most(|| grad(|w| w.square().sum((I, J)), &w));
    assert!(copied >= bytes, "{copied} bytes for a gradient of {bytes}");
}

/// Only one element of each line of a cross entropy has a cotangent. So memory is only needed for
/// the copy of the parameter, the logarithm of its softmax, and the gradient.
fn cotangents_of_few_elements_are_not_spread() {
    let scores = from_fn((I.of(60), J.of(500)), |(i, j)| ((i * 500 + j) as f64).sin());
    let labels = from_fn(I.of(60), |i| 7 * i % 500);
    let (_, most) = most(|| grad(|x| x.cross_entropy(J, &labels).mean(I), &scores));
    let bytes = 60 * 500 * size_of::<f64>();
    assert!(most < 7 * bytes / 2, "{most} bytes for scores of {bytes}");
}

fn checkpoints_keep_their_inputs_alone() {
    const LAYERS: usize = 24;
    let len = 4096;
    let x = from_fn(I.of(len), |i| (i as f64).sin());
    let w = from_fn(I.of(len), |i| 1.0 + (i as f64).cos() / 4.0);
    let of = |checkpointed: bool| {
        grad(
            |w: &Line| {
                let mut y = x.clone();
                for _ in 0..LAYERS {
                    y = if checkpointed { checkpoint(layer, (&y, w)) } else { layer(&(y, w.clone())) };
                }
                y.sum(I)
            },
            &w,
        )
    };
    let (expected, all) = most(|| of(false));
    let (found, kept) = most(|| of(true));
    let pairs = found.order(I).into_iter().zip(expected.order(I));
    pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} instead of {b}"));
    let bytes = len * size_of::<f64>();
    assert!(all >= 8 * LAYERS * bytes, "{all} bytes for all steps");
    // The input of each layer, the results of one layer's steps, and intermediate gradients.
    assert!(
        kept <= (2 * LAYERS + 40) * bytes && kept < all / 2,
        "{kept} bytes with checkpoints, {all} without"
    );
}
