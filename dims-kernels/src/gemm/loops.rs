//! Matrix products written as plain loops: small products of any type, whose sums stay in
//! registers, and products of types that no library supports.

use crate::gemm::Product;
use crate::machine::isa::{Isa, Task, dispatch};
use crate::scalar::Num;

/// # Safety
///
/// As for [`crate::gemm::multiply`].
#[inline(never)]
pub unsafe fn small<T: Num>(product: &Product<T>) {
    let product = product.with_row_major_b();
    let sum = EvenOffsets { count: product.k, a: product.a.col, b: product.b.row };
    dispatch(Small { product, sum });
}

/// Computes a product that sums over arbitrary elements. `sum` lists their offsets from the first
/// element of the row in the left matrix, and from the first element of the column in the right
/// one. The fields `k`, `a.col` and `b.row` are ignored.
///
/// The product is not transposed here: callers first apply
/// [`with_row_major_b`](Product::with_row_major_b), and exchange the offsets in `sum` if that
/// transposes the product.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`], with the elements that `sum` lists.
#[inline]
pub unsafe fn multiply_scattered<T: Num>(product: &Product<T>, sum: &[(isize, isize)]) {
    dispatch(Small { product: *product, sum });
}

/// The offsets of the elements of a sum from its first element, in the left and in the right
/// matrix.
trait SumOffsets: Copy {
    /// Whether products with such offsets are also compiled for AVX-512. Those with evenly spaced
    /// offsets are not, because such products of floats usually run in `unpacked`.
    const WIDE: bool;
    fn count(self) -> usize;
    fn at(self, at: usize) -> (isize, isize);
}

#[derive(Clone, Copy)]
struct EvenOffsets {
    count: usize,
    a: isize,
    b: isize,
}

impl SumOffsets for EvenOffsets {
    const WIDE: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn count(self) -> usize {
        self.count
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn at(self, at: usize) -> (isize, isize) {
        (at as isize * self.a, at as isize * self.b)
    }
}

impl SumOffsets for &[(isize, isize)] {
    const WIDE: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn count(self) -> usize {
        self.len()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn at(self, at: usize) -> (isize, isize) {
        self[at]
    }
}

/// Whether products have blocks of all sizes. Those of integers do not, to save compile time: each
/// user's crate compiles these loops, and products of integers are rare.
const fn has_all_blocks<T: Num>() -> bool {
    T::DIVIDES_BY_ZERO
}

struct Small<T, S> {
    product: Product<T>,
    sum: S,
}

impl<T: Num, S: SumOffsets> Task for Small<T, S> {
    type Out = ();
    const WIDE: bool = S::WIDE;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(self) {
        // SAFETY: only `small` and `multiply_scattered` make this task; their callers promise that
        // all elements are valid.
        unsafe {
            let mut column = 0;
            if self.product.b.col == 1 {
                if const { has_all_blocks::<T>() } {
                    column = self.columns::<I, 16>(column);
                }
                column = self.columns::<I, 8>(column);
                column = self.columns::<I, 4>(column);
                if const { has_all_blocks::<T>() } {
                    column = self.columns::<I, 2>(column);
                }
            }
            self.columns::<I, 1>(column);
        }
    }
}

impl<T: Num, S: SumOffsets> Small<T, S> {
    /// Computes as many blocks of `W` adjacent columns as fit, from `start` on. Returns the column
    /// after the last block.
    ///
    /// # Safety
    ///
    /// As for [`crate::gemm::multiply`]; if `W` is not 1, the columns of the right matrix are
    /// adjacent.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn columns<I: Isa, const W: usize>(&self, start: usize) -> usize {
        let mut column = start;
        while column + W <= self.product.n {
            let mut row = 0;
            // SAFETY: the rows and columns are in the result; the rest is the caller's promise.
            unsafe {
                if const { has_all_blocks::<T>() } {
                    while row + 8 <= self.product.m {
                        self.block::<I, W, 8>(row, column);
                        row += 8;
                    }
                }
                while row + 4 <= self.product.m {
                    self.block::<I, W, 4>(row, column);
                    row += 4;
                }
                while row < self.product.m {
                    self.block::<I, W, 1>(row, column);
                    row += 1;
                }
            }
            column += W;
        }
        column
    }

    /// Computes `R` rows of `W` adjacent columns, in registers.
    ///
    /// # Safety
    ///
    /// As for [`columns`](Small::columns); the rows and columns are in the result.
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn block<I: Isa, const W: usize, const R: usize>(&self, row: usize, column: usize) {
        let Product { a, b, c, c_row, c_col, accumulate, .. } = self.product;
        let mut sums = [[T::ZERO; W]; R];
        for p in 0..self.sum.count() {
            let (in_a, in_b) = self.sum.at(p);
            // SAFETY: the rows, the columns and element `p` of the sums are in the matrices, which
            // are valid by the caller's promise; if there are several columns, they are adjacent.
            // (`offset` would check its result in each call in builds with debug assertions.)
            unsafe {
                let line = *b.start.wrapping_offset(in_b + column as isize * b.col).cast::<[T; W]>();
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = *a.start.wrapping_offset((row + i) as isize * a.row + in_a);
                    for (sum, value) in sums.iter_mut().zip(line) {
                        *sum = sum.add_product::<I>(x, value);
                    }
                }
            }
        }
        let start = c.wrapping_offset(row as isize * c_row + column as isize * c_col);
        // Three separate loops, which the compiler unrolls, so the sums stay in registers.
        if c_col != 1 {
            for (i, &sums) in sums.iter().enumerate() {
                for (at, &sum) in sums.iter().enumerate() {
                    // SAFETY: `row + i` and `column + at` are in the result, which the caller gave
                    // us exclusively.
                    unsafe {
                        let out = start.offset(i as isize * c_row + at as isize * c_col);
                        *out = if accumulate { (*out).add(sum) } else { sum };
                    }
                }
            }
        } else if accumulate {
            for (i, &sums) in sums.iter().enumerate() {
                // SAFETY: `W` columns from `column` on are in the result and are adjacent, as
                // `c_col` is 1; the caller gave us the result exclusively.
                unsafe {
                    let out = start.offset(i as isize * c_row).cast::<[T; W]>();
                    *out = core::array::from_fn(|at| (*out)[at].add(sums[at]));
                }
            }
        } else {
            for (i, &sums) in sums.iter().enumerate() {
                // SAFETY: `W` columns from `column` on are in the result and are adjacent, as
                // `c_col` is 1; the caller gave us the result exclusively.
                unsafe { *start.offset(i as isize * c_row).cast::<[T; W]>() = sums };
            }
        }
    }
}

/// Computes each row of a product as a sum of scaled rows of the right matrix.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`].
#[inline(never)]
pub unsafe fn by_rows<T: Num>(product: &Product<T>) {
    let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
    for i in 0..m {
        for j in 0..n {
            if !accumulate {
                // SAFETY: the element is in the result, which the caller gave us exclusively.
                unsafe { *c.offset(i as isize * c_row + j as isize * c_col) = T::ZERO };
            }
        }
        for p in 0..k {
            // SAFETY: the element is in the matrix, which is valid by the caller's promise.
            let x = unsafe { *a.start.offset(i as isize * a.row + p as isize * a.col) };
            for j in 0..n {
                // SAFETY: `i`, `p` and `j` are within the sizes of the product, so the element of
                // `b` is valid; the caller gave us `c` exclusively.
                unsafe {
                    let out = c.offset(i as isize * c_row + j as isize * c_col);
                    *out = (*out).add(x.mul(*b.start.offset(p as isize * b.row + j as isize * b.col)));
                }
            }
        }
    }
}
