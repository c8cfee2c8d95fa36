//! Reductions, scans and softmax.

use crate::reference::input::{Case, Random, Sample, cases, filled_cases};
use crate::reference::{Reference, arg};
use crate::{A, B, C, D, assert_same, bound, inputs, ordered, properties};
use ndarray::{Array1, ArrayD, arr1, s};
use num_complex::Complex;
use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::Strategy;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

fn sums<T: Sample + Num>(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, T; x[A B C D] => refs);
    let [rx] = &refs;
    let sum = |line: Vec<T>| line.into_iter().fold(T::ZERO_VALUE, T::plus);
    assert_same!(bound!(x[A B C D]).sum(B), [D C A], rx.reduce(&["B"], sum));
    assert_same!(bound!(x[A B C D]).sum((D, A)), [C B], rx.reduce(&["A", "D"], sum));
    assert_same!(bound!(x[A B C D]).sum((B, C, A, D)), [], rx.reduce(&["A", "B", "C", "D"], sum));
    // Products stay exact: integers wrap around, and products of floats have at most nine factors,
    // which are small integers.
    inputs!(case, random, T; y[A B] => refs);
    let one = T::ONE;
    let prod = |line: Vec<T>| line.into_iter().fold(one, T::times);
    assert_same!(bound!(y[A B]).prod(B), [A], refs[0].reduce(&["B"], prod));
    assert_same!(bound!(y[A B]).prod((A, B)), [], refs[0].reduce(&["A", "B"], prod));
    let running = refs[0].along("A", |line| {
        let mut total = T::ZERO_VALUE;
        line.into_iter()
            .map(|x| {
                total = total.plus(x);
                total
            })
            .collect()
    });
    assert_same!(bound!(y[A B]).cumsum(A), [B A], running);
}

/// Like `sums`, with fewer reductions, for further types.
fn sums_at_once<T: Sample + Num>(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, T; x[A B C], y[A B] => refs);
    let [rx, ry] = &refs;
    let sum = |line: Vec<T>| line.into_iter().fold(T::ZERO_VALUE, T::plus);
    let prod = |line: Vec<T>| line.into_iter().fold(T::ONE, T::times);
    assert_same!(bound!(x[A B C]).sum((C, A)), [B], rx.reduce(&["A", "C"], sum));
    assert_same!(bound!(y[A B]).prod(B), [A], ry.reduce(&["B"], prod));
}

fn sums_along_each(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, f32; x[A B C D] => refs);
    let [rx] = &refs;
    let sum = |line: Vec<f32>| line.into_iter().fold(0.0, f32::plus);
    assert_same!(bound!(x[A B C D]).sum(D), [A B C], rx.reduce(&["D"], sum));
    assert_same!(bound!(x[A B C D]).sum(A), [B C D], rx.reduce(&["A"], sum));
    assert_same!(bound!(x[A B C D]).sum(C), [B D A], rx.reduce(&["C"], sum));
    assert_same!(bound!(x[A B C D]).sum(()), [B A D C], rx);
}

/// Maxima and minima over some dims, and their positions.
macro_rules! over {
    ($x:ident $rx:ident $t:ty: $dims:expr, [$($dim:ident)*], $names:expr) => {
        let pick = |greatest| move |line: Vec<$t>| line[arg(&line, greatest)].to_ne_bytes();
        let bits = |x: $t| x.to_ne_bytes();
        assert_same!(bound!($x[A B C]).max($dims).map(bits), [$($dim)*], $rx.reduce($names, pick(true)));
        assert_same!(bound!($x[A B C]).min($dims).map(bits), [$($dim)*], $rx.reduce($names, pick(false)));
        assert_same!(bound!($x[A B C]).argmax($dims), [$($dim)*], $rx.reduce($names, |line| arg(&line, true)));
        assert_same!(bound!($x[A B C]).argmin($dims), [$($dim)*], $rx.reduce($names, |line| arg(&line, false)));
    };
}

macro_rules! extremes {
    ($($name:ident $t:ty, $sample:expr;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            let x = case.buffer::<$t>(&mut random, &["A", "B", "C"], $sample);
            let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]);
            over!(x rx $t: (C, A), [B], &["C", "A"]);
        }
    )*};
}

fn extremes_along_each(case: &Case) {
    let mut random = case.random();
    let x = case.buffer(&mut random, &["A", "B", "C"], few_f32);
    let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]);
    over!(x rx f32: A, [B C], &["A"]);
    over!(x rx f32: B, [A C], &["B"]);
    over!(x rx f32: C, [B A], &["C"]);
    over!(x rx f32: (A, B, C), [], &["A", "B", "C"]);
}

/// Few distinct values, so that many are equal, and occasional NaNs.
fn few_f32(random: &mut Random) -> f32 {
    if random.below(12) == 0 { f32::NAN } else { random.small() as f32 }
}

extremes! {
    extremes_f32 f32, few_f32;
    extremes_f64 f64, |r| if r.below(40) == 0 { f64::NAN } else { [f64::NEG_INFINITY, -1.0, 2.0, f64::INFINITY][r.below(4)] };
    extremes_i8 i8, |r| r.next() as i8;
    extremes_u64 u64, |r| r.next() % 3;
}

fn booleans(case: &Case) {
    let mut random = case.random();
    let likely = 1 + random.below(8);
    let x = case.buffer(&mut random, &["A", "B", "C"], |r| r.below(9) < likely);
    let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]);
    assert_same!(bound!(x[A B C]).any(B), [C A], rx.reduce(&["B"], |line| line.contains(&true)));
    assert_same!(bound!(x[A B C]).all((C, A)), [B], rx.reduce(&["A", "C"], |line| !line.contains(&false)));
    let count = |line: Vec<bool>| line.iter().filter(|&&x| x).count();
    assert_same!(bound!(x[A B C]).count((A, B, C)), [], rx.reduce(&["A", "B", "C"], count));
    assert_same!(
        bound!(x[A B C]).any((A, B, C)),
        [],
        rx.reduce(&["A", "B", "C"], |line| line.contains(&true))
    );
}

/// Asserts that floats agree up to `bound`, and NaN and infinities exactly.
#[track_caller]
fn assert_close(found: ArrayD<f64>, expected: ArrayD<f64>, bound: impl Fn(f64) -> f64) {
    assert_eq!(found.shape(), expected.shape());
    for (&found, &expected) in found.iter().zip(&expected) {
        let same = found == expected || found.is_nan() && expected.is_nan();
        assert!(same || (found - expected).abs() < bound(expected), "{found:?} instead of {expected:?}");
    }
}

/// Statistics in `f32`, compared with `f64`.
fn statistics(case: &Case) {
    let mut random = case.random();
    let x = case.buffer(&mut random, &["A", "B", "C"], |r| (r.below(8001) as f32 - 4000.0) / 1000.0);
    let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]).map(f64::from);
    let eps = f64::from(f32::EPSILON);
    let few = |expected: f64| 16.0 * eps * expected.abs().max(1.0);
    let mean = |line: &[f64]| line.iter().sum::<f64>() / line.len() as f64;
    let var = |line: &[f64], ddof: f64| {
        let mean = mean(line);
        line.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (line.len() as f64 - ddof)
    };
    let lse = |line: &[f64]| line.iter().map(|x| x.exp()).sum::<f64>().ln();
    macro_rules! check {
        ($dims:expr, [$($dim:ident)*], $names:expr) => {
            let to = |found: ArrayD<f32>| found.mapv(f64::from);
            let by = |f: &dyn Fn(&[f64]) -> f64| rx.reduce($names, |line| f(&line)).order(&[$(&[stringify!($dim)]),*]);
            assert_close(to(ordered!(bound!(x[A B C]).mean($dims), [$($dim)*])), by(&mean), few);
            assert_close(to(ordered!(bound!(x[A B C]).var($dims), [$($dim)*])), by(&|x| var(x, 0.0)), |e| 4.0 * few(e));
            // Near 0, an error d in a variance is an error of sqrt(d) in its root.
            let found = to(ordered!(bound!(x[A B C]).std($dims), [$($dim)*])).mapv(|s| s * s);
            assert_close(found, by(&|x| var(x, 0.0)), |e| 4.0 * few(e));
            let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert_close(to(ordered!(bound!(x[A B C]).norm($dims), [$($dim)*])), by(&norm), few);
            assert_close(to(ordered!(bound!(x[A B C]).logsumexp($dims), [$($dim)*])), by(&lse), few);
            // The divisor is at least 0, so one element and no elements give 0 / 0.
            let unbiased = |x: &[f64]| if x.len() <= 1 { f64::NAN } else { var(x, 1.0) };
            let found = to(ordered!(bound!(x[A B C]).var_with($dims, 1.0), [$($dim)*]));
            assert_close(found, by(&unbiased), |e| 4.0 * few(e));
        };
    }
    check!(B, [C A], &["B"]);
    check!((A, C), [B], &["A", "C"]);
    check!((C, B, A), [], &["A", "B", "C"]);
}

fn softmaxes(case: &Case) {
    let mut random = case.random();
    let x = case.buffer(&mut random, &["A", "B", "C"], |r| (r.below(8001) as f64 - 4000.0) / 40.0);
    let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]);
    let exact = |line: Vec<f64>| -> Vec<f64> {
        // Logarithms of the shares, by their definition, after subtracting the maximum.
        let greatest = line.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = line.iter().map(|x| (x - greatest).exp()).sum();
        line.iter().map(|x| x - greatest - sum.ln()).collect()
    };
    let logs = |name| rx.along(name, exact);
    let order: [&[&str]; 3] = [&["C"], &["A"], &["B"]];
    let relative = |e: f64| 64.0 * f64::EPSILON * e.abs();
    macro_rules! check {
        ($dim:ident) => {
            let expected = logs(stringify!($dim)).order(&order);
            let found = ordered!(bound!(x[A B C]).log_softmax($dim), [C A B]);
            assert_close(found, expected.clone(), |e| relative(e.abs().max(1.0)));
            // An absolute error of an exponent is a relative error of its share. Here exponents
            // have magnitudes up to about 200.
            let found = ordered!(bound!(x[A B C]).softmax($dim), [C A B]);
            assert_close(found, expected.mapv(f64::exp), |e| 200.0 * relative(e));
        };
    }
    check!(A);
    check!(B);
    check!(C);
}

/// A reduction of an expression equals the reduction of its computed elements.
fn expressions(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B], y[B C], z[C] => refs);
    let [rx, ry, rz] = &refs;
    let sum = |line: Vec<i32>| line.into_iter().fold(0i32, i32::wrapping_add);
    let value = rx.zip(ry, |x, y| x.minus(y)).zip(rz, |d, z| d.max(z));
    assert_same!((bound!(x[A B]) - bound!(y[B C])).maximum(bound!(z[C])).sum(B), [C A], value.reduce(&["B"], sum));
    assert_same!(
        (bound!(x[A B]) - bound!(y[B C])).maximum(bound!(z[C])).sum((A, C)),
        [B],
        value.reduce(&["A", "C"], sum)
    );
    // A dim along which nothing varies multiplies the sum by its size.
    dims!(n = 3);
    let thrice = rx.map(|x| x.times(3)).reduce(&["A"], sum);
    assert_same!((bound!(x[A B]) + (n * 0).cast::<i32>()).sum((A, n)), [B], thrice);
    let indices = Reference::build(&[("A", case.size("A"))], |at| at[0].1 as isize);
    dims!(a = case.size("A"));
    assert_eq!(
        ordered!((a * a - 1).sum(a), []),
        indices.reduce(&["A"], |x| x.iter().map(|x| x * x - 1).sum::<isize>()).order(&[])
    );
}

fn positional(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i64; x[C A D B] => refs);
    let sum = |line: Vec<i64>| line.into_iter().fold(0i64, i64::wrapping_add);
    let found = x.view::<ndarray::Ix4>().at((.., A, .., B)).sum(A).order(B).into_dyn();
    assert_eq!(found, refs[0].reduce(&["A"], sum).order(&[&["B"], &["C"], &["D"]]));
}

/// `special_lines` mixes the first few, so the numbers that dominate results come last.
const SPECIAL: [f32; 7] = [-1.5, 0.0, -0.0, 2.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];

/// Lines that mix the first few of the special numbers, shorter and longer than a block.
fn special_lines() -> impl Strategy<Value = Vec<f32>> {
    (1..=SPECIAL.len()).prop_flat_map(|kinds| vec(select(&SPECIAL[..kinds]), 1..1700))
}

/// Ties, infinities and NaN at any position.
fn of_special_numbers(line: &[f32]) {
    // The line as a column between others.
    let columns =
        ndarray::Array2::from_shape_fn((line.len(), 3), |(i, j)| if j == 1 { line[i] } else { 0.5 });
    dims!(row, column);
    assert_eq!(columns.at((row, column)).argmax(row).order(column)[1], arg(line, true));
    assert_eq!(columns.at((row, column)).argmin(row).order(column)[1], arg(line, false));
    // Strips of columns that start at a cache line, and others.
    let few = &line[..line.len().min(260)];
    for (width, skipped) in [(16, 0), (17, 1), (33, 0), (130, 0), (300, 0), (301, 1)] {
        let is_special = |j: usize| j.is_multiple_of(7) || j + 1 == width;
        let value = |(i, j)| if is_special(j) { few[i] } else { 0.5 };
        let whole = ndarray::Array2::from_shape_fn((few.len(), width), value);
        let columns = whole.slice(s![.., skipped..]);
        dims!(row, column);
        let x = columns.at((row, column));
        let (greatest, least) = (x.argmax(row).order(column), x.argmin(row).order(column));
        let (max, min) = (x.max(row).order(column), x.min(row).order(column));
        for j in (0..width - skipped).filter(|&j| is_special(j + skipped)) {
            assert_eq!((greatest[j], least[j]), (arg(few, true), arg(few, false)), "{width} {j}");
            let alike = |found: f32, at: usize| found == few[at] || found.is_nan() && few[at].is_nan();
            assert!(
                alike(max[j], greatest[j]) && alike(min[j], least[j]),
                "{width} {j}: {} {}",
                max[j],
                min[j]
            );
        }
    }
    let (all, turned) = (columns.as_slice().expect("standard layout"), columns.t());
    assert_eq!(columns.at((row, column)).argmax((row, column)).order(()), arg(all, true));
    let turned: Vec<f32> = turned.iter().copied().collect();
    assert_eq!(columns.at((row, column)).argmax((column, row)).order(()), arg(&turned, true));
    dims!(i);
    let (forwards, backwards) = (arr1(line), arr1(line).slice_move(s![..;-1]));
    let reversed: Vec<f32> = backwards.to_vec();
    for greatest in [true, false] {
        let found = |x: &Array1<f32>| {
            if greatest { x.at(i).argmax(i).order(()) } else { x.at(i).argmin(i).order(()) }
        };
        assert_eq!((found(&forwards), found(&backwards)), (arg(line, greatest), arg(&reversed, greatest)));
    }
    let wide = forwards.mapv(f64::from);
    let close = |found: f32, exact: f64| {
        let found = f64::from(found);
        let alike = found == exact || found.is_nan() && exact.is_nan();
        // An accumulator adds up to 128 numbers before it is combined with others. If the numbers
        // are equal, each sum can be rounded in the same direction, by half a unit in the last
        // place.
        let bound = 128.0 * f64::from(f32::EPSILON) / 2.0;
        assert!(alike || (found - exact).abs() < bound * exact.abs().max(1.0), "{found} instead of {exact}");
    };
    let greatest = wide.fold(f64::NEG_INFINITY, |a, &b| if a.is_nan() || a > b { a } else { b });
    let sum: f64 = wide.iter().map(|x| if *x == greatest { 1.0 } else { (x - greatest).exp() }).sum();
    close(forwards.at(i).logsumexp(i).order(()), greatest + sum.ln());
    let mean = wide.mean().expect("a line has an element");
    let variance = wide.mapv(|x| (x - mean).powi(2)).mean().expect("a line has an element");
    close(forwards.at(i).var(i).order(()), variance);
}

properties! {
    sums_i8 20: |case in cases(4), _which| sums_at_once::<i8>(&case);
    sums_i32 30: |case in cases(5), _which| sums::<i32>(&case);
    sums_u8 10: |case in cases(4), _which| sums_at_once::<u8>(&case);
    sums_u64 10: |case in cases(4), _which| sums_at_once::<u64>(&case);
    sums_f32 30: |case in cases(3), _which| sums::<f32>(&case);
    sums_f64 20: |case in cases(4), _which| sums_at_once::<f64>(&case);
    sums_complex64 10: |case in cases(3), _which| sums::<Complex<f64>>(&case);
    sums_along_each_dim 30: |case in cases(3), _which| sums_along_each(&case);
    long_sums_i32 6: |case in filled_cases(12), _which| sums::<i32>(&case);
    extremes_of_f32 40: |case in filled_cases(5), _which| extremes_f32(&case);
    extremes_of_long_f32 6: |case in filled_cases(20), _which| extremes_f32(&case);
    extremes_along_each_dim 40: |case in filled_cases(5), _which| extremes_along_each(&case);
    extremes_along_long_dims 6: |case in filled_cases(20), _which| extremes_along_each(&case);
    extremes_of_f64 40: |case in filled_cases(5), _which| extremes_f64(&case);
    extremes_of_i8 20: |case in filled_cases(5), _which| extremes_i8(&case);
    extremes_of_u64 40: |case in filled_cases(5), _which| extremes_u64(&case);
    any_all_count 40: |case in cases(5), _which| booleans(&case);
    statistics_of_f32 40: |case in cases(5), _which| statistics(&case);
    softmax_along_each_dim 40: |case in cases(5), _which| softmaxes(&case);
    reductions_of_expressions 40: |case in cases(5), _which| expressions(&case);
    special_numbers_in_lines 12: |line in special_lines(), _which| of_special_numbers(&line);
    reductions_keep_positional_axes 30: |case in cases(4), _which| positional(&case);
}

#[cfg(feature = "half")]
properties! {
    sums_f16 10: |case in cases(3), _which| sums::<half::f16>(&case);
    sums_bf16 10: |case in cases(3), _which| sums_at_once::<half::bf16>(&case);
}

/// Long lines use blocks and several accumulators: along the innermost loop, and across it.
#[test]
fn long_lines() {
    for n in [31, 32, 33, 127, 128, 129, 1000, 4097] {
        let x = ndarray::Array2::from_shape_fn((n, 3), |(i, j)| ((i * 7 + j) % 11) as f64);
        dims!(i, j);
        let expected: Vec<f64> = (0..3).map(|j| (0..n).map(|i| ((i * 7 + j) % 11) as f64).sum()).collect();
        assert_eq!(x.at((i, j)).sum(i).order(j).to_vec(), expected);
        assert_eq!(x.t().at((j, i)).sum(i).order(j).to_vec(), expected);
        assert_eq!(x.t().as_standard_layout().at((j, i)).sum(i).order(j).to_vec(), expected);
        let last = ndarray::Array1::from_shape_fn(n, |i| if i + 1 == n { 2 } else { i32::from(i % 2 == 0) });
        assert_eq!(last.at(i).argmax(i).order(()), n - 1);
        assert_eq!(last.at(i).argmin(i).order(()), 1);
    }
}

/// Deviations from a large mean are exact. The variance of equal numbers is 0, even if their sum
/// overflows.
#[test]
fn variances_of_large_numbers() {
    for (value, n) in [(0.1f32, 1000), (3e38, 1000), (-3e38, 33), (1e-40, 600)] {
        dims!(i);
        assert_eq!(Array1::from_elem(n, value).at(i).var(i).order(()), 0.0);
    }
    dims!(i);
    let x = Array1::from_shape_fn(1000, |i| 1e6 + (i % 2) as f32);
    assert_eq!(x.at(i).var(i).order(()), 0.25);
    // The mean is between two floats.
    dims!(i);
    let x = Array1::from_shape_fn(512, |i| 1e8 + 8.0 * (i % 2) as f32);
    assert_eq!(x.at(i).var(i).order(()), 16.0);
}

/// If deviations repeat, many sums can be rounded in the same direction.
#[test]
fn variances_of_few_values() {
    for n in [600, 1000, 1699, 4000] {
        dims!(i);
        for turn in 0..40 {
            let x = Array1::from_shape_fn(n, |i| [0.0f32, 2.0, -1.5][(i * i + turn * (i / 7)) % 3]);
            let wide = x.mapv(f64::from);
            let mean = wide.mean().expect("the array is not empty");
            let exact = wide.mapv(|x| (x - mean).powi(2)).mean().expect("the array is not empty");
            let found = f64::from(x.at(i).var(i).order(()));
            assert!((found - exact).abs() <= 6e-7 * exact, "{found} instead of {exact}");
        }
    }
}

/// A single result of many elements is computed in parts.
#[test]
fn special_numbers_in_parts() {
    dims!(i, j);
    let mut x = ndarray::Array2::from_elem((700, 1000), f32::NEG_INFINITY);
    assert_eq!(x.at((i, j)).argmax((i, j)).order(()), 0);
    assert_eq!(x.at((i, j)).logsumexp((i, j)).order(()), f32::NEG_INFINITY);
    (x[[199, 7]], x[[650, 3]]) = (2.0, 2.0);
    assert_eq!(x.at((i, j)).argmax((i, j)).order(()), 199_007);
    assert_eq!(x.at((i, j)).argmin((i, j)).order(()), 0);
    assert!((x.at((i, j)).logsumexp((i, j)).order(()) - (2.0 + 2f32.ln())).abs() < 1e-6);
    (x[[300, 5]], x[[699, 999]]) = (f32::NAN, f32::NAN);
    assert_eq!(x.at((i, j)).argmax((i, j)).order(()), 300_005);
    assert_eq!(x.at((i, j)).argmin((j, i)).order(()), 5 * 700 + 300);
    let zeros = ndarray::Array2::<u8>::zeros((700, 1000));
    assert_eq!(zeros.at((i, j)).argmax((i, j)).order(()), 0);
    assert_eq!(x.at((i, j)).argmax(i).order(j)[5], 300);
}

/// Softmax of lines and of columns, with shares that are subnormal or 0.
#[test]
fn shares_of_almost_nothing() {
    let lines =
        ndarray::arr2(&[[0.0, -95.0, f32::NEG_INFINITY, -103.0], [3.0, f32::NEG_INFINITY, -98.5, -101.0]]);
    let columns = lines.t().as_standard_layout().into_owned();
    dims!(i, j);
    let found = [lines.at((i, j)).softmax(j).order((i, j)), columns.at((j, i)).softmax(j).order((i, j))];
    for ((i, j), x) in lines.indexed_iter() {
        // The shares of the other elements are too small to change the sum.
        let exact = f64::from(x - lines[[i, 0]]).exp();
        for found in &found {
            let found = f64::from(found[[i, j]]);
            let least = f64::from(f32::from_bits(1));
            assert!((found - exact).abs() <= exact * 4e-7 + 0.5001 * least, "{found:e} instead of {exact:e}");
        }
    }
}

/// The sum of 10 million equal floats. A single accumulator would be wrong in the third digit.
#[test]
fn long_sums_are_accurate() {
    let n = 10_000_000;
    let tenth = ndarray::arr0(0.1f32);
    let x = tenth.broadcast(n).expect("one element repeats");
    dims!(i);
    let found = f64::from(x.at(i).sum(i).order(()));
    let exact = f64::from(0.1f32) * n as f64;
    // Pairwise summation of blocks of 128: about 7 + log2(n / 128) roundings.
    assert!((found - exact).abs() <= 24.0 * f64::from(f32::EPSILON) * exact, "{found} instead of {exact}");
}

#[test]
fn special_values() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    dims!(i, j);
    let x = [[1.0, nan, 3.0], [-inf, -inf, -inf], [0.0, inf, inf], [-inf, 0.0, -inf]];
    let same = |found: ndarray::Array1<f32>, expected: [f32; 4]| {
        for (&found, expected) in found.iter().zip(expected) {
            assert!(
                found == expected || found.is_nan() && expected.is_nan(),
                "{found} instead of {expected}"
            );
        }
    };
    same(x.at((i, j)).max(j).order(i), [nan, -inf, inf, 0.0]);
    same(x.at((i, j)).min(j).order(i), [nan, -inf, 0.0, -inf]);
    same(x.at((i, j)).logsumexp(j).order(i), [nan, -inf, inf, 0.0]);
    assert_eq!(x.at((i, j)).argmax(j).order(i).to_vec(), [1, 0, 1, 1]);
    assert_eq!(x.at((i, j)).argmin(j).order(i).to_vec(), [1, 0, 0, 0]);
    let softmax = x.at((i, j)).softmax(j).order((i, j));
    assert!(softmax.row(0).iter().all(|x| x.is_nan()));
    assert_eq!(softmax.row(3).to_vec(), [0.0, 1.0, 0.0]);
}
