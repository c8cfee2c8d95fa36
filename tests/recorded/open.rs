//! Programs with dims of any size.

use crate::bits::support::assert_same;
use crate::reloaded;
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::nn::linear::Linear;
use typed_dims::optim::clip_by_global_norm;
use typed_dims::prelude::*;
use typed_dims::program::{dynamic, record, spec};

dims! {
    struct Row;
    struct Col;
    struct In;
    struct Hidden;
    struct Class;
    struct Seq;
    struct Key;
    struct Feat;
}

type Matrix = Tensor<f32, (Row, Col)>;
type Data = Tensor<f32, (Row, In)>;
type Labels = Tensor<usize, (Row,)>;
type Network = (Linear<(In,), (Hidden,)>, Linear<(Hidden,), (Class,)>);

fn network() -> Network {
    (Linear::new(In.of(6), Hidden.of(5), 1), Linear::new(Hidden.of(5), Class.of(4), 2))
}

fn data(rows: usize, seed: u64) -> (Data, Labels) {
    let x: Data = randn((Row.of(rows), In.of(6)), seed);
    let y: Labels = from_fn(Row.of(rows), |at| (at * 3 + seed as usize) % 4);
    (x, y)
}

fn step((net, x, y): (&Network, &Data, &Labels)) -> (Tensor<f32, ()>, Network) {
    let loss = |net: &Network| {
        let hidden: Tensor<f32, (Row, Hidden)> = net.0.apply(x);
        let scores: Tensor<f32, (Row, Class)> = net.1.apply(&hidden.relu().eval());
        scores.cross_entropy(Class, y).mean(Row)
    };
    let (loss, mut gradient) = loss_and_grad(loss, net);
    clip_by_global_norm(&mut gradient, 0.1);
    (loss, gradient)
}

#[test]
fn a_training_step_takes_batches_of_any_size() {
    let program = record(step, (&network(), spec((dynamic(Row), In.of(6))), spec(dynamic(Row))));
    let program = program.expect("the function can be recorded");
    let net = network();
    let loaded = reloaded(&program, &step((&net, &data(5, 1).0, &data(5, 1).1)));
    for rows in [7, 1, 2, 64, 300, 7] {
        let (x, y) = data(rows, rows as u64);
        let ((loss, gradient), (expected_loss, expected)) =
            (program.call((&net, &x, &y)), step((&net, &x, &y)));
        assert_same(&loaded.call((&net, &x, &y)), &program.call((&net, &x, &y)));
        assert!((loss.order(()) - expected_loss.order(())).abs() < 1e-6, "`Row` = {rows}");
        let difference = (&gradient.0.weight - &expected.0.weight).abs().max((In, Hidden)).order(());
        assert!(difference < 1e-6, "`Row` = {rows}: {difference}");
    }
    // Sizes that are not open are fixed, and the inputs must agree on open sizes.
    let wide: Data = randn((Row.of(3), In.of(7)), 1);
    assert!(program.try_call((&net, &wide, &data(3, 1).1)).is_err());
    let (x, _) = data(3, 1);
    assert!(program.try_call((&net, &x, &data(4, 1).1)).is_err());
    let text = program.to_string();
    assert!(text.contains("[Row = any, In = 6]"), "{text}");
}

#[test]
fn products_of_two_dims_follow_both() {
    type Words = Tensor<f64, (Seq, Feat)>;
    let attend = |x: &Words| -> Words {
        let keys = x.view().rename(Seq, Key);
        let scores = (x * &keys).sum(Feat) * 0.5;
        (select(Key.le(Seq), scores, f64::NEG_INFINITY).softmax(Key) * keys).sum(Key)
    };
    let program = record(attend, spec((dynamic(Seq), dynamic(Feat)))).expect("the function can be recorded");
    for (words, features) in [(3, 4), (1, 1), (20, 2), (5, 70)] {
        let x: Words = randn((Seq.of(words), Feat.of(features)), 1);
        let difference = (program.call(&x) - attend(&x)).abs().max((Seq, Feat)).order(());
        assert!(difference < 1e-12, "`Seq` = {words}, `Feat` = {features}: {difference}");
    }
}

#[test]
fn sizes_add_up() {
    let f = |x: &Matrix| {
        let longer = concat(Row, [x.clone(), x.view().flip(Row).slice(Row, 0..1).eval()]);
        (
            (&longer).cumsum(Row).mean(Row),
            concat(Col, [x.clone(), (x * 2.0).eval()]),
            x.view().pad(Col, 1, 2, Pad::Constant(0.0)),
        )
    };
    let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
    let program = reloaded(&program, &f(&ones((Row.of(2), Col.of(2)))));
    for (rows, columns) in [(3, 2), (1, 1), (9, 30)] {
        let x: Matrix = randn((Row.of(rows), Col.of(columns)), 1);
        assert_eq!(program.call(&x), f(&x), "`Row` = {rows}, `Col` = {columns}");
    }
}

#[test]
fn batches_without_examples_have_moments() {
    let moments = |x: &Matrix| {
        let found = x.batch_norm(Row, 1e-5);
        (found.mean, found.var)
    };
    for sizes in [(0, 5), (0, 1)] {
        let x: Matrix = zeros((Row.of(sizes.0), Col.of(sizes.1)));
        let program = reloaded(&record(moments, &x).expect("the function can be recorded"), &moments(&x));
        let (mean, var) = program.call(&x);
        assert_eq!((mean.size(Col), var.size(Col)), (sizes.1, sizes.1));
    }
}

/// If a program cannot track the size of a dim, the error names the dim.
#[test]
fn untracked_sizes_are_refused() {
    let scaled = |x: &Matrix| (x.view().sum(Row) * (x.size(Row) as f32).sqrt()).eval();
    let error = record(scaled, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("depends on the size of `Row`") && error.contains("open.rs"), "{error}");
    let loops = |x: &Matrix| {
        let mut sum: Tensor<f32, (Col,)> = zeros(Col.of(2));
        for row in 0..x.size(Row) {
            sum = (sum + x.view().index(Row, row)).eval();
        }
        sum
    };
    let error = record(loops, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("the size of `Row`") || error.contains("other sizes of `Row`"), "{error}");
    // These numbers have one formula for odd sizes and another for even ones.
    let slope = |x: &Matrix| grad(|x: &Matrix| x.median(Row).square().sum(Col), x);
    let error = record(slope, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("sizes of `Row`") || error.contains("the size of `Row`"), "{error}");
    let pairs = |x: &Matrix| x.view().slice(Row, 0..x.size(Row) / 2 * 2).sum(Row).eval();
    let error = record(pairs, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("sizes of `Row`") || error.contains("the size of `Row`"), "{error}");
    // A division by the size itself can be tracked.
    let mean = |x: &Matrix| (x.view().sum(Row) / x.size(Row) as f32).eval();
    let program = record(mean, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let x: Matrix = randn((Row.of(11), Col.of(2)), 1);
    assert_eq!(program.call(&x), mean(&x));
}

#[test]
fn equal_functions_have_equal_open_programs() {
    let scaled = |by: f32| move |x: &Matrix| (x.view().sum(Row) * by).eval();
    let open =
        |by| record(scaled(by), spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert!(open(2.0) == open(2.0) && open(2.0) != open(3.0));
    let sized = record(scaled(2.0), spec((Row.of(7), Col.of(2)))).expect("the function can be recorded");
    let saved = open(2.0).to_saved().expect("the program can be saved");
    assert!(open(2.0) != sized && saved != sized.to_saved().expect("the program can be saved"));
    assert!(saved.restore::<&Matrix, Tensor<f32, (Col,)>>(&ones(Col.of(2))).is_ok());
}
