//! Elements whose type determines their order in memory ([`Packed`]), as a leaf of expressions.

use crate::error::DimError;
use crate::expr::Facts;
use crate::expr::sized::Gives;
use crate::expr::{Expr, Factors, Raw};
use crate::plan::axes::{AxisList, Layout};
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::storage::packed::Packed;
use crate::storage::unchecked::strided;
use crate::storage::{Evaluated, View};
use crate::types::rank::Rank;
use crate::types::set::{Dims, SetOf};
use alloc::string::String;
use alloc::vec::Vec;
use kernels::contract;
use kernels::load::strided::Strided;
use kernels::loops::nest::{Nest, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::Axis;
use kernels::memory::destination::Destination;
use kernels::memory::freed::Freed;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

/// Elements that can be `Packed`: a tensor in memory, owned or borrowed.
pub trait Packable: Expr {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// All elements in memory order, if they are owned and not traced.
    fn into_all(self) -> Result<Vec<Self::Elem>, Self>
    where
        Self: Sized,
    {
        Err(self)
    }

    /// The memory of the elements for reuse, if they are owned, not shared, not traced, and of the
    /// type `W`.
    fn free<W: Element>(&mut self) -> Option<Freed<W>> {
        None
    }
}

impl<T: Element, S: Dims> Packable for Evaluated<T, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_all(self) -> Result<Vec<T>, Self> {
        if self.is_traced() { Err(self) } else { Ok(self.into_vec()) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn free<W: Element>(&mut self) -> Option<Freed<W>> {
        Evaluated::free(self)
    }
}

impl<T: Element, S: Dims> Packable for View<'_, T, S> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
impl<E: Packable> Packable for &E {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<E, L: SetOf + Dims> Packed<E, L> {
    /// The axes of the set in memory order.
    const ORDER: &'static AxisList = &AxisList::of(L::KEYS, <L::Set as Dims>::KEYS);
}

impl<E: Packable, L: SetOf + Dims> Expr for Packed<E, L> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = E::Elem;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = Strided<'k, E::Elem, (), W>
    where
        Self: 'k;
    const FACTS: Facts = Facts {
        owns: E::FACTS.owns,
        factors_in_memory: 1,
        memory: E::FACTS.memory,
        layout: Layout::In { order: L::KEYS, operands: 1 },
        ..Facts::COMPUTED
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn memory(&self) -> ElementsAlong<'_, E::Elem> {
        self.0.memory()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn in_memory<U: Dims>(&self) -> Option<Raw<'_, E::Elem>> {
        self.0.in_memory::<U>()
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        if !W::UNIT {
            return self.0.alike::<U, W>(like, operands);
        }
        *operands += 1;
        let (_, own) = self.0.memory();
        like.get_or_insert(own).iter().zip(own).all(|(like, own)| like.size == own.size)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.0.unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.0.rows::<U, R>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        // (`W` fixes the innermost stride at 1 only if `Facts::layout` does.)
        strided(self.0.memory().0, operands.next_row(), ())
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
        self.0.factors::<U, R>(shape, factors)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, shape: &Shape, supports: &mut contract::Supports) {
        self.0.supports::<U, R>(shape, supports);
    }

    fn describe(&self) -> String {
        "laid".into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.0.write(writer)
    }

    #[inline]
    fn collect(
        &self,
        nest: &Nest,
        to: Destination<'_, E::Elem>,
        private: Private,
    ) -> Result<Vec<E::Elem>, DimError> {
        self.0.collect(nest, to, private)
    }

    #[inline]
    fn finish<U: Dims, R: Rank>(
        self,
        nest: &Nest,
        order: &[usize],
        len: usize,
        private: Private,
    ) -> Result<Vec<E::Elem>, DimError> {
        self.0.finish::<U, R>(nest, order, len, private)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<W: Element, U: Dims, R: Rank>(
        &mut self,
        order: &[usize],
        _: usize,
        _: Private,
    ) -> Option<Freed<W>> {
        // The type guarantees the order. Equal orders have equally many axes, so the tensor has all
        // loop axes.
        if R::N == 0 && order == Self::ORDER.as_slice() { self.0.free() } else { None }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<W: Element>(self, place: &Freed<W>, private: Private) -> Option<Vec<W>> {
        self.0.into_place(place, private)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_contiguous<U: Dims>(self, order: &[usize]) -> Result<Vec<E::Elem>, Self> {
        if order == Self::ORDER.as_slice() {
            return self.0.into_all().map_err(Self::new);
        }
        Err(self)
    }
}

impl<D, E: Gives<D>, L> Gives<D> for Packed<E, L> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = E::Found;
}
