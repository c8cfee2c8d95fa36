//! Matrix products with arbitrary strides: `C = A B` or `C += A B`.
//!
//! On x86-64 with AVX2, products of `f32` and `f64` are [read in place](unpacked) if neither the caches nor short sides speak against
//! that, products of few rows by a large matrix [read it once](skinny), and those whose right matrix is transposed run in [`panels`], unless their
//! rows are many. For others of the types that it knows a
//! library does the work: the crate `gemm` with the feature of that name, which is on by default, else `matrixmultiply`. Other types have loops
//! of their own.
//! Before all of these comes a BLAS, if the user has installed one (feature `blas`), but for small products.
//!
//! Why `gemm`: on one thread of an EPYC with AVX-512, f32, in GFLOP/s (`matrixmultiply` -> `gemm`): 1024^3 182 -> 215, 512^3 197 -> 234,
//! 128^3 167 -> 214, 64^3 135 -> 199, 32^3 87 -> 152, 64 of 128^3 152 -> 201, 1000 x 10 by 10 x 1000 157 -> 184. It loses
//! where the right matrix is transposed and rows are not many, the more the farther its columns are apart (64 x 4096 by 4096 x 64: 67, in panels
//! 221; 128 x 64 by 64 x 128: 204 and 238); without panels it is packed first. Products read in place reach 270 to 280 from 32^3 to
//! 512^3.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::machine::params::params;
use crate::memory::elements::{Elements, ElementsMut, Reaches};
use crate::scalar::Num;
use crate::seal::SEAL;
use alloc::vec::Vec;

#[cfg(feature = "blas")]
mod blas;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod in_panels;
#[cfg(feature = "blas")]
pub(crate) mod installed;
#[cfg_attr(feature = "gemm", path = "fast.rs")]
#[cfg_attr(not(feature = "gemm"), path = "portable.rs")]
mod library;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod panels;
pub(crate) mod plan;
pub(crate) mod products;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod skinny;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod tile;
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
pub(crate) mod unpacked;

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
    /// The same product with its matrices at these offsets.
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

    /// The product, or its transpose, whichever has a row-major right matrix.
    #[inline]
    pub fn with_row_major_b(&self) -> Self {
        if self.needs_transpose_for_b() { self.transposed() } else { *self }
    }

    /// The product, or its transpose, whichever has a row-major result: columns are nearer to each other than rows.
    #[inline]
    pub fn with_row_major_c(&self) -> Self {
        if self.has_row_major_c() { *self } else { self.transposed() }
    }

    /// Whether [`with_row_major_c`](Product::with_row_major_c) leaves the matrices as they are.
    #[inline]
    fn has_row_major_c(&self) -> bool {
        self.c_col.unsigned_abs() <= self.c_row.unsigned_abs()
    }

    /// Whether [`with_row_major_b`](Product::with_row_major_b) exchanges the matrices.
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

/// Products of the same sizes, at even distances.
pub struct Batch {
    /// How many products there are.
    pub count: usize,
    /// Rows of each result.
    pub m: usize,
    /// Elements of each sum.
    pub k: usize,
    /// Columns of each result.
    pub n: usize,
    /// In the left operand, the distance between products, rows and columns.
    pub a: [isize; 3],
    /// The same in the right operand.
    pub b: [isize; 3],
    /// The same in the results, whose elements are distinct.
    pub c: [isize; 3],
}

/// The results of products, into `out`, which has room for these `len` elements; constants may give the layout of the matrices. Each operand is read
/// along strides of its axes.
#[inline(always)]
pub fn multiply_batch<T: Num>(
    batch: Batch,
    layout: Option<KnownLayout>,
    a: Elements<'_, T>,
    b: Elements<'_, T>,
    out: &mut Vec<T>,
    len: usize,
) {
    let Batch { count, m, n, .. } = batch;
    assert_eq!(count * m * n, len, "the products are the result");
    assert!(len <= out.capacity(), "there is room for the results");
    // SAFETY: the positions of batch, rows and columns together are all places of the result, each once, so the products write all of them.
    unsafe {
        batch.multiply(layout, a, b, out.as_mut_ptr());
        out.set_len(len);
    }
}

/// The results of products, into memory that is initialised already.
#[inline(always)]
pub fn multiply_batch_onto<T: Num>(
    batch: Batch,
    a: Elements<'_, T>,
    b: Elements<'_, T>,
    mut out: ElementsMut<'_, T>,
) {
    out.assert_reach(0, &[batch.count, batch.m, batch.n], &batch.c);
    // SAFETY: the places are those along axes of `out`, which is borrowed exclusively.
    unsafe { batch.multiply(None, a, b, out.as_mut_ptr()) };
}

impl Batch {
    /// Runs the products.
    ///
    /// # Safety
    ///
    /// The results from `out` on are valid for writes; nothing else accesses them, and they are distinct. `layout` is that of the matrices.
    #[inline(always)]
    unsafe fn multiply<T: Num>(
        &self,
        layout: Option<KnownLayout>,
        a: Elements<'_, T>,
        b: Elements<'_, T>,
        out: *mut T,
    ) {
        let &Batch { count, m, k, n, .. } = self;
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
            // SAFETY: the positions of rows, columns, sum and batch are positions of the operands' axes, all of which are elements of
            // theirs; the rest is the caller's promise.
            unsafe {
                match layout {
                    Some(layout) => multiply_as(&product, Some(layout)),
                    None => multiply(&product),
                }
            }
        }
    }
}

/// From so many rows on the crate `gemm` multiplies by a transposed matrix as fast as by one that was packed before, and faster than
/// [`panels`] do, where rows, columns and sums are one loop each.
#[cfg_attr(not(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2"))), allow(dead_code))]
#[inline]
pub fn many_rows() -> usize {
    if cfg!(feature = "gemm") { params().library_rows } else { usize::MAX }
}

/// Products of at most this many multiplications are not worth a library's packing.
const SMALL: usize = 16 * 16 * 16;

/// The layout of the matrices of a product, as far as the types of the operands determine it.
#[cfg_attr(not(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2"))), allow(dead_code))]
#[derive(Clone, Copy, Debug)]
pub struct KnownLayout {
    /// Whether the result is column-major, so that the transposed product is computed.
    pub transposed: bool,
    /// Whether the right matrix, after that, is row-major.
    pub row_major_b: bool,
}

/// Runs the product.
///
/// # Safety
///
/// All elements of `a` and `b` are valid for reads, and those of `c` for writes and (if accumulating) reads; nothing
/// else accesses `c`, whose elements are distinct.
#[inline]
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    // SAFETY: the caller's promise.
    unsafe { multiply_as(product, None) }
}

/// [`multiply`], where constants may give the layout of the matrices: then the strides are not compared at run time.
///
/// # Safety
///
/// As for [`multiply`]; `layout` is that of the matrices.
#[inline(always)]
#[cfg_attr(
    not(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2"))),
    allow(unused_variables)
)]
pub unsafe fn multiply_as<T: Num>(product: &Product<T>, layout: Option<KnownLayout>) {
    #[cfg(feature = "blas")]
    // SAFETY: the caller's promise.
    if !is_small_product(product.m, product.n, product.k) && unsafe { blas::multiply(product) } {
        return;
    }
    #[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
    // SAFETY: the caller's promise; the transposed product is the same one.
    if unsafe {
        match layout {
            // (Not `with_row_major_c`: a copy of the product that was just assembled takes as long as the check of its layout.)
            None if product.has_row_major_c() => unpacked::multiply(product, None),
            None => unpacked::multiply(&product.transposed(), None),
            Some(KnownLayout { transposed: false, row_major_b }) => {
                unpacked::multiply(product, Some(row_major_b))
            }
            Some(KnownLayout { transposed: true, row_major_b }) => {
                unpacked::multiply(&product.transposed(), Some(row_major_b))
            }
        }
    } {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { T::multiply_packed(SEAL)(product) };
}

/// [`multiply`], for products that are not [read in place](unpacked): small ones of any type, and those whose matrices are packed.
///
/// # Safety
///
/// As for [`multiply`].
pub unsafe fn multiply_packed<T: Num>(product: &Product<T>) {
    if is_small_product(product.m, product.n, product.k) {
        let product = product.with_row_major_b();
        let sum = EvenOffsets { count: product.k, a: product.a.col, b: product.b.row };
        dispatch(Small { product, sum });
        return;
    }
    #[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
    // SAFETY: the caller's promise; a transposed product is the same one.
    if unsafe { skinny::multiply(product) || panels::multiply_column_major(&product.with_row_major_c()) } {
        return;
    }
    // SAFETY: the caller's promise.
    if unsafe { library::multiply(product) } {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { plain(product) }
}

/// Whether a product of these sizes has a loop of its own here.
#[inline]
pub fn is_small_product(m: usize, n: usize, k: usize) -> bool {
    // (With 32 bits the product of sizes may be too large to count, though each matrix fits.)
    m.saturating_mul(n).saturating_mul(k) <= SMALL
}

/// Whether products of this type run by a BLAS that the user has installed, if their layouts are among CBLAS's.
#[cfg(all(target_arch = "x86_64", any(feature = "std", target_feature = "avx2")))]
#[inline]
#[cfg_attr(not(feature = "blas"), allow(clippy::extra_unused_type_parameters))]
pub fn has_blas<T: Num>() -> bool {
    #[cfg(feature = "blas")]
    return blas::is_installed::<T>();
    #[cfg(not(feature = "blas"))]
    false
}

/// Runs a product whose sum is over elements anywhere: `sum` lists their offsets from the first of their row (of the left matrix) and of
/// their column (of the right one). So the windows of a convolution are one sum, which stays in registers. `k` and the strides
/// along it are not looked at.
///
/// The product must be one that [`with_row_major_b`](Product::with_row_major_b) returns.
///
/// # Safety
///
/// As for [`multiply`], with these elements.
#[inline]
pub unsafe fn multiply_scattered<T: Num>(product: &Product<T>, sum: &[(isize, isize)]) {
    dispatch(Small { product: *product, sum });
}

/// The offsets of the elements of a sum from the first, in the left and in the right matrix.
trait SumOffsets: Copy {
    fn count(self) -> usize;
    fn at(self, at: usize) -> (isize, isize);
}

/// Elements at even distances.
#[derive(Clone, Copy)]
struct EvenOffsets {
    count: usize,
    a: isize,
    b: isize,
}

impl SumOffsets for EvenOffsets {
    #[inline(always)]
    fn count(self) -> usize {
        self.count
    }

    #[inline(always)]
    fn at(self, at: usize) -> (isize, isize) {
        (at as isize * self.a, at as isize * self.b)
    }
}

impl SumOffsets for &[(isize, isize)] {
    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn at(self, at: usize) -> (isize, isize) {
        self[at]
    }
}

/// A small product, without packing.
struct Small<T, S> {
    product: Product<T>,
    sum: S,
}

impl<T: Num, S: SumOffsets> Task for Small<T, S> {
    type Out = ();
    const WIDE: bool = true;

    #[inline(always)]
    fn run<I: Isa>(self) {
        // SAFETY: `multiply` and `multiply_scattered`, whose callers promised that all elements are valid, make this task.
        unsafe {
            let mut column = 0;
            if self.product.b.col == 1 {
                column = self.columns::<I, 16>(column);
                column = self.columns::<I, 8>(column);
                column = self.columns::<I, 4>(column);
                column = self.columns::<I, 2>(column);
            }
            self.columns::<I, 1>(column);
        }
    }
}

impl<T: Num, S: SumOffsets> Small<T, S> {
    /// Blocks of `W` neighbouring columns from `start` on, as many as there are. Returns the column behind the last block.
    ///
    /// # Safety
    ///
    /// As for [`multiply`]; if `W` is not 1, the columns of the right matrix are neighbours.
    #[inline(always)]
    unsafe fn columns<I: Isa, const W: usize>(&self, start: usize) -> usize {
        let mut column = start;
        while column + W <= self.product.n {
            let mut row = 0;
            // SAFETY: the rows and columns lie in the result; the rest is the caller's promise.
            unsafe {
                while row + 8 <= self.product.m {
                    self.block::<I, W, 8>(row, column);
                    row += 8;
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

    /// `R` rows of `W` neighbouring columns, in registers.
    ///
    /// # Safety
    ///
    /// As for [`columns`](Small::columns); the rows and columns lie in the result.
    #[inline(always)]
    unsafe fn block<I: Isa, const W: usize, const R: usize>(&self, row: usize, column: usize) {
        let Product { a, b, c, c_row, c_col, accumulate, .. } = self.product;
        let mut sums = [[T::ZERO; W]; R];
        for p in 0..self.sum.count() {
            let (in_a, in_b) = self.sum.at(p);
            // SAFETY: the rows, the sum `p` and the columns lie in the matrices, and the caller promised that those are valid.
            unsafe {
                let right = b.start.offset(in_b + column as isize * b.col);
                let mut line = [T::ZERO; W];
                for (at, value) in line.iter_mut().enumerate() {
                    *value = *right.add(at);
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let x = *a.start.offset((row + i) as isize * a.row + in_a);
                    for (sum, value) in sums.iter_mut().zip(line) {
                        *sum = sum.add_product::<I>(x, value);
                    }
                }
            }
        }
        let start = c.wrapping_offset(row as isize * c_row + column as isize * c_col);
        // (Three loops without branches, which the compiler unrolls: so the sums never leave their registers.)
        if c_col != 1 {
            for (i, &sums) in sums.iter().enumerate() {
                for (at, &sum) in sums.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        let out = start.offset(i as isize * c_row + at as isize * c_col);
                        *out = if accumulate { (*out).add(sum) } else { sum };
                    }
                }
            }
        } else if accumulate {
            for (i, &sums) in sums.iter().enumerate() {
                // SAFETY: as above; the elements of the row are neighbours.
                unsafe {
                    let out = start.offset(i as isize * c_row).cast::<[T; W]>();
                    *out = core::array::from_fn(|at| (*out)[at].add(sums[at]));
                }
            }
        } else {
            for (i, &sums) in sums.iter().enumerate() {
                // SAFETY: as above.
                unsafe { *start.offset(i as isize * c_row).cast::<[T; W]>() = sums };
            }
        }
    }
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
