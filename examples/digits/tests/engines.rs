//! Trains on XLA, on one device and on meshes. The losses are within 1e-4 of those that
//! the library computes without XLA.

#[path = "../src/model.rs"]
mod model;
#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../src/train.rs"]
mod train;

use digits::Digits;
use engine::{Devices, Engine};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::path::Path;
use train::{start, trainer};
use xla_tests::plugin;

const BATCH: usize = 16;
const STEPS: usize = 100;

fn losses(digits: &Digits, engine: &Engine) -> Vec<f32> {
    let mut trainer = trainer(engine, start(32, &mut StdRng::seed_from_u64(1)), BATCH).unwrap();
    let rows: Vec<usize> = (0..STEPS * BATCH).collect();
    let losses = rows.chunks_exact(BATCH).map(|rows| {
        let (images, labels) = digits.batch(rows);
        trainer.step(&images, &labels).unwrap()
    });
    let losses: Vec<_> = losses.collect();
    losses.into_iter().map(|loss| loss.read().unwrap()).collect()
}

#[test]
fn losses_are_those_of_the_cpu() {
    let Some(pjrt) = plugin(4) else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");
    let digits = Digits::read(Path::new(path)).unwrap();
    let expected = losses(&digits, &Engine::Cpu);
    assert!(expected[STEPS - 1] < 0.5 * expected[0], "{expected:?}");
    let meshes = [None, Some(Devices { data: 4, model: 1 }), Some(Devices { data: 2, model: 2 })];
    for mesh in meshes.into_iter().filter(|mesh| mesh.is_none() || pjrt.devices().len() >= 4) {
        let engine = Engine::Xla { pjrt: pjrt.clone(), mesh };
        for (step, (found, expected)) in losses(&digits, &engine).iter().zip(&expected).enumerate() {
            let difference = (found - expected).abs();
            assert!(difference <= 1e-4, "step {step} on {engine}: {found} instead of {expected}");
        }
    }
}

#[test]
fn sizes_that_devices_do_not_divide_are_errors() {
    let Some(pjrt) = plugin(4).filter(|pjrt| pjrt.devices().len() >= 3) else { return };
    let message = |data, model| {
        let engine = Engine::Xla { pjrt: pjrt.clone(), mesh: Some(Devices { data, model }) };
        let trainer = trainer(&engine, start(32, &mut StdRng::seed_from_u64(1)), BATCH);
        trainer.err().expect("an error").to_string()
    };
    let of_batch = message(3, 1);
    assert!(of_batch.contains("`Example` has size 16, which the 3 devices"), "{of_batch}");
    let of_hidden = message(1, 3);
    assert!(of_hidden.contains("`Hidden` has size 32, which the 3 devices"), "{of_hidden}");
}
