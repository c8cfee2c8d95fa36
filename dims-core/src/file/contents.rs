//! Tensors and arrays as the contents of files.

use super::FileError;
use super::element::Stored;
#[cfg(feature = "npy")]
use super::element::encoded;
use crate::plan::shape::Shape;
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank0;
use crate::types::set::{DimKey, Dims, DimsOf, MAX_DIMS};
use alloc::vec::Vec;
use ndarray::{ArrayBase, Data, Dimension};

/// A tensor that can be written to a file: its elements are numbers or `bool`, and all its axes are
/// dims. Expressions are computed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tensor that can be in a file",
    label = "expected a tensor of numbers or `bool` without positional axes",
    note = "an array becomes a tensor by `array.into_tensor((Row, Column))`; `save_array` and `put_array` write it without names of dims"
)]
pub trait Storable: Computable<Rank = Rank0, Elem: Stored> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<A: Computable<Rank = Rank0, Elem: Stored>> Storable for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The contents of a file for a tensor or an array.
pub(super) struct Contents<T> {
    /// The dims in the order of the axes, if the axes have names.
    pub keys: Option<Vec<DimKey>>,
    pub sizes: Vec<usize>,
    /// The elements, with the last axis fastest.
    pub elements: Vec<T>,
}

impl<T: Stored> Contents<T> {
    /// The contents for a tensor, with its axes in the order in which the dims were declared.
    #[track_caller]
    pub fn tensor<A: Storable<Elem = T>>(tensor: A, operation: &'static str) -> Result<Self, FileError> {
        let keys = A::Dims::KEYS.as_slice();
        let order: Vec<usize> = (0..keys.len()).collect();
        Self::evaluate(tensor, keys, &order, |_| Ok(()), operation)
    }

    /// The contents for a tensor, with its axes in the order of these dims.
    #[track_caller]
    pub fn ordered<A, L, X>(tensor: A, dims: &L, operation: &'static str) -> Result<Self, FileError>
    where
        A: Storable<Elem = T>,
        L: DimsOf<A::Dims, X>,
        X: Dims,
    {
        let keys = L::KEYS.as_slice();
        let order: [usize; MAX_DIMS] = L::KEYS.positions_in(A::Dims::KEYS);
        let check = |shape: &Shape| Ok(shape.check_all_given(dims)?);
        Self::evaluate(tensor, keys, &order[..keys.len()], check, operation)
    }

    #[track_caller]
    fn evaluate<A: Storable<Elem = T>>(
        tensor: A,
        keys: &[DimKey],
        order: &[usize],
        check: impl FnOnce(&Shape) -> Result<(), FileError>,
        operation: &'static str,
    ) -> Result<Self, FileError> {
        let tensor = tensor.into_named();
        let shape = tensor.unified_shape()?;
        check(&shape)?;
        let elements = crate::expr::evaluate::evaluate_for::<A::Dims, A::Rank, _>(
            tensor.expr,
            &shape,
            order,
            operation,
        )?;
        Ok(Contents { keys: Some(keys.to_vec()), sizes: shape.sizes_in(order).to_vec(), elements })
    }

    /// The contents for an array, whose axes have no names.
    pub fn array<S: Data<Elem = T>, D: Dimension>(array: &ArrayBase<S, D>) -> Self {
        Contents { keys: None, sizes: array.shape().to_vec(), elements: array.iter().copied().collect() }
    }

    /// The names of the dims in the file's format.
    pub fn names(&self) -> Result<Option<alloc::string::String>, FileError> {
        self.keys.as_ref().map(|keys| super::names::written(keys.iter())).transpose()
    }

    /// The elements in the file's format.
    #[cfg(feature = "npy")]
    pub fn bytes(&self) -> Vec<u8> {
        encoded(&self.elements)
    }
}
