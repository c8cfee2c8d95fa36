//! Users' operations in programs: functions of one or two values that are not in the table of
//! operations.

use crate::ops::code::{DType, RegisterKind, match_dtype};
use crate::scalar::{CastTo, Element};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

/// A function of one or two values.
pub trait Function: Send + Sync {
    /// The name.
    fn name(&self) -> &'static str;
    /// The type of the result.
    fn dtype(&self) -> DType;
    /// The number of values that it takes.
    fn operands(&self) -> usize;
    /// The derivative with respect to an operand, if it is known, as a function of the same values.
    fn derivative(&self, operand: usize) -> Option<Arc<dyn Function>>;
    /// Computes a line. (If there is no second operand, `b` is `a`.)
    fn run(&self, a: RegisterValues<'_>, b: RegisterValues<'_>, out: ValuesMut<'_>);
}

/// The functions that a program calls, by index.
#[derive(Clone, Default)]
pub struct Functions(Vec<Arc<dyn Function>>);

impl Functions {
    /// The function with this index.
    pub fn get(&self, number: u32) -> &Arc<dyn Function> {
        &self.0[number as usize]
    }

    /// The index of a function, which is added if it is not there yet.
    pub(crate) fn number(&mut self, function: &Arc<dyn Function>) -> u32 {
        let same = |own: &Arc<dyn Function>| Arc::ptr_eq(own, function);
        let at = self.0.iter().position(same).unwrap_or_else(|| {
            self.0.push(Arc::clone(function));
            self.0.len() - 1
        });
        at as u32
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|function| function.name())).finish()
    }
}

impl PartialEq for Functions {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// A line of values in a register.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum RegisterValues<'l> {
    F32(&'l [f32]),
    F64(&'l [f64]),
    Bool(&'l [bool]),
    Int(&'l [isize]),
}

/// A line of values in a register, for writing.
#[allow(missing_docs)]
pub enum ValuesMut<'l> {
    F32(&'l mut [f32]),
    F64(&'l mut [f64]),
    Bool(&'l mut [bool]),
    Int(&'l mut [isize]),
}

/// A float as an element; the default value for types that programs do not support.
pub fn element<T: Element>(value: f64) -> T {
    match DType::of::<T>() {
        Some(_) => RegisterValues::F64(&[value]).get(0),
        None => T::default(),
    }
}

/// The value as a `U`, which is the same type as `T`.
#[cfg_attr(not(unoptimized), inline(always))]
fn same<T: Element, U: Element>(value: T) -> U {
    *(&value as &dyn Any).downcast_ref::<U>().expect("a value of this type")
}

impl RegisterValues<'_> {
    /// The value at a position, converted to the element type that the register stands for.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn get<T: Element>(self, at: usize) -> T {
        match_dtype!(DType::of::<T>().expect("programs know the type"), E => match self {
            RegisterValues::F32(line) => same::<E, T>(CastTo::cast_to(line[at])),
            RegisterValues::F64(line) => same::<E, T>(CastTo::cast_to(line[at])),
            RegisterValues::Int(line) => same::<E, T>(CastTo::cast_to(line[at])),
            RegisterValues::Bool(line) => same::<E, T>(CastTo::cast_to(line[at])),
        })
    }
}

impl ValuesMut<'_> {
    /// The number of values to write.
    pub(super) fn len(&self) -> usize {
        match self {
            ValuesMut::F32(line) => line.len(),
            ValuesMut::F64(line) => line.len(),
            ValuesMut::Bool(line) => line.len(),
            ValuesMut::Int(line) => line.len(),
        }
    }

    /// Writes a value, converted from the element type that the register stands for.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(super) fn put<T: Element>(&mut self, at: usize, value: T) {
        match_dtype!(DType::of::<T>().expect("programs know the type"), E => match self {
            ValuesMut::F32(line) => line[at] = CastTo::cast_to(same::<T, E>(value)),
            ValuesMut::F64(line) => line[at] = CastTo::cast_to(same::<T, E>(value)),
            ValuesMut::Int(line) => line[at] = CastTo::cast_to(same::<T, E>(value)),
            ValuesMut::Bool(line) => line[at] = same::<T, bool>(value),
        });
    }
}

/// The kind of the register that a function writes.
pub(crate) fn kind(function: &dyn Function) -> RegisterKind {
    function.dtype().kind()
}
