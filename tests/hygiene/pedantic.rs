//! Expansions of macros give no warnings, even with clippy's pedantic lints.

#![deny(warnings, clippy::pedantic, unused, nonstandard_style, rust_2018_idioms)]

use ndarray::{array, concatenate};
use std::ops::Add;
use typed_dims::prelude::*;
use typed_dims::types::scalar::{Element, Num};

fn product<T: Num>(a: &Array2<T>, b: &Array2<T>) -> Array2<T> {
    tensor!([i, j] => sum[k](a[i, k] * b[k, j]))
}

fn shifted<T: Num + Add<Output = T>>(a: &Array1<T>, by: T) -> Result<Array1<T>, DimError> {
    try_tensor!([i] => a[i] + by)
}

fn first<T: Element>(rows: &[Vec<T>], fallback: T, len: usize) -> Array1<T> {
    let row = &rows[0];
    tensor!([i in 0..len] => if i < row.len() { row[i] } else { fallback })
}

macro_rules! pairwise {
    ($a:expr, $b:expr, $op:tt) => {
        tensor!([i, j] => $a[i] $op $b[j])
    };
}

macro_rules! summed {
    ($out:ident <- $a:ident [$($index:ident),*]) => {
        einsum!($a[$($index),*] * $a[$($index),*] => [$out])
    };
}

#[test]
fn generic_functions_and_macros() {
    let (a, b) = (array![[1, 2], [3, 4]], array![[0, 1], [1, 0]]);
    assert_eq!(product(&a, &b), a.dot(&b));
    assert_eq!(shifted(&array![1, 2], 3), Ok(array![4, 5]));
    assert_eq!(first(&[vec![1u8, 2]], 9, 4), array![1, 2, 9, 9]);
    let (x, y) = (array![1, 2], array![3, 4, 5]);
    assert_eq!(pairwise!(x, y, *), array![[3, 4, 5], [6, 8, 10]]);
    assert_eq!(pairwise!(&x, y, +), array![[4, 5, 6], [5, 6, 7]]);
    assert_eq!(summed!(i <- a[i, j]), array![5, 25]);
}

#[test]
fn closures_and_nested_calls() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    let rows = |scale: f64| tensor!([i] => sum[j](a[i, j] * scale));
    assert_eq!(rows(2.0), array![6.0, 14.0]);
    let nested = tensor!([i] => (tensor!([i] => sum[j](a[i, j])))[i] + 1.0);
    assert_eq!(nested, array![4.0, 8.0]);
    let both: Vec<_> = [1.0, 2.0].iter().map(|&s| tensor!([] => max[i, j](a[i, j] * s))).collect();
    assert_eq!(both, [4.0, 8.0]);
    let stacked = concatenate![ndarray::Axis(0), tensor!([i] => a[i, 0]), tensor!([i] => a[i, 1])];
    assert_eq!(stacked, array![1.0, 3.0, 2.0, 4.0]);
}

#[test]
fn names_of_all_sorts() {
    let a = array![[1, 2], [3, 4]];
    let (operand0, value, i) = (10, 20, 30);
    assert_eq!(tensor!([r#type, Größe] => a[r#type, Größe] + operand0), &a + 10);
    assert_eq!(tensor!([K, V] => a[K, V] + value + i), &a + 50);
    let pair = (array![1, 2], (array![3, 4],));
    assert_eq!(tensor!([i] => pair.0[i] * pair.1.0[i]), array![3, 8]);
    // A loop shadows a variable of the same name, but only within the macro.
    assert_eq!(tensor!([i] => a[i, 0] + operand0), array![11, 13]);
    assert_eq!(i, 30);
    let out = tensor!([i] => {
        let x = a[i, 0];
        let two = 2;
        let y = if x > two { let two = x * two; two } else { x };
        y + two
    });
    assert_eq!(out, array![3, 8]);
}

fn early(a: &Array1<f64>, scale: Option<f64>) -> Option<Array1<f64>> {
    Some(tensor!([i] => a[i] * scale?))
}

#[test]
fn a_question_mark_is_the_functions() {
    assert_eq!(early(&array![1.0], None), None);
    assert_eq!(early(&array![1.0], Some(2.0)), Some(array![2.0]));
}
