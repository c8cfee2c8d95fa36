//! Computed indices: affine views, gathers, index expressions, and the excluded branch of a
//! `select`.

use crate::reference::input::{Case, cases, filled_cases};
use crate::reference::{Reference, index_of};
use crate::{A, B, C, D, inputs, properties};
use ndarray::{Ix1, Ix2, Ix3};
use typed_dims::prelude::*;

/// The elements `x[index(at)]`, or an error if an index is out of range.
fn read(
    x: &Reference<i32>,
    dims: &[(&'static str, usize)],
    index: impl Fn(&dyn Fn(&str) -> isize) -> Vec<isize>,
) -> Result<Reference<i32>, ()> {
    Reference::try_build(dims, |at| {
        let values = index(&|name| index_of(at, name) as isize);
        let place = x.dims.iter().zip(values).map(|(&(name, size), value)| match usize::try_from(value) {
            Ok(index) if index < size => Ok((name, index)),
            _ => Err(()),
        });
        Ok(x.get(&place.collect::<Result<_, _>>()?))
    })
}

macro_rules! assert_read {
    ($tensor:expr, [$($dim:ident)*], $expected:expr) => {
        match ($tensor, &$expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(found.into_dyn(), expected.order(&[$(&[stringify!($dim)]),*]));
            }
            (Err(DimError::OutOfBounds { what, .. }), Err(())) => assert!(what.contains("axis"), "{what}"),
            (found, expected) => panic!("{found:?} instead of {expected:?}"),
        }
    };
}

/// `offset + p i + q j` with any signs: a view if all its values are within the axis, and otherwise
/// checked at run time.
fn affine(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A D] => refs);
    let (p, q) = (random.small() as isize, random.small() as isize);
    let (ni, nj, n) = (case.size("B"), case.size("C"), case.size("A") as isize);
    let reach = |c: isize, size: usize| c * (size as isize - 1).max(0);
    let (least, most) =
        (reach(p, ni).min(0) + reach(q, nj).min(0), reach(p, ni).max(0) + reach(q, nj).max(0));
    // The offset moves one end of the range to an end of the axis, or one beyond it.
    let offset = [-least, n - 1 - most, -least - 1, n - most][random.below(4)];
    dims!(i = ni, j = nj, k = case.size("D"));
    let dims = [("i", ni), ("j", nj), ("k", case.size("D"))];
    let expected = read(&refs[0], &dims, |at| vec![offset + p * at("i") + q * at("j"), at("k")]);
    assert_read!(x.view::<Ix2>().at((p * i + j * q + offset, k)).try_order((k, j, i)), [k j i], expected);
    assert_read!(x.view::<Ix2>().at((offset - (-p * i) - j * (-q), k)).try_order((k, j, i)), [k j i], expected);
    // The same dim for both axes.
    inputs!(case, random, i32; y[A A] => _refs);
    let expected = Reference::build(&[("m", case.size("A"))], |at| {
        let m = at[0].1;
        y.dynamic()[[m, case.size("A") - 1 - m]]
    });
    dims!(m = case.size("A"));
    assert_eq!(y.view::<Ix2>().at((m, n - 1 - m)).order(m).into_dyn(), expected.order(&[&["m"]]));
}

/// A dim without a size gets the greatest size for which the index stays within the axis. If that
/// size would be negative, binding is an error.
fn inferred(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A], w[B] => refs);
    let (n, taps) = (case.size("A"), case.size("B"));
    let step = 1 + random.below(3);
    let (xv, wv) = (x.view::<Ix1>(), w.view::<Ix1>());
    dims!(i, t);
    let w = wv.at(t);
    let places = if taps == 0 { 0 } else { (n as isize - taps as isize).div_euclid(step as isize) + 1 };
    let Ok(places) = usize::try_from(places) else {
        assert!(matches!(xv.try_at(step as isize * i + t), Err(DimError::OutOfBounds { .. })));
        return;
    };
    let found = (xv.at(step as isize * i + t) * w).sum(t).order(i);
    assert_eq!(i.size(), places);
    let [rx, rw] = &refs;
    let expected: Vec<i32> = (0..places)
        .map(|i| {
            (0..taps).fold(0i32, |sum, t| sum.wrapping_add(rx.data[step * i + t].wrapping_mul(rw.data[t])))
        })
        .collect();
    assert_eq!(found.to_vec(), expected);
}

/// `x[ids]` for every index type. Sometimes an index is out of range.
macro_rules! gathers {
    ($($name:ident $t:ty;)*) => {$(
        fn $name(case: &Case) {
            let mut random = case.random();
            inputs!(case, random, i32; x[A D] => refs);
            let n = case.size("A");
            let odd = random.below(4) == 0;
            let ids = case.buffer::<$t>(&mut random, &["B", "C"], |r| match r.below(8) {
                0 if odd => n as $t,
                1 if odd => (0 as $t).wrapping_sub(1),
                _ => r.below(n) as $t,
            });
            let r = Reference::bind(&ids.dynamic(), &["B", "C"]);
            let dims = [("B", case.size("B")), ("C", case.size("C")), ("D", case.size("D"))];
            let expected = read(&refs[0], &dims, |at| {
                let value = r.get(&vec![("B", at("B") as usize), ("C", at("C") as usize)]);
                vec![isize::try_from(value).unwrap_or(isize::MAX), at("D")]
            });
            let (xv, iv) = (x.view::<Ix2>(), ids.view::<Ix2>());
            assert_read!(xv.at((iv.at((B, C)), D)).try_order((C, D, B)), [C D B], expected);
        }
    )*};
}

gathers! {
    gather_i8 i8; gather_i16 i16; gather_i32 i32; gather_i64 i64; gather_isize isize;
    gather_u8 u8; gather_u16 u16; gather_u32 u32; gather_u64 u64; gather_usize usize;
}

/// Gathers in the order of the dims, summed over a dim of the index, and with the same index for
/// both axes.
fn gathered(case: &Case) {
    let mut random = case.random();
    let n = case.size("A");
    inputs!(case, random, i32; x[A D], square[A A] => refs);
    let ids = case.buffer(&mut random, &["B", "C"], |r| r.below(n) as i32);
    let r = Reference::bind(&ids.dynamic(), &["B", "C"]);
    let dims = [("B", case.size("B")), ("C", case.size("C")), ("D", case.size("D"))];
    let id =
        |at: &dyn Fn(&str) -> isize| r.get(&vec![("B", at("B") as usize), ("C", at("C") as usize)]) as isize;
    let expected = read(&refs[0], &dims, |at| vec![id(at), at("D")]);
    let (xv, ids) = (x.view::<Ix2>(), ids.view::<Ix2>());
    let ids = ids.at((B, C));
    assert_read!(xv.at((&ids, D)).try_order((B, C, D)), [B C D], expected);
    let sum = |line: Vec<i32>| line.into_iter().fold(0i32, i32::wrapping_add);
    let summed = expected.map(|t| t.reduce(&["C"], sum));
    assert_read!(xv.at((&ids, D)).try_sum(C).map(|t| t.order((D, B))), [D B], summed);
    let square = square.dynamic();
    let of_square =
        Reference { dims: vec![("row", n), ("column", n)], data: square.iter().copied().collect() };
    let expected = read(&of_square, &dims[..2], |at| vec![id(at), id(at)]);
    let square = square.into_dimensionality::<Ix2>().expect("the array has two axes");
    assert_read!(square.at((&ids, &ids)).try_order((B, C)), [B C], expected);
}

/// Index expressions that are not affine: remainders, bounds, nested gathers and sums.
fn expressions(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B] => refs);
    let (n, m) = (case.size("A"), case.size("B"));
    let shift = random.small() as isize;
    dims!(i = n, j = m);
    let (rows, columns) = (n as isize, m as isize);
    let dims = [("i", n), ("j", m)];
    let xv = x.view::<Ix2>();
    let expected = read(&refs[0], &dims, |at| vec![(at("i") + 1) % rows.max(1), at("j")]);
    assert_read!(xv.at(((i + 1) % rows.max(1), j)).try_order((j, i)), [j i], expected);
    let clamped = |v: isize, n: isize| v.max(0).min(n - 1);
    let expected =
        read(&refs[0], &dims, |at| vec![clamped(at("i") + shift, rows), clamped(at("j") - at("i"), columns)]);
    let row = (i + shift).maximum(0).minimum(rows - 1);
    let column = (j - i).maximum(0).minimum(columns - 1);
    assert_read!(xv.at((row, column)).try_order((i, j)), [i j], expected);
    // An index that is gathered from another array at a gathered index.
    let ids = case.buffer::<u16>(&mut random, &["A"], |r| r.below(n) as u16);
    let r = Reference::bind(&ids.dynamic(), &["i"]);
    let id = |k: isize| r.get(&vec![("i", k as usize)]) as isize;
    let iv = ids.view::<Ix1>();
    let expected = read(&refs[0], &dims, |at| vec![id(id(at("i"))), at("j")]);
    assert_read!(xv.at((iv.at(iv.at(i)), j)).try_order((i, j)), [i j], expected);
    // The inverse of a permutation p by comparison: sum over i of [p(i) = k] i.
    dims!(k = n);
    let inverse = (((i + shift.rem_euclid(rows.max(1))) % rows.max(1)).eq(k).cast::<isize>() * i).sum(i);
    let expected =
        read(&refs[0], &[("k", n), ("j", m)], |at| vec![(at("k") - shift).rem_euclid(rows.max(1)), at("j")]);
    assert_read!(xv.at((inverse, j)).try_order((k, j)), [k j], expected);
}

/// Elements that are not selected are not read, in either branch, nested, and inside a reduction.
fn selected(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A] => refs);
    let [rx] = &refs;
    let n = case.size("A") as isize;
    let (low, size) = (random.small() as isize - 2, 2 * case.size("A") + random.below(4));
    dims!(i = size);
    let xv = x.view::<Ix1>();
    let at = |i: usize, offset: isize| {
        let index = i as isize + offset;
        (index >= 0 && index < n).then(|| rx.data[index as usize])
    };
    let inside = |offset: isize| (i + offset).ge(0) & (i + offset).lt(n);
    let dims = [("i", size)];
    let expected = Reference::build(&dims, |p| at(p[0].1, low).unwrap_or(-5));
    let order: &[&[&str]] = &[&["i"]];
    assert_eq!(select(inside(low), xv.at(i + low), -5).order(i).into_dyn(), expected.order(order));
    assert_eq!(select(!inside(low), -5, xv.at(i + low)).order(i).into_dyn(), expected.order(order));
    // Nested: the first of two positions that is in range.
    let expected = Reference::build(&dims, |p| at(p[0].1, low).or(at(p[0].1, -low)).unwrap_or(7));
    let second = select(inside(-low), xv.at(i - low), 7);
    assert_eq!(select(inside(low), xv.at(i + low), &second).order(i).into_dyn(), expected.order(order));
    let total = select(inside(low), xv.at(i + low), second).sum(i).order(());
    assert_eq!(total, expected.data.iter().fold(0i32, |a, &b| a.wrapping_add(b)));
    // A condition that is itself a `select`, and a branch that is a product.
    let both = select(inside(low), inside(-low), false);
    let expected = Reference::build(&dims, |p| {
        at(p[0].1, low).zip(at(p[0].1, -low)).map_or(0, |(a, b)| a.wrapping_mul(b))
    });
    assert_eq!(select(both, xv.at(i + low) * xv.at(i - low), 0).order(i).into_dyn(), expected.order(order));
    // Selecting an element out of range is an error.
    let outside = (0..size).any(|p| at(p, low).is_none());
    assert_eq!(select(i.ge(0), xv.at(i + low), 0).try_order(i).is_err(), outside);
}

/// Integers, ranges, splits and positional axes as binders.
fn binders(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C] => refs);
    let [rx] = &refs;
    let (a, b, c) = (case.size("A"), case.size("B"), case.size("C"));
    let xv = x.view::<Ix3>();
    let (pick, start) = (random.below(b), random.below(c + 1));
    let end = start + random.below(c + 1 - start);
    let expected = rx.index("B", pick).slice("C", start, end).order(&[&["A"], &["C"]]);
    assert_eq!(xv.at((A, pick, start..end)).order(A).into_dyn(), expected);
    let back = pick as isize - b as isize;
    if start < c {
        assert_eq!(
            xv.at((A, back, start as isize - c as isize..)).order(A).into_dyn(),
            rx.index("B", pick).slice("C", start, c).order(&[&["A"], &["C"]])
        );
    }
    assert_eq!(
        xv.at((.., B, ..end)).order(B).into_dyn(),
        rx.slice("C", 0, end).order(&[&["B"], &["A"], &["C"]])
    );
    // Splits the last axis into three, with one size left open.
    let parts = [1 + random.below(3), 1 + random.below(2)];
    let y =
        crate::reference::input::Buffer::new(&[a, c * parts[0] * parts[1]], &mut random, case.plain, |r| {
            r.small()
        });
    dims!(p = parts[0], q, r = parts[1]);
    let found = y.view::<Ix2>().at((A, (p, q, r))).order((r, q, A, p)).into_dyn();
    assert_eq!(q.size(), c);
    let split = [("p", parts[0]), ("q", c), ("r", parts[1])];
    let expected = Reference::bind(&y.dynamic(), &["A", "W"]).unflatten("W", &split);
    assert_eq!(found, expected.order(&[&["r"], &["q"], &["A"], &["p"]]));
}

fn diagonals(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B A], y[A A A] => refs);
    let [rx, ry] = &refs;
    assert_eq!(x.view::<Ix3>().at((A, B, A)).order((B, A)).into_dyn(), rx.order(&[&["B"], &["A"]]));
    assert_eq!(y.view::<Ix3>().at((A, A, A)).order(A).into_dyn(), ry.order(&[&["A"]]));
}

properties! {
    affine_indices 150: |case in cases(5), _which| affine(&case);
    inferred_sizes 60: |case in cases(8), _which| inferred(&case);
    gathers 200: |case in filled_cases(5), which| [
        gather_i8, gather_i16, gather_i32, gather_i64, gather_isize, gather_u8, gather_u16, gather_u32, gather_u64,
        gather_usize,
    ][which % 10](&case);
    gathers_of_all_kinds 40: |case in filled_cases(5), _which| gathered(&case);
    index_expressions 80: |case in cases(5), _which| expressions(&case);
    branches_that_are_not_taken 80: |case in cases(6), _which| selected(&case);
    integers_ranges_and_splits 80: |case in filled_cases(5), _which| binders(&case);
    axes_bound_to_one_dim 40: |case in cases(4), _which| diagonals(&case);
}

/// An array that is longer than a tile of the kernels. The `select` excludes indices out of range.
#[test]
fn long_gathers() {
    let n = 5000;
    let x = ndarray::Array1::from_shape_fn(n, |i| i as i64);
    dims!(i = n);
    let half = n as isize / 2;
    let found = select(i.lt(half), x.at(i + half), x.at(i - half)).order(i);
    assert_eq!(found, ndarray::Array1::from_shape_fn(n, |i| ((i + n / 2) % n) as i64));
    let error = x.at(i + 1).try_order(i).unwrap_err();
    assert!(matches!(error, DimError::OutOfBounds { index: 5000, size: 5000, .. }), "{error}");
}
