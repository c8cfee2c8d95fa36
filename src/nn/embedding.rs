//! Tables with a row for each index.

use crate::creation::create::SizedDims;
use crate::nn::linear::Projection;
use crate::nn::{LayerDims, element};
use crate::prelude::*;
use crate::types::scalar::IndexInt;
use num_traits::Float;

/// A table with the features `D` of each position along the dim `V`: `y[.., D] = weight[ids[..], D]`.
///
/// ```
/// use typed_dims::nn::embedding::Embedding;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Token; struct Word; struct Width; }
/// let words = Embedding::<Word, (Width,)>::new(Word.of(100), Width.of(8), 1);
/// let ids = from_vec((Batch.of(1), Token.of(3)), vec![7_u32, 1, 7]);
/// let x: Tensor<f32, (Batch, Token, Width)> = words.apply(&ids);
/// assert_eq!((&x).index(Token, 0), (&x).index(Token, 2));
/// // The same table scores the words, where input and output share their weights.
/// let scores: Tensor<f32, (Batch, Token, Word)> = (&x * &words.weight).sum(Width);
/// assert_eq!(scores.size(Word), 100);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct Embedding<V: AnyDim, D: LayerDims + Union<(V,)>, T = f32> {
    /// The table.
    #[cfg_attr(feature = "safetensors", load(axes = (V, D)))]
    pub weight: Named<T, <D as Union<(V,)>>::Out>,
}

impl<V: AnyDim, D: LayerDims + Union<(V,)>, T: Real> Embedding<V, D, T> {
    /// A random table, of a normal distribution with the standard deviation 0.02.
    ///
    /// # Panics
    ///
    /// If the table does not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = (V,)> + Copy, B: SizedDims<Set = D>>(
        rows: A,
        features: B,
        seed: u64,
    ) -> Self {
        let table = Projection::<(V,), D, T>::new(rows, features, seed).weight;
        // The deviation of that one is `1 / sqrt(rows)`.
        let factor = element::<T>(0.02 * Float::sqrt(zeros::<u8, _>(rows).len() as f64));
        Embedding { weight: table.map_elements(|x: T| x * factor) }
    }

    /// The rows at `ids`: `y[.., D] = weight[ids[..], D]`.
    ///
    /// # Panics
    ///
    /// If an index is not that of a row.
    #[track_caller]
    pub fn apply<I: IndexInt, X: Dims, Z>(&self, ids: &Named<I, X>) -> Named<T, Z>
    where
        V: DimsOf<<D as Union<(V,)>>::Out, D>,
        D: Union<X, Out = Z>,
        Z: Dims,
    {
        self.weight.view().take(V::default(), ids).eval()
    }
}
