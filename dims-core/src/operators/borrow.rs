//! `Copy` views of tensors, for values that are used more than once.
//!
//! Operators and elementwise methods take tensors by value, so that a result can reuse the memory of its operand. A [view](Named::view) borrows the tensor
//! once, and is then copied as often as it is used.

use crate::expr::index::ComputedIndex;
use crate::expr::keyed::Keyed;
use crate::expr::{Binary, Iota, Remap, Scalar, Select, Unary};
use crate::named::Named;
use crate::rank::Rank;
use crate::select::Take;
use crate::set::Dims;
use crate::storage::{Owned, View};
use crate::tensor::Computable;

impl<T, S: Dims, R: Rank> Named<T, S, R, Owned<T, S, R>> {
    /// A view of the tensor, which is `Copy`: it can be used any number of times, captured by several closures, and taken from a field of a
    /// borrowed struct. Nothing is copied or computed.
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
    ///     fn centred(&self) -> Tensor<f32, (Token, Feature)> {
    ///         let table = self.table.view(); // `self.table - ..` would move it out of `self`
    ///         (table - table.mean(Token)).eval()
    ///     }
    /// }
    ///
    /// let model = Model { table: from_fn((Token.of(3), Feature.of(2)), |(token, _)| token as f32) };
    /// assert_eq!(model.centred().index(Feature, 0).order(Token), ndarray::array![-1.0, 0.0, 1.0]);
    /// ```
    #[inline(always)]
    pub fn view(&self) -> Named<T, S, R, View<'_, T, S, R>> {
        Named::from_expr(self.expr.view())
    }
}

impl<'a, T, S: Dims, R: Rank> Named<T, S, R, View<'a, T, S, R>> {
    /// The same view, which is `Copy` already.
    #[inline(always)]
    pub fn view(&self) -> Self {
        *self
    }
}

/// An expression that is not in memory is borrowed as it is.
macro_rules! views_of_expressions {
    ($([$($parameter:ident $(: $bound:path)?),*] $expr:ty;)*) => {$(
        impl<'a, T, S: Dims, R: Rank, $($parameter $(: $bound)?),*> Named<T, S, R, $expr> {
            /// A view of the expression, which is `Copy`. Nothing is computed: each use of the view computes the elements that it reads, so call
            /// [`eval`](crate::reduce::Reductions::eval) first where there are many uses.
            #[inline(always)]
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
    [B: crate::brand::Brand, O] Iota<'a, B, O>;
    [U] Scalar<U>;
    [U] Keyed<U>;
    [E, X] View<'a, T, S, R, ComputedIndex<E, X>>;
}

impl<T, S: Dims, R: Rank, E> Named<T, S, R, &E> {
    /// The same view, which is `Copy` already.
    #[inline(always)]
    pub fn view(&self) -> Self {
        *self
    }
}
