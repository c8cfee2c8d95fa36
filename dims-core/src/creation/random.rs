//! Tensors of random elements (feature `rand`).

use crate::create::{SizedDims, from_fn};
use crate::named::Named;
use kernels::scalar::Element;
use rand::Rng;
use rand::distr::Distribution;

/// A tensor whose elements are drawn from a distribution, in the order in which the dims are written, the last one fastest.
///
/// Any distribution of `rand` or `rand_distr` will do: `random(Batch.of(8), &StandardUniform, &mut rng)`.
///
/// # Panics
///
/// If a dim has no size, or the tensor does not fit into memory.
#[track_caller]
pub fn random<T, D, S, G>(dims: D, distribution: &S, rng: &mut G) -> Named<T, D::Set>
where
    T: Element,
    D: SizedDims,
    S: Distribution<T>,
    G: Rng + ?Sized,
{
    from_fn(dims, |_| distribution.sample(rng))
}
