//! Concatenation, stacking and repetition.

use super::*;
use typed_dims::ndarray::{Axis, array, concatenate, stack};

#[test]
fn along_the_data_dimension() {
    // [a! b c].repeat(n, dim=0) -> [(a * n)! b c]
    let (x, array) = (abc_along_a(), numbers());
    let (y, class) = cost(|| -> Stream<i64, (A, B, C), A> { x.repeat(A, 3) });
    let three = concatenate![Axis(0), array, array, array];
    assert_eq!((y.to_array(), class), (three, CostClass::Compute));
    let twice = &x * 2;
    let (y, class) = cost(|| -> Stream<i64, (A, B, C), A> { Stream::concat(A, [&x, &twice]) });
    assert_eq!((y.to_array(), class), (concatenate![Axis(0), array, &array * 2], CostClass::Compute));
}

#[test]
fn along_another_dimension_it_is_free() {
    // [a! b c].repeat(n, dim=1) -> [a! (b * n) c]
    let (x, array) = (abc_along_a(), numbers());
    let (y, class) = cost(|| -> Stream<i64, (A, B, C), A> { x.repeat(B, 2) });
    assert_eq!((y.to_array(), class), (concatenate![Axis(1), array, array], CostClass::Free));
    let part = x.slice(C, 1..3);
    let (y, class) = cost(|| -> Stream<i64, (A, B, C), A> { Stream::concat(C, [&x, &part]) });
    let short = array.slice_axis(Axis(2), (1..3).into());
    assert_eq!((y.to_array(), class), (concatenate![Axis(2), array, short], CostClass::Free));
}

#[test]
fn stacking_is_a_new_axis_and_a_concatenation() {
    let (x, array) = (abc_along_a(), numbers());
    let (x2, x3) = (&x * 2, &x * 3);
    let parts = [&x, &x2, &x3];
    let (y, class) = cost(|| -> Stream<i64, (N, A, B, C), A> { Stream::stack_before(A, N, parts) });
    let (twice, thrice) = (&array * 2, &array * 3);
    let views = [array.view(), twice.view(), thrice.view()];
    assert_eq!((y.to_array(), class), (stack(Axis(0), &views).unwrap(), CostClass::Free));
    let y: Stream<i64, (A, B, C, N), A> = Stream::stack_after(C, N, parts);
    assert_eq!(y.to_array(), stack(Axis(3), &views).unwrap());
    // The same stack, built as the text defines it.
    let single = parts.map(|part| part.new_axis_after(B, N));
    let y: Stream<i64, (A, B, N, C), A> = Stream::concat(N, &single);
    assert_eq!(y.to_array(), Stream::stack_before(C, N, parts).to_array());
}

#[test]
fn nothing_is_repeated_often() {
    let x = abc_along_a().slice(B, ..0);
    let times = 1 << (usize::BITS - 8);
    assert_eq!(x.repeat(C, times).sizes(), [2, 0, 4 * times]);
    assert_eq!(x.repeat(B, times).sizes(), [2, 0, 4]);
}

#[test]
fn sizes_are_checked() {
    dims! { pub struct Three = 3; }
    let x = abc_along_a();
    let short = x.slice(B, 1..);
    let error = Stream::try_concat(C, [&x, &x, &short]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "parts of a concatenation along `C` differ: [A!=2 B=3 C=4] and [A!=2 B=2 C=4]"
    );
    let error = Stream::try_stack_before(A, N, [&x, &short]).unwrap_err();
    assert_eq!(error.to_string(), "parts of a stack along `N` differ: [A!=2 B=3 C=4] and [A!=2 B=2 C=4]");
    assert_eq!(Stream::stack_before(A, Three, [&x, &x, &x]).sizes(), [3, 2, 3, 4]);
    assert!(Stream::try_stack_before(A, Three, [&x, &x]).is_err());
    assert!(Stream::<i64, (A, B), B>::try_concat(A, []).is_err());
    assert!(Stream::<i64, (A, B), B>::try_stack_after(A, N, []).is_err());
    let three = from_vec(Three, vec![1, 2, 3]).stream(Three, Three);
    let error = three.try_repeat(Three, 2).unwrap_err();
    assert_eq!(error.to_string(), "dim `Three` has the static size 3, but was given size 6");
    assert_eq!(three.repeat(Three, 1).to_array(), array![1, 2, 3]);
    assert_eq!(x.repeat(C, 0).sizes(), [2, 3, 0]);
    let error = x.try_repeat(C, usize::MAX).unwrap_err();
    assert!(error.to_string().contains("does not fit into memory"), "{error}");
    let error = x.try_repeat(C, usize::MAX / 64).unwrap_err();
    assert!(error.to_string().contains("does not fit into memory"), "{error}");
}
