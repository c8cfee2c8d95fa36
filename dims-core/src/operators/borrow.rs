//! `Copy` views of tensors, and parts of tensors to assign to.
//!
//! Operators and elementwise methods take tensors by value, so that a result can reuse its
//! operand's memory. A [view](Named::view) is a borrowed tensor that is `Copy`.

use crate::error::DimError;
use crate::expr::index::ComputedIndex;
use crate::expr::keyed::Keyed;
use crate::expr::{Binary, Iota, Remap, Scalar, Select, Unary};
use crate::operators::restructure::range::{DimRange, within};
use crate::operators::select::Take;
use crate::storage::{Evaluated, Place, View};
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::Computable;
use crate::types::dim::DimRef;
use crate::types::rank::Rank;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::Resizable;
use kernels::scalar::Element;
use twins::panicking_twin;

impl<T, S: Dims, R: Rank> Named<T, S, R, Evaluated<T, S, R>> {
    /// A borrowed tensor that is `Copy`: it can be used any number of times, captured by several
    /// closures, and taken from a field of a borrowed struct. No elements are copied or computed.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Token; struct Feature; }
    /// struct Model {
    ///     table: Tensor<f32, (Token, Feature)>,
    /// }
    ///
    /// impl Model {
    ///     fn centered(&self) -> Tensor<f32, (Token, Feature)> {
    ///         let table = self.table.view(); // `self.table - ..` would move it out of `self`
    ///         (table - table.mean(Token)).eval()
    ///     }
    /// }
    ///
    /// let model = Model { table: from_fn((Token.of(3), Feature.of(2)), |(token, _)| token as f32) };
    /// assert_eq!(model.centered().index(Feature, 0).order(Token), ndarray::array![-1.0, 0.0, 1.0]);
    /// ```
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn view(&self) -> Named<T, S, R, View<'_, T, S, R>> {
        Named::from_expr(self.expr.view())
    }
}

impl<T: Element, S: Dims, R: Rank> Named<T, S, R> {
    /// The elements in a range of positions along a dim, to assign to. Negative positions count
    /// from the end. Elements are copied only if a clone or another position of the tensor shares
    /// them.
    ///
    /// For example, a decoder appends to its preallocated keys and values:
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Key; struct Feat; }
    /// let mut cache = zeros::<f32, _>((Key.of(8), Feat.of(2)));
    /// for n in 0..3 {
    ///     let new = full((Key.of(1), Feat.of(2)), n as f32);
    ///     cache.slice_mut(Key, n..n + 1).assign(&new);
    /// }
    /// let known = (&cache).slice(Key, ..3);
    /// assert_eq!(known.index(Feat, 0).order(Key), ndarray::array![0.0, 1.0, 2.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the range is not within the dim, if a size given with `dim` is not the length of the
    /// range, if a gradient is being taken through the tensor, or if the tensor depends on inputs
    /// of a function that is being recorded.
    #[panicking_twin(
        but = "a range that is not within the dim, or a given size that is not its length, is an error"
    )]
    pub fn try_slice_mut<D: DimRef + Resizable + DimsOf<S, X>, X: Dims, P: DimRange>(
        &mut self,
        dim: D,
        range: P,
    ) -> Result<Place<'_, T, S, R>, DimError> {
        let (shape, info) = (self.unified_shape()?, dim.info());
        let (start, _, len) = within(&shape, info, range)?;
        // A size given with the dim must be the length of the range. The size that a local dim
        // remembers is that of the whole dim, so it is not compared.
        info.resized().unify(len, None)?;
        Ok(self.as_place().part(position(&shape, info), start, len))
    }
}

impl<'a, T, S: Dims, R: Rank> Named<T, S, R, View<'a, T, S, R>> {
    /// Returns the same view.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn view(&self) -> Self {
        *self
    }
}

macro_rules! views_of_expressions {
    ($([$($parameter:ident $(: $bound:path)?),*] $expr:ty;)*) => {$(
        impl<'a, T, S: Dims, R: Rank, $($parameter $(: $bound)?),*> Named<T, S, R, $expr> {
            /// A borrowed expression that is `Copy`. Each use of the view computes the elements
            /// that it reads, so call [`eval`](crate::execute::reduce::Reductions::eval) first if
            /// you use it often.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn view(&self) -> Named<T, S, R, &$expr> {
                Named::from_expr(&self.expr)
            }
        }
    )*};
}

views_of_expressions! {
    [O, A] Unary<O, A>;
    [O, A, B] Binary<O, A, B>;
    [C, A, B] Select<C, A, B>;
    [E, Q, P] Remap<E, Q, P>;
    [A: Computable, I] Take<A, I>;
    [B: crate::types::brand::Brand, O] Iota<'a, B, O>;
    [U] Scalar<U>;
    [U] Keyed<U>;
    [E, X] View<'a, T, S, R, ComputedIndex<E, X>>;
}

impl<T, S: Dims, R: Rank, E> Named<T, S, R, &E> {
    /// Returns the same view.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn view(&self) -> Self {
        *self
    }
}
