//! Products of few rows by a large matrix. Products of a large matrix by few columns are transposed
//! first.
//!
//! Each element of the large matrix is used once per row, so memory bandwidth limits the product.
//! The matrix is read once, in place, in memory order. The sums of all rows stay in registers or in
//! the second-level cache. If the columns of the large matrix are adjacent, each of its rows is
//! scaled and added to each row of sums. If the elements of a sum are adjacent in the large matrix,
//! each line of the matrix is multiplied by each row.

mod across;
mod along;
#[cfg(test)]
mod tests;

use crate::gemm::Product;
use crate::gemm::skinny::across::across;
use crate::gemm::skinny::along::along;
use crate::machine::level::Level;
use crate::machine::params::params;
use crate::machine::params::skinny::MAX_ROWS;
use crate::machine::vector::{AnyTile, Vector};
use core::any::TypeId;
use core::arch::x86_64::{__m256, __m256d, __m512, __m512d};

/// Computes a product of few rows, or of few columns, with the vectors of a level.
///
/// # Safety
///
/// As for [`crate::gemm::multiply`]; the machine has the level, which is not the baseline. Elements
/// are `f32` or `f64`. The left matrix has one to [`MAX_ROWS`] rows, and the right one is
/// contiguous along its rows or its columns; if the left matrix has more rows, this is true of the
/// transposed product.
#[inline(never)]
pub unsafe fn multiply<T: 'static>(level: Level, product: &Product<T>) {
    let transposed;
    let product = if product.m <= MAX_ROWS {
        product
    } else {
        transposed = product.transposed();
        &transposed
    };
    let product: *const Product<T> = product;
    // SAFETY: the product is cast to its own type; the rest is the caller's promise.
    unsafe {
        match (level, TypeId::of::<T>() == TypeId::of::<f32>()) {
            (Level::Avx512, true) => wide_f32(&*product.cast()),
            (Level::Avx512, false) => wide_f64(&*product.cast()),
            (_, true) => f32s(&*product.cast()),
            (_, false) => f64s(&*product.cast()),
        }
    }
}

macro_rules! compiled {
    ($($name:ident $feature:literal $vector:ty, $elem:ty;)*) => {$(
        #[target_feature(enable = $feature)]
        unsafe fn $name(product: &Product<$elem>) {
            // SAFETY: the caller's promise.
            unsafe { of_any_height::<$vector>(product) }
        }
    )*};
}

compiled! {
    wide_f32 "avx512f,avx512dq,avx2,fma" __m512, f32;
    wide_f64 "avx512f,avx512dq,avx2,fma" __m512d, f64;
    f32s "avx2,fma" __m256, f32;
    f64s "avx2,fma" __m256d, f64;
}

/// # Safety
///
/// As for [`multiply`], on a machine with these vectors.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn of_any_height<V: Vector>(product: &Product<V::Elem>) {
    macro_rules! rows {
        ($($rows:literal)*) => {
            match product.m {
                // SAFETY: `m` is this number of rows; the rest is the caller's promise.
                $($rows => unsafe { V::run_apart(SkinnyProduct::<V, $rows> { product }) },)*
                _ => unreachable!("there are 1 to {MAX_ROWS} rows"),
            }
        };
    }
    rows!(1 2 3 4 5 6 7 8);
}

/// A product of `M` rows.
struct SkinnyProduct<'p, V: Vector, const M: usize> {
    product: &'p Product<V::Elem>,
}

impl<V: Vector, const M: usize> AnyTile for SkinnyProduct<'_, V, M> {
    #[cfg_attr(not(unoptimized), inline(always))]
    unsafe fn run(self) {
        debug_assert_eq!(self.product.m, M);
        let skinny = &params().skinny;
        // SAFETY: the caller's promise.
        unsafe {
            if self.product.b.col == 1 {
                across::<V, M>(self.product, skinny);
            } else {
                along::<V, M>(self.product, skinny);
            }
        }
    }
}
