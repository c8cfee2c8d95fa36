//! Trains on XLA, on one device and on meshes. The losses are within 1e-4 of those on the CPU.

use engine::{Devices, Engine};
use gpt::text::{Corpus, Vocabulary};
use gpt::train::{Options, Training};
use xla_tests::plugin;

const OPTIONS: Options = Options {
    layers: 2,
    heads: 2,
    width: 16,
    inner: 24,
    context: 12,
    batch: 4,
    steps: 100,
    warm_up: 6,
    rate: 3e-3,
    seed: 3,
};

fn losses(engine: &Engine) -> Vec<f32> {
    let text = "the cat sat on the mat and the dog sat on the log. ".repeat(20);
    let vocabulary = Vocabulary::of(&text);
    let corpus = Corpus::new(vocabulary.encode(&text).expect("the vocabulary has all characters"));
    let mut training = Training::new(OPTIONS, vocabulary, engine).unwrap();
    (0..OPTIONS.steps).map(|_| training.step(&corpus).unwrap()).collect()
}

#[test]
fn losses_are_those_of_the_cpu() {
    let Some(pjrt) = plugin(4) else { return };
    let expected = losses(&Engine::Cpu);
    assert!(expected[OPTIONS.steps - 1] < 0.7 * expected[0], "{expected:?}");
    let meshes = [None, Some(Devices { data: 4, model: 1 }), Some(Devices { data: 2, model: 2 })];
    for mesh in meshes.into_iter().filter(|mesh| mesh.is_none() || pjrt.devices().len() >= 4) {
        let engine = Engine::Xla { pjrt: pjrt.clone(), mesh };
        for (step, (found, expected)) in losses(&engine).iter().zip(&expected).enumerate() {
            let difference = (found - expected).abs();
            assert!(difference <= 1e-4, "step {step} on {engine}: {found} instead of {expected}");
        }
    }
}
