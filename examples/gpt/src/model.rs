//! The decoder, in declared dims: pre-norm layers of causal attention and SwiGLU.
//!
//! A. Vaswani et al., 2017, "Attention is all you need"; J. Su et al., 2021, "RoFormer" (RoPE); B. Zhang, R. Sennrich, 2019, "Root mean square layer
//! normalization"; N. Shazeer, 2020, "GLU variants improve Transformer"; O. Press, L. Wolf, 2017, "Using the output embedding" (one table at both ends).

use typed_dims::grad::value_and_grad;
use typed_dims::ndarray::{Array4, Array5, s};
use typed_dims::prelude::*;

dims! {
    /// Texts that are computed together.
    pub struct Batch;
    /// Places in a text.
    pub struct Token;
    /// Places that a token attends to.
    pub struct Key;
    /// Characters of the vocabulary.
    pub struct Char;
    /// Features of a token.
    pub struct Width;
    /// Features between the two halves of a feed-forward network.
    pub struct Inner;
    /// Heads of attention.
    pub struct Head;
    /// The two coordinates of each plane that RoPE turns.
    pub struct Side = 2;
    /// The planes that RoPE turns.
    pub struct Plane;
    /// Features of a value.
    pub struct Feat;
}

/// Characters of texts, as positions in the vocabulary.
pub type Texts = Tensor<u32, (Batch, Token)>;
/// Features of each token.
pub type Features = Tensor<f32, (Batch, Token, Width)>;
/// Scores of the next character, for each token.
pub type Scores = Tensor<f32, (Batch, Token, Char)>;

/// Added to the mean square of features before its root is taken.
const EPSILON: f32 = 1e-5;
/// The slowest plane of RoPE turns by a radian in about this many tokens.
const BASE: f32 = 10_000.0;
/// The standard deviation of fresh weights (A. Radford et al., 2019).
const DEVIATION: f32 = 0.02;

/// Sizes of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Different characters.
    pub chars: usize,
    /// Layers.
    pub layers: usize,
    /// Heads of each attention.
    pub heads: usize,
    /// Features of a token, a multiple of `2 * heads`.
    pub width: usize,
    /// Features between the two halves of a feed-forward network.
    pub inner: usize,
}

/// `y[.., Width] = x[.., Width] / sqrt(mean of x^2 over Width) * gain[Width]`
#[derive(Clone, Parameters)]
pub struct RmsNorm {
    /// The factor of each feature.
    pub gain: Tensor<f32, (Width,)>,
}

impl RmsNorm {
    fn apply(&self, x: &Features) -> Features {
        (x.rms_norm(Width, EPSILON) * &self.gain).eval()
    }
}

/// By how much RoPE turns the planes of queries and keys at consecutive places.
pub struct Rope {
    cos: Tensor<f32, (Token, Plane)>,
    /// The sine, negative for the first coordinate.
    sin: Tensor<f32, (Token, Side, Plane)>,
}

impl Rope {
    /// The angles for `count` places from `start` on: `place * BASE^(-plane / planes)`.
    pub fn new(start: usize, count: usize, planes: usize) -> Self {
        let angle =
            |token: usize, plane: usize| (start + token) as f32 * BASE.powf(-(plane as f32) / planes as f32);
        let (token, plane) = (Token.of(count), Plane.of(planes));
        Rope {
            cos: from_fn((token, plane), |(t, p)| angle(t, p).cos()),
            sin: from_fn((token, Side, plane), |(t, side, p)| {
                let sin = angle(t, p).sin();
                if side == 0 { -sin } else { sin }
            }),
        }
    }

    /// `(a, b)` of each plane becomes `(a cos - b sin, b cos + a sin)`.
    fn turn(&self, x: &Queries) -> Queries {
        (x * &self.cos + x.view().flip(Side) * &self.sin).eval()
    }
}

type Queries = Tensor<f32, (Batch, Token, Head, Side, Plane)>;
type Values = Tensor<f32, (Batch, Token, Head, Feat)>;

/// Attention to a token itself and to those before it.
#[derive(Clone, Parameters)]
pub struct Attention {
    /// Makes queries.
    pub query: Tensor<f32, (Width, Head, Side, Plane)>,
    /// Makes keys.
    pub key: Tensor<f32, (Width, Head, Side, Plane)>,
    /// Makes values.
    pub value: Tensor<f32, (Width, Head, Feat)>,
    /// Maps the results of the heads to features of the token.
    pub out: Tensor<f32, (Width, Head, Feat)>,
}

impl Attention {
    /// Attention among the tokens of `x`.
    fn whole(&self, x: &Features, rope: &Rope) -> Features {
        let query = rope.turn(&(x * &self.query).sum(Width));
        let key = rope.turn(&(x * &self.key).sum(Width)).rename(Token, Key);
        let value: Values = (x * &self.value).sum(Width);
        let found = attention(
            &query,
            key,
            value.rename(Token, Key),
            (Side, Plane),
            Key,
            scale(&query),
            Key.le(Token),
        );
        (found * &self.out).sum((Head, Feat))
    }

    /// Attention of the tokens of `x` among themselves and to those in the cache, which takes them up.
    fn cached(&self, x: &Features, rope: &Rope, past: &mut Past, start: usize) -> Features {
        let end = start + x.size(Token);
        let query = rope.turn(&(x * &self.query).sum(Width));
        let key = rope.turn(&(x * &self.key).sum(Width));
        let value: Values = (x * &self.value).sum(Width);
        past.keys
            .slice_mut(s![.., .., start..end, .., ..])
            .at_mut((Batch, Head, Token, Side, Plane))
            .assign(key);
        past.values.slice_mut(s![.., .., start..end, ..]).at_mut((Batch, Head, Token, Feat)).assign(value);
        let (keys, values) =
            (past.keys.slice(s![.., .., ..end, .., ..]), past.values.slice(s![.., .., ..end, ..]));
        let found = attention(
            &query,
            keys.at((Batch, Head, Key, Side, Plane)),
            values.at((Batch, Head, Key, Feat)),
            (Side, Plane),
            Key,
            scale(&query),
            (Key - Token).le(start as isize),
        );
        (found * &self.out).sum((Head, Feat))
    }
}

fn scale(query: &Queries) -> f32 {
    ((Side::SIZE * query.size(Plane)) as f32).powf(-0.5)
}

/// `y = down(silu(gate(x)) * up(x))`
#[derive(Clone, Parameters)]
pub struct SwiGlu {
    /// Decides which features pass.
    pub gate: Tensor<f32, (Width, Inner)>,
    /// Makes features.
    pub up: Tensor<f32, (Width, Inner)>,
    /// Maps them back.
    pub down: Tensor<f32, (Width, Inner)>,
}

impl SwiGlu {
    fn apply(&self, x: &Features) -> Features {
        let inner = ((x * &self.gate).sum(Width).silu() * (x * &self.up).sum(Width)).eval();
        (inner * &self.down).sum(Inner)
    }
}

/// A layer: attention, then a feed-forward network, each added to its input.
#[derive(Clone, Parameters)]
pub struct Layer {
    /// Before the attention.
    pub attention_norm: RmsNorm,
    /// The attention.
    pub attention: Attention,
    /// Before the feed-forward network.
    pub glu_norm: RmsNorm,
    /// The feed-forward network.
    pub glu: SwiGlu,
}

impl Layer {
    fn apply(&self, x: Features, attend: impl FnOnce(&Attention, &Features) -> Features) -> Features {
        let x = (&x + attend(&self.attention, &self.attention_norm.apply(&x))).eval();
        (&x + self.glu.apply(&self.glu_norm.apply(&x))).eval()
    }
}

/// The weights of a decoder; also its gradient, and moments of that.
#[derive(Clone, Parameters)]
pub struct Gpt {
    /// The embedding of each character, which also predicts it.
    pub chars: Tensor<f32, (Char, Width)>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// After the layers.
    pub norm: RmsNorm,
}

impl Gpt {
    /// Random weights.
    pub fn random(sizes: Sizes, seed: u64) -> Self {
        let (width, head, inner) = (Width.of(sizes.width), Head.of(sizes.heads), Inner.of(sizes.inner));
        let feat = Feat.of(sizes.width / sizes.heads);
        let plane = Plane.of(sizes.width / sizes.heads / Side::SIZE);
        // The sum that is added to the features grows with the number of layers, unless it is drawn smaller.
        let added = DEVIATION / (2.0 * sizes.layers as f32).sqrt();
        let mut seeds = (seed << 16)..;
        let mut seed = move || seeds.next().expect("there are more seeds than weights");
        let norm = || RmsNorm { gain: ones(width) };
        let layer = |_| Layer {
            attention_norm: norm(),
            attention: Attention {
                query: (randn((width, head, Side, plane), seed()) * DEVIATION).eval(),
                key: (randn((width, head, Side, plane), seed()) * DEVIATION).eval(),
                value: (randn((width, head, feat), seed()) * DEVIATION).eval(),
                out: (randn((head, feat, width), seed()) * added).eval(),
            },
            glu_norm: norm(),
            glu: SwiGlu {
                gate: (randn((width, inner), seed()) * DEVIATION).eval(),
                up: (randn((width, inner), seed()) * DEVIATION).eval(),
                down: (randn((inner, width), seed()) * added).eval(),
            },
        };
        let layers = (0..sizes.layers).map(layer).collect();
        let chars = (randn((Char.of(sizes.chars), width), u64::MAX - (seed)()) * DEVIATION).eval();
        Gpt { chars, layers, norm: norm() }
    }

    /// The sizes of the weights.
    pub fn sizes(&self) -> Sizes {
        let (chars, width) = (self.chars.size(Char), self.chars.size(Width));
        let first = &self.layers[0];
        let (heads, inner) = (first.attention.out.size(Head), first.glu.up.size(Inner));
        Sizes { chars, layers: self.layers.len(), heads, width, inner }
    }

    fn planes(&self) -> usize {
        self.layers[0].attention.query.size(Plane)
    }

    /// Scores of the character after each token of whole texts.
    pub fn scores(&self, texts: &Texts) -> Scores {
        let rope = Rope::new(0, texts.size(Token), self.planes());
        let embedded = self.chars.view().lookup(Char, texts).eval();
        let x = self
            .layers
            .iter()
            .fold(embedded, |x, layer| layer.apply(x, |attention, x| attention.whole(x, &rope)));
        (self.norm.apply(&x) * &self.chars).sum(Width)
    }

    /// Scores of the character after each of some more tokens of texts whose beginning is in the cache. The cache takes them up.
    ///
    /// # Panics
    ///
    /// If there is no room for them in the cache.
    pub fn next_scores(&self, texts: &Texts, cache: &mut Cache) -> Scores {
        let rope = Rope::new(cache.len, texts.size(Token), self.planes());
        let mut x = self.chars.view().lookup(Char, texts).eval();
        for (layer, past) in self.layers.iter().zip(&mut cache.layers) {
            x = layer.apply(x, |attention, x| attention.cached(x, &rope, past, cache.len));
        }
        cache.len += texts.size(Token);
        (self.norm.apply(&x) * &self.chars).sum(Width)
    }

    /// The mean cross-entropy of the character that follows each token, in nats.
    pub fn loss(&self, texts: &Texts, next: &Texts) -> Tensor<f32, ()> {
        self.scores(texts).cross_entropy(Char, next).mean((Batch, Token))
    }

    /// The loss, and its derivative by every weight.
    pub fn gradient(&self, texts: &Texts, next: &Texts) -> (f32, Gpt) {
        value_and_grad(|gpt| gpt.loss(texts, next), self)
    }
}

/// Keys and values of one layer.
struct Past {
    keys: Array5<f32>,
    values: Array4<f32>,
}

/// Keys and values of the tokens that the decoder has seen, with room for more.
pub struct Cache {
    layers: Vec<Past>,
    len: usize,
}

impl Cache {
    /// An empty cache for `batch` texts of up to `room` tokens.
    pub fn new(gpt: &Gpt, batch: usize, room: usize) -> Self {
        let Sizes { heads, width, .. } = gpt.sizes();
        let feat = width / heads;
        let past = |_: &Layer| Past {
            keys: Array5::zeros((batch, heads, room, Side::SIZE, feat / Side::SIZE)),
            values: Array4::zeros((batch, heads, room, feat)),
        };
        Cache { layers: gpt.layers.iter().map(past).collect(), len: 0 }
    }

    /// How many tokens of each text it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}
