//! Dropout.

use crate::creation::positions::draw_numbers;
use crate::creation::random::Seed;
use crate::creation::seed::DrawnSeed;
use crate::error::{DimError, unwrap};
use crate::execute::reduce::TensorOf;
use crate::execute::step::execute;
use crate::expr::evaluate::evaluate;
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::set::Dims;
use core::marker::PhantomData;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Real;
use kernels::step::dropout::DropElements;

/// Elements that are left out at random.
pub trait Dropout: Computable {
    /// Each element times `1 / (1 - p)`, or 0 with the probability `p`. The result is evaluated.
    ///
    /// Which ones are left out follows from the seed, the names of the dims and the indices along them; the same seed leaves out
    /// the same ones, whatever the number of threads. The seed is a number or a tensor without dims: see [`Seed`]. In inference, leave the call out.
    ///
    /// Each example of a batch draws apart from the others, as along any dim, however the function is batched. Where all are to lack the same ones, draw the mask
    /// from its dims:
    ///
    /// ```text
    /// x.dropout(p, seed)                                       PyTorch's vmap(.., randomness="different")
    /// select(rand(Feat.of(n), seed).ge(p), x / (1.0 - p), 0.0)      randomness="same"
    /// ```
    ///
    /// (`ones(Feat.of(n)).dropout(p, seed)` is such a mask where a function runs once for all examples. In a loop of calls it is an example's own: see [`vmap`](crate::batch::vmap()).)
    ///
    /// # Panics
    ///
    /// Where [`try_dropout`](Dropout::try_dropout) returns an error.
    #[track_caller]
    fn dropout(self, p: f64, seed: impl Into<Seed>) -> TensorOf<Self>
    where
        Self::Elem: Real,
    {
        unwrap(self.try_dropout(p, seed))
    }

    /// As [`dropout`](Dropout::dropout), but what sizes decide is an error; so is a `p` that is not between 0 and 1.
    #[track_caller]
    fn try_dropout(self, p: f64, seed: impl Into<Seed>) -> Result<TensorOf<Self>, DimError>
    where
        Self::Elem: Real,
    {
        if !(0.0..=1.0).contains(&p) {
            let what = format!("dropout with the probability {p}; it must be between 0 and 1");
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

impl<A: Computable> Dropout for A {}
