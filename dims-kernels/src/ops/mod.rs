//! Scalar operations as types, most of them zero-sized. Fusion, broadcasting and batching are
//! generic over [`UnaryOp`] and [`BinaryOp`].
//!
//! Most operations have a line in the [table], from which their types are generated here.

#[doc(hidden)] // (Otherwise rustc would print `Exp` with its path, because there is also an opcode `Exp`.)
pub mod code;
pub mod custom;
pub mod function;
pub mod math;
pub mod matrix;
#[doc(hidden)] // For the same reason as `code`.
pub mod opcode;
pub mod special;
pub mod table;

pub use crate::machine::isa::Isa;
use crate::ops::code::{BinaryOpcode, Code, DType, Number, UnaryOpcode};
use crate::ops::function::Function;
use crate::scalar::*;
use alloc::sync::Arc;

/// Seals the operation traits. Kernels trust [`UnaryOp::PARALLEL`] when they run operations on
/// several threads, so users implement [`ScalarOp`](custom::ScalarOp) instead, which requires
/// `Send` and `Sync`.
mod sealed {
    pub trait Operation {}
}
pub(crate) use sealed::Operation;

/// A user's operation as a function in recorded programs. `None` if it has no derivative although
/// its result and an operand are floats.
pub type Own = Option<Arc<dyn Function>>;

/// An operation on one element. (Users implement [`ScalarOp`](custom::ScalarOp).)
#[diagnostic::on_unimplemented(
    message = "there is no operation `{Self}` on tensors of `{A}`",
    label = "not for elements of type `{A}`",
    note = "cast the tensor first, for example `.cast::<f32>()`; where the type is a parameter, write `T: Real`"
)]
pub trait UnaryOp<A>: Operation {
    /// The type of the result.
    type Out: Element;
    /// The name in plans.
    const NAME: &'static str;
    /// Whether every element has a result.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Whether it takes few instructions, and the result does not depend on the instruction set.
    const SIMPLE: bool = false;
    /// Whether it takes many instructions, which the compiler vectorizes.
    const LONG: bool = false;
    /// Computes the result.
    fn apply<I: Isa>(&self, a: A) -> Self::Out;
    /// The operation as data, for recorded programs.
    #[inline]
    fn code(&self) -> Code {
        Code::Opaque
    }
    /// The operation as a function, if it is a user's and programs support its types.
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
    /// The type of the result.
    type Out: Element;
    /// The name in plans.
    const NAME: &'static str;
    /// Whether every pair of elements has a result.
    const TOTAL: bool = true;
    /// Whether it can run on several threads.
    const PARALLEL: bool = true;
    /// Whether it takes few instructions, and the result does not depend on the instruction set.
    const SIMPLE: bool = false;
    /// Whether it takes many instructions, which the compiler vectorizes.
    const LONG: bool = false;
    /// Whether the result changes between `false` and `true` at most once, as one operand grows and
    /// the other stays or shrinks.
    const MONOTONE: bool = false;
    /// Whether results change in equal steps when the operands do, and never wrap around.
    const STEADY: bool = false;
    /// Whether it is the multiplication that contractions use.
    const IS_PRODUCT: bool = false;
    /// 1 for [`Add`] and -1 for [`Sub`], which keep index expressions affine; 0 for all other
    /// operations.
    const AFFINE_SIGN: isize = 0;
    /// Computes the result.
    fn apply<I: Isa>(&self, a: A, b: B) -> Self::Out;
    /// The operation as data, for recorded programs.
    #[inline]
    fn code(&self) -> Code {
        Code::Opaque
    }
    /// The operation as a function, if it is a user's and programs support its types.
    #[inline]
    fn function(&self) -> Option<Own> {
        None
    }
    /// Adds the factors of both operands to a list, if the operation is multiplication.
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
        Self::Out: Num,
    {
        unreachable!("only products have factors")
    }
}

/// Lists of factors, with one list type for each element type.
#[doc(hidden)]
pub trait Lists {
    /// A list of factors with elements of the type `T`.
    type Of<T: Num>;
}

/// An operand of a product: a factor, or a product of several factors.
#[doc(hidden)]
pub trait Factor<T: Element, L: Lists> {
    /// The error if a factor cannot be evaluated.
    type Error;
    /// Whether the operand is a constant.
    const IS_CONSTANT: bool;
    /// Adds the factors to the list.
    #[track_caller]
    fn add_to(self, list: &mut L::Of<T>) -> Result<(), Self::Error>
    where
        T: Num;
}

/// Whether an operation of the table is simple, given the bound on its elements: functions of
/// floats are not.
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

/// Generates the types of the [table]'s operations on one element. An operation on floats (`Real`)
/// whose result is a float is computed in [`Real::Wide`], which is `f32` for the half precisions,
/// and rounded once.
macro_rules! unary {
    (operations { $($operations:tt)* } constants { $($constants:tt)* }) => {
        unary! { @operations $($operations)* }
        unary! { @constants $($constants)* }
    };
    (@operations $(
        $(#[$doc:meta])*
        $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $flag:ident)* {
            value: $value:expr $(, slope($y:tt): $slope:expr, on: $on:expr)?
        }
    )*) => {$(
        $(#[$doc])*
        #[allow(rustdoc::broken_intra_doc_links)] // to methods of tensors
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl Operation for $name {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> UnaryOp<T> for $name {
            #[allow(unused_parens)]
            type Out = $out;
            const NAME: &'static str = stringify!($method);
            const SIMPLE: bool = is_simple!($bound);
            $(unary!(@property $flag);)*
            #[inline]
            fn code(&self) -> Code {
                Code::Unary(UnaryOpcode::$name)
            }
            unary!(@apply [$bound $out] |$x| { $value });
        }
    )*};
    (@constants $(
        $(#[$doc:meta])*
        $name:ident $method:ident($x:ident: $bound:ident, $c:ident = $sample:literal) -> T $(, $flag:ident)* {
            value: $value:expr, slope($y:tt): $slope:expr, on: $on:expr
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T>(pub T);
        impl<T> Operation for $name<T> {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> UnaryOp<T> for $name<T> {
            type Out = T;
            const NAME: &'static str = stringify!($method);
            #[inline]
            fn code(&self) -> Code {
                Code::Unary(UnaryOpcode::$name(Number::float(self.0)))
            }
            unary!(@apply_with [$bound] |$x, $c| { $value });
        }
    )*};
    (@property long) => { const LONG: bool = true; };
    (@property $flag:ident) => {};
    (@apply [Real T] |$x:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $x: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::extra_unused_type_parameters)] // not all lines use `I`
            fn wide<T: Real, I: Isa>($x: T) -> T {
                $value
            }
            T::narrow(wide::<T::Wide, I>($x.widen()))
        }
    };
    (@apply [$bound:ident $out:tt] |$x:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        #[allow(unused_parens)]
        fn apply<I: Isa>(&self, $x: T) -> $out {
            $value
        }
    };
    (@apply_with [Real] |$x:ident, $c:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $x: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            fn wide<T: Real>($x: T, $c: T) -> T {
                $value
            }
            T::narrow(wide($x.widen(), self.0.widen()))
        }
    };
    (@apply_with [$bound:ident] |$x:ident, $c:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $x: T) -> T {
            let $c = self.0;
            $value
        }
    };
}

crate::unary_operations!(unary);

/// Generates the types of the [table]'s operations on two elements, like [`unary`].
macro_rules! binary {
    (operations { $($operations:tt)* } constants { $($constants:tt)* }) => {
        binary! { @operations $($operations)* }
        binary! { @constants $($constants)* }
    };
    (@operations $(
        $(#[$doc:meta])*
        $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $flag:ident)* {
            value: $value:expr $(, slopes($z:tt): $slopes:expr, on: $on:expr)?
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;
        impl Operation for $name {}
        #[diagnostic::do_not_recommend]
        impl<T: $bound> BinaryOp<T, T> for $name {
            type Out = $out;
            const NAME: &'static str = stringify!($method);
            const SIMPLE: bool = is_simple!($bound);
            $(binary!(@property $flag);)*
            #[inline]
            fn code(&self) -> Code {
                Code::Binary(BinaryOpcode::$name)
            }
            binary!(@apply [$bound $out] |$x, $y| { $value });
        }
    )*};
    (@constants $(
        $(#[$doc:meta])*
        $name:ident $method:ident($x:ident, $y:ident: Real, $c:ident = $sample:literal) -> T $(, $flag:ident)* {
            value: $value:expr, slopes($z:tt): $slopes:expr, on: $on:expr
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T>(pub T);
        impl<T> Operation for $name<T> {}
        #[diagnostic::do_not_recommend]
        impl<T: Real> BinaryOp<T, T> for $name<T> {
            type Out = T;
            const NAME: &'static str = stringify!($method);
            #[inline]
            fn code(&self) -> Code {
                Code::Binary(BinaryOpcode::$name(Number::float(self.0)))
            }
            #[cfg_attr(not(unoptimized), inline(always))]
            fn apply<I: Isa>(&self, $x: T, $y: T) -> T {
                #[cfg_attr(not(unoptimized), inline(always))]
                fn wide<T: Real>($x: T, $y: T, $c: T) -> T {
                    $value
                }
                T::narrow(wide($x.widen(), $y.widen(), self.0.widen()))
            }
        }
    )*};
    (@apply [Real T] |$x:ident, $y:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $x: T, $y: T) -> T {
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::extra_unused_type_parameters)] // not all lines use `I`
            fn wide<T: Real, I: Isa>($x: T, $y: T) -> T {
                $value
            }
            T::narrow(wide::<T::Wide, I>($x.widen(), $y.widen()))
        }
    };
    (@apply [$bound:ident $out:tt] |$x:ident, $y:ident| { $value:expr }) => {
        #[cfg_attr(not(unoptimized), inline(always))]
        fn apply<I: Isa>(&self, $x: T, $y: T) -> $out {
            $value
        }
    };
    (@property long) => { const LONG: bool = true; };
    (@property monotone) => { const MONOTONE: bool = true; };
    (@property steady) => { const STEADY: bool = true; };
    (@property divides) => { const TOTAL: bool = T::DIVIDES_BY_ZERO; };
    (@property sum) => { const AFFINE_SIGN: isize = 1; };
    (@property difference) => { const AFFINE_SIGN: isize = -1; };
    (@property product) => {
        const IS_PRODUCT: bool = true;
        #[cfg_attr(not(unoptimized), inline(always))]
        #[track_caller]
        fn factors<L: Lists, FA: Factor<T, L>, FB: Factor<T, L, Error = FA::Error>>(
            a: FA,
            b: FB,
            list: &mut L::Of<T>,
        ) -> Result<(), FA::Error> {
            if FA::IS_CONSTANT {
                // A constant multiplies the factor before it: see `ConstantFactors`.
                b.add_to(list)?;
                return a.add_to(list);
            }
            a.add_to(list)?;
            b.add_to(list)
        }
    };
    (@property $flag:ident) => {};
}

crate::binary_operations!(binary);

/// Element types with an order.
#[diagnostic::on_unimplemented(
    message = "tensors of `{Self}` have no order",
    label = "integers or floats are needed here"
)]
pub trait PartialOrder: Element + PartialOrd {}
impl<T: Element + PartialOrd> PartialOrder for T {}

/// Element types with equality.
pub trait Equality: Element + PartialEq {}
impl<T: Element + PartialEq> Equality for T {}

/// An element to an integer power.
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
            // Half precisions are computed in single precision, as for other powers.
            3 => T::narrow(a.widen().mul(a.widen()).mul(a.widen())),
            n => a.powi(n),
        }
    }
}

/// The value clamped between two bounds. NaN is kept.
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

/// Converts to the type in which functions and sums are computed: half precisions to `f32`.
#[derive(Clone, Copy, Debug)]
pub struct Widen;
impl Operation for Widen {}

#[diagnostic::do_not_recommend]
impl<T: Num> UnaryOp<T> for Widen {
    type Out = T::Acc;
    const NAME: &'static str = "cast";
    #[inline]
    fn code(&self) -> Code {
        DType::of::<T::Acc>().map_or(Code::Opaque, Code::Cast)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> T::Acc {
        a.widen()
    }
}

/// Converts from the type in which functions and sums of `T` are computed to `T`.
#[derive(Clone, Copy, Debug)]
pub struct Narrow<T>(pub core::marker::PhantomData<T>);
impl<T> Operation for Narrow<T> {}

#[diagnostic::do_not_recommend]
impl<T: Num> UnaryOp<T::Acc> for Narrow<T> {
    type Out = T;
    const NAME: &'static str = "cast";
    #[inline]
    fn code(&self) -> Code {
        DType::of::<T>().map_or(Code::Opaque, Code::Cast)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T::Acc) -> T {
        T::narrow(a)
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

// (No `do_not_recommend`, so that the message of `CastTo` is printed, not that of `UnaryOp`.)
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

/// Returns the left operand: broadcasts a tensor along the dims of another.
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

/// Returns the right operand: replaces an old value with a new one.
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

/// Returns both operands as a pair.
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

/// An integer as an index: the nearest `isize`, so comparisons with indices are right for all
/// values.
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

/// An integer as an index into an axis of this size: a negative index counts from the end, if it is
/// within the axis.
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

/// Returns a `bool` unchanged. (It is not called for elements of other types.)
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

/// The result of a user's closure: any element.
#[diagnostic::on_unimplemented(
    message = "a function of elements must return a number, a `bool` or another `Copy` type, not `{Self}`",
    label = "the function returns `{Self}`",
    note = "to combine the elements with those of a tensor `m`, write `x / m`, or `x.zip_map(m, |x, m| ..)`"
)]
pub trait MapResult: Element {}
#[diagnostic::do_not_recommend]
impl<U: Element> MapResult for U {}

/// A user's closure.
#[derive(Clone, Copy, Debug)]
pub struct Map<F>(pub F);
impl<F> Operation for Map<F> {}

// (No `do_not_recommend`, so that the message of `MapResult` is printed, not that of `UnaryOp`.)
impl<T, U: MapResult, F: Fn(T) -> U> UnaryOp<T> for Map<F> {
    type Out = U;
    const NAME: &'static str = "map";
    const TOTAL: bool = false;
    const PARALLEL: bool = false;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T) -> U {
        (self.0)(a)
    }
}

impl<T, O, U: MapResult, F: Fn(T, O) -> U> BinaryOp<T, O> for Map<F> {
    type Out = U;
    const NAME: &'static str = "zip_map";
    const TOTAL: bool = false;
    const PARALLEL: bool = false;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: T, b: O) -> U {
        (self.0)(a, b)
    }
}
