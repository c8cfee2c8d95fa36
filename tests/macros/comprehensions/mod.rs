//! `tensor!` and the indexed notation of `einsum!`.

mod errors;
mod long;
mod loops;

use ndarray::{Array1, Array2, Array3, array};
use std::cell::Cell;
use typed_dims::pipeline::plan::explain::PlanStep;
use typed_dims::prelude::*;

#[test]
fn the_forms_of_the_contract() {
    let a = array![[1.0f32, 2.0], [3.0, 4.0]];
    let b = array![[1.0f32, 0.5], [0.0, 2.0]];
    let n = a.nrows();
    let out = tensor!([i, j] => sum[k](a[i, k] * b[k, j]));
    assert_eq!(out, a.dot(&b));
    let out = tensor!([i, j] => if i <= j { a[i, j] } else { 0.0 });
    assert_eq!(out, array![[1.0, 2.0], [0.0, 4.0]]);
    let v = array![1, 2, 3];
    let m = v.len();
    let out = tensor!([i in 0..m] => v[(i + 1) % m]);
    assert_eq!(out, array![2, 3, 1]);
    let ids = array![[0usize, 1], [1, 1]];
    let w = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    let out = tensor!([b, f] => sum[s](w[ids[b, s], f]));
    assert_eq!(out, array![[5.0, 7.0, 9.0], [8.0, 10.0, 12.0]]);
    let c = einsum!(a[i, k] * b[k, j] => [i, j]);
    assert_eq!(c, a.dot(&b));
    let c = einsum!((a[i, k] - b[j, k]).abs() => [i, j]);
    assert_eq!(c, array![[1.5, 1.0], [5.5, 5.0]]);
    let m = einsum!(max[k](a[i, k] + b[k, j]) => [i, j]);
    assert_eq!(m, array![[2.0, 4.0], [4.0, 6.0]]);
    let t: f32 = einsum!(a[i, i] => []);
    assert_eq!(t, 5.0);
    assert!(try_tensor!([i in 0..n + 1] => a[i, 0]).is_err());
    let s: Result<f32, DimError> = try_tensor!([] => sum[i](a[i, 0]));
    assert_eq!(s, Ok(4.0));
}

#[test]
fn the_same_matrix_product() {
    let (a, b) = (Array2::<f32>::ones((30, 40)), Array2::<f32>::ones((40, 50)));
    let (_, plan) = explain(|| tensor!([i, j] => sum[k](a[i, k] * b[k, j])));
    dims!(i, j, k);
    let (_, typed) = explain(|| (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j)));
    // The plans themselves also contain line numbers, which differ.
    assert_eq!(plan.steps, typed.steps);
    let [PlanStep::Product { .. }] = plan.steps[..] else { panic!("{plan}") };
}

#[test]
fn the_methods_of_tensors_are_fused() {
    let (a, b) = (array![0.3, -0.7, 2.5], array![0.5, -2.0, 1.5]);
    let n = array![7, -7, 9];
    dims!(i);
    let (x, y) = (a.at(i), b.at(i));
    let (found, plan) = explain(|| tensor!([i] => a[i].selu() + a[i].leaky_relu(0.1) * b[i].relu6()));
    assert!(matches!(plan.steps[..], [PlanStep::Elementwise { .. }]), "{plan}");
    assert_eq!(found, (x.selu() + x.leaky_relu(0.1) * y.relu6()).order(i));
    assert_eq!(tensor!([i] => a[i].remainder(b[i])), x.remainder(y).order(i));
    assert_eq!(tensor!([i] => a[i].logaddexp(0.5)), x.logaddexp(0.5).order(i));
    let half = 0.5;
    assert_eq!(tensor!([i] => half.copysign(b[i])), array![0.5, -0.5, 0.5]);
    assert_eq!(tensor!([i] => a[i].lerp(b[i], 0.25)), x.lerp(y, 0.25).order(i));
    assert_eq!(tensor!([i] => half.lerp(b[i], half)), array![0.5, -0.75, 1.0]);
    assert_eq!(tensor!([i] => a[i].gt(b[i])), array![false, true, true]);
    assert_eq!(tensor!([i] => n[i].floor_div(2)), array![3, -4, 4]);
}

#[test]
fn branches_that_are_not_taken_are_not_read() {
    let a = array![3, 1, 4];
    let shifted = tensor!([i] => if i > 0 { a[i - 1] } else { a[i] });
    assert_eq!(shifted, array![3, 3, 1]);
    let n = 5;
    let padded = tensor!([i in 0..n] => if i < a.len() { a[i] } else { 0 });
    assert_eq!(padded, array![3, 1, 4, 0, 0]);
    let ok = tensor!([i in 0..n] => i < a.len() && a[i] > 2);
    assert_eq!(ok, array![true, false, true, false, false]);
    // Quotients of integers are computed only where the left side does not decide.
    let divisors = array![0, 2, 5];
    assert_eq!(tensor!([i] => divisors[i] != 0 && 10 / divisors[i] > 2), array![false, true, false]);
    assert_eq!(tensor!([i] => divisors[i] == 0 || 10 % divisors[i] > 0), array![true, false, false]);
    assert_eq!(
        tensor!([i] => divisors[i] != 0 && a[i].floor_div(divisors[i]) == 0),
        array![false, true, true]
    );
    assert_eq!(tensor!([i] => if divisors[i] != 0 { 10 / divisors[i] } else { -1 }), array![-1, 5, 2]);
    // Rust code also runs only there.
    assert_eq!(
        tensor!([i] => divisors[i] != 0 && divisors[i].map(|x| 10 / x) > 2),
        array![false, true, false]
    );
    let nonzero = |x: i32| if x == 0 { panic!("0") } else { x };
    assert_eq!(tensor!([i] => divisors[i] > 0 && nonzero(divisors[i]) + 1 > 3), array![false, false, true]);
    assert_eq!(tensor!([i] => if a.len() > 5 { a[5] } else { a[i] }), a);
    let empty = Array2::<i32>::zeros((0, 0));
    assert_eq!(tensor!([i] => empty[i, 0]), Array1::<i32>::zeros(0));
    let m = array![[1, 2], [3, 4], [5, 6]];
    assert_eq!(tensor!([i] => m[i, -1]), array![2, 4, 6]);
    let above = tensor!([i in 0..3] => if i > 0 { sum[k](m[i - 1, k]) } else { -1 });
    assert_eq!(above, array![-1, 3, 7]);
}

#[test]
fn reductions_in_branches_that_are_not_taken_do_not_fail() {
    let (d, m) = (array![0i32, 2], array![[1i32, 2], [6, 8]]);
    assert_eq!(tensor!([i] => if d[i] != 0 { sum[k](m[i, k] / d[i]) } else { -1 }), array![-1, 7]);
    assert_eq!(tensor!([i] => if d[i] == 0 { -1 } else { max[k](m[i, k] % d[i]) }), array![-1, 0]);
    assert_eq!(tensor!([i] => d[i] != 0 && sum[k](m[i, k] / d[i]) > 6), array![false, true]);
    let quotient = |x: i32, by: i32| if by == 0 { panic!("0") } else { x / by };
    assert_eq!(tensor!([i] => if d[i] != 0 { max[k](quotient(m[i, k], d[i])) } else { -1 }), array![-1, 4]);
    // A `let` is computed where its name is used.
    assert_eq!(tensor!([i] => let q = 10 / d[i]; d[i] != 0 && q > 2), array![false, true]);
    assert_eq!(
        tensor!([i] => let q = 10 / d[i]; if d[i] != 0 { sum[k](m[i, k] * q) } else { -1 }),
        array![-1, 70]
    );
}

#[test]
fn operators_combine_what_they_combine_in_rust() {
    let (n, s) = (array![6u32, 12], 2u32);
    assert_eq!(tensor!([i] => (n[i] >> s).count_ones()), array![1, 2]);
    let m = array![1i32, 2];
    assert_eq!(tensor!([i] => m[i] << (m[i] << 1)), array![4, 32]);
    let (c, u, v) = (array![false, true], false, true);
    assert_eq!(tensor!([i] => c[i] && u | v), array![false, true]);
    assert_eq!(tensor!([i] => c[i] || u && v), array![false, true]);
    let (a, p, q) = (array![1.0, -2.0], 1.0, 2.0);
    assert_eq!(tensor!([i] => if a[i] > 0.0 && s > 1 { 1 } else { 0 }), array![1, 0]);
    assert_eq!(tensor!([i] => a[i] * { p + q }), array![3.0, -6.0]);
    assert_eq!(tensor!([i] => -{ p + q } + a[i]), array![-2.0, -5.0]);
}

#[test]
fn lets_name_what_functions_and_arms_use() {
    fn f(x: f64) -> f64 {
        x * 100.0
    }
    let (a, t) = (array![1.0f64, 2.0], 1.5);
    assert_eq!(tensor!([i] => f(a[i])), array![100.0, 200.0]);
    assert_eq!(tensor!([i] => let f = |x: f64| x + 1.0; f(a[i])), array![2.0, 3.0]);
    assert_eq!(tensor!([i] => match a[i] { x if x > t => x, _ => t }), array![1.5, 2.0]);
    assert_eq!(tensor!([i] => let t = 5.0; match a[i] { x if x > t => x, _ => t }), array![5.0, 5.0]);
    // A name that a pattern binds is not the loop or the `let` with this name.
    assert_eq!(tensor!([i] => match a[i] { i if i > t => i, _ => 0.0 }), array![0.0, 2.0]);
    assert_eq!(tensor!([i] => let t = 5.0; match a[i] { t if t > 1.0 => t, _ => t + 1.0 }), array![6.0, 2.0]);
    // A function may have the name of a loop.
    assert_eq!(tensor!([f] => f(a[f])), array![100.0, 200.0]);
}

#[test]
fn parameters_of_closures_are_neither_loops_nor_lets() {
    fn apply(f: impl Fn(f64) -> f64, at: f64) -> f64 {
        f(at)
    }
    let (a, v) = (array![1.0, 2.0], [1.0, 10.0]);
    assert_eq!(tensor!([k] => a[k] * v.iter().map(|k| k * 2.0).sum::<f64>()), array![22.0, 44.0]);
    assert_eq!(tensor!([k] => a[k] + apply(|k| k + 1.0, 2.0)), array![4.0, 5.0]);
    assert_eq!(tensor!([k] => let t = 2.0; a[k] + apply(|t| t + 1.0, t)), array![4.0, 5.0]);
    // The parameter is no index, but the same name after the closure is one.
    let (b, c) = (array![3.0, 4.0], array![1.0, 10.0]);
    assert_eq!(einsum!(a[i].map(|j| j * 2.0) * b[j] * c[j] => [i]), array![86.0, 172.0]);
}

#[test]
fn a_block_may_end_in_a_macro_with_braces() {
    macro_rules! twice {
        ($x:expr) => {
            $x * 2.0
        };
    }
    let a = array![1.0, 3.0];
    let found = tensor!([i] => if a[i] > 2.0 { let limit = 2.0; twice! { limit } } else { a[i] });
    assert_eq!(found, array![1.0, 4.0]);
}

/// The arguments of a macro must not depend on loops, but may contain their names in another
/// meaning.
#[test]
#[allow(clippy::redundant_closure_call, clippy::match_single_binding, clippy::manual_unwrap_or)] // short programs
fn arguments_of_macros_have_names_of_their_own() {
    macro_rules! identity {
        ($x:expr) => {
            $x
        };
    }
    struct Pair {
        i: f64,
    }
    let (a, m, pair) = (array![1.0, 3.0], array![[1.0, 2.0], [3.0, 4.0]], Pair { i: 2.0 });
    assert_eq!(tensor!([i] => a[i] * std::convert::identity(vec![pair.i; 2][0])), array![2.0, 6.0]);
    assert_eq!(tensor!([i] => a[i] + vec![Pair { i: 1.0 }].len() as f64), array![2.0, 4.0]);
    assert_eq!(
        tensor!([i] => a[i] + vec![1.0, pair.i].into_iter().map(|i| i * 2.0).sum::<f64>()),
        array![7.0, 9.0]
    );
    assert_eq!(
        tensor!([i] => a[i] + if matches!(Some(3), Some(i) if i > 2) { 1.0 } else { 0.0 }),
        array![2.0, 4.0]
    );
    assert_eq!(tensor!([i] => a[i] * Some(1.0).map_or(0.0, |x| identity!(x) + 1.0)), array![2.0, 6.0]);
    // Nested calls of this library have their own loops and axes.
    assert_eq!(tensor!([i] => (tensor!([i] => sum[j](m[i, j])))[i] * a[i]), array![3.0, 21.0]);
    assert_eq!(tensor!([i] => (einsum!(m[i, j] * a[j] => [i]))[i]), array![7.0, 15.0]);
    assert_eq!(tensor!([i, j] => (rearrange!(m, i j -> j i))[i, j]), array![[1.0, 3.0], [2.0, 4.0]]);
    assert_eq!(tensor!([f] => (gather!(m[_ f], [1usize][p] => p f))[0, f]), array![3.0, 4.0]);
    // So have their closures, arms and `let`s.
    assert_eq!(tensor!([i] => a[i] + (tensor!([j] => (|i: f64| i)(a[j])))[i]), array![2.0, 6.0]);
    assert_eq!(tensor!([i] => a[i] + (tensor!([j] => match a[j] { i => i }))[i]), array![2.0, 6.0]);
    assert_eq!(tensor!([i] => a[i] + (tensor!([j] => let i = a[j]; i * i))[i]), array![2.0, 12.0]);
    assert_eq!(tensor!([i] => a[i] + (tensor!([j] => sum[i](m[j, i])))[i]), array![4.0, 10.0]);
    let named = tensor!([i] => a[i] + vec![if let Some(i) = Some(pair.i) { i } else { 0.0 }; 1][0]);
    assert_eq!(named, array![3.0, 5.0]);
    // Only format strings contain names.
    assert_eq!(tensor!([i] => a[i] + format!("{{i}}{}", "{i}").len() as f64), array![7.0, 9.0]);
    // An element becomes the argument of a macro in a closure.
    assert_eq!(tensor!([i] => (|x| { assert!(x > 0.0, "{x}"); x })(a[i])), a);
}

/// Arguments of unknown macros may be anything, such as fields and patterns.
#[test]
#[allow(clippy::redundant_closure_call, clippy::match_single_binding, clippy::manual_unwrap_or)] // short programs
fn names_in_arguments_of_macros_need_not_be_loops() {
    macro_rules! field {
        ($x:expr, $name:ident) => {
            $x.$name
        };
    }
    macro_rules! of_three {
        ($x:ident, $value:expr) => {
            (|$x: f64| $value)(3.0)
        };
    }
    macro_rules! total {
        ($x:ident in $list:ident => $value:expr) => {
            $list.iter().map(|$x| $value).sum::<f64>()
        };
    }
    macro_rules! five {
        (i) => {
            5.0
        };
    }
    macro_rules! same {
        ($x:expr) => {
            $x
        };
    }
    macro_rules! three_times {
        ($value:expr) => {
            tensor!([i in 0..3] => same!($value))
        };
    }
    struct Pair {
        i: f64,
    }
    let (a, pair, list) = (array![1.0, 3.0], Pair { i: 2.0 }, [1.0, 2.0]);
    assert_eq!(tensor!([i] => a[i] + std::mem::offset_of!(Pair, i) as f64), a);
    assert_eq!(tensor!([i] => a[i] + stringify!(i).len() as f64), array![2.0, 4.0]);
    assert_eq!(tensor!([test] => a[test] + if cfg!(test) { 1.0 } else { 2.0 }), array![2.0, 4.0]);
    assert_eq!(tensor!([i] => a[i] + field!(pair, i)), array![3.0, 5.0]);
    assert_eq!(tensor!([i] => a[i] + of_three!(i, i * 2.0)), array![7.0, 9.0]);
    assert_eq!(tensor!([i] => a[i] + total!(i in list => *i * 2.0)), array![7.0, 9.0]);
    assert_eq!(tensor!([i] => a[i] + five!(i)), array![6.0, 8.0]);
    let i = 7;
    assert_eq!(three_times!(i), array![7, 7, 7]);
}

/// `try_tensor!` puts captured code into a block with a label, where rustc refuses a `continue`
/// without one.
#[test]
fn captured_code_leaves_a_loop_by_its_label() {
    let a = array![1.0, 2.0];
    let mut scaled = Vec::new();
    'scales: for scale in [Some(2.0), None, Some(3.0)] {
        scaled
            .push(try_tensor!([i] => a[i] * match scale { Some(scale) => scale, None => continue 'scales }));
    }
    assert_eq!(scaled, [Ok(array![2.0, 4.0]), Ok(array![3.0, 6.0])]);
}

#[test]
fn a_later_let_hides_an_operand() {
    let (x, y) = (array![1i32, 2], array![10, 20]);
    assert_eq!(tensor!([i] => let first = x[0]; let x = &y; x[i] - first), array![9, 19]);
}

macro_rules! plus_ones {
    ($x:ident) => {{
        let a = array![1i32, 1];
        tensor!([i] => $x[i] + a[i])
    }};
}

macro_rules! scaled {
    ($x:ident, $s:expr) => {
        tensor!([i] => $x[i] * $s)
    };
}

macro_rules! row_sums {
    ($x:ident, $i:ident) => {
        tensor!([$i] => sum[k]($x[$i, k]))
    };
}

macro_rules! products_of_rows {
    ($x:ident, $i:ident, $j:ident) => {
        einsum!($x[$i, k] * $x[$j, k] => [$i, $j])
    };
}

macro_rules! counted {
    ($n:expr, $value:expr) => {
        tensor!([j in 0..$n] => $value)
    };
}

#[test]
fn macros_have_names_of_their_own() {
    let a = array![1, 2];
    assert_eq!(plus_ones!(a), array![2, 3]);
    let (k, i) = (array![1i32, 2, 3], 10);
    assert_eq!(scaled!(k, i), array![10, 20, 30]);
    let m = array![[1i32, 2], [3, 4]];
    assert_eq!(row_sums!(m, k), array![3, 7]);
    assert_eq!(row_sums!(m, i), array![3, 7]);
    assert_eq!(products_of_rows!(m, k, l), array![[5, 11], [11, 25]]);
    // A loop that the macro itself does not use is there for the code that it is given.
    assert_eq!(counted!(3, j * 2), array![0, 2, 4]);
}

/// The comma of generic arguments separates no loops, and `<<` starts none.
#[test]
fn ranges_contain_generic_arguments() {
    let two = tensor!([i in 0..Result::<_, ()>::unwrap(Ok(2)), j in 0..1 << 1] => i + j);
    assert_eq!(two, array![[0, 1], [1, 2]]);
    assert_eq!(tensor!([i in 0..<Result<_, ()>>::unwrap(Ok(2)), j in 0..2] => i + j), two);
}

#[test]
fn captured_code_runs_once() {
    let (k, calls) = (array![1i32, 2, 4, 8], Cell::new(0));
    let off = || {
        calls.set(calls.get() + 1);
        1
    };
    assert_eq!(tensor!([i] => k[i + off()] * i), array![0, 4, 16]);
    assert_eq!(calls.take(), 1);
    assert_eq!(tensor!([i] => let at = i + off(); k[at] * i), array![0, 4, 16]);
    assert_eq!(calls.take(), 1);
    assert_eq!(tensor!([i] => k[k.len() - off() - i] * i), array![0, 4, 4, 3]);
    assert_eq!(calls.take(), 1);
    let lows = || {
        calls.set(calls.get() + 1);
        array![1.0, -1.0]
    };
    let (x, m) = (array![0.5f64, 2.0], array![[1.0, 2.0], [3.0, 0.0]]);
    assert_eq!(tensor!([i] => x[i].clamp((lows())[i], 1.5)), array![1.0, 1.5]);
    assert_eq!(calls.take(), 1);
    assert_eq!(tensor!([i] => x[i].clamp(min[k](m[i, k]), 1.5)), array![1.0, 1.5]);
}

#[test]
fn all_sorts_of_expressions() {
    let a = array![[1.5f32, -2.0], [0.25, 4.0]];
    let scale = 2.0f32;
    let f = |x: f32| x * x + 1.0;
    assert_eq!(tensor!([i, j] => f(a[i, j])), a.mapv(f));
    assert_eq!(tensor!([i, j] => scale - a[i, j]), a.mapv(|x| 2.0 - x));
    assert_eq!(tensor!([i, j] => 1.0 - a[i, j]), a.mapv(|x| 1.0 - x));
    assert_eq!(tensor!([i, j] => a[i, j].max(0.0)), a.mapv(|x| x.max(0.0)));
    assert_eq!(tensor!([i, j] => 0.0f32.max(a[i, j])), a.mapv(|x| x.max(0.0)));
    assert_eq!(tensor!([i, j] => i as f32 + a[i, j] * j as f32), array![[0.0, -2.0], [1.0, 5.0]]);
    assert_eq!(tensor!([i, j] => { let x = a[i, j]; let y = x * x; y + x }), a.mapv(|x| x * x + x));
    assert_eq!(tensor!([i, j] => let x = a[i, j]; let c = 3.0; x * c), a.mapv(|x| x * 3.0));
    assert_eq!(
        tensor!([i, j] => a[i, j].mul_add(scale, a[j, i])),
        Array2::from_shape_fn((2, 2), |(i, j)| a[[i, j]].mul_add(2.0, a[[j, i]]))
    );
    let ints = array![1i32, 5, 1];
    assert_eq!(tensor!([v in 0..6] => sum[i](if ints[i] == v { 1 } else { 0 })), array![0, 2, 0, 0, 0, 1]);
    assert_eq!(tensor!([i] => ints[i] * i), array![0, 5, 2]);
    assert_eq!(tensor!([i] => i + ints[i]), array![1, 6, 3]);
    assert_eq!(tensor!([i] => ints[i].pow(2)), array![1, 25, 1]);
    assert_eq!(tensor!([i] => match ints[i] { 1 => 'a' as u32, _ => 0 }), array![97, 0, 97]);
    assert_eq!(tensor!([i in 0..3, j in 0..2] => i * 2 + j), array![[0, 1], [2, 3], [4, 5]]);
    let t: Array2<f32> = tensor!([i in 0..2, j in 0..2] => if i == j { 1.0 } else { 0.0 });
    assert_eq!(t, array![[1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(tensor!([i in -1..=1] => i), array![-1, 0, 1]);
    assert_eq!(tensor!([i] => argmax[j](a[i, j])), array![0, 1]);
    assert_eq!(tensor!([i] => any[j](a[i, j] < 0.0)), array![true, false]);
    assert_eq!(tensor!([] => sum[i, j](a[i, j])), 3.75);
    assert_eq!(tensor!([i, j in 0..3] => a[i, 0]), array![[1.5f32, 1.5, 1.5], [0.25, 0.25, 0.25]]);
    assert_eq!(tensor!([i] => { let best = argmax[j](a[i, j]); a[i, best] }), array![1.5, 4.0]);
    assert_eq!(tensor!([(i, j)] => a[i, j]), array![1.5, -2.0, 0.25, 4.0]);
    let rows = [array![1.0, 2.0], array![3.0, 4.0]];
    assert_eq!(tensor!([i] => rows[1][i]), array![3.0, 4.0]);
    assert_eq!(tensor!([i in 0..rows[0].len()] => i), array![0, 1]);
    assert_eq!(tensor!([i in 0..3] => 7u8), array![7, 7, 7]);
}

#[test]
fn windows_take_their_size_from_what_fits() {
    let x = array![1, 2, 4, 8, 16];
    let w = array![1, 10];
    assert_eq!(tensor!([i] => sum[k](x[i + k] * w[k])), array![21, 42, 84, 168]);
    assert_eq!(tensor!([i] => x[2 * i]), array![1, 4, 16]);
    assert_eq!(tensor!([i] => x[x.len() - 1 - i]), array![16, 8, 4, 2, 1]);
    let x = Array3::<f32>::ones((2, 6, 7));
    let w = Array3::<f32>::ones((2, 3, 3));
    let (out, plan) = explain(|| tensor!([h, y] => sum[c, kh, kw](x[c, h + kh, y + kw] * w[c, kh, kw])));
    assert_eq!(out, Array2::from_elem((4, 5), 18.0));
    assert!(plan.steps.iter().all(|step| !matches!(step, PlanStep::Copy { .. })), "{plan}");
}

#[test]
fn dims_of_the_scope_and_tensors() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    dims!(n);
    let x = a.at((n, ..));
    assert_eq!(tensor!([$n, i] => x[i] * 2.0), &a * 2.0);
    let y = tensor!([] => sum[i](x[i]));
    assert_eq!(y.order(n), array![3.0, 7.0]);
    let z = tensor!([$n] => a[$n, 0]);
    assert_eq!(z, array![1.0, 3.0]);
}

struct Layer {
    w: Array2<f32>,
    b: Array1<f32>,
}

impl Layer {
    fn run(&self, x: &Array1<f32>) -> Array1<f32> {
        tensor!([o] => (sum[i](self.w[o, i] * x[i]) + self.b[o]).relu())
    }
}

#[test]
fn fields_are_operands() {
    let layer = Layer { w: array![[1.0, -1.0], [2.0, 2.0]], b: array![0.5, -10.0] };
    assert_eq!(layer.run(&array![1.0, 1.0]), array![0.5, 0.0]);
}
