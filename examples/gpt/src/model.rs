//! The decoder, in declared dims: pre-norm layers of causal attention and SwiGLU.
//!
//! A. Vaswani et al., 2017, "Attention is all you need"; J. Su et al., 2021, "RoFormer" (RoPE); B.
//! Zhang, R. Sennrich, 2019, "Root mean square layer normalization"; N. Shazeer, 2020, "GLU
//! variants improve Transformer"; O. Press, L. Wolf, 2017, "Using the output embedding" (the output
//! layer shares the embedding's weights).

use typed_dims::grad::loss_and_grad;
use typed_dims::nn::{Embedding, KeyValues, Projection, RmsNorm, Rope, SwiGlu};
use typed_dims::prelude::*;

dims! {
    /// Texts in a batch.
    pub struct Batch;
    /// Positions in a text.
    pub struct Token;
    /// Positions that a token attends to.
    pub struct Key;
    /// Characters of the vocabulary.
    pub struct Char;
    /// Features of a token.
    pub struct Width;
    /// Features inside the feed-forward network.
    pub struct Inner;
    /// Attention heads.
    pub struct Head;
    /// Features of a query, a key or a value.
    pub struct Feat;
}

/// The characters of texts, as indices into the vocabulary.
pub type Texts = Tensor<u32, (Batch, Token)>;
/// Features of each token.
pub type Features = Tensor<f32, (Batch, Token, Width)>;
/// Scores of the next character after each token.
pub type Scores = Tensor<f32, (Batch, Token, Char)>;

/// The base of RoPE: per token, plane `i` of `n` turns by `BASE^(-i / n)` radians.
const BASE: f64 = 10_000.0;
/// The standard deviation of most initial weights (A. Radford et al., 2019).
const DEVIATION: f32 = 0.02;

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of distinct characters.
    pub chars: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of attention heads.
    pub heads: usize,
    /// Features of a token, a multiple of `2 * heads`.
    pub width: usize,
    /// Features inside the feed-forward network.
    pub inner: usize,
}

type Queries = Tensor<f32, (Batch, Token, Head, Feat)>;

/// Causal self-attention, without biases.
#[derive(Clone, Parameters)]
pub struct Attention {
    /// Projects to queries.
    pub query: Projection<(Width,), (Head, Feat)>,
    /// Projects to keys.
    pub key: Projection<(Width,), (Head, Feat)>,
    /// Projects to values.
    pub value: Projection<(Width,), (Head, Feat)>,
    /// Projects the results of the heads back to features.
    pub out: Projection<(Head, Feat), (Width,)>,
}

impl Attention {
    /// Causal attention within whole texts.
    fn whole(&self, x: &Features, rope: &Rope<Token, Feat>) -> Features {
        let query = rope.apply(&self.query.apply(x), 0);
        let key = rope.apply(&self.key.apply(x), 0).rename(Token, Key);
        let value = self.value.apply(x).rename(Token, Key);
        self.out.apply(&attention(&query, key, value, Feat, Key, scale(&query), Key.le(Token)))
    }

    /// Causal attention of new tokens to the tokens in the cache and to each other. Adds the new
    /// tokens to the cache.
    fn cached(&self, x: &Features, rope: &Rope<Token, Feat>, past: &mut Past) -> Features {
        let start = past.len();
        let query = rope.apply(&self.query.apply(x), start);
        let key = rope.apply(&self.key.apply(x), start).rename(Token, Key);
        past.push(key, self.value.apply(x).rename(Token, Key));
        let mask = (Key - Token).le(start as isize);
        self.out.apply(&attention(&query, past.keys(), past.values(), Feat, Key, scale(&query), mask))
    }
}

fn scale(query: &Queries) -> f32 {
    (query.size(Feat) as f32).powf(-0.5)
}

/// A layer: attention, then a feed-forward network, each added to its input.
#[derive(Clone, Parameters)]
pub struct Layer {
    /// Normalizes the input of the attention.
    pub attention_norm: RmsNorm<(Width,)>,
    /// The attention.
    pub attention: Attention,
    /// Normalizes the input of the feed-forward network.
    pub glu_norm: RmsNorm<(Width,)>,
    /// The feed-forward network.
    pub glu: SwiGlu<(Width,), (Inner,)>,
}

impl Layer {
    fn apply(&self, x: Features, attend: impl FnOnce(&Attention, &Features) -> Features) -> Features {
        let x = (&x + attend(&self.attention, &self.attention_norm.apply(&x))).eval();
        (&x + self.glu.apply(&self.glu_norm.apply(&x))).eval()
    }
}

/// The weights of a decoder. Gradients and the moments of the optimizer have the same type.
#[derive(Clone, Parameters)]
pub struct Gpt {
    /// The embedding of each character, which also computes the scores.
    pub chars: Embedding<Char, (Width,)>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// Normalizes the output of the layers.
    pub norm: RmsNorm<(Width,)>,
}

impl Gpt {
    /// Random weights.
    pub fn random(sizes: Sizes, seed: u64) -> Self {
        let (width, head, inner) = (Width.of(sizes.width), Head.of(sizes.heads), Inner.of(sizes.inner));
        let feat = Feat.of(sizes.width / sizes.heads);
        // The last weights of each residual branch are smaller, so that the variance of the
        // features does not grow with the number of layers.
        let added = DEVIATION / (2.0 * sizes.layers as f32).sqrt();
        let mut seeds = (seed << 16)..;
        let mut seed = move || seeds.next().expect("there are more seeds than weights");
        let norm = || RmsNorm::new(width);
        let layer = |_| Layer {
            attention_norm: norm(),
            attention: Attention {
                query: Projection { weight: (randn((width, head, feat), seed()) * DEVIATION).eval() },
                key: Projection { weight: (randn((width, head, feat), seed()) * DEVIATION).eval() },
                value: Projection { weight: (randn((width, head, feat), seed()) * DEVIATION).eval() },
                out: Projection { weight: (randn((head, feat, width), seed()) * added).eval() },
            },
            glu_norm: norm(),
            glu: SwiGlu {
                gate: Projection { weight: (randn((width, inner), seed()) * DEVIATION).eval() },
                up: Projection { weight: (randn((width, inner), seed()) * DEVIATION).eval() },
                down: Projection { weight: (randn((inner, width), seed()) * added).eval() },
            },
        };
        let layers = (0..sizes.layers).map(layer).collect();
        let chars = (randn((Char.of(sizes.chars), width), u64::MAX - (seed)()) * DEVIATION).eval();
        Gpt { chars: Embedding { weight: chars, padding: None }, layers, norm: norm() }
    }

    /// The sizes of the weights.
    pub fn sizes(&self) -> Sizes {
        let (chars, width) = (self.chars.weight.size(Char), self.chars.weight.size(Width));
        let first = &self.layers[0];
        let (heads, inner) = (first.attention.out.weight.size(Head), first.glu.up.weight.size(Inner));
        Sizes { chars, layers: self.layers.len(), heads, width, inner }
    }

    /// RoPE for the first `count` positions.
    fn rope(&self, count: usize) -> Rope<Token, Feat> {
        Rope::new(Token.of(count), Feat.of(self.layers[0].attention.query.weight.size(Feat)), BASE)
    }

    /// Scores of the next character after each token of whole texts.
    pub fn scores(&self, texts: &Texts) -> Scores {
        let rope = self.rope(texts.size(Token));
        let x = self.layers.iter().fold(self.chars.apply(texts), |x, layer| {
            layer.apply(x, |attention, x| attention.whole(x, &rope))
        });
        (self.norm.apply(&x) * &self.chars.weight).sum(Width)
    }

    /// Scores of the next character after each new token of texts whose beginning is in the cache.
    /// Adds the new tokens to the cache.
    ///
    /// # Panics
    ///
    /// Panics if the cache has no room for the new tokens.
    pub fn next_scores(&self, texts: &Texts, cache: &mut Cache) -> Scores {
        let mut x = self.chars.apply(texts);
        for (layer, past) in self.layers.iter().zip(&mut cache.layers) {
            x = layer.apply(x, |attention, x| attention.cached(x, &cache.rope, past));
        }
        (self.norm.apply(&x) * &self.chars.weight).sum(Width)
    }

    /// The mean cross-entropy of the next characters, in nats.
    pub fn loss(&self, texts: &Texts, next: &Texts) -> Tensor<f32, ()> {
        self.scores(texts).cross_entropy(Char, next).mean((Batch, Token))
    }

    /// The loss and its gradient.
    pub fn gradient(&self, texts: &Texts, next: &Texts) -> (Tensor<f32, ()>, Gpt) {
        loss_and_grad(|gpt| gpt.loss(texts, next), self)
    }
}

/// Keys and values of one layer.
type Past = KeyValues<(Batch, Key, Head, Feat), Key>;

/// Keys and values of the tokens so far, with capacity for more.
pub struct Cache {
    layers: Vec<Past>,
    rope: Rope<Token, Feat>,
}

impl Cache {
    /// An empty cache for `batch` texts of at most `room` tokens.
    pub fn new(gpt: &Gpt, batch: usize, room: usize) -> Self {
        let Sizes { heads, width, layers, .. } = gpt.sizes();
        let dims = (Batch.of(batch), Head.of(heads), Key.of(room), Feat.of(width / heads));
        Cache { layers: (0..layers).map(|_| Past::new(dims)).collect(), rope: gpt.rope(room) }
    }

    /// The number of tokens of each text in the cache.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, Past::len)
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all tokens.
    pub fn clear(&mut self) {
        self.layers.iter_mut().for_each(Past::clear);
    }
}
