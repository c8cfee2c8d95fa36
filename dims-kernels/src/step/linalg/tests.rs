//! Checks operations against the properties that define their results, for several element types,
//! sizes and batches, and against results from NumPy and SciPy.

mod exponential;
mod lanes;
mod numpy;
mod properties;
mod refused;

use super::*;
use crate::error::MatrixFailure;
use crate::memory::buffer::Buffer;
use crate::scalar::Num;
use crate::step::{AnyBuffer, Executed, execute};
use alloc::vec::Vec;
use num_complex::Complex;
use num_traits::{Float, ToPrimitive};

/// Pseudo-random numbers from -1 to 1.
struct TestNumbers(u64);

impl TestNumbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Element types that can be made of a real and an imaginary part.
trait TestElement: MatrixElement {
    fn of(re: f64, im: f64) -> Self;
}

macro_rules! test_elements {
    ($($t:ident)*) => {$(
        impl TestElement for $t {
            fn of(re: f64, _: f64) -> Self {
                re as $t
            }
        }
        impl TestElement for Complex<$t> {
            fn of(re: f64, im: f64) -> Self {
                Complex::new(re as $t, im as $t)
            }
        }
    )*};
}
test_elements!(f32 f64);

/// A matrix, row by row.
#[derive(Clone, Debug)]
struct TestMatrix<T> {
    rows: usize,
    columns: usize,
    data: Vec<T>,
}

impl<T: TestElement> TestMatrix<T> {
    fn new(data: &[T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns);
        TestMatrix { rows, columns, data: data.to_vec() }
    }

    fn of(rows: usize, columns: usize, f: impl Fn(usize, usize) -> T) -> Self {
        let data = (0..rows * columns).map(|at| f(at / columns, at % columns)).collect();
        TestMatrix { rows, columns, data }
    }

    fn random(rows: usize, columns: usize, random: &mut TestNumbers) -> Self {
        let data = (0..rows * columns).map(|_| T::of(random.next(), random.next())).collect();
        TestMatrix { rows, columns, data }
    }

    fn identity(size: usize) -> Self {
        TestMatrix::of(size, size, |row, column| if row == column { T::ONE } else { T::ZERO })
    }

    fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.columns + column]
    }

    fn t(&self) -> Self {
        TestMatrix::of(self.columns, self.rows, |row, column| self.at(column, row))
    }

    fn h(&self) -> Self {
        TestMatrix::of(self.columns, self.rows, |row, column| self.at(column, row).conjugate())
    }

    fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        TestMatrix::of(self.rows, other.columns, |row, column| {
            (0..self.columns)
                .fold(T::ZERO, |sum, k| Num::add(sum, Num::mul(self.at(row, k), other.at(k, column))))
        })
    }

    fn plus(&self, other: &Self) -> Self {
        TestMatrix::of(self.rows, self.columns, |row, column| {
            Num::add(self.at(row, column), other.at(row, column))
        })
    }

    fn scaled(&self, by: f64) -> Self {
        TestMatrix::of(self.rows, self.columns, |row, column| Num::mul(self.at(row, column), T::of(by, 0.0)))
    }

    #[track_caller]
    fn assert_near(&self, other: &Self, what: &str) {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "{what}");
        let size = |value: T| value.size().to_f64().expect("the size fits into `f64`");
        let most = other.data.iter().map(|&value| size(value)).fold(1.0, f64::max);
        let tolerance =
            most * (1 + self.rows.max(self.columns)) as f64 * 100.0 * T::Part::epsilon().to_f64().unwrap();
        for (at, (&found, &expected)) in self.data.iter().zip(&other.data).enumerate() {
            let error = size(Num::sub(found, expected));
            assert!(error <= tolerance, "{what}, element {at}: {found:?} instead of {expected:?}");
        }
    }
}

fn run<T: MatrixElement>(
    work: MatrixWork,
    sizes: MatrixSizes,
    operands: &[Vec<T>],
) -> Result<Executed, Error> {
    let mut buffers: Vec<Buffer<T>> = operands.iter().cloned().map(Buffer::from).collect();
    let mut operands: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| own as _).collect();
    execute(&MatrixStep::<T>::new(work, sizes), &mut operands)
}

/// Runs an operation with one operand.
fn run_one<T: MatrixElement>(work: MatrixWork, sizes: MatrixSizes, data: &[T]) -> Result<Executed, Error> {
    run(work, sizes, &[data.to_vec()])
}

/// Splits a result into matrices.
fn pieces<T: TestElement>(data: &[T], rows: usize, columns: usize, batch: usize) -> Vec<TestMatrix<T>> {
    (0..batch)
        .map(|at| TestMatrix::new(&data[at * rows * columns..(at + 1) * rows * columns], rows, columns))
        .collect()
}

const SIZES: [usize; 10] = [0, 1, 2, 3, 4, 5, 8, 9, 16, 33];

fn all<T: TestElement>(
    batch: usize,
    make: impl Fn(&mut TestNumbers) -> TestMatrix<T>,
) -> (Vec<TestMatrix<T>>, Vec<T>) {
    let mut random = TestNumbers(batch as u64 + 7);
    let own: Vec<TestMatrix<T>> = (0..batch).map(|_| make(&mut random)).collect();
    let data = own.iter().flat_map(|own| own.data.clone()).collect();
    (own, data)
}

fn regular<T: TestElement>(size: usize) -> impl Fn(&mut TestNumbers) -> TestMatrix<T> {
    move |random| {
        let share = 2.0 / (1.0 + size as f64);
        TestMatrix::random(size, size, random).scaled(share).plus(&TestMatrix::identity(size))
    }
}
