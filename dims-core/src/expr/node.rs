//! Inner nodes of expressions.

use super::affine::Affine;
use super::sized::OpenInEither;
use super::{Expr, Factors, Facts};
use super::{FactorLists, FactorOf};
use crate::error::DimError;
use crate::plan::direct::ElementsAlong;
use crate::plan::shape::Shape;
use crate::seal::Private;
use crate::storage::unchecked::InLine;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::contract;
use kernels::load::nodes::{BinaryKernel, UnaryKernel};
use kernels::load::select::SelectKernel;
use kernels::loops::nest::OperandRows;
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::machine::isa::Baseline;
use kernels::memory::axes::Axis;
use kernels::memory::freed::Freed;
use kernels::ops::{BinaryOp, UnaryOp};
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

/// An operation on each element of an expression.
#[derive(Clone, Copy, Debug)]
pub struct Unary<O, A> {
    pub(crate) op: O,
    pub(crate) a: A,
}

impl<O: UnaryOp<A::Elem>, A: Expr> Expr for Unary<O, A> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = O::Out;
    type Open = A::Open;
    type Kernel<'k, W: StrideKind>
        = UnaryKernel<'k, O, A::Kernel<'k, W>>
    where
        Self: 'k;
    const FACTS: Facts = Facts {
        owns: A::FACTS.owns,
        layout: A::FACTS.layout,
        simple: O::SIMPLE && A::FACTS.simple,
        ..Facts::COMPUTED
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> O::Out {
        self.op.apply::<Baseline>(self.a.nth(at))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        self.a.alike::<U, W>(like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.a.unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.a.rows::<U, R>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        UnaryKernel { op: &self.op, a: self.a.kernel::<W>(operands) }
    }

    fn describe(&self) -> String {
        format!("{}({})", O::NAME, self.a.describe())
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        let a = self.a.write(writer);
        match self.op.function() {
            Some(own) => writer.call(own, O::NAME, &[a]),
            None => writer.operation(self.op.code(), O::NAME, &[a]),
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<T: Element, U: Dims, R: Rank>(
        &mut self,
        order: &[usize],
        len: usize,
        private: Private,
    ) -> Option<Freed<T>> {
        self.a.place::<T, U, R>(order, len, private)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<T: Element>(self, place: &Freed<T>, private: Private) -> Option<Vec<T>> {
        self.a.into_place(place, private)
    }
}

/// An operation on the elements of two expressions at the same position.
#[derive(Clone, Copy, Debug)]
pub struct Binary<O, A, B> {
    pub(crate) op: O,
    pub(crate) a: A,
    pub(crate) b: B,
}

impl<O: BinaryOp<A::Elem, B::Elem>, A: Expr, B: Expr> Expr for Binary<O, A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = O::Out;
    type Open = OpenInEither<A::Open, B::Open>;
    type Kernel<'k, W: StrideKind>
        = BinaryKernel<'k, O, A::Kernel<'k, W>, B::Kernel<'k, W>>
    where
        Self: 'k;
    const FACTS: Facts = {
        let (a, b) = (A::FACTS, B::FACTS);
        let both = Facts {
            owns: a.owns || b.owns,
            layout: a.layout.and(b.layout),
            simple: O::SIMPLE && a.simple && b.simple,
            ..Facts::COMPUTED
        };
        if O::IS_PRODUCT {
            Facts {
                factors: a.factors + b.factors,
                factors_in_memory: if a.factors < 64 {
                    a.factors_in_memory | b.factors_in_memory << a.factors
                } else {
                    0
                },
                pair: match (a.memory, b.memory) {
                    (Some(left), Some(right)) => Some([(left, a.layout), (right, b.layout)]),
                    _ => None,
                },
                ..both
            }
        } else {
            both
        }
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> O::Out {
        self.op.apply::<Baseline>(self.a.nth(at), self.b.nth(at))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn pair(&self) -> (ElementsAlong<'_, O::Out>, ElementsAlong<'_, O::Out>) {
        let of = "a product has operands of one type";
        let ((a, a_axes), (b, b_axes)) = (self.a.memory(), self.b.memory());
        ((a.same().expect(of), a_axes), (b.same().expect(of), b_axes))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        self.a.alike::<U, W>(like, operands) && self.b.alike::<U, W>(like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.a.unify::<U, R>(shape)?;
        self.b.unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.a.rows::<U, R>(shape, rows);
        self.b.rows::<U, R>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        BinaryKernel { op: &self.op, a: self.a.kernel::<W>(operands), b: self.b.kernel::<W>(operands) }
    }

    fn describe(&self) -> String {
        format!("{}({}, {})", O::NAME, self.a.describe(), self.b.describe())
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        let a = self.a.write(writer);
        let b = self.b.write(writer);
        match self.op.function() {
            Some(own) => writer.call(own, O::NAME, &[a, b]),
            None => writer.operation(self.op.code(), O::NAME, &[a, b]),
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<T: Element, U: Dims, R: Rank>(
        &mut self,
        order: &[usize],
        len: usize,
        private: Private,
    ) -> Option<Freed<T>> {
        self.a.place::<T, U, R>(order, len, private).or_else(|| self.b.place::<T, U, R>(order, len, private))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<T: Element>(self, place: &Freed<T>, private: Private) -> Option<Vec<T>> {
        self.a.into_place(place, private).or_else(|| self.b.into_place(place, private))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, Self::Elem>,
    ) -> Result<(), DimError>
    where
        Self::Elem: Num,
    {
        if O::IS_PRODUCT {
            let (a, b) = (FactorOf::<U, R, A>::new(&self.a, shape), FactorOf::<U, R, B>::new(&self.b, shape));
            return O::factors::<FactorLists<'s>, _, _>(a, b, factors);
        }
        super::evaluate_factor::<U, R, _>(self, shape, factors)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn supports<U: Dims, R: Rank>(&self, shape: &Shape, supports: &mut contract::Supports) {
        if O::IS_PRODUCT {
            self.a.supports::<U, R>(shape, supports);
            self.b.supports::<U, R>(shape, supports);
        } else {
            super::support::<U, R, _>(self, shape, supports);
        }
    }

    fn affine(&self) -> Option<Affine<'_>> {
        let (a, b) = (self.a.affine()?, self.b.affine()?);
        if O::IS_PRODUCT {
            a.times(b)
        } else if O::AFFINE_SIGN != 0 {
            a.plus(O::AFFINE_SIGN, b)
        } else {
            None
        }
    }
}

/// One of two expressions at each position, chosen by a condition.
#[derive(Clone, Copy, Debug)]
pub struct Select<C, A, B> {
    pub(crate) cond: C,
    pub(crate) a: A,
    pub(crate) b: B,
}

impl<C: Expr<Elem = bool>, A: Expr, B: Expr<Elem = A::Elem>> Expr for Select<C, A, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = A::Elem;
    type Open = OpenInEither<C::Open, OpenInEither<A::Open, B::Open>>;
    type Kernel<'k, W: StrideKind>
        = SelectKernel<C::Kernel<'k, W>, A::Kernel<'k, W>, B::Kernel<'k, W>>
    where
        Self: 'k;
    const FACTS: Facts = Facts {
        owns: C::FACTS.owns || A::FACTS.owns || B::FACTS.owns,
        layout: C::FACTS.layout.and(A::FACTS.layout).and(B::FACTS.layout),
        simple: C::FACTS.simple && A::FACTS.simple && B::FACTS.simple,
        ..Facts::COMPUTED
    };

    #[cfg_attr(not(unoptimized), inline(always))]
    fn nth(&self, at: InLine) -> A::Elem {
        if self.cond.nth(at) { self.a.nth(at) } else { self.b.nth(at) }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn alike<'s, U: Dims, W: StrideKind>(
        &'s self,
        like: &mut Option<&'s [Axis]>,
        operands: &mut usize,
    ) -> bool {
        self.cond.alike::<U, W>(like, operands)
            && self.a.alike::<U, W>(like, operands)
            && self.b.alike::<U, W>(like, operands)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.cond.unify::<U, R>(shape)?;
        self.a.unify::<U, R>(shape)?;
        self.b.unify::<U, R>(shape)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.cond.rows::<U, R>(shape, rows);
        self.a.rows::<U, R>(shape, rows);
        self.b.rows::<U, R>(shape, rows);
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        let cond = self.cond.kernel::<W>(operands);
        let a = self.a.kernel::<W>(operands);
        let b = self.b.kernel::<W>(operands);
        SelectKernel::new(cond, a, b)
    }

    fn describe(&self) -> String {
        format!("select({}, {}, {})", self.cond.describe(), self.a.describe(), self.b.describe())
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        let cond = self.cond.write(writer);
        let a = self.a.write(writer);
        let b = self.b.write(writer);
        writer.select(cond, a, b)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn place<T: Element, U: Dims, R: Rank>(
        &mut self,
        order: &[usize],
        len: usize,
        private: Private,
    ) -> Option<Freed<T>> {
        self.cond
            .place::<T, U, R>(order, len, private)
            .or_else(|| self.a.place::<T, U, R>(order, len, private))
            .or_else(|| self.b.place::<T, U, R>(order, len, private))
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_place<T: Element>(self, place: &Freed<T>, private: Private) -> Option<Vec<T>> {
        self.cond
            .into_place(place, private)
            .or_else(|| self.a.into_place(place, private))
            .or_else(|| self.b.into_place(place, private))
    }
}
