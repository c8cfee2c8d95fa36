//! Results whose layout is not the order of their dims: products with the batch first, and results
//! that reuse the memory of such products.

use crate::reference::contract;
use crate::reference::input::{Case, Random, Sample, cases};
use crate::{A, B, C, D, E, assert_same, bound, inputs, ordered, properties};
use ndarray::{Array3, ArrayD};
use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

/// The batch `C` is the last dim of the product.
fn products<T: Sample + Num>(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, T; x[A C D], y[C B D], z[A B C] => refs);
    let product = || (bound!(x[A C D]) * bound!(y[C B D])).sum(D);
    let expected = contract(&refs[..2], &["D"]);
    assert_same!(product(), [A B C], expected);
    assert_same!(product(), [C B A], expected);
    assert_same!(product().eval(), [B C A], expected);
    assert_same!(product().cumsum(B), [A B C], expected.along("B", |line| sums_so_far(&line)));
    assert_same!(product().sum(C), [A B], contract(std::slice::from_ref(&expected), &["C"]));
    // A sum in the memory of the product, with an operand in another layout.
    let added = expected.zip(&refs[2], |x, y| x.add(y));
    assert_same!(product() + bound!(z[A B C]), [C A B], added);
    assert_same!((product() + bound!(z[A B C])).cumsum(C), [A B C], added.along("C", |line| sums_so_far(&line)));
    let mut kept = product();
    kept += bound!(z[A B C]);
    assert_same!(&kept, [A C B], added);
    assert_same!(product(), [A B C], expected);
    // The product as a factor: alone, times a constant, and in a sum.
    inputs!(case, random, T; v[B C E] => values);
    let weighed = contract(&[expected, values[0].clone()], &["B"]);
    assert_same!((product() * bound!(v[B C E])).sum(B), [A C E], weighed);
    let [two, factor] = [T::ONE.add(T::ONE), T::ONE.add(T::ONE).add(T::ONE)];
    let twice = weighed.map(|x| x.mul(two));
    assert_same!(((product() * two) * bound!(v[B C E])).sum(B), [C A E], twice);
    let raised = weighed.map(|x| x.mul(factor));
    assert_same!(((product() + product() * two) * bound!(v[B C E])).sum(B), [E A C], raised);
}

fn sums_so_far<T: Num>(line: &[T]) -> Vec<T> {
    let mut sum = T::ZERO;
    line.iter()
        .map(|&x| {
            sum = sum.add(x);
            sum
        })
        .collect()
}

/// Softmax in the memory of a product equals that of an array with the same elements.
fn softmaxes(case: &Case) {
    let mut random = case.random();
    let mut some =
        |names: &[&'static str]| {
            case.buffer(&mut random, names, |r| {
                if r.below(40) == 0 { f64::NAN } else { r.below(400) as f64 / 100.0 }
            })
        };
    let (x, y, z) = (some(&["A", "C", "D"]), some(&["C", "B", "D"]), some(&["A", "B", "C"]));
    let product = || (bound!(x[A C D]) * bound!(y[C B D])).sum(D);
    let array: Array3<f64> = product().order((A, B, C));
    let shifted: Array3<f64> = (array.at((A, B, C)) - bound!(z[A B C])).order((A, B, C));
    macro_rules! check {
        ($dim:ident) => {
            assert_close(&ordered!(product().softmax($dim), [A B C]), &ordered!(array.at((A, B, C)).softmax($dim), [A B C]));
            let halved = (array.at((A, B, C)) * 0.5).softmax($dim);
            assert_close(&ordered!((product() * 0.5).softmax($dim), [C A B]), &ordered!(halved, [C A B]));
            let expected = ordered!(shifted.at((A, B, C)).log_softmax($dim), [A B C]);
            assert_close(&ordered!((product() - bound!(z[A B C])).log_softmax($dim), [A B C]), &expected);
        };
    }
    check!(A);
    check!(B);
    check!(C);
}

#[track_caller]
fn assert_close(found: &ArrayD<f64>, expected: &ArrayD<f64>) {
    assert_eq!(found.shape(), expected.shape());
    for (&found, &expected) in found.iter().zip(expected) {
        let same =
            found.is_nan() && expected.is_nan() || (found - expected).abs() < 1e-12 * expected.abs().max(1.0);
        assert!(same, "{found:?} instead of {expected:?}");
    }
}

/// Few and many lines, whose elements are interleaved.
#[test]
fn softmax_of_lines_side_by_side() {
    let mut random = Random(3);
    for (len, lines) in [(1, 12), (21, 2), (200, 3), (50, 12), (9, 31), (70, 64), (33, 65)] {
        let mut x =
            Array3::from_shape_simple_fn((2, len, lines), || random.below(4000) as f64 / 100.0 - 20.0);
        // The result is all NaN for a line that contains NaN or only negative infinity. A single
        // finite element has the share 1.
        x[[0, len / 2, 0]] = f64::NAN;
        x.slice_mut(ndarray::s![1, .., 1]).fill(f64::NEG_INFINITY);
        x.slice_mut(ndarray::s![1, 1.., 0]).fill(f64::NEG_INFINITY);
        let exact = Array3::from_shape_fn(x.dim(), |(a, b, c)| {
            let sum: f64 = x.slice(ndarray::s![a, .., c]).iter().map(|x| x.exp()).sum();
            x[[a, b, c]].exp() / sum
        });
        let found = x.at((A, B, C)).softmax(B).order((A, B, C));
        assert_close(&found.into_dyn(), &exact.clone().into_dyn());
        let found = x.at((A, B, C)).log_softmax(B).exp().order((A, B, C));
        assert_close(&found.into_dyn(), &exact.into_dyn());
    }
}

properties! {
    products_whose_batch_comes_first_i32 15: |case in cases(5), _which| products::<i32>(&case);
    products_whose_batch_comes_first_f64 15: |case in cases(5), _which| products::<f64>(&case);
    softmax_in_the_place_of_a_product 20: |case in cases(5), _which| softmaxes(&case);
}
