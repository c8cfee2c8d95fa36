//! The tensor type, and methods that do not compute its elements.

use crate::error::{DimError, unwrap};
use crate::expr::{Expr, Operand};
use crate::plan::shape::Shape;
use crate::storage::{Evaluated, View};
use crate::types::brand::DimInfo;
use crate::types::dim::DimRef;
use crate::types::rank::{Rank, Rank0, RankOf};
use crate::types::set::{Dims, DimsOf, SetOf};
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// A tensor of `T` with the dims `D`, written in any order, and `R` positional axes.
///
/// ```text
/// Tensor<f32, (Batch, Seq)>            two dims
/// Tensor<f32, (Seq, Rest<B>)>          Seq, and whatever else the caller has bound
/// Tensor<f32, (), U2>                  two positional axes: a matrix without names
/// ```
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Batch; struct Seq; }
/// fn total(x: &Tensor<f32, (Batch, Seq)>) -> Tensor<f32, (Batch,)> {
///     x.sum(Seq)
/// }
/// let x: Tensor<f32, (Seq, Batch)> = ones((Batch.of(2), Seq.of(5)));   // the order of the dims does not matter
/// assert_eq!(total(&x).order(Batch), ndarray::array![5.0, 5.0]);
/// ```
///
/// This is an alias of [`Named`] that sorts the dims. rustc cannot infer `D` through the sorting,
/// so functions that are generic over the whole set of dims take `Named<T, S>`.
pub type Tensor<T, D, R = typenum::U0> = Named<T, <D as SetOf>::Set, <R as RankOf>::Rank>;

/// A tensor that borrows its elements, with the dims `D` written in any order, such as
/// `a.at((i, j))`.
///
/// ```text
/// TensorView<'w, f32, (Word, Width)>   a table in a file that is mapped into memory
/// ```
pub type TensorView<'a, T, D> = Named<T, <D as SetOf>::Set, Rank0, View<'a, T, <D as SetOf>::Set>>;

/// A tensor of `T` with the set of dims `S` (sorted) and the positional axes `R`. Its elements come
/// from `E`.
///
/// By default the tensor owns its elements. Bound arrays and the results of elementwise operations
/// are tensors too: their `E` borrows the elements, or computes them when they are needed, for
/// example when the tensor is reduced, ordered or assigned.
pub struct Named<T, S: Dims, R: Rank = Rank0, E = Evaluated<T, S, R>> {
    pub(crate) expr: E,
    marker: PhantomData<fn() -> (T, S, R)>,
}

impl<T, S: Dims, R: Rank, E: Clone> Clone for Named<T, S, R, E> {
    fn clone(&self) -> Self {
        Named::from_expr(self.expr.clone())
    }
}

impl<T, S: Dims, R: Rank, E: Copy> Copy for Named<T, S, R, E> {}

impl<T, S: Dims, R: Rank, E> Named<T, S, R, E> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn from_expr(expr: E) -> Self {
        Named { expr, marker: PhantomData }
    }
}

impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> Named<T, S, R, E> {
    /// The sizes of all axes, unified over the operands.
    #[inline]
    pub(crate) fn unified_shape(&self) -> Result<Shape, DimError> {
        let mut shape = Shape::new::<S, R>();
        self.unify(&mut shape)?;
        Ok(shape)
    }

    /// Like [`unified_shape`](Named::unified_shape), but a dim and its prime can have different
    /// sizes, as in the intermediate results of an operator that changes the sizes of several dims.
    /// All operands must have sizes.
    pub(crate) fn unchecked_shape(&self) -> Result<Shape, DimError> {
        let mut shape = Shape::new::<S, R>();
        self.expr.unify::<S, R>(&mut shape)?;
        Ok(shape)
    }

    /// Unifies the sizes of the operands in `shape`, which must be new.
    #[inline]
    pub(crate) fn unify(&self, shape: &mut Shape) -> Result<(), DimError> {
        self.expr.unify::<S, R>(shape)?;
        shape.finish()
    }

    /// The size of a dim.
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, a dim has no size, or a size given with `dim` is not its
    /// size in the tensor.
    #[track_caller]
    pub fn size<D: DimRef + DimsOf<S, X>, X: Dims>(&self, dim: D) -> usize {
        let shape = unwrap(self.unified_shape());
        unwrap(shape.check_given(&dim.info()));
        shape.size(position(&shape, dim.info()))
    }

    /// The names and sizes of the dims. Dims of one `dims!` are in order of declaration; the order
    /// of dims of different `dims!` calls is arbitrary, and can change when their declarations
    /// move.
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, or a dim has no size.
    #[track_caller]
    pub fn dims(&self) -> Vec<(&'static str, usize)> {
        let shape = unwrap(self.unified_shape());
        let names = S::KEYS.as_slice().iter().map(|key| key.name);
        names.zip(shape.sizes().iter().copied()).collect()
    }

    /// The sizes of the positional axes.
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, or a dim has no size.
    #[track_caller]
    pub fn positional_sizes(&self) -> Vec<usize> {
        let shape = unwrap(self.unified_shape());
        shape.sizes()[shape.named_len()..].to_vec()
    }

    /// The sizes of all axes, like an array's `shape`, for a tensor that only has positional axes.
    ///
    /// Dims have no order: use [`size`](Named::size) for one dim, or [`dims`](Named::dims) for the
    /// names and sizes of all.
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict.
    #[track_caller]
    pub fn shape(&self) -> Vec<usize>
    where
        S: AllOrdered,
    {
        self.positional_sizes()
    }

    /// The number of elements.
    ///
    /// # Panics
    ///
    /// If the sizes of operands conflict, a dim has no size, or the product of the sizes other than
    /// 0 overflows `isize`.
    #[track_caller]
    pub fn len(&self) -> usize {
        let shape = unwrap(self.unified_shape());
        let axes = shape.sizes().len();
        unwrap(shape.volume(&shape.all_axes()[..axes], 1))
    }

    /// Whether the tensor has no elements.
    ///
    /// # Panics
    ///
    /// See [`len`](Named::len).
    #[track_caller]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T, S: Dims, R: Rank> Named<T, S, R> {
    /// The same tensor, with its set of dims `S` written as `X`. Nothing is computed.
    ///
    /// Use it in generic code where rustc cannot see that two sets are equal: for example, that a
    /// tensor with the dim `D` has the same dims after it is multiplied by a tensor that only has
    /// `D`. Equality is checked at compile time, when the code is instantiated with concrete dims.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// fn scaled<D: AnyDim, X, Y>(x: &Named<f32, X>, gain: &Tensor<f32, (D,)>) -> Named<f32, X>
    /// where
    ///     D: DimsOf<X, Y>,
    ///     X: Union<(D,)>,
    ///     Y: Dims,
    /// {
    ///     (x * gain).eval().same_set()
    /// }
    ///
    /// dims! { struct Batch; struct Feat; }
    /// let x = from_vec((Batch.of(1), Feat.of(2)), vec![1.0, 2.0]);
    /// assert_eq!(scaled(&x, &full(Feat.of(2), 3.0)).order((Batch, Feat)), ndarray::array![[3.0, 6.0]]);
    /// ```
    ///
    /// ```compile_fail
    /// # use typed_dims::prelude::*;
    /// # dims! { struct Batch; struct Feat; }
    /// let x: Tensor<f32, (Batch,)> = ones::<f32, _>((Batch.of(1), Feat.of(2))).same_set();
    /// ```
    ///
    /// The dims must be in the same order too. Here, `S` is `(Batch, Feat)`:
    ///
    /// ```compile_fail
    /// # use typed_dims::prelude::*;
    /// # dims! { struct Batch; struct Feat; }
    /// let x: Named<f32, (Feat, Batch)> = ones::<f32, _>((Batch.of(1), Feat.of(2))).same_set();
    /// ```
    pub fn same_set<X: Dims>(self) -> Named<T, X, R> {
        const {
            assert!(
                S::KEYS.is_same(X::KEYS),
                "these are two different sets of dims, or the same set in two orders"
            )
        }
        let axes: SmallVec<[usize; 8]> = (0..S::KEYS.as_slice().len()).collect();
        Named::from_expr(self.expr.with_dims(&axes, |_| 1))
    }
}

/// The condition that a tensor has no dims: all its axes are positional.
#[diagnostic::on_unimplemented(
    message = "the dims `{Self}` are left over: only an array has a shape",
    label = "for an array, name all dims in `order`; for the size of one dim: `x.size(d)`"
)]
pub trait AllOrdered {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl AllOrdered for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The position of a dim among the axes of a shape. The types guarantee that the tensor has this
/// dim.
#[inline]
pub(crate) fn position(shape: &Shape, dim: DimInfo<'_>) -> usize {
    shape.position(&dim.key()).expect("the dim is one of the tensor's")
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank, E> Operand<T> for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = S;
    type Rank = R;
    type Expr = E;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> E {
        self.expr
    }
}

#[diagnostic::do_not_recommend]
impl<'a, T: Element, S: Dims, R: Rank, E> Operand<T> for &'a Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Dims = S;
    type Rank = R;
    type Expr = &'a E;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn into_expr(self) -> &'a E {
        &self.expr
    }
}
