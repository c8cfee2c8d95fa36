//! Contractions with constants and of streams.

use super::*;
use typed_dims::ndarray::{Array2, array};

/// `[b i j]`, a constant.
fn weight() -> Tensor<i64, (B, I, J)> {
    from_fn((B.of(2), I.of(3), J.of(4)), |(b, i, j)| (7 * b + 3 * i * j + i + 2 * j) as i64)
}

/// `[b j k]`
fn input() -> Tensor<i64, (B, J, K)> {
    from_fn((B.of(2), J.of(4), K.of(5)), |(b, j, k)| (b * 11 + j * k + 3 * j + k) as i64)
}

/// `out[b, i, k] = sum over j of weight[b, i, j] * input[b, j, k]`, by loops.
fn product() -> Array3<i64> {
    let (weight, input) = (weight().order((B, I, J)), input().order((B, J, K)));
    Array3::from_shape_fn((2, 3, 5), |(b, i, k)| (0..4).map(|j| weight[[b, i, j]] * input[[b, j, k]]).sum())
}

#[test]
fn with_a_constant_on_the_left() {
    // [b i j] @ [b j! k] -> [b i! k]
    let x = input().stream((B, J, K), J);
    let (y, class) = cost(|| -> Stream<i64, (B, I, K), I> { x.contract(&weight(), J) });
    assert_eq!((y.to_array(), class), (product(), CostClass::Compute));
    // The layout of the constant makes no difference.
    assert_eq!(x.contract(&weight().laid((J, B, I)), J), y);
    assert_eq!(x.contract(weight().laid((B, I, J)).view(), J), y);
}

#[test]
fn with_a_constant_on_the_right() {
    // [b k j!] @ [b j i] -> [b k i!]: the position of the constant does not matter, because dims
    // have names.
    let x = input().stream((B, K, J), J);
    let (y, class) = cost(|| -> Stream<i64, (B, K, I), I> { x.contract(weight(), J) });
    assert_eq!((y.to_array(), class), (product().permuted_axes([0, 2, 1]), CostClass::Compute));
}

#[test]
fn with_a_constant_not_along_the_data_dimension() {
    // [b i j] @ [b j k!] -> [b i k!], with dynamic weights.
    let x = input().stream((B, J, K), K);
    let (y, ledger) = typed_dims::tensors::stream::ledger(|| -> Stream<i64, (B, I, K), K> {
        x.allow_dynamic_weights().contract(&weight(), J)
    });
    assert_eq!(y.to_array(), product());
    assert_eq!((ledger.count(CostClass::Slower), ledger.dynamic_weights()), (1, 1));
    // Allowing dynamic weights where they are not needed costs nothing.
    let x = input().stream((B, J, K), J);
    let (y, ledger) = typed_dims::tensors::stream::ledger(|| -> Stream<i64, (B, I, K), I> {
        x.allow_dynamic_weights().contract(&weight(), J)
    });
    assert_eq!(y.to_array(), product());
    assert_eq!((ledger.count(CostClass::Compute), ledger.dynamic_weights()), (1, 0));
}

#[test]
fn with_a_constant_that_has_no_dims_of_its_own_or_several() {
    let x = input().stream((B, J, K), K);
    let x = x.allow_dynamic_weights();
    let means: Stream<i64, (B, K), K> = x.contract(from_vec(J.of(4), vec![1, 1, 1, 1]), J);
    assert_eq!(means.to_array(), input().sum(J).order((B, K)));
    let both = from_fn((A.of(2), I.of(3), J.of(4)), |(a, i, j)| (a + 2 * i * j) as i64);
    let y: Stream<i64, (B, A, I, K), K> = x.contract(&both, J);
    assert_eq!(y.to_array(), (&both * input()).sum(J).order((B, A, I, K)));
}

#[test]
fn of_two_streams() {
    // [i! j] @ [j! k] -> [i! k]
    let (a, b) = (array![[1, 2, 3], [4, 5, 6]], array![[1, 0], [0, 1], [1, 1]]);
    let x = a.at((I, J)).stream((I, J), I);
    let y = b.at((J, K)).stream((J, K), J);
    let (z, ledger) = typed_dims::tensors::stream::ledger(|| -> Stream<i32, (I, K), I> {
        x.allow_dynamic_weights().contract(&y, J)
    });
    assert_eq!(z.to_array(), a.dot(&b));
    assert_eq!((ledger.count(CostClass::Slower), ledger.dynamic_weights()), (1, 1));
    // [i j!] @ [j k!] -> [i k!]: here, the left operand flows along the contracted dimension.
    let x = a.at((I, J)).stream((I, J), J);
    let y = b.at((J, K)).stream((J, K), K);
    let z: Stream<i32, (I, K), K> = x.allow_dynamic_weights().contract(&y, J);
    assert_eq!(z.to_array(), a.dot(&b));
}

#[test]
fn of_two_streams_whose_result_flows_along_a_batch() {
    // [b! i j] @ [b j! k] -> [b! i k]
    let x = weight().stream((B, I, J), B);
    let y = input().stream((B, J, K), J);
    let z: Stream<i64, (B, I, K), B> = x.allow_dynamic_weights().contract(&y, J);
    assert_eq!(z.to_array(), product());
    // [b i j!] @ [b! j k] -> [b! i k]
    let x = weight().stream((B, I, J), J);
    let y = input().stream((B, J, K), B);
    let z: Stream<i64, (B, I, K), B> = x.allow_dynamic_weights().contract(&y, J);
    assert_eq!(z.to_array(), product());
}

#[test]
fn views_large_and_empty_operands() {
    let (m, n) = (70, 130);
    let a = Array2::from_shape_fn((m, n), |(i, j)| ((i * 31 + j * 17) % 13) as f32 - 6.0);
    let w = Array2::from_shape_fn((n, m), |(i, j)| ((i * 7 + j * 29) % 11) as f32 - 5.0);
    let x = a.at((A, J)).stream((A, J), J).slice(A, 1..);
    let y = x.contract(w.at((J, I)), J);
    assert_eq!(y.to_array(), a.slice_axis(typed_dims::ndarray::Axis(0), (1..).into()).dot(&w));
    let none = x.slice(J, ..0).contract(w.at((J, I)).slice(J, ..0), J);
    assert_eq!(none.to_array(), Array2::<f32>::zeros((m - 1, m)));
    let error = x.try_contract(w.at((J, I)).slice(J, 1..), J).unwrap_err();
    assert!(error.to_string().starts_with("dim `J` has size 130"), "{error}");
}
