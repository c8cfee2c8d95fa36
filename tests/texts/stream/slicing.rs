//! Slicing preserves the data dimension, and is free on all others.

use super::*;
use typed_dims::ndarray::s;

#[test]
fn on_the_data_dimension() {
    // [a b c!][:, :, :n] -> [a b n!]
    let x = abc_along_c();
    let (y, class) = cost(|| -> Stream<i64, (A, B, C), C> { x.slice(C, ..3) });
    assert_eq!((y.to_array(), class), (numbers().slice_move(s![.., .., ..3]), CostClass::Compute));
}

#[test]
fn on_another_dimension_it_is_free() {
    // [a b! c][:, :, :n] -> [a b! n]
    let x = abc_along_b();
    let (y, class) = cost_in_place(|| -> Stream<i64, (A, B, C), B> { x.slice(C, ..3) });
    assert_eq!((y.to_array(), class), (numbers().slice_move(s![.., .., ..3]), CostClass::Free));
    assert_eq!(y.slice(A, -1..).slice(C, 1..=1).to_array(), numbers().slice_move(s![1.., .., 1..2]));
    assert_eq!(y.slice(A, 2..2).sizes(), [0, 3, 3]);
    assert_eq!(y.slice(A, 2..2).slice(C, 3..).sum(C).to_array().shape(), [0, 3]);
}

#[test]
fn ranges_and_static_sizes_are_checked() {
    dims! { pub struct Four = 4; }
    let x = abc_along_b();
    let error = x.try_slice(C, 2..5).unwrap_err();
    assert_eq!(error.to_string(), "the range 2..5 of dim `C` is out of range for an axis of size 4");
    let x = from_vec((Four, A.of(1)), vec![1, 2, 3, 4]).stream((Four, A), A);
    let error = x.try_slice(Four, 1..).unwrap_err();
    assert_eq!(error.to_string(), "dim `Four` has the static size 4, but was given size 3");
    assert_eq!(x.slice(Four, ..).sizes(), [4, 1]);
}
