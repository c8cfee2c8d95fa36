//! Vectors of AVX2 and AVX-512, for the kernels of matrix products and for transpositions.

use crate::machine::params::tile::{ACCUMULATORS_AVX2, ACCUMULATORS_AVX512, MR_AVX2, MR_AVX512};
use core::arch::asm;
use core::arch::x86_64::*;
use core::ops::Add;

/// A SIMD vector.
///
/// The caller of a method ensures that the machine has the vector's instructions, and that pointers
/// are valid.
pub trait Vector: Copy {
    type Elem: Copy + Default + Add<Output = Self::Elem>;
    /// The number of elements.
    const LEN: usize;
    /// Selects some of the elements.
    type Mask: Copy;
    /// How many accumulators fit into registers, together with the factors.
    const ACCUMULATORS: usize;
    /// Rows of a register tile (MR). Each row has two vectors of accumulators.
    const MR: usize;
    /// Elements along a side of the square that [`transpose`](Vector::transpose) transposes.
    const TRANSPOSE_SIZE: usize;

    unsafe fn zeros() -> Self;
    unsafe fn load(from: *const Self::Elem) -> Self;
    unsafe fn store(self, to: *mut Self::Elem);
    unsafe fn plus(self, other: Self) -> Self;
    /// The mask of the first `count` elements, at most [`LEN`](Vector::LEN).
    unsafe fn first(count: usize) -> Self::Mask;
    /// The mask of the last `count` elements, at most [`LEN`](Vector::LEN).
    unsafe fn last(count: usize) -> Self::Mask;
    /// The elements of the mask, and zeros elsewhere. Other elements are not read.
    unsafe fn load_part(from: *const Self::Elem, mask: Self::Mask) -> Self;
    /// Writes the elements of the mask. Other elements are not changed.
    unsafe fn store_part(self, to: *mut Self::Elem, mask: Self::Mask);
    /// `self + *x * right`, with the same `*x` for all elements.
    unsafe fn plus_product(self, x: *const Self::Elem, right: Self) -> Self;
    /// `self + left * right`, element by element.
    unsafe fn plus_products(self, left: Self, right: Self) -> Self;
    /// The sum of the elements.
    unsafe fn total(self) -> Self::Elem;
    /// The sums of the elements of four vectors, with fewer instructions than calls of `total`.
    unsafe fn totals(vectors: &[Self; 4]) -> [Self::Elem; 4];
    /// `sums.0 += a * right.0` and `sums.1 += a * right.1`, where `a` is the element `AT` elements
    /// after `x`.
    ///
    /// It is written in assembly, because the compiler would load many `a` at once and run out of
    /// registers. It takes the vectors by reference, because unoptimized code would keep a copy of
    /// each vector on the stack for each row of each tile.
    unsafe fn add_products<const AT: usize>(
        sums: (&mut Self, &mut Self),
        x: *const Self::Elem,
        right: &(Self, Self),
    );
    /// Like [`add_products`](Vector::add_products), where `a` is `step` elements further on.
    unsafe fn add_products_of<const AT: usize>(
        sums: (&mut Self, &mut Self),
        x: *const Self::Elem,
        step: isize,
        right: &(Self, Self),
    );
    /// Copies a square whose columns are contiguous, at the offsets `columns`, to memory in which
    /// the rows are contiguous and `step` apart.
    unsafe fn transpose(from: *const Self::Elem, columns: &[isize], to: *mut Self::Elem, step: usize);
    /// Runs a tile in a separate function, compiled for these vectors.
    unsafe fn run_apart(tile: impl AnyTile);
}

/// A vector in memory, at any address.
///
/// Vectors are read and written through its field, because functions of the standard library check
/// their pointers in builds with debug assertions. Dependencies of unoptimized programs have debug
/// assertions even if they are optimized.
#[repr(C, packed)]
struct Unaligned<V>(V);

/// A tile of some height that can be run.
pub trait AnyTile {
    /// # Safety
    ///
    /// The machine has the vectors, and the elements of the tile are valid.
    unsafe fn run(self);
}

/// Runs a tile; with debug assertions, in a separate function.
///
/// Unoptimized code reserves stack for each local of a function, so a kernel that contains the
/// tiles of all heights could overflow the stack.
///
/// # Safety
///
/// As for [`AnyTile::run`].
#[cfg_attr(not(unoptimized), inline(always))]
pub unsafe fn run_tile<V: Vector>(tile: impl AnyTile) {
    // SAFETY: the caller's promise.
    unsafe {
        if cfg!(debug_assertions) {
            V::run_apart(tile);
        } else {
            tile.run();
        }
    }
}

macro_rules! vector {
    ($vector:ty, $feature:literal $register:ident, $elem:ty, $size:literal, $scalar:literal $packed:literal, [$($broadcast:literal $all:ident)?] [$one:literal $another:literal], $len:literal, $sums:ident $tall:ident, $transpose:ident $square:literal, $zeros:ident $plus:ident $same:ident $fma:ident $total:ident $totals:ident $half:ident, $mask:ty, $first:ident $last:ident, $load_part:ident, $store_part:ident) => {
        impl Vector for $vector {
            type Elem = $elem;
            const LEN: usize = $len;
            type Mask = $mask;
            const ACCUMULATORS: usize = $sums;
            const MR: usize = $tall;
            const TRANSPOSE_SIZE: usize = $square;

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn zeros() -> Self {
                // SAFETY: the caller's promise.
                unsafe { $zeros() }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: the caller's promise.
                unsafe { (*from.cast::<Unaligned<Self>>()).0 }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: the caller's promise.
                unsafe { (*to.cast::<Unaligned<Self>>()).0 = self }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $plus(self, other) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn first(count: usize) -> $mask {
                // SAFETY: the caller's promise.
                unsafe { $first(count) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn last(count: usize) -> $mask {
                // SAFETY: the caller's promise.
                unsafe { $last(count) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn load_part(from: *const $elem, mask: $mask) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load_part(from, mask) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn store_part(self, to: *mut $elem, mask: $mask) {
                // SAFETY: the caller's promise.
                unsafe { $store_part(to, mask, self) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn plus_product(self, x: *const $elem, right: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $fma($same(*x), right, self) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn plus_products(self, left: Self, right: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $fma(left, right, self) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn total(self) -> $elem {
                // SAFETY: the caller's promise.
                unsafe { $total(self) }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn totals(vectors: &[Self; 4]) -> [$elem; 4] {
                // (Not `map`, which is not always inlined.)
                let &[a, b, c, d] = vectors;
                // SAFETY: the caller's promise.
                unsafe { $totals([$half(a), $half(b), $half(c), $half(d)]) }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_products<const AT: usize>(
                (first, second): (&mut Self, &mut Self),
                x: *const $elem,
                right: &(Self, Self),
            ) {
                // SAFETY: the caller's promise: the instructions read one valid element, and no
                // other memory.
                unsafe {
                    asm!(
                        $($broadcast,)?
                        $one,
                        $another,
                        $($all = out($register) _,)?
                        x = in(reg) x,
                        at = const AT * size_of::<$elem>(),
                        first = inout($register) *first,
                        second = inout($register) *second,
                        left = in($register) right.0,
                        right = in($register) right.1,
                        options(pure, readonly, nostack),
                    );
                }
            }

            #[inline]
            #[target_feature(enable = $feature)]
            unsafe fn add_products_of<const AT: usize>(
                (first, second): (&mut Self, &mut Self),
                x: *const $elem,
                step: isize,
                right: &(Self, Self),
            ) {
                // SAFETY: the caller's promise: the instructions read one valid element, and no
                // other memory.
                unsafe {
                    asm!(
                        concat!("vbroadcast", $scalar, " {all}, [{x} + {step} * ", $size, " + {at}]"),
                        concat!("vfmadd231", $packed, " {first}, {all}, {left}"),
                        concat!("vfmadd231", $packed, " {second}, {all}, {right}"),
                        all = out($register) _,
                        x = in(reg) x,
                        step = in(reg) step,
                        at = const AT * size_of::<$elem>(),
                        first = inout($register) *first,
                        second = inout($register) *second,
                        left = in($register) right.0,
                        right = in($register) right.1,
                        options(pure, readonly, nostack),
                    );
                }
            }

            #[inline(never)]
            #[target_feature(enable = $feature)]
            unsafe fn run_apart(tile: impl AnyTile) {
                // SAFETY: the caller's promise.
                unsafe { tile.run() }
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            unsafe fn transpose(from: *const $elem, columns: &[isize], to: *mut $elem, step: usize) {
                // SAFETY: the caller's promise.
                unsafe { $transpose(from, columns, to, step) }
            }
        }
    };
}

vector!(
    __m512, "avx512f" zmm_reg, f32, "4", "ss" "ps",
    [] ["vfmadd231ps {first}, {left}, dword ptr [{x} + {at}]{{1to16}}" "vfmadd231ps {second}, {right}, dword ptr [{x} + {at}]{{1to16}}"],
    16, ACCUMULATORS_AVX512 MR_AVX512, transpose_f32 8,
    _mm512_setzero_ps _mm512_add_ps _mm512_set1_ps _mm512_fmadd_ps _mm512_reduce_add_ps totals_f32 half_f32,
    __mmask16, first_wide_f32 last_wide_f32, load_part_wide_f32, _mm512_mask_storeu_ps
);
vector!(
    __m512d, "avx512f" zmm_reg, f64, "8", "sd" "pd",
    [] ["vfmadd231pd {first}, {left}, qword ptr [{x} + {at}]{{1to8}}" "vfmadd231pd {second}, {right}, qword ptr [{x} + {at}]{{1to8}}"],
    8, ACCUMULATORS_AVX512 MR_AVX512, transpose_f64 4,
    _mm512_setzero_pd _mm512_add_pd _mm512_set1_pd _mm512_fmadd_pd _mm512_reduce_add_pd totals_f64 half_f64,
    __mmask8, first_wide_f64 last_wide_f64, load_part_wide_f64, _mm512_mask_storeu_pd
);
vector!(
    __m256, "avx2,fma" ymm_reg, f32, "4", "ss" "ps",
    ["vbroadcastss {all}, [{x} + {at}]" all] ["vfmadd231ps {first}, {all}, {left}" "vfmadd231ps {second}, {all}, {right}"],
    8, ACCUMULATORS_AVX2 MR_AVX2, transpose_f32 8,
    _mm256_setzero_ps _mm256_add_ps _mm256_set1_ps _mm256_fmadd_ps total_f32 totals_f32 whole,
    __m256i, first_f32 last_f32, _mm256_maskload_ps, _mm256_maskstore_ps
);
vector!(
    __m256d, "avx2,fma" ymm_reg, f64, "8", "sd" "pd",
    ["vbroadcastsd {all}, [{x} + {at}]" all] ["vfmadd231pd {first}, {all}, {left}" "vfmadd231pd {second}, {all}, {right}"],
    4, ACCUMULATORS_AVX2 MR_AVX2, transpose_f64 4,
    _mm256_setzero_pd _mm256_add_pd _mm256_set1_pd _mm256_fmadd_pd total_f64 totals_f64 whole,
    __m256i, first_f64 last_f64, _mm256_maskload_pd, _mm256_maskstore_pd
);

/// # Safety
///
/// As for [`Vector::load_part`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn load_part_wide_f32(from: *const f32, mask: __mmask16) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe { _mm512_maskz_loadu_ps(mask, from) }
}

/// # Safety
///
/// As for [`Vector::load_part`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn load_part_wide_f64(from: *const f64, mask: __mmask8) -> __m512d {
    // SAFETY: the caller's promise.
    unsafe { _mm512_maskz_loadu_pd(mask, from) }
}

/// # Safety
///
/// None; the function implements a method of a trait whose methods are all unsafe.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn first_wide_f32(count: usize) -> __mmask16 {
    ((1u32 << count) - 1) as __mmask16
}

/// # Safety
///
/// As for [`first_wide_f32`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn first_wide_f64(count: usize) -> __mmask8 {
    ((1u32 << count) - 1) as __mmask8
}

/// # Safety
///
/// As for [`first_wide_f32`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn last_wide_f32(count: usize) -> __mmask16 {
    !(((1u32 << (16 - count)) - 1) as __mmask16)
}

/// # Safety
///
/// As for [`first_wide_f32`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn last_wide_f64(count: usize) -> __mmask8 {
    !(((1u32 << (8 - count)) - 1) as __mmask8)
}

/// # Safety
///
/// As for [`Vector::last`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn last_f32(count: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        _mm256_cmpgt_epi32(_mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8), _mm256_set1_epi32(8 - count as i32))
    }
}

/// # Safety
///
/// As for [`Vector::last`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn last_f64(count: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_cmpgt_epi64(_mm256_setr_epi64x(1, 2, 3, 4), _mm256_set1_epi64x(4 - count as i64)) }
}

/// # Safety
///
/// As for [`Vector::first`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn first_f32(count: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}

/// # Safety
///
/// As for [`Vector::first`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn first_f64(count: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
}

/// # Safety
///
/// As for [`Vector::total`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn total_f32(vector: __m256) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let fours = _mm_add_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps::<1>(vector));
        let twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
        _mm_cvtss_f32(_mm_add_ss(twos, _mm_movehdup_ps(twos)))
    }
}

/// # Safety
///
/// As for [`Vector::totals`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn totals_f32([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let eights = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        let fours = _mm_add_ps(_mm256_castps256_ps128(eights), _mm256_extractf128_ps::<1>(eights));
        core::mem::transmute::<__m128, [f32; 4]>(fours)
    }
}

/// # Safety
///
/// As for [`Vector::totals`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn totals_f64([a, b, c, d]: [__m256d; 4]) -> [f64; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let (left, right) = (_mm256_hadd_pd(a, b), _mm256_hadd_pd(c, d));
        let lower = _mm256_permute2f128_pd::<0x20>(left, right);
        let upper = _mm256_permute2f128_pd::<0x31>(left, right);
        core::mem::transmute::<__m256d, [f64; 4]>(_mm256_add_pd(lower, upper))
    }
}

/// Adds the lower half to the upper half.
///
/// # Safety
///
/// As for [`Vector::totals`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn half_f32(vector: __m512) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let upper = _mm512_castps_pd(vector);
        let upper = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(upper));
        _mm256_add_ps(_mm512_castps512_ps256(vector), upper)
    }
}

/// # Safety
///
/// As for [`half_f32`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn half_f64(vector: __m512d) -> __m256d {
    // SAFETY: the caller's promise.
    unsafe { _mm256_add_pd(_mm512_castpd512_pd256(vector), _mm512_extractf64x4_pd::<1>(vector)) }
}

/// Used in place of `half_f32` and `half_f64` for vectors of AVX2, which need not be halved.
#[cfg_attr(not(unoptimized), inline(always))]
fn whole<V>(vector: V) -> V {
    vector
}

/// # Safety
///
/// As for [`Vector::total`].
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn total_f64(vector: __m256d) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let twos = _mm_add_pd(_mm256_castpd256_pd128(vector), _mm256_extractf128_pd::<1>(vector));
        _mm_cvtsd_f64(_mm_add_sd(twos, _mm_unpackhi_pd(twos, twos)))
    }
}

/// # Safety
///
/// As for [`Vector::transpose`]: there are 8 columns of 8 elements, and 8 rows for them.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn transpose_f32(from: *const f32, columns: &[isize], to: *mut f32, step: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d, e, f, g, h] = core::array::from_fn(|at| _mm256_loadu_ps(from.offset(columns[at])));
        let pairs = [
            [
                _mm256_unpacklo_ps(a, b),
                _mm256_unpacklo_ps(c, d),
                _mm256_unpacklo_ps(e, f),
                _mm256_unpacklo_ps(g, h),
            ],
            [
                _mm256_unpackhi_ps(a, b),
                _mm256_unpackhi_ps(c, d),
                _mm256_unpackhi_ps(e, f),
                _mm256_unpackhi_ps(g, h),
            ],
        ];
        for (at, [ab, cd, ef, gh]) in pairs.into_iter().enumerate() {
            let halves = [
                (_mm256_shuffle_ps::<0x44>(ab, cd), _mm256_shuffle_ps::<0x44>(ef, gh)),
                (_mm256_shuffle_ps::<0xee>(ab, cd), _mm256_shuffle_ps::<0xee>(ef, gh)),
            ];
            for (half, (left, right)) in halves.into_iter().enumerate() {
                let to = to.add((2 * at + half) * step);
                _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(left, right));
                _mm256_storeu_ps(to.add(4 * step), _mm256_permute2f128_ps::<0x31>(left, right));
            }
        }
    }
}

/// # Safety
///
/// As for [`Vector::transpose`]: there are 4 columns of 4 elements, and 4 rows for them.
#[cfg_attr(not(unoptimized), inline(always))]
unsafe fn transpose_f64(from: *const f64, columns: &[isize], to: *mut f64, step: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = core::array::from_fn(|at| _mm256_loadu_pd(from.offset(columns[at])));
        let pairs = [
            (_mm256_unpacklo_pd(a, b), _mm256_unpacklo_pd(c, d)),
            (_mm256_unpackhi_pd(a, b), _mm256_unpackhi_pd(c, d)),
        ];
        for (at, (left, right)) in pairs.into_iter().enumerate() {
            _mm256_storeu_pd(to.add(at * step), _mm256_permute2f128_pd::<0x20>(left, right));
            _mm256_storeu_pd(to.add((at + 2) * step), _mm256_permute2f128_pd::<0x31>(left, right));
        }
    }
}
