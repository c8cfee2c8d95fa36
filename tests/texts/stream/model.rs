//! Typical models.

use super::*;
use typed_dims::ndarray::Array2;
use typed_dims::tensors::stream::ledger;

dims! {
    pub struct Time;
    pub struct Input;
    pub struct Hidden = 8;
    pub struct Output = 3;
    pub struct Query;
    pub struct Key;
    /// Features of queries and keys.
    pub struct Feat = 4;
    /// Features of values.
    pub struct Value = 5;
}

fn near(a: Array2<f64>, b: Array2<f64>) {
    assert_eq!(a.shape(), b.shape());
    a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 1e-9, "{a} instead of {b}"));
}

/// `[time input!] -> [time hidden!] -> [time output!]`
fn network(
    x: &Stream<f64, (Time, Input), Input>,
    first: &Tensor<f64, (Input, Hidden)>,
    second: &Tensor<f64, (Hidden, Output)>,
    bias: &Tensor<f64, (Output,)>,
) -> Stream<f64, (Time, Output), Output> {
    x.contract(first, Input).relu().contract(second, Hidden) + bias
}

#[test]
fn a_network_with_constant_weights_needs_no_dynamic_ones() {
    let x = randn::<f64, _>((Time.of(6), Input.of(7)), 1);
    let first = randn::<f64, _>((Input.of(7), Hidden), 2);
    let second = randn::<f64, _>((Hidden, Output), 3);
    let bias = randn::<f64, _>(Output, 4);
    let (y, ledger) = ledger(|| network(&(&x).stream((Time, Input), Input), &first, &second, &bias));
    let hidden = (&x * &first).sum(Input).relu();
    near(y.to_array(), ((hidden * &second).sum(Hidden) + &bias).order((Time, Output)));
    assert_eq!((ledger.count(CostClass::Compute), ledger.entries.len()), (4, 4));
}

/// `out[t] = mean of x[t], .., x[t + 2]`. Slices along `Time` are free because `Time` is not the
/// data dimension.
fn running_mean(x: &Stream<f64, (Time, Input), Input>) -> Stream<f64, (Time, Input), Input> {
    let n = x.size(Time) - 2;
    (x.slice(Time, ..n) + x.slice(Time, 1..=n) + x.slice(Time, 2..)) / 3.0
}

#[test]
fn a_running_mean() {
    let x = randn::<f64, _>((Time.of(6), Input.of(2)), 5);
    let (y, ledger) = ledger(|| running_mean(&(&x).stream((Time, Input), Input)));
    let array = (&x).order((Time, Input));
    near(
        y.to_array(),
        Array2::from_shape_fn((4, 2), |(t, i)| (0..3).map(|w| array[[t + w, i]]).sum::<f64>() / 3.0),
    );
    assert_eq!((ledger.count(CostClass::Free), ledger.count(CostClass::Compute)), (3, 3));
}

/// `e^x / sum over key of e^x`, along the data dimension.
fn softmax(scores: &Stream<f64, (Query, Key), Key>) -> Stream<f64, (Query, Key), Key> {
    let keys = Key.of(scores.size(Key));
    let exp = (scores - scores.max_keepdim(Key, One).broadcast(One, keys)).exp();
    &exp / exp.sum_keepdim(Key, One).broadcast(One, keys)
}

fn attention(
    queries: &Stream<f64, (Query, Feat), Feat>,
    keys: &Stream<f64, (Key, Feat), Key>,
    values: &Stream<f64, (Key, Value), Value>,
) -> Stream<f64, (Query, Value), Value> {
    let scores = queries.allow_dynamic_weights().contract(keys, Feat) * 0.5;
    softmax(&scores).allow_dynamic_weights().contract(values, Key)
}

#[test]
fn attention_with_dynamic_weights() {
    let q = randn::<f64, _>((Query.of(3), Feat), 6);
    let k = randn::<f64, _>((Key.of(6), Feat), 7);
    let v = randn::<f64, _>((Key.of(6), Value), 8);
    let run = || {
        let queries = (&q).stream((Query, Feat), Feat);
        let keys = (&k).stream((Key, Feat), Key);
        attention(&queries, &keys, &(&v).stream((Key, Value), Value))
    };
    let (y, ledger) = ledger(run);
    near(
        y.to_array(),
        typed_dims::prelude::attention(&q, &k, &v, Feat, Key, 0.5, true).order((Query, Value)),
    );
    assert_eq!(ledger.dynamic_weights(), 2);
    assert_eq!(ledger.count(CostClass::CloseToFree), 2);
}
