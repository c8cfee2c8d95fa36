//! Binding elements again: `lookup` binds a dim that they already have.

use crate::expr::index::IndexExprs;
use crate::storage::{Evaluated, View};
use crate::types::rank::Rank0;
use crate::types::set::Dims;
use kernels::memory::elements::Elements;

/// Elements in memory whose dims can be bound again.
#[diagnostic::on_unimplemented(
    message = "only tensors in memory can be bound to extra dims",
    label = "this is an expression that has not been evaluated: call `.eval()` first"
)]
pub trait Rebindable<T, S: Dims> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The computed indices that the elements already have.
    #[doc(hidden)]
    type Indices<'s>: IndexExprs
    where
        Self: 's;
    /// The elements, the axes of the dims, and the indices.
    #[doc(hidden)]
    fn bound(&self) -> (Elements<'_, T>, &S::Axes, Self::Indices<'_>);
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, X: IndexExprs> Rebindable<T, S> for View<'_, T, S, Rank0, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Indices<'s>
        = X::Lent<'s>
    where
        Self: 's;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bound(&self) -> (Elements<'_, T>, &S::Axes, X::Lent<'_>) {
        (self.elements(), self.named(), self.indices().lent())
    }
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims> Rebindable<T, S> for Evaluated<T, S, Rank0> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Indices<'s>
        = ()
    where
        Self: 's;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bound(&self) -> (Elements<'_, T>, &S::Axes, ()) {
        (self.elements(), self.named(), ())
    }
}

#[diagnostic::do_not_recommend]
impl<T, S: Dims, E: Rebindable<T, S>> Rebindable<T, S> for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Indices<'s>
        = E::Indices<'s>
    where
        Self: 's;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn bound(&self) -> (Elements<'_, T>, &S::Axes, E::Indices<'_>) {
        (**self).bound()
    }
}
