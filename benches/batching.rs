//! Seven programs written for one example, at 64 examples: a loop of single calls against one call with two further dims, and the factor
//! between them that the plans predict.
//!
//! # The prediction
//!
//! A step of a plan costs a fixed time `f`, whatever its size (to meet, plan, reserve memory and start a kernel), and time that grows with
//! its elements. A loop pays both for each example. One call for all pays the fixed time once; the elements stay as many. So with `t`
//! the time of a single call, and the steps of both plans,
//!
//! ```text
//! loop = 64 t        batched = F(batched) + 64 (t - F(single))        F(plan) = call + sum over its steps of f(kind of step)
//! ```
//!
//! and the prediction is the quotient. `f` is measured for each kind of step, and `call` for a batched call without any, at operands of
//! hardly any elements: nothing of it is fitted to the programs. What the model leaves out makes the batched call faster than
//! predicted, and shows as such: where single examples are vectors, their batch is a matrix, whose product takes fewer reads.
//! Times are the best of many, on one thread.

use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::Instant;
use typed_dims::plan::explain::{Plan, Step};
use typed_dims::prelude::*;

#[path = "../tests/programs/cases.rs"]
mod cases;
#[allow(missing_docs)]
#[path = "../tests/programs/suite.rs"]
mod suite;

use suite::{Batch, Feat, Group, Hidden, Out};

/// Examples along each of the two further dims.
const ALONG: usize = 8;
/// Examples in all.
const EXAMPLES: f64 = (ALONG * ALONG) as f64;
/// How often the times are taken, in turns, so that whatever slows the machine down meets all of them alike.
const ROUNDS: usize = 200;

fn seconds(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// The best time of each.
fn best<const N: usize>(mut runs: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for (best, run) in best.iter_mut().zip(&mut runs) {
            *best = best.min(seconds(*run));
        }
    }
    best
}

/// The fixed time of each kind of step, and of a batched call.
struct Fixed {
    elementwise: f64,
    copy: f64,
    reduce: f64,
    product: f64,
    call: f64,
}

#[batched]
fn same(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    x.eval()
}

impl Fixed {
    fn measured() -> Self {
        const REPEATS: usize = 200;
        let x = ones::<f32, _>((Batch.of(2), Feat.of(2)));
        let w = ones::<f32, _>((Feat.of(2), Hidden.of(2), Out.of(2)));
        let further = ones::<f32, _>((Batch.of(2), Group.of(2), Feat.of(2)));
        fn repeat<T>(mut run: impl FnMut() -> T) -> impl FnMut() {
            move || (0..REPEATS).for_each(|_| drop(black_box(run())))
        }
        let [elementwise, copy, reduce, product, call] = best([
            &mut repeat(|| (&x + 1.0).eval()),
            &mut repeat(|| (&x).eval()),
            &mut repeat(|| (&x * 2.0).sum(Feat)),
            // One dim more than a plain product of two matrices has, as in a batch.
            &mut repeat(|| (&x * &w).sum(Feat)),
            &mut repeat(|| same(&further)),
        ])
        .map(|seconds| seconds / REPEATS as f64);
        Fixed { elementwise, copy, reduce, product, call: (call - copy).max(0.0) }
    }

    fn of(&self, plan: &Plan) -> f64 {
        let step = |step: &Step| match step {
            Step::Copy { .. } => self.copy,
            Step::Reduce { .. } => self.reduce,
            Step::Product { .. } => self.product,
            _ => self.elementwise,
        };
        self.call + plan.steps.iter().map(step).sum::<f64>()
    }
}

fn compare() {
    let fixed = Fixed::measured();
    println!(
        "fixed times in ns: elementwise {:.0}, copy {:.0}, reduction {:.0}, product {:.0}, call {:.0}",
        1e9 * fixed.elementwise,
        1e9 * fixed.copy,
        1e9 * fixed.reduce,
        1e9 * fixed.product,
        1e9 * fixed.call
    );
    println!(
        "{:<12}{:>12}{:>12}{:>12}{:>9}{:>11}",
        "64 examples", "loop us", "single us", "batched us", "factor", "predicted"
    );
    for case in cases::all(ALONG, ALONG) {
        let (_, all) = explain(|| case.batched());
        let (_, one) = explain(|| case.single(0, 0));
        let [looped, single, batched] = best([
            &mut || {
                for at in 0..ALONG * ALONG {
                    black_box(case.single(at / ALONG, at % ALONG));
                }
            },
            &mut || drop(black_box(case.single(1, 2))),
            &mut || drop(black_box(case.batched())),
        ]);
        let work = (looped / EXAMPLES - fixed.of(&one)).max(0.0);
        let predicted = looped / (fixed.of(&all) + EXAMPLES * work);
        println!(
            "{:<12}{:>12.1}{:>12.2}{:>12.1}{:>9.2}{:>11.2}",
            case.name(),
            1e6 * looped,
            1e6 * single,
            1e6 * batched,
            looped / batched,
            predicted
        );
    }
}

fn main() {
    ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started").install(compare);
}
