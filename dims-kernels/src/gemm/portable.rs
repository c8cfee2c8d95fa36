//! Products by `matrixmultiply`.

use crate::gemm::Product;
use crate::scalar::Num;
use core::any::TypeId;
use num_complex::{Complex32, Complex64};

/// # Safety
///
/// As for [`crate::gemm::multiply`], for a type that the library knows.
#[inline(never)]
pub unsafe fn multiply<T: Num>(product: &Product<T>) {
    macro_rules! library {
        ($($t:ty: $call:expr;)*) => {$(
            if TypeId::of::<T>() == TypeId::of::<$t>() {
                let one: $t = num_traits::One::one();
                let zero: $t = num_traits::Zero::zero();
                let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
                let beta = if accumulate { one } else { zero };
                let call = $call;
                // SAFETY: the caller's promise; `T` is this type, so the pointers point at such
                // elements.
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
    unreachable!("the library knows the type");
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
            // SAFETY: a complex number is laid out as its two parts; the rest is the caller's
            // promise.
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
