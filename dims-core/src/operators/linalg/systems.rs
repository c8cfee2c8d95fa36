//! Systems of linear equations, inverses, determinants and Cholesky decompositions.

use super::Operable;
use super::matrices::{MatrixBatch, RealElem, RightSides};
use crate::error::DimError;
use crate::execute::reduce::{Reduced, TensorOf};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimRef;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::rename::NotIn;
use crate::types::set::{Dims, DimsOf, Union};
use crate::types::size::SquareWith;
use kernels::step::linalg::{MatrixElement, MatrixStep, MatrixWork, ReadTriangle};
use twins::panicking_twin;

/// The triangle of a matrix that [`solve_triangular`](LinearSystems::solve_triangular) reads. The
/// elements of the other triangle count as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangular {
    /// The diagonal and the elements below it.
    Lower,
    /// The diagonal and the elements above it.
    Upper,
    /// The elements below the diagonal. The diagonal counts as ones.
    UnitLower,
    /// The elements above the diagonal. The diagonal counts as ones.
    UnitUpper,
}

impl Triangular {
    fn triangle(self) -> ReadTriangle {
        ReadTriangle {
            lower: matches!(self, Triangular::Lower | Triangular::UnitLower),
            transposed: false,
            unit: matches!(self, Triangular::UnitLower | Triangular::UnitUpper),
        }
    }
}

/// The sign of a determinant, and the logarithm of its magnitude: see
/// [`slogdet`](LinearSystems::slogdet).
pub type SignAndLog<A, X> = (Reduced<<A as AsTensor>::Elem, A, X>, Reduced<RealElem<A>, A, X>);

/// Square matrices along two dims of a tensor: their inverses, determinants and Cholesky
/// decompositions, and systems of equations. All other dims, and positional axes, are a batch. The
/// methods run immediately. Several small real matrices of a batch may be computed at once. For
/// larger and complex matrices, the crate `faer` is used.
///
/// A matrix maps vectors along `columns` to vectors along `rows`:
/// `y[rows] = sum over columns of a[rows, columns] * x[columns]`. So `b` in `a x = b` has the dim
/// `rows`, and the solution has `columns`. If a matrix has no result, the error names its position
/// in the batch.
pub trait LinearSystems: AsTensor {
    /// The Cholesky decomposition of positive definite matrices: the lower triangular `l` with
    /// `a = l l^H`, that is, `a[r, c] = sum over k of l[r, k] * conj(l[c, k])`. The elements above
    /// the diagonal of the result are zeros.
    ///
    /// It is computed from `(a + a^H) / 2`, so the gradient is symmetric, as in JAX and PyTorch.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[4.0, 2.0], [2.0, 10.0]];
    /// assert_eq!(a.at((r, c)).cholesky(r, c).order((r, c)), array![[2.0, 0.0], [1.0, 3.0]]);
    /// ```
    #[panicking_twin(
        "so is a matrix that is not positive definite, or has an element that is infinite or NaN"
    )]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_cholesky<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        MatrixBatch::square(self, MatrixWork::Cholesky.name(), rows.info(), columns.info())?
            .alike(MatrixWork::Cholesky)
    }

    /// The inverse: `sum over c of a[r, c] * out[s, c]` is 1 where `r == s`, and 0 elsewhere. As a
    /// matrix, the result has its rows along `columns`, and its columns along `rows`:
    /// `(a.inverse(r, c) * b).sum(r)` is `a.solve(b, r, c)`, but `solve` is faster and more
    /// precise.
    ///
    /// For a matrix along a dim and its [prime](crate::types::prime), exchange the two dims to get
    /// the inverse for [`compose`](crate::operators::priming::Priming::compose):
    /// `a.inverse(n, prime(n)).transpose(n)`.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[1.0, 2.0], [0.0, 4.0]];
    /// assert_eq!(a.at((r, c)).inverse(r, c).order((c, r)), array![[1.0, -0.5], [0.0, 0.25]]);
    /// ```
    #[panicking_twin("so are a matrix without an inverse, an infinite or NaN element, and a result out of range")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_inverse<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        MatrixBatch::square(self, MatrixWork::Inverse.name(), rows.info(), columns.info())?
            .alike(MatrixWork::Inverse)
    }

    /// The determinant. It is 1 for a matrix without elements.
    ///
    /// The gradient is also defined where the determinant is 0. Second derivatives require that the
    /// matrix is invertible.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[1.0, 2.0], [3.0, 4.0]];
    /// assert!((a.at((r, c)).det(r, c).order(()) + 2.0_f64).abs() < 1e-12);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_det<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<Reduced<Self::Elem, Self, Y>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::square(self, MatrixWork::Det.name(), rows.info(), columns.info())?;
        let data = matrices.run(MatrixWork::Det)?.next::<Self::Elem>();
        matrices.result(data, &[])
    }

    /// The sign of the determinant, and the logarithm of its magnitude, which does not overflow
    /// where the determinant would. If a pivot of the elimination is 0, the sign is 0 and the
    /// logarithm is minus infinity. Otherwise the sign of a complex determinant is a number of
    /// magnitude 1.
    ///
    /// The gradient requires that the matrix is invertible.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[0.0_f64, 1e-200], [1e-200, 0.0]];
    /// let (sign, log) = a.at((r, c)).slogdet(r, c);
    /// assert_eq!(sign.order(()), -1.0);
    /// let log: f64 = log.order(());
    /// assert!((log - 2.0 * 1e-200_f64.ln()).abs() < 1e-9);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_slogdet<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<SignAndLog<Self, Y>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::square(self, MatrixWork::SlogDet.name(), rows.info(), columns.info())?;
        let mut results = matrices.run(MatrixWork::SlogDet)?;
        let sign = matrices.result(results.next::<Self::Elem>(), &[])?;
        Ok((sign, matrices.result(results.next::<RealElem<Self>>(), &[])?))
    }

    /// The solution `x` of `sum over columns of a[rows, columns] * x[columns] = b[rows]`. `b` must
    /// have `rows` and must not have `columns`. A further dim of `b` is part of the batch if the
    /// matrices have it. Otherwise its positions are several right-hand sides of the same matrix.
    /// Each matrix is factorized once.
    ///
    /// If `a` and `b` both have a dim and its [prime](crate::types::prime), rename the prime in
    /// `b`: the dims of `a.solve(b.prime(prime(n)), n, prime(n))` are the prime and the prime of
    /// the prime.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let (a, b) = (array![[2.0, 1.0], [0.0, 4.0]], array![4.0, 8.0]);
    /// assert_eq!(a.at((r, c)).solve(b.at(r), r, c).order(c), array![1.0, 2.0]);
    /// ```
    #[panicking_twin("so are a matrix without an inverse, an infinite or NaN element, and a result out of range")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_solve<B: Operable<Self::Elem> + AsTensor<Rank = Rank0>, R: DimRef + DimsOf<X, Y> + DimsOf<B::Dims, Z> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X> + NotIn<B::Dims>, X: Dims, Y: Dims + Union<B::Dims, Out = V> + Union<Z, Out = W>, Z: Dims, V: Dims, W: Dims + Union<(C::Brand,), Out = O>, O: Dims>(
        self,
        b: B,
        rows: R,
        columns: C,
    ) -> Result<Named<Self::Elem, O, Self::Rank>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let work = MatrixWork::Solve { transposed: false };
        let matrices = MatrixBatch::square(self, work.name(), rows.info(), columns.info())?;
        solved::<_, V, _, O, _>(matrices, b, work)
    }

    /// Like [`solve`](Self::solve), for triangular matrices: one triangle is read, and the other
    /// counts as zeros, whatever its elements are.
    ///
    /// ```
    /// use typed_dims::operators::linalg::systems::Triangular;
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let (l, b) = (array![[2.0, 9.0], [1.0, 4.0]], array![4.0, 10.0]);
    /// assert_eq!(l.at((r, c)).solve_triangular(b.at(r), r, c, Triangular::Lower).order(c), array![2.0, 2.0]);
    /// // The transpose has rows and columns exchanged: its upper triangle is the lower one of `l`.
    /// assert_eq!(l.at((c, r)).solve_triangular(b.at(r), r, c, Triangular::Upper).order(c), array![0.75, 2.5]);
    /// ```
    #[panicking_twin(
        "so are a 0 on a diagonal that is read, an infinite or NaN element that is read, and a result out of range"
    )]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_solve_triangular<B: Operable<Self::Elem> + AsTensor<Rank = Rank0>, R: DimRef + DimsOf<X, Y> + DimsOf<B::Dims, Z> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X> + NotIn<B::Dims>, X: Dims, Y: Dims + Union<B::Dims, Out = V> + Union<Z, Out = W>, Z: Dims, V: Dims, W: Dims + Union<(C::Brand,), Out = O>, O: Dims>(
        self,
        b: B,
        rows: R,
        columns: C,
        side: Triangular,
    ) -> Result<Named<Self::Elem, O, Self::Rank>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let work = MatrixWork::SolveTriangular(side.triangle());
        let matrices = MatrixBatch::square(self, work.name(), rows.info(), columns.info())?;
        solved::<_, V, _, O, _>(matrices, b, work)
    }
}

impl<A: AsTensor + ?Sized> LinearSystems for A {}

/// Solves for the right-hand sides. `V` are the dims of `b` and of the batch, `O` the dims of the
/// result.
#[track_caller]
pub(super) fn solved<T: MatrixElement, V: Dims, B: Operable<T>, O: Dims, R: Rank>(
    mut matrices: MatrixBatch<T>,
    b: B,
    work: MatrixWork,
) -> Result<Named<T, O, R>, DimError> {
    let mut right = RightSides::of::<V, R, B>(b, &matrices)?;
    let step = MatrixStep::<T>::new(work, matrices.sizes().with_right(right.columns()));
    let data = matrices.execute(&step, Some(&mut right.data))?.next::<T>();
    let along: alloc::vec::Vec<_> = core::iter::once(matrices.columns).chain(right.further).collect();
    matrices.result(data, &along)
}
