//! Which rest a function sees, and dims that clash.

use crate::brand::{Brand, Rest};
use crate::set::rename::Has;
use crate::set::{Dims, MaybeDim, Nothing};

/// `Rest<B>` stands for the dims of this set.
///
/// Where the set is nothing but a rest itself, `B` is what that one stands for, not one rest more: so a function that calls itself with what it
/// was given is instantiated once, and not without end.
#[diagnostic::on_unimplemented(message = "`{Self}` is not the set of dims that `Rest<{B}>` stands for")]
pub trait Closes<B: Dims>: Dims {}

impl<U: Dims<List: Closed<Out = B>>, B: Dims> Closes<B> for U {}

/// See [`Closes`].
pub trait Closed {
    /// The set that a rest stands for.
    type Out: Dims;
}

impl Closed for () {
    type Out = ();
}

#[diagnostic::do_not_recommend]
impl<H: ClosedElement> Closed for (H, ()) {
    type Out = H::Out;
}

#[diagnostic::do_not_recommend]
impl<H, I, T> Closed for (H, (I, T))
where
    (H, (I, T)): crate::set::list::List,
{
    type Out = <(H, (I, T)) as crate::set::list::List>::Tuple;
}

/// An element of a set of one.
pub trait ClosedElement {
    /// The set that a rest stands for.
    type Out: Dims;
}

#[diagnostic::do_not_recommend]
impl<D: Brand> ClosedElement for D {
    type Out = (D,);
}

#[diagnostic::do_not_recommend]
impl<B: Dims> ClosedElement for Rest<B> {
    type Out = B;
}

/// The first dim that two sorted lists have in common.
pub trait Common<O> {
    /// The dim, or [`Nothing`].
    type Found: MaybeDim;
}

impl<O> Common<O> for () {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<H, T: Common<O>, O: Has<H>> Common<O> for (H, T) {
    type Found = <O::Found as MaybeDim>::Or<T::Found>;
}

/// No dim of the result of a batched function is a further dim of its arguments.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` of the result is bound in an argument as a further dim, too",
    label = "the result would have `{D}` twice: pass what the closure captures as an argument, `batched(.., (a, b), |(a, b)| ..)`, or rename one of them, `.rename({D}, ..)`"
)]
pub trait Apart<D> {}
#[diagnostic::do_not_recommend]
impl<D> Apart<D> for crate::set::True {}
