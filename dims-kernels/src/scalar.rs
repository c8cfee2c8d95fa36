//! Element types and their capabilities.

use crate::compiled::Precompiled;
use crate::machine::isa::Isa;
use crate::ops::math::Math;
use crate::sort_key::{SortKey, long_float, long_integer, short_float, short_integer};
use core::fmt::Debug;
use num_complex::Complex;
use num_traits::Float;

mod casts;

/// An element type of tensors: any type of plain values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type",
    label = "plain values are needed here, such as numbers and `bool`s",
    note = "where the type is a parameter, write `T: Num`, or `T: Real` for floats"
)]
pub trait Element: Copy + Default + Debug + Send + Sync + 'static {}
#[diagnostic::do_not_recommend]
impl<T: Copy + Default + Debug + Send + Sync + 'static> Element for T {}

/// A type with the four arithmetic operations: integers (which wrap around), floats and complex
/// numbers.
#[diagnostic::on_unimplemented(
    message = "there is no arithmetic on tensors of `{Self}`",
    label = "numbers are needed here; cast the tensor first: `.cast::<f32>()`; where the type is a parameter: `T: Num`, or `T: Real` for floats"
)]
pub trait Num: Element + PartialEq {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// Whether division by 0 yields a value instead of a panic.
    const DIVIDES_BY_ZERO: bool;
    /// Which of the types with [precompiled routines](crate::compiled) this is, if any.
    #[doc(hidden)]
    const COMPILED: Precompiled<Self> = Precompiled::NO;
    /// The type in which sums, products and functions are computed: `f32` for the half precisions,
    /// otherwise the type itself.
    #[doc(hidden)]
    type Acc: Num;
    #[doc(hidden)]
    fn widen(self) -> Self::Acc;
    #[doc(hidden)]
    fn narrow(wide: Self::Acc) -> Self;
    /// `self + other`
    fn add(self, other: Self) -> Self;
    /// `self - other`
    fn sub(self, other: Self) -> Self;
    /// `self * other`
    fn mul(self, other: Self) -> Self;
    /// `self / other`. For integers, rounds towards zero, and panics if `other` is 0, as Rust does.
    fn div(self, other: Self) -> Self;
    /// `self + x * y`; `f32` and `f64` round once if `I` has a fused multiply-add.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn add_product<I: Isa>(self, x: Self, y: Self) -> Self {
        self.add(x.mul(y))
    }
}

/// A type with an order and a remainder: integers and floats.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no order or remainder",
    label = "integers or floats are needed here"
)]
pub trait Ordered: Num + PartialOrd {
    /// The least value.
    const LOWEST: Self;
    /// The greatest value.
    const HIGHEST: Self;
    /// The remainder with the sign of `self`, like Rust's `%`. For integers, panics if `other` is
    /// 0.
    fn rem(self, other: Self) -> Self;
    /// The greater value; NaN if either is NaN.
    fn maximum(self, other: Self) -> Self;
    /// The lesser value; NaN if either is NaN.
    fn minimum(self, other: Self) -> Self;
    /// Whether the value is NaN.
    fn is_nan_value(self) -> bool;
    /// How elements are sorted.
    const SORT_KEY: SortKey<Self> = SortKey::COMPARED;
}

/// A type with negative values.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no negative values",
    label = "a signed type is needed here; cast the tensor first: `.cast::<i64>()`"
)]
pub trait Signed: Num {
    /// `-self`
    fn neg(self) -> Self;
}

/// Floating-point numbers: `f32`, `f64`, and with the feature `half` also `f16` and `bf16`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type",
    label = "floats are needed here; cast integers first: `.cast::<f32>()`; where the type is a parameter: `T: Real`"
)]
pub trait Real: Num<Acc = <Self as Real>::Wide> + Ordered + Analytic + Magnitude<Abs = Self> + Float {
    /// [`Num::Acc`], which is a float, too.
    #[doc(hidden)]
    type Wide: Real;
    /// The error function.
    fn erf<I: Isa>(self) -> Self;
    #[doc(hidden)]
    fn gelu<I: Isa>(self) -> Self;
    /// The cumulative distribution function of the standard normal distribution.
    #[doc(hidden)]
    fn normal_below<I: Isa>(self) -> Self;
    /// `e^x` for `x <= 0`; NaN for NaN.
    #[doc(hidden)]
    fn exp_down<I: Isa>(self) -> Self;
    /// Like `exp_down`, times an unspecified power of two that is the same for all `x`. It cancels
    /// when such values are divided by their sum.
    #[doc(hidden)]
    fn exp_share<I: Isa>(self) -> Self;
}

/// Floats and complex numbers: types with `exp`, `ln`, `sqrt`, `sin`, `cos`, `tan` and the
/// hyperbolic functions.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no `exp`, `sqrt`, `mean` or the like",
    label = "floats or complex numbers are needed here; cast the tensor first: `.cast::<f32>()`; where the type is a parameter: `T: Real`"
)]
#[allow(missing_docs)]
pub trait Analytic: Signed {
    fn exp<I: Isa>(self) -> Self;
    fn ln<I: Isa>(self) -> Self;
    fn sqrt(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh<I: Isa>(self) -> Self;
    fn powi(self, n: i32) -> Self;
    fn rsqrt(self) -> Self;
    /// `n` as an element.
    fn from_usize(n: usize) -> Self;
    /// `total / count`
    #[doc(hidden)]
    fn mean_of(total: Self::Acc, count: usize) -> Self;
}

/// Elements of tensors that change attention scores of type `T`: a `bool` masks them, and a `T` is
/// added. (Defined in the crate of [`Real`], where rustc knows that `bool` does not implement it.)
#[doc(hidden)]
pub trait ScoreChange<T>: Element {
    /// [`Masks`] or [`Adds`].
    type Kind;
}

/// The kind of masks.
#[doc(hidden)]
pub struct Masks;

/// The kind of biases.
#[doc(hidden)]
pub struct Adds;

#[diagnostic::do_not_recommend]
impl<T: Real> ScoreChange<T> for bool {
    type Kind = Masks;
}

#[diagnostic::do_not_recommend]
impl<T: Real> ScoreChange<T> for T {
    type Kind = Adds;
}

/// Types with a magnitude: all numbers.
pub trait Magnitude: Num {
    /// The type of the magnitude; for complex numbers, a real type.
    type Abs: Num + PartialOrd + Magnitude;
    /// `|self|`; wraps around for the least value of a signed integer type.
    fn magnitude(self) -> Self::Abs;
}

/// Whole numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer type",
    label = "integers are needed here"
)]
pub trait Integer: Ordered {}

/// Types on which `& | ^ !` work: `bool` and the integers.
#[diagnostic::on_unimplemented(
    message = "there is no logic on tensors of `{Self}`",
    label = "`bool`s or integers are needed here"
)]
#[allow(missing_docs)]
pub trait Logic: Element {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
}

/// Integers that can select an element of an axis. (The trait is sealed, because kernels trust the
/// positions that its methods return.)
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an index",
    label = "integers are needed here; convert floats with `.cast::<usize>()`"
)]
pub trait IndexInt: Element + PartialEq + sealed::SealedIndex {
    /// The index as a position, if it is at least 0 and less than `size`.
    #[doc(hidden)]
    fn to_position(self, size: usize) -> Option<usize>;
    #[doc(hidden)]
    fn to_i128(self) -> i128;
    /// The nearest `isize`.
    #[doc(hidden)]
    fn to_isize(self) -> isize;
}

/// Conversion between element types. Integers and floats convert like Rust's `as`. A `bool`
/// converts to 0 or 1, and a number to `true` unless it is 0. A real number as a complex one has
/// the imaginary part 0, and a complex number as a real one loses its imaginary part. Complex
/// numbers cannot be cast to or from `bool` and the half precisions.
#[diagnostic::on_unimplemented(
    message = "a tensor of `{Self}` cannot be cast to `{To}`",
    label = "there is no such cast",
    note = "where the type is a parameter, write `T: CastTo<{To}>`, from `typed_dims::types::scalar`"
)]
pub trait CastTo<To>: Element {
    /// The value converted to the other type.
    fn cast_to(self) -> To;
}

mod sealed {
    /// Prevents implementations by users.
    pub trait SealedIndex {}
}

macro_rules! integers {
    ($($t:ident $($compiled:ident)? $(=> $key:expr)?;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Num for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const DIVIDES_BY_ZERO: bool = false;
            $(const COMPILED: Precompiled<$t> = Precompiled::<$t>::$compiled;)?
            type Acc = $t;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn widen(self) -> Self { self }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn narrow(wide: Self) -> Self { wide }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn div(self, other: Self) -> Self { self.wrapping_div(other) }
        }
        #[diagnostic::do_not_recommend]
        impl Ordered for $t {
            const LOWEST: Self = $t::MIN;
            const HIGHEST: Self = $t::MAX;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn rem(self, other: Self) -> Self { self.wrapping_rem(other) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn maximum(self, other: Self) -> Self { if self > other { self } else { other } }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn minimum(self, other: Self) -> Self { if self < other { self } else { other } }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn is_nan_value(self) -> bool { false }
            $(const SORT_KEY: SortKey<Self> = $key;)?
        }
        #[diagnostic::do_not_recommend]
        impl Integer for $t {}
        #[diagnostic::do_not_recommend]
        impl Logic for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn and(self, other: Self) -> Self { self & other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn or(self, other: Self) -> Self { self | other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn not(self) -> Self { !self }
        }
        #[diagnostic::do_not_recommend]
        impl sealed::SealedIndex for $t {}
        #[diagnostic::do_not_recommend]
        impl IndexInt for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn to_position(self, size: usize) -> Option<usize> {
                usize::try_from(self).ok().filter(|&position| position < size)
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast)] // `u128` may be greater than all `i128`s
            fn to_i128(self) -> i128 {
                let index = self as i128;
                if index < 0 && self > 0 { i128::MAX } else { index }
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(unused_comparisons)] // unsigned types have no value below 0
            fn to_isize(self) -> isize {
                isize::try_from(self).unwrap_or(if self < 0 as $t { isize::MIN } else { isize::MAX })
            }
        }
    )*};
}

integers! {
    i8 => SortKey::short(|x| short_integer(x.into()));
    i16 => SortKey::short(|x| short_integer(x.into()));
    i32 YES => SortKey::short(short_integer);
    i64 YES => SortKey::long(long_integer);
    i128;
    isize YES => SortKey::long(|x| long_integer(x as i64));
    u8 => SortKey::short(u64::from);
    u16 => SortKey::short(u64::from);
    u32 => SortKey::short(u64::from);
    u64 => SortKey::long(|x| x);
    u128;
    usize YES => SortKey::long(|x| x as u64);
}

macro_rules! signed_integers {
    ($($t:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Signed for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn neg(self) -> Self { self.wrapping_neg() }
        }
        impl Magnitude for $t {
            type Abs = $t;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn magnitude(self) -> Self { self.wrapping_abs() }
        }
    )*};
}

signed_integers!(i8 i16 i32 i64 i128 isize);

macro_rules! unsigned_integers {
    ($($t:ident)*) => {$(
        impl Magnitude for $t {
            type Abs = $t;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn magnitude(self) -> Self { self }
        }
    )*};
}

unsigned_integers!(u8 u16 u32 u64 u128 usize);

macro_rules! floats {
    ($($t:ty, $acc:ty, $zero:expr, $one:expr $(, $compiled:ident)? => $key:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Num for $t {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const DIVIDES_BY_ZERO: bool = true;
            $(const COMPILED: Precompiled<$t> = Precompiled::<$t>::$compiled;)?
            type Acc = $acc;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn widen(self) -> $acc { self.into() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn narrow(wide: $acc) -> Self { CastTo::<$t>::cast_to(wide) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn add(self, other: Self) -> Self { self + other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sub(self, other: Self) -> Self { self - other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn mul(self, other: Self) -> Self { self * other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn div(self, other: Self) -> Self { self / other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn add_product<I: Isa>(self, x: Self, y: Self) -> Self { self.add_product_in::<I>(x, y) }
        }
        #[diagnostic::do_not_recommend]
        impl Ordered for $t {
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn rem(self, other: Self) -> Self { self % other }
            // `self != self` keeps a NaN on the left. A comparison with a NaN on the right is
            // false, so `other` is returned.
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::eq_op)]
            fn maximum(self, other: Self) -> Self { if self > other || self != self { self } else { other } }
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::eq_op)]
            fn minimum(self, other: Self) -> Self { if self < other || self != self { self } else { other } }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn is_nan_value(self) -> bool { self.is_nan() }
            const SORT_KEY: SortKey<Self> = $key;
        }
        #[diagnostic::do_not_recommend]
        impl Signed for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn neg(self) -> Self { -self }
        }
        impl Magnitude for $t {
            type Abs = $t;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn magnitude(self) -> Self { Float::abs(self) }
        }
        #[diagnostic::do_not_recommend]
        impl Real for $t {
            type Wide = $acc;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn erf<I: Isa>(self) -> Self { self.erf_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn gelu<I: Isa>(self) -> Self { self.gelu_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn normal_below<I: Isa>(self) -> Self { self.normal_below_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp_down<I: Isa>(self) -> Self { self.exp_down_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp_share<I: Isa>(self) -> Self { self.exp_share_in::<I>() }
        }
        #[diagnostic::do_not_recommend]
        impl Analytic for $t {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp<I: Isa>(self) -> Self { self.exp_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn ln<I: Isa>(self) -> Self { self.ln_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sqrt(self) -> Self { Float::sqrt(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sin(self) -> Self { Float::sin(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cos(self) -> Self { Float::cos(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn tan(self) -> Self { Float::tan(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sinh(self) -> Self { Float::sinh(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cosh(self) -> Self { Float::cosh(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn tanh<I: Isa>(self) -> Self { self.tanh_in::<I>() }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn powi(self, n: i32) -> Self { Float::powi(self, n) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn rsqrt(self) -> Self { Self::narrow(<$acc as Num>::ONE / Float::sqrt(self.widen())) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn from_usize(n: usize) -> Self { CastTo::<$t>::cast_to(n) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn mean_of(total: $acc, count: usize) -> Self { Self::narrow(total / CastTo::<$acc>::cast_to(count)) }
        }
    )*};
}

macro_rules! complexes {
    ($($part:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Num for Complex<$part> {
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);
            const DIVIDES_BY_ZERO: bool = true;
            type Acc = Self;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn widen(self) -> Self { self }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn narrow(wide: Self) -> Self { wide }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn add(self, other: Self) -> Self { self + other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sub(self, other: Self) -> Self { self - other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn mul(self, other: Self) -> Self { self * other }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn div(self, other: Self) -> Self { self / other }
        }
        #[diagnostic::do_not_recommend]
        impl Signed for Complex<$part> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn neg(self) -> Self { -self }
        }
        impl Magnitude for Complex<$part> {
            type Abs = $part;
            #[cfg_attr(not(unoptimized), inline(always))]
            fn magnitude(self) -> $part { self.norm() }
        }
        #[diagnostic::do_not_recommend]
        impl Analytic for Complex<$part> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn exp<I: Isa>(self) -> Self { Complex::exp(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn ln<I: Isa>(self) -> Self { Complex::ln(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sqrt(self) -> Self { Complex::sqrt(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sin(self) -> Self { Complex::sin(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cos(self) -> Self { Complex::cos(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn tan(self) -> Self { Complex::tan(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn sinh(self) -> Self { Complex::sinh(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cosh(self) -> Self { Complex::cosh(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn tanh<I: Isa>(self) -> Self { Complex::tanh(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn powi(self, n: i32) -> Self { Complex::powi(&self, n) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn rsqrt(self) -> Self { Self::ONE / Complex::sqrt(self) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn from_usize(n: usize) -> Self { Complex::new(n as $part, 0.0) }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn mean_of(total: Self, count: usize) -> Self { total / Self::from_usize(count) }
        }
        impl CastTo<Complex<f32>> for Complex<$part> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> Complex<f32> { Complex::new(self.re as f32, self.im as f32) }
        }
        impl CastTo<Complex<f64>> for Complex<$part> {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn cast_to(self) -> Complex<f64> { Complex::new(self.re as f64, self.im as f64) }
        }
    )*};
}

floats! {
    f32, f32, 0.0, 1.0, YES => SortKey::short(short_float);
    f64, f64, 0.0, 1.0, YES => SortKey::long(long_float);
}

#[cfg(feature = "half")]
floats! {
    half::f16, f32, half::f16::from_f32_const(0.0), half::f16::from_f32_const(1.0) => SortKey::short(|x| short_float(x.to_f32()));
    half::bf16, f32, half::bf16::from_f32_const(0.0), half::bf16::from_f32_const(1.0) => SortKey::short(|x| short_float(x.to_f32()));
}

complexes!(f32 f64);

#[diagnostic::do_not_recommend]
impl Logic for bool {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn and(self, other: Self) -> Self {
        self & other
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn or(self, other: Self) -> Self {
        self | other
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn not(self) -> Self {
        !self
    }
}
