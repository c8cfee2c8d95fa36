//! A text encoder without gradients: embeddings, layers with attention and a feed-forward network,
//! and class scores.

use typed_dims::prelude::*;

dims! {
    /// Texts in a batch.
    pub struct Batch;
    /// Positions in a text.
    pub struct Token;
    /// Positions that a token attends to.
    pub struct Key;
    /// Words of the vocabulary.
    pub struct Word;
    /// Features of a token.
    pub struct Width;
    /// Features inside the feed-forward network.
    pub struct Inner;
    /// Attention heads.
    pub struct Head;
    /// Features of a head.
    pub struct Feat;
    /// Classes of texts.
    pub struct Class;
}

type Features = Tensor<f32, (Batch, Token, Width)>;
type Projections = Tensor<f32, (Width, Head, Feat)>;

struct Sizes {
    words: usize,
    layers: usize,
    heads: usize,
    feat: usize,
    inner: usize,
    classes: usize,
}

impl Sizes {
    fn width(&self) -> usize {
        self.heads * self.feat
    }
}

struct Norm {
    gain: Tensor<f32, (Width,)>,
    bias: Tensor<f32, (Width,)>,
}

impl Norm {
    fn new(sizes: &Sizes) -> Self {
        let width = Width.of(sizes.width());
        Norm { gain: ones(width), bias: zeros(width) }
    }

    fn apply(&self, x: &Features) -> Features {
        (x.layer_norm(Width, 1e-5) * &self.gain + &self.bias).eval()
    }
}

struct Attention {
    query: Projections,
    key: Projections,
    value: Projections,
    out: Tensor<f32, (Width, Head, Feat)>,
}

impl Attention {
    fn random(sizes: &Sizes, seed: u64) -> Self {
        let dims = (Width.of(sizes.width()), Head.of(sizes.heads), Feat.of(sizes.feat));
        let scale = (sizes.width() as f32).powf(-0.5);
        let draw = |at: u64| (randn::<f32, _>(dims, seed + at) * scale).eval();
        Attention { query: draw(0), key: draw(1), value: draw(2), out: draw(3) }
    }

    fn apply(&self, x: &Features, lengths: &Tensor<isize, (Batch,)>) -> Features {
        let query = x.contract(&self.query, Width);
        let key = x.contract(&self.key, Width).rename(Token, Key);
        let value = x.contract(&self.value, Width).rename(Token, Key);
        let scores = query.contract(&key, Feat) * (key.size(Feat) as f32).powf(-0.5);
        let seen = select(Key.lt(lengths), scores, -1e9);
        let heads = seen.softmax(Key).contract(value, Key);
        (&heads * &self.out).sum((Head, Feat))
    }
}

struct FeedForward {
    inner: Tensor<f32, (Width, Inner)>,
    inner_bias: Tensor<f32, (Inner,)>,
    outer: Tensor<f32, (Inner, Width)>,
    outer_bias: Tensor<f32, (Width,)>,
}

impl FeedForward {
    fn random(sizes: &Sizes, seed: u64) -> Self {
        let (width, inner) = (Width.of(sizes.width()), Inner.of(sizes.inner));
        let draw = |seed| (randn::<f32, _>((width, inner), seed) * 0.02).eval();
        FeedForward {
            inner: draw(seed),
            inner_bias: zeros(inner),
            outer: draw(seed + 1),
            outer_bias: zeros(width),
        }
    }

    fn apply(&self, x: &Features) -> Features {
        let inner = (x.contract(&self.inner, Width) + &self.inner_bias).gelu();
        (inner.contract(&self.outer, Inner) + &self.outer_bias).eval()
    }
}

struct Layer {
    attention_norm: Norm,
    attention: Attention,
    forward_norm: Norm,
    forward: FeedForward,
}

struct Encoder {
    words: Tensor<f32, (Word, Width)>,
    layers: Vec<Layer>,
    head: Tensor<f32, (Width, Class)>,
}

impl Encoder {
    fn random(sizes: &Sizes) -> Self {
        let width = Width.of(sizes.width());
        let layer = |at: usize| Layer {
            attention_norm: Norm::new(sizes),
            attention: Attention::random(sizes, 10 * at as u64 + 10),
            forward_norm: Norm::new(sizes),
            forward: FeedForward::random(sizes, 10 * at as u64 + 15),
        };
        Encoder {
            words: randn((Word.of(sizes.words), width), 1),
            layers: (0..sizes.layers).map(layer).collect(),
            head: randn((width, Class.of(sizes.classes)), 2),
        }
    }

    fn classify(
        &self,
        texts: &Tensor<usize, (Batch, Token)>,
        lengths: &Tensor<isize, (Batch,)>,
    ) -> Tensor<f32, (Batch, Class)> {
        let mut x: Features = self.words.lookup(Word, texts).eval();
        for layer in &self.layers {
            x = (&x + layer.attention.apply(&layer.attention_norm.apply(&x), lengths)).eval();
            x = (&x + layer.forward.apply(&layer.forward_norm.apply(&x))).eval();
        }
        let mean = select(Token.lt(lengths), &x, 0.0).sum(Token) / lengths.cast::<f32>();
        mean.contract(&self.head, Width).log_softmax(Class).eval()
    }
}

fn main() {
    let sizes = Sizes { words: 100, layers: 2, heads: 4, feat: 16, inner: 128, classes: 5 };
    let texts = from_fn((Batch.of(3), Token.of(12)), |(text, token)| (text * 7 + token) % sizes.words);
    let lengths = from_vec(Batch.of(3), vec![12, 7, 9]);
    let scores = Encoder::random(&sizes).classify(&texts, &lengths);
    println!("{}", scores.argmax(Class).order(Batch));
}
