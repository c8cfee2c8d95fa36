//! Dropout.

use crate::error::{DimError, unwrap};
use crate::expr::evaluate::computed;
use crate::expr::record;
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::random::{RandomStream, unit};
use crate::reduce::TensorOf;
use crate::storage::Evaluated;
use crate::tensor::Computable;
use alloc::vec::Vec;
use kernels::machine::threads;
use kernels::scalar::Real;

/// Elements that are left out at random.
pub trait Dropout: Computable {
    /// Each element times `1 / (1 - p)`, or 0 with the probability `p`. The result is evaluated.
    ///
    /// Which ones are left out follows from the seed and from where they are, in the order of the set of dims; the same seed leaves out
    /// the same ones, whatever the number of threads. In inference, leave the call out.
    ///
    /// Each example of a batch draws apart from the others, as along any dim. Where all are to lack the same ones, let the mask be that of one:
    ///
    /// ```text
    /// x.dropout(p, seed)                                  PyTorch's vmap(.., randomness="different")
    /// x * ones(Feat.of(n)).dropout(p, seed)               randomness="same"
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_dropout`](Dropout::try_dropout) returns an error.
    #[track_caller]
    fn dropout(self, p: f64, seed: u64) -> TensorOf<Self>
    where
        Self::Elem: Real,
    {
        unwrap(self.try_dropout(p, seed))
    }

    /// As [`dropout`](Dropout::dropout), but what sizes decide is an error; so is a `p` that is not between 0 and 1.
    fn try_dropout(self, p: f64, seed: u64) -> Result<TensorOf<Self>, DimError>
    where
        Self::Elem: Real,
    {
        if !(0.0..=1.0).contains(&p) {
            let what = format!("dropout with the probability {p}, which is not between 0 and 1");
            return Err(DimError::Shape { what });
        }
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let order = AxisList::in_memory_of::<Self::Dims, Self::Rank>().as_slice();
        let traced = record::traced::<Self::Elem, Self::Dims, Self::Rank, _>(&tensor.expr, &shape)?;
        let mut data = computed::<Self::Dims, Self::Rank, _>(tensor.expr, &shape, order)?;
        // With `p = 1` nothing is kept, so the scale is never used.
        let scale = <<Self::Elem as Real>::Wide as num_traits::NumCast>::from(1.0 / (1.0 - p))
            .expect("a float can be any float, rounded");
        let each = data.len().div_ceil(threads::parts(data.len())).max(1);
        let parts: Vec<_> = data.chunks_mut(each).enumerate().collect();
        threads::each(parts, |(part, data)| {
            for (at, value) in data.iter_mut().enumerate() {
                let dropped = unit(RandomStream::Dropout, seed, (part * each + at) as u64) < p;
                *value = if dropped { num_traits::Zero::zero() } else { Real::narrow(value.widen() * scale) };
            }
        });
        // The derivative is the factor of each element.
        let factor = |at: usize| match unit(RandomStream::Dropout, seed, at as u64) < p {
            true => num_traits::Zero::zero(),
            false => Real::narrow(scale),
        };
        let data = record::scaled(data, traced, order, factor);
        let sizes = shape.sizes_in(order);
        Ok(Named::from_expr(Evaluated::laid_out(data, &sizes)))
    }
}

impl<A: Computable> Dropout for A {}
