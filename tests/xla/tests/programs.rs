//! Training steps, operations on integers, errors and gradients of attention on XLA. Values are
//! compared with the library's own results.

#![allow(missing_docs)]

use half::f16;
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::{Program, record, spec};
use xla_tests::{assert_near, plugin};

dims! { pub struct Row; pub struct In; pub struct Hidden; pub struct Class; }

type Data = Tensor<f32, (Row, In)>;
type Labels = Tensor<i64, (Row,)>;

#[derive(Clone, Parameters)]
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
    // The first step creates the moments.
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

/// With large elements, and minus infinity.
#[test]
fn gradients_of_logarithms_of_sums() {
    let Some(pjrt) = plugin(1) else { return };
    let slopes = |x: &Data| {
        let whole = grad(|x: &Data| x.logsumexp(In).sum(Row), x);
        (whole, grad(|x: &Data| x.logcumsumexp(In).sum((Row, In)), x))
    };
    let none = f32::NEG_INFINITY;
    let x: Data = from_vec((Row.of(2), In.of(5)), vec![1e8, 1e8, 1e8, 0.0, 1e8, 1.0, 2.0, none, 2.0, 0.5]);
    let program = record(slopes, spec((Row.of(2), In.of(5)))).unwrap();
    let (whole, running) = pjrt.compile(&program).unwrap().call(&x).unwrap();
    let expected = slopes(&x);
    assert_near(&whole.to_host().unwrap(), &expected.0, 1e-6, "logsumexp");
    assert_near(&running.to_host().unwrap(), &expected.1, 1e-5, "logcumsumexp");
}

macro_rules! of_integers {
    ($($name:ident $t:ty;)*) => {$(
        #[test]
        fn $name() {
            let Some(pjrt) = plugin(1) else { return };
            type Numbers = Tensor<$t, (Row, In)>;
            // Includes ties, and the least and the greatest integer.
            let numbers = |step: usize| {
                let number = move |(row, at): (usize, usize)| match (row + at) % 5 {
                    0 => <$t>::MIN,
                    1 => <$t>::MAX,
                    rest => (rest * step + row) as $t,
                };
                from_fn((Row.of(4), In.of(7)), number)
            };
            let f = |x: &Numbers| {
                let (values, at) = x.sort_with_indices(In);
                (
                    (x.argmax(In), x.argmin(In), x.max(In), x.min(In)),
                    (values, at, x.adaptive_max_pool(In, 3)),
                    (x.cumsum(In), (x * x).eval(), (x / 3 as $t).eval(), (x % 3 as $t).eval()),
                    (x.cast::<f32>().eval(), x.cast::<i8>().eval(), x.ge(2 as $t).eval(), x.maximum(2 as $t).eval()),
                )
            };
            let program = record(f, &numbers(3)).unwrap();
            let run = pjrt.compile(&program).unwrap();
            let (a, b, c, d) = run.call(&numbers(7)).unwrap();
            let (e, g, h, i) = f(&numbers(7));
            let what = stringify!($t);
            assert_near(&a.to_host().unwrap(), &e, 0.0, what);
            assert_near(&b.to_host().unwrap(), &g, 0.0, what);
            assert_near(&c.to_host().unwrap(), &h, 0.0, what);
            assert_near(&d.to_host().unwrap(), &i, 0.0, what);
        }
    )*};
}

of_integers! {
    numbers_i8 i8;
    numbers_i16 i16;
    numbers_i32 i32;
    numbers_i64 i64;
    numbers_u8 u8;
    numbers_u16 u16;
    numbers_u32 u32;
    numbers_u64 u64;
}

#[test]
fn bad_indices_are_errors_that_keep_the_state() {
    let Some(pjrt) = plugin(1) else { return };
    type Table = Tensor<f32, (Class, In)>;
    let table: Table = randn((Class.of(3), In.of(5)), 1);
    let ids = |ids: [i64; 2]| -> Labels { from_vec(Row.of(2), ids.to_vec()) };
    let program = record(
        |(table, ids): (Table, &Labels)| {
            let rows = (&table).take(Class, ids).sum(Row);
            ((&table + &rows).eval(), rows)
        },
        (table.clone(), &ids([0, 1])),
    )
    .unwrap();
    let run = pjrt.compile(&program).unwrap();
    let (state, rows) = run.call((pjrt.put(&table).unwrap(), &ids([2, 3]))).unwrap();
    let message = rows.to_host().unwrap_err().to_string();
    assert!(message.contains("programs.rs") && message.contains("out of range"), "{message}");
    // The error was reported; the state is unchanged, and can be used.
    assert_near(&state.to_host().unwrap(), &table, 0.0, "the state after the error");
    let (state, rows) = run.call((state, &ids([2, 0]))).unwrap();
    assert_near(
        &rows.to_host().unwrap(),
        &(&table).take(Class, &ids([2, 0])).sum(Row),
        1e-6,
        "the next call",
    );
    drop(state);
    // The first read of the state reports the error, and so does each read of the other result.
    let (state, rows) = run.call((pjrt.put(&table).unwrap(), &ids([-1, 0]))).unwrap();
    assert!(state.to_host().is_err());
    assert!(state.to_host().is_ok() && rows.to_host().is_err());
    drop(state);
    // The first of many calls fails. No value is read until the end.
    let mut state = pjrt.put(&table).unwrap();
    let mut expected = table.clone();
    for call in 0..70 {
        let ids = ids(if call == 0 { [9, 0] } else { [2, 0] });
        if call > 0 {
            let rows = (&expected).take(Class, &ids).sum(Row);
            expected = (&expected + &rows).eval();
        }
        state = run.call((state, &ids)).unwrap().0;
    }
    assert!(state.to_host().unwrap_err().to_string().contains("out of range"));
    assert_near(&state.to_host().unwrap(), &expected, 1e-4, "the state of the calls that succeeded");
}

#[test]
fn other_settings_are_errors() {
    let Some(pjrt) = plugin(1) else { return };
    type State = (Network, Adam<Network>);
    let state = |rate: f64| -> State {
        let (net, mut adam) = (network(), Adam::new(rate));
        adam.prepare(&net);
        (net, adam)
    };
    let program = record(
        |(mut net, mut adam): State| {
            let gradient = net.clone();
            adam.step(&mut net, &gradient);
            (net, adam)
        },
        state(0.1),
    )
    .unwrap();
    let run = pjrt.compile(&program).unwrap();
    assert!(run.call(pjrt.put(&state(0.1)).unwrap()).is_ok());
    let message = run.call(pjrt.put(&state(0.2)).unwrap()).unwrap_err().to_string();
    assert!(message.contains("0.2") && message.contains("recorded for"), "{message}");
}

#[test]
fn restored_programs_take_the_state_of_optimizers() {
    let Some(pjrt) = plugin(1) else { return };
    type State = (Network, Adam<Network>);
    let state = || -> State {
        let (net, mut adam) = (network(), Adam::new(0.1));
        adam.prepare(&net);
        (net, adam)
    };
    let step = |(mut net, mut adam): State| -> State {
        let gradient = net.clone();
        adam.step(&mut net, &gradient);
        (net, adam)
    };
    let saved = record(step, state()).unwrap().to_saved().unwrap();
    let program: Program<State, State> = saved.restore(&step(state())).unwrap();
    let run = pjrt.compile(&program).unwrap();
    let (net, _) = run.call(pjrt.put(&state()).unwrap()).unwrap();
    assert_near(&net.to_host().unwrap(), &step(state()).0, 1e-5, "the parameters");
}

/// The gradient of a repeated operand is summed over its repetitions, and a mask that is computed
/// from an input has no gradient.
#[test]
fn gradients_of_attention_with_repeated_operands_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    type Queries = Tensor<f32, (Row,)>;
    type Keys = Tensor<f32, (Hidden,)>;
    let step = |(q, k, v, t): (&Queries, &Keys, &Keys, &Keys)| {
        let loss = |(q, k, v, t): (&Queries, &Keys, &Keys, &Keys)| {
            // Neither queries nor keys vary along `In`, and values do not vary along `Class`.
            let (q, k, v) = (q.expand(In.of(5)), k.expand(In.of(5)), v.expand(Class.of(3)));
            let y = attention(q, k, v, In, Hidden, 0.5, t.gt(0.0));
            y.sum((Row, Class)) + t.sum(Hidden)
        };
        grad(loss, (q, k, v, t))
    };
    let (q, k): (Queries, Keys) = (randn(Row.of(4), 1), randn(Hidden.of(6), 2));
    let (v, t): (Keys, Keys) = (randn(Hidden.of(6), 3), randn(Hidden.of(6), 4));
    let inputs = || (&q, &k, &v, &t);
    let program = record(step, inputs()).unwrap();
    let run = pjrt.compile(&program).unwrap();
    let (dq, dk, dv, dt) = run.call(inputs()).unwrap();
    let expected = step(inputs());
    assert_near(&dq.to_host().unwrap(), &expected.0, 1e-4, "the gradient of the queries");
    assert_near(&dk.to_host().unwrap(), &expected.1, 1e-4, "the gradient of the keys");
    assert_near(&dv.to_host().unwrap(), &expected.2, 1e-4, "the gradient of the values");
    assert_near(&dt.to_host().unwrap(), &expected.3, 0.0, "the gradient of the mask");
}

/// The slope of `abs` is `signum`.
#[test]
fn signs_of_zeros_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    type Numbers = Tensor<f32, (Row,)>;
    let f = |x: &Numbers| {
        let slope = grad(|x: &Numbers| x.abs().sum(Row), x);
        // The reciprocal of 0 shows its sign.
        (x.signum().eval(), x.signum().recip().eval(), slope)
    };
    let x: Numbers = from_vec(Row.of(5), vec![0.0, -0.0, 2.5, -3.0, f32::NAN]);
    let (signs, inverses, slope) = pjrt.compile(&record(f, &x).unwrap()).unwrap().call(&x).unwrap();
    let expected = f(&x);
    assert_near(&signs.to_host().unwrap(), &expected.0, 0.0, "the signs");
    assert_near(&inverses.to_host().unwrap(), &expected.1, 0.0, "the signs' reciprocals");
    assert_near(&slope.to_host().unwrap(), &expected.2, 0.0, "the slope of `abs`");
}

#[test]
fn subnormal_halves_are_not_0() {
    let Some(pjrt) = plugin(1) else { return };
    type Halves = Tensor<f16, (Row,)>;
    let halves = |of: [f32; 6]| -> Halves { from_vec(Row.of(6), of.map(f16::from_f32).to_vec()) };
    // The product of the third elements is halfway between two `f16`s. The last product is normal.
    let x = halves([1e-3, 3e-5, 0.5, -1e-4, 1e-4, 2.0]);
    let y = halves([1e-2, 1e-3, 1.8e-7, 2e-3, -1e-4, 3.5]);
    let f = |(x, y): (&Halves, &Halves)| -> Halves { (x * y).eval() };
    let found = pjrt.compile(&record(f, (&x, &y)).unwrap()).unwrap().call((&x, &y)).unwrap();
    // The products are exact in `f32`, and both sides round them once.
    assert_near(&found.to_host().unwrap(), &f((&x, &y)), 0.0, "the products");
}

#[test]
fn gradients_of_attention_with_signs_and_constants_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    type Keys = Tensor<f32, (Hidden, In)>;
    type Values = Tensor<f32, (Hidden, Class)>;
    let step = |(q, k, v): (&Data, &Keys, &Values)| {
        let loss = |(q, k, v): (&Data, &Keys, &Values)| {
            attention(q * -1.0, k / 2.0, -v, In, Hidden, 0.5, true).square().sum((Row, Class))
        };
        grad(loss, (q, k, v))
    };
    let q: Data = randn((Row.of(4), In.of(5)), 1);
    let k: Keys = randn((Hidden.of(6), In.of(5)), 2);
    let v: Values = randn((Hidden.of(6), Class.of(3)), 3);
    let inputs = || (&q, &k, &v);
    let run = pjrt.compile(&record(step, inputs()).unwrap()).unwrap();
    let (dq, dk, dv) = run.call(inputs()).unwrap();
    let expected = step(inputs());
    assert_near(&dq.to_host().unwrap(), &expected.0, 1e-4, "the gradient of the queries");
    assert_near(&dk.to_host().unwrap(), &expected.1, 1e-4, "the gradient of the keys");
    assert_near(&dv.to_host().unwrap(), &expected.2, 1e-4, "the gradient of the values");
}

#[test]
fn attention_without_features_is_the_mean_of_the_values() {
    let Some(pjrt) = plugin(1) else { return };
    type Queries = Tensor<f32, (Row, In)>;
    type Keys = Tensor<f32, (Hidden, In)>;
    type Values = Tensor<f32, (Hidden, Class)>;
    type Found = Tensor<f32, (Row, Class)>;
    let q: Queries = zeros((Row.of(2), In.of(0)));
    let k: Keys = zeros((Hidden.of(3), In.of(0)));
    let v: Values = randn((Hidden.of(3), Class.of(4)), 1);
    let f = |(q, k, v): (&Queries, &Keys, &Values)| -> (Found, Values) {
        let mean = |v: &Values| -> Found { attention(q, k, v, In, Hidden, 0.5, true) };
        (mean(v), grad(|v: &Values| mean(v).square().sum((Row, Class)), v))
    };
    let inputs = (&q, &k, &v);
    let (found, slope) = pjrt.compile(&record(f, inputs).unwrap()).unwrap().call(inputs).unwrap();
    let expected = f(inputs);
    assert_near(&found.to_host().unwrap(), &expected.0, 1e-6, "the means");
    assert_near(&slope.to_host().unwrap(), &expected.1, 1e-6, "the gradient of the values");

    // The logarithm is not finite in XLA, where an empty array is a repeated 0.
    let q = Array2::<f32>::zeros((2, 0));
    let f = |v: &Values| -> Found { attention(q.at((Row, In)).ln(), &k, v, In, Hidden, 0.5, true) };
    let found = pjrt.compile(&record(f, &v).unwrap()).unwrap().call(&v).unwrap();
    assert_near(&found.to_host().unwrap(), &expected.0, 1e-6, "the means with computed queries");
}

#[test]
fn higher_derivatives_of_ln_gamma_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    type Numbers = Tensor<f64, (Row,)>;
    let first = |x: &Numbers| grad(|x: &Numbers| x.ln_gamma().sum(Row), x);
    let second = |x: &Numbers| grad(|x: &Numbers| first(x).sum(Row), x);
    let third = |x: &Numbers| grad(|x: &Numbers| second(x).sum(Row), x);
    let f = |x: &Numbers| (second(x), third(x));
    // The last two are poles.
    let x: Numbers = from_vec(Row.of(8), vec![2.5, 0.3, -0.3, -1.75, -8.5, -20.25, 0.0, -9.0]);
    let (of_second, of_third) = pjrt.compile(&record(f, &x).unwrap()).unwrap().call(&x).unwrap();
    // Both sides are precise up to a few units in the last place of the greatest terms, which are
    // below 200.
    assert_near(&of_second.to_host().unwrap(), &f(&x).0, 1e-12, "the second derivative");
    assert_near(&of_third.to_host().unwrap(), &f(&x).1, 1e-12, "the third derivative");
}

#[test]
fn moments_of_large_numbers_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    // `f32`s near 1e8 are multiples of 8, so the mean of the first row is not an `f32`.
    let x: Data = from_vec((Row.of(2), In.of(2)), vec![1e8, 1e8 + 8.0, 1.0, 3.0]);
    let f = |x: &Data| (x.var(In), x.std(In));
    let (var, std) = pjrt.compile(&record(f, &x).unwrap()).unwrap().call(&x).unwrap();
    let expected = f(&x);
    let variances: Tensor<f32, (Row,)> = from_vec(Row.of(2), vec![16.0, 1.0]);
    assert_near(&expected.0, &variances, 0.0, "the library's variances");
    assert_near(&var.to_host().unwrap(), &expected.0, 0.0, "the variances");
    assert_near(&std.to_host().unwrap(), &expected.1, 0.0, "the deviations");
}

/// A variance of fewer elements than `ddof` has no positive divisor.
#[test]
fn variances_are_not_negative() {
    let Some(pjrt) = plugin(1) else { return };
    let x: Data = from_vec((Row.of(1), In.of(2)), vec![1.0, 3.0]);
    let f = |x: &Data| {
        let slope = grad(|x: &Data| x.var_with(In, 1.0).sum(Row), x);
        (x.var_with(In, 1.0), x.var_with(In, 3.0), slope)
    };
    let (one, three, slope) = pjrt.compile(&record(f, &x).unwrap()).unwrap().call(&x).unwrap();
    assert_eq!(one.to_host().unwrap().order(Row).to_vec(), [2.0]);
    assert_eq!(three.to_host().unwrap().order(Row).to_vec(), [f32::INFINITY]);
    assert_eq!(slope.to_host().unwrap().order((Row, In)), ndarray::array![[-2.0, 2.0]]);
}

#[test]
fn moved_elements_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    let x: Data = randn((Row.of(3), In.of(40)), 1);
    let f = |x: &Data| {
        let padded =
            |x: &Data| -> Data { x.view().pad(In, 3, 0, Pad::Reflect).pad(Row, 0, 2, Pad::Circular) };
        let slope = grad(|x: &Data| padded(x).square().sum((Row, In)), x);
        let shifted: Data = (x.view().shift(In, 2, 7.0) + x.view().shift(In, -50, 1.0)).eval();
        let rolled: Data = (x.view().roll(In, 0) - x.view().roll(In, -3)).eval();
        // (The sources are more than 32 runs.)
        let resized = x.view().interpolate_nearest(In, 90);
        (padded(x), slope, shifted, rolled, resized)
    };
    let found = pjrt.compile(&record(f, &x).unwrap()).unwrap().call(&x).unwrap();
    let expected = f(&x);
    assert_near(&found.0.to_host().unwrap(), &expected.0, 0.0, "padding");
    assert_near(&found.1.to_host().unwrap(), &expected.1, 1e-6, "its gradient");
    assert_near(&found.2.to_host().unwrap(), &expected.2, 0.0, "shifts");
    assert_near(&found.3.to_host().unwrap(), &expected.3, 0.0, "rotations");
    assert_near(&found.4.to_host().unwrap(), &expected.4, 0.0, "interpolation");
}

#[derive(Clone, Parameters)]
struct Pair {
    a: Tensor<f32, (Class, In)>,
    b: Tensor<f32, (Class, In)>,
}

#[test]
fn only_state_is_kept_after_an_error() {
    let Some(pjrt) = plugin(1) else { return };
    type Table = Tensor<f32, (Class, In)>;
    let table = |seed: u64| -> Table { randn((Class.of(3), In.of(5)), seed) };
    let ids = |id: i64| -> Labels { from_vec(Row.of(1), vec![id]) };
    let bad = ids(3);

    // The result could replace either of the inputs.
    let step =
        |(g, w, ids): (Table, Table, &Labels)| -> Table { (&w - &g * (&w).take(Class, ids).sum(Row)).eval() };
    let run = pjrt.compile(&record(step, (table(1), table(2), &ids(0))).unwrap()).unwrap();
    let [g, w] = [1, 2].map(|seed| pjrt.put(&table(seed)).unwrap());
    let next = run.call((g, w, &bad)).unwrap();
    assert!(next.to_host().is_err() && next.to_host().is_err());

    // Either of the results could be the state.
    let step = |(w, ids): (Table, &Labels)| -> (Table, Table) {
        let rows = (&w).take(Class, ids).sum(Row);
        ((&w * 2.0).eval(), (&w + &rows).eval())
    };
    let run = pjrt.compile(&record(step, (table(1), &ids(0))).unwrap()).unwrap();
    let (y, next) = run.call((pjrt.put(&table(1)).unwrap(), &bad)).unwrap();
    assert!(y.to_host().is_err() && y.to_host().is_err());
    assert!(next.to_host().is_err() && next.to_host().is_err());

    // Fields tell which results are the state.
    let step = |(state, ids): (Pair, &Labels)| -> (Table, Pair) {
        let rows = (&state.a).take(Class, ids).sum(Row);
        let next = Pair { a: (&state.a + &rows).eval(), b: (&state.b - &rows).eval() };
        ((&state.a * 2.0).eval(), next)
    };
    let state = || Pair { a: table(1), b: table(2) };
    let run = pjrt.compile(&record(step, (state(), &ids(0))).unwrap()).unwrap();
    let (y, next) = run.call((pjrt.put(&state()).unwrap(), &bad)).unwrap();
    assert!(y.to_host().is_err() && y.to_host().is_err());
    assert_near(&next.to_host().unwrap(), &state(), 0.0, "the state after the error");
    let (y, next) = run.call((next, &ids(1))).unwrap();
    let expected = step((state(), &ids(1)));
    assert_near(&y.to_host().unwrap(), &expected.0, 0.0, "the result of the next call");
    assert_near(&next.to_host().unwrap(), &expected.1, 1e-6, "the state of the next call");
}

#[test]
fn products_with_signs_squares_and_several_factors_are_products_of_matrices() {
    let Some(pjrt) = plugin(1) else { return };
    type Middle = Tensor<f32, (In, Hidden)>;
    type Right = Tensor<f32, (Hidden, Class)>;
    // The sums are integers, and exact.
    let a: Data = from_fn((Row.of(3), In.of(4)), |(row, at)| (row + 2 * at) as f32 - 3.0);
    let b: Middle = from_fn((In.of(4), Hidden.of(5)), |(row, at)| (3 * row + at) as f32 - 6.0);
    let c: Right = from_fn((Hidden.of(5), Class.of(6)), |(row, at)| (row * at) as f32 - 4.0);
    let products = |text: &str| text.matches("stablehlo.dot_general").count();

    let f = |(a, b): (&Data, &Middle)| -> Tensor<f32, (Row, Hidden)> { (a * b * -1.0).sum(In).eval() };
    let run = pjrt.compile(&record(f, (&a, &b)).unwrap()).unwrap();
    assert_eq!(products(run.stablehlo()), 1);
    assert_near(&run.call((&a, &b)).unwrap().to_host().unwrap(), &f((&a, &b)), 0.0, "a negative product");

    let f = |(a, b): (&Data, &Middle)| -> Tensor<f32, (Row, Hidden)> { (a.square() * b).sum(In).eval() };
    let run = pjrt.compile(&record(f, (&a, &b)).unwrap()).unwrap();
    assert_eq!(products(run.stablehlo()), 1);
    assert_near(&run.call((&a, &b)).unwrap().to_host().unwrap(), &f((&a, &b)), 0.0, "a product of squares");

    let f = |(a, b, c): (&Data, &Middle, &Right)| -> Tensor<f32, (Row, Class)> {
        (a * b * c).sum((In, Hidden)).eval()
    };
    let run = pjrt.compile(&record(f, (&a, &b, &c)).unwrap()).unwrap();
    assert_eq!(products(run.stablehlo()), 2);
    let found = run.call((&a, &b, &c)).unwrap().to_host().unwrap();
    assert_near(&found, &f((&a, &b, &c)), 0.0, "a product of three matrices");
}

/// Without the constant, the sums would be outside the range of `f32`.
#[test]
fn large_and_small_constants_multiply_a_factor_before_the_sum() {
    let Some(pjrt) = plugin(1) else { return };
    type Middle = Tensor<f32, (In, Hidden)>;
    type Found = Tensor<f32, (Row, Hidden)>;
    type Filter = Tensor<f32, (Hidden, Class)>;
    type Images = Tensor<f32, (Row, In, Class)>;
    // The sums are small multiples of powers of 2, and exact.
    for (element, constant) in [(66, -100), (-80, 100)] {
        let (element, constant) = (2f32.powi(element), 2f32.powi(constant));
        let product = element * constant * element;
        let x: Data = full((Row.of(2), In.of(6)), element);

        let b: Middle = full((In.of(6), Hidden.of(4)), element);
        let f = |(x, b): (&Data, &Middle)| -> Found { (x * constant * b).sum(In).eval() };
        let run = pjrt.compile(&record(f, (&x, &b)).unwrap()).unwrap();
        assert_eq!(run.stablehlo().matches("stablehlo.dot_general").count(), 1);
        let found = run.call((&x, &b)).unwrap().to_host().unwrap();
        assert_near(&found, &full((Row.of(2), Hidden.of(4)), 6.0 * product), 0.0, "a product");

        let w: Filter = full((Hidden.of(2), Class.of(2)), element);
        let t: Images = full((Row.of(2), In.of(5), Class.of(2)), element);
        let f = |(x, w, t): (&Data, &Filter, &Images)| -> (Images, Data) {
            let f = |x: &Data| -> Images { conv(x, w * constant, (), In, Hidden, &Window::new()) };
            (f(x), grad(|x: &Data| (f(x) * t).sum((Row, In, Class)), x))
        };
        let run = pjrt.compile(&record(f, (&x, &w, &t)).unwrap()).unwrap();
        let (y, dx) = run.call((&x, &w, &t)).unwrap();
        let expected = full((Row.of(2), In.of(5), Class.of(2)), 2.0 * product);
        assert_near(&y.to_host().unwrap(), &expected, 0.0, "a convolution");
        let expected: Data = from_fn((Row.of(2), In.of(6)), |(_, at)| match at {
            0 | 5 => 2.0 * product,
            _ => 4.0 * product,
        });
        assert_near(&dx.to_host().unwrap(), &expected, 0.0, "the gradient of a convolution");
    }
}
