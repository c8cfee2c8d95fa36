//! Elementwise operations over the union of their operands' dims.

use crate::reference::input::{Case, Sample, cases};
use crate::reference::{Reference, select as reference_select};
use crate::{A, B, C, D, E, F, assert_same, bound, inputs, ordered, properties};
use ndarray::Array1;
use num_complex::Complex;
use typed_dims::prelude::*;
use typed_dims::types::scalar::CastTo;

/// The arithmetic operators, on tensors by value and by reference, and with scalars on either side.
macro_rules! arithmetic {
    ($($name:ident $t:ty, $divide:expr;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            inputs!(case, random, $t; x[A C B], y[D B], z[F E C] => refs);
            let [rx, ry, rz] = &refs;
            let s = <$t>::sample(&mut random);
            let divide: fn($t, $t) -> $t = $divide;
            let zero = <$t>::ZERO_VALUE;
            let one = |x: $t| if x == zero { divide(s, s) } else { x };
            assert_same!(bound!(x[A C B]) + bound!(y[D B]) * bound!(z[F E C]), [F A D C E B],
                rx.zip(&ry.zip(rz, |y, z| y.times(z)), |x, yz| x.plus(yz)));
            assert_same!(bound!(x[A C B]) - bound!(y[D B]), [D B A C], rx.zip(ry, |x, y| x.minus(y)));
            assert_same!(s - bound!(x[A C B]) + s, [A B C], rx.map(|x| s.minus(x).plus(s)));
            assert_same!(s + bound!(x[A C B]) - s, [A B C], rx.map(|x| s.plus(x).minus(s)));
            assert_same!(s * bound!(x[A C B]) * s, [A B C], rx.map(|x| s.times(x).times(s)));
            let (xv, yv) = (x.view::<ndarray::Ix3>(), y.view::<ndarray::Ix2>());
            let (xt, yt) = (xv.at((A, C, B)), yv.at((D, B)));
            assert_same!(&xt + &yt * &xt - s, [A B C D], rx.zip(ry, |x, y| x.plus(y.times(x)).minus(s)));
            assert_same!(s - &xt, [A B C], rx.map(|x| s.minus(x)));
            assert_same!(s * &xt, [A B C], rx.map(|x| s.times(x)));
            assert_same!(s + &xt, [A B C], rx.map(|x| s.plus(x)));
            assert_same!((&xt).square(), [A B C], rx.map(|x| x.times(x)));
            if s != zero {
                let nonzero = (&yt).map(one);
                let ry = ry.map(one);
                assert_same!(&xt / &nonzero, [A C B D], rx.zip(&ry, divide));
                assert_same!(&xt / s, [A C B], rx.map(|x| divide(x, s)));
                assert_same!(s / nonzero, [B D], ry.map(|y| divide(s, y)));
            }
        }
    )*};
}

arithmetic! {
    arithmetic_i32 i32, |a, b| a.wrapping_div(b);
    arithmetic_f32 f32, |a, b| a / b;
    arithmetic_complex64 Complex<f64>, |a, b| a / b;
}

#[cfg(feature = "half")]
arithmetic! {
    arithmetic_f16 half::f16, |a, b| a / b;
}

/// The arithmetic operators in two expressions, for further types.
macro_rules! arithmetic_at_once {
    ($($name:ident $t:ty, $divide:expr;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            inputs!(case, random, $t; x[A C B], y[D B], z[F E C] => refs);
            let [rx, ry, rz] = &refs;
            let s = <$t>::sample(&mut random);
            let divide: fn($t, $t) -> $t = $divide;
            let zero = <$t>::ZERO_VALUE;
            assert_same!((s - bound!(x[A C B])) * bound!(y[D B]) + (bound!(z[F E C]) - s), [F A D C E B],
                rx.zip(ry, |x, y| s.minus(x).times(y)).zip(rz, |xy, z| xy.plus(z.minus(s))));
            if s != zero {
                let one = |x: $t| if x == zero { divide(s, s) } else { x };
                assert_same!(bound!(x[A C B]) / bound!(y[D B]).map(one), [A C B D], rx.zip(&ry.map(one), divide));
            }
        }
    )*};
}

arithmetic_at_once! {
    arithmetic_i8 i8, |a, b| a.wrapping_div(b);
    arithmetic_i64 i64, |a, b| a.wrapping_div(b);
    arithmetic_u8 u8, |a, b| a / b;
    arithmetic_u64 u64, |a, b| a / b;
    arithmetic_f64 f64, |a, b| a / b;
    arithmetic_complex32 Complex<f32>, |a, b| a / b;
}

#[cfg(feature = "half")]
arithmetic_at_once! {
    arithmetic_bf16 half::bf16, |a, b| a / b;
}

/// Remainders, bitwise operations, comparisons and functions of integers.
macro_rules! integers {
    ($($name:ident $t:ty;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            inputs!(case, random, $t; x[A C B], y[D B] => refs);
            let [rx, ry] = &refs;
            let s = <$t>::sample(&mut random) | 1;
            let (xv, yv) = (x.view::<ndarray::Ix3>(), y.view::<ndarray::Ix2>());
            let (x, y) = (xv.at((A, C, B)), yv.at((D, B)));
            assert_same!(&x % (&y | 1), [A B C D], rx.zip(ry, |x, y| x.wrapping_rem(y | 1)));
            assert_same!(&x % s, [A B C], rx.map(|x| x.wrapping_rem(s)));
            assert_same!(s % (&x | 1), [A B C], rx.map(|x| s.wrapping_rem(x | 1)));
            assert_same!(&x & &y, [A B C D], rx.zip(ry, |x, y| x & y));
            assert_same!(&x ^ &y, [A B C D], rx.zip(ry, |x, y| x ^ y));
            assert_same!(&x | s, [A B C], rx.map(|x| x | s));
            assert_same!(!&x, [A B C], rx.map(|x| !x));
            assert_same!((&x).lt(&y), [A B C D], rx.zip(ry, |x, y| x < y));
            assert_same!((&x).le(&y), [A B C D], rx.zip(ry, |x, y| x <= y));
            assert_same!((&x).gt(&y), [A B C D], rx.zip(ry, |x, y| x > y));
            assert_same!((&x).ge(s), [A B C], rx.map(|x| x >= s));
            assert_same!(x.eq(s), [A B C], rx.map(|x| x == s));
            assert_same!(x.ne(&y), [A B C D], rx.zip(ry, |x, y| x != y));
            assert_same!((&x).maximum(&y), [A B C D], rx.zip(ry, |x, y| x.max(y)));
            assert_same!((&x).minimum(&y), [A B C D], rx.zip(ry, |x, y| x.min(y)));
            let (low, high) = (s.min(s ^ 5), s.max(s ^ 5));
            assert_same!((&x).clamp(low, high), [A B C], rx.map(|x| x.clamp(low, high)));
            assert_same!((&x).relu(), [A B C], rx.map(|x| x.max(0)));
        }
    )*};
}

integers! {
    integers_i32 i32;
}

/// Like `integers`, in fewer expressions.
macro_rules! integers_at_once {
    ($($name:ident $t:ty;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            inputs!(case, random, $t; x[A C B], y[D B] => refs);
            let [rx, ry] = &refs;
            let s = <$t>::sample(&mut random) | 1;
            let (xv, yv) = (x.view::<ndarray::Ix3>(), y.view::<ndarray::Ix2>());
            let (x, y) = (xv.at((A, C, B)), yv.at((D, B)));
            assert_same!((&x % (&y | 1)) ^ (s % (&x | 1)) ^ (&x & &y) ^ !(&x | s), [A B C D],
                rx.zip(ry, |x, y| x.wrapping_rem(y | 1) ^ s.wrapping_rem(x | 1) ^ (x & y) ^ !(x | s)));
            assert_same!((&x).lt(&y) ^ (&x).le(s) ^ (&x).gt(&y) ^ (&x).ge(s) ^ (&x).eq(s) ^ (&x).ne(&y), [A B C D],
                rx.zip(ry, |x, y| (x < y) ^ (x <= s) ^ (x > y) ^ (x >= s) ^ (x == s) ^ (x != y)));
            let (low, high) = (s.min(s ^ 5), s.max(s ^ 5));
            assert_same!((&x).maximum(&y).clamp(low, high) ^ (&x).minimum(&y).relu(), [A B C D],
                rx.zip(ry, |x, y| x.max(y).clamp(low, high) ^ x.min(y).max(0)));
        }
    )*};
}

integers_at_once! {
    integers_i8 i8; integers_i64 i64; integers_u8 u8; integers_u64 u64;
}

fn signed(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i8; x[A B] => refs);
    let [rx] = &refs;
    assert_same!(-bound!(x[A B]), [B A], rx.map(|x| x.wrapping_neg()));
    assert_same!(bound!(x[A B]).abs(), [B A], rx.map(|x| x.wrapping_abs()));
    assert_same!(bound!(x[A B]).signum(), [B A], rx.map(|x| x.signum()));
    inputs!(case, random, Complex<f64>; x[A B] => refs);
    let [rx] = &refs;
    assert_same!(-bound!(x[A B]), [B A], rx.map(|x| -x));
    assert_same!(bound!(x[A B]).abs(), [B A], rx.map(|x| x.re.hypot(x.im)));
    assert_same!(bound!(x[A B]).powi(3), [B A], rx.map(|x| x * x * x));
    assert_same!(bound!(x[A B]).eq(Complex::new(1.0, 1.0)), [B A], rx.map(|x| x == Complex::new(1.0, 1.0)));
}

fn logic(case: &Case) {
    let mut random = case.random();
    let x = case.buffer(&mut random, &["A", "B"], |r| r.below(2) == 0);
    let y = case.buffer(&mut random, &["C", "B"], |r| r.below(2) == 0);
    let (rx, ry) = (Reference::bind(&x.dynamic(), &["A", "B"]), Reference::bind(&y.dynamic(), &["C", "B"]));
    assert_same!(bound!(x[A B]) & bound!(y[C B]), [C A B], rx.zip(&ry, |x, y| x && y));
    assert_same!(bound!(x[A B]) | bound!(y[C B]), [C A B], rx.zip(&ry, |x, y| x || y));
    assert_same!(bound!(x[A B]) ^ bound!(y[C B]), [C A B], rx.zip(&ry, |x, y| x != y));
    assert_same!(!bound!(x[A B]), [B A], rx.map(|x| !x));
    assert_same!(bound!(x[A B]) ^ true, [B A], rx.map(|x| !x));
    assert_same!(bound!(x[A B]).eq(bound!(y[C B])), [C A B], rx.zip(&ry, |x, y| x == y));
    // The values have dims that the condition lacks.
    inputs!(case, random, f32; p[D A], q[E] => refs);
    let expected = reference_select(&rx, &refs[0], &refs[1]);
    assert_same!(select(bound!(x[A B]), bound!(p[D A]), bound!(q[E])), [E D B A], expected);
    assert_same!(bound!(x[A B]).select(bound!(p[D A]), 7.0), [B D A],
        reference_select(&rx, &refs[0], &Reference::scalar(7.0)));
    assert_same!(bound!(x[A B]).select(1i64, -1), [B A], rx.map(|x| if x { 1i64 } else { -1 }));
}

fn closures(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B] => rx);
    inputs!(case, random, f64; y[B C D] => ry);
    assert_same!(bound!(x[A B]).map(|x| (x, x % 3 == 0)), [B A], rx[0].map(|x| (x, x % 3 == 0)));
    let expected = rx[0].zip(&ry[0], |x, y| (x, y.to_bits()));
    assert_same!(bound!(x[A B]).zip_map(bound!(y[B C D]), |x, y: f64| (x, y.to_bits())), [D B A C], expected);
    assert_same!(bound!(x[A B]).zip_map(2.5f64, |x, y| f64::from(x) * y), [B A], rx[0].map(|x| f64::from(x) * 2.5));
}

/// Casts between 12 types of numbers equal `as`. Tensors of each type are cast to one other type,
/// and to booleans and back.
macro_rules! casts {
    ($($from:ident as $to:ident,)*) => { $(casts!(@from $from as $to: i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);)* };
    (@from $from:ident as $other:ident: $($to:ident)*) => {
        #[allow(clippy::unnecessary_cast)]
        pub fn $from(case: &Case) {
            let mut random = case.random();
            // Includes floats far outside of the integers' range: `as` saturates, and turns NaN
            // into 0.
            let x = case.buffer(&mut random, &["A", "B"], |r| match r.below(4) {
                0 => f64::from_bits(r.next()) as $from,
                1 => (r.small() as f64 * 0.75) as $from,
                _ => $from::sample(r),
            });
            let rx = Reference::bind(&x.dynamic(), &["A", "B"]);
            for &x in &x.dynamic() {
                $(assert_eq!(text(CastTo::<$to>::cast_to(x)), text(x as $to), "{x:?}");)*
                assert_eq!(CastTo::<bool>::cast_to(x), x != 0 as $from, "{x:?}");
                let z = CastTo::<Complex<f64>>::cast_to(x);
                assert_eq!((text(z.re), z.im), (text(x as f64), 0.0), "{x:?}");
                let z = CastTo::<Complex<f32>>::cast_to(x);
                assert_eq!(text(CastTo::<$from>::cast_to(z)), text(x as f32 as $from), "{x:?}");
            }
            assert_same!(bound!(x[A B]).cast::<$other>().map(text), [B A], rx.map(|x| text(x as $other)));
            assert_same!(bound!(x[A B]).cast::<bool>().cast::<$from>(), [B A],
                rx.map(|x| if x != 0 as $from { 1 as $from } else { 0 as $from }));
        }
    };
}

/// A number as text, so that NaN equals itself. Elements of tensors must be `Copy`, so the text is
/// an array of bytes.
fn text<T: std::fmt::Debug>(x: T) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(format!("{x:?}").bytes()) {
        *to = from;
    }
    bytes
}

mod from {
    use super::*;
    casts! {
        i8 as f64, f64 as u32, u32 as i8, f32 as i16, i16 as u64, u64 as f32, u8 as i32, i32 as u8, i64 as usize, usize as i64,
        isize as u16, u16 as isize,
    }
}

/// `2/sqrt(pi)` times the integral of `exp(-t^2)` from `a` to `b`, by Simpson's rule with `n`
/// steps.
fn gauss(a: f64, b: f64, n: usize) -> f64 {
    let h = (b - a) / n as f64;
    let f = |i: usize| (-(a + i as f64 * h).powi(2)).exp();
    let inner: f64 = (1..n).map(|i| f(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    std::f64::consts::FRAC_2_SQRT_PI * h / 3.0 * (f(0) + inner + f(n))
}

fn erf(x: f64) -> f64 {
    gauss(0.0, x, 4000)
}

/// Uses the complement of the error function where `1 + erf` would cancel. The integral beyond
/// `8 - z` is negligible.
fn gelu(x: f64) -> f64 {
    let z = x / 2f64.sqrt();
    x / 2.0 * if x < 0.0 { gauss(-z, 8.0 - z, 16_000) } else { 1.0 + erf(z) }
}

/// Functions of floats, compared with formulas in `f64`. In `f32`, the allowed error is a few units
/// in the last place of the result, plus `slack` units in the last place of 1 where the function
/// cancels.
macro_rules! functions {
    ($($method:ident in $low:literal .. $high:literal, slack $slack:literal: |$x:ident| $expected:expr;)*) => {
        #[test]
        fn functions_of_floats() {
            $(
                let points: Vec<f64> = (0..=200).map(|n| $low + ($high - $low) * f64::from(n) / 200.0).collect();
                dims!(i, j);
                let x32: Array1<f32> = points.iter().map(|&x| x as f32).collect();
                let found = x32.at(i).$method().order(i);
                for (&x, &found) in x32.iter().zip(&found) {
                    let $x = f64::from(x);
                    let expected: f64 = $expected;
                    let eps = f64::from(f32::EPSILON);
                    let bound = 4.0 * eps * expected.abs() + $slack * eps;
                    assert!((f64::from(found) - expected).abs() <= bound,
                        "{}({x:?}) is {found:?} instead of {expected:?}", stringify!($method));
                }
                let x64: Array1<f64> = points.into();
                let found = x64.at(j).$method().order(j);
                for (&$x, &found) in x64.iter().zip(&found) {
                    let expected: f64 = $expected;
                    // The oracle itself rounds several times.
                    let bound = (16.0 * expected.abs() + 16.0 + $slack) * f64::EPSILON;
                    assert!((found - expected).abs() <= bound,
                        "{}({:?}) is {found:?} instead of {expected:?}", stringify!($method), $x);
                }
            )*
        }
    };
}

functions! {
    abs in -3.0 .. 3.0, slack 0.0: |x| x.abs();
    exp in -20.0 .. 20.0, slack 0.0: |x| x.exp();
    exp_m1 in -0.01 .. 0.01, slack 0.0: |x| x.exp_m1();
    exp2 in -20.0 .. 20.0, slack 0.0: |x| x.exp2();
    ln in 0.001 .. 30.0, slack 1.0: |x| x.ln();
    ln_1p in -0.01 .. 0.01, slack 0.0: |x| x.ln_1p();
    log2 in 0.001 .. 30.0, slack 1.0: |x| x.log2();
    log10 in 0.001 .. 30.0, slack 1.0: |x| x.log10();
    sqrt in 0.0 .. 30.0, slack 0.0: |x| x.sqrt();
    cbrt in -30.0 .. 30.0, slack 0.0: |x| x.cbrt();
    rsqrt in 0.01 .. 30.0, slack 0.0: |x| 1.0 / x.sqrt();
    recip in 0.01 .. 30.0, slack 0.0: |x| 1.0 / x;
    square in -30.0 .. 30.0, slack 0.0: |x| x * x;
    sin in -10.0 .. 10.0, slack 1.0: |x| x.sin();
    cos in -10.0 .. 10.0, slack 1.0: |x| x.cos();
    tan in -1.5 .. 1.5, slack 1.0: |x| x.tan();
    asin in -1.0 .. 1.0, slack 1.0: |x| x.asin();
    acos in -1.0 .. 1.0, slack 1.0: |x| x.acos();
    atan in -10.0 .. 10.0, slack 0.0: |x| x.atan();
    sinh in -5.0 .. 5.0, slack 0.0: |x| x.sinh();
    cosh in -5.0 .. 5.0, slack 0.0: |x| x.cosh();
    tanh in -5.0 .. 5.0, slack 0.0: |x| x.tanh();
    asinh in -5.0 .. 5.0, slack 1.0: |x| x.asinh();
    acosh in 1.0 .. 9.0, slack 4.0: |x| x.acosh();
    atanh in -0.9 .. 0.9, slack 1.0: |x| x.atanh();
    erf in -7.0 .. 7.0, slack 0.0: |x| erf(x);
    sigmoid in -20.0 .. 20.0, slack 0.0: |x| 1.0 / (1.0 + (-x).exp());
    relu in -3.0 .. 3.0, slack 0.0: |x| if x > 0.0 { x } else { 0.0 };
    gelu in -6.0 .. 6.0, slack 4.0: |x| gelu(x);
    silu in -20.0 .. 20.0, slack 0.0: |x| x / (1.0 + (-x).exp());
    softplus in -20.0 .. 20.0, slack 0.0: |x| (1.0 + x.exp()).ln();
    floor in -3.0 .. 3.0, slack 0.0: |x| x.floor();
    ceil in -3.0 .. 3.0, slack 0.0: |x| x.ceil();
    round in -3.0 .. 3.0, slack 0.0: |x| x.round();
    trunc in -3.0 .. 3.0, slack 0.0: |x| x.trunc();
    fract in -3.0 .. 3.0, slack 0.0: |x| x.fract();
    signum in -3.0 .. 3.0, slack 0.0: |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { 0.0 };
}

#[test]
fn the_error_function_is_the_tabulated_one() {
    let table = [
        (0.1, 0.112_462_916_018_284_9),
        (0.5, 0.520_499_877_813_046_5),
        (1.0, 0.842_700_792_949_714_9),
        (2.0, 0.995_322_265_018_952_7),
        (3.0, 0.999_977_909_503_001_4),
        (-1.5, -0.966_105_146_475_310_8),
    ];
    dims!(i);
    let found: Array1<f64> = table.map(|(x, _)| x).at(i).erf().order(i);
    for (&(x, expected), &found) in table.iter().zip(&found) {
        let bound: f64 = 2.0 * f64::EPSILON;
        assert!((found - expected).abs() <= bound, "erf({x}) is {found} instead of {expected}");
    }
}

/// Intermediate results do not overflow, and numeric results of NaN are NaN.
#[test]
fn special_values() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let x = [nan, -inf, inf, -1000.0, 1000.0, -0.0];
    let same = |found: Array1<f64>, expected: [f64; 6]| {
        for (at, (&found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                found == expected || found.is_nan() && expected.is_nan(),
                "at {at}: {found} instead of {expected}"
            );
        }
    };
    dims!(i);
    same(x.at(i).sigmoid().order(i), [nan, 0.0, 1.0, 0.0, 1.0, 0.5]);
    same(x.at(i).softplus().order(i), [nan, 0.0, inf, 0.0, 1000.0, 2f64.ln()]);
    same(x.at(i).erf().order(i), [nan, -1.0, 1.0, -1.0, 1.0, 0.0]);
    same(x.at(i).relu().order(i), [nan, 0.0, inf, 0.0, 1000.0, 0.0]);
    same(x.at(i).signum().order(i), [nan, -1.0, 1.0, -1.0, 1.0, 0.0]);
    same(x.at(i).clamp(-1.0, 1.0).order(i), [nan, -1.0, 1.0, -1.0, 1.0, 0.0]);
    same(x.at(i).maximum(1.0).order(i), [nan, 1.0, inf, 1.0, 1000.0, 1.0]);
    same(x.at(i).minimum(nan).order(i), [nan; 6]);
    let ones = [1.0; 6];
    same(ones.at(i).maximum(x.at(i)).order(i), [nan, 1.0, inf, 1.0, 1000.0, 1.0]);
    same(ones.at(i).minimum(x.at(i)).order(i), [nan, -inf, 1.0, -1000.0, 1.0, -0.0]);
    assert_eq!(x.at(i).is_nan().order(i), Array1::from(vec![true, false, false, false, false, false]));
    assert_eq!(x.at(i).is_finite().order(i), Array1::from(vec![false, false, false, true, true, true]));
    assert_eq!(x.at(i).eq(x.at(i)).order(i), Array1::from(vec![false, true, true, true, true, true]));
    assert!(!x.at(i).lt(nan).any(i).order(()));
    // The least integer has no positive counterpart: its negation wraps around.
    assert_eq!([i8::MIN].at(A).abs().order(A)[0], i8::MIN);
    assert_eq!((-[i8::MIN].at(A)).order(A)[0], i8::MIN);
    assert_eq!(([i8::MIN].at(A) / -1).order(A)[0], i8::MIN);
    let minus_one = -1;
    assert_eq!(([i8::MIN].at(A) % minus_one).order(A)[0], 0);
}

fn binary_functions(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, f64; x[A B], y[B C] => refs);
    let [rx, ry] = &refs;
    let close = |a: ndarray::ArrayD<f64>, b: ndarray::ArrayD<f64>| {
        assert_eq!(a.shape(), b.shape());
        for (a, b) in a.iter().zip(&b) {
            let same = (a - b).abs() < 4.0 * f64::EPSILON * b.abs() || a == b || a.is_nan() && b.is_nan();
            assert!(same, "{a} instead of {b}");
        }
    };
    let order: [&[&str]; 3] = [&["C"], &["A"], &["B"]];
    close(ordered!(bound!(x[A B]).powf(bound!(y[B C])), [C A B]), rx.zip(ry, |x, y| x.powf(y)).order(&order));
    close(
        ordered!(bound!(x[A B]).atan2(bound!(y[B C])), [C A B]),
        rx.zip(ry, |x, y| x.atan2(y)).order(&order),
    );
    close(
        ordered!(bound!(x[A B]).hypot(bound!(y[B C])), [C A B]),
        rx.zip(ry, |x, y| x.hypot(y)).order(&order),
    );
    assert_same!(bound!(x[A B]) % 2.0, [A B], rx.map(|x| x % 2.0));
    for n in [-3, 0, 1, 2, 3, 5] {
        close(ordered!(bound!(x[A B]).powi(n), [A B]), rx.map(|x| x.powi(n)).order(&order[1..]));
    }
    assert_same!(bound!(x[A B]).lt(bound!(y[B C])), [C A B], rx.zip(ry, |x, y| x < y));
    assert_same!(bound!(x[A B]).ge(1.0), [A B], rx.map(|x| x >= 1.0));
    assert_same!(bound!(x[A B]).ne(1.0), [A B], rx.map(|x| x != 1.0));
    assert_same!(bound!(x[A B]).maximum(bound!(y[B C])), [C A B], rx.zip(ry, |x, y| x.max(y)));
    assert_same!(bound!(x[A B]).minimum(0.5), [A B], rx.map(|x| x.min(0.5)));
    assert_same!(bound!(x[A B]).clamp(-1.5, 1.0), [A B], rx.map(|x| x.clamp(-1.5, 1.0)));
}

/// Complex functions equal those of `num-complex` for each element.
#[test]
fn functions_of_complex_numbers() {
    let x: Vec<Complex<f64>> =
        (0..12).map(|n| Complex::new(f64::from(n % 4) - 1.5, f64::from(n / 4) - 0.7)).collect();
    dims!(i);
    macro_rules! same {
        ($($method:ident)*) => {$(
            let expected: Array1<Complex<f64>> = x.iter().map(|x| x.$method()).collect();
            assert_eq!(x.at(i).$method().order(i), expected, stringify!($method));
        )*};
    }
    same!(exp ln sqrt sin cos tan sinh cosh tanh);
    let expected: Array1<Complex<f64>> = x.iter().map(|x| Complex::new(1.0, 0.0) / x).collect();
    assert_eq!(x.at(i).recip().order(i), expected);
}

fn six_dims(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C D E F], y[F D B], z[] => refs);
    let [rx, ry, rz] = &refs;
    let expected = rx.zip(ry, |x, y| x.minus(y)).zip(rz, |x, z| x.times(z));
    assert_same!((bound!(x[A B C D E F]) - bound!(y[F D B])) * bound!(z[]), [E A F C B D], expected);
    assert_same!(bound!(z[]) + 1, [], rz.map(|z| z.plus(1)));
}

properties! {
    i8_operators 30: |case in cases(3), which| if which % 2 == 0 { arithmetic_i8(&case) } else { integers_i8(&case) };
    i32_operators 30: |case in cases(3), which| if which % 2 == 0 { arithmetic_i32(&case) } else { integers_i32(&case) };
    i64_operators 20: |case in cases(3), which| if which % 2 == 0 { arithmetic_i64(&case) } else { integers_i64(&case) };
    u8_operators 20: |case in cases(3), which| if which % 2 == 0 { arithmetic_u8(&case) } else { integers_u8(&case) };
    u64_operators 20: |case in cases(3), which| if which % 2 == 0 { arithmetic_u64(&case) } else { integers_u64(&case) };
    f32_operators 30: |case in cases(3), _which| arithmetic_f32(&case);
    f64_operators 20: |case in cases(3), _which| arithmetic_f64(&case);
    complex32_operators 20: |case in cases(3), _which| arithmetic_complex32(&case);
    complex64_operators 20: |case in cases(3), _which| arithmetic_complex64(&case);
    signed_numbers 30: |case in cases(4), _which| signed(&case);
    booleans_and_select 40: |case in cases(3), _which| logic(&case);
    map_and_zip_map 30: |case in cases(4), _which| closures(&case);
    functions_of_two 30: |case in cases(4), _which| binary_functions(&case);
    up_to_six_dims 40: |case in cases(3), _which| six_dims(&case);
    casts 60: |case in cases(4), which| [
        from::i8, from::i16, from::i32, from::i64, from::isize, from::u8, from::u16, from::u32, from::u64,
        from::usize, from::f32, from::f64,
    ][which % 12](&case);
}

#[cfg(feature = "half")]
properties! {
    f16_operators 20: |case in cases(3), _which| arithmetic_f16(&case);
    bf16_operators 20: |case in cases(3), _which| arithmetic_bf16(&case);
}
