//! Tests the loader's errors and the training.

#[path = "../../../tests/support/bits.rs"]
mod bits;
#[path = "../src/model.rs"]
mod model;
#[path = "../src/train.rs"]
mod train;

use bits::assert_same;
use digits::{Digits, Images, Labels};
use engine::Engine;
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use train::{Options, State, start, step};
use typed_dims::program::{jit, record};

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn gzipped(name: &str, text: &str) -> PathBuf {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    file(name, &encoder.finish().unwrap())
}

/// A line of pixels of one value, and a class.
fn line(pixel: &str, class: &str) -> String {
    format!("{},{class}\n", [pixel; 64].join(","))
}

#[track_caller]
fn refused(path: &Path, expected: &str) {
    let message = Digits::read(path).unwrap_err().to_string();
    let rest = message.strip_prefix(&*path.display().to_string()).expect("the message begins with the file");
    assert!(rest.starts_with(expected), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn a_good_file_is_read() {
    let digits = Digits::read(&gzipped("good.csv.gz", &(line("0", "3") + &line("16", "9")))).unwrap();
    assert_eq!(digits.len(), 2);
    let (images, labels) = digits.batch(&[1, 0, 1]);
    assert_eq!(labels.dims(), [("Example", 3)]);
    assert_eq!(format!("{labels}"), "[9, 3, 9]\nwith dims (Example: 3)");
    assert_eq!(images.dims(), [("Example", 3), ("Pixel", 64)]);
    assert_eq!(images.len(), 3 * 64);
}

#[test]
fn a_missing_file_is_refused() {
    refused(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("none.csv.gz"), ": ");
}

#[test]
fn what_is_not_gzip_is_refused() {
    refused(&file("plain.csv.gz", line("0", "3").as_bytes()), ": not a valid gzip file");
    refused(&file("nothing.csv.gz", b""), ": not a whole gzip file");
}

#[test]
fn a_file_that_ends_too_early_is_refused() {
    let whole = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")).unwrap();
    let path = file("early.csv.gz", &whole[..whole.len() / 2]);
    let message = Digits::read(&path).unwrap_err().to_string();
    let rest = message.strip_prefix(&format!("{}:", path.display())).unwrap();
    let (line, what) = rest.split_once(": ").unwrap();
    assert!(line.parse::<usize>().unwrap() > 100, "{message}");
    assert_eq!(what, "not a whole gzip file: it ends too early");
}

#[test]
fn a_file_that_unpacks_to_too_much_is_refused() {
    let much = |name: &str, text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for _ in 0..(65 << 20) / text.len() {
            encoder.write_all(text.as_bytes()).unwrap();
        }
        file(name, &encoder.finish().unwrap())
    };
    let path = much("zeros.csv.gz", &"\0".repeat(1 << 16));
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let message = Digits::read(&path).unwrap_err().to_string();
    assert!(message.ends_with(": the gzip file cannot be read: it unpacks to more than 64 MiB"), "{message}");
    let path = much("images.csv.gz", &line("0", "3").repeat(500));
    let message = Digits::read(&path).unwrap_err().to_string();
    assert!(message.ends_with(": the gzip file cannot be read: it unpacks to more than 64 MiB"), "{message}");
}

#[test]
fn bad_lines_are_refused() {
    let good = line("7", "1");
    let short = good.clone() + "1,2,3\n";
    refused(&gzipped("short.csv.gz", &short), ":2: expected 65 columns, found 3");
    let long = good.clone() + &good + &line("7", "1,1");
    refused(&gzipped("long.csv.gz", &long), ":3: expected 65 columns, found 66");
    let word = good.clone() + &line("x", "1");
    refused(&gzipped("word.csv.gz", &word), ":2: column 1: `x` is not a pixel");
    let dark = line("17", "1");
    refused(
        &gzipped("dark.csv.gz", &dark),
        ":1: column 1: `17` is not a pixel: expected a whole number from 0 to 16",
    );
    let nan = line("nan", "1");
    refused(&gzipped("nan.csv.gz", &nan), ":1: column 1: `nan` is not a pixel");
    let class = good.clone() + &line("7", "10");
    refused(
        &gzipped("class.csv.gz", &class),
        ":2: column 65: `10` is not a class: expected a whole number from 0 to 9",
    );
    let negative = line("7", "-1");
    refused(&gzipped("negative.csv.gz", &negative), ":1: column 65: `-1` is not a class");
}

#[test]
fn too_few_images_are_refused() {
    refused(&gzipped("empty.csv.gz", ""), ": expected at least 2 images, found 0");
    refused(&gzipped("one.csv.gz", &line("7", "1")), ": expected at least 2 images, found 1");
}

#[test]
fn training_is_deterministic_and_learns() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");
    let digits = Digits::read(Path::new(path)).unwrap();
    assert_eq!(digits.len(), 1797);

    let train = |seed| {
        let mut losses = Vec::new();
        let options = Options { seed, epochs: 4, hidden: 16 };
        let outcome = train::run(&digits, options, &Engine::Cpu, |_, loss| losses.push(loss)).unwrap();
        (losses, outcome)
    };
    let (losses, outcome) = train(1);
    assert_eq!((losses.clone(), outcome.clone()), train(1));
    assert_ne!(losses, train(2).0);

    assert_eq!(losses.len(), 4);
    assert!(losses[3] < losses[0] / 3.0, "{losses:?}");
    assert!(outcome.accuracy > 0.85, "{}", outcome.accuracy);
    assert_eq!(outcome.confusion.sum(), 899);
    let correct = outcome.confusion.diag().sum() as f64;
    assert_eq!(correct / 899.0, outcome.accuracy);
}

/// Calls a recorded step with weights and images that differ from the recorded ones, and with a
/// smaller last batch. The results equal those of the step itself, bit for bit.
#[test]
fn a_recorded_step_is_the_step() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");
    let digits = Digits::read(Path::new(path)).unwrap();
    let fast = jit::<(State, &Images, &Labels), _>(|(state, images, labels)| step(state, images, labels));
    for seed in 1..4 {
        let [mut own, mut expected] = [(), ()].map(|()| start(8, &mut StdRng::seed_from_u64(seed)));
        for rows in (0..53).collect::<Vec<usize>>().chunks(10) {
            let rows: Vec<usize> = rows.iter().map(|row| 7 * row + 100 * seed as usize).collect();
            let (images, labels) = digits.batch(&rows);
            let (next, loss) = fast.call((own, &images, &labels));
            let (expected_next, expected_loss) = step(expected, &images, &labels);
            assert_same(&loss, &expected_loss);
            assert_same(&next, &expected_next);
            (own, expected) = (next, expected_next);
        }
    }
    // One program for batches of 10, and one for the last batch.
    assert_eq!(fast.programs(), 2);
}

/// The network is an input of one program. The other program captures it, so its weights are
/// constants there.
#[test]
fn images_are_read_by_a_program() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");
    let digits = Digits::read(Path::new(path)).unwrap();
    let [(network, _), (other, _)] = [1, 2].map(|seed| start(8, &mut StdRng::seed_from_u64(seed)));
    let images = |first: usize| digits.batch(&(first..first + 20).collect::<Vec<_>>()).0;
    let both = record(
        |(network, images): (&model::Network, &Images)| network.classify(images),
        (&network, &images(0)),
    );
    let one = record(|images: &Images| network.classify(images), &images(0)).unwrap();
    for first in [0, 30, 1000] {
        let images = images(first);
        assert_eq!(one.call(&images), network.classify(&images));
        assert_eq!(both.as_ref().unwrap().call((&other, &images)), other.classify(&images));
    }
}
