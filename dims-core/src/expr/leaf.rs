//! Leaves of expressions: tensors, scalars, and dims as values.

use super::affine::Affine;
use super::index::IndexExprs;
use super::sized::Open;
use super::{Expr, Factors, Raw};
use crate::error::DimError;
use crate::expr::Facts;
use crate::expr::evaluate::collect_parts;
use crate::plan::axes::Layout;
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::storage::axes::AxisBlock;
use crate::storage::unchecked::{InLine, collect_memory, factor, nth, strided};
use crate::storage::{Evaluated, View};
use crate::types::brand::{Brand, DimInfo};
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, MAX_DIMS};
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::marker::PhantomData;
use kernels::contract;
use kernels::load::nodes::{Constant, Counter};
use kernels::load::strided::Strided;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::steps::element;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::memory::elements::Elements;
use kernels::memory::freed::Freed;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;
use smallvec::SmallVec;

/// The positions of an operand's dims among the loops, as a constant.
struct DimPositions<S, U>(PhantomData<(S, U)>);

impl<S: Dims, U: Dims> DimPositions<S, U> {
    const POSITIONS: [usize; MAX_DIMS] = S::KEYS.positions_in(U::KEYS);
}

/// Unifies the sizes of one operand's axes with those of the loops.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn unify_axes<S: Dims, U: Dims>(
    named: &S::Axes,
    positional: &[Axis],
    origin: crate::error::Origin,
    shape: &mut Shape,
) -> Result<(), DimError> {
    unify_at(named.as_slice(), &DimPositions::<S, U>::POSITIONS, positional, origin, shape)
}

/// Like [`unify_axes`], with the positions of the axes. (When inlined, the positions are constants.
/// In debug builds, this function is compiled once, because it is not generic.)
#[cfg_attr(not(debug_assertions), inline(always))]
fn unify_at(
    named: &[Axis],
    positions: &[usize; MAX_DIMS],
    positional: &[Axis],
    origin: crate::error::Origin,
    shape: &mut Shape,
) -> Result<(), DimError> {
    for (axis, &at) in named.iter().zip(positions) {
        shape.unify(at, axis.size, origin)?;
    }
    unify_positional(positional, shape)
}

/// Unifies the sizes of the positional axes of one operand with those of the loops.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn unify_positional(positional: &[Axis], shape: &mut Shape) -> Result<(), DimError> {
    for (from_right, axis) in positional.iter().rev().enumerate() {
        shape.unify_positional(from_right, axis.size)?;
    }
    Ok(())
}

/// One operand's strides along the loops.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn axes_row<S: Dims, U: Dims>(named: &S::Axes, positional: &[Axis], row: &mut [isize]) {
    row_at(named.as_slice(), &DimPositions::<S, U>::POSITIONS, positional, row);
}

/// Like [`axes_row`], with the positions of the axes.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn row_at(named: &[Axis], positions: &[usize; MAX_DIMS], positional: &[Axis], row: &mut [isize]) {
    for (axis, &at) in named.iter().zip(positions) {
        row[at] += axis.stride;
    }
    positional_row(positional, row);
}

/// The strides of positional axes, which are the last loops. An axis of size 1 gets stride 0,
/// because it may be broadcast.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn positional_row(positional: &[Axis], row: &mut [isize]) {
    let loops = row.len();
    for (from_right, axis) in positional.iter().rev().enumerate() {
        row[loops - 1 - from_right] = if axis.size == 1 { 0 } else { axis.stride };
    }
}

/// One operand as a factor of a contraction.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn axes_factor<'s, S: Dims, U: Dims, T: Num>(
    elements: Elements<'s, T>,
    named: &S::Axes,
    positional: &[Axis],
    shape: &Shape,
    factors: &mut Factors<'s, T>,
) {
    let mut row = SmallVec::from_elem(0, shape.sizes().len());
    axes_row::<S, U>(named, positional, &mut row);
    factors.operands.push(factor(elements, row));
}

/// [`Expr::alike`] for one operand with axes for the dims `S`.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn alike_axes<'s, S: Dims, U: Dims>(
    named: &'s S::Axes,
    like: &mut Option<&'s [Axis]>,
    operands: &mut usize,
) -> bool {
    *operands += 1;
    is_alike(named.as_slice(), U::KEYS.as_slice(), like)
}

/// The part of [`alike_axes`] that is not generic; `keys` are those of `U`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn is_alike<'s>(own: &'s [Axis], keys: &[DimKey], like: &mut Option<&'s [Axis]>) -> bool {
    own.len() == keys.len()
        && own.iter().zip(keys).all(|(axis, key)| key.fixed.is_none_or(|size| size == axis.size))
        && *like.get_or_insert(own) == own
}

impl<T: Element, S: Dims, R: Rank> Expr for Evaluated<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = Strided<'k, T, (), W::OfAny>
    where
        Self: 'k;
    const FACTS: Facts = Facts {
        owns: true,
        factors_in_memory: 1,
        memory: if R::N == 0 { Some(S::KEYS) } else { None },
        simple: true,
        ..Facts::COMPUTED
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> T {
        nth(self.elements(), at)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn memory(&self) -> ElementsAlong<'_, T> {
        (self.elements(), self.named().as_slice())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, T>> {
        let (named, positional) = (self.named().as_slice(), self.positional().as_slice());
        Some(Raw::new(self.elements(), named, positional, self.origin()))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        R::N == 0 && alike_axes::<S, U>(self.named(), like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, V: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        unify_axes::<S, U>(self.named(), self.positional().as_slice(), self.origin(), shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, V: Rank>(&self, _: &Shape, rows: &mut Rows) {
        axes_row::<S, U>(self.named(), self.positional().as_slice(), rows.push());
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        strided(self.elements(), operands.next_row(), ())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, V: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, T>,
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        axes_factor::<S, U, T>(self.elements(), self.named(), self.positional().as_slice(), shape, factors);
        Ok(())
    }

    fn describe(&self) -> String {
        "tensor".into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        writer.elements(self.elements(), Some(self.buffer()))
    }

    #[inline]
    fn collect(&self, nest: &Nest, to: Destination<'_, T>, _: Private) -> Result<Vec<T>, DimError> {
        Ok(collect_memory(self.elements(), nest, to, "order of the result")?)
    }

    #[inline]
    fn finish<U: Dims, V: Rank>(
        self,
        nest: &Nest,
        _: &[usize],
        len: usize,
        private: Private,
    ) -> Result<Vec<T>, DimError> {
        // Here the elements must be copied: `into_contiguous` has already taken untraced ones that
        // have this order.
        self.collect(nest, Destination::of_step(len), private)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<W: Element, U: Dims, V: Rank>(
        &mut self,
        order: &[usize],
        len: usize,
        _: Private,
    ) -> Option<Freed<W>> {
        // If the tensor lacks an axis of the loops, an element is read at several positions.
        let all = S::KEYS.as_slice().len() == U::KEYS.as_slice().len() && R::N == V::N;
        let fits = all && self.all().len() == len && self.is_contiguous(order);
        if fits { self.free() } else { None }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<W: Element>(self, place: &Freed<W>, _: Private) -> Option<Vec<W>> {
        self.into_freed(place)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_contiguous<U: Dims>(self, order: &[usize]) -> Result<Vec<T>, Self> {
        Evaluated::into_contiguous(self, order)
    }

    fn shared<U: Dims>(&self, order: &[usize]) -> Option<Buffer<T>> {
        let fits = S::KEYS.is_same(U::KEYS) && order.len() == S::KEYS.as_slice().len() + R::N;
        if fits { self.shared_contiguous(order) } else { None }
    }
}

impl<T: Element, S: Dims, R: Rank, X: IndexExprs> Expr for View<'_, T, S, R, X> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = Strided<'k, T, X::Kernels<'k>, W::OfAny>
    where
        Self: 'k;
    const FACTS: Facts = Facts {
        factors_in_memory: if X::ANY { 0 } else { 1 },
        memory: if R::N == 0 && !X::ANY { Some(S::KEYS) } else { None },
        simple: !X::ANY,
        ..Facts::COMPUTED
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> T {
        nth(self.elements(), at)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn memory(&self) -> ElementsAlong<'_, T> {
        (self.elements(), self.named().as_slice())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, T>> {
        if self.indices().any_active() {
            return None;
        }
        let (named, positional) = (self.named().as_slice(), self.positional().as_slice());
        Some(Raw::new(self.elements(), named, positional, self.origin()))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        R::N == 0 && !X::ANY && alike_axes::<S, U>(self.named(), like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, V: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        unify_axes::<S, U>(self.named(), self.positional().as_slice(), self.origin(), shape)?;
        self.indices().unify::<U, V>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, V: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        axes_row::<S, U>(self.named(), self.positional().as_slice(), rows.push());
        self.indices().rows::<U, V>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        let row = operands.next_row();
        let indices = self.indices().kernels(operands);
        strided(self.elements(), row, indices)
    }

    fn describe(&self) -> String {
        if self.indices().any_active() { "gather".into() } else { "view".into() }
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        let elements = writer.elements(self.elements(), None);
        self.indices().write(writer, elements);
        elements
    }

    #[inline]
    fn collect(&self, nest: &Nest, to: Destination<'_, T>, _: Private) -> Result<Vec<T>, DimError> {
        if X::ANY && self.indices().any_active() {
            return collect_parts(self, nest, to);
        }
        Ok(collect_memory(self.elements(), nest, to, "order of the result")?)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, V: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, T>,
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        if X::ANY && self.indices().any_active() {
            return super::evaluate_factor::<U, V, _>(self, shape, factors);
        }
        axes_factor::<S, U, T>(self.elements(), self.named(), self.positional().as_slice(), shape, factors);
        Ok(())
    }
}

/// One value at all positions.
#[derive(Clone, Copy, Debug)]
pub struct Scalar<T>(pub T);

impl<T: Element> Expr for Scalar<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Open = ();
    type Kernel<'k, W: StrideKind> = Constant<T>;
    const FACTS: Facts = Facts { factors: 0, layout: Layout::Free, simple: true, ..Facts::COMPUTED };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, _: InLine) -> T {
        self.0
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(&'s self, _: &mut Option<&'s [Axis]>, _: &mut usize) -> bool {
        true
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, _: &mut Shape) -> Result<(), DimError> {
        Ok(())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, _: &Shape, _: &mut Rows) {}

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, _: &mut OperandRows<'k>) -> Constant<T> {
        Constant(self.0)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        _: &Shape,
        factors: &mut Factors<'s, T>,
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        factors.constants.push((factors.operands.len(), self.0));
        Ok(())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, _: &Shape, _: &mut contract::Supports) {}

    fn describe(&self) -> String {
        element(&self.0)
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        writer.constant(self.0)
    }

    fn affine(&self) -> Option<Affine<'_>> {
        (&self.0 as &dyn Any).downcast_ref::<isize>().map(|&offset| Affine::constant(offset))
    }
}

/// A dim as a value: its indices, which count from 0. `O` lists the dim if it is a declared dim
/// without a size, such as `Batch`; see [`Open`].
pub struct Iota<'a, B, O = ()> {
    dim: DimInfo<'a>,
    marker: PhantomData<fn() -> (B, O)>,
}

impl<B, O> Clone for Iota<'_, B, O> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B, O> Copy for Iota<'_, B, O> {}

impl<'a, B: Brand, O> Iota<'a, B, O> {
    /// The indices of a dim.
    pub fn new<D: DimRef<Brand = B, Open = O> + 'a>(dim: D) -> Self {
        Iota { dim: dim.info(), marker: PhantomData }
    }
}

impl<B: Brand, O: Open> Expr for Iota<'_, B, O> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = isize;
    type Open = O;
    type Kernel<'k, W: StrideKind>
        = Counter<'k>
    where
        Self: 'k;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        let at = shape.position(&self.dim.key()).expect("the loops have each dim that is used as a value");
        let origin = self.dim.given.and_then(|(_, origin)| origin);
        shape.unify(at, self.dim.size_of_loop()?, origin)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        let at = shape.position(&self.dim.key()).expect("the loops have each dim that is used as a value");
        rows.push()[at] = 1;
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Counter<'k> {
        Counter::new(operands.next_row())
    }

    fn describe(&self) -> String {
        self.dim.name.into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        writer.position()
    }

    fn affine(&self) -> Option<Affine<'_>> {
        Some(Affine::dim(self.dim))
    }
}
