//! The decoder in candle, based on `candle_transformers::models::llama`.

use super::weights::{LayerWeights, Weights};
use super::{
    ADAM_EPSILON, BASE, BETAS, CONTEXT, DECAY, Decoder, EPSILON, FEAT, FIRST, RATE, SIZES, TEMPERATURE,
    TEXTS, texts,
};
use crate::bench::candle;
use candle_core::{D, Device, Result, Tensor, Var};
use candle_nn::kv_cache::KvCache;
use candle_nn::ops::{softmax, softmax_last_dim};
use candle_nn::rotary_emb::{rope, rope_slow};
use candle_nn::{AdamW, Embedding, Linear, Module, Optimizer, ParamsAdamW, RmsNorm, loss::cross_entropy};
use ndarray::{Array1, Array2};
use rand::SeedableRng;
use rand::distr::{Distribution, weighted::WeightedIndex};
use rand::rngs::StdRng;

struct Layer {
    attention_norm: RmsNorm,
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    glu_norm: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
}

/// Either `RmsNorm::forward_diff`, which can be differentiated, or `RmsNorm::forward`, which
/// cannot.
type Norm = fn(&RmsNorm, &Tensor) -> Result<Tensor>;

impl Layer {
    fn new(weights: &LayerWeights, variable: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self> {
        let mut norm = |weight: &Array1<f32>| -> Result<RmsNorm> {
            Ok(RmsNorm::new(variable(candle(weight))?, EPSILON))
        };
        let (attention_norm, glu_norm) = (norm(&weights.attention_norm)?, norm(&weights.glu_norm)?);
        // The axes of the weight of a `Linear` are the output and the input.
        let mut linear = |weight: &Array2<f32>| -> Result<Linear> {
            Ok(Linear::new(variable(candle(weight).t()?.contiguous()?)?, None))
        };
        Ok(Layer {
            attention_norm,
            query: linear(&weights.query)?,
            key: linear(&weights.key)?,
            value: linear(&weights.value)?,
            out: linear(&weights.out)?,
            glu_norm,
            gate: linear(&weights.gate)?,
            up: linear(&weights.up)?,
            down: linear(&weights.down)?,
        })
    }

    /// `attend` takes queries, keys and values with the axes text, head, character and feature.
    fn apply(
        &self,
        x: &Tensor,
        norm: Norm,
        attend: impl FnOnce([Tensor; 3]) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let (batch, count, width) = x.dims3()?;
        let y = norm(&self.attention_norm, x)?;
        let heads = |map: &Linear| {
            map.forward(&y)?.reshape((batch, count, SIZES.heads, FEAT))?.transpose(1, 2)?.contiguous()
        };
        let found = attend([heads(&self.query)?, heads(&self.key)?, heads(&self.value)?])?;
        let found = found.transpose(1, 2)?.reshape((batch, count, width))?;
        let x = (x + self.out.forward(&found)?)?;
        let y = norm(&self.glu_norm, &x)?;
        let inner = (self.gate.forward(&y)?.silu()? * self.up.forward(&y)?)?;
        x + self.down.forward(&inner)?
    }
}

struct Model {
    chars: Embedding,
    layers: Vec<Layer>,
    norm: RmsNorm,
    /// The same table as `chars`.
    head: Linear,
    cos: Tensor,
    sin: Tensor,
    /// Added to scores: negative infinity where the key comes after the query.
    mask: Tensor,
}

impl Model {
    /// `variable` turns a tensor into a weight.
    fn new(weights: &Weights, variable: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Self> {
        let chars = variable(candle(&weights.chars))?;
        let planes = FEAT / 2;
        let angle = |(at, plane): (usize, usize)| {
            let turn = at as f64 * BASE.powf(-(plane as f64) / planes as f64);
            (turn.cos() as f32, turn.sin() as f32)
        };
        let (cos, sin) = (
            Array2::from_shape_fn((CONTEXT, planes), |at| angle(at).0),
            Array2::from_shape_fn((CONTEXT, planes), |at| angle(at).1),
        );
        let hidden = |(query, key)| if key > query { f32::NEG_INFINITY } else { 0.0 };
        let mask = Array2::from_shape_fn((CONTEXT, CONTEXT), hidden);
        let layer = |layer| Layer::new(layer, variable);
        Ok(Model {
            layers: weights.layers.iter().map(layer).collect::<Result<_>>()?,
            norm: RmsNorm::new(variable(candle(&weights.norm))?, EPSILON),
            head: Linear::new(chars.clone(), None),
            chars: Embedding::new(chars, SIZES.width),
            cos: candle(&cos),
            sin: candle(&sin),
            mask: candle(&mask),
        })
    }

    /// Scores of the character after each position of whole texts, with differentiable operations.
    fn whole(&self, texts: &Tensor) -> Result<Tensor> {
        let norm: Norm = RmsNorm::forward_diff;
        let mut x = self.chars.forward(texts)?;
        for layer in &self.layers {
            x = layer.apply(&x, norm, |[query, key, value]| {
                let turned = |x: &Tensor| rope_slow(x, &self.cos, &self.sin);
                let scores = (turned(&query)?.matmul(&turned(&key)?.t()?)? / (FEAT as f64).sqrt())?;
                softmax(&scores.broadcast_add(&self.mask)?, D::Minus1)?.matmul(&value)
            })?;
        }
        self.head.forward(&norm(&self.norm, &x)?)
    }

    fn caches(&self) -> Vec<KvCache> {
        self.layers.iter().map(|_| KvCache::new(2, CONTEXT)).collect()
    }

    /// Reads one more character of each text, and returns the scores of the character after it, one
    /// row per text.
    fn next(&self, ids: &[u32], caches: &mut [KvCache]) -> Result<Tensor> {
        let norm: Norm = RmsNorm::forward;
        let mut x = self.chars.forward(&Tensor::from_slice(ids, (ids.len(), 1), &Device::Cpu)?)?;
        for (layer, cache) in self.layers.iter().zip(caches) {
            x = layer.apply(&x, norm, |[query, key, value]| {
                let at = cache.current_seq_len();
                let (cos, sin) = (self.cos.narrow(0, at, 1)?, self.sin.narrow(0, at, 1)?);
                let (query, key) = (rope(&query, &cos, &sin)?, rope(&key, &cos, &sin)?);
                let (keys, values) = cache.append(&key, &value)?;
                let scores = (query.matmul(&keys.t()?)? / (FEAT as f64).sqrt())?;
                softmax_last_dim(&scores)?.matmul(&values)
            })?;
        }
        self.head.forward(&norm(&self.norm, &x)?)?.squeeze(1)
    }
}

pub struct Peer {
    /// A model whose weights are variables.
    training: Model,
    optimizer: AdamW,
    /// A model whose weights are not variables, so that no graph is built.
    sampling: Model,
    texts: Tensor,
    next: Tensor,
}

impl Peer {
    pub fn new(weights: &Weights) -> Result<Self> {
        let mut variables = Vec::new();
        let training = Model::new(weights, &mut |weight| {
            let variable = Var::from_tensor(&weight)?;
            variables.push(variable.clone());
            Ok(variable.into_inner())
        })?;
        let params =
            ParamsAdamW { lr: RATE, beta1: BETAS.0, beta2: BETAS.1, eps: ADAM_EPSILON, weight_decay: DECAY };
        let ids = |shift| Tensor::from_vec(texts(shift).concat(), (TEXTS, CONTEXT), &Device::Cpu);
        Ok(Peer {
            training,
            optimizer: AdamW::new(variables, params)?,
            sampling: Model::new(weights, &mut Ok)?,
            texts: ids(0)?,
            next: ids(1)?.flatten_all()?,
        })
    }

    fn loss_of_texts(&self) -> Result<Tensor> {
        cross_entropy(&self.training.whole(&self.texts)?.flatten_to(1)?, &self.next)
    }

    fn trained(&mut self) -> Result<f32> {
        let loss = self.loss_of_texts()?;
        self.optimizer.backward_step(&loss)?;
        loss.to_scalar()
    }

    fn scored(&self, texts: &[Vec<u32>]) -> Result<Vec<f32>> {
        let mut caches = self.sampling.caches();
        let mut scores = Vec::new();
        for at in 0..CONTEXT {
            let ids: Vec<u32> = texts.iter().map(|text| text[at]).collect();
            scores.extend(self.sampling.next(&ids, &mut caches)?.flatten_all()?.to_vec1::<f32>()?);
        }
        Ok(scores)
    }

    fn sampled(&self, texts: usize, drawn: &mut dyn FnMut()) -> Result<()> {
        let mut rng = StdRng::seed_from_u64(0);
        let (mut caches, mut ids) = (self.sampling.caches(), vec![FIRST; texts]);
        for _ in 1..CONTEXT {
            let scores = (self.sampling.next(&ids, &mut caches)? / f64::from(TEMPERATURE))?;
            for (id, shares) in ids.iter_mut().zip(softmax_last_dim(&scores)?.to_vec2::<f32>()?) {
                *id = WeightedIndex::new(shares).expect("shares are positive").sample(&mut rng) as u32;
            }
            drawn();
        }
        Ok(())
    }
}

impl Decoder for Peer {
    fn name(&self) -> &'static str {
        "candle"
    }

    fn loss(&self) -> f32 {
        self.loss_of_texts().and_then(|loss| loss.to_scalar()).expect("shapes agree")
    }

    fn step(&mut self) -> f32 {
        self.trained().expect("shapes agree")
    }

    fn scores(&self, texts: &[Vec<u32>]) -> Vec<f32> {
        self.scored(texts).expect("shapes agree")
    }

    fn sample(&self, texts: usize, drawn: &mut dyn FnMut()) {
        self.sampled(texts, drawn).expect("shapes agree");
    }
}
