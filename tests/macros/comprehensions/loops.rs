//! Comprehensions return what the equivalent loops compute, on arrays of random sizes, including 0
//! and 1.

use ndarray::{Array, Array1, Array2, Array3, Dimension, ShapeBuilder, StrideShape};
use proptest::prelude::*;
use typed_dims::prelude::*;

/// Small integers, whose sums are exact in any order.
fn filled<D: Dimension>(shape: impl Into<StrideShape<D>>, seed: u64) -> Array<f64, D> {
    let shape = shape.into();
    let len = shape.size();
    let values = (0..len as u64).map(|at| {
        let mixed = (seed ^ at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 59) as f64 - 16.0
    });
    Array::from_shape_vec(shape, values.collect()).expect("the number of values fits the shape")
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), Just(1), 2usize..6, Just(17)]
}

/// A size of at least 1.
fn some() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1usize), 2usize..6, Just(17)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products(i in size(), j in size(), k in size(), seed: u64) {
        let a = filled((i, k), seed);
        let b = filled((k, j).f(), seed + 1);
        let mut expected = Array2::zeros((i, j));
        for i in 0..i {
            for j in 0..j {
                for k in 0..k {
                    expected[[i, j]] += a[[i, k]] * b[[k, j]];
                }
            }
        }
        prop_assert_eq!(&tensor!([i, j] => sum[k](a[i, k] * b[k, j])), &expected);
        prop_assert_eq!(&einsum!(a[i, k] * b[k, j] => [i, j]), &expected);
        prop_assert_eq!(tensor!([j, i] => sum[k](a[i, k] * b[k, j])), expected.t());
        prop_assert_eq!(einsum!(sum[i, j](a[i, k] * b[k, j]) => []), expected.sum());
        prop_assert_eq!(try_tensor!([(j, i)] => sum[k](a[i, k] * b[k, j])), Ok(expected.t().iter().copied().collect::<Array1<f64>>()));
    }

    #[test]
    fn distances(i in size(), j in size(), k in size(), seed: u64) {
        let (a, b) = (filled((i, k), seed), filled((j, k), seed + 1));
        let expected = Array2::from_shape_fn((i, j), |(i, j)| (0..k).map(|k| (a[[i, k]] - b[[j, k]]).abs()).sum::<f64>());
        prop_assert_eq!(einsum!((a[i, k] - b[j, k]).abs() => [i, j]), expected);
    }

    #[test]
    fn windows(n in size(), w in some(), step in 1usize..4, seed: u64) {
        let (x, weight) = (filled(n, seed), filled(w, seed + 1));
        let out = try_tensor!([i] => sum[k](x[step * i + k] * weight[k]));
        // A window that is at most `step` elements too long gives an empty result; a longer one is
        // an error.
        let fits = (n as isize - w as isize).div_euclid(step as isize) + 1;
        if let Ok(fits) = usize::try_from(fits) {
            let window = |i: usize| (0..w).map(|k| x[step * i + k] * weight[k]).sum::<f64>();
            prop_assert_eq!(out, Ok(Array1::from_shape_fn(fits, window)));
        } else {
            let error = out.unwrap_err().to_string();
            prop_assert!(error.contains("computed from dims `i`, `k`"), "{}", error);
        }
    }

    #[test]
    fn convolutions_that_pad(h in size(), w in size(), c in size(), seed: u64) {
        let (x, k) = (filled((c, h, w), seed), filled((c, 3, 3), seed + 1));
        let read = |c: usize, y: isize, z: isize| {
            let inside = y >= 0 && z >= 0 && (y as usize) < h && (z as usize) < w;
            if inside { x[[c, y as usize, z as usize]] } else { 0.0 }
        };
        let mut expected = Array2::<f64>::zeros((h, w));
        for i in 0..h {
            for j in 0..w {
                for c in 0..c {
                    for di in -1..=1 {
                        for dj in -1..=1 {
                            let weight = k[[c, (di + 1) as usize, (dj + 1) as usize]];
                            expected[[i, j]] += read(c, i as isize + di, j as isize + dj) * weight;
                        }
                    }
                }
            }
        }
        let padded = tensor!([i in 0..h, j in 0..w] => sum[c, di in -1..=1, dj in -1..=1](
            if i + di >= 0 && i + di < h && j + dj >= 0 && j + dj < w { x[c, i + di, j + dj] * k[c, di + 1, dj + 1] } else { 0.0 }
        ));
        prop_assert_eq!(padded, expected);
    }

    #[test]
    fn rolls_and_parts(n in size(), from in 0usize..4, by in 0usize..9, seed: u64) {
        let a = filled(n, seed);
        prop_assert_eq!(tensor!([i in 0..n] => a[(i + by) % n]), Array1::from_shape_fn(n, |i| a[(i + by) % n]));
        let end = n.max(from);
        prop_assert_eq!(
            tensor!([i in from..end] => a[i] * i as f64),
            Array1::from_iter((from..end).map(|i| a[i] * i as f64))
        );
        prop_assert_eq!(tensor!([i in from..n] => i), Array1::from_iter((from..n).map(|i| i as isize)));
        let shape = (n / 2, 2);
        prop_assert_eq!(tensor!([i in 0..n / 2, j in 0..2] => a[i * 2 + j]), Array2::from_shape_fn(shape, |(i, j)| a[i * 2 + j]));
        prop_assert_eq!(tensor!([i in 0..n] => a[n - i - 1]), a.iter().rev().copied().collect::<Array1<f64>>());
    }

    #[test]
    fn lookups(b in size(), s in size(), rows in some(), f in size(), seed: u64) {
        let table = filled((rows, f), seed);
        let ids = filled((b, s), seed + 1).mapv(|value| (value + 16.0) as usize % rows);
        let expected = Array2::from_shape_fn((b, f), |(b, f)| (0..s).map(|s| table[[ids[[b, s]], f]]).sum::<f64>());
        prop_assert_eq!(&tensor!([b, f] => sum[s](table[ids[b, s], f])), &expected);
        if s > 0 {
            let looked_up = Array2::from_shape_fn((b, f), |(b, f)| table[[ids[[b, 0]], f]]);
            prop_assert_eq!(&tensor!([b, f] => { let id = ids[b, 0]; table[id, f] }), &looked_up);
        }
        prop_assert_eq!(tensor!([b, f] => sum[s, r](if ids[b, s] == r { table[r, f] } else { 0.0 })), expected);
    }

    #[test]
    fn choices(n in size(), m in size(), seed: u64) {
        let a = filled((n, m), seed);
        let b = filled((n, m).f(), seed + 1);
        let expected = Array2::from_shape_fn((n, m), |(i, j)| {
            if i < j && a[[i, j - 1]] > 0.0 {
                a[[i, j - 1]]
            } else if a[[i, j]] == b[[i, j]] || j == 0 {
                -1.0
            } else {
                b[[i, j - 1]] * 2.0
            }
        });
        prop_assert_eq!(
            tensor!([i, j] => if i < j && a[i, j - 1] > 0.0 {
                a[i, j - 1]
            } else if a[i, j] == b[i, j] || j == 0 {
                -1.0
            } else {
                b[i, j - 1] * 2.0
            }),
            expected
        );
    }

    #[test]
    fn reductions_in_branches(n in size(), m in some(), seed: u64) {
        let a = filled((n, m), seed);
        let before = |i: usize| (0..m).map(|k| a[[i - 1, k]]).fold(f64::NEG_INFINITY, f64::max);
        let expected = Array1::from_shape_fn(n, |i| if i == 0 { 0.0 } else { before(i) });
        prop_assert_eq!(&tensor!([i] => if i > 0 { max[k](a[i - 1, k]) } else { a[i, 0] * 0.0 }), &expected);
        prop_assert_eq!(&tensor!([i] => if i == 0 { a[i, 0] * 0.0 } else { let m = max[k](a[i - 1, k]); m }), &expected);
        let positive = Array1::from_shape_fn(n, |i| i > 0 && before(i) > 0.0);
        prop_assert_eq!(&tensor!([i in 0..n] => i > 0 && max[k](a[i - 1, k]) > 0.0), &positive);
        prop_assert_eq!(tensor!([i in 0..n] => i == 0 || max[k](a[i - 1, k]) > 0.0), Array1::from_shape_fn(n, |i| i == 0 || positive[i]));
    }

    #[test]
    fn every_reduction(n in size(), m in some(), seed: u64) {
        let a = filled((n, m), seed);
        let row = |f: &dyn Fn(Vec<f64>) -> f64| Array1::from_shape_fn(n, |i| f(a.row(i).to_vec()));
        prop_assert_eq!(tensor!([i] => sum[k](a[i, k])), row(&|row| row.iter().sum()));
        prop_assert_eq!(tensor!([i] => prod[k](a[i, k].signum())), row(&|row| row.iter().map(|x| if *x == 0.0 { 0.0 } else { x.signum() }).product()));
        prop_assert_eq!(tensor!([i] => min[k](a[i, k])), row(&|row| row.into_iter().fold(f64::INFINITY, f64::min)));
        prop_assert_eq!(tensor!([i] => argmin[k](a[i, k])), tensor!([i] => argmax[k](-a[i, k])));
        prop_assert_eq!(tensor!([i] => any[k](a[i, k] > 3.0)), tensor!([i] => !all[k](a[i, k] <= 3.0)));
        prop_assert_eq!(tensor!([i] => count[k](a[i, k] > 3.0)), tensor!([i] => sum[k]((a[i, k] > 3.0) as usize)));
        prop_assert_eq!(tensor!([i] => mean[k](a[i, k])), tensor!([i] => sum[k](a[i, k]) / m as f64));
    }

    #[test]
    fn three_operands_and_functions(n in size(), m in size(), l in size(), seed: u64) {
        let (a, b, c) = (filled((n, m), seed), filled(m, seed + 1), filled((m, l, n), seed + 2));
        let f = |x: f64, y: f64, z: f64| x * 2.0 + y.max(z);
        let expected = Array3::from_shape_fn((n, m, l), |(i, j, k)| f(a[[i, j]], b[j], c[[j, k, i]]) - b[j].rem_euclid(3.0));
        prop_assert_eq!(tensor!([i, j, k] => f(a[i, j], b[j], c[j, k, i]) - b[j].rem_euclid(3.0)), expected);
    }

    #[test]
    fn integers_of_all_types(n in size(), by in -3i32..4) {
        let bytes = Array1::from_shape_fn(n, |i| i as u8);
        let longs = Array1::from_shape_fn(n, |i| u64::MAX - i as u64);
        prop_assert_eq!(tensor!([i] => bytes[i] == i), Array1::from_elem(n, true));
        prop_assert_eq!(tensor!([i] => longs[i] > i), Array1::from_elem(n, true));
        prop_assert_eq!(tensor!([i] => i < longs[i]), Array1::from_elem(n, true));
        prop_assert_eq!(tensor!([i] => bytes[i] + i), Array1::from_shape_fn(n, |i| 2 * i as u8));
        prop_assert_eq!(tensor!([i] => by + i - bytes[i] as isize), Array1::from_elem(n, by as isize));
        prop_assert_eq!(tensor!([i in 0..n] => (i.max(by) & 6).min(4)), Array1::from_shape_fn(n, |i| ((i as isize).max(by as isize) & 6).min(4)));
        prop_assert_eq!(tensor!([i in 0..n] => -i * 2 / 3 % 2), Array1::from_shape_fn(n, |i| -(i as isize) * 2 / 3 % 2));
        prop_assert_eq!(tensor!([i] => bytes[i] << 1 >> 1), bytes);
    }
}
