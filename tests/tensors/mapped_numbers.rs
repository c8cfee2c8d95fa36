//! `vmap` of functions of numbers, and of tensors without dims.

use ndarray::{Array1, Array2, Array3, array};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! { struct Row; struct Column; struct Feat; }

fn clipped(x: f64, most: f64) -> f64 {
    if x > most { most } else { x }
}

#[test]
fn each_parameter_is_an_element() {
    let x = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64);
    let most = array![2.0, 5.0, 100.0];
    let expected = Array2::from_shape_fn((3, 4), |(i, j)| clipped(x[[i, j]], most[i]));
    let both = (Row, Column);
    let found = vmap(clipped, both)((x.at(both), most.at(Row)));
    assert_eq!(found.order(both), expected);
    // Another memory order, references, expressions, and a part with strides.
    let transposed = x.t().as_standard_layout().into_owned();
    let tensor = transposed.at((Column, Row)).eval();
    assert_eq!(vmap(clipped, both)((&tensor, most.at(Row))).order(both), expected);
    assert_eq!(vmap(clipped, both)((&tensor + 0.0, most.at(Row) * 1.0)).order(both), expected);
    let part = x.slice(ndarray::s![..;-2, 1..3]);
    let expected = Array2::from_shape_fn((2, 2), |(i, j)| -part[[i, j]]);
    assert_eq!(vmap(|x: f64| -x, both)(part.at(both)).order(both), expected);
}

#[test]
fn results_and_parameters_of_other_types() {
    let (x, is) = (array![1_i32, -2, 3], array![true, false, true]);
    let signed = vmap(|x: i32, is: bool| if is { x } else { -x }, Row)((x.at(Row), is.at(Row)));
    assert_eq!(signed.order(Row), array![1, 2, 3]);
    let x = array![4.0_f32, -9.0];
    let (root, is) = vmap(|x: f32| (x.abs().sqrt(), x < 0.0), Row)(x.at(Row));
    assert_eq!((root.order(Row), is.order(Row)), (array![2.0, 3.0], array![false, true]));
    let none = Array1::<f64>::zeros(0);
    assert_eq!(vmap(f64::sqrt, Row)(none.at(Row)).order(Row), none);
    // A number that is the same for all elements.
    let (x, one) = (array![1.0, 2.0], full((), 1.5));
    assert_eq!(vmap(clipped, Row)((x.at(Row), &one)).order(Row), array![1.0, 1.5]);
}

/// Many elements, in operands with different dims and memory orders.
#[test]
fn more_numbers_than_one_loop_passes() {
    let all = (Row, Column, Feat);
    for (rows, columns, feats) in [(7, 33, 5), (2, 3, 300), (1, 1, 1025), (600, 1, 2), (3, 0, 5)] {
        let x = Array3::from_shape_fn((feats, rows, columns), |(k, i, j)| (100 * k + 10 * i + j) as f64);
        let y = Array2::from_shape_fn((rows, feats), |(i, k)| (i * feats + k) as i32);
        let z = Array1::from_shape_fn(columns, |j| j as f64 / 2.0);
        let f = |x: f64, y: i32, z: f64, one: f64| (x - z * one, y * 2);
        let (x, y, z) = (x.at((Feat, Row, Column)), y.at((Row, Feat)), z.at(Column));
        let (found, doubled) = vmap(f, all)((&x, &y, &z, full((), 3.0)));
        assert_eq!(found.order(all), (x - &z * 3.0).order(all));
        assert_eq!(doubled.order(all), (&y * 2 + (&z * 0.0).cast::<i32>()).order(all));
    }
}

/// A function that has both numbers and tensors in its signature is called in a loop.
#[test]
fn numbers_and_tensors() {
    let x = Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f64);
    let rates = array![1.0, 10.0, 100.0];
    let scaled = |x: &Tensor<f64, (Feat,)>, rate: f64| (x * rate).eval();
    let found = vmap(scaled, Row)((x.at((Row, Feat)), rates.at(Row)));
    assert_eq!(found.order((Row, Feat)), &x * &rates.insert_axis(ndarray::Axis(1)));
    let longest = |x: &Tensor<f64, (Feat,)>| x.max(Feat).order(());
    assert_eq!(vmap(longest, Row)(x.at((Row, Feat))).order(Row), array![3.0, 7.0, 11.0]);
    let (filled, x) = (|x: f64| full(Feat.of(2), x), array![1.0, 2.0]);
    assert_eq!(vmap(filled, Row)(x.at(Row)).order((Row, Feat)), array![[1.0, 1.0], [2.0, 2.0]]);
}

/// A function of tensors without dims is called in a loop, or only once if its tensors have a
/// `Rest`.
#[test]
fn tensors_without_dims() {
    fn area<B: Dims>(x: &Tensor<f64, (Rest<B>,)>, y: &Tensor<f64, (Rest<B>,)>) -> Tensor<f64, (Rest<B>,)> {
        (x * y).eval()
    }
    fn one(x: &Tensor<f64, ()>, y: &Tensor<f64, ()>) -> Tensor<f64, ()> {
        (x * y).eval()
    }
    let (x, y) = (from_vec(Row.of(2), vec![2.0, 3.0]), from_vec(Row.of(2), vec![5.0, 7.0]));
    assert_eq!(vmap(area, Row)((&x, &y)).order(Row), array![10.0, 21.0]);
    assert_eq!(vmap(one, Row)((&x, &y)).order(Row), array![10.0, 21.0]);
    let slopes = grad(|x| vmap(area, Row)((x, &y)).sum(Row), &x);
    assert_eq!(slopes.order(Row), array![5.0, 7.0]);
}

#[test]
fn a_plan_shows_one_loop() {
    let x = Array1::<f64>::ones(1000);
    let (_, plan) = explain(|| vmap(f64::sqrt, Row)(x.at(Row)));
    assert!(
        plan.to_string().contains("loop of 1000 calls, one for each example, of a function of numbers"),
        "{plan}"
    );
}

/// `vmap` of a function of numbers refuses traced tensors, so no gradient is lost.
#[test]
fn traced_numbers_are_refused() {
    let x = from_vec(Row.of(2), vec![2.0, 3.0]);
    let line = line!() + 1;
    let lost = catch_unwind(AssertUnwindSafe(|| grad(|x| vmap(f64::sqrt, Row)(x).sum(Row), &x)));
    let text = *lost.unwrap_err().downcast::<String>().unwrap();
    let place = format!("`vmap` (at {}:{line}:", file!());
    assert!(text.contains(&place), "{text}");
}

/// The function that `vmap` returns cannot know the line of its call, so errors have the line of
/// `vmap`.
#[test]
fn errors_about_sizes_name_lines_of_the_program() {
    let bound = line!() + 1;
    let (x, y) = (zeros::<f64, _>(Row.of(3)), zeros::<f64, _>(Row.of(2)));
    let line = line!() + 2;
    let refused = catch_unwind(AssertUnwindSafe(|| {
        let larger = vmap(f64::max, Row);
        larger((&x, &y + 1.0))
    }));
    let text = *refused.unwrap_err().downcast::<String>().unwrap();
    let here = |line: u32| format!("(at {}:{line}:", file!());
    assert!(text.starts_with("dim `Row` has size 3 ") && text.contains(" size 2 "), "{text}");
    assert!(text.contains(&here(bound)) && text.contains(&here(line)), "{text}");
    assert!(!text.contains("batch/"), "{text}");

    // The result has the line of `vmap`, too.
    let line = line!() + 1;
    let roots = vmap(f64::sqrt, Row)(&x);
    let text = (&roots + &y).try_sum(Row).unwrap_err().to_string();
    assert!(text.contains(&here(line)) && text.contains(&here(bound)), "{text}");
}

#[test]
fn a_tuple_of_one() {
    let x = from_vec(Row.of(2), vec![4.0, 9.0]);
    assert_eq!(vmap(f64::sqrt, Row)((&x,)), vmap(f64::sqrt, Row)(&x));
}
