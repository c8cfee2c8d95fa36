//! Layers with a bias, and without one.

use crate::nn::element;
use crate::nn::linear::{Linear, MappedBy, Projection};
use crate::nn::norm::scaled_and_shifted;
use crate::prelude::*;
use crate::tensors::tensor::Evaluable;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::Dims;
pub use typed_dims_core::operators::nn::bias::NoBias;

/// What a layer adds along its dims `O`: a tensor of these dims, or [`NoBias`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the bias of a layer with the dims `{O}`",
    label = "expected `NoBias` here, or nothing for a layer with a bias"
)]
pub trait LayerBias<T, O: Dims>: Sized {
    /// `y + bias`
    #[doc(hidden)]
    #[track_caller]
    fn added_to<X: Union<O>>(&self, y: Named<T, X>) -> Named<T, X>;

    /// `x` with mean 0 and variance 1 along the dims, times `weight`, plus the bias.
    #[doc(hidden)]
    #[track_caller]
    fn added_to_normal<A, D: DimsOf<X, Y>, X: Union<O, Out: Union<O>>, Y: Dims>(
        &self,
        x: A,
        dims: D,
        weight: &Named<T, O>,
        epsilon: f64,
    ) -> Named<T, X>
    where
        A: Evaluable<Elem = T, Rank = Rank0, Dims = X>;
}

#[diagnostic::do_not_recommend]
impl<T: Real, O: Dims> LayerBias<T, O> for Named<T, O> {
    fn added_to<X: Union<O>>(&self, y: Named<T, X>) -> Named<T, X> {
        (y + self).eval().same_set()
    }

    fn added_to_normal<A, D: DimsOf<X, Y>, X: Union<O, Out: Union<O>>, Y: Dims>(
        &self,
        x: A,
        dims: D,
        weight: &Named<T, O>,
        epsilon: f64,
    ) -> Named<T, X>
    where
        A: Evaluable<Elem = T, Rank = Rank0, Dims = X>,
    {
        // One pass. (`layer_norm_affine` asks that the weight has no dims besides those of `x`, which the first bound says already.)
        let y = scaled_and_shifted(x, dims, element(epsilon), weight, self);
        y.unwrap_or_else(|error| panic!("{error}")).same_set()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Real, O: Dims> LayerBias<T, O> for NoBias {
    fn added_to<X: Union<O>>(&self, y: Named<T, X>) -> Named<T, X> {
        y
    }

    fn added_to_normal<A, D: DimsOf<X, Y>, X: Union<O, Out: Union<O>>, Y: Dims>(
        &self,
        x: A,
        dims: D,
        weight: &Named<T, O>,
        epsilon: f64,
    ) -> Named<T, X>
    where
        A: Evaluable<Elem = T, Rank = Rank0, Dims = X>,
    {
        (x.layer_norm(dims, element(epsilon)) * weight).eval().same_set()
    }
}

/// In the place of [`NoBias`] in a layer that is made of several maps: each of them has a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithBias;

/// Whether the maps that a layer is made of have biases: [`WithBias`] or [`NoBias`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether the maps of a layer have biases",
    label = "expected `NoBias` here, or nothing for a layer with biases"
)]
pub trait BiasKind {
    /// A map from the dims `I` to the dims `O`.
    type Map<I: Dims, O: Dims + Union<I>, T>;

    /// The map of a tensor.
    #[doc(hidden)]
    #[track_caller]
    fn apply<I, O, T, X, Z>(map: &Self::Map<I, O, T>, x: &Named<T, X>) -> Named<T, Z>
    where
        I: Dims + DimList,
        O: Dims + Union<I>,
        T: Real,
        X: MappedBy<I, O, Z>,
        Z: Union<O>;
}

macro_rules! maps {
    ($($kind:ident $map:ident;)*) => {$(
        impl BiasKind for $kind {
            type Map<I: Dims, O: Dims + Union<I>, T> = $map<I, O, T>;

            fn apply<I, O, T, X, Z>(map: &$map<I, O, T>, x: &Named<T, X>) -> Named<T, Z>
            where
                I: Dims + DimList,
                O: Dims + Union<I>,
                T: Real,
                X: MappedBy<I, O, Z>,
                Z: Union<O>,
            {
                map.apply(x)
            }
        }
    )*};
}

maps! {
    WithBias Linear;
    NoBias Projection;
}
