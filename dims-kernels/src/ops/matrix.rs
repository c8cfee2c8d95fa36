//! Operations on matrices, as data: their operands and their results.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

/// A triangle of a square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ReadTriangle {
    /// Whether the lower triangle is read, not the upper one.
    pub lower: bool,
    /// Whether the triangle is transposed after it is read.
    pub transposed: bool,
    /// Whether the diagonal counts as ones and is not read.
    pub unit: bool,
}

/// The operation on each matrix `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub enum MatrixWork {
    /// The lower factor of `(a + a^H) / 2 = l l^H`.
    Cholesky,
    /// `x` in `t x = b`, for a triangle `t` of `a`.
    SolveTriangular(ReadTriangle),
    /// `x` in `a x = b`, or in `a^T x = b`.
    Solve {
        /// Whether the equation is `a^T x = b`.
        transposed: bool,
    },
    /// The transposed inverse.
    Inverse,
    /// The determinant.
    Det,
    /// The sign of the determinant, and the logarithm of its magnitude.
    SlogDet,
    /// The cofactors, which are the derivatives of the determinant with respect to each element.
    Cofactors,
    /// The order of the rows, the unit lower triangular factor, and the upper triangular factor.
    Lu,
    /// The factor with orthonormal columns, and the upper triangular factor.
    Qr,
    /// The eigenvalues of `(a + a^H) / 2` in ascending order, and the eigenvectors as columns.
    Eigh,
    /// `u`, the singular values `s` in descending order, and `v`: `a = u diag(s) v^H`.
    Svd,
    /// The singular values in descending order.
    SingularValues,
    /// The transposed pseudoinverse. Singular values up to `max(rows, columns) * epsilon` times the
    /// greatest one count as 0.
    Pinv,
    /// The least-squares solution `x` of `a x = b` with the smallest norm. The same singular values
    /// count as 0 as in [`Pinv`](Self::Pinv).
    Lstsq,
    /// The number of singular values that do not count as 0, as in [`Pinv`](Self::Pinv).
    Rank,
    /// The largest singular value divided by the smallest: infinity if the smallest is 0, and 0 for
    /// a matrix without elements.
    Cond,
    /// The power with an integer exponent.
    Power {
        /// The exponent.
        exponent: i64,
    },
    /// `e^a`
    Expm,
}

/// The number of matrices and their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct MatrixSizes {
    /// The number of matrices.
    pub batch: usize,
    /// The rows of each matrix.
    pub rows: usize,
    /// The columns of each matrix.
    pub columns: usize,
    /// The columns of each right-hand side, if there are any.
    pub right: usize,
}

impl MatrixSizes {
    /// Square matrices.
    pub fn square(batch: usize, size: usize) -> Self {
        MatrixSizes::of(batch, size, size)
    }

    /// Matrices of any shape.
    pub fn of(batch: usize, rows: usize, columns: usize) -> Self {
        MatrixSizes { batch, rows, columns, right: 0 }
    }

    /// The sizes with this number of columns for right-hand sides.
    pub fn with_right(self, right: usize) -> Self {
        MatrixSizes { right, ..self }
    }

    /// The lesser of rows and columns.
    pub fn least(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// The approximate number of multiplications of a factorization.
    pub fn multiplications(&self) -> usize {
        let each = self.rows.saturating_mul(self.columns).saturating_mul(self.least() + self.right);
        self.batch.saturating_mul(each)
    }
}

/// The element type of a result, and the number of its elements per matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixResult {
    /// Elements of the matrix's type.
    Values(usize),
    /// Real numbers.
    Parts(usize),
    /// Positions or counts, of the type `usize`.
    Positions(usize),
}

impl MatrixResult {
    /// The number of elements per matrix.
    pub fn count(self) -> usize {
        match self {
            MatrixResult::Values(count) | MatrixResult::Parts(count) | MatrixResult::Positions(count) => {
                count
            }
        }
    }
}

impl MatrixWork {
    /// The name in plans and messages.
    pub fn name(self) -> &'static str {
        match self {
            MatrixWork::Cholesky => "cholesky",
            MatrixWork::SolveTriangular(_) => "solve_triangular",
            MatrixWork::Solve { .. } => "solve",
            MatrixWork::Inverse => "inverse",
            MatrixWork::Det => "det",
            MatrixWork::SlogDet => "slogdet",
            MatrixWork::Cofactors => "cofactors",
            MatrixWork::Lu => "lu",
            MatrixWork::Qr => "qr",
            MatrixWork::Eigh => "eigh",
            MatrixWork::Svd => "svd",
            MatrixWork::SingularValues => "singular_values",
            MatrixWork::Pinv => "pinv",
            MatrixWork::Lstsq => "lstsq",
            MatrixWork::Rank => "matrix_rank",
            MatrixWork::Cond => "cond",
            MatrixWork::Power { .. } => "matrix_power",
            MatrixWork::Expm => "expm",
        }
    }

    /// Whether the matrices must be square.
    pub fn is_square(self) -> bool {
        use MatrixWork::{Cond, Lstsq, Lu, Pinv, Qr, Rank, SingularValues, Svd};
        !matches!(self, Lu | Qr | Svd | SingularValues | Pinv | Lstsq | Rank | Cond)
    }

    /// Whether a step keeps a copy of its results for the derivative.
    #[cfg(feature = "linalg")]
    pub(crate) fn keeps(self) -> bool {
        matches!(self, MatrixWork::Eigh | MatrixWork::Svd | MatrixWork::Qr)
    }

    /// The number of elements of each operand per matrix.
    pub fn takes(self, sizes: MatrixSizes) -> SmallVec<[usize; 2]> {
        let own = sizes.rows * sizes.columns;
        match self {
            MatrixWork::SolveTriangular(_) | MatrixWork::Solve { .. } | MatrixWork::Lstsq => {
                smallvec![own, sizes.rows * sizes.right]
            }
            _ => smallvec![own],
        }
    }

    /// The results.
    pub fn yields(self, sizes: MatrixSizes) -> SmallVec<[MatrixResult; 3]> {
        use MatrixResult::{Parts, Positions, Values};
        let MatrixSizes { rows, columns, right, .. } = sizes;
        let least = sizes.least();
        match self {
            MatrixWork::Cholesky
            | MatrixWork::Inverse
            | MatrixWork::Cofactors
            | MatrixWork::Pinv
            | MatrixWork::Power { .. }
            | MatrixWork::Expm => smallvec![Values(rows * columns)],
            MatrixWork::SolveTriangular(_) | MatrixWork::Solve { .. } => smallvec![Values(rows * right)],
            MatrixWork::Lstsq => smallvec![Values(columns * right)],
            MatrixWork::Det => smallvec![Values(1)],
            MatrixWork::SlogDet => smallvec![Values(1), Parts(1)],
            MatrixWork::Lu => smallvec![Positions(rows), Values(rows * least), Values(least * columns)],
            MatrixWork::Qr => smallvec![Values(rows * least), Values(least * columns)],
            MatrixWork::Eigh => smallvec![Parts(rows), Values(rows * rows)],
            MatrixWork::Svd => smallvec![Values(rows * least), Parts(least), Values(columns * least)],
            MatrixWork::SingularValues => smallvec![Parts(least)],
            MatrixWork::Rank => smallvec![Positions(1)],
            MatrixWork::Cond => smallvec![Parts(1)],
        }
    }
}
