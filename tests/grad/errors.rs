//! Error messages for gradients that cannot be computed. They name the operation and its line, or
//! the parameter, and suggest a fix.

use crate::panics::message;
use ndarray::{ArrayView1, array};
use typed_dims::file::{npy, npz, safetensors};
use typed_dims::grad::{grad, hvp, try_grad, try_jvp, try_vjp, value_and_grad, vjp};
use typed_dims::prelude::*;

dims! { struct I; struct J; struct K; struct Pixel; struct Class; }

type X = Tensor<f64, (I, J)>;

fn x() -> X {
    from_vec((I.of(2), J.of(3)), vec![0.5, -1.0, 2.0, 0.25, 3.0, -0.75])
}

/// The message of the panic, and the line of this file that it mentions.
#[track_caller]
fn panic_of<T>(f: impl FnOnce() -> T) -> (String, u32) {
    let text = message(f);
    let place = text.split("(at tests/grad/errors.rs:").nth(1).and_then(|rest| rest.split(':').next());
    let line = place.and_then(|line| line.parse().ok());
    (text.clone(), line.unwrap_or_else(|| panic!("the message names no line of this file: {text}")))
}

/// Checks that the gradient of a function is refused, and that the error names the operation and a
/// line of this macro call.
macro_rules! assert_refused {
    ($operation:literal, $f:expr) => {{
        let f = $f;
        let (text, line) = panic_of(|| vjp(f, &x()).0);
        let expected = concat!("no gradient can be taken through `", $operation, "` (at ");
        assert!(text.starts_with(expected), "{text}\ndoes not start with\n{expected}");
        assert!(text.contains("write `x.detach()` for its operand"), "{text}");
        let lines = line!()..=line!() + LINES;
        assert!(lines.contains(&line), "{text}\nis not at a line in {lines:?}");
    }};
}

/// The maximum number of lines of a call of `assert_refused`.
const LINES: u32 = 8;

#[test]
fn arrays_and_numbers() {
    assert_refused!("order", |x: &X| {
        let _: Array2<f64> = x.order((I, J));
        x.exp().eval()
    });
    assert_refused!("order", |x: &X| {
        let sum: f64 = x.sum((I, J)).order(());
        (x * sum).eval()
    });
    assert_refused!("order", |x: &X| {
        let (weights, bias) = (array![1.0, 2.0, 3.0], x.index(J, 0).order(I));
        (x * weights.at(J) + bias.at(I)).eval()
    });
    assert_refused!("order_into", |x: &X| {
        let mut out = Array2::zeros((2, 3));
        x.order_into(&mut out, (I, J));
        x.exp().eval()
    });
    assert_refused!("sum_into", |x: &X| {
        let mut out = Array1::zeros(2);
        x.sum_into(J, &mut out, I);
        x.exp().eval()
    });
}

#[test]
fn memory_of_others() {
    assert_refused!("assign", |x: &X| {
        let mut out = Array2::zeros((2, 3));
        out.at_mut((I, J)).assign(x);
        x.exp().eval()
    });
    assert_refused!("add_assign", |x: &X| {
        let mut out = Array1::zeros(2);
        out.at_mut(I).add_assign(x.sum(J));
        x.exp().eval()
    });
    assert_refused!("sub_assign", |x: &X| {
        let mut other = ones((I.of(2), J.of(3)));
        other -= x;
        other
    });
}

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    assert_refused!("npy", |x: &X| {
        npy::save(dir.path().join("x.npy"), x).unwrap_or_else(|error| panic!("{error}"));
        x.exp().eval()
    });
    assert_refused!("NpzWriter::put", |x: &X| {
        npz::NpzWriter::new().put("x", x * 2.0).unwrap_or_else(|error| panic!("{error}"));
        x.exp().eval()
    });
    assert_refused!("SafetensorsWriter::put", |x: &X| {
        safetensors::SafetensorsWriter::new().put("x", x).unwrap_or_else(|error| panic!("{error}"));
        x.exp().eval()
    });
}

#[test]
fn other_crates() {
    assert_refused!("into_matrix", |x: &X| {
        let matrix: nalgebra::DMatrix<f64> = x.into_matrix((I, J));
        (x * matrix[(0, 0)]).eval()
    });
    assert_refused!("into_candle", |x: &X| {
        x.into_candle((I, J));
        x.exp().eval()
    });
}

/// `x^2`, without a derivative.
#[derive(Clone, Copy)]
struct Squared;

impl ScalarOp<f64> for Squared {
    type Out = f64;
    const NAME: &'static str = "squared";

    fn apply<A: Isa>(self, x: f64) -> f64 {
        x * x
    }
}

/// Twice a vector, without a pull-back.
struct Doubled;

impl ArrayOp<f64> for Doubled {
    type In = U1;
    type Out = U1;
    type Elem = f64;
    const NAME: &'static str = "doubled";

    fn one(&self, x: ArrayView1<'_, f64>) -> Array1<f64> {
        &x * 2.0
    }
}

#[test]
fn functions_of_the_user() {
    assert_refused!("map", |x: &X| x.map(|x: f64| x * x).eval());
    assert_refused!("zip_map", |x: &X| x.zip_map(2.0, |x: f64, y: f64| x * y).eval());
    assert_refused!("squared", |x: &X| x.apply(Squared).eval());
    assert_refused!("doubled", |x: &X| x.order(J).apply_array(Doubled).at(J).eval());
}

/// The error names the method that was called with the closure, and the line of this call.
#[test]
fn functions_of_all_elements() {
    let x = x();
    let (text, line) = panic_of(|| grad(|y| y.map_elements(|y: f64| y * 2.0).sum((I, J)), &x));
    assert_eq!(line, line!() - 1, "{text}");
    let expected = "no gradient can be taken through `map_elements` (at ";
    assert!(text.starts_with(expected) && text.contains("tensor operations for each field"), "{text}");
    assert!(!text.contains("detach"), "{text}");
    let (text, line) = panic_of(|| grad(|y| y.zip_elements(&x, |y: f64, x| y * x).sum((I, J)), &x));
    assert_eq!(line, line!() - 1, "{text}");
    assert!(text.starts_with("no gradient can be taken through `zip_elements` (at "), "{text}");
}

#[test]
fn what_does_not_use_the_gradient_is_no_error() {
    let scale = |x: &X| x.detach().sum((I, J)).order(());
    let dx = grad(|x| (x * scale(x)).sum((I, J)), &x());
    assert_eq!(dx.order((I, J)), Array2::from_elem((2, 3), scale(&x())));
    // Positions and comparisons are constants, so they can be converted to plain numbers.
    let dx = grad(|x| x.index(J, 0).index(I, x.index(J, 0).argmax(I).order(()) as isize).eval(), &x());
    assert_eq!(dx.order((I, J)), array![[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]);
}

#[derive(Parameters)]
struct Layer {
    weight: Tensor<f64, (Pixel, Class)>,
    bias: Tensor<f64, (Class,)>,
}

#[derive(Parameters)]
struct Model {
    layers: Vec<Layer>,
    scale: Option<Tensor<f64, (Class,)>>,
}

fn model() -> Model {
    let layer = || Layer { weight: ones((Pixel.of(2), Class.of(3))), bias: zeros(Class.of(3)) };
    Model { layers: vec![layer(), layer()], scale: Some(ones(Class.of(3))) }
}

#[test]
fn a_parameter_that_is_not_used() {
    let image = from_vec(Pixel.of(2), vec![1.0, 2.0]);
    let scores = |layer: &Layer| ((&image * &layer.weight).sum(Pixel) + &layer.bias).eval();
    let loss = |model: &Model| {
        let (first, second) = (scores(&model.layers[0]), (&image * &model.layers[1].weight).sum(Pixel));
        (first * second * model.scale.as_ref().unwrap()).sum(Class)
    };
    let (text, line) = panic_of(|| grad(loss, &model()));
    assert_eq!(line, line!() - 1);
    let expected = "the loss does not depend on the parameter `layers.1.bias`, so it has no gradient (at ";
    assert!(text.starts_with(expected), "{text}");
    let remedy = "use it, mark its field `#[parameters(constant)]`, or call `vjp`, which returns a gradient of 0 for it";
    assert!(text.ends_with(remedy), "{text}");
    // The error names the first of several unused parameters.
    let text =
        try_grad(|model: &Model| scores(&model.layers[0]).sum(Class), &model()).err().unwrap().to_string();
    assert!(text.contains("`layers.1.weight`"), "{text}");
    // A parameter that only `detach` reads counts as used, and its gradient is 0.
    let through = |model: &Model| {
        let both = scores(&model.layers[0]) * scores(&model.layers[1]);
        (both * model.scale.as_ref().unwrap().detach()).sum(Class)
    };
    let slope = grad(through, &model()).scale.expect("there is a scale");
    assert_eq!(slope.order(Class), ndarray::array![0.0, 0.0, 0.0]);
    let (text, _) = panic_of(|| value_and_grad(|(x, _)| x.sum((I, J)), (&x(), &x())));
    assert!(text.contains("the parameter `1`"), "{text}");
    let (text, _) = panic_of(|| grad(|_| full((), 1.0), &x()));
    assert!(text.starts_with("the loss does not depend on the parameter, so it has"), "{text}");
    let (text, _) = panic_of(|| hvp(|_: &X| full((), 1.0), &x(), &x()));
    assert!(text.starts_with("the loss does not depend on the parameter, so it has"), "{text}");
    // `vjp` returns zeros instead.
    let model = model();
    let (_, pull) = vjp(loss, &model);
    let [first, second] = pull(&full((), 1.0)).layers.try_into().ok().unwrap();
    assert_eq!(second.bias.order(Class), array![0.0, 0.0, 0.0]);
    assert_eq!(first.bias.order(Class), array![3.0, 3.0, 3.0]);
}

#[test]
fn parameters_that_an_operation_depends_on() {
    let image = from_vec(Pixel.of(2), vec![1.0, 2.0]);
    let scores = |layer: &Layer| ((&image * &layer.weight).sum(Pixel) + &layer.bias).eval();
    let lost = |model: &Model| {
        let scale: f64 = model.layers[0].weight.sum((Pixel, Class)).order(());
        (scores(&model.layers[1]) * scale).sum(Class)
    };
    let (text, line) = panic_of(|| grad(lost, &model()));
    assert_eq!(line, line!() - 4);
    assert!(text.starts_with("no gradient can be taken through `order` (at "), "{text}");
    assert!(text.contains("), which depends on `layers.0.weight`: use operations"), "{text}");
    // The error counts all parameters that the operation depends on, directly or not.
    let both = |model: &Model| {
        let product = scores(&model.layers[0]) * scores(&model.layers[1]) * model.scale.as_ref().unwrap();
        product.map(|x: f64| x.fract()).sum(Class)
    };
    let (text, _) = panic_of(|| grad(both, &model()));
    let expected =
        "), which depends on `layers.0.weight`, `layers.0.bias`, `layers.1.weight` and 2 more: write a";
    assert!(text.contains(expected), "{text}");
    // A tuple names its parameters by position; a single tensor has no name.
    let (text, _) = panic_of(|| {
        grad(|(x, y): (&X, &X)| (x * y).order((I, J)).into_tensor((I, J)).sum((I, J)), (&x(), &x()))
    });
    assert!(text.contains("), which depends on `0` and `1`: use operations"), "{text}");
    let (text, _) = panic_of(|| grad(|x: &X| x.order((I, J)).into_tensor((I, J)).sum((I, J)), &x()));
    assert!(text.contains("): use operations"), "{text}");
}

#[test]
fn sizes_of_cotangents_and_directions() {
    let other = ones((I.of(2), J.of(4)));
    let x = x();
    let (_, pull) = try_vjp(|x| x.exp().eval(), &x).unwrap();
    let text = pull.try_call(&other).unwrap_err().to_string();
    assert_eq!(text, "the values differ: dim `J` has size 3 in the value, 4 in the cotangent");
    let text = try_jvp(|x| x.exp().eval(), &x, &other).unwrap_err().to_string();
    assert_eq!(text, "the values differ: dim `J` has size 3 in the parameters, 4 in the direction");
    let mut direction = model();
    direction.layers[1].bias = ones(Class.of(2));
    let text =
        try_jvp(|model: &Model| (&model.layers[0].bias).exp().eval(), &model(), &direction).err().unwrap();
    let text = text.to_string();
    assert!(text.contains("`layers.1.bias`") && text.contains("`Class`"), "{text}");
    direction.layers.truncate(1);
    let (first, second) = (model(), direction);
    let text = try_jvp(|model: &Model| (&model.layers[0].bias).exp().eval(), &first, &second).err().unwrap();
    assert_eq!(
        text.to_string(),
        "the values of `layers` differ: the length is 2 in the parameters, 1 in the direction"
    );
}
