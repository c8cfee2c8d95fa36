//! The derivatives of QR and LU factors, eigenvalues and singular values, and their vectors. In
//! formulas, `g_x` is the cotangent of a result `x`, and `*` multiplies element by element.

use super::algebra::Matrices;
use super::pulled::PulledMatrices;
use super::{MatrixElement, MatrixWork, ReadTriangle};
use crate::error::Error;
use crate::ops::code::BinaryOpcode;
use crate::program::Register;
use crate::program::builder::Builder;
use alloc::vec::Vec;

/// `x / (column - row)`. It is 0 where `x` is 0, even if `column` and `row` are equal.
fn over_gap(build: &mut Builder, x: Register, [row, column]: [Register; 2]) -> Register {
    let gap = build.binary(BinaryOpcode::Sub, column, row);
    let kind = build.kind(gap);
    let one = build.float(1.0, kind);
    let share = build.binary(BinaryOpcode::Div, one, gap);
    build.binary(BinaryOpcode::Chain, x, share)
}

/// `(a + a^T) / 2 = v diag(w) v^T`: the symmetric part of `v (diag(g_w) + f * (v^T g_v)) v^T` with
/// `f[i, j] = 1 / (w[j] - w[i])`, and 0 on the diagonal.
pub(super) fn of_eigh<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let size = pulled.step.sizes.rows;
    let found = pulled.results(MatrixWork::Eigh)?;
    let w = Matrices::new(&found[0].0, found[0].1, [1, size]);
    let v = Matrices::new(&found[1].0, found[1].1, [size; 2]);
    let inner = if pulled.own.number == 0 {
        algebra.diagonal(&pulled.cotangent([1, size]))?
    } else {
        let turned = algebra.product(&v.t(), &pulled.cotangent([size; 2]))?;
        let turned = algebra.shares(&turned, [1.0, 0.0, 1.0])?;
        let columns = w.as_equal_rows(size);
        algebra.map(&turned, [&columns.t(), &columns], over_gap)?
    };
    algebra.symmetric(&algebra.products([&v, &inner, &v.t()])?)
}

/// The factors `u`, `s` (as one row) and `v` of the operand.
fn singular<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<[Matrices; 3], Error> {
    let sizes = pulled.step.sizes;
    let least = sizes.least();
    let found = pulled.results(MatrixWork::Svd)?;
    let shapes = [[sizes.rows, least], [1, least], [sizes.columns, least]];
    let pieces: Vec<Matrices> =
        found.iter().zip(shapes).map(|((held, start), shape)| Matrices::new(held, *start, shape)).collect();
    Ok(pieces.try_into().unwrap_or_else(|_| unreachable!("there are three results")))
}

/// `a = u diag(s) v^T`, with `f[i, j] = 1 / (s[j]^2 - s[i]^2)`, and 0 on the diagonal (J. Townsend,
/// Differentiating the singular value decomposition, 2016):
///
/// ```text
/// for s:  u diag(g) v^T
/// for u:  u (f * (u^T g - g^T u)) diag(s) v^T + (1 - u u^T) g diag(1 / s) v^T
/// for v:  the same formula for `a^T = v diag(s) u^T`, transposed
/// ```
pub(super) fn of_svd<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let [u, s, v] = singular(pulled)?;
    match pulled.own.number {
        0 => of_left_vectors(pulled, [&u, &s, &v]),
        1 => {
            let inner = algebra.diagonal(&pulled.cotangent([1, s.columns]))?;
            algebra.products([&u, &inner, &v.t()])
        }
        _ => Ok(of_left_vectors(pulled, [&v, &s, &u])?.t()),
    }
}

fn of_left_vectors<T: MatrixElement>(
    pulled: &PulledMatrices<'_, '_, T>,
    [u, s, v]: [&Matrices; 3],
) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let g = pulled.cotangent([u.rows, u.columns]);
    let turned = algebra.product(&u.t(), &g)?;
    let skew = algebra.sum(&[(&turned, 1.0), (&turned.t(), -1.0)])?;
    let skew = algebra.shares(&skew, [1.0, 0.0, 1.0])?;
    let columns = s.as_equal_rows(s.columns);
    let inner = algebra.map(&skew, [&columns.t(), &columns], |build, x, [row, column]| {
        // `(column - row) (column + row)` keeps more digits than `column^2 - row^2`.
        let own = over_gap(build, x, [row, column]);
        let sum = build.binary(BinaryOpcode::Add, row, column);
        let share = build.binary(BinaryOpcode::Div, column, sum);
        build.binary(BinaryOpcode::Chain, own, share)
    })?;
    let within = algebra.products([u, &inner, &v.t()])?;
    if u.rows == u.columns {
        return Ok(within);
    }
    let outside = algebra.sum(&[(&g, 1.0), (&algebra.product(u, &turned)?, -1.0)])?;
    let divided = algebra.map(&outside, [&s.as_equal_rows(u.rows)], |build, x, [s]| {
        let one = build.float(1.0, build.kind(s));
        let share = build.binary(BinaryOpcode::Div, one, s);
        build.binary(BinaryOpcode::Chain, x, share)
    })?;
    algebra.sum(&[(&within, 1.0), (&algebra.product(&divided, &v.t())?, 1.0)])
}

/// `u diag(g) v^T`
pub(super) fn of_singular_values<T: MatrixElement>(
    pulled: &PulledMatrices<'_, '_, T>,
) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let [u, s, v] = singular(pulled)?;
    let inner = algebra.diagonal(&pulled.cotangent([1, s.columns]))?;
    algebra.products([&u, &inner, &v.t()])
}

/// The largest singular value divided by the smallest. The cotangents of both are `g` times the
/// derivatives of this quotient.
pub(super) fn of_cond<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let [u, s, v] = singular(pulled)?;
    let last = s.columns - 1;
    let (greatest, least) = (s.columns_from(0, 1), s.columns_from(last, last + 1));
    let g = pulled.cotangent([1, 1]);
    let of_greatest =
        algebra.map(&g, [&least], |build, g, [least]| build.binary(BinaryOpcode::Div, g, least))?;
    let of_least = algebra.map(&of_greatest, [&greatest, &least], |build, own, [greatest, least]| {
        let ratio = build.binary(BinaryOpcode::Div, greatest, least);
        let zero = build.float(0.0, build.kind(own));
        let own = build.binary(BinaryOpcode::Mul, own, ratio);
        build.binary(BinaryOpcode::Sub, zero, own)
    })?;
    let own = algebra.placed(&[(&of_greatest, [0, 0]), (&of_least, [0, last])], [1, s.columns])?;
    algebra.products([&u, &algebra.diagonal(&own)?, &v.t()])
}

const UPPER: ReadTriangle = ReadTriangle { lower: false, transposed: false, unit: false };

/// `a = q r` with at least as many rows as columns: `(g_q + q m) r^-T`, where `m` is the lower
/// triangle of `r g_r^T - g_q^T q`, mirrored at the diagonal. For extra columns `b = q w` of
/// `a`, `g_b = q g_w`, and `b g_w^T` is added to `g_q`. (S. F. Walter and L. Lehmann, Algorithmic
/// differentiation of linear algebra functions, 2018.)
pub(super) fn of_qr<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let sizes = pulled.step.sizes;
    let least = sizes.least();
    let found = pulled.results(MatrixWork::Qr)?;
    let q = Matrices::new(&found[0].0, found[0].1, [sizes.rows, least]);
    let r = Matrices::new(&found[1].0, found[1].1, [least, sizes.columns]);
    let square = r.columns_from(0, least);
    if pulled.own.number == 0 {
        let g = pulled.cotangent([q.rows, q.columns]);
        let m = algebra.scaled(&algebra.product(&g.t(), &q)?, -1.0)?;
        let own = of_square_qr(pulled, [&q, &square], Some(&g), &m)?;
        return algebra.placed(&[(&own, [0, 0])], [sizes.rows, sizes.columns]);
    }
    let g = pulled.cotangent([r.rows, r.columns]);
    let m = algebra.product(&square, &g.columns_from(0, least).t())?;
    if sizes.columns == least {
        return of_square_qr(pulled, [&q, &square], None, &m);
    }
    let further = g.columns_from(least, sizes.columns);
    let of_further = algebra.product(&q, &further)?;
    let b = pulled.operand(0).columns_from(least, sizes.columns);
    let of_q = algebra.product(&b, &further.t())?;
    let m = algebra.sum(&[(&m, 1.0), (&algebra.product(&of_q.t(), &q)?, -1.0)])?;
    let own = of_square_qr(pulled, [&q, &square], Some(&of_q), &m)?;
    algebra.placed(&[(&own, [0, 0]), (&of_further, [0, least])], [sizes.rows, sizes.columns])
}

fn of_square_qr<T: MatrixElement>(
    pulled: &PulledMatrices<'_, '_, T>,
    [q, r]: [&Matrices; 2],
    of_q: Option<&Matrices>,
    m: &Matrices,
) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let lower = algebra.shares(m, [1.0, 0.5, 0.0])?;
    let mirrored = algebra.sum(&[(&lower, 1.0), (&lower.t(), 1.0)])?;
    let turned = algebra.product(q, &mirrored)?;
    let all = match of_q {
        Some(own) => algebra.sum(&[(own, 1.0), (&turned, 1.0)])?,
        None => turned,
    };
    Ok(algebra.solve_triangular(UPPER, r, &all.t())?.t())
}

/// `p a = l u` of square matrices: `p^T l^-T (s + t) u^-T`, where `s` is the part of `l^T g_l`
/// below the diagonal, and `t` the part of `g_u u^T` on and above it. Extra rows of `l` are the
/// extra rows of `p a` times `u^-1`, and extra columns of `u` are `l^-1` times the extra columns of
/// `p a`. (F. de Hoog, R. Anderssen and M. Lukas, Differentiation of matrix functionals using
/// triangular factorization, 2011.)
pub(super) fn of_lu<T: MatrixElement>(pulled: &PulledMatrices<'_, '_, T>) -> Result<Matrices, Error> {
    let algebra = &pulled.algebra;
    let sizes = pulled.step.sizes;
    let (rows, columns, least) = (sizes.rows, sizes.columns, sizes.least());
    let found = pulled.results(MatrixWork::Lu)?;
    let lower = Matrices::new(&found[1].0, 0, [rows, least]);
    let upper = Matrices::new(&found[2].0, 0, [least, columns]);
    let (l, u) = (lower.rows_from(0, least), upper.columns_from(0, least));
    let unit = ReadTriangle { lower: true, transposed: true, unit: true };
    let mut of_u: Option<Matrices> = None;
    let mut of_l: Option<Matrices> = None;
    let mut further: Option<(Matrices, [usize; 2])> = None;
    if pulled.own.number == 1 {
        let g = pulled.cotangent([rows, least]);
        of_l = Some(g.rows_from(0, least));
        if rows > least {
            let own = algebra.solve_triangular(UPPER, &u, &g.rows_from(least, rows).t())?.t();
            let product = algebra.product(&lower.rows_from(least, rows).t(), &own)?;
            of_u = Some(algebra.scaled(&product, -1.0)?);
            further = Some((own, [least, 0]));
        }
    } else {
        let g = pulled.cotangent([least, columns]);
        of_u = Some(g.columns_from(0, least));
        if columns > least {
            let own = algebra.solve_triangular(unit, &l, &g.columns_from(least, columns))?;
            let product = algebra.product(&own, &upper.columns_from(least, columns).t())?;
            of_l = Some(algebra.scaled(&product, -1.0)?);
            further = Some((own, [0, least]));
        }
    }
    let mut terms = Vec::new();
    if let Some(g) = of_l {
        terms.push(algebra.shares(&algebra.product(&l.t(), &g)?, [1.0, 0.0, 0.0])?);
    }
    if let Some(g) = of_u {
        terms.push(algebra.shares(&algebra.product(&g, &u.t())?, [0.0, 1.0, 1.0])?);
    }
    let inner = algebra.sum(&terms.iter().map(|own| (own, 1.0)).collect::<Vec<_>>())?;
    let left = algebra.solve_triangular(unit, &l, &inner)?;
    let own = algebra.solve_triangular(UPPER, &u, &left.t())?.t();
    let mut parts = alloc::vec![(&own, [0, 0])];
    parts.extend(further.as_ref().map(|(own, at)| (own, *at)));
    let ordered = algebra.placed(&parts, [rows, columns])?;
    algebra.rows_to(&ordered, &found[0].0)
}
