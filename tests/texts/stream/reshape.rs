//! Reshapes preserve the stride of the data dimension.

use super::*;

mod known {
    typed_dims::dims! {
        pub struct A = 2;
        pub struct B = 3;
        pub struct C = 4;
        pub struct N = 2;
        pub struct AB = 6;
        pub struct BC = 12;
        pub struct NB = 6;
        pub struct One = 1;
    }
}

#[test]
fn behind_the_data_dimension() {
    // [a! (b * c)] -> [a! b c]
    let flat = numbers().into_shape_with_order((2, 12)).unwrap();
    let x = flat.at((A, BC)).stream((A, BC), A);
    let (y, class) = cost_in_place(|| -> Stream<i64, (A, B, C), A> { x.unflatten(BC, (B.of(3), C)) });
    assert_eq!((y.to_array(), class), (numbers(), CostClass::Free));
    let (back, class) = cost_in_place(|| -> Stream<i64, (A, BC), A> { y.flatten((B, C), BC) });
    assert_eq!((back.to_array(), class), (flat.clone(), CostClass::Free));
    let x = flat.at((known::A, known::BC)).stream((known::A, known::BC), known::A);
    let (y, class) = cost_in_place(|| -> Stream<i64, (known::A, known::B, known::C), known::A> {
        x.reshape((known::A, known::B, known::C))
    });
    assert_eq!((y.to_array(), class), (numbers(), CostClass::Free));
}

#[test]
fn before_the_data_dimension() {
    // [a b c!] -> [b a c!]
    let x = abc_along_c();
    let (y, class) = cost_in_place(|| -> Stream<i64, (B, A, C), C> { x.reshape((B, A, C)) });
    let expected = numbers().into_shape_with_order((3, 2, 4)).unwrap();
    assert_eq!((y.to_array(), class), (expected, CostClass::Free));
    // The axes before the data dimension can be merged, and split again.
    let y: Stream<i64, (AB, C), C> = x.reshape((AB, C));
    assert_eq!(y.sizes(), [6, 4]);
    let y: Stream<i64, (A, B, C), C> = y.reshape((A, B.of(3), C));
    assert_eq!(y.to_array(), numbers());
}

#[test]
fn flattened_with_the_axis_before_it() {
    // [a b! c] -> [(a * b)! c]
    let x = abc_along_b();
    let expected = numbers().into_shape_with_order((6, 4)).unwrap();
    let (y, class) = cost_in_place(|| -> Stream<i64, (AB, C), AB> { x.flatten((A, B), AB) });
    assert_eq!((y.to_array(), class), (expected.clone(), CostClass::Compute));
    let (y, class) = cost_in_place(|| -> Stream<i64, (AB, C), AB> { x.reshape((AB, C)) });
    assert_eq!((y.to_array(), class), (expected, CostClass::Compute));
}

#[test]
fn unflattened_into_two_the_second_is_the_data_dimension() {
    // [a (n * b)! c] -> [a n b! c]
    let array = Array3::from_shape_fn((2, 6, 4), |(a, nb, c)| (100 * a + 10 * nb + c) as i64);
    let x = array.at((A, NB, C)).stream((A, NB, C), NB);
    let expected = array.to_shape((2, 2, 3, 4)).unwrap();
    let (y, class) = cost_in_place(|| -> Stream<i64, (A, N, B, C), B> { x.unflatten(NB, (N.of(2), B)) });
    assert_eq!((y.to_array(), class), (expected.to_owned(), CostClass::Compute));
    let (y, class) = cost_in_place(|| -> Stream<i64, (A, N, B, C), B> { x.reshape((A, N.of(2), B, C)) });
    assert_eq!((y.to_array(), class), (expected.to_owned(), CostClass::Compute));
    // The last of three factors is the data dimension. `NB`, which is split, can also be a factor.
    let y: Stream<i64, (A, N, NB, One, C), One> = x.unflatten(NB, (N.of(3), NB.of(2), One));
    assert_eq!(y.sizes(), [2, 3, 2, 1, 4]);
}

#[test]
fn strides_of_static_and_other_sizes() {
    let x = numbers().into_tensor((A, B, known::C)).stream((A, B, known::C), A);
    // The axes after the data dimension are `B`, whose size is not static, and `known::C`, whose
    // size is 4 = 2 * 2.
    dims! { pub struct Two = 2; pub struct Due = 2; }
    let y: Stream<i64, (One, A, Two, B, Uno, Due), A> = x.reshape((One, A, Two, B, Uno, Due));
    assert_eq!(y.to_array().into_shape_with_order((2, 3, 4)).unwrap(), numbers());
    assert_eq!(y.sizes(), [1, 2, 2, 3, 1, 2]);
    // Axes of size 1 can share their stride with the data dimension. The first axis that has this
    // stride becomes the data dimension.
    let x = from_vec(A.of(3), vec![1, 2, 3]).stream(A, A);
    let y: Stream<i32, (One, A, Uno), A> = x.reshape((One, A, Uno));
    let y: Stream<i32, (A,), A> = y.reshape(A);
    assert_eq!(y.sizes(), [3]);
}

#[test]
fn what_does_not_lie_in_one_piece_is_copied() {
    let x = abc_along_b().slice(C, 1..3);
    let ((y, class), plan) = explain(|| cost(|| -> Stream<i64, (AB, C), AB> { x.flatten((A, B), AB) }));
    assert_eq!((plan.steps.len(), class), (1, CostClass::Compute));
    assert_eq!(y.to_array(), x.to_array().into_shape_with_order((6, 2)).unwrap());
}

#[test]
fn sizes_are_checked() {
    let x = abc_along_b();
    let error = x.try_unflatten(A, (N.of(3), AB)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "dim `A` of size 2 cannot be split into `(N = 3, AB)`: the product of the known sizes does not divide it"
    );
    assert!(x.try_flatten((A, B), AB.of(7)).is_err());
    let reshaped = |result: Result<(), DimError>| result.unwrap_err().to_string();
    assert_eq!(
        reshaped(x.try_reshape((A, N.of(2), NB, C)).map(drop)),
        "[A=2 B!=3 C=4] cannot be reshaped to [A=2 N=2 NB C=4]: the product of the known sizes does not divide its number of elements"
    );
    assert_eq!(
        reshaped(x.try_reshape((N, NB, C)).map(drop)),
        "[A=2 B!=3 C=4] cannot be reshaped to [N NB C=4]: only one size can be inferred, but more are unknown"
    );
    assert_eq!(
        reshaped(x.try_reshape((AB.of(5), C)).map(drop)),
        "[A=2 B!=3 C=4] cannot be reshaped to [AB=5 C=4]: the numbers of elements differ"
    );
    assert_eq!(
        reshaped(x.try_reshape((AB, C.of(2))).map(drop)),
        "[A=2 B!=3 C=4] cannot be reshaped to [AB C=2]: the stride of the data dimension would change"
    );
    assert_eq!(x.slice(C, ..0).reshape((AB.of(6), C)).sizes(), [6, 0]);
    assert!(x.slice(C, ..0).try_reshape((AB, C)).is_err());
}
