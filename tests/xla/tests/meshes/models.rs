//! Models on meshes: training steps of a decoder, and a sentence encoder. The numbers must be close
//! to those of the library without XLA, and the collectives must be those of the plan.

use gpt::model::{Batch, Gpt, Head, Inner, Sizes, Texts, Token, Width};
use minilm::model::{Encoder, Tokens};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::BTreeMap;
use typed_dims::file::safetensors::SafetensorsReader;
use typed_dims::optim::{AdamW, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_xla::{Mesh, MeshAxis as _, ShardRules, Sharding, mesh};
use xla_tests::{assert_near, numbers, plugin};

mesh! { pub struct Data; pub struct Model; }
dims! { struct Element; }

type State = (Gpt, AdamW<Gpt>);

fn state() -> State {
    let sizes = Sizes { chars: 16, layers: 2, heads: 2, width: 8, inner: 16 };
    let gpt = Gpt::random(sizes, 1).map_elements(|w: f32| 10.0 * w);
    let mut adam = AdamW::new(1e-2);
    adam.prepare(&gpt);
    (gpt, adam)
}

fn step(((mut gpt, mut adam), x, y): (State, &Texts, &Texts)) -> (State, Tensor<f32, ()>) {
    let (loss, gradient) = gpt.gradient(x, y);
    adam.step(&mut gpt, &gradient);
    ((gpt, adam), loss)
}

fn text(seed: u32) -> Texts {
    from_vec((Batch.of(4), Token.of(6)), (0..24).map(|at: u32| (at * 7 + seed) % 16).collect())
}

/// Trains two steps on a mesh, if there is a plugin.
fn train<R: ShardRules>(sharding: Sharding<R>, what: &str) {
    let Some(pjrt) = plugin(4) else { return };
    let (x, y) = (text(1), text(3));
    let program = record(step, (state(), &x, &y)).unwrap();
    let plan = sharding.plan(&program).unwrap();
    let mut on_mesh = pjrt.put_sharded(&state(), &sharding).unwrap();
    let bytes = on_mesh.bytes();
    let run = pjrt.compile_sharded(&program, sharding).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut own = state();
    for _ in 0..2 {
        let (next, found) = run.call((on_mesh, &x, &y)).unwrap();
        let (after, expected) = step((own, &x, &y));
        (on_mesh, own) = (next, after);
        assert_near(&found.to_host().unwrap(), &expected, 1e-5, what);
    }
    assert_near(&on_mesh.to_host().unwrap(), &own, 1e-4, what);
    assert_eq!(on_mesh.bytes(), bytes, "{what}: the state is no longer split");
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{what}\n{plan}\n{comparison}");
}

fn square() -> Sharding {
    Sharding::new(Mesh::of((Data.of(2), Model.of(2))))
}

#[test]
fn a_decoder_with_data_in_parts() {
    train(Sharding::new(Mesh::of(Data.of(4))).shard(Batch, Data), "data parallel");
}

#[test]
fn a_decoder_with_tensors_in_parts() {
    train(Sharding::new(Mesh::of(Model.of(2))).shard(Head, Model).shard(Inner, Model), "tensor parallel");
}

#[test]
fn a_decoder_on_a_square() {
    train(square().shard(Batch, Data).shard(Head, Model).shard(Inner, Model), "data and tensor parallel");
}

#[test]
fn a_decoder_with_parameters_in_parts() {
    let sharding = Sharding::new(Mesh::of(Data.of(2))).shard(Batch, Data).at_rest(Width, Data);
    train(sharding, "parameters at rest in parts");
}

#[test]
fn a_decoder_with_all_in_parts() {
    let sharding = square().shard(Batch, Data).shard(Head, Model).shard(Inner, Model).at_rest(Width, Data);
    train(sharding, "all");
}

#[test]
fn a_decoder_with_tokens_in_parts() {
    train(Sharding::new(Mesh::of(Data.of(2))).shard(Token, Data), "sequence parallel");
}

#[test]
fn a_decoder_with_features_in_parts() {
    train(Sharding::new(Mesh::of(Data.of(2))).shard(Width, Data), "features in parts");
}

#[test]
fn a_decoder_with_parameters_along_two_axes() {
    let sharding = square().at_rest(Width, Data).at_rest(Inner, Model).at_rest(Head, Data);
    train(sharding, "parameters at rest along two axes");
}

/// A `safetensors` file with random weights of an encoder.
fn weights() -> Vec<u8> {
    const WIDTH: usize = 8;
    let mut arrays: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (name, size) in [("word", 17), ("position", 8), ("token_type", 2)] {
        arrays.insert(format!("embeddings.{name}_embeddings.weight"), vec![size, WIDTH]);
    }
    let mut norms = vec!["embeddings".to_owned()];
    for layer in 0..2 {
        let at = |name| format!("encoder.layer.{layer}.{name}");
        norms.extend([at("attention.output"), at("output")]);
        for (name, out, input) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", 12, WIDTH),
            ("output.dense", WIDTH, 12),
        ] {
            arrays.insert(at(name) + ".weight", vec![out, input]);
            arrays.insert(at(name) + ".bias", vec![out]);
        }
    }
    for norm in norms {
        arrays.insert(norm.clone() + ".LayerNorm.weight", vec![WIDTH]);
        arrays.insert(norm + ".LayerNorm.bias", vec![WIDTH]);
    }
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = arrays
        .into_iter()
        .enumerate()
        .map(|(seed, (name, sizes))| {
            let elements: Tensor<f32, (Element,)> = randn(Element.of(sizes.iter().product()), seed as u64);
            (name, sizes, numbers(&elements)[0].iter().flat_map(|x| (*x as f32).to_le_bytes()).collect())
        })
        .collect();
    let views = bytes.iter().map(|(name, sizes, bytes)| {
        (name, TensorView::new(Dtype::F32, sizes.clone(), bytes).expect("the sizes fit"))
    });
    safetensors::serialize(views, None).expect("the arrays are well-formed")
}

#[test]
fn a_sentence_encoder_on_a_square() {
    use minilm::model::{Batch, Head, Inner, Token, Width};
    let Some(pjrt) = plugin(4) else { return };
    let file = weights();
    let file = SafetensorsReader::new(&file).unwrap();
    let weights = Weights::of(&file).unwrap().with(Head.of(2)).unwrap();
    let encoder = weights.load::<Encoder<'_>>().unwrap().with_epsilon(1e-12);
    let tokens = Tokens {
        ids: from_vec((Batch.of(4), Token.of(6)), (0..24).map(|at: u32| (at * 5 + 2) % 17).collect()),
        lengths: from_vec(Batch.of(4), vec![6, 3, 5, 1]),
    };
    let encode = |tokens: &Tokens| -> Tensor<f32, (Batch, Width)> { encoder.encode(tokens) };
    let program = record(encode, &tokens).unwrap();
    let sharding = square().shard(Batch, Data).shard(Head, Model).shard(Inner, Model);
    let plan = sharding.plan(&program).unwrap();
    let run = pjrt.compile_sharded(&program, sharding).unwrap();
    let found = run.call(&tokens).unwrap();
    assert_near(&found.to_host().unwrap(), &encode(&tokens), 1e-5, "the encoder");
    let comparison = run.compare(&plan).unwrap();
    assert!(comparison.is_as_planned(), "{plan}\n{comparison}");
}
