//! Clipping and sums of gradients, and averages of parameters.

use super::{Column, Matrix, Row, Token, elements, first, matrix, noise, numbers, pairs, reference};
use crate::panics::message;
use typed_dims::grad::grad;
use typed_dims::nn::norm::{BatchNorm, ChannelMoments};
use typed_dims::optim::{
    Accumulator, Adafactor, Adam, Average, Lamb, Optimizer, RmsProp, Sgd, clip_by_global_norm, clip_by_value,
    global_norm, try_clip_by_global_norm, try_clip_by_value,
};
use typed_dims::prelude::*;

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

#[test]
fn values_of_other_sizes_are_refused() {
    let of = |len: usize, rows: usize| vec![ones::<f32, _>(Row.of(rows)); len];
    let mut gradients = Accumulator::new();
    gradients.add(of(2, 3));
    assert_eq!(
        gradients.try_add(of(2, 4)).unwrap_err().to_string(),
        "the values of `0` differ: dim `Row` has size 3 in the sum so far, 4 in the new gradient"
    );
    assert_eq!(
        gradients.try_add(of(1, 3)).unwrap_err().to_string(),
        "the values differ: the length is 2 in the sum so far, 1 in the new gradient"
    );
    assert_eq!(gradients.count(), 1);
    let mut average = Average::new(0.5);
    average.update(&of(2, 3));
    assert_eq!(
        average.try_update(&of(2, 4)).unwrap_err().to_string(),
        "the values of `0` differ: dim `Row` has size 3 in the average, 4 in the parameters"
    );
}

type Rows<T> = (Tensor<T, (Row,)>, Tensor<T, (Row,)>);

fn rows<T: Real>() -> Rows<T> {
    (ones(Row.of(2)), ones(Row.of(2)))
}

/// The result of a function of [`rows`], the second of which an outer gradient traces.
fn of_traced<T: Real, X>(f: impl FnOnce(&Rows<T>) -> X) -> X {
    let mut result = None;
    let loss = |h: &Tensor<T, ()>| {
        let (constant, other) = rows::<T>();
        result = Some(f(&(constant, (other * h).eval())));
        h.square().eval()
    };
    let h: Tensor<T, ()> = full((), T::one());
    assert!(grad(loss, &h).order(()) == T::one() + T::one());
    result.expect("the loss is computed once")
}

#[track_caller]
fn refused(error: &str, operation: &str) {
    assert!(error.starts_with(&format!("no gradient can be taken through `{operation}`")), "{error}");
}

/// If an outer gradient traces the second gradient or the second parameter, a step changes nothing.
pub(super) fn check_step<T: Real, O: Optimizer<Rows<T>>>(mut optimizer: O) {
    let mut p = rows::<T>();
    let error = of_traced(|gradient| optimizer.try_step(&mut p, gradient)).unwrap_err();
    refused(&error.to_string(), "step");
    assert!(p == rows(), "nothing has changed");
    assert_eq!((optimizer.steps(), optimizer.state().parameters().len()), (0, 0));
    of_traced(|parameters| {
        let mut p: Rows<T> = parameters.clone();
        refused(&optimizer.try_step(&mut p, &rows()).unwrap_err().to_string(), "step");
        assert!(p.0 == rows().0, "nothing has changed");
    });
    assert_eq!((optimizer.steps(), optimizer.state().parameters().len()), (0, 0));
    // A frozen parameter takes no step.
    optimizer.freeze("1");
    of_traced(|gradient| optimizer.try_step(&mut p, gradient)).expect("no gradient is lost");
    of_traced(|parameters| optimizer.try_step(&mut parameters.clone(), &rows()))
        .expect("no gradient is lost");
    assert!(p.1 == rows().1);
    assert_eq!(optimizer.steps(), 2);
}

#[test]
fn an_outer_gradient_through_a_step_is_refused() {
    check_step::<f64, _>(Sgd::new(0.1));
    check_step::<f64, _>(Sgd::new(0.1).momentum(0.9));
    check_step::<f64, _>(Adam::new(0.1));
    check_step::<f64, _>(RmsProp::new(0.1));
    check_step::<f64, _>(Lamb::new(0.1));
    check_step::<f64, _>(Adafactor::new(0.1));

    let stepped = |h: &Tensor<f64, ()>| {
        let (mut p, _) = rows();
        let gradient = grad(|p| (p.square() * h).sum(Row), &p);
        Sgd::new(0.1).step(&mut p, &gradient);
        p.square().sum(Row)
    };
    let h: Tensor<f64, ()> = full((), 1.0);
    let text = message(|| grad(stepped, &h));
    assert!(text.starts_with("no gradient can be taken through `step`"), "{text}");
}

/// Structs have no `detach`.
#[test]
fn operations_in_place_belong_outside_of_a_gradient() {
    let texts = of_traced::<f64, _>(|traced| {
        let mut own = traced.clone();
        let mut sums = Accumulator::new();
        sums.add(own.clone());
        [
            ("step", message(|| Sgd::new(0.1).step(&mut traced.clone(), traced))),
            ("clip_by_global_norm", message(|| clip_by_global_norm(&mut own, 1.0))),
            ("clip_by_value", message(|| clip_by_value(&mut own, 1.0))),
            ("Accumulator::add", message(|| sums.add(traced.clone()))),
        ]
    });
    for (operation, text) in texts {
        let expected = format!(
            "no gradient can be taken through `{operation}`: call it outside of the function that you differentiate"
        );
        assert_eq!(text, expected);
    }
    let text = of_traced::<f64, _>(|traced| message(|| global_norm(traced)));
    assert!(text.starts_with("no gradient can be taken through `global_norm`: use operations"), "{text}");
}

/// The moments belong to the optimizer, which is the parameter of the gradient here.
#[test]
fn a_gradient_with_respect_to_an_optimizer() {
    type Optimizers = Sgd<Matrix<f64>>;
    let velocity = |sgd: &Optimizers| -> Matrix<f64> {
        sgd.state().parameters()[0].moments()[0].tensor().expect("of these dims")
    };
    // The axes of the parameter, and so those of the velocity, are stored in another order.
    let columns: Matrix<f64> = first::<f64>().order((Column, Row)).into_tensor((Column, Row));
    let mut sgd = Optimizers::new(0.1).momentum(0.9);
    sgd.step(&mut columns.clone(), &columns);
    let slope = grad(|sgd: &Optimizers| velocity(sgd).square().sum((Row, Column)), &sgd);
    let expected = elements(&velocity(&sgd)).into_iter().map(|m| 2.0 * m);
    assert_eq!(elements(&velocity(&slope)), expected.collect::<Vec<f64>>());

    let stepped = |sgd: &Optimizers| {
        let (mut p, mut own) = (columns.clone(), sgd.clone());
        refused(&own.try_step(&mut p, &columns).unwrap_err().to_string(), "step");
        assert_eq!((&p, own.steps()), (&columns, 1));
        velocity(sgd).sum((Row, Column))
    };
    assert_eq!(elements(&velocity(&grad(stepped, &sgd))), [1.0; 12]);
}

#[test]
fn an_outer_gradient_through_a_sum_or_an_average_is_refused() {
    check_sums::<f64>();

    let mut norm = BatchNorm::<(Row,), f64>::new(Row.of(2));
    let error = of_traced(|(mean, var)| {
        let moments = ChannelMoments { mean: mean.clone(), var: var.clone() };
        message(|| norm.remember(&moments))
    });
    refused(&error, "remember");
    let moments = ChannelMoments { mean: rows().0, var: rows().1 };
    let error = of_traced(|(_, traced)| {
        norm.running_var = traced.clone();
        message(|| norm.remember(&moments))
    });
    refused(&error, "remember");
}

/// An outer gradient may trace the second of the new tensors, or the second of the old ones.
pub(super) fn check_sums<T: Real>() {
    let mut gradients = Accumulator::new();
    gradients.add(rows::<T>());
    let error = of_traced(|gradient| gradients.try_add(gradient.clone())).unwrap_err();
    refused(&error.to_string(), "Accumulator::add");
    assert_eq!(gradients.count(), 1);
    assert!(gradients.take() == Some(rows()), "nothing has changed");
    of_traced(|gradient: &Rows<T>| {
        let mut gradients = Accumulator::new();
        gradients.add(gradient.clone());
        refused(&gradients.try_add(rows()).unwrap_err().to_string(), "Accumulator::add");
        refused(&message(|| gradients.take()), "Accumulator::take");
        assert_eq!(gradients.count(), 1, "nothing has changed");
    });

    let mut average = Average::new(0.5);
    average.update(&rows::<T>());
    let error = of_traced(|parameters| average.try_update(parameters)).unwrap_err();
    refused(&error.to_string(), "Average::update");
    assert!(average.into_value() == Some(rows()), "nothing has changed");
    of_traced(|parameters: &Rows<T>| {
        let mut average = Average::new(0.5);
        average.update(parameters);
        refused(&average.try_update(&rows()).unwrap_err().to_string(), "Average::update");
    });

    of_traced(|gradient: &Rows<T>| {
        let mut gradient = gradient.clone();
        refused(&try_clip_by_value(&mut gradient, 0.5).unwrap_err().to_string(), "clip_by_value");
        assert!(gradient.0 == rows().0, "nothing has changed");
        let error = try_clip_by_global_norm(&mut gradient, 0.5).map(drop).unwrap_err();
        refused(&error.to_string(), "clip_by_global_norm");
        assert!(gradient.0 == rows().0, "nothing has changed");
    });
}

#[test]
fn clipping_agrees_with_pytorch() {
    let expected = &reference()["clipped"];
    let mut gradient = matrix::<f64>(|at| noise(at, 1));
    let norm: Tensor<f64, ()> = clip_by_global_norm(&mut gradient, 0.7);
    assert!((norm.order(()) - expected["norm"].as_f64().unwrap()).abs() < 1e-12);
    // PyTorch adds 1e-6 to the norm.
    for (found, expected) in pairs(elements(&gradient), numbers(&expected["gradient"])) {
        assert!((found - expected).abs() < 1e-6, "{found} instead of {expected}");
    }
    assert!((global_norm(&gradient).order(()) - 0.7).abs() < 1e-12);
}

#[test]
fn a_small_gradient_is_not_clipped() {
    let mut gradient = (matrix::<f32>(|at| at as f64), full(Row.of(2), 3usize));
    let before = elements(&gradient.0);
    let norm = clip_by_global_norm(&mut gradient, 1000.0).order(());
    assert!((norm - 506f64.sqrt()).abs() < 1e-6, "{norm} is not the norm of the floats");
    assert_eq!(elements(&gradient.0), before);
    gradient.0 = matrix(|_| f64::NAN);
    assert!(clip_by_global_norm(&mut gradient, 1000.0).order(()).is_nan());
    assert!(elements(&gradient.0).iter().all(|a| a.is_nan()));
}

/// Clipping by norm multiplies a gradient by `min(1, most / norm)`.
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
    for (found, expected) in pairs(found, numbers(&reference()["averaged"])) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }
}

#[test]
fn an_average_keeps_tensors_that_are_not_learned() {
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
