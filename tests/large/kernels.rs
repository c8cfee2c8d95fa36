//! Loops longer than those of the property tests, with rows of several tiles and results that
//! bypass the caches. The results are compared with those of loops over single elements.

use core::fmt::Debug;
use ndarray::s;
use num_complex::Complex;
use rayon::ThreadPoolBuilder;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Element;

/// Lengths of rows: less than a tile, one tile, and more.
const LENGTHS: [usize; 7] = [0, 1, 3, 511, 512, 513, 1300];

fn sample(at: usize) -> f32 {
    match at % 97 {
        13 => f32::NAN,
        14 => -0.0,
        15 => f32::INFINITY,
        n => n as f32 - 48.0,
    }
}

/// The bits of a number, the same for all NaNs and for both zeros.
fn bits(x: f32) -> u32 {
    if x.is_nan() { u32::MAX } else { (x + 0.0).to_bits() }
}

fn assert_elements(found: &Array2<f32>, expected: impl Fn(usize, usize) -> f32) {
    for ((i, j), &found) in found.indexed_iter() {
        assert_eq!(bits(found), bits(expected(i, j)), "at {i}, {j}");
    }
}

#[test]
fn operands_on_the_right_that_are_the_same_along_a_row() {
    for len in LENGTHS {
        dims!(i, j);
        let x = Array2::from_shape_fn((5, len), |(a, b)| sample(31 * a + b));
        let y = Array2::from_shape_fn((5, len), |(a, b)| sample(7 * a + 3 * b));
        let scale = Array1::from_shape_fn(5, |a| sample(a + 50));
        let bias = Array1::from_shape_fn(5, |a| sample(a + 11));
        let (xt, yt, st, bt) = (x.at((i, j)), y.at((i, j)), scale.at(i), bias.at(i));
        let relu = |x: f32| if x < 0.0 { 0.0 } else { x };
        assert_elements(&(xt * st + bt).relu().order((i, j)), |a, b| relu(x[[a, b]] * scale[a] + bias[a]));
        assert_elements(&(st * xt - bt).order((i, j)), |a, b| scale[a] * x[[a, b]] - bias[a]);
        assert_elements(&(xt - st * bt).order((i, j)), |a, b| x[[a, b]] - scale[a] * bias[a]);
        assert_elements(&(xt * st + yt).order((i, j)), |a, b| x[[a, b]] * scale[a] + y[[a, b]]);
        assert_elements(&(xt * 2.0 + i.cast::<f32>()).order((i, j)), |a, b| x[[a, b]] * 2.0 + a as f32);
        // Along the other dim, broadcast operands are contiguous.
        let turned = (xt * st + bt).order((j, i));
        assert_elements(&turned.t().to_owned(), |a, b| x[[a, b]] * scale[a] + bias[a]);
    }
}

#[test]
fn operands_on_the_right_at_computed_places() {
    let ids = [3usize, 0, 3];
    let table: Vec<f32> = (0..4).map(|n| n as f32 + 0.5).collect();
    for len in LENGTHS {
        dims!(i, j);
        let x = Array2::from_shape_fn((3, len), |(a, b)| sample(31 * a + b));
        let found = (x.at((i, j)) * table.at(ids.at(i))).order((i, j));
        assert_elements(&found, |a, b| x[[a, b]] * table[ids[a]]);
        let outside = [3usize, 4, 0];
        let result = (x.at((i, j)) * table.at(outside.at(i))).try_order((i, j));
        assert_eq!(result.is_err(), len > 0, "index 4 of an axis of size 4, for rows of {len} elements");
    }
}

#[test]
fn large_transpositions() {
    fn transposed<T: Element + PartialEq>(rows: usize, columns: usize, value: fn(usize) -> T) {
        dims!(i, j);
        let a = Array2::from_shape_fn((rows, columns), |(a, b)| value(a * columns + b));
        assert!(a.at((i, j)).order((j, i)) == a.t());
        dims!(i, j);
        let part = a.slice(s![1.., 3..]);
        let mut out = Array2::from_elem((columns, rows + 5), value(7));
        part.at((i, j)).order_into(&mut out.slice_mut(s![3.., 5..rows + 4]), (j, i));
        assert!(out.slice(s![3.., 5..rows + 4]) == part.t());
        assert!(out.slice(s![..3, ..]).iter().all(|x| *x == value(7)));
        assert!(out.slice(s![.., ..5]).iter().chain(out.slice(s![.., rows + 4])).all(|x| *x == value(7)));
    }
    transposed::<f32>(1472, 1437, |n| n as f32);
    transposed::<f32>(1469, 1440, |n| n as f32);
    transposed::<u64>(1024, 1031, |n| n as u64);
}

/// The sizes give blocks that extend past the result, and sums of several partial sums.
#[test]
fn all_pairs_of_rows() {
    for (rows, columns, len) in [(1, 40, 3), (4, 32, 0), (5, 33, 7), (9, 70, 130), (6, 64, 400), (4, 31, 9)] {
        let a = Array2::from_shape_fn((rows, len), |(x, y)| ((31 * x + 7 * y) % 50) as f32);
        let b = Array2::from_shape_fn((columns, len), |(x, y)| ((17 * x + 11 * y) % 50) as f32);
        let combined = |f: fn(f32, f32) -> f32| {
            Array2::from_shape_fn((rows, columns), |(x, y)| {
                (0..len).map(|z| f(a[[x, z]], b[[y, z]])).sum::<f32>()
            })
        };
        dims!(i, j, d);
        let turned = b.t().as_standard_layout().into_owned();
        let (xt, yt) = (a.at((i, d)), turned.at((d, j)));
        let distances = combined(|x, y| (x - y).abs());
        assert_eq!((xt - yt).abs().sum(d).order((i, j)), distances);
        assert_eq!((xt - b.at((j, d))).abs().sum(d).order((j, i)), distances.t());
        assert_eq!(
            (yt - xt).clamp(-9.0, 9.0).sum(d).order((i, j)),
            combined(|x, y| (y - x).clamp(-9.0, 9.0))
        );
        if len > 0 {
            let greatest = (yt.minimum(xt) * 2.0).max(d).order((i, j));
            assert_elements(&greatest, |x, y| {
                (0..len).map(|z| 2.0 * a[[x, z]].min(b[[y, z]])).fold(f32::MIN, f32::max)
            });
        }
        let positions = (xt - j.cast::<f32>()).abs().sum(d).order((i, j));
        assert_elements(&positions, |x, y| (0..len).map(|z| (a[[x, z]] - y as f32).abs()).sum());
        let first = b.row(0);
        let same = first.broadcast((columns, len)).expect("the row repeats");
        let found = (xt - same.at((j, d))).abs().sum(d).order((i, j));
        assert_elements(&found, |x, _| (0..len).map(|z| (a[[x, z]] - first[z]).abs()).sum());
    }
}

/// Pairs of rows for each position of another dim, summed over two dims in double precision.
#[test]
fn batches_of_pairs_of_rows() {
    let a = Array4::from_shape_fn((3, 5, 4, 37), |(n, x, y, z)| ((5 * n + 3 * x + 7 * y + z) % 40) as f64);
    let b = Array4::from_shape_fn((3, 37, 4, 35), |(n, z, y, x)| ((9 * n + 11 * z + y + 3 * x) % 40) as f64);
    let place = |n: usize, x: usize, w: usize| -> f64 {
        (0..4 * 37).map(|at| (at / 37, at % 37)).map(|(y, z)| (a[[n, x, y, z]] - b[[n, z, y, w]]).abs()).sum()
    };
    dims!(n, i, j, d, e);
    let found = (a.at((n, i, d, e)) - b.at((n, e, d, j))).abs().sum((d, e)).order((n, i, j));
    assert_eq!(found, Array3::from_shape_fn((3, 5, 35), |(n, x, w)| place(n, x, w)));
}

/// Conditions on positions split rows into parts, which can be empty.
#[test]
fn choices_by_position() {
    for (rows, columns) in [(70, 64), (3, 63), (5, 1300), (1300, 70)] {
        dims!(i, j);
        let x = Array2::from_shape_fn((rows, columns), |(a, b)| sample(31 * a + b));
        let y = Array2::from_shape_fn((columns, rows), |(a, b)| sample(7 * a + 3 * b));
        let (xt, yt) = (x.at((i, j)), y.at((j, i)));
        let upper = select(i.le(j), xt, 0.0).order((i, j));
        assert_elements(&upper, |a, b| if a <= b { x[[a, b]] } else { 0.0 });
        let (tanh, turned) = (xt.tanh().order((i, j)), yt.tanh().order((i, j)));
        let parts = select(i.le(j), xt.tanh(), select((i + 9).le(j), 1.0, yt.tanh())).order((i, j));
        assert_elements(&parts, |a, b| if a <= b { tanh[[a, b]] } else { turned[[a, b]] });
        let lower = select((j + 40).lt(i), yt * 2.0, xt).order((i, j));
        assert_elements(&lower, |a, b| if b + 40 < a { y[[b, a]] * 2.0 } else { x[[a, b]] });
        let shifted = xt.tril(i, j, -3).order((i, j));
        assert_elements(&shifted, |a, b| if b + 3 <= a { x[[a, b]] } else { 0.0 });
        let band = select(i.gt(j), 1.0, select((i + 20).ge(j), xt + yt, -1.0)).order((i, j));
        assert_elements(&band, |a, b| match (a > b, a + 20 >= b) {
            (true, _) => 1.0,
            (_, true) => x[[a, b]] + y[[b, a]],
            _ => -1.0,
        });
    }
}

/// Lines of large results are written in parts. The position where the condition changes can
/// decrease or jump from line to line.
#[test]
fn large_choices_by_position() {
    for threads in [1, 2] {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| {
            choices_among(|n| n as u8, 7);
            choices_among(|n| (n % 1000) as i16 - 500, 7);
            choices_among(|n| n as f64, 0.5);
            choices_among(|n| n % 3 == 0, false);
            choices_among(|n| Complex::new(n as f64, -1.0), Complex::new(0.0, 1.0));
            choices_of_other_sizes();
            choices_that_jump();
        });
    }
}

fn assert_all<T: PartialEq + Debug>(found: &Array2<T>, expected: impl Fn(usize, usize) -> T) {
    for ((a, b), found) in found.indexed_iter() {
        assert_eq!(*found, expected(a, b), "at {a}, {b}");
    }
}

fn choices_among<T: Element + PartialEq + Debug>(of: impl Fn(usize) -> T, other: T) {
    for (rows, columns) in [(140, 1030), (12, 15_000)] {
        let x = Array2::from_shape_fn((rows, columns), |(a, b)| of(31 * a + b));
        let y = Array2::from_shape_fn((columns, rows), |(b, a)| of(7 * a + 5 * b));
        dims!(i, j);
        let (xt, yt) = (x.at((i, j)), y.at((j, i)));
        let of_both = |a: usize, b: usize| if a <= b { x[[a, b]] } else { y[[b, a]] };
        assert_all(&select(i.le(j), xt, yt).order((i, j)), of_both);
        let flipped = select(i.gt(j), yt, xt).flip(j).order((i, j));
        assert_all(&flipped, |a, b| of_both(a, columns - 1 - b));
        for until in [0, 1, 600, columns] {
            let right = select(j.lt(until as isize), other, xt).order((i, j));
            assert_all(&right, |a, b| if b < until { other } else { x[[a, b]] });
        }
    }
}

fn choices_of_other_sizes() {
    let x = Array2::from_shape_fn((150, 1100), |(a, b)| (a + b) as u8);
    let y = Array1::from_iter((0..1100).map(f64::from));
    dims!(i, j, n);
    let (xt, yt) = (x.at((i, j)), y.at(j));
    let wide = select(i.le(j), xt.cast::<f64>(), yt - 1.0).order((i, j));
    assert_all(&wide, |a, b| if a <= b { f64::from(x[[a, b]]) } else { y[b] - 1.0 });
    let narrow = select(j.lt(i), yt.cast::<u8>(), xt / 2).order((i, j));
    assert_all(&narrow, |a, b| if b < a { y[b] as u8 } else { x[[a, b]] / 2 });
    let z = Array1::from_iter((0..90_000).map(f64::from));
    let line = select(n.lt(50_000), z.at(n), z.at(n) * z.at(89_999 - n)).order(n);
    let expected = |at: usize| if at < 50_000 { z[at] } else { z[at] * z[89_999 - at] };
    assert_eq!(line, Array1::from_shape_fn(90_000, expected));
}

fn choices_that_jump() {
    dims! { struct Offset; }
    let x = Array2::from_shape_fn((60, 1300), |(a, b)| (a * b) as f32);
    dims!(i, j);
    let within = Offset.of(1100);
    let lower = x.at((i, j)).tril(i, j, 400);
    let windows = lower.unfold(j, within, 41, 1).order((j, i, within));
    let expected = |(window, a, b): (usize, usize, usize)| {
        let b = 41 * window + b;
        if b <= a + 400 { x[[a, b]] } else { 0.0 }
    };
    assert_eq!(windows, Array3::from_shape_fn(windows.dim(), expected));
}

#[test]
fn choices_by_position_read_nothing_else() {
    let table: Vec<f32> = (0..100).map(|n| n as f32).collect();
    dims!(i, j, n);
    let ids = Array2::from_shape_fn((90, 200), |(a, b)| if a <= b { (a + b) % 100 } else { 1000 });
    let (ids, table) = (ids.at((i, j)), &table);
    let tanh = table.at(n).tanh().order(n);
    let found = select(i.le(j), table.at(ids).tanh(), -1.0).order((i, j));
    assert_elements(&found, |a, b| if a <= b { tanh[(a + b) % 100] } else { -1.0 });
    assert!(select(i.le(j), -1.0, table.at(ids).tanh()).try_order((i, j)).is_err());
}

/// The matrix product library writes into every other row or column, backwards.
#[test]
fn products_into_reversed_memory() {
    let a = Array2::from_shape_fn((30, 20), |(i, k)| Complex::new((i % 5) as f64, (k % 3) as f64 - 1.0));
    let b = Array2::from_shape_fn((20, 25), |(k, j)| Complex::new((k % 7) as f64 - 3.0, (j % 2) as f64));
    dims!(i, j, k);
    let expected = (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j));
    let zero = Complex::new(0.0, 0.0);
    let (mut rows, mut columns) = (Array2::from_elem((60, 25), zero), Array2::from_elem((25, 60), zero));
    (a.at((i, k)) * b.at((k, j))).sum_into(k, &mut rows.slice_mut(s![..;-2, ..]), (i, j));
    (a.at((i, k)) * b.at((k, j))).sum_into(k, &mut columns.slice_mut(s![.., ..;-2]), (j, i));
    assert_eq!(rows.slice(s![..;-2, ..]), expected);
    assert_eq!(columns.slice(s![.., ..;-2]), expected.t());
    assert!(rows.slice(s![..;2, ..]).iter().chain(columns.slice(s![.., ..;2])).all(|&x| x == zero));
}

/// On some machines, rows that are aligned alike are read in pairs. The cases include an odd number
/// of rows, rows in reverse order, gaps, and rows longer than the part that is summed at once.
#[test]
fn large_matrices_by_vectors() {
    // Small integers, whose sums are exact in any order.
    let small = |at: usize| (at * 7 % 5) as f32 - 2.0;
    for (rows, columns) in [(641, 1024), (1000, 704), (67, 8208), (66, 20_000), (701, 1025)] {
        let matrix = Array2::from_shape_fn((rows, columns + 16), |(i, j)| small(i + 3 * j));
        let vector = Array1::from_shape_fn(columns, |j| small(j / 3));
        for (from, step) in [(0, 1), (0, -1), (16, 1), (5, 2)] {
            let part = matrix.slice(s![..;step, from..from + columns]);
            dims!(i, j);
            let found = (part.at((i, j)) * vector.at(j)).sum(j).order(i);
            let expected: Vec<f32> = part
                .rows()
                .into_iter()
                .map(|row| row.iter().zip(&vector).map(|(x, y)| x * y).sum())
                .collect();
            assert_eq!(found.to_vec(), expected, "{rows} x {columns}, from {from} by {step}");
        }
    }
}

/// A few rows times a large matrix, as in a decoder step, for several layouts of the matrix and of
/// the result, including gaps and reversed axes.
#[test]
fn few_rows_by_large_matrices() {
    // Small integers, whose sums are exact in any order.
    let small = |at: usize| (at * 7 % 5) as f32 - 2.0;
    for (rows, sums, columns) in [(1, 300, 517), (2, 257, 130), (4, 768, 333), (8, 96, 1000), (9, 80, 400)] {
        let whole = Array2::from_shape_fn((sums + 3, columns + 5), |(p, j)| small(p + 3 * j));
        let turned = whole.t().as_standard_layout().into_owned();
        let x = Array2::from_shape_fn((rows, sums), |(i, p)| small(2 * i + p / 3));
        for step in [1, -1] {
            let across = whole.slice(s![3..;step, 5..]);
            let along = turned.slice(s![5..;step, 3..]);
            let expected = x.dot(&across);
            dims!(i, j, k);
            assert_eq!((x.at((i, k)) * across.at((k, j))).sum(k).order((i, j)), expected);
            let found = (across.at((k, j)) * x.at((i, k))).sum(k).order((j, i));
            assert_eq!(found.t(), expected, "{rows} x {sums} x {columns}");
            let expected = x.dot(&along.t());
            dims!(i, j, k);
            assert_eq!((x.at((i, k)) * along.at((j, k))).sum(k).order((i, j)), expected);
            let mut out = Array2::zeros((columns + 2, rows));
            let mut part = out.slice_mut(s![1..=columns, ..]);
            (along.at((j, k)) * x.at((i, k))).sum_into(k, &mut part, (j, i));
            assert_eq!(out.slice(s![1..=columns, ..]).t(), expected, "{rows} x {sums} x {columns}");
            assert!(out.row(0).iter().chain(out.row(columns + 1)).all(|&x| x == 0.0));
            // A vector has no row axis.
            let (row, expected) = (x.row(0), across.t().dot(&x.row(0)));
            dims!(j, k);
            assert_eq!((row.at(k) * across.at((k, j))).sum(k).order(j), expected);
            assert_eq!((across.at((k, j)) * row.at(k)).sum(k).order(j), expected);
        }
    }
}

/// Lines can end inside vectors and start anywhere. Very short and very long lines take another
/// path.
#[test]
fn softmax_of_lines() {
    for (rows, len) in [(1, 32), (2, 33), (5, 47), (3, 64), (4, 100), (2, 2048), (3, 2049), (3, 31)] {
        let whole = Array2::from_shape_fn((rows, len + 3), |(a, b)| match (31 * a + 7 * b) % 89 {
            5 => f32::NEG_INFINITY,
            n => n as f32 / 3.0 - 20.0 * (a % 2) as f32,
        });
        for start in [0, 1, 3] {
            let x = whole.slice(s![.., start..start + len]);
            dims!(i, j);
            let shares = x.at((i, j)).softmax(j).order((i, j));
            let logs = x.at((i, j)).log_softmax(j).order((i, j));
            for (row, line) in x.rows().into_iter().enumerate() {
                let most = line.iter().fold(f32::MIN, |a, &b| a.max(b));
                let sum: f64 = line.iter().map(|&x| f64::from(x - most).exp()).sum();
                for (at, &x) in line.iter().enumerate() {
                    let exact = f64::from(x - most).exp() / sum;
                    let found = f64::from(shares[[row, at]]);
                    assert!(
                        (found - exact).abs() <= 3e-6 * exact,
                        "{found} instead of {exact} at {row}, {at} of {len}"
                    );
                    let (exact, found) = (f64::from(x - most) - sum.ln(), f64::from(logs[[row, at]]));
                    assert!(found == exact || (found - exact).abs() < 1e-6 * exact.abs().max(1.0));
                }
            }
        }
        // A line with a NaN, or with only negative infinities, spoils only its own result.
        let mut x = whole.slice(s![.., ..len]).to_owned();
        x.row_mut(0).fill(f32::NEG_INFINITY);
        x[[rows - 1, len / 2]] = f32::NAN;
        dims!(i, j);
        let shares = x.at((i, j)).softmax(j).order((i, j));
        for (row, line) in shares.rows().into_iter().enumerate() {
            let spoilt = row == 0 || row == rows - 1;
            assert!(line.iter().all(|x| x.is_nan() == spoilt), "line {row} of {rows} x {len}");
        }
    }
}

/// Lines with means far from 0, with means far from the first element, and with elements that are
/// all equal.
#[test]
fn normalized_lines() {
    for len in [1, 2, 31, 33, 64, 100, 2049, 5000] {
        dims!(i, j);
        let x = Array2::from_shape_fn((5, len), |(a, b)| {
            let value = ((37 * b + 11 * a) % 101) as f32;
            match a {
                0 => value,
                1 => 1e8 + 8.0 * value,
                2 => 3.5,
                3 => {
                    if b == 0 {
                        1e4
                    } else {
                        value
                    }
                }
                _ => value * 1e-3 - 700.0,
            }
        });
        let gain = Array1::from_shape_fn(len, |b| 1.0 + (b % 5) as f32);
        let bias = Array1::from_shape_fn(len, |b| (b % 7) as f32 - 3.0);
        let plain = x.at((i, j)).layer_norm(j, 1e-5).order((i, j));
        let affine = x.at((i, j)).layer_norm_affine(j, 1e-5, gain.at(j), bias.at(j)).order((i, j));
        for (row, line) in x.rows().into_iter().enumerate() {
            let n = len as f64;
            let mean = line.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
            let var = line.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
            for (at, &x) in line.iter().enumerate() {
                let exact = (f64::from(x) - mean) / (var + 1e-5).sqrt();
                let close =
                    |found: f32, exact: f64| (f64::from(found) - exact).abs() <= 1e-5 * exact.abs().max(1.0);
                assert!(
                    close(plain[[row, at]], exact),
                    "{} instead of {exact} at {row}, {at} of {len}",
                    plain[[row, at]]
                );
                let exact = exact * f64::from(gain[at]) + f64::from(bias[at]);
                assert!(
                    close(affine[[row, at]], exact),
                    "{} instead of {exact} at {row}, {at} of {len}",
                    affine[[row, at]]
                );
            }
        }
    }
}

/// Functions of many instructions, for rows and results that start anywhere in memory.
#[test]
fn functions_of_rows_that_begin_anywhere() {
    for len in [1, 60, 63, 64, 65, 127, 508, 512, 577, 1300] {
        for rows in 1..4 {
            dims!(i, j);
            let (x, bias) = (
                Array2::from_shape_fn((rows, len), |(a, b)| ((31 * a + b) % 97) as f32 / 9.0 - 5.0),
                Array1::from_shape_fn(len, |b| (b % 13) as f32 / 7.0),
            );
            let single = |x: f32| {
                let one = Array1::from_elem(1, x);
                dims!(k);
                one.at(k).gelu().order(k)[0]
            };
            let found = (x.at((i, j)) + bias.at(j)).gelu().order((i, j));
            for ((a, b), &found) in found.indexed_iter() {
                let exact = single(x[[a, b]] + bias[b]);
                assert!(
                    (found - exact).abs() <= 1e-6 * exact.abs().max(1e-3),
                    "{found} instead of {exact} at {a}, {b}"
                );
            }
            let doubles = x.mapv(f64::from);
            let found = (doubles.at((i, j)) * 0.5).exp().order((i, j));
            for ((a, b), &found) in found.indexed_iter() {
                assert!((found - (doubles[[a, b]] * 0.5).exp()).abs() <= 1e-14 * found);
            }
        }
    }
}

#[test]
fn running_sums_of_many_elements_end_where_their_sum_is() {
    dims!(i, j);
    let steps = Array2::from_elem((2, 1_000_000), 5e-4_f32);
    let x = steps.at((j, i));
    let (running, sum) = (x.cumsum(i).index(i, 999_999).order(j), x.sum(i).order(j));
    for (running, sum) in running.iter().zip(&sum) {
        assert!(
            (running - 500.0).abs() < 1e-3 && (sum - 500.0).abs() < 1e-3,
            "{running} and {sum} instead of 500"
        );
    }
    let logs = x.logcumsumexp(i).index(i, 999_999).order(j);
    let exact = 5e-4 + 1e6_f32.ln();
    assert!(logs.iter().all(|log| (log - exact).abs() < 1e-5), "{logs} instead of {exact}");
}
