//! Matrix factorizations, eigenvalues and singular values.

use super::Operable;
use super::matrices::{MatrixBatch, RealElem};
use super::systems::solved;
use crate::error::DimError;
use crate::execute::reduce::{Reduced, TensorOf};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimRef;
use crate::types::rank::Rank0;
use crate::types::set::rename::{CanGain, NotIn};
use crate::types::set::{Dims, DimsOf, Union};
use crate::types::size::SquareWith;
use core::marker::PhantomData;
use kernels::step::linalg::{EigenStep, MatrixElement, MatrixWork, RealMatrixElement};
use num_complex::Complex;
use twins::panicking_twin;

/// A tensor with the element type and rank of `A`, and the dims `S`.
type ElemsOver<A, S> = Named<<A as AsTensor>::Elem, S, <A as AsTensor>::Rank>;
/// Like [`ElemsOver`], with complex elements.
type ComplexOver<A, S> = Named<Complex<<A as AsTensor>::Elem>, S, <A as AsTensor>::Rank>;

/// The result of [`eigh`](Decompositions::eigh): eigenvalues and eigenvectors.
pub type EigenPairs<A, X> = (Reduced<RealElem<A>, A, X>, TensorOf<A>);
/// The result of [`svd`](Decompositions::svd): `u`, `s` and `v`.
pub type SingularTriple<A, U, S, V> = (ElemsOver<A, U>, Reduced<RealElem<A>, A, S>, ElemsOver<A, V>);
/// The result of [`lu`](Decompositions::lu): the order of the rows, `l` and `u`.
pub type OrderedFactors<A, X, L, U> = (Reduced<usize, A, X>, ElemsOver<A, L>, ElemsOver<A, U>);

/// Decompositions of matrices along two dims of a tensor, and quantities computed from them. All
/// other dims are a batch. The methods run immediately. Several small real matrices of a batch may
/// be computed at once. For larger and complex matrices, the crate `faer` is used.
///
/// If the factors share a new dim, pass it as `k`. Its size is the smaller of the sizes of `rows`
/// and `columns`. If an element is infinite or NaN, the error names the position of its matrix in
/// the batch.
pub trait Decompositions: AsTensor {
    /// The QR decomposition, `a[i, j] = sum over k of q[i, k] * r[k, j]`: `(q, r)`, where the
    /// columns of `q` have length 1 and are orthogonal, and `r` has zeros below its diagonal.
    ///
    /// The gradient requires the first `n` columns of `a` to be linearly independent, where `n` is
    /// the size of `k`. (S. Walter and L. Lehmann, 2018.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j, k);
    /// let a = array![[3.0_f64, 1.0], [4.0, 2.0], [0.0, 5.0]];
    /// let (q, r) = a.at((i, j)).qr(i, j, k);
    /// let product = q.contract(&r, k).order((i, j));
    /// assert!((product - &a).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_qr<R: DimRef + DimsOf<X, Y> + DimsOf<Self::Dims, Z>, C: DimRef + DimsOf<Self::Dims, X>, K: DimRef, X: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = U>, Y: Dims, Z: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = V>, U: Dims, V: Dims>(
        self,
        rows: R,
        columns: C,
        k: K,
    ) -> Result<(ElemsOver<Self, U>, ElemsOver<Self, V>), DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let k = matrices.least(k.info())?;
        let mut results = matrices.run(MatrixWork::Qr)?;
        let q = matrices.result(results.next::<Self::Elem>(), &[matrices.rows, k])?;
        Ok((q, matrices.result(results.next::<Self::Elem>(), &[k, matrices.columns])?))
    }

    /// The LU decomposition with row exchanges,
    /// `a[order[i], c] = sum over k of l[i, k] * u[k, c]`: `(order, l, u)`, where `l` has ones on
    /// its diagonal and zeros above it, and `u` has zeros below its diagonal.
    /// `a.take(rows, order)` is the product of `l` and `u`.
    ///
    /// The gradient requires that no pivot is 0. (F. de Hoog, R. Anderssen and M. Lukas, 2011.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j, k);
    /// let a = array![[1.0, 2.0], [4.0, 4.0]];
    /// let (order, l, u) = a.at((i, j)).lu(i, j, k);
    /// assert_eq!(order.order(i), array![1, 0]);
    /// assert_eq!(l.order((i, k)), array![[1.0, 0.0], [0.25, 1.0]]);
    /// assert_eq!(u.order((k, j)), array![[4.0, 4.0], [0.0, 1.0]]);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_lu<R: DimRef + DimsOf<X, Y> + DimsOf<Self::Dims, Z>, C: DimRef + DimsOf<Self::Dims, X>, K: DimRef, X: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = U>, Y: Dims, Z: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = V>, U: Dims, V: Dims>(
        self,
        rows: R,
        columns: C,
        k: K,
    ) -> Result<OrderedFactors<Self, X, U, V>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let k = matrices.least(k.info())?;
        let mut results = matrices.run(MatrixWork::Lu)?;
        let order = matrices.result(results.next::<usize>(), &[matrices.rows])?;
        let lower = matrices.result(results.next::<Self::Elem>(), &[matrices.rows, k])?;
        Ok((order, lower, matrices.result(results.next::<Self::Elem>(), &[k, matrices.columns])?))
    }

    /// The singular value decomposition, `a[r, c] = sum over k of u[r, k] * s[k] * conj(v[c, k])`:
    /// `(u, s, v)`, where the columns of `u` and `v` have length 1 and are orthogonal, and `s` is
    /// non-negative and in descending order.
    ///
    /// The sign (or complex phase) of singular vectors is arbitrary, and so is the basis that they
    /// form for equal singular values. The gradient of a result that depends on this choice is
    /// infinite, NaN or wrong, and inaccurate if singular values are nearly equal. If the matrix is
    /// not square, a singular value of 0 has the same effect as equal ones. The first derivative of
    /// `s` is defined even if some singular values are equal; its second derivative is not.
    /// (J. Townsend, 2016.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j, k);
    /// let a = array![[3.0_f64, 0.0], [0.0, -2.0], [0.0, 0.0]];
    /// let (u, s, v) = a.at((i, j)).svd(i, j, k);
    /// assert!(((&s).order(k) - array![3.0, 2.0]).iter().all(|error| error.abs() < 1e-12));
    /// let product = (u * &s).contract(&v, k).order((i, j));
    /// assert!((product - &a).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_svd<R: DimRef + DimsOf<X, Y> + DimsOf<Self::Dims, Z>, C: DimRef + DimsOf<Self::Dims, X>, K: DimRef, X: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = U>, Y: Dims + Union<(K::Brand,), Out = W>, Z: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = V>, U: Dims, V: Dims, W: Dims>(
        self,
        rows: R,
        columns: C,
        k: K,
    ) -> Result<SingularTriple<Self, U, W, V>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let k = matrices.least(k.info())?;
        let mut results = matrices.run(MatrixWork::Svd)?;
        let u = matrices.result(results.next::<Self::Elem>(), &[matrices.rows, k])?;
        let s = matrices.result(results.next::<RealElem<Self>>(), &[k])?;
        Ok((u, s, matrices.result(results.next::<Self::Elem>(), &[matrices.columns, k])?))
    }

    /// The singular values in descending order, along the new dim `k`: `s` of [`svd`](Self::svd),
    /// without the vectors. The first derivative is defined even if some values are equal; the
    /// second derivative is not.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j, k);
    /// let a = array![[0.0_f64, 2.0], [1.0, 0.0]];
    /// let s = a.at((i, j)).singular_values(i, j, k).order(k);
    /// assert!((s - array![2.0, 1.0]).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    fn try_singular_values<
        R: DimRef + DimsOf<X, Y>,
        C: DimRef + DimsOf<Self::Dims, X>,
        K: DimRef,
        X: Dims,
        Y: Dims + CanGain<K::Brand> + Union<(K::Brand,), Out = W>,
        W: Dims,
    >(
        self,
        rows: R,
        columns: C,
        k: K,
    ) -> Result<Reduced<RealElem<Self>, Self, W>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let k = matrices.least(k.info())?;
        let data = matrices.run(MatrixWork::SingularValues)?.next::<RealElem<Self>>();
        matrices.result(data, &[k])
    }

    /// The eigenvalues of symmetric or Hermitian matrices, in ascending order along `columns`, and
    /// their eigenvectors, one for each position of `columns`: `(w, v)` with
    /// `sum over s of a[r, s] * v[s, c] = w[c] * v[r, c]`, where the eigenvectors have length 1 and
    /// are orthogonal.
    ///
    /// The decomposed matrix is `(a + a^H) / 2`, so the gradient is symmetric. The sign (or complex
    /// phase) of eigenvectors is arbitrary, and so is the basis that they form for equal
    /// eigenvalues. The gradient of a result that depends on this choice is infinite, NaN or wrong,
    /// and inaccurate if eigenvalues are nearly equal. The first derivative of `w` is defined even
    /// if some eigenvalues are equal; its second derivative is not.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[2.0_f64, 1.0], [1.0, 2.0]];
    /// let (w, v) = a.at((r, c)).eigh(r, c);
    /// assert!((w.order(c) - array![1.0, 3.0]).iter().all(|error| error.abs() < 1e-12));
    /// assert!(((v.order((r, c))[[0, 1]]).abs() - 0.5_f64.sqrt()).abs() < 1e-12);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_eigh<R: DimRef + DimsOf<X, Y> + DimsOf<Self::Dims, Z> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims, Z: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<EigenPairs<Self, Z>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::square(self, MatrixWork::Eigh.name(), rows.info(), columns.info())?;
        let mut results = matrices.run(MatrixWork::Eigh)?;
        let w = matrices.result(results.next::<RealElem<Self>>(), &[matrices.columns])?;
        Ok((w, matrices.result(results.next::<Self::Elem>(), &[matrices.rows, matrices.columns])?))
    }

    /// The complex eigenvalues of real square matrices, along `columns` in no particular order, and
    /// their eigenvectors, one for each position of `columns`: `(w, v)` with
    /// `sum over s of a[r, s] * v[s, c] = w[c] * v[r, c]`, where the eigenvectors have length 1.
    ///
    /// `eig` has no derivative and cannot be recorded, because recorded programs do not support
    /// complex numbers.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let turn = array![[0.0_f64, -1.0], [1.0, 0.0]];
    /// let (w, _) = turn.at((r, c)).eig(r, c);
    /// assert!(w.order(c).iter().all(|w| w.re.abs() < 1e-12 && (w.im.abs() - 1.0).abs() < 1e-12));
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    #[allow(clippy::type_complexity, reason = "two results, each of which is a tensor")]
    fn try_eig<R, C, X, Y, Z>(
        self,
        rows: R,
        columns: C,
    ) -> Result<(ComplexOver<Self, Z>, ComplexOver<Self, Self::Dims>), crate::error::DimError>
    where
        Self: Computable<Elem: RealMatrixElement>,
        R: DimRef + DimsOf<X, Y> + DimsOf<Self::Dims, Z> + SquareWith<C>,
        C: DimRef + DimsOf<Self::Dims, X>,
        X: Dims,
        Y: Dims,
        Z: Dims,
    {
        let mut matrices = MatrixBatch::square(self, "eig", rows.info(), columns.info())?;
        let sizes = matrices.sizes();
        let step = EigenStep { batch: sizes.batch, size: sizes.rows, element: PhantomData::<Self::Elem> };
        let mut results = matrices.execute(&step, None)?;
        let w = matrices.result(results.next::<Complex<Self::Elem>>(), &[matrices.columns])?;
        Ok((w, matrices.result(results.next::<Complex<Self::Elem>>(), &[matrices.rows, matrices.columns])?))
    }

    /// The Moore-Penrose pseudoinverse. As a matrix, it has its rows along `columns`, and its
    /// columns along `rows`: `(a.pinv(r, c) * b).sum(r)` is [`a.lstsq(b, r, c)`](Self::lstsq). As
    /// in PyTorch, singular values of at most `epsilon * max(rows, columns)` times the largest one
    /// are treated as 0.
    ///
    /// The gradient assumes that the rank is locally constant. (G. Golub and V. Pereyra, 1973.)
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j);
    /// let a = array![[2.0_f64, 0.0], [0.0, 0.0], [0.0, 4.0]];
    /// let p = a.at((i, j)).pinv(i, j).order((j, i));
    /// assert!((p - array![[0.5, 0.0, 0.0], [0.0, 0.0, 0.25]]).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin("so are an infinite or NaN element and an inverse that is out of range")]
    fn try_pinv<R: DimRef + DimsOf<X, Y>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        MatrixBatch::of(self, rows.info(), columns.info())?.alike(MatrixWork::Pinv)
    }

    /// The least-squares solution: the `x` along `columns` that minimizes
    /// `norm over rows of ((sum over columns of a * x) - b)`. If several `x` do, the solution is
    /// the one with the smallest norm: the product of the [pseudoinverse](Self::pinv) and `b`. The
    /// same singular values as in `pinv` are treated as 0. `b` must have `rows` and must not have
    /// `columns`. A further dim of `b` is part of the batch if the matrices have it. Otherwise its
    /// positions are several right-hand sides of the same matrix. Each matrix is factorized once.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j);
    /// let (a, b) = (array![[1.0_f64, 0.0], [1.0, 1.0], [1.0, 2.0]], array![1.0, 3.0, 5.0]);
    /// let line = a.at((i, j)).lstsq(b.at(i), i, j).order(j);
    /// assert!((line - array![1.0, 2.0]).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin("so are an infinite or NaN element and a solution that is out of range")]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_lstsq<B: Operable<Self::Elem> + AsTensor<Rank = Rank0>, R: DimRef + DimsOf<X, Y> + DimsOf<B::Dims, Z>, C: DimRef + DimsOf<Self::Dims, X> + NotIn<B::Dims>, X: Dims, Y: Dims + Union<B::Dims, Out = V> + Union<Z, Out = W>, Z: Dims, V: Dims, W: Dims + Union<(C::Brand,), Out = O>, O: Dims>(
        self,
        b: B,
        rows: R,
        columns: C,
    ) -> Result<Named<Self::Elem, O, Self::Rank>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        solved::<_, V, _, O, _>(matrices, b, MatrixWork::Lstsq)
    }

    /// The rank: the number of singular values greater than `epsilon * max(rows, columns)` times
    /// the largest one.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j);
    /// let a = array![[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]];
    /// assert_eq!(a.at((i, j)).matrix_rank(i, j).order(()), 1);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    fn try_matrix_rank<R: DimRef + DimsOf<X, Y>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<Reduced<usize, Self, Y>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let data = matrices.run(MatrixWork::Rank)?.next::<usize>();
        matrices.result(data, &[])
    }

    /// The condition number: the largest singular value divided by the smallest. It is infinite if
    /// the smallest is 0, and 0 for a matrix without elements.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(i, j);
    /// let a = array![[0.0_f64, 2.0], [8.0, 0.0]];
    /// assert!((a.at((i, j)).cond(i, j).order(()) - 4.0).abs() < 1e-12);
    /// ```
    #[panicking_twin("so is an element that is infinite or NaN")]
    fn try_cond<R: DimRef + DimsOf<X, Y>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<Reduced<RealElem<Self>, Self, Y>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let mut matrices = MatrixBatch::of(self, rows.info(), columns.info())?;
        let data = matrices.run(MatrixWork::Cond)?.next::<RealElem<Self>>();
        matrices.result(data, &[])
    }
}

impl<A: AsTensor + ?Sized> Decompositions for A {}
