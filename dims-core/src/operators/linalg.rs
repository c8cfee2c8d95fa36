//! Linear algebra: diagonals, triangles, products, norms and distances. With the feature `linalg`,
//! there are also systems of equations, decompositions and functions of matrices.

#[cfg(feature = "linalg")]
pub mod decompositions;
#[cfg(feature = "linalg")]
pub mod functions;
#[cfg(feature = "linalg")]
mod matrices;
#[cfg(feature = "linalg")]
pub mod systems;

use crate::error::DimError;
use crate::execute::lines::along_lines;
use crate::execute::place::{PlacedResult, Strides};
use crate::execute::reduce::{Empty, Reduced, TensorOf, TwoFactors, cosine, reduce, sum, sum_of_factors};
use crate::expr::remap::{Along, Changes, term};
use crate::expr::{Binary, Iota, Remap, Scalar, Select, Unary};
use crate::operators::nn::norm::check_eps;
use crate::operators::restructure::Remapped;
use crate::plan::shape::Shape;
use crate::tensors::named::{Named, position};
use crate::tensors::tensor::{AsTensor, Computable, Evaluable, NamedOf, checked, read_checked, reference};
use crate::types::brand::DimInfo;
use crate::types::dim::{DimList, DimRef};
use crate::types::set::rename::CanGain;
use crate::types::set::{Dims, DimsOf, DimsOfBoth, Union};
use core::panic::Location;
use kernels::ops;
use kernels::reduce::reducers;
use kernels::scalar::{Magnitude, Num, Real};
use kernels::scan::norm::UnitLength;
#[cfg(feature = "linalg")]
pub use kernels::step::linalg::{MatrixElement, RealMatrixElement};
use twins::panicking_twin;

/// The result of [`dot`](LinearAlgebra::dot) and similar methods. `X` are the dims of both tensors
/// without those summed over.
pub type Dotted<A, B, X> = Named<
    <A as AsTensor>::Elem,
    X,
    <<A as AsTensor>::Rank as crate::types::rank::Rank>::Max<<B as AsTensor>::Rank>,
>;

/// The dims of two tensors.
type BothDims<A, B> = <<A as AsTensor>::Dims as Union<<B as AsTensor>::Dims>>::Out;

/// The operation `O` on the elements of a borrowed `A` and of `B`.
type Pairwise<'a, O, T, A, B> = Named<
    T,
    BothDims<A, B>,
    <<A as AsTensor>::Rank as crate::types::rank::Rank>::Max<<B as AsTensor>::Rank>,
    Binary<O, &'a <A as AsTensor>::Expr, <B as AsTensor>::Expr>,
>;

/// Whether the index along `J` is at least (`O = Ge`) or at most (`Le`) the index along `I` plus a
/// number.
type TriangleMask<'a, O, I, J> = Binary<
    O,
    Iota<'a, <J as DimRef>::Brand, <J as DimRef>::Open>,
    Binary<ops::Offset, Iota<'a, <I as DimRef>::Brand, <I as DimRef>::Open>, Scalar<isize>>,
>;

/// The result of [`tril`](LinearAlgebra::tril) and [`triu`](LinearAlgebra::triu).
pub type Triangle<'a, O, A, I, J> = Named<
    <A as AsTensor>::Elem,
    <A as AsTensor>::Dims,
    <A as AsTensor>::Rank,
    Select<TriangleMask<'a, O, I, J>, <A as AsTensor>::Expr, Scalar<<A as AsTensor>::Elem>>,
>;

/// A tensor with the element type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tensor of `{T}`",
    label = "expected a tensor of `{T}`",
    note = "tensors of different element types do not mix: convert one with `.cast::<{T}>()`; an array becomes a tensor when it is bound, `b.at((i, j))`; of a double reference `&&b`, remove one `&`"
)]
pub trait Operable<T>: Computable<Elem = T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<T, A: Computable<Elem = T>> Operable<T> for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The length of a diagonal, and the changes that select it along `rows`.
fn diagonal(
    shape: &Shape,
    rows: DimInfo<'_>,
    columns: DimInfo<'_>,
    offset: isize,
) -> Result<(usize, Changes), DimError> {
    let (height, width) = (shape.size(position(shape, rows)), shape.size(position(shape, columns)));
    let (down, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
    if down > height || right > width {
        let what = format!(
            "there is no diagonal {offset} in a matrix of dims `{}` = {height}, `{}` = {width}",
            rows.name, columns.name
        );
        return Err(DimError::Shape { what });
    }
    let len = (height - down).min(width - right);
    #[cfg(feature = "std")]
    for (dim, size, start) in [(&rows, height, down), (&columns, width, right)] {
        kernels::trace::note_range(start..start + len, size, &|| format!("dim `{}`", dim.name));
    }
    let along = |offset, inner| {
        let terms = term(rows.key(), 1, Some(len));
        Along { offset, inner: Some(inner), terms }
    };
    let mut changes = Changes::new();
    changes.push((rows.key(), along(down.min(height.saturating_sub(1)), height)));
    changes.push((columns.key(), along(right.min(width.saturating_sub(1)), width)));
    Ok((len, changes))
}

/// Operations on matrices and vectors, whose axes are dims.
///
/// A matrix product is `(a * b).sum(k)`, or `a.contract(b, k)`, which requires that both have `k`.
/// An outer product is `a * b`. The Kronecker product of `a: (i, j)` and `b: (k, l)` is
/// `(a * b).flatten((i, k), m).flatten((j, l), n)`.
pub trait LinearAlgebra: AsTensor {
    /// The diagonal, along `rows`: the elements `x[i, i + offset]` in the order of `i`. A view.
    #[panicking_twin("so is an offset outside the matrix")]
    fn try_diagonal<I, J, X, Y>(
        self,
        rows: I,
        columns: J,
        offset: isize,
    ) -> Result<Remapped<Self, X>, DimError>
    where
        Self: Computable,
        J: DimRef + DimsOf<Self::Dims, X>,
        I: DimRef + DimsOf<X, Y>,
        X: Dims,
        Y: Dims,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        let (rows, columns) = (rows.info(), columns.info());
        shape.check_given(&columns)?;
        let (len, changes) = diagonal(&shape, rows, columns, offset)?;
        rows.resized().unify(len, Some(Location::caller()))?;
        Ok(Named::from_expr(Remap::of(tensor.expr, changes)))
    }

    /// The sum of the diagonal: `sum over i of x[i, i]`.
    #[panicking_twin]
    fn try_trace<I, J, X, Y>(&self, rows: I, columns: J) -> Result<Reduced<Self::Elem, Self, Y>, DimError>
    where
        Self: Computable<Elem: Num>,
        J: DimRef + DimsOf<Self::Dims, X>,
        I: DimRef + DimsOf<X, Y>,
        X: Dims,
        Y: Dims,
    {
        read_checked(self, &rows)?;
        let expr = read_checked(self, &columns)?;
        let tensor = reference::<Self>(&expr);
        let (_, changes) = diagonal(&tensor.unified_shape()?, rows.info(), columns.info(), 0)?;
        let along_rows = Remap::<_, Self::Dims, Self::Rank>::of(tensor.expr, changes);
        sum::<Named<_, X, _, _>, I, Y>(&along_rows)
    }

    /// A matrix with the elements along `rows` on its diagonal and zeros elsewhere:
    /// `out[i, j] = x[i]` where `i == j`. The new dim `columns` has the size of `rows`.
    #[panicking_twin]
    fn try_diag_embed<I, J, X, Y>(
        self,
        rows: I,
        columns: J,
    ) -> Result<Named<Self::Elem, Y, Self::Rank>, DimError>
    where
        Self: Computable<Elem: Num>,
        I: DimRef + DimsOf<Self::Dims, X>,
        J: DimRef,
        Self::Dims: Union<(J::Brand,), Out = Y> + CanGain<J::Brand>,
        X: Dims,
        Y: Dims,
    {
        let tensor = self.into_named();
        let shape = tensor.unified_shape()?;
        shape.check_given(&rows.info())?;
        let size = shape.size(position(&shape, rows.info()));
        columns.info().unify(size, Some(Location::caller()))?;
        let (old, new) = (Self::Dims::KEYS.as_slice(), Y::KEYS.as_slice());
        let of_dims = new.iter().map(|key| shape.position(key).map_or(size, |at| shape.size(at)));
        let sizes = of_dims.chain(shape.positional().iter().copied()).collect();
        let mut out = PlacedResult::of::<Y, Self::Rank>(sizes, Some(Self::Elem::ZERO))?;
        let steps = out.strides();
        let step = |key: &crate::types::set::DimKey| {
            steps[Y::KEYS.position(key).expect("the dim is one of the result's")]
        };
        let mut strides: Strides = old.iter().map(step).collect();
        strides[position(&shape, rows.info())] += step(&columns.info().key());
        strides.extend_from_slice(&steps[new.len()..]);
        out.put::<Self::Dims, Self::Rank, _>(&tensor.expr, &shape, 0, &strides)?;
        out.finish()
    }

    /// The lower triangle, with zeros above it: `out[i, j] = x[i, j]` where `j <= i + offset`.
    /// Lazy.
    #[track_caller]
    fn tril<'a, I, J, X, Y>(self, rows: I, columns: J, offset: isize) -> Triangle<'a, ops::Le, Self, I, J>
    where
        Self: Computable<Elem: Num>,
        J: DimRef + DimsOf<Self::Dims, X> + 'a,
        I: DimRef + DimsOf<X, Y> + 'a,
        X: Dims,
        Y: Dims,
    {
        Named::from_expr(triangle(ops::Le, self.into_named().expr, rows, columns, offset, Num::ZERO))
    }

    /// The upper triangle, with zeros below it: `out[i, j] = x[i, j]` where `j >= i + offset`.
    /// Lazy.
    #[track_caller]
    fn triu<'a, I, J, X, Y>(self, rows: I, columns: J, offset: isize) -> Triangle<'a, ops::Ge, Self, I, J>
    where
        Self: Computable<Elem: Num>,
        J: DimRef + DimsOf<Self::Dims, X> + 'a,
        I: DimRef + DimsOf<X, Y> + 'a,
        X: Dims,
        Y: Dims,
    {
        Named::from_expr(triangle(ops::Ge, self.into_named().expr, rows, columns, offset, Num::ZERO))
    }

    /// The product summed over dims that both tensors have:
    /// `out[..] = sum over dims of x[.., dims] * y[.., dims]`. For two vectors this is the dot
    /// product, for two matrices the matrix product.
    ///
    /// This is `(x * y).sum(dims)`, except that both tensors must have all of `dims`, which rustc
    /// checks. `contract` and `sum` may add in different orders.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Example; struct In = 2; struct Out = 3; }
    /// let x = from_vec((Example.of(2), In), vec![1, 2, 3, 4]);
    /// let w = from_vec((In, Out), vec![1, 0, 1, 0, 1, 1]);
    /// let y = x.contract(&w, In);                        // y[e, o] = sum over i of x[e, i] * w[i, o]
    /// assert_eq!(y.order((Example, Out)), ndarray::array![[1, 2, 3], [3, 4, 7]]);
    /// ```
    #[panicking_twin]
    fn try_contract<B: Operable<Self::Elem>, D: DimsOfBoth<Self::Dims, B::Dims, U, X>, U: Dims, X: Dims>(
        &self,
        other: B,
        dims: D,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: Computable<Elem: Num, Dims: Union<B::Dims, Out = U>>,
    {
        let own = self.borrowed();
        let product = Binary { op: ops::Mul, a: &*own, b: other.into_named().expr };
        let product: Pairwise<'_, ops::Mul, Self::Elem, Self, B> = Named::from_expr(product);
        sum_of_factors::<TwoFactors<Self::Dims, B::Dims, D>, Named<_, U, _, _>, D, X>(&*read_checked(
            &product, &dims,
        )?)
    }

    /// An alias of [`contract`](LinearAlgebra::contract), with NumPy's name:
    /// `sum over dims of x * y`.
    #[panicking_twin]
    fn try_dot<B: Operable<Self::Elem>, D: DimsOfBoth<Self::Dims, B::Dims, U, X>, U: Dims, X: Dims>(
        &self,
        other: B,
        dims: D,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: Computable<Elem: Num, Dims: Union<B::Dims, Out = U>>,
    {
        self.try_contract(other, dims)
    }

    /// The Euclidean norm over dims: `sqrt(sum of |x|^2)`. For complex elements, the result is
    /// real.
    #[panicking_twin]
    #[inline]
    fn try_norm<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
    ) -> Result<Reduced<<Self::Elem as Magnitude>::Abs, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Magnitude<Abs: Real>>,
    {
        reduce::<Self, D, X, _>(&*read_checked(self, &dims)?, reducers::Norm, Empty::Allowed)
    }

    /// The `p`-norm over dims: `(sum of |x|^p)^(1/p)`. For infinity it is the greatest `|x|`, for
    /// minus infinity the least, and for 0 the number of nonzero elements.
    #[panicking_twin("so is an infinite `p` for a dim of size 0")]
    fn try_norm_p<D: DimsOf<Self::Dims, X>, X: Dims>(
        &self,
        dims: D,
        p: Self::Elem,
    ) -> Result<Reduced<Self::Elem, Self, X>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        p_norm::<_, D, X>(reference::<Self>(&*read_checked(self, &dims)?), p, "norm_p")
    }

    /// The distance between vectors along dims that both tensors have, in the `p`-norm:
    /// `norm_p(x - y)`. If the two sets of vectors have different dims, the result contains the
    /// distance between the vectors of each pair, computed in one pass. As in
    /// [`norm_p`](LinearAlgebra::norm_p), an infinite `p` for a dim of size 0 is an error.
    #[panicking_twin]
    fn try_cdist<B: Operable<Self::Elem>, D: DimsOfBoth<Self::Dims, B::Dims, U, X>, U: Dims, X: Dims>(
        &self,
        other: B,
        dims: D,
        p: Self::Elem,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: Computable<Elem: Real, Dims: Union<B::Dims, Out = U>>,
    {
        let own = self.borrowed();
        let difference = Binary { op: ops::Sub, a: &*own, b: other.into_named().expr };
        let difference: Pairwise<'_, ops::Sub, Self::Elem, Self, B> = Named::from_expr(difference);
        p_norm::<_, D, X>(checked(difference, &dims)?, p, "cdist")
    }

    /// The cosine of the angle between vectors along dims that both tensors have:
    /// `sum of x * y / (norm of x * norm of y)`, where each norm is at least `eps`. Computed in one
    /// pass, unless a gradient or a recorded function traces an operand.
    #[panicking_twin("so is an `eps` that is negative or NaN")]
    fn try_cosine_similarity<B: Operable<Self::Elem>, D: DimsOfBoth<Self::Dims, B::Dims, U, X>, U: Dims, X>(
        &self,
        other: B,
        dims: D,
        eps: Self::Elem,
    ) -> Result<Dotted<Self, B, X>, DimError>
    where
        Self: Computable<Elem: Real, Dims: Union<B::Dims, Out = U>>,
        X: Dims,
    {
        check_eps("cosine_similarity", eps)?;
        cosine::<Self, B, D, U, X>(&*self.borrowed(), other.into_named().expr, &dims, eps)
    }

    /// The vectors along dims divided by their norms: `x / max(norm of x, eps)`. The result is
    /// evaluated.
    #[panicking_twin("so is an `eps` that is negative or NaN")]
    fn try_normalize<D: DimsOf<Self::Dims, X>, X: Dims>(
        self,
        dims: D,
        eps: Self::Elem,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Evaluable<Elem: Real>,
    {
        check_eps("normalize", eps)?;
        along_lines::<NamedOf<Self>, D, _>(checked(self, &dims)?, UnitLength(eps))
    }
}

impl<A: AsTensor + ?Sized> LinearAlgebra for A {}

#[track_caller]
fn triangle<'a, O, E, I, J, T>(
    op: O,
    expr: E,
    rows: I,
    columns: J,
    offset: isize,
    zero: T,
) -> Select<TriangleMask<'a, O, I, J>, E, Scalar<T>>
where
    I: DimRef + 'a,
    J: DimRef + 'a,
{
    // Clamped, so that adding an index to the offset does not overflow. In practice, no index
    // exceeds `isize::MAX / 2`.
    let offset = offset.clamp(isize::MIN / 2, isize::MAX / 2);
    let row = Binary { op: ops::Offset, a: Iota::new(rows), b: Scalar(offset) };
    Select { cond: Binary { op, a: Iota::new(columns), b: row }, a: expr, b: Scalar(zero) }
}

/// A tensor with the dims of `A`, the element type `T` and the expression `E`.
type With<A, T, E> = Named<T, <A as AsTensor>::Dims, <A as AsTensor>::Rank, E>;

/// The `p`-norm over the dims `D`. In errors, the operation is called `name`.
#[track_caller]
fn p_norm<A, D, X>(tensor: A, p: A::Elem, name: &'static str) -> Result<Reduced<A::Elem, A, X>, DimError>
where
    A: Computable<Elem: Real>,
    D: DimList,
    X: Dims,
{
    use num_traits::{Float, One, Zero};
    let (one, expr) = (A::Elem::one(), tensor.into_named().expr);
    let refused = Empty::Refused(name);
    if p == one + one {
        return reduce::<With<A, A::Elem, _>, D, X, _>(&expr, reducers::Norm, Empty::Allowed);
    }
    if p.is_zero() {
        let other = Binary { op: ops::Ne, a: expr, b: Scalar(A::Elem::zero()) };
        let ones = Select { cond: other, a: Scalar(one), b: Scalar(A::Elem::zero()) };
        return reduce::<With<A, A::Elem, _>, D, X, _>(&ones, reducers::Sum::ONCE, Empty::Allowed);
    }
    let sizes = Unary { op: ops::Abs, a: expr };
    if p.is_infinite() && p > A::Elem::zero() {
        return reduce::<With<A, A::Elem, _>, D, X, _>(&sizes, reducers::Max, refused);
    }
    if p.is_infinite() {
        return reduce::<With<A, A::Elem, _>, D, X, _>(&sizes, reducers::Min, refused);
    }
    if p == one {
        return reduce::<With<A, A::Elem, _>, D, X, _>(&sizes, reducers::Sum::ONCE, Empty::Allowed);
    }
    let power = reducers::NormP(p);
    reduce::<With<A, A::Elem, _>, D, X, _>(&sizes.a, power, Empty::Allowed)
}
