//! Dropout.

use crate::creation::positions::draw_numbers;
use crate::creation::random::IntoSeed;
use crate::creation::seed::DrawnSeed;
use crate::error::DimError;
use crate::execute::reduce::TensorOf;
use crate::execute::step::execute;
use crate::expr::evaluate::evaluate;
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Real;
use kernels::step::dropout::DropElements;
use twins::panicking_twin;

/// Sets random elements to zero.
pub trait Dropout: AsTensor {
    /// Sets each element to 0 with the probability `p`, and multiplies the others by `1 / (1 - p)`.
    /// The result is evaluated.
    ///
    /// Which elements become 0 depends on `p`, the seed, the names of the dims and the indices
    /// along all axes, but not on the number of threads. The seed is a number or a tensor without
    /// dims: see [`Seed`](crate::creation::random::Seed). For inference, leave the call out.
    ///
    /// Each example of a batch has its own mask, however the calling function is batched. (Without
    /// the feature `std`, all examples have the same mask if batching calls the function once for
    /// each example.) To use one mask for all examples, draw random numbers with only the dims of
    /// the mask:
    ///
    /// ```text
    /// x.dropout(p, seed)                                       PyTorch's vmap(.., randomness="different")
    /// select(rand(Feat.of(n), seed).ge(p), x / (1.0 - p), 0.0)      randomness="same"
    /// ```
    #[panicking_twin("so is a `p` that is not between 0 and 1")]
    fn try_dropout(self, p: f64, seed: impl IntoSeed) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: Real>,
    {
        if !(0.0..=1.0).contains(&p) {
            let what = format!("`dropout` with the probability {p}: it must be between 0 and 1");
            return Err(DimError::Shape { what });
        }
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let order = AxisList::in_memory_of::<Self::Dims, Self::Rank>().as_slice();
        let mut data = evaluate::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, order)?;
        let numbers = draw_numbers(Self::Dims::KEYS, &shape, order);
        let (seed, mut operand) = match seed.into().drawn()? {
            DrawnSeed::Number(seed) => (Some(seed), None),
            DrawnSeed::Operand(seed) => (None, Some(seed)),
        };
        let kind = DropElements { count: data.len(), p, seed, numbers, element: PhantomData::<Self::Elem> };
        let mut results = match &mut operand {
            None => execute(&kind, &mut [&mut data]),
            Some(seed) => execute(&kind, &mut [&mut data, seed]),
        }?;
        let data: Buffer<Self::Elem> = results.next();
        Ok(Named::from_expr(Evaluated::laid_out(data, &shape.sizes_in(order))))
    }
}

impl<A: AsTensor + ?Sized> Dropout for A {}
