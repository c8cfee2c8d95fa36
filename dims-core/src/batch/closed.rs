//! Which rest a function sees, and dims that clash.

use super::seal::EndsInRest;
use crate::types::condition::condition;
use crate::types::set::list::NestedPairs;
use crate::types::set::{Bool, Dims};

/// `Rest<B>` stands for the dims of this set.
///
/// Where the set is nothing but a rest itself, `B` is what that one stands for, not one rest more: so a function that calls itself with what it
/// was given is instantiated once, and not without end.
#[diagnostic::on_unimplemented(message = "`{Self}` is not the set of dims that `Rest<{B}>` stands for")]
pub trait Closes<B: Dims>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<U, V, B: Dims> Closes<B> for U
where
    U: Dims<List: EndsInRest<Visible = V>>,
    V: NestedPairs<IsEmpty: Bool<If<<U::List as EndsInRest>::Behind, U> = B>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// No dim of the result of a batched function is a further dim of its arguments.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` of the result is also a further dim of an argument",
        label = "the result would have `{D}` twice: pass captured tensors as arguments, `batched(.., (a, b), |(a, b)| ..)`, or rename one dim, `.rename({D}, ..)`"
    )]
    pub trait Apart<D> for True;
}
