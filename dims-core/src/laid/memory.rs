//! Where the elements of a [`Laid`](super::Laid) are: in memory of its own, or in memory that it borrows.

use super::packed::Held;
use crate::named::Named;
use crate::rank::Rank0;
use crate::scalar::Element;
use crate::set::Dims;
use crate::storage::axes::{Axis, AxisBlock, in_order};
use crate::storage::{Owned, View};
use alloc::vec::Vec;

/// Elements one behind the other: `Vec<T>`, `&[T]` or `&mut [T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory that a `Laid` can have its elements in",
    label = "expected `Vec<T>`, `&[T]` or `&mut [T]`"
)]
pub trait Memory: sealed::Memory + Sized {
    /// The type of the elements.
    type Elem;
    /// The elements, with a size for each dim of `S`.
    #[doc(hidden)]
    type Store<S: Dims>;
    /// The elements with axes that lie contiguously in `order`, in which `sizes` is.
    ///
    /// Panics if the sizes are not those of the elements.
    #[doc(hidden)]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Self::Store<S>;
    /// The elements alone.
    #[doc(hidden)]
    fn release<S: Dims>(store: Self::Store<S>) -> Self;
    #[doc(hidden)]
    fn len_of(&self) -> usize;
    /// The elements as they lie.
    #[doc(hidden)]
    fn elements<S: Dims>(store: &Self::Store<S>) -> &[Self::Elem];
    /// The axes in the order of the set.
    #[doc(hidden)]
    fn axes<S: Dims>(store: &Self::Store<S>) -> &[Axis];
}

/// Memory that is read as a tensor.
#[diagnostic::on_unimplemented(
    message = "a `Laid` in `{Self}` is not a tensor: its elements can be written, too",
    label = "read it through `.view()`"
)]
pub trait Readable: Memory<Elem: Element> {
    /// What yields the elements.
    #[doc(hidden)]
    type Tensor<S: Dims>: Held<Elem = Self::Elem>;
    #[doc(hidden)]
    fn tensor<S: Dims>(store: &Self::Store<S>) -> &Named<Self::Elem, S, Rank0, Self::Tensor<S>>;
    #[doc(hidden)]
    fn into_tensor<S: Dims>(store: Self::Store<S>) -> Named<Self::Elem, S, Rank0, Self::Tensor<S>>;
}

/// Memory that can be written.
#[diagnostic::on_unimplemented(
    message = "the elements of a `Laid` in `{Self}` cannot be changed",
    label = "this needs `Vec<T>` or `&mut [T]`"
)]
pub trait Writable: Memory {
    #[doc(hidden)]
    fn elements_mut<S: Dims>(store: &mut Self::Store<S>) -> &mut [Self::Elem];
}

impl<T> Memory for Vec<T> {
    type Elem = T;
    type Store<S: Dims> = Named<T, S>;

    #[inline]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Named<T, S> {
        Named::from_expr(Owned::in_order(self, order, sizes))
    }

    #[inline]
    fn release<S: Dims>(store: Named<T, S>) -> Vec<T> {
        store.expr.into_vec()
    }

    #[inline]
    fn len_of(&self) -> usize {
        self.len()
    }

    #[inline]
    fn elements<S: Dims>(store: &Named<T, S>) -> &[T] {
        store.expr.all()
    }

    #[inline]
    fn axes<S: Dims>(store: &Named<T, S>) -> &[Axis] {
        store.expr.named().as_slice()
    }
}

impl<T: Element> Readable for Vec<T> {
    type Tensor<S: Dims> = Owned<T, S>;

    #[inline(always)]
    fn tensor<S: Dims>(store: &Named<T, S>) -> &Named<T, S> {
        store
    }

    #[inline(always)]
    fn into_tensor<S: Dims>(store: Named<T, S>) -> Named<T, S> {
        store
    }
}

impl<T> Writable for Vec<T> {
    #[inline]
    fn elements_mut<S: Dims>(store: &mut Named<T, S>) -> &mut [T] {
        store.expr.all_mut()
    }
}

impl<'a, T> Memory for &'a [T] {
    type Elem = T;
    type Store<S: Dims> = (&'a [T], Named<T, S, Rank0, View<'a, T, S>>);

    #[inline]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Self::Store<S> {
        (self, Named::from_expr(View::in_order(self, order, sizes)))
    }

    #[inline]
    fn release<S: Dims>(store: Self::Store<S>) -> &'a [T] {
        store.0
    }

    #[inline]
    fn len_of(&self) -> usize {
        self.len()
    }

    #[inline]
    fn elements<S: Dims>(store: &Self::Store<S>) -> &[T] {
        store.0
    }

    #[inline]
    fn axes<S: Dims>(store: &Self::Store<S>) -> &[Axis] {
        store.1.expr.named().as_slice()
    }
}

impl<'a, T: Element> Readable for &'a [T] {
    type Tensor<S: Dims> = View<'a, T, S>;

    #[inline(always)]
    fn tensor<S: Dims>(store: &Self::Store<S>) -> &Named<T, S, Rank0, View<'a, T, S>> {
        &store.1
    }

    #[inline(always)]
    fn into_tensor<S: Dims>(store: Self::Store<S>) -> Named<T, S, Rank0, View<'a, T, S>> {
        store.1
    }
}

impl<'a, T> Memory for &'a mut [T] {
    type Elem = T;
    type Store<S: Dims> = (&'a mut [T], S::Axes);

    #[inline]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Self::Store<S> {
        let axes = in_order(self.len(), order, sizes);
        (self, axes)
    }

    #[inline]
    fn release<S: Dims>(store: Self::Store<S>) -> &'a mut [T] {
        store.0
    }

    #[inline]
    fn len_of(&self) -> usize {
        self.len()
    }

    #[inline]
    fn elements<S: Dims>(store: &Self::Store<S>) -> &[T] {
        store.0
    }

    #[inline]
    fn axes<S: Dims>(store: &Self::Store<S>) -> &[Axis] {
        store.1.as_slice()
    }
}

impl<T> Writable for &mut [T] {
    #[inline]
    fn elements_mut<S: Dims>(store: &mut Self::Store<S>) -> &mut [T] {
        store.0
    }
}

/// That the elements lie as the type says is trusted by code that reads memory, so only this crate says it.
mod sealed {
    use alloc::vec::Vec;

    pub trait Memory {}
    impl<T> Memory for Vec<T> {}
    impl<T> Memory for &[T] {}
    impl<T> Memory for &mut [T] {}
}
