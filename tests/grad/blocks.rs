//! Jacobians and Hessians with respect to several tensors.

use serde_json::Value;
use typed_dims::creation::create::SizedDims;
use typed_dims::grad::{hessian, hessian_primed, hvp, jacobian, jvp, try_hessian_primed, try_jacobian};
use typed_dims::nn::Linear;
use typed_dims::prelude::*;

dims! { struct Example; struct In; struct Out; }

type Inputs = Tensor<f64, (Example, In)>;
type Weight = Tensor<f64, (In, Out)>;
type Bias = Tensor<f64, (Out,)>;
type Scores = Tensor<f64, (Example, Out)>;

/// The array `k` of `blocks.py`.
fn array<D: SizedDims>(k: usize, dims: D) -> Named<f64, D::Set> {
    let mut places = 0..;
    from_fn(dims, |_| (1.3 * places.next().unwrap() as f64 + 0.7 * k as f64).sin())
}

#[derive(Parameters, Clone)]
struct Layer {
    weight: Weight,
    extra: Vec<Option<Bias>>,
    #[parameters(constant)]
    fixed: Bias,
    ids: Tensor<usize, (In,)>,
}

fn layer() -> Layer {
    Layer {
        weight: array(2, (In.of(3), Out.of(2))),
        extra: vec![None, Some(array(3, Out.of(2)))],
        fixed: zeros(Out.of(2)),
        ids: arange(In.of(3), 0, 1),
    }
}

fn scores(w: &Weight, b: &Bias) -> Scores {
    let x: Inputs = array(0, (Example.of(4), In.of(3)));
    ((x * w).sum(In) + b).tanh().eval()
}

fn loss(w: &Weight, b: &Bias) -> Tensor<f64, ()> {
    let c: Scores = array(1, (Example.of(4), Out.of(2)));
    (scores(w, b) * c).sum((Example, Out))
}

fn bias(layer: &Layer) -> &Bias {
    layer.extra[1].as_ref().unwrap()
}

/// The blocks that JAX computes.
fn golden(what: &str) -> Vec<Vec<f64>> {
    let all: Value = serde_json::from_str(include_str!("blocks.json")).unwrap();
    let numbers = |block: &Value| block.as_array().unwrap().iter().map(|a| a.as_f64().unwrap()).collect();
    all[what].as_array().unwrap().iter().map(numbers).collect()
}

#[track_caller]
fn near(found: impl IntoIterator<Item = f64>, expected: impl IntoIterator<Item = f64>, most: f64) {
    let (found, expected): (Vec<f64>, Vec<f64>) =
        (found.into_iter().collect(), expected.into_iter().collect());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() <= most, "{found} instead of {expected}");
    }
}

#[test]
fn a_tuple_has_the_blocks_of_jax() {
    let (w, b) = (layer().weight, bias(&layer()).clone());
    let (by_w, by_b) = jacobian(|(w, b)| scores(w, b), (&w, &b));
    let by_w: Tensor<f64, (Example, Out, In, Prime<Out>)> = by_w;
    let by_b: Tensor<f64, (Example, Out, Prime<Out>)> = by_b;
    let expected = golden("jacobian");
    near(by_w.order((Example, Out, In, prime(Out))), expected[0].clone(), 1e-13);
    near(by_b.order((Example, Out, prime(Out))), expected[1].clone(), 1e-13);

    let ((ww, wb), (bw, bb)) = hessian_primed(|(w, b)| loss(w, b), (&w, &b));
    let ww: Tensor<f64, (In, Out, Prime<In>, Prime<Out>)> = ww;
    let wb: Tensor<f64, (In, Out, Prime<Out>)> = wb;
    let bw: Tensor<f64, (Out, In, Prime<Out>)> = bw;
    let bb: Tensor<f64, (Out, Prime<Out>)> = bb;
    let expected = golden("hessian");
    near(ww.order((In, Out, prime(In), prime(Out))), expected[0].clone(), 1e-13);
    near(wb.order((In, Out, prime(Out))), expected[1].clone(), 1e-13);
    near(bw.order((Out, In, prime(Out))), expected[2].clone(), 1e-13);
    near(bb.order((Out, prime(Out))), expected[3].clone(), 1e-13);
}

/// Each column of the Jacobian equals a finite difference. For elements of `w`, it also equals the
/// directional derivative.
#[test]
fn a_tuple_has_the_differences_as_blocks() {
    let (w, b) = (layer().weight, bias(&layer()).clone());
    let (by_w, by_b) = jacobian(|(w, b)| scores(w, b), (&w, &b));
    let differences = |up: Scores, down: Scores| ((up - down) * 0.5e6).order((Example, Out));
    for at in 0..6 {
        let one = from_fn((In.of(3), Out.of(2)), |(i, o)| if 2 * i + o == at { 1.0 } else { 0.0 });
        let step = (&one * 1e-6).eval();
        let found = by_w.view().index(In, at / 2).index(prime(Out), at % 2).order((Example, Out));
        let up = scores(&(&w + &step).eval(), &b);
        near(found.clone(), differences(up, scores(&(&w - &step).eval(), &b)), 1e-8);
        let slope = jvp(|(w, b)| scores(w, b), (&w, &b), (&one, &b.zero())).1;
        near(found, slope.order((Example, Out)), 1e-13);
    }
    for at in 0..2 {
        let step = from_fn(Out.of(2), |o| if o == at { 1e-6 } else { 0.0 });
        let found = by_b.view().index(prime(Out), at).order((Example, Out));
        let up = scores(&w, &(&b + &step).eval());
        near(found, differences(up, scores(&w, &(&b - &step).eval())), 1e-8);
    }
}

#[test]
fn a_struct_has_the_blocks_of_its_tensors() {
    let layer = layer();
    let (w, b) = (&layer.weight, bias(&layer));
    let (by_w, by_b) = jacobian(|(w, b)| scores(w, b), (w, b));
    let blocks = jacobian(|layer: &Layer| scores(&layer.weight, bias(layer)), &layer);
    assert_eq!(blocks.names(), ["weight", "extra.1"]);
    assert_eq!(blocks.by(|layer| &layer.weight), by_w);
    assert_eq!(blocks.by(bias), by_b);
    let linear: Linear<(In,), (Out,), f64> = Linear { weight: w.clone(), bias: b.clone() };
    let of_linear =
        jacobian(|linear: &Linear<(In,), (Out,), f64>| scores(&linear.weight, &linear.bias), &linear);
    assert_eq!(of_linear.by(|linear| &linear.weight), by_w);
    assert_eq!(of_linear.by(|linear| &linear.bias), by_b);
    let error = blocks.try_by(|layer| &layer.fixed).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the derivatives are with respect to `weight`, `extra.1`: the closure must return one of these"
    );
    // A tuple with a struct, which is passed by mutable reference.
    let (mut other, x) = (layer.clone(), array(4, (Example.of(4), Out.of(2))));
    let f = |(layer, x): (&Layer, &Scores)| (scores(&layer.weight, bias(layer)) * x).eval();
    let (blocks, by_x) = jacobian(f, (&mut other, &x));
    let expected = jacobian(|w| (scores(w, b) * &x).eval(), w);
    assert_eq!(blocks.by(|layer| &layer.weight), expected);
    assert_eq!(by_x.dims().len(), 4);

    let ((ww, wb), (bw, bb)) = hessian_primed(|(w, b)| loss(w, b), (w, b));
    let blocks = hessian_primed(|layer: &Layer| loss(&layer.weight, bias(layer)), &layer);
    assert_eq!(blocks.by(|layer| &layer.weight, |layer| &layer.weight), ww);
    assert_eq!(blocks.by(|layer| &layer.weight, bias), wb);
    assert_eq!(blocks.by(bias, |layer| &layer.weight), bw);
    assert_eq!(blocks.by(bias, bias), bb);
    assert_eq!(blocks.names(), ["weight", "extra.1"]);
}

/// A Hessian-vector product equals the product with the blocks of the Hessian.
#[test]
fn hessians_agree_with_products() {
    let (w, b) = (layer().weight, bias(&layer()).clone());
    let (dw, db): (Weight, Bias) = (array(5, (In.of(3), Out.of(2))), array(6, Out.of(2)));
    let ((ww, wb), (bw, bb)) = hessian_primed(|(w, b)| loss(w, b), (&w, &b));
    let (hw, hb) = hvp(|(w, b)| loss(w, b), (&w, &b), (&dw, &db));
    let (row, column) = (dw.view().prime(In).prime(Out).eval(), db.view().prime(Out).eval());
    let found = (&ww * &row).sum((prime(In), prime(Out))) + (&wb * &column).sum(prime(Out));
    near(found.order((In, Out)), hw.order((In, Out)), 1e-13);
    let found = (&bw * dw.view().prime(Out)).sum((In, prime(Out))) + (&bb * &column).sum(prime(Out));
    near(found.order(Out), hb.order(Out), 1e-13);
}

#[test]
fn a_list_has_a_block_for_each_element() {
    let list = vec![array(1, In.of(2)), array(2, In.of(2))];
    let blocks = jacobian(|list: &Vec<Tensor<f64, (In,)>>| (&list[0] * &list[1] * &list[1]).eval(), &list);
    let first: Tensor<f64, (In, Prime<In>)> = blocks.by(|list| &list[0]);
    let second = list[1].view().order(In);
    assert_eq!(first.order((In, prime(In))), ndarray::Array2::from_diag(&(&second * &second)));
    // A loss that is linear in each parameter.
    let pair = (array(1, In.of(2)), array(2, In.of(2)));
    let blocks = hessian_primed(|(x, y)| (x * y).sum(In), (&pair.0, &pair.1));
    assert_eq!(blocks.0.0.order((In, prime(In))), Array2::<f64>::zeros((2, 2)));
    assert_eq!(blocks.0.1.order((In, prime(In))), Array2::<f64>::eye(2));
}

/// The matrix already has both `In` and its prime, so the rows get other dims.
#[test]
fn the_hessian_by_a_matrix_of_primes_has_other_rows() {
    let p = array(1, (In.of(2), prime(In.of(2))));
    let h = hessian(|p| p.powi(3).sum((In, prime(In))), &p, (In, prime(In)), (Out, prime(Out)));
    let h: Tensor<f64, (In, Prime<In>, Out, Prime<Out>)> = h;
    let (h, p) = (h.order((Out, prime(Out), In, prime(In))), p.order((In, prime(In))));
    for ((r, rr, c, cc), found) in h.indexed_iter() {
        let expected = if (r, rr) == (c, cc) { 6.0 * p[[r, rr]] } else { 0.0 };
        assert!((found - expected).abs() < 1e-14, "{found} instead of {expected}");
    }
}

/// `vmap` takes the Hessian and the Jacobian of each example.
#[test]
fn each_example_has_its_hessian() {
    let x: Inputs = array(1, (Example.of(4), In.of(3)));
    let f = |x: &Tensor<f64, (In,)>| x.powi(3).sum(In);
    let each = vmap(|x: &Tensor<f64, (In,)>| hessian_primed(f, x), Example)(&x);
    let each: Tensor<f64, (Example, In, Prime<In>)> = each;
    let squares = |x: &Tensor<f64, (In,)>| x.square().eval();
    let slopes = vmap(|x: &Tensor<f64, (In,)>| jacobian(squares, x), Example)(&x);
    let slopes: Tensor<f64, (Example, In, Prime<In>)> = slopes;
    for at in 0..4 {
        let one = (&x).index(Example, at).eval();
        assert_eq!((&each).index(Example, at).eval(), hessian_primed(f, &one));
        assert_eq!((&slopes).index(Example, at).eval(), jacobian(squares, &one));
    }
}

#[test]
fn mistakes_at_run_time() {
    #[derive(Parameters)]
    struct Mixed {
        single: Tensor<f32, (In,)>,
        double: Tensor<f64, (In,)>,
    }
    let mixed = Mixed { single: ones(In.of(2)), double: ones(In.of(2)) };
    let error =
        try_jacobian(|mixed: &Mixed| (&mixed.double).square().eval(), &mixed).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`single` has elements of the type `f32`, but those of the output are `f64`: cast the output, or \
         differentiate with respect to parameters of one type"
    );
    let (x, y) = (ones::<f64, _>(In.of(2)), ones::<f64, _>(Out.of(2)));
    let error = try_hessian_primed(|(x, _)| x.square().sum(In), (&x, &y)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("`1`"), "{error}");
}
