//! Gated feed-forward networks.

use crate::creation::create::SizedDims;
use crate::creation::random::split;
use crate::nn::LayerDims;
use crate::nn::linear::{MappedBy, Projection};
use crate::prelude::*;
use typed_dims_core::operators::nn::checks::check_distinct;

/// `y = down(silu(gate(x)) * up(x))`: a feed-forward network from the dims `W` to the dims `W`,
/// with the inner dims `I`.
///
/// (N. Shazeer, 2020, "GLU variants improve Transformer".)
///
/// ```
/// use typed_dims::nn::SwiGlu;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Width; struct Inner; }
/// let network = SwiGlu::<(Width,), (Inner,)>::new(Width.of(8), Inner.of(24), 1);
/// let y: Tensor<f32, (Batch, Width)> = network.apply(&ones((Batch.of(3), Width.of(8))));
/// assert_eq!(y.size(Width), 8);
/// assert_eq!(network.count_elements(), 3 * 8 * 24);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct SwiGlu<W: LayerDims + Union<I>, I: LayerDims + Union<W>, T: Clone = f32> {
    /// Decides how much of each inner feature passes.
    #[cfg_attr(feature = "safetensors", load(name = "gate_proj"))]
    pub gate: Projection<W, I, T>,
    /// Maps to the inner features.
    #[cfg_attr(feature = "safetensors", load(name = "up_proj"))]
    pub up: Projection<W, I, T>,
    /// Maps the inner features back.
    #[cfg_attr(feature = "safetensors", load(name = "down_proj"))]
    pub down: Projection<I, W, T>,
}

impl<W: LayerDims + Union<I>, I: LayerDims + Union<W>, T: Real> SwiGlu<W, I, T> {
    /// Random maps: see [`Projection::new`].
    ///
    /// # Panics
    ///
    /// If the weights do not fit into memory.
    #[track_caller]
    pub fn new<A, B>(width: A, inner: B, seed: u64) -> Self
    where
        A: SizedDims<Set = W> + Copy,
        B: SizedDims<Set = I> + Copy,
    {
        const { check_distinct::<W, I>("SwiGlu") };
        SwiGlu {
            gate: Projection::new(width, inner, split(seed, 0)),
            up: Projection::new(width, inner, split(seed, 1)),
            down: Projection::new(inner, width, split(seed, 2)),
        }
    }

    /// Applies the network.
    ///
    /// # Panics
    ///
    /// If the size of a dim in `x` differs from its size in the weights.
    #[track_caller]
    pub fn apply<X: MappedBy<W, I, Z>, Z>(&self, x: &Named<T, X>) -> Named<T, X>
    where
        Z: MappedBy<I, W, X> + Union<Z, Out = Z>,
    {
        let inner = (self.gate.apply(x).silu() * self.up.apply(x)).eval();
        self.down.apply(&inner)
    }
}
