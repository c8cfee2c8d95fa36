//! Steps on matrices. StableHLO has only two of them: `cholesky` and `triangular_solve`.

use super::Lower;
use super::text::Value;
use crate::error::XlaError;
use typed_dims_kernels::ops::matrix::{MatrixSizes, MatrixWork, ReadTriangle};
use typed_dims_kernels::program::code::DType;

impl Lower<'_> {
    /// The single result of a step on matrices. Each operand has one axis: matrix after matrix, row
    /// by row.
    pub(super) fn matrices(
        &mut self,
        work: MatrixWork,
        sizes: MatrixSizes,
        operands: &[Value],
    ) -> Result<Value, XlaError> {
        let MatrixSizes { batch, rows, columns, right } = sizes;
        let a = self.body.reshape(&operands[0], &[batch, rows, columns]);
        // Where the host returns an error, the result has elements that are not finite. (Exceptions
        // are 1 x 1 matrices: the factor of 0 can be 0, and division by infinity gives 0.)
        let (found, what) = match work {
            MatrixWork::Cholesky => {
                let sum = self.body.add(&a, &self.body.transpose(&a, &[0, 2, 1]));
                let half = self.body.mul(&sum, &self.body.like(&sum, 0.5));
                let factor = self.body.cholesky(&half);
                // StableHLO does not specify the elements above the diagonal.
                let [row, column] = [1, 2].map(|axis| self.body.iota(DType::I32, &factor.shape, axis));
                let is_lower = self.body.compare("GE", &row, &column);
                (
                    self.body.select(&is_lower, &factor, &self.body.like(&factor, 0.0)),
                    "a matrix is not positive definite, or has an element that is infinite or NaN",
                )
            }
            MatrixWork::SolveTriangular(triangle) => {
                let b = self.body.reshape(&operands[1], &[batch, rows, right]);
                (
                    self.body.triangular_solve(&a, &b, triangle),
                    "a matrix is singular, or an element, a right-hand side or a result is infinite or NaN",
                )
            }
            work => {
                return Err(self.refused(format!("StableHLO has no `{}`: run it on the host", work.name())));
            }
        };
        let is_finite = self.body.is_finite(&found);
        let all = self.body.reduce(&is_finite, &self.body.truth(true), &[0, 1, 2], "and");
        self.check(all, what);
        Ok(self.body.reshape(&found, &[found.len()]))
    }
}

impl super::text::Body {
    fn cholesky(&self, a: &Value) -> Value {
        self.op("stablehlo.cholesky", &[a], "lower = true", a.dtype, a.shape.clone())
    }

    fn triangular_solve(&self, a: &Value, b: &Value, triangle: ReadTriangle) -> Value {
        let ReadTriangle { lower, transposed, unit } = triangle;
        let how = if transposed { "TRANSPOSE" } else { "NO_TRANSPOSE" };
        let attributes = format!(
            "left_side = true, lower = {lower}, unit_diagonal = {unit}, transpose_a = #stablehlo<transpose {how}>"
        );
        self.op("stablehlo.triangular_solve", &[a, b], &attributes, b.dtype, b.shape.clone())
    }

    fn is_finite(&self, a: &Value) -> Value {
        self.op("stablehlo.is_finite", &[a], "", DType::Bool, a.shape.clone())
    }
}
