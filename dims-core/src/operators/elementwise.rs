//! Elementwise operations as methods and operators. They run nothing: they build expressions.

mod dims;
mod tensors;

pub use dims::{IndicesAlong, NumberAndIndices, indices_along, number_and_indices};
pub use tensors::{LeftOf, ScalarOut};

use crate::expr::{Binary, Operand, Select, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, NamedOf};
use crate::types::rank::Rank;
use crate::types::set::{Dims, Union};
use core::marker::PhantomData;
use kernels::ops::{self, BinaryOp, Cast, Clamp, Map, Powi, UnaryOp};
use kernels::scalar::*;

/// The result of an operation on one tensor.
pub type UnaryOut<O, A> = Named<
    <O as UnaryOp<<A as AsTensor>::Elem>>::Out,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Unary<O, <A as AsTensor>::Expr>,
>;

/// The result of an operation on a tensor and an operand with elements `U`: it has the dims of both.
pub type BinaryOut<O, A, B, U = <A as AsTensor>::Elem> = Named<
    <O as BinaryOp<<A as AsTensor>::Elem, U>>::Out,
    <<A as AsTensor>::Dims as Union<<B as Operand<U>>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as Operand<U>>::Rank>,
    Binary<O, <A as AsTensor>::Expr, <B as Operand<U>>::Expr>,
>;

/// [`BinaryOut`] for a tensor of `T` with the dims `S`, the positional axes `R` and the elements `E`.
pub type Joined<O, T, S, R, E, B> = Named<
    <O as BinaryOp<T, T>>::Out,
    <S as Union<<B as Operand<T>>::Dims>>::Out,
    <R as Rank>::Max<<B as Operand<T>>::Rank>,
    Binary<O, E, <B as Operand<T>>::Expr>,
>;

#[cfg_attr(not(unoptimized), inline(always))]
fn unary<O: UnaryOp<A::Elem>, A: AsTensor>(op: O, a: A) -> UnaryOut<O, A> {
    Named::from_expr(Unary { op, a: a.into_named().expr })
}

#[cfg_attr(not(unoptimized), inline(always))]
fn binary<O, A, B, U>(op: O, a: A, b: B) -> BinaryOut<O, A, B, U>
where
    O: BinaryOp<A::Elem, U>,
    A: AsTensor<Dims: Union<B::Dims>>,
    B: Operand<U>,
{
    Named::from_expr(Binary { op, a: a.into_named().expr, b: b.into_expr() })
}

// `self` is written in each line, not in the macros: where a tensor is used after it was moved, rustc quotes the line that has the word.
macro_rules! unary_methods {
    ($($(#[$doc:meta])* $method:ident($this:ident) $op:ident [$bound:ident];)*) => {$(
        $(#[$doc])*
        #[allow(clippy::wrong_self_convention)] // `is_nan` takes its tensor, as every operation here does
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method($this) -> UnaryOut<ops::$op, Self>
        where
            Self::Elem: $bound,
        {
            unary(ops::$op, $this)
        }
    )*};
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $method:ident($this:ident, other) $op:ident [$($operand:tt)*] [$bound:path];)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method<$($operand)*>($this, other: B) -> BinaryOut<ops::$op, Self, B>
        where
            Self::Elem: $bound,
            Self::Dims: Union<B::Dims>,
        {
            binary(ops::$op, $this, other)
        }
    )*};
}

macro_rules! unary_methods_with {
    ($($(#[$doc:meta])* $method:ident($this:ident) $op:ident($c:ident) [$bound:ident];)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method($this, $c: Self::Elem) -> UnaryOut<ops::$op<Self::Elem>, Self>
        where
            Self::Elem: $bound,
        {
            unary(ops::$op($c), $this)
        }
    )*};
}

macro_rules! binary_methods_with {
    ($($(#[$doc:meta])* $method:ident($this:ident, other) $op:ident($c:ident) [$bound:path];)*) => {$(
        $(#[$doc])*
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method<B: Operand<Self::Elem>>(
            $this,
            other: B,
            $c: Self::Elem,
        ) -> BinaryOut<ops::$op<Self::Elem>, Self, B>
        where
            Self::Elem: $bound,
            Self::Dims: Union<B::Dims>,
        {
            binary(ops::$op($c), $this, other)
        }
    )*};
}

/// Operations on each element, for tensors, references to tensors, and dims.
///
/// The result has the dims of all operands and is computed when it is reduced, ordered, assigned or evaluated, in one
/// pass with whatever else the expression holds. The operators `+ - * / % & | ^ !` and unary `-` belong here as well; a scalar can
/// stand on either side of them.
pub trait Elementwise: AsTensor {
    unary_methods! {
        /// `|x|`, for complex numbers the real magnitude. The least integer wraps around to itself.
        abs(self) Abs [Magnitude];
        /// `e^x`
        exp(self) Exp [Analytic];
        /// `e^x - 1`, exact near 0.
        exp_m1(self) ExpM1 [Real];
        /// `2^x`
        exp2(self) Exp2 [Real];
        /// The natural logarithm.
        ln(self) Ln [Analytic];
        /// `ln(1 + x)`, exact near 0.
        ln_1p(self) Ln1p [Real];
        /// The logarithm to base 2.
        log2(self) Log2 [Real];
        /// The logarithm to base 10.
        log10(self) Log10 [Real];
        /// The square root.
        sqrt(self) Sqrt [Analytic];
        /// The cube root.
        cbrt(self) Cbrt [Real];
        /// `1 / sqrt(x)`
        rsqrt(self) Rsqrt [Analytic];
        /// `1 / x`
        recip(self) Recip [Analytic];
        /// `x * x`
        square(self) Square [Num];
        /// The sine of an angle in radians.
        sin(self) Sin [Analytic];
        /// The cosine of an angle in radians.
        cos(self) Cos [Analytic];
        /// The tangent of an angle in radians.
        tan(self) Tan [Analytic];
        /// The inverse sine, in radians.
        asin(self) Asin [Real];
        /// The inverse cosine, in radians.
        acos(self) Acos [Real];
        /// The inverse tangent, in radians.
        atan(self) Atan [Real];
        /// The hyperbolic sine.
        sinh(self) Sinh [Analytic];
        /// The hyperbolic cosine.
        cosh(self) Cosh [Analytic];
        /// The hyperbolic tangent.
        tanh(self) Tanh [Analytic];
        /// The inverse hyperbolic sine.
        asinh(self) Asinh [Real];
        /// The inverse hyperbolic cosine.
        acosh(self) Acosh [Real];
        /// The inverse hyperbolic tangent.
        atanh(self) Atanh [Real];
        /// The error function.
        erf(self) Erf [Real];
        /// `1 / (1 + e^-x)`
        sigmoid(self) Sigmoid [Real];
        /// `max(x, 0)`
        relu(self) Relu [Ordered];
        /// `x / 2 * (1 + erf(x / sqrt 2))`, the exact form.
        gelu(self) Gelu [Real];
        /// `x * sigmoid(x)`
        silu(self) Silu [Real];
        /// `ln(1 + e^x)`
        softplus(self) Softplus [Real];
        /// `1 - erf(x)`, exact where that is small.
        erfc(self) Erfc [Real];
        /// The logarithm of the absolute value of the gamma function.
        ln_gamma(self) LnGamma [Real];
        /// `ln(x / (1 - x))`, the inverse of `sigmoid`.
        logit(self) Logit [Real];
        /// `ln(sigmoid(x))`, exact where that is small.
        ln_sigmoid(self) LnSigmoid [Real];
        /// `min(max(x, 0), 6)`
        relu6(self) Relu6 [Ordered];
        /// `1.0507 * x`, or `1.7581 * (e^x - 1)` where that is negative: the scaled exponential linear unit.
        selu(self) Selu [Real];
        /// `x * tanh(softplus(x))`
        mish(self) Mish [Real];
        /// `min(max(x + 3, 0), 6) / 6`
        hard_sigmoid(self) HardSigmoid [Real];
        /// `x * hard_sigmoid(x)`
        hard_swish(self) HardSwish [Real];
        /// `x / (1 + |x|)`
        softsign(self) Softsign [Real];
        /// `x - tanh(x)`
        tanh_shrink(self) TanhShrink [Real];
        /// The approximation of [`gelu`](Elementwise::gelu) by a hyperbolic tangent.
        gelu_tanh(self) GeluTanh [Real];
        /// `sin(pi x) / (pi x)`, 1 at 0.
        sinc(self) Sinc [Real];
        /// An angle in radians, in degrees.
        to_degrees(self) ToDegrees [Real];
        /// An angle in degrees, in radians.
        to_radians(self) ToRadians [Real];
        /// The greatest whole number that is not greater.
        floor(self) Floor [Real];
        /// The least whole number that is not less.
        ceil(self) Ceil [Real];
        /// The nearest whole number; halves go away from 0.
        round(self) Round [Real];
        /// The nearest whole number; halves go to the even one.
        round_ties_even(self) RoundTiesEven [Real];
        /// The whole part.
        trunc(self) Trunc [Real];
        /// What the whole part leaves.
        fract(self) Fract [Real];
        /// -1, 0 or 1; not-a-number for itself.
        signum(self) Signum [Ordered];
        /// Whether the element is not a number.
        is_nan(self) IsNan [Ordered];
        /// Whether the element is neither infinite nor not-a-number.
        is_finite(self) IsFinite [Real];
        /// Whether the element is infinite.
        is_infinite(self) IsInfinite [Real];
        /// Whether the sign is negative, that of -0 too.
        signbit(self) Signbit [Real];
    }

    // (What operands are stands here, and not in the macro: rustc quotes it.)
    binary_methods! {
        /// The greater one; not-a-number if one of them is.
        maximum(self, other) Maximum [B: Operand<Self::Elem>] [Ordered];
        /// The lesser one; not-a-number if one of them is.
        minimum(self, other) Minimum [B: Operand<Self::Elem>] [Ordered];
        /// `x^y`
        powf(self, other) Powf [B: Operand<Self::Elem>] [Real];
        /// The angle of the point `(y, x)`, in radians: `y.atan2(x)`.
        atan2(self, other) Atan2 [B: Operand<Self::Elem>] [Real];
        /// `sqrt(x * x + y * y)`, without overflow in between.
        hypot(self, other) Hypot [B: Operand<Self::Elem>] [Real];
        /// The remainder with the sign of `y`, `x - y * floor(x / y)`, where `%` has that of `x`.
        remainder(self, other) Remainder [B: Operand<Self::Elem>] [Ordered];
        /// `x / y` of integers, rounded down, where `/` rounds towards 0.
        floor_div(self, other) FloorDiv [B: Operand<Self::Elem>] [Integer];
        /// `x` with the sign of `y`.
        copysign(self, other) Copysign [B: Operand<Self::Elem>] [Real];
        /// The greater one; of a number and not-a-number, the number.
        fmax(self, other) Fmax [B: Operand<Self::Elem>] [Ordered];
        /// The lesser one; of a number and not-a-number, the number.
        fmin(self, other) Fmin [B: Operand<Self::Elem>] [Ordered];
        /// `ln(e^x + e^y)`, without overflow.
        logaddexp(self, other) LogAddExp [B: Operand<Self::Elem>] [Real];
        /// `x * ln(y)`, and 0 where `x` is 0.
        xlogy(self, other) Xlogy [B: Operand<Self::Elem>] [Real];
        /// 0 where `x` is negative, `y` where it is 0, else 1.
        heaviside(self, other) Heaviside [B: Operand<Self::Elem>] [Ordered];
        /// `x < y`
        lt(self, other) Lt [B: Operand<Self::Elem>] [ops::PartialOrder];
        /// `x <= y`
        le(self, other) Le [B: Operand<Self::Elem>] [ops::PartialOrder];
        /// `x > y`
        gt(self, other) Gt [B: Operand<Self::Elem>] [ops::PartialOrder];
        /// `x >= y`
        ge(self, other) Ge [B: Operand<Self::Elem>] [ops::PartialOrder];
        /// `x == y`
        eq(self, other) Eq [B: Operand<Self::Elem>] [ops::Equality];
        /// `x != y`
        ne(self, other) Ne [B: Operand<Self::Elem>] [ops::Equality];
    }

    /// `x^n` for a whole `n`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn powi(self, n: i32) -> UnaryOut<Powi, Self>
    where
        Self::Elem: Analytic,
    {
        unary(Powi(n), self)
    }

    /// `min(max(x, low), high)`; not-a-number stays.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn clamp(self, low: Self::Elem, high: Self::Elem) -> UnaryOut<Clamp<Self::Elem>, Self>
    where
        Self::Elem: Ordered,
    {
        unary(Clamp(low, high), self)
    }

    unary_methods_with! {
        /// `x`, or `slope * x` where that is negative.
        leaky_relu(self) LeakyRelu(slope) [Ordered];
        /// `x`, or `alpha * (e^x - 1)` where that is negative.
        elu(self) Elu(alpha) [Real];
        /// `x`, or `alpha * (e^(x / alpha) - 1)` where that is negative.
        celu(self) Celu(alpha) [Real];
        /// `x`, or 0 where `|x| <= lambda`.
        hard_shrink(self) HardShrink(lambda) [Real];
        /// `x` moved towards 0 by `lambda`, or 0 where that would pass it.
        soft_shrink(self) SoftShrink(lambda) [Real];
        /// `x`, or `value` where `x` is not a number.
        nan_to(self) NanTo(value) [Real];
    }

    binary_methods_with! {
        /// `x + (y - x) * weight`; `x` itself for a weight of 0, and `y` for 1.
        lerp(self, other) Lerp(weight) [Real];
    }

    /// Each element in another type, as Rust's `as` converts it.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::array![-1.5f32, 300.0];
    /// dims!(i);
    /// assert_eq!(a.at(i).cast::<u8>().order(i), ndarray::array![0, 255]);
    /// ```
    #[cfg_attr(not(unoptimized), inline(always))]
    fn cast<U: Element>(self) -> UnaryOut<Cast<U>, Self>
    where
        Self::Elem: CastTo<U>,
    {
        unary(Cast(PhantomData), self)
    }

    /// `f` of each element.
    ///
    /// `f` is a [`Fn`], because it belongs to an expression, which is computed in any order, on several threads, and at each place that uses it. A
    /// closure that changes its surroundings needs an order, which ndarray's `mapv` has:
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// let a = ndarray::array![1, 2, 3];
    /// dims!(i);
    /// assert_eq!(a.at(i).map(|x| x % 2 == 0).order(i), ndarray::array![false, true, false]);
    ///
    /// let mut sum = 0;
    /// let sums = a.at(i).order(i).mapv(|x| { sum += x; sum }).into_tensor(i);
    /// assert_eq!(sums.order(i), ndarray::array![1, 3, 6]);
    /// ```
    #[cfg_attr(not(unoptimized), inline(always))]
    fn map<U: Element, F: Fn(Self::Elem) -> U>(self, f: F) -> UnaryOut<Map<F>, Self> {
        unary(Map(f), self)
    }

    /// `f` of each element and of the other tensor's element at the same position.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn zip_map<B, V, U, F>(self, other: B, f: F) -> BinaryOut<Map<F>, Self, B, V>
    where
        B: Operand<V>,
        U: Element,
        F: Fn(Self::Elem, V) -> U,
        Self::Dims: Union<B::Dims>,
    {
        binary(Map(f), self, other)
    }

    /// `a` where this condition holds, else `b`. See [`select`].
    #[cfg_attr(not(unoptimized), inline(always))]
    fn select<T: Element, A: Operand<T>, B: Operand<T>>(self, a: A, b: B) -> Selected<T, Self, A, B>
    where
        Self: AsTensor<Elem = bool>,
        Self::Dims: Union<A::Dims, Out: Union<B::Dims>>,
    {
        Named::from_expr(Select { cond: self.into_named().expr, a: a.into_expr(), b: b.into_expr() })
    }
}

impl<A: AsTensor + ?Sized> Elementwise for A {}

/// The result of [`select`].
pub type Selected<T, C, A, B> = Named<
    T,
    <<<C as AsTensor>::Dims as Union<<A as Operand<T>>::Dims>>::Out as Union<<B as Operand<T>>::Dims>>::Out,
    <<<C as AsTensor>::Rank as Rank>::Max<<A as Operand<T>>::Rank> as Rank>::Max<<B as Operand<T>>::Rank>,
    Select<<C as AsTensor>::Expr, <A as Operand<T>>::Expr, <B as Operand<T>>::Expr>,
>;

/// `if cond { a } else { b }` at each position; `a` and `b` are tensors or scalars.
///
/// What is not taken is not read: an index that is out of range there is no error.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let a = ndarray::array![1.0, 2.0, 3.0];
/// dims!(i = 3);
/// // Each element plus the one before it, which the first one does not have.
/// let before = select(i.gt(0), a.at(i - 1), 0.0);
/// assert_eq!((a.at(i) + before).order(i), ndarray::array![1.0, 3.0, 5.0]);
/// ```
#[cfg_attr(not(unoptimized), inline(always))]
pub fn select<T, C, A, B>(cond: C, a: A, b: B) -> Selected<T, C, A, B>
where
    C: AsTensor<Elem = bool>,
    T: Element,
    A: Operand<T>,
    B: Operand<T>,
    C::Dims: Union<A::Dims, Out: Union<B::Dims>>,
{
    cond.select(a, b)
}

// `PartialEq::eq` would be as good a candidate as `Elementwise::eq` for a reference; an inherent method goes before both.
impl<T: ops::Equality, S: Dims, R: Rank, E> Named<T, S, R, E> {
    /// `x == y` at each position.
    #[allow(clippy::should_implement_trait)]
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn eq<B: Operand<T>>(&self, other: B) -> BinaryOut<ops::Eq, &Self, B>
    where
        S: Union<B::Dims>,
    {
        binary(ops::Eq, self, other)
    }

    /// `x != y` at each position.
    #[allow(clippy::should_implement_trait)]
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn ne<B: Operand<T>>(&self, other: B) -> BinaryOut<ops::Ne, &Self, B>
    where
        S: Union<B::Dims>,
    {
        binary(ops::Ne, self, other)
    }
}

/// The tensor of a dim's indices, for those who look for it by that name: `iota(i)` is `i` as a tensor.
pub fn iota<D: AsTensor<Elem = isize>>(dim: D) -> NamedOf<D> {
    dim.into_named()
}
