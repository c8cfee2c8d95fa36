//! Assignment to bound places, scatters, and the assignment operators of owned tensors.

use crate::reference::input::{Case, Random, cases, filled_cases};
use crate::reference::{Place, Reference, positions, union};
use crate::{A, B, C, bound, inputs, properties};
use ndarray::{Array2, Axis, Ix1, Ix2, Slice};
use typed_dims::prelude::*;

/// `out[index(at)] = f(out[index(at)], value(at))` for each position in order.
fn scatter(
    out: &mut Array2<i32>,
    dims: &[(&'static str, usize)],
    index: impl Fn(&Place) -> [usize; 2],
    value: impl Fn(&Place) -> i32,
    f: fn(i32, i32) -> i32,
) {
    for at in positions(dims) {
        let place = &mut out[index(&at)];
        *place = f(*place, value(&at));
    }
}

/// Assignments through computed indices. An index can occur several times.
fn scatters(case: &Case, which: usize) {
    let mut random = case.random();
    inputs!(case, random, i32; v[B C], w[C] => refs);
    let (rows, columns) = (case.size("A"), case.size("D"));
    let ids = case.buffer::<usize>(&mut random, &["B"], |r| r.below(rows));
    let more = case.buffer::<u8>(&mut random, &["C"], |r| r.below(columns) as u8);
    let (ri, rm) = (Reference::bind(&ids.dynamic(), &["B"]), Reference::bind(&more.dynamic(), &["C"]));
    let before = Array2::from_shape_simple_fn((rows, columns), || random.small());
    let (mut expected, mut out) = (before.clone(), before);
    let dims = union(&refs[0].dims, &refs[1].dims);
    let f = [
        |_, b| b,
        i32::wrapping_add,
        i32::wrapping_sub,
        i32::wrapping_mul,
        |a: i32, b| a.max(b),
        |a: i32, b| a.min(b),
    ];
    let value = |at: &Place| refs[0].get(at).wrapping_sub(refs[1].get(at));
    scatter(&mut expected, &dims, |at| [ri.get(at), rm.get(at) as usize], value, f[which % 6]);
    let (iv, mv, vv, wv) = (ids.view::<Ix1>(), more.view::<Ix1>(), v.view::<Ix2>(), w.view::<Ix1>());
    let value = vv.at((B, C)) - wv.at(C);
    let place = out.at_mut((iv.at(B), mv.at(C)));
    match which % 6 {
        0 => place.assign(value),
        1 => place.add_assign(value),
        2 => place.sub_assign(value),
        3 => place.mul_assign(value),
        4 => place.max_assign(value),
        _ => place.min_assign(value),
    }
    assert_eq!(out, expected);
}

/// Assigns to strided, reversed, affine and diagonal views, and to overlapping windows.
fn places(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; v[B], w[A] => refs);
    let (rows, columns) = (case.size("A"), case.size("B"));
    let [rv, rw] = &refs;
    let start = Array2::from_shape_simple_fn((2 * rows + 1, columns), || random.small());
    let mut out = start.clone();
    let mut odd = out.slice_axis_mut(Axis(0), Slice::new(1, None, -2));
    odd.at_mut((A, B)).assign(bound!(v[B]));
    let mut expected = start.clone();
    for ((i, j), x) in expected.indexed_iter_mut() {
        if i % 2 == 0 && i > 0 {
            *x = rv.data[j];
        }
    }
    assert_eq!(out, expected);
    let (mut out, mut expected) = (start.clone(), start.clone());
    dims!(i = rows, j = columns);
    let (wv, last) = (w.view::<Ix1>(), columns as isize - 1);
    out.at_mut((2 * i + 1, last - j)).add_assign(wv.at(i) + j.cast::<i32>());
    for i in 0..rows {
        for j in 0..columns {
            let x = &mut expected[[2 * i + 1, columns - 1 - j]];
            *x = x.wrapping_add(rw.data[i].wrapping_add(j as i32));
        }
    }
    assert_eq!(out, expected);
    let mut square = Array2::from_elem((rows, rows), 1);
    square.at_mut((i, i)).mul_assign(3);
    assert_eq!(square, Array2::from_shape_fn((rows, rows), |(i, j)| if i == j { 3 } else { 1 }));
    // Overlapping windows: each element is assigned once for each window that contains it.
    let mut counts = ndarray::Array1::<i32>::zeros(rows + 2);
    dims!(k = 3);
    counts.at_mut(i + k).add_assign(1);
    assert_eq!(
        counts.to_vec(),
        (0..rows + 2)
            .map(|at| (0..3).filter(|k| at >= *k && at - k < rows).count() as i32)
            .collect::<Vec<_>>()
    );
    // One row, and a range of columns, which stays positional.
    let (mut out, mut expected) = (start.clone(), start);
    out.at_mut((-1, 0..columns)).assign(5);
    expected.row_mut(2 * rows).fill(5);
    assert_eq!(out, expected);
}

fn operators(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i64; x[A B C], y[B] => refs);
    let [rx, ry] = &refs;
    let order: [&[&str]; 3] = [&["A"], &["B"], &["C"]];
    let mut t = bound!(x[A B C]).eval();
    t += bound!(y[B]);
    t *= 3;
    t -= bound!(y[B]) * 2;
    let expected = rx.zip(ry, |x, y| x.wrapping_add(y).wrapping_mul(3).wrapping_sub(y.wrapping_mul(2)));
    assert_eq!((&t).order((A, B, C)).into_dyn(), expected.order(&order));
    t /= 7;
    t %= 5;
    let expected = expected.map(|x| x / 7 % 5);
    assert_eq!((&t).order((A, B, C)).into_dyn(), expected.order(&order));
    t.assign(bound!(y[B]));
    assert_eq!((&t).order((A, B, C)).into_dyn(), rx.zip(ry, |_, y| y).order(&order));
    t.as_place().max_assign(0);
    assert_eq!(t.order((A, B, C)).into_dyn(), rx.zip(ry, |_, y| y.max(0)).order(&order));
}

fn outside(case: &Case) {
    let mut random = Random(case.seed);
    let n = case.size("A");
    let ids: Vec<isize> = (0..case.size("B")).map(|_| random.below(n + 2) as isize - 1).collect();
    let mut out = vec![0; n];
    let result = out.try_at_mut(ids.at(B)).and_then(|place| place.try_add_assign(1));
    let first = ids.iter().copied().find(|&id| id < 0 || id >= n as isize);
    match (result, first) {
        (Ok(()), None) => {
            let counts: Vec<i32> =
                (0..n).map(|at| ids.iter().filter(|&&id| id == at as isize).count() as i32).collect();
            assert_eq!(out, counts);
        }
        (Err(DimError::OutOfBounds { index, size, .. }), Some(first)) => {
            assert_eq!((index, size), (first as i128, n))
        }
        (result, first) => panic!("{result:?}, though the first index outside is {first:?}"),
    }
}

properties! {
    scattered_assignments 120: |case in filled_cases(4), which| scatters(&case, which);
    assignments_to_views 60: |case in cases(4), _which| places(&case);
    assignment_operators 40: |case in cases(4), _which| operators(&case);
    places_outside 80: |case in cases(6), _which| outside(&case);
}

#[test]
fn float_scatters_accumulate_in_order() {
    let ids = [1u8, 1, 0, 1];
    let mut out = [0.5f32, 0.0];
    dims!(i);
    out.at_mut(ids.at(i)).add_assign([1.0f32, 2.0, 4.0, 8.0].at(i));
    assert_eq!(out, [4.5, 11.0]);
    out.at_mut(ids.at(i)).assign([1.0f32, 2.0, 4.0, 8.0].at(i));
    assert_eq!(out, [4.0, 8.0]);
    out.at_mut(ids.at(i)).div_assign(2.0);
    assert_eq!(out, [2.0, 1.0]);
}
