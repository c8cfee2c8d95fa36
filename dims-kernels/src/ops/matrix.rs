//! Operations on matrices, as data: their operands and their results.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

/// A triangle of a square matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct ReadTriangle {
    /// Whether it is the lower one.
    pub lower: bool,
    /// Whether the matrix is transposed after that.
    pub transposed: bool,
    /// Whether its diagonal is taken as ones, and not read.
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
        /// Whether it is the latter.
        transposed: bool,
    },
    /// The inverse, transposed.
    Inverse,
    /// The determinant.
    Det,
    /// The sign of the determinant, and the logarithm of its magnitude.
    SlogDet,
    /// The cofactors: the derivative of the determinant by each element.
    Cofactors,
    /// The rows in the order of their pivots, the unit lower factor, and the upper one.
    Lu,
    /// The orthogonal factor, and the upper one.
    Qr,
    /// The eigenvalues of `(a + a^H) / 2` in ascending order, and the eigenvectors as columns.
    Eigh,
    /// `u`, the singular values in descending order, and `v`: `a = u diag(s) v^H`.
    Svd,
    /// The singular values in descending order.
    SingularValues,
    /// The pseudoinverse, transposed. Singular values count as 0 up to
    /// `max(rows, columns) * epsilon` of the greatest.
    Pinv,
    /// How many singular values are greater than that.
    Rank,
    /// The greatest singular value over the least.
    Cond,
    /// The power with a whole exponent.
    Power {
        /// The exponent.
        exponent: i64,
    },
    /// `e^a`
    Expm,
}

/// How many matrices there are, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct MatrixSizes {
    /// How many matrices.
    pub batch: usize,
    /// The rows of each.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
    /// The columns of its right-hand side, if there is one.
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

    /// The same sizes, for right-hand sides with this number of columns.
    pub fn with_right(self, right: usize) -> Self {
        MatrixSizes { right, ..self }
    }

    /// The lesser one of rows and columns.
    pub fn least(&self) -> usize {
        self.rows.min(self.columns)
    }

    /// About how many multiplications a factorization takes.
    pub fn multiplications(&self) -> usize {
        let each = self.rows.saturating_mul(self.columns).saturating_mul(self.least() + self.right);
        self.batch.saturating_mul(each)
    }
}

/// The elements of a result, and how many each matrix has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixResult {
    /// Elements of the matrix's type.
    Values(usize),
    /// Real numbers.
    Parts(usize),
    /// Positions, of the type `usize`.
    Positions(usize),
}

impl MatrixResult {
    /// How many each matrix has.
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
            MatrixWork::Rank => "matrix_rank",
            MatrixWork::Cond => "cond",
            MatrixWork::Power { .. } => "matrix_power",
            MatrixWork::Expm => "expm",
        }
    }

    /// Whether it is for square matrices alone.
    pub fn is_square(self) -> bool {
        use MatrixWork::{Cond, Lu, Pinv, Qr, Rank, SingularValues, Svd};
        !matches!(self, Lu | Qr | Svd | SingularValues | Pinv | Rank | Cond)
    }

    /// Whether the derivative needs several results, which a step keeps together.
    #[cfg(feature = "linalg")]
    pub(crate) fn keeps(self) -> bool {
        matches!(self, MatrixWork::Eigh | MatrixWork::Svd | MatrixWork::Qr)
    }

    /// How many elements each operand has for each matrix.
    pub fn takes(self, sizes: MatrixSizes) -> SmallVec<[usize; 2]> {
        let own = sizes.rows * sizes.columns;
        match self {
            MatrixWork::SolveTriangular(_) | MatrixWork::Solve { .. } => {
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
