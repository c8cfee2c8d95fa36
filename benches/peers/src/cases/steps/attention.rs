//! Causal attention, and a transformer block.

use super::{Step, candle_step, joined, scaled};
use crate::bench::{Bench, candle};
use candle_core::{D, Tensor as Candle};
use std::cell::RefCell;
use std::sync::Arc;
use typed_dims::grad::value_and_grad;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Head;
    struct Query;
    struct Key;
    struct Feat;
    struct Model;
    struct Out;
    struct Wide;
}

pub fn causal(bench: &mut Bench) {
    let shape = (4, 8, 256, 64);
    let [q, k, v] = ["q", "k", "v"].map(|name| bench.input::<f32, _>(name, shape));
    {
        let q = (*q).clone().into_tensor((Batch, Head, Query, Feat));
        let [k, v] = [&k, &v].map(|x| (**x).clone().into_tensor((Batch, Head, Key, Feat)));
        let by = RefCell::new((q, k, v));
        bench.peer("typed-dims", move || {
            let step = value_and_grad(
                |(q, k, v)| {
                    attention(q, k, v, Feat, Key, 0.125, Key.le(Query)).sum((Batch, Head, Query, Feat))
                },
                &mut *by.borrow_mut(),
            );
            Step::new(step, |(q, k, v)| {
                let q = q.order((Batch, Head, Query, Feat));
                let [k, v] = [k, v].map(|x| x.order((Batch, Head, Key, Feat)));
                joined(&[&q, &k, &v])
            })
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{gradients, variable};
        use burn::tensor::{Bool, Device, Tensor, activation::softmax};
        let [q, k, v] = [&q, &k, &v].map(|x| variable::<4, _>(&**x));
        let mask = Tensor::<2, Bool>::tril_mask([256, 256], 0, &Device::flex().autodiff());
        let mask = mask.unsqueeze::<4>().expand([4, 8, 256, 256]);
        bench.peer("burn", move || {
            let scores = q.clone().matmul(k.clone().swap_dims(2, 3)) * 0.125;
            let scores = scores.mask_fill(mask.clone(), f32::NEG_INFINITY);
            gradients!(softmax(scores, 3).matmul(v.clone()).sum(), q, k, v)
        });
    }
    // The mask is added to the scores, because `where_cond` takes longer.
    let mask = Array2::from_shape_fn((256, 256), |(q, k)| if k > q { f32::NEG_INFINITY } else { 0.0 });
    let mask = candle(&mask);
    candle_step(bench, vec![candle(&q), candle(&k), candle(&v)], move |by| {
        let scores = (by[0].matmul(&by[1].t()?)? * 0.125)?.broadcast_add(&mask)?;
        candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&by[2])?.sum_all()
    });
}

const TEXTS: usize = 4;
const TOKENS: usize = 128;
const WIDTH: usize = 256;
const HEADS: usize = 8;
const FEAT: usize = WIDTH / HEADS;

/// A pre-norm transformer block: multi-head attention, and two linear maps with `gelu_tanh` between
/// them.
#[derive(Parameters)]
struct Block {
    gain: [Tensor<f32, (Model,)>; 2],
    bias: [Tensor<f32, (Model,)>; 2],
    query: Tensor<f32, (Head, Feat, Model)>,
    key: Tensor<f32, (Head, Feat, Model)>,
    value: Tensor<f32, (Head, Feat, Model)>,
    out: Tensor<f32, (Head, Feat, Out)>,
    wide: Tensor<f32, (Model, Wide)>,
    wide_bias: Tensor<f32, (Wide,)>,
    narrow: Tensor<f32, (Wide, Out)>,
    narrow_bias: Tensor<f32, (Out,)>,
}

type Tokens = Tensor<f32, (Batch, Query, Model)>;

impl Block {
    fn loss(&self, x: &Tokens, target: &Tokens) -> Tensor<f32, ()> {
        let normal = (x.layer_norm(Model, 1e-5) * &self.gain[0] + &self.bias[0]).eval();
        let q = (&normal * &self.query).sum(Model);
        let normal = normal.rename(Query, Key).eval();
        let (k, v) = ((&normal * &self.key).sum(Model), (&normal * &self.value).sum(Model));
        let scale = (self.query.size(Feat) as f32).powf(-0.5);
        let heads = attention(&q, &k, &v, Feat, Key, scale, true);
        let x = (x + (heads * &self.out).sum((Head, Feat)).rename(Out, Model)).eval();
        let normal = ((&x).layer_norm(Model, 1e-5) * &self.gain[1] + &self.bias[1]).eval();
        let wide = ((normal * &self.wide).sum(Model) + &self.wide_bias).gelu_tanh().eval();
        let narrow = ((wide * &self.narrow).sum(Wide) + &self.narrow_bias).rename(Out, Model);
        (x + narrow).mse_loss(target).mean((Batch, Query, Model))
    }

    fn elements(&self) -> Vec<f64> {
        let [g1, g2] = self.gain.each_ref().map(|gain| gain.order(Model));
        let [b1, b2] = self.bias.each_ref().map(|bias| bias.order(Model));
        let heads = [&self.query, &self.key, &self.value];
        let [query, key, value] = heads.map(|map| map.order((Model, Head, Feat)));
        let out = (&self.out).order((Head, Feat, Out));
        let (wide, wide_bias) = ((&self.wide).order((Model, Wide)), (&self.wide_bias).order(Wide));
        let (narrow, narrow_bias) = ((&self.narrow).order((Wide, Out)), (&self.narrow_bias).order(Out));
        joined(&[&g1, &b1, &query, &key, &value, &out, &g2, &b2, &wide, &wide_bias, &narrow, &narrow_bias])
    }
}

pub fn block(bench: &mut Bench) {
    let [x, target] = ["x", "target"].map(|name| bench.input::<f32, _>(name, (TEXTS, TOKENS, WIDTH)));
    let small = |weight: Arc<Array2<f32>>| scaled(&weight, 0.05);
    let [query, key, value, out] =
        ["query", "key", "value", "out"].map(|name| small(bench.input(name, (WIDTH, WIDTH))));
    let (wide, narrow) = (bench.input("wide", (WIDTH, 4 * WIDTH)), bench.input("narrow", (4 * WIDTH, WIDTH)));
    let [wide, narrow] = [wide, narrow].map(small);
    let vectors = ["g1", "b1", "g2", "b2", "narrow_bias"];
    let [g1, b1, g2, b2, narrow_bias] = vectors.map(|name| bench.input::<f32, _>(name, WIDTH));
    let wide_bias = bench.input::<f32, _>("wide_bias", 4 * WIDTH);
    {
        let vector = |x: &Array1<f32>| x.clone().into_tensor(Model);
        let projection = |weight: &Array2<f32>| {
            let by_head = weight.t().as_standard_layout().into_owned();
            by_head
                .into_shape_with_order((HEADS, FEAT, WIDTH))
                .expect("the array is contiguous")
                .into_tensor((Head, Feat, Model))
        };
        let block = RefCell::new(Block {
            gain: [vector(&g1), vector(&g2)],
            bias: [vector(&b1), vector(&b2)],
            query: projection(&query),
            key: projection(&key),
            value: projection(&value),
            out: out
                .to_shape((HEADS, FEAT, WIDTH))
                .expect("the sizes fit")
                .into_owned()
                .into_tensor((Head, Feat, Out)),
            wide: wide.clone().into_tensor((Model, Wide)),
            wide_bias: (*wide_bias).clone().into_tensor(Wide),
            narrow: narrow.clone().into_tensor((Wide, Out)),
            narrow_bias: (*narrow_bias).clone().into_tensor(Out),
        });
        let [x, target] = [&x, &target].map(|x| (**x).clone().into_tensor((Batch, Query, Model)));
        bench.peer("typed-dims", move || {
            let step = value_and_grad(|block| block.loss(&x, &target), &mut *block.borrow_mut());
            Step::new(step, Block::elements)
        });
    }
    #[cfg(feature = "burn")]
    {
        use super::in_burn::{constant, gradients, variable};
        use burn::nn::loss::{MseLoss, Reduction};
        use burn::tensor::activation::{gelu_approximate, softmax};
        use burn::tensor::module::{layer_norm, linear};
        let [x, target] = [&x, &target].map(|x| constant::<3, _>(&**x));
        let [g1, b1, g2, b2, narrow_bias, wide_bias] =
            [&g1, &b1, &g2, &b2, &narrow_bias, &wide_bias].map(|x| variable::<1, _>(&**x));
        let [query, key, value, out, wide, narrow] =
            [&query, &key, &value, &out, &wide, &narrow].map(variable::<2, _>);
        bench.peer("burn", move || {
            let normal = layer_norm(x.clone(), g1.clone(), Some(b1.clone()), 1e-5);
            let [q, k, v] = [&query, &key, &value].map(|weight| {
                let projected = linear(normal.clone(), weight.clone(), None);
                projected.reshape([TEXTS, TOKENS, HEADS, FEAT]).swap_dims(1, 2)
            });
            let scores = q.matmul(k.swap_dims(2, 3)) * (FEAT as f64).powf(-0.5);
            let heads = softmax(scores, 3).matmul(v).swap_dims(1, 2).reshape([TEXTS, TOKENS, WIDTH]);
            let x = x.clone() + linear(heads, out.clone(), None);
            let normal = layer_norm(x.clone(), g2.clone(), Some(b2.clone()), 1e-5);
            let inner = gelu_approximate(linear(normal, wide.clone(), Some(wide_bias.clone())));
            let y = x + linear(inner, narrow.clone(), Some(narrow_bias.clone()));
            let loss = MseLoss::new().forward(y, target.clone(), Reduction::Mean);
            gradients!(loss, g1, b1, query, key, value, out, g2, b2, wide, wide_bias, narrow, narrow_bias)
        });
    }
    let by = vec![
        candle(&g1),
        candle(&b1),
        candle(&query),
        candle(&key),
        candle(&value),
        candle(&out),
        candle(&g2),
        candle(&b2),
        candle(&wide),
        candle(&wide_bias),
        candle(&narrow),
        candle(&narrow_bias),
    ];
    // One row for each token: a batched product would copy the weights.
    let rows = |x: &Array3<f32>| candle(x).reshape((TEXTS * TOKENS, WIDTH)).expect("the sizes fit");
    let (x, target) = (rows(&x), rows(&target));
    candle_step(bench, by, move |by| {
        let [g1, b1, query, key, value, out, g2, b2, wide, wide_bias, narrow, narrow_bias] = by else {
            unreachable!("these are the variables");
        };
        let norm = |x: &Candle, gain, bias| candle_nn::ops::layer_norm_slow(x, gain, bias, 1e-5);
        let normal = norm(&x, g1, b1)?;
        let heads = |weight: &Candle| {
            let projected = normal.matmul(weight)?.reshape((TEXTS, TOKENS, HEADS, FEAT))?;
            projected.transpose(1, 2)?.contiguous()
        };
        let scores = (heads(query)?.matmul(&heads(key)?.t()?)? * (FEAT as f64).powf(-0.5))?;
        let heads = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&heads(value)?)?;
        let heads = heads.transpose(1, 2)?.reshape((TEXTS * TOKENS, WIDTH))?;
        let x = (&x + heads.matmul(out)?)?;
        let inner = norm(&x, g2, b2)?.matmul(wide)?.broadcast_add(wide_bias)?.gelu()?;
        let y = (x + inner.matmul(narrow)?.broadcast_add(narrow_bias)?)?;
        candle_nn::loss::mse(&y, &target)
    });
}
