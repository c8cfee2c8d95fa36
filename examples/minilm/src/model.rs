//! The encoder: BERT with 6 layers, mean pooling, and length 1. Every tensor has its dims in its
//! type.
//!
//! J. Devlin et al., 2019, "BERT"; W. Wang et al., 2020, "MiniLM"; N. Reimers, I. Gurevych, 2019,
//! "Sentence-BERT".

use typed_dims::nn::linear::Linear;
use typed_dims::nn::norm::LayerNorm;
use typed_dims::operators::attention::Attend;
use typed_dims::prelude::*;

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
    /// Tokens of the vocabulary.
    pub struct Word;
    /// Where a token can be.
    pub struct Position;
    /// Whether a token is in the first text or in the second; there is only one here.
    pub struct Segment;
}

/// Tokens of sentences, as features.
pub type Features = Tensor<f32, (Batch, Token, Width)>;

/// The features of tokens before the first layer.
#[derive(Load)]
struct Embeddings<'w> {
    #[load(name = "word_embeddings.weight")]
    words: TensorView<'w, f32, (Word, Width)>,
    #[load(name = "position_embeddings.weight")]
    positions: TensorView<'w, f32, (Position, Width)>,
    #[load(name = "token_type_embeddings.weight")]
    segments: TensorView<'w, f32, (Segment, Width)>,
    #[load(name = "LayerNorm")]
    norm: LayerNorm<(Width,)>,
}

impl Embeddings<'_> {
    fn of(&self, tokens: &Tokens) -> Features {
        let words = self.words.lookup(Word, &tokens.ids);
        let positions = self.positions.slice(Position, ..tokens.ids.size(Token)).rename(Position, Token);
        self.norm.apply(words + positions + self.segments.index(Segment, 0))
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
    heard_norm: LayerNorm<(Width,)>,
    #[load(name = "intermediate.dense")]
    inner: Linear<(Width,), (Inner,)>,
    #[load(name = "output.dense")]
    outer: Linear<(Inner,), (Width,)>,
    #[load(name = "output.LayerNorm")]
    outer_norm: LayerNorm<(Width,)>,
}

impl Layer {
    fn of(&self, x: &Features, lengths: &Lengths) -> Features {
        let query = self.query.apply(x);
        let (key, value) = (self.key.apply(x), self.value.apply(x));
        let (key, value) = (key.rename(Token, Key), value.rename(Token, Key));
        let heard = Attend::new(HeadDim, Key).mask(Key.lt(lengths)).apply(&query, key, value);
        let x = self.heard_norm.apply(x + self.heard.apply(&heard));
        let inner = self.inner.apply(&x).gelu().eval();
        self.outer_norm.apply(&x + self.outer.apply(&inner))
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
    /// The same model with this number added to variances.
    pub fn with_epsilon(mut self, epsilon: f64) -> Self {
        self.embeddings.norm.epsilon = epsilon;
        for layer in &mut self.layers {
            layer.heard_norm.epsilon = epsilon;
            layer.outer_norm.epsilon = epsilon;
        }
        self
    }

    /// How many numbers a sentence becomes.
    pub fn width(&self) -> usize {
        self.embeddings.words.size(Width)
    }

    /// One direction for each sentence: sentences that mean the same have nearly the same.
    pub fn encode(&self, tokens: &Tokens) -> Tensor<f32, (Batch, Width)> {
        let mut x = self.embeddings.of(tokens);
        for layer in &self.layers {
            x = layer.of(&x, &tokens.lengths);
        }
        let sum = select(Token.lt(&tokens.lengths), &x, 0.0).sum(Token);
        let mean = sum / (&tokens.lengths).cast::<f32>();
        let length = mean.norm(Width);
        (mean / length).eval()
    }
}
