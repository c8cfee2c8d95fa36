//! Scalar operations as data, and how programs run them along lines of registers: see
//! [`interpreter`](crate::program::interpreter).
//!
//! Most opcodes are generated from the [table](super::table). The others are written out: those
//! whose constants are not a single float, and those that only programs use, for derivatives,
//! positions and unsigned integers.

use crate::machine::isa::Isa;
#[cfg(feature = "std")]
use crate::ops::code::{Number, RegisterKind};
use crate::ops::math::{Math, bell};
use crate::ops::{self, BinaryOp, UnaryOp, special};
use crate::scalar::{Num, Real};
use smallvec::SmallVec;

/// Whether programs run an operation on registers of this kind, given the bound on its elements.
#[cfg(feature = "std")]
macro_rules! runs_on {
    (floats Logic) => {
        false
    };
    (floats Integer) => {
        false
    };
    (floats $bound:ident) => {
        true
    };
    (integers Real) => {
        false
    };
    (integers Analytic) => {
        false
    };
    (integers $bound:ident) => {
        true
    };
    (booleans Logic) => {
        true
    };
    (booleans $bound:ident) => {
        false
    };
}

/// Evaluates an operation of the table on floats or on integers. Panics if the operation does not
/// take them, or if its results are `bool`s.
macro_rules! run_on {
    ($kind:ident $bound:ident bool $run:expr) => {
        unreachable!("the result is a `bool`")
    };
    (floats Logic $out:tt $run:expr) => {
        unreachable!("no operation on floats")
    };
    (floats Integer $out:tt $run:expr) => {
        unreachable!("no operation on floats")
    };
    (integers Real $out:tt $run:expr) => {
        unreachable!("no operation on integers")
    };
    (integers Analytic $out:tt $run:expr) => {
        unreachable!("no operation on integers")
    };
    ($kind:ident $bound:ident $out:tt $run:expr) => {
        $run
    };
}

/// Evaluates an operation whose results are `bool`s.
macro_rules! run_test {
    (bool $run:expr) => {
        $run
    };
    ($out:tt $run:expr) => {
        unreachable!("no operation with `bool`s as results")
    };
}

macro_rules! is_bool {
    (bool) => {
        true
    };
    ($out:tt) => {
        false
    };
}

/// Whether a property of an operation is the one that is asked for: `wraps` or `symmetric`.
macro_rules! is_property {
    (wraps wraps) => {
        true
    };
    (symmetric symmetric) => {
        true
    };
    ($asked:ident $own:ident) => {
        false
    };
}

macro_rules! unary_codes {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident: $with_bound:ident, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        /// An operation on one operand, as data.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum UnaryOpcode {
            $($name,)*
            $($with(f64),)*
            Powi(i32),
            Clamp(f64, f64),
            /// The `n`th derivative of [`LnGamma`](UnaryOpcode::LnGamma), `n >= 1`.
            Polygamma(u32),
            /// The `n`th derivative of [`Sinc`](UnaryOpcode::Sinc), `n >= 1`.
            SincSlope(u32),
            /// The derivative of [`Sigmoid`](UnaryOpcode::Sigmoid).
            SigmoidSlope,
            /// The standard normal distribution function.
            NormalBelow,
            /// `e^(-c a^2)`
            Bell(f64),
            /// An integer as an index into an axis of this size: a negative index counts from the
            /// end, if it is within the axis.
            FromEnd(isize),
        }

        impl UnaryOpcode {
            /// The name and the constants of the operation in saved programs: see
            /// `of_words`.
            pub(crate) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
                let words = |words: &[u64]| SmallVec::from_slice(words);
                let float = |value: f64| SmallVec::from_slice(&[value.to_bits()]);
                match self {
                    $(UnaryOpcode::$name => (stringify!($name), SmallVec::new()),)*
                    $(UnaryOpcode::$with(c) => (stringify!($with), float(c)),)*
                    UnaryOpcode::SigmoidSlope => ("SigmoidSlope", SmallVec::new()),
                    UnaryOpcode::NormalBelow => ("NormalBelow", SmallVec::new()),
                    UnaryOpcode::Powi(n) => ("Powi", words(&[i64::from(n) as u64])),
                    UnaryOpcode::Clamp(low, high) => ("Clamp", words(&[low.to_bits(), high.to_bits()])),
                    UnaryOpcode::Polygamma(n) => ("Polygamma", words(&[n.into()])),
                    UnaryOpcode::SincSlope(n) => ("SincSlope", words(&[n.into()])),
                    UnaryOpcode::Bell(c) => ("Bell", float(c)),
                    UnaryOpcode::FromEnd(size) => ("FromEnd", words(&[size as i64 as u64])),
                }
            }

            /// The name of its method, and the constants, for plans and listings. Operations that
            /// only programs have get a name in the same style.
            #[cfg(feature = "std")]
            pub(crate) fn method(self) -> (&'static str, SmallVec<[Number; 2]>) {
                let numbers = |numbers: &[Number]| SmallVec::from_slice(numbers);
                let float = |value: f64| numbers(&[Number::Float(value)]);
                match self {
                    $(UnaryOpcode::$name => (stringify!($method), SmallVec::new()),)*
                    $(UnaryOpcode::$with(c) => (stringify!($with_method), float(c)),)*
                    UnaryOpcode::SigmoidSlope => ("sigmoid_slope", SmallVec::new()),
                    UnaryOpcode::NormalBelow => ("normal_below", SmallVec::new()),
                    UnaryOpcode::Powi(n) => ("powi", numbers(&[Number::Int(n as isize)])),
                    UnaryOpcode::Clamp(low, high) => {
                        ("clamp", numbers(&[Number::Float(low), Number::Float(high)]))
                    }
                    UnaryOpcode::Polygamma(n) => ("polygamma", numbers(&[Number::Int(n as isize)])),
                    UnaryOpcode::SincSlope(n) => ("sinc_slope", numbers(&[Number::Int(n as isize)])),
                    UnaryOpcode::Bell(c) => ("bell", float(c)),
                    UnaryOpcode::FromEnd(size) => ("from_end", numbers(&[Number::Int(size)])),
                }
            }

            /// The operation with this name and these constants: floats as bits, integers as `i64`.
            #[cfg(feature = "std")]
            pub(crate) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
                // Derivatives of higher orders are slow.
                let order = |n: u64| u32::try_from(n).ok().filter(|n| (1..=64).contains(n));
                Some(match (name, words) {
                    $((stringify!($name), []) => UnaryOpcode::$name,)*
                    $((stringify!($with), &[c]) => UnaryOpcode::$with(f64::from_bits(c)),)*
                    ("SigmoidSlope", []) => UnaryOpcode::SigmoidSlope,
                    ("NormalBelow", []) => UnaryOpcode::NormalBelow,
                    ("Powi", &[n]) => UnaryOpcode::Powi(i32::try_from(n as i64).ok()?),
                    ("Clamp", &[low, high]) => UnaryOpcode::Clamp(f64::from_bits(low), f64::from_bits(high)),
                    ("Polygamma", &[n]) => UnaryOpcode::Polygamma(order(n)?),
                    ("SincSlope", &[n]) => UnaryOpcode::SincSlope(order(n)?),
                    ("Bell", &[c]) => UnaryOpcode::Bell(f64::from_bits(c)),
                    ("FromEnd", &[size]) => {
                        UnaryOpcode::FromEnd(isize::try_from(size as i64).ok().filter(|size| *size >= 0)?)
                    }
                    _ => return None,
                })
            }

            /// The kind of the result for an operand of this kind; `None` if the operation does not
            /// exist for it.
            #[cfg(feature = "std")]
            pub(crate) fn kind_of(self, a: RegisterKind) -> Option<RegisterKind> {
                if self.is_test() {
                    return Some(RegisterKind::Bool);
                }
                let [floats, integers, booleans] = match self {
                    $(UnaryOpcode::$name => {
                        [runs_on!(floats $bound), runs_on!(integers $bound), runs_on!(booleans $bound)]
                    })*
                    $(UnaryOpcode::$with(_) => {
                        [runs_on!(floats $with_bound), runs_on!(integers $with_bound), runs_on!(booleans $with_bound)]
                    })*
                    UnaryOpcode::Clamp(..) => [true, true, false],
                    UnaryOpcode::FromEnd(_) => [false, true, false],
                    _ => [true, false, false],
                };
                let is_known = match a {
                    RegisterKind::F32 | RegisterKind::F64 => floats,
                    RegisterKind::Int => integers,
                    RegisterKind::Bool => booleans,
                };
                is_known.then_some(a)
            }

            /// Whether the result is a `bool` for an operand of any type.
            pub fn is_test(self) -> bool {
                match self {
                    $(UnaryOpcode::$name => is_bool!($out),)*
                    _ => false,
                }
            }

            /// Runs the operation along a line of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn floats<I: Isa, T: Real<Abs = T> + Math>(self, a: &[T], out: &mut [T]) {
                let constant = |value: f64| <T as num_traits::NumCast>::from(value).unwrap_or_else(T::nan);
                match self {
                    $(UnaryOpcode::$name => {
                        run_on!(floats $bound $out each(a, out, |a| UnaryOp::<T>::apply::<I>(&ops::$name, a)))
                    })*
                    $(UnaryOpcode::$with(c) => {
                        let op = ops::$with(constant(c));
                        run_on!(floats $with_bound T each(a, out, |a| op.apply::<I>(a)))
                    })*
                    UnaryOpcode::Powi(n) => each(a, out, |a| ops::Powi(n).apply::<I>(a)),
                    UnaryOpcode::Clamp(low, high) => {
                        let op = ops::Clamp(constant(low), constant(high));
                        each(a, out, |a| op.apply::<I>(a));
                    }
                    UnaryOpcode::Polygamma(n) => each(a, out, |a| special::polygamma(n, a)),
                    UnaryOpcode::SincSlope(n) => each(a, out, |a| special::sinc_slope(n, a)),
                    UnaryOpcode::SigmoidSlope => each(a, out, |a| special::sigmoid_slope::<I, T>(a)),
                    UnaryOpcode::NormalBelow => each(a, out, |a| Real::normal_below::<I>(a)),
                    UnaryOpcode::Bell(c) => { let c = constant(c); each(a, out, |a| bell::<I, T>(a, c)) }
                    UnaryOpcode::FromEnd(_) => unreachable!("no operation on floats"),
                }
            }

            /// Runs a test along a line of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn tests<I: Isa, T: Real>(self, a: &[T], out: &mut [bool]) {
                match self {
                    $(UnaryOpcode::$name => {
                        run_test!($out each(a, out, |a| UnaryOp::<T>::apply::<I>(&ops::$name, a)))
                    })*
                    _ => unreachable!("no test"),
                }
            }

            /// Whether the result for integers of a type may be out of range for the type.
            pub(crate) fn leaves_type(self) -> bool {
                match self {
                    $(UnaryOpcode::$name => false $(|| is_property!(wraps $property))*,)*
                    $(UnaryOpcode::$with(_) => false $(|| is_property!(wraps $with_property))*,)*
                    _ => false,
                }
            }

            /// Runs the operation along a line of integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(unused_variables)] // constants of operations on floats
            pub(crate) fn integers<I: Isa>(self, a: &[isize], out: &mut [isize]) {
                match self {
                    $(UnaryOpcode::$name => {
                        run_on!(integers $bound $out each(a, out, |a| UnaryOp::<isize>::apply::<I>(&ops::$name, a)))
                    })*
                    $(UnaryOpcode::$with(c) => {
                        run_on!(integers $with_bound T each(a, out, |a| ops::$with(c as isize).apply::<I>(a)))
                    })*
                    UnaryOpcode::Clamp(low, high) => each(a, out, |a| a.max(low as isize).min(high as isize)),
                    UnaryOpcode::FromEnd(size) => each(a, out, |a| ops::IndexFromEnd(size).apply::<I>(a)),
                    _ => unreachable!("no operation on integers"),
                }
            }
        }
    };
}

crate::unary_operations!(unary_codes);

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
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } constants { $(
        $(#[$with_doc:meta])* $with:ident $with_method:ident($with_x:ident, $with_y:ident: Real, $c:ident = $sample:literal)
            -> T $(, $with_property:ident)* { $($with_body:tt)* }
    )* }) => {
        /// An operation on two operands, as data.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum BinaryOpcode {
            $($name,)*
            $($with(f64),)*
            /// The quotient of registers that hold the bits of unsigned integers.
            UnsignedDiv,
            /// The remainder of registers that hold the bits of unsigned integers.
            UnsignedRem,
            /// The product of a cotangent and a derivative: 0 if either is 0, even if the other is
            /// infinite or NaN.
            Chain,
        }

        impl BinaryOpcode {
            /// The name and the constants of the operation in saved programs: see
            /// `of_words`.
            pub(crate) fn words(self) -> (&'static str, SmallVec<[u64; 2]>) {
                match self {
                    $(BinaryOpcode::$name => (stringify!($name), SmallVec::new()),)*
                    $(BinaryOpcode::$with(c) => (stringify!($with), SmallVec::from_slice(&[c.to_bits()])),)*
                    BinaryOpcode::UnsignedDiv => ("UnsignedDiv", SmallVec::new()),
                    BinaryOpcode::UnsignedRem => ("UnsignedRem", SmallVec::new()),
                    BinaryOpcode::Chain => ("Chain", SmallVec::new()),
                }
            }

            /// The name of its method, and the constants, for plans and listings. Operations that
            /// only programs have get a name in the same style.
            #[cfg(feature = "std")]
            pub(crate) fn method(self) -> (&'static str, SmallVec<[Number; 2]>) {
                match self {
                    $(BinaryOpcode::$name => (stringify!($method), SmallVec::new()),)*
                    $(BinaryOpcode::$with(c) => {
                        (stringify!($with_method), SmallVec::from_slice(&[Number::Float(c)]))
                    })*
                    BinaryOpcode::UnsignedDiv => ("unsigned_div", SmallVec::new()),
                    BinaryOpcode::UnsignedRem => ("unsigned_rem", SmallVec::new()),
                    BinaryOpcode::Chain => ("chain", SmallVec::new()),
                }
            }

            /// The operation with this name and these constants, as bits.
            #[cfg(feature = "std")]
            pub(crate) fn of_words(name: &str, words: &[u64]) -> Option<Self> {
                Some(match (name, words) {
                    $((stringify!($name), []) => BinaryOpcode::$name,)*
                    $((stringify!($with), &[c]) => BinaryOpcode::$with(f64::from_bits(c)),)*
                    ("UnsignedDiv", []) => BinaryOpcode::UnsignedDiv,
                    ("UnsignedRem", []) => BinaryOpcode::UnsignedRem,
                    ("Chain", []) => BinaryOpcode::Chain,
                    _ => return None,
                })
            }

            /// The kind of the result for operands of this kind; `None` if the operation does not
            /// exist for it.
            #[cfg(feature = "std")]
            pub(crate) fn kind_of(self, operands: RegisterKind) -> Option<RegisterKind> {
                if self.is_comparison() {
                    return Some(RegisterKind::Bool);
                }
                let [floats, integers, booleans] = match self {
                    $(BinaryOpcode::$name => {
                        [runs_on!(floats $bound), runs_on!(integers $bound), runs_on!(booleans $bound)]
                    })*
                    BinaryOpcode::UnsignedDiv | BinaryOpcode::UnsignedRem => [false, true, false],
                    $(BinaryOpcode::$with(_))|* | BinaryOpcode::Chain => [true, false, false],
                };
                let is_known = match operands {
                    RegisterKind::F32 | RegisterKind::F64 => floats,
                    RegisterKind::Int => integers,
                    RegisterKind::Bool => booleans,
                };
                is_known.then_some(operands)
            }

            /// Whether the result is a `bool` for operands of any type.
            pub fn is_comparison(self) -> bool {
                match self {
                    $(BinaryOpcode::$name => is_bool!($out),)*
                    _ => false,
                }
            }

            /// Whether programs may exchange the operands.
            pub(crate) fn is_symmetric(self) -> bool {
                match self {
                    $(BinaryOpcode::$name => false $(|| is_property!(symmetric $property))*,)*
                    other => other == BinaryOpcode::Chain,
                }
            }

            /// Whether the result for integers of a type may be out of range for the type.
            pub(crate) fn leaves_type(self) -> bool {
                match self {
                    $(BinaryOpcode::$name => false $(|| is_property!(wraps $property))*,)*
                    _ => false,
                }
            }

            /// Runs the operation along lines of floats.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn floats<I: Isa, T: Real>(self, a: &[T], b: &[T], out: &mut [T]) {
                let constant = |value: f64| <T as num_traits::NumCast>::from(value).unwrap_or_else(T::nan);
                match self {
                    $(BinaryOpcode::$name => {
                        run_on!(floats $bound $out both(a, b, out, |a, b| BinaryOp::<T, T>::apply::<I>(&ops::$name, a, b)))
                    })*
                    $(BinaryOpcode::$with(c) => {
                        let op = ops::$with(constant(c));
                        both(a, b, out, |a, b| op.apply::<I>(a, b))
                    })*
                    BinaryOpcode::Chain => both(a, b, out, |a, b| {
                        let product = a * b;
                        if a == T::ZERO || b == T::ZERO { T::ZERO } else { product }
                    }),
                    BinaryOpcode::UnsignedDiv | BinaryOpcode::UnsignedRem => unreachable!("no operation on floats"),
                }
            }

            /// Compares floats or integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn compares<I: Isa, T: Num + PartialOrd>(self, a: &[T], b: &[T], out: &mut [bool]) {
                match self {
                    $(BinaryOpcode::$name => {
                        run_test!($out both(a, b, out, |a, b| BinaryOp::<T, T>::apply::<I>(&ops::$name, a, b)))
                    })*
                    _ => unreachable!("no comparison"),
                }
            }

            /// Runs the operation along lines of integers.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub(crate) fn integers<I: Isa>(self, a: &[isize], b: &[isize], out: &mut [isize]) {
                #[allow(unreachable_patterns)] // operations that are written out above
                match self {
                    // Quotients and remainders by 0 are 0, because programs also compute those that
                    // a `select` does not take.
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
                    $(BinaryOpcode::$name => {
                        run_on!(integers $bound $out both(a, b, out, |a, b| BinaryOp::<isize, isize>::apply::<I>(&ops::$name, a, b)))
                    })*
                    _ => unreachable!("no operation on integers"),
                }
            }

            /// Runs the operation along lines of `bool`s.
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
                    _ => unreachable!("no operation on `bool`s"),
                }
            }
        }
    };
}

crate::binary_operations!(binary_codes);
