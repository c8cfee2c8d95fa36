//! Compares the model, for random weights, with loops in `f64`.

#[path = "../../../tests/support/bits.rs"]
mod bits;

use bits::assert_same;
use minilm::model::{Batch, Encoder, Head, Token, Tokens, Width};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::BTreeMap;
use typed_dims::file::safetensors::SafetensorsReader;
use typed_dims::prelude::*;
use typed_dims::program::{jit, record};

const EPSILON: f64 = 1e-12;

/// Sizes of a small model, all different.
const WIDTH: usize = 12;
const HEADS: usize = 3;
const INNER: usize = 10;
const WORDS: usize = 17;
const POSITIONS: usize = 9;
const LAYERS: usize = 2;

/// Arrays by name: sizes and elements.
type Arrays = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn arrays(rng: &mut StdRng) -> Arrays {
    let mut arrays = Arrays::new();
    let mut add = |name: String, sizes: &[usize], middle: f32| {
        let len = sizes.iter().product();
        let elements = (0..len).map(|_| middle + rng.random_range(-0.5..0.5)).collect();
        arrays.insert(name, (sizes.to_vec(), elements));
    };
    for (name, size) in [("word", WORDS), ("position", POSITIONS), ("token_type", 2)] {
        add(format!("embeddings.{name}_embeddings.weight"), &[size, WIDTH], 0.0);
    }
    let mut norms = vec!["embeddings".to_owned()];
    for layer in 0..LAYERS {
        let at = |name| format!("encoder.layer.{layer}.{name}");
        norms.extend([at("attention.output"), at("output")]);
        for (name, out, input) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", INNER, WIDTH),
            ("output.dense", WIDTH, INNER),
        ] {
            add(at(name) + ".weight", &[out, input], 0.0);
            add(at(name) + ".bias", &[out], 0.0);
        }
    }
    for norm in norms {
        add(norm.clone() + ".LayerNorm.weight", &[WIDTH], 1.0);
        add(norm + ".LayerNorm.bias", &[WIDTH], 0.0);
    }
    arrays
}

fn file(arrays: &Arrays) -> Vec<u8> {
    let bytes: BTreeMap<&String, Vec<u8>> = arrays
        .iter()
        .map(|(name, (_, elements))| (name, elements.iter().flat_map(|x| x.to_le_bytes()).collect()))
        .collect();
    let views = arrays.iter().map(|(name, (sizes, _))| {
        (name, TensorView::new(Dtype::F32, sizes.clone(), &bytes[name]).expect("the sizes fit"))
    });
    safetensors::serialize(views, None).expect("the arrays are well-formed")
}

/// The model as loops.
struct Loops<'a>(&'a Arrays);

impl Loops<'_> {
    fn array(&self, name: &str) -> &[f32] {
        &self.0[name].1
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.array(&format!("{name}.weight")), self.array(&format!("{name}.bias")));
        let (x_count, mut out) = (x.len(), Vec::new());
        for (o, &bias) in bias.iter().enumerate() {
            let mut sum = bias as f64;
            for (i, x) in x.iter().enumerate() {
                sum += weight[o * x_count + i] as f64 * x;
            }
            out.push(sum);
        }
        out
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let weight = self.array(&format!("{name}.LayerNorm.weight"));
        let bias = self.array(&format!("{name}.LayerNorm.bias"));
        let mean = x.iter().sum::<f64>() / WIDTH as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / WIDTH as f64;
        let scale = 1.0 / (variance + EPSILON).sqrt();
        (0..WIDTH).map(|w| (x[w] - mean) * scale * weight[w] as f64 + bias[w] as f64).collect()
    }

    fn layer(&self, name: &str, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let all = |part: &str| -> Vec<Vec<f64>> {
            x.iter().map(|x| self.linear(&format!("{name}.attention.self.{part}"), x)).collect()
        };
        let (query, key, value) = (all("query"), all("key"), all("value"));
        let features = WIDTH / HEADS;
        let mut out = Vec::new();
        for (token, x) in x.iter().enumerate() {
            let mut attended = vec![0.0; WIDTH];
            for head in 0..HEADS {
                let range = head * features..(head + 1) * features;
                let score = |key: &Vec<f64>| {
                    let dot: f64 = range.clone().map(|f| query[token][f] * key[f]).sum();
                    (dot / (features as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = key.iter().map(score).collect();
                let total: f64 = scores.iter().sum();
                for f in range.clone() {
                    attended[f] = scores.iter().zip(&value).map(|(s, v)| s / total * v[f]).sum();
                }
            }
            let add = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
            let attended = self.linear(&format!("{name}.attention.output.dense"), &attended);
            let x = self.norm(&format!("{name}.attention.output"), &add(x, &attended));
            let inner = self.linear(&format!("{name}.intermediate.dense"), &x);
            let inner: Vec<f64> = inner.iter().map(|&x| gelu(x)).collect();
            let outer = self.linear(&format!("{name}.output.dense"), &inner);
            out.push(self.norm(&format!("{name}.output"), &add(&x, &outer)));
        }
        out
    }

    fn encode(&self, words: &[u32]) -> Vec<f64> {
        let row = |table: &str, at: usize| {
            self.array(&format!("embeddings.{table}_embeddings.weight"))[at * WIDTH..][..WIDTH].to_vec()
        };
        let mut x: Vec<Vec<f64>> = Vec::new();
        for (position, &word) in words.iter().enumerate() {
            let parts = [row("word", word as usize), row("position", position), row("token_type", 0)];
            let sum: Vec<f64> = (0..WIDTH).map(|w| parts.iter().map(|part| part[w] as f64).sum()).collect();
            x.push(self.norm("embeddings", &sum));
        }
        for layer in 0..LAYERS {
            x = self.layer(&format!("encoder.layer.{layer}"), &x);
        }
        let mean: Vec<f64> =
            (0..WIDTH).map(|w| x.iter().map(|x| x[w]).sum::<f64>() / words.len() as f64).collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| x / length).collect()
    }
}

/// `x` times the standard normal distribution function at `x`, by the midpoint rule.
fn gelu(x: f64) -> f64 {
    let steps = 2000;
    let width = x / steps as f64;
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let area: f64 = (0..steps).map(|step| density((step as f64 + 0.5) * width) * width).sum();
    x * (0.5 + area)
}

fn tokens(sentences: &[Vec<u32>], filler: u32) -> Tokens {
    let longest = sentences.iter().map(Vec::len).max().unwrap_or(0);
    let (batch, token) = (Batch.of(sentences.len()), Token.of(longest));
    Tokens {
        ids: from_fn((batch, token), |(at, token)| sentences[at].get(token).copied().unwrap_or(filler)),
        lengths: from_vec(batch, sentences.iter().map(|words| words.len() as isize).collect()),
    }
}

#[test]
fn agrees_with_loops_whatever_the_padding() {
    let rng = &mut StdRng::seed_from_u64(3);
    let arrays = arrays(rng);
    let bytes = file(&arrays);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let weights = Weights::of(&file).unwrap().with(Head.of(HEADS)).unwrap();
    let encoder = weights.load::<Encoder<'_>>().unwrap().with_epsilon(EPSILON);
    let lengths = [4, 1, POSITIONS, 2, 7];
    let sentences: Vec<Vec<u32>> = lengths
        .iter()
        .map(|&length| (0..length).map(|_| rng.random_range(0..WORDS as u32)).collect())
        .collect();
    for filler in [0, 5] {
        let out = encoder.encode(&tokens(&sentences, filler)).order((Batch, Width));
        for (sentence, row) in sentences.iter().zip(out.rows()) {
            for (ours, exact) in row.iter().zip(Loops(&arrays).encode(sentence)) {
                assert!((*ours as f64 - exact).abs() < 2e-6, "{ours} instead of {exact}");
            }
        }
    }
}

#[test]
fn all_that_does_not_fit_is_told_at_once() {
    let mut arrays = arrays(&mut StdRng::seed_from_u64(4));
    arrays.remove("encoder.layer.1.attention.self.key.bias");
    arrays.insert("encoder.layer.0.output.dense.bias".into(), (vec![WIDTH + 1], vec![0.0; WIDTH + 1]));
    arrays.insert("pooler.dense.bias".into(), (vec![2], vec![0.0; 2]));
    let bytes = file(&arrays);
    let file = SafetensorsReader::new(&bytes).unwrap();
    let weights = Weights::of(&file).unwrap().with(Head.of(HEADS)).unwrap();
    let error = weights.load::<Encoder<'_>>().err().unwrap().to_string();
    let expected = "the weights do not fit:
  dim `Width` has size 13 in `encoder.layer.0.output.dense.bias` and size 12 in `embeddings.word_embeddings.weight`
  `encoder.layer.1.attention.self.key.bias` is missing: expected f32 (Head x HeadDim)
  `pooler.dense.bias` of sizes [2] is not used by any field";
    assert_eq!(error, expected);
}

/// Calls the recorded encoder with tokens and lengths that differ from the recorded ones.
#[test]
fn a_recorded_encoder_is_the_encoder() {
    let rng = &mut StdRng::seed_from_u64(5);
    let bytes = file(&arrays(rng));
    let file = SafetensorsReader::new(&bytes).unwrap();
    let weights = Weights::of(&file).unwrap().with(Head.of(HEADS)).unwrap();
    let encoder = weights.load::<Encoder<'_>>().unwrap().with_epsilon(EPSILON);
    let mut sentences = |lengths: [usize; 3]| {
        tokens(&lengths.map(|length| (0..length).map(|_| rng.random_range(0..WORDS as u32)).collect()), 0)
    };
    let program = record(|tokens: &Tokens| encoder.encode(tokens), &sentences([4, 7, 2])).unwrap();
    let fast = jit::<&Tokens, _>(|tokens| encoder.encode(tokens));
    for lengths in [[7, 1, 3], [7, 7, 7], [1, 2, 7], [3, 5, 4], [5, 1, 1]] {
        let tokens = sentences(lengths);
        let expected = encoder.encode(&tokens);
        assert_same(&fast.call(&tokens), &expected);
        #[cfg(feature = "pjrt")]
        if let Some(pjrt) = xla_tests::plugin(1) {
            let program = record(|tokens: &Tokens| encoder.encode(tokens), &tokens).unwrap();
            let found = xla_tests::read(&pjrt.compile(&program).unwrap().call(&tokens).unwrap());
            xla_tests::assert_near(&found, &expected, 1e-5, "the encoder on XLA");
        }
        if lengths.contains(&7) {
            assert_same(&program.call(&tokens), &expected);
        }
    }
    // One program for each length of the longest sentence.
    assert_eq!(fast.programs(), 2);
}
