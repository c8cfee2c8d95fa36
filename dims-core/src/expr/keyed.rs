//! Elements in memory whose axes are known only at run time: a padded copy and the windows that
//! slide over it.
//!
//! The windows have the static sizes of their dims, and equal sizes for a dim and its prime. The
//! padded copy need not.

use super::leaf::{positional_row, unify_positional};
use super::remap::Changes;
use super::{Expr, Factors, outer};
use crate::error::DimError;
use crate::plan::shape::Shape;
use crate::storage::unchecked::{factor, strided};
use crate::types::rank::Rank;
use crate::types::set::{DimKey, Dims};
use alloc::string::String;
use kernels::load::strided::Strided;
use kernels::loops::nest::OperandRows;
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
use kernels::memory::axes::{Axis, is_within};
use kernels::memory::buffer::Buffer;
use kernels::memory::elements::Elements;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::{Element, Num};
#[cfg(feature = "std")]
use kernels::trace::record::Writer;
use smallvec::SmallVec;

/// Elements with axes for some dims, and positional axes.
pub struct Keyed<T> {
    data: Buffer<T>,
    start: usize,
    named: SmallVec<[(DimKey, Axis); 8]>,
    positional: SmallVec<[Axis; 4]>,
}

impl<T: Element> Keyed<T> {
    /// Elements with these axes, read along other dims as `changes` says. Dims without a change are
    /// kept.
    ///
    /// # Panics
    ///
    /// If a position of the new axes is not an element, or a stride overflows.
    pub(crate) fn new(
        data: impl Into<Buffer<T>>,
        axes: impl Iterator<Item = (DimKey, Axis)>,
        positional: SmallVec<[Axis; 4]>,
        changes: &Changes,
    ) -> Self {
        let data = data.into();
        let mut named: SmallVec<[(DimKey, Axis); 8]> = SmallVec::new();
        let mut start: i128 = 0;
        for (key, axis) in axes {
            let Some((_, along)) = changes.iter().find(|(changed, _)| changed.same(&key)) else {
                named.push((key, axis));
                continue;
            };
            start += along.offset as i128 * axis.stride as i128;
            for (key, step, size) in &along.terms {
                let stride = axis.stride.checked_mul(*step).expect("the stride does not overflow");
                named.push((*key, Axis::new(size.unwrap_or(axis.size), stride)));
            }
        }
        let all = named.iter().map(|(_, axis)| axis).chain(&positional);
        assert!(is_within(data.len(), start, all.map(Axis::parts)), "every position is one of the elements");
        Keyed { data, start: start as usize, named, positional }
    }

    /// The strides along the loops.
    fn row(&self, shape: &Shape, row: &mut [isize]) {
        for (key, axis) in &self.named {
            row[outer(shape, key)] += axis.stride;
        }
        positional_row(&self.positional, row);
    }

    fn elements(&self) -> Elements<'_, T> {
        Elements::of_slice(&self.data).moved(self.start as isize)
    }
}

impl<T: Element> Expr for Keyed<T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = T;
    type Open = ();
    type Kernel<'k, W: StrideKind>
        = Strided<'k, T, ()>
    where
        Self: 'k;

    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        for (key, axis) in &self.named {
            shape.unify(outer(shape, key), axis.size, None)?;
        }
        unify_positional(&self.positional, shape)
    }

    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        self.row(shape, rows.push());
    }

    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        strided(self.elements(), operands.next_row(), ())
    }

    fn factors<'s, U: Dims, R: Rank>(
        &'s self,
        shape: &Shape,
        factors: &mut Factors<'s, T>,
    ) -> Result<(), DimError>
    where
        T: Num,
    {
        let mut row = SmallVec::from_elem(0, shape.sizes().len());
        self.row(shape, &mut row);
        factors.operands.push(factor(self.elements(), row));
        Ok(())
    }

    fn describe(&self) -> String {
        "windows".into()
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        writer.elements(self.elements(), Some(&self.data))
    }
}
