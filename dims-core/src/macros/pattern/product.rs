//! The product of all operands along the loops of a pattern.

use super::args::ValueList;
use crate::error::DimError;
use crate::execute::loops::{LoopKernel, LoopOperand};
use crate::seal::PRIVATE;
use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::loops::nest::{Nest, OperandRows};
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

pub(super) struct AllOperands<'v, T, L>(&'v L, PhantomData<T>);

impl<'v, T: Element, L: ValueList<T>> AllOperands<'v, T, L> {
    pub(super) fn of(values: &'v L) -> Self {
        AllOperands(values, PhantomData)
    }
}

impl<T: Element, L: ValueList<T>> LoopOperand for AllOperands<'_, T, L> {
    type Elem = T;

    /// (Only called with one operand.)
    #[inline]
    fn collect(&self, nest: &Nest, len: usize) -> Result<Vec<T>, DimError> {
        self.0.collect_first(nest, len, PRIVATE)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.0.write(None, writer)
    }
}

impl<T: Num, L: ValueList<T>> LoopKernel for AllOperands<'_, T, L> {
    type Kernel<'k>
        = L::Product<'k>
    where
        Self: 'k;

    #[inline]
    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> L::Product<'k> {
        self.0.product(operands)
    }
}
