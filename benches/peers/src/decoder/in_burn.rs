//! The decoder in burn, with the layers of `burn::nn`.

use super::weights::{LayerWeights, Weights};
use super::{
    ADAM_EPSILON, BASE, BETAS, CONTEXT, DECAY, Decoder, EPSILON, FEAT, FIRST, RATE, SIZES, TEMPERATURE,
    TEXTS, texts,
};
use burn::module::{Module, Param};
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::nn::{Embedding, Linear, RmsNorm, SwiGlu};
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softmax;
use burn::tensor::module::{attention, linear};
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use ndarray::{Array, Array1, Array2, Dimension};

#[derive(Module, Debug)]
struct Layer {
    attention_norm: RmsNorm,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    glu_norm: RmsNorm,
    glu: SwiGlu,
    down: Linear,
}

fn tensor<const R: usize, D: Dimension>(array: &Array<f32, D>, device: &Device) -> Tensor<R> {
    Tensor::from_data(TensorData::new(array.iter().copied().collect::<Vec<_>>(), array.shape()), device)
}

fn parameter<const R: usize, D: Dimension>(array: &Array<f32, D>, device: &Device) -> Param<Tensor<R>> {
    Param::from_tensor(tensor(array, device))
}

fn rms_norm(weight: &Array1<f32>, device: &Device) -> RmsNorm {
    RmsNorm { gamma: parameter(weight, device), epsilon: EPSILON }
}

impl Layer {
    fn new(weights: &LayerWeights, device: &Device) -> Self {
        let map = |weight: &Array2<f32>| Linear { weight: parameter(weight, device), bias: None };
        Layer {
            attention_norm: rms_norm(&weights.attention_norm, device),
            query: map(&weights.query),
            key: map(&weights.key),
            value: map(&weights.value),
            out: map(&weights.out),
            glu_norm: rms_norm(&weights.glu_norm, device),
            glu: SwiGlu { linear_inner: map(&weights.gate), linear_outer: map(&weights.up) },
            down: map(&weights.down),
        }
    }

    /// `attend` takes queries, keys and values with the axes text, head, character and feature.
    fn forward(&self, x: Tensor<3>, attend: impl FnOnce([Tensor<4>; 3]) -> Tensor<4>) -> Tensor<3> {
        let [batch, count, width] = x.dims();
        let y = self.attention_norm.forward(x.clone());
        let heads =
            |map: &Linear| map.forward(y.clone()).reshape([batch, count, SIZES.heads, FEAT]).swap_dims(1, 2);
        let found = attend([heads(&self.query), heads(&self.key), heads(&self.value)]);
        let x = x + self.out.forward(found.swap_dims(1, 2).reshape([batch, count, width]));
        x.clone() + self.down.forward(self.glu.forward(self.glu_norm.forward(x)))
    }
}

#[derive(Module, Debug)]
struct Model {
    /// Also maps features to scores.
    chars: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
}

impl Model {
    fn new(weights: &Weights, device: &Device) -> Self {
        Model {
            chars: Embedding { weight: parameter(&weights.chars, device) },
            layers: weights.layers.iter().map(|layer| Layer::new(layer, device)).collect(),
            norm: rms_norm(&weights.norm, device),
        }
    }

    /// Scores of the character after each position. `attend` takes the index of the layer, and its
    /// queries, keys and values.
    fn forward(
        &self,
        ids: Tensor<2, Int>,
        mut attend: impl FnMut(usize, [Tensor<4>; 3]) -> Tensor<4>,
    ) -> Tensor<3> {
        let mut x = self.chars.forward(ids);
        for (at, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, |heads| attend(at, heads));
        }
        linear(self.norm.forward(x), self.chars.weight.val().transpose(), None)
    }
}

/// Keys and values of a layer, with the axes text, head, character and feature.
type Past = Option<[Tensor<4>; 2]>;

/// The tables that a model needs in addition to its weights.
struct Pass {
    /// Cosines and sines of RoPE for each position and feature. burn's `RotaryEncoding` pairs the
    /// features differently.
    cos: Tensor<2>,
    sin: Tensor<2>,
    /// Whether a key comes after the query, with the axes text, head, query and key of a training
    /// step.
    future: Tensor<4, Bool>,
}

impl Pass {
    fn new(device: &Device) -> Self {
        let future = Tensor::<2, Bool>::tril_mask([CONTEXT, CONTEXT], 0, device);
        let planes = FEAT / 2;
        let angles = |of: fn(f64) -> f64| {
            let angle = |(at, feature)| at as f64 * BASE.powf(-((feature % planes) as f64) / planes as f64);
            let table = Array2::from_shape_fn((CONTEXT, FEAT), |at| of(angle(at)) as f32);
            tensor(&table, device)
        };
        Pass {
            cos: angles(f64::cos),
            sin: angles(f64::sin),
            future: future.unsqueeze::<4>().expand([TEXTS, SIZES.heads, CONTEXT, CONTEXT]),
        }
    }

    /// Applies RoPE to characters that start at position `start`.
    fn turned(&self, x: Tensor<4>, start: usize) -> Tensor<4> {
        let (count, planes) = (x.dims()[2], FEAT / 2);
        let of = |table: &Tensor<2>| table.clone().narrow(0, start, count).unsqueeze::<4>();
        let (a, b) = (x.clone().narrow(3, 0, planes), x.clone().narrow(3, planes, planes));
        x * of(&self.cos) + Tensor::cat(vec![-b, a], 3) * of(&self.sin)
    }

    /// Scores of the character after each position of whole texts.
    fn whole(&self, model: &Model, ids: Tensor<2, Int>) -> Tensor<3> {
        model.forward(ids, |_, [query, key, value]| {
            let (query, key) = (self.turned(query, 0), self.turned(key, 0));
            let scores = query.matmul(key.swap_dims(2, 3)) / (FEAT as f64).sqrt();
            softmax(scores.mask_fill(self.future.clone(), f32::NEG_INFINITY), 3).matmul(value)
        })
    }

    /// Scores of the character after position `at` of each text.
    fn next(&self, model: &Model, ids: Tensor<2, Int>, past: &mut [Past], at: usize) -> Tensor<2> {
        let scores = model.forward(ids, |layer, [query, key, value]| {
            let (query, key) = (self.turned(query, at), self.turned(key, at));
            let [keys, values] = match past[layer].take() {
                Some([keys, values]) => {
                    [Tensor::cat(vec![keys, key], 2), Tensor::cat(vec![values, value], 2)]
                }
                None => [key, value],
            };
            past[layer] = Some([keys.clone(), values.clone()]);
            attention(query, keys, values, None, None, Default::default())
        });
        scores.squeeze_dim(1)
    }
}

pub struct Peer {
    /// On a device with gradients. `None` only during an update.
    model: Option<Model>,
    optimizer: ModuleOptimizer,
    cross_entropy: CrossEntropyLoss,
    training: Pass,
    texts: Tensor<2, Int>,
    next: Tensor<1, Int>,
    /// A model on a device without gradients.
    sampled: Model,
    sampling: Pass,
}

fn ids(ids: Vec<i64>, shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    Tensor::from_data(TensorData::new(ids, shape), device)
}

impl Peer {
    pub fn new(weights: &Weights) -> Self {
        let (plain, device) = (Device::flex(), Device::flex().autodiff());
        let optimizer = AdamWConfig::new()
            .with_beta_1(BETAS.0 as f32)
            .with_beta_2(BETAS.1 as f32)
            .with_epsilon(ADAM_EPSILON as f32)
            .with_weight_decay(DECAY as f32);
        let [texts, next] = [0, 1].map(|shift| {
            let texts = texts(shift).concat().into_iter().map(i64::from).collect();
            ids(texts, [TEXTS, CONTEXT], &device)
        });
        let model = Model::new(weights, &device);
        Peer {
            sampled: model.valid(),
            model: Some(model),
            optimizer: optimizer.init(),
            cross_entropy: CrossEntropyLossConfig::new().init(&device),
            training: Pass::new(&device),
            texts,
            next: next.flatten(0, 1),
            sampling: Pass::new(&plain),
        }
    }

    fn loss_of(&self, model: &Model) -> Tensor<1> {
        let scores = self.training.whole(model, self.texts.clone());
        self.cross_entropy.forward(scores.flatten(0, 1), self.next.clone())
    }

    fn model(&self) -> &Model {
        self.model.as_ref().expect("no step is under way")
    }
}

impl Decoder for Peer {
    fn name(&self) -> &'static str {
        "burn"
    }

    fn loss(&self) -> f32 {
        self.loss_of(self.model()).into_scalar()
    }

    fn step(&mut self) -> f32 {
        let loss = self.loss_of(self.model());
        let gradients = GradientsParams::from_grads(loss.backward(), self.model());
        let model = self.model.take().expect("no step is under way");
        self.model = Some(self.optimizer.step(RATE, model, gradients));
        loss.into_scalar()
    }

    fn scores(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        let mut past: Vec<Past> = vec![None; SIZES.layers];
        let scores = (0..CONTEXT).map(|at| {
            let next = texts.iter().map(|text| i64::from(text[at])).collect();
            let next = ids(next, [texts.len(), 1], &Device::flex());
            let scores = self.sampling.next(&self.sampled, next, &mut past, at).into_data();
            scores.try_to_vec::<f32>().expect("the scores are of type `f32`")
        });
        scores.flatten().collect()
    }

    fn sample(&self, texts: usize, drawn: &mut dyn FnMut()) {
        let mut past: Vec<Past> = vec![None; SIZES.layers];
        let mut next = ids(vec![FIRST.into(); texts], [texts, 1], &Device::flex());
        for at in 0..CONTEXT - 1 {
            let scores = self.sampling.next(&self.sampled, next, &mut past, at);
            next = softmax(scores / TEMPERATURE, 1).categorical(1);
            std::hint::black_box(next.to_data());
            drawn();
        }
    }
}
