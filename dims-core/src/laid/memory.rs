//! The memory of a [`Laid`](super::Laid), owned or borrowed.

use crate::error::DimError;
use crate::expr::Facts;
use crate::expr::leaf::{alike_axes, axes_factor, axes_row, unify_axes};
use crate::expr::packed::Packable;
use crate::expr::sized::Gives;
use crate::expr::{Expr, Factors, Raw};
use crate::plan::direct;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::storage::Evaluated;
use crate::storage::axes::{AxisBlock, in_order};
use crate::storage::leaf::Leaf;
use crate::storage::unchecked::{collect_memory, strided};
use crate::types::rank::{Rank, Rank0};
use crate::types::set::remove::{Found, Removal, Remove};
use crate::types::set::{Dims, MaybeDim};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Deref;
use kernels::load::strided::Strided;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
use kernels::memory::elements::Elements;
use kernels::scalar::{Element, Num};

/// Contiguous elements: `Vec<T>`, `&[T]` or `&mut [T]`.
#[diagnostic::on_unimplemented(
    message = "a `Laid` cannot have its elements in `{Self}`",
    label = "expected `Vec<T>`, `&[T]` or `&mut [T]`"
)]
pub trait Memory: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;
    /// The expression of a tensor with the dims `S` over this memory.
    #[doc(hidden)]
    type Tensor<S: Dims>: Packable<Elem = Self::Elem>;
    /// The elements with contiguous axes in this `order`. `sizes` are in the same order.
    ///
    /// Panics if the product of the sizes is not the number of elements.
    #[doc(hidden)]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Self::Tensor<S>;
    /// The elements without axes.
    #[doc(hidden)]
    fn release<S: Dims>(tensor: Self::Tensor<S>) -> Self;
    /// The same elements with other axes.
    #[doc(hidden)]
    fn with_axes<S: Dims, N: Dims>(
        tensor: Self::Tensor<S>,
        order: &[usize],
        sizes: &[usize],
    ) -> Self::Tensor<N> {
        Self::release::<S>(tensor).store(order, sizes)
    }
    #[doc(hidden)]
    fn count(&self) -> usize;
    /// The elements in memory order.
    #[doc(hidden)]
    fn elements<S: Dims>(tensor: &Self::Tensor<S>) -> &[Self::Elem];
    /// The axes in the order of the set.
    #[doc(hidden)]
    fn axes<S: Dims>(tensor: &Self::Tensor<S>) -> &[Axis];
}

/// Memory that can be written.
#[diagnostic::on_unimplemented(
    message = "the elements of a `Laid` in `{Self}` cannot be changed",
    label = "this needs `Vec<T>` or `&mut [T]`"
)]
pub trait Writable: Memory {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    #[doc(hidden)]
    fn elements_mut<S: Dims>(tensor: &mut Self::Tensor<S>) -> &mut [Self::Elem];
}

impl<T: Element> Memory for Vec<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Tensor<S: Dims> = Evaluated<T, S>;

    #[inline]
    #[track_caller]
    fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Evaluated<T, S> {
        Evaluated::in_order(self, order, sizes)
    }

    #[inline]
    fn release<S: Dims>(tensor: Evaluated<T, S>) -> Vec<T> {
        tensor.into_vec()
    }

    /// Keeps the buffer, because a recorded program may refer to it.
    #[inline]
    #[track_caller]
    fn with_axes<S: Dims, N: Dims>(
        tensor: Evaluated<T, S>,
        order: &[usize],
        sizes: &[usize],
    ) -> Evaluated<T, N> {
        Evaluated::in_order(tensor.into_buffer(), order, sizes)
    }

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn elements<S: Dims>(tensor: &Evaluated<T, S>) -> &[T] {
        tensor.all()
    }

    #[inline]
    fn axes<S: Dims>(tensor: &Evaluated<T, S>) -> &[Axis] {
        tensor.named().as_slice()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element> Writable for Vec<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    #[track_caller]
    fn elements_mut<S: Dims>(tensor: &mut Evaluated<T, S>) -> &mut [T] {
        tensor.all_mut()
    }
}

macro_rules! slices {
    ($($slice:ty;)*) => {$(
        impl<'a, T: Element> Memory for $slice {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Elem = T;
            type Tensor<S: Dims> = Lent<$slice, S>;

            #[inline]
            fn store<S: Dims>(self, order: &[usize], sizes: &[usize]) -> Lent<$slice, S> {
                let axes = in_order(self.len(), order, sizes);
                Lent { data: self, axes }
            }

            #[inline]
            fn release<S: Dims>(tensor: Lent<$slice, S>) -> Self {
                tensor.data
            }

            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            #[inline]
            fn elements<S: Dims>(tensor: &Self::Tensor<S>) -> &[T] {
                tensor.data
            }

            #[inline]
            fn axes<S: Dims>(tensor: &Self::Tensor<S>) -> &[Axis] {
                tensor.axes.as_slice()
            }
        }
    )*};
}

slices! {
    &'a [T];
    &'a mut [T];
}

#[diagnostic::do_not_recommend]
impl<T: Element> Writable for &mut [T] {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[inline]
    fn elements_mut<S: Dims>(tensor: &mut Self::Tensor<S>) -> &mut [T] {
        tensor.data
    }
}

/// All elements of a borrowed slice `M`, contiguous in some order of the dims `S`.
pub struct Lent<M, S: Dims> {
    data: M,
    axes: S::Axes,
}

impl<M: Clone, S: Dims> Clone for Lent<M, S> {
    fn clone(&self) -> Self {
        Lent { data: self.data.clone(), axes: self.axes }
    }
}

impl<M: Copy, S: Dims> Copy for Lent<M, S> {}

impl<T: Element, M: Deref<Target = [T]>, S: Dims> Lent<M, S> {
    /// The elements. `store` has checked that the axes match the number of elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    fn borrowed(&self) -> Elements<'_, T> {
        Elements::of_slice(&self.data)
    }
}

const NO_AXES: <Rank0 as Rank>::Axes = [];

impl<T: Element, M: Deref<Target = [T]>, S: Dims> Packable for Lent<M, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<T: Element, M: Deref<Target = [T]>, S: Dims> Expr for Lent<M, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = Strided<'k, T, (), W>
    where
        Self: 'k;
    const FACTS: Facts = Facts { factors_in_memory: 1, memory: Some(S::KEYS), ..Facts::COMPUTED };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn memory(&self) -> direct::ElementsAlong<'_, T> {
        (self.borrowed(), self.axes.as_slice())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, T>> {
        Some(Raw::new(self.borrowed(), self.axes.as_slice(), &[], None))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        alike_axes::<S, U>(&self.axes, like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        unify_axes::<S, U>(&self.axes, &[], None, shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, _: &Shape, rows: &mut Rows) {
        axes_row::<S, U>(&self.axes, &[], rows.push());
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        // `W` fixes the innermost stride at 1 only if `Facts::layout` does.
        strided(self.borrowed(), operands.next_row(), ())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, T>,
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        axes_factor::<S, U, T>(self.borrowed(), &self.axes, &[], shape, factors);
        Ok(())
    }

    fn describe(&self) -> String {
        "view".into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut kernels::trace::record::Writer<'w>) -> kernels::program::Register {
        writer.elements(self.borrowed(), None)
    }

    #[inline]
    fn collect(&self, nest: &Nest, to: Destination<'_, T>, _: Private) -> Result<Vec<T>, DimError> {
        Ok(collect_memory(self.borrowed(), nest, to, "order of the result")?)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, M: Deref<Target = [T]>, S: Dims> Leaf<T, S, Rank0> for Lent<M, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn leaf(&self) -> (Elements<'_, T>, &S::Axes, &<Rank0 as Rank>::Axes) {
        (self.borrowed(), &self.axes, &NO_AXES)
    }
}

impl<D: MaybeDim, M, S: Dims<List: Remove<D, Out: Removal>>> Gives<D> for Lent<M, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = Found<D, S>;
}
