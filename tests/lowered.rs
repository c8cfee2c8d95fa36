//! Expressions that run as programs return the same bits as their kernels, and the same errors.

#![cfg(all(feature = "std", debug_assertions))]

use ndarray::{Array, Array2, Dimension};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::prelude::*;
use typed_dims_kernels::program::lowered::{count, lower};

dims! {
    struct A;
    struct B;
    struct C;
    struct K;
    struct F;
}

/// All elements as text, which distinguishes -0 from 0.
fn words<T: Debug + Clone, D: Dimension>(array: &Array<T, D>) -> Vec<String> {
    array.iter().map(|element| format!("{element:?}")).collect()
}

/// Calls `run` with kernels and with programs. Returns both results, and the number of programs
/// that ran.
fn both<T>(run: impl Fn() -> T) -> (T, T, usize) {
    lower(Some(false));
    let before = count();
    let by_kernel = run();
    assert_eq!(count(), before, "no program runs where kernels are asked for");
    lower(Some(true));
    let by_program = run();
    lower(None);
    (by_kernel, by_program, count() - before)
}

/// Asserts that a run with at least one program returns the same result as kernels.
#[track_caller]
fn assert_same<T: Debug + Clone, D: Dimension>(run: impl Fn() -> Array<T, D>) {
    let (by_kernel, by_program, programs) = both(run);
    assert!(programs > 0, "no program ran");
    assert_eq!(words(&by_kernel), words(&by_program));
}

/// Like [`assert_same`], for an expression that only kernels run.
#[track_caller]
fn assert_by_kernel<T: Debug + Clone, D: Dimension>(run: impl Fn() -> Array<T, D>) {
    let (by_kernel, by_program, programs) = both(run);
    assert_eq!(programs, 0, "a program ran");
    assert_eq!(words(&by_kernel), words(&by_program));
}

/// Numbers of all kinds: signed zeros, infinities, NaN, subnormal and inexact numbers.
fn numbers(len: usize) -> Vec<f32> {
    let special =
        [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, -1e30, 0.1, 2.5, -3.7];
    (0..len)
        .map(|at| if at % 5 == 0 { special[at / 5 % special.len()] } else { (at as f32 * 0.37).sin() * 7.0 })
        .collect()
}

fn line(len: usize) -> Tensor<f32, (A,)> {
    from_vec(A.of(len), numbers(len))
}

fn plane(rows: usize, columns: usize) -> Tensor<f32, (A, B)> {
    from_vec((A.of(rows), B.of(columns)), numbers(rows * columns))
}

#[test]
fn nothing_is_simplified_that_changes_a_bit() {
    let x = line(700);
    assert_same(|| (&x + 0.0).order(A));
    assert_same(|| (0.0 + &x).order(A));
    assert_same(|| (&x - 0.0).order(A));
    assert_same(|| (0.0 - &x).order(A));
    assert_same(|| (&x * 1.0).order(A));
    assert_same(|| (&x * -1.0).order(A));
    assert_same(|| (&x * 0.0).order(A));
    assert_same(|| (&x / 1.0).order(A));
    assert_same(|| (-(-&x)).order(A));
    assert_same(|| ((&x * 3.0) * 0.1).order(A));
    assert_same(|| ((&x + 0.1) + 0.2 - &x).order(A));
    assert_same(|| (&x - &x).order(A));
}

macro_rules! assert_unary {
    ($x:expr, $dims:expr; $($name:ident)*) => {$( assert_same(|| $x.$name().order($dims)); )*};
}

#[test]
fn functions_are_those_of_the_table() {
    let x = line(1100);
    assert_unary! { (&x), A;
        abs exp exp_m1 ln ln_1p log2 log10 exp2 sqrt cbrt rsqrt recip square sin cos tan asin acos atan sinh cosh tanh erf floor ceil round trunc fract
        signum sigmoid relu silu gelu softplus relu6 selu mish softsign is_nan is_finite
    }
    let y = (&x).cast::<f64>().eval();
    assert_unary! { (&y), A; exp ln tanh sigmoid erf gelu sin silu }
    assert_same(|| (&x).powi(3).order(A));
    assert_same(|| (&x).clamp(-1.0, 2.0).order(A));
    assert_same(|| (&x).maximum(&x * 0.5).order(A));
    assert_same(|| (&x).abs().powf(0.3).order(A));
}

#[test]
fn operands_have_any_layout() {
    for (rows, columns) in [(1, 1), (3, 700), (700, 3), (40, 33), (513, 16), (2, 2000)] {
        let x = plane(rows, columns);
        let (row, column) = (from_vec(B.of(columns), numbers(columns)), from_vec(A.of(rows), numbers(rows)));
        assert_same(|| (&x + &row).order((A, B)));
        assert_same(|| (&x * &column + &row).order((A, B)));
        assert_same(|| (&x * &column).order((B, A)));
        assert_same(|| (&column * &row).order((B, A)));
        assert_same(|| ((&x).flip(B) - &x).order((A, B)));
        assert_same(|| ((&x).rename(A, C) * &column + 0.5).order((C, A, B)));
    }
    let x = plane(41, 50);
    assert_same(|| ((&x).slice(A, 3..40) * 2.0).order((B, A)));
    assert_same(|| ((&x).slice(B, 1..) - (&x).slice(B, ..49)).order((A, B)));
}

#[test]
fn other_types_are_the_same_too() {
    let x = plane(30, 40);
    assert_same(|| (&x).gt(0.5).order((A, B)));
    assert_same(|| select((&x).lt(0.0), -&x, &x * 2.0).order((A, B)));
    assert_same(|| select(A.of(30).le(B), &x, 0.0).order((A, B)));
    assert_same(|| (select((&x).lt(0.0), 100_i8, 0_i8) + 100).lt(0).order((A, B)));
    assert_same(|| (select((&x).lt(0.0), i32::MAX, 0_i32) + 1).cast::<i64>().order((A, B)));
    assert_same(|| (&x).cast::<i32>().order((A, B)));
    assert_same(|| (&x).cast::<u8>().order((A, B)));
    assert_same(|| (&x).cast::<f64>().order((A, B)));
    let bytes = from_fn(A.of(600), |at: usize| (at * 37 % 256) as u8);
    assert_same(|| ((&bytes).cast::<f32>() / 255.0).order(A));
    assert_same(|| (&bytes * 3 + 250).order(A));
    let wide = from_fn(A.of(600), |at: usize| (at as i32).wrapping_mul(1_234_567_891));
    assert_same(|| (&wide * &wide - 7).order(A));
    assert_same(|| (&wide).gt(0).order(A));
    let long = from_fn(A.of(600), |at: usize| (at as i64).wrapping_mul(0x1234_5678_9abc_def1));
    assert_same(|| (&long * 3 + &long).order(A));
}

#[test]
fn reductions_are_the_same() {
    for (rows, columns) in [(3, 700), (700, 3), (64, 64), (1, 300_000)] {
        let x =
            from_fn((A.of(rows), B.of(columns)), |(a, b): (usize, usize)| ((a * 31 + b * 17) as f32).sin());
        let y = || &x * 1.5 + 0.25;
        assert_same(|| y().sum(A).order(B));
        assert_same(|| y().sum(B).order(A));
        assert_same(|| ndarray::arr0(y().sum((A, B)).order(())));
        assert_same(|| y().mean(B).order(A));
        assert_same(|| y().max(A).order(B));
        assert_same(|| y().min(B).order(A));
        assert_same(|| y().prod(B).order(A));
        assert_same(|| y().argmax(B).order(A));
        assert_same(|| y().argmin(A).order(B));
        assert_same(|| y().var(B).order(A));
        assert_same(|| y().std(A).order(B));
        assert_same(|| y().logsumexp(B).order(A));
        assert_same(|| y().gt(0.0).any(A).order(B));
        assert_same(|| y().gt(0.0).all(B).order(A));
        assert_same(|| y().gt(0.0).count(B).order(A));
        assert_same(|| {
            let mut out = Array2::zeros((columns, 2));
            y().sum_into(A, &mut out.column_mut(1), B);
            out
        });
    }
}

#[test]
fn lines_are_the_same() {
    let x = from_fn((A.of(50), B.of(70)), |(a, b): (usize, usize)| ((a * 31 + b * 17) as f32).sin());
    assert_same(|| (&x * 0.5).softmax(B).order((A, B)));
    assert_same(|| (&x * 0.5).softmax(A).order((A, B)));
    assert_same(|| (&x * 0.5).log_softmax((A, B)).order((A, B)));
    assert_same(|| (x.map_elements(|x: f32| x) * 0.5).softmax(B).order((A, B)));
    assert_same(|| (&x + 1.0).layer_norm(B, 1e-5).order((A, B)));
    assert_same(|| (&x * 0.1).cumsum(A).order((A, B)));
}

#[test]
fn results_reuse_the_memory_of_operands() {
    for len in [10, 512, 513, 5000, 200_000] {
        let x = from_fn(A.of(len), |at: usize| (at as f32).cos());
        let y = from_fn(A.of(len), |at: usize| at as f32);
        assert_same(|| (x.map_elements(|x: f32| x) * 2.0 + &y).eval().order(A));
        assert_same(|| (&y - x.map_elements(|x: f32| x).square()).eval().order(A));
    }
}

#[test]
fn places_get_the_same_values() {
    let x = plane(40, 30);
    assert_same(|| {
        let mut out = Array2::zeros((40, 60));
        (&x * 2.0).order_into(&mut out.slice_mut(ndarray::s![.., ..;2]), (A, B));
        out
    });
    assert_same(|| {
        let mut out = Array2::zeros((30, 40));
        (&x + 1.0).order_into(&mut out, (B, A));
        out
    });
    assert_same(|| {
        let mut out = x.map_elements(|x: f32| x);
        out += (&x).square() * 0.5;
        out -= from_vec(B.of(30), numbers(30)) * 2.0;
        out.slice_mut(A, 3..7).assign((&x).slice(A, 10..14) * 3.0);
        out.order((A, B))
    });
    assert_same(|| concat(B, (&x * 2.0, &x - 1.0)).order((A, B)));
    assert_same(|| stack(C, (&x * 2.0, &x - 1.0)).order((A, B, C)));
}

#[test]
fn values_accumulate_where_places_overlap() {
    let (by_kernel, by_program, _) = both(|| {
        let mut counts = ndarray::Array1::<i32>::zeros(8);
        dims!(i = 6, k = 3);
        counts.at_mut(i + k).add_assign(1);
        counts
    });
    assert_eq!(by_kernel, ndarray::array![1, 2, 3, 3, 3, 3, 2, 1]);
    assert_eq!(by_program, by_kernel);
}

#[test]
fn attention_asks_programs_for_masks_and_biases() {
    let small = |at: usize| ((at * 7919 % 1000) as f32 - 500.0) / 500.0;
    let queries = from_vec((A.of(70), F.of(8)), (0..70 * 8).map(small).collect());
    let keys = from_vec((K.of(90), F.of(8)), (0..90 * 8).map(small).collect());
    let values = from_vec((K.of(90), F.of(8)), (1..=90 * 8).map(small).collect());
    assert_same(|| attention(&queries, &keys, &values, F, K, 0.3, K.le(A)).order((A, F)));
    let slope = from_vec(A.of(70), (0..70).map(small).collect());
    let bias = || &slope * (K - A).cast::<f32>();
    assert_same(|| attention(&queries, &keys, &values, F, K, 0.3, bias()).order((A, F)));
    assert_same(|| attention(&queries, &keys, &values, F, K, 0.3, (K.le(A), bias())).order((A, F)));
}

#[test]
fn what_no_program_says_runs_by_kernels() {
    let x = line(300);
    assert_by_kernel(|| (&x).map(|x: f32| x * 2.0 + 1.0).order(A));
    let places = from_fn(B.of(200), |at: usize| at * 7 % 300);
    assert_by_kernel(|| ((&x).take(A, &places) * 2.0).order(B));
    assert_by_kernel(|| (&places * 3).order(B));
    let numbers = from_fn(A.of(300), |at: usize| at as i32 - 100);
    assert_by_kernel(|| (&numbers / 7).order(A));
}

/// The message of the panic, which must be the same for kernels and programs.
#[track_caller]
fn panic_of<T>(run: impl Fn() -> T) -> String {
    let caught = || {
        let panic = catch_unwind(AssertUnwindSafe(&run)).err().expect("the call panics");
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
    };
    let (by_kernel, by_program, _) = both(caught);
    assert_eq!(by_kernel, by_program);
    by_kernel.expect("the panic has a message")
}

#[test]
fn errors_are_the_same() {
    let x = line(300);
    let places = from_fn(B.of(200), |at: usize| if at == 150 { 300 } else { at });
    assert!(panic_of(|| ((&x).take(A, &places) * 2.0).order(B)).contains("300"));
    assert!(panic_of(|| (&x + line(299)).order(A)).contains("299"));
    let numbers = from_fn(A.of(300), |at: usize| at as i32);
    assert!(panic_of(|| (1 / &numbers).order(A)).contains("the divisor is 0"));
}
