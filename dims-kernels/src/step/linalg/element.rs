//! The element types of matrices.

use super::lanes::{self, LaneJob};
use super::stack::{Failure, Stack};
use super::views::{by_columns_mut, by_rows};
use crate::error::{Error, MatrixFailure};
use crate::ops::matrix::{MatrixSizes, MatrixWork};
use crate::scalar::{Num, Real};
use alloc::vec::Vec;
use core::ops::Range;
use faer::Par;
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::traits::{ComplexField, RealField};
use num_complex::Complex;

/// Element types of matrices that can be factorized: `f32`, `f64`, and complex numbers of these.
#[diagnostic::on_unimplemented(
    message = "matrices of `{Self}` cannot be factorized",
    label = "`f32`, `f64` or complex numbers of these are needed here; cast the tensor first: `.cast::<f64>()`"
)]
pub trait MatrixElement: Num + ComplexField<Real = Self::Part> {
    /// The type of the real part.
    type Part: Real + RealField + MatrixElement<Part = Self::Part>;

    /// The value with this real part, and imaginary part 0.
    #[doc(hidden)]
    fn of_part(part: Self::Part) -> Self;

    /// The real part.
    #[doc(hidden)]
    fn part(self) -> Self::Part;

    /// The complex conjugate.
    #[doc(hidden)]
    fn conjugate(self) -> Self;

    /// `|self|`
    #[doc(hidden)]
    fn size(self) -> Self::Part;

    /// Whether the value is finite: neither infinite nor NaN.
    #[doc(hidden)]
    fn is_number(self) -> bool;

    /// `e^self`
    #[doc(hidden)]
    fn exponential(self) -> Self;

    /// `e^self - 1`, precise even near 0.
    #[doc(hidden)]
    fn exponential_less_one(self) -> Self;

    /// Whether matrices of these sizes are computed in lanes, several at once.
    #[doc(hidden)]
    fn has_lanes(_work: MatrixWork, _sizes: MatrixSizes) -> bool {
        false
    }

    /// Computes matrices, several at once, in memory that it clears first. Returns the ranges of
    /// matrices that the caller must still compute one by one.
    #[doc(hidden)]
    fn run_lanes(job: LaneJob<'_, '_, Self, Self::Part>) -> Result<Vec<Range<usize>>, Error> {
        Ok(core::iter::once(0..job.count).collect())
    }
}

/// Element types of real matrices that can be factorized: `f32` and `f64`.
#[diagnostic::on_unimplemented(
    message = "the eigenvalues of matrices of `{Self}` cannot be computed",
    label = "`eig` takes only `f32` and `f64`; cast integers and half-precision floats first: `.cast::<f64>()`"
)]
pub trait RealMatrixElement: MatrixElement + num_traits::Float {
    /// The eigenvalues of a row-major matrix, as real and imaginary parts, and its eigenvectors as
    /// columns in column-major order. The eigenvectors of a conjugate pair are stored as two
    /// columns: the real and the imaginary part.
    #[doc(hidden)]
    fn eigen(
        a: &[Self],
        size: usize,
        values: [&mut [Self]; 2],
        vectors: &mut [Self],
        stack: &mut Stack,
        par: Par,
    ) -> Result<(), Failure>;
}

macro_rules! elements {
    ($($t:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl MatrixElement for $t {
            type Part = $t;

            fn of_part(part: $t) -> Self {
                part
            }

            fn part(self) -> $t {
                self
            }

            fn conjugate(self) -> Self {
                self
            }

            fn size(self) -> $t {
                self.abs()
            }

            fn is_number(self) -> bool {
                self.is_finite()
            }

            fn exponential(self) -> Self {
                self.exp()
            }

            fn exponential_less_one(self) -> Self {
                self.exp_m1()
            }

            fn has_lanes(work: MatrixWork, sizes: MatrixSizes) -> bool {
                lanes::has_lanes(work, sizes)
            }

            fn run_lanes(job: LaneJob<'_, '_, Self, Self::Part>) -> Result<Vec<Range<usize>>, Error> {
                lanes::run(job)
            }
        }

        #[diagnostic::do_not_recommend]
        impl RealMatrixElement for $t {
            fn eigen(
                a: &[Self],
                size: usize,
                [real, imaginary]: [&mut [Self]; 2],
                vectors: &mut [Self],
                stack: &mut Stack,
                par: Par,
            ) -> Result<(), Failure> {
                let (left, right) = (ComputeEigenvectors::No, ComputeEigenvectors::Yes);
                let scratch = evd::evd_scratch::<Self>(size, left, right, par, Default::default());
                let found = evd::evd_real(
                    by_rows(a, size, size),
                    DiagMut::from_slice_mut(real),
                    DiagMut::from_slice_mut(imaginary),
                    None,
                    Some(by_columns_mut(vectors, size, size)),
                    par,
                    stack.of(scratch)?,
                    Default::default(),
                );
                Ok(found.map_err(|_| MatrixFailure::NotConverged)?)
            }
        }

        #[diagnostic::do_not_recommend]
        impl MatrixElement for Complex<$t> {
            type Part = $t;

            fn of_part(part: $t) -> Self {
                Complex::new(part, 0.0)
            }

            fn part(self) -> $t {
                self.re
            }

            fn conjugate(self) -> Self {
                self.conj()
            }

            fn size(self) -> $t {
                num_complex::ComplexFloat::abs(self)
            }

            fn is_number(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }

            fn exponential(self) -> Self {
                let (size, (sin, cos)) = (self.re.exp(), self.im.sin_cos());
                // If `size` is infinite, `size * 0` would be NaN.
                Complex::new(size * cos, if sin == 0.0 { sin } else { size * sin })
            }

            fn exponential_less_one(self) -> Self {
                let (sin, cos) = self.im.sin_cos();
                let half = (0.5 * self.im).sin();
                Complex::new(self.re.exp_m1() * cos - 2.0 * half * half, self.re.exp() * sin)
            }
        }
    )*};
}
elements!(f32, f64);
