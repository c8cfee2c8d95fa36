//! Formulas that write programs: values with operators, and with the methods of the
//! [table](crate::ops::table).

use crate::ops::code::{BinaryOpcode, UnaryOpcode};
use crate::program::Register;
use crate::program::builder::Builder;
use core::cell::RefCell;
use core::ops;

/// A value of a program that is being written.
#[derive(Clone, Copy)]
pub struct Symbol<'b> {
    build: &'b RefCell<&'b mut Builder>,
    register: Register,
}

/// An operand next to a symbol in a formula: another symbol, or a number, which becomes a constant
/// of the symbol's kind.
pub(crate) trait FormulaTerm<'b> {
    fn beside(self, symbol: Symbol<'b>) -> Symbol<'b>;
}

impl<'b> FormulaTerm<'b> for Symbol<'b> {
    fn beside(self, _: Symbol<'b>) -> Symbol<'b> {
        self
    }
}

impl<'b> FormulaTerm<'b> for f64 {
    fn beside(self, symbol: Symbol<'b>) -> Symbol<'b> {
        symbol.constant(self)
    }
}

impl<'b> Symbol<'b> {
    /// A value that the program already has.
    pub(crate) fn new(build: &'b RefCell<&'b mut Builder>, register: Register) -> Self {
        Symbol { build, register }
    }

    pub(crate) fn register(self) -> Register {
        self.register
    }

    fn with(self, register: Register) -> Self {
        Symbol { register, ..self }
    }

    pub(crate) fn unary(self, op: UnaryOpcode) -> Self {
        self.with(self.build.borrow_mut().unary(op, self.register))
    }

    pub(crate) fn binary(self, op: BinaryOpcode, other: impl FormulaTerm<'b>) -> Self {
        let other = other.beside(self);
        self.with(self.build.borrow_mut().binary(op, self.register, other.register))
    }

    /// A constant, of the kind of this value.
    pub(crate) fn constant(self, value: f64) -> Self {
        let mut build = self.build.borrow_mut();
        let kind = build.kind(self.register);
        self.with(build.float(value, kind))
    }

    /// One of two constants, of the kind of this value.
    pub(crate) fn choose(self, cond: Self, a: f64, b: f64) -> Self {
        let (a, b) = (self.constant(a), self.constant(b));
        select(cond, a, b)
    }
}

/// `if cond { a } else { b }`
pub(crate) fn select<'b>(cond: Symbol<'b>, a: Symbol<'b>, b: Symbol<'b>) -> Symbol<'b> {
    a.with(a.build.borrow_mut().select(cond.register, a.register, b.register))
}

/// The methods of the table that take no constant and are not `elsewhere`.
macro_rules! unary_methods {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } $($constants:tt)*) => {
        #[allow(dead_code)] // formulas do not need all of them
        impl Symbol<'_> {
            $(unary_methods! { @method [$($property)*] $name $method })*
        }
    };
    (@method [elsewhere $($property:ident)*] $name:ident $method:ident) => {};
    (@method [$($property:ident)*] $name:ident $method:ident) => {
        pub(crate) fn $method(self) -> Self {
            self.unary(UnaryOpcode::$name)
        }
    };
}

crate::unary_operations!(unary_methods);

macro_rules! binary_methods {
    (operations { $(
        $(#[$doc:meta])* $name:ident $method:ident($x:ident, $y:ident: $bound:ident) -> $out:tt $(, $property:ident)* { $($body:tt)* }
    )* } $($constants:tt)*) => {
        #[allow(dead_code)] // formulas do not need all of them
        impl<'b> Symbol<'b> {
            $(binary_methods! { @method [$($property)*] $name $method 'b })*
        }
    };
    (@method [elsewhere $($property:ident)*] $name:ident $method:ident $b:lifetime) => {};
    (@method [$($property:ident)*] $name:ident $method:ident $b:lifetime) => {
        pub(crate) fn $method(self, other: impl FormulaTerm<$b>) -> Self {
            self.binary(BinaryOpcode::$name, other)
        }
    };
}

crate::binary_operations!(binary_methods);

macro_rules! operators {
    ($($op:ident $method:ident $code:ident;)*) => {$(
        impl<'b, U: FormulaTerm<'b>> ops::$op<U> for Symbol<'b> {
            type Output = Self;

            fn $method(self, other: U) -> Self {
                self.binary(BinaryOpcode::$code, other)
            }
        }

        impl<'b> ops::$op<Symbol<'b>> for f64 {
            type Output = Symbol<'b>;

            fn $method(self, other: Symbol<'b>) -> Symbol<'b> {
                other.constant(self).binary(BinaryOpcode::$code, other)
            }
        }
    )*};
}

operators! { Add add Add; Sub sub Sub; Mul mul Mul; Div div Div; BitAnd bitand And; BitOr bitor Or; }

impl ops::Neg for Symbol<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.unary(UnaryOpcode::Neg)
    }
}
