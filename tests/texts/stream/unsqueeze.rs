//! A new axis can go anywhere, and is never the data dimension.

use super::*;

#[test]
fn a_new_axis_anywhere() {
    // [a! b].unsqueeze(dim=0) -> [1 a! b]
    let x = from_vec((A.of(2), B.of(3)), vec![1, 2, 3, 4, 5, 6]).stream((A, B), A);
    let (y, class) = cost_in_place(|| -> Stream<i32, (One, A, B), A> { x.new_axis_before(A, One) });
    assert_eq!((y.sizes(), class), (vec![1, 2, 3], CostClass::Free));
    let between: Stream<i32, (A, One, B), A> = x.new_axis_after(A, One);
    assert_eq!(between.sizes(), [2, 1, 3]);
    let behind: Stream<i32, (A, B, One), A> = x.new_axis_after(B, One);
    assert_eq!(behind.to_array().into_shape_with_order((2, 3)).unwrap(), x.to_array());
}

#[test]
fn local_dims_and_several() {
    dims!(t, one, uno = 1);
    let x = [1, 2, 3].at(t).stream(t, t);
    let y = x.new_axis_before(t, one).new_axis_after(t, uno);
    assert_eq!(y.shape().to_string(), "[one=1 t!=3 uno=1]");
    assert_eq!(one.size(), 1);
    dims!(three = 3);
    let error = x.try_new_axis_before(t, three).unwrap_err();
    assert!(error.to_string().starts_with("dim `three` has size 3"), "{error}");
}
