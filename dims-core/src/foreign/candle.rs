//! candle's tensors (feature `candle`).
//!
//! [`t.to_tensor((Batch, Feat))`](ToTensor::to_tensor) converts from candle, and
//! [`x.into_candle((Batch, Feat))`](super::IntoForeign::into_candle) converts to candle. The
//! element type and the number of axes of a candle tensor are known only at run time, so mismatches
//! are run-time errors. Gradients do not pass through these conversions: calling `into_candle` on a
//! traced tensor is an error, and the result of `to_tensor` is not part of candle's graph.
//!
//! The element types are `f32`, `f64`, `f16`, `bf16`, `u8`, `u32`, `i64`, and any other [`Element`]
//! that is also candle's `WithDType`.

use crate::creation::convert::{AxisDims, contiguous, elements_in};
use crate::error::DimError;
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
use twins::panicking_twin;

fn of_candle(error: &candle_core::Error) -> DimError {
    DimError::Shape { what: format!("candle: {}", error.to_string().trim_end()) }
}

/// Converts candle's tensors to tensors.
pub trait ToTensor {
    /// The elements, with a dim for each axis: `out[i, j, ..] = self[i, j, ..]`. They are copied
    /// once, or twice if they are not contiguous. The elements of a tensor on another device are
    /// first transferred to the CPU.
    ///
    /// ```text
    /// let t = candle_core::Tensor::new(&[[1f32, 2.0], [3.0, 4.0]], &Device::Cpu)?;
    /// let x: Tensor<f32, (Batch, Feat)> = t.to_tensor((Batch, Feat));
    /// ```
    #[panicking_twin(
        but = "these are errors: an element type other than `T`, a number of axes other than the number of dims, a size that is not the size of its dim, a device from which elements cannot be read"
    )]
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
            unreachable!("the tensor is contiguous and on the CPU")
        };
        let elements = T::cpu_storage_as_slice(storage).map_err(|error| of_candle(&error))?;
        let mut data = reserve(end - start)?;
        data.extend_from_slice(&elements[start..end]);
        contiguous(data, self.dims(), false, dims, origin)
    }
}

/// See [`into_candle`](super::IntoForeign::into_candle).
#[track_caller]
pub(super) fn tensor_of<A, D, X>(tensor: A, dims: &D) -> Result<Tensor, DimError>
where
    A: Computable<Rank = Rank0, Elem: WithDType>,
    D: DimsOf<A::Dims, X>,
    X: LaidWhole<D>,
{
    let (data, sizes) = elements_in::<A, D, X>(tensor, dims, false, "into_candle")?;
    Tensor::from_vec(data, sizes, &Device::Cpu).map_err(|error| of_candle(&error))
}
