//! Initialization of parameters, and other functions that draw from a seed.

use typed_dims::creation::random::{bernoulli, permutation, rand_like, split, try_bernoulli};
use typed_dims::init::{
    he_normal, he_uniform, lecun_normal, lecun_uniform, orthogonal, truncated_normal, try_orthogonal,
    xavier_normal, xavier_uniform,
};
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct In;
    struct Out;
    struct Kh = 3;
    struct Kw = 2;
    struct Other;
}

type Kernel = Tensor<f64, (In, Out, Kh, Kw)>;

/// The mean, the root mean square, and the largest magnitude.
fn statistics(x: &Kernel) -> (f64, f64, f64) {
    let all = (In, Out, Kh, Kw);
    (x.mean(all).order(()), x.square().mean(all).order(()).sqrt(), x.abs().max(all).order(()))
}

/// Checks that the 36,000 numbers have a mean of about 0 and a standard deviation of about
/// `deviation`, and that their largest magnitude, divided by `deviation`, is in the range `most`.
fn check(name: &str, x: &Kernel, deviation: f64, most: std::ops::Range<f64>) {
    let (mean, found, largest) = statistics(x);
    assert!(mean.abs() < 4.0 * deviation / 36_000_f64.sqrt(), "{name}: mean {mean}");
    assert!((found / deviation - 1.0).abs() < 0.02, "{name}: deviation {found} instead of {deviation}");
    assert!(
        most.contains(&(largest / deviation)),
        "{name}: largest magnitude {largest}, deviation {deviation}"
    );
}

#[test]
fn variances_follow_from_the_dims_that_are_named() {
    let dims = (Out.of(60), In.of(100), Kh, Kw);
    let (fan_in, fan_out): (f64, f64) = (600.0, 360.0);
    let (normal, even) = (3.5..6.0, 1.73..1.7321);
    for seed in 0..3 {
        let (inputs, outputs) = ((In, Kh, Kw), (Out, Kh, Kw));
        let deviation = (2.0 / fan_in).sqrt();
        check("he_normal", &he_normal(dims, inputs, seed), deviation, normal.clone());
        check("he_uniform", &he_uniform(dims, inputs, seed), deviation, even.clone());
        let deviation = (1.0 / fan_in).sqrt();
        check("lecun_normal", &lecun_normal(dims, inputs, seed), deviation, normal.clone());
        check("lecun_uniform", &lecun_uniform(dims, inputs, seed), deviation, even.clone());
        let deviation = (2.0 / (fan_in + fan_out)).sqrt();
        check("xavier_normal", &xavier_normal(dims, inputs, outputs, seed), deviation, normal.clone());
        check("xavier_uniform", &xavier_uniform(dims, inputs, outputs, seed), deviation, even.clone());
        // Truncation at 2 standard deviations multiplies the standard deviation by 0.879626.
        check("truncated_normal", &truncated_normal(dims, 0.5, seed), 0.5 * 0.879_626, 2.2..2.2738);
    }
    // A single dim needs no tuple.
    check("he_normal", &he_normal(dims, In, 1), (2.0_f64 / 100.0).sqrt(), normal);
}

#[test]
fn seeds_decide_and_are_split() {
    let dims = (In.of(4), Out.of(5));
    let draw = |seed| he_normal::<f32, _, _, _>(dims, In, seed).order((In, Out));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(split(1, 0)), draw(split(1, 1)));
    let mut seeds: Vec<u64> = (0..100).flat_map(|seed| (0..100).map(move |at| split(seed, at))).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 10_000);
    // Truncated numbers differ from those of `randn`.
    let (a, b) =
        (truncated_normal::<f64, _>(In.of(4), 1.0, 1).order(In), randn::<f64, _>(In.of(4), 1).order(In));
    assert!(a.iter().zip(&b).all(|(a, b)| a != b));
}

#[test]
fn rows_or_columns_are_orthonormal() {
    let is_identity = |products: Array2<f64>| {
        products.indexed_iter().all(|((i, j), a)| (a - f64::from(u8::from(i == j))).abs() < 1e-12)
    };
    for (inputs, outputs) in [(7, 4), (4, 7), (5, 5), (1, 3)] {
        let w = orthogonal::<f64, _, _, _>((Out.of(outputs), In.of(inputs)), In, 3);
        let columns = (&w * w.view().rename(Out, Other)).sum(In).order((Out, Other));
        let rows = (&w * w.view().rename(In, Other)).sum(Out).order((In, Other));
        assert_eq!((is_identity(columns), is_identity(rows)), (inputs >= outputs, outputs >= inputs));
    }
    // Several dims form one side.
    let w = orthogonal::<f64, _, _, _>((In.of(5), Kh, Out.of(4), Kw), (In, Kw), 3);
    let columns = (w.view().rename(In, Other) * &w).sum((Kh, Out, Kw));
    assert_eq!(columns.order((In, Other)).dim(), (5, 5));
    let squares = w.square().sum((In, Kh, Out, Kw)).order(());
    assert!((squares - 10.0).abs() < 1e-12, "{squares} instead of 10");
    assert!(try_orthogonal::<f32, _, _, _>((In.of(0), Out.of(4)), In, 3).is_ok());
}

#[test]
fn bernoulli_draws_with_the_probability_of_each_position() {
    let p = from_fn((In.of(20_000), Kh), |(_, k)| 0.25 * k as f32);
    let share = bernoulli(&p, 5).cast::<f64>().mean(In).order(Kh);
    for (share, expected) in share.into_iter().zip([0.0, 0.25, 0.5]) {
        assert!((share - expected).abs() <= 0.015 * expected * 4.0, "{share} instead of {expected}");
    }
    assert_eq!(bernoulli(&p, 5), bernoulli(&p, 5));
    assert_ne!(bernoulli(&p, 5), bernoulli(&p, 6));
    for p in [1.5, -0.1, f64::NAN] {
        let error = try_bernoulli(&full(In.of(2), p), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`bernoulli` with the probability {p}: it must be between 0 and 1")
        );
    }
}

#[test]
fn each_example_of_a_batch_draws_its_own() {
    fn masked<B: Dims>(x: &Tensor<f32, (In, Rest<B>)>, seed: u64) -> Tensor<bool, (In, Rest<B>)> {
        bernoulli(x.view(), seed)
    }
    let x = full((Batch.of(4), In.of(64)), 0.5_f32);
    let y = masked(&x.seal(In), 7).unseal().order((Batch, In));
    for (a, b) in [(0, 1), (1, 2), (2, 3)] {
        assert_ne!(y.row(a), y.row(b));
    }
}

#[test]
fn permutations_have_each_index_once() {
    for n in [0, 1, 2, 3, 100] {
        let mut order = permutation(In.of(n), 7).order(In).to_vec();
        let is_sorted = order.is_sorted();
        assert!(n < 100 || !is_sorted);
        order.sort_unstable();
        assert_eq!(order, (0..n).collect::<Vec<_>>());
    }
}

#[test]
fn each_example_of_a_batch_has_its_own_permutation() {
    fn shuffled<B: Dims>(x: &Tensor<f64, (In, Rest<B>)>, seed: u64) -> Tensor<f64, (In, Rest<B>)> {
        x.take(In, rand_like(x, seed).argsort(In)).eval()
    }
    let x = from_fn((Batch.of(50), In.of(40)), |(_, at)| at as f64);
    let y: Tensor<f64, (Batch, In)> = shuffled(&x.seal(In), 3).unseal();
    let rows = y.order((Batch, In));
    for (at, row) in rows.rows().into_iter().enumerate() {
        let mut sorted = row.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        assert_eq!(sorted, (0..40).map(f64::from).collect::<Vec<_>>());
        assert!(rows.rows().into_iter().take(at).all(|other| other != row), "{at}");
    }
}

#[test]
fn all_permutations_come_equally_often() {
    let mut counts = std::collections::BTreeMap::<Vec<usize>, usize>::new();
    for seed in 0..6000 {
        *counts.entry(permutation(Kh, seed).order(Kh).to_vec()).or_default() += 1;
    }
    assert_eq!(counts.len(), 6);
    // The standard deviation of each count is about 29.
    assert!(counts.values().all(|count| (880..1120).contains(count)), "{counts:?}");
}
