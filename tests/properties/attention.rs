//! `attention` equals the same operations written out.

use crate::reference::Reference;
use crate::reference::input::{Case, Random, cases};
use crate::{A, B, C, D, E, F, bound, ordered, properties};
use ndarray::{Array1, Array2, Array3, ArrayD};
use typed_dims::prelude::*;

fn fraction(random: &mut Random) -> f64 {
    (random.below(4001) as f64 - 2000.0) / 500.0
}

/// Asserts that all elements agree up to `bound`. NaN equals NaN.
#[track_caller]
fn assert_near(found: &ArrayD<f64>, expected: &ArrayD<f64>, bound: f64) {
    assert_eq!(found.shape(), expected.shape());
    for (&found, &expected) in found.iter().zip(expected) {
        let same = found.is_nan() && expected.is_nan() || (found - expected).abs() <= bound;
        assert!(same, "{found:?} instead of {expected:?}");
    }
}

/// The softmax of scores, or 0 if all of them are minus infinity.
macro_rules! weights {
    ($scores:ident, $over:expr) => {{
        let any = (&$scores).ne(f64::NEG_INFINITY).count($over).gt(0).eval();
        select(any, $scores.softmax($over), 0.0)
    }};
}

/// Small tensors of any layout, with dims of every role: `A` for batches, `B` for queries, `C` for
/// keys, `D` for features, `E` and `F` for columns of the values. Some cases give the dims
/// other roles.
fn small(case: &Case, which: usize) {
    let mut random = case.random();
    macro_rules! check {
        ($q:ident[$($qd:ident)*] $k:ident[$($kd:ident)*] $v:ident[$($vd:ident)*], $features:expr, $over:expr,
            $mask:ident[$($md:ident)*] => [$($out:ident)*]) => {{
            let $q = case.buffer(&mut random, &[$(stringify!($qd)),*], fraction);
            let $k = case.buffer(&mut random, &[$(stringify!($kd)),*], fraction);
            let $v = case.buffer(&mut random, &[$(stringify!($vd)),*], fraction);
            let $mask = case.buffer(&mut random, &[$(stringify!($md)),*], |r| r.below(4) > 0);
            let scores = (bound!($q[$($qd)*]) * bound!($k[$($kd)*])).sum($features) * 0.7;
            let scores = select(bound!($mask[$($md)*]), scores, f64::NEG_INFINITY).eval();
            let expected = (weights!(scores, $over) * bound!($v[$($vd)*])).sum($over);
            let found = attention(bound!($q[$($qd)*]), bound!($k[$($kd)*]), bound!($v[$($vd)*]), $features, $over, 0.7,
                bound!($mask[$($md)*]));
            assert_near(&ordered!(found, [$($out)*]), &ordered!(expected, [$($out)*]), 1e-12);
        }};
    }
    match which % 7 {
        0 => check!(q[A B D] k[A C D] v[A C E], D, C, m[B C] => [A B E]),
        // The values have the features of the keys.
        1 => check!(q[B A D] k[C A D] v[C A D], D, C, m[A B C] => [A B D]),
        // No common dims except the required ones; a mask over the keys alone.
        2 => check!(q[B D] k[D C] v[C], D, C, m[C] => [B]),
        // Several query dims; the mask has one of them.
        3 => check!(q[A B E D] k[C D] v[F C], D, C, m[A C] => [F A B E]),
        // Values that vary with the queries.
        4 => check!(q[A B D] k[C D] v[B C E], D, C, m[B C] => [A B E]),
        5 => check!(q[B D F] k[A D C F] v[A C E], (F, D), C, m[A B C] => [E B A]),
        // A mask that does not vary with the keys or the columns.
        _ => check!(q[B D] k[C D] v[C E], D, C, m[B] => [B E]),
    }
}

/// A bias alone, with a mask, and as an expression with a mask, over keys of two dims. Some
/// operands lack dims of the others.
fn biased(case: &Case, which: usize) {
    let mut random = case.random();
    let q = case.buffer(&mut random, &["A", "B", "D"], fraction);
    let k = case.buffer(&mut random, &["C", "D", "E"], fraction);
    let v = case.buffer(&mut random, &["C", "E", "F"], fraction);
    let bias = case.buffer(&mut random, &["E", "A", "C"], |r| {
        if r.below(4) > 0 { fraction(r) } else { f64::NEG_INFINITY }
    });
    let mask = case.buffer(&mut random, &["B", "C"], |r| r.below(4) > 0);
    macro_rules! check {
        ($how:expr, $bias:expr, $mask:expr) => {{
            let scores = (bound!(q[A B D]) * bound!(k[C D E])).sum(D) * 0.7;
            let scores = select($mask, &scores + $bias, f64::NEG_INFINITY).eval();
            let expected = (weights!(scores, (C, E)) * bound!(v[C E F])).sum((C, E));
            let found = attention(bound!(q[A B D]), bound!(k[C D E]), bound!(v[C E F]), D, (C, E), 0.7, $how);
            assert_near(&ordered!(found, [A F B]), &ordered!(expected, [A F B]), 1e-11);
        }};
    }
    match which % 3 {
        0 => check!(bound!(bias[E A C]), bound!(bias[E A C]), bound!(mask[B C]) | true),
        1 => check!((bound!(mask[B C]), bound!(bias[E A C])), bound!(bias[E A C]), bound!(mask[B C])),
        _ => check!(
            (bound!(mask[B C]), bound!(bias[E A C]) * 0.5 + 1.0),
            bound!(bias[E A C]) * 0.5 + 1.0,
            bound!(mask[B C])
        ),
    }
}

fn several_keys(case: &Case) {
    let mut random = case.random();
    let q = case.buffer(&mut random, &["B", "D"], fraction);
    let k = case.buffer(&mut random, &["A", "D", "C"], fraction);
    let v = case.buffer(&mut random, &["C", "A", "E"], fraction);
    let (rq, rk, rv) = (
        Reference::bind(&q.dynamic(), &["B", "D"]),
        Reference::bind(&k.dynamic(), &["A", "D", "C"]),
        Reference::bind(&v.dynamic(), &["C", "A", "E"]),
    );
    let scores = rq.zip(&rk, |x, y| x * y).reduce(&["D"], |line| line.iter().sum::<f64>() * 0.5);
    let exps = scores.map(f64::exp);
    let sums = exps.reduce(&["A", "C"], |line| line.iter().sum::<f64>());
    let expected = exps.zip(&rv, |w, x| w * x).reduce(&["A", "C"], |line| line.iter().sum::<f64>());
    let expected = expected.zip(&sums, |total, sum| if sum == 0.0 { 0.0 } else { total / sum });
    let found = attention(bound!(q[B D]), bound!(k[A D C]), bound!(v[C A E]), D, (C, A), 0.5, true);
    assert_near(&ordered!(found, [B E]), &expected.order(&[&["B"], &["E"]]), 1e-11);
}

/// Larger sizes, some of them near multiples of a tile. The masks are expressions of dims.
fn across_tiles(case: &Case, which: usize) {
    let mut random = case.random();
    let near = |edge: usize, random: &mut Random| edge - 1 + random.below(3);
    let (queries, keys) = [(192, 512), (1, 1025), (257, 31), (193, 700)][which % 4];
    let (queries, keys) = (near(queries.max(2), &mut random), near(keys, &mut random));
    let (features, columns) = (1 + random.below(20), 1 + random.below(20));
    let mut matrix =
        |rows, columns| Array2::from_shape_simple_fn((rows, columns), || fraction(&mut random) as f32);
    let (mut q, k, v) = (matrix(queries, features), matrix(keys, features), matrix(keys, columns));
    // NaN and infinity have the same effect on their rows as in the reference.
    q[[queries / 2, 0]] = f32::NAN;
    q[[queries / 3, 0]] = f32::INFINITY;
    dims!(i, j, d, e);
    let wide = |x: &Array2<f32>| x.mapv(f64::from);
    let (wq, wk, wv) = (wide(&q), wide(&k), wide(&v));
    macro_rules! check {
        ($mask:expr) => {{
            let found = attention(q.at((i, d)), k.at((j, d)), v.at((j, e)), d, j, 0.25, $mask).order((i, e));
            let scores = (wq.at((i, d)) * wk.at((j, d))).sum(d) * 0.25;
            let scores = select($mask, scores, f64::NEG_INFINITY).eval();
            let expected = (weights!(scores, j) * wv.at((j, e))).sum(j).order((i, e));
            // Values are at most 4. The error of a score is at most 20 roundings of numbers up to
            // 80.
            assert_near(&found.mapv(f64::from).into_dyn(), &expected.into_dyn(), 2e-4);
        }};
    }
    let edge = random.below(keys) as isize;
    check!(i.ge(j));
    check!(i.le(j));
    check!(j.lt(edge));
    check!((i - j).abs().le(3));
    check!(i.ge(j) & j.ge(edge));
    check!(j.ne(edge));
    macro_rules! biased {
        ($mask:expr, $bias:expr, $how:expr) => {{
            let found = attention(q.at((i, d)), k.at((j, d)), v.at((j, e)), d, j, 0.25, $how).order((i, e));
            let scores = (wq.at((i, d)) * wk.at((j, d))).sum(d) * 0.25 + $bias.cast::<f64>();
            let scores = select($mask, scores, f64::NEG_INFINITY).eval();
            let expected = (weights!(scores, j) * wv.at((j, e))).sum(j).order((i, e));
            assert_near(&found.mapv(f64::from).into_dyn(), &expected.into_dyn(), 2e-4);
        }};
    }
    let distance = (j - i).abs().cast::<f32>() * -0.5;
    biased!(i.ge(0), distance, &distance);
    biased!(i.ge(j), distance, (i.ge(j), &distance));
    // A bias of minus infinity acts as a mask, and whole tiles of it are skipped.
    let causal = select(i.ge(j), distance, f32::NEG_INFINITY);
    biased!(i.ge(0), causal, &causal);
    // Masked positions are not looked up: the table has no entries for them.
    let table = Array1::from_shape_fn(queries.max(keys), |at| (at as f32).sin());
    let entry = table.at(i - j);
    biased!(i.ge(j), select(i.ge(j), table.at(i - j), 0.0), (i.ge(j), entry));
}

#[test]
fn a_bias_that_cannot_be_had_is_an_error() {
    let (x, table) = (Array2::<f32>::ones((3, 4)), Array1::<f32>::ones(2));
    dims!(i = 3, j = 3, d, e);
    let bias = table.at(i - j);
    let refused = typed_dims::operators::attention::try_attention(
        x.at((i, d)),
        x.at((j, d)),
        x.at((j, e)),
        d,
        j,
        1.0,
        (i.ge(j), bias),
    );
    let Err(DimError::OutOfBounds { index: 2, size: 2, .. }) = refused else { panic!("index 2 is allowed") };
}

#[cfg(feature = "half")]
#[test]
fn a_bias_of_half_precision_is_added_in_single() {
    macro_rules! check {
        ($half:ty, $bound:expr) => {{
            let mut random = Random(11);
            let mut matrix = |rows, columns| {
                Array2::from_shape_simple_fn((rows, columns), || <$half>::from_f64(fraction(&mut random)))
            };
            let (q, k, v, bias) = (matrix(30, 8), matrix(40, 8), matrix(40, 5), matrix(30, 40));
            dims!(i, j, d, e);
            let scale = <$half>::from_f64(0.25);
            let how = (i.ge(j - 12), bias.at((i, j)));
            let found = attention(q.at((i, d)), k.at((j, d)), v.at((j, e)), d, j, scale, how);
            let wide = |x: &Array2<$half>| x.mapv(f64::from);
            let (q, k, v, bias) = (wide(&q), wide(&k), wide(&v), wide(&bias));
            let scores = (q.at((i, d)) * k.at((j, d))).sum(d) * 0.25 + bias.at((i, j));
            let weights = select(i.ge(j - 12), scores, f64::NEG_INFINITY).softmax(j);
            let expected = (weights * v.at((j, e))).sum(j);
            let difference = (found.cast::<f64>() - expected).abs().max((i, e)).order(());
            assert!(difference < $bound, "{difference}");
        }};
    }
    // Results are at most 4, and rounded once.
    check!(half::f16, 4.0 / 1024.0);
    check!(half::bf16, 4.0 / 128.0);
}

#[test]
fn a_bias_shows_in_the_plan() {
    let x = Array2::<f32>::ones((3, 4));
    dims!(i, j, d, e);
    let (_, plan) = explain(|| {
        attention(x.at((i, d)), x.at((j, d)), x.at((j, e)), d, j, 1.0, (i.ge(j), (j - i).cast::<f32>()))
    });
    assert!(plan.to_string().contains("mask ge(i, j), bias cast"), "{plan}");
}

#[test]
fn threads_do_not_change_attention() {
    let mut random = Random(7);
    let x = Array3::from_shape_simple_fn((3, 300, 64), || fraction(&mut random) as f32);
    dims!(b, i, j, d, e);
    let run = || {
        attention(x.at((b, i, d)), x.at((b, j, d)), x.at((b, j, e)), d, j, 0.125, i.ge(j)).order((b, i, e))
    };
    let on = |threads| {
        let pool =
            rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("the pool can be built");
        // Local dims cannot leave their thread, so the function in the pool declares its own.
        pool.install(|| {
            dims!(b, i, j, d, e);
            attention(x.at((b, i, d)), x.at((b, j, d)), x.at((b, j, e)), d, j, 0.125, i.ge(j))
                .order((b, i, e))
        })
    };
    assert_eq!(on(1), run());
    assert_eq!(on(3), run());
}

properties! {
    attention_in_any_dims 40: |case in cases(5), which| small(&case, which);
    attention_with_a_bias 30: |case in cases(6), which| biased(&case, which);
    attention_over_several_dims 15: |case in cases(4), _which| several_keys(&case);
    attention_across_tiles 1: |case in cases(3), which| across_tiles(&case, which);
}
