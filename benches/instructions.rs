//! Counts the instructions of one call on arrays of a few elements, and, in some cases, of the same
//! computation in ndarray.
//!
//! `cargo bench --bench instructions` counts instructions with `perf stat`, or with valgrind if the
//! processor's counters are not available. It runs each case twice, the second time with twice as
//! many calls, and subtracts the counts, so that the start of the program does not count.

use std::hint::black_box;
use std::process::Command;
use typed_dims::ndarray::Zip;
use typed_dims::prelude::*;

type Case = (&'static str, fn(u64));

fn each(calls: u64, mut call: impl FnMut()) {
    for _ in 0..calls {
        call();
    }
}

fn matrices() -> (Array2<f32>, Array2<f32>) {
    let a = Array2::from_shape_fn((4, 4), |(i, j)| (i + 2 * j) as f32);
    (a.clone(), a)
}

#[inline(never)]
fn product(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

#[inline(never)]
fn product_ordered_into(a: &Array2<f32>, b: &Array2<f32>, out: &mut Array2<f32>) {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order_into(out, (i, j));
}

#[inline(never)]
fn product_summed_into(a: &Array2<f32>, b: &Array2<f32>, out: &mut Array2<f32>) {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum_into(k, out, (i, j));
}

dims! {
    struct I;
    struct J;
    struct K;
}

#[inline(never)]
fn typed_product(a: &Tensor<f32, (I, K)>, b: &Tensor<f32, (K, J)>) -> Tensor<f32, (I, J)> {
    (a * b).sum(K)
}

#[inline(never)]
fn typed_add(a: &Tensor<f32, (I,)>, b: &Tensor<f32, (I,)>) -> Tensor<f32, (I,)> {
    (a + b).eval()
}

#[inline(never)]
fn typed_bias(a: &Tensor<f32, (I, J)>, b: &Tensor<f32, (J,)>) -> Tensor<f32, (I, J)> {
    (a + b).eval()
}

#[inline(never)]
fn order_into(x: &Array3<f32>, out: &mut Array3<f32>) {
    dims!(a, b, c);
    x.at((a, b, c)).order_into(out, (c, a, b));
}

#[inline(never)]
fn add_into(a: &Array1<f32>, b: &Array1<f32>, out: &mut Array1<f32>) {
    dims!(i);
    (a.at(i) + b.at(i)).order_into(out, i);
}

const CASES: [Case; 11] = [
    ("4x4 product", |calls| {
        let (a, b) = matrices();
        each(calls, || drop(black_box(product(black_box(&a), black_box(&b)))));
    }),
    ("4x4 product, ndarray", |calls| {
        let (a, b) = matrices();
        each(calls, || drop(black_box(black_box(&a).dot(black_box(&b)))));
    }),
    ("4x4 product, into an array by order_into", |calls| {
        let ((a, b), mut out) = (matrices(), Array2::zeros((4, 4)));
        each(calls, || product_ordered_into(black_box(&a), black_box(&b), black_box(&mut out)));
    }),
    ("4x4 product, into an array by sum_into", |calls| {
        let ((a, b), mut out) = (matrices(), Array2::zeros((4, 4)));
        each(calls, || product_summed_into(black_box(&a), black_box(&b), black_box(&mut out)));
    }),
    ("4x4 product, typed", |calls| {
        let (a, b) = (ones((I.of(4), K.of(4))), ones((K.of(4), J.of(4))));
        each(calls, || drop(black_box(typed_product(black_box(&a), black_box(&b)))));
    }),
    ("4 sums, typed, with eval", |calls| {
        let a = ones(I.of(4));
        each(calls, || drop(black_box(typed_add(black_box(&a), black_box(&a)))));
    }),
    ("4x4 sums with a row of 4, typed, with eval", |calls| {
        let (a, b) = (ones((I.of(4), J.of(4))), ones(J.of(4)));
        each(calls, || drop(black_box(typed_bias(black_box(&a), black_box(&b)))));
    }),
    ("2x3x4 in another order, into an array", |calls| {
        let (x, mut out) = (Array3::ones((2, 3, 4)), Array3::zeros((4, 2, 3)));
        each(calls, || order_into(black_box(&x), black_box(&mut out)));
    }),
    ("2x3x4 in another order, into an array, ndarray", |calls| {
        let (x, mut out) = (Array3::<f32>::ones((2, 3, 4)), Array3::zeros((4, 2, 3)));
        each(calls, || black_box(&mut out).assign(&black_box(&x).view().permuted_axes([2, 0, 1])));
    }),
    ("4 sums, into an array", |calls| {
        let (a, mut out) = (Array1::ones(4), Array1::zeros(4));
        each(calls, || add_into(black_box(&a), black_box(&a), black_box(&mut out)));
    }),
    ("4 sums, into an array, ndarray", |calls| {
        let (a, mut out) = (Array1::<f32>::ones(4), Array1::zeros(4));
        each(calls, || {
            Zip::from(black_box(&mut out))
                .and(black_box(&a))
                .and(black_box(&a))
                .for_each(|out, a, b| *out = a + b);
        });
    }),
];

#[derive(Clone, Copy)]
enum Counter {
    /// The processor's counters.
    Perf,
    /// Valgrind supports AVX2, but not AVX-512.
    Valgrind,
}

impl Counter {
    /// The number of calls in the shorter run. Valgrind counts exactly, but slowly.
    fn calls(self) -> u64 {
        match self {
            Counter::Perf => 100_000,
            Counter::Valgrind => 1_000,
        }
    }

    /// The number of instructions that this program runs for `calls` calls of a case, if it can be
    /// counted.
    fn count(self, case: usize, calls: u64) -> Option<u64> {
        let (tool, options): (_, &[&str]) = match self {
            Counter::Perf => ("perf", &["stat", "-x", ",", "-e", "instructions:u"]),
            Counter::Valgrind => ("valgrind", &["--tool=callgrind", "--callgrind-out-file=/dev/null"]),
        };
        let program = std::env::current_exe().ok()?;
        let arguments = [case.to_string(), calls.to_string()];
        let output = Command::new(tool).args(options).arg(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stderr).ok()?;
        text.lines().find_map(|line| match self {
            Counter::Perf => line.split_once(',')?.0.parse().ok(),
            Counter::Valgrind => line.split_once("Collected : ")?.1.trim().parse().ok(),
        })
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    if let [case, calls] = numbers[..] {
        return CASES[case as usize].1(calls);
    }
    let Some(counter) = [Counter::Perf, Counter::Valgrind].into_iter().find(|by| by.count(0, 1).is_some())
    else {
        return println!("neither `perf stat -e instructions:u` nor valgrind can count instructions here");
    };
    let by = match counter {
        Counter::Perf => "perf stat",
        Counter::Valgrind => "valgrind",
    };
    println!("{:48} {:>12}", "", by);
    let calls = counter.calls();
    for (case, (name, _)) in CASES.iter().enumerate() {
        match (counter.count(case, calls), counter.count(case, 2 * calls)) {
            (Some(once), Some(twice)) => println!("{name:48} {:>12}", twice.saturating_sub(once) / calls),
            _ => println!("{name:48} {:>12}", "-"),
        }
    }
}
