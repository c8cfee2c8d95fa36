//! Compares products of few rows or columns with the definition of a matrix product.

use super::multiply;
use crate::gemm::dispatch::{Route, has_vector_kernels, multiply_by};
use crate::gemm::{Matrix, Product};
use crate::machine::level::Level;
use crate::machine::params::skinny::{KC, MAX_ROWS};
use alloc::vec;
use alloc::vec::Vec;
use num_traits::Float;
use proptest::prelude::*;
use std::fmt::Debug;

/// A matrix and the memory that holds it, which ends where the matrix ends. The memory before and
/// between lines is NaN.
struct Placed<T> {
    memory: Vec<T>,
    first: usize,
    row: isize,
    col: isize,
}

impl<T: Float + 'static> Placed<T> {
    /// A matrix that is contiguous along its rows or its columns; its lines may have gaps between
    /// them and may be in reverse order.
    fn new([rows, columns]: [usize; 2], row_major: bool, gap: usize, reversed: bool, before: usize) -> Self {
        let (lines, len) = if row_major { (rows, columns) } else { (columns, rows) };
        let step = len + gap;
        let memory = vec![T::nan(); before + (lines - 1) * step + len];
        let first = before + if reversed { (lines - 1) * step } else { 0 };
        let step = if reversed { -(step as isize) } else { step as isize };
        let (row, col) = if row_major { (step, 1) } else { (1, step) };
        Placed { memory, first, row, col }
    }

    fn at(&mut self, row: usize, column: usize) -> &mut T {
        let place = self.first as isize + row as isize * self.row + column as isize * self.col;
        &mut self.memory[place as usize]
    }

    fn matrix(&self) -> Matrix<T> {
        let start = self.memory.as_ptr().wrapping_add(self.first);
        Matrix { start, row: self.row, col: self.col }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    sizes: [usize; 3],
    /// Whether each of the matrices is contiguous along its rows.
    row_major: [bool; 3],
    reversed: [bool; 3],
    gaps: [usize; 3],
    before: usize,
    accumulate: bool,
    seed: u64,
}

fn check<T: Float + Debug + 'static>(case: Case) {
    let Case { sizes: [m, k, n], row_major, reversed, gaps, before, accumulate, seed } = case;
    let shapes = [[m, k], [k, n], [m, n]];
    let [mut a, mut b, mut c] = core::array::from_fn(|at| {
        Placed::<T>::new(shapes[at], row_major[at], gaps[at], reversed[at], before)
    });
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        T::from((state >> 33) % 17).expect("the integer is small") - T::from(8).expect("8 is small")
    };
    for p in 0..k {
        (0..m).for_each(|i| *a.at(i, p) = next());
        (0..n).for_each(|j| *b.at(p, j) = next());
    }
    let start = if accumulate { T::one() } else { T::nan() };
    // Sums of small integers are exact in any order.
    let mut expected = vec![if accumulate { T::one() } else { T::zero() }; m * n];
    for i in 0..m {
        for j in 0..n {
            for p in 0..k {
                expected[i * n + j] = expected[i * n + j] + *a.at(i, p) * *b.at(p, j);
            }
        }
    }
    for level in [Level::Avx2, Level::Avx512] {
        if level as u8 > crate::machine::level::level() as u8 {
            continue;
        }
        c.memory.fill(T::nan());
        for i in 0..m {
            (0..n).for_each(|j| *c.at(i, j) = start);
        }
        let (first, c_row, c_col) = (c.first, c.row, c.col);
        let product = Product {
            m,
            k,
            n,
            a: a.matrix(),
            b: b.matrix(),
            c: c.memory.as_mut_ptr().wrapping_add(first),
            c_row,
            c_col,
            accumulate,
        };
        // SAFETY: the matrices are within the vectors; the machine supports the level, there are
        // few rows, and the right matrix is contiguous along an axis.
        unsafe { multiply(level, &product) };
        for i in 0..m {
            for j in 0..n {
                assert_eq!(*c.at(i, j), expected[i * n + j], "{level:?}, element ({i}, {j})");
                *c.at(i, j) = T::nan();
            }
        }
        assert!(c.memory.iter().all(|x| x.is_nan()), "{level:?} writes outside the result");
    }
}

fn cases(k: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
    let rows = (any::<[bool; 3]>(), any::<[bool; 3]>(), [0..9usize, 0..40usize, 0..9usize]);
    ((1..=MAX_ROWS, k, 1..150usize), rows, 0..17usize, any::<bool>(), any::<u64>()).prop_map(
        |((m, k, n), (row_major, reversed, gaps), before, accumulate, seed)| Case {
            sizes: [m, k, n],
            row_major,
            reversed,
            gaps,
            before,
            accumulate,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn products_are_those_of_the_definition(case in cases(1..100usize)) {
        check::<f32>(case);
        check::<f64>(case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Sums over one to twenty blocks of rows if the right matrix is row-major, otherwise over one
    /// or more parts of its lines.
    #[test]
    fn long_sums_are_those_of_the_definition(case in cases(KC..20 * KC)) {
        check::<f32>(case);
        check::<f64>(case);
    }
}

#[test]
fn large_products_of_few_rows_or_columns_are_those_of_the_definition() {
    let (few, many, k) = (3, 300, 200);
    for (m, n) in [(few, many), (many, few)] {
        let a: Vec<f32> = (0..m * k).map(|at| (at % 7) as f32).collect();
        let b: Vec<f32> = (0..k * n).map(|at| (at % 5) as f32).collect();
        let mut c = vec![f32::NAN; m * n];
        let product = Product {
            m,
            k,
            n,
            a: Matrix { start: a.as_ptr(), row: k as isize, col: 1 },
            b: Matrix { start: b.as_ptr(), row: n as isize, col: 1 },
            c: c.as_mut_ptr(),
            c_row: n as isize,
            c_col: 1,
            accumulate: false,
        };
        // SAFETY: each matrix fills its vector.
        let is_done = unsafe { multiply_by(Route::SkinnyRows, &product) };
        assert_eq!(is_done, has_vector_kernels::<f32>());
        for i in 0..m {
            for j in 0..n {
                let sum: f32 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                assert!(!is_done || c[i * n + j] == sum, "element ({i}, {j})");
            }
        }
    }
}

/// Adding 0.1 to a sum 65,536 times, one by one, would have a relative error of 6e-4.
#[test]
fn rounding_grows_slowly_with_the_length_of_a_sum() {
    let (k, n) = (1 << 16, 32);
    let ones = vec![1.0f32; k];
    let b = vec![0.1f32; k * n];
    for (row, col) in [(n as isize, 1), (1, k as isize)] {
        let mut c = vec![f32::NAN; n];
        let product = Product {
            m: 1,
            k,
            n,
            a: Matrix { start: ones.as_ptr(), row: 0, col: 1 },
            b: Matrix { start: b.as_ptr(), row, col },
            c: c.as_mut_ptr(),
            c_row: n as isize,
            c_col: 1,
            accumulate: false,
        };
        // SAFETY: each matrix fills its vector.
        if unsafe { multiply_by(Route::SkinnyRows, &product) } {
            let exact = k as f64 * f64::from(0.1f32);
            for &sum in &c {
                let error = (f64::from(sum) - exact).abs() / exact;
                assert!(error < 1e-5, "{error}");
            }
        }
    }
}
