//! Operations, element types and numbers as data.

use crate::machine::isa::Isa;
use crate::ops::math::{Math, bell};
use crate::ops::{self, BinaryOp, UnaryOp, special};
use crate::scalar::{CastTo, Num, Ordered, Real};
use core::any::{Any, TypeId};
#[cfg(feature = "std")]
use smallvec::SmallVec;

/// The element types that programs read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DType {
    #[cfg(feature = "half")]
    F16,
    #[cfg(feature = "half")]
    Bf16,
    F32,
    F64,
    Bool,
    I8,
    I16,
    I32,
    I64,
    Isize,
    U8,
    U16,
    U32,
    U64,
    Usize,
}

/// Calls a macro with each element type and its [`DType`].
macro_rules! each_dtype {
    ($then:ident!($($args:tt)*)) => {
        $then! { $($args)*
            F32 f32, F64 f64, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,
        }
    };
}
pub(crate) use each_dtype;

impl DType {
    /// That of an element type, if programs know it.
    pub fn of<T: 'static>() -> Option<Self> {
        DType::of_id(TypeId::of::<T>())
    }

    /// The same, by the type's number.
    pub fn of_id(id: TypeId) -> Option<Self> {
        macro_rules! find {
            ($($name:ident $t:ty,)*) => {{
                $(if id == TypeId::of::<$t>() {
                    return Some(DType::$name);
                })*
            }};
        }
        each_dtype!(find!());
        #[cfg(feature = "half")]
        if id == TypeId::of::<half::f16>() {
            return Some(DType::F16);
        } else if id == TypeId::of::<half::bf16>() {
            return Some(DType::Bf16);
        }
        None
    }

    /// The `TypeId` of the Rust type.
    #[cfg(feature = "std")]
    pub(crate) fn element(self) -> TypeId {
        macro_rules! by_type {
            ($($name:ident $t:ty,)*) => {
                match self {
                    $(DType::$name => TypeId::of::<$t>(),)*
                    #[cfg(feature = "half")]
                    DType::F16 => TypeId::of::<half::f16>(),
                    #[cfg(feature = "half")]
                    DType::Bf16 => TypeId::of::<half::bf16>(),
                }
            };
        }
        each_dtype!(by_type!())
    }

    /// The kind of the registers that hold its elements.
    pub fn kind(self) -> RegisterKind {
        match self {
            #[cfg(feature = "half")]
            DType::F16 | DType::Bf16 => RegisterKind::F32,
            DType::F32 => RegisterKind::F32,
            DType::F64 => RegisterKind::F64,
            DType::Bool => RegisterKind::Bool,
            _ => RegisterKind::Int,
        }
    }

    /// The name of the type: `f32`.
    pub fn name(self) -> &'static str {
        macro_rules! names {
            ($($name:ident $t:ty,)*) => {
                match self {
                    $(DType::$name => stringify!($t),)*
                    #[cfg(feature = "half")]
                    DType::F16 => "f16",
                    #[cfg(feature = "half")]
                    DType::Bf16 => "bf16",
                }
            };
        }
        each_dtype!(names!())
    }

    /// The type with this [name](DType::name).
    #[cfg(all(feature = "serde", feature = "std"))]
    pub(crate) fn named(name: &str) -> Option<Self> {
        macro_rules! find {
            ($($name:ident $t:ty,)*) => {
                [$(DType::$name),*].into_iter().find(|own| own.name() == name)
            };
        }
        let found = each_dtype!(find!());
        #[cfg(feature = "half")]
        let found = found.or_else(|| [DType::F16, DType::Bf16].into_iter().find(|own| own.name() == name));
        found
    }

    /// The bytes of an element.
    pub fn bytes(self) -> usize {
        macro_rules! bytes {
            ($($name:ident $t:ty,)*) => {
                match self {
                    $(DType::$name => size_of::<$t>(),)*
                    #[cfg(feature = "half")]
                    DType::F16 | DType::Bf16 => 2,
                }
            };
        }
        each_dtype!(bytes!())
    }

    /// Whether elements have fewer bits than the registers that hold them. Each result must then be wrapped around or rounded to the type.
    pub(crate) fn is_narrow(self) -> bool {
        match self.kind() {
            RegisterKind::Int => self.bytes() < size_of::<isize>(),
            RegisterKind::F32 => self.bytes() < size_of::<f32>(),
            RegisterKind::F64 | RegisterKind::Bool => false,
        }
    }

    /// Whether elements are unsigned integers at least as wide as registers. A register holds the same bits as a signed integer.
    pub(crate) fn is_unsigned_word(self) -> bool {
        matches!(self, DType::U32 | DType::U64 | DType::Usize) && self.bytes() >= size_of::<isize>()
    }

    /// Whether a register holds each element as it is, so that programs compute with them bit by bit as operations do: not half precisions, whose
    /// results are rounded, nor integers that `isize` does not have.
    #[cfg(feature = "std")]
    pub(crate) fn is_exact(self) -> bool {
        match self {
            DType::F32 | DType::F64 | DType::Bool | DType::I8 | DType::I16 | DType::Isize | DType::U8 => true,
            DType::I32 | DType::I64 => self.bytes() <= size_of::<isize>(),
            DType::U16 | DType::U32 => self.bytes() < size_of::<isize>(),
            _ => false,
        }
    }

    /// Whether registers hold elements of this very type.
    pub(crate) fn is_register(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::Bool | DType::Isize)
            || self == DType::I64 && size_of::<isize>() == size_of::<i64>()
    }

    /// Whether elements are floats, which have derivatives.
    pub fn is_float(self) -> bool {
        matches!(self.kind(), RegisterKind::F32 | RegisterKind::F64)
    }
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RegisterKind {
    /// `f32`, also for the half precisions.
    F32,
    /// `f64`
    F64,
    /// `bool`
    Bool,
    /// Integers of all types, as `isize`.
    Int,
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A float.
    Float(f64),
    /// An integer.
    Int(isize),
    /// A truth value.
    Bool(bool),
}

impl Number {
    /// A value as a constant, with the kind of the register for it; nothing for types that programs do not know.
    pub fn of<T: 'static>(value: T) -> Option<(Number, RegisterKind)> {
        Number::of_any(&value)
    }

    /// The same for a value whose type is not known here.
    pub fn of_any(any: &dyn Any) -> Option<(Number, RegisterKind)> {
        if let Some(&value) = any.downcast_ref::<bool>() {
            return Some((Number::Bool(value), RegisterKind::Bool));
        }
        macro_rules! find {
            ($($t:ty)*) => {{
                $(if let Some(&value) = any.downcast_ref::<$t>() {
                    return Some((Number::Int(CastTo::<isize>::cast_to(value)), RegisterKind::Int));
                })*
            }};
        }
        find!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);
        #[cfg(feature = "half")]
        if let Some(&value) = any.downcast_ref::<half::f16>() {
            return Some((Number::Float(value.to_f64()), RegisterKind::F32));
        } else if let Some(&value) = any.downcast_ref::<half::bf16>() {
            return Some((Number::Float(value.to_f64()), RegisterKind::F32));
        }
        if let Some(&value) = any.downcast_ref::<f32>() {
            return Some((Number::Float(value.into()), RegisterKind::F32));
        }
        any.downcast_ref::<f64>().map(|&value| (Number::Float(value), RegisterKind::F64))
    }

    /// A float constant of an operation; not-a-number for types that have no floats.
    pub fn float<T: 'static>(value: T) -> f64 {
        match Number::of(value) {
            Some((Number::Float(value), _)) => value,
            Some((Number::Int(value), _)) => value as f64,
            _ => f64::NAN,
        }
    }
}

/// An operation of the table as data; nothing that programs know for closures, pairs, and complex numbers' own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Code {
    /// One operand.
    Unary(UnaryOpcode),
    /// Two operands.
    Binary(BinaryOpcode),
    /// A conversion to another type.
    Cast(DType),
    /// The operand as it is.
    Same,
    /// The left operand.
    Left,
    /// The right operand.
    Right,
    /// Nothing that a program can say.
    Opaque,
}

macro_rules! unary_codes {
    (floats: $($name:ident)*; numbers: $($number:ident)*; tests: $($test:ident)*;) => {
        /// An operation on one operand.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum UnaryOpcode {
            $($name,)* $($number,)* $($test,)*
            Not,
            Powi(i32),
            Clamp(f64, f64),
            LeakyRelu(f64),
            Elu(f64),
            Celu(f64),
            HardShrink(f64),
            SoftShrink(f64),
            NanTo(f64),
            /// The derivative of this order of [`LnGamma`](UnaryOpcode::LnGamma), from 1 on.
            Polygamma(u32),
            /// The derivative of this order of [`Sinc`](UnaryOpcode::Sinc), from 1 on.
            SincSlope(u32),
            /// The derivative of [`Sigmoid`](UnaryOpcode::Sigmoid).
            SigmoidSlope,
            /// The part of a standard normal distribution below the operand.
            NormalBelow,
            /// `e^(-c a^2)`
            Bell(f64),
            /// An integer as a position, from the end if it is negative.
            FromEnd(isize),
        }

        impl UnaryOpcode {
            /// The name of the operation and its constants, as they are saved: see [`of_words`](Self::of_words).
            #[cfg(feature = "std")]
            pub(crate) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
                let words = |words: &[u64]| SmallVec::from_slice(words);
                let float = |value: f64| SmallVec::from_slice(&[value.to_bits()]);
                match self {
                    $(UnaryOpcode::$name => (stringify!($name), SmallVec::new()),)*
                    $(UnaryOpcode::$number => (stringify!($number), SmallVec::new()),)*
                    $(UnaryOpcode::$test => (stringify!($test), SmallVec::new()),)*
                    UnaryOpcode::Not => ("Not", SmallVec::new()),
                    UnaryOpcode::SigmoidSlope => ("SigmoidSlope", SmallVec::new()),
                    UnaryOpcode::NormalBelow => ("NormalBelow", SmallVec::new()),
                    UnaryOpcode::Powi(n) => ("Powi", words(&[i64::from(n) as u64])),
                    UnaryOpcode::Clamp(low, high) => ("Clamp", words(&[low.to_bits(), high.to_bits()])),
                    UnaryOpcode::LeakyRelu(c) => ("LeakyRelu", float(c)),
                    UnaryOpcode::Elu(c) => ("Elu", float(c)),
                    UnaryOpcode::Celu(c) => ("Celu", float(c)),
                    UnaryOpcode::HardShrink(c) => ("HardShrink", float(c)),
                    UnaryOpcode::SoftShrink(c) => ("SoftShrink", float(c)),
                    UnaryOpcode::NanTo(c) => ("NanTo", float(c)),
                    UnaryOpcode::Polygamma(n) => ("Polygamma", words(&[n.into()])),
                    UnaryOpcode::SincSlope(n) => ("SincSlope", words(&[n.into()])),
                    UnaryOpcode::Bell(c) => ("Bell", float(c)),
                    UnaryOpcode::FromEnd(size) => ("FromEnd", words(&[size as i64 as u64])),
                }
            }

            /// The operation with this name and these constants: floats by their bits, integers as `i64`.
            #[cfg(feature = "std")]
            pub(crate) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
                $(if name == stringify!($name) && words.is_empty() {
                    return Some(UnaryOpcode::$name);
                })*
                $(if name == stringify!($number) && words.is_empty() {
                    return Some(UnaryOpcode::$number);
                })*
                $(if name == stringify!($test) && words.is_empty() {
                    return Some(UnaryOpcode::$test);
                })*
                // Derivatives of higher orders take long, and no function has them.
                let order = |n: u64| u32::try_from(n).ok().filter(|n| (1..=64).contains(n));
                Some(match (name, words) {
                    ("Not", []) => UnaryOpcode::Not,
                    ("SigmoidSlope", []) => UnaryOpcode::SigmoidSlope,
                    ("NormalBelow", []) => UnaryOpcode::NormalBelow,
                    ("Powi", &[n]) => UnaryOpcode::Powi(i32::try_from(n as i64).ok()?),
                    ("Clamp", &[low, high]) => UnaryOpcode::Clamp(f64::from_bits(low), f64::from_bits(high)),
                    ("LeakyRelu", &[c]) => UnaryOpcode::LeakyRelu(f64::from_bits(c)),
                    ("Elu", &[c]) => UnaryOpcode::Elu(f64::from_bits(c)),
                    ("Celu", &[c]) => UnaryOpcode::Celu(f64::from_bits(c)),
                    ("HardShrink", &[c]) => UnaryOpcode::HardShrink(f64::from_bits(c)),
                    ("SoftShrink", &[c]) => UnaryOpcode::SoftShrink(f64::from_bits(c)),
                    ("NanTo", &[c]) => UnaryOpcode::NanTo(f64::from_bits(c)),
                    ("Polygamma", &[n]) => UnaryOpcode::Polygamma(order(n)?),
                    ("SincSlope", &[n]) => UnaryOpcode::SincSlope(order(n)?),
                    ("Bell", &[c]) => UnaryOpcode::Bell(f64::from_bits(c)),
                    ("FromEnd", &[size]) => {
                        UnaryOpcode::FromEnd(isize::try_from(size as i64).ok().filter(|size| *size >= 0)?)
                    }
                    _ => return None,
                })
            }

            /// The kind of the result for an operand of a kind; `None` if there is no such operation.
            #[cfg(feature = "std")]
            pub(crate) fn kind_of(self, a: RegisterKind) -> Option<RegisterKind> {
                let of_integers = || {
                    matches!(
                        self,
                        $(UnaryOpcode::$number)|* | UnaryOpcode::Not | UnaryOpcode::Clamp(..)
                            | UnaryOpcode::LeakyRelu(_) | UnaryOpcode::FromEnd(_)
                    )
                };
                let is_known = match a {
                    _ if self.is_test() => return Some(RegisterKind::Bool),
                    RegisterKind::F32 | RegisterKind::F64 => {
                        !matches!(self, UnaryOpcode::Not | UnaryOpcode::FromEnd(_))
                    }
                    RegisterKind::Int => of_integers(),
                    RegisterKind::Bool => self == UnaryOpcode::Not,
                };
                is_known.then_some(a)
            }

            /// Whether the result is a truth value.
            pub fn is_test(self) -> bool {
                matches!(self, $(UnaryOpcode::$test)|*)
            }

            /// Runs the operation along a line of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn floats<I: Isa, T: Real<Abs = T> + Math>(self, a: &[T], out: &mut [T]) {
                let constant = |value: f64| <T as num_traits::NumCast>::from(value).unwrap_or_else(T::nan);
                match self {
                    $(UnaryOpcode::$name => each(a, out, |a| UnaryOp::<T>::apply::<I>(&ops::$name, a)),)*
                    $(UnaryOpcode::$number => each(a, out, |a| UnaryOp::<T>::apply::<I>(&ops::$number, a)),)*
                    UnaryOpcode::Powi(n) => each(a, out, |a| ops::Powi(n).apply::<I>(a)),
                    UnaryOpcode::Clamp(low, high) => {
                        let op = ops::Clamp(constant(low), constant(high));
                        each(a, out, |a| op.apply::<I>(a));
                    }
                    UnaryOpcode::LeakyRelu(c) => { let op = ops::LeakyRelu(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::Elu(c) => { let op = ops::Elu(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::Celu(c) => { let op = ops::Celu(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::HardShrink(c) => { let op = ops::HardShrink(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::SoftShrink(c) => { let op = ops::SoftShrink(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::NanTo(c) => { let op = ops::NanTo(constant(c)); each(a, out, |a| op.apply::<I>(a)) }
                    UnaryOpcode::Polygamma(n) => each(a, out, |a| special::polygamma(n, a)),
                    UnaryOpcode::SincSlope(n) => each(a, out, |a| special::sinc_slope(n, a)),
                    UnaryOpcode::SigmoidSlope => each(a, out, |a| special::sigmoid_slope::<I, T>(a)),
                    UnaryOpcode::NormalBelow => each(a, out, |a| Real::normal_below::<I>(a)),
                    UnaryOpcode::Bell(c) => { let c = constant(c); each(a, out, |a| bell::<I, T>(a, c)) }
                    UnaryOpcode::Not | UnaryOpcode::FromEnd(_) $(| UnaryOpcode::$test)* => unreachable!("no operation on floats that yields floats"),
                }
            }

            /// Runs a test along a line of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn tests<I: Isa, T: Real>(self, a: &[T], out: &mut [bool]) {
                match self {
                    $(UnaryOpcode::$test => each(a, out, |a| UnaryOp::<T>::apply::<I>(&ops::$test, a)),)*
                    _ => unreachable!("no test"),
                }
            }

            /// Whether the result for integers of a type may be none of the type.
            pub(crate) fn leaves_type(self) -> bool {
                matches!(self, UnaryOpcode::Neg | UnaryOpcode::Abs | UnaryOpcode::Square | UnaryOpcode::Not | UnaryOpcode::LeakyRelu(_))
            }

            /// Runs the operation along a line of integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn integers<I: Isa>(self, a: &[isize], out: &mut [isize]) {
                match self {
                    $(UnaryOpcode::$number => each(a, out, |a| UnaryOp::<isize>::apply::<I>(&ops::$number, a)),)*
                    UnaryOpcode::Not => each(a, out, |a| !a),
                    UnaryOpcode::Clamp(low, high) => each(a, out, |a| a.max(low as isize).min(high as isize)),
                    UnaryOpcode::LeakyRelu(slope) => each(a, out, |a| if a < 0 { a.wrapping_mul(slope as isize) } else { a }),
                    UnaryOpcode::FromEnd(size) => each(a, out, |a| ops::IndexFromEnd(size).apply::<I>(a)),
                    _ => unreachable!("no operation on integers"),
                }
            }
        }
    };
}

unary_codes! {
    floats: Exp ExpM1 Ln Ln1p Log2 Log10 Exp2 Sqrt Cbrt Rsqrt Recip Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Erf
        Floor Ceil Round Trunc Fract Sigmoid Silu Gelu Softplus Erfc LnGamma Logit LnSigmoid Selu Mish HardSigmoid HardSwish Softsign
        TanhShrink GeluTanh Sinc RoundTiesEven ToDegrees ToRadians;
    numbers: Neg Abs Square Signum Relu Relu6;
    tests: IsInfinite Signbit IsNan IsFinite;
}

#[cfg_attr(not(unoptimized), inline(always))]
fn each<A: Copy, B>(a: &[A], out: &mut [B], f: impl Fn(A) -> B) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = f(a);
    }
}

#[cfg_attr(not(unoptimized), inline(always))]
fn both<A: Copy, B>(a: &[A], b: &[A], out: &mut [B], f: impl Fn(A, A) -> B) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *out = f(a, b);
    }
}

macro_rules! binary_codes {
    (floats: $($name:ident)*; numbers: $($number:ident)*; compare: $($compare:ident)*;) => {
        /// An operation on two operands.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum BinaryOpcode {
            $($name,)* $($number,)* $($compare,)*
            FloorDiv, And, Or, Xor,
            /// The quotient of registers that hold the bits of unsigned integers.
            UnsignedDiv,
            /// The remainder of registers that hold the bits of unsigned integers.
            UnsignedRem,
            Huber(f64),
            SmoothL1(f64),
            Lerp(f64),
            /// The product of a cotangent and a derivative: 0 if one of them is, whatever the other.
            Chain,
        }

        impl BinaryOpcode {
            /// The name of the operation and its constants, as they are saved: see [`of_words`](Self::of_words).
            #[cfg(feature = "std")]
            pub(crate) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
                let float = |value: f64| SmallVec::from_slice(&[value.to_bits()]);
                match self {
                    $(BinaryOpcode::$name => (stringify!($name), SmallVec::new()),)*
                    $(BinaryOpcode::$number => (stringify!($number), SmallVec::new()),)*
                    $(BinaryOpcode::$compare => (stringify!($compare), SmallVec::new()),)*
                    BinaryOpcode::FloorDiv => ("FloorDiv", SmallVec::new()),
                    BinaryOpcode::And => ("And", SmallVec::new()),
                    BinaryOpcode::Or => ("Or", SmallVec::new()),
                    BinaryOpcode::Xor => ("Xor", SmallVec::new()),
                    BinaryOpcode::UnsignedDiv => ("UnsignedDiv", SmallVec::new()),
                    BinaryOpcode::UnsignedRem => ("UnsignedRem", SmallVec::new()),
                    BinaryOpcode::Huber(c) => ("Huber", float(c)),
                    BinaryOpcode::SmoothL1(c) => ("SmoothL1", float(c)),
                    BinaryOpcode::Lerp(c) => ("Lerp", float(c)),
                    BinaryOpcode::Chain => ("Chain", SmallVec::new()),
                }
            }

            /// The operation with this name and these constants, by their bits.
            #[cfg(feature = "std")]
            pub(crate) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
                $(if name == stringify!($name) && words.is_empty() {
                    return Some(BinaryOpcode::$name);
                })*
                $(if name == stringify!($number) && words.is_empty() {
                    return Some(BinaryOpcode::$number);
                })*
                $(if name == stringify!($compare) && words.is_empty() {
                    return Some(BinaryOpcode::$compare);
                })*
                Some(match (name, words) {
                    ("FloorDiv", []) => BinaryOpcode::FloorDiv,
                    ("And", []) => BinaryOpcode::And,
                    ("Or", []) => BinaryOpcode::Or,
                    ("Xor", []) => BinaryOpcode::Xor,
                    ("UnsignedDiv", []) => BinaryOpcode::UnsignedDiv,
                    ("UnsignedRem", []) => BinaryOpcode::UnsignedRem,
                    ("Huber", &[c]) => BinaryOpcode::Huber(f64::from_bits(c)),
                    ("SmoothL1", &[c]) => BinaryOpcode::SmoothL1(f64::from_bits(c)),
                    ("Lerp", &[c]) => BinaryOpcode::Lerp(f64::from_bits(c)),
                    ("Chain", []) => BinaryOpcode::Chain,
                    _ => return None,
                })
            }

            /// The kind of the result for operands of a kind; `None` if there is no such operation.
            #[cfg(feature = "std")]
            pub(crate) fn kind_of(self, operands: RegisterKind) -> Option<RegisterKind> {
                use BinaryOpcode::{
                    And, Chain, FloorDiv, Huber, Lerp, Or, SmoothL1, UnsignedDiv, UnsignedRem, Xor,
                };
                let of_numbers = || matches!(self, $(BinaryOpcode::$number)|*);
                let is_known = match operands {
                    _ if self.is_comparison() => return Some(RegisterKind::Bool),
                    RegisterKind::F32 | RegisterKind::F64 => {
                        of_numbers()
                            || matches!(self, $(BinaryOpcode::$name)|* | Huber(_) | SmoothL1(_) | Lerp(_) | Chain)
                    }
                    RegisterKind::Int => {
                        of_numbers() || matches!(self, FloorDiv | And | Or | Xor | UnsignedDiv | UnsignedRem)
                    }
                    RegisterKind::Bool => matches!(self, And | Or | Xor),
                };
                is_known.then_some(operands)
            }

            /// Whether the result is a truth value.
            pub fn is_comparison(self) -> bool {
                matches!(self, $(BinaryOpcode::$compare)|*)
            }

            /// Whether the order of the operands does not matter.
            pub(crate) fn is_symmetric(self) -> bool {
                matches!(self, BinaryOpcode::Add | BinaryOpcode::Mul | BinaryOpcode::Chain)
            }

            /// Whether the result for integers of a type may be none of the type.
            pub(crate) fn leaves_type(self) -> bool {
                use BinaryOpcode::{Add, Div, FloorDiv, Mul, SquaredError, Sub};
                matches!(self, Add | Sub | Mul | Div | FloorDiv | SquaredError)
            }

            /// Runs the operation along lines of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn floats<I: Isa, T: Real>(self, a: &[T], b: &[T], out: &mut [T]) {
                let constant = |value: f64| <T as num_traits::NumCast>::from(value).unwrap_or_else(T::nan);
                match self {
                    $(BinaryOpcode::$name => both(a, b, out, |a, b| BinaryOp::<T, T>::apply::<I>(&ops::$name, a, b)),)*
                    $(BinaryOpcode::$number => both(a, b, out, |a, b| BinaryOp::<T, T>::apply::<I>(&ops::$number, a, b)),)*
                    BinaryOpcode::Huber(c) => { let op = ops::Huber(constant(c)); both(a, b, out, |a, b| op.apply::<I>(a, b)) }
                    BinaryOpcode::SmoothL1(c) => { let op = ops::SmoothL1(constant(c)); both(a, b, out, |a, b| op.apply::<I>(a, b)) }
                    BinaryOpcode::Lerp(c) => { let op = ops::Lerp(constant(c)); both(a, b, out, |a, b| op.apply::<I>(a, b)) }
                    BinaryOpcode::Chain => both(a, b, out, |a, b| {
                        let product = a * b;
                        if a == T::ZERO || b == T::ZERO { T::ZERO } else { product }
                    }),
                    _ => unreachable!("no operation on floats that yields floats"),
                }
            }

            /// Compares floats, or integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn compares<I: Isa, T: Num + PartialOrd>(self, a: &[T], b: &[T], out: &mut [bool]) {
                match self {
                    $(BinaryOpcode::$compare => both(a, b, out, |a, b| BinaryOp::<T, T>::apply::<I>(&ops::$compare, a, b)),)*
                    _ => unreachable!("no comparison"),
                }
            }

            /// Runs the operation along lines of integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn integers<I: Isa>(self, a: &[isize], b: &[isize], out: &mut [isize]) {
                #[allow(unreachable_patterns)] // those that are written out above the others
                match self {
                    // A quotient by 0 is one that nobody takes: what the program was recorded of has panicked otherwise.
                    BinaryOpcode::Div => both(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) }),
                    BinaryOpcode::Rem => both(a, b, out, |a, b| if b == 0 { 0 } else { a.wrapping_rem(b) }),
                    BinaryOpcode::Remainder => both(a, b, out, |a, b| if b == 0 { 0 } else { special::remainder(a, b) }),
                    BinaryOpcode::FloorDiv => both(a, b, out, |a, b| if b == 0 { 0 } else { special::floor_div(a, b) }),
                    BinaryOpcode::UnsignedDiv => {
                        both(a, b, out, |a, b| (a as usize).checked_div(b as usize).unwrap_or(0) as isize);
                    }
                    BinaryOpcode::UnsignedRem => {
                        both(a, b, out, |a, b| (a as usize).checked_rem(b as usize).unwrap_or(0) as isize);
                    }
                    $(BinaryOpcode::$number => both(a, b, out, |a, b| BinaryOp::<isize, isize>::apply::<I>(&ops::$number, a, b)),)*
                    BinaryOpcode::And => both(a, b, out, |a, b| a & b),
                    BinaryOpcode::Or => both(a, b, out, |a, b| a | b),
                    BinaryOpcode::Xor => both(a, b, out, |a, b| a ^ b),
                    _ => unreachable!("no operation on integers"),
                }
            }

            /// Runs the operation along lines of truth values.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn booleans(self, a: &[bool], b: &[bool], out: &mut [bool]) {
                match self {
                    BinaryOpcode::And => both(a, b, out, |a, b| a & b),
                    BinaryOpcode::Or => both(a, b, out, |a, b| a | b),
                    BinaryOpcode::Xor | BinaryOpcode::Ne => both(a, b, out, |a, b| a ^ b),
                    BinaryOpcode::Eq => both(a, b, out, |a, b| a == b),
                    BinaryOpcode::Lt => both(a, b, out, |a, b| !a & b),
                    BinaryOpcode::Le => both(a, b, out, |a, b| !a | b),
                    BinaryOpcode::Gt => both(a, b, out, |a, b| a & !b),
                    BinaryOpcode::Ge => both(a, b, out, |a, b| a | !b),
                    _ => unreachable!("no operation on truth values"),
                }
            }
        }
    };
}

binary_codes! {
    floats: Powf Atan2 Hypot Copysign LogAddExp Xlogy AbsoluteError Bce BceWithLogits KlDiv;
    numbers: Add Offset Sub Mul Div Rem Maximum Minimum Remainder Fmax Fmin Heaviside SquaredError;
    compare: Lt Le Gt Ge Eq Ne;
}

/// Bounds of a type's integers, for conversions of floats.
pub(crate) fn integer_bounds(dtype: DType) -> (isize, isize) {
    macro_rules! bounds {
        ($($name:ident $t:ty,)*) => {
            match dtype {
                $(DType::$name => (CastTo::<isize>::cast_to(<$t>::LOWEST), isize::try_from(<$t>::HIGHEST).unwrap_or(isize::MAX)),)*
                _ => (isize::MIN, isize::MAX),
            }
        };
    }
    bounds!(I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,)
}

/// A reduction, by what its derivative is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReductionKind {
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The product.
    Prod,
    /// The greatest element; equal ones share the gradient.
    Max,
    /// The least element.
    Min,
    /// `sum of (x - mean)^2 / (count - ddof)`, or its root.
    Variance {
        /// What is taken off the count.
        ddof: f64,
        /// Whether it is the standard deviation.
        root: bool,
    },
    /// `ln(sum of e^x)`
    LogSumExp,
    /// The square root of the sum of squares.
    Norm,
    /// `(sum of |x|^p)^(1/p)`
    NormP(f64),
    /// Where the greatest element is.
    ArgMax,
    /// Where the least element is.
    ArgMin,
    /// Whether any element is true.
    Any,
    /// Whether all elements are true.
    All,
    /// How many elements are true.
    Count,
    /// One that programs do not know.
    Opaque,
}

/// Work along lines, by what its derivative is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineWork {
    /// `e^x / sum of e^x`, or its logarithm.
    Softmax {
        /// Whether it is the logarithm.
        log: bool,
    },
    /// Running sums.
    Cumulate,
    /// Running products.
    CumulateProduct,
    /// The greatest or least element so far; of equal ones the last one gets the gradient.
    CumulateBest {
        /// Whether it is the greatest.
        greatest: bool,
    },
    /// The logarithm of the running sum of exponentials.
    CumulateLogSumExp,
    /// `(x - mean) / sqrt(var + eps)`
    Standardize {
        /// What is added to the variance.
        eps: f64,
    },
    /// `x / sqrt(mean of x^2 + eps)`
    RootMeanSquare {
        /// What is added to the mean.
        eps: f64,
    },
    /// `x / max(sqrt(sum of x^2), eps)`
    UnitLength {
        /// The least length.
        eps: f64,
    },
    /// One without a derivative.
    Opaque,
}
