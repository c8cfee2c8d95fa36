//! The encoder: BERT with 6 layers, mean pooling and normalization to length 1. Every tensor has
//! its dims in its type.
//!
//! J. Devlin et al., 2019, "BERT"; W. Wang et al., 2020, "MiniLM"; N. Reimers, I. Gurevych, 2019,
//! "Sentence-BERT".

use typed_dims::nn::{LayerNorm, Linear};
use typed_dims::operators::attention::Attend;
use typed_dims::prelude::*;

dims! {
    /// Sentences in a batch.
    pub struct Batch;
    /// Tokens of a sentence, padded to the longest sentence.
    pub struct Token;
    /// Tokens that a token attends to.
    pub struct Key;
    /// Attention heads.
    pub struct Head;
    /// Features of one head.
    pub struct HeadDim;
    /// Features of a token.
    pub struct Width;
    /// Features inside the feed-forward network.
    pub struct Inner;
    /// Tokens of the vocabulary.
    pub struct Word;
    /// Positions in a sentence.
    pub struct Position;
    /// The first or the second text of a pair. Only the first is used here.
    pub struct Segment;
}

/// The features of all tokens.
pub type Features = Tensor<f32, (Batch, Token, Width)>;

/// The embeddings that are added up for the first layer.
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

/// A transformer layer: attention to all tokens of the sentence, then a feed-forward network.
#[derive(Load)]
struct Layer {
    #[load(name = "attention.self.query")]
    query: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.self.key")]
    key: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.self.value")]
    value: Linear<(Width,), (Head, HeadDim)>,
    #[load(name = "attention.output.dense")]
    attended: Linear<(Head, HeadDim), (Width,)>,
    #[load(name = "attention.output.LayerNorm")]
    attended_norm: LayerNorm<(Width,)>,
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
        let attended = Attend::new(HeadDim, Key).mask(Key.lt(lengths)).apply(&query, key, value);
        let x = self.attended_norm.apply(x + self.attended.apply(&attended));
        let inner = self.inner.apply(&x).gelu().eval();
        self.outer_norm.apply(&x + self.outer.apply(&inner))
    }
}

/// Tokenized sentences.
#[derive(Parameters)]
pub struct Tokens {
    /// The index of each token in the vocabulary. Indices after the end of a sentence do not change
    /// its embedding.
    pub ids: Tensor<u32, (Batch, Token)>,
    /// The number of tokens in each sentence.
    pub lengths: Lengths,
}

/// The number of tokens in each sentence.
pub type Lengths = Tensor<isize, (Batch,)>;

/// The model.
#[derive(Load)]
pub struct Encoder<'w> {
    embeddings: Embeddings<'w>,
    #[load(name = "encoder.layer")]
    layers: Vec<Layer>,
}

impl Encoder<'_> {
    /// Sets the number added to variances.
    pub fn with_epsilon(mut self, epsilon: f64) -> Self {
        self.embeddings.norm.epsilon = epsilon;
        for layer in &mut self.layers {
            layer.attended_norm.epsilon = epsilon;
            layer.outer_norm.epsilon = epsilon;
        }
        self
    }

    /// The number of features of an embedding.
    pub fn width(&self) -> usize {
        self.embeddings.words.size(Width)
    }

    /// The embedding of each sentence, scaled to length 1.
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
