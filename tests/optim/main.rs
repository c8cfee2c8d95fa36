//! Optimizers, schedules, clipping and averages, compared with PyTorch and optax (`reference.json`, written by `reference.py`).

mod programs;

use serde_json::Value;
use std::f64::consts::TAU;
use typed_dims::optim::{
    Accumulator, Adam, AdamW, Average, Lion, Optimizer, Schedule, Sgd, clip_by_global_norm, clip_by_value,
    global_norm, try_clip_by_global_norm, try_clip_by_value,
};
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Column;
    struct Token;
}

type Matrix<T> = Tensor<T, (Row, Column)>;

fn reference() -> Value {
    serde_json::from_str(include_str!("reference.json")).expect("JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

fn noise(at: usize, step: usize) -> f64 {
    (1.7 * at as f64 + 0.9 * step as f64).sin()
}

fn matrix<T: Real>(f: impl Fn(usize) -> f64) -> Matrix<T> {
    from_fn((Row.of(3), Column.of(4)), |(row, column)| T::from(f(4 * row + column)).unwrap())
}

fn first<T: Real>() -> Matrix<T> {
    matrix(|at| (0.6 * at as f64).cos())
}

fn elements<T: Real>(tensor: &Matrix<T>) -> Vec<f64> {
    tensor.view().order((Row, Column)).iter().map(|a| a.to_f64().unwrap()).collect()
}

/// Runs 100 steps, and compares the parameters with those of the reference.
fn compare<T: Real>(name: &str, kind: &str, most: f64, mut optimizer: impl Optimizer<Matrix<T>>) {
    let expected = &reference()[kind][name];
    let mut p = first::<T>();
    for step in 1..=100 {
        let noise = matrix::<T>(|at| noise(at, step));
        let gradient = (&p * T::from(0.3).unwrap() + noise).eval();
        optimizer.step(&mut p, &gradient);
        if let Some(expected) = expected.get(step.to_string()) {
            for (found, expected) in elements(&p).into_iter().zip(numbers(expected)) {
                let error = (found - expected).abs();
                assert!(error < most, "{name} of {kind}, step {step}: {found} instead of {expected}");
            }
        }
    }
    assert!(expected.get("100").is_some(), "the reference has {name}");
    assert_eq!(optimizer.steps(), 100);
}

type Pair = (Matrix<f64>, Matrix<f64>);

/// As [`compare`], with a second parameter that takes no part in some steps.
fn compare_frozen(name: &str, mut optimizer: impl Optimizer<Pair>) {
    let expected = &reference()["frozen"][name];
    let mut both = (first::<f64>(), first::<f64>());
    let is_frozen = |step| step <= 3 || (20..70).contains(&step);
    for step in 1..=100 {
        let gradient = |p: &Matrix<f64>| (p * 0.3 + matrix::<f64>(|at| noise(at, step))).eval();
        let gradient = (gradient(&both.0), gradient(&both.1));
        if is_frozen(step) {
            optimizer.freeze("1");
        } else {
            optimizer.unfreeze("1");
        }
        optimizer.step(&mut both, &gradient);
        if let Some(expected) = expected.get(step.to_string()) {
            for (p, expected) in [&both.0, &both.1].into_iter().zip(expected.as_array().unwrap()) {
                for (found, expected) in elements(p).into_iter().zip(numbers(expected)) {
                    let error = (found - expected).abs();
                    assert!(error < 1e-12, "{name}, step {step}: {found} instead of {expected}");
                }
            }
        }
    }
    assert!(expected.get("100").is_some(), "the reference has {name}");
    assert_eq!((optimizer.state().steps_of("0"), optimizer.state().steps_of("1")), (100, 47));
}

/// Each parameter counts its own steps, which decides how Adam corrects its moments.
#[test]
fn frozen_parameters_agree_with_pytorch() {
    compare_frozen("sgd", Sgd::new(0.05));
    let momentum = Sgd::new(0.05).momentum(0.9).weight_decay(0.02);
    compare_frozen("momentum", momentum.clone());
    compare_frozen("nesterov", momentum.nesterov());
    compare_frozen("adam", Adam::new(0.03));
    compare_frozen("adam_decay", Adam::new(0.03).betas(0.8, 0.95).epsilon(1e-6).weight_decay(0.1));
    compare_frozen("adamw", AdamW::new(0.03));
    compare_frozen("adamw_decay", AdamW::new(0.03).betas(0.8, 0.95).epsilon(1e-6).weight_decay(0.1));
}

/// State is kept by the names of parameters, from the first step of each on.
#[test]
fn moments_are_kept_by_name_from_the_first_step_on() {
    let mut value = network(3);
    let gradient = value.map_elements(|_: f32| 1.0);
    let mut optimizer = Adam::new(0.1);
    optimizer.freeze("layers.1");
    optimizer.step(&mut value, &gradient);
    let names: Vec<String> = optimizer.state().parameters().iter().map(|kept| kept.name()).collect();
    assert_eq!(
        names,
        [
            "embedding",
            "layers.0.weight",
            "layers.1.weight",
            "layers.1.bias",
            "layers.2.weight",
            "layers.2.bias"
        ]
    );
    let kept =
        |optimizer: &Adam<Network>, name: &str| optimizer.state().parameter(name).unwrap().moments().len();
    assert_eq!((kept(&optimizer, "layers.1.bias"), kept(&optimizer, "layers.2.bias")), (0, 2));
    assert!(optimizer.state().parameter("ids").is_none(), "it is not learned");

    let state = optimizer.state().parameter("layers.2.weight").unwrap();
    assert!(state.master().is_none(), "single precision needs no other copy");
    let mean: Matrix<f32> = state.moments()[0].tensor().unwrap();
    assert_eq!(state.moments()[0].sizes(), [3, 4]);
    assert!(state.moments()[0].tensor::<f64, (Row, Column)>().is_none());
    assert!(state.moments()[0].tensor::<f32, (Token, Column)>().is_none());
    // The tensor keeps its elements when the state changes.
    let before = elements(&mean);
    optimizer.unfreeze("layers.1");
    optimizer.step(&mut value, &gradient);
    assert_eq!(elements(&mean), before);
    assert_eq!(kept(&optimizer, "layers.1.bias"), 2);
}

/// A parameter that is added later has taken no steps yet.
#[test]
fn a_later_parameter_counts_from_its_own_first_step() {
    let of = |len: usize| vec![ones::<f64, _>(Row.of(2)); len];
    let (mut value, mut optimizer) = (of(2), Adam::new(0.1));
    (0..3).for_each(|_| optimizer.step(&mut value, &of(2)));
    value.insert(1, ones(Row.of(2)));
    optimizer.step(&mut value, &of(3));
    let steps = ["0", "1", "2"].map(|name| optimizer.state().steps_of(name));
    assert_eq!(steps, [4, 4, 1], "names tell which is which");
    assert!((value[2].view().order(Row)[0] - (0.7 - 0.1)).abs() < 1e-7);
}

/// The text of the error of a step, which changes nothing.
fn step_refused<O: Optimizer<Matrix<f64>>>(mut optimizer: O) -> String {
    let mut p = first::<f64>();
    let error = optimizer.try_step(&mut p, &matrix(|_| 1.0)).expect_err("the settings are refused");
    assert_eq!((elements(&p), optimizer.steps()), (elements(&first::<f64>()), 0));
    assert!(optimizer.state().parameters().is_empty());
    error.to_string()
}

#[test]
fn settings_out_of_their_range_are_refused() {
    let rate = "the learning rate";
    for (found, expected) in [
        (step_refused(Sgd::new(-0.1)), format!("`Sgd` with {rate} -0.1: it must be finite and 0 or more")),
        (
            step_refused(Adam::new(f64::NAN)),
            format!("`Adam` with {rate} NaN: it must be finite and 0 or more"),
        ),
        (
            step_refused(AdamW::new(Schedule::cosine(f64::INFINITY, 9))),
            format!("`AdamW` with {rate} inf: it must be finite and 0 or more"),
        ),
        (
            step_refused(Lion::new(Schedule::step(-1.0, 3, 0.5))),
            format!("`Lion` with {rate} -1: it must be finite and 0 or more"),
        ),
    ] {
        assert_eq!(found, expected);
    }
    for (found, expected) in [
        (
            step_refused(Adam::new(0.1).betas(1.0, 0.9)),
            "`Adam` with the first beta 1: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(AdamW::new(0.1).betas(0.9, -0.1)),
            "`AdamW` with the second beta -0.1: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(Lion::new(0.1).betas(0.9, f64::NAN)),
            "`Lion` with the second beta NaN: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(Adam::new(0.1).epsilon(-1e-8)),
            "`Adam` with the epsilon -0.00000001: it must be finite and 0 or more",
        ),
        (
            step_refused(AdamW::new(0.1).weight_decay(-0.5)),
            "`AdamW` with the weight decay -0.5: it must be finite and 0 or more",
        ),
        (
            step_refused(Lion::new(0.1).weight_decay(f64::INFINITY)),
            "`Lion` with the weight decay inf: it must be finite and 0 or more",
        ),
        (
            step_refused(Sgd::new(0.1).momentum(-0.9)),
            "`Sgd` with the momentum -0.9: it must be finite and 0 or more",
        ),
        (
            step_refused(Sgd::new(0.1).weight_decay(-0.9)),
            "`Sgd` with the weight decay -0.9: it must be finite and 0 or more",
        ),
        (
            step_refused(Sgd::new(0.1).nesterov()),
            "`Sgd` with `nesterov` has no momentum: set `momentum` to more than 0",
        ),
    ] {
        assert_eq!(found, expected);
    }
    // Values at the end of a range are allowed.
    let mut p = first::<f64>();
    Adam::new(0.0).betas(0.0, 0.0).epsilon(0.0).step(&mut p, &matrix(|_| 1.0));
    Sgd::new(0.0).momentum(1.0).nesterov().step(&mut p, &matrix(|_| 1.0));
    assert_eq!(elements(&p), elements(&first::<f64>()));
}

#[test]
fn limits_and_shares_out_of_their_range_are_refused() {
    let mut gradient = matrix::<f32>(|at| at as f64);
    let before = elements(&gradient);
    let text = |result: Result<(), DimError>| result.unwrap_err().to_string();
    assert_eq!(
        text(try_clip_by_global_norm(&mut gradient, -1.0).map(|_| ())),
        "`clip_by_global_norm` with the limit -1: it must be 0 or more"
    );
    assert_eq!(
        text(try_clip_by_value(&mut gradient, f64::NAN)),
        "`clip_by_value` with the limit NaN: it must be 0 or more"
    );
    assert_eq!(elements(&gradient), before);
    for decay in [-0.1, 1.1, f64::NAN] {
        let mut average = Average::new(decay);
        let error = text(average.try_update(&gradient));
        assert_eq!(error, format!("`Average` with the decay {decay}: it must be between 0 and 1"));
        assert!(average.value().is_none());
    }
}

/// A count that cannot grow stays.
#[test]
fn steps_are_counted_up_to_the_largest_number() {
    fn last<O: Optimizer<Matrix<f32>>>(mut optimizer: O) {
        optimizer.state_mut().restore(u64::MAX);
        let mut p = first::<f32>();
        for _ in 0..2 {
            optimizer.try_step(&mut p, &matrix(|_| 1.0)).unwrap();
        }
        assert_eq!(optimizer.steps(), u64::MAX);
        assert!(elements(&p).iter().all(|p| p.is_finite()));
    }
    last(Sgd::new(0.1));
    last(Sgd::new(0.1).momentum(0.9));
    last(Adam::new(Schedule::cosine(0.1, 10).warm_up(5)));
    last(AdamW::new(Schedule::step(0.1, 1, 0.5)));
    last(Lion::new(Schedule::one_cycle(0.1, 10)));
}

/// All optimizers that PyTorch has.
fn compare_all<T: Real>(kind: &str, most: f64) {
    compare::<T>("sgd", kind, most, Sgd::new(0.05));
    let momentum = Sgd::new(0.05).momentum(0.9).weight_decay(0.02);
    compare::<T>("momentum", kind, most, momentum.clone());
    compare::<T>("nesterov", kind, most, momentum.nesterov());
    compare::<T>("adam", kind, most, Adam::new(0.03));
    let adam = Adam::new(0.03).betas(0.8, 0.95).epsilon(1e-6).weight_decay(0.1);
    compare::<T>("adam_decay", kind, most, adam);
    compare::<T>("adamw", kind, most, AdamW::new(0.03));
    let adamw = AdamW::new(0.03).betas(0.8, 0.95).epsilon(1e-6).weight_decay(0.1);
    compare::<T>("adamw_decay", kind, most, adamw);
}

#[test]
fn optimizers_agree_with_pytorch_in_double_precision() {
    compare_all::<f64>("f64", 1e-12);
}

#[test]
fn optimizers_agree_with_pytorch_in_single_precision() {
    compare_all::<f32>("f32", 2e-6);
}

#[test]
fn lion_agrees_with_optax() {
    compare::<f64>("lion", "f64", 1e-12, Lion::new(0.01).weight_decay(0.001));
    compare::<f64>("lion_decay", "f64", 1e-12, Lion::new(0.01).betas(0.8, 0.95).weight_decay(0.1));
}

#[test]
fn schedules_agree_with_pytorch() {
    let schedules = [
        ("cosine", Schedule::cosine_to(0.5, 0.01, 100)),
        ("step", Schedule::step(0.5, 30, 0.1)),
        ("one_cycle", Schedule::one_cycle(0.5, 101)),
    ];
    let reference = reference();
    for (name, schedule) in schedules {
        let expected = numbers(&reference["schedules"][name]);
        assert_eq!(expected.len(), 100);
        for (step, expected) in expected.into_iter().enumerate() {
            let found = schedule.at(step as u64);
            assert!((found - expected).abs() < 1e-12, "{name}, step {step}: {found} instead of {expected}");
        }
    }
}

#[test]
fn a_warm_up_comes_before_the_schedule() {
    let rates = |schedule: Schedule| [0, 1, 2, 3, 4].map(|step| schedule.at(step));
    assert_eq!(rates(Schedule::constant(0.5).warm_up(2)), [0.25, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(rates(Schedule::step(1.0, 1, 0.5).warm_up(2)), [0.5, 1.0, 1.0, 0.5, 0.25]);
    // After the last step, the rate stays.
    assert_eq!(Schedule::cosine(1.0, 0).at(0), 0.0);
    assert_eq!(Schedule::one_cycle(1.0, 10).at(9), Schedule::one_cycle(1.0, 10).at(1000));
}

/// A step that is a tensor has the same rate, bit for bit.
#[test]
fn the_rate_of_a_tensor_is_that_of_its_number() {
    let schedules = [
        Schedule::constant(0.3),
        Schedule::cosine_to(0.5, 0.01, 100),
        Schedule::cosine(0.5, 0),
        Schedule::step(0.5, 7, 0.1),
        Schedule::one_cycle(0.5, 101),
        Schedule::one_cycle(0.5, 0),
    ];
    for schedule in schedules.into_iter().flat_map(|schedule| [schedule, schedule.warm_up(5)]) {
        for step in (0..120).chain([1000, u64::MAX]) {
            let rate: Tensor<f64, ()> = schedule.rate(&full((), step));
            assert_eq!(rate.order(()).to_bits(), schedule.at(step).to_bits(), "{schedule:?}, step {step}");
        }
    }
    let mut optimizer = Sgd::new(Schedule::cosine(0.1, 10).warm_up(3));
    let mut p = first::<f32>();
    for _ in 0..5 {
        optimizer.step(&mut p, &matrix(|_| 1.0));
    }
    assert_eq!(optimizer.state().step_count().view().order(()), 5);
    assert_eq!(optimizer.state().rate().order(()), optimizer.rate());
    // A count that was handed out stays.
    let before = optimizer.state().step_count().clone();
    optimizer.step(&mut p, &matrix(|_| 1.0));
    assert_eq!((before.order(()), optimizer.steps()), (5, 6));
}

#[test]
fn a_schedule_gives_the_rate_of_each_step() {
    let mut optimizer = Sgd::new(Schedule::step(1.0, 2, 0.5));
    let (mut p, gradient) = (zeros::<f64, _>(Row.of(1)), ones::<f64, _>(Row.of(1)));
    for _ in 0..4 {
        optimizer.step(&mut p, &gradient);
    }
    assert_eq!(p.view().order(Row)[0], -(1.0 + 1.0 + 0.5 + 0.5));
    assert_eq!(optimizer.rate(), 0.25);
    optimizer.set_rate(3.0);
    optimizer.step(&mut p, &gradient);
    assert_eq!(p.order(Row)[0], -6.0);
}

#[test]
fn clipping_agrees_with_pytorch() {
    let expected = &reference()["clipped"];
    let mut gradient = matrix::<f64>(|at| noise(at, 1));
    let norm: Tensor<f64, ()> = clip_by_global_norm(&mut gradient, 0.7);
    assert!((norm.order(()) - expected["norm"].as_f64().unwrap()).abs() < 1e-12);
    // (PyTorch adds 1e-6 to the norm.)
    for (found, expected) in elements(&gradient).into_iter().zip(numbers(&expected["gradient"])) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }
    assert!((global_norm(&gradient).order(()) - 0.7).abs() < 1e-12);
}

#[test]
fn a_small_gradient_is_not_clipped() {
    let mut gradient = (matrix::<f32>(|at| at as f64), full(Row.of(2), 3usize));
    let before = elements(&gradient.0);
    let norm = clip_by_global_norm(&mut gradient, 1000.0).order(());
    assert!((norm - 506f64.sqrt()).abs() < 1e-6, "integers do not count");
    assert_eq!(elements(&gradient.0), before);
    gradient.0 = matrix(|_| f64::NAN);
    assert!(clip_by_global_norm(&mut gradient, 1000.0).order(()).is_nan());
    assert!(elements(&gradient.0).iter().all(|a| a.is_nan()));
}

/// What norms make of a gradient: the factor is `min(1, most / norm)`.
#[test]
fn norms_at_the_limits() {
    let clipped = |values: [f64; 2], most: f64| {
        let mut gradient = from_vec(Row.of(2), values.to_vec());
        let norm = clip_by_global_norm(&mut gradient, most).order(());
        (norm, gradient.order(Row).to_vec())
    };
    assert_eq!(clipped([3.0, -4.0], 5.0), (5.0, vec![3.0, -4.0]));
    assert_eq!(clipped([3.0, -4.0], 2.5), (5.0, vec![1.5, -2.0]));
    assert_eq!(clipped([0.0, -0.0], 0.0), (0.0, vec![0.0, -0.0]));
    assert_eq!(clipped([3.0, -4.0], 0.0), (5.0, vec![0.0, -0.0]));
    assert_eq!(clipped([f64::INFINITY, 1.0], f64::INFINITY), (f64::INFINITY, vec![f64::INFINITY, 1.0]));
    let (norm, elements) = clipped([f64::INFINITY, 1.0], 5.0);
    assert!(norm == f64::INFINITY && elements[0].is_nan() && elements[1] == 0.0);
    let (norm, elements) = clipped([f64::NAN, 1.0], f64::INFINITY);
    assert!(norm.is_nan() && elements.iter().all(|a| a.is_nan()));
}

#[test]
fn values_are_clipped() {
    let mut gradient = from_vec(Row.of(4), vec![-3.0_f32, 0.5, 3.0, f32::NAN]);
    clip_by_value(&mut gradient, 1.0);
    let clipped = gradient.order(Row);
    assert_eq!((clipped[0], clipped[1], clipped[2]), (-1.0, 0.5, 1.0));
    assert!(clipped[3].is_nan());
}

#[test]
fn the_average_agrees_with_pytorch() {
    let mut average = Average::new(0.9);
    for step in 1..=20 {
        average.update(&matrix::<f64>(|at| noise(at, step)));
    }
    let found = elements(&average.into_value().unwrap());
    for (found, expected) in found.into_iter().zip(numbers(&reference()["averaged"])) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }
}

#[test]
fn an_average_keeps_what_is_not_learned() {
    let mut average = Average::new(0.5);
    let value = (ones::<f32, _>(Row.of(2)), from_vec(Token.of(2), vec![7usize, 8]));
    average.update(&value);
    average.update(&value);
    assert_eq!(average.value().unwrap().1.view().order(Token), ndarray::array![7, 8]);
}

#[test]
fn gradients_are_accumulated() {
    let mut gradients = Accumulator::new();
    for step in 1..=5 {
        gradients.add(matrix::<f64>(|at| noise(at, step)));
    }
    let mean = elements(&gradients.take().unwrap());
    for (at, mean) in mean.into_iter().enumerate() {
        let expected = (1..=5).map(|step| noise(at, step)).sum::<f64>() / 5.0;
        assert!((mean - expected).abs() < 1e-15);
    }
    assert_eq!(gradients.count(), 0);
}

#[derive(Parameters, Clone)]
struct Network {
    embedding: Tensor<f32, (Token, Column)>,
    layers: Vec<Layer>,
    ids: Tensor<usize, (Token,)>,
    #[parameters(constant)]
    depth: f32,
}

#[derive(Parameters, Clone)]
struct Layer {
    weight: Tensor<f32, (Row, Column)>,
    bias: Option<Tensor<f32, (Row,)>>,
}

fn network(rows: usize) -> Network {
    let layer = |seed| Layer {
        weight: randn((Row.of(rows), Column.of(4)), seed),
        bias: (seed > 1).then(|| randn(Row.of(rows), 10 * seed)),
    };
    Network {
        embedding: randn((Token.of(5), Column.of(4)), 7),
        layers: (1..=3).map(layer).collect(),
        ids: arange(Token.of(5), 0, 1),
        depth: 0.5,
    }
}

fn all(network: &Network) -> Vec<f32> {
    let mut all = network.embedding.view().order((Token, Column)).into_iter().collect::<Vec<_>>();
    for layer in &network.layers {
        all.extend(layer.weight.view().order((Row, Column)));
        all.extend(layer.bias.iter().flat_map(|bias| bias.view().order(Row)));
    }
    all
}

#[test]
fn every_learned_tensor_takes_the_step() {
    let mut value = network(3);
    let gradient = value.map_elements(|p: f32| p.sin());
    let expected = value.zip_elements(&gradient, |p: f32, g| p - 0.5 * g);
    Sgd::new(0.5).step(&mut value, &gradient);
    assert_eq!(all(&value), all(&expected));
    assert_eq!((value.ids.order(Token)[3], value.depth), (3, 0.5));
}

#[test]
fn parts_are_frozen_by_name() {
    let before = network(3);
    let gradient = before.map_elements(|_: f32| 1.0);
    let mut value = before.clone();
    let mut optimizer = Adam::new(0.1);
    optimizer.freeze("layers.1");
    optimizer.freeze("embedding");
    optimizer.step(&mut value, &gradient);
    let same = |a: &Network, b: &Network, name: &str| {
        let element = |network: &Network| match name {
            "embedding" => network.embedding.view().order((Token, Column))[[0, 0]],
            "bias" => network.layers[1].bias.as_ref().unwrap().view().order(Row)[0],
            _ => network.layers[name.parse::<usize>().unwrap()].weight.view().order((Row, Column))[[0, 0]],
        };
        element(a) == element(b)
    };
    let kept = ["embedding", "0", "1", "bias", "2"].map(|name| same(&before, &value, name));
    assert_eq!(kept, [true, false, true, true, false]);
    // The moments of a part that changes again begin with zeros.
    optimizer.unfreeze("layers.1");
    optimizer.step(&mut value, &gradient);
    assert!(
        !same(&before, &value, "1") && !same(&before, &value, "bias") && same(&before, &value, "embedding")
    );
    optimizer.freeze("layers.7");
    let error = optimizer.try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(error.to_string(), "cannot freeze `layers.7`: no parameter has this name");
}

#[test]
fn values_that_do_not_fit_change_nothing() {
    let mut value = network(3);
    let mut optimizer = AdamW::new(0.1);
    let mut gradient = value.map_elements(|_: f32| 1.0);
    optimizer.step(&mut value, &gradient);
    let before = all(&value);
    gradient.layers[2].weight = ones((Row.of(2), Column.of(4)));
    let error = optimizer.try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the values of `layers.2.weight` differ: dim `Row` has size 3 in one, 2 in another"
    );
    gradient.layers.truncate(1);
    let error = optimizer.try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(error.to_string(), "the values of `layers` differ: one has the length 3, another 1");
    // The state belongs to parameters of these sizes.
    let mut larger = network(4);
    let gradient = larger.map_elements(|_: f32| 1.0);
    let error = optimizer.try_step(&mut larger, &gradient).unwrap_err();
    assert!(error.to_string().contains("dim `Row` has size 4 in one, 3 in another"), "{error}");
    assert_eq!((all(&value), optimizer.steps()), (before, 1));
}

#[test]
#[should_panic(expected = "the first is `None`, another is not")]
fn the_short_form_panics_with_the_text() {
    let mut value = network(3);
    let mut gradient = value.clone();
    gradient.layers[0].bias = Some(ones(Row.of(3)));
    Sgd::new(0.1).step(&mut value, &gradient);
}

#[test]
fn a_clone_keeps_its_elements() {
    let mut value = network(3);
    let (kept, before) = (value.clone(), all(&value));
    let gradient = value.map_elements(|_: f32| 1.0);
    Sgd::new(0.1).step(&mut value, &gradient);
    assert_eq!(all(&kept), before);
    assert_ne!(all(&value), before);
}

#[test]
fn the_order_in_memory_does_not_matter() {
    let number = |i: usize, j: usize| (0.3 * i as f64 + j as f64).sin();
    // Elements of a part of an array, some backwards.
    let array = Array2::from_shape_fn((9, 5), |(i, j)| number(i, j));
    let part = array.slice_move(ndarray::s![..;-2, 1..]);
    let dense = part.as_standard_layout().into_owned();
    let transposed = dense.t().as_standard_layout().into_owned();
    let gradient = dense.mapv(|a| a * TAU);
    let step = |mut p: Matrix<f64>, gradient: Matrix<f64>| {
        let mut optimizer = Adam::new(0.1);
        for _ in 0..3 {
            optimizer.step(&mut p, &gradient);
        }
        p.order((Row, Column))
    };
    let expected = step(dense.into_tensor((Row, Column)), gradient.clone().into_tensor((Row, Column)));
    let other = gradient.t().as_standard_layout().into_owned();
    assert_eq!(step(part.into_tensor((Row, Column)), gradient.into_tensor((Row, Column))), expected);
    assert_eq!(step(transposed.into_tensor((Column, Row)), other.into_tensor((Column, Row))), expected);
}

#[test]
fn large_tensors_take_the_same_step_as_small_ones() {
    let n = 300_007;
    let number = |at: usize| (0.37 * at as f64).sin();
    let mut large = from_fn(Row.of(n), |at| number(at) as f32);
    let gradient = from_fn(Row.of(n), |at| number(at + 1) as f32);
    let mut optimizer = AdamW::new(0.1);
    optimizer.step(&mut large, &gradient);
    let large = large.order(Row);
    for at in [0, 1, n / 3, n / 2 - 1, n / 2, n / 2 + 1, n - 1] {
        let mut small = full(Row.of(1), number(at) as f32);
        AdamW::new(0.1).step(&mut small, &full(Row.of(1), number(at + 1) as f32));
        assert_eq!(large[at], small.order(Row)[0]);
    }
}

/// Training in half precision: state in `f32`.
#[cfg(feature = "half")]
mod halves {
    use super::*;
    use half::{bf16, f16};
    use typed_dims::types::scalar::CastTo;

    const LEN: usize = 37;

    type Row1<T> = Tensor<T, (Row,)>;

    /// Numbers of type `T` that are smooth in the place and the step, small ones among them.
    fn drawn<T: Real>(step: usize) -> Row1<T> {
        from_fn(Row.of(LEN), |at| T::from(noise(at, step) * 10f64.powi(-(at as i32 % 5))).unwrap())
    }

    fn wide<T: Real>(tensor: &Row1<T>) -> Row1<f32> {
        tensor.view().map(|a: T| a.to_f32().unwrap()).eval()
    }

    fn numbers<T: Real>(tensor: &Row1<T>) -> Vec<f32> {
        wide(tensor).order(Row).to_vec()
    }

    /// 1,000 steps in half precision, and the same steps by the same gradients in single precision.
    fn compare<T: Real, H: Optimizer<Row1<T>>, O: Optimizer<Row1<f32>>>(mut half: H, mut single: O)
    where
        f32: CastTo<T>,
    {
        let mut p = drawn::<T>(0);
        let mut exact = wide(&p);
        for step in 1..=1000 {
            let gradient = drawn::<T>(step);
            half.step(&mut p, &gradient);
            single.step(&mut exact, &wide(&gradient));
            let rounded = numbers(&(&exact).cast::<T>().eval());
            assert_eq!(numbers(&p), rounded, "step {step}");
        }
        let kept = half.state().parameter("").unwrap();
        assert_eq!(kept.master().unwrap().tensor::<f32, (Row,)>().unwrap(), exact);
        for (half, single) in kept.moments().iter().zip(single.state().parameter("").unwrap().moments()) {
            let of = |moment: &typed_dims::optim::StateTensor| moment.tensor::<f32, (Row,)>().unwrap();
            assert_eq!(of(half), of(single));
        }
    }

    #[test]
    fn steps_are_those_of_single_precision_rounded() {
        fn all<T: Real>()
        where
            f32: CastTo<T>,
        {
            compare::<T, _, _>(Sgd::new(1e-3), Sgd::new(1e-3));
            let momentum = (Sgd::new(1e-3).momentum(0.9), Sgd::new(1e-3).momentum(0.9).weight_decay(0.0));
            compare::<T, _, _>(momentum.0, momentum.1);
            compare::<T, _, _>(Adam::new(1e-3), Adam::new(1e-3));
            compare::<T, _, _>(AdamW::new(1e-3), AdamW::new(1e-3));
            compare::<T, _, _>(Lion::new(1e-4), Lion::new(1e-4));
        }
        all::<f16>();
        all::<bf16>();
    }

    /// The formulas of Adam, number by number.
    #[test]
    fn adam_in_f16_follows_the_formula() {
        let mut p = full(Row.of(1), f16::ONE);
        let mut optimizer = Adam::new(1e-3);
        let (mut w, mut m, mut v) = (1.0_f64, 0.0_f64, 0.0_f64);
        for step in 1..=1000_usize {
            // (Squares of such gradients are 0 in half precision.)
            let g = f16::from_f64(1e-4 * (0.5 + noise(3, step)));
            optimizer.step(&mut p, &full(Row.of(1), g));
            let g = g.to_f64();
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let correction = |beta: f64| 1.0 - beta.powi(step as i32);
            w -= 1e-3 * (m / correction(0.9)) / ((v / correction(0.999)).sqrt() + 1e-8);
            let found = p.view().order(Row)[0].to_f64();
            assert!((found - w).abs() < 6e-4, "step {step}: {found} instead of {w}");
        }
        assert!((w - 1.0).abs() > 1e-2, "the parameter moves");
    }

    #[test]
    fn steps_begin_with_what_the_user_has_changed() {
        let mut p = full(Row.of(3), bf16::ONE);
        let gradient = full(Row.of(3), bf16::ONE);
        let mut optimizer = Sgd::new(5e-4);
        let master = |optimizer: &Sgd<Row1<bf16>>| {
            let kept = optimizer.state().parameter("").unwrap();
            kept.master().unwrap().tensor::<f32, (Row,)>().unwrap().order(Row).to_vec()
        };
        optimizer.step(&mut p, &gradient);
        assert_eq!(master(&optimizer), [1.0 - 5e-4; 3]);
        // One element is changed; another is set to what it is.
        p = from_vec(Row.of(3), vec![bf16::from_f32(5.0), bf16::ONE, p.view().order(Row)[2]]);
        optimizer.step(&mut p, &gradient);
        assert_eq!(master(&optimizer), [5.0 - 5e-4, 1.0 - 5e-4 - 5e-4, 1.0 - 5e-4 - 5e-4]);
        assert_eq!(numbers(&p), [5.0, 1.0, 1.0]);
        // NaN stays, and is left when the user does.
        p = full(Row.of(3), bf16::NAN);
        optimizer.step(&mut p, &gradient);
        assert!(master(&optimizer).iter().all(|a| a.is_nan()));
        p = full(Row.of(3), bf16::ONE);
        optimizer.step(&mut p, &gradient);
        assert_eq!(master(&optimizer), [1.0 - 5e-4; 3]);
    }

    #[test]
    fn without_master_weights_each_step_is_rounded() {
        let (mut p, gradient) = (full(Row.of(3), f16::ONE), full(Row.of(3), f16::from_f32(0.3)));
        let mut optimizer = Sgd::new(0.1).master_weights(false);
        optimizer.step(&mut p, &gradient);
        let expected = f16::from_f32(1.0 - 0.1 * f16::from_f32(0.3).to_f32());
        assert_eq!(p.view().order(Row)[2], expected);
        assert!(optimizer.state().parameter("").unwrap().master().is_none());
        // Moments are of single precision all the same.
        let mut adam = Adam::new(0.1).master_weights(false);
        adam.step(&mut p, &full(Row.of(3), f16::from_f32(1e-4)));
        let kept = adam.state().parameter("").unwrap();
        let square = kept.moments()[1].tensor::<f32, (Row,)>().unwrap().order(Row)[0];
        assert!((square - 1e-11).abs() < 1e-13, "{square}");
        // The copy can be dropped, and made anew.
        let mut adam = Adam::new(1e-5);
        adam.step(&mut p, &gradient);
        let mut adam = adam.master_weights(false);
        adam.step(&mut p, &gradient);
        assert!(adam.state().parameter("").unwrap().master().is_none());
        let mut adam = adam.master_weights(true);
        adam.step(&mut p, &gradient);
        assert!(adam.state().parameter("").unwrap().master().is_some());
    }

    #[test]
    fn the_order_in_memory_does_not_matter_for_masters() {
        let number = |at: usize| f16::from_f64(noise(at, 1));
        let (rows, gradient) = (matrix::<f16>(|at| number(at).to_f64()), matrix::<f16>(|at| noise(at, 2)));
        let transposed = || {
            let columns = rows.view().order((Column, Row));
            columns.into_tensor((Column, Row))
        };
        let (mut one, mut other) = (rows.clone(), transposed());
        let mut optimizers = [Adam::new(0.1), Adam::new(0.1)];
        for step in 0..6 {
            if step == 3 {
                // From here on in another order than the state.
                other = other.view().order((Row, Column)).into_tensor((Row, Column));
            }
            optimizers[0].step(&mut one, &gradient);
            optimizers[1].step(&mut other, &gradient);
            assert_eq!(elements(&one), elements(&other));
        }
    }

    #[test]
    fn large_tensors_take_the_same_step_as_small_ones_in_half_precision() {
        let n = 300_007;
        let number = |at: usize| f16::from_f64((0.37 * at as f64).sin());
        let mut large = from_fn(Row.of(n), number);
        let gradient = from_fn(Row.of(n), |at| number(at + 1));
        let mut optimizer = AdamW::new(0.1);
        (0..2).for_each(|_| optimizer.step(&mut large, &gradient));
        let large = large.order(Row);
        for at in [0, 1, 1023, 1024, n / 3, n / 2, n - 1] {
            let (mut small, mut optimizer) = (full(Row.of(1), number(at)), AdamW::new(0.1));
            (0..2).for_each(|_| optimizer.step(&mut small, &full(Row.of(1), number(at + 1))));
            assert_eq!(large[at], small.order(Row)[0]);
        }
    }

    #[test]
    fn an_average_of_half_precision_moves() {
        fn of<T: Real>() {
            let (mut average, mut exact) = (Average::new(0.999), Average::new(0.999));
            for step in 0..1000 {
                let p = full(Row.of(2), T::from(if step == 0 { 1.0 } else { 2.0 }).unwrap());
                average.update(&p);
                exact.update(&wide(&p));
            }
            let exact = exact.into_value().unwrap().order(Row)[0];
            assert!((exact - (2.0 - 0.999_f32.powi(999))).abs() < 1e-4);
            assert_eq!(average.value().unwrap().view().order(Row)[1], T::from(exact).unwrap());
        }
        of::<f16>();
        of::<bf16>();
    }

    #[test]
    fn gradients_of_half_precision_are_accumulated() {
        fn of<T: Real>() {
            let mut gradients = Accumulator::new();
            (0..4096).for_each(|_| gradients.add(full(Row.of(2), T::one())));
            assert_eq!(gradients.count(), 4096);
            assert_eq!(numbers(&gradients.take().unwrap()), [1.0, 1.0]);
            // Their sum may be larger than the largest number.
            let largest = T::max_value();
            (0..3).for_each(|_| gradients.add(full(Row.of(2), largest)));
            assert_eq!(gradients.take().unwrap().order(Row)[0], largest);
            // Nothing of it is left.
            gradients.add(full(Row.of(2), T::one()));
            assert_eq!(numbers(&gradients.take().unwrap()), [1.0, 1.0]);
        }
        of::<f16>();
    }

    /// A value with parameters of several element types.
    #[test]
    fn each_parameter_has_state_of_its_own_type() {
        let mut value = (full(Row.of(2), f16::ONE), ones::<f32, _>(Row.of(2)), ones::<f64, _>(Row.of(2)));
        let gradient = value.clone();
        let mut optimizer = AdamW::new(0.1);
        optimizer.step(&mut value, &gradient);
        let state = optimizer.state();
        let kept = |name: &str| state.parameter(name).unwrap();
        assert!(kept("0").moments()[0].tensor::<f32, (Row,)>().is_some());
        assert!(kept("1").moments()[0].tensor::<f32, (Row,)>().is_some());
        assert!(kept("2").moments()[0].tensor::<f64, (Row,)>().is_some());
        let masters = ["0", "1", "2"].map(|name| kept(name).master().is_some());
        assert_eq!(masters, [true, false, false]);
    }
}
