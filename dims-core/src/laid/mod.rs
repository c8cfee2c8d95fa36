//! Typed layouts: tensors whose type fixes the order of their axes in memory.
//!
//! The dims of a [`Tensor`](crate::tensors::named::Tensor) are a set, and its memory layout is only
//! known at run time. If code depends on the order, for example to pass elements to another
//! library, use [`Laid<T, (N, H, W, C)>`](Laid): its elements are contiguous, and the last dim is
//! the fastest.
//!
//! ```text
//! fn encode(image: &Laid<u8, (H, W, C)>) -> Vec<u8> { codec::encode(image.as_slice()) }
//!
//! encode(&image.laid((H, W, C)))          copies elements only if they are in another order or shared
//! encode(&image.laid((C, H, W)))          expected `&Laid<u8, (H, W, C)>`, found `&Laid<u8, (C, H, W)>`
//! ```

mod memory;
mod operators;
mod regroup;
mod sources;
mod tensor;

pub use crate::storage::packed::Packed;
pub use memory::{Lent, Memory, Writable};
pub use regroup::{Divided, Neighbors, SideBySide, UnionOf};

use crate::creation::convert::AxisDims;
use crate::error::{DimError, unwrap};
use crate::execute::assign::{Covers, CoversAxes, fill_typed};
use crate::execute::loops::check_taken;
use crate::execute::order::ArrayRank;
use crate::expr::evaluate::{evaluate, evaluate_typed, typed_operands};
use crate::expr::{Expr, Operand};
use crate::plan::axes::AxisList;
use crate::storage::{Evaluated, Place};
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::brand::Rest;
use crate::types::dim::DimList;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::distinct::{Once, SortOnce};
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::{Dims, DimsOf, SetOf};
use alloc::vec::Vec;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use ndarray::{ArrayView, ArrayViewMut};
use smallvec::SmallVec;
use twins::panicking_twin;

/// A tensor whose elements are contiguous in the order of the dims `L`, the last one fastest:
/// `Laid<f32, (N, H, W, C)>`.
///
/// It owns its elements, or borrows them (`M`):
///
/// ```text
/// Laid<f32, (H, W, C)>                    made by `tensor.laid((H, W, C))`, or `vec.into_laid(..)`
/// Laid<f32, (H, W, C), &[f32]>            made by `slice.into_laid(..)`, or `laid.view()`
/// Laid<f32, (H, W, C), &mut [f32]>        made by `slice_mut.into_laid(..)`, or `laid.view_mut()`
/// ```
///
/// It derefs to a tensor, and can be used in all operations. A few functions, such as `batched` and
/// `grad`, need the tensor itself: pass `&*laid`, or `&laid.eval()` if the elements are borrowed.
///
/// If all tensors of an expression have the same layout, and the result is stored in the same order
/// (without the reduced dims), rustc knows everything about the loops but their lengths. In a small
/// product of two matrices that sums over one dim, the types determine along which axis (rows,
/// columns or the sum) the elements of each matrix are adjacent, and therefore which kernel runs.
/// Rows, columns and batch may each span several dims if these are adjacent. In both cases, the
/// [plan](crate::plan::explain) shows `strides known to rustc`. Otherwise, strides are examined at
/// run time.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { pub struct H; pub struct W; pub struct C = 3; pub struct Pixel; }
/// /// Stands for another library, which needs the elements in this order.
/// fn encode(image: Laid<u8, (H, W, C), &[u8]>) -> usize {
///     image.as_slice().len()
/// }
///
/// let image = from_fn((H.of(8), W.of(16), C), |(h, w, c)| (h * 48 + w * 3 + c) as u8);
/// // This is the order of the set, so nothing is moved.
/// let laid: Laid<u8, (H, W, C)> = image.laid((H, W, C));
/// assert_eq!(encode(laid.view()), 384);
///
/// let (twice, plan) = explain(|| (&laid * 2).laid((H, W, C)));
/// assert!(plan.to_string().contains("loops [384], operand strides known to rustc [1]"));
///
/// let pixels: Laid<u8, (Pixel, C)> = twice.flatten((H, W), Pixel);
/// assert_eq!(pixels.as_slice()[..6], [0, 2, 4, 6, 8, 10]);
///
/// // Memory of other libraries is read and written in place.
/// let mut bytes = vec![0u8; 384];
/// (&mut bytes).into_laid((Pixel, C)).assign(&pixels + 1);
/// assert_eq!(bytes[..3], [1, 3, 5]);
/// ```
pub struct Laid<T: Element, L: SetOf, M: Memory<Elem = T> = Vec<T>>(
    Named<T, L::Set, Rank0, M::Tensor<L::Set>>,
);

/// The dims of a list as a tuple, in the order in which they are written.
pub type InOrder<D> = Once<<D as DimList>::Brands>;

/// The dims of a tuple, as nested pairs.
type ListOf<L> = <L as Dims>::List;

/// The axes of the set `S` in the order in which `D` names them.
const fn order_of<D: DimList, S: Dims>() -> AxisList {
    AxisList::of(D::KEYS, S::KEYS)
}

/// Converts tensors to a typed layout.
pub trait Lay: Computable<Rank = Rank0> {
    /// The tensor with its elements contiguous in the order of `dims`, which must be all its dims.
    ///
    /// If the tensor owns elements that are already in this order, and no gradient or recorded
    /// function traces them, they are copied only if a clone shares them, and
    /// [`explain`](crate::plan::explain::explain) shows no step. An expression is computed in this
    /// order. Other elements are copied, which is a step of the plan.
    ///
    /// # Panics
    ///
    /// If a size given in `dims` differs from the tensor's, if an expression cannot be computed, or
    /// if the result does not fit into memory.
    #[panicking_twin]
    fn try_laid<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(
        self,
        dims: D,
    ) -> Result<Laid<Self::Elem, InOrder<D>>, DimError>
    where
        <D as DimList>::Brands: List + SortOnce,
        InOrder<D>: SetOf,
    {
        let order = const { &order_of::<D, Self::Dims>() }.as_slice();
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_all_given(&dims)?;
        let data = if const { typed_operands::<Self::Dims, Self::Expr>(&order_of::<D, Self::Dims>()).is_some() }
        {
            let operands = const { typed_operands::<Self::Dims, Self::Expr>(&order_of::<D, Self::Dims>()) };
            evaluate_typed::<Self::Dims, _>(tensor.expr, &shape, order, operands)?
        } else {
            evaluate::<Self::Dims, Rank0, _>(tensor.expr, &shape, order)?
        };
        let sizes = shape.sizes_in(order);
        // The named dims are all dims of the tensor.
        let order = const { &order_of::<D, <InOrder<D> as SetOf>::Set>() }.as_slice();
        Ok(Laid(Named::from_expr(Evaluated::in_order(data, order, &sizes))))
    }
}

/// The condition that the layout `D` names all dims of the tensor.
#[diagnostic::on_unimplemented(
    message = "the layout `{D}` lacks the dims `{Self}` of the tensor",
    label = "a layout names all dims"
)]
pub trait LaidWhole<D>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<D> LaidWhole<D> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
#[diagnostic::do_not_recommend]
impl<D> LaidWhole<D> for (Rest<()>,) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<A: Computable<Rank = Rank0>> Lay for A {}

/// Converts contiguous elements to tensors with a typed layout without copying: vectors, slices,
/// and ndarray arrays and views in standard layout, or references to them.
pub trait IntoLaid {
    /// The memory of the elements.
    type Memory: Memory;
    /// The number of axes, if it is known.
    type Rank;

    /// The elements with a dim for each axis, the last one fastest.
    ///
    /// The sizes are those of the array. For a vector or a slice they come from the dims; one of
    /// them may be unknown.
    #[panicking_twin(
        but = "it is an error if sizes do not match the elements, if an array is not in standard layout, or if an owned array is only part of its vector"
    )]
    fn try_into_laid<D: AxisDims<Self::Rank, Brands: List + SortOnce>>(
        self,
        dims: D,
    ) -> Result<LaidIn<Self::Memory, D>, DimError>
    where
        Self: Sized,
        InOrder<D>: SetOf;
}

/// The elements of `M` in the order in which `D` names the dims.
pub type LaidIn<M, D> = Laid<<M as Memory>::Elem, InOrder<D>, M>;

impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> Laid<T, L, M> {
    /// A tensor over contiguous elements in this `order` of the axes of the set. `sizes` are in the
    /// same order.
    #[track_caller]
    fn of(memory: M, order: &[usize], sizes: &[usize]) -> Self {
        Laid(Named::from_expr(memory.store(order, sizes)))
    }

    /// The axes of the set in memory order.
    const ORDER: &'static AxisList = &AxisList::of(L::KEYS, <L::Set as Dims>::KEYS);

    /// The sizes of the axes, in memory order.
    pub fn sizes(&self) -> Vec<usize> {
        let axes = M::axes(&self.0.expr);
        Self::ORDER.as_slice().iter().map(|&axis| axes[axis].size).collect()
    }

    /// The elements in memory order.
    ///
    /// # Panics
    ///
    /// If a gradient is taken through the tensor, or if the tensor depends on inputs of a function
    /// that is being recorded, because plain numbers cannot be recorded. For a gradient, call
    /// `x.detach()` first.
    #[track_caller]
    pub fn as_slice(&self) -> &[T] {
        self.leaves("as_slice");
        M::elements(&self.0.expr)
    }

    /// Panics if the elements cannot be taken out: see [`as_slice`](Laid::as_slice).
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn leaves(&self, operation: &'static str) {
        unwrap(check_taken(M::elements(&self.0.expr), operation));
    }

    /// The elements in memory order, mutably. If a clone shares them, they are copied first.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn as_mut_slice(&mut self) -> &mut [T]
    where
        M: Writable,
    {
        M::elements_mut(&mut self.0.expr)
    }

    /// A borrowed tensor over the same elements.
    pub fn view(&self) -> Laid<T, L, &[T]> {
        Laid::of(M::elements(&self.0.expr), Self::ORDER.as_slice(), &self.sizes())
    }

    /// A mutably borrowed tensor over the same elements.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn view_mut(&mut self) -> Laid<T, L, &mut [T]>
    where
        M: Writable,
    {
        let sizes = self.sizes();
        Laid::of(self.as_mut_slice(), Self::ORDER.as_slice(), &sizes)
    }

    /// The elements as an ndarray view with the same axes. Nothing is copied.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn as_array(&self) -> ArrayView<'_, T, NdOfList<L>> {
        self.leaves("as_array");
        let view = ArrayView::from_shape(self.sizes(), M::elements(&self.0.expr))
            .expect("the sizes are those of the elements");
        view.into_dimensionality().expect("each dim is an axis")
    }

    /// The elements as a mutable ndarray view with the same axes. If a clone shares them, they are
    /// copied first.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn as_array_mut(&mut self) -> ArrayViewMut<'_, T, NdOfList<L>>
    where
        M: Writable,
    {
        let sizes = self.sizes();
        let view = ArrayViewMut::from_shape(sizes, self.as_mut_slice())
            .expect("the sizes are those of the elements");
        view.into_dimensionality().expect("each dim is an axis")
    }

    /// The elements as a [`Place`], for `add_assign` and similar methods.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn as_place(&mut self) -> Place<'_, T, L::Set>
    where
        M: Writable,
    {
        let sizes = self.sizes();
        Place::in_order(self.as_mut_slice(), Self::ORDER.as_slice(), &sizes)
    }

    /// Replaces the elements with those of `value`, which is broadcast along the dims that it
    /// lacks.
    ///
    /// # Panics
    ///
    /// If sizes conflict, if an index of `value` is out of range, if a gradient is taken through
    /// the tensor or `value`, or if one of them depends on inputs of a function that is being
    /// recorded.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn assign<B: Operand<T, Expr: Expr<Elem = T>>>(&mut self, value: B) where M: Writable,
        L::Set: Covers<B::Dims>,
        Rank0: CoversAxes<B::Rank>,
    {
        if const { typed_operands::<L::Set, B::Expr>(Self::ORDER).is_some() } {
            let operands = const { typed_operands::<L::Set, B::Expr>(Self::ORDER) };
            let own: SmallVec<[Axis; 8]> = M::axes(&self.0.expr).into();
            let value = value.into_expr();
            let done = fill_typed::<L::Set, _>(&value, &own, self.as_mut_slice(), operands.unwrap_or(0));
            if !unwrap(done) {
                self.as_place().assign(Named::<T, B::Dims, B::Rank, _>::from_expr(value));
            }
        } else {
            self.as_place().assign(value);
        }
    }
}

/// The dimension type of an ndarray array with an axis for each dim of `L`.
pub type NdOfList<L> = <<ListOf<L> as NestedPairs>::Count as Rank>::Nd;

impl<T: Element, L: SetOf + Dims> Laid<T, L> {
    /// The elements in memory order. Nothing is copied, unless a clone shares the elements.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn into_vec(self) -> Vec<T> {
        self.leaves("into_vec");
        Vec::release::<L::Set>(self.0.expr)
    }

    /// The elements as an ndarray array with the same axes in standard layout. Nothing is copied,
    /// unless a clone shares the elements.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn into_array(self) -> <<ListOf<L> as NestedPairs>::Count as ArrayRank>::Array<T>
    where
        ListOf<L>: NestedPairs<Count: ArrayRank>,
    {
        self.leaves("into_array");
        let sizes = self.sizes();
        <<ListOf<L> as NestedPairs>::Count as ArrayRank>::array(self.into_vec(), &sizes)
    }
}

impl<'a, T: Element, L: SetOf + Dims> Laid<T, L, &'a [T]> {
    /// The elements in memory order, with the lifetime of the borrowed slice.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn into_slice(self) -> &'a [T] {
        self.leaves("into_slice");
        <&[T]>::release::<L::Set>(self.0.expr)
    }

    /// The elements as an ndarray view with the same axes and the lifetime of the borrowed slice.
    /// Nothing is copied.
    ///
    /// # Panics
    ///
    /// In the same cases as [`as_slice`](Laid::as_slice).
    #[track_caller]
    pub fn into_array(self) -> ArrayView<'a, T, NdOfList<L>> {
        let sizes = self.sizes();
        let view =
            ArrayView::from_shape(sizes, self.into_slice()).expect("the sizes are those of the elements");
        view.into_dimensionality().expect("each dim is an axis")
    }
}

impl<'a, T: Element, L: SetOf + Dims> Laid<T, L, &'a mut [T]> {
    /// The elements in memory order, with the lifetime of the borrowed slice.
    pub fn into_slice(self) -> &'a mut [T] {
        <&mut [T]>::release::<L::Set>(self.0.expr)
    }
}

impl<T: Element, L: SetOf, M: Memory<Elem = T>> Laid<T, L, M> {
    /// The tensor without a typed layout. Nothing is copied. If the tensor owns its elements,
    /// [`laid`](Lay::laid) with the same order is the inverse.
    pub fn into_inner(self) -> Named<T, L::Set, Rank0, M::Tensor<L::Set>> {
        self.0
    }
}
