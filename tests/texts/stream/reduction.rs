//! Reductions: along the data dimension, only with keepdim; along other axes, with or without it.

use super::*;

#[test]
fn softmax_and_running_sums_keep_the_data_dimension() {
    let x = abc_along_b();
    let y = x.map(|x| x as f64);
    for (axis, class) in [(true, CostClass::Compute), (false, CostClass::Slower)] {
        let (sums, cost) = cost(|| -> Stream<i64, (A, B, C), B> {
            if axis { x.cumsum(B) } else { x.cumsum(C) }
        });
        let tensor = x.as_tensor();
        let expected = if axis { tensor.cumsum(B) } else { tensor.cumsum(C) };
        assert_eq!((sums.to_array(), cost), (expected.order((A, B, C)), class));
    }
    assert_eq!(y.softmax(B).to_array(), y.as_tensor().softmax(B).order((A, B, C)));
    assert_eq!(y.log_softmax(A).to_array(), y.as_tensor().log_softmax(A).order((A, B, C)));
    assert_eq!(y.slice(A, 1..1).softmax(C).sizes()[0], 0);
    let shape = y.sizes();
    assert_eq!(y.repeat(A, 2).softmax(A).sizes(), [2 * shape[0], shape[1], shape[2]]);
}

#[test]
fn sizes_that_are_said() {
    let x = abc_along_b();
    let size = x.size(C);
    assert_eq!(x.sum(C.of(size)), x.sum(C));
    dims! { pub struct One = 1; pub struct Other; pub struct New; }
    let seven = C.of(7);
    let weight = ones::<i64, _>((C.of(size), Other.of(2)));
    let errors = [
        x.try_sum(seven).err(),
        x.try_sum_keepdim(seven, One).err(),
        x.try_cumsum(seven).err(),
        x.try_rename(seven, Other).err(),
        x.try_new_axis_before(seven, One).err(),
        x.allow_dynamic_weights().try_contract(&weight, seven).err(),
        abc_along_c().try_flatten((B, seven), Other).err(),
        x.try_unflatten(seven, (Other.of(7), New)).err(),
        Stream::try_stack_before(seven, New, [&x]).err(),
    ];
    for error in errors {
        let text = error.unwrap().to_string();
        assert!(
            text.starts_with(&format!("dim `C` has size {size}, but was also given size 7 (at ")),
            "{text}"
        );
    }
    assert!(x.try_slice(C.of(7), ..2).is_err() && x.try_repeat(C.of(7), 2).is_err());
    assert_eq!(x.slice(C.of(2), ..2).size(C.of(2)), 2);
}
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
        y.to_array()
            .iter()
            .zip(&expected)
            .for_each(|(y, e)| assert!((y - e).abs() < 1e-9, "{y} instead of {e}"));
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
    let (y, ledger) =
        typed_dims::tensors::stream::ledger(|| &x - x.mean_keepdim(B, One).broadcast(One, B.of(2)));
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
