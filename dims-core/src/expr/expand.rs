//! Broadcasting along a new dim: a loop axis of stride 0.

use super::sized::{Open, OpenInEither};
use super::{Expr, Factors, Raw};
use crate::error::DimError;
use crate::expr::Facts;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::types::brand::{Brand, DimInfo};
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::contract;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::Num;
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

/// An expression over the dims `S`, broadcast along the dim `B`, which `S` does not have.
pub struct Expand<'a, E, S, B, O = ()> {
    inner: E,
    dim: DimInfo<'a>,
    marker: PhantomData<fn() -> (S, B, O)>,
}

impl<E: Clone, S, B, O> Clone for Expand<'_, E, S, B, O> {
    fn clone(&self) -> Self {
        Expand { inner: self.inner.clone(), ..*self }
    }
}

impl<E: Copy, S, B, O> Copy for Expand<'_, E, S, B, O> {}

impl<'a, E, S, B: Brand, O> Expand<'a, E, S, B, O> {
    /// `inner`, broadcast along `dim`.
    pub(crate) fn new<D: DimRef<Brand = B, Open = O> + 'a>(inner: E, dim: D) -> Self {
        Expand { inner, dim: dim.info(), marker: PhantomData }
    }
}

impl<E: Expr, S: Dims, B: Brand, O: Open> Expr for Expand<'_, E, S, B, O> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = E::Elem;
    type Open = OpenInEither<E::Open, O>;
    type Kernel<'k, W: StrideKind>
        = E::Kernel<'k, W>
    where
        Self: 'k;
    const FACTS: Facts =
        Facts { factors: E::FACTS.factors, factors_in_memory: E::FACTS.factors_in_memory, ..Facts::COMPUTED };

    #[inline]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.inner.unify::<U, R>(shape)?;
        let at = shape.position(&self.dim.key()).expect("the loops have the broadcast dim");
        let origin = self.dim.given.and_then(|(_, origin)| origin);
        shape.unify(at, self.dim.size_of_loop()?, origin)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.inner.rows::<U, R>(shape, rows);
    }

    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, E::Elem>> {
        let size = self.dim.size()?;
        let mut raw = self.inner.in_memory::<S>()?;
        raw.named.insert(U::KEYS.position(&self.dim.key())?, Axis::new(size, 0));
        Some(raw)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        self.inner.kernel::<W>(operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, E::Elem>,
    ) -> Result<(), DimError>
    where
        E::Elem: Num,
    {
        self.inner.factors::<U, R>(shape, factors)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, shape: &Shape, supports: &mut contract::Supports) {
        self.inner.supports::<U, R>(shape, supports);
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.inner.write(writer)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn collect(
        &self,
        nest: &Nest,
        to: Destination<'_, E::Elem>,
        private: Private,
    ) -> Result<Vec<E::Elem>, DimError> {
        self.inner.collect(nest, to, private)
    }
}
