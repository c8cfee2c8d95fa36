//! Derivatives at special points: zeros, ties, infinities and NaN.

use crate::gradients::{self, check};
use ndarray::array;
use typed_dims::grad::{grad, hessian, hvp, vjp};
use typed_dims::prelude::*;

dims! { struct I; struct J; struct I2; struct Query; struct Key; struct Feat; }

type Line = Tensor<f64, (I,)>;
type X = Tensor<f64, (I, J)>;

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

fn line<const N: usize>(elements: [f64; N]) -> Line {
    from_vec(I.of(N), elements.to_vec())
}

/// The gradient of the sum of a function's elements.
fn slopes(f: impl Fn(&Line) -> Line, at: &Line) -> Vec<f64> {
    grad(|x| f(x).sum(I), at).order(I).to_vec()
}

#[track_caller]
fn assert_close<S: Dims>(found: &Named<f64, S>, expected: &Named<f64, S>) {
    gradients::assert_close("the gradient", found, expected);
}

#[track_caller]
fn assert_same(found: &[f64], expected: &[f64]) {
    let same = |(a, b): (&f64, &f64)| a.is_nan() && b.is_nan() || a == b || (a - b).abs() < 1e-12;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(same),
        "{found:?} instead of {expected:?}"
    );
}

/// For a function that is smooth at a point, compares the first three derivatives with central
/// differences.
fn smooth(f: &dyn Fn(&X) -> Tensor<f64, ()>, at: &X) {
    check(|x: &X| f(x), at);
    check(|x: &X| grad(|x| f(x), x), at);
}

#[test]
fn products_with_zeros() {
    let h = |at: &Line| hessian(|x| x.prod(I), at, (I,), (I2,)).order((I2, I));
    assert_eq!(h(&line([0.0, 5.0])), array![[0.0, 1.0], [1.0, 0.0]]);
    assert_eq!(h(&line([0.0, 0.0, 2.0])), array![[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]);
    assert_eq!(h(&line([3.0])), array![[0.0]]);
    // The third derivative of `x y z` is 1, even where all factors are 0.
    let third = grad(|x| hvp(|x| x.prod(I), x, &line([1.0, 0.0, 0.0])).index(I, 1).eval(), &zeros(I.of(3)));
    assert_eq!(third.order(I), array![0.0, 0.0, 1.0]);
    let slopes = |at: &Line| grad(|x| x.prod(I), at).order(I).to_vec();
    assert_same(&slopes(&line([INF, 2.0, 3.0])), &[6.0, INF, INF]);
    assert_same(&slopes(&line([1e200, 1e200, 2.0])), &[2e200, 2e200, INF]);
    assert_same(&slopes(&line([NAN, 2.0, 3.0])), &[6.0, NAN, NAN]);
    // Lines with no zero, one zero and several.
    for elements in [
        vec![1.5, 2.0, 0.5, -1.0, 3.0, 0.7],
        vec![0.0, 2.0, 0.5, -1.0, 3.0, 0.0],
        vec![0.0, 2.0, 0.0, 0.0, 0.0, 0.0],
    ] {
        let x = from_vec((I.of(2), J.of(3)), elements);
        smooth(&|x| x.prod(J).sin().sum(I), &x);
        smooth(&|x| (x + 0.5 * x * x).prod(I).sin().sum(J), &x);
        smooth(&|x| x.prod((I, J)).sin().eval(), &x);
        smooth(&|x| x.prod((J, I)).eval(), &x);
        smooth(&|x| x.cumprod(J).sin().sum((I, J)), &x);
        smooth(&|x| x.cumprod(I).sin().sum((I, J)), &x);
    }
}

/// Even if a factor is small but not 0, each second derivative is the product of the remaining
/// factors, not a difference of large numbers.
#[test]
fn products_with_small_factors() {
    for small in [1e-3_f32, 1e-6, 1e-10, 1e-23] {
        let x: Tensor<f32, (I,)> = from_vec(I.of(3), vec![small, 2.0, 3.0]);
        let found = hessian(|x| x.prod(I), &x, (I,), (I2,)).order((I2, I));
        assert_eq!(found, array![[0.0, 3.0, 2.0], [3.0, 0.0, small], [2.0, small, 0.0]], "{small}");
    }
    // A subnormal product has lost digits, but its derivatives have not.
    let x: Tensor<f32, (I,)> = from_vec(I.of(2), vec![1e-22, 3e-22]);
    assert_eq!(grad(|x| x.prod(I), &x).order(I), array![3e-22, 1e-22]);
    let x = line([1e-200, 0.5, 1.5]);
    let expected = [0.0, 0.5_f64.cos() * 1.5_f64.sin(), 0.5_f64.sin() * 1.5_f64.cos()];
    let of = |x: &Line| hvp(|x| x.sin().eval().prod(I), x, &line([1.0, 0.0, 0.0]));
    assert_same(&of(&x).order(I).to_vec(), &expected);
    let third = grad(|x| of(x).index(I, 1).eval(), &x).order(I).to_vec();
    assert_same(&third, &[0.0, -0.5_f64.sin() * 1.5_f64.sin(), 0.5_f64.cos() * 1.5_f64.cos()]);
}

/// Functions that are smooth although their derivatives contain comparisons.
#[test]
fn smooth_at_zeros() {
    let x = from_vec((I.of(2), J.of(3)), vec![0.0, 2.0, 0.5, -1.0, 0.0, 0.7]);
    let y = from_vec((I.of(2), J.of(3)), vec![0.0, 1.0, 0.5, 1.5, 2.0, -0.3]);
    smooth(&|x| x.norm(J).sin().sum(I), &x);
    smooth(&|x| x.norm_p(J, 2.0).sin().sum(I), &x);
    smooth(&|x| x.norm_p(J, 4.0).sin().sum(I), &x);
    smooth(&|x| x.norm_p(J, 6.0).sum(I), &x);
    smooth(&|x| x.cdist(&y, J, 2.0).sum(I), &x);
    smooth(&|x| x.cdist(&y, J, 4.0).sum(I), &x);
    smooth(&|x| x.normalize(J, 1e-6).sin().sum((I, J)), &x);
    smooth(&|x| x.cosine_similarity(&y, J, 1e-6).sum(I), &x);
    smooth(&|x| x.hypot(1.0).sum((I, J)), &x);
    smooth(&|x| x.var(J).sin().sum(I), &zeros((I.of(2), J.of(3))));
    smooth(&|x| x.logsumexp(J).sum(I), &zeros((I.of(2), J.of(3))));
    smooth(&|x| x.logcumsumexp(J).sin().sum((I, J)), &zeros((I.of(2), J.of(3))));
    smooth(&|x| x.softmax(J).square().sum((I, J)), &zeros((I.of(2), J.of(3))));
    smooth(&|x| x.layer_norm(J, 0.1).sin().sum((I, J)), &zeros((I.of(2), J.of(3))));
    smooth(&|x| x.max(J).sin().sum(I), &x);
    smooth(&|x| x.sort(J).sin().sum((I, J)), &x);
    smooth(&|x| (x.powi(4) + x.powf(4.0)).sum((I, J)), &(&x).abs().eval());
    smooth(&|x| x.sinc().sum((I, J)), &zeros((I.of(2), J.of(3))));
    for function in [|x: &X| x.gelu().eval(), |x: &X| x.silu().eval(), |x: &X| x.mish().eval()] {
        smooth(&|x| function(x).sum((I, J)), &x);
    }
}

/// The first entries of the table of kinks in `docs/book/src/gradients.md`.
#[test]
fn kinks_have_the_slopes_of_the_table() {
    for step in [1e-3, 0.0] {
        let x = line([0.0, step]);
        let flat = |f: fn(&Line) -> Line| assert_eq!(slopes(f, &x)[0], 0.0);
        flat(|x| x.abs().eval());
        flat(|x| x.relu().eval());
        flat(|x| x.clamp(0.0, 2.0).eval());
    }
    let second = |f: fn(&Line) -> Tensor<f64, ()>| hessian(f, &zeros(I.of(2)), (I,), (I2,)).order((I2, I));
    // By convention, all derivatives of a norm at 0 are 0. So the second derivative of its square
    // is 0, too, although the exact one is 2.
    assert_eq!(grad(|x| x.norm(I), &zeros::<f64, _>(I.of(2))).order(I), array![0.0, 0.0]);
    let squares: [fn(&Line) -> Tensor<f64, ()>; 5] = [
        |x| x.norm(I).square().eval(),
        |x| x.cdist(&zeros::<f64, _>(I.of(2)), I, 2.0).square().eval(),
        |x| x.std(I).square().eval(),
        |x| x.hypot(0.0).square().sum(I),
        |x| x.abs().square().sum(I),
    ];
    for (at, f) in squares.into_iter().enumerate() {
        assert_eq!(second(f), array![[0.0, 0.0], [0.0, 0.0]], "{at}");
    }
    assert_eq!(second(|x| x.square().sum(I)), array![[2.0, 0.0], [0.0, 2.0]]);
}

#[test]
fn logarithms_of_infinite_sums() {
    let of = |f: fn(&Line) -> Tensor<f64, ()>, at: &Line| grad(f, at).order(I).to_vec();
    let total = |x: &Line| x.logsumexp(I).eval();
    assert_same(&of(total, &line([-5.0, 2.0, INF])), &[0.0, 0.0, 1.0]);
    assert_same(&of(total, &line([INF, 2.0, INF])), &[0.5, 0.0, 0.5]);
    assert_same(&of(total, &line([-INF, -INF])), &[0.0, 0.0]);
    assert_same(&of(total, &line([-INF, 1.0])), &[0.0, 1.0]);
    assert_same(&of(total, &line([-5.0, NAN, INF])), &[NAN; 3]);
    // Other lines are not affected.
    let x = from_vec((J.of(2), I.of(2)), vec![0.0, 0.0, INF, 1.0]);
    assert_eq!(grad(|x| x.logsumexp(I).sum(J), &x).order((J, I)), array![[0.5, 0.5], [1.0, 0.0]]);
    let curved = hvp(|x| x.logsumexp(I).sum(J), &x, &from_vec((J.of(2), I.of(2)), vec![1.0, 0.0, 0.0, 1.0]));
    assert_eq!(curved.order((J, I)), array![[0.25, -0.25], [0.0, 0.0]]);

    // The last running sum has the gradient of `logsumexp`.
    let last = |x: &Line| x.logcumsumexp(I).index(I, -1).eval();
    assert_same(&of(last, &line([-5.0, 2.0, INF])), &[0.0, 0.0, 1.0]);
    assert_same(&of(last, &line([INF, 2.0, INF])), &[0.5, 0.0, 0.5]);
    assert_same(&of(last, &line([INF, INF, INF])), &[1.0 / 3.0; 3]);
    assert_same(&of(last, &line([-INF, -INF, 1.0])), &[0.0, 0.0, 1.0]);
    assert_same(&slopes(|x| x.logcumsumexp(I), &line([0.0, 0.0, INF, 1.0])), &[1.5, 0.5, 2.0, 0.0]);
    assert_same(&of(last, &line([0.0, NAN, 1.0])), &[NAN; 3]);
}

/// The logarithm of a sum of large elements is rounded, but the shares of the elements are not.
#[test]
fn logarithms_of_sums_of_large_elements() {
    type Single = Tensor<f32, (I,)>;
    let third = 1.0 / 3.0;
    for large in [1e5_f32, 1e6, 1e7, 1e8, 1e30] {
        let x: Single = from_vec(I.of(3), vec![large; 3]);
        let total = grad(|x: &Single| x.logsumexp(I), &x);
        let last = grad(|x: &Single| x.logcumsumexp(I).index(I, -1).eval(), &x);
        for slope in [total.order(I).to_vec(), last.order(I).to_vec()].concat() {
            // A few exponentials and quotients are rounded.
            assert!((f64::from(slope) - third).abs() < 1e-6, "{large}: {slope}");
        }
    }
    let total = |x: &Line| x.logsumexp(I).eval();
    let last = |x: &Line| x.logcumsumexp(I).index(I, -1).eval();
    let (x, direction) = (line([1e300; 3]), line([1.0, -0.5, 0.25]));
    for f in [total as fn(&Line) -> Tensor<f64, ()>, last] {
        assert_same(&grad(f, &x).order(I).to_vec(), &[third; 3]);
        assert_same(&grad(f, &line([1e154, 1e154, -1e154])).order(I).to_vec(), &[0.5, 0.5, 0.0]);
        assert_same(&hvp(f, &x, &direction).order(I).to_vec(), &[0.25, -0.25, 0.0]);
    }
    assert_same(&slopes(|x| x.logcumsumexp(I), &x), &[11.0 / 6.0, 5.0 / 6.0, third]);
    assert_same(&slopes(|x| x.logcumsumexp(I), &line([0.0, 1e3, 0.0])), &[1.0, 2.0, 0.0]);
}

/// `x^0` has slope 0, even where `x^-1` is infinite.
#[test]
fn powers_of_subnormal_numbers() {
    let x = line([1e-310, 5e-324, 0.0, 3.0]);
    let zero: Line = zeros(I.of(4));
    assert_eq!(slopes(|x| x.powf(0.0).eval(), &x), [0.0; 4]);
    assert_eq!(slopes(|x| x.powf(&zero).eval(), &x), [0.0; 4]);
    assert_eq!(hvp(|x| x.powf(1.0).sum(I), &x, &line([1.0; 4])).order(I).to_vec(), [0.0; 4]);
    // The derivative of the slope with respect to the exponent is `1 / x`.
    let x = line([0.5, 1e-310]);
    let slope = |y: &Line| grad(|x: &Line| x.powf(y).sum(I), &x).sum(I);
    assert_same(&grad(slope, &zeros(I.of(2))).order(I).to_vec(), &[2.0, INF]);
}

#[test]
fn second_derivatives_of_inverse_functions_near_zero() {
    let x = [1e-20, -1e-3, 0.25, -0.75];
    let functions: [(fn(&Line) -> Line, fn(f64) -> f64); 3] = [
        (|x| x.asin().eval(), |x| x / (1.0 - x * x).powf(1.5)),
        (|x| x.acos().eval(), |x| -x / (1.0 - x * x).powf(1.5)),
        (|x| x.atanh().eval(), |x| 2.0 * x / (1.0 - x * x).powi(2)),
    ];
    for (at, (f, exact)) in functions.into_iter().enumerate() {
        let found = hvp(|x: &Line| f(x).sum(I), &line(x), &line([1.0; 4])).order(I).to_vec();
        for (found, exact) in found.into_iter().zip(x.map(exact)) {
            assert!((found / exact - 1.0).abs() < 1e-14, "{at}: {found} instead of {exact}");
        }
    }
}

#[test]
fn slopes_at_nan() {
    let x = line([NAN, 0.25, -0.5]);
    let functions: [fn(&Line) -> Line; 14] = [
        |x| x.relu().eval(),
        |x| x.relu6().eval(),
        |x| x.leaky_relu(0.1).eval(),
        |x| x.elu(1.0).eval(),
        |x| x.selu().eval(),
        |x| x.hard_sigmoid().eval(),
        |x| x.hard_swish().eval(),
        |x| x.hard_shrink(0.5).eval(),
        |x| x.soft_shrink(0.5).eval(),
        |x| x.clamp(0.0, 1.0).eval(),
        |x| x.abs().eval(),
        |x| x.maximum(0.1).eval(),
        |x| x.minimum(0.1).eval(),
        |x| x.softplus().eval(),
    ];
    for (at, f) in functions.into_iter().enumerate() {
        let found = slopes(f, &x);
        assert!(found[0].is_nan() && found[1].is_finite() && found[2].is_finite(), "{at}: {found:?}");
        // Where the cotangent is 0, so is the gradient.
        let (_, pull) = vjp(f, &x);
        assert_eq!(pull(&line([0.0, 1.0, 1.0])).order(I)[0], 0.0, "{at}");
    }
    let (da, db) = grad(|(a, b)| a.maximum(b).sum(I), (&line([NAN, 1.0]), &line([2.0, NAN])));
    assert_same(&[da.order(I).to_vec(), db.order(I).to_vec()].concat(), &[NAN; 4]);
    let lines: [fn(&Line) -> Tensor<f64, ()>; 8] = [
        |x| x.max(I),
        |x| x.min(I),
        |x| x.norm(I),
        |x| x.norm_p(I, INF),
        |x| x.norm_p(I, 3.0),
        |x| x.std(I),
        |x| x.logsumexp(I),
        |x| (x.normalize(I, 1e-6) * line([1.0, 2.0, 3.0])).sum(I),
    ];
    for (at, f) in lines.into_iter().enumerate() {
        let found = grad(f, &x).order(I).to_vec();
        assert!(found.iter().all(|slope| slope.is_nan()), "{at}: {found:?}");
    }
    assert!(x.view().normalize(I, 1e-6).order(I).iter().all(|value| value.is_nan()));
    // Only the pooling windows that contain NaN are affected.
    let pooled = slopes(|x| x.max_pool(I, 2, &Window::new().stride(2)), &line([NAN, 1.0, 2.0, 3.0]));
    assert_same(&pooled, &[NAN, NAN, 0.0, 1.0]);
    let pooled = slopes(|x| x.adaptive_max_pool(I, 2), &line([NAN, 1.0, 2.0, 3.0]));
    assert_same(&pooled, &[NAN, NAN, 0.0, 1.0]);
    // Operations that move or select elements pass their cotangents on.
    assert_same(&slopes(|x| x.sort(I).eval(), &x), &[1.0; 3]);
    assert_same(&slopes(|x| x.cummax(I).eval(), &line([1.0, NAN, 2.0])), &[1.0, 2.0, 0.0]);
    // Step functions have slope 0.
    assert_same(&slopes(|x| x.floor().eval(), &x), &[0.0; 3]);
}

/// NaN is a missing number for `nanvar`, but infinity is not.
#[test]
fn variances_without_nan() {
    let slopes = |at: &Line| grad(|x| x.nanvar(I), at).order(I).to_vec();
    assert_same(&slopes(&line([1.0, NAN, 3.0])), &[-1.0, 0.0, 1.0]);
    assert_same(&slopes(&line([INF, NAN, 1.0])), &[NAN, 0.0, NAN]);
}

/// What stands for padding or NaN has a share if it equals the extremum.
#[test]
fn padding_and_nan_as_extremum() {
    let padded = |x: &Line| x.max_pool(I, 3, &Window::new().padding(1));
    let third = 1.0 / 3.0;
    assert_same(&slopes(padded, &line([-INF, -INF, 1.0])), &[third, third, 2.0]);
    let x = line([-INF, NAN, -INF]);
    assert_same(&grad(|x| x.nanmax(I), &x).order(I).to_vec(), &[third, 0.0, third]);
    let x = (-x).eval();
    assert_same(&grad(|x| x.nanmin(I), &x).order(I).to_vec(), &[third, 0.0, third]);
}

/// A query whose keys are all masked has value 0 and gradients of 0. The other queries are not
/// affected.
#[test]
fn masked_queries() {
    type Rows<D> = Tensor<f64, (D, Feat)>;
    let q: Rows<Query> = randn((Query.of(3), Feat.of(2)), 1);
    let (k, v): (Rows<Key>, Rows<Key>) =
        (randn((Key.of(4), Feat.of(2)), 2), randn((Key.of(4), Feat.of(2)), 3));
    let mask = from_fn((Query.of(3), Key.of(4)), |(query, key)| query != 1 && key <= query + 1);
    let bias = (&mask).select(0.5, -INF).eval();
    let seen = from_fn((Query.of(2), Key.of(4)), |(query, key)| key <= 2 * query + 1);
    let of = |q: &Rows<Query>, k: &Rows<Key>, v: &Rows<Key>, mask: &Tensor<bool, (Query, Key)>| {
        attention(q, k, &v.view().rename(Feat, J), Feat, Key, 1.0, mask)
    };
    let value = of(&q, &k, &v, &mask);
    assert_eq!(value.view().index(Query, 1).order(J), array![0.0, 0.0]);
    let biased = |(q, k, v): (&Rows<Query>, &Rows<Key>, &Rows<Key>)| {
        attention(q, k, v.view().rename(Feat, J), Feat, Key, 1.0, &bias)
    };
    assert_eq!(biased((&q, &k, &v)).index(Query, 1).order(J), array![0.0, 0.0]);
    // The gradients equal those of the other two queries alone.
    let rows = |q: &Rows<Query>| q.view().slice_step(Query, .., 2).eval();
    let (dq, dk, dv) = grad(|(q, k, v)| of(q, k, v, &mask).sin().sum((Query, J)), (&q, &k, &v));
    let (eq, ek, ev) = grad(|(q, k, v)| of(q, k, v, &seen).sin().sum((Query, J)), (&rows(&q), &k, &v));
    assert_eq!(dq.view().index(Query, 1).order(Feat), array![0.0, 0.0]);
    assert_close(&rows(&dq), &eq);
    assert_close(&dk, &ek);
    assert_close(&dv, &ev);
    let (bq, bk, bv) = grad(|all| biased(all).sin().sum((Query, J)), (&q, &k, &v));
    assert_close(&bq, &dq);
    assert_close(&bk, &dk);
    assert_close(&bv, &dv);
    let all = (q, k, v);
    check(|(q, k, v): &(Rows<Query>, Rows<Key>, Rows<Key>)| of(q, k, v, &mask), &all);
    check(
        |(q, k, v): &(Rows<Query>, Rows<Key>, Rows<Key>)| {
            grad(|(q, k, v)| of(q, k, v, &mask).sin().sum((Query, J)), (q, k, v))
        },
        &all,
    );
}

/// Masked attention with several tiles of queries. In one tile, no query has a key.
#[test]
fn masked_tiles() {
    type Rows<D> = Tensor<f64, (D, Feat)>;
    let q: Rows<Query> = randn((Query.of(200), Feat.of(3)), 1);
    let (k, v): (Rows<Key>, Rows<Key>) =
        (randn((Key.of(200), Feat.of(3)), 2), randn((Key.of(200), Feat.of(3)), 3));
    let allowed = |query: usize, key: usize| query / 64 != 1 && query != 150 && key <= query;
    let mask = from_fn((Query.of(200), Key.of(200)), |(query, key)| allowed(query, key));
    let fused = |(q, k, v): (&Rows<Query>, &Rows<Key>, &Rows<Key>)| {
        attention(q, k, v.view().rename(Feat, J), Feat, Key, 1.0, &mask).sin().sum((Query, J))
    };
    let written_out = |(q, k, v): (&Rows<Query>, &Rows<Key>, &Rows<Key>)| {
        let exp = (&mask).select((q * k).sum(Feat).exp(), 0.0).eval();
        let total = exp.sum(Key);
        let total = total.view().eq(0.0).select(1.0, &total).eval();
        ((exp / total) * v.view().rename(Feat, J)).sum(Key).sin().sum((Query, J))
    };
    let (found, expected) = (grad(fused, (&q, &k, &v)), grad(written_out, (&q, &k, &v)));
    assert_close(&found.0, &expected.0);
    assert_close(&found.1, &expected.1);
    assert_close(&found.2, &expected.2);
}

type Lines = Tensor<f64, (I, J)>;

/// Three lines and their weights. The second line contains `value`, and its weight is 0.
fn with(value: f64) -> (Lines, Line) {
    let at = |i: usize, j: usize| 0.1 * (i as f64 + 1.0) + 0.01 * j as f64;
    let x = from_fn((I.of(3), J.of(64)), |(i, j)| if (i, j) == (1, 5) { value } else { at(i, j) });
    (x, line([1.0, 0.0, 1.0]))
}

#[track_caller]
fn assert_finite<S: Dims>(name: &str, value: f64, gradient: &Named<f64, S>) {
    let finite = gradient.memory().iter().all(|slope| slope.is_finite());
    assert!(finite, "the gradient of {name} is not finite for {value}: {:?}", gradient.memory());
}

/// In the chain rule, 0 times anything is 0: an element that does not affect the loss has the
/// gradient 0, whatever its value, and does not affect other gradients.
#[test]
fn nothing_depends_on_nan() {
    let lines: [(&str, fn(&Lines) -> Lines); 17] = [
        ("square", |x| x.square().eval()),
        ("sqrt", |x| x.sqrt().eval()),
        ("ln", |x| (x * x.ln()).eval()),
        ("relu", |x| x.relu().eval()),
        ("maximum", |x| x.maximum(0.2).eval()),
        ("softmax", |x| x.softmax(J)),
        ("log_softmax", |x| x.log_softmax(J)),
        ("layer_norm", |x| x.layer_norm(J, 1e-5)),
        ("rms_norm", |x| x.rms_norm(J, 1e-5)),
        ("normalize", |x| x.normalize(J, 1e-5)),
        ("cumsum", |x| x.cumsum(J)),
        ("cumprod", |x| x.cumprod(J)),
        ("logcumsumexp", |x| x.logcumsumexp(J)),
        ("cummax", |x| x.cummax(J)),
        ("sort", |x| x.sort(J)),
        ("pool", |x| x.max_pool(J, 2, &Window::new())),
        ("adaptive pool", |x| x.adaptive_max_pool(J, 4)),
    ];
    let reduced: [(&str, fn(&Lines) -> Line); 13] = [
        ("sum", |x| x.sum(J)),
        ("mean", |x| x.mean(J)),
        ("prod", |x| x.prod(J)),
        ("max", |x| x.max(J)),
        ("norm", |x| x.norm(J)),
        ("norm_p", |x| x.norm_p(J, 3.0)),
        ("var", |x| x.var(J)),
        ("std", |x| x.std(J)),
        ("logsumexp", |x| x.logsumexp(J)),
        ("a product", |x| (x * x.exp()).sum(J)),
        ("cross entropy", |x| x.cross_entropy(J, from_vec(I.of(3), vec![1_usize, 2, 3])).eval()),
        ("cosine", |x| x.cosine_similarity(from_fn(J.of(64), |j| j as f64), J, 1e-6)),
        ("distance", |x| x.cdist(from_fn(J.of(64), |j| j as f64), J, 2.0)),
    ];
    for value in [NAN, INF, 0.0] {
        let (x, weights) = with(value);
        for (name, f) in lines {
            assert_finite(name, value, &grad(|x| (f(x) * &weights).sum((I, J)), &x));
            let twice = |x: &Lines| (grad(|x| (f(x) * &weights).sum((I, J)), x) * &weights).sum((I, J));
            assert_finite(name, value, &grad(twice, &x));
        }
        for (name, f) in reduced {
            assert_finite(name, value, &grad(|x| (f(x) * &weights).sum(I), &x));
            let twice = |x: &Lines| (grad(|x| (f(x) * &weights).sum(I), x) * &weights).sum((I, J));
            assert_finite(name, value, &grad(twice, &x));
        }
        for size in [1, 2, 100] {
            let z: Tensor<f64, (I2, J)> = from_fn((I2.of(size), J.of(64)), |(i, j)| (i + j) as f64);
            let loss = |(z, x): (&Tensor<f64, (I2, J)>, &Lines)| ((z * x).sum(J) * &weights).sum((I, I2));
            let (dz, dx) = grad(loss, (&z, &x));
            assert_finite("the other factor of a product", value, &dz);
            assert_finite("a product", value, &dx);
            // The other lines still contribute.
            let rest = line([1.0, 0.0, 1.0]) * with(1.0).0;
            assert_close(&dz, &(rest.sum(I) * ones::<f64, _>(I2.of(size))).eval());
        }
        // Each element of this factor occurs in several products.
        let roots = line([0.0, 1.0, 4.0]);
        let slopes = grad(|x| (x.sqrt() * line([0.0, 1.0, 2.0]) * with(1.0).0).sum((I, J)), &roots);
        assert_finite("a root", 0.0, &slopes);
        let filter: Tensor<f64, (Key,)> = from_vec(Key.of(2), vec![0.5, 2.0]);
        let of = |(x, w): (&Lines, &Tensor<f64, (Key,)>)| {
            (conv(x, w, (), J, Key, &Window::new()) * &weights).sum((I, J))
        };
        let (dx, dw) = grad(of, (&x, &filter));
        assert_finite("conv", value, &dx);
        assert_finite("the filter of conv", value, &dw);
        let keys: Tensor<f64, (Query, J)> = from_fn((Query.of(4), J.of(64)), |(i, j)| 0.01 * (i * j) as f64);
        let values = (&keys).rename(J, Feat).eval();
        let of = |(q, k, v): (&Lines, &Tensor<f64, (Query, J)>, &Tensor<f64, (Query, Feat)>)| {
            (attention(q, k, v, J, Query, 1.0, true) * &weights).sum((I, Feat))
        };
        let (dq, dk, dv) = grad(of, (&x, &keys, &values));
        assert_finite("a query", value, &dq);
        assert_finite("keys", value, &dk);
        assert_finite("values", value, &dv);
    }
}

/// Numbers on the way to a gradient may be out of the range of half precision, or need more digits.
#[cfg(feature = "half")]
#[test]
fn gradients_in_half_precision() {
    use half::f16;
    type Halves = Tensor<f16, (I,)>;
    let halves = |elements: &[f32]| -> Halves {
        from_vec(I.of(elements.len()), elements.iter().map(|&x| f16::from_f32(x)).collect())
    };
    // `f16` has no number as great as the number of ties, but it has their shares.
    const TIES: usize = 70_000;
    let all = |element: f32| halves(&vec![element; TIES]);
    let share = f16::from_f32(1.0 / TIES as f32);
    for slopes in [
        grad(|x: &Halves| x.max(I), &all(2.0)),
        grad(|x: &Halves| x.min(I), &all(2.0)),
        grad(|x: &Halves| x.logsumexp(I), &all(f32::INFINITY)),
    ] {
        assert_eq!(slopes, full(I.of(TIES), share));
    }
    // The result is rounded, but the shares are not.
    for large in [10.0, 100.0, 6e4] {
        let x = halves(&[large; 3]);
        let third = full(I.of(3), f16::from_f32(1.0 / 3.0));
        assert_eq!(grad(|x: &Halves| x.logsumexp(I), &x), third);
        assert_eq!(grad(|x: &Halves| x.logcumsumexp(I).index(I, -1).eval(), &x), third);
    }
    let slopes = grad(|x: &Halves| x.prod(I), &halves(&[300.0, 300.0, 0.0, 0.0]));
    assert_eq!(slopes, halves(&[0.0; 4]));
    // The mean is 1000.25.
    let slopes = grad(|x: &Halves| x.var(I), &halves(&[1000.0, 1000.5]));
    assert_eq!(slopes, halves(&[-0.25, 0.25]));
}
