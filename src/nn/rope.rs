//! Positions of tokens as rotations.

use crate::creation::create::Chained;
use crate::nn::element;
use crate::prelude::*;
use crate::types::dim::Of;
use crate::types::size::Sliceable;
use num_traits::Float;

/// Rotary position embedding of queries and keys: the features `p` and `p + n / 2` of the `n` along `F` are the coordinates of a plane, which is turned by
/// `position * base^(-2 p / n)`, the position being that along `P`.
///
/// ```text
/// y[.., t, p]         = x[.., t, p]         * cos(angle[t, p]) - x[.., t, p + n / 2] * sin(angle[t, p])
/// y[.., t, p + n / 2] = x[.., t, p + n / 2] * cos(angle[t, p]) + x[.., t, p]         * sin(angle[t, p])
/// ```
///
/// Products of a query and a key then depend on the distance of their positions alone. (J. Su and others, 2021, "RoFormer". The two halves of the features
/// are paired as in GPT-NeoX and in the weights of Llama for `transformers`.)
///
/// ```
/// use typed_dims::nn::rope::Rope;
/// use typed_dims::prelude::*;
///
/// dims! { struct Token; struct Head; struct Feat; }
/// let rope = Rope::<Token, Feat>::new(Token.of(16), Feat.of(4), 10_000.0);
/// let query: Tensor<f32, (Token, Head, Feat)> = randn((Token.of(3), Head.of(2), Feat.of(4)), 1);
/// let turned = rope.apply(&query, 5); // the tokens 5, 6 and 7 of a text
/// let change = turned.square().sum(Feat) - query.square().sum(Feat);
/// assert!(change.abs().max((Token, Head)).order(()) < 1e-5);
/// ```
#[derive(Clone, Parameters)]
pub struct Rope<P: AnyDim, F: AnyDim, T: Clone = f32>
where
    (F,): Union<(P,)>,
{
    /// The cosine of the angle of each position and feature.
    #[parameters(constant)]
    cos: Named<T, <(F,) as Union<(P,)>>::Out>,
    /// The sine, which is negative for the first half of the features.
    #[parameters(constant)]
    sin: Named<T, <(F,) as Union<(P,)>>::Out>,
}

impl<P: AnyDim, F: AnyDim, T: Real> Rope<P, F, T>
where
    (F,): Union<(P,)>,
{
    /// The angles of as many positions as `positions` has. The slowest plane turns by a radian in about `base` of them; 10,000 is usual.
    ///
    /// # Panics
    ///
    /// If the number of features is odd, if the base is not a number greater than 0, or if the angles do not fit into memory.
    #[track_caller]
    pub fn new(positions: Of<P>, features: Of<F>, base: f64) -> Self {
        let count = features.size();
        assert!(count.is_multiple_of(2), "{count} features cannot be paired");
        assert!(
            base > 0.0 && base.is_finite(),
            "`Rope` with the base {base}: it must be finite and greater than 0"
        );
        let half = count / 2;
        let angle = |(position, feature): (usize, usize)| {
            position as f64 * Float::powf(base, -((feature % half) as f64) / half as f64)
        };
        let dims = Chained(positions, features);
        Rope {
            cos: from_fn(dims, |at| element(Float::cos(angle(at)))),
            sin: from_fn(dims, |at| element(Float::sin(angle(at)) * if at.1 < half { -1.0 } else { 1.0 })),
        }
    }

    /// The turned tensor. Its first position along `P` is the position `start` of the text.
    ///
    /// # Panics
    ///
    /// If there are more positions than the angles were made for, or `F` has another size.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the line
    pub fn apply<X, Y: Dims, Z: Dims>(&self, x: &Named<T, X>, start: usize) -> Named<T, X> where P: DimsOf<X, Y>, F: DimsOf<X, Z>,
        P: DimsOf<<(F,) as Union<(P,)>>::Out, (F,)> + Sliceable,
        F: DimsOf<<(F,) as Union<(P,)>>::Out, (P,)>,
        X: Union<<(F,) as Union<(P,)>>::Out, Out: Union<<X as Union<<(F,) as Union<(P,)>>::Out>>::Out>>,
    {
        let half = (self.cos.size(F::default()) / 2) as isize;
        let positions = start..start + x.size(P::default());
        let cos = self.cos.view().slice(P::default(), positions.clone());
        let sin = self.sin.view().slice(P::default(), positions);
        (x * cos + x.roll(F::default(), half) * sin).eval().same_set()
    }
}
