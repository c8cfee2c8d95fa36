//! Elements in memory, borrowed or owned.

use crate::storage::{Evaluated, View};
use crate::types::rank::Rank;
use crate::types::set::Dims;
use kernels::memory::elements::Elements;

/// Elements in memory, whose positional axes can be bound.
#[diagnostic::on_unimplemented(
    message = "only tensors in memory can be bound to extra dims",
    label = "this is an expression that has not been evaluated: call `.eval()` first"
)]
pub trait Leaf<T, S: Dims, R: Rank> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The elements, the axes of the dims, and the positional axes.
    #[doc(hidden)]
    fn leaf(&self) -> (Elements<'_, T>, &S::Axes, &R::Axes);
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank> Leaf<T, S, R> for View<'_, T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn leaf(&self) -> (Elements<'_, T>, &S::Axes, &R::Axes) {
        (self.elements(), self.named(), self.positional())
    }
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank> Leaf<T, S, R> for Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn leaf(&self) -> (Elements<'_, T>, &S::Axes, &R::Axes) {
        (self.elements(), self.named(), self.positional())
    }
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, R: Rank, E: Leaf<T, S, R>> Leaf<T, S, R> for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn leaf(&self) -> (Elements<'_, T>, &S::Axes, &R::Axes) {
        (**self).leaf()
    }
}
