//! Training steps: the value and the gradient of a loss. The results that are compared are the gradients.

use crate::bench::{Bench, Outcome, candle, candle_ids};
use candle_core::{D, Tensor as Candle, Var};
use ndarray::{Array, Dimension};
use std::sync::Arc;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct Input;
    struct Hidden;
    struct Class;
    struct N;
    struct Batch;
    struct Head;
    struct Query;
    struct Key;
    struct Feat;
    struct Word;
}

/// A loss and a gradient; the elements of the gradient are the result.
struct Step<G> {
    _loss: f32,
    gradient: G,
    elements: fn(&G) -> Vec<f64>,
}

impl<G> Step<G> {
    fn new((loss, gradient): (f32, G), elements: fn(&G) -> Vec<f64>) -> Self {
        Step { _loss: loss, gradient, elements }
    }
}

impl<G> Outcome for Step<G> {
    fn elements(&self) -> Vec<f64> {
        (self.elements)(&self.gradient)
    }
}

fn numbers<D: Dimension>(array: &Array<f32, D>) -> impl Iterator<Item = f64> {
    array.iter().map(|&element| f64::from(element))
}

/// The gradients by some variables, one behind the other.
struct Gradients(Vec<Candle>);

impl Outcome for Gradients {
    fn elements(&self) -> Vec<f64> {
        self.0.iter().flat_map(Outcome::elements).collect()
    }
}

/// Adds candle's step.
fn candle_step(
    bench: &mut Bench,
    by: Vec<Candle>,
    loss: impl Fn(&[Var]) -> candle_core::Result<Candle> + 'static,
) {
    let by: Vec<Var> = by.iter().map(|x| Var::from_tensor(x).expect("there is memory")).collect();
    let step = move || -> candle_core::Result<Gradients> {
        let loss = loss(&by)?;
        let mut store = loss.backward()?;
        std::hint::black_box(loss.to_scalar::<f32>()?);
        Ok(Gradients(by.iter().map(|x| store.remove(x).expect("the loss depends on it")).collect()))
    };
    bench.peer("candle", move || step().expect("shapes agree"));
}

#[cfg(feature = "burn")]
mod burn_steps {
    use super::*;
    use burn::tensor::{Int, Tensor};

    /// A variable.
    pub fn variable<const R: usize, D: Dimension>(array: &Array<f32, D>) -> Tensor<R> {
        crate::bench::burn::<R, _, _>(array).autodiff().require_grad()
    }

    /// A constant beside variables.
    pub fn constant<const R: usize, D: Dimension>(array: &Array<f32, D>) -> Tensor<R> {
        crate::bench::burn::<R, _, _>(array).autodiff()
    }

    /// One number for each example, as a column.
    pub fn labels(labels: &Array1<usize>) -> Tensor<2, Int> {
        let data: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
        let data = burn::tensor::TensorData::new(data, [labels.len(), 1]);
        Tensor::from_data(data, &burn::tensor::Device::flex().autodiff())
    }

    /// The elements of gradients, one behind the other.
    pub struct Parts(pub Vec<Box<dyn Outcome>>);

    impl Outcome for Parts {
        fn elements(&self) -> Vec<f64> {
            self.0.iter().flat_map(|part| part.elements()).collect()
        }
    }

    /// The mean of `-log softmax(scores)[label]`.
    pub fn cross_entropy(scores: Tensor<2>, labels: &Tensor<2, Int>) -> Tensor<1> {
        -burn::tensor::activation::log_softmax(scores, 1).gather(1, labels.clone()).mean()
    }

    /// The loss is read, and its gradients by variables are taken.
    macro_rules! gradients {
        ($loss:expr, $($by:expr),*) => {{
            let loss = $loss;
            let mut all = loss.backward();
            std::hint::black_box(loss.into_scalar::<f32>());
            Parts(vec![$(Box::new($by.grad_remove(&mut all).expect("the loss depends on it"))),*])
        }};
    }
    pub(super) use gradients;
}

#[derive(Parameters)]
struct Mlp {
    w1: Tensor<f32, (Input, Hidden)>,
    b1: Tensor<f32, (Hidden,)>,
    w2: Tensor<f32, (Hidden, Class)>,
    b2: Tensor<f32, (Class,)>,
}

fn mlp(bench: &mut Bench, [examples, inputs, hidden]: [usize; 3]) {
    let small = |x: Arc<Array2<f32>>| x.mapv(|x| 0.05 * x);
    let x = bench.input::<f32, _>("x", (examples, inputs));
    let y = bench.ids("y", examples, 10);
    let (w1, b1) = (small(bench.input("w1", (inputs, hidden))), bench.input::<f32, _>("b1", hidden));
    let (w2, b2) = (small(bench.input("w2", (hidden, 10))), bench.input::<f32, _>("b2", 10));
    {
        let x = (*x).clone().into_tensor((Example, Input));
        let y = (*y).clone().into_tensor(Example);
        let mlp = Mlp {
            w1: w1.clone().into_tensor((Input, Hidden)),
            b1: (*b1).clone().into_tensor(Hidden),
            w2: w2.clone().into_tensor((Hidden, Class)),
            b2: (*b2).clone().into_tensor(Class),
        };
        let loss = move |mlp: &Mlp| {
            let hidden = ((&x * &mlp.w1).sum(Input) + &mlp.b1).relu().eval();
            let scores = ((hidden * &mlp.w2).sum(Hidden) + &mlp.b2).eval();
            scores.cross_entropy(Class, &y).mean(Example)
        };
        bench.peer("typed-dims", move || {
            Step::new(value_and_grad(&loss, &mlp), |own| {
                let (w1, w2) = ((&own.w1).order((Input, Hidden)), (&own.w2).order((Hidden, Class)));
                let (b1, b2) = ((&own.b1).order(Hidden), (&own.b2).order(Class));
                numbers(&w1).chain(numbers(&b1)).chain(numbers(&w2)).chain(numbers(&b2)).collect()
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, constant, cross_entropy, gradients, labels, variable};
        let (x, y) = (constant::<2, _>(&*x), labels(&y));
        let (w1, b1) = (variable::<2, _>(&w1), variable::<1, _>(&*b1));
        let (w2, b2) = (variable::<2, _>(&w2), variable::<1, _>(&*b2));
        bench.peer("burn", move || {
            let hidden = x.clone().matmul(w1.clone()) + b1.clone().unsqueeze();
            let hidden = burn::tensor::activation::relu(hidden);
            let scores = hidden.matmul(w2.clone()) + b2.clone().unsqueeze();
            gradients!(cross_entropy(scores, &y), w1, b1, w2, b2)
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

pub fn chain(bench: &mut Bench) {
    let [a, b, c] = ["a", "b", "c"].map(|name| bench.input::<f32, _>(name, 1_000_000));
    {
        let [a, b, c] = [&a, &b, &c].map(|x| (**x).clone().into_tensor(N));
        bench.peer("typed-dims", move || {
            let of = (&a, &b, &c);
            Step::new(
                value_and_grad(|(a, b, c)| ((a * b + c).tanh() * a.sigmoid()).sum(N), of),
                |(a, b, c)| {
                    [a, b, c].into_iter().flat_map(|x| numbers(&x.order(N)).collect::<Vec<_>>()).collect()
                },
            )
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, gradients, variable};
        let [a, b, c] = [&a, &b, &c].map(|x| variable::<1, _>(&**x));
        bench.peer("burn", move || {
            let share = burn::tensor::activation::sigmoid(a.clone());
            gradients!(((a.clone() * b.clone() + c.clone()).tanh() * share).sum(), a, b, c)
        });
    }
    let by = vec![candle(&a), candle(&b), candle(&c)];
    candle_step(bench, by, |by| {
        let share = candle_nn::ops::sigmoid(&by[0])?;
        (by[0].mul(&by[1])?.add(&by[2])?.tanh()? * share)?.sum_all()
    });
}

pub fn cross_entropy(bench: &mut Bench) {
    let scores = bench.input::<f32, _>("scores", (4096, 1024));
    let labels = bench.ids("labels", 4096, 1024);
    {
        let scores = (*scores).clone().into_tensor((Example, Class));
        let labels = (*labels).clone().into_tensor(Example);
        bench.peer("typed-dims", move || {
            Step::new(value_and_grad(|s| s.cross_entropy(Class, &labels).mean(Example), &scores), |own| {
                numbers(&own.order((Example, Class))).collect()
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, gradients, variable};
        let (scores, labels) = (variable::<2, _>(&*scores), burn_steps::labels(&labels));
        bench.peer("burn", move || gradients!(burn_steps::cross_entropy(scores.clone(), &labels), scores));
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
        bench.peer("typed-dims", move || {
            let loss = |(x, g, b): (&_, &_, &_)| {
                let x: &Tensor<f32, (Example, Feat)> = x;
                let (g, b): (&Tensor<f32, (Feat,)>, &Tensor<f32, (Feat,)>) = (g, b);
                let y = (x.layer_norm(Feat, 1e-5) * g + b).eval();
                (y * &weight).sum((Example, Feat))
            };
            Step::new(value_and_grad(loss, (&x, &gain, &bias)), |(x, g, b)| {
                let (x, g, b) = (x.order((Example, Feat)), g.order(Feat), b.order(Feat));
                numbers(&x).chain(numbers(&g)).chain(numbers(&b)).collect()
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, constant, gradients, variable};
        let (x, weight) = (variable::<2, _>(&*x), constant::<2, _>(&*weight));
        let (gain, bias) = (variable::<1, _>(&*gain), variable::<1, _>(&*bias));
        bench.peer("burn", move || {
            let centred = x.clone() - x.clone().mean_dim(1);
            let variance = centred.clone().powf_scalar(2.0).mean_dim(1);
            let normal = centred / (variance + 1e-5).sqrt();
            let y = normal * gain.clone().unsqueeze() + bias.clone().unsqueeze();
            gradients!((y * weight.clone()).sum(), x, gain, bias)
        });
    }
    let by = vec![candle(&x), candle(&gain), candle(&bias)];
    let weight = candle(&weight);
    candle_step(bench, by, move |by| {
        let centred = by[0].broadcast_sub(&by[0].mean_keepdim(1)?)?;
        let scale = (centred.sqr()?.mean_keepdim(1)? + 1e-5)?.sqrt()?;
        let normal = centred.broadcast_div(&scale)?;
        (normal.broadcast_mul(&by[1])?.broadcast_add(&by[2])? * &weight)?.sum_all()
    });
}

pub fn attention_causal(bench: &mut Bench) {
    let [q, k, v] = ["q", "k", "v"].map(|name| bench.input::<f32, _>(name, (4, 8, 256, 64)));
    {
        let q = (*q).clone().into_tensor((Batch, Head, Query, Feat));
        let [k, v] = [&k, &v].map(|x| (**x).clone().into_tensor((Batch, Head, Key, Feat)));
        bench.peer("typed-dims", move || {
            let loss = |(q, k, v): (&_, &_, &_)| {
                let q: &Tensor<f32, (Batch, Head, Query, Feat)> = q;
                let (k, v): (&Tensor<f32, (Batch, Head, Key, Feat)>, &Tensor<f32, (Batch, Head, Key, Feat)>) =
                    (k, v);
                attention(q, k, v, Feat, Key, 0.125, Key.le(Query)).sum((Batch, Head, Query, Feat))
            };
            Step::new(value_and_grad(loss, (&q, &k, &v)), |(q, k, v)| {
                let q = q.order((Batch, Head, Query, Feat));
                let [k, v] = [k, v].map(|x| x.order((Batch, Head, Key, Feat)));
                numbers(&q).chain(numbers(&k)).chain(numbers(&v)).collect()
            })
        });
    }
    let future = Array2::from_shape_fn((256, 256), |(query, key)| u8::from(key > query));
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, gradients, variable};
        let [q, k, v] = [&q, &k, &v].map(|x| variable::<4, _>(&**x));
        let device = burn::tensor::Device::flex().autodiff();
        let mask = burn::tensor::Tensor::<2, burn::tensor::Bool>::tril_mask([256, 256], 0, &device);
        let mask = mask.unsqueeze::<4>().expand([4, 8, 256, 256]);
        bench.peer("burn", move || {
            let scores = q.clone().matmul(k.clone().swap_dims(2, 3)) * 0.125;
            let scores = scores.mask_fill(mask.clone(), f32::NEG_INFINITY);
            let out = burn::tensor::activation::softmax(scores, 3).matmul(v.clone());
            gradients!(out.sum(), q, k, v)
        });
    }
    let future = candle(&future);
    let mask =
        future.broadcast_as((4, 8, 256, 256)).and_then(|mask| mask.contiguous()).expect("there is memory");
    let low = Candle::full(f32::NEG_INFINITY, (4, 8, 256, 256), mask.device()).expect("there is memory");
    candle_step(bench, vec![candle(&q), candle(&k), candle(&v)], move |by| {
        let scores = (by[0].matmul(&by[1].t()?)? * 0.125)?;
        let scores = mask.where_cond(&low, &scores)?;
        candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&by[2])?.sum_all()
    });
}

pub fn embedding(bench: &mut Bench) {
    let table = bench.input::<f32, _>("table", (50_000, 128));
    let weight = bench.input::<f32, _>("weight", (4096, 128));
    let ids = bench.ids("ids", 4096, 50_000);
    {
        let table = (*table).clone().into_tensor((Word, Feat));
        let weight = (*weight).clone().into_tensor((Example, Feat));
        let ids = (*ids).clone().into_tensor(Example);
        bench.peer("typed-dims", move || {
            Step::new(
                value_and_grad(|t| (t.take(Word, &ids) * &weight).sum((Example, Feat)), &table),
                |own| numbers(&own.order((Word, Feat))).collect(),
            )
        });
    }
    #[cfg(feature = "burn")]
    {
        use burn_steps::{Parts, constant, gradients, variable};
        let (table, weight) = (variable::<2, _>(&*table), constant::<2, _>(&*weight));
        let ids = burn_steps::labels(&ids).squeeze_dim::<1>(1);
        bench.peer("burn", move || {
            gradients!((table.clone().select(0, ids.clone()) * weight.clone()).sum(), table)
        });
    }
    let (weight, ids) = (candle(&weight), candle_ids(&ids));
    candle_step(bench, vec![candle(&table)], move |by| (by[0].index_select(&ids, 0)? * &weight)?.sum_all());
}
