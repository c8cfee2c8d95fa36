//! Matrix products, with the dispatcher and with each of its routes.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use num_complex::{Complex32, Complex64};
use typed_dims_kernels::gemm::dispatch::{Route, multiply_by, route_of};
use typed_dims_kernels::gemm::{Matrix, Product, StridedBatch, multiply};
use typed_dims_kernels::scalar::Num;

/// A product of floats, complex numbers or integers.
pub fn products(choices: &mut Choices<'_>) {
    match choices.below(8) {
        0..3 => product::<f32>(choices),
        3..5 => product::<f64>(choices),
        5 => product::<Complex32>(choices),
        6 => product::<Complex64>(choices),
        _ => match choices.below(3) {
            0 => product::<i32>(choices),
            1 => product::<i64>(choices),
            _ => product::<u64>(choices),
        },
    }
}

/// The classes (see `sizes`) of the numbers of rows, of terms of a sum, and of columns. Each route
/// gets products, long sides are combined with short ones, and no case takes long.
const CLASSES: [[usize; 3]; 16] = [
    [0, 1, 1],
    [1, 0, 1],
    [1, 1, 0],
    [0, 3, 2],
    [1, 1, 1],
    [1, 2, 1],
    [2, 1, 2],
    [2, 2, 1],
    [2, 2, 2],
    [1, 2, 2],
    [1, 3, 2],
    [1, 2, 3],
    [2, 3, 1],
    [3, 1, 2],
    [3, 2, 1],
    [2, 3, 2],
];

/// The numbers of rows, of terms of a sum, and of columns.
fn sizes(choices: &mut Choices<'_>) -> [usize; 3] {
    choices.one_of(&CLASSES).map(|class| match class {
        0 => choices.within(0, 2),
        1 => choices.within(1, 20),
        2 => choices.within(8, 70),
        _ => choices.within(100, 300),
    })
}

/// A matrix, mostly contiguous along one of its axes.
fn matrix<T: Value>(choices: &mut Choices<'_>, sizes: [usize; 2], broadcasts: bool) -> Placed<T> {
    let order = choices.one_of(&[[0, 1], [1, 0]]);
    let broadcasts = broadcasts && choices.once_in(4);
    Placed::in_order(choices, &sizes, &order, broadcasts)
}

fn product<T: Num + Value>(choices: &mut Choices<'_>) {
    let [m, k, n] = sizes(choices);
    let a = matrix::<T>(choices, [m, k], true);
    let b = matrix::<T>(choices, [k, n], true);
    let before = matrix::<T>(choices, [m, n], false);
    let accumulate = choices.once_in(3);
    let before = if accumulate { before } else { before.poisoned() };
    let mut expected = before.clone();
    for i in 0..m {
        for j in 0..n {
            let start = if accumulate { before.at(&[i, j]) } else { T::ZERO };
            // Sums of small integers are exact in any order.
            let sum = (0..k).fold(start, |sum, p| sum.add(a.at(&[i, p]).mul(b.at(&[p, j]))));
            expected.set(&[i, j], sum);
        }
    }
    let matrix =
        |placed: &Placed<T>| Matrix { start: placed.start(), row: placed.strides[0], col: placed.strides[1] };
    let (left, right) = (matrix(&a), matrix(&b));
    let run = |run: &dyn Fn(&Product<T>) -> bool, name: &dyn std::fmt::Debug| {
        let mut c = before.clone();
        let (c_row, c_col) = (c.strides[0], c.strides[1]);
        let product = Product { m, k, n, a: left, b: right, c: c.start_mut(), c_row, c_col, accumulate };
        let ran = run(&product);
        let case =
            (name, std::any::type_name::<T>(), [m, k, n], [&a.strides, &b.strides, &c.strides], accumulate);
        c.assert_same(if ran { &expected } else { &before }, &case);
        (ran, route_of(&product))
    };
    // SAFETY: the matrices are within memory that nothing else accesses; the elements of the result
    // are distinct.
    let dispatched = |product: &Product<T>| unsafe {
        multiply(product);
        true
    };
    let (_, chosen) = run(&dispatched, &"dispatched");
    for route in Route::ALL {
        // SAFETY: as for `dispatched`.
        let (ran, _) = run(&|product| unsafe { multiply_by(route, product) }, &route);
        assert!(
            ran || route != chosen,
            "the dispatcher chooses {route:?}, which cannot compute {m}x{k} by {k}x{n}"
        );
    }
}

/// Products of equal sizes, at equal distances in memory. The results are strided or contiguous.
pub fn batches(choices: &mut Choices<'_>) {
    if choices.once_in(2) { batch::<f32>(choices) } else { batch::<i64>(choices) }
}

fn batch<T: Num + Value>(choices: &mut Choices<'_>) {
    let count = choices.within(0, 5);
    let [m, k, n] = [(); 3].map(|()| choices.within(0, 24));
    let a = Placed::<T>::new(choices, &[count, m, k], true);
    let b = Placed::<T>::new(choices, &[count, k, n], true);
    let mut c = Placed::<T>::new(choices, &[count, m, n], false).poisoned();
    let strides =
        |placed: &Placed<T>| <[isize; 3]>::try_from(&*placed.strides).expect("there are three axes");
    let batch = |c| StridedBatch { count, m, k, n, a: strides(&a), b: strides(&b), c };
    let sums: Vec<T> = positions(&[count, m, n])
        .map(|at| {
            let product = |p| a.at(&[at[0], at[1], p]).mul(b.at(&[at[0], p, at[2]]));
            (0..k).map(product).fold(T::ZERO, T::add)
        })
        .collect();
    let mut expected = c.clone();
    positions(&[count, m, n]).zip(&sums).for_each(|(at, &sum)| expected.set(&at, sum));
    let case = ([count, m, k, n], [&a.strides, &b.strides, &expected.strides]);
    let strides_of_c = strides(&c);
    // SAFETY: the sizes and strides are those of `a`, `b` and `c`; elements of `c` are distinct.
    unsafe {
        let c = c.elements_mut().as_mut_ptr();
        batch(strides_of_c).multiply(None, a.elements(), b.elements(), c);
    }
    c.assert_same(&expected, &case);
    let mut new = vec![T::ZERO; sums.len()];
    let dense = batch([(m * n) as isize, n as isize, 1]);
    // SAFETY: the sizes and strides are those of `a` and `b`; the results are contiguous.
    unsafe { dense.multiply(None, a.elements(), b.elements(), new.as_mut_ptr()) };
    assert_same(&new, &sums, &case);
}
