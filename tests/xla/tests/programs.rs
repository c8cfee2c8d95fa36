//! Layers, losses, training steps and attention on XLA, compared with the library's own results.

#![allow(missing_docs)]

use typed_dims::grad::loss_and_grad;
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::{record, spec};
use xla_tests::{assert_near, plugin};

dims! { pub struct Row; pub struct In; pub struct Hidden; pub struct Class; }

type Data = Tensor<f32, (Row, In)>;
type Labels = Tensor<i64, (Row,)>;

#[derive(Parameters)]
struct Network {
    first: Tensor<f32, (In, Hidden)>,
    bias: Tensor<f32, (Hidden,)>,
    second: Tensor<f32, (Hidden, Class)>,
}

fn network() -> Network {
    Network {
        first: randn((In.of(5), Hidden.of(8)), 1),
        bias: randn(Hidden.of(8), 2),
        second: randn((Hidden.of(8), Class.of(3)), 3),
    }
}

fn loss(net: &Network, x: &Data, y: &Labels) -> Tensor<f32, ()> {
    let hidden = ((x * &net.first).sum(In) + &net.bias).relu();
    let scores = (hidden * &net.second).sum(Hidden);
    scores.cross_entropy(Class, y).mean(Row)
}

#[test]
fn a_training_step_is_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    type State = (Network, Adam<Network>);
    let x: Data = randn((Row.of(4), In.of(5)), 4);
    let y: Labels = from_vec(Row.of(4), vec![0, 2, 1, 2]);
    let step = |(mut net, mut adam): State, x: &Data, y: &Labels| {
        let (loss, gradient) = loss_and_grad(|net| loss(net, x, y), &net);
        adam.step(&mut net, &gradient);
        ((net, adam), loss)
    };
    // (The first step makes the moments.)
    let first = || step((network(), Adam::new(0.1)), &x, &y).0;
    let program =
        record(|(state, x, y): (State, &Data, &Labels)| step(state, x, y), (first(), &x, &y)).unwrap();
    let run = pjrt.compile(&program).unwrap();
    let (mut state, mut own) = (pjrt.put(&first()).unwrap(), first());
    for _ in 0..5 {
        let (next, found) = run.call((state, &x, &y)).unwrap();
        let (after, expected) = step(own, &x, &y);
        (state, own) = (next, after);
        assert_near(&found.to_host().unwrap(), &expected, 1e-5, "the loss");
    }
    assert_near(&state.to_host().unwrap(), &own, 1e-4, "the state");
}

#[test]
fn sizes_are_enough() {
    let Some(pjrt) = plugin(1) else { return };
    let program = record(|x: &Data| x.softmax(In), spec((Row.of(4), In.of(5)))).unwrap();
    let x: Data = randn((Row.of(4), In.of(5)), 4);
    let found = pjrt.compile(&program).unwrap().call(&x).unwrap();
    assert_near(&found.to_host().unwrap(), &x.softmax(In), 1e-6, "a softmax");
}
