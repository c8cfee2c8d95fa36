//! Three steps: cross entropy, layer normalization, and a chain of elementwise operations.

use super::{Step, candle_step, joined};
use crate::bench::{Bench, Outcome, candle, candle_ids};
use std::cell::RefCell;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct Class;
    struct Feat;
    struct N;
}

pub fn chain(bench: &mut Bench) {
    let [a, b, c] = ["a", "b", "c"].map(|name| bench.input::<f32, _>(name, 1_000_000));
    {
        let by = RefCell::new([&a, &b, &c].map(|x| (**x).clone().into_tensor(N)));
        bench.peer("typed-dims", move || {
            let step =
                value_and_grad(|[a, b, c]| ((a * b + c).tanh() * a.sigmoid()).sum(N), &mut *by.borrow_mut());
            Step::new(step, |[a, b, c]| joined(&[&a.order(N), &b.order(N), &c.order(N)]))
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{gradients, variable};
        use burn::tensor::activation::sigmoid;
        let [a, b, c] = [&a, &b, &c].map(|x| variable::<1, _>(&**x));
        bench.peer("burn", move || {
            let product = a.clone() * b.clone() + c.clone();
            gradients!((product.tanh() * sigmoid(a.clone())).sum(), a, b, c)
        });
    }
    candle_step(bench, vec![candle(&a), candle(&b), candle(&c)], |by| {
        let product = by[0].mul(&by[1])?.add(&by[2])?;
        (product.tanh()? * candle_nn::ops::sigmoid(&by[0])?)?.sum_all()
    });
}

pub fn cross_entropy(bench: &mut Bench) {
    let scores = bench.input::<f32, _>("scores", (4096, 1024));
    let labels = bench.ids("labels", 4096, 1024);
    {
        let scores = RefCell::new((*scores).clone().into_tensor((Example, Class)));
        let labels = (*labels).clone().into_tensor(Example);
        bench.peer("typed-dims", move || {
            let loss = |s: &Tensor<f32, (Example, Class)>| s.cross_entropy(Class, &labels).mean(Example);
            let step = value_and_grad(|s| loss(s), &mut *scores.borrow_mut());
            Step::new(step, |own| own.order((Example, Class)).elements())
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{gradients, ids, variable};
        use burn::nn::loss::CrossEntropyLossConfig;
        let (scores, labels) = (variable::<2, _>(&*scores), ids(&labels));
        let cross_entropy = CrossEntropyLossConfig::new().init(&scores.device());
        bench.peer("burn", move || gradients!(cross_entropy.forward(scores.clone(), labels.clone()), scores));
    }
    let labels = candle_ids(&labels);
    candle_step(bench, vec![candle(&scores)], move |by| candle_nn::loss::cross_entropy(&by[0], &labels));
}

pub fn layer_norm(bench: &mut Bench) {
    let [x, weight] = ["x", "weight"].map(|name| bench.input::<f32, _>(name, (4096, 768)));
    let [gain, bias] = ["gain", "bias"].map(|name| bench.input::<f32, _>(name, 768));
    {
        let [x, weight] = [&x, &weight].map(|x| (**x).clone().into_tensor((Example, Feat)));
        let [gain, bias] = [&gain, &bias].map(|x| (**x).clone().into_tensor(Feat));
        let by = RefCell::new((x, gain, bias));
        bench.peer("typed-dims", move || {
            let step = value_and_grad(
                |(x, g, b)| {
                    let y = (x.layer_norm(Feat, 1e-5) * g + b).eval();
                    (y * &weight).sum((Example, Feat))
                },
                &mut *by.borrow_mut(),
            );
            Step::new(step, |(x, g, b)| joined(&[&x.order((Example, Feat)), &g.order(Feat), &b.order(Feat)]))
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        use burn::tensor::module::layer_norm;
        let (x, weight) = (variable::<2, _>(&*x), constant::<2, _>(&*weight));
        let (gain, bias) = (variable::<1, _>(&*gain), variable::<1, _>(&*bias));
        bench.peer("burn", move || {
            let y = layer_norm(x.clone(), gain.clone(), Some(bias.clone()), 1e-5);
            gradients!((y * weight.clone()).sum(), x, gain, bias)
        });
    }
    let weight = candle(&weight);
    candle_step(bench, vec![candle(&x), candle(&gain), candle(&bias)], move |by| {
        // `layer_norm` and `LayerNorm` have no gradient for tensors in standard layout.
        let y = candle_nn::ops::layer_norm_slow(&by[0], &by[1], &by[2], 1e-5)?;
        (y * &weight)?.sum_all()
    });
}
