//! Attention with cuDNN's kernels, which only run on CUDA: the calls must equal those of JAX.

#![allow(missing_docs)]

use half::bf16;
use serde_json::Value;
use typed_dims::grad::vjp;
use typed_dims::prelude::*;
use typed_dims::program::{Program, RecordInputs, record, spec};
use typed_dims_xla::stablehlo::{Options, lower};
use typed_dims_xla::{AttentionKernel, RunOptions};
use xla_tests::{assert_near, plugin};

dims! {
    struct Batch;
    struct Head;
    struct Token;
    struct Key;
    struct Feat;
}

type Words<T> = Tensor<T, (Batch, Head, Token, Feat)>;

const SCALE: bf16 = bf16::from_f32_const(0.125);

/// Causal self-attention.
fn attend<T: Real>(q: &Words<T>, k: &Words<T>, v: &Words<T>, scale: T) -> Words<T> {
    let [k, v] = [k, v].map(|own| own.rename(Token, Key));
    attention(q, &k, &v, Feat, Key, scale, Key.le(Token))
}

/// The text of a program's StableHLO module.
fn text<In: RecordInputs, Out: typed_dims::grad::Parameters>(
    program: &Program<In, Out>,
    attention: AttentionKernel,
) -> String {
    let options = Options { attention, ..Options::default() };
    lower(&program.to_engine().unwrap(), options, &[]).unwrap().text
}

/// The name, the settings, and the rest of each custom call in a module.
fn calls(text: &str) -> Vec<(String, Value, String)> {
    let between = |line: &str, from: &str, to: &str| {
        let (_, rest) = line.split_once(from).expect(from);
        rest.split_once(to).expect(to).0.to_owned()
    };
    text.lines()
        .filter(|line| line.contains("custom_call"))
        .map(|line| {
            let settings = between(line, "backend_config = \"", "\", ").replace("\\22", "\"");
            let (_, rest) = line.split_once("operand_layouts").expect("a call has layouts");
            (
                between(line, "call_target_name = \"", "\""),
                serde_json::from_str(&settings).expect("settings are JSON"),
                format!("operand_layouts{rest}"),
            )
        })
        .collect()
}

#[test]
fn calls_are_those_of_jax() {
    let sizes = || (Batch.of(16), Head.of(16), Token.of(1024), Feat.of(64));
    let gradients = |(q, k, v, dy): (&Words<bf16>, &Words<bf16>, &Words<bf16>, &Words<bf16>)| {
        let (_, pull_back) = vjp(|(q, k, v)| attend(q, k, v, SCALE), (q, k, v));
        pull_back(dy)
    };
    let program = record(gradients, (spec(sizes()), spec(sizes()), spec(sizes()), spec(sizes()))).unwrap();
    let expected: Vec<Value> =
        serde_json::from_str(include_str!("../data/cudnn-attention.json")).expect("the text is JSON");
    let found = calls(&text(&program, AttentionKernel::Cudnn));
    assert_eq!(found.len(), expected.len());
    for ((name, settings, rest), expected) in found.iter().zip(&expected) {
        assert_eq!(*name, expected["call"]);
        assert_eq!(*settings, expected["backend_config"]);
        assert_eq!(*rest, expected["attributes and types"]);
    }
    assert!(calls(&text(&program, AttentionKernel::Operations)).is_empty());
}

#[test]
fn other_attention_is_computed_by_operations() {
    let sizes = || (Batch.of(2), Head.of(2), Token.of(6), Feat.of(8));
    let of = |seed| -> Words<f32> { randn(sizes(), seed) };
    let run = |(q, k, v): (&Words<f32>, &Words<f32>, &Words<f32>)| attend(q, k, v, 0.125);
    let program = record(run, (&of(1), &of(2), &of(3))).unwrap();
    assert!(calls(&text(&program, AttentionKernel::Cudnn)).is_empty(), "`f32` uses cuDNN");
    let odd = || (Batch.of(2), Head.of(2), Token.of(7), Feat.of(8));
    let run = |(q, k, v): (&Words<bf16>, &Words<bf16>, &Words<bf16>)| attend(q, k, v, SCALE);
    let halves = record(run, (spec(odd()), spec(odd()), spec(odd()))).unwrap();
    assert!(calls(&text(&halves, AttentionKernel::Cudnn)).is_empty(), "an odd number of queries uses cuDNN");
    let Some(pjrt) = plugin(1) else { return };
    let options = RunOptions::new().attention(AttentionKernel::Cudnn);
    let found = pjrt.compile_with(&program, &options).unwrap().call((&of(4), &of(5), &of(6))).unwrap();
    assert_near(&found.to_host().unwrap(), &attend(&of(4), &of(5), &of(6), 0.125), 1e-5, "f32");
}
