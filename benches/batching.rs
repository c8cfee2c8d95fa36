//! Runs programs, each written for one example, on 64 examples. Compares a loop of single calls
//! with one call with two extra dims, and the measured speedup with the one that the plans predict.
//!
//! # The prediction
//!
//! The time of a step is modeled as
//!
//! ```text
//! fixed(kind) + runs * run(kind) + elements * element(kind)
//! ```
//!
//! where `explain` gives the kind, the runs and the elements. A run is one execution of the
//! innermost loop, or one matrix product of a step. Elements are the positions of all loops, or the
//! multiplications of all matrix products. The three constants of each kind are measured on steps
//! of the library with synthetic operands: one short run, many short ones, and many long ones. A
//! plan costs the sum of its steps, plus the constant `call` for the call of the batched function.
//! The predicted factor is 64 times the cost of the plan for one example, divided by the cost of
//! the plan for all examples.
//!
//! The model covers what batching gains: fixed costs are paid once, short runs become long ones,
//! and matrix-vector products become matrix products where extra dims merge with others. It does
//! not model caches or strides.
//!
//! # Output
//!
//! Times are the best of all rounds, on one thread. The factor is the time of the loop divided by
//! that of the batched call. The range after it shows the noise: each round runs the loop and then
//! the batched call. A tenth of the rounds have a factor below the range, and a tenth above it. The
//! prediction is repeated with newly measured constants; its smallest and greatest values are
//! printed. The verdict is one of:
//!
//! * `more`: the factor is at least the smallest prediction;
//! * `noise`: the factor is smaller, but the range of the noise reaches the smallest prediction;
//! * `less`: batching gains less than the plan predicts.

use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::Instant;
use typed_dims::pipeline::plan::explain::{Loops, Plan, PlanStep};
use typed_dims::prelude::*;

#[path = "../tests/programs/cases.rs"]
mod cases;
#[allow(missing_docs)]
#[path = "../tests/programs/suite.rs"]
mod suite;

use suite::{Batch, Feat, Hidden, Out};

/// Examples along each of the two extra dims.
const ALONG: usize = 8;
/// The number of measurements of each function. Functions that are compared take turns, so that
/// noise on the machine affects them equally.
const ROUNDS: usize = 300;

fn seconds(run: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

/// The times of each function in each round.
fn rounds<const N: usize>(mut runs: [&mut dyn FnMut(); N]) -> Vec<[f64; N]> {
    (0..ROUNDS).map(|_| runs.each_mut().map(|run| seconds(*run))).collect()
}

fn best<const N: usize>(runs: [&mut dyn FnMut(); N]) -> [f64; N] {
    best_of(&rounds(runs))
}

fn best_of<const N: usize>(rounds: &[[f64; N]]) -> [f64; N] {
    std::array::from_fn(|run| rounds.iter().map(|times| times[run]).fold(f64::INFINITY, f64::min))
}

/// The cost of a kind of step, in seconds.
#[derive(Clone, Copy)]
struct Cost {
    fixed: f64,
    run: f64,
    element: f64,
}

impl Cost {
    /// Measures functions with the sizes `short` and `long`. `step(runs, size)` returns a function
    /// that does `runs` runs of `count(size)` elements.
    fn measured<T>(
        short: usize,
        long: usize,
        count: fn(usize) -> f64,
        step: impl Fn(usize, usize) -> T,
    ) -> Self
    where
        T: Fn(),
    {
        const RUNS: usize = 64;
        const REPEATS: usize = 20;
        let (one, many, large) = (step(1, short), step(RUNS, short), step(RUNS, long));
        let repeat = |run: &dyn Fn()| (0..REPEATS).for_each(|_| run());
        let times = best([&mut || repeat(&one), &mut || repeat(&many), &mut || repeat(&large)]);
        let [one, many, large] = times.map(|seconds| seconds / REPEATS as f64);
        let element = ((large - many) / (RUNS as f64 * (count(long) - count(short)))).max(0.0);
        let run = ((many - one) / (RUNS - 1) as f64 - count(short) * element).max(0.0);
        Cost { fixed: (one - run - count(short) * element).max(0.0), run, element }
    }

    fn of(self, runs: usize, elements: usize) -> f64 {
        self.fixed + runs as f64 * self.run + elements as f64 * self.element
    }
}

#[batched]
fn same(x: &Tensor<f32, (Feat,)>) -> Tensor<f32, (Feat,)> {
    x.eval()
}

/// The costs of the kinds of steps that the programs have, and of a call of a batched function.
struct Model {
    elementwise: Cost,
    transcendental: Cost,
    copy: Cost,
    reduce: Cost,
    softmax: Cost,
    product: Cost,
    call: f64,
}

impl Model {
    fn measured() -> Self {
        let rows = |runs: usize, size: usize| ones::<f32, _>((Batch.of(runs), Feat.of(size)));
        let row = |size: usize| ones::<f32, _>(Feat.of(size));
        // Rows with one more element than is copied, so that the copied rows are not adjacent.
        let part = |runs: usize, size: usize| rows(runs, size + 1);
        let line = |size: usize| size as f64;
        let copy = Cost::measured(4, 64, line, |runs, size| {
            let x = part(runs, size);
            move || drop(black_box((&x).slice(Feat, 0..size).eval()))
        });
        let x = rows(2, 2);
        let [call] = best([&mut || (0..100).for_each(|_| drop(black_box(same(&x))))]);
        Model {
            elementwise: Cost::measured(4, 64, line, |runs, size| {
                let (x, y) = (rows(runs, size), row(size));
                move || drop(black_box((&x + &y).relu().eval()))
            }),
            transcendental: Cost::measured(4, 64, line, |runs, size| {
                let (x, y) = (rows(runs, size), row(size));
                move || drop(black_box((&x + &y).tanh().eval()))
            }),
            reduce: Cost::measured(4, 64, line, |runs, size| {
                let (x, y) = (rows(runs, size), row(size));
                move || drop(black_box((&x - &y).square().sum(Feat)))
            }),
            softmax: Cost::measured(4, 64, line, |runs, size| {
                let x = rows(runs, size);
                move || drop(black_box((&x).softmax(Feat)))
            }),
            product: Cost::measured(4, 16, cubed, |runs, size| {
                let a = ones::<f32, _>((Batch.of(runs), Feat.of(size), Hidden.of(size)));
                let b = ones::<f32, _>((Batch.of(runs), Hidden.of(size), Out.of(size)));
                move || drop(black_box((&a * &b).sum(Hidden)))
            }),
            call: (call / 100.0 - copy.of(1, 4)).max(0.0),
            copy,
        }
    }

    fn of(&self, plan: &Plan) -> f64 {
        let loops = |cost: Cost, loops: &Loops| {
            let elements = loops.sizes.iter().product();
            cost.of(elements / loops.sizes.last().copied().unwrap_or(1).max(1), elements)
        };
        let step = |step: &PlanStep| match step {
            PlanStep::Product { batch, m, k, n, summed, .. } => {
                self.product.of(batch * summed, batch * summed * m * k * n)
            }
            PlanStep::Copy { loops: nest, .. } => loops(self.copy, nest),
            PlanStep::Reduce { reduction: "softmax", loops: nest, .. } => loops(self.softmax, nest),
            PlanStep::Reduce { loops: nest, .. } => loops(self.reduce, nest),
            PlanStep::Elementwise { expression, loops: nest } if expression.contains("tanh") => {
                loops(self.transcendental, nest)
            }
            PlanStep::Elementwise { loops: nest, .. } => loops(self.elementwise, nest),
            other => panic!("the model does not know {other}"),
        };
        self.call + plan.steps.iter().map(step).sum::<f64>()
    }
}

fn cubed(size: usize) -> f64 {
    (size * size * size) as f64
}

/// How many times the model is measured. Each time gives a prediction for each program.
const PREDICTIONS: usize = 3;

/// The smallest and the greatest number, after this share of the numbers is dropped at each end.
fn range(mut numbers: Vec<f64>, share: f64) -> (f64, f64) {
    numbers.sort_by(f64::total_cmp);
    let left_out = (numbers.len() as f64 * share) as usize;
    (numbers[left_out], numbers[numbers.len() - 1 - left_out])
}

fn compare() {
    let models: Vec<Model> = (0..PREDICTIONS).map(|_| Model::measured()).collect();
    let model = &models[0];
    println!("in nanoseconds          fixed       each run   each element");
    for (name, cost) in [
        ("elementwise", model.elementwise),
        ("transcendental", model.transcendental),
        ("copy", model.copy),
        ("reduction", model.reduce),
        ("softmax", model.softmax),
        ("product", model.product),
    ] {
        println!("{name:<15}{:>14.1}{:>15.2}{:>15.3}", 1e9 * cost.fixed, 1e9 * cost.run, 1e9 * cost.element);
    }
    println!("{:<15}{:>14.1}\n", "batched call", 1e9 * model.call);
    println!("64 examples     loop us   batched us   factor           noise   the plan predicts   verdict");
    for case in cases::all(ALONG, ALONG) {
        let (_, all) = explain(|| case.batched());
        let (_, one) = explain(|| case.single(0, 0));
        let times = rounds([
            &mut || {
                for at in 0..ALONG * ALONG {
                    black_box(case.single(at / ALONG, at % ALONG));
                }
            },
            &mut || drop(black_box(case.batched())),
        ]);
        let [looped, batched] = best_of(&times);
        let factor = looped / batched;
        let (low, high) = range(times.iter().map(|[looped, batched]| looped / batched).collect(), 0.1);
        let predict = |model: &Model| (ALONG * ALONG) as f64 * model.of(&one) / model.of(&all);
        let (least, greatest) = range(models.iter().map(predict).collect(), 0.0);
        let verdict = match (factor >= least, high >= least) {
            (true, _) => "more",
            (_, true) => "noise",
            _ => "less",
        };
        println!(
            "{:<12}{:>11.1}{:>13.1}{factor:>9.2}{:>16}{:>20}   {verdict}",
            case.name(),
            1e6 * looped,
            1e6 * batched,
            format!("{low:.2} to {high:.2}"),
            format!("{least:.2} to {greatest:.2}"),
        );
    }
}

fn main() {
    ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started").install(compare);
}
