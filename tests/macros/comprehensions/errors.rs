//! Mistakes that are found at run time, in sizes, indices and numbers of axes: `try_tensor!` returns a
//! `DimError`, and `tensor!` panics with the same text.

use ndarray::{Array1, Array2, ArrayD, IxDyn, array};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::prelude::*;

fn text<T: std::fmt::Debug>(result: Result<T, DimError>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn two_sizes_of_one_loop() {
    let (a, b) = (Array2::<f32>::ones((2, 3)), Array2::<f32>::ones((4, 5)));
    let error = text(try_tensor!([i, j] => sum[k](a[i, k] * b[k, j])));
    assert!(error.starts_with("dim `k` has size 3") && error.contains("given size 4"), "{error}");
    assert!(error.contains("errors.rs"), "{error}");
    let error = text(try_einsum!(a[i, k] * b[k, j] => [i, j]));
    assert!(error.starts_with("dim `k` has size 3"), "{error}");
    // Sizes 1 and n under the same name are also refused.
    let one = Array2::<f32>::ones((1, 3));
    assert!(text(try_einsum!(a[i, k] + one[i, k] => [i, k])).contains("`i`"));
    assert!(text(try_tensor!([i] => a[i, i])).contains("`i`"));
    assert!(text(try_tensor!([i] => if i > 0 { a[i, 0] } else { b[i, 0] })).contains("`i`"));
}

#[test]
fn panics_have_the_same_text() {
    let (a, b) = (array![1, 2, 3], array![1, 2]);
    let payload = catch_unwind(AssertUnwindSafe(|| tensor!([i] => a[i] * b[i]))).unwrap_err();
    let panic = payload.downcast_ref::<String>().expect("the message is text").clone();
    let error = text(try_tensor!([i] => a[i] * b[i]));
    let before = |text: &str| text.split(" (at").next().map(str::to_owned);
    assert_eq!(before(&panic), before(&error));
}

#[test]
fn indices_out_of_range() {
    let a = array![1, 2, 3];
    let error = text(try_tensor!([i in 0..4] => a[i]));
    assert!(
        error.starts_with("index 3 of axis 0, computed from dim `i`, is out of range for an axis of size 3"),
        "{error}"
    );
    assert!(text(try_tensor!([i] => a[i] - a[i + 1])).contains("index 3"));
    assert!(text(try_tensor!([i] => a[i - 1] + a[i])).contains("index -1"));
    assert!(text(try_tensor!([] => a[7])).contains("index 7"));
    let ids = array![0u8, 200];
    assert!(text(try_tensor!([i] => a[ids[i]])).contains("index 200"));
    assert_eq!(try_tensor!([i in 0..2] => a[i]), Ok(array![1, 2]));
    let (from, to) = (3, 1);
    assert_eq!(try_tensor!([i in from..to] => a[i]), Ok(Array1::zeros(0)));
}

#[test]
fn nothing_to_choose_from() {
    let a = Array2::<f32>::zeros((2, 0));
    assert!(text(try_tensor!([i] => max[k](a[i, k]))).contains("`max` over dim `k` = 0"));
    assert_eq!(tensor!([i] => sum[k](a[i, k])), Array1::<f32>::zeros(2));
}

#[test]
fn ranks_that_only_the_run_knows() {
    let a = ArrayD::<f32>::ones(IxDyn(&[2, 3]));
    assert_eq!(tensor!([i] => sum[k](a[i, k])), array![3.0, 3.0]);
    assert_eq!(tensor!([i] => sum[k](a[i, k] * k as f32)), array![3.0, 3.0]);
    assert!(text(try_tensor!([i] => a[i])).contains("the array has 2 axes, but 1 was bound"));
    assert!(text(try_tensor!([i] => a[i] * i as f32)).contains("the array has 2 axes, but 1 was bound"));
}

#[test]
fn results_that_memory_does_not_hold() {
    let huge = usize::MAX / 4;
    let error = text(try_tensor!([i in 0..huge, j in 0..huge] => i + j));
    assert!(error.contains("`i`") && error.contains("does not fit"), "{error}");
}
