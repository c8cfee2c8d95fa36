//! Other axes over the same elements: renaming, slicing, picking and splitting dims of any expression, without running it.
//!
//! Each axis of the inner expression is an affine function of the outer axes. That carries over to every operand's strides,
//! whatever the expression is made of.

use super::{Expr, Raw};
use crate::dim::UNSIZED;
use crate::error::DimError;
use crate::plan::nest::{Nest, Operands};
use crate::plan::rows::Rows;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::set::{DimKey, Dims};
use crate::storage::axes::Axis;
use smallvec::SmallVec;
use std::marker::PhantomData;

/// What one inner dim is along the outer dims: `offset + sum of step x dim`.
#[derive(Clone, Debug)]
pub struct Along {
    /// The inner position where all outer ones are 0.
    pub offset: usize,
    /// How many elements the inner dim must have, if that has been looked at.
    pub inner: Option<usize>,
    /// The outer dims, each with its step and its size (or none, if that is the inner dim's).
    pub terms: SmallVec<[(DimKey, usize, Option<usize>); 2]>,
}

/// An expression over the dims `S`, seen along other dims. The dims that are not changed stay as they are.
pub struct Remap<E, S, R> {
    inner: E,
    changed: DimKey,
    along: Along,
    marker: PhantomData<fn() -> (S, R)>,
}

impl<E: Clone, S, R> Clone for Remap<E, S, R> {
    fn clone(&self) -> Self {
        Remap {
            inner: self.inner.clone(),
            changed: self.changed,
            along: self.along.clone(),
            marker: PhantomData,
        }
    }
}

impl<E: Expr, S: Dims, R: Rank> Remap<E, S, R> {
    /// `inner` with its dim `changed` along other dims.
    pub(crate) fn new(inner: E, changed: DimKey, along: Along) -> Self {
        Remap { inner, changed, along, marker: PhantomData }
    }

    /// The inner expression's own sizes, where the outer ones are not given by it.
    fn inner_shape(&self) -> Result<Shape, DimError> {
        let mut shape = Shape::new::<S, R>();
        self.inner.meet::<S, R>(&mut shape)?;
        Ok(shape)
    }
}

impl<E: Expr, S: Dims, R: Rank> Expr for Remap<E, S, R> {
    type Elem = E::Elem;
    type Kernel<'k>
        = E::Kernel<'k>
    where
        Self: 'k;

    fn meet<U: Dims, V: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        let inner = self.inner_shape()?;
        for (at, key) in S::KEYS.as_slice().iter().enumerate() {
            let (size, origin) = inner.known(at);
            if !key.same(&self.changed) {
                shape.meet(outer(shape, key), size, origin)?;
                continue;
            }
            if let (Some(expected), true) = (self.along.inner, size != UNSIZED) {
                assert_eq!(expected, size, "the size of `{}` has been looked at", key.name);
            }
            for (key, _, own) in &self.along.terms {
                shape.meet(outer(shape, key), own.unwrap_or(size), origin)?;
            }
        }
        for (from_right, &size) in inner.positional().iter().rev().enumerate() {
            shape.meet_positional(from_right, size)?;
        }
        Ok(())
    }

    fn rows<U: Dims, V: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        let inner = self.inner_shape().expect("the operands have met");
        let mut own = Rows::new(inner.sizes().len());
        self.inner.rows::<S, R>(&inner, &mut own);
        let named = inner.named_len();
        for (strides, &offset) in own.iter().zip(own.offsets()) {
            let changed = inner.position(&self.changed).expect("the changed dim is an inner one");
            let row = rows.push_at(offset + strides[changed] * self.along.offset as isize);
            for (at, key) in S::KEYS.as_slice().iter().enumerate() {
                if at != changed {
                    row[outer(shape, key)] += strides[at];
                }
            }
            for (key, step, _) in &self.along.terms {
                row[outer(shape, key)] += strides[changed] * *step as isize;
            }
            let loops = row.len();
            for (from_right, &stride) in strides[named..].iter().rev().enumerate() {
                row[loops - 1 - from_right] = stride;
            }
        }
    }

    fn in_memory<U: Dims>(&self) -> Option<Raw<E::Elem>> {
        let inner = self.inner.in_memory::<S>()?;
        let mut named: SmallVec<[Axis; 8]> =
            SmallVec::from_elem(Axis::new(UNSIZED, 0), U::KEYS.as_slice().len());
        let mut start = inner.start;
        let mut along = |key: &DimKey, size, stride: isize| {
            let own = &mut named[U::KEYS.position(key)?];
            // Two inner dims that become one outer dim must agree in size: that is for the general path to say.
            if own.size != UNSIZED && own.size != size {
                return None;
            }
            *own = Axis::new(size, own.stride + stride);
            Some(())
        };
        for (key, axis) in S::KEYS.as_slice().iter().zip(&inner.named) {
            if !key.same(&self.changed) {
                along(key, axis.size, axis.stride)?;
                continue;
            }
            if self.along.inner.is_some_and(|size| size != axis.size) {
                return None;
            }
            start = start.wrapping_offset(axis.stride * self.along.offset as isize);
            for (key, step, own) in &self.along.terms {
                along(key, own.unwrap_or(axis.size), axis.stride * *step as isize)?;
            }
        }
        named.iter().all(|axis| axis.size != UNSIZED).then_some(Raw { start, named, ..inner })
    }

    #[inline(always)]
    fn kernel<'k>(&'k self, operands: &mut Operands<'k>) -> Self::Kernel<'k> {
        self.inner.kernel(operands)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    #[inline(always)]
    fn collect(&self, nest: &Nest, len: usize) -> Result<Vec<Self::Elem>, DimError> {
        self.inner.collect(nest, len)
    }
}

fn outer(shape: &Shape, key: &DimKey) -> usize {
    shape.position(key).expect("the dim is one of the loops'")
}
