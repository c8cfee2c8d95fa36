//! Positions of tokens as rotations.

use crate::creation::create::Chained;
use crate::nn::element;
use crate::prelude::*;
use crate::types::dim::Of;
use crate::types::size::Resizable;
use num_traits::Float;
use typed_dims_core::operators::nn::checks::check_sizes;

/// Rotary position embedding (RoPE) of queries and keys. Along `F` there are `n` features. For each
/// `p` less than `n / 2`, the features `p` and `p + n / 2` are the coordinates of a point in a
/// plane. At the position `t` along `P`, this point is rotated by
/// `angle[t, p] = t * base^(-2 p / n)`.
///
/// ```text
/// y[.., t, p]         = x[.., t, p]         * cos(angle[t, p]) - x[.., t, p + n / 2] * sin(angle[t, p])
/// y[.., t, p + n / 2] = x[.., t, p + n / 2] * cos(angle[t, p]) + x[.., t, p]         * sin(angle[t, p])
/// ```
///
/// The product of a rotated query and a rotated key does not change if both shift by the same
/// number of positions. (J. Su and others, 2021, "RoFormer". The two halves of the features are
/// paired as in GPT-NeoX and in Llama's weights for `transformers`;
/// [`interleaved`](Rope::interleaved) pairs neighbors.)
///
/// ```
/// use typed_dims::nn::Rope;
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
    /// The sine, negated for the first feature of each plane.
    #[parameters(constant)]
    sin: Named<T, <(F,) as Union<(P,)>>::Out>,
    /// For each feature, the other feature of its plane. `None` if planes pair the two halves of
    /// the features.
    #[parameters(constant)]
    neighbors: Option<Named<usize, (F,)>>,
    /// The settings from which the tables above are computed. Recorded programs compare these
    /// settings, but not the tables.
    #[parameters(constant)]
    angles: RopeAngles,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct RopeAngles {
    base: f64,
    positions: usize,
    features: usize,
    interleaved: bool,
}

impl<P: AnyDim, F: AnyDim, T: Real> Rope<P, F, T>
where
    (F,): Union<(P,)>,
{
    /// Computes the angles for the positions `0..m`, where `m` is the size of `positions`. With
    /// many features, the last plane rotates by one radian in about `base` positions. The usual
    /// `base` is 10,000.
    ///
    /// # Panics
    ///
    /// If the number of features is odd, if the base is not a finite number greater than 0, or if
    /// the angles do not fit into memory.
    #[track_caller]
    pub fn new(positions: Of<P>, features: Of<F>, base: f64) -> Self {
        let half = features.size() / 2;
        Self::of_planes(positions, features, base, None, |feature| (feature % half, feature < half))
    }

    /// Like [`new`](Rope::new), but pairs the features `2 p` and `2 p + 1`, as do the paper, GPT-J,
    /// and Llama's weights as published by Meta.
    ///
    /// ```
    /// use typed_dims::nn::Rope;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Token; struct Feat; }
    /// let rope = Rope::<Token, Feat>::interleaved(Token.of(2), Feat.of(2), 10_000.0);
    /// let x: Tensor<f32, (Token, Feat)> = from_vec((Token.of(1), Feat.of(2)), vec![1.0, 0.0]);
    /// let expected = from_vec(Feat.of(2), vec![1_f32.cos(), 1_f32.sin()]);
    /// assert!((rope.apply(&x, 1) - expected).abs().max((Token, Feat)).order(()) < 1e-6);
    /// ```
    ///
    /// # Panics
    ///
    /// See [`new`](Rope::new).
    #[track_caller]
    pub fn interleaved(positions: Of<P>, features: Of<F>, base: f64) -> Self {
        let neighbors = from_fn(features, |feature: usize| feature ^ 1);
        Self::of_planes(positions, features, base, Some(neighbors), |feature| {
            (feature / 2, feature.is_multiple_of(2))
        })
    }

    /// `plane` returns the plane of a feature, and whether the feature is its first coordinate.
    #[track_caller]
    fn of_planes(
        positions: Of<P>,
        features: Of<F>,
        base: f64,
        neighbors: Option<Named<usize, (F,)>>,
        plane: impl Fn(usize) -> (usize, bool),
    ) -> Self {
        let count = features.size();
        assert!(count.is_multiple_of(2), "{count} features cannot be paired");
        assert!(
            base > 0.0 && base.is_finite(),
            "`Rope` with the base {base}: it must be finite and greater than 0"
        );
        let planes = count / 2;
        let angle = |position: usize, plane: usize| {
            position as f64 * Float::powf(base, -(plane as f64) / planes as f64)
        };
        let interleaved = neighbors.is_some();
        let angles = RopeAngles { base, positions: positions.size(), features: count, interleaved };
        let dims = Chained(positions, features);
        Rope {
            cos: from_fn(dims, |(position, feature)| element(Float::cos(angle(position, plane(feature).0)))),
            sin: from_fn(dims, |(position, feature)| {
                let (plane, is_first) = plane(feature);
                element(Float::sin(angle(position, plane)) * if is_first { -1.0 } else { 1.0 })
            }),
            neighbors,
            angles,
        }
    }

    /// Rotates `x`. Its first position along `P` is the position `start` of the text.
    ///
    /// # Panics
    ///
    /// If `start` plus the size of `P` in `x` is greater than the number of positions with angles,
    /// or if the size of `F` in `x` differs from the number of features with angles.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn apply<X, Y: Dims, Z: Union<(F,)>>(&self, x: &Named<T, X>, start: usize) -> Named<T, X> where P: DimsOf<X, Y>, F: DimsOf<X, Z>,
        P: DimsOf<<(F,) as Union<(P,)>>::Out, (F,)> + Resizable,
        F: DimsOf<<(F,) as Union<(P,)>>::Out, (P,)>,
        X: Union<<(F,) as Union<(P,)>>::Out, Out: Union<<X as Union<<(F,) as Union<(P,)>>::Out>>::Out>>,
    {
        let half = (self.cos.size(F::default()) / 2) as isize;
        let (count, known) = (x.size(P::default()), self.cos.size(P::default()));
        assert!(
            start.checked_add(count).is_some_and(|end| end <= known),
            "`Rope` at positions {start}..{} of dim `{}`: there are angles for positions 0..{known}",
            start.saturating_add(count),
            P::NAME
        );
        let positions = start..start + count;
        let cos = self.cos.view().slice(P::default(), positions.clone());
        let sin = self.sin.view().slice(P::default(), positions);
        check_sizes(x, &cos);
        let others = match &self.neighbors {
            None => x.roll(F::default(), half),
            Some(neighbors) => x.view().take(F::default(), neighbors).eval().same_set(),
        };
        (x * cos + others * sin).eval().same_set()
    }
}
