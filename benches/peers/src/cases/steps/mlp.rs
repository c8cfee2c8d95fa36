//! Two-layer perceptrons.

use super::{Step, candle_step, joined, scaled};
use crate::bench::{Bench, candle, candle_ids};
use std::cell::RefCell;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct Input;
    struct Hidden;
    struct Class;
}

#[derive(Parameters)]
struct Mlp {
    w1: Tensor<f32, (Input, Hidden)>,
    b1: Tensor<f32, (Hidden,)>,
    w2: Tensor<f32, (Hidden, Class)>,
    b2: Tensor<f32, (Class,)>,
}

fn mlp(bench: &mut Bench, [examples, inputs, hidden]: [usize; 3]) {
    let x = bench.input::<f32, _>("x", (examples, inputs));
    let y = bench.ids("y", examples, 10);
    let w1 = scaled(&bench.input("w1", (inputs, hidden)), 0.05);
    let b1 = bench.input::<f32, _>("b1", hidden);
    let w2 = scaled(&bench.input("w2", (hidden, 10)), 0.05);
    let b2 = bench.input::<f32, _>("b2", 10);
    {
        let x = (*x).clone().into_tensor((Example, Input));
        let y = (*y).clone().into_tensor(Example);
        let mlp = RefCell::new(Mlp {
            w1: w1.clone().into_tensor((Input, Hidden)),
            b1: (*b1).clone().into_tensor(Hidden),
            w2: w2.clone().into_tensor((Hidden, Class)),
            b2: (*b2).clone().into_tensor(Class),
        });
        let loss = move |mlp: &Mlp| {
            let hidden = ((&x * &mlp.w1).sum(Input) + &mlp.b1).relu().eval();
            let scores = ((hidden * &mlp.w2).sum(Hidden) + &mlp.b2).eval();
            scores.cross_entropy(Class, &y).mean(Example)
        };
        bench.peer("typed-dims", move || {
            Step::new(value_and_grad(&loss, &mut *mlp.borrow_mut()), |own| {
                let (w1, w2) = ((&own.w1).order((Input, Hidden)), (&own.w2).order((Hidden, Class)));
                let (b1, b2) = ((&own.b1).order(Hidden), (&own.b2).order(Class));
                joined(&[&w1, &b1, &w2, &b2])
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, ids, variable};
        use burn::nn::loss::CrossEntropyLossConfig;
        use burn::tensor::{activation::relu, module::linear};
        let (x, y) = (constant::<2, _>(&*x), ids(&y));
        let (w1, b1) = (variable::<2, _>(&w1), variable::<1, _>(&*b1));
        let (w2, b2) = (variable::<2, _>(&w2), variable::<1, _>(&*b2));
        let cross_entropy = CrossEntropyLossConfig::new().init(&x.device());
        bench.peer("burn", move || {
            let hidden = relu(linear(x.clone(), w1.clone(), Some(b1.clone())));
            let scores = linear(hidden, w2.clone(), Some(b2.clone()));
            gradients!(cross_entropy.forward(scores, y.clone()), w1, b1, w2, b2)
        });
    }
    let by = vec![candle(&w1), candle(&b1), candle(&w2), candle(&b2)];
    let (x, y) = (candle(&x), candle_ids(&y));
    candle_step(bench, by, move |by| {
        let hidden = x.matmul(&by[0])?.broadcast_add(&by[1])?.relu()?;
        candle_nn::loss::cross_entropy(&hidden.matmul(&by[2])?.broadcast_add(&by[3])?, &y)
    });
}

pub fn mlp_32(bench: &mut Bench) {
    mlp(bench, [32, 64, 32]);
}

pub fn mlp_64(bench: &mut Bench) {
    mlp(bench, [64, 64, 128]);
}

pub fn mlp_256(bench: &mut Bench) {
    mlp(bench, [256, 784, 512]);
}
