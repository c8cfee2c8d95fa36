//! Conversions between element types.

use crate::scalar::{CastTo, Num};
use num_complex::Complex;

/// Clears the lower 32 bits. If any of them was set, also sets the last bit of the upper half, so
/// that the result rounds to the same half-precision number. (`from_f64` of the crate `half` may
/// look only at the upper half, and so mistake a number just above a midpoint for the midpoint.)
#[cfg(feature = "half")]
#[cfg_attr(not(unoptimized), inline(always))]
fn keep_remainder(value: f64) -> f64 {
    const LOWER: u64 = 0xFFFF_FFFF;
    let bits = value.to_bits();
    f64::from_bits(bits & !LOWER | u64::from(bits & LOWER != 0) << 32)
}

macro_rules! casts {
    ($($from:ident)*) => { $(casts!(@from $from: i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);)* };
    (@from $from:ident: $($to:ident)*) => {
        $(impl CastTo<$to> for $from {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $to { self as $to }
        })*
        impl CastTo<bool> for $from {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> bool { self != Self::ZERO }
        }
        impl CastTo<$from> for bool {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $from { if self { <$from>::ONE } else { <$from>::ZERO } }
        }
        impl CastTo<Complex<f32>> for $from {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> Complex<f32> { Complex::new(self as f32, 0.0) }
        }
        impl CastTo<Complex<f64>> for $from {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> Complex<f64> { Complex::new(self as f64, 0.0) }
        }
        impl CastTo<$from> for Complex<f32> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $from { self.re as $from }
        }
        impl CastTo<$from> for Complex<f64> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $from { self.re as $from }
        }
        #[cfg(feature = "half")]
        casts!(@half $from half::f16);
        #[cfg(feature = "half")]
        casts!(@half $from half::bf16);
    };
    (@half $other:ident $half:ty) => {
        impl CastTo<$half> for $other {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $half { <$half>::from_f64(keep_remainder(self as f64)) }
        }
        impl CastTo<$other> for $half {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $other { self.to_f64() as $other }
        }
    };
}

casts!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl CastTo<bool> for bool {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn cast_to(self) -> bool {
        self
    }
}

#[cfg(feature = "half")]
macro_rules! half_casts {
    ($($from:ty => $to:ty),*) => {$(
        impl CastTo<$to> for $from {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $to { <$to>::from_f32(self.to_f32()) }
        }
    )*};
}

#[cfg(feature = "half")]
half_casts!(half::f16 => half::f16, half::f16 => half::bf16, half::bf16 => half::f16, half::bf16 => half::bf16);

#[cfg(feature = "half")]
macro_rules! half_logic_casts {
    ($($half:ty),*) => {$(
        impl CastTo<bool> for $half {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> bool { self != Self::ZERO }
        }
        impl CastTo<$half> for bool {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $half { if self { <$half>::ONE } else { <$half>::ZERO } }
        }
    )*};
}

#[cfg(feature = "half")]
half_logic_casts!(half::f16, half::bf16);

#[cfg(all(test, feature = "half"))]
mod tests {
    use super::CastTo;
    use half::{bf16, f16};

    #[test]
    fn casts_to_half_precisions_round_once() {
        // Just above a midpoint of adjacent numbers, and just below the next midpoint.
        let (above, below) = (1.0 + 1.0 / 256.0 + 1.0 / 8_388_608.0, 1.0 + 3.0 / 256.0 - 1.0 / 8_388_608.0);
        let cast = |value: f32| CastTo::<bf16>::cast_to(value);
        assert_eq!([cast(above), cast(below)], [1.0 + 1.0 / 128.0, 1.0 + 1.0 / 128.0].map(bf16::from_f32));
        let middle = 1.0 + 1.0 / 2048.0;
        let cast = |value: f64| CastTo::<f16>::cast_to(value);
        let next = f16::from_f32(1.0 + 1.0 / 1024.0);
        assert_eq!([cast(middle), cast(middle + 1e-12), cast(middle - 1e-12)], [f16::ONE, next, f16::ONE]);
        assert!(cast(f64::NAN).is_nan() && cast(f64::INFINITY) == f16::INFINITY);
    }
}
