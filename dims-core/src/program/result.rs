//! The tensors of a program's result: where their elements come from, and how they are laid out.

use crate::error::{DimError, Origin};
use crate::grad::parameters::{Path, Walk};
use crate::named::Named;
use crate::rank::Rank;
use crate::set::Dims;
use crate::storage::axes::AxisBlock;
use crate::storage::evaluated::{Evaluated, IntoElements};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::Zip;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use kernels::trace::Held;
use smallvec::SmallVec;

/// Collects the memory and the layout of each tensor of a result. The walk returns a value with the same sizes, whose tensors own one element each.
#[derive(Default)]
pub(super) struct RecordedResults {
    pub(super) held: Vec<Arc<dyn Held>>,
    pub(super) layouts: Vec<ResultLayout>,
}

/// The layout of a tensor.
pub(super) struct ResultLayout {
    start: usize,
    /// Dims first.
    strides: SmallVec<[isize; 8]>,
    origin: Origin,
}

impl Walk<1> for RecordedResults {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let expr = &tensor.expr;
        let layout = ResultLayout {
            start: expr.start(),
            strides: expr.axes().map(|axis| axis.stride).collect(),
            origin: expr.origin(),
        };
        self.held.push(expr.buffer().held());
        self.layouts.push(layout);
        Ok(strided(tensor, alloc::vec![T::default()], 0, |_| 0, None))
    }
}

/// A tensor with the sizes of `of`, but other elements and strides.
fn strided<T: Element, S: Dims, R: Rank, B: IntoElements<T>>(
    of: &Named<T, S, R>,
    data: B,
    start: usize,
    stride: impl Fn(usize) -> isize,
    origin: Origin,
) -> Named<T, S, R> {
    let (mut named, mut positional) = (*of.expr.named(), *of.expr.positional());
    let axes = named.as_mut_slice().iter_mut().chain(positional.as_mut_slice());
    axes.enumerate().for_each(|(at, axis)| axis.stride = stride(at));
    Named::from_expr(Evaluated::strided(data, start, named, positional, origin))
}

/// Replaces the tensors of a result by those that a call computed.
pub(super) struct CallResults<'p>(
    pub(super) Zip<alloc::vec::IntoIter<Arc<dyn Held>>, core::slice::Iter<'p, ResultLayout>>,
);

impl Walk<1> for CallResults<'_> {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        let (held, layout) = self.0.next().expect("a call computes each tensor of the result");
        let buffer = Buffer::of_held(&held).expect("a step has the type that it was recorded with");
        Ok(strided(tensor, buffer, layout.start, |at| layout.strides[at], layout.origin))
    }
}

/// Collects the memory of each tensor of a result, to be written over.
#[derive(Default)]
pub(super) struct ResultMemories(pub(super) Vec<Arc<dyn Held>>);

impl Walk<1> for ResultMemories {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.0.push(tensor.expr.buffer().held());
        Ok(tensor.clone())
    }
}

/// Copies a result without its elements.
pub(super) struct Zeros;

impl Walk<1> for Zeros {
    type Error = DimError;
    const STATE: bool = true;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        Ok(tensor.clone())
    }
}
