//! Matrix products with arbitrary strides: `C = A B` or `C += A B`.
//!
//! A product takes the first of these routes that can compute it (`dispatch.rs` has the
//! conditions):
//!
//! * a BLAS that the user has installed (feature `blas`), for the types and layouts that it
//!   supports, unless the product is small;
//! * on x86-64 with AVX2, for `f32` and `f64`, if the rows of the right matrix and of the result
//!   are contiguous: [reading both matrices in place](unpacked), unless packing is faster;
//! * for other small products of any type: loops over register tiles;
//! * on x86-64 with AVX2, for `f32` and `f64`: [one pass over a large matrix](skinny) for few rows
//!   or columns, and [`panels`] for a transposed right matrix, unless there are many rows;
//! * the crate `gemm` (feature `gemm`, on by default) or else `matrixmultiply`, for the types that
//!   they support;
//! * loops over rows, for all other types.
//!
//! In measurements of `f32` with AVX-512, `gemm` is faster than `matrixmultiply`, but slower than
//! panels where the right matrix is transposed and there are not many rows, especially if the
//! columns of the right matrix are far apart.

use crate::memory::elements::{Elements, Reaches};
use crate::scalar::Num;

#[cfg(feature = "blas")]
mod blas;
pub mod dispatch;
#[cfg(x86_vectors)]
pub(crate) mod in_panels;
#[cfg(feature = "blas")]
pub(crate) mod installed;
#[cfg_attr(feature = "gemm", path = "fast.rs")]
#[cfg_attr(not(feature = "gemm"), path = "portable.rs")]
mod library;
mod loops;
#[cfg(x86_vectors)]
pub(crate) mod panels;
pub(crate) mod plan;
pub(crate) mod products;
#[cfg(x86_vectors)]
mod skinny;
#[cfg(x86_vectors)]
mod tile;
#[cfg(x86_vectors)]
mod unpacked;

pub use dispatch::{KnownLayout, multiply_as};
pub(crate) use loops::multiply_scattered;

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
    /// Whether the product is added to the result.
    pub accumulate: bool,
}

impl<T> Product<T> {
    /// The same product with its matrices moved by these offsets.
    #[inline]
    pub fn moved(&self, a: isize, b: isize, c: isize) -> Self {
        Product {
            a: Matrix { start: self.a.start.wrapping_offset(a), ..self.a },
            b: Matrix { start: self.b.start.wrapping_offset(b), ..self.b },
            c: self.c.wrapping_offset(c),
            ..*self
        }
    }

    /// The same product with rows and columns exchanged: `C' = B' A'`.
    #[inline]
    fn transposed(&self) -> Self {
        Product {
            m: self.n,
            n: self.m,
            a: Matrix { row: self.b.col, col: self.b.row, ..self.b },
            b: Matrix { row: self.a.col, col: self.a.row, ..self.a },
            c_row: self.c_col,
            c_col: self.c_row,
            ..*self
        }
    }

    /// The product, or its transpose if only that has a row-major right matrix.
    #[inline]
    pub fn with_row_major_b(&self) -> Self {
        if self.needs_transpose_for_b() { self.transposed() } else { *self }
    }

    /// The product, or its transpose, so that the columns of the result are at most as far apart as
    /// its rows.
    #[inline]
    pub fn with_row_major_c(&self) -> Self {
        if self.has_row_major_c() { *self } else { self.transposed() }
    }

    /// Whether [`with_row_major_c`](Product::with_row_major_c) returns the product as it is.
    #[inline]
    fn has_row_major_c(&self) -> bool {
        self.c_col.unsigned_abs() <= self.c_row.unsigned_abs()
    }

    /// Whether [`with_row_major_b`](Product::with_row_major_b) transposes the product.
    #[inline]
    pub fn needs_transpose_for_b(&self) -> bool {
        self.b.col != 1 && self.a.row == 1
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

/// Products of the same sizes, evenly spaced in memory.
pub struct StridedBatch {
    /// The number of products.
    pub count: usize,
    /// Rows of each result.
    pub m: usize,
    /// Elements of each sum.
    pub k: usize,
    /// Columns of each result.
    pub n: usize,
    /// Distances between products, rows and columns in the left operand.
    pub a: [isize; 3],
    /// Distances between products, rows and columns in the right operand.
    pub b: [isize; 3],
    /// Distances between products, rows and columns in the results, whose elements are distinct.
    pub c: [isize; 3],
}

impl StridedBatch {
    /// Runs the products.
    ///
    /// # Safety
    ///
    /// The results from `out` on are valid for writes, distinct, and accessed by nothing else. The
    /// strides of an operand map each position of the products to one of its elements. `layout`, if
    /// given, is the layout of the matrices.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn multiply<T: Num>(
        &self,
        layout: Option<KnownLayout>,
        a: Elements<'_, T>,
        b: Elements<'_, T>,
        out: *mut T,
    ) {
        let &StridedBatch { count, m, k, n, .. } = self;
        a.assert_reach(0, &[count, m, k], &self.a);
        b.assert_reach(0, &[count, k, n], &self.b);
        for at in 0..count as isize {
            let product = Product {
                m,
                k,
                n,
                a: Matrix {
                    start: a.as_ptr().wrapping_offset(at * self.a[0]),
                    row: self.a[1],
                    col: self.a[2],
                },
                b: Matrix {
                    start: b.as_ptr().wrapping_offset(at * self.b[0]),
                    row: self.b[1],
                    col: self.b[2],
                },
                c: out.wrapping_offset(at * self.c[0]),
                c_row: self.c[1],
                c_col: self.c[2],
                accumulate: false,
            };
            // SAFETY: all positions of product `at` are elements of the operands, and its results
            // are valid and distinct, as the caller promises.
            unsafe { multiply_as(&product, layout) };
        }
    }
}

/// Computes the product.
///
/// # Safety
///
/// All elements of `a` and `b` are valid for reads, and all elements of `c` for writes and (if
/// accumulating) reads; nothing else accesses `c`, whose elements are distinct.
#[inline]
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    // SAFETY: the caller's promise.
    unsafe { multiply_as(product, None) }
}
