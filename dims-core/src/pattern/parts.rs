//! Lists of arrays that are written out, `[x0, x1]`. The arrays need not be of one type.

use super::input::{InMemory, Input, Memory, SameElem, Values};
use super::rank::AnyRank;
use crate::scalar::Element;
use std::marker::PhantomData;

/// The arrays of a list.
pub struct Parts<'a, T, R> {
    arrays: Vec<Memory<'a, T>>,
    rank: PhantomData<R>,
}

/// An array has the rank of the others in its list.
#[diagnostic::on_unimplemented(
    message = "the arrays of a list are of one rank: the first one is of `{R}`, and this one of `{Self}`",
    label = "is of `{Self}`, and the first one of `{R}`",
    note = "`pack!` joins arrays of different ranks"
)]
pub trait SameRank<R> {}
#[diagnostic::do_not_recommend]
impl<R> SameRank<R> for R {}

/// A list with its first array.
#[rustfmt::skip] // rustc quotes the line
pub fn list<'a, A: Input<Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(array: &'a A) -> Parts<'a, A::Elem, A::Rank> {
    Parts { arrays: vec![settled(array.values().into_memory())], rank: PhantomData }
}

/// An array that is a list itself becomes one in memory. If it cannot, the fault is that of the whole list.
fn settled<T: Element>(mut memory: Memory<'_, T>) -> Memory<'_, T> {
    if let Err(fault) = memory.settle() {
        memory.fault = Some(Box::new(fault));
    }
    memory
}

impl<'a, T: Element, R> Parts<'a, T, R> {
    /// The list with one more array.
    #[rustfmt::skip] // rustc quotes the line
    pub fn and<A: Input<Elem: SameElem<T>, Rank: SameRank<R>, Values<'a>: InMemory<'a, Elem = A::Elem>> + ?Sized>(mut self, array: &'a A) -> Self {
        self.arrays.push(settled(SameElem::same(array.values().into_memory())));
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, R: AnyRank> Input for Parts<'_, T, R> {
    type Elem = T;
    type Dims = ();
    type Rank = R::Next;
    type Values<'a>
        = Memory<'a, T>
    where
        Self: 'a;

    fn values(&self) -> Memory<'_, T> {
        let raw = |array: &Memory<'_, T>| (array.start, array.axes.clone());
        // SAFETY: the arrays are borrowed or owned for longer than `self` is; where one has a fault, so has the list, and nothing is
        // read.
        let mut list = unsafe { Memory::list(self.arrays.iter().map(raw).collect()) };
        list.fault = self.arrays.iter().find_map(|array| array.fault.clone());
        list
    }
}
