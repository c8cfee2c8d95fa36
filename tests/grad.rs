//! Gradients of functions of tensors, compared with numbers that were worked out by hand and with differences.

use typed_dims::grad::{grad, hvp, jvp, value_and_grad, vjp};
use typed_dims::prelude::*;

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
        "{found} {expected}"
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
        "the loss does not depend on the parameter `1`, so there is no gradient by it (at tests/grad.rs:";
    assert!(error.to_string().starts_with(text), "{error}");
}
