//! The decoder with tiny sizes.

use engine::Engine;
use gpt::model::{Batch, Cache, Char, Gpt, Scores, Sizes, Texts, Token};
use gpt::sample::{Options as Sampling, sample};
use gpt::text::{Corpus, Vocabulary, passages};
use gpt::train::{Options, Training};
use typed_dims::prelude::*;

const SIZES: Sizes = Sizes { chars: 7, layers: 2, heads: 2, width: 8, inner: 12 };
const OPTIONS: Options = Options {
    layers: 2,
    heads: 2,
    width: 16,
    inner: 24,
    context: 8,
    batch: 4,
    steps: 40,
    warm_up: 4,
    rate: 0.02,
    seed: 3,
};

fn texts(len: usize) -> Texts {
    from_fn((Batch.of(3), Token.of(len)), |(b, t)| ((5 * b + 3 * t + t * t) % SIZES.chars) as u32)
}

fn distance(a: &Scores, b: &Scores) -> f32 {
    (a - b).abs().max((Batch, Token, Char)).order(())
}

/// Weights large enough that the scores are not all nearly 0. Gains stay 1.
fn gpt() -> Gpt {
    Gpt::random(SIZES, 1).map_elements(|w: f32| if w == 1.0 { w } else { 10.0 * w })
}

fn corpus() -> (Vocabulary, Corpus) {
    let text = "the cat sat on the mat and the dog sat on the log. ".repeat(20);
    let vocabulary = Vocabulary::of(&text);
    let ids = vocabulary.encode(&text).expect("the vocabulary has all characters of the text");
    (vocabulary, Corpus::new(ids))
}

#[test]
fn scores_have_an_entry_for_each_character() {
    let scores = gpt().scores(&texts(5));
    assert_eq!(scores.dims(), [("Batch", 3), ("Token", 5), ("Char", 7)]);
    assert_eq!(gpt().sizes(), SIZES);
}

#[test]
fn without_weights_all_characters_are_as_likely() {
    let loss = gpt().zero().loss(&texts(5), &texts(5)).order(());
    assert!((loss - (SIZES.chars as f32).ln()).abs() < 1e-6, "{loss}");
}

#[test]
fn a_token_does_not_hear_those_behind_it() {
    let gpt = gpt();
    let (long, short) = (gpt.scores(&texts(9)), gpt.scores(&texts(4)));
    let beginning = long.slice(Token, ..4).eval();
    assert!(distance(&beginning, &short) < 1e-5);
}

#[test]
fn the_cache_agrees_with_the_whole_pass() {
    let gpt = gpt();
    let whole = gpt.scores(&texts(9));
    let mut cache = Cache::new(&gpt, 3, 9);
    for (start, end) in [(0, 4), (4, 5), (5, 6), (6, 9)] {
        let part = gpt.next_scores(&texts(9).slice(Token, start..end).eval(), &mut cache);
        let expected = whole.view().slice(Token, start..end).eval();
        assert!(distance(&part, &expected) < 1e-5, "{start}..{end}");
        assert_eq!(cache.len(), end as usize);
    }
}

#[test]
fn only_distances_count_in_rope() {
    // A text that repeats one character. RoPE must not make the scores depend on the position.
    let gpt = gpt();
    let same = |len: usize| full((Batch.of(3), Token.of(len)), 2_u32);
    let scores = gpt.scores(&same(6));
    let first = scores.view().slice(Token, ..1).eval();
    for at in 1..6 {
        assert!(distance(&scores.view().slice(Token, at..at + 1).eval(), &first) < 1e-4);
    }
}

#[test]
fn the_gradient_is_the_slope() {
    let gpt = gpt();
    let (texts, next) = (texts(5), texts(6).slice(Token, 1..6).eval());
    let (_, gradient) = gpt.gradient(&texts, &next);
    let length = {
        let total = std::cell::Cell::new(0.0);
        gradient.map_elements(|g: f32| {
            total.set(total.get() + g * g);
            g
        });
        f32::sqrt(total.get())
    };
    let loss =
        |by: f32| gpt.zip_elements(&gradient, |w: f32, g| w + by / length * g).loss(&texts, &next).order(());
    let step = 1e-2;
    let slope = (loss(step) - loss(-step)) / (2.0 * step);
    assert!((slope - length).abs() < 0.01 * length, "{slope} instead of {length}");
}

#[test]
fn the_loss_falls() {
    let (vocabulary, corpus) = corpus();
    let mut training = Training::new(OPTIONS, vocabulary, &Engine::Cpu).unwrap();
    let losses: Vec<f32> = (0..OPTIONS.steps).map(|_| training.step(&corpus).unwrap()).collect();
    assert!(losses[OPTIONS.steps - 1] < 0.5 * losses[0], "{losses:?}");
    assert!(training.test_loss(&corpus).unwrap() < 0.6 * losses[0]);
}

#[test]
fn a_training_goes_on_bit_for_bit() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("checkpoint.safetensors");
    let (vocabulary, corpus) = corpus();
    let mut training = Training::new(OPTIONS, vocabulary.clone(), &Engine::Cpu).unwrap();
    for _ in 0..3 {
        training.step(&corpus).unwrap();
    }
    training.save(&path).unwrap();
    let mut resumed = Training::open(&path, &Engine::Cpu).unwrap();
    assert_eq!((resumed.options, &resumed.vocabulary, resumed.steps()), (OPTIONS, &vocabulary, 3));
    for _ in 0..3 {
        assert_eq!(training.step(&corpus).unwrap().to_bits(), resumed.step(&corpus).unwrap().to_bits());
    }
    resumed.save(&path).unwrap();
    let of_resumed = std::fs::read(&path).unwrap();
    training.save(&path).unwrap();
    let unbroken = std::fs::read(&path).unwrap();
    assert!(elements(&of_resumed) == elements(&unbroken));
}

/// The elements of a file, without the header, whose metadata has no fixed order.
fn elements(bytes: &[u8]) -> &[u8] {
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    &bytes[8 + header..]
}

#[test]
fn what_is_no_checkpoint_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("none.safetensors");
    assert!(Training::open(&path, &Engine::Cpu).err().unwrap().to_string().contains("none.safetensors"));
}

#[test]
fn a_text_as_short_as_a_passage_is_not_exported() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (vocabulary, Corpus { mut training, test }) = corpus();
    training.truncate(OPTIONS.context);
    let run = Training::new(OPTIONS, vocabulary, &Engine::Cpu).unwrap();
    let path = folder.path().join("passages.safetensors");
    let error = run.export(&Corpus { training, test }, 1, &path).unwrap_err();
    assert_eq!(error.to_string(), "the text is too short for passages of 8 characters");
}

#[test]
fn passages_are_shifted_by_one_and_depend_on_the_step() {
    let ids: Vec<u32> = (0..100).collect();
    let (texts, next) = passages(&ids, 3, 5, 1, 0);
    assert_eq!((&texts + 1_u32).eval(), next);
    assert_eq!(passages(&ids, 3, 5, 1, 0).0, texts);
    assert_ne!(passages(&ids, 3, 5, 1, 1).0, texts);
}

#[test]
fn samples_fill_the_cache_more_than_once() {
    let gpt = gpt();
    let options = Sampling { count: 20, temperature: 1.0, context: 6, seed: 1 };
    let mut drawn = vec![Vec::new(); 2];
    let prompts = [vec![1, 2, 3], vec![4, 5, 6]];
    let texts = sample(&gpt, &prompts, options, |ids| {
        drawn.iter_mut().zip(ids).for_each(|(text, &id)| text.push(id));
    });
    for ((text, prompt), drawn) in texts.iter().zip(&prompts).zip(&drawn) {
        assert_eq!(text, &[prompt.as_slice(), drawn].concat());
        assert_eq!(text.len(), 23);
    }
}

/// With a temperature near 0, each character is the one with the highest score in a pass over all
/// characters before it.
#[test]
fn a_cold_sample_takes_the_most_likely() {
    let gpt = gpt();
    let prompt = vec![1, 2, 3, 4];
    let options = Sampling { count: 5, temperature: 1e-6, context: 16, seed: 1 };
    let [text] = sample(&gpt, std::slice::from_ref(&prompt), options, |_| ()).try_into().unwrap();
    for at in prompt.len()..text.len() {
        let whole = from_fn((Batch.of(1), Token.of(at)), |(_, t)| text[t]);
        let best = gpt.scores(&whole).argmax(Char).index(Token, at as isize - 1).order(Batch);
        assert_eq!(text[at] as usize, best[0] as usize, "{at}");
    }
}
