//! Users' operations on single elements.

use super::{BinaryOp, Isa, Operation, Own, UnaryOp};
use crate::ops::code::DType;
pub use crate::ops::function::Derivative;
use crate::ops::function::{self, with_derivative};
use crate::scalar::Element;

/// An operation on single elements, `Args` being the element, or a pair of elements of two tensors.
///
/// One impl makes an operator of it: `x.apply(Op)`, `x.apply_with(y, Op)`. It stays an expression, fuses with the others around it, broadcasts,
/// is batched, and runs in the library's loops, compiled for the machine's vector instructions, on several threads.
///
/// `apply` should be small and marked `#[inline(always)]`: it is compiled into each loop that it is used in. `I` says for which
/// instructions; pass it on to functions that take it, such as [`Analytic::exp`](crate::scalar::Analytic::exp), and ignore it otherwise.
///
/// The value can hold constants of its own, such as a slope.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an operation on `{Args}`",
    label = "no such operation for elements of this type"
)]
pub trait ScalarOp<Args>: Copy + Send + Sync + 'static {
    /// The type of the result.
    type Out: Element;
    /// The name in plans.
    const NAME: &'static str;
    /// The value.
    fn apply<I: Isa>(self, args: Args) -> Self::Out;
    /// The derivatives by the operands, each an operation on the same elements. Without them, a gradient through the operation is an error.
    ///
    /// A recorded program calls the operation, and its gradient the derivatives, for each element, also for such that a
    /// [`select`](crate::ops) does not take.
    fn derivative(self) -> Option<Derivative<Args>> {
        None
    }
}

/// A user's operation as one of the library's.
#[derive(Clone, Copy, Debug)]
pub struct Custom<O>(pub O);

impl<O> Operation for Custom<O> {}

#[diagnostic::do_not_recommend]
impl<A: Element, O: ScalarOp<A>> UnaryOp<A> for Custom<O> {
    type Out = O::Out;
    const NAME: &'static str = O::NAME;
    // A user's operation may panic for elements that no one asked for: what a condition does not take, say.
    const TOTAL: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn apply<I: Isa>(&self, a: A) -> O::Out {
        self.0.apply::<I>(a)
    }

    fn function(&self) -> Option<Own> {
        let floats = DType::of::<A>().is_some_and(DType::is_float);
        Some(with_derivative(function::unary::<A, O>(self.0), [floats; 2]))
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
        Some(with_derivative(function::binary::<A, B, O>(self.0), floats))
    }
}
