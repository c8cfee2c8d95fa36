//! Schedules, and rates that decrease on a plateau.

use super::{Row, numbers, reference};
use typed_dims::grad::try_grad;
use typed_dims::optim::{Plateau, Schedule};
use typed_dims::prelude::*;

#[test]
fn schedules_agree_with_pytorch_and_optax() {
    let schedules = [
        ("cosine", Schedule::cosine_to(0.5, 0.01, 100)),
        ("step", Schedule::step(0.5, 30, 0.1)),
        ("one_cycle", Schedule::one_cycle(0.5, 101)),
        ("linear", Schedule::linear(0.5, 0.05, 60)),
        ("polynomial", Schedule::polynomial(0.5, 0.0, 80, 1.7)),
        ("multi_step", Schedule::multi_step(0.5, &[5, 30, 31, 80], 0.3)),
        ("exponential", Schedule::step(0.5, 1, 0.97)),
        ("restarts", Schedule::cosine_restarts(0.5, 0.01, 7, 1)),
        ("longer_restarts", Schedule::cosine_restarts(0.5, 0.0, 4, 3)),
        ("optax_linear", Schedule::linear(0.5, 0.05, 60)),
        ("optax_polynomial", Schedule::polynomial(0.5, 0.05, 80, 1.7)),
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

/// Each period starts exactly where the last one ends, however the logarithm that finds the period
/// is rounded.
#[test]
fn periods_begin_with_the_first_rate() {
    for (first, longer) in [(1, 2), (7, 3), (10, 4), (3, 10), (1000, 5)] {
        let schedule = Schedule::cosine_restarts(1.0, 0.0, first, longer);
        let (mut start, mut period) = (0_u64, first);
        while start < 1 << 40 {
            assert_eq!(schedule.at(start), 1.0, "step {start} of {first}, {longer}");
            if start > 1 {
                assert!(schedule.at(start - 1) < 0.51, "step {start} of {first}, {longer}");
            }
            (start, period) = (start + period, period * longer);
        }
    }
}

/// The losses of `reference.py`.
fn losses() -> impl Iterator<Item = f64> {
    (0..60).map(|epoch| 1.0 / f64::from(1 + epoch / 6) + 0.01 * (3.0 * f64::from(epoch)).sin())
}

#[test]
fn plateaus_agree_with_pytorch() {
    let reference = &reference()["plateaus"];
    let of = |name: &str, mut plateau: Plateau, sign: f64| {
        let expected = numbers(&reference[name]);
        assert_eq!(expected.len(), 60);
        for (epoch, (loss, expected)) in losses().zip(expected).enumerate() {
            let found = plateau.observe(sign * loss);
            assert!((found - expected).abs() < 1e-12, "{name}, epoch {epoch}: {found} instead of {expected}");
            assert_eq!(plateau.rate(), found);
        }
    };
    of("default", Plateau::new(0.5).patience(2), 1.0);
    let cooldown = Plateau::new(0.5).patience(1).cooldown(4).factor(0.5).least_rate(0.01).threshold(0.05);
    of("cooldown", cooldown, 1.0);
    of("absolute", Plateau::new(0.5).patience(1).factor(0.7).absolute_threshold(0.1), 1.0);
    of("maximize", Plateau::new(0.5).patience(1).factor(0.7).threshold(0.01).maximize(), -1.0);
}

#[test]
fn a_plateau_refuses_settings_out_of_their_range() {
    let refused = |mut plateau: Plateau| plateau.try_observe(1.0).unwrap_err().to_string();
    assert_eq!(
        refused(Plateau::new(0.1).factor(1.0)),
        "`Plateau` with the factor 1: it must be 0 or more, and less than 1"
    );
    assert_eq!(
        refused(Plateau::new(0.1).threshold(-0.5)),
        "`Plateau` with the threshold -0.5: it must be finite and 0 or more"
    );
    for rate in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refused(Plateau::new(rate)),
            format!("`Plateau` with the rate {rate}: it must be finite and 0 or more")
        );
    }
    assert_eq!(Plateau::new(0.0).observe(1.0), 0.0);
}

#[test]
fn nan_is_never_better() {
    let mut plateau = Plateau::new(1.0).patience(1).factor(0.5);
    let rates: Vec<f64> = [f64::NAN, 1.0, f64::NAN, f64::NAN].map(|loss| plateau.observe(loss)).to_vec();
    assert_eq!(rates, [1.0, 1.0, 1.0, 0.5]);
}

/// PyTorch compares the first value with infinity, or with minus infinity if greater is better.
#[test]
fn the_worst_value_is_never_better() {
    let rates = |mut plateau: Plateau, values: [f64; 3]| values.map(|value| plateau.observe(value));
    let plateau = Plateau::new(1.0).patience(1).factor(0.5);
    assert_eq!(rates(plateau.clone(), [f64::INFINITY, f64::INFINITY, 1.0]), [1.0, 0.5, 0.5]);
    assert_eq!(rates(plateau.clone(), [f64::NEG_INFINITY, 1.0, 1.0]), [1.0, 1.0, 0.5]);
    let plateau = plateau.maximize();
    assert_eq!(rates(plateau.clone(), [f64::NEG_INFINITY, f64::NEG_INFINITY, 1.0]), [1.0, 0.5, 0.5]);
    assert_eq!(rates(plateau, [f64::INFINITY, 1.0, 1.0]), [1.0, 1.0, 0.5]);
}

/// The state of a plateau consists of tensors, which a checkpoint saves.
#[test]
fn a_plateau_goes_on_from_its_state() {
    let new = || Plateau::new(0.5).patience(2);
    let mut whole = new();
    for loss in losses().take(20) {
        whole.observe(loss);
    }
    let mut checkpoint = typed_dims::optim::checkpoint::Checkpoint::new();
    checkpoint.put("plateau", &whole).unwrap();
    let mut resumed = new();
    let saved = typed_dims::optim::checkpoint::Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    saved.load("plateau", &mut resumed).unwrap();
    for loss in losses().skip(20) {
        assert_eq!(resumed.observe(loss), whole.observe(loss));
    }
}

/// A number that is read while a function is recorded would be the same in each call.
#[test]
fn a_recorded_function_cannot_read_a_plateau() {
    let error = |f: &dyn Fn(&mut Plateau) -> String| {
        let texts = std::cell::RefCell::new(String::new());
        let recorded = typed_dims::program::record(
            |plateau: &Plateau| -> Plateau {
                let mut own = plateau.clone();
                *texts.borrow_mut() = f(&mut own);
                own
            },
            &Plateau::new(0.5),
        );
        recorded.expect("the state itself is recorded");
        texts.into_inner()
    };
    let refused = error(&|plateau| plateau.try_observe(1.0).unwrap_err().to_string());
    assert!(refused.starts_with("`observe` cannot be recorded"), "{refused}");
    let refused = error(&|plateau| crate::panics::message(|| plateau.rate()));
    assert!(refused.starts_with("`rate` cannot be recorded"), "{refused}");
}

/// A number has no gradient.
#[test]
fn a_gradient_cannot_be_taken_through_a_plateau() {
    let mut texts = Vec::new();
    let loss = |plateau: &Plateau| -> Tensor<f64, ()> {
        texts.push(crate::panics::message(|| plateau.rate()));
        texts.push(plateau.clone().try_observe(1.0).unwrap_err().to_string());
        full((), 1.0)
    };
    assert!(try_grad(loss, &Plateau::new(0.5)).is_err(), "the loss does not depend on the rate");
    for (text, operation) in texts.iter().zip(["rate", "observe"]) {
        assert!(text.starts_with(&format!("no gradient can be taken through `{operation}`")), "{text}");
    }
    assert_eq!(texts.len(), 2);
}

/// A program does not check its rates, so all rates of a schedule are checked in the recording.
#[test]
fn schedules_that_become_negative_cannot_be_recorded() {
    use typed_dims::optim::{Adafactor, Lamb, Optimizer, Sgd};
    use typed_dims::program::record;

    type Weight = Tensor<f64, (Row,)>;
    fn recorded<O: Optimizer<Weight> + Parameters + Clone>(optimizer: O) -> Result<(), String> {
        let error = std::cell::RefCell::new(Ok(()));
        let step = |state: &(Weight, O)| -> (Weight, O) {
            let ((mut w, mut optimizer), gradient) = (state.clone(), state.0.clone());
            if let Err(refused) = optimizer.try_step(&mut w, &gradient) {
                *error.borrow_mut() = Err(refused.to_string());
            }
            (w, optimizer)
        };
        record(step, &(ones(Row.of(2)), optimizer)).expect("the state itself is recorded");
        error.into_inner()
    }
    let of = |schedule: Schedule| recorded(Sgd::new(schedule));
    let begins =
        |rate: f64| Err(format!("`Sgd` with the learning rate {rate}: it must be finite and 0 or more"));
    let refused = |rate: f64| {
        let reached = format!("`Sgd` with a schedule that reaches the learning rate {rate}");
        Err(format!("{reached}: it must be finite and 0 or more"))
    };
    assert_eq!(of(Schedule::linear(0.1, -0.2, 4)), refused(-0.2));
    assert_eq!(of(Schedule::linear(0.1, -0.2, 4).warm_up(3)), refused(-0.2));
    assert_eq!(of(Schedule::cosine_to(0.1, -0.2, 4)), refused(-0.2));
    assert_eq!(of(Schedule::cosine_restarts(0.1, -0.2, 1, 2)), refused(-0.2));
    assert_eq!(of(Schedule::step(0.5, 3, -0.5)), refused(-0.25));
    assert_eq!(of(Schedule::multi_step(0.5, &[9, 3], -0.5)), refused(-0.25));
    // The first change is harmless: two steps at once, or from a negative rate.
    assert_eq!(of(Schedule::multi_step(0.5, &[3, 3, 9], -0.5)), refused(-0.0625));
    assert_eq!(of(Schedule::multi_step(-0.5, &[0, 5], -0.5)), refused(-0.125));
    assert_eq!(of(Schedule::multi_step(0.5, &[3, 9], 1e200)), refused(f64::INFINITY));
    assert_eq!(of(Schedule::multi_step(0.0, &[3, 9], 1e200)), refused(f64::NAN)); // 0 * inf
    assert_eq!(of(Schedule::linear(0.5, f64::INFINITY, 4).warm_up(2)), begins(f64::INFINITY));
    assert_eq!(of(Schedule::step(0.5, 3, f64::INFINITY)), refused(f64::INFINITY));
    assert_eq!(of(Schedule::constant(f64::INFINITY)), begins(f64::INFINITY));
    assert_eq!(of(Schedule::one_cycle(-25.0, 9)), begins(-0.0001));
    assert_eq!(of(Schedule::constant(-0.5)), begins(-0.5));
    for schedule in [
        Schedule::constant(0.0),
        Schedule::linear(-1.0, 0.5, 0), // `last` at all steps
        Schedule::polynomial(0.0, 0.5, 9, 2.0).warm_up(4),
        Schedule::cosine(0.5, 9),
        Schedule::cosine_restarts(0.5, -0.01, 2, 1), // more than 0 at both steps of a period
        Schedule::step(0.5, 3, 2.0),
        Schedule::multi_step(0.5, &[], -0.5),
        Schedule::one_cycle(0.5, 0),
    ] {
        assert_eq!(of(schedule), Ok(()), "{schedule:?}");
    }
    assert!(recorded(Lamb::new(Schedule::linear(0.1, -0.2, 4))).unwrap_err().contains("learning rate -0.2"));
    assert!(
        recorded(Adafactor::new(Schedule::linear(0.1, -0.2, 4))).unwrap_err().contains("learning rate -0.2")
    );
    let group = Sgd::new(0.1).group("*", |group| group.rate(Schedule::linear(0.1, -0.2, 4)));
    let expected =
        "the learning rate of the group `*` of `Sgd` reaches -0.2: it must be finite and 0 or more";
    assert_eq!(recorded(group), Err(expected.to_string()));
}

/// The messages name the method that was called, and the tensor to use instead.
#[test]
fn a_recorded_function_cannot_read_numbers_of_an_optimizer() {
    use typed_dims::optim::{Accumulator, Optimizer, Sgd};
    use typed_dims::program::record;

    type Weight = Tensor<f64, (Row,)>;
    let texts = std::cell::RefCell::new(Vec::new());
    let read = |(sgd, sums): (&Sgd<Weight>, &Accumulator<Weight>)| {
        let mut texts = texts.borrow_mut();
        texts.push(crate::panics::message(|| sgd.rate()));
        texts.push(crate::panics::message(|| sgd.steps()));
        texts.push(crate::panics::message(|| sgd.state().steps()));
        texts.push(crate::panics::message(|| sums.count()));
        sgd.state().rate()
    };
    record(read, (&Sgd::new(0.1), &Accumulator::new())).expect("the rate is a tensor");
    let steps = ("steps", "`optimizer.state().step_count()` is the count as a tensor");
    let expected = [
        ("rate", "`optimizer.state().rate()` is the rate as a tensor"),
        steps,
        steps,
        ("count", "count the gradients outside of the recorded function"),
    ];
    let texts = texts.into_inner();
    assert_eq!(texts.len(), expected.len());
    for (text, (method, instead)) in texts.iter().zip(expected) {
        assert!(text.starts_with(&format!("`{method}` cannot be recorded (at ")), "{text}");
        assert!(text.ends_with(&format!("): it returns a number; {instead}")), "{text}");
    }
}
