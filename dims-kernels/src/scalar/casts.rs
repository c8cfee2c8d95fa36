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

/// A number that rounds to the same half-precision number as an integer that `f64` cannot
/// represent. `near` is the `f64` nearest to the integer; it may be a midpoint of half-precision
/// numbers. `is_beyond` tells whether `near` is farther from 0 than the integer.
#[cfg(feature = "half")]
#[cold]
fn off_midpoints(near: f64, is_beyond: bool) -> f64 {
    f64::from_bits((near.to_bits() - u64::from(is_beyond)) | 1)
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
            fn cast_to(self) -> $half { <$half>::from_f64(keep_remainder(casts!(@double $other self))) }
        }
        impl CastTo<$other> for $half {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> $other { self.to_f64() as $other }
        }
    };
    (@double f32 $value:expr) => {
        f64::from($value)
    };
    (@double f64 $value:expr) => {
        $value
    };
    (@double $from:ident $value:expr) => {{
        let (near, value) = ($value as f64, $value);
        let back = near as $from;
        if size_of::<$from>() < size_of::<f64>() || back == value {
            near
        } else {
            off_midpoints(near, (back > value) == (back > 0))
        }
    }};
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

    #[test]
    fn integers_round_once() {
        let of = |value: u128| bf16::from_f64(value as f64);
        // Next to a midpoint of adjacent `bf16`s. The nearest `f64` would be the midpoint.
        let middle = 0x101_i64 << 54;
        let (below, above) = (of(0x100 << 54), of(0x102 << 54));
        let cast = |value: i64| CastTo::<bf16>::cast_to(value);
        assert_eq!([middle - 1, middle, middle + 1].map(cast), [below, below, above]);
        assert_eq!([1 - middle, -middle, -1 - middle].map(cast), [-below, -below, -above]);
        let greatest = of(1 << 63);
        assert_eq!([i64::MAX, i64::MAX - 1, i64::MIN].map(cast), [greatest, greatest, -greatest]);
        let middle = 0x181_u64 << 55;
        let (below, above) = (of(0x180 << 55), of(0x182 << 55));
        let cast = |value: u64| CastTo::<bf16>::cast_to(value);
        assert_eq!([middle - 1, middle, middle + 1].map(cast), [below, below, above]);
        let middle = 0x101_u128 << 104;
        let (below, above) = (of(0x100 << 104), of(0x102 << 104));
        let cast = |value: u128| CastTo::<bf16>::cast_to(value);
        assert_eq!([middle - 1, middle, middle + 1].map(cast), [below, below, above]);
        assert_eq!(cast(u128::MAX), bf16::INFINITY);
        let cast = |value: i64| CastTo::<f16>::cast_to(value);
        assert_eq!([65_519, 65_520, i64::MIN].map(cast), [f16::MAX, f16::INFINITY, f16::NEG_INFINITY]);
    }
}
