//! Users' operations in programs: functions of one or two values that the table of operations does not have.

use crate::machine::isa::{Isa, Task, dispatch};
use crate::ops::code::{DType, RegisterKind, each_dtype};
use crate::ops::custom::ScalarOp;
use crate::scalar::{CastTo, Element};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::marker::PhantomData;

/// A function of one or two values.
pub trait Function: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// The type of the result.
    fn dtype(&self) -> DType;
    /// How many values it takes.
    fn operands(&self) -> usize;
    /// The derivative by an operand, as a function of the same values; nothing if it has none.
    fn derivative(&self, operand: usize) -> Option<Arc<dyn Function>>;
    /// Computes a line. (The second operand is the first one again if there is none.)
    fn run(&self, a: RegisterValues<'_>, b: RegisterValues<'_>, out: ValuesMut<'_>);
}

/// The functions that a program calls, by number.
#[derive(Clone, Default)]
pub struct Functions(Vec<Arc<dyn Function>>);

impl Functions {
    /// The function of this number.
    pub fn get(&self, number: u32) -> &Arc<dyn Function> {
        &self.0[number as usize]
    }

    /// The number of a function, which gets one if it has none.
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

/// A line of a register that is to be written.
#[allow(missing_docs)]
pub enum ValuesMut<'l> {
    F32(&'l mut [f32]),
    F64(&'l mut [f64]),
    Bool(&'l mut [bool]),
    Int(&'l mut [isize]),
}

/// A float as an element; the default of types that programs do not know.
pub fn element<T: Element>(value: f64) -> T {
    match DType::of::<T>() {
        Some(_) => RegisterValues::F64(&[value]).get(0),
        None => T::default(),
    }
}

/// A value as one of another type, which it is.
#[cfg_attr(not(unoptimized), inline(always))]
fn same<T: Element, U: Element>(value: T) -> U {
    *(&value as &dyn Any).downcast_ref::<U>().expect("a value of this type")
}

impl RegisterValues<'_> {
    /// A value in the type of elements that the register is for.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn get<T: Element>(self, at: usize) -> T {
        macro_rules! get {
            ($($name:ident $t:ty,)*) => {
                match DType::of::<T>().expect("programs know the type") {
                    $(DType::$name => match self {
                        RegisterValues::F32(line) => same::<$t, T>(CastTo::cast_to(line[at])),
                        RegisterValues::F64(line) => same::<$t, T>(CastTo::cast_to(line[at])),
                        RegisterValues::Int(line) => same::<$t, T>(CastTo::cast_to(line[at])),
                        RegisterValues::Bool(line) => same::<$t, T>(CastTo::cast_to(line[at])),
                    },)*
                    #[cfg(feature = "half")]
                    DType::F16 => match self {
                        RegisterValues::F32(line) => same::<half::f16, T>(CastTo::cast_to(line[at])),
                        RegisterValues::F64(line) => same::<half::f16, T>(CastTo::cast_to(line[at])),
                        _ => unreachable!("the register is one of floats"),
                    },
                    #[cfg(feature = "half")]
                    DType::Bf16 => match self {
                        RegisterValues::F32(line) => same::<half::bf16, T>(CastTo::cast_to(line[at])),
                        RegisterValues::F64(line) => same::<half::bf16, T>(CastTo::cast_to(line[at])),
                        _ => unreachable!("the register is one of floats"),
                    },
                }
            };
        }
        each_dtype!(get!())
    }
}

impl ValuesMut<'_> {
    /// How many values are written.
    fn len(&self) -> usize {
        match self {
            ValuesMut::F32(line) => line.len(),
            ValuesMut::F64(line) => line.len(),
            ValuesMut::Bool(line) => line.len(),
            ValuesMut::Int(line) => line.len(),
        }
    }

    /// Writes a value of the type of elements that the register is for.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn put<T: Element>(&mut self, at: usize, value: T) {
        macro_rules! put {
            ($($name:ident $t:ty,)*) => {
                match DType::of::<T>().expect("programs know the type") {
                    $(DType::$name => match self {
                        ValuesMut::F32(line) => line[at] = CastTo::cast_to(same::<T, $t>(value)),
                        ValuesMut::F64(line) => line[at] = CastTo::cast_to(same::<T, $t>(value)),
                        ValuesMut::Int(line) => line[at] = CastTo::cast_to(same::<T, $t>(value)),
                        ValuesMut::Bool(line) => line[at] = same::<T, bool>(value),
                    },)*
                    #[cfg(feature = "half")]
                    DType::F16 => if let ValuesMut::F32(line) = self {
                        line[at] = same::<T, half::f16>(value).to_f32();
                    },
                    #[cfg(feature = "half")]
                    DType::Bf16 => if let ValuesMut::F32(line) = self {
                        line[at] = same::<T, half::bf16>(value).to_f32();
                    },
                }
            };
        }
        each_dtype!(put!());
    }
}

/// The derivatives of a [`ScalarOp`] by its operands: operations on the same elements.
///
/// A derivative can have a derivative itself: then gradients of gradients go through it.
pub struct Derivative<Args> {
    partials: [Option<Arc<dyn Function>>; 2],
    marker: PhantomData<fn(Args)>,
}

impl<A: Element> Derivative<A> {
    /// The derivative of an operation on one element, as an operation.
    pub fn of(slope: impl ScalarOp<A>) -> Self {
        Derivative { partials: [unary(slope), None], marker: PhantomData }
    }

    /// The derivative of an operation on one element, as a closure. It has no derivative itself.
    pub fn from_fn<T: Element>(slope: impl Fn(A) -> T + Copy + Send + Sync + 'static) -> Self {
        Derivative { partials: [unary::<A, _>(Slope(slope)), None], marker: PhantomData }
    }
}

impl<A: Element, B: Element> Derivative<(A, B)> {
    /// The derivatives of an operation on two elements by the first one and by the second one, as operations.
    pub fn of_each(first: impl ScalarOp<(A, B)>, second: impl ScalarOp<(A, B)>) -> Self {
        Derivative { partials: [binary(first), binary(second)], marker: PhantomData }
    }

    /// The derivatives of an operation on two elements, as closures that take the pair. They have no derivatives themselves.
    pub fn from_fns<T: Element, U: Element>(
        first: impl Fn((A, B)) -> T + Copy + Send + Sync + 'static,
        second: impl Fn((A, B)) -> U + Copy + Send + Sync + 'static,
    ) -> Self {
        let partials = [binary::<A, B, _>(Slope(first)), binary::<A, B, _>(Slope(second))];
        Derivative { partials, marker: PhantomData }
    }
}

/// A closure as an operation.
#[derive(Clone, Copy)]
struct Slope<F>(F);

impl<Args, T: Element, F: Fn(Args) -> T + Copy + Send + Sync + 'static> ScalarOp<Args> for Slope<F> {
    type Out = T;
    const NAME: &'static str = "the derivative of an operation";

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(self, args: Args) -> T {
        (self.0)(args)
    }
}

/// An operation on one element as a function, if programs know the types.
pub(crate) fn unary<A: Element, O: ScalarOp<A>>(op: O) -> Option<Arc<dyn Function>> {
    DType::of::<A>()?;
    DType::of::<O::Out>()?;
    Some(Arc::new(OfOne(op, PhantomData::<fn(A)>)))
}

/// An operation on two elements as a function, if programs know the types.
pub(crate) fn binary<A: Element, B: Element, O: ScalarOp<(A, B)>>(op: O) -> Option<Arc<dyn Function>> {
    DType::of::<A>()?;
    DType::of::<B>()?;
    DType::of::<O::Out>()?;
    Some(Arc::new(OfTwo(op, PhantomData::<fn(A, B)>)))
}

struct OfOne<O, A>(O, PhantomData<fn(A)>);

impl<A: Element, O: ScalarOp<A>> Function for OfOne<O, A> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn dtype(&self) -> DType {
        DType::of::<O::Out>().expect("the type is known")
    }

    fn operands(&self) -> usize {
        1
    }

    fn derivative(&self, operand: usize) -> Option<Arc<dyn Function>> {
        self.0.derivative()?.partials[operand].clone()
    }

    fn run(&self, a: RegisterValues<'_>, _: RegisterValues<'_>, out: ValuesMut<'_>) {
        dispatch(LineOfOne { op: self.0, a, out, marker: PhantomData::<fn(A)> });
    }
}

struct OfTwo<O, A, B>(O, PhantomData<fn(A, B)>);

impl<A: Element, B: Element, O: ScalarOp<(A, B)>> Function for OfTwo<O, A, B> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn dtype(&self) -> DType {
        DType::of::<O::Out>().expect("the type is known")
    }

    fn operands(&self) -> usize {
        2
    }

    fn derivative(&self, operand: usize) -> Option<Arc<dyn Function>> {
        self.0.derivative()?.partials[operand].clone()
    }

    fn run(&self, a: RegisterValues<'_>, b: RegisterValues<'_>, out: ValuesMut<'_>) {
        dispatch(LineOfTwo { op: self.0, a, b, out, marker: PhantomData::<fn(A, B)> });
    }
}

/// An operation along a line, for the instructions of the machine.
struct LineOfOne<'l, O, A> {
    op: O,
    a: RegisterValues<'l>,
    out: ValuesMut<'l>,
    marker: PhantomData<fn(A)>,
}

impl<A: Element, O: ScalarOp<A>> Task for LineOfOne<'_, O, A> {
    type Out = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(mut self) {
        for at in 0..self.out.len() {
            self.out.put(at, self.op.apply::<I>(self.a.get::<A>(at)));
        }
    }
}

struct LineOfTwo<'l, O, A, B> {
    op: O,
    a: RegisterValues<'l>,
    b: RegisterValues<'l>,
    out: ValuesMut<'l>,
    marker: PhantomData<fn(A, B)>,
}

impl<A: Element, B: Element, O: ScalarOp<(A, B)>> Task for LineOfTwo<'_, O, A, B> {
    type Out = ();

    #[cfg_attr(not(unoptimized), inline(always))]
    fn run<I: Isa>(mut self) {
        for at in 0..self.out.len() {
            self.out.put(at, self.op.apply::<I>((self.a.get::<A>(at), self.b.get::<B>(at))));
        }
    }
}

/// The function of an operation whose result depends on its operands by floats only where it has a derivative.
pub(crate) fn with_derivative(
    function: Option<Arc<dyn Function>>,
    floats: [bool; 2],
) -> Option<Arc<dyn Function>> {
    let function = function?;
    if !function.dtype().is_float() {
        return Some(function);
    }
    let known = (0..function.operands()).all(|at| !floats[at] || function.derivative(at).is_some());
    known.then_some(function)
}

/// The kind of register that a function yields.
pub(crate) fn kind(function: &dyn Function) -> RegisterKind {
    function.dtype().kind()
}
