//! The network as a recorded program. Called with other weights, moments, images and labels than it
//! was recorded with, the program returns the same bits as the recorded function.

#[path = "../../../tests/support/bits.rs"]
mod bits;

use bits::assert_same;
use digits::{Class, Example, Labels};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record};
use vision::layers::{Channel, Column, Maps, Row};
use vision::model::Network;
use vision::train::{State, start, step};

fn images(count: usize, seed: u64) -> (Maps, Labels) {
    let images = rand((Example.of(count), Channel.of(1), Row.of(10), Column.of(10)), seed);
    let labels = (rand::<f32, _>(Example.of(count), seed) * Class::SIZE as f32).cast().eval();
    (images, labels)
}

#[test]
fn a_recorded_step_is_the_step() {
    let fast = jit::<(State, &Maps, &Labels), _>(|(state, images, labels)| step(state, images, labels));
    for seed in 1..3 {
        let [mut own, mut expected] = [(), ()].map(|()| start(4, 2, 5, seed));
        for at in 0..5 {
            let (images, labels) = images(if at < 4 { 6 } else { 2 }, 10 * seed + at);
            let (next, loss) = fast.call((own, &images, &labels));
            let (expected_next, expected_loss) = step(expected, &images, &labels);
            assert_same(&loss, &expected_loss);
            assert_same(&next, &expected_next);
            (own, expected) = (next, expected_next);
        }
    }
    // One program without momentum, one with momentum, and one for the small batch.
    assert_eq!(fast.programs(), 3);
}

#[test]
fn images_are_read_by_a_program() {
    let [(network, _), (other, _)] = [1, 2].map(|seed| start(4, 2, 5, seed));
    let (other, _) = step((other, start(4, 2, 5, 2).1), &images(6, 1).0, &images(6, 1).1).0;
    let read = |(network, images): (&Network, &Maps)| network.classify(images);
    let program = record(read, (&network, &images(6, 1).0)).unwrap();
    for (network, seed) in [(&network, 2), (&other, 3), (&other, 4)] {
        let (images, _) = images(6, seed);
        assert_eq!(program.call((network, &images)), network.classify(&images));
    }
}
