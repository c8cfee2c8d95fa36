//! One operand along the loops of a pattern.

use super::input::Values;
use crate::error::DimError;
use crate::execute::loops::{LoopKernel, LoopOperand};
use crate::seal::PRIVATE;
use alloc::string::String;
use alloc::vec::Vec;
use kernels::loops::nest::{Nest, OperandRows};
#[cfg(feature = "std")]
use kernels::program::Register;
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

pub(super) struct OneOperand<'v, V>(pub(super) &'v V);

impl<V: Values> LoopOperand for OneOperand<'_, V> {
    type Elem = V::Elem;

    #[inline]
    fn collect(&self, nest: &Nest, len: usize) -> Result<Vec<V::Elem>, DimError> {
        self.0.collect(nest, len, PRIVATE)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        self.0.write(writer)
    }
}

impl<V: Values> LoopKernel for OneOperand<'_, V> {
    type Kernel<'k>
        = V::Kernel<'k>
    where
        Self: 'k;

    #[inline]
    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> V::Kernel<'k> {
        self.0.kernel(operands)
    }
}
