//! Operations that read their operands directly from memory, compared with loops.

use proptest::prelude::*;
use typed_dims::prelude::*;

/// Elements in no particular order, whose sums are not exact.
fn element(at: usize) -> f32 {
    ((at.wrapping_mul(2_654_435_761) >> 7) % 20_011) as f32 / 10_005.0 - 1.0
}

fn matrix(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| element(i * columns + j))
}

fn assert_close(found: &Array1<f32>, exact: impl Fn(usize) -> f64, tolerance: f64) {
    for (at, &found) in found.iter().enumerate() {
        let exact = exact(at);
        assert!((f64::from(found) - exact).abs() <= tolerance, "{found} instead of {exact} at {at}");
    }
}

/// Matrices so large that reductions prefetch, with rows of odd lengths and rows wider than a tile.
#[test]
fn reductions_of_large_matrices_are_those_of_loops() {
    for (rows, columns) in [(1031, 517), (37, 17_003), (70_001, 9), (9, 70_001)] {
        let a = matrix(rows, columns);
        dims!(i, j);
        let wide = |i: usize, j: usize| f64::from(a[[i, j]]);
        let down: Array1<f32> = a.at((i, j)).sum(i).order(j);
        assert_close(&down, |j| (0..rows).map(|i| wide(i, j)).sum(), 1e-6 * rows as f64);
        let across: Array1<f32> = a.at((i, j)).sum(j).order(i);
        assert_close(&across, |i| (0..columns).map(|j| wide(i, j)).sum(), 1e-6 * columns as f64);
        let greatest: Array1<usize> = a.at((i, j)).argmax(i).order(j);
        for (j, &found) in greatest.iter().enumerate() {
            let first = (0..rows).rev().max_by(|&x, &y| a[[x, j]].total_cmp(&a[[y, j]]));
            assert_eq!(Some(found), first, "column {j}");
        }
        let greatest: Array1<usize> = a.at((i, j)).argmax(j).order(i);
        for (i, &found) in greatest.iter().enumerate() {
            let first = (0..columns).rev().max_by(|&x, &y| a[[i, x]].total_cmp(&a[[i, y]]));
            assert_eq!(Some(found), first, "row {i}");
        }
    }
}

#[test]
fn products_of_matrices_with_vectors_are_those_of_loops() {
    for (rows, columns) in [(517, 131), (3, 70_001), (129, 1024)] {
        let (a, x) = (matrix(rows, columns), Array1::from_shape_fn(columns, |j| element(7 * j + 1)));
        dims!(i, j);
        let found: Array1<f32> = (a.at((i, j)) * x.at(j)).sum(j).order(i);
        let wide = |i: usize, j: usize| f64::from(a[[i, j]]) * f64::from(x[j]);
        assert_close(&found, |i| (0..columns).map(|j| wide(i, j)).sum(), 1e-6 * columns as f64);
        assert_eq!((x.at(j) * a.at((i, j))).sum(j).order(i), found);
        let ([b, c], y) =
            ([1.0, 3.0].map(|f| a.mapv(|x| (f * x * 100.0) as i32)), x.mapv(|x| (x * 100.0) as i32));
        assert_eq!((b.at((i, j)) * y.at(j)).sum(j).order(i), b.dot(&y));
        let rows: Array1<i32> = (b.at((i, j)) * c.at((i, j))).sum(j).order(i);
        assert_eq!(rows, (&b * &c).sum_axis(ndarray::Axis(1)));
    }
}

#[test]
fn a_few_lines_are_interleaved_and_separated() {
    let byte = |x: f32| (100.0 * x) as i8 as u8;
    for lines in 1..6 {
        for len in [1, 2, 5, 64, 131] {
            let a = matrix(2 * lines, len + 3);
            for lines in [a.slice(ndarray::s![..lines, 1..=len]), a.slice(ndarray::s![..;2, ..len;-1])] {
                dims!(i, j);
                let woven: Array2<f32> = lines.at((i, j)).order((j, i));
                assert_eq!(woven, lines.t());
                assert_eq!(woven.at((j, i)).order((i, j)), lines);
                let (bytes, shuffled) = (lines.mapv(byte), lines.t().mapv(byte));
                assert_eq!(bytes.at((i, j)).order((j, i)), shuffled);
                assert_eq!(shuffled.at((j, i)).order((i, j)), bytes);
            }
        }
    }
}

/// SIMD loads are aligned to cache lines, but the order of the additions does not depend on where a
/// row starts.
#[test]
fn sums_do_not_depend_on_the_alignment_of_rows() {
    let (rows, columns) = (2, 270_001);
    let sums = |shift: usize| -> [Array1<f32>; 3] {
        let elements: Vec<f32> = (0..shift).chain(0..rows * columns).map(element).collect();
        let a = ndarray::ArrayView2::from_shape((rows, columns), &elements[shift..]).expect("the sizes fit");
        dims!(i, j);
        [
            a.at((i, j)).sum(j).order(i),
            (a.at((i, j)) * a.row(0).at(j)).sum(j).order(i),
            a.at((i, j)).sum(i).order(j),
        ]
    };
    let there = sums(0);
    for shift in [1, 5, 12, 16, 31] {
        assert_eq!(sums(shift), there, "shifted by {shift}");
    }
}

#[test]
fn sums_of_many_equal_elements_are_as_accurate_as_pairwise_ones() {
    let a = Array2::from_elem((1 << 15, 70), 0.1_f32);
    dims!(i, j);
    let down: Array1<f32> = a.at((i, j)).sum(i).order(j);
    let across: Array1<f32> = a.t().at((j, i)).sum(i).order(j);
    for found in down.iter().chain(&across) {
        let exact = f64::from(0.1_f32) * f64::from(1 << 15);
        assert!((f64::from(*found) - exact).abs() <= 2e-6 * exact, "{found} instead of {exact}");
    }
}

#[test]
fn a_row_that_is_looked_for_ahead_is_checked_like_any_other() {
    let table = matrix(50, 20);
    let mut ids = Array2::from_shape_fn((30, 3), |(bag, at)| (bag * 7 + at) % 50);
    ids[[29, 2]] = 50;
    dims!(bag, at, feat);
    let error = table.at((ids.at((bag, at)), feat)).try_sum(at).expect_err("there is no row 50");
    assert!(error.to_string().contains("50"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bags_of_rows_are_those_of_loops(
        bags in 0usize..12,
        rows in 0usize..150,
        (width, table) in (1usize..300, 1usize..40),
    ) {
        let table = matrix(table, width);
        let ids = Array2::from_shape_fn((bags, rows), |(bag, at)| (bag * 31 + at * 7) % table.nrows());
        dims!(bag, at, feat);
        let found: Array2<f32> = table.at((ids.at((bag, at)), feat)).sum(at).order((bag, feat));
        for ((b, j), &found) in found.indexed_iter() {
            let elements = || ids.row(b).into_iter().map(|&id| f64::from(table[[id, j]]));
            // A bound on the rounding error of a sum of this many numbers in sequence.
            let bound = rows as f64 * f64::from(f32::EPSILON) / 2.0 * elements().map(f64::abs).sum::<f64>();
            let exact: f64 = elements().sum();
            assert!((f64::from(found) - exact).abs() <= bound, "{found} instead of {exact} at {b}, {j}");
        }
    }

    #[test]
    fn lines_are_those_of_loops((lines, len) in (1usize..5, 1usize..150)) {
        let x = matrix(lines, len);
        let softmax = Array2::from_shape_fn((lines, len), |(i, j)| {
            let sum: f64 = x.row(i).iter().map(|&x| f64::from(x).exp()).sum();
            (f64::from(x[[i, j]]).exp() / sum) as f32
        });
        let normal = Array2::from_shape_fn((lines, len), |(i, j)| {
            let mean = x.row(i).iter().map(|&x| f64::from(x)).sum::<f64>() / len as f64;
            let var = x.row(i).iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / len as f64;
            ((f64::from(x[[i, j]]) - mean) / (var + 1e-3).sqrt()) as f32
        });
        dims!(i, j);
        let close = |found: Array2<f32>, exact: &Array2<f32>| {
            for (&found, &exact) in found.iter().zip(exact) {
                assert!((found - exact).abs() <= 1e-5, "{found} instead of {exact}");
            }
        };
        close(x.at((i, j)).softmax(j).order((i, j)), &softmax);
        close(x.at((i, j)).eval().softmax(j).order((i, j)), &softmax);
        close((x.at((i, j)) + 0.0).softmax(j).order((i, j)), &softmax);
        close(x.at((i, j)).layer_norm(j, 1e-3).order((i, j)), &normal);
        close(x.at((i, j)).eval().layer_norm(j, 1e-3).order((i, j)), &normal);
        let turned = x.t().as_standard_layout().to_owned();
        close(turned.at((j, i)).layer_norm(j, 1e-3).order((i, j)), &normal);
    }
}
