//! Lazy renaming, slicing, picking and splitting of the dims of any expression.
//!
//! Each axis of the inner expression is an affine function of the outer axes. The strides of every
//! operand are mapped by these functions, so any kind of expression can be remapped.

use super::{Expr, Factors, Raw, outer};
use crate::error::DimError;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::storage::unchecked::factor;
use crate::types::dim::UNSIZED;
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims, Keys};
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::Num;
#[cfg(feature = "std")]
use kernels::trace::record::Writer;
use smallvec::SmallVec;

/// Adds strides. An axis of size 1 can have any stride, so the sum may overflow, but no loop uses
/// this stride.
fn add(sum: &mut isize, stride: isize) {
    *sum = sum.wrapping_add(stride);
}

/// One inner dim as a function of the outer dims: `offset + sum of step * dim`.
#[derive(Clone, Debug)]
pub struct Along {
    /// The inner position if all outer positions are 0.
    pub offset: usize,
    /// The size that the inner dim must have, if this size is known.
    pub inner: Option<usize>,
    /// The outer dims, each with its step and its size (`None` for the inner dim's size).
    pub terms: Terms,
}

/// Outer dims, each with its step and its size.
pub type Terms = SmallVec<[(DimKey, isize, Option<usize>); 2]>;

/// One outer dim. (Pushed, because collecting an iterator would move the large key more often.)
#[inline]
pub fn term(key: DimKey, step: isize, size: Option<usize>) -> Terms {
    let mut terms = Terms::new();
    terms.push((key, step, size));
    terms
}

/// The changed dims, each with its function of the outer dims.
pub type Changes = SmallVec<[(DimKey, Along); 1]>;

/// An expression over the dims `S`, read along other dims. Dims without a change are kept.
pub struct Remap<E, S, R> {
    inner: E,
    changes: Changes,
    marker: PhantomData<fn() -> (S, R)>,
}

/// The change of a dim, if any.
fn change<'c>(changes: &'c Changes, key: &DimKey) -> Option<&'c Along> {
    changes.iter().find(|(changed, _)| changed.same(key)).map(|(_, along)| along)
}

/// Adds the strides along the dims `keys` to the strides along the loops, and copies those along
/// positional axes. Returns the offset of the first element.
pub(crate) fn spread(
    changes: &Changes,
    keys: &[DimKey],
    strides: &[isize],
    shape: &Shape,
    row: &mut [isize],
) -> isize {
    let (named, positional) = strides.split_at(keys.len());
    let mut moved = 0;
    for (key, &stride) in keys.iter().zip(named) {
        match change(changes, key) {
            None => add(&mut row[outer(shape, key)], stride),
            Some(along) => {
                add(&mut moved, stride.wrapping_mul(along.offset as isize));
                for (key, step, _) in &along.terms {
                    add(&mut row[outer(shape, key)], stride.wrapping_mul(*step));
                }
            }
        }
    }
    let loops = row.len();
    for (from_right, &stride) in positional.iter().rev().enumerate() {
        row[loops - 1 - from_right] = stride;
    }
    moved
}

/// The positions of the inner dims whose loops are the axes of `order`, if dims are only renamed.
/// `own` are the outer dims.
fn renamed(changes: &Changes, inner: &Keys, own: &Keys, order: &[usize]) -> Option<SmallVec<[usize; 8]>> {
    let (own, inner) = (own.as_slice(), inner.as_slice());
    let is_name = |along: &Along, of: &DimKey| match &along.terms[..] {
        [(key, 1, size)] => key.same(of) && along.offset == 0 && (size.is_none() || *size == along.inner),
        _ => false,
    };
    let place = |&at: &usize| match own.get(at) {
        Some(of) => inner.iter().position(|key| match change(changes, key) {
            Some(along) => is_name(along, of),
            None => key.same(of),
        }),
        None => Some(at),
    };
    if own.len() == inner.len() { order.iter().map(place).collect() } else { None }
}

/// Tells `shape` the sizes of the outer axes that follow from `inner`, the shape of the inner
/// expression, which has the dims `keys`.
fn unify_outer(changes: &Changes, keys: &Keys, inner: &Shape, shape: &mut Shape) -> Result<(), DimError> {
    for (at, key) in keys.as_slice().iter().enumerate() {
        let (size, origin) = inner.known(at);
        let Some(along) = change(changes, key) else {
            shape.unify(outer(shape, key), size, origin)?;
            continue;
        };
        if let (Some(expected), true) = (along.inner, size != UNSIZED) {
            assert_eq!(expected, size, "the size of `{}` is the one that was checked", key.name);
        }
        for (key, _, own) in &along.terms {
            shape.unify(outer(shape, key), own.unwrap_or(size), origin)?;
        }
    }
    let proposed = inner.proposed().iter();
    for (at, size) in proposed.flat_map(|&(at, size)| keys.kin_of(at).map(move |kin| (kin, size))) {
        let key = &keys.as_slice()[at];
        match change(changes, key).map(|along| &along.terms[..]) {
            None => shape.propose(outer(shape, key), size),
            // A renamed dim.
            Some([(key, 1, None)]) => shape.propose(outer(shape, key), size),
            Some(_) => {}
        }
    }
    for (from_right, &size) in inner.positional().iter().rev().enumerate() {
        shape.unify_positional(from_right, size)?;
    }
    Ok(())
}

/// Adds the rows of the inner operands to `rows`, along the outer axes.
fn spread_rows(changes: &Changes, keys: &Keys, inner: &Rows, shape: &Shape, rows: &mut Rows) {
    for (strides, &offset) in inner.iter().zip(inner.offsets()) {
        let mut row: SmallVec<[isize; 8]> = SmallVec::from_elem(0, shape.sizes().len());
        let moved = spread(changes, keys.as_slice(), strides, shape, &mut row);
        rows.push_at(offset + moved).copy_from_slice(&row);
    }
}

/// The outer axes of elements in memory, whose axes along the inner dims are `named`, and the offset
/// of the first element. `None` if the sizes of axes differ, or are not known.
fn spread_axes(
    changes: &Changes,
    keys: &Keys,
    own: &Keys,
    named: &[Axis],
) -> Option<(SmallVec<[Axis; 8]>, isize)> {
    let mut outer: SmallVec<[Axis; 8]> = SmallVec::from_elem(Axis::new(UNSIZED, 0), own.as_slice().len());
    let mut offset = 0;
    let mut along = |key: &DimKey, size, stride: isize| {
        let axis = &mut outer[own.position(key)?];
        // Two inner dims that become one outer dim must agree in size. If they do not, the general
        // path reports it.
        if axis.size != UNSIZED && axis.size != size {
            return None;
        }
        *axis = Axis::new(size, axis.stride.wrapping_add(stride));
        Some(())
    };
    for (key, axis) in keys.as_slice().iter().zip(named) {
        let Some(change) = change(changes, key) else {
            along(key, axis.size, axis.stride)?;
            continue;
        };
        if change.inner.is_some_and(|size| size != axis.size) {
            return None;
        }
        add(&mut offset, axis.stride.wrapping_mul(change.offset as isize));
        for (key, step, own) in &change.terms {
            along(key, own.unwrap_or(axis.size), axis.stride.wrapping_mul(*step))?;
        }
    }
    outer.iter().all(|axis| axis.size != UNSIZED).then_some((outer, offset))
}

/// The strides of elements in memory along the loops, and the offset of the first element.
fn spread_strides(
    changes: &Changes,
    keys: &Keys,
    [named, positional]: [&[Axis]; 2],
    shape: &Shape,
) -> (SmallVec<[isize; 8]>, isize) {
    let mut row = SmallVec::from_elem(0, shape.sizes().len());
    let strides = named.iter().map(|axis| axis.stride);
    let positional = positional.iter().map(|axis| if axis.size == 1 { 0 } else { axis.stride });
    let strides: SmallVec<[isize; 8]> = strides.chain(positional).collect();
    let moved = spread(changes, keys.as_slice(), &strides, shape, &mut row);
    (row, moved)
}

impl<E: Clone, S, R> Clone for Remap<E, S, R> {
    fn clone(&self) -> Self {
        Remap { inner: self.inner.clone(), changes: self.changes.clone(), marker: PhantomData }
    }
}

impl<E: Expr, S: Dims, R: Rank> Remap<E, S, R> {
    /// `inner` with the dim `changed` along other dims.
    pub(crate) fn new(inner: E, changed: DimKey, along: Along) -> Self {
        Remap { inner, changes: Changes::from_buf([(changed, along)]), marker: PhantomData }
    }

    /// `inner` with several dims along others.
    pub(crate) fn of(inner: E, changes: Changes) -> Self {
        Remap { inner, changes, marker: PhantomData }
    }

    fn inner_shape(&self) -> Result<Shape, DimError> {
        let mut shape = Shape::new::<S, R>();
        self.inner.unify::<S, R>(&mut shape)?;
        // Checked before the renaming: a dim with a new name is no longer related to its prime.
        if S::KEYS.has_primes() {
            shape.unify_primes()?;
        }
        Ok(shape)
    }
}

impl<E: Expr, S: Dims, R: Rank> Expr for Remap<E, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = E::Elem;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = E::Kernel<'k, W>
    where
        Self: 'k;

    fn unify<U: Dims, V: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        unify_outer(&self.changes, S::KEYS, &self.inner_shape()?, shape)
    }

    fn rows<U: Dims, V: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        let inner = self.inner_shape().expect("the operands are unified");
        let mut own = Rows::new(inner.sizes().len());
        self.inner.rows::<S, R>(&inner, &mut own);
        spread_rows(&self.changes, S::KEYS, &own, shape, rows);
    }

    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, E::Elem>> {
        let inner = self.inner.in_memory::<S>()?;
        let (named, offset) = spread_axes(&self.changes, S::KEYS, U::KEYS, &inner.named)?;
        let elements = inner.elements.moved(offset);
        Some(Raw { elements, named, ..inner })
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        self.inner.kernel::<W>(operands)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.inner.write(writer)
    }

    fn factors<'s, U: Dims, V: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, E::Elem>,
    ) -> Result<(), DimError>
    where
        E::Elem: Num,
    {
        // Windows and slices of elements in memory go into a contraction without a copy.
        let Some(raw) = self.inner.in_memory::<S>() else {
            return super::evaluate_factor::<U, V, _>(self, shape, factors);
        };
        let axes = [&raw.named[..], &raw.positional];
        let (row, moved) = spread_strides(&self.changes, S::KEYS, axes, shape);
        let elements = raw.elements.moved(moved);
        factors.operands.push(factor(elements, row));
        Ok(())
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect(
        &self,
        nest: &Nest,
        to: Destination<'_, Self::Elem>,
        private: Private,
    ) -> Result<Vec<Self::Elem>, DimError> {
        self.inner.collect(nest, to, private)
    }

    fn into_contiguous<U: Dims>(self, order: &[usize]) -> Result<Vec<E::Elem>, Self> {
        let Some(order) = renamed(&self.changes, S::KEYS, U::KEYS, order) else { return Err(self) };
        let Remap { inner, changes, marker } = self;
        inner.into_contiguous::<S>(&order).map_err(|inner| Remap { inner, changes, marker })
    }

    fn shared<U: Dims>(&self, order: &[usize]) -> Option<Buffer<E::Elem>> {
        self.inner.shared::<S>(&renamed(&self.changes, S::KEYS, U::KEYS, order)?)
    }
}
