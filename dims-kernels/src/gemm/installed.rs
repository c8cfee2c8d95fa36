//! The table of installed CBLAS functions. The public module [`blas`](crate::blas) re-exports
//! everything here.

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE, c_double_complex, c_float_complex};
use core::ffi::c_int;
use core::fmt;
use std::sync::OnceLock;

/// `cblas_sgemm` or `cblas_dgemm`: `C = alpha op(A) op(B) + beta C`.
pub type RealGemm<T> = unsafe extern "C" fn(
    CBLAS_LAYOUT,
    CBLAS_TRANSPOSE,
    CBLAS_TRANSPOSE,
    c_int,
    c_int,
    c_int,
    T,
    *const T,
    c_int,
    *const T,
    c_int,
    T,
    *mut T,
    c_int,
);

/// `cblas_cgemm` or `cblas_zgemm`: like [`RealGemm`], with `alpha` and `beta` by reference.
pub type ComplexGemm<T> = unsafe extern "C" fn(
    CBLAS_LAYOUT,
    CBLAS_TRANSPOSE,
    CBLAS_TRANSPOSE,
    c_int,
    c_int,
    c_int,
    *const T,
    *const T,
    c_int,
    *const T,
    c_int,
    *const T,
    *mut T,
    c_int,
);

/// The matrix products of a BLAS, by element type. If a field is `None`, products of its type run
/// as without a BLAS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemm {
    /// Products of `f32`.
    pub sgemm: Option<RealGemm<f32>>,
    /// Products of `f64`.
    pub dgemm: Option<RealGemm<f64>>,
    /// Products of `Complex<f32>`.
    pub cgemm: Option<ComplexGemm<c_float_complex>>,
    /// Products of `Complex<f64>`.
    pub zgemm: Option<ComplexGemm<c_double_complex>>,
}

impl Gemm {
    /// The functions `cblas_sgemm`, `cblas_dgemm`, `cblas_cgemm` and `cblas_zgemm` that the program
    /// is linked with. Without a CBLAS, a program that calls this does not link.
    #[inline]
    pub fn linked() -> Self {
        Gemm {
            sgemm: Some(cblas_sys::cblas_sgemm),
            dgemm: Some(cblas_sys::cblas_dgemm),
            cgemm: Some(cblas_sys::cblas_cgemm),
            zgemm: Some(cblas_sys::cblas_zgemm),
        }
    }
}

/// Error of [`install`]: a BLAS is already installed, and remains so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlreadyInstalled;

impl fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a BLAS is already installed")
    }
}

impl core::error::Error for AlreadyInstalled {}

static INSTALLED: OnceLock<Gemm> = OnceLock::new();

/// Installs a BLAS for the whole program. From then on, its functions compute the products that
/// [the module](crate::blas) lists.
///
/// # Errors
///
/// If a BLAS is already installed, which then remains.
///
/// # Safety
///
/// The functions do what CBLAS specifies for their names, with 32-bit integers (LP64, not ILP64):
/// they read the elements of `A` and `B`, read those of `C` if `beta` is not 0, write those of `C`,
/// and touch no others. They are thread-safe.
pub unsafe fn install(gemm: Gemm) -> Result<(), AlreadyInstalled> {
    INSTALLED.set(gemm).map_err(|_| AlreadyInstalled)
}

/// The installed functions, if any.
pub fn installed() -> Option<&'static Gemm> {
    INSTALLED.get()
}
