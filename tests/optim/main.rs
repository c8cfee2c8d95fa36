//! Optimizers, schedules, clipping and averages, compared with PyTorch and optax (`reference.json`,
//! written by `reference.py`).

mod gradients;
mod groups;
#[cfg(feature = "half")]
mod halves;
#[path = "../support/panics.rs"]
mod panics;
mod programs;
mod schedules;

use serde_json::Value;
use std::f64::consts::TAU;
use typed_dims::optim::{
    Adafactor, Adagrad, Adam, AdamW, Lamb, Lion, NAdam, Optimizer, RAdam, RmsProp, Schedule, Sgd,
};
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Column;
    struct Token;
}

type Matrix<T> = Tensor<T, (Row, Column)>;

fn reference() -> Value {
    serde_json::from_str(include_str!("reference.json")).expect("the file is JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The elements of two lists of the same length, side by side.
#[track_caller]
fn pairs<A, B>(
    a: impl IntoIterator<Item = A, IntoIter: ExactSizeIterator>,
    b: impl IntoIterator<Item = B, IntoIter: ExactSizeIterator>,
) -> impl Iterator<Item = (A, B)> {
    let (a, b) = (a.into_iter(), b.into_iter());
    assert_eq!(a.len(), b.len(), "the lengths of the lists");
    a.zip(b)
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

/// Runs 100 steps, and compares the parameters with the reference.
fn compare<T: Real>(name: &str, kind: &str, most: f64, mut optimizer: impl Optimizer<Matrix<T>>) {
    let expected = &reference()[kind][name];
    let mut p = first::<T>();
    for step in 1..=100 {
        let noise = matrix::<T>(|at| noise(at, step));
        let gradient = (&p * T::from(0.3).unwrap() + noise).eval();
        optimizer.step(&mut p, &gradient);
        if let Some(expected) = expected.get(step.to_string()) {
            for (found, expected) in pairs(elements(&p), numbers(expected)) {
                let error = (found - expected).abs();
                assert!(error < most, "{name} of {kind}, step {step}: {found} instead of {expected}");
            }
        }
    }
    assert!(expected.get("100").is_some(), "the reference has {name}");
    assert_eq!(optimizer.steps(), 100);
}

type Pair = (Matrix<f64>, Matrix<f64>);

/// Like [`compare`], with a second parameter that is frozen in some steps.
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
            for (p, expected) in pairs([&both.0, &both.1], expected.as_array().unwrap()) {
                for (found, expected) in pairs(elements(p), numbers(expected)) {
                    let error = (found - expected).abs();
                    assert!(error < 1e-12, "{name}, step {step}: {found} instead of {expected}");
                }
            }
        }
    }
    assert!(expected.get("100").is_some(), "the reference has {name}");
    assert_eq!((optimizer.state().steps_of("0"), optimizer.state().steps_of("1")), (100, 47));
}

/// Each parameter counts its own steps. Adam corrects its moments by this count.
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
    compare_frozen("dampening", Sgd::new(0.05).momentum(0.9).dampening(0.4).weight_decay(0.02));
    compare_frozen("amsgrad", Adam::new(0.03).betas(0.8, 0.95).amsgrad());
    compare_frozen("rmsprop", RmsProp::new(0.01));
    compare_frozen("adagrad_decay", adagrad_with_decay());
    compare_frozen("nadam", NAdam::new(0.03));
    compare_frozen("radam", RAdam::new(0.03));
    compare_frozen("adafactor", torch_adafactor(0.05));
    compare_frozen("adafactor_decay", adafactor_with_decay());
}

/// Settings that differ from those of `new`.
fn adagrad_with_decay<P: Parameters>() -> Adagrad<P> {
    Adagrad::new(0.1).rate_decay(0.02).weight_decay(0.1).first_sum(0.3).epsilon(1e-4).maximize()
}

/// Adafactor with the defaults of PyTorch.
fn torch_adafactor<P: Parameters>(rate: f64) -> Adafactor<P> {
    Adafactor::new(rate).min_dim_size_to_factor(1).relative_step()
}

/// Settings that differ from the defaults of PyTorch.
fn adafactor_with_decay<P: Parameters>() -> Adafactor<P> {
    let adafactor = torch_adafactor(0.02).decay_exponent(0.6).least_scale(0.8).clipping_threshold(1.3);
    adafactor.weight_decay(0.1).maximize()
}

/// State is stored by parameter name, from the first step of each parameter.
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
    assert!(optimizer.state().parameter("ids").is_none(), "`ids` is not learned");

    let state = optimizer.state().parameter("layers.2.weight").unwrap();
    assert!(state.master().is_none(), "single precision needs no master copy");
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

#[test]
fn a_later_parameter_counts_from_its_own_first_step() {
    let of = |len: usize| vec![ones::<f64, _>(Row.of(2)); len];
    let (mut value, mut optimizer) = (of(2), Adam::new(0.1));
    (0..3).for_each(|_| optimizer.step(&mut value, &of(2)));
    value.insert(1, ones(Row.of(2)));
    optimizer.step(&mut value, &of(3));
    let steps = ["0", "1", "2"].map(|name| optimizer.state().steps_of(name));
    assert_eq!(steps, [4, 4, 1], "steps are counted by name");
    assert!((value[2].view().order(Row)[0] - (0.7 - 0.1)).abs() < 1e-7);
}

/// Also if there was no parameter before, or none was left.
#[test]
fn the_first_parameter_of_a_list_counts_from_its_own_first_step() {
    use typed_dims::optim::checkpoint::{Checkpoint, Saved};

    let of = |len: usize| vec![ones::<f64, _>(Row.of(2)); len];
    let take_its_first_step = |optimizer: &mut Adam<Vec<Tensor<f64, (Row,)>>>| {
        let (mut value, before) = (of(1), optimizer.steps());
        optimizer.step(&mut value, &of(1));
        assert_eq!((optimizer.steps(), optimizer.state().steps_of("0")), (before + 1, 1));
        assert!((value[0].view().order(Row)[0] - (1.0 - 0.1)).abs() < 1e-7);
    };
    let mut optimizer = Adam::new(0.1);
    (0..3).for_each(|_| optimizer.step(&mut of(0), &of(0)));
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("adam", &optimizer).unwrap();
    take_its_first_step(&mut optimizer);
    optimizer.step(&mut of(0), &of(0));
    take_its_first_step(&mut optimizer);

    let mut resumed = Adam::new(0.1);
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    saved.load_optimizer("adam", &mut resumed, &of(0)).unwrap();
    take_its_first_step(&mut resumed);
    // `restore` sets the number of steps of all parameters.
    resumed.state_mut().restore(7);
    resumed.step(&mut of(1), &of(1));
    assert_eq!(resumed.state().steps_of("0"), 8);
}

/// The state of a removed parameter is dropped: a new parameter of that name starts at step 0.
#[test]
fn the_state_of_a_parameter_that_is_gone_is_dropped() {
    fn check<O: Optimizer<Vec<Tensor<f64, (Row,)>>>>(mut optimizer: O) {
        let of = |len: usize| vec![ones::<f64, _>(Row.of(2)); len];
        let mut value = of(3);
        (0..3).for_each(|_| optimizer.step(&mut value, &of(3)));
        value.pop();
        // An error changes nothing, not even the state.
        assert!(optimizer.try_step(&mut value, &of(3)).is_err());
        assert_eq!(optimizer.state().parameters().len(), 3);
        optimizer.step(&mut value, &of(2));
        let names: Vec<String> = optimizer.state().parameters().iter().map(|state| state.name()).collect();
        assert_eq!(names, ["0", "1"]);
        // The new parameter has other sizes than the old one.
        value.push(ones(Row.of(5)));
        let gradient = value.map_elements(|_: f64| 1.0);
        optimizer.step(&mut value, &gradient);
        assert_eq!(["0", "1", "2"].map(|name| optimizer.state().steps_of(name)), [5, 5, 1]);
    }
    check(Sgd::new(0.1).momentum(0.9));
    check(Adam::new(0.1));
    check(Lamb::new(0.1));
    check(Adafactor::new(0.1));
}

#[test]
fn a_group_without_parameters_is_refused_after_a_parameter_is_gone() {
    let of = |len: usize| vec![ones::<f64, _>(Row.of(2)); len];
    let (mut value, mut optimizer) = (of(2), Sgd::new(0.1).group("1", |group| group.rate(0.5)));
    optimizer.step(&mut value, &of(2));
    value.pop();
    for _ in 0..2 {
        let error = optimizer.try_step(&mut value, &of(1)).unwrap_err();
        assert_eq!(error.to_string(), "the group `1` matches no parameter: the names are `0`");
    }
}

#[test]
fn integers_take_no_step() {
    let (mut value, gradient) = (full(Row.of(2), 3usize), full(Row.of(2), 1usize));
    let mut optimizer = Sgd::new(0.1);
    optimizer.step(&mut value, &gradient);
    assert_eq!((value.order(Row)[0], optimizer.steps()), (3, 1));
}

/// A checkpoint of an optimizer has the state of the parameters of the last step. If parameters
/// were added or removed since then, loading is an error; `prepare` brings the state up to date.
#[test]
fn a_checkpoint_after_parameters_were_added_or_removed() {
    use typed_dims::optim::checkpoint::{Checkpoint, Saved};

    type Layers = Vec<Tensor<f64, (Row,)>>;
    let of = |len: usize| -> Layers { vec![ones(Row.of(2)); len] };
    let resumed = |optimizer: &Adam<Layers>, value: &Layers| {
        let mut checkpoint = Checkpoint::new();
        checkpoint.put_optimizer("adam", optimizer).unwrap();
        let mut resumed = Adam::new(0.1);
        let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
        saved.load_optimizer("adam", &mut resumed, value).map(|()| resumed).map_err(|error| error.to_string())
    };
    let (mut value, mut optimizer) = (of(3), Adam::new(0.1));
    optimizer.step(&mut value, &of(3));

    value.pop();
    let error = resumed(&optimizer, &value).unwrap_err();
    assert!(error.contains("`adam.mean.2` of sizes [2] is not used"), "{error}");
    let mut prepared = optimizer.clone();
    prepared.prepare(&value);
    assert_eq!(resumed(&prepared, &value).unwrap().state().parameters().len(), 2);
    optimizer.step(&mut value, &of(2));
    assert_eq!(resumed(&optimizer, &value).unwrap().state().parameters().len(), 2);

    value.extend(of(2));
    let error = resumed(&optimizer, &value).unwrap_err();
    assert!(error.contains("`adam.mean.2` is missing"), "{error}");
    optimizer.prepare(&value);
    let mut other = resumed(&optimizer, &value).unwrap();
    assert_eq!(["1", "3"].map(|name| other.state().steps_of(name)), [2, 0]);
    let mut same = value.clone();
    optimizer.step(&mut value, &of(4));
    other.step(&mut same, &of(4));
    assert_eq!(value, same);
}

/// The elements of recorded state differ from call to call.
#[test]
fn a_recorded_function_cannot_write_an_optimizer() {
    use std::cell::RefCell;
    use typed_dims::optim::checkpoint::Checkpoint;
    use typed_dims::program::record;

    type Weight = Tensor<f64, (Row,)>;
    let texts = RefCell::new(Vec::new());
    let put = |optimizer: &Adam<Weight>| {
        let mut checkpoint = Checkpoint::new();
        let error = checkpoint.put_optimizer("adam", optimizer).err().expect("the state is recorded");
        texts.borrow_mut().push(error.to_string());
        assert_eq!(checkpoint.to_bytes().unwrap(), Checkpoint::new().to_bytes().unwrap());
    };
    let (w, mut adam): (Weight, Adam<Weight>) = (ones(Row.of(2)), Adam::new(0.1));
    adam.prepare(&w);
    let as_input = |adam: &Adam<Weight>| -> Adam<Weight> {
        put(adam);
        adam.clone()
    };
    record(as_input, &adam).expect("the state itself is recorded");
    // The number of steps is a constant here, but the moments depend on `w`.
    let made_inside = |w: &Weight| -> Weight {
        let (mut w, mut adam) = (w.clone(), Adam::new(0.1));
        let gradient = w.clone();
        adam.step(&mut w, &gradient);
        put(&adam);
        w
    };
    record(made_inside, &w).expect("the step is recorded");
    let texts = texts.into_inner();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.starts_with("`put_optimizer` cannot be recorded")), "{texts:?}");
}

/// Moments in a file would have no gradient.
#[test]
fn a_gradient_cannot_be_taken_through_a_written_optimizer() {
    use typed_dims::grad::grad;
    use typed_dims::optim::checkpoint::Checkpoint;

    type Weight = Tensor<f64, (Row,)>;
    let (w, mut sgd): (Weight, Sgd<Weight>) = (ones(Row.of(2)), Sgd::new(0.1).momentum(0.9));
    sgd.prepare(&w);
    let loss = |sgd: &Sgd<Weight>| -> Tensor<f64, ()> {
        let mut checkpoint = Checkpoint::new();
        let error = checkpoint.put_optimizer("sgd", sgd).err().expect("a gradient traces the velocity");
        let text = error.to_string();
        assert!(text.starts_with("no gradient can be taken through `put_optimizer`"), "{text}");
        assert_eq!(checkpoint.to_bytes().unwrap(), Checkpoint::new().to_bytes().unwrap());
        let velocity: Weight = sgd.state().parameters()[0].moments()[0].tensor().expect("of these dims");
        velocity.sum(Row)
    };
    let slope = grad(loss, &sgd).state().parameters()[0].moments()[0].tensor::<f64, (Row,)>();
    assert_eq!(slope, Some(w));
}

/// The text of the error of a step. The step must change nothing.
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
            step_refused(Sgd::new(0.1).momentum(0.9).dampening(1.5)),
            "`Sgd` with the dampening 1.5: it must be between 0 and 1",
        ),
        (
            step_refused(Sgd::new(0.1).momentum(0.9).dampening(0.1).nesterov()),
            "`Sgd` with `nesterov` has `dampening`: remove one of the two",
        ),
        (
            step_refused(RmsProp::new(0.1).alpha(1.0)),
            "`RmsProp` with the alpha 1: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(Adagrad::new(0.1).rate_decay(-1.0)),
            "`Adagrad` with the decay of the rate -1: it must be finite and 0 or more",
        ),
        (
            step_refused(NAdam::new(0.1).momentum_decay(f64::NAN)),
            "`NAdam` with the momentum decay NaN: it must be finite and 0 or more",
        ),
        (
            step_refused(RAdam::new(0.1).betas(0.9, 1.0)),
            "`RAdam` with the second beta 1: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(Adafactor::new(0.1).clipping_threshold(0.0)),
            "`Adafactor` with the clipping threshold 0: it must be more than 0",
        ),
        (
            step_refused(Adafactor::new(0.1).momentum(1.0)),
            "`Adafactor` with the momentum 1: it must be 0 or more, and less than 1",
        ),
        (
            step_refused(Lamb::new(0.1).epsilon(-1.0)),
            "`Lamb` with the epsilon -1: it must be finite and 0 or more",
        ),
        (
            step_refused(Sgd::new(0.1).nesterov()),
            "`Sgd` with `nesterov` has no momentum: set `momentum` to more than 0",
        ),
    ] {
        assert_eq!(found, expected);
    }
    // Settings may equal an inclusive limit.
    let mut p = first::<f64>();
    Adam::new(0.0).betas(0.0, 0.0).epsilon(0.0).step(&mut p, &matrix(|_| 1.0));
    Sgd::new(0.0).momentum(1.0).nesterov().step(&mut p, &matrix(|_| 1.0));
    assert_eq!(elements(&p), elements(&first::<f64>()));
}

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
    last(Adagrad::new(Schedule::linear(0.1, 0.0, 10)).rate_decay(0.1));
    last(NAdam::new(Schedule::cosine_restarts(0.1, 0.0, 10, 2)));
    last(RAdam::new(Schedule::multi_step(0.1, &[3, 5], 0.1)));
    last(Adafactor::new(Schedule::constant(0.1)).min_dim_size_to_factor(2).momentum(0.9));
    last(Lamb::new(Schedule::polynomial(0.1, 0.01, 10, 2.0)));
}

#[test]
fn a_tiny_momentum_decay_is_almost_none() {
    let after = |decay: f64| {
        let mut optimizer = NAdam::new(0.03).momentum_decay(decay);
        let mut p = first::<f64>();
        for step in 1..=20 {
            optimizer.step(&mut p, &matrix(|at| noise(at, step)));
        }
        elements(&p)
    };
    // Up to step 21, the momenta differ by less than the decay from those without decay.
    for decay in [f64::MIN_POSITIVE, 1e-200, 1e-50, 1e-16, 1e-14, 1e-12] {
        for (found, expected) in pairs(after(decay), after(0.0)) {
            assert!((found - expected).abs() < 1e-10, "{decay}: {found} instead of {expected}");
        }
    }
}

/// Compares optimizers with those of PyTorch.
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
    let sgd = Sgd::new(0.05).momentum(0.9).weight_decay(0.02);
    let slow = Sgd::new(0.002).momentum(0.9).weight_decay(0.02);
    compare::<T>("maximize", kind, most, slow.maximize());
    compare::<T>("dampening", kind, most, sgd.dampening(0.4));
    compare::<T>("amsgrad", kind, most, Adam::new(0.03).betas(0.8, 0.95).amsgrad());
    compare::<T>("rmsprop", kind, most, RmsProp::new(0.01));
    let momentum = RmsProp::new(0.01).alpha(0.9).momentum(0.8);
    compare::<T>("rmsprop_momentum", kind, most, momentum.clone().weight_decay(0.1));
    compare::<T>("rmsprop_centered", kind, most, RmsProp::new(0.01).epsilon(1e-3).centered().maximize());
    compare::<T>("rmsprop_both", kind, most, momentum.epsilon(1e-3).centered());
    compare::<T>("adagrad", kind, most, Adagrad::new(0.1));
    compare::<T>("adagrad_decay", kind, most, adagrad_with_decay());
    compare::<T>("nadam", kind, most, NAdam::new(0.03));
    compare::<T>("nadam_constant", kind, most, NAdam::new(0.03).momentum_decay(0.0).weight_decay(0.1));
    compare::<T>("radam", kind, most, RAdam::new(0.03));
    let radam = RAdam::new(0.03).betas(0.8, 0.95).weight_decay(0.1);
    compare::<T>("radam_l2", kind, most, radam);
    compare::<T>("adafactor", kind, most, torch_adafactor(0.05));
}

#[test]
fn optimizers_agree_with_pytorch_in_double_precision() {
    compare_all::<f64>("f64", 1e-12);
}

/// Tests double precision only: as the parameters grow, PyTorch's rounding errors in single
/// precision accumulate.
#[test]
fn optimizers_that_maximize_agree_with_pytorch() {
    compare::<f64>("adam_maximize", "f64", 1e-12, Adam::new(0.03).weight_decay(0.1).maximize());
    compare::<f64>("amsgradw", "f64", 1e-12, AdamW::new(0.03).betas(0.8, 0.95).amsgrad().maximize());
    let nadam = NAdam::new(0.03).betas(0.8, 0.95).momentum_decay(0.1);
    compare::<f64>("nadam_decay", "f64", 1e-12, nadam.weight_decay(0.1).decoupled().maximize());
    let radam = RAdam::new(0.03).betas(0.8, 0.95).weight_decay(0.1);
    compare::<f64>("radam_decay", "f64", 1e-12, radam.decoupled().maximize());
    compare::<f64>("adafactor_decay", "f64", 1e-12, adafactor_with_decay());
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
fn lamb_agrees_with_optax() {
    compare::<f64>("lamb", "f64", 1e-12, Lamb::new(0.01));
    let lamb = Lamb::new(0.01).betas(0.8, 0.95).epsilon(1e-4).weight_decay(0.1);
    compare::<f64>("lamb_decay", "f64", 1e-12, lamb);
}

#[test]
fn adafactor_agrees_with_optax() {
    compare::<f64>("adafactor_whole", "f64", 1e-12, Adafactor::new(0.03));
    let factored = || Adafactor::new(0.03).min_dim_size_to_factor(3);
    compare::<f64>("adafactor_factored", "f64", 1e-12, factored());
    let adafactor = Adafactor::new(0.03).min_dim_size_to_factor(2).decay_exponent(0.6).epsilon(1e-3);
    let adafactor = adafactor.multiply_by_parameter_scale(false).clipping_threshold(f64::INFINITY);
    compare::<f64>("adafactor_momentum", "f64", 1e-12, adafactor.momentum(0.9).weight_decay(0.1));
}

type Cube = Tensor<f64, (Row, Column, Token)>;

/// Runs 100 steps of a parameter with three dims, and compares it with the reference. The sizes are
/// in the order of the reference. If `transposed`, the parameter has another order in memory.
fn compare_cube(
    name: &str,
    sizes: [usize; 3],
    transposed: bool,
    cube: impl Fn(&dyn Fn(usize) -> f64) -> Cube,
    flat: impl Fn(&Cube) -> Vec<f64>,
) {
    let expected = &reference()["f64"][name];
    let stored = |cube: Cube| {
        if transposed { cube.order((Column, Token, Row)).into_tensor((Column, Token, Row)) } else { cube }
    };
    let mut p = stored(cube(&|at| (0.6 * at as f64).cos()));
    let mut optimizer = Adafactor::new(0.03).min_dim_size_to_factor(3);
    for step in 1..=100 {
        let gradient = (&p * 0.3 + cube(&|at| noise(at, step))).eval();
        optimizer.step(&mut p, &gradient);
        if let Some(expected) = expected.get(step.to_string()) {
            let expected = numbers(expected);
            assert_eq!(expected.len(), sizes.iter().product::<usize>());
            for (found, expected) in flat(&p).into_iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{name}, step {step}: {found} instead of {expected}"
                );
            }
        }
    }
    assert!(expected.get("100").is_some(), "the reference has {name}");
}

/// The two largest dims are factored, wherever they are. If dims have the same size, the later
/// ones are factored.
#[test]
fn adafactor_factors_the_two_largest_dims() {
    for transposed in [false, true] {
        compare_cube(
            "adafactor_cube",
            [5, 2, 4],
            transposed,
            |number| from_fn((Token.of(5), Row.of(2), Column.of(4)), |(t, r, c)| number((2 * t + r) * 4 + c)),
            |p| p.view().order((Token, Row, Column)).into_iter().collect(),
        );
        compare_cube(
            "adafactor_equal",
            [3, 3, 3],
            transposed,
            |number| from_fn((Row.of(3), Column.of(3), Token.of(3)), |(r, c, t)| number((3 * r + c) * 3 + t)),
            |p| p.view().order((Row, Column, Token)).into_iter().collect(),
        );
    }
}

/// In the moments of a factored parameter, `square` lacks the largest dim, and `columns` the second
/// largest.
#[test]
fn adafactor_keeps_factors() {
    let mut value = (zeros((Row.of(2), Column.of(200), Token.of(130))), zeros((Row.of(3), Column.of(4))));
    let gradient: (Tensor<f32, (Row, Column, Token)>, Matrix<f32>) = value.map_elements(|_: f32| 0.5);
    let mut optimizer = Adafactor::new(0.1).momentum(0.9);
    optimizer.step(&mut value, &gradient);
    let state = |optimizer: &Adafactor<_>, name: &str| {
        let moments = optimizer.state().parameter(name).unwrap().moments();
        moments.iter().map(|moment| moment.sizes().to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(optimizer.moments(), ["square", "columns", "mean"]);
    assert_eq!(state(&optimizer, "0"), [vec![2, 130], vec![2, 200], vec![2, 200, 130]]);
    assert_eq!(state(&optimizer, "1"), [vec![3, 4], vec![], vec![3, 4]]);
    let moments = optimizer.state().parameter("0").unwrap().moments();
    let square: Tensor<f32, (Row, Token)> = moments[0].tensor().unwrap();
    assert_eq!(square.order((Row, Token)), Array2::from_elem((2, 130), 0.25));
    assert!(moments[0].tensor::<f32, (Row, Column, Token)>().is_none());
    let error = optimizer.clone().min_dim_size_to_factor(3).try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the state of `1` is factored over other dims: it comes from an optimizer with another \
         `min_dim_size_to_factor`"
    );
    // A parameter without elements is skipped.
    let mut empty = zeros::<f32, _>((Row.of(0), Column.of(200)));
    Adafactor::new(0.1).min_dim_size_to_factor(0).step(&mut empty, &zeros((Row.of(0), Column.of(200))));
}

/// A parameter that is 0 moves; a parameter whose gradient is 0 does not.
#[test]
fn lamb_ignores_norms_of_zero() {
    let mut p = zeros::<f64, _>((Row.of(3), Column.of(4)));
    Lamb::new(0.01).step(&mut p, &matrix(|_| 1.0));
    assert!(elements(&p).iter().all(|&p| (p + 0.01).abs() < 1e-7));
    let mut p = first::<f64>();
    Lamb::new(0.01).step(&mut p, &matrix(|_| 0.0));
    assert_eq!(elements(&p), elements(&first::<f64>()));
}

#[test]
fn a_warm_up_comes_before_the_schedule() {
    let rates = |schedule: Schedule| [0, 1, 2, 3, 4].map(|step| schedule.at(step));
    assert_eq!(rates(Schedule::from(1)), [1.0; 5]);
    let mut p = zeros::<f64, _>((Row.of(3), Column.of(4)));
    Sgd::new(1).step(&mut p, &matrix(|_| 1.0));
    assert!(elements(&p).iter().all(|&p| p == -1.0));
    assert_eq!(rates(Schedule::constant(0.5).warm_up(2)), [0.25, 0.5, 0.5, 0.5, 0.5]);
    assert_eq!(rates(Schedule::step(1.0, 1, 0.5).warm_up(2)), [0.5, 1.0, 1.0, 0.5, 0.25]);
    // After the last step, the rate is constant.
    assert_eq!(Schedule::cosine(1.0, 0).at(0), 0.0);
    assert_eq!(Schedule::one_cycle(1.0, 10).at(9), Schedule::one_cycle(1.0, 10).at(1000));
}

#[test]
fn the_rate_of_a_tensor_is_that_of_its_number() {
    let schedules = [
        Schedule::constant(0.3),
        Schedule::cosine_to(0.5, 0.01, 100),
        Schedule::cosine(0.5, 0),
        Schedule::step(0.5, 7, 0.1),
        Schedule::one_cycle(0.5, 101),
        Schedule::one_cycle(0.5, 0),
        Schedule::linear(0.5, 0.1, 60),
        Schedule::polynomial(0.5, 0.1, 60, 1.7),
        Schedule::multi_step(0.5, &[5, 30, 31, 80], 0.3),
        Schedule::cosine_restarts(0.5, 0.01, 7, 1),
        Schedule::cosine_restarts(0.5, 0.01, 4, 3),
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
    // A returned count does not change later.
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
    optimizer.unfreeze("layers.1");
    optimizer.step(&mut value, &gradient);
    assert!(
        !same(&before, &value, "1") && !same(&before, &value, "bias") && same(&before, &value, "embedding")
    );
    optimizer.freeze("layers.7");
    let error = optimizer.try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot freeze `layers.7`: no parameter matches it; the names are `embedding`, `layers.0.weight`, `layers.1.weight`, `layers.1.bias`, \
         `layers.2.weight`, `layers.2.bias`, .."
    );
}

/// Patterns are matched as in groups.
#[test]
fn parts_are_frozen_by_patterns() {
    let before = network(3);
    let gradient = before.map_elements(|_: f32| 1.0);
    let steps = |patterns: &[&str]| {
        let mut optimizer = Adam::new(0.1);
        patterns.iter().for_each(|pattern| optimizer.freeze(pattern));
        optimizer.step(&mut before.clone(), &gradient);
        ["embedding", "layers.0.weight", "layers.1.weight", "layers.1.bias", "layers.2.bias"]
            .map(|name| optimizer.state().steps_of(name))
    };
    assert_eq!(steps(&["*.bias"]), [1, 1, 1, 0, 0]);
    assert_eq!(steps(&["layers.*.weight"]), [1, 0, 0, 1, 1]);
    assert_eq!(steps(&["layers.1", "emb*"]), [0, 1, 0, 0, 1]);
    let mut optimizer = Adam::new(0.1);
    optimizer.freeze("*.bais");
    let error = optimizer.try_step(&mut before.clone(), &gradient).unwrap_err().to_string();
    assert!(error.starts_with("cannot freeze `*.bais`: no parameter matches it"), "{error}");
}

/// For each parameter, the last call of `freeze` or `unfreeze` that matches it counts.
#[test]
fn the_last_call_decides_what_is_frozen() {
    let before = network(3);
    let gradient = before.map_elements(|_: f32| 1.0);
    let stepped = |calls: &[(bool, &str)]| {
        let mut optimizer = Sgd::new(0.1);
        for (freezes, name) in calls {
            if *freezes { optimizer.freeze(name) } else { optimizer.unfreeze(name) }
        }
        optimizer.try_step(&mut before.clone(), &gradient).map_err(|error| error.to_string())?;
        let names = ["embedding", "layers.1.weight", "layers.1.bias", "layers.2.bias"];
        Ok::<_, String>(names.map(|name| optimizer.state().steps_of(name)))
    };
    let (freeze, unfreeze) = (|name| (true, name), |name| (false, name));
    assert_eq!(stepped(&[freeze("*"), unfreeze("layers.1")]), Ok([0, 1, 1, 0]));
    assert_eq!(stepped(&[freeze("*"), unfreeze("layers.1"), freeze("*.bias")]), Ok([0, 1, 0, 0]));
    assert_eq!(stepped(&[freeze("*"), unfreeze("layers.1"), freeze("*")]), Ok([0, 0, 0, 0]));
    assert_eq!(stepped(&[freeze("embedding"), freeze("*.bias"), unfreeze("*")]), Ok([1, 1, 1, 1]));
    // `*.embedding` matches `embedding`, which `*.*.embedding` does not.
    for pattern in ["*.*.embedding", "**.embedding"] {
        let error = stepped(&[freeze("*.bias"), freeze("*.embedding"), unfreeze(pattern)]).unwrap_err();
        assert!(error.starts_with(&format!("cannot unfreeze `{pattern}`: no parameter")), "{error}");
    }
    assert_eq!(
        stepped(&[freeze("embedding"), unfreeze("embedding"), unfreeze("embedding")]),
        Ok([1, 1, 1, 1])
    );
    let error = stepped(&[freeze("layers.1"), unfreeze("layer.1")]).unwrap_err();
    assert!(
        error.starts_with("cannot unfreeze `layer.1`: no parameter matches it; the names are"),
        "{error}"
    );
    let error = stepped(&[freeze("layers.1"), unfreeze("layer.1"), unfreeze("layer.1")]).unwrap_err();
    assert!(error.starts_with("cannot unfreeze `layer.1`"), "{error}");
    // A misspelled name can be taken back.
    assert_eq!(stepped(&[freeze("embedding"), freeze("bais"), unfreeze("bais")]), Ok([0, 1, 1, 1]));
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
        "the values of `layers.2.weight` differ: dim `Row` has size 3 in the parameters, 2 in the gradient"
    );
    gradient.layers.truncate(1);
    let error = optimizer.try_step(&mut value, &gradient).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the values of `layers` differ: the length is 3 in the parameters, 1 in the gradient"
    );
    // The state belongs to parameters of other sizes.
    let mut larger = network(4);
    let gradient = larger.map_elements(|_: f32| 1.0);
    let error = optimizer.try_step(&mut larger, &gradient).unwrap_err();
    let expected = "dim `Row` has size 4 in the parameters, 3 in the optimizer's state";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!((all(&value), optimizer.steps()), (before, 1));
}

#[test]
#[should_panic(expected = "`layers.0.bias` differ: it is `None` in the parameters, but not in the gradient")]
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
    // A part of an array, with every other row, backwards.
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
