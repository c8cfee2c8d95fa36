//! Types that state whether a layer has a bias.

use crate::nn::epsilon_of;
use crate::nn::linear::{Linear, MappedBy, Projection};
use crate::prelude::*;
use crate::tensors::tensor::Evaluable;
use crate::types::dim::DimList;
use crate::types::rank::Rank0;
use crate::types::set::Dims;
use typed_dims_core::error::unwrap;
pub use typed_dims_core::operators::nn::bias::NoBias;
use typed_dims_core::operators::nn::norm::scaled_and_shifted;

/// Marks a layer with a bias. This is the default; the other choice is [`NoBias`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithBias;

/// States whether a layer has a bias: [`WithBias`] or [`NoBias`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whether a layer has a bias",
    label = "expected `NoBias` or `WithBias` here; `WithBias` is the default"
)]
pub trait BiasKind {
    /// The bias along the dims `O`: a tensor, or [`NoBias`].
    type Of<T, O: Dims>;

    /// A map from the dims `I` to the dims `O`: a [`Linear`] or a [`Projection`].
    type Map<I: Dims, O: Dims + Union<I>, T>;

    /// Adds the bias, if there is one, to `y`.
    #[doc(hidden)]
    #[track_caller]
    fn added<T: Real, O: Dims, X: Union<O>>(bias: &Self::Of<T, O>, y: Named<T, X>) -> Named<T, X>;

    /// Normalizes `x` to mean 0 and variance 1 along `dims`, then multiplies by `weight` and adds
    /// the bias, if there is one.
    #[doc(hidden)]
    #[track_caller]
    fn normalized<A, D, T, O, X, Y>(
        x: A,
        dims: D,
        epsilon: f64,
        weight: &Named<T, O>,
        bias: &Self::Of<T, O>,
    ) -> Named<T, X>
    where
        A: Evaluable<Elem = T, Rank = Rank0, Dims = X>,
        D: DimsOf<X, Y>,
        T: Real,
        O: Dims,
        X: Union<O, Out: Union<O>>,
        Y: Dims;

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

macro_rules! kinds {
    ($($kind:ident $map:ident $of:ty,
        |$bias:ident, $y:ident| $added:expr,
        |$x:ident, $dims:ident, $epsilon:ident, $weight:ident| $normalized:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl BiasKind for $kind {
            type Of<T, O: Dims> = $of;
            type Map<I: Dims, O: Dims + Union<I>, T> = $map<I, O, T>;

            fn added<T: Real, O: Dims, X: Union<O>>($bias: &$of, $y: Named<T, X>) -> Named<T, X> {
                $added
            }

            fn normalized<A, D, T, O, X, Y>(
                $x: A,
                $dims: D,
                $epsilon: f64,
                $weight: &Named<T, O>,
                $bias: &$of,
            ) -> Named<T, X>
            where
                A: Evaluable<Elem = T, Rank = Rank0, Dims = X>,
                D: DimsOf<X, Y>,
                T: Real,
                O: Dims,
                X: Union<O, Out: Union<O>>,
                Y: Dims,
            {
                $normalized
            }

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

kinds! {
    WithBias Linear Named<T, O>,
        |bias, y| (y + bias).eval().same_set(),
        |x, dims, epsilon, weight| {
            // This is `layer_norm_affine` without its bound that `x` has the dims of the weight.
            // The bound follows from `D: DimsOf<X, Y>` of the layer, but rustc cannot infer that.
            unwrap(scaled_and_shifted(x, dims, epsilon_of(epsilon), weight, bias)).same_set()
        };
    NoBias Projection NoBias,
        |_bias, y| y,
        |x, dims, epsilon, weight| (x.layer_norm(dims, epsilon_of(epsilon)) * weight).eval().same_set();
}
