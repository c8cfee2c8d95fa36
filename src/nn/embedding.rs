//! Tables with a row for each index.

use crate::creation::create::SizedDims;
use crate::nn::linear::Projection;
use crate::nn::{LayerDims, element};
use crate::prelude::*;
use crate::types::scalar::IndexInt;
use num_traits::Float;
use typed_dims_core::operators::nn::checks::check_distinct;

/// A table with a row of features `D` for each index along the dim `V`:
/// `y[.., D] = weight[ids[..], D]`.
///
/// ```
/// use typed_dims::nn::Embedding;
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Token; struct Word; struct Width; }
/// let words = Embedding::<Word, (Width,)>::new(Word.of(100), Width.of(8), 1);
/// let ids = from_vec((Batch.of(1), Token.of(3)), vec![7_u32, 1, 7]);
/// let x: Tensor<f32, (Batch, Token, Width)> = words.apply(&ids);
/// assert_eq!((&x).index(Token, 0), (&x).index(Token, 2));
/// // If input and output share their weights, the same table scores the words.
/// let scores: Tensor<f32, (Batch, Token, Word)> = (&x * &words.weight).sum(Width);
/// assert_eq!(scores.size(Word), 100);
/// ```
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct Embedding<V: AnyDim, D: LayerDims + Union<(V,)>, T = f32> {
    /// The table.
    #[cfg_attr(feature = "safetensors", load(axes = (V, D)))]
    pub weight: Named<T, <D as Union<(V,)>>::Out>,
    /// The padding index, if there is one. [`apply`](Embedding::apply) passes no gradient to its
    /// row.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default))]
    pub padding: Option<usize>,
}

impl<V: AnyDim, D: LayerDims + Union<(V,)>, T: Real> Embedding<V, D, T> {
    /// A random table, from a normal distribution with the standard deviation 0.02.
    ///
    /// # Panics
    ///
    /// If the table does not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = (V,)> + Copy, B: SizedDims<Set = D>>(
        rows: A,
        features: B,
        seed: u64,
    ) -> Self
    where
        D: Union<(V,), Out: Union<()>>,
    {
        const { check_distinct::<(V,), D>("Embedding") };
        let table = Projection::<(V,), D, T>::new(rows, features, seed).weight;
        // The standard deviation of `table` is `1 / sqrt(rows)`.
        let factor = element::<T>(0.02 * Float::sqrt(zeros::<u8, _>(rows).len() as f64));
        Embedding { weight: (table * factor).eval().same_set(), padding: None }
    }

    /// Makes `index` the padding index, for positions after the end of a short text. Its row is set
    /// to 0, and gets no gradient from [`apply`](Embedding::apply). So an optimizer does not change
    /// the row, unless the table is also used elsewhere.
    ///
    /// ```
    /// use typed_dims::grad::grad;
    /// use typed_dims::nn::Embedding;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Token; struct Word; struct Width; }
    /// let words = Embedding::<Word, (Width,)>::new(Word.of(3), Width.of(2), 1).with_padding(0);
    /// let ids = from_vec(Token.of(3), vec![2_u32, 0, 0]);
    /// let slope = grad(|words: &Embedding<Word, (Width,)>| words.apply(&ids).sum((Token, Width)), &words);
    /// let expected = ndarray::array![[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]];
    /// assert_eq!(slope.weight.order((Word, Width)), expected);
    /// ```
    ///
    /// # Panics
    ///
    /// If the table has no row `index`.
    #[track_caller]
    pub fn with_padding(self, index: usize) -> Self
    where
        V: DimsOf<<D as Union<(V,)>>::Out, D>,
        D: Union<(V,), Out: Union<(V,)>>,
        (V,): Union<(), Out = (V,)> + Union<<D as Union<(V,)>>::Out>,
    {
        let rows = self.weight.size(V::default());
        assert!(index < rows, "`Embedding` with the padding {index}: its rows are 0..{rows}");
        let is_padding = from_fn(V::default().of(rows), |row: usize| row == index);
        let weight = select(is_padding.view(), T::ZERO, self.weight.view()).eval().same_set();
        Embedding { weight, padding: Some(index) }
    }

    /// The rows at `ids`.
    ///
    /// # Panics
    ///
    /// If an index is out of range.
    #[track_caller]
    pub fn apply<I: IndexInt, X: Dims, Z>(&self, ids: &Named<I, X>) -> Named<T, Z>
    where
        V: DimsOf<<D as Union<(V,)>>::Out, D>,
        D: Union<X, Out = Z>,
        X: Union<(), Out = X> + Union<Z, Out: Union<Z>>,
        Z: Dims,
    {
        let rows = self.weight.view().take(V::default(), ids);
        let Some(padding) = self.padding else { return rows.eval() };
        let rows = rows.eval();
        let ids = ids.from_end(self.weight.size(V::default()));
        let is_padding: Named<bool, X> = ids.eq(padding as isize).eval();
        let fixed: Named<T, Z> = rows.view().detach();
        select(&is_padding, &fixed, &rows).eval().same_set()
    }
}
