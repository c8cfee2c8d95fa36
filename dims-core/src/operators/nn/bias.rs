//! A placeholder for the bias of a layer.

/// Takes the place of the bias in a layer without a bias.
///
/// ```
/// use typed_dims::nn::{LayerNorm, NoBias};
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Width; }
/// let norm: LayerNorm<(Width,), f32, NoBias> = LayerNorm::without_bias(Width.of(2));
/// assert_eq!(norm.names(), ["weight"]);
/// let y: Tensor<f32, (Batch, Width)> = norm.apply(&from_vec((Batch.of(1), Width.of(2)), vec![10.0, 30.0]));
/// assert!((y - from_vec(Width.of(2), vec![-1.0, 1.0])).abs().max((Batch, Width)).order(()) < 1e-6);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoBias;
