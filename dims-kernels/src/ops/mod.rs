//! The table of scalar operations: every elementwise operation of the library has a line here.
//!
//! An operation is a type; most are zero-sized. A line gives its name, the types it works on, and its value; fusion, broadcasting and batching follow from
//! that. As part of a recorded program an operation is an entry in [`code`], and its derivative a rule in `program/derivative.rs`.

#[doc(hidden)] // (Else rustc would write `Exp` with its path: there is one as data, too.)
pub mod code;
pub mod custom;
pub mod function;
pub mod math;
pub mod matrix;
pub mod special;

pub use crate::machine::isa::Isa;
use crate::ops::code::{BinaryOpcode, Code, DType, Number, UnaryOpcode};
use crate::ops::function::Function;
use crate::scalar::*;
use alloc::sync::Arc;

/// What is an operation of the library. Kernels run operations on several threads where [`UnaryOp::PARALLEL`] says that they may, and
/// trust that: so users' operations come in through [`ScalarOp`](custom::ScalarOp), which asks for what threads need.
mod sealed {
    pub trait Operation {}
}
pub(crate) use sealed::Operation;

/// A user's own operation as a function of recorded programs; nothing if it has no derivative, or if programs do not know its types.
pub type Own = Option<Arc<dyn Function>>;

/// An operation on one element. (Users' own are [`ScalarOp`](custom::ScalarOp)s.)
#[diagnostic::on_unimplemented(
    message = "there is no operation `{Self}` on tensors of `{A}`",
    label = "not for elements of type `{A}`",
    note = "cast the tensor first, for example `.cast::<f32>()`; where the type is a parameter, write `T: Real`"
)]
pub trait UnaryOp<A>: Operation {
    /// What it yields.
    type Out: Element;
    /// Its name in plans.
    const NAME: &'static str;
    /// Whether it has a value for every element.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Whether it is a few instructions, and its value the same whichever there are.
    const SIMPLE: bool = false;
    /// Whether it takes many instructions, which the compiler vectorises.
    const LONG: bool = false;
    /// Its value.
    fn apply<I: Isa>(&self, a: A) -> Self::Out;
    /// The operation as data, for recorded programs.
    #[inline]
    fn code(&self) -> Code {
        Code::Opaque
    }
    /// The operation as a function, if it is a user's own.
    #[inline]
    fn function(&self) -> Option<Own> {
        None
    }
}

/// An operation on two elements.
#[diagnostic::on_unimplemented(
    message = "there is no operation `{Self}` on tensors of `{A}` and `{B}`",
    label = "not for elements of type `{A}` and `{B}`",
    note = "cast the tensors first, for example `.cast::<f32>()`"
)]
pub trait BinaryOp<A, B>: Operation {
    /// What it yields.
    type Out: Element;
    /// Its name in plans.
    const NAME: &'static str;
    /// Whether it has a value for every pair of elements.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Whether it is a few instructions, and its value the same whichever there are.
    const SIMPLE: bool = false;
    /// Whether it takes many instructions, which the compiler vectorises.
    const LONG: bool = false;
    /// Whether it turns from one truth value to the other at most once, as one operand grows and the other stays or shrinks.
    const MONOTONE: bool = false;
    /// Whether its values go in equal steps where its operands do, and never wrap around.
    const STEADY: bool = false;
    /// Whether it is the product that contractions are made of.
    const IS_PRODUCT: bool = false;
    /// Whether it is the sum of affine index expressions (1), their difference (-1), or neither (0).
    const AFFINE_SIGN: isize = 0;
    /// Its value.
    fn apply<I: Isa>(&self, a: A, b: B) -> Self::Out;
    /// The operation as data, for recorded programs.
    #[inline]
    fn code(&self) -> Code {
        Code::Opaque
    }
    /// The operation as a function, if it is a user's own.
    #[inline]
    fn function(&self) -> Option<Own> {
        None
    }
    /// Adds the factors of both operands to a list, if the operation is the product.
    #[doc(hidden)]
    #[track_caller]
    fn factors<L: Lists, FA: Factor<A, L>, FB: Factor<B, L, Error = FA::Error>>(
        _: FA,
        _: FB,
        _: &mut L::Of<Self::Out>,
    ) -> Result<(), FA::Error>
    where
        A: Element,
        B: Element,
    {
        unreachable!("only products have factors")
    }
}

/// Lists of factors, one type for each type of elements.
#[doc(hidden)]
pub trait Lists {
    /// A list of factors with elements of the type `T`.
    type Of<T: Element>;
}

/// An operand of a product: it is a factor, or a product of several.
#[doc(hidden)]
pub trait Factor<T: Element, L: Lists> {
    /// The error of a factor that has to be computed first.
    type Error;
    /// Adds the factors to the list.
    #[track_caller]
    fn add_to(self, list: &mut L::Of<T>) -> Result<(), Self::Error>
    where
        T: Num;
}

/// Whether a line of the table for elements with this bound is simple: functions of floats are not.
macro_rules! is_simple {
    (Real) => {
        false
    };
    (Analytic) => {
        false
    };
    ($bound:ident) => {
        true
    };
}

/// Lines of the table. An operation on floats (`[Real]`) that yields a float is computed in [`Real::Wide`], `f32` for the half precisions, and rounded once.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $text:literal [$bound:ident] $out:ident $(:: $part:ident)?, |$a:ident| $value:expr
        $(, long = $long:expr)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl Operation for $name {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> UnaryOp<T> for $name {
            type Out = $out $(:: $part)?;
            const NAME: &'static str = $text;
            const SIMPLE: bool = is_simple!($bound);
            $(const LONG: bool = $long;)?
            #[inline]
            fn code(&self) -> Code {
                Code::Unary(UnaryOpcode::$name)
            }
            unary!(@apply [$bound $out] |$a| -> $out $(:: $part)? { $value });
        }
    )*};
    (@apply [Real T] |$a:ident| -> $out:ty { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::extra_unused_type_parameters)] // of lines that are the same for all instructions
            fn wide<T: Real, I: Isa>($a: T) -> T {
                $value
            }
            T::narrow(wide::<T::Wide, I>($a.widen()))
        }
    };
    (@apply [$bound:ident $first:ident] |$a:ident| -> $out:ty { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T) -> $out {
            $value
        }
    };
}

unary! {
    /// `-a`
    Neg "neg" [Signed] T, |a| a.neg();
    /// `!a`
    Not "not" [Logic] T, |a| a.not();
    /// `|a|`
    Abs "abs" [Magnitude] T::Abs, |a| a.magnitude();
    /// The exponential function.
    Exp "exp" [Analytic] T, |a| Analytic::exp::<I>(a), long = true;
    /// `exp(a) - 1`, exact near 0.
    ExpM1 "exp_m1" [Real] T, |a| a.exp_m1();
    /// The natural logarithm.
    Ln "ln" [Analytic] T, |a| Analytic::ln::<I>(a), long = true;
    /// `ln(1 + a)`, exact near 0.
    Ln1p "ln_1p" [Real] T, |a| a.ln_1p();
    /// The logarithm to base 2.
    Log2 "log2" [Real] T, |a| a.log2();
    /// The logarithm to base 10.
    Log10 "log10" [Real] T, |a| a.log10();
    /// 2 to the power of `a`.
    Exp2 "exp2" [Real] T, |a| a.exp2();
    /// The square root.
    Sqrt "sqrt" [Analytic] T, |a| a.sqrt();
    /// The cube root.
    Cbrt "cbrt" [Real] T, |a| a.cbrt();
    /// `1 / sqrt(a)`
    Rsqrt "rsqrt" [Analytic] T, |a| a.rsqrt();
    /// `1 / a`
    Recip "recip" [Analytic] T, |a| T::ONE.div(a);
    /// `a * a`
    Square "square" [Num] T, |a| a.mul(a);
    /// The sine.
    Sin "sin" [Analytic] T, |a| a.sin();
    /// The cosine.
    Cos "cos" [Analytic] T, |a| a.cos();
    /// The tangent.
    Tan "tan" [Analytic] T, |a| a.tan();
    /// The inverse sine.
    Asin "asin" [Real] T, |a| a.asin();
    /// The inverse cosine.
    Acos "acos" [Real] T, |a| a.acos();
    /// The inverse tangent.
    Atan "atan" [Real] T, |a| a.atan();
    /// The hyperbolic sine.
    Sinh "sinh" [Analytic] T, |a| a.sinh();
    /// The hyperbolic cosine.
    Cosh "cosh" [Analytic] T, |a| a.cosh();
    /// The hyperbolic tangent.
    Tanh "tanh" [Analytic] T, |a| Analytic::tanh::<I>(a), long = true;
    /// The inverse hyperbolic sine.
    Asinh "asinh" [Real] T, |a| special::asinh(a);
    /// The inverse hyperbolic cosine.
    Acosh "acosh" [Real] T, |a| special::acosh(a);
    /// The inverse hyperbolic tangent.
    Atanh "atanh" [Real] T, |a| special::atanh(a);
    /// The error function.
    Erf "erf" [Real] T, |a| Real::erf::<I>(a), long = true;
    /// The greatest whole number that is not greater.
    Floor "floor" [Real] T, |a| a.floor();
    /// The least whole number that is not less.
    Ceil "ceil" [Real] T, |a| a.ceil();
    /// The nearest whole number; halves away from 0.
    Round "round" [Real] T, |a| a.round();
    /// The whole part.
    Trunc "trunc" [Real] T, |a| a.trunc();
    /// `a - trunc(a)`
    Fract "fract" [Real] T, |a| a.fract();
    /// -1, 0 or 1 (and not-a-number for itself).
    Signum "signum" [Ordered] T, |a| signum(a);
    /// `1 / (1 + exp(-a))`
    Sigmoid "sigmoid" [Real] T, |a| special::sigmoid::<I, T>(a), long = true;
    /// `max(a, 0)`
    Relu "relu" [Ordered] T, |a| if a < T::ZERO { T::ZERO } else { a };
    /// `a * sigmoid(a)`
    Silu "silu" [Real] T, |a| special::silu::<I, T>(a), long = true;
    /// `a/2 * (1 + erf(a / sqrt(2)))`, the exact form.
    Gelu "gelu" [Real] T, |a| Real::gelu::<I>(a), long = true;
    /// `ln(1 + exp(a))`
    Softplus "softplus" [Real] T, |a| special::softplus::<I, T>(a), long = true;
    /// `1 - erf(a)`, exact where that is small.
    Erfc "erfc" [Real] T, |a| special::erfc(a);
    /// The logarithm of the absolute value of the gamma function.
    LnGamma "ln_gamma" [Real] T, |a| special::ln_gamma(a);
    /// `ln(a / (1 - a))`
    Logit "logit" [Real] T, |a| special::logit::<I, T>(a), long = true;
    /// `ln(sigmoid(a))`
    LnSigmoid "ln_sigmoid" [Real] T, |a| -special::softplus::<I, T>(-a), long = true;
    /// `min(max(a, 0), 6)`
    Relu6 "relu6" [Ordered] T, |a| a.maximum(T::ZERO).minimum(special::small(6));
    /// `scale * max(a, 0) + scale * alpha * min(e^a - 1, 0)` with the constants of self-normalising networks.
    Selu "selu" [Real] T, |a| special::selu(a);
    /// `a * tanh(softplus(a))`
    Mish "mish" [Real] T, |a| special::mish::<I, T>(a), long = true;
    /// `min(max(a + 3, 0), 6) / 6`
    HardSigmoid "hard_sigmoid" [Real] T, |a| special::hard_sigmoid(a);
    /// `a * hard_sigmoid(a)`
    HardSwish "hard_swish" [Real] T, |a| special::hard_swish(a);
    /// `a / (1 + |a|)`
    Softsign "softsign" [Real] T, |a| special::softsign(a);
    /// `a - tanh(a)`
    TanhShrink "tanh_shrink" [Real] T, |a| special::tanh_shrink::<I, T>(a), long = true;
    /// `a/2 * (1 + tanh(sqrt(2/pi) * (a + 0.044715 a^3)))`, the approximation of [`Gelu`] by a hyperbolic tangent.
    GeluTanh "gelu_tanh" [Real] T, |a| special::gelu_tanh::<I, T>(a), long = true;
    /// `sin(pi a) / (pi a)`, 1 at 0.
    Sinc "sinc" [Real] T, |a| special::sinc(a);
    /// The nearest whole number; halves go to the even one.
    RoundTiesEven "round_ties_even" [Real] T, |a| special::round_ties_even(a);
    /// An angle in radians, in degrees.
    ToDegrees "to_degrees" [Real] T, |a| num_traits::Float::to_degrees(a);
    /// An angle in degrees, in radians.
    ToRadians "to_radians" [Real] T, |a| num_traits::Float::to_radians(a);
    /// Whether the value is infinite.
    IsInfinite "is_infinite" [Real] bool, |a| a.is_infinite();
    /// Whether the sign is negative, that of -0 too.
    Signbit "signbit" [Real] bool, |a| a.is_sign_negative();
    /// Whether the value is not a number.
    IsNan "is_nan" [Ordered] bool, |a| a.is_nan_value();
    /// Whether the value is neither infinite nor not-a-number.
    IsFinite "is_finite" [Real] bool, |a| a.is_finite();
}

fn signum<T: Ordered>(a: T) -> T {
    if a > T::ZERO {
        T::ONE
    } else if a < T::ZERO {
        T::ZERO.sub(T::ONE)
    } else {
        a
    }
}

/// As [`unary`].
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $text:literal [$bound:ident] $out:ident, |$a:ident, $b:ident| $value:expr
        $(, $item:ident = $set:expr)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl Operation for $name {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> BinaryOp<T, T> for $name {
            type Out = $out;
            const NAME: &'static str = $text;
            const SIMPLE: bool = is_simple!($bound);
            $(binary!(@item $item $set);)?
            #[inline]
            fn code(&self) -> Code {
                Code::Binary(BinaryOpcode::$name)
            }
            binary!(@apply [$bound $out] |$a, $b| -> $out { $value });
        }
    )*};
    (@apply [Real T] |$a:ident, $b:ident| -> $out:ty { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T, $b: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::extra_unused_type_parameters)] // of lines that are the same for all instructions
            fn wide<T: Real, I: Isa>($a: T, $b: T) -> T {
                $value
            }
            T::narrow(wide::<T::Wide, I>($a.widen(), $b.widen()))
        }
    };
    (@apply [$bound:ident $first:ident] |$a:ident, $b:ident| -> $out:ty { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T, $b: T) -> $out {
            $value
        }
    };
    (@item monotone $set:expr) => {
        const MONOTONE: bool = $set;
    };
    (@item steady $set:expr) => {
        const STEADY: bool = $set;
    };
    (@item product $set:expr) => {
        const IS_PRODUCT: bool = $set;
        #[cfg_attr(not(unoptimized), inline(always))]
        #[track_caller]
        fn factors<L: Lists, FA: Factor<T, L>, FB: Factor<T, L, Error = FA::Error>>(
            a: FA,
            b: FB,
            list: &mut L::Of<T>,
        ) -> Result<(), FA::Error> {
            a.add_to(list)?;
            b.add_to(list)
        }
    };
    (@item long $set:expr) => { const LONG: bool = $set; };
    (@item total $set:expr) => { const TOTAL: bool = $set; };
    (@item affine $set:expr) => { const AFFINE_SIGN: isize = $set; };
}

binary! {
    /// `a + b`
    Add "add" [Num] T, |a, b| a.add(b), affine = 1;
    /// `a + b` of a position and a number, neither of them near the limits of the type.
    Offset "add" [Num] T, |a, b| a.add(b), steady = true;
    /// `a - b`
    Sub "sub" [Num] T, |a, b| a.sub(b), affine = -1;
    /// `a * b`
    Mul "mul" [Num] T, |a, b| a.mul(b), product = true;
    /// `a / b`
    Div "div" [Num] T, |a, b| a.div(divisor("/", b)), total = T::DIVIDES_BY_ZERO;
    /// `a % b`, with the sign of `a`.
    Rem "rem" [Ordered] T, |a, b| a.rem(divisor("%", b)), total = T::DIVIDES_BY_ZERO;
    /// `a & b`
    And "and" [Logic] T, |a, b| a.and(b);
    /// `a | b`
    Or "or" [Logic] T, |a, b| a.or(b);
    /// `a ^ b`
    Xor "xor" [Logic] T, |a, b| a.xor(b);
    /// The greater one; not-a-number if one of them is.
    Maximum "maximum" [Ordered] T, |a, b| a.maximum(b);
    /// The lesser one; not-a-number if one of them is.
    Minimum "minimum" [Ordered] T, |a, b| a.minimum(b);
    /// `a` to the power of `b`.
    Powf "powf" [Real] T, |a, b| a.powf(b);
    /// The angle of the point `(b, a)`.
    Atan2 "atan2" [Real] T, |a, b| a.atan2(b);
    /// `sqrt(a * a + b * b)` without overflow in between.
    Hypot "hypot" [Real] T, |a, b| a.hypot(b);
    /// The remainder with the sign of `b`: `a - b * floor(a / b)`.
    Remainder "remainder" [Ordered] T, |a, b| special::remainder(a, divisor("remainder", b)), total = T::DIVIDES_BY_ZERO;
    /// `a / b`, rounded down.
    FloorDiv "floor_div" [Integer] T, |a, b| special::floor_div(a, divisor("floor_div", b)), total = T::DIVIDES_BY_ZERO;
    /// `a` with the sign of `b`.
    Copysign "copysign" [Real] T, |a, b| num_traits::Float::copysign(a, b);
    /// The greater one; of a number and not-a-number, the number.
    Fmax "fmax" [Ordered] T, |a, b| if a.is_nan_value() || b > a { b } else { a };
    /// The lesser one; of a number and not-a-number, the number.
    Fmin "fmin" [Ordered] T, |a, b| if a.is_nan_value() || b < a { b } else { a };
    /// `ln(e^a + e^b)`, without overflow.
    LogAddExp "logaddexp" [Real] T, |a, b| special::logaddexp::<I, T>(a, b), long = true;
    /// `a * ln(b)`, and 0 where `a` is 0.
    Xlogy "xlogy" [Real] T, |a, b| special::xlogy::<I, T>(a, b), long = true;
    /// 0 where `a` is negative, `b` where it is 0, else 1; not-a-number for itself.
    Heaviside "heaviside" [Ordered] T, |a, b| special::heaviside(a, b);
    /// `(a - b)^2`
    SquaredError "mse_loss" [Num] T, |a, b| special::squared_error(a, b);
    /// `|a - b|`
    AbsoluteError "l1_loss" [Real] T, |a, b| num_traits::Float::abs(a - b);
    /// `-(b * ln(a) + (1 - b) * ln(1 - a))`, each logarithm at least -100.
    Bce "bce_loss" [Real] T, |a, b| special::bce::<I, T>(a, b), long = true;
    /// `Bce` of `sigmoid(a)` and `b`, without loss where that is near 0 or 1.
    BceWithLogits "bce_with_logits_loss" [Real] T, |a, b| special::bce_with_logits::<I, T>(a, b), long = true;
    /// `b * (ln(b) - a)`, 0 where `b` is 0; `a` is a logarithm of probabilities.
    KlDiv "kl_div_loss" [Real] T, |a, b| special::kl_div::<I, T>(a, b), long = true;
    /// `a < b`
    Lt "lt" [PartialOrder] bool, |a, b| a < b, monotone = true;
    /// `a <= b`
    Le "le" [PartialOrder] bool, |a, b| a <= b, monotone = true;
    /// `a > b`
    Gt "gt" [PartialOrder] bool, |a, b| a > b, monotone = true;
    /// `a >= b`
    Ge "ge" [PartialOrder] bool, |a, b| a >= b, monotone = true;
    /// `a == b`
    Eq "eq" [Equality] bool, |a, b| a == b;
    /// `a != b`
    Ne "ne" [Equality] bool, |a, b| a != b;
}

/// What is divided by, which for integers must not be 0.
#[cfg_attr(not(unoptimized), inline(always))]
fn divisor<T: Num>(operation: &str, b: T) -> T {
    if !T::DIVIDES_BY_ZERO && b == T::ZERO {
        divided_by_zero(operation);
    }
    b
}

#[cold]
#[inline(never)]
fn divided_by_zero(operation: &str) -> ! {
    panic!(
        "`{operation}` of integers has no value where the divisor is 0; `select` leaves such elements out: `select(b.ne(0), a / b, 0)`"
    )
}

/// Element types with an order.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no order",
    label = "integers or floats are needed here"
)]
pub trait PartialOrder: Element + PartialOrd {}
impl<T: Element + PartialOrd> PartialOrder for T {}

/// Element types that can be equal.
pub trait Equality: Element + PartialEq {}
impl<T: Element + PartialEq> Equality for T {}

/// `a` to a whole power.
#[derive(Clone, Copy, Debug)]
pub struct Powi(pub i32);
impl Operation for Powi {}

#[diagnostic::do_not_recommend]
impl<T: Analytic> UnaryOp<T> for Powi {
    type Out = T;
    const NAME: &'static str = "powi";
    #[inline]
    fn code(&self) -> Code {
        Code::Unary(UnaryOpcode::Powi(self.0))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> T {
        match self.0 {
            2 => a.mul(a),
            // In single precision for the half ones, as other powers.
            3 => T::from_acc(a.to_acc().mul(a.to_acc()).mul(a.to_acc())),
            n => a.powi(n),
        }
    }
}

/// The value, or the nearer bound. A value that is not a number stays.
#[derive(Clone, Copy, Debug)]
pub struct Clamp<T>(pub T, pub T);
impl<T> Operation for Clamp<T> {}

#[diagnostic::do_not_recommend]
impl<T: Ordered> UnaryOp<T> for Clamp<T> {
    type Out = T;
    const NAME: &'static str = "clamp";
    #[inline]
    fn code(&self) -> Code {
        Code::Unary(UnaryOpcode::Clamp(Number::float(self.0), Number::float(self.1)))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> T {
        a.maximum(self.0).minimum(self.1)
    }
}

/// Operations with a constant of their own: the type holds it.
macro_rules! unary_with {
    ($($(#[$doc:meta])* $name:ident($c:ident) $text:literal [$bound:ident], |$a:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T>(pub T);
        impl<T> Operation for $name<T> {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> UnaryOp<T> for $name<T> {
            type Out = T;
            const NAME: &'static str = $text;
            #[inline]
            fn code(&self) -> Code {
                Code::Unary(UnaryOpcode::$name(Number::float(self.0)))
            }
            unary_with!(@apply [$bound] |$a, $c| { $value });
        }
    )*};
    (@apply [Real] |$a:ident, $c:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn wide<T: Real>($a: T, $c: T) -> T {
                $value
            }
            T::narrow(wide($a.widen(), self.0.widen()))
        }
    };
    (@apply [$bound:ident] |$a:ident, $c:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $a: T) -> T {
            let $c = self.0;
            $value
        }
    };
}

unary_with! {
    /// `a`, or `slope * a` where that is negative.
    LeakyRelu(slope) "leaky_relu" [Ordered], |a| if a < T::ZERO { slope.mul(a) } else { a };
    /// `a`, or `alpha * (e^a - 1)` where that is negative.
    Elu(alpha) "elu" [Real], |a| if a < T::zero() { alpha * a.exp_m1() } else { a };
    /// `a`, or `alpha * (e^(a / alpha) - 1)` where that is negative.
    Celu(alpha) "celu" [Real], |a| if a < T::zero() { alpha * (a / alpha).exp_m1() } else { a };
    /// `a`, or 0 where `|a| <= lambda`.
    HardShrink(lambda) "hard_shrink" [Real], |a| if num_traits::Float::abs(a) <= lambda { T::zero() } else { a };
    /// `a` moved towards 0 by `lambda`, or 0 where that would pass it.
    SoftShrink(lambda) "soft_shrink" [Real], |a| special::soft_shrink(a, lambda);
    /// `a`, or the constant where `a` is not a number.
    NanTo(value) "nan_to" [Real], |a| if a.is_nan() { value } else { a };
}

/// Operations on two elements with a constant of their own.
macro_rules! binary_with {
    ($($(#[$doc:meta])* $name:ident($c:ident) $text:literal [$bound:ident], |$a:ident, $b:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T>(pub T);
        impl<T> Operation for $name<T> {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> BinaryOp<T, T> for $name<T> {
            type Out = T;
            const NAME: &'static str = $text;
            #[inline]
            fn code(&self) -> Code {
                Code::Binary(BinaryOpcode::$name(Number::float(self.0)))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn apply<I: Isa>(&self, $a: T, $b: T) -> T {
                #[cfg_attr(not(unoptimized), inline(always))]
                fn wide<T: Real>($a: T, $b: T, $c: T) -> T {
                    $value
                }
                T::narrow(wide($a.widen(), $b.widen(), self.0.widen()))
            }
        }
    )*};
}

binary_with! {
    /// `(a - b)^2 / 2` where `|a - b| <= delta`, else `delta * (|a - b| - delta / 2)`.
    Huber(delta) "huber_loss" [Real], |a, b| special::huber(a - b, delta);
    /// Huber's loss divided by `beta`.
    SmoothL1(beta) "smooth_l1_loss" [Real], |a, b| special::smooth_l1(a - b, beta);
    /// `a + (b - a) * weight`; `a` itself for a weight of 0, and `b` for 1.
    Lerp(weight) "lerp" [Real], |a, b| special::lerp(a, b, weight);
}

/// The element in the type in which sums are accumulated.
#[derive(Clone, Copy, Debug)]
pub struct ToAcc;
impl Operation for ToAcc {}

#[diagnostic::do_not_recommend]
impl<T: Num> UnaryOp<T> for ToAcc {
    type Out = T::Acc;
    const NAME: &'static str = "cast";
    #[inline]
    fn code(&self) -> Code {
        DType::of::<T::Acc>().map_or(Code::Opaque, Code::Cast)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> T::Acc {
        a.to_acc()
    }
}

/// The way back from [`ToAcc`].
#[derive(Clone, Copy, Debug)]
pub struct FromAcc<T>(pub core::marker::PhantomData<T>);
impl<T> Operation for FromAcc<T> {}

#[diagnostic::do_not_recommend]
impl<T: Num> UnaryOp<T::Acc> for FromAcc<T> {
    type Out = T;
    const NAME: &'static str = "cast";
    #[inline]
    fn code(&self) -> Code {
        DType::of::<T>().map_or(Code::Opaque, Code::Cast)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T::Acc) -> T {
        T::from_acc(a)
    }
}

/// Conversion to another element type.
#[derive(Debug)]
pub struct Cast<To>(pub core::marker::PhantomData<To>);

impl<To> Clone for Cast<To> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<To> Copy for Cast<To> {}
impl<To> Operation for Cast<To> {}

#[diagnostic::do_not_recommend]
impl<T: CastTo<To>, To: Element> UnaryOp<T> for Cast<To> {
    type Out = To;
    const NAME: &'static str = "cast";
    #[inline]
    fn code(&self) -> Code {
        DType::of::<To>().map_or(Code::Opaque, Code::Cast)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> To {
        a.cast_to()
    }
}

/// The left one: a tensor along the dims of another.
#[derive(Clone, Copy, Debug)]
pub struct LeftOperand;
impl Operation for LeftOperand {}

#[diagnostic::do_not_recommend]
impl<A: Element, B> BinaryOp<A, B> for LeftOperand {
    type Out = A;
    const NAME: &'static str = "left";
    #[inline]
    fn code(&self) -> Code {
        Code::Left
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: A, _: B) -> A {
        a
    }
}

/// The right one: a new value in place of an old one.
#[derive(Clone, Copy, Debug)]
pub struct Replace;
impl Operation for Replace {}

#[diagnostic::do_not_recommend]
impl<T: Element> BinaryOp<T, T> for Replace {
    type Out = T;
    const NAME: &'static str = "assign";
    #[inline]
    fn code(&self) -> Code {
        Code::Right
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, _: T, new: T) -> T {
        new
    }
}

/// Both, as a pair.
#[derive(Clone, Copy, Debug)]
pub struct Pair;
impl Operation for Pair {}

#[diagnostic::do_not_recommend]
impl<A: Element, B: Element> BinaryOp<A, B> for Pair {
    type Out = (A, B);
    const NAME: &'static str = "pair";
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: A, b: B) -> (A, B) {
        (a, b)
    }
}

/// An integer as an index: the nearest `isize`, so that comparisons with indices hold for all values.
#[derive(Clone, Copy, Debug)]
pub struct Index;
impl Operation for Index {}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> UnaryOp<T> for Index {
    type Out = isize;
    const NAME: &'static str = "index";
    #[inline]
    fn code(&self) -> Code {
        Code::Same
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> isize {
        a.to_isize()
    }
}

/// An integer as an index of an axis of so many elements: a negative one counts from the end, if it gets as far as the start.
#[derive(Clone, Copy, Debug)]
pub struct IndexFromEnd(pub isize);
impl Operation for IndexFromEnd {}

#[diagnostic::do_not_recommend]
impl<T: IndexInt> UnaryOp<T> for IndexFromEnd {
    type Out = isize;
    const NAME: &'static str = "from_end";
    #[inline]
    fn code(&self) -> Code {
        Code::Unary(UnaryOpcode::FromEnd(self.0))
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> isize {
        let index = a.to_isize();
        if index < 0 && index >= -self.0 { index + self.0 } else { index }
    }
}

/// A condition as it is. (For other types there is no such condition, and no way to ask for it.)
#[derive(Clone, Copy, Debug)]
pub struct Holds;
impl Operation for Holds {}

#[diagnostic::do_not_recommend]
impl<T: Element> UnaryOp<T> for Holds {
    type Out = bool;
    const NAME: &'static str = "holds";
    #[inline]
    fn code(&self) -> Code {
        Code::Same
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> bool {
        (&a as &dyn core::any::Any).downcast_ref::<bool>().is_some_and(|&holds| holds)
    }
}

/// A user's closure.
#[derive(Clone, Copy, Debug)]
pub struct Map<F>(pub F);
impl<F> Operation for Map<F> {}

#[diagnostic::do_not_recommend]
impl<T, U: Element, F: Fn(T) -> U> UnaryOp<T> for Map<F> {
    type Out = U;
    const NAME: &'static str = "map";
    const TOTAL: bool = false;
    const PARALLEL: bool = false;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> U {
        (self.0)(a)
    }
}

#[diagnostic::do_not_recommend]
impl<T, O, U: Element, F: Fn(T, O) -> U> BinaryOp<T, O> for Map<F> {
    type Out = U;
    const NAME: &'static str = "zip_map";
    const TOTAL: bool = false;
    const PARALLEL: bool = false;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T, b: O) -> U {
        (self.0)(a, b)
    }
}
