//! Matrix products from GEMM crates, with a common signature: `out = a b`.

use ndarray::parallel::prelude::*;
use ndarray::{Array2, Array3, ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, Zip};
use std::mem::MaybeUninit;

/// `out = a b`. The last argument is the number of threads.
pub type Product<T> = fn(ArrayView2<'_, T>, ArrayView2<'_, T>, ArrayViewMut2<'_, MaybeUninit<T>>, usize);

/// Element types that all of the crates support.
pub trait Scalar: faer::traits::ComplexField + Copy + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// `matrixmultiply`'s function for this type.
    #[allow(clippy::type_complexity)]
    const MATRIXMULTIPLY: unsafe fn(
        usize,
        usize,
        usize,
        Self,
        *const Self,
        isize,
        isize,
        *const Self,
        isize,
        isize,
        Self,
        *mut Self,
        isize,
        isize,
    );
}

impl Scalar for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
    const MATRIXMULTIPLY: unsafe fn(
        usize,
        usize,
        usize,
        f32,
        *const f32,
        isize,
        isize,
        *const f32,
        isize,
        isize,
        f32,
        *mut f32,
        isize,
        isize,
    ) = matrixmultiply::sgemm;
}

impl Scalar for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    const MATRIXMULTIPLY: unsafe fn(
        usize,
        usize,
        usize,
        f64,
        *const f64,
        isize,
        isize,
        *const f64,
        isize,
        isize,
        f64,
        *mut f64,
        isize,
        isize,
    ) = matrixmultiply::dgemm;
}

/// The name and the product of each crate.
pub fn products<T: Scalar>() -> [(&'static str, Product<T>); 3] {
    [("matrixmultiply", by_matrixmultiply), ("gemm", by_gemm), ("faer", by_faer)]
}

fn check<T>(a: &ArrayView2<'_, T>, b: &ArrayView2<'_, T>, out: &ArrayViewMut2<'_, MaybeUninit<T>>) {
    assert_eq!(
        (a.nrows(), a.ncols(), b.ncols()),
        (out.nrows(), b.nrows(), out.ncols()),
        "the sizes of the matrices do not fit"
    );
}

/// The environment variable `MATMUL_NUM_THREADS` sets the number of threads (at most 4), even in a
/// loop that is already threaded. The last argument is ignored.
fn by_matrixmultiply<T: Scalar>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, MaybeUninit<T>>,
    _: usize,
) {
    check(&a, &b, &out);
    let (&[ar, ac], &[br, bc]) = (a.strides(), b.strides()) else { unreachable!("matrices have two axes") };
    let &[or, oc] = out.strides() else { unreachable!("matrices have two axes") };
    // SAFETY: the strides are those of matrices with these sizes; `out` is not read, since `beta`
    // is 0.
    unsafe {
        T::MATRIXMULTIPLY(
            a.nrows(),
            a.ncols(),
            b.ncols(),
            T::ONE,
            a.as_ptr(),
            ar,
            ac,
            b.as_ptr(),
            br,
            bc,
            T::ZERO,
            out.as_mut_ptr().cast(),
            or,
            oc,
        );
    }
}

fn by_gemm<T: Scalar>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, MaybeUninit<T>>,
    threads: usize,
) {
    check(&a, &b, &out);
    let parallelism = if threads == 1 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(threads) };
    let (&[ar, ac], &[br, bc]) = (a.strides(), b.strides()) else { unreachable!("matrices have two axes") };
    let &[or, oc] = out.strides() else { unreachable!("matrices have two axes") };
    // SAFETY: the strides are those of matrices with these sizes; `out` is not read.
    unsafe {
        gemm::gemm(
            a.nrows(),
            b.ncols(),
            a.ncols(),
            out.as_mut_ptr().cast::<T>(),
            oc,
            or,
            false,
            a.as_ptr(),
            ac,
            ar,
            b.as_ptr(),
            bc,
            br,
            T::ZERO,
            T::ONE,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn by_faer<T: Scalar>(
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, MaybeUninit<T>>,
    threads: usize,
) {
    check(&a, &b, &out);
    let par = if threads == 1 { faer::Par::Seq } else { faer::Par::rayon(threads) };
    let (&[ar, ac], &[br, bc]) = (a.strides(), b.strides()) else { unreachable!("matrices have two axes") };
    let &[or, oc] = out.strides() else { unreachable!("matrices have two axes") };
    // SAFETY: the strides are those of matrices with these sizes; `out` is overwritten without
    // being read.
    let (lhs, rhs, dst) = unsafe {
        (
            faer::MatRef::from_raw_parts(a.as_ptr(), a.nrows(), a.ncols(), ar, ac),
            faer::MatRef::from_raw_parts(b.as_ptr(), b.nrows(), b.ncols(), br, bc),
            faer::MatMut::from_raw_parts_mut(out.as_mut_ptr().cast::<T>(), out.nrows(), out.ncols(), or, oc),
        )
    };
    faer::linalg::matmul::matmul(dst, faer::Accum::Replace, lhs, rhs, T::ONE, par);
}

/// `a b` in new memory.
pub fn product<T: Scalar>(
    by: Product<T>,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    threads: usize,
) -> Array2<T> {
    let mut out = Array2::uninit((a.nrows(), b.ncols()));
    by(a, b, out.view_mut(), threads);
    // SAFETY: a product writes every element.
    unsafe { out.assume_init() }
}

/// `out[n] = a[n] b[n]`: `threads` applies to the loop over `n`, and each product is asked to use
/// one thread.
pub fn batched_into<T: Scalar>(
    by: Product<T>,
    a: ArrayView3<'_, T>,
    b: ArrayView3<'_, T>,
    mut out: ArrayViewMut3<'_, MaybeUninit<T>>,
    threads: usize,
) {
    let zip = Zip::from(out.axis_iter_mut(Axis(0)));
    let zip = zip.and(a.axis_iter(Axis(0))).and(b.axis_iter(Axis(0)));
    if threads == 1 {
        zip.for_each(|out, a, b| by(a, b, out, 1));
    } else {
        zip.into_par_iter().for_each(|(out, a, b)| by(a, b, out, 1));
    }
}

/// `a[n] b[n]` in new memory.
pub fn batched<T: Scalar>(
    by: Product<T>,
    a: ArrayView3<'_, T>,
    b: ArrayView3<'_, T>,
    threads: usize,
) -> Array3<T> {
    let mut out = Array3::uninit((a.dim().0, a.dim().1, b.dim().2));
    batched_into(by, a, b, out.view_mut(), threads);
    // SAFETY: each product writes every element of its matrix.
    unsafe { out.assume_init() }
}
