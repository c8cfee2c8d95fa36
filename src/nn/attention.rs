//! Attention between tokens: a layer, and a cache of keys and values.

use crate::creation::create::SizedDims;
use crate::creation::random::{IntoSeed, split};
use crate::nn::LayerDims;
use crate::nn::bias::{BiasKind, NoBias, WithBias};
use crate::nn::linear::{Linear, MappedBy, Projection};
use crate::operators::attention::{Attend, AttendedDims, Mask, MaskedBy};
use crate::operators::restructure::Remapped;
use crate::pipeline::expr::Expr;
use crate::prelude::*;
use crate::tensors::tensor::Computable;
use crate::types::rank::Rank0;
use crate::types::role::KeepsRole;
use crate::types::set::{DimsOfBoth, NameFor, Sorted};
use crate::types::size::Resizable;
use core::marker::PhantomData;
use typed_dims_core::operators::nn::checks::check_distinct;

/// Multi-head attention. The tokens of `x` have queries. The tokens of `memory`, to which they
/// attend, have keys and values. In self-attention, `memory` is `x`. The result of a head for a
/// token is a weighted mean of the values. The weights are the softmax of the products of the
/// token's query and the keys. A linear map combines the results of the heads. Without a mask or
/// dropout:
///
/// ```text
/// queries = query(x)        with the dims Q instead of W
/// keys    = key(memory)     with the dims K instead of W
/// values  = value(memory)   with the dims K instead of W
/// weights = softmax over the tokens of memory of (sum over F of queries * keys) / sqrt(size of F)
/// y       = out(sum over the tokens of memory of weights * values)
/// ```
///
/// `W` are the dims of a token's features, `Q` those of a query, and `K` those of a key or a value.
/// `Q` and `K` both have `F`, the dim over which products of queries and keys are summed. The other
/// dims of `K` are heads. If `Q` has dims that `K` lacks, several queries share a key. Examples:
///
/// | | |
/// |---|---|
/// | several heads | `MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat>` |
/// | grouped queries | `MultiHeadAttention<(Width,), (Head, Group, Feat), (Head, Feat), Feat>` |
/// | one key for all heads | `MultiHeadAttention<(Width,), (Head, Feat), (Feat,), Feat>` |
///
/// (A. Vaswani and others, 2017, "Attention is all you need"; J. Ainslie and others, 2023, "GQA".)
///
/// ```
/// use typed_dims::nn::MultiHeadAttention;
/// use typed_dims::prelude::*;
///
/// dims! {
///     struct Batch; struct Token; struct Source; struct Key; struct Width; struct Head; struct Feat;
/// }
/// type Attention = MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat>;
///
/// let heads = (Head.of(2), Feat.of(4));
/// let attention = Attention::new(Width.of(8), heads, heads, 1);
/// let x: Tensor<f32, (Batch, Token, Width)> = randn((Batch.of(2), Token.of(3), Width.of(8)), 2);
/// let all = attention.among(&x, Token, Key, true);
/// let causal = attention.among(&x, Token, Key, Key.le(Token));
/// // In both, the last token attends to all tokens.
/// assert!((all - causal).index(Token, -1).abs().max((Batch, Width)).order(()) < 1e-6);
/// // Cross attention, to tokens of another text.
/// let memory: Tensor<f32, (Batch, Source, Width)> = randn((Batch.of(2), Source.of(5), Width.of(8)), 3);
/// let y: Tensor<f32, (Batch, Token, Width)> = attention.to(&x, &memory, Source, true);
/// assert_eq!(y.size(Token), 3);
/// ```
///
/// `MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat, f32, NoBias>` has no biases.
#[derive(Clone, Parameters)]
#[cfg_attr(feature = "safetensors", derive(Load))]
pub struct MultiHeadAttention<W, Q, K, F, T: Clone = f32, B = WithBias>
where
    W: LayerDims + Union<Q>,
    Q: LayerDims + Union<W>,
    K: LayerDims + Union<W>,
    F: AnyDim,
    B: BiasKind,
{
    /// Maps tokens to queries.
    #[cfg_attr(feature = "safetensors", load(name = "q_proj"))]
    pub query: B::Map<W, Q, T>,
    /// Maps tokens to keys.
    #[cfg_attr(feature = "safetensors", load(name = "k_proj"))]
    pub key: B::Map<W, K, T>,
    /// Maps tokens to values.
    #[cfg_attr(feature = "safetensors", load(name = "v_proj"))]
    pub value: B::Map<W, K, T>,
    /// Maps the results of the heads to the features of a token.
    #[cfg_attr(feature = "safetensors", load(name = "out_proj"))]
    pub out: B::Map<Q, W, T>,
    /// The probability of dropout.
    #[parameters(constant)]
    #[cfg_attr(feature = "safetensors", load(default))]
    dropout: Option<f64>,
    /// The seed of dropout. It is state, so that programs take it as an input.
    #[parameters(state)]
    #[cfg_attr(feature = "safetensors", load(default))]
    seed: Option<Named<u64, ()>>,
    #[parameters(constant)]
    features: PhantomData<fn() -> F>,
}

macro_rules! constructors {
    ($($kind:ident $map:ident $new:ident $doc:literal;)*) => {$(
        impl<W, Q, K, F, T: Real> MultiHeadAttention<W, Q, K, F, T, $kind>
        where
            W: LayerDims + Union<Q>,
            Q: LayerDims + Union<W>,
            K: LayerDims + Union<W>,
            F: AnyDim,
        {
            #[doc = $doc]
            ///
            /// # Panics
            ///
            /// If the weights do not fit into memory.
            #[track_caller]
            pub fn $new<A, B, C>(width: A, queries: B, keys: C, seed: u64) -> Self
            where
                A: SizedDims<Set = W> + Copy,
                B: SizedDims<Set = Q> + Copy,
                C: SizedDims<Set = K> + Copy,
            {
                const { check_distinct::<W, Q>("MultiHeadAttention") };
                const { check_distinct::<W, K>("MultiHeadAttention") };
                MultiHeadAttention {
                    query: $map::new(width, queries, split(seed, 0)),
                    key: $map::new(width, keys, split(seed, 1)),
                    value: $map::new(width, keys, split(seed, 2)),
                    out: $map::new(queries, width, split(seed, 3)),
                    dropout: None,
                    seed: None,
                    features: PhantomData,
                }
            }
        }
    )*};
}

constructors! {
    WithBias Linear new "Random maps: see [`Linear::new`].";
    NoBias Projection without_bias "Random maps without biases: see [`Projection::new`].";
}

impl<W, Q, K, F, T: Real, Biases: BiasKind> MultiHeadAttention<W, Q, K, F, T, Biases>
where
    W: LayerDims + Union<Q>,
    Q: LayerDims + Union<W>,
    K: LayerDims + Union<W>,
    F: AnyDim,
{
    /// Returns the layer with dropout, for one training step: attention weights are set to 0 with
    /// the probability `p`, and the others are multiplied by `1 / (1 - p)`. Pass a different seed
    /// for each step and each layer. If a [program](crate::program) takes the returned layer as an
    /// input, each call uses its own seed. Applying the returned layer panics if `p` is not between
    /// 0 and 1.
    ///
    /// Save the layer itself, not the returned one: a checkpoint of the returned layer has the seed
    /// as a tensor, and cannot be loaded into a layer without dropout.
    ///
    /// ```
    /// # use typed_dims::nn::MultiHeadAttention;
    /// # use typed_dims::prelude::*;
    /// # dims! { struct Token; struct Key; struct Width; struct Head; struct Feat; }
    /// # let heads = (Head.of(2), Feat.of(4));
    /// # let attention = MultiHeadAttention::<(Width,), (Head, Feat), (Head, Feat), Feat>::new(Width.of(8), heads, heads, 1);
    /// # let x: Tensor<f32, (Token, Width)> = randn((Token.of(3), Width.of(8)), 2);
    /// let y = attention.with_dropout(0.1, 7).among(&x, Token, Key, true);
    /// # assert_eq!(y.size(Token), 3);
    /// ```
    pub fn with_dropout(&self, p: f64, seed: impl IntoSeed) -> Self
    where
        Self: Clone,
    {
        MultiHeadAttention { dropout: Some(p), seed: Some(seed.into().to_tensor()), ..self.clone() }
    }

    /// Self-attention among the tokens along `token`. In keys and values, the dim `token` is
    /// renamed to `key`, so that the mask can refer to both dims. With the mask `true`, each token
    /// attends to all tokens; with `key.le(token)`, to itself and the earlier ones.
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, the mask and the weights, or if `key` has a size
    /// other than the number of tokens.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn among<X: MappedBy<W, Q, A> + MappedBy<W, K, B>, D, N, M, A, B, S: MaskedBy<M::Dims>, Z>(&self, x: &Named<T, X>, token: D, key: N, mask: M) -> Named<T, X>
    where
        X: Union<W>,
        D: AnyDim,
        N: NameFor<D, B> + KeepsRole<D, B>,
        N: AttendedDims<A, N::Out, N::Out, <S as Union<N::Out>>::Out, Z> + Copy,
        M: Mask<T>,
        F: DimsOfBoth<A, N::Out, <A as Union<N::Out>>::Out, S>,
        A: Union<Q> + Union<N::Out, Out: Union<N::Out>>,
        B: Union<K>,
        S: Union<N::Out>,
        Z: MappedBy<Q, W, X>,
    {
        let keys = Biases::apply::<W, K, T, X, B>(&self.key, x).rename(token, key);
        let values = Biases::apply::<W, K, T, X, B>(&self.value, x).rename(token, key);
        self.attend(&Biases::apply::<W, Q, T, X, A>(&self.query, x), keys, values, key, mask)
    }

    /// Cross attention from the tokens of `x` to the tokens of `memory`. The tokens of `memory` are
    /// along the dim or dims `over`, which `x` must not have. `mask` selects the tokens to attend
    /// to, adds a bias to the scores, or does both: see [`Mask`].
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of `x`, `memory`, the mask and the weights.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn to<X: MappedBy<W, Q, A>, V: MappedBy<W, K, B>, O: AttendedDims<A, B, B, <S as Union<B>>::Out, Z>, M, A, B, S: MaskedBy<M::Dims>, Z, R>(
        &self,
        x: &Named<T, X>,
        memory: &Named<T, V>,
        over: O,
        mask: M,
    ) -> Named<T, R>
    where
        M: Mask<T>,
        F: DimsOfBoth<A, B, <A as Union<B>>::Out, S>,
        A: Union<Q> + Union<B, Out: Union<B>>,
        B: Union<K>,
        S: Union<B>,
        Z: MappedBy<Q, W, R>,
        R: Union<W>,
    {
        let queries = Biases::apply::<W, Q, T, X, A>(&self.query, x);
        let keys = Biases::apply::<W, K, T, V, B>(&self.key, memory);
        let values = Biases::apply::<W, K, T, V, B>(&self.value, memory);
        self.attend(&queries, &keys, &values, over, mask)
    }

    /// Attention with given queries, keys and values. For example, the queries and keys may have
    /// been rotated by a [`Rope`](crate::nn::rope::Rope), and the keys and values may come from a
    /// [`KeyValues`]. The tokens of keys and values are along the dim or dims `over`. The mask is
    /// as in [`to`](MultiHeadAttention::to).
    ///
    /// # Panics
    ///
    /// If a dim has different sizes in two of the queries, keys, values, mask and weights.
    #[track_caller]
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn attend<A, U, V, O: AttendedDims<A, U::Dims, V::Dims, <S as Union<V::Dims>>::Out, Z>, M, S: MaskedBy<M::Dims>, X, Z>(
        &self,
        queries: &Named<T, A>,
        keys: U,
        values: V,
        over: O,
        mask: M,
    ) -> Named<T, X>
    where
        A: Union<U::Dims, Out: Union<V::Dims>>,
        U: Computable<Elem = T, Rank = Rank0>,
        V: Computable<Elem = T, Rank = Rank0>,
        M: Mask<T>,
        F: DimsOfBoth<A, U::Dims, <A as Union<U::Dims>>::Out, S>,
        S: Union<V::Dims>,
        X: Union<W>,
        Z: MappedBy<Q, W, X>,
    {
        let mut settings = Attend::new(F::default(), over).mask(mask);
        if let (Some(p), Some(seed)) = (self.dropout, &self.seed) {
            settings = settings.dropout(p, seed);
        }
        let attended = settings.apply(queries, keys, values);
        Biases::apply::<Q, W, T, Z, X>(&self.out, &attended)
    }
}

/// A cache of the keys and values of the tokens that a decoder has seen. Keys and values have the
/// dims `S`, and the tokens are along the dim `N`. Like a `Vec`, the cache can have spare capacity.
/// While there is some, appending a token writes only the key and the value of this token.
///
/// ```
/// use typed_dims::nn::{KeyValues, MultiHeadAttention};
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Token; struct Key; struct Width; struct Head; struct Feat; }
/// let heads = (Head.of(2), Feat.of(4));
/// let attention = MultiHeadAttention::<(Width,), (Head, Feat), (Head, Feat), Feat>::new(Width.of(8), heads, heads, 1);
/// let x: Tensor<f32, (Batch, Token, Width)> = randn((Batch.of(2), Token.of(5), Width.of(8)), 2);
/// let whole = attention.among(&x, Token, Key, Key.le(Token));
///
/// let mut past = KeyValues::<_, Key>::new((Batch.of(2), Head.of(2), Key.of(8), Feat.of(4)));
/// for start in 0..5 {
///     let x: Tensor<f32, (Batch, Token, Width)> = (&x).slice(Token, start..start + 1).eval();
///     let queries: Tensor<f32, (Batch, Token, Head, Feat)> = attention.query.apply(&x);
///     past.push(attention.key.apply(&x).rename(Token, Key), attention.value.apply(&x).rename(Token, Key));
///     let y: Tensor<f32, (Batch, Token, Width)> = attention.attend(&queries, past.keys(), past.values(), Key, true);
///     let expected = (&whole).slice(Token, start..start + 1);
///     assert!((y - expected).abs().max((Batch, Token, Width)).order(()) < 1e-5);
/// }
/// assert_eq!(past.len(), 5);
/// ```
///
/// If you append several tokens at once, pass the mask `(Key - Token).le(start)` to
/// [`attend`](MultiHeadAttention::attend), where `start` is the number of tokens that were in the
/// cache before (as an `isize`). Each token then attends to itself and the earlier ones.
#[derive(Clone)]
pub struct KeyValues<S: Sorted, N, T = f32> {
    keys: Named<T, S>,
    values: Named<T, S>,
    len: usize,
    over: N,
}

impl<S: Sorted, N: AnyDim + Resizable, T: Real> KeyValues<S, N, T> {
    /// An empty cache with capacity for as many tokens as `dims` has along `N`. Axes are stored in
    /// the order of `dims`. If the features are last, and the tokens directly before them, the keys
    /// of one head of one sequence are contiguous.
    ///
    /// # Panics
    ///
    /// If the cache does not fit into memory.
    #[track_caller]
    pub fn new<A: SizedDims<Set = S> + Copy>(dims: A) -> Self {
        KeyValues { keys: zeros(dims), values: zeros(dims), len: 0, over: N::default() }
    }

    /// The number of tokens in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the cache has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of tokens that the cache can hold without reallocating.
    pub fn capacity<X: Dims>(&self) -> usize
    where
        N: DimsOf<S, X>,
    {
        self.keys.size(self.over)
    }

    /// Removes all tokens. The capacity does not change.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends the keys and values of further tokens. If the capacity is too small, it is at least
    /// doubled, and the cache is copied; the memory order is then the order in which the dims are
    /// declared.
    ///
    /// # Panics
    ///
    /// If the size of a dim other than `N` differs from its size in the cache, if the numbers of
    /// keys and values differ, if a gradient or a recorded function traces the keys or the values,
    /// or if the larger cache does not fit into memory.
    #[track_caller]
    pub fn push<E, F, X>(&mut self, keys: Named<T, S, Rank0, E>, values: Named<T, S, Rank0, F>)
    where
        E: Expr<Elem = T>,
        F: Expr<Elem = T>,
        N: DimsOf<S, X>,
        S: Union<S, Out = S>,
        X: Dims,
    {
        let (end, room) = (self.len + keys.size(self.over), self.capacity());
        if end > room {
            let more = end.max(2 * room) - room;
            self.keys = self.keys.view().pad(self.over, 0, more, Pad::Constant(T::ZERO));
            self.values = self.values.view().pad(self.over, 0, more, Pad::Constant(T::ZERO));
        }
        self.keys.slice_mut(self.over, self.len..end).assign(keys);
        self.values.slice_mut(self.over, self.len..end).assign(values);
        self.len = end;
    }

    /// The keys of the tokens in the cache.
    pub fn keys<X: Dims>(&self) -> Remapped<&Named<T, S>, S>
    where
        N: DimsOf<S, X>,
    {
        (&self.keys).slice(self.over, ..self.len)
    }

    /// The values of the tokens in the cache.
    pub fn values<X: Dims>(&self) -> Remapped<&Named<T, S>, S>
    where
        N: DimsOf<S, X>,
    {
        (&self.values).slice(self.over, ..self.len)
    }
}
