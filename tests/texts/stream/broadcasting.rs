//! Broadcasting along the data dimension and along other dimensions.

use super::*;
use typed_dims::ndarray::array;

#[test]
fn along_a_non_data_dimension_it_is_free() {
    // [1 b!] -> [n b!]
    let x = from_vec((One, B.of(2)), vec![1, 2]).stream((One, B), B);
    let (y, class) = cost_in_place(|| -> Stream<i32, (N, B), B> { x.broadcast(One, N.of(3)) });
    assert_eq!((y.to_array(), class), (array![[1, 2], [1, 2], [1, 2]], CostClass::Free));
}

#[test]
fn along_the_data_dimension_it_is_close_to_free() {
    // [a 1!] -> [a n!]
    let x = from_vec((A.of(2), One), vec![1, 2]).stream((A, One), One);
    let (y, class) = cost_in_place(|| -> Stream<i32, (A, N), N> { x.broadcast(One, N.of(3)) });
    assert_eq!((y.to_array(), class), (array![[1, 1, 1], [2, 2, 2]], CostClass::CloseToFree));
}

#[test]
fn under_the_same_name_or_a_local_one() {
    let x = from_vec((A.of(2), B.of(1)), vec![1, 2]).stream((A, B), B);
    let same: Stream<i32, (A, B), B> = x.broadcast(B, B.of(2));
    assert_eq!(same.to_array(), array![[1, 1], [2, 2]]);
    dims!(n = 2, unsized_dim);
    assert_eq!(x.broadcast(B, n).to_array(), same.to_array());
    let error = x.try_broadcast(B, unsized_dim).unwrap_err();
    assert!(error.to_string().starts_with("the size of dim `unsized_dim` is not known"), "{error}");
    let error = same.try_broadcast(B, n).unwrap_err();
    assert_eq!(error.to_string(), "dim `B` of size 2 cannot be broadcast to `n` = 2: its size must be 1");
}

#[test]
fn what_cannot_be_held_is_an_error_when_it_is_computed() {
    let x = from_vec((One, Uno, B.of(1)), vec![1u8]).stream((One, Uno, B), B);
    let huge = x.broadcast(One, A.of(usize::MAX / 2)).broadcast(Uno, N.of(usize::MAX / 2));
    assert_eq!(huge.slice(A, ..1).slice(N, 7..8).to_array(), array![[[1]]]);
    let error = huge.try_zip_map(1u8, |x, y| x + y).unwrap_err();
    assert!(error.to_string().ends_with("does not fit into memory"), "{error}");
    assert!(huge.try_repeat(B, 2).is_err() && huge.try_flatten((A, N), AB).is_err());
    assert!(huge.try_sum(A).is_err() && huge.try_reshape((AB, B)).is_err());
    assert!(format!("{huge:?}").starts_with("<tensor that cannot be evaluated"));
}

#[test]
fn renaming_is_no_operation() {
    let x = abc_along_b();
    let (y, ledger) = typed_dims::tensors::stream::ledger(|| -> Stream<i64, (A, N, C), N> { x.rename(B, N) });
    assert!(ledger.entries.is_empty());
    assert_eq!(y.to_array(), x.to_array());
    assert_eq!(y.rename(C, B).rename(N, N).shape().to_string(), "[A=2 N!=3 B=4]");
    assert!(x.try_rename(C, N.of(3)).is_err());
}
