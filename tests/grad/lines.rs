//! Derivatives of operations along lines, of linear algebra, losses and attention, compared with
//! central differences and with formulas.

use crate::gradients::{check, noise};
use typed_dims::grad::{grad, vjp};
use typed_dims::prelude::*;

dims! { struct I; struct J; struct K; struct L; }

type X = Tensor<f64, (I, J, K)>;

/// Sizes of `I`, `J` and `K`, including 0, 1 and 600.
const SIZES: [[usize; 3]; 5] = [[2, 5, 3], [3, 1, 2], [2, 0, 3], [1, 600, 1], [1, 2, 600]];

/// Elements between -2 and 2, in no particular order, none near 0. No two of the first 5003
/// elements are near each other.
fn tensor(sizes: [usize; 3], seed: usize) -> X {
    let [i, j, k] = sizes;
    let at = |at: usize| (at + 1009 * seed) * 3571 % 5003;
    let value = |at: usize| at as f64 / 5003.0 * 3.8 - 1.9;
    let elements = (0..i * j * k).map(|number| value(at(number))).map(|x| x + 0.1 * x.signum());
    from_vec((I.of(i), J.of(j), K.of(k)), elements.collect())
}

fn checked(f: &dyn Fn(&X) -> X) {
    for (at, sizes) in SIZES.into_iter().enumerate() {
        check(|x| f(x), &tensor(sizes, at));
    }
}

/// Checks an operation along the last, the middle and the first dim, for computed elements and for
/// other layouts.
macro_rules! along {
    (|$x:ident, $d:ident| $body:expr) => {{
        let (last, middle, first) =
            (|$x: &X, $d: K| -> X { $body }, |$x: &X, $d: J| -> X { $body }, |$x: &X, $d: I| -> X { $body });
        checked(&|x| last(x, K));
        checked(&|x| middle(x, J));
        checked(&|x| first(x, I));
        checked(&|x| (last(&x.eval_in((K, I, J)), K) + middle(&x.eval_in((K, I, J)), J)).eval());
        checked(&|x| (middle(&(x + x.exp()).eval(), J) * x).eval());
    }};
}

/// The pull-backs of line operations overwrite cotangents that have no other owner. Shared ones are
/// not changed.
#[test]
fn shared_cotangents_are_not_overwritten() {
    let x = tensor([2, 5, 3], 1);
    let elements = |x: &X| x.order((I, J, K)).into_iter().collect::<Vec<f64>>();
    let works: [(&str, fn(&X) -> X); 4] = [
        ("softmax", |x| x.softmax(K)),
        ("log_softmax", |x| x.log_softmax(K)),
        ("layer_norm", |x| x.layer_norm(K, 1e-5)),
        ("rms_norm", |x| x.rms_norm(K, 1e-5)),
    ];
    for (name, work) in works {
        let dy = tensor([2, 5, 3], 2);
        let before = elements(&dy);
        let (y, pull) = vjp(work, &x);
        let (first, second) = (pull(&dy), pull(&dy));
        assert_eq!(elements(&dy), before, "{name}");
        assert_eq!(elements(&first), elements(&second), "{name}");
        // The value is its own cotangent.
        let (of_value, copy) = (pull(&y), from_vec((I.of(2), J.of(5), K.of(3)), elements(&y)));
        assert_eq!(elements(&of_value), elements(&pull(&copy)), "{name}");
        // Two steps share a cotangent.
        let (_, pull_both) = vjp(|x| (work(x) + x.softmax(K)).eval(), &x);
        let (_, pull_softmax) = vjp(|x| x.softmax(K), &x);
        let expected = (&first + &pull_softmax(&dy)).eval();
        let both = pull_both(&dy);
        for (found, expected) in elements(&both).into_iter().zip(elements(&expected)) {
            assert!((found - expected).abs() <= 1e-13, "{name}: {found} instead of {expected}");
        }
        assert_eq!(elements(&dy), before, "{name}");
    }
}

#[test]
fn softmax() {
    along!(|x, d| x.softmax(d));
    along!(|x, d| x.log_softmax(d));
    checked(&|x| x.softmax((J, K)));
    checked(&|x| (x * x).softmax((I, K)));
    checked(&|x| (&x.flip(J) + x).log_softmax((I, J, K)));
}

#[test]
fn running_sums() {
    along!(|x, d| x.cumsum(d));
    along!(|x, d| x.logcumsumexp(d));
    along!(|x, d| x.cummax(d));
    along!(|x, d| x.cummin(d));
    checked(&|x| (x * x).slice(J, ..).cumsum(J));
}

#[test]
fn running_products() {
    for sizes in [[2, 5, 3], [3, 1, 2], [2, 0, 3]] {
        let x = tensor(sizes, 3);
        check(|x: &X| x.cumprod(K), &x);
        check(|x: &X| x.cumprod(J), &x);
        check(|x: &X| (x * x).cumprod(I), &x);
        let zeros = x.map(|x| if x.abs() < 0.5 { 0.0 } else { x }).eval();
        check(|x: &X| x.cumprod(K), &zeros);
        check(|x: &X| x.cumprod(J), &zeros);
    }
    let long = zeros::<f64, _>((I.of(1), J.of(600), K.of(2)));
    let long = (noise(&long, 1) * 0.01 + 1.0).eval();
    check(|x: &X| x.cumprod(J), &long);
    let x = from_vec(I.of(4), vec![2.0, 0.0, 3.0, 0.0]);
    let dx = grad(|x| x.cumprod(I).sum(I), &x);
    assert_eq!(dx.order(I), ndarray::array![1.0, 8.0, 0.0, 0.0]);
}

/// No intermediate product of these gradients overflows or underflows.
#[test]
fn products_of_large_and_small_numbers_have_gradients() {
    let x: Tensor<f32, (I, J)> =
        from_fn((I.of(16), J.of(64)), |(i, _)| if i % 2 == 0 { 1e30 } else { 1e-30 });
    let dx = grad(|x| x.prod(I).sum(J), &x);
    for (at, dx) in dx.order((I, J)).outer_iter().enumerate() {
        let expected = if at % 2 == 0 { 1e-30 } else { 1e30 };
        assert!(dx.iter().all(|dx| (dx / expected - 1.0_f32).abs() < 1e-5), "{at}: {dx}");
    }
}

/// A factor that does not vary along some of the loops is not expanded along them.
#[test]
fn products_of_broadcast_factors_have_gradients() {
    let x = from_vec(I.of(3), vec![2.0, 3.0, 0.5]);
    let dx = grad(|x| (x.view() * ones::<f64, _>(J.of(2))).prod(I).sum(J), &x);
    assert_eq!(dx.order(I), ndarray::array![3.0, 2.0, 12.0]);
    let dx = grad(|x| x.expand(J.of(2)).prod((I, J)).eval(), &x);
    assert_eq!(dx.order(I), ndarray::array![9.0, 6.0, 36.0]);
}

#[test]
fn equal_extremes_belong_to_the_last() {
    let x = from_vec(I.of(4), vec![1.0, 3.0, 3.0, 2.0]);
    let weights = from_vec(I.of(4), vec![1.0, 10.0, 100.0, 1000.0]);
    let dx = grad(|x| (x.cummax(I) * &weights).sum(I), &x);
    assert_eq!(dx.order(I), ndarray::array![1.0, 10.0, 1100.0, 0.0]);
}

#[test]
fn differences() {
    checked(&|x| (x.diff(K).square().sum(K) * x).eval());
    checked(&|x| (x.diff(J).square().sum(J) * x).eval());
}

#[test]
fn normalizations() {
    along!(|x, d| x.layer_norm(d, 0.1));
    along!(|x, d| x.rms_norm(d, 0.1));
    along!(|x, d| x.normalize(d, 0.1));
    checked(&|x| x.layer_norm((I, K), 0.1));
    checked(&|x| (x * x).rms_norm((J, K), 0.1));
    checked(&|x| x.normalize((I, J), 1e3));
}

#[test]
fn normalizations_with_gain_and_bias() {
    for sizes in [[2, 5, 3], [3, 1, 2], [2, 0, 3], [1, 3, 600]] {
        let x = tensor(sizes, 5);
        let gain = (noise(&zeros::<f64, _>(K.of(sizes[2])), 1) + 2.0).eval();
        let bias = noise(&zeros::<f64, _>(K.of(sizes[2])), 2);
        type All = (X, Tensor<f64, (K,)>, Tensor<f64, (K,)>);
        let all: All = (x.clone(), gain.clone(), bias.clone());
        check(|(x, gain, bias): &All| x.layer_norm_affine(K, 0.1, gain, bias), &all);
        check(|x: &X| x.layer_norm_affine(K, 0.1, &gain, &bias), &x);
        check(|x: &X| (x * 2.0).layer_norm_affine((J, K), 0.1, &gain, 1.5), &x);
        check(|gain: &Tensor<f64, (K,)>| (&x).layer_norm_affine(K, 0.1, gain, &bias), &gain);
        check(|bias: &Tensor<f64, (K,)>| (&x).layer_norm_affine(J, 0.1, 2.0, bias), &bias);
    }
}

#[test]
fn normalizations_of_groups_and_batches() {
    for sizes in [[2, 6, 3], [3, 2, 1], [2, 0, 3]] {
        let x = tensor(sizes, 7);
        check(|x: &X| x.group_norm(J, 2, K, 0.1), &x);
        check(|x: &X| x.group_norm(J, 1, (I, K), 0.1), &x);
        check(|x: &X| x.group_norm(J, 2, (), 0.1), &x);
        check(
            |x: &X| {
                let norm = x.batch_norm((I, K), 0.1);
                (norm.output + norm.mean * norm.var).eval()
            },
            &x,
        );
        check(|x: &X| x.batch_norm_with(x.mean((I, K)), x.var((I, K)), 0.1).eval(), &x);
    }
}

#[test]
fn order_along_a_dim() {
    along!(|x, d| (x.sort(d) * x.sort_descending(d)).eval());
    along!(|x, d| x.sort_with_indices(d).0.cumsum(d));
    along!(|x, d| x.sort_descending_with_indices(d).0.cumsum(d));
    let choices = |x: &X| {
        let (k, j) = (x.topk(K, 2).0, x.slice(J, ..).topk(J, 1).0);
        (k.cumsum(K).sum(K) * j.sum(J) * x).eval()
    };
    check(choices, &tensor([2, 5, 3], 1));
    check(choices, &tensor([1, 1, 600], 1));
}

#[test]
fn quantiles() {
    let all = |x: &X| {
        let parts = x.median(J) * x.quantile(J, 0.3) + x.quantile(J, 1.0) - x.quantile(J, 0.0);
        (parts * x + x.median((I, J)) * x.max_with_index((J, K)).0 - x.min_with_index(I).0).eval()
    };
    for sizes in [[2, 5, 3], [3, 4, 2], [2, 1, 1], [1, 600, 2]] {
        check(all, &tensor(sizes, 9));
    }
    // Of equal elements, the first gets the gradient.
    let x = from_vec(I.of(3), vec![2.0, 1.0, 2.0]);
    let d = grad(|x| x.max_with_index(I).0, &x);
    assert_eq!(d.order(I), ndarray::array![1.0, 0.0, 0.0]);
    let d = grad(|x| x.median(I), &from_vec(I.of(4), vec![4.0, 1.0, 3.0, 2.0]));
    assert_eq!(d.order(I), ndarray::array![0.0, 0.0, 0.5, 0.5]);
}

#[test]
fn norms() {
    for p in [1.0, 2.0, 3.0, 2.5, f64::INFINITY, f64::NEG_INFINITY] {
        for sizes in [[2, 5, 3], [3, 1, 2], [1, 600, 1]] {
            check(|x: &X| (x.norm_p(J, p) * x.norm_p((I, K), p) + x * 1.0).eval(), &tensor(sizes, 11));
        }
    }
    checked(&|x| (x.norm(J) * x.norm((I, K)) * x).eval());
    // With `p = 0`, the norm is a count, whose slope is 0.
    check(|x: &X| (x.norm_p(J, 0.0) * x).eval(), &tensor([2, 5, 3], 1));
    let zero = zeros::<f64, _>(I.of(3));
    for p in [1.0, 2.0, 3.0] {
        assert_eq!(grad(|x| x.norm_p(I, p), &zero).order(I), ndarray::array![0.0, 0.0, 0.0]);
    }
    // Ties share the gradient.
    let x = from_vec(I.of(3), vec![2.0, -2.0, 1.0]);
    let d = grad(|x| x.norm_p(I, f64::INFINITY), &x);
    assert_eq!(d.order(I), ndarray::array![0.5, -0.5, 0.0]);
}

type Pair = (X, Tensor<f64, (K, L)>);

#[test]
fn distances_and_angles() {
    for [i, k, l] in [[2, 5, 3], [2, 1, 2], [1, 60, 2]] {
        let x = tensor([i, 2, k], 1);
        let y = noise(&zeros::<f64, _>((K.of(k), L.of(l))), 2);
        let pair: Pair = (x.clone(), y.clone());
        for p in [1.0, 2.0, 3.0] {
            check(|(x, y): &Pair| x.cdist(y, K, p), &pair);
        }
        check(|(x, y): &Pair| x.cosine_similarity(y, K, 1e-3), &pair);
        check(|x: &X| x.cosine_similarity(&y, K, 100.0), &x);
        check(|(x, y): &Pair| x.contract(y, K), &pair);
        check(|x: &X| (x.dot(x, K) * x).eval(), &x);
    }
}

#[test]
fn matrices() {
    let square = |sizes| tensor(sizes, 4);
    for sizes in [[3, 3, 2], [1, 1, 1], [2, 2, 0]] {
        check(|x: &X| (x.trace(I, J) * x).eval(), &square(sizes));
        check(|x: &X| (x.diagonal(I, J, 0).square().sum(I) * x).eval(), &square(sizes));
    }
    for sizes in SIZES {
        check(|x: &X| (x.tril(I, J, 0) * x.triu(I, J, 1) + x.tril(J, K, -1)).eval(), &square(sizes));
    }
    for sizes in [[2, 3, 2], [1, 1, 1], [2, 0, 3]] {
        check(|x: &X| (x * 1.0).diag_embed(J, L), &square(sizes));
        check(|x: &X| (x * x).diag_embed(K, L), &square(sizes));
    }
}

#[test]
fn losses() {
    for sizes in [[2, 5, 3], [3, 1, 2], [2, 0, 3], [1, 600, 1]] {
        let (x, y) = (tensor(sizes, 1), tensor(sizes, 2));
        let pair = (x.clone(), y.clone());
        type Both = (X, X);
        check(|(x, y): &Both| x.mse_loss(y).eval(), &pair);
        check(|(x, y): &Both| x.l1_loss(y).eval(), &pair);
        check(|(x, y): &Both| x.huber_loss(y, 0.7).eval(), &pair);
        check(|(x, y): &Both| x.smooth_l1_loss(y, 0.7).eval(), &pair);
        check(|(x, y): &Both| x.sigmoid().bce_loss(y.sigmoid()).eval(), &pair);
        check(|(x, y): &Both| x.bce_with_logits_loss(y.sigmoid()).eval(), &pair);
        check(|(x, y): &Both| x.log_softmax(J).kl_div_loss(y.softmax(J)).eval(), &pair);
        let labels = zeros::<isize, _>((I.of(sizes[0]), K.of(sizes[2])));
        if sizes[1] > 0 {
            let labels = ((&labels + I * 7 + K) % sizes[1] as isize).eval();
            check(|x: &X| x.cross_entropy(J, &labels).eval(), &x);
            check(|x: &X| x.log_softmax(J).nll_loss(J, &labels).eval(), &x);
        }
    }
}

/// Cotangents of a few of the classes are not expanded with zeros.
#[test]
fn cross_entropies_of_many_classes() {
    for sizes in [[3, 40, 2], [1, 9, 4]] {
        let x = tensor(sizes, 1);
        let labels = zeros::<isize, _>((I.of(sizes[0]), K.of(sizes[2])));
        let labels = ((&labels + I * 7 + K) % sizes[1] as isize).eval();
        let fewer = (&labels).clamp(0, 6).eval();
        let weight = (&labels + 1).cast::<f64>().eval();
        check(|x: &X| x.cross_entropy(J, &labels).eval(), &x);
        check(|x: &X| (x.cross_entropy(J, &labels) * &weight).sum((I, K)), &x);
        check(|x: &X| (x * x.exp()).cross_entropy(J, &labels).eval(), &x);
        check(|x: &X| x.slice(J, 1..8).cross_entropy(J, &fewer).eval(), &x);
        check(|x: &X| x.eval_in((I, K, J)).cross_entropy(J, &labels).eval(), &x);
        check(|x: &X| x.eval_in((J, I, K)).cross_entropy(J, &labels).eval(), &x);
        check(|x: &X| x.log_softmax(J).index(J, 3).eval(), &x);
        check(|x: &X| (x.log_softmax(J).index(J, 3) + x.sum(J)).eval(), &x);
        check(|x: &X| x.log_softmax((I, J)).slice(J, 2..4).sum(J), &x);
    }
}

dims! { struct Head; struct Query; struct Key; struct Feat; struct Value; }

type Queries = Tensor<f64, (Head, Query, Feat)>;
type Keys = Tensor<f64, (Head, Key, Feat)>;
type Attended = (Queries, Keys, Keys);

fn attended(heads: usize, queries: usize, keys: usize, features: usize) -> Attended {
    let q = zeros::<f64, _>((Head.of(heads), Query.of(queries), Feat.of(features)));
    let k = zeros::<f64, _>((Head.of(heads), Key.of(keys), Feat.of(features)));
    (noise(&q, 1), noise(&k, 2), noise(&k, 3))
}

#[test]
fn attention_by_parts() {
    for [heads, queries, keys, features] in [[2, 3, 4, 5], [1, 1, 1, 1], [2, 0, 3, 2], [2, 5, 1, 3]] {
        let all = attended(heads, queries, keys, features);
        check(|(q, k, v): &Attended| attention(q, k, v, Feat, Key, 0.7, true), &all);
        check(|(q, k, v): &Attended| attention(q, k, v, Feat, Key, 0.7, Query.ge(Key)), &all);
        check(|(q, k, v): &Attended| attention(q * q, k + v, k * v, Feat, Key, 0.7, true), &all);
        let (q, k, v) = &all;
        check(|v: &Keys| attention(q, k, v, Feat, Key, 1.0, true), v);
        check(|k: &Keys| attention(q, k, v, Feat, Key, 1.0, true), k);
        check(|q: &Queries| attention(q, k, v, Feat, Key, 1.0, Query.ge(Key)), q);
    }
}

type Bias = Tensor<f64, (Head, Query, Key)>;
type Weights = Tensor<f64, (K, L)>;

#[test]
fn linear_maps() {
    for [i, j, k] in [[2, 2, 3], [1, 1, 1], [2, 0, 3]] {
        let x = tensor([i, j, k], 1);
        let weight = noise(&zeros::<f64, _>((K.of(k), L.of(2))), 2);
        let bias = noise(&zeros::<f64, _>(L.of(2)), 3);
        let all: (X, Weights, Tensor<f64, (L,)>) = (x, weight, bias);
        let f = |(x, weight, bias): &(X, Weights, Tensor<f64, (L,)>)| {
            let map =
                typed_dims::nn::Linear::<(K,), (L,), f64> { weight: weight.clone(), bias: bias.clone() };
            map.apply(x)
        };
        check(f, &all);
    }
}

#[test]
fn functions_over_time() {
    let x = tensor([2, 4, 3], 1);
    let weight = noise(&zeros::<f64, _>((K.of(3), L.of(3))), 2);
    let all: (X, Weights) = (x, weight);
    let f = |(x, weight): &(X, Weights)| {
        let start = zeros::<f64, _>((I.of(2), K.of(3)));
        let (last, all) = scan(x, J, start, |state: Tensor<f64, (I, K)>, x| {
            let next = ((state * weight).sum(K).rename(L, K) + x).tanh().eval();
            (next.clone(), next)
        });
        (last * all).eval()
    };
    check(f, &all);
}

#[test]
fn attention_with_masks_and_biases() {
    let (q, k, v) = attended(2, 5, 4, 3);
    let bias = noise(&zeros::<f64, _>((Head.of(2), Query.of(5), Key.of(4))), 4);
    let all = ((q, k, v), bias);
    type All = (Attended, Bias);
    let mask = from_fn((Query.of(5), Key.of(4)), |(i, j)| (i + j) % 3 != 1 || i == j).eval();
    check(|((q, k, v), bias): &All| attention(q, k, v, Feat, Key, 0.7, bias), &all);
    check(|((q, k, v), bias): &All| attention(q, k, v, Feat, Key, 0.7, (&mask, bias * bias)), &all);
    let alibi = |slope: &Tensor<f64, (Head,)>| {
        let (q, k, v) = &all.0;
        let bias = slope * (Key - Query).cast::<f64>();
        attention(q, k, v, Feat, Key, 0.7, (Query.ge(Key), bias))
    };
    check(alibi, &from_vec(Head.of(2), vec![0.5, 0.25]));
    // Programs do not know the closure that computes this mask.
    let odd = |((q, k, v), _): &All| {
        let mask = (&mask).map(|allowed: bool| !allowed);
        attention(q, k, v, Feat, Key, 0.7, !mask)
    };
    check(odd, &all);
}

#[test]
fn attention_over_several_dims_and_without_batches() {
    let q = noise(&zeros::<f64, _>((Query.of(3), L.of(2), Feat.of(4))), 1);
    let k = noise(&zeros::<f64, _>((Head.of(2), Key.of(3), Feat.of(4))), 2);
    let v = noise(&zeros::<f64, _>((Head.of(2), Key.of(3), Value.of(2), L.of(2))), 3);
    type Several =
        (Tensor<f64, (L, Query, Feat)>, Tensor<f64, (Head, Key, Feat)>, Tensor<f64, (L, Head, Key, Value)>);
    let all: Several = (q, k, v);
    check(|(q, k, v): &Several| attention(q, k, v, Feat, (Key, Head), 0.7, true), &all);
}

/// The greatest differences between the gradients of attention and those of the same operations
/// written out.
macro_rules! differences {
    ($all:expr, $mask:expr) => {{
        let (q, k, v) = $all;
        let dy = noise(&q, 5);
        let found = vjp(|(q, k, v)| attention(q, k, v, Feat, Key, 0.7, $mask), (&q, &k, &v)).1(&dy);
        let written_out = |(q, k, v): (&Queries, &Keys, &Keys)| {
            let scores = (q * k).sum(Feat) * 0.7;
            let shares = $mask.select(scores, f64::NEG_INFINITY).softmax(Key);
            (shares * v).sum(Key)
        };
        let expected = vjp(written_out, (&q, &k, &v)).1(&dy);
        [
            (found.0 - expected.0).abs().max((Head, Query, Feat)).order(()),
            (found.1 - expected.1).abs().max((Head, Key, Feat)).order(()),
            (found.2 - expected.2).abs().max((Head, Key, Feat)).order(()),
        ]
    }};
}

#[test]
fn attention_in_tiles() {
    for [heads, queries, keys] in [[2, 300, 220], [1, 600, 220], [1, 2, 70_000]] {
        let worst = differences!(attended(heads, queries, keys, 2), Query.ge(Key) | Key.lt(40));
        assert!(worst.iter().all(|&worst| worst < 1e-10), "{worst:?}");
    }
}

/// Each tile covers only the keys between the first and the last that its queries attend to.
#[test]
fn attention_in_windows() {
    for [heads, queries, keys] in [[3, 300, 220], [1, 65, 90], [2, 128, 30]] {
        let near = |(query, key): (usize, usize)| (query * keys / queries).abs_diff(key) < 9;
        let mask = from_fn((Query.of(queries), Key.of(keys)), near).eval();
        let worst = differences!(attended(heads, queries, keys, 2), &mask);
        assert!(worst.iter().all(|&worst| worst < 1e-10), "{worst:?}");
    }
}

#[test]
fn formulas() {
    for sizes in [[2, 5, 3], [3, 1, 2], [1, 7, 600]] {
        let (x, dy) = (tensor(sizes, 1), tensor(sizes, 2));
        let close = |a: &X, b: &X| {
            let worst = (a - b).abs().max((I, J, K)).order(());
            assert!(worst < 1e-10, "{worst}");
        };
        let (y, pull) = vjp(|x| x.softmax(K), &x);
        close(&pull(&dy), &(&y * (&dy - (&y * &dy).sum(K))).eval());
        let (y, pull) = vjp(|x| x.log_softmax(J), &x);
        close(&pull(&dy), &(&dy - y.exp() * dy.sum(J)).eval());
        let (y, pull) = vjp(|x| x.layer_norm(K, 1e-3), &x);
        let factor = ((&x - x.mean(K)).square().mean(K) + 1e-3).rsqrt();
        let expected = factor * (&dy - dy.mean(K) - &y * (&y * &dy).mean(K));
        close(&pull(&dy), &expected.eval());
    }
}

#[test]
fn single_precision() {
    let (x, dy) = (tensor([2, 5, 600], 1), tensor([2, 5, 600], 2));
    let (x32, dy32) = ((&x).cast::<f32>().eval(), (&dy).cast::<f32>().eval());
    let close = |a: Tensor<f32, (I, J, K)>, b: X| {
        let worst = (a.cast::<f64>() - b).abs().max((I, J, K)).order(());
        assert!(worst < 1e-4, "{worst}");
    };
    macro_rules! both {
        ($($f:expr;)*) => {$(
            close(vjp($f, &x32).1(&dy32), vjp($f, &x).1(&dy));
        )*};
    }
    both! {
        |x| x.softmax(K);
        |x| x.log_softmax(K);
        |x| x.layer_norm(K, 1e-3);
        |x| x.rms_norm((J, K), 1e-3);
        |x| x.normalize(K, 1e-3);
        |x| x.cumsum(J);
        |x| x.cumprod(J);
        |x| x.logcumsumexp(K);
        |x| x.cummax(K);
        |x| x.sort(K);
    }
}

#[cfg(feature = "half")]
#[test]
fn half_precision() {
    use half::f16;
    let line = |seed| noise(&zeros::<f64, _>(I.of(40)), seed);
    let (x, dy) = ((line(1) * 0.3 + 1.0).eval(), line(2));
    let (x16, dy16) = ((&x).cast::<f16>().eval(), (&dy).cast::<f16>().eval());
    macro_rules! both {
        ($($f:expr;)*) => {$(
            let (found, expected) = (vjp($f, &x16).1(&dy16), vjp($f, &x).1(&dy));
            let scale = (&expected).abs().max(I).order(()).max(1.0);
            let worst = (found.cast::<f64>() - expected).abs().max(I).order(()) / scale;
            assert!(worst < 2e-2, "{worst}");
        )*};
    }
    both! {
        |x| x.softmax(I);
        |x| x.log_softmax(I);
        |x| x.rms_norm(I, Default::default());
        |x| x.layer_norm(I, Default::default());
        |x| x.cumsum(I);
        |x| x.cumprod(I);
        |x| x.logcumsumexp(I);
        |x| x.cummax(I);
        |x| x.sort(I);
    }
}
