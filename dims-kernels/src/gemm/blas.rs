//! Products by a BLAS that the user has installed.

use crate::gemm::installed::{ComplexGemm, Gemm, RealGemm, installed};
use crate::gemm::{Matrix, Product};
use crate::scalar::Num;
use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE};
use core::any::TypeId;
use core::ffi::c_int;
use num_complex::{Complex32, Complex64};

/// Whether a BLAS is installed that multiplies this type. [`can_multiply`] also checks the layouts.
pub fn is_installed<T: Num>() -> bool {
    let is = |other: TypeId| TypeId::of::<T>() == other;
    let of = |gemm: &Gemm| {
        gemm.sgemm.is_some() && is(TypeId::of::<f32>())
            || gemm.dgemm.is_some() && is(TypeId::of::<f64>())
            || gemm.cgemm.is_some() && is(TypeId::of::<Complex32>())
            || gemm.zgemm.is_some() && is(TypeId::of::<Complex64>())
    };
    installed().is_some_and(of)
}

/// Whether a BLAS is installed for the type, and CBLAS can express the sizes and the layouts.
pub fn can_multiply<T: Num>(product: &Product<T>) -> bool {
    is_installed::<T>() && cblas_arguments(product).is_some()
}

/// Computes a product for which [`can_multiply`] returns true.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`].
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    let gemm = installed().expect("a BLAS was found");
    // SAFETY: the caller's promise; each call runs only if `T` is its element type.
    let is_done = unsafe {
        real::<T, f32>(product, gemm.sgemm, 1.0, 0.0)
            || real::<T, f64>(product, gemm.dgemm, 1.0, 0.0)
            || complex::<T, Complex32, _>(product, gemm.cgemm, [1.0, 0.0], [0.0; 2])
            || complex::<T, Complex64, _>(product, gemm.zgemm, [1.0, 0.0], [0.0; 2])
    };
    assert!(is_done, "the BLAS can compute the product");
}

/// # Safety
///
/// As for [`multiply`].
unsafe fn real<T: Num, R: Copy + 'static>(
    product: &Product<T>,
    call: Option<RealGemm<R>>,
    one: R,
    zero: R,
) -> bool {
    let (true, Some(call)) = (TypeId::of::<T>() == TypeId::of::<R>(), call) else { return false };
    let Some(CblasArguments { product, sizes: [m, n, k], a, b, ldc }) = cblas_arguments(product) else {
        return false;
    };
    let beta = if product.accumulate { one } else { zero };
    let (a_start, b_start, c) = (product.a.start.cast(), product.b.start.cast(), product.c.cast());
    // SAFETY: the caller's promise; `T` and `R` are the same type, and the leading dimensions are
    // the strides.
    unsafe {
        call(CBLAS_LAYOUT::CblasRowMajor, a.0, b.0, m, n, k, one, a_start, a.1, b_start, b.1, beta, c, ldc);
    }
    true
}

/// # Safety
///
/// As for [`multiply`]; a `Z` consists of two adjacent parts, as an `R` does.
unsafe fn complex<T: Num, Z: 'static, R>(
    product: &Product<T>,
    call: Option<ComplexGemm<R>>,
    one: R,
    zero: R,
) -> bool {
    let (true, Some(call)) = (TypeId::of::<T>() == TypeId::of::<Z>(), call) else { return false };
    let Some(CblasArguments { product, sizes: [m, n, k], a, b, ldc }) = cblas_arguments(product) else {
        return false;
    };
    let beta = if product.accumulate { &one } else { &zero };
    let (a_start, b_start, c) = (product.a.start.cast(), product.b.start.cast(), product.c.cast());
    // SAFETY: the caller's promise; `T` and `Z` are the same type, whose two parts are adjacent, as
    // CBLAS expects; the leading dimensions are the strides.
    unsafe {
        call(CBLAS_LAYOUT::CblasRowMajor, a.0, b.0, m, n, k, &one, a_start, a.1, b_start, b.1, beta, c, ldc);
    }
    true
}

/// The arguments of a CBLAS call with a row-major result.
struct CblasArguments<T> {
    product: Product<T>,
    /// Rows, columns, elements of each sum.
    sizes: [c_int; 3],
    a: (CBLAS_TRANSPOSE, c_int),
    b: (CBLAS_TRANSPOSE, c_int),
    ldc: c_int,
}

/// The arguments for the product or for its transpose. `None` if a matrix is contiguous along
/// neither axis, if its lines overlap or are in reverse order, or if a number does not fit into a
/// `c_int`.
fn cblas_arguments<T: Num>(product: &Product<T>) -> Option<CblasArguments<T>> {
    let by_rows = |product: Product<T>| {
        let Product { m, n, k, c_row, c_col, ref a, ref b, .. } = product;
        let ldc = leading(m, n, c_row, c_col)?;
        let sizes = [m.try_into().ok()?, n.try_into().ok()?, k.try_into().ok()?];
        Some(CblasArguments { product, sizes, a: operand_layout(a, m, k)?, b: operand_layout(b, k, n)?, ldc })
    };
    by_rows(*product).or_else(|| by_rows(product.transposed()))
}

/// The layout of a `rows` x `columns` matrix: whether it is transposed, and its leading dimension.
fn operand_layout<T>(matrix: &Matrix<T>, rows: usize, columns: usize) -> Option<(CBLAS_TRANSPOSE, c_int)> {
    let row_major = leading(rows, columns, matrix.row, matrix.col);
    let column_major = || leading(columns, rows, matrix.col, matrix.row);
    row_major
        .map(|ld| (CBLAS_TRANSPOSE::CblasNoTrans, ld))
        .or_else(|| column_major().map(|ld| (CBLAS_TRANSPOSE::CblasTrans, ld)))
}

/// The leading dimension of `lines` lines of `len` elements: the distance `line` between them, or
/// `len` if there are fewer than two lines. `None` if CBLAS cannot express the layout.
fn leading(lines: usize, len: usize, line: isize, neighbor: isize) -> Option<c_int> {
    if len > 1 && neighbor != 1 {
        return None;
    }
    let apart = if lines > 1 { usize::try_from(line).ok()? } else { len };
    if apart < len.max(1) { None } else { apart.try_into().ok() }
}
