//! Groups of parameters.

use super::{
    Column, Matrix, Network, Row, Token, elements, first, matrix, network, noise, numbers, pairs, reference,
};
use typed_dims::optim::{Adam, AdamW, Lamb, Optimizer, Schedule, Sgd};
use typed_dims::prelude::*;

type Three = (Matrix<f64>, Matrix<f64>, Matrix<f64>);

#[test]
fn groups_agree_with_pytorch() {
    let expected = &reference()["groups"];
    let mut all: Three = (first(), first(), first());
    let mut optimizer = AdamW::new(Schedule::cosine(0.03, 100))
        .weight_decay(0.2)
        .no_decay(|p| p.name() != "0")
        .group("2", |group| group.rate(Schedule::cosine(0.3, 100)));
    for step in 1..=100 {
        let gradient = |p: &Matrix<f64>| (p * 0.3 + matrix::<f64>(|at| noise(at, step))).eval();
        let gradient = (gradient(&all.0), gradient(&all.1), gradient(&all.2));
        optimizer.step(&mut all, &gradient);
        let Some(expected) = expected.get(step.to_string()) else { continue };
        for (p, expected) in pairs([&all.0, &all.1, &all.2], expected.as_array().unwrap()) {
            for (found, expected) in pairs(elements(p), numbers(expected)) {
                assert!((found - expected).abs() < 1e-12, "step {step}: {found} instead of {expected}");
            }
        }
    }
    assert!(expected.get("100").is_some());
}

/// How far the first element of each parameter of a network moves with a gradient of 1, by name.
fn moved(mut optimizer: Sgd<Network>) -> Vec<(String, f32)> {
    let mut value = network(3);
    let before = value.clone();
    let gradient = value.map_elements(|_: f32| 1.0);
    optimizer.step(&mut value, &gradient);
    let names = value.names().into_iter().filter(|name| name != "ids");
    let first = |network: &Network, name: &str| -> f32 {
        match name.split('.').collect::<Vec<_>>()[..] {
            ["embedding"] => network.embedding.view().order((Token, Column))[[0, 0]],
            ["layers", at, "weight"] => {
                network.layers[at.parse::<usize>().unwrap()].weight.view().order((Row, Column))[[0, 0]]
            }
            ["layers", at, "bias"] => {
                let bias = network.layers[at.parse::<usize>().unwrap()].bias.as_ref().unwrap();
                bias.view().order(Row)[0]
            }
            _ => panic!("there is no parameter `{name}`"),
        }
    };
    names.map(|name| (name.clone(), first(&before, &name) - first(&value, &name))).collect()
}

fn near(found: &[(String, f32)], expected: [f32; 6]) {
    for ((name, found), expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{name} moved by {found} instead of {expected}");
    }
    assert_eq!(found.len(), 6);
}

/// The numbers are in the order `embedding`, `layers.0.weight`, `layers.1.weight`, `layers.1.bias`,
/// `layers.2.weight`, `layers.2.bias`.
#[test]
fn each_setting_is_that_of_the_last_group_with_it() {
    let sgd = || Sgd::new(0.1);
    near(&moved(sgd().group("*.bias", |group| group.rate(0.5))), [0.1, 0.1, 0.1, 0.5, 0.1, 0.5]);
    near(&moved(sgd().group("layers.1", |group| group.rate_factor(2.0))), [0.1, 0.1, 0.2, 0.2, 0.1, 0.1]);
    let both = sgd()
        .group("layers", |group| group.rate(0.3))
        .group("*.bias", |group| group.rate_factor(2.0))
        .group("layers.2.*", |group| group.rate(0.4));
    near(&moved(both), [0.1, 0.3, 0.3, 0.6, 0.4, 0.8]);
    let by_dims = sgd().group_where(|p| p.has(Token), |group| group.rate(0.0));
    near(&moved(by_dims), [0.0, 0.1, 0.1, 0.1, 0.1, 0.1]);
    let by_rank = sgd().group_where(|p| p.rank() < 2 && p.sizes() == [3], |group| group.rate(0.0));
    near(&moved(by_rank), [0.1, 0.1, 0.1, 0.0, 0.1, 0.0]);
}

#[test]
fn groups_that_make_no_sense_are_refused() {
    fn refused<O: Optimizer<Network>>(mut optimizer: O) -> String {
        let mut value = network(3);
        let gradient = value.map_elements(|_: f32| 1.0);
        let error = optimizer.try_step(&mut value, &gradient).expect_err("an error");
        assert_eq!((super::all(&value), optimizer.steps()), (super::all(&network(3)), 0));
        error.to_string()
    }
    assert_eq!(
        refused(AdamW::new(0.1).group("*.bais", |group| group.weight_decay(0.0))),
        "the group `*.bais` matches no parameter: the names are `embedding`, `layers.0.weight`, `layers.1.weight`, `layers.1.bias`, `layers.2.weight`, \
         `layers.2.bias`"
    );
    assert_eq!(
        refused(AdamW::new(0.1).group("*.bias", |group| group.weight_decay(-1.0))),
        "the weight decay of the group `*.bias` of `AdamW` is -1: it must be finite and 0 or more"
    );
    assert_eq!(
        refused(Lamb::new(0.1).group("*.bias", |group| group.rate(f64::NAN))),
        "the learning rate of the group `*.bias` of `Lamb` is NaN: it must be finite and 0 or more"
    );
    assert_eq!(
        refused(Sgd::new(0.1).group_where(|_| true, |group| group.rate_factor(-2.0))),
        "the rate factor of a `group_where` of `Sgd` is -2: it must be finite and 0 or more"
    );
}

/// A group that is added later applies from the next step.
#[test]
fn groups_can_be_added_between_steps() {
    let (mut p, gradient) = (ones::<f64, _>(Row.of(2)), ones::<f64, _>(Row.of(2)));
    let mut optimizer = Sgd::new(0.1);
    optimizer.step(&mut p, &gradient);
    let mut optimizer = optimizer.group("*", |group| group.rate(0.5));
    optimizer.step(&mut p, &gradient);
    assert!((p.order(Row)[0] - 0.4).abs() < 1e-12);
}

/// Groups are settings, which a checkpoint does not contain. With the same groups, training
/// continues as if it had not stopped.
#[test]
fn a_training_with_groups_goes_on_from_a_file() {
    let optimizer = || Adam::new(0.1).group("layers", |group| group.weight_decay(0.3).rate_factor(0.5));
    fn train(value: &mut Network, optimizer: &mut Adam<Network>) {
        for _ in 0..3 {
            let gradient = value.map_elements(|p: f32| p.sin());
            optimizer.step(value, &gradient);
        }
    }
    let (mut whole, mut one) = (network(3), optimizer());
    train(&mut whole, &mut one);
    let mut checkpoint = typed_dims::optim::checkpoint::Checkpoint::new();
    checkpoint.put("network", &whole).unwrap().put_optimizer("optimizer", &one).unwrap();
    let saved = typed_dims::optim::checkpoint::Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let (mut resumed, mut other) = (network(3), optimizer());
    saved.load("network", &mut resumed).unwrap();
    saved.load_optimizer("optimizer", &mut other, &resumed).unwrap();
    train(&mut whole, &mut one);
    train(&mut resumed, &mut other);
    assert_eq!(super::all(&whole), super::all(&resumed));
}
