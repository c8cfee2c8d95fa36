//! Assignment to parts of tensors.

use typed_dims::grad::grad;
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Column;
    struct Fixed = 3;
    struct Feat;
}

type Matrix = Tensor<f32, (Row, Column)>;

fn matrix() -> Matrix {
    from_fn((Row.of(4), Column.of(3)), |(row, column)| (10 * row + column) as f32)
}

#[test]
fn assigning_to_a_part_keeps_the_rest() {
    let mut x = matrix();
    x.slice_mut(Row, 1..3).assign(from_vec(Column.of(3), vec![7.0, 8.0, 9.0]));
    x.slice_mut(Column, -1..).add_assign(100.0);
    let expected = [[0.0, 1.0, 102.0], [7.0, 8.0, 109.0], [7.0, 8.0, 109.0], [30.0, 31.0, 132.0]];
    assert_eq!((&x).order((Row, Column)), ndarray::arr2(&expected));
    // An empty part, even after the last position.
    x.slice_mut(Row, 4..).assign(0.0);
    x.slice_mut(Row, 2..2).assign(0.0);
    assert_eq!(x.order((Row, Column)), ndarray::arr2(&expected));
}

/// Elements in another order, with negative strides.
#[test]
fn a_part_that_is_not_contiguous() {
    let array = matrix().order((Column, Row)).slice_move(ndarray::s![.., ..;-1]);
    let mut x: Matrix = array.into_tensor((Column, Row));
    x.slice_mut(Row, ..1).assign(0.0);
    let found = x.order((Row, Column));
    assert_eq!(found.row(0).to_vec(), [0.0, 0.0, 0.0]);
    assert_eq!(found.row(1).to_vec(), [20.0, 21.0, 22.0]);
    assert_eq!(found.row(3).to_vec(), [0.0, 1.0, 2.0]);
}

#[test]
fn clones_keep_their_elements() {
    let mut x = matrix();
    let clone = x.clone();
    x.slice_mut(Row, 0..1).assign(5.0);
    assert_eq!(clone, matrix());
    assert_eq!(x.index(Row, 0).order(Column), ndarray::array![5.0, 5.0, 5.0]);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let mut x = matrix();
    let error = |found: Result<(), DimError>| found.unwrap_err().to_string();
    let found = error(x.try_slice_mut(Row, 2..5).map(drop));
    assert!(found.contains("dim `Row`"), "{found}");
    let two: Tensor<f32, (Row,)> = ones(Row.of(2));
    let found = error(x.slice_mut(Row, 0..3).try_assign(&two));
    assert!(found.contains("`Row`") && found.contains('3') && found.contains('2'), "{found}");
    assert!(x.try_slice_mut(Row.of(1), 0..1).is_ok());
    let found = error(x.try_slice_mut(Row.of(5), 0..1).map(drop));
    assert!(found.contains("`Row`") && found.contains('5'), "{found}");
    assert_eq!(x, matrix());
}

#[test]
#[should_panic(expected = "cannot be changed in place")]
fn a_traced_tensor_is_not_changed() {
    grad(
        |x: &Matrix| {
            let mut y = (x * 2.0).eval();
            y.slice_mut(Row, ..1).assign(0.0);
            y.sum((Row, Column))
        },
        &matrix(),
    );
}

/// If `vmap` loops, each example is a view of traced memory. A copy of it would have no gradient.
#[test]
#[should_panic(expected = "cannot be changed in place")]
fn a_traced_example_is_not_changed() {
    let doubled = |mut row: Tensor<f32, (Column,)>| {
        row.slice_mut(Column, ..1).assign(0.0);
        row * 2.0
    };
    grad(|x: &Matrix| vmap(doubled, Row)(x).sum((Row, Column)), &matrix());
}

/// An argument that lacks a mapped dim is repeated along it, and is expanded when it is modified.
#[test]
fn parts_of_a_repeated_tensor_are_separate() {
    let line = from_vec((Column.of(3), Feat.of(3)), (0..9u8).map(f32::from).collect());
    let found = batched((Row, Column), (matrix(), line), |(x, mut line)| {
        line.slice_mut(Feat, 1..2).add_assign(x);
        line
    });
    let expected = ndarray::Array3::from_shape_fn((4, 3, 3), |(row, column, at)| {
        (3 * column + at) as f32 + if at == 1 { (10 * row + column) as f32 } else { 0.0 }
    });
    assert_eq!(found.order((Row, Column, Feat)), expected);
}

#[test]
#[should_panic(expected = "no gradient can be taken through `assign`")]
fn a_traced_value_is_not_assigned() {
    grad(
        |x: &Matrix| {
            let mut y = matrix();
            y.slice_mut(Row, ..1).assign(x.index(Row, 0));
            (y * x).sum((Row, Column))
        },
        &matrix(),
    );
}

/// A tensor with a static size along one dim can be sliced along its other dims.
#[test]
fn next_to_a_static_size() {
    let mut x: Tensor<i32, (Row, Fixed)> = zeros((Row.of(2), Fixed));
    x.slice_mut(Row, 1..).assign(Fixed.cast::<i32>());
    assert_eq!(x.order((Row, Fixed)), ndarray::array![[0, 0, 0], [0, 1, 2]]);
}
