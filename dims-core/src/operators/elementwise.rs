//! Elementwise operations as methods and operators. They build expressions; nothing is computed
//! yet.

mod dims;
mod tensors;

pub use dims::{IndicesAlong, NumberAndIndices, indices_along, number_and_indices};
pub use tensors::{LeftOf, ScalarOut};

use crate::expr::{Binary, Operand, Select, Unary};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, NamedOf, Truths};
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

/// The result of an operation on a tensor and an operand with elements `U`: it has the dims of
/// both.
pub type BinaryOut<O, A, B, U = <A as AsTensor>::Elem> = Named<
    <O as BinaryOp<<A as AsTensor>::Elem, U>>::Out,
    <<A as AsTensor>::Dims as Union<<B as Operand<U>>::Dims>>::Out,
    <<A as AsTensor>::Rank as Rank>::Max<<B as Operand<U>>::Rank>,
    Binary<O, <A as AsTensor>::Expr, <B as Operand<U>>::Expr>,
>;

/// [`BinaryOut`] for a tensor of `T` with the dims `S`, the positional axes `R` and the expression
/// `E`.
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

// Methods for the operations of the table in `kernels::ops`. The invocation passes `self`, because
// rustc quotes that line when a moved tensor is used.
macro_rules! unary_methods {
    (($this:ident) operations { $($operations:tt)* } constants { $($constants:tt)* }) => {
        unary_methods! { @operations $this $($operations)* }
        unary_methods! { @constants $this $($constants)* }
    };
    (@operations $this:ident $(
        $(#[$doc:meta])*
        $op:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )*) => {
        $(unary_methods! { @method [$($property)*] $this [$(#[$doc])*] $op $method $bound })*
    };
    (@method [elsewhere $($property:ident)*] $($line:tt)*) => {};
    (@method [$($property:ident)*] $this:ident [$(#[$doc:meta])*] $op:ident $method:ident $bound:ident) => {
        $(#[$doc])*
        #[allow(clippy::wrong_self_convention)] // `is_nan` takes its tensor, as every operation here does
        #[cfg_attr(not(unoptimized), inline(always))]
        fn $method($this) -> UnaryOut<ops::$op, Self>
        where
            Self::Elem: $bound,
        {
            unary(ops::$op, $this)
        }
    };
    (@constants $this:ident $(
        $(#[$doc:meta])*
        $op:ident $method:ident($x:ident: $bound:ident, $c:ident = $sample:literal) -> T $(, $property:ident)* { $($body:tt)* }
    )*) => {$(
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

/// Elementwise operations on tensors, references to tensors, and dims.
///
/// The result has the dims of all operands. It is computed when it is reduced, ordered, assigned or
/// evaluated, in one pass with the rest of the expression. The same holds for the operators
/// `+ - * / % & | ^ !` and unary `-`. `+ - * / %` accept a scalar on either side, `& | ^` only on
/// the right. The indices along a dim are `isize`s. Integers wrap around. `/`, `%`, `remainder` and
/// `floor_div` of an integer by 0 panic, but give 0 when a recorded program is called.
///
/// In the descriptions of the methods, `x` is an element of `self`, and `y` the element of `other`
/// at the same position.
pub trait Elementwise: AsTensor {
    kernels::unary_operations! { unary_methods(self) }

    // (The bounds of operands are written here and not in the macro, because rustc quotes them.)
    binary_methods! {
        /// The greater element, or NaN if either is NaN.
        maximum(self, other) Maximum [B: Operand<Self::Elem>] [Ordered];
        /// The lesser element, or NaN if either is NaN.
        minimum(self, other) Minimum [B: Operand<Self::Elem>] [Ordered];
        /// `x^y`
        powf(self, other) Powf [B: Operand<Self::Elem>] [Real];
        /// `atan(x / y)` in radians, in the quadrant of the point `(y, x)`, like `f64::atan2`.
        atan2(self, other) Atan2 [B: Operand<Self::Elem>] [Real];
        /// `sqrt(x * x + y * y)`, without intermediate overflow.
        hypot(self, other) Hypot [B: Operand<Self::Elem>] [Real];
        /// The remainder with the sign of `y`, `x - y * floor(x / y)`. (`%` has the sign of `x`.)
        remainder(self, other) Remainder [B: Operand<Self::Elem>] [Ordered];
        /// `x / y` of integers, rounded down. (`/` rounds towards 0.)
        floor_div(self, other) FloorDiv [B: Operand<Self::Elem>] [Integer];
        /// `x` with the sign of `y`.
        copysign(self, other) Copysign [B: Operand<Self::Elem>] [Real];
        /// The greater element; the other one if one is NaN.
        fmax(self, other) Fmax [B: Operand<Self::Elem>] [Ordered];
        /// The lesser element; the other one if one is NaN.
        fmin(self, other) Fmin [B: Operand<Self::Elem>] [Ordered];
        /// `ln(e^x + e^y)`, without overflow.
        logaddexp(self, other) LogAddExp [B: Operand<Self::Elem>] [Real];
        /// `x * ln(y)`, and 0 where `x` is 0 and `y` is not NaN.
        xlogy(self, other) Xlogy [B: Operand<Self::Elem>] [Real];
        /// 0 where `x` is negative, `y` where it is 0, 1 where it is positive, NaN where it is NaN.
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

    /// `x^n` for an integer `n`.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn powi(self, n: i32) -> UnaryOut<Powi, Self>
    where
        Self::Elem: Analytic,
    {
        unary(Powi(n), self)
    }

    /// `min(max(x, low), high)`. NaN remains NaN.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn clamp(self, low: Self::Elem, high: Self::Elem) -> UnaryOut<Clamp<Self::Elem>, Self>
    where
        Self::Elem: Ordered,
    {
        unary(Clamp(low, high), self)
    }

    binary_methods_with! {
        /// `x + (y - x) * weight`; `x` itself for a weight of 0, and `y` for 1.
        lerp(self, other) Lerp(weight) [Real];
    }

    /// Each element in another type, as Rust's `as` converts it. As `bool`, all numbers except 0
    /// are `true`. Complex numbers lose their imaginary part, unless the other type is complex too.
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

    /// Applies `f` to each element.
    ///
    /// `f` is a [`Fn`], because elements can be computed in any order and more than once. They are
    /// computed on one thread. For a closure that changes its environment, use ndarray's `mapv`:
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

    /// Applies `f` to each element and the element of `other` at the same position.
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

    /// `a` where this condition is true, `b` where it is false. See [`select`].
    #[cfg_attr(not(unoptimized), inline(always))]
    fn select<T: Element, A: Operand<T>, B: Operand<T>>(self, a: A, b: B) -> Selected<T, Self, A, B>
    where
        Self: Truths,
        Self::Dims: Union<A::Dims, Out: Union<B::Dims>>,
    {
        Named::from_expr(Select { cond: self.into_named().expr, a: a.into_expr(), b: b.into_expr() })
    }
}

impl<A: AsTensor + ?Sized> Elementwise for A {}

/// Methods with two operands are written out above, because rustc quotes their lines. This macro
/// fails to compile if an operation of the table has no method.
macro_rules! have_methods {
    (operations { $($operations:tt)* } constants { $($constants:tt)* }) => {
        have_methods! { @operations $($operations)* }
        have_methods! { @constants $($constants)* }
    };
    (@operations $(
        $(#[$doc:meta])*
        $op:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )*) => {
        $(have_methods! { @method [$($property)*] $op [] $method($x, $y) $bound })*
    };
    (@constants $(
        $(#[$doc:meta])*
        $op:ident $method:ident($x:ident, $y:ident: $bound:ident, $c:ident = $sample:literal) -> T $(, $property:ident)* { $($body:tt)* }
    )*) => {
        $(have_methods! { @method [$($property)*] $op [<A::Elem>] $method($x, $y, $c) $bound })*
    };
    (@method [elsewhere $($property:ident)*] $($line:tt)*) => {};
    (@method [$($property:ident)*] $op:ident [$($elements:tt)*] $method:ident($x:ident, $y:ident $(, $c:ident)?) $bound:ident) => {
        fn $method<A: AsTensor<Elem: $bound>, B: Operand<A::Elem>>($x: A, $y: B $(, $c: A::Elem)?) -> BinaryOut<ops::$op $($elements)*, A, B>
        where
            A::Dims: Union<B::Dims>,
        {
            $x.$method($y $(, $c)?)
        }
    };
}

#[allow(dead_code)]
const _: () = {
    use ops::{Equality, PartialOrder};
    kernels::binary_operations! { have_methods }
};

/// The result of [`select`].
pub type Selected<T, C, A, B> = Named<
    T,
    <<<C as AsTensor>::Dims as Union<<A as Operand<T>>::Dims>>::Out as Union<<B as Operand<T>>::Dims>>::Out,
    <<<C as AsTensor>::Rank as Rank>::Max<<A as Operand<T>>::Rank> as Rank>::Max<<B as Operand<T>>::Rank>,
    Select<<C as AsTensor>::Expr, <A as Operand<T>>::Expr, <B as Operand<T>>::Expr>,
>;

/// `if cond { a } else { b }` at each position; `a` and `b` are tensors or scalars.
///
/// Where reading an element could fail, it is read only if it is chosen. So the index of an element
/// that is not chosen can be out of range.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let a = ndarray::array![1.0, 2.0, 3.0];
/// dims!(i = 3);
/// // Each element plus the previous one, if any.
/// let before = select(i.gt(0), a.at(i - 1), 0.0);
/// assert_eq!((a.at(i) + before).order(i), ndarray::array![1.0, 3.0, 5.0]);
/// ```
#[cfg_attr(not(unoptimized), inline(always))]
pub fn select<T, C, A, B>(cond: C, a: A, b: B) -> Selected<T, C, A, B>
where
    C: Truths,
    T: Element,
    A: Operand<T>,
    B: Operand<T>,
    C::Dims: Union<A::Dims, Out: Union<B::Dims>>,
{
    cond.select(a, b)
}

// For a reference, `Elementwise::eq` would be ambiguous with `PartialEq::eq`; an inherent method
// takes precedence over both.
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

/// The tensor of a dim's indices: `iota(i)` is `i` as a tensor.
pub fn iota<D: AsTensor<Elem = isize>>(dim: D) -> NamedOf<D> {
    dim.into_named()
}
