//! Products of few rows and columns with long sums, with AVX-512: a library would fill them up to the size of its tiles.
//!
//! A row of the right matrix is one vector, with a mask where it is shorter. All rows of the result are sums in registers, so that each element of
//! either matrix is read once, from where it is: `10 x 1000` by `1000 x 10` of `f32` takes a third of the time.

use super::Product;
use core::any::TypeId;
use core::arch::x86_64::*;

/// Sums from this length on are long.
const LONG: usize = 32;

/// The most rows, which is how many sums of all are in registers.
const MOST: usize = 16;

/// Computes the product if it is such a one, as it is or transposed, and the machine has the instructions. Returns whether it did.
///
/// # Safety
///
/// As for [`super::multiply`].
#[inline]
pub unsafe fn multiply_thin<T: 'static>(product: &Product<T>) -> bool {
    if product.m > MOST || product.n > MOST || product.k < LONG {
        return false;
    }
    let single = TypeId::of::<T>() == TypeId::of::<f32>();
    let len = match single {
        true => 16,
        false if TypeId::of::<T>() == TypeId::of::<f64>() => 8,
        false => return false,
    };
    let fits = |product: &Product<T>| product.b.col == 1 && product.n <= len;
    let Some(product) = [*product, product.transposed()].into_iter().find(fits) else { return false };
    if !std::is_x86_feature_detected!("avx512f") {
        return false;
    }
    // SAFETY: the feature was just detected, and the type asked for; the rest is the caller's promise.
    unsafe {
        if single {
            rows_f32(&product.cast());
        } else {
            rows_f64(&product.cast());
        }
    }
    true
}

macro_rules! thin {
    ($rows:ident $block:ident $elem:ty, $len:literal $mask:ty, $zeros:ident $load:ident $all:ident $fma:ident $plus:ident $store:ident) => {
        /// # Safety
        ///
        /// As for [`multiply_thin`]; the right matrix has as many columns as a vector, at most, and its rows are neighbours.
        #[target_feature(enable = "avx512f")]
        unsafe fn $rows(product: &Product<$elem>) {
            // SAFETY: the caller's promise; there are so many rows.
            unsafe {
                match product.m {
                    0..=4 => $block::<4, 4>(product, 0),
                    5..=8 => $block::<8, 2>(product, 0),
                    9..=12 => $block::<12, 1>(product, 0),
                    _ => {
                        $block::<8, 2>(product, 0);
                        $block::<8, 2>(product, 8);
                    }
                }
            }
        }

        /// `R` rows of the result from `first` on, in `C` sums each, which do not wait for each other. Rows behind the last one
        /// repeat it.
        ///
        /// # Safety
        ///
        /// As above; there is a row `first`.
        #[target_feature(enable = "avx512f")]
        unsafe fn $block<const R: usize, const C: usize>(product: &Product<$elem>, first: usize) {
            let Product { m, k, n, a, b, c, c_row, c_col, accumulate } = *product;
            let starts: [*const $elem; R] =
                core::array::from_fn(|i| a.start.wrapping_offset((first + i).min(m - 1) as isize * a.row));
            let mask = <$mask>::MAX >> ($len - n);
            let mut sums = [[$zeros(); R]; C];
            // SAFETY: `p` is less than `k` and the rows less than `m`; the caller's promise. What the mask leaves out is not read.
            let add = |sums: &mut [_; R], p: usize| unsafe {
                let line = $load(mask, b.start.wrapping_offset(p as isize * b.row));
                for (sum, start) in sums.iter_mut().zip(&starts) {
                    *sum = $fma($all(*start.wrapping_offset(p as isize * a.col)), line, *sum);
                }
            };
            let whole = k - k % C;
            for p in (0..whole).step_by(C) {
                for (ahead, sums) in sums.iter_mut().enumerate() {
                    add(sums, p + ahead);
                }
            }
            for p in whole..k {
                add(&mut sums[0], p);
            }
            let mut line = [0.0; $len];
            for i in 0..R.min(m - first) {
                let sum = sums[1..].iter().fold(sums[0][i], |sum, others| $plus(sum, others[i]));
                // SAFETY: the line is as long as a vector.
                unsafe { $store(line.as_mut_ptr(), sum) };
                for (j, &sum) in line[..n].iter().enumerate() {
                    let place = c.wrapping_offset((first + i) as isize * c_row + j as isize * c_col);
                    // SAFETY: an element of the result; the caller's promise.
                    unsafe { *place = if accumulate { *place + sum } else { sum } };
                }
            }
        }
    };
}

thin!(rows_f32 block_f32 f32, 16 u16, _mm512_setzero_ps _mm512_maskz_loadu_ps _mm512_set1_ps _mm512_fmadd_ps _mm512_add_ps _mm512_storeu_ps);
thin!(rows_f64 block_f64 f64, 8 u8, _mm512_setzero_pd _mm512_maskz_loadu_pd _mm512_set1_pd _mm512_fmadd_pd _mm512_add_pd _mm512_storeu_pd);

#[cfg(test)]
mod tests {
    use super::super::Matrix;
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn check<T: num_traits::Float + std::fmt::Debug + 'static>(
        (m, n, k): (usize, usize, usize),
        (turned, accumulate): (bool, bool),
        tolerance: f64,
    ) {
        let value = |seed: usize| T::from((seed * 7919 % 101) as f64 / 50.0 - 1.0).expect("a float");
        // Rows of the right matrix have a gap between them, as columns of a wider one.
        let (a, b): (Vec<T>, Vec<T>) =
            ((0..m * k).map(value).collect(), (0..k * (n + 3)).map(|at| value(at + 5)).collect());
        let mut c: Vec<T> = (0..m * n).map(|at| value(at + 9)).collect();
        let before = c.clone();
        let mut product = Product {
            m,
            k,
            n,
            a: Matrix { start: a.as_ptr(), row: k as isize, col: 1 },
            b: Matrix { start: b.as_ptr(), row: n as isize + 3, col: 1 },
            c: c.as_mut_ptr(),
            c_row: n as isize,
            c_col: 1,
            accumulate,
        };
        if turned {
            product = product.transposed();
        }
        // SAFETY: the matrices are as large as the product says.
        let done = unsafe { multiply_thin(&product) };
        if !std::is_x86_feature_detected!("avx512f") || size_of::<T>() == 8 && n > 8 {
            assert!(!done);
            return;
        }
        assert!(done);
        for i in 0..m {
            for j in 0..n {
                let float = |value: T| value.to_f64().expect("a float");
                let terms = (0..k).map(|p| float(a[i * k + p]) * float(b[p * (n + 3) + j]));
                let exact = terms.sum::<f64>() + if accumulate { float(before[i * n + j]) } else { 0.0 };
                let (found, bound) = (float(c[i * n + j]), tolerance * k as f64);
                assert!((found - exact).abs() <= bound, "{found} for {exact} at {i}, {j}");
            }
        }
    }

    proptest! {
        #[test]
        fn thin_products_are_those_of_loops(
            sizes in (1usize..=16, 1usize..=16, 32usize..200),
            how in (any::<bool>(), any::<bool>()),
        ) {
            check::<f32>(sizes, how, 1e-6);
            check::<f64>(sizes, how, 1e-15);
        }
    }
}
