//! The data dimension: the sections of Vollo's text, each example of it among the tests. What must not compile is in
//! `ui-tests/fail/streams`.

mod broadcasting;
mod concatenation;
mod contraction;
mod ledger;
mod model;
mod pointwise;
mod properties;
mod reduction;
mod reshape;
mod slicing;
mod unsqueeze;

use typed_dims::ndarray::Array3;
use typed_dims::prelude::*;

// The extents a, b and c of the text, and those that its examples make of them.
dims! {
    /// Extent a.
    pub struct A;
    /// Extent b.
    pub struct B;
    /// Extent c.
    pub struct C;
    /// Extent n.
    pub struct N;
    /// Extent 1.
    pub struct One = 1;
    /// Another extent 1.
    pub struct Uno = 1;
    /// Contracted.
    pub struct J;
    /// Of a constant.
    pub struct I;
    /// Of a stream.
    pub struct K;
    /// A product of extents.
    pub struct AB;
    /// A product of extents.
    pub struct BC;
    /// A product of extents.
    pub struct NB;
}

/// A 2 x 3 x 4 array of numbers that are all different.
fn numbers() -> Array3<i64> {
    Array3::from_shape_fn((2, 3, 4), |(a, b, c)| (100 * a + 10 * b + c) as i64)
}

/// `[a b! c]`
fn abc_along_b() -> Stream<i64, (A, B, C), B> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), B)
}

/// `[a b c!]`
fn abc_along_c() -> Stream<i64, (A, B, C), C> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), C)
}

/// `[a! b c]`
fn abc_along_a() -> Stream<i64, (A, B, C), A> {
    numbers().into_tensor((A, B, C)).stream((A, B, C), A)
}

/// What an operation costs.
fn cost<T>(f: impl FnOnce() -> T) -> (T, CostClass) {
    let (out, ledger) = typed_dims::prelude::ledger(f);
    let [entry] = &ledger.entries[..] else { panic!("one operation was expected:\n{ledger}") };
    (out, entry.cost)
}

/// What an operation costs that moves no elements.
fn cost_in_place<T>(f: impl FnOnce() -> T) -> (T, CostClass) {
    let (out, plan) = explain(|| cost(f));
    assert!(plan.steps.is_empty(), "{plan}");
    out
}
