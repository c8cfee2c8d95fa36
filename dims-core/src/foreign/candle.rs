//! Tensors of candle (feature `candle`).
//!
//! [`t.to_tensor((Batch, Feat))`](ToTensor::to_tensor) makes a tensor of the elements of one of candle's,
//! [`x.into_candle((Batch, Feat))`](IntoCandle::into_candle) the other way round. candle knows the type of the elements, the number of axes
//! and the device only at run time, so that all of these can be errors. Gradients stop here: what comes back is a tensor without a graph.
//!
//! The elements are those that both know: `f32`, `f64`, `f16`, `bf16`, `u8`, `u32`, `i64`, and whatever else is candle's `WithDType`.

use crate::creation::convert::{AxisDims, contiguous, elements_in};
use crate::error::{DimError, unwrap};
use crate::laid::LaidWhole;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank0;
use crate::types::set::DimsOf;
use alloc::format;
use alloc::string::ToString;
use candle_core::{Device, Storage, Tensor, WithDType};
use core::panic::Location;
use kernels::memory::allocate::reserve;
use kernels::scalar::Element;

/// An error of candle's.
fn of_candle(error: &candle_core::Error) -> DimError {
    DimError::Shape { what: format!("candle: {}", error.to_string().trim_end()) }
}

/// Makes tensors of candle's.
pub trait ToTensor {
    /// The elements, with a dim for each axis: `out[i, j, ..] = self[i, j, ..]`. They are copied: once, or twice where they do not lie
    /// contiguously. Those of a tensor on another device are fetched from there.
    ///
    /// ```text
    /// let t = candle_core::Tensor::new(&[[1f32, 2.0], [3.0, 4.0]], &Device::Cpu)?;
    /// let x: Tensor<f32, (Batch, Feat)> = t.to_tensor((Batch, Feat));
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_to_tensor`](ToTensor::try_to_tensor) returns an error.
    #[track_caller]
    fn to_tensor<T: Element + WithDType, L: AxisDims<crate::bind::source::RankDyn>>(
        &self,
        dims: L,
    ) -> Named<T, L::Set> {
        unwrap(self.try_to_tensor(dims))
    }

    /// As [`to_tensor`](ToTensor::to_tensor), but what the run decides is an error: elements of another type than `T`, another number of
    /// axes than there are dims, a size that is not the dim's, a device that does not yield its elements.
    #[track_caller]
    fn try_to_tensor<T: Element + WithDType, L: AxisDims<crate::bind::source::RankDyn>>(
        &self,
        dims: L,
    ) -> Result<Named<T, L::Set>, DimError>;
}

impl ToTensor for Tensor {
    #[track_caller]
    fn try_to_tensor<T: Element + WithDType, L: AxisDims<crate::bind::source::RankDyn>>(
        &self,
        dims: L,
    ) -> Result<Named<T, L::Set>, DimError> {
        let origin = Some(Location::caller());
        if self.dtype() != T::DTYPE {
            let (found, expected) = (self.dtype().as_str(), T::DTYPE.as_str());
            let what = format!(
                "a candle tensor of `{found}` is not one of `{expected}`: convert it first with `to_dtype`"
            );
            return Err(DimError::Shape { what });
        }
        let line = self.to_device(&Device::Cpu).and_then(|tensor| tensor.contiguous());
        let line = line.map_err(|error| of_candle(&error))?;
        let (storage, layout) = line.storage_and_layout();
        let (Storage::Cpu(storage), Some((start, end))) = (&*storage, layout.contiguous_offsets()) else {
            unreachable!("the tensor was put in line, on the CPU")
        };
        let elements = T::cpu_storage_as_slice(storage).map_err(|error| of_candle(&error))?;
        let mut data = reserve(end - start)?;
        data.extend_from_slice(&elements[start..end]);
        contiguous(data, self.dims(), false, dims, origin)
    }
}

/// Turns tensors into candle's.
pub trait IntoCandle: Computable<Rank = Rank0, Elem: WithDType> {
    /// The tensor as one of candle's, on the CPU, with the dims as its axes in this order.
    ///
    /// If the tensor owns elements that lie so, none is copied; an expression is computed in that order.
    ///
    /// ```text
    /// let scores: candle_core::Tensor = (&x * 2.0).into_candle((Feat, Batch));
    /// ```
    ///
    /// # Panics
    ///
    /// If the tensor is an expression that cannot be computed.
    #[track_caller]
    fn into_candle<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Tensor {
        unwrap(self.try_into_candle(dims))
    }

    /// As [`into_candle`](IntoCandle::into_candle), but what sizes decide is an error.
    #[track_caller]
    fn try_into_candle<D: DimsOf<Self::Dims, X>, X: LaidWhole<D>>(self, dims: D) -> Result<Tensor, DimError> {
        let (data, sizes) = elements_in::<Self, D, X>(self, &dims, false, "into_candle")?;
        Tensor::from_vec(data, sizes, &Device::Cpu).map_err(|error| of_candle(&error))
    }
}

impl<A: Computable<Rank = Rank0, Elem: WithDType>> IntoCandle for A {}
