//! Clipping and sums of gradients, and averages of parameters.

use super::{Row, Token, elements, matrix, noise, numbers, pairs, reference};
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

type Rows = (Tensor<f64, (Row,)>, Tensor<f64, (Row,)>);

fn rows() -> Rows {
    (ones(Row.of(2)), ones(Row.of(2)))
}

/// The result of a function of [`rows`], the second of which an outer gradient traces.
fn of_traced<X>(f: impl FnOnce(&Rows) -> X) -> X {
    let mut result = None;
    let loss = |h: &Tensor<f64, ()>| {
        let (constant, other) = rows();
        result = Some(f(&(constant, (other * h).eval())));
        h.square().eval()
    };
    let h: Tensor<f64, ()> = full((), 1.0);
    assert_eq!(grad(loss, &h).order(()), 2.0);
    result.expect("the loss is computed once")
}

#[test]
fn an_outer_gradient_through_a_step_is_refused() {
    fn check<O: Optimizer<Rows>>(mut optimizer: O) {
        let mut p = rows();
        let error = of_traced(|gradient| optimizer.try_step(&mut p, gradient)).unwrap_err().to_string();
        assert!(error.starts_with("no gradient can be taken through `step`"), "{error}");
        assert_eq!(p, rows(), "nothing has changed");
        assert_eq!((optimizer.steps(), optimizer.state().parameters().len()), (0, 0));
        // A frozen parameter takes no step.
        optimizer.freeze("1");
        of_traced(|gradient| optimizer.try_step(&mut p, gradient)).expect("no gradient is lost");
        assert_eq!((p.1, optimizer.steps()), (rows().1, 1));
    }
    check(Sgd::new(0.1));
    check(Adam::new(0.1));
    check(RmsProp::new(0.1));
    check(Lamb::new(0.1));
    check(Adafactor::new(0.1));

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

#[test]
fn an_outer_gradient_through_a_sum_or_an_average_is_refused() {
    let refused = |error: String, operation: &str| {
        assert!(error.starts_with(&format!("no gradient can be taken through `{operation}`")), "{error}");
    };
    let mut gradients = Accumulator::new();
    gradients.add(rows());
    let error = of_traced(|gradient| gradients.try_add(gradient.clone())).unwrap_err();
    refused(error.to_string(), "Accumulator::add");
    assert_eq!((gradients.count(), gradients.take()), (1, Some(rows())));

    let mut average = Average::new(0.5);
    average.update(&rows());
    let error = of_traced(|parameters| average.try_update(parameters)).unwrap_err();
    refused(error.to_string(), "Average::update");
    assert_eq!(average.into_value(), Some(rows()));

    let mut norm = BatchNorm::<(Row,), f64>::new(Row.of(2));
    let error = of_traced(|(mean, var)| {
        let moments = ChannelMoments { mean: mean.clone(), var: var.clone() };
        message(|| norm.remember(&moments))
    });
    refused(error, "remember");
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
