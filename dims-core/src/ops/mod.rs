//! The table of scalar operations: every elementwise operation of the library is one line here.
//!
//! An operation is a type; most are zero-sized. A line gives its name, the types it works on, and its value; the rest
//! (fusion, broadcasting, batching, methods on tensors) is derived from that. What else the library ever has to know of
//! an operation (its derivative, its name in other systems) belongs into the same line.

pub mod math;
pub mod special;

use crate::error::DimError;
use crate::expr::{Expr, Factors};
pub use crate::kernel::isa::Isa;
use crate::plan::direct::Memory;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::scalar::*;
use crate::set::Dims;

/// An operation on one element.
#[diagnostic::on_unimplemented(
    message = "there is no operation `{Self}` on tensors of `{A}`",
    label = "not for elements of type `{A}`",
    note = "cast the tensor first, for example `.cast::<f32>()`"
)]
pub trait UnaryOp<A> {
    /// What it yields.
    type Out: Element;
    /// Its name in plans.
    const NAME: &'static str;
    /// Whether it has a value for every element.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Its value.
    fn apply<I: Isa>(&self, a: A) -> Self::Out;
}

/// An operation on two elements.
#[diagnostic::on_unimplemented(
    message = "there is no operation `{Self}` on tensors of `{A}` and `{B}`",
    label = "not for elements of type `{A}` and `{B}`",
    note = "cast the tensors first, for example `.cast::<f32>()`"
)]
pub trait BinaryOp<A, B> {
    /// What it yields.
    type Out: Element;
    /// Its name in plans.
    const NAME: &'static str;
    /// Whether it has a value for every pair of elements.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Whether it turns from one truth value to the other at most once, as one operand grows and the other stays or shrinks.
    const MONOTONE: bool = false;
    /// Whether it is the product that contractions are made of.
    const IS_PRODUCT: bool = false;
    /// Whether it is the sum of affine index expressions (1), their difference (-1), or neither (0).
    const AFFINE_SIGN: isize = 0;
    /// Its value.
    fn apply<I: Isa>(&self, a: A, b: B) -> Self::Out;
    /// Where both operands are, if it is the product and they are nothing but memory.
    #[doc(hidden)]
    fn pair<'s, EA: Expr<Elem = A>, EB: Expr<Elem = B>>(
        _: &'s EA,
        _: &'s EB,
    ) -> (Memory<'s, Self::Out>, Memory<'s, Self::Out>) {
        unreachable!("only products have factors")
    }
    /// The factors of both operands, if it is the product.
    #[doc(hidden)]
    fn factors<'s, U: Dims, R: Rank, EA: Expr<Elem = A>, EB: Expr<Elem = B>>(
        _: &'s EA,
        _: &'s EB,
        _: &Shape,
        _: &mut Factors<'s, Self::Out>,
    ) -> Result<(), DimError>
    where
        Self::Out: Num,
    {
        unreachable!("only products have factors")
    }
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $text:literal [$bound:ident] $out:ty, |$a:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        #[diagnostic::do_not_recommend]
        impl<T: $bound> UnaryOp<T> for $name {
            type Out = $out;
            const NAME: &'static str = $text;
            #[inline(always)]
            fn apply<I: Isa>(&self, $a: T) -> $out { $value }
        }
    )*};
}

unary! {
    /// `-a`
    Neg "neg" [Signed] T, |a| a.neg();
    /// `!a`
    Not "not" [Logic] T, |a| a.not();
    /// `|a|`
    Abs "abs" [Magnitude] T::Abs, |a| a.magnitude();
    /// The exponential function.
    Exp "exp" [Analytic] T, |a| Analytic::exp::<I>(a);
    /// `exp(a) - 1`, exact near 0.
    ExpM1 "exp_m1" [Real] T, |a| a.exp_m1();
    /// The natural logarithm.
    Ln "ln" [Analytic] T, |a| Analytic::ln::<I>(a);
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
    Rsqrt "rsqrt" [Analytic] T, |a| T::ONE.div(a.sqrt());
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
    Tanh "tanh" [Analytic] T, |a| Analytic::tanh::<I>(a);
    /// The inverse hyperbolic sine.
    Asinh "asinh" [Real] T, |a| a.asinh();
    /// The inverse hyperbolic cosine.
    Acosh "acosh" [Real] T, |a| a.acosh();
    /// The inverse hyperbolic tangent.
    Atanh "atanh" [Real] T, |a| a.atanh();
    /// The error function.
    Erf "erf" [Real] T, |a| Real::erf::<I>(a);
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
    Sigmoid "sigmoid" [Real] T, |a| T::one() / (T::one() + Analytic::exp::<I>(-a));
    /// `max(a, 0)`
    Relu "relu" [Ordered] T, |a| a.maximum(T::ZERO);
    /// `a * sigmoid(a)`
    Silu "silu" [Real] T, |a| a / (T::one() + Analytic::exp::<I>(-a));
    /// `a/2 * (1 + erf(a / sqrt(2)))`, the exact form.
    Gelu "gelu" [Real] T, |a| special::gelu::<I, T>(a);
    /// `ln(1 + exp(a))`
    Softplus "softplus" [Real] T, |a| special::softplus::<I, T>(a);
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

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $text:literal [$bound:ident] $out:ty, |$a:ident, $b:ident| $value:expr
        $(, $item:ident = $set:expr)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        #[diagnostic::do_not_recommend]
        impl<T: $bound> BinaryOp<T, T> for $name {
            type Out = $out;
            const NAME: &'static str = $text;
            $(binary!(@item $item $set);)?
            #[inline(always)]
            fn apply<I: Isa>(&self, $a: T, $b: T) -> $out { $value }
        }
    )*};
    (@item monotone $set:expr) => {
        const MONOTONE: bool = $set;
    };
    (@item product $set:expr) => {
        const IS_PRODUCT: bool = $set;
        #[inline(always)]
        fn pair<'s, EA: Expr<Elem = T>, EB: Expr<Elem = T>>(a: &'s EA, b: &'s EB) -> (Memory<'s, T>, Memory<'s, T>) {
            (a.memory(), b.memory())
        }
        #[inline(always)]
        fn factors<'s, U: Dims, R: Rank, EA: Expr<Elem = T>, EB: Expr<Elem = T>>(
            a: &'s EA,
            b: &'s EB,
            shape: &Shape,
            factors: &mut Factors<'s, T>,
        ) -> Result<(), DimError> {
            a.factors::<U, R>(shape, factors)?;
            b.factors::<U, R>(shape, factors)
        }
    };
    (@item total $set:expr) => { const TOTAL: bool = $set; };
    (@item affine $set:expr) => { const AFFINE_SIGN: isize = $set; };
}

binary! {
    /// `a + b`
    Add "add" [Num] T, |a, b| a.add(b), affine = 1;
    /// `a - b`
    Sub "sub" [Num] T, |a, b| a.sub(b), affine = -1;
    /// `a * b`
    Mul "mul" [Num] T, |a, b| a.mul(b), product = true;
    /// `a / b`
    Div "div" [Num] T, |a, b| a.div(b), total = T::DIVIDES_BY_ZERO;
    /// `a % b`, with the sign of `a`.
    Rem "rem" [Ordered] T, |a, b| a.rem(b), total = T::DIVIDES_BY_ZERO;
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

#[diagnostic::do_not_recommend]
impl<T: Analytic> UnaryOp<T> for Powi {
    type Out = T;
    const NAME: &'static str = "powi";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T) -> T {
        match self.0 {
            2 => a.mul(a),
            3 => a.mul(a).mul(a),
            n => a.powi(n),
        }
    }
}

/// The value, or the nearer bound. A value that is not a number stays.
#[derive(Clone, Copy, Debug)]
pub struct Clamp<T>(pub T, pub T);

#[diagnostic::do_not_recommend]
impl<T: Ordered> UnaryOp<T> for Clamp<T> {
    type Out = T;
    const NAME: &'static str = "clamp";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T) -> T {
        a.maximum(self.0).minimum(self.1)
    }
}

/// Conversion to another element type.
#[derive(Debug)]
pub struct Cast<To>(pub std::marker::PhantomData<To>);

impl<To> Clone for Cast<To> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<To> Copy for Cast<To> {}

#[diagnostic::do_not_recommend]
impl<T: CastTo<To>, To: Element> UnaryOp<T> for Cast<To> {
    type Out = To;
    const NAME: &'static str = "cast";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T) -> To {
        a.cast_to()
    }
}

/// The left one: a tensor along the dims of another.
#[derive(Clone, Copy, Debug)]
pub struct Left;

#[diagnostic::do_not_recommend]
impl<A: Element, B> BinaryOp<A, B> for Left {
    type Out = A;
    const NAME: &'static str = "left";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: A, _: B) -> A {
        a
    }
}

/// Both, as a pair.
#[derive(Clone, Copy, Debug)]
pub struct Pair;

#[diagnostic::do_not_recommend]
impl<A: Element, B: Element> BinaryOp<A, B> for Pair {
    type Out = (A, B);
    const NAME: &'static str = "pair";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: A, b: B) -> (A, B) {
        (a, b)
    }
}

/// An integer as an index: the nearest `isize`, so that comparisons with indices hold for all values.
#[derive(Clone, Copy, Debug)]
pub struct Index;

#[diagnostic::do_not_recommend]
impl<T: IndexInt> UnaryOp<T> for Index {
    type Out = isize;
    const NAME: &'static str = "index";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T) -> isize {
        a.to_isize()
    }
}

/// A condition as it is. (For other types there is no such condition, and no way to ask for it.)
#[derive(Clone, Copy, Debug)]
pub struct Holds;

#[diagnostic::do_not_recommend]
impl<T: Element> UnaryOp<T> for Holds {
    type Out = bool;
    const NAME: &'static str = "holds";
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T) -> bool {
        (&a as &dyn std::any::Any).downcast_ref::<bool>().is_some_and(|&holds| holds)
    }
}

/// A user's closure.
#[derive(Clone, Copy, Debug)]
pub struct Map<F>(pub F);

#[diagnostic::do_not_recommend]
impl<T, U: Element, F: Fn(T) -> U> UnaryOp<T> for Map<F> {
    type Out = U;
    const NAME: &'static str = "map";
    const TOTAL: bool = false;
    const PARALLEL: bool = false;
    #[inline(always)]
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
    #[inline(always)]
    fn apply<I: Isa>(&self, a: T, b: O) -> U {
        (self.0)(a, b)
    }
}
