//! The encoder: BERT with 6 layers, mean pooling, and length 1. Every tensor has its dims in its type.
//!
//! J. Devlin et al., 2019, "BERT"; W. Wang et al., 2020, "MiniLM"; N. Reimers, I. Gurevych, 2019, "Sentence-BERT".

use typed_dims::nn::linear::Linear;
use typed_dims::prelude::*;
use typed_dims::tensors::tensor::Evaluable;
use typed_dims::types::rank::Rank0;

dims! {
    /// Sentences that are looked at together.
    pub struct Batch;
    /// Words of a sentence and parts of words, padded to the longest sentence.
    pub struct Token;
    /// The tokens that a token looks at.
    pub struct Key;
    /// Parts of a layer that look at different things.
    pub struct Head;
    /// Features of one head.
    pub struct HeadDim;
    /// Features of a token.
    pub struct Width;
    /// Features between the two halves of a layer's network.
    pub struct Inner;
    /// What a token can be.
    pub struct Word;
    /// Where a token can be.
    pub struct Position;
    /// Whether a token is in the first text or in the second; there is only one here.
    pub struct Segment;
}

/// Tokens of sentences, as features.
pub type Features = Tensor<f32, (Batch, Token, Width)>;

/// Mean 0 and variance 1 along `Width`, then scaled and moved.
#[derive(Load)]
struct LayerNorm {
    weight: Tensor<f32, (Width,)>,
    bias: Tensor<f32, (Width,)>,
}

impl LayerNorm {
    fn of<X>(&self, x: X, epsilon: f32) -> Features
    where
        X: Evaluable<Elem = f32, Rank = Rank0, Dims = (Batch, Token, Width)>,
    {
        x.layer_norm_affine(Width, epsilon, &self.weight, &self.bias)
    }
}

/// What a token is before it has looked at others.
#[derive(Load)]
struct Embeddings<'w> {
    #[load(name = "word_embeddings.weight")]
    words: TensorView<'w, f32, (Word, Width)>,
    #[load(name = "position_embeddings.weight")]
    positions: TensorView<'w, f32, (Position, Width)>,
    #[load(name = "token_type_embeddings.weight")]
    segments: TensorView<'w, f32, (Segment, Width)>,
    #[load(name = "LayerNorm")]
    norm: LayerNorm,
}

impl Embeddings<'_> {
    fn of(&self, tokens: &Tokens, epsilon: f32) -> Features {
        let words = self.words.lookup(Word, &tokens.ids);
        let positions = self.positions.slice(Position, ..tokens.ids.size(Token)).rename(Position, Token);
        self.norm.of(words + positions + self.segments.index(Segment, 0), epsilon)
    }
}

/// Each token looks at all tokens of its sentence, and then is thought about on its own.
#[derive(Load)]
struct Layer {
    #[load(name = "attention.self.query")]
    query: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.self.key")]
    key: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.self.value")]
    value: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.output.dense")]
    heard: Linear<(Head, HeadDim), (Width,)>,
    #[load(name = "attention.output.LayerNorm")]
    heard_norm: LayerNorm,
    #[load(name = "intermediate.dense")]
    inner: Linear<(Width,), (Inner,)>,
    #[load(name = "output.dense")]
    outer: Linear<(Inner,), (Width,)>,
    #[load(name = "output.LayerNorm")]
    outer_norm: LayerNorm,
}

impl Layer {
    fn of(&self, x: &Features, lengths: &Lengths, epsilon: f32) -> Features {
        let query = self.query.apply(x);
        let (key, value) = (self.key.apply(x), self.value.apply(x));
        let scale = (query.size(HeadDim) as f32).powf(-0.5);
        let (key, value) = (key.rename(Token, Key), value.rename(Token, Key));
        let heard = attention(&query, key, value, HeadDim, Key, scale, Key.lt(lengths));
        let x = self.heard_norm.of(x + self.heard.apply(&heard), epsilon);
        let inner = self.inner.apply(&x).gelu().eval();
        self.outer_norm.of(&x + self.outer.apply(&inner), epsilon)
    }
}

/// Sentences as numbers.
#[derive(Parameters)]
pub struct Tokens {
    /// Which word each token is; anything behind the sentence's end.
    pub ids: Tensor<u32, (Batch, Token)>,
    /// How many tokens each sentence has.
    pub lengths: Lengths,
}

/// A number of tokens for each sentence.
pub type Lengths = Tensor<isize, (Batch,)>;

/// The model.
#[derive(Load)]
pub struct Encoder<'w> {
    embeddings: Embeddings<'w>,
    #[load(name = "encoder.layer")]
    layers: Vec<Layer>,
}

impl Encoder<'_> {
    /// How many numbers a sentence becomes.
    pub fn width(&self) -> usize {
        self.embeddings.words.size(Width)
    }

    /// One direction for each sentence: sentences that mean the same have nearly the same.
    pub fn encode(&self, tokens: &Tokens, epsilon: f32) -> Tensor<f32, (Batch, Width)> {
        let mut x = self.embeddings.of(tokens, epsilon);
        for layer in &self.layers {
            x = layer.of(&x, &tokens.lengths, epsilon);
        }
        let sum = select(Token.lt(&tokens.lengths), &x, 0.0).sum(Token);
        let mean = sum / (&tokens.lengths).cast::<f32>();
        let length = mean.norm(Width);
        (mean / length).eval()
    }
}
