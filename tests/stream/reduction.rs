//! Reductions: along the data dimension with keepdim, along others with or without.

use super::*;
use typed_dims::ndarray::{Axis, array};

#[test]
fn along_the_data_dimension() {
    // [a! b].sum(dim=0) -> [1! b]
    let x = from_vec((A.of(2), B.of(3)), vec![1, 2, 3, 4, 5, 6]).stream((A, B), A);
    let (y, class) = cost(|| -> Stream<i32, (One, B), One> { x.sum_keepdim(A, One) });
    assert_eq!((y.to_array(), class), (array![[5, 7, 9]], CostClass::Compute));
}

#[test]
fn along_another_dimension() {
    // [a! b].sum(dim=1) -> [a!]
    let x = from_vec((A.of(2), B.of(3)), vec![1, 2, 3, 4, 5, 6]).stream((A, B), A);
    let (y, class) = cost(|| -> Stream<i32, (A,), A> { x.sum(B) });
    assert_eq!((y.to_array(), class), (array![6, 15], CostClass::Slower));
    // Here keepdim is optional.
    let (y, class) = cost(|| -> Stream<i32, (A, One), A> { x.sum_keepdim(B, One) });
    assert_eq!((y.to_array(), class), (array![[6], [15]], CostClass::Slower));
}

#[test]
fn all_reductions() {
    let array = numbers().mapv(|x| x as f64 / 10.0);
    let x = array.clone().into_tensor((A, B, C)).stream((A, B, C), B);
    let near = |y: Stream<f64, (A, B), B>, expected: &dyn Fn(&[f64]) -> f64| {
        let expected = array.map_axis(Axis(2), |line| expected(&line.to_vec()));
        y.to_array().iter().zip(&expected).for_each(|(y, e)| assert!((y - e).abs() < 1e-9, "{y} {e}"));
    };
    near(x.sum(C), &|line| line.iter().sum());
    near(x.prod(C), &|line| line.iter().product());
    near(x.mean(C), &|line| line.iter().sum::<f64>() / 4.0);
    near(x.var(C), &|line| {
        let mean = line.iter().sum::<f64>() / 4.0;
        line.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0
    });
    near(x.max(C), &|line| line.iter().fold(f64::MIN, |a, b| a.max(*b)));
    near(x.min(C), &|line| line.iter().fold(f64::MAX, |a, b| a.min(*b)));
    near(x.logsumexp(C), &|line| line.iter().map(|x| x.exp()).sum::<f64>().ln());
    let kept: Stream<f64, (A, One, C), One> = x.max_keepdim(B, One);
    assert_eq!(kept.to_array(), array.fold_axis(Axis(1), f64::MIN, |a, b| a.max(*b)).insert_axis(Axis(1)));
}

#[test]
fn a_mean_that_is_subtracted() {
    let x = from_vec((A.of(2), B.of(2)), vec![1.0, 3.0, 5.0, 9.0]).stream((A, B), B);
    let (y, ledger) = typed_dims::prelude::ledger(|| &x - x.mean_keepdim(B, One).broadcast(One, B.of(2)));
    assert_eq!(y.to_array(), array![[-1.0, 1.0], [-2.0, 2.0]]);
    let classes: Vec<CostClass> = ledger.entries.iter().map(|entry| entry.cost).collect();
    assert_eq!(classes, [CostClass::Compute, CostClass::CloseToFree, CostClass::Compute]);
}

#[test]
fn what_sizes_decide() {
    let x = abc_along_b();
    let nothing = x.slice(C, 4..);
    assert!(nothing.try_max(C).is_err() && nothing.try_min_keepdim(C, One).is_err());
    assert_eq!(nothing.sum(C).to_array(), array![[0, 0, 0], [0, 0, 0]]);
    let kept: Stream<i64, (A, N, C), N> = x.sum_keepdim(B, N);
    assert_eq!(kept.sizes(), [2, 1, 4]);
    dims!(two = 2);
    assert!(x.try_sum_keepdim(B, two).is_err());
}
