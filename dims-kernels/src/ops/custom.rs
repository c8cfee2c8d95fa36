//! Users' operations on single elements.

use super::{BinaryOp, Isa, Operation, Own, UnaryOp};
use crate::machine::isa::{Task, dispatch};
use crate::ops::code::DType;
use crate::ops::function::{Function, RegisterValues, ValuesMut};
use crate::scalar::Element;
use alloc::sync::Arc;
use core::marker::PhantomData;

/// A scalar operation. `Args` is an element, or a pair of elements of two tensors.
///
/// One impl defines an operator: `x.apply(Op)` or `x.apply_with(y, Op)`. The result is an
/// expression: it fuses with others, broadcasts, and can be batched. The library's loops can
/// vectorize the operation and run it on several threads.
///
/// `apply` should be small and marked `#[inline(always)]`: it is compiled into each loop that uses
/// it. `I` is the instruction set; pass it on to functions that take it, such as
/// [`Analytic::exp`](crate::scalar::Analytic::exp), and ignore it otherwise.
///
/// The implementing type can hold constants, such as a slope.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on `{Args}`",
    label = "no such operation for elements of this type"
)]
pub trait ScalarOp<Args>: Copy + Send + Sync + 'static {
    /// The type of the result.
    type Out: Element;
    /// The name in plans.
    const NAME: &'static str;
    /// Computes the result.
    fn apply<I: Isa>(self, args: Args) -> Self::Out;
    /// The derivatives with respect to the operands, each an operation on the same arguments.
    /// Without them, if the result and an operand are floats, taking a gradient through the
    /// operation is an error, and so is recording it.
    ///
    /// A recorded program calls the operation for each element, and its gradient calls the
    /// derivatives, even for elements that a `select` does not take.
    fn derivative(self) -> Option<Derivative<Args>> {
        None
    }
}

/// Adapts a user's operation to the library's traits.
#[derive(Clone, Copy, Debug)]
pub struct Custom<O>(pub O);

impl<O> Operation for Custom<O> {}

#[diagnostic::do_not_recommend]
impl<A: Element, O: ScalarOp<A>> UnaryOp<A> for Custom<O> {
    type Out = O::Out;
    const NAME: &'static str = O::NAME;
    // A user's operation may panic for elements that are not used, such as those that a condition
    // excludes.
    const TOTAL: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: A) -> O::Out {
        self.0.apply::<I>(a)
    }

    fn function(&self) -> Option<Own> {
        let floats = DType::of::<A>().is_some_and(DType::is_float);
        Some(with_derivative(unary::<A, O>(self.0)?, [floats; 2]))
    }
}

#[diagnostic::do_not_recommend]
impl<A: Element, B: Element, O: ScalarOp<(A, B)>> BinaryOp<A, B> for Custom<O> {
    type Out = O::Out;
    const NAME: &'static str = O::NAME;
    const TOTAL: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: A, b: B) -> O::Out {
        self.0.apply::<I>((a, b))
    }

    fn function(&self) -> Option<Own> {
        let floats = [DType::of::<A>(), DType::of::<B>()].map(|own| own.is_some_and(DType::is_float));
        Some(with_derivative(binary::<A, B, O>(self.0)?, floats))
    }
}

/// The derivatives of a [`ScalarOp`] with respect to its operands: operations on the same
/// arguments.
///
/// A derivative can itself have a derivative, which gradients of gradients use.
pub struct Derivative<Args> {
    partials: [Option<Arc<dyn Function>>; 2],
    marker: PhantomData<fn(Args)>,
}

impl<A: Element> Derivative<A> {
    /// The derivative of an operation on one element, as an operation.
    pub fn of(slope: impl ScalarOp<A>) -> Self {
        Derivative { partials: [unary(slope), None], marker: PhantomData }
    }

    /// The derivative of an operation on one element, as a closure. The closure has no derivative
    /// itself.
    pub fn from_fn<T: Element>(slope: impl Fn(A) -> T + Copy + Send + Sync + 'static) -> Self {
        Derivative { partials: [unary::<A, _>(Slope(slope)), None], marker: PhantomData }
    }
}

impl<A: Element, B: Element> Derivative<(A, B)> {
    /// The derivatives of an operation on two elements, with respect to the first and to the
    /// second, as operations.
    pub fn of_each(first: impl ScalarOp<(A, B)>, second: impl ScalarOp<(A, B)>) -> Self {
        Derivative { partials: [binary(first), binary(second)], marker: PhantomData }
    }

    /// The derivatives of an operation on two elements, as closures that take the pair. The
    /// closures have no derivatives themselves.
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

/// An operation on one element as a function, if programs support the types.
fn unary<A: Element, O: ScalarOp<A>>(op: O) -> Option<Arc<dyn Function>> {
    DType::of::<A>()?;
    DType::of::<O::Out>()?;
    Some(Arc::new(OfOne(op, PhantomData::<fn(A)>)))
}

/// An operation on two elements as a function, if programs support the types.
fn binary<A: Element, B: Element, O: ScalarOp<(A, B)>>(op: O) -> Option<Arc<dyn Function>> {
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

/// The function of an operation, unless the result is a float and there is no derivative with
/// respect to a float operand.
fn with_derivative(function: Arc<dyn Function>, floats: [bool; 2]) -> Own {
    if !function.dtype().is_float() {
        return Some(function);
    }
    let known = (0..function.operands()).all(|at| !floats[at] || function.derivative(at).is_some());
    known.then_some(function)
}
