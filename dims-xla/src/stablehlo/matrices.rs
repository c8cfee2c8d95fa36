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
        let [row, column] = [1, 2].map(|axis| self.body.iota(DType::I32, &a.shape, axis));
        // Where the host returns an error, the result has elements that are not finite, with two
        // exceptions: the factor of a 1 x 1 matrix can be 0, and dividing by an infinite element of
        // the diagonal can give 0. So the diagonal is checked, too.
        let (found, is_pivot, what) = match work {
            MatrixWork::Cholesky => {
                let sum = self.body.add(&a, &self.body.transpose(&a, &[0, 2, 1]));
                let half = self.body.mul(&sum, &self.body.like(&sum, 0.5));
                let factor = self.body.cholesky(&half);
                // StableHLO does not specify the elements above the diagonal.
                let is_lower = self.body.compare("GE", &row, &column);
                (
                    self.body.select(&is_lower, &factor, &self.body.like(&factor, 0.0)),
                    self.body.compare("GT", &factor, &self.body.like(&factor, 0.0)),
                    "a matrix is not positive definite, or has an element that is infinite or NaN",
                )
            }
            MatrixWork::SolveTriangular(triangle) => {
                let b = self.body.reshape(&operands[1], &[batch, rows, right]);
                let is_pivot = match triangle.unit {
                    true => self.body.broadcast(&self.body.truth(true), &a.shape, &[]),
                    false => self.body.is_finite(&a),
                };
                (
                    self.body.triangular_solve(&a, &b, triangle),
                    is_pivot,
                    "a matrix is singular, or an element, a right-hand side or a result is infinite or NaN",
                )
            }
            work => {
                return Err(self.refused(format!("StableHLO has no `{}`: run it on the host", work.name())));
            }
        };
        let is_right = self.body.binary("or", &self.body.compare("NE", &row, &column), &is_pivot);
        let all = |of: &Value| self.body.reduce(of, &self.body.truth(true), &[0, 1, 2], "and");
        let all = self.body.binary("and", &all(&self.body.is_finite(&found)), &all(&is_right));
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
