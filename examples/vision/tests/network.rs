//! The network on a few random images.

use digits::{Class, Example, Labels};
use typed_dims::prelude::*;
use vision::layers::{Channel, Column, Maps, Mode, Row};
use vision::model::Network;

fn images(count: usize) -> (Maps, Labels) {
    let images = rand((Example.of(count), Channel.of(1), Row.of(10), Column.of(10)), 5);
    (images, from_fn(Example.of(count), |e: usize| (e % Class::SIZE) as isize))
}

fn trained(steps: usize) -> (Network, Vec<f32>) {
    let (images, labels) = images(6);
    let mut network = Network::random(4, 2, 1);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let (loss, gradient) = network.gradient(&images, &labels);
        network = network.zip_elements(&gradient, |w: f32, g| w - 0.05 * g);
        losses.push(loss.order(()));
    }
    (network, losses)
}

#[test]
fn the_loss_falls() {
    let (_, losses) = trained(200);
    assert!(losses[199] < 0.3 * losses[0], "{losses:?}");
}

#[test]
fn after_training_each_image_is_read_on_its_own() {
    let (network, _) = trained(10);
    let (images, _) = images(6);
    let together = network.scores(&images, &mut Mode::Inference);
    let first = images.view().slice(Example, ..1).eval();
    let alone = network.scores(&first, &mut Mode::Inference);
    let difference = (alone - together.slice(Example, ..1)).abs().max((Example, Class)).order(());
    assert!(difference < 1e-5, "{difference}");
}

#[test]
fn running_moments_approach_those_of_the_batch() {
    // The running variance is unbiased, so it is close to the variance of a batch only if the batch
    // is large.
    let (images, labels) = images(32);
    let mut network = Network::random(4, 2, 1);
    let in_training = network.scores(&images, &mut Mode::training());
    let distance = |network: &Network| {
        (network.scores(&images, &mut Mode::Inference) - &in_training).abs().max((Example, Class)).order(())
    };
    let before = distance(&network);
    for _ in 0..150 {
        network.gradient(&images, &labels); // only updates the moments
    }
    assert!(distance(&network) < 1e-3 * before, "{before} before, {} after", distance(&network));
}

#[test]
fn the_gradient_is_the_slope() {
    let (images, labels) = images(6);
    let network = Network::random(4, 2, 1);
    let (_, gradient) = network.clone().gradient(&images, &labels);
    let total = std::cell::Cell::new(0.0);
    gradient.map_elements(|g: f32| {
        total.set(total.get() + g * g);
        g
    });
    let length = f32::sqrt(total.get());
    let loss = |by: f32| {
        let moved = network.zip_elements(&gradient, |w: f32, g| w + by / length * g);
        moved.clone().gradient(&images, &labels).0.order(())
    };
    let step = 1e-3;
    let slope = (loss(step) - loss(-step)) / (2.0 * step);
    assert!((slope - length).abs() < 0.02 * length, "{slope} instead of {length}");
}
