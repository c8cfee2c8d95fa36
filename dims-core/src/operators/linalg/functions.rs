//! Functions of square matrices.

use super::matrices::MatrixBatch;
use crate::error::DimError;
use crate::execute::reduce::TensorOf;
use crate::tensors::tensor::{AsTensor, Computable};
use crate::types::dim::DimRef;
use crate::types::set::{Dims, DimsOf};
use crate::types::size::SquareWith;
use kernels::step::linalg::{MatrixElement, MatrixWork};
use twins::panicking_twin;

/// Functions of square matrices along two dims of a tensor. All other dims are a batch. The methods
/// run immediately.
pub trait MatrixFunctions: AsTensor {
    /// The power with an integer exponent `n`: the product of `n` copies of the matrix, the
    /// identity for 0, and the power of the inverse for a negative exponent.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[1.0, 1.0], [0.0, 1.0]];
    /// assert_eq!(a.at((r, c)).matrix_power(r, c, 5).order((r, c)), array![[1.0, 5.0], [0.0, 1.0]]);
    /// assert_eq!(a.at((r, c)).matrix_power(r, c, -2).order((r, c)), array![[1.0, -2.0], [0.0, 1.0]]);
    /// ```
    #[panicking_twin(
        "so are an infinite or NaN element and, with a negative exponent, a matrix without an inverse or with one that is out of range"
    )]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_matrix_power<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
        exponent: i64,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        let work = MatrixWork::Power { exponent };
        MatrixBatch::square(self, work.name(), rows.info(), columns.info())?.alike(work)
    }

    /// The exponential, `1 + a + a a / 2 + a a a / 6 + ..`, by scaling and squaring. (A. Al-Mohy
    /// and N. Higham, 2009.)
    ///
    /// The result may lose about as many digits as the norm of the matrix has before the decimal
    /// point. It loses few if the matrix is triangular, or becomes triangular when its rows and
    /// columns are reordered in the same way. Elements that are too large for the type are infinite
    /// or NaN.
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims!(r, c);
    /// let a = array![[0.0_f64, 1.0], [0.0, 0.0]];
    /// let found = a.at((r, c)).expm(r, c).order((r, c));
    /// assert!((found - array![[1.0, 1.0], [0.0, 1.0]]).iter().all(|error| error.abs() < 1e-12));
    /// ```
    #[panicking_twin(
        "so are an infinite or NaN element, and a matrix so large that no digit of the result would be right"
    )]
    #[rustfmt::skip] // rustc quotes the next line in errors
    fn try_expm<R: DimRef + DimsOf<X, Y> + SquareWith<C>, C: DimRef + DimsOf<Self::Dims, X>, X: Dims, Y: Dims>(
        self,
        rows: R,
        columns: C,
    ) -> Result<TensorOf<Self>, DimError>
    where
        Self: Computable<Elem: MatrixElement>,
    {
        MatrixBatch::square(self, MatrixWork::Expm.name(), rows.info(), columns.info())?.alike(MatrixWork::Expm)
    }
}

impl<A: AsTensor + ?Sized> MatrixFunctions for A {}
