//! The decoder as a recorded program. Called with other weights, texts and moments than it was
//! recorded with, the program returns the same bits as the recorded function.

#[path = "../../../tests/support/bits.rs"]
mod bits;

use bits::assert_same;
use gpt::model::{Batch, Cache, Gpt, Scores, Sizes, Texts, Token};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::optim::{AdamW, Optimizer, Schedule, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record};

const SIZES: Sizes = Sizes { chars: 11, layers: 2, heads: 2, width: 16, inner: 24 };

fn texts(len: usize, seed: u64) -> Texts {
    (rand::<f32, _>((Batch.of(3), Token.of(len)), seed) * SIZES.chars as f32).cast().eval()
}

type State = (Gpt, AdamW<Gpt>);

fn start(seed: u64) -> State {
    let rate = Schedule::cosine_to(0.02, 0.002, 6).warm_up(2);
    (Gpt::random(SIZES, seed), AdamW::new(rate).betas(0.9, 0.99).weight_decay(0.1))
}

fn step((mut gpt, mut optimizer): State, texts: &Texts, next: &Texts) -> (State, Tensor<f32, ()>) {
    let (loss, mut gradient) = gpt.gradient(texts, next);
    clip_by_global_norm(&mut gradient, 1.0);
    optimizer.step(&mut gpt, &gradient);
    ((gpt, optimizer), loss)
}

#[test]
fn scores_and_losses_are_those_of_other_texts() {
    let ([gpt, other], len) = ([1, 2].map(|seed| Gpt::random(SIZES, seed)), 9);
    let scores = record(|(gpt, texts): (&Gpt, &Texts)| gpt.scores(texts), (&gpt, &texts(len, 1))).unwrap();
    let loss = |(gpt, texts, next): (&Gpt, &Texts, &Texts)| gpt.loss(texts, next);
    let losses = record(loss, (&gpt, &texts(len, 1), &texts(len, 2))).unwrap();
    // This function captures the weights, so they are constants of its program.
    let of_texts = record(|texts: &Texts| gpt.scores(texts), &texts(len, 1)).unwrap();
    for (gpt, seed) in [(&gpt, 3), (&other, 5), (&other, 7)] {
        let (texts, next) = (texts(len, seed), texts(len, seed + 1));
        assert_same(&scores.call((gpt, &texts)), &gpt.scores(&texts));
        assert_same(&losses.call((gpt, &texts, &next)), &gpt.loss(&texts, &next));
    }
    assert_same(&of_texts.call(&texts(len, 4)), &gpt.scores(&texts(len, 4)));
}

#[test]
fn a_recorded_step_is_the_step() {
    let fast = jit::<(State, &Texts, &Texts), _>(|(state, texts, next)| step(state, texts, next));
    for seed in 1..3 {
        let (mut own, mut expected) = (start(seed), start(seed));
        for at in 0..6 {
            let len = if at < 4 { 9 } else { 6 };
            let (texts, next) = (texts(len, 10 * seed + at), texts(len, 100 * seed + at));
            let (next_own, loss) = fast.call((own, &texts, &next));
            let (next_expected, expected_loss) = step(expected, &texts, &next);
            assert_same(&loss, &expected_loss);
            assert_same(&next_own, &next_expected);
            (own, expected) = (next_own, next_expected);
        }
    }
    // One program without moments, one with moments, and one for shorter texts.
    assert_eq!(fast.programs(), 3);
}

/// A cache is changed in place, and its length is a plain number, so a program would always write
/// at the position of the recorded call.
#[test]
fn decoding_with_a_cache_is_refused() {
    let gpt = Gpt::random(SIZES, 1);
    let refused = |run: &dyn Fn() -> Option<DimError>| match catch_unwind(AssertUnwindSafe(run)) {
        Ok(error) => error.expect("an error").to_string(),
        Err(payload) => payload.downcast_ref::<String>().expect("the panic has a message").clone(),
    };
    let fresh = refused(&|| {
        record(|texts: &Texts| gpt.next_scores(texts, &mut Cache::new(&gpt, 3, 8)), &texts(4, 1)).err()
    });
    let captured = refused(&|| {
        let mut cache = Cache::new(&gpt, 3, 8);
        gpt.next_scores(&texts(4, 1), &mut cache);
        record(|texts: &Texts| -> Scores { gpt.next_scores(texts, &mut cache) }, &texts(1, 2)).err()
    });
    for error in [fresh, captured] {
        assert!(error.starts_with("`assign` cannot be recorded (at "), "{error}");
        assert!(error.contains("src/model.rs:"), "{error}");
    }
}
