//! `jit`: functions that are recorded when they are called.

use crate::bits::support::assert_same;
use std::sync::atomic::{AtomicUsize, Ordering};
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::mode::{self, PeakMemory};
use typed_dims::nn::{LayerNorm, Linear, MultiHeadAttention, Rope};
use typed_dims::optim::{Adafactor, Adam, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record};

dims! {
    struct Row;
    struct In;
    struct Out;
    struct Key;
    struct Head;
    struct Feat;
}

type Data = Tensor<f32, (Row, In)>;
type Layer = Linear<(In,), (Out,)>;

fn data(rows: usize, seed: u64) -> Data {
    randn((Row.of(rows), In.of(4)), seed)
}

#[test]
fn each_tuple_of_sizes_is_recorded_once() {
    let runs = AtomicUsize::new(0);
    let f = jit::<&Data, _>(|x| {
        runs.fetch_add(1, Ordering::Relaxed);
        x.softmax(In).sum(Row)
    })
    .keep(2);
    for (rows, expected) in [(2, 1), (3, 2), (2, 2), (3, 2), (4, 3), (3, 3), (2, 4)] {
        let x = data(rows, rows as u64 + expected as u64);
        assert_eq!(f.call(&x), x.softmax(In).sum(Row));
        assert_eq!(runs.load(Ordering::Relaxed), expected, "{rows} rows");
        assert!(f.programs() <= 2);
    }
}

#[test]
fn inputs_are_moved_and_borrowed() {
    type State = (Layer, Adam<Layer>, Tensor<u64, ()>);
    let step = |(mut layer, mut adam, count): State, x: &Data| -> (State, Tensor<f32, ()>) {
        let loss = |layer: &Layer| {
            let y: Tensor<f32, (Row, Out)> = layer.apply(x);
            (y - 1.0).square().mean((Row, Out))
        };
        let (loss, gradient) = loss_and_grad(loss, &layer);
        adam.step(&mut layer, &gradient);
        ((layer, adam, (count + 1).eval()), loss)
    };
    let fast = jit::<(State, &Data), _>(|(state, x)| step(state, x));
    let start = || -> State { (Layer::new(In.of(4), Out.of(3), 1), Adam::new(0.1), zeros(())) };
    let (mut own, mut expected) = (start(), start());
    for seed in 0..10 {
        let x = data(8, seed);
        let (next, loss) = fast.call((own, &x));
        let (other, same) = step(expected, &x);
        assert!((loss.order(()) - same.order(())).abs() < 1e-6);
        assert_eq!((&next.2).order(()), seed + 1);
        (own, expected) = (next, other);
    }
    assert!((&own.0.weight - &expected.0.weight).abs().max((In, Out)).order(()) < 1e-4);
    // One program for the first step, which has no moments, and one for later steps.
    assert_eq!(fast.programs(), 2);
}

/// The order of elements in memory decides how sums are rounded, so `jit` records a program for
/// each order.
#[test]
fn axes_have_the_memory_order_of_the_function() {
    type Weights = Tensor<f32, (In, Out)>;
    let numbers = |seed| -> Vec<f32> { randn::<f32, _>(In.of(64 * 24), seed).order(In).to_vec() };
    let by_rows = |seed| -> Weights { from_vec((In.of(64), Out.of(24)), numbers(seed)) };
    let by_columns = |seed| -> Weights { from_vec((Out.of(24), In.of(64)), numbers(seed)) };
    let x = |seed| -> Data { from_vec((Row.of(10), In.of(64)), numbers(seed)[..640].to_vec()) };
    let f = |w: &Weights, x: &Data| {
        let loss = |w: &Weights| (x * w).sum(In).tanh().mean((Row, Out));
        let (loss, slope) = loss_and_grad(loss, w);
        (loss, (w - slope * 0.1).eval())
    };
    let fast = jit::<(&Weights, &Data), _>(|(w, x)| f(w, x));
    for seed in 1..4 {
        for w in [by_rows(seed), by_columns(seed)] {
            assert_eq!(fast.call((&w, &x(seed))), f(&w, &x(seed)));
        }
    }
    assert_eq!(fast.programs(), 2);
    for first in [by_rows(1), by_columns(1)] {
        let program = record(|(w, x)| f(w, x), (&first, &x(1))).expect("the function can be recorded");
        // An input in the other order is copied.
        for w in [by_rows(5), by_columns(5)] {
            let (loss, next) = program.call((&w, &x(6)));
            let (expected_loss, expected) = f(&w, &x(6));
            assert!((loss.order(()) - expected_loss.order(())).abs() < 1e-6);
            assert!((next - expected).abs().max((In, Out)).order(()) < 1e-6);
        }
    }
}

/// Programs take the state of an optimizer as lines of elements, which may have equal lengths for
/// parameters of other sizes.
#[test]
fn states_have_the_axes_of_the_function() {
    let prepared = |rows, columns| -> (Data, Adam<Data>) {
        let (w, mut adam): (Data, _) = (ones((Row.of(rows), In.of(columns))), Adam::new(0.1));
        adam.prepare(&w);
        (w, adam)
    };
    let same = jit::<&Adam<Data>, _>(|adam| adam.clone());
    for (rows, columns) in [(2, 3), (3, 2), (2, 3)] {
        let (mut w, adam) = prepared(rows, columns);
        let gradient = w.clone();
        same.call(&adam).step(&mut w, &gradient);
    }
    assert_eq!(same.programs(), 2);
    let program = record(|adam: &Adam<Data>| adam.clone(), &prepared(2, 3).1);
    let program = program.expect("the function can be recorded");
    let error = program.try_call(&prepared(3, 2).1).expect_err("the axes differ").to_string();
    let expected = "has dims `Row` = 3, `In` = 2, but the program was recorded for dims `Row` = 2, `In` = 3";
    assert!(error.ends_with(expected), "{error}");

    // A moment of Adafactor lacks the largest dim. So here, the moments have the same sizes, but
    // other dims.
    let prepared = |rows, columns| -> (Data, Adafactor<Data>) {
        let w: Data = ones((Row.of(rows), In.of(columns)));
        let mut adafactor = Adafactor::new(0.1).min_dim_size_to_factor(2);
        adafactor.prepare(&w);
        (w, adafactor)
    };
    let same = jit::<&Adafactor<Data>, _>(|adafactor| adafactor.clone());
    for (rows, columns) in [(2, 3), (3, 2)] {
        let (mut w, adafactor) = prepared(rows, columns);
        let gradient = w.clone();
        same.call(&adafactor).step(&mut w, &gradient);
    }
    assert_eq!(same.programs(), 2);
}

#[test]
fn several_threads_call_at_once() {
    let runs = AtomicUsize::new(0);
    let f = jit::<&Data, _>(|x| {
        runs.fetch_add(1, Ordering::Relaxed);
        x.tanh().cumsum(Row)
    });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let f = &f;
            scope.spawn(move || {
                for round in 0..20 {
                    let x = data(3 + round % 2, thread * 100 + round as u64);
                    assert_eq!(f.call(&x), x.tanh().cumsum(Row));
                }
            });
        }
    });
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn the_function_itself_runs_in_gradients_and_recorded_functions() {
    let f = jit::<&Data, _>(|x| x.exp().sum((Row, In)));
    let x = data(3, 1);
    assert_eq!(grad(|x: &Data| f.call(x), &x), x.view().exp().eval());
    let program = record(|x: &Data| (f.call(x) * 2.0).eval(), &x).expect("the function can be recorded");
    assert_eq!(f.programs(), 0);
    assert_eq!(program.call(&data(3, 2)), (data(3, 2).exp().sum((Row, In)) * 2.0).eval());
}

#[test]
fn what_cannot_be_recorded_is_an_error_each_time() {
    let f = jit::<&Data, _>(|x| x.map(|x| x + 1.0).eval());
    for _ in 0..2 {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.call(&data(2, 1))));
        let text = panicked.expect_err("a closure cannot be recorded");
        let text = text.downcast_ref::<String>().expect("the message is text");
        assert!(text.contains("`map`"), "{text}");
    }
}

#[test]
fn an_index_out_of_range_is_an_error_of_the_call() {
    type Ids = Tensor<i64, (Row,)>;
    let table: Tensor<f32, (In,)> = from_vec(In.of(3), vec![1.0, 2.0, 3.0]);
    let f = jit::<&Ids, _>(|ids| (&table).take(In, ids).eval());
    let ids = |ids: [i64; 2]| -> Ids { from_vec(Row.of(2), ids.to_vec()) };
    assert_eq!(f.call(&ids([2, 0])).order(Row), ndarray::array![3.0, 1.0]);
    let error = f.try_call(&ids([1, 3])).expect_err("an error").to_string();
    let at = format!("index 3 of dim `In` is out of range for an axis of size 3 (at {}:", file!());
    assert!(error.contains(&at), "{error}");
    assert_eq!(f.call(&ids([1, 1])).order(Row), ndarray::array![2.0, 2.0]);
}

#[test]
fn numbers_and_views_are_inputs() {
    let f = jit::<(&Tensor<f64, ()>, &Data), _>(|(by, x)| (x.cast::<f64>() * by).sum(In));
    let x = data(2, 1);
    for by in [1.0, -3.0] {
        let by = full((), by);
        assert_eq!(f.call((&by, &x)), (x.view().cast::<f64>() * &by).sum(In));
        assert_eq!(f.call((&by, x.view())), (x.view().cast::<f64>() * &by).sum(In));
    }
}

#[test]
fn a_program_keeps_no_memory_of_what_was_computed_while_it_was_recorded() {
    let f = |(layer, x): (&Layer, &Data)| {
        let rows: Tensor<f32, (Row, Out)> = layer.apply(x).softmax(Out);
        let loss = |layer: &Layer| ((layer.apply(x) - &rows).square().sum(Out).exp() / 1e3).mean(Row);
        let (loss, gradient) = loss_and_grad(loss, layer);
        (loss, gradient, rows.argsort(Out), x.roll(Row, 1))
    };
    let layer = Layer::new(In.of(4), Out.of(7), 1);
    let mut memory = PeakMemory::default();
    let x = data(3, 1);
    let program = mode::with(&mut memory, || record(f, (&layer, &x)));
    let program = program.expect("the function can be recorded");
    assert!(memory.peak() > 0);
    assert_eq!(memory.now(), 0, "all results were freed");
    let x = data(3, 2);
    let (loss, gradient, order, rolled) = program.call((&layer, &x));
    let (own_loss, own_gradient, own_order, own_rolled) = f((&layer, &x));
    assert_eq!((loss, gradient.weight, gradient.bias), (own_loss, own_gradient.weight, own_gradient.bias));
    assert_eq!((order, rolled), (own_order, own_rolled));
}

#[test]
fn inputs_are_read_where_they_are() {
    let program = record(|x: &Data| x.exp().sum(In), &data(3, 1)).expect("the function can be recorded");
    let x = data(3, 2);
    let (found, counts) = mode::count(|| program.call(&x));
    assert_eq!((found, counts.of("copy").steps), (x.view().exp().sum(In), 0));
    // An input that is returned unchanged shares its memory with the result until one of the two is
    // changed.
    let program =
        record(|x: Data| (x.clone(), (x * 2.0).eval()), data(3, 1)).expect("the function can be recorded");
    let (mut same, twice) = program.call(&x);
    same += 1.0;
    assert_eq!((x.clone(), twice), (data(3, 2), (data(3, 2) * 2.0).eval()));
    let (mut same, _) = program.call(x);
    same += 1.0;
    assert_eq!(same, (data(3, 2) + 1.0).eval());
}

#[test]
fn a_function_may_call_itself_while_it_is_recorded() {
    type Line = Tensor<f32, (Row,)>;
    type Call = Box<dyn Fn(&Line) -> Line>;
    thread_local! {
        static CALL: std::cell::OnceCell<Call> = const { std::cell::OnceCell::new() };
        static DEPTH: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
    let again = |x: &Line| CALL.with(|call| call.get().expect("the function is set")(x));
    let f = jit::<&Line, _>(move |x| {
        DEPTH.set(DEPTH.get() + 1);
        if DEPTH.get() < 3 { (x + again(&full(Row.of(2), 1.0))).eval() } else { (x * 10.0).eval() }
    });
    CALL.with(|call| call.set(Box::new(move |x| f.call(x))).is_ok());
    assert_eq!(again(&full(Row.of(2), 5.0)), full(Row.of(2), 16.0));
    assert_eq!(again(&full(Row.of(2), 7.0)), full(Row.of(2), 18.0));
    assert_eq!(DEPTH.get(), 3);
}

#[test]
fn explain_warns_of_large_captured_tensors() {
    let warnings = |len: usize| {
        let (weight, x): (Tensor<f32, (In,)>, Tensor<f32, (In,)>) = (ones(In.of(len)), ones(In.of(len)));
        let record = || record(|x: &Tensor<f32, (In,)>| (x * &weight).sum(In), &x);
        let (_, plan) = explain(|| record().expect("the function can be recorded"));
        let plan = plan.to_string();
        let warnings: Vec<&str> =
            plan.lines().filter(|line| line.contains("warning: a recorded function captures")).collect();
        assert!(warnings.iter().all(|line| line.contains("tests/recorded/jit.rs:")), "{plan}");
        warnings.len()
    };
    assert_eq!((warnings(1 << 18), warnings((1 << 18) + 1)), (0, 1));
}

#[test]
fn constant_fields_are_those_of_the_call() {
    #[derive(Clone)]
    struct Note;
    #[derive(Parameters, Clone)]
    struct Scaled {
        w: Tensor<f32, (In,)>,
        #[parameters(constant)]
        by: f32,
        #[parameters(constant)]
        times: u8,
        #[parameters(constant)]
        note: Note,
    }
    let scaled = |by, times: u8| Scaled { w: ones(In.of(4)), by, times, note: Note };
    let f = |s: &Scaled, x: &Data| (x * &s.w * s.by * f32::from(s.times)).sum(In);
    let fast = jit::<(&Scaled, &Data), _>(|(s, x)| f(s, x));
    let x = data(3, 1);
    for (by, times) in [(2.0, 1), (3.0, 1), (3.0, 2), (2.0, 1)] {
        assert_eq!(fast.call((&scaled(by, times), &x)), f(&scaled(by, times), &x));
    }
    assert_eq!(fast.programs(), 3);
    let program = record(|(s, x)| f(s, x), (&scaled(2.0, 1), &x)).expect("the function can be recorded");
    let error = program.try_call((&scaled(3.0, 1), &x)).expect_err("the number differs").to_string();
    let expected = "`by` of input `0` is 3.0, but the program was recorded for 2.0: record it again; `jit` does so by itself";
    assert_eq!(error, expected);

    let mut norm = LayerNorm::<(In,)>::new(In.of(4));
    let fast = jit::<(&LayerNorm<(In,)>, &Data), _>(|(norm, x)| norm.apply(x));
    for epsilon in [1e-5, 0.1, 1e-5] {
        norm.epsilon = epsilon;
        assert_eq!(fast.call((&norm, &x)), norm.apply(&x));
    }
}

/// NaN is not equal to itself, and 0.0 is equal to -0.0.
#[test]
fn constant_fields_may_be_nan_and_zero() {
    #[derive(Parameters, Clone)]
    struct Divided {
        w: Tensor<f32, (In,)>,
        #[parameters(constant)]
        by: f32,
        #[parameters(constant)]
        range: (f64, f64),
    }
    let divided = |by, range| Divided { w: ones(In.of(4)), by, range };
    let f = |s: &Divided, x: &Data| (x * &s.w / s.by).sum(In);
    let fast = jit::<(&Divided, &Data), _>(|(s, x)| f(s, x));
    let x: Data = ones((Row.of(3), In.of(4)));
    let nan = divided(f32::NAN, (0.0, f64::NAN));
    for (s, programs) in [
        (&nan, 1),
        (&nan, 1),
        (&divided(f32::NAN, (-0.0, f64::NAN)), 2),
        (&divided(f32::NAN, (0.0, 1.0)), 3),
        (&divided(0.0, (0.0, 1.0)), 4),
        (&divided(-0.0, (0.0, 1.0)), 5),
        (&divided(0.0, (0.0, 1.0)), 5),
    ] {
        assert_same(&fast.call((s, &x)), &f(s, &x));
        assert_eq!(fast.programs(), programs, "{} {:?}", s.by, s.range);
    }
    let program = record(|(s, x)| f(s, x), (&nan, &x)).expect("the function can be recorded");
    let loaded = crate::reloaded(&program, &f(&nan, &x));
    for program in [&program, &loaded] {
        assert_same(&program.call((&nan, &x)), &f(&nan, &x));
        let other = divided(f32::NAN, (-0.0, f64::NAN));
        let error = program.try_call((&other, &x)).expect_err("the sign differs").to_string();
        let expected = "`range` of input `0` is (-0.0, NaN), but the program was recorded for (0.0, NaN): ";
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Values are compared by their `==`, and those that contain NaN as text.
#[test]
fn constant_fields_are_equal_as_their_type_says() {
    #[derive(Clone, Copy, Debug)]
    struct Tens(u32);
    impl PartialEq for Tens {
        fn eq(&self, other: &Self) -> bool {
            self.0 / 10 == other.0 / 10
        }
    }
    #[derive(Clone, Copy, PartialEq)]
    struct Brief(f32, f32);
    impl std::fmt::Debug for Brief {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Brief")
        }
    }
    #[derive(Parameters, Clone)]
    struct Scaled {
        w: Tensor<f32, (In,)>,
        #[parameters(constant)]
        tens: Tens,
        #[parameters(constant)]
        brief: Brief,
    }
    let scaled = |tens, brief| Scaled { w: ones(In.of(4)), tens: Tens(tens), brief };
    let f = |s: &Scaled, x: &Data| (x * &s.w * (s.tens.0 / 10) as f32 * s.brief.1).sum(In);
    let fast = jit::<(&Scaled, &Data), _>(|(s, x)| f(s, x));
    let x = data(3, 1);
    let one = Brief(0.0, 1.0);
    for (s, programs) in [
        (scaled(10, one), 1),
        (scaled(12, one), 1),
        (scaled(20, one), 2),
        (scaled(20, Brief(-0.0, 1.0)), 2),
        (scaled(20, Brief(0.0, 3.0)), 3),
    ] {
        assert_eq!(fast.call((&s, &x)), f(&s, &x));
        assert_eq!(fast.programs(), programs, "{} {:?}", s.tens.0, (s.brief.0, s.brief.1));
    }
    let program = record(|(s, x)| f(s, x), (&scaled(10, one), &x)).expect("the function can be recorded");
    assert_eq!(program.call((&scaled(19, one), &x)), f(&scaled(19, one), &x));
    // The text of these values does not say whether they are the same.
    let [first, other] = [3.0, 5.0].map(|by| scaled(20, Brief(f32::NAN, by)));
    let program = record(|(s, x)| f(s, x), (&first, &x)).expect("the function can be recorded");
    assert!(program.try_call((&other, &x)).is_err());
}

#[test]
fn dropout_of_attention_is_that_of_the_call() {
    type Attention = MultiHeadAttention<(In,), (Head, Feat), (Head, Feat), Feat>;
    let heads = (Head.of(2), Feat.of(2));
    let layer = Attention::new(In.of(4), heads, heads, 1);
    let f = |layer: &Attention, x: &Data| layer.among(x, Row, Key, true);
    let near = |found: Data, expected: Data| (found - expected).abs().max((Row, In)).order(()) < 1e-5;
    let fast = jit::<(&Attention, &Data), _>(|(layer, x)| f(layer, x));
    let x = data(5, 1);
    let first = layer.with_dropout(0.5, 1);
    let other = layer.with_dropout(0.5, 2);
    let less = layer.with_dropout(0.25, 2);
    assert!(!near(f(&first, &x), f(&other, &x)));
    for layer in [&first, &other, &less, &layer, &first] {
        assert!(near(fast.call((layer, &x)), f(layer, &x)));
    }
    // The seed is an input.
    assert_eq!(fast.programs(), 3);
    let program = record(|(layer, x)| f(layer, x), (&first, &x)).expect("the function can be recorded");
    assert!(near(program.call((&other, &x)), f(&other, &x)));
    for (layer, own) in [(&less, "Some(0.25)"), (&layer, "None")] {
        let error = program.try_call((layer, &x)).expect_err("the dropout differs").to_string();
        let expected =
            format!("`dropout` of input `0` is {own}, but the program was recorded for Some(0.5): ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn angles_of_a_rope_are_those_of_the_call() {
    type Turn = Rope<Row, In>;
    let slow = Turn::new(Row.of(8), In.of(4), 100.0);
    let quick = Turn::new(Row.of(8), In.of(4), 10.0);
    let interleaved = Turn::interleaved(Row.of(8), In.of(4), 10.0);
    let f = |rope: &Turn, x: &Data| rope.apply(x, 2);
    let fast = jit::<(&Turn, &Data), _>(|(rope, x)| f(rope, x));
    let x = data(3, 1);
    for rope in [&slow, &quick, &interleaved] {
        assert_eq!(fast.call((rope, &x)), f(rope, &x));
    }
    assert_eq!(fast.programs(), 3);
    let program = record(|(rope, x)| f(rope, x), (&slow, &x)).expect("the function can be recorded");
    let error = program.try_call((&quick, &x)).expect_err("the base differs").to_string();
    assert!(error.starts_with("`angles` of input `0` is RopeAngles { base: 10.0, "), "{error}");
}
