//! Products with a BLAS: the arguments of CBLAS calls, and the results. By default, the BLAS is
//! plain loops that check their arguments. Set `TYPED_DIMS_CBLAS=/path/to/libopenblas.so` to use a
//! real one. OpenBLAS's wheels on PyPI, `scipy-openblas32`, add the prefix `scipy_` to function
//! names. The test looks for both names.

#![cfg(feature = "blas")]

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE};
use ndarray::{Array2, Array3, ArrayView2, s};
use num_complex::{Complex, Complex32, Complex64};
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use typed_dims::blas::{self, ComplexGemm, Gemm, RealGemm};
use typed_dims::prelude::*;
use typed_dims::types::scalar::{Element, Num};

/// The number of BLAS calls.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// A matrix, as described to CBLAS.
struct Told<T> {
    start: *const T,
    transposed: bool,
    lead: usize,
}

impl<T: Copy> Told<T> {
    fn new(start: *const T, how: CBLAS_TRANSPOSE, lead: c_int, rows: c_int, columns: c_int) -> Self {
        let transposed = matches!(how, CBLAS_TRANSPOSE::CblasTrans);
        assert!(lead >= 1.max(if transposed { rows } else { columns }), "the leading dimension is too small");
        Told { start, transposed, lead: lead as usize }
    }

    /// # Safety
    ///
    /// The matrix must have this element.
    unsafe fn get(&self, row: usize, column: usize) -> T {
        let at = if self.transposed { column * self.lead + row } else { row * self.lead + column };
        // SAFETY: the caller's promise.
        unsafe { *self.start.add(at) }
    }
}

/// `gemm` by its definition, row by row.
///
/// # Safety
///
/// As for CBLAS.
unsafe fn by_loops<T: Num>(
    [m, n, k]: [c_int; 3],
    a: Told<T>,
    b: Told<T>,
    (alpha, beta): (T, T),
    c: *mut T,
    ldc: c_int,
) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    assert!(ldc >= n.max(1), "the leading dimension of the result is too small");
    let [m, n, k, ldc] = [m, n, k, ldc].map(|size| size as usize);
    for i in 0..m {
        for j in 0..n {
            // SAFETY: the caller's promise. If `beta` is 0, the result may be uninitialized, and is
            // not read.
            unsafe {
                let place = c.add(i * ldc + j);
                let mut sum = if beta == T::ZERO { T::ZERO } else { beta.mul(*place) };
                for p in 0..k {
                    sum = sum.add(alpha.mul(a.get(i, p).mul(b.get(p, j))));
                }
                place.write(sum);
            }
        }
    }
}

macro_rules! real {
    ($name:ident $t:ty, $real:ident) => {
        /// Multiplies with loops, or with the real BLAS if there is one. Counts the calls.
        unsafe extern "C" fn $name(
            layout: CBLAS_LAYOUT,
            ta: CBLAS_TRANSPOSE,
            tb: CBLAS_TRANSPOSE,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: $t,
            a: *const $t,
            lda: c_int,
            b: *const $t,
            ldb: c_int,
            beta: $t,
            c: *mut $t,
            ldc: c_int,
        ) {
            assert!(matches!(layout, CBLAS_LAYOUT::CblasRowMajor));
            let (ma, mb) = (Told::new(a, ta, lda, m, k), Told::new(b, tb, ldb, k, n));
            // SAFETY: the caller follows the contract of CBLAS.
            unsafe {
                if let Some(real) = real_blas().and_then(|gemm| gemm.$real) {
                    CALLS.fetch_add(1, Ordering::Relaxed);
                    return real(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
                }
                by_loops([m, n, k], ma, mb, (alpha, beta), c, ldc);
            }
        }
    };
}

macro_rules! complex {
    ($name:ident $part:ty, $real:ident) => {
        /// Multiplies complex matrices with loops, or with the real BLAS if there is one. Counts
        /// the calls.
        unsafe extern "C" fn $name(
            layout: CBLAS_LAYOUT,
            ta: CBLAS_TRANSPOSE,
            tb: CBLAS_TRANSPOSE,
            m: c_int,
            n: c_int,
            k: c_int,
            alpha: *const [$part; 2],
            a: *const [$part; 2],
            lda: c_int,
            b: *const [$part; 2],
            ldb: c_int,
            beta: *const [$part; 2],
            c: *mut [$part; 2],
            ldc: c_int,
        ) {
            assert!(matches!(layout, CBLAS_LAYOUT::CblasRowMajor));
            let (ma, mb) = (Told::new(a.cast(), ta, lda, m, k), Told::new(b.cast(), tb, ldb, k, n));
            // SAFETY: the caller follows the contract of CBLAS; a complex number is its two parts.
            unsafe {
                if let Some(real) = real_blas().and_then(|gemm| gemm.$real) {
                    CALLS.fetch_add(1, Ordering::Relaxed);
                    return real(layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
                }
                let factors = (*alpha.cast::<Complex<$part>>(), *beta.cast());
                by_loops([m, n, k], ma, mb, factors, c.cast(), ldc);
            }
        }
    };
}

real!(sgemm f32, sgemm);
real!(dgemm f64, dgemm);
complex!(cgemm f32, cgemm);
complex!(zgemm f64, zgemm);

/// The functions of the library that `TYPED_DIMS_CBLAS` names, if it is set.
fn real_blas() -> Option<&'static Gemm> {
    static REAL: OnceLock<Option<Gemm>> = OnceLock::new();
    REAL.get_or_init(|| {
        let path = std::env::var("TYPED_DIMS_CBLAS").ok()?;
        Some(load(&path))
    })
    .as_ref()
}

#[cfg(unix)]
fn load(path: &str) -> Gemm {
    use std::ffi::{CString, c_char, c_void};
    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const RTLD_NOW: c_int = 2;
    let text = |text: &str| CString::new(text).expect("the text has no NUL");
    // SAFETY: the arguments are C strings; the library is never closed.
    let library = unsafe { dlopen(text(path).as_ptr(), RTLD_NOW) };
    assert!(!library.is_null(), "{path} cannot be loaded");
    let find = |name: &str| -> *mut c_void {
        // SAFETY: as above.
        let found = ["cblas_", "scipy_cblas_"]
            .map(|prefix| unsafe { dlsym(library, text(&format!("{prefix}{name}")).as_ptr()) });
        found.into_iter().find(|found| !found.is_null()).unwrap_or_else(|| panic!("{path} has no {name}"))
    };
    // SAFETY: these are the CBLAS functions with these names.
    unsafe {
        Gemm {
            sgemm: Some(std::mem::transmute::<*mut c_void, RealGemm<f32>>(find("sgemm"))),
            dgemm: Some(std::mem::transmute::<*mut c_void, RealGemm<f64>>(find("dgemm"))),
            cgemm: Some(std::mem::transmute::<*mut c_void, ComplexGemm<[f32; 2]>>(find("cgemm"))),
            zgemm: Some(std::mem::transmute::<*mut c_void, ComplexGemm<[f64; 2]>>(find("zgemm"))),
        }
    }
}

#[cfg(not(unix))]
fn load(path: &str) -> Gemm {
    panic!("{path} cannot be loaded on this platform")
}

/// The result of `f`, and the number of BLAS calls that it makes.
fn calls<R>(f: impl FnOnce() -> R) -> (R, usize) {
    let before = CALLS.load(Ordering::Relaxed);
    let result = f();
    (result, CALLS.load(Ordering::Relaxed) - before)
}

/// Small integers, whose sums are exact in any order.
fn matrix<T: Copy>(rows: usize, columns: usize, seed: usize, of: fn(i32) -> T) -> Array2<T> {
    Array2::from_shape_fn((rows, columns), |(i, j)| of(((i * 31 + j * 17 + seed * 7) % 13) as i32 - 6))
}

fn expected<T: Element + Num>(a: &ArrayView2<'_, T>, b: &ArrayView2<'_, T>) -> Array2<T> {
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(i, j)| {
        (0..a.ncols()).fold(T::ZERO, |sum, p| sum.add(a[[i, p]].mul(b[[p, j]])))
    })
}

/// Products of matrices in several layouts. `known` says whether a BLAS supports the type.
fn products<T: Element + Num>(known: bool, of: fn(i32) -> T) {
    for (m, k, n) in [(20, 30, 40), (70, 65, 33), (1, 300, 40), (300, 40, 1), (17, 1, 257)] {
        let (a, b) = (matrix(m, k, 1, of), matrix(k, n, 2, of));
        let (at, bt) = (matrix(k, m, 3, of), matrix(n, k, 4, of));
        let (wide_a, wide_b) = (matrix(m, 2 * k + 3, 5, of), matrix(k, 2 * n + 1, 6, of));
        let ways = [
            (a.view(), b.view(), true),
            (at.t(), b.view(), true),
            (a.view(), bt.t(), true),
            (at.t(), bt.t(), true),
            (wide_a.slice(s![.., 1..=k]), wide_b.slice(s![.., n..2 * n]), true),
            (wide_a.slice(s![.., 1..1 + 2 * k; 2]), b.view(), k == 1),
            (a.slice(s![..;-1, ..]), b.view(), m == 1),
            (a.view(), b.slice(s![.., ..;-1]), n == 1),
        ];
        for (which, (a, b, fits)) in ways.iter().enumerate() {
            dims!(i, j, p);
            let (by_rows, first) = calls(|| (a.at((i, p)) * b.at((p, j))).sum(p).order((i, j)));
            let (by_columns, second) = calls(|| (a.at((i, p)) * b.at((p, j))).sum(p).order((j, i)));
            let expected = expected(a, b);
            assert!(by_rows == expected && by_columns.t() == expected, "sizes {m} {k} {n}, way {which}");
            let large = m * k * n > 16 * 16 * 16 && k > 1;
            // The planner may run a product with a vector as a reduction.
            if m > 1 && n > 1 && large {
                let there = known && *fits;
                assert_eq!((first > 0, second > 0), (there, there), "sizes {m} {k} {n}, way {which}");
            }
        }
    }
}

#[test]
fn products_run_there_if_they_lie_so() {
    if real_blas().is_none() {
        eprintln!("TYPED_DIMS_CBLAS is not set, so this test uses plain loops as a BLAS");
    }
    let gemm = Gemm { sgemm: Some(sgemm), dgemm: Some(dgemm), cgemm: Some(cgemm), zgemm: Some(zgemm) };
    // SAFETY: these functions have the behavior of the CBLAS functions.
    unsafe { blas::install(gemm) }.expect("nothing was installed before");
    // SAFETY: nothing is installed.
    assert_eq!(unsafe { blas::install(Gemm::default()) }, Err(blas::AlreadyInstalled));

    products::<f32>(true, |x| x as f32);
    products::<f64>(true, f64::from);
    products::<Complex32>(true, |x| Complex32::new(x as f32, (x % 5) as f32));
    products::<Complex64>(true, |x| Complex64::new(f64::from(x), f64::from(x % 5)));
    products::<i64>(false, i64::from);

    // A batch makes at least one call for each example. Windows that overlap do not use the BLAS.
    dims!(n, i, j, p, q);
    let (a, b) = (Array3::<f32>::from_elem((5, 40, 50), 2.0), Array3::<f32>::from_elem((5, 50, 30), 3.0));
    let (out, count) = calls(|| (a.at((n, i, p)) * b.at((n, p, j))).sum(p).order((n, j, i)));
    assert!(out.iter().all(|&value| value == 300.0) && out.dim() == (5, 30, 40));
    assert!(count >= 5, "{count} calls");
    let kernel = matrix(50, 20, 8, |x| x as f64);
    let signal = matrix(1, 400, 9, |x| x as f64).into_shape_with_order(400).expect("the sizes fit");
    dims!(t = 351, u);
    let (out, count) = calls(|| (signal.at(t + q) * kernel.at((q, u))).sum(q).order((t, u)));
    let slow = Array2::from_shape_fn((351, 20), |(t, j)| {
        (0..50).map(|q| signal[t + q] * kernel[[q, j]]).sum::<f64>()
    });
    assert_eq!(out, slow);
    assert_eq!(count, 0, "windows overlap");

    // Attention multiplies its tiles with the BLAS.
    let x = matrix(300, 64, 10, |x| x as f32 / 64.0);
    dims!(r, s, d, e);
    let (out, count) = calls(|| attention(x.at((r, d)), x.at((s, d)), x.at((s, e)), d, s, 0.125, true));
    let scores = ((x.at((r, d)) * x.at((s, d))).sum(d) * 0.125).softmax(s);
    let difference = (out - (scores * x.at((s, e))).sum(s)).abs().max((r, e)).order(());
    assert!(count > 0 && difference < 1e-5, "{count} calls, difference {difference}");
}
