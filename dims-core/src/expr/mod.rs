//! Expressions: lazy descriptions of a tensor's elements.
//!
//! An elementwise operation on tensors builds one of the types in this module. Reductions, `order`,
//! `eval` and assignments run it: they unify the sizes of the operands ([`Expr::unify`]), collect
//! their strides ([`Expr::rows`]), plan the loops, and lower the expression to a kernel
//! ([`Expr::kernel`]). The dims of the loops are a parameter of the first two steps,
//! because most nodes of an expression do not know them.

use crate::seal::{PRIVATE, Private};
use crate::storage::unchecked::InLine;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::ops::{Factor, Lists};

pub mod affine;
pub(crate) mod evaluate;
pub mod expand;
pub mod facts;
pub mod index;
pub mod keyed;
pub mod leaf;
pub(crate) mod lowered;
pub mod node;
pub mod operand;
pub mod packed;
pub mod rebind;
pub mod remap;
pub mod sized;
pub(crate) mod step;

pub use affine::Affine;
pub use expand::Expand;
pub use facts::Facts;
pub use leaf::{Iota, Scalar};
pub use node::{Binary, Select, Unary};
pub use operand::Operand;
pub use remap::Remap;

use crate::error::{DimError, Origin};
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::Shape;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use evaluate::{collect_parts, in_place};
use kernels::contract;
use kernels::load::Kernel;
use kernels::loops::axes::AxisSet;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::steps::told;
use kernels::loops::stride::{AnyStride, StrideKind};
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

/// Elements in memory, the axes of the dims in the order of their set, and the positional axes.
pub struct Raw<'a, T> {
    /// The elements.
    pub elements: Elements<'a, T>,
    /// The axes of the dims.
    pub named: SmallVec<[Axis; 8]>,
    /// The positional axes.
    pub positional: SmallVec<[Axis; 4]>,
    /// Where the elements were bound.
    pub origin: Origin,
}

impl<'a, T> Raw<'a, T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn new(
        elements: Elements<'a, T>,
        named: &[Axis],
        positional: &[Axis],
        origin: Origin,
    ) -> Self {
        Raw {
            elements,
            named: SmallVec::from_slice(named),
            positional: SmallVec::from_slice(positional),
            origin,
        }
    }
}

/// An element for each position of some loops.
pub trait Expr {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The type of the elements.
    type Elem: Element;

    /// The declared dims that are used as values and take their sizes from other operands.
    #[doc(hidden)]
    type Open: sized::Open;

    /// The kernel that runs in the loops. `W` says what the types determine about the innermost
    /// stride.
    #[doc(hidden)]
    type Kernel<'k, W: StrideKind>: Kernel<Elem = Self::Elem>
    where
        Self: 'k;

    /// Static facts that decide how the expression runs.
    #[doc(hidden)]
    const FACTS: Facts = Facts::COMPUTED;

    /// The elements and their axes, if [`Facts::memory`] is `Some`.
    #[doc(hidden)]
    fn memory(&self) -> ElementsAlong<'_, Self::Elem> {
        unreachable!("the expression is not a tensor in memory")
    }

    /// Both factors and their axes, if [`Facts::pair`] is `Some`.
    #[doc(hidden)]
    fn pair(&self) -> (ElementsAlong<'_, Self::Elem>, ElementsAlong<'_, Self::Elem>) {
        unreachable!("the expression is not a product of two tensors in memory")
    }

    /// The element at a position of a line, if the expression is [simple](Facts::simple) and all
    /// operands are contiguous lines with the [same layout](Expr::alike).
    #[doc(hidden)]
    fn nth(&self, _at: InLine) -> Self::Elem {
        unreachable!("the expression is not simple")
    }

    /// The elements as a tensor with the dims `U`, if they are in memory and no index needs to
    /// be computed.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, Self::Elem>> {
        None
    }

    /// Whether all operands except scalars are in memory and have the same layout: the axes `like`,
    /// one for each dim of `U`. The first of these operands sets `like`, and each adds 1 to
    /// `operands`.
    ///
    /// If [`Facts::layout`] guarantees that the strides agree (`W` is `UnitStride`), only sizes are
    /// compared.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        _like: &mut Option<&'s [Axis]>,
        _operands: &mut usize,
    ) -> bool {
        false
    }

    /// Unifies the operands' sizes with those of loops over the dims `U` and the positional axes
    /// `R`.
    #[doc(hidden)]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError>;

    /// Adds the operands' strides along the loops of [`unify`](Expr::unify) to `rows`.
    #[doc(hidden)]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows);

    /// The expression as a kernel; each operand takes its row of the loop nest.
    #[doc(hidden)]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W>;

    /// The factors of a product as operands of a contraction, and its constant factors. Factors
    /// that are not in memory are computed, over the axes along which they vary.
    #[doc(hidden)]
    #[track_caller]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, Self::Elem>,
    ) -> Result<(), DimError>
    where
        Self::Elem: Num,
    {
        evaluate_factor::<U, R, _>(self, shape, factors)
    }

    /// For each factor of a product, the set of loop axes along which it varies.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, shape: &Shape, supports: &mut contract::Supports) {
        support::<U, R, _>(self, shape, supports);
    }

    /// The expression as a constant plus dims with constant coefficients, if it has this form.
    #[doc(hidden)]
    fn affine(&self) -> Option<Affine<'_>> {
        None
    }

    /// The expression as text, for plans.
    #[doc(hidden)]
    fn describe(&self) -> String;

    /// The expression as a program, with its operands in the order of their [`rows`](Expr::rows).
    /// Called if memory is traced, and to run the expression as a program (see `lowered`).
    #[doc(hidden)]
    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register;

    /// The elements at all positions of a loop nest that was planned for this expression.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn collect(
        &self,
        nest: &Nest,
        to: Destination<'_, Self::Elem>,
        _: Private,
    ) -> Result<Vec<Self::Elem>, DimError> {
        collect_parts(self, nest, to)
    }

    /// Like [`collect`](Expr::collect), for the dims `U` and the positional axes `R` in the order
    /// `order`. Writes over owned elements if possible.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn finish<U: Dims, R: Rank>(
        self,
        nest: &Nest,
        order: &[usize],
        len: usize,
        private: Private,
    ) -> Result<Vec<Self::Elem>, DimError>
    where
        Self: Sized,
    {
        if const { Self::FACTS.owns } {
            in_place::<U, R, AnyStride, _>(self, nest, order, len)
        } else {
            self.collect(nest, Destination::of_step(len), private)
        }
    }

    /// Memory that the expression owns, with `len` elements of the type `T`, if each element is
    /// read only at its own position and the elements are contiguous when all axes are in the order
    /// `order`.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<T: Element, U: Dims, R: Rank>(
        &mut self,
        _order: &[usize],
        _len: usize,
        _: Private,
    ) -> Option<Freed<T>> {
        None
    }

    /// The elements in the memory that [`place`](Expr::place) returned.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<T: Element>(self, _place: &Freed<T>, _: Private) -> Option<Vec<T>>
    where
        Self: Sized,
    {
        None
    }

    /// The elements without a copy, if the expression has the dims `U` and owns its elements,
    /// contiguous in this order of axes.
    #[doc(hidden)]
    fn into_contiguous<U: Dims>(self, _order: &[usize]) -> Result<Vec<Self::Elem>, Self>
    where
        Self: Sized,
    {
        Err(self)
    }

    /// The memory itself, not a copy, if the expression is a tensor with the dims `U` that owns its
    /// elements, contiguous in this order of axes.
    #[doc(hidden)]
    fn shared<U: Dims>(&self, _order: &[usize]) -> Option<Buffer<Self::Elem>> {
        None
    }
}

/// The factors of a product.
pub struct Factors<'s, T: Num> {
    /// The constant factors.
    pub constants: contract::ConstantFactors<T>,
    /// The other factors.
    pub operands: SmallVec<[contract::ContractionFactor<'s, T>; 4]>,
}

/// The lists that factors are added to.
pub(crate) struct FactorLists<'s>(PhantomData<&'s ()>);

impl<'s> Lists for FactorLists<'s> {
    type Of<T: Num> = Factors<'s, T>;
}

/// An operand of a product, over the loops of an expression with the dims `U` and the positional
/// axes `R`.
pub(crate) struct FactorOf<'s, 'p, U, R, E> {
    expr: &'s E,
    shape: &'p Shape,
    loops: PhantomData<(U, R)>,
}

impl<'s, 'p, U, R, E> FactorOf<'s, 'p, U, R, E> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn new(expr: &'s E, shape: &'p Shape) -> Self {
        FactorOf { expr, shape, loops: PhantomData }
    }
}

impl<'s, U: Dims, R: Rank, E: Expr> Factor<E::Elem, FactorLists<'s>> for FactorOf<'s, '_, U, R, E> {
    type Error = DimError;
    const IS_CONSTANT: bool = E::FACTS.factors == 0;

    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn add_to(self, list: &mut Factors<'s, E::Elem>) -> Result<(), DimError>
    where
        E::Elem: Num,
    {
        self.expr.factors::<U, R>(self.shape, list)
    }
}

/// The index of the loop along a dim.
pub(crate) fn outer(shape: &Shape, key: &DimKey) -> usize {
    shape.position(key).expect("the loops have the dim")
}

/// The whole expression as one factor, computed over the axes along which it varies.
#[track_caller]
pub(crate) fn evaluate_factor<U: Dims, R: Rank, E: Expr + ?Sized>(
    expr: &E,
    shape: &Shape,
    factors: &mut Factors<'_, E::Elem>,
) -> Result<(), DimError>
where
    E::Elem: Num,
{
    let sizes = shape.sizes();
    let mut rows = Rows::new(sizes.len());
    expr.rows::<U, R>(shape, &mut rows);
    let order = factor_order(&rows, sizes);
    let len = shape.volume(&order, size_of::<E::Elem>())?;
    let nest = Nest::map(sizes, &order, &rows);
    let data = expr.collect(&nest, Destination::of_step(len), PRIVATE)?;
    told(&data);
    factors.operands.push(contract::ContractionFactor::owned(data, &order, sizes));
    Ok(())
}

/// The axes along which a factor varies, in its memory order.
fn factor_order(rows: &Rows, sizes: &[usize]) -> SmallVec<[usize; 8]> {
    let varies = |&axis: &usize| sizes[axis] != 1 && rows.varies(axis);
    let order: SmallVec<[usize; 8]> = (0..sizes.len()).filter(varies).collect();
    rows.in_memory_order(&order, sizes).unwrap_or(order)
}

/// The axes along which the whole expression varies.
fn support<U: Dims, R: Rank, E: Expr + ?Sized>(expr: &E, shape: &Shape, supports: &mut contract::Supports) {
    let sizes = shape.sizes();
    let mut rows = Rows::new(sizes.len());
    expr.rows::<U, R>(shape, &mut rows);
    supports.push(varying(&rows, sizes));
}

/// The axes of more than one element along which rows vary, as bits.
fn varying(rows: &Rows, sizes: &[usize]) -> AxisSet {
    let varies = |axis: &usize| sizes[*axis] != 1 && rows.varies(*axis);
    (0..sizes.len()).filter(varies).fold(0, |axes, axis| axes | 1 << axis)
}

impl<E: Expr> Expr for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = E::Elem;
    type Open = E::Open;
    type Kernel<'k, W: StrideKind>
        = E::Kernel<'k, W>
    where
        Self: 'k;
    const FACTS: Facts = Facts { owns: false, ..E::FACTS };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> Self::Elem {
        (**self).nth(at)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn memory(&self) -> ElementsAlong<'_, Self::Elem> {
        (**self).memory()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pair(&self) -> (ElementsAlong<'_, Self::Elem>, ElementsAlong<'_, Self::Elem>) {
        (**self).pair()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, Self::Elem>> {
        (**self).in_memory::<U>()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        (**self).alike::<U, W>(like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        (**self).unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        (**self).rows::<U, R>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        (**self).kernel::<W>(operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, Self::Elem>,
    ) -> Result<(), DimError>
    where
        Self::Elem: Num,
    {
        (**self).factors::<U, R>(shape, factors)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, shape: &Shape, supports: &mut contract::Supports) {
        (**self).supports::<U, R>(shape, supports);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn affine(&self) -> Option<Affine<'_>> {
        (**self).affine()
    }

    fn describe(&self) -> String {
        (**self).describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        (**self).write(writer)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    #[track_caller]
    fn collect(
        &self,
        nest: &Nest,
        to: Destination<'_, Self::Elem>,
        private: Private,
    ) -> Result<Vec<Self::Elem>, DimError> {
        (**self).collect(nest, to, private)
    }

    fn shared<U: Dims>(&self, order: &[usize]) -> Option<Buffer<Self::Elem>> {
        (**self).shared::<U>(order)
    }
}
