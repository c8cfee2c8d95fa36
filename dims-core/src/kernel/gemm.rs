//! Matrix products with arbitrary strides: `C = A B` or `C += A B`.
//!
//! `matrixmultiply` does the work for the types that it knows; small products and other types have loops of their own.

use super::isa::{Isa, Task, dispatch};
use crate::scalar::Num;
use num_complex::{Complex32, Complex64};
use std::any::TypeId;

/// A strided matrix for reading.
#[derive(Debug)]
pub struct Matrix<T> {
    /// The first element.
    pub start: *const T,
    /// Distance between rows.
    pub row: isize,
    /// Distance between columns.
    pub col: isize,
}

/// A product of an `m` x `k` and a `k` x `n` matrix.
#[derive(Debug)]
pub struct Product<T> {
    /// Rows of the result.
    pub m: usize,
    /// Elements of each sum.
    pub k: usize,
    /// Columns of the result.
    pub n: usize,
    /// The left matrix.
    pub a: Matrix<T>,
    /// The right matrix.
    pub b: Matrix<T>,
    /// The first element of the result.
    pub c: *mut T,
    /// Distance between rows of the result.
    pub c_row: isize,
    /// Distance between columns of the result.
    pub c_col: isize,
    /// Whether the product is added to what the result holds.
    pub accumulate: bool,
}

impl<T> Product<T> {
    /// The same product on elements that lie elsewhere.
    #[inline]
    pub fn moved(&self, a: isize, b: isize, c: isize) -> Self {
        Product {
            a: Matrix { start: self.a.start.wrapping_offset(a), ..self.a },
            b: Matrix { start: self.b.start.wrapping_offset(b), ..self.b },
            c: self.c.wrapping_offset(c),
            ..*self
        }
    }
}

impl<T> Clone for Product<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Product<T> {}

impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Matrix<T> {}

/// Products of at most this many multiplications are not worth a library's packing.
const SMALL: usize = 16 * 16 * 16;

/// Runs the product.
///
/// # Safety
///
/// All elements of `a` and `b` are valid for reads, and those of `c` for writes and (if accumulating) reads; nothing
/// else accesses `c`, whose elements are distinct.
#[inline]
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    if product.m * product.n * product.k <= SMALL {
        // SAFETY: the caller's promise.
        unsafe { small(product) };
        return;
    }
    macro_rules! library {
        ($($t:ty: $call:expr;)*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$t>() {
                let one: $t = num_traits::One::one();
                let zero: $t = num_traits::Zero::zero();
                let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
                let beta = if accumulate { one } else { zero };
                let call = $call;
                // SAFETY: the caller's promise; `T` is this type, so the pointers point at such elements.
                unsafe {
                    call(m, k, n, one, a.start.cast::<$t>(), a.row, a.col, b.start.cast::<$t>(), b.row, b.col, beta,
                        c.cast::<$t>(), c_row, c_col)
                };
                return;
            }
        )*};
    }
    library! {
        f32: matrixmultiply::sgemm;
        f64: matrixmultiply::dgemm;
        Complex32: complex32;
        Complex64: complex64;
    }
    // SAFETY: the caller's promise.
    unsafe { plain(product) }
}

macro_rules! complex {
    ($name:ident $t:ty, $part:ty, $call:path) => {
        #[allow(clippy::too_many_arguments)]
        unsafe fn $name(
            m: usize,
            k: usize,
            n: usize,
            alpha: $t,
            a: *const $t,
            a_row: isize,
            a_col: isize,
            b: *const $t,
            b_row: isize,
            b_col: isize,
            beta: $t,
            c: *mut $t,
            c_row: isize,
            c_col: isize,
        ) {
            let flag = matrixmultiply::CGemmOption::Standard;
            let parts = |z: $t| [z.re, z.im];
            // SAFETY: a complex number is laid out as its two parts; the rest is the caller's promise.
            unsafe {
                $call(
                    flag,
                    flag,
                    m,
                    k,
                    n,
                    parts(alpha),
                    a.cast::<[$part; 2]>(),
                    a_row,
                    a_col,
                    b.cast(),
                    b_row,
                    b_col,
                    parts(beta),
                    c.cast(),
                    c_row,
                    c_col,
                )
            }
        }
    };
}

complex!(complex32 Complex32, f32, matrixmultiply::cgemm);
complex!(complex64 Complex64, f64, matrixmultiply::zgemm);

/// A small product, without packing.
#[inline]
unsafe fn small<T: Num>(product: &Product<T>) {
    dispatch(Small(*product));
}

struct Small<T>(Product<T>);

impl<T: Num> Task for Small<T> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let mut product = self.0;
        if product.b.col != 1 && product.a.row == 1 {
            // The transposed product has neighbours in its rows.
            product = Product {
                m: product.n,
                n: product.m,
                a: Matrix { row: product.b.col, col: product.b.row, ..product.b },
                b: Matrix { row: product.a.col, col: product.a.row, ..product.a },
                c_row: product.c_col,
                c_col: product.c_row,
                ..product
            };
        }
        // SAFETY: `multiply`, whose caller promised that all elements are valid, made this task.
        unsafe {
            let mut column = 0;
            if product.b.col == 1 {
                column = columns::<T, 16>(&product, column);
                column = columns::<T, 8>(&product, column);
                column = columns::<T, 4>(&product, column);
            }
            columns::<T, 1>(&product, column);
        }
    }
}

/// Blocks of `W` neighbouring columns from `start` on, as many as there are, each row of a block in registers. Returns the
/// column behind the last block.
///
/// # Safety
///
/// As for [`multiply`]; if `W` is not 1, the columns of the right matrix are neighbours.
#[inline(always)]
unsafe fn columns<T: Num, const W: usize>(product: &Product<T>, start: usize) -> usize {
    let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
    let mut column = start;
    while column + W <= n {
        for i in 0..m {
            let mut sums = [T::ZERO; W];
            for p in 0..k {
                // SAFETY: row `i`, sum `p` and the columns lie in the matrices, and the caller promised that those are valid.
                unsafe {
                    let x = *a.start.offset(i as isize * a.row + p as isize * a.col);
                    let right = b.start.offset(p as isize * b.row + column as isize * b.col);
                    for (at, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.add(x.mul(*right.add(at)));
                    }
                }
            }
            for (at, &sum) in sums.iter().enumerate() {
                // SAFETY: as above.
                unsafe {
                    let out = c.offset(i as isize * c_row + (column + at) as isize * c_col);
                    *out = if accumulate { (*out).add(sum) } else { sum };
                }
            }
        }
        column += W;
    }
    column
}

/// Rows of the result as sums of rows of the right matrix, for types without a library.
unsafe fn plain<T: Num>(product: &Product<T>) {
    let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
    for i in 0..m {
        for j in 0..n {
            if !accumulate {
                // SAFETY: the element lies in the result, which the caller gave us exclusively.
                unsafe { *c.offset(i as isize * c_row + j as isize * c_col) = T::ZERO };
            }
        }
        for p in 0..k {
            // SAFETY: the element lies in the matrix, and the caller promised that it is valid.
            let x = unsafe { *a.start.offset(i as isize * a.row + p as isize * a.col) };
            for j in 0..n {
                // SAFETY: as above.
                unsafe {
                    let out = c.offset(i as isize * c_row + j as isize * c_col);
                    *out = (*out).add(x.mul(*b.start.offset(p as isize * b.row + j as isize * b.col)));
                }
            }
        }
    }
}
