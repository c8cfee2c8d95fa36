//! Elements selected along a dim by a computed index.

use crate::batch::HeldArgument;
use crate::error::DimError;
use crate::expr::leaf::{positional_row, unify_positional};
use crate::expr::sized::Gives;
use crate::expr::{Expr, outer};
use crate::plan::shape::Shape;
use crate::storage::unchecked::strided;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::remove::{Found, Removal, Remove};
use crate::types::set::{DimKey, Dims, MaybeDim};
use alloc::string::String;
use alloc::vec::Vec;
use kernels::load::gather::{Computed, IndexedAxis};
use kernels::load::strided::Strided;
use kernels::loops::nest::OperandRows;
use kernels::loops::rows::Rows;
use kernels::loops::stride::StrideKind;
#[cfg(feature = "std")]
use kernels::program::Register;
use kernels::scalar::IndexInt;
#[cfg(feature = "std")]
use kernels::trace::record::Writer;

/// An evaluated tensor, indexed along one dim. Each index is checked when its element is read.
pub struct Take<A: Computable, I> {
    source: HeldArgument<A>,
    from: DimKey,
    index: I,
    /// Whether the indices are class labels.
    labels: bool,
}

impl<A: Computable, I> Take<A, I> {
    #[track_caller]
    pub(crate) fn new<D: DimRef>(source: A, from: D, index: I) -> Result<Self, DimError> {
        let (source, from) = (HeldArgument::new(source)?, from.info());
        if let (true, Some(at)) = (D::GIVES_SIZE, A::Dims::KEYS.position(&from.key())) {
            let raw = source.raw();
            from.unify(raw.named[at].size, raw.origin)?;
        }
        Ok(Take { source, from: from.key(), index, labels: false })
    }

    /// The elements that class labels select.
    #[track_caller]
    pub(crate) fn by_labels<D: DimRef>(source: A, from: D, labels: I) -> Result<Self, DimError> {
        Ok(Take { labels: true, ..Take::new(source, from, labels)? })
    }

    /// The axis that the index selects from.
    fn target(&self) -> IndexedAxis {
        let raw = self.source.raw();
        let at = A::Dims::KEYS.position(&self.from).expect("the dim is one of the tensor's");
        IndexedAxis {
            stride: raw.named[at].stride,
            size: raw.named[at].size,
            axis: at,
            dim: Some(self.from.name),
            names: Vec::new,
            is_label: self.labels,
            origin: raw.origin,
        }
    }
}

impl<A: Computable, I: Expr<Elem: IndexInt>> Expr for Take<A, I> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Elem = A::Elem;
    type Open = I::Open;
    type Kernel<'k, W: StrideKind>
        = Strided<'k, A::Elem, Computed<I::Kernel<'k, W>, ()>>
    where
        Self: 'k;

    fn unify<U: Dims, R: Rank>(&self, shape: &mut Shape) -> Result<(), DimError> {
        let raw = self.source.raw();
        for (key, axis) in A::Dims::KEYS.as_slice().iter().zip(&raw.named) {
            if !key.same(&self.from) {
                shape.unify(outer(shape, key), axis.size, raw.origin)?;
            }
        }
        unify_positional(&raw.positional, shape)?;
        self.index.unify::<U, R>(shape)
    }

    fn rows<U: Dims, R: Rank>(&self, shape: &Shape, rows: &mut Rows) {
        let raw = self.source.raw();
        let row = rows.push();
        for (key, axis) in A::Dims::KEYS.as_slice().iter().zip(&raw.named) {
            if !key.same(&self.from) {
                row[outer(shape, key)] += axis.stride;
            }
        }
        positional_row(&raw.positional, row);
        self.index.rows::<U, R>(shape, rows);
    }

    fn kernel<'k, W: StrideKind>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k, W> {
        let row = operands.next_row();
        let index = self.index.kernel::<W>(operands);
        let indices = Computed { index, active: true, target: self.target(), rest: () };
        strided(self.source.raw().elements, row, indices)
    }

    fn describe(&self) -> String {
        format!("take({}, {})", self.from.name, self.index.describe())
    }

    #[cfg(feature = "std")]
    fn write<'w>(&'w self, writer: &mut Writer<'w>) -> Register {
        let elements = writer.elements(self.source.raw().elements, None);
        let index = self.index.write(writer);
        writer.index(elements, index, self.target());
        elements
    }
}

impl<D: MaybeDim, A: Computable<Dims: Dims<List: Remove<D, Out: Removal>>>, I: Gives<D>> Gives<D>
    for Take<A, I>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Found = <Found<D, A::Dims> as MaybeDim>::Or<I::Found>;
}
