//! Lanes of AVX2 vectors.

use super::lane::Lane;
use core::arch::x86_64::*;

/// Numbers in `N` vectors.
///
/// Values exist only in code that is compiled for AVX2 and FMA, on machines that have both: `job`
/// uses the type only in such copies of a task.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(in crate::step::linalg) struct Avx<V, const N: usize>([V; N]);

/// An operation with one intrinsic.
macro_rules! operation {
    ($name:ident($($other:ident),*) $intrinsic:ident$(::<$how:ident>)?: $own:ident => $($argument:expr),*) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $name(self $(, $other: Self)*) -> Self {
            let mut out = self;
            for at in 0..out.0.len() {
                let $own = out.0[at];
                $(let $other = $other.0[at];)*
                // SAFETY: the machine has AVX2 and FMA, because values of the type exist.
                out.0[at] = unsafe { $intrinsic$(::<$how>)?($($argument),*) };
            }
            out
        }
    };
}

macro_rules! lanes {
    ($vector:ident $elem:ident $n:literal $set:ident $add:ident $sub:ident $mul:ident $div:ident $fmadd:ident
     $fnmadd:ident $sqrt:ident $cmp:ident $blendv:ident $and:ident $andnot:ident $or:ident $xor:ident $movemask:ident) => {
        impl Lane for Avx<$vector, $n> {
            type Elem = $elem;
            const COUNT: usize = $n * size_of::<$vector>() / size_of::<$elem>();

            #[cfg_attr(not(unoptimized), inline(always))]
            fn all(value: $elem) -> Self {
                // SAFETY: code that uses the type runs on machines with AVX2.
                Avx([unsafe { $set(value) }; $n])
            }

            operation!(plus(other) $add: own => own, other);
            operation!(minus(other) $sub: own => own, other);
            operation!(times(other) $mul: own => own, other);
            operation!(over(other) $div: own => own, other);
            operation!(add_product(x, y) $fmadd: own => x, y, own);
            operation!(subtract_product(x, y) $fnmadd: own => x, y, own);
            operation!(sqrt() $sqrt: own => own);
            operation!(abs() $andnot: own => $set(-0.0), own);
            operation!(negated() $xor: own => $set(-0.0), own);
            operation!(greater(other) $cmp::<_CMP_GT_OQ>: own => own, other);
            operation!(equal(other) $cmp::<_CMP_EQ_OQ>: own => own, other);
            operation!(choose(then, otherwise) $blendv: own => otherwise, then, own);
            operation!(and(other) $and: own => own, other);
            operation!(but_not(other) $andnot: own => other, own);
            operation!(or(other) $or: own => own, other);

            #[cfg_attr(not(unoptimized), inline(always))]
            fn is_nowhere(self) -> bool {
                // SAFETY: the machine has AVX2, because a value of the type exists.
                self.0.iter().fold(0, |all, &own| all | unsafe { $movemask(own) }) == 0
            }
        }
    };
}
lanes!(__m256d f64 2 _mm256_set1_pd _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd
    _mm256_fnmadd_pd _mm256_sqrt_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_and_pd _mm256_andnot_pd _mm256_or_pd
    _mm256_xor_pd _mm256_movemask_pd);
lanes!(__m256 f32 1 _mm256_set1_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps
    _mm256_fnmadd_ps _mm256_sqrt_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_and_ps _mm256_andnot_ps _mm256_or_ps
    _mm256_xor_ps _mm256_movemask_ps);
