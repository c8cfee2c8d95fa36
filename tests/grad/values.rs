//! Gradients of functions of tensors, compared with formulas and with numbers computed by hand.

use std::collections::BTreeSet;
use typed_dims::grad::{
    grad, hvp, jvp, loss_and_grad, try_loss_and_grad, value_and_grad, value_and_grad_with, vjp,
};
use typed_dims::prelude::*;
use typed_dims::types::brand::Rest;
use typed_dims_kernels as kernels;

dims! { struct I; struct J; struct K; }

#[test]
fn a_product() {
    let x = from_vec((I.of(2), K.of(3)), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = from_vec((K.of(3), J.of(2)), vec![0.5, -1.0, 1.5, 2.0, 0.25, -0.5]);
    let (value, dw) = value_and_grad(|w| (&x * w).sum(K).square().sum((I, J)), &w);
    let y = (&x * &w).sum(K);
    assert_eq!(value, (&y).square().sum((I, J)).order(()));
    let expected = (&x * &y * 2.0).sum(I);
    assert_eq!(dw.order((K, J)), expected.order((K, J)));
}

#[test]
fn chains_of_functions() {
    let x = from_vec(I.of(4), vec![0.3, -0.7, 1.2, 2.0]);
    let dx = grad(|x| ((x * x + 1.0).ln() * x.tanh() - x.exp().sqrt()).sum(I), &x);
    let at = |v: f64| {
        let t = v.tanh();
        2.0 * v / (v * v + 1.0) * t + (v * v + 1.0).ln() * (1.0 - t * t) - 0.5 * v.exp().sqrt()
    };
    let expected = x.map(at).order(I);
    let found = dx.order(I);
    assert!(
        found.iter().zip(&expected).all(|(a, b): (&f64, &f64)| (a - b).abs() < 1e-12),
        "{found} instead of {expected}"
    );
}

#[test]
fn tuples_and_softmax() {
    let x = from_vec((I.of(2), J.of(3)), vec![0.1, 0.4, -0.3, 1.0, 0.0, 2.0]);
    let b = from_vec(J.of(3), vec![0.5, -0.5, 0.25]);
    let t = from_vec((I.of(2), J.of(3)), vec![1.0, 2.0, 3.0, -1.0, 0.5, 0.0]);
    let (dx, db) = grad(|(x, b)| ((x + b).softmax(J) * &t).sum((I, J)), (&x, &b));
    let s = (&x + &b).softmax(J);
    let expected = &s * (&t - (&s * &t).sum(J));
    let close = |a: Array2<f64>, b: Array2<f64>| a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12);
    assert!(close(dx.order((I, J)), expected.clone().order((I, J))));
    let sums = expected.sum(I).order(J);
    assert!(db.order(J).iter().zip(&sums).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn lookups_windows_and_views() {
    let table = from_vec((I.of(3), J.of(2)), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let ids = from_vec(K.of(4), vec![2_usize, 0, 2, 1]);
    let dt = grad(|t| (t.take(I, &ids) * K.of(4).cast::<f64>()).sum((K, J)), &table);
    assert_eq!(dt.order((I, J)), ndarray::array![[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]]);
    let d = grad(|t| t.slice(I, 1..).square().sum((I, J)), &table);
    assert_eq!(d.order((I, J)), ndarray::array![[0.0, 0.0], [6.0, 8.0], [10.0, 12.0]]);
}

#[test]
fn higher_orders() {
    let x = from_vec(I.of(2), vec![1.0, 2.0]);
    let v = from_vec(I.of(2), vec![1.0, 10.0]);
    let (y, dy) = jvp(|x| (x * x * x).eval(), &x, &v);
    assert_eq!((y.order(I), dy.order(I)), (ndarray::array![1.0, 8.0], ndarray::array![3.0, 120.0]));
    let h = hvp(|x| (x * x * x).sum(I), &x, &v);
    assert_eq!(h.order(I), ndarray::array![6.0, 120.0]);
    // A gradient of a gradient: d/dx sum (3 x^2)^2 = 36 x^3.
    let outer = grad(|x| grad(|x| (x * x * x).sum(I), x).square().sum(I), &x);
    assert_eq!(outer.order(I), ndarray::array![36.0, 288.0]);
    let (y, pullback) = vjp(|x| x.exp().eval(), &x);
    let dx = pullback(&v);
    assert_eq!(dx.order(I), (y * &v).order(I));
}

#[test]
fn dropout_leaves_out_the_same_elements_in_derivatives_of_derivatives() {
    let x = from_fn(I.of(40), |i| i as f64 - 15.0);
    let factor = ones::<f64, _>(I.of(40)).dropout(0.25, 7);
    assert!(factor.view().eq(0.0).any(I).order(()));
    let second = grad(|x| grad(|x| x.dropout(0.25, 7).powi(3).sum(I), x).sum(I), &x);
    let expected = (&factor * &factor * &factor * &x * 6.0).order(I);
    assert!(second.order(I).iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs().max(1.0)));
}

#[test]
fn arrays_are_no_part_of_it() {
    let x = from_vec(I.of(2), vec![1.0, 2.0]);
    let error = std::panic::catch_unwind(|| {
        grad(
            |x| {
                let sum: f64 = x.sum(I).order(());
                (x * sum).sum(I)
            },
            &x,
        )
    });
    let text = *error.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("no gradient can be taken through `order`"), "{text}");
    let y = from_vec(J.of(2), vec![1.0, 2.0]);
    let error = typed_dims::grad::try_grad(|(x, _)| x.sum(I), (&x, &y)).unwrap_err();
    let text =
        "the loss does not depend on the parameter `1`, so it has no gradient (at tests/grad/values.rs:";
    assert!(error.to_string().starts_with(text), "{error}");
}

type Line = Tensor<f64, (I,)>;

fn line() -> Line {
    from_vec(I.of(3), vec![0.5, -1.0, 2.0])
}

/// A parameter that is read has a gradient, even if the value does not change with it.
#[test]
fn parameters_that_are_read_have_a_gradient() {
    let (w, z) = (line(), line());
    let beta = 0.0;
    let (dw, dz) = grad(|(w, z): (&Line, &Line)| (w * w).sum(I) + (z * z).sum(I) * beta, (&w, &z));
    assert_eq!((dw.order(I), dz.order(I)), ((2.0 * &w).order(I), ndarray::array![0.0, 0.0, 0.0]));
    let flat: [(&str, fn(&Line) -> Tensor<f64, ()>); 14] = [
        ("lerp", |x| line().lerp(x, 0.0).sum(I)),
        ("powi", |x| x.powi(0).sum(I)),
        ("times 0", |x| (x * 0.0).sum(I)),
        ("computed times 0", |x| (x.exp().eval() * 0.0).sum(I)),
        ("floor", |x| x.floor().sum(I)),
        ("computed floor", |x| x.floor().eval().square().sum(I)),
        ("a comparison", |x| x.gt(0.0).select(1.0, 2.0).sum(I)),
        ("a computed comparison", |x| x.gt(0.0).eval().select(1.0, 2.0).sum(I)),
        ("a count", |x| x.gt(0.0).count(I).cast::<f64>().eval()),
        ("argmax", |x| x.argmax(I).cast::<f64>().eval()),
        ("argmax of a result", |x| x.exp().eval().argmax(I).cast::<f64>().eval()),
        ("argsort", |x| x.argsort(I).cast::<f64>().sum(I)),
        ("detach", |x| x.detach().sum(I)),
        ("a third derivative", |x| {
            let first = |x: &Line| grad(|x| x.square().sum(I), x).sum(I);
            grad(|x| first(x), x).sum(I)
        }),
    ];
    for (name, f) in flat {
        assert_eq!(grad(f, &w).order(I), ndarray::array![0.0, 0.0, 0.0], "{name}");
        assert_eq!(grad(f, &mut w.clone()).order(I), ndarray::array![0.0, 0.0, 0.0], "{name}, in place");
        assert_eq!(hvp(f, &w, &z).order(I), ndarray::array![0.0, 0.0, 0.0], "{name}, second");
    }
}

#[derive(Parameters)]
struct Table {
    rows: Tensor<usize, (I,)>,
    weight: Tensor<f64, (I,)>,
    used: Tensor<bool, (I,)>,
}

#[derive(Parameters)]
struct Indices {
    rows: Tensor<usize, (I,)>,
}

/// Integers next to floats have gradients of 0. Integers alone have no gradient.
#[test]
fn integers() {
    let rows = from_vec(I.of(3), vec![2_usize, 1, 0]);
    let table = Table { rows: rows.clone(), weight: line(), used: (&rows).gt(0).eval() };
    let f = |table: &Table| (&table.weight * (&table.rows).cast::<f64>()).sum(I);
    let gradient = grad(f, &table);
    assert_eq!(gradient.weight.order(I), ndarray::array![2.0, 1.0, 0.0]);
    assert_eq!(gradient.rows.order(I), ndarray::array![0, 0, 0]);
    assert_eq!(gradient.used.order(I), ndarray::array![false, false, false]);
    let (_, pull) = vjp(f, &table);
    assert_eq!(pull(&full((), 1.0)).rows.order(I), ndarray::array![0, 0, 0]);
    let alone = |indices: &Indices| (&indices.rows).cast::<f64>().sum(I);
    let error = typed_dims::grad::try_grad(alone, &Indices { rows }).err().unwrap().to_string();
    assert!(error.starts_with("no input of the gradient has float elements (at "), "{error}");
}

#[test]
fn results_of_calls_that_have_ended_are_plain() {
    let x = line();
    fn assert_plain(mut tensor: Line, expected: &Line) {
        assert_eq!(tensor.view().order(I), expected.order(I));
        tensor += &line();
        assert_eq!(tensor.view().order(I), (expected + &line()).order(I));
        let again = grad(|x| (x * &tensor).sum(I), &line());
        assert_eq!(again.order(I), tensor.view().order(I));
    }
    // Auxiliary results of a function: its parameter, a computed tensor, and a part of that tensor.
    let (_, _, (own, square, last)) = value_and_grad_with(
        |x: &Line| {
            let square = x.square().eval();
            (square.sum(I), (x.clone(), square.clone(), square.index(I, 2).expand(I.of(3)).eval()))
        },
        &x,
    );
    assert_plain(own, &x);
    assert_plain(square, &(&x).square().eval());
    assert_plain(last, &full(I.of(3), 4.0));

    // The pull-back, differentiated with respect to its cotangent.
    let (_, pull) = vjp(|x| x.powi(3).eval(), &x);
    let slopes = grad(|dy| (pull(dy) * dy).sum(I), &x);
    assert_plain(slopes, &(6.0 * &x * (&x).square()).eval());
    let (value, _) = value_and_grad(|dy| pull(dy).sum(I), &x);
    assert_eq!(value, (3.0 * (&x).powi(3)).sum(I).order(()));
    let (_, second) = vjp(|dy| pull(dy), &x);
    assert_plain(second(&x), &(3.0 * (&x).powi(3)).eval());
    assert_plain(jvp(|dy| pull(dy), &x, &x).1, &(3.0 * (&x).powi(3)).eval());

    // A pull-back that leaves an outer call. While that call runs, the pull-back depends on the
    // variable of the call.
    let mut kept = None;
    let outer = grad(
        |x: &Line| {
            let (_, pull) = vjp(|y: &Line| (y * y * x).eval(), x);
            let slopes = pull(&ones(I.of(3)));
            kept = Some(pull);
            slopes.sum(I)
        },
        &x,
    );
    // 2 x^2 has the derivative 4 x.
    assert_plain(outer, &(4.0 * &x).eval());
    let pull = kept.unwrap();
    assert_plain(pull(&ones(I.of(3))), &(2.0 * (&x).square()).eval());
    assert_plain(grad(|dy| pull(dy).sum(I), &x), &(2.0 * (&x).square()).eval());
}

/// A recorded program holds the result of an ended call as a constant, without the steps that
/// computed it.
#[cfg(feature = "linalg")]
#[test]
fn matrices_of_calls_that_have_ended_are_constants() {
    type Square = Tensor<f64, (I, J)>;
    let w: Square = from_vec((I.of(2), J.of(2)), vec![2.0, 1.0, 0.0, 4.0]);
    let squares = |w: &Square| {
        let a = (w * w).eval();
        (a.sum((I, J)), a)
    };
    let (_, _, a) = value_and_grad_with(squares, &w);
    let b: Line = from_vec(I.of(2), vec![4.0, 8.0]);
    let program = typed_dims::program::record(|b: &Line| (&a).solve(b, I, J), &b).unwrap();
    // The input is copied, and the system solved.
    assert_eq!((program.steps(), program.constants().len()), (2, 1), "{program}");
    assert_eq!(program.call(&b).order(J), ndarray::array![0.875, 0.5]);
}

/// The pull-back borrows neither the captures of the function nor its input.
#[test]
fn a_pull_back_outlives_its_function() {
    let pull = {
        let (factor, x) = (line(), line());
        vjp(|x| (x * &factor).eval(), &x).1
    };
    assert_eq!(pull(&ones(I.of(3))).order(I), line().order(I));
}

/// An operation that inspects the recorded nodes of its elements.
struct Looking(fn(&kernels::trace::Node));

impl typed_dims::operators::custom::ArrayOp<f64> for Looking {
    type In = U1;
    type Out = U1;
    type Elem = f64;
    const NAME: &'static str = "looking";

    fn one(&self, x: ndarray::ArrayView1<'_, f64>) -> ndarray::Array1<f64> {
        let held =
            kernels::trace::registry::find(x.as_ptr().cast()).expect("the elements are those of a step");
        self.0(held.node().expect("the elements are those of a step"));
        x.to_owned()
    }

    fn pull_back(&self) -> Option<typed_dims::operators::custom::PullBackOf<Self, f64>> {
        Some(typed_dims::operators::custom::PullBackOf::<Self, f64>::new(|_, _, dy| dy.to_owned()))
    }
}

/// The names and sizes of the axes of a step's result, and of the results of all steps that it
/// depends on.
fn axes(node: &kernels::trace::Node) -> BTreeSet<Vec<(&'static str, usize)>> {
    let own = node.axes().expect("the axes of each step are known");
    let mut own: Vec<_> = own.iter().map(|axis| (axis.name, axis.size)).collect();
    own.sort_unstable();
    node.inputs().into_iter().flat_map(|input| axes(input)).chain([own]).collect()
}

#[test]
fn steps_know_the_dims_of_their_results() {
    let x = from_fn((I.of(2), J.of(3)), |(i, j)| (i + 2 * j) as f64);
    let w = from_fn((J.of(3), K.of(4)), |(j, k)| (3 * k + j) as f64);
    let f = |x: &Tensor<f64, (I, J)>| {
        let looking = Looking(|node| {
            let known = [vec![("..", 4), ("I", 2)], vec![("I", 2), ("J", 3)], vec![("I", 2), ("K", 4)]];
            assert_eq!(axes(node), BTreeSet::from(known));
        });
        let y = (x * &w).sum(J).softmax(K).sort(K).roll(K, 1);
        y.order(K).apply_array(looking).at(K).sum((I, K))
    };
    assert_eq!(grad(f, &x).order((I, J)).dim(), (2, 3));
}

#[test]
fn a_loss_stays_a_tensor() {
    let x = from_vec((I.of(2), K.of(3)), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let mut w = from_vec((K.of(3), J.of(2)), vec![0.5, -1.0, 1.5, 2.0, 0.25, -0.5]);
    let loss = |w: &Tensor<f64, (K, J)>| (&x * w).sum(K).square().sum((I, J));
    let (value, expected) = value_and_grad(loss, &w);
    let (found, gradient): (Tensor<f64, ()>, Tensor<f64, (K, J)>) = loss_and_grad(loss, &w);
    assert_eq!((found.view().order(()), &gradient), (value, &expected));
    // Afterwards the loss is a constant, which can be modified.
    let (mut found, gradient) = loss_and_grad(loss, &mut w);
    found += 1.0;
    assert_eq!((found.order(()), gradient), (value + 1.0, expected));
    let error = try_loss_and_grad(|_: &Tensor<f64, (K, J)>| x.sum((I, K)), &w).unwrap_err();
    assert!(error.to_string().contains("does not depend on the parameter"), "{error}");
}

/// Here `value_and_grad` would have no number to return. The loss that `loss_and_grad` returns is
/// part of the outer function.
#[test]
fn a_loss_and_its_gradient_within_another_gradient() {
    let (w, x) = (from_vec(I.of(3), vec![0.5, -1.0, 2.0]), from_vec(I.of(3), vec![1.0, 3.0, -0.25]));
    // The inner loss is `sum(w x^3)`, differentiated with respect to `x`.
    let outer = |w: &Tensor<f64, (I,)>| {
        let (loss, slope) = loss_and_grad(|x: &Tensor<f64, (I,)>| (w * x.powi(3)).sum(I), &x);
        (loss * 2.0 + slope.square().sum(I)).eval()
    };
    let found = grad(outer, &w);
    let expected = (2.0 * (&x).powi(3) + 18.0 * &w * (&x).powi(4)).eval();
    for (found, expected) in found.order(I).iter().zip(&expected.order(I)) {
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    }
}

#[test]
fn one_loss_for_each_example() {
    type Each = Tensor<f64, (I, Rest<(J,)>)>;
    let x = from_vec((I.of(2), J.of(3)), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (losses, slopes) = loss_and_grad(|x: &Each| x.square().sum(I), &x.clone().seal(I));
    let losses: Tensor<f64, (J,)> = losses.unseal();
    assert_eq!(losses.order(J), (&x).square().sum(I).order(J));
    let slopes: Tensor<f64, (I, J)> = slopes.unseal();
    assert_eq!(slopes, (2.0 * &x).eval());
}

#[batched]
fn loss_and_slope(w: &Tensor<f64, (I,)>, x: &Tensor<f64, (I,)>) -> (Tensor<f64, ()>, Tensor<f64, (I,)>) {
    loss_and_grad(|w| (w * x).sum(I).square(), w)
}

#[test]
fn one_loss_for_each_example_of_a_batched_function() {
    let w = from_vec(I.of(2), vec![1.0, 2.0]);
    let x = from_vec((I.of(2), J.of(3)), vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (losses, slopes) = loss_and_slope(&w, &x);
    let product = (&x * &w).sum(I);
    assert_eq!(losses.order(J), (&product).square().order(J));
    assert_eq!(slopes.order((I, J)), (2.0 * product * &x).order((I, J)));
}
