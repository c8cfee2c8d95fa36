//! Literal lists of arrays, `[x0, x1]`. The arrays may have different types.

use super::input::{ArrayElements, InMemory, Input, ListItem, ListItems, SameElem, Values};
use super::rank::AnyRank;
use crate::error::DimError;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;

/// The arrays of a list.
pub struct Parts<'a, T, R> {
    items: Vec<ListItem<'a, T>>,
    /// The error of the first invalid array.
    fault: Option<Box<DimError>>,
    marker: PhantomData<R>,
}

/// An array must have the rank of the others in its list.
#[diagnostic::on_unimplemented(
    message = "the arrays of a list need the same rank: the first has `{R}`, this one `{Self}`",
    label = "has `{Self}`, but the first has `{R}`",
    note = "`pack!` joins arrays of different ranks"
)]
pub trait SameRank<R> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<R> SameRank<R> for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A list with its first array.
#[inline]
#[rustfmt::skip] // rustc quotes the next line in errors
pub fn list<'a, A: Input<Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(array: &'a A) -> Parts<'a, A::Elem, A::Rank> {
    let parts = Parts { items: Vec::with_capacity(FEW), fault: None, marker: PhantomData };
    parts.with(array.values().into_memory())
}

/// Lists of up to this many arrays are allocated once.
const FEW: usize = 4;

impl<'a, T: Element, R> Parts<'a, T, R> {
    /// The list with one more array.
    #[inline]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn and<A: Input<Elem: SameElem<T>, Rank: SameRank<R>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(self, array: &'a A) -> Self {
        self.with(SameElem::same(array.values().into_memory()))
    }

    /// Adds an array. An array that is itself a list is copied into one array; if this fails, the
    /// outer list is invalid.
    #[inline]
    fn with(mut self, mut memory: ArrayElements<'a, T>) -> Self {
        if let Err(fault) = memory.settle() {
            self.fault.get_or_insert(Box::new(fault));
        }
        self.items.push((memory.held, memory.axes));
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, R: AnyRank> Input for Parts<'_, T, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Dims = ();
    type Rank = R::Next;
    type Values<'a>
        = ArrayElements<'a, T>
    where
        Self: 'a;

    #[inline]
    fn values(&self) -> ArrayElements<'_, T> {
        // (If an array is invalid, so is the list, and nothing is read.)
        let mut list = ArrayElements::list(ListItems::Lent(&self.items));
        list.fault.clone_from(&self.fault);
        list
    }
}
