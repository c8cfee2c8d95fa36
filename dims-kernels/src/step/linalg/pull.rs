//! The derivatives of operations, as steps of programs: the gradient `d a` of the operand `a`, for
//! a cotangent `g` of one of the results. The comment of a function has the operation, a colon, and
//! the formula of `d a`.
//!
//! Most formulas are from M. Giles, An extended collection of matrix derivative results for forward
//! and reverse mode algorithmic differentiation (2008). Some functions name other sources.

use super::algebra::{Algebra, Matrices};
use super::pull_factors as factors;
use super::pulled::PulledMatrices;
use super::{MatrixElement, MatrixSizes, MatrixStep, MatrixWork, ReadTriangle};
use crate::error::{Error, MatrixFailure};
use crate::step::Pulled;
use crate::trace::{Node, Part};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The derivative of a step. Errors name the derivative, not the step of the backward pass that
/// failed.
pub(super) fn pull<T: MatrixElement>(
    step: &MatrixStep<T>,
    own: &Pulled<'_>,
) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    // Cofactors are the gradient of a determinant.
    let (derivative, work) = match step.work {
        MatrixWork::Cofactors => ("second derivative", MatrixWork::Det),
        work => ("gradient", work),
    };
    parts(step, own).map_err(|error| match error {
        Error::Matrix { failure, at, batch, .. } => Error::Matrix {
            operation: work.name(),
            derivative: Some(derivative),
            failure: failure_of_derivative(failure, work),
            at,
            batch,
        },
        error => error,
    })
}

/// Why a derivative failed. Its right-hand sides are computed from the gradients of results, so an
/// error about a right-hand side is an error about these gradients. So is an error about the matrix
/// of [`of_function`], which contains the gradient.
fn failure_of_derivative(failure: MatrixFailure, work: MatrixWork) -> MatrixFailure {
    let is_function = matches!(work, MatrixWork::Power { .. } | MatrixWork::Expm);
    match failure {
        MatrixFailure::RightSideNotFinite => MatrixFailure::ResultGradientNotFinite,
        MatrixFailure::NotFinite if is_function => MatrixFailure::ResultGradientNotFinite,
        failure => failure,
    }
}

fn parts<T: MatrixElement>(step: &MatrixStep<T>, own: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let algebra = Algebra::new(step.sizes.batch, own.recorded);
    let pulled = PulledMatrices { step, own, algebra };
    let sizes = step.sizes;
    match step.work {
        MatrixWork::Solve { .. } | MatrixWork::SolveTriangular(_) => return of_system(&pulled),
        MatrixWork::Lstsq => return of_lstsq(&pulled),
        _ => {}
    }
    if own.asked_operand(0).is_none() || sizes.batch * sizes.rows * sizes.columns == 0 {
        return Ok(Vec::new());
    }
    let given = match (step.work, own.number) {
        (MatrixWork::Cholesky, _) => of_cholesky(&pulled)?,
        (MatrixWork::Inverse, _) => of_inverse(&pulled)?,
        (MatrixWork::Det, _) => of_det(&pulled)?,
        (MatrixWork::SlogDet, 1) => of_logarithm(&pulled)?,
        (MatrixWork::Cofactors, _) => of_cofactors(&pulled)?,
        (MatrixWork::Lu, 1 | 2) => factors::of_lu(&pulled)?,
        (MatrixWork::Qr, _) => factors::of_qr(&pulled)?,
        (MatrixWork::Eigh, _) => factors::of_eigh(&pulled)?,
        (MatrixWork::Svd, _) => factors::of_svd(&pulled)?,
        (MatrixWork::SingularValues, _) => factors::of_singular_values(&pulled)?,
        (MatrixWork::Pinv, _) => of_pinv(&pulled)?,
        (MatrixWork::Cond, _) => factors::of_cond(&pulled)?,
        (MatrixWork::Power { .. } | MatrixWork::Expm, _) => of_function(&pulled)?,
        // Signs, orders and ranks are constant wherever they have a derivative.
        _ => return Ok(Vec::new()),
    };
    Ok(pulled.algebra.part_of(own, 0, &given).into_iter().collect())
}

/// `t x = b`, where `t` is `a`, a triangle of `a`, or the transpose of either: `d b = t^-T g`, and
/// `d t = -(d b) x^T`. For a triangular system, `d a` is 0 outside the triangle that the system
/// reads.
fn of_system<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let PulledMatrices { step, own, algebra } = pulled;
    let shape = [step.sizes.rows, step.sizes.right];
    if step.sizes.batch * shape[0] * shape[1] == 0 {
        return Ok(Vec::new());
    }
    let (a, x, g) = (pulled.operand(0), pulled.value(shape), pulled.cotangent(shape));
    let (work, is_transposed) = match step.work {
        MatrixWork::SolveTriangular(triangle) => {
            let transposed = !triangle.transposed;
            (MatrixWork::SolveTriangular(ReadTriangle { transposed, ..triangle }), triangle.transposed)
        }
        MatrixWork::Solve { transposed } => (MatrixWork::Solve { transposed: !transposed }, transposed),
        _ => unreachable!("the step is a system of equations"),
    };
    let db = algebra.only(work, &a, &[&g], shape)?;
    let mut parts: Vec<_> = algebra.part_of(own, 1, &db).into_iter().collect();
    if own.asked_operand(0).is_some() {
        let product = match is_transposed {
            false => algebra.product(&db, &x.t())?,
            true => algebra.product(&x, &db.t())?,
        };
        let shares = match step.work {
            MatrixWork::SolveTriangular(ReadTriangle { lower, unit, .. }) => {
                let on = if unit { 0.0 } else { -1.0 };
                if lower { [-1.0, on, 0.0] } else { [0.0, on, -1.0] }
            }
            _ => [-1.0; 3],
        };
        parts.extend(algebra.part_of(own, 0, &algebra.shares(&product, shares)?));
    }
    Ok(parts)
}

/// `(a + a^T) / 2 = l l^T`: the symmetric part of `l^-T p l^-1`, where `p` is the lower triangle of
/// `l^T g` with its diagonal halved.
fn of_cholesky<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let size = pulled.step.sizes.rows;
    let (l, g) = (pulled.value([size; 2]), pulled.cotangent([size; 2]));
    let p = algebra.shares(&algebra.product(&l.t(), &g)?, [1.0, 0.5, 0.0])?;
    let triangle = ReadTriangle { lower: true, transposed: true, unit: false };
    let left = algebra.solve_triangular(triangle, &l, &p)?;
    let both = algebra.solve_triangular(triangle, &l, &left.t())?;
    algebra.symmetric(&both)
}

/// `y = a^-T`: `-y g^T y`.
fn of_inverse<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let size = pulled.step.sizes.rows;
    let (y, g) = (pulled.value([size; 2]), pulled.cotangent([size; 2]));
    pulled.algebra.scaled(&pulled.algebra.products([&y, &g.t(), &y])?, -1.0)
}

/// `g` times the cofactors.
fn of_det<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let (a, algebra) = (pulled.operand(0), &pulled.algebra);
    let cofactors = algebra.only(MatrixWork::Cofactors, &a, &[], [a.rows; 2])?;
    algebra.times(&cofactors, &pulled.cotangent([1, 1]))
}

/// `g a^-T`
fn of_logarithm<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let (a, algebra) = (pulled.operand(0), &pulled.algebra);
    let y = algebra.only(MatrixWork::Inverse, &a, &[], [a.rows; 2])?;
    algebra.times(&y, &pulled.cotangent([1, 1]))
}

/// The cofactors `det(a) y` with `y = a^-T`: `det(a) (<g, y> y - y g^T y)`. The matrix must have an
/// inverse.
fn of_cofactors<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let (a, algebra) = (pulled.operand(0), &pulled.algebra);
    let g = pulled.cotangent([a.rows; 2]);
    let y = algebra.only(MatrixWork::Inverse, &a, &[], [a.rows; 2])?;
    let det = algebra.only(MatrixWork::Det, &a, &[], [1, 1])?;
    let products =
        algebra.map(&g, [&y], |build, g, [y]| build.binary(crate::ops::code::BinaryOpcode::Mul, g, y))?;
    let along = algebra.times(&y, &algebra.total(&products)?)?;
    let across = algebra.products([&y, &g.t(), &y])?;
    algebra.times(&algebra.sum(&[(&along, 1.0), (&across, -1.0)])?, &det)
}

/// `y = pinv(a)^T` of a matrix whose rank is locally constant:
/// `-y g^T y + (g - a y^T g) y^T y + y y^T (g - g y^T a)`. (G. Golub and V. Pereyra, The
/// differentiation of pseudo-inverses and nonlinear least squares problems whose variables
/// separate, 1973.)
fn of_pinv<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let (a, algebra) = (pulled.operand(0), &pulled.algebra);
    let shape = [a.rows, a.columns];
    let (y, g) = (pulled.value(shape), pulled.cotangent(shape));
    let across = algebra.products([&y, &g.t(), &y])?;
    let above = algebra.sum(&[(&g, 1.0), (&algebra.products([&a, &y.t(), &g])?, -1.0)])?;
    let above = algebra.product(&above, &algebra.product(&y.t(), &y)?)?;
    let beside = algebra.sum(&[(&g, 1.0), (&algebra.products([&g, &y.t(), &a])?, -1.0)])?;
    let beside = algebra.product(&algebra.product(&y, &y.t())?, &beside)?;
    algebra.sum(&[(&across, -1.0), (&above, 1.0), (&beside, 1.0)])
}

/// `x = p b` with the pseudoinverse `p` of a matrix whose rank is locally constant, and
/// `u = p^T g`: `d b = u`, and `d a = -u x^T + (b - a x) (p u)^T + p^T x (g - a^T u)^T`. (From the
/// formula of [`of_pinv`].)
fn of_lstsq<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
    let PulledMatrices { step, own, algebra } = pulled;
    let MatrixSizes { batch, rows, columns, right } = step.sizes;
    if batch * rows * columns * right == 0 {
        return Ok(Vec::new());
    }
    let (a, shape) = (pulled.operand(0), [columns, right]);
    let (x, g) = (pulled.value(shape), pulled.cotangent(shape));
    let y = algebra.only(MatrixWork::Pinv, &a, &[], [rows, columns])?;
    let u = algebra.product(&y, &g)?;
    let mut parts: Vec<_> = algebra.part_of(own, 1, &u).into_iter().collect();
    if own.asked_operand(0).is_some() {
        let across = algebra.product(&u, &x.t())?;
        let rest = algebra.sum(&[(&pulled.operand(1), 1.0), (&algebra.product(&a, &x)?, -1.0)])?;
        let above = algebra.product(&rest, &algebra.product(&y.t(), &u)?.t())?;
        let rest = algebra.sum(&[(&g, 1.0), (&algebra.product(&a.t(), &u)?, -1.0)])?;
        let beside = algebra.product(&algebra.product(&y, &x)?, &rest.t())?;
        let all = algebra.sum(&[(&across, -1.0), (&above, 1.0), (&beside, 1.0)])?;
        parts.extend(algebra.part_of(own, 0, &all));
    }
    Ok(parts)
}

/// A function `f` with a power series: the upper right block of `f([a^T, g; 0, a^T])`. (N. J.
/// Higham, Functions of Matrices, 2008, theorem 3.6.)
fn of_function<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let (a, algebra) = (pulled.operand(0), &pulled.algebra);
    let size = a.rows;
    let g = pulled.cotangent([size; 2]);
    let blocks = [(&a.t(), [0, 0]), (&g, [0, size]), (&a.t(), [size, size])];
    let blocks = algebra.placed(&blocks, [2 * size; 2])?;
    let found = algebra.only(pulled.step.work, &blocks, &[], [2 * size; 2])?;
    Ok(found.rows_from(0, size).columns_from(size, 2 * size))
}
