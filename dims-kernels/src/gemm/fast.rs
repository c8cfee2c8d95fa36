//! Products by the crate `gemm`.

use crate::copy::copy_between;
use crate::gemm::dispatch::library_rows;
use crate::gemm::{Matrix, Product};
use crate::loops::nest::Row;
use crate::machine::params::PAGE;
use crate::scalar::Num;
use alloc::vec::Vec;
use gemm::Parallelism;

/// # Safety
///
/// As for [`crate::gemm::multiply`], for a type that the library knows.
#[inline(never)]
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        if is_far_apart(product) {
            run_packed(product);
        } else {
            run(product);
        }
    }
}

/// The maximum number of elements of the right matrix that are packed at once: 256 KiB of `f32`,
/// which fit into the second-level cache.
const BLOCK_ELEMENTS: usize = 1 << 16;

/// Whether the columns of the right matrix are so far apart that packing it here pays off: while
/// packing, the library would read each element of a row from a different page.
fn is_far_apart<T>(product: &Product<T>) -> bool {
    let b = &product.b;
    b.row == 1
        && b.col.unsigned_abs().saturating_mul(size_of::<T>()) >= PAGE
        && (16..library_rows()).contains(&product.m)
        && product.n >= 16
        && product.k > 0
}

/// Runs the product with packed blocks of the right matrix.
///
/// # Safety
///
/// As for [`run`].
unsafe fn run_packed<T: Num>(product: &Product<T>) {
    let Product { k, n, a, b, .. } = *product;
    let width = n.min(256);
    let height = (BLOCK_ELEMENTS / width).min(k);
    let mut lines = Vec::<T>::with_capacity(width * height);
    for column in (0..n).step_by(width) {
        let width = width.min(n - column);
        for row in (0..k).step_by(height) {
            let height = height.min(k - row);
            let from = b.start.wrapping_offset(row as isize + column as isize * b.col);
            let strides = [b.row, b.col];
            let result = [width as isize, 1];
            // SAFETY: the block is in the right matrix; `lines` has room for it, and is read
            // after the copy. For each block of columns, the first block of rows writes the results
            // that later blocks add to.
            unsafe {
                copy_between(from, Row::new(&strides), lines.as_mut_ptr(), &result, &[height, width]);
                run(&Product {
                    k: height,
                    n: width,
                    a: Matrix { start: a.start.wrapping_offset(row as isize * a.col), ..a },
                    b: Matrix { start: lines.as_ptr(), row: width as isize, col: 1 },
                    c: product.c.wrapping_offset(column as isize * product.c_col),
                    accumulate: product.accumulate || row > 0,
                    ..*product
                });
            }
        }
    }
}

/// # Safety
///
/// As for [`crate::gemm::multiply`], for a type that the library knows.
unsafe fn run<T: Num>(product: &Product<T>) {
    let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
    // SAFETY: the caller's promise.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c,
            c_col,
            c_row,
            accumulate,
            a.start,
            a.col,
            a.row,
            b.start,
            b.col,
            b.row,
            T::ONE,
            T::ONE,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
