//! Compares prepared programs with their steps run one by one, bit for bit: planned products and
//! sums, normalizations and softmax, attention, and memory that calls reuse.

use typed_dims::grad::loss_and_grad;
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_kernels::trace::run_plainly;

dims! {
    struct Row;
    struct In;
    struct Out;
    struct Key;
}

type Data = Tensor<f32, (Row, In)>;
type Weights = Tensor<f32, (In, Out)>;
type Bias = Tensor<f32, (Out,)>;
type Square = Tensor<f32, (Row, Out)>;

fn bits<'x>(tensors: impl IntoIterator<Item = &'x [f32]>) -> Vec<u32> {
    tensors.into_iter().flatten().map(|x| x.to_bits()).collect()
}

/// Runs a call with its steps one by one.
fn plainly<X>(call: impl FnOnce() -> X) -> X {
    run_plainly(true);
    let found = call();
    run_plainly(false);
    found
}

#[test]
fn products_and_sums_of_all_sizes_keep_their_bits() {
    fn loss((x, w, b): (&Data, &Weights, &Bias), y: &Square) -> Tensor<f32, ()> {
        let hidden = ((x * w).sum(In) + b).relu().eval();
        let shares = (&hidden * 0.1).softmax(Out);
        let squares = (&hidden - y).square().mean((Row, Out));
        (squares + (shares * &hidden).sum(Out).mean(Row) + x.square().sum(In).max(Row)).eval()
    }
    for (rows, inner, columns) in [(3, 4, 5), (1, 200, 1), (32, 64, 48), (70, 300, 33), (256, 16, 8)] {
        let (row, inn, out) = (Row.of(rows), In.of(inner), Out.of(columns));
        let given = |seed: u64| {
            let w = randn::<f32, _>((inn, out), seed + 1).map_elements(|w: f32| 0.1 * w);
            (randn::<f32, _>((row, inn), seed), w, randn::<f32, _>(out, seed + 2))
        };
        let targets: Square = randn((row, out), 9);
        let [first, other] = [given(1), given(5)];
        let program = record(
            |(x, w, b, y): (&Data, &Weights, &Bias, &Square)| {
                loss_and_grad(|given: (&Data, &Weights, &Bias)| loss(given, y), (x, w, b))
            },
            (&first.0, &first.1, &first.2, &targets),
        )
        .unwrap();
        let call = |(x, w, b): &(Data, Weights, Bias)| program.call((x, w, b, &targets));
        let flat = |(loss, (x, w, b)): &(Tensor<f32, ()>, (Data, Weights, Bias))| {
            bits([loss.memory(), x.memory(), w.memory(), b.memory()])
        };
        let expected = [&first, &other].map(|given| flat(&plainly(|| call(given))));
        // Results do not change while later calls reuse the memory of earlier ones.
        let results: Vec<_> = (0..3).flat_map(|_| [call(&first), call(&other)]).collect();
        for (at, result) in results.iter().enumerate() {
            assert_eq!(flat(result), expected[at % 2], "{rows} {inner} {columns}, call {at}");
        }
        let (eager, _) = loss_and_grad(
            |given: (&Data, &Weights, &Bias)| loss(given, &targets),
            (&other.0, &other.1, &other.2),
        );
        let (found, eager) = (results[1].0.memory()[0], eager.memory()[0]);
        assert!((found - eager).abs() <= 1e-5 * eager.abs());
    }
}

#[test]
fn zero_times_infinity_is_zero_in_prepared_gradients() {
    let (row, inn, out) = (Row.of(6), In.of(5), Out.of(4));
    fn loss(x: &Data, w: &Weights) -> Tensor<f32, ()> {
        (x * w).sum(In).relu().sum((Row, Out))
    }
    let x: Data = randn((row, inn), 1);
    let w: Weights = randn((inn, out), 2);
    let program = record(
        |(x, w): (&Data, &Weights)| loss_and_grad(|(x, w): (&Data, &Weights)| loss(x, w), (x, w)),
        (&x, &w),
    )
    .unwrap();
    // With `positive`, the products of row 2 are all negative, so `relu` passes no gradient to the
    // row, whose elements are infinite.
    let infinite: Data = from_fn((row, inn), |(r, i)| match (r, i) {
        (2, _) => f32::NEG_INFINITY,
        _ => (r + i) as f32 - 3.0,
    });
    let positive: Weights = from_fn((inn, out), |(i, o)| 1.0 + (i * o) as f32);
    for (x, w) in [(&infinite, &positive), (&x, &w)] {
        let flat = |(loss, (dx, dw)): &(Tensor<f32, ()>, (Data, Weights))| {
            bits([loss.memory(), dx.memory(), dw.memory()])
        };
        let expected = plainly(|| program.call((x, w)));
        let found = program.call((x, w));
        assert_eq!(flat(&found), flat(&expected));
        assert!(found.1.1.memory().iter().all(|slope| slope.is_finite()));
        let eager = loss_and_grad(|(x, w): (&Data, &Weights)| loss(x, w), (x, w));
        assert_eq!(flat(&found), flat(&eager));
    }
}

#[test]
fn gradients_of_lines_are_those_of_the_function() {
    type Line = Tensor<f32, (In,)>;
    fn loss((x, weight): (&Data, &Line), target: &Data) -> Tensor<f32, ()> {
        let normal = (x.layer_norm(In, 1e-5) * weight).eval();
        let shares = (&normal).log_softmax(In) + (&normal * 0.5).softmax(In) + normal.rms_norm(In, 1e-5);
        (shares * target).sum((Row, In))
    }
    let data = |seed: u64| -> Data { randn((Row.of(37), In.of(130)), seed) };
    let weight = |seed: u64| -> Line { randn(In.of(130), seed) };
    let target = data(9);
    let program = record(
        |(x, weight, target): (&Data, &Line, &Data)| {
            loss_and_grad(|given: (&Data, &Line)| loss(given, target), (x, weight))
        },
        (&data(1), &weight(2), &target),
    )
    .unwrap();
    let flat =
        |(loss, (x, w)): &(Tensor<f32, ()>, (Data, Line))| bits([loss.memory(), x.memory(), w.memory()]);
    for (x, weight) in [(data(3), weight(4)), (data(1), weight(2))] {
        let found = program.call((&x, &weight, &target));
        assert_eq!(flat(&found), flat(&plainly(|| program.call((&x, &weight, &target)))));
        let (_, (dx, dw)) = loss_and_grad(|given: (&Data, &Line)| loss(given, &target), (&x, &weight));
        assert!((found.1.0 - dx).abs().max((Row, In)).order(()) < 1e-4);
        assert!((found.1.1 - dw).abs().max(In).order(()) < 1e-3);
    }
}

#[test]
fn gradients_of_attention_are_those_of_the_function() {
    // There are more queries than fit into a tile of the gradient. Keys and values share their
    // memory.
    fn loss((x, w): (&Data, &Data), scale: &Tensor<f32, ()>) -> Tensor<f32, ()> {
        let keys = (w * scale).rename(Row, Key).eval();
        let y = attention(x, &keys, &keys, In, Key, 0.3, Key.le(Row));
        y.square().sum((Row, In))
    }
    let data = |seed: u64| -> Data { randn((Row.of(150), In.of(16)), seed) };
    let scale: Tensor<f32, ()> = full((), 0.7);
    let program = record(
        |(x, w, scale): (&Data, &Data, &Tensor<f32, ()>)| {
            loss_and_grad(|given: (&Data, &Data)| loss(given, scale), (x, w))
        },
        (&data(1), &data(2), &scale),
    )
    .unwrap();
    let flat =
        |(loss, (x, w)): &(Tensor<f32, ()>, (Data, Data))| bits([loss.memory(), x.memory(), w.memory()]);
    for (x, w) in [(data(3), data(4)), (data(1), data(2))] {
        let found = program.call((&x, &w, &scale));
        assert_eq!(flat(&found), flat(&plainly(|| program.call((&x, &w, &scale)))));
        let (_, (dx, dw)) = loss_and_grad(|given: (&Data, &Data)| loss(given, &scale), (&x, &w));
        for (found, expected) in [(found.1.0, dx), (found.1.1, dw)] {
            assert!((found - expected).abs().max((Row, In)).order(()) < 1e-4);
        }
    }
}

#[test]
fn inputs_may_have_any_memory_order() {
    let (row, inn) = (Row.of(6), In.of(5));
    let element = |r: usize, i: usize| (7 * r + i) as f32;
    let by_rows: Data = from_fn((row, inn), |(r, i)| element(r, i));
    let by_columns: Data = from_fn((inn, row), |(i, r)| element(r, i));
    let sliced: Data = from_fn((Row.of(9), inn), |(r, i)| element((r + 7) % 9, i)).slice(Row, 2..8).eval();
    let twice = |x: &Data| ((x * 2.0).eval(), x.sum(In));
    for first in [&by_rows, &by_columns] {
        let program = record(|x: &Data| twice(x), first).unwrap();
        for x in [&by_rows, &by_columns, &sliced] {
            let (double, sums) = program.call(x);
            assert_eq!(double, twice(&by_rows).0);
            assert_eq!(sums, twice(&by_rows).1);
        }
        // A result that is an input can share the input's memory until one of the two is changed.
        let same = record(|x: &Data| x.clone(), first).unwrap();
        let mut result: Data = same.call(&by_rows);
        result.assign((&by_rows + 1.0).eval());
        assert_eq!(by_rows.view().order((Row, In))[[5, 4]], element(5, 4));
    }
}
