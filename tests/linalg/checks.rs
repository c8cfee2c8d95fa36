//! Compares results with the numbers of NumPy and SciPy, and with the properties that define them,
//! up to rounding.
//!
//! A computation on `n` rows or columns returns the exact result for a matrix whose relative
//! difference from the given one is at most `10 n epsilon` ([`Found::rounding`]). So results may
//! differ by this rounding times the condition of the problem. Products of the results, such as
//! `q r`, do not depend on the condition, so they may differ by the rounding alone. (N. J. Higham,
//! Accuracy and Stability of Numerical Algorithms, 2002.)

use crate::inputs::{Case, Wide, adjoint, norm, sketch};
use crate::run::Operator;
use ndarray::{Array2, s};
use num_complex::Complex;
use typed_dims::operators::linalg::systems::Triangular;

/// The operands of a result, and the case that it is compared with.
pub struct Found<'c> {
    pub case: &'c Case,
    pub a: Wide,
    pub b: Wide,
    pub epsilon: f64,
    pub range: [f64; 2],
    pub what: String,
}

fn eye(size: usize) -> Wide {
    Array2::eye(size)
}

fn diagonal(values: &Wide) -> Wide {
    Array2::from_shape_fn((values.len(), values.len()), |(row, column)| match row == column {
        true => values[[row, 0]],
        false => Complex::from(0.0),
    })
}

impl Found<'_> {
    /// `10 n epsilon`
    fn rounding(&self) -> f64 {
        10.0 * self.case.rows.max(self.case.columns).max(1) as f64 * self.epsilon
    }

    /// The condition number: the greatest singular value divided by the least nonzero one. 1 if all
    /// are 0.
    fn condition(&self) -> f64 {
        let s = self.case.reals("singular_values").expect("all cases have singular values");
        let rank = self.case.real("rank").expect("all cases have a rank") as usize;
        if rank == 0 { 1.0 } else { s[0] / s[rank - 1] }
    }

    /// The greatest singular value.
    fn size(&self) -> f64 {
        self.case.reals("singular_values").expect("all cases have singular values")[0]
    }

    #[track_caller]
    fn near(&self, what: &str, found: &Wide, expected: &Wide, tolerance: f64) {
        assert_eq!(found.dim(), expected.dim(), "{}: {what}", self.what);
        let error = norm(&(found - expected));
        assert!(
            error <= tolerance,
            "{}: {what} differs by {error:e}, more than {tolerance:e}:\n{found}\ninstead of\n{expected}",
            self.what
        );
    }

    /// Compares with the reference, if it has this result. `tolerance` is the allowed norm of the
    /// difference.
    #[track_caller]
    fn agrees(&self, name: &str, found: &Wide, tolerance: f64) {
        let Some(expected) = self.case.numbers(name) else { return };
        let (found, factor) = sketch(found);
        assert_eq!(found.len(), expected.len(), "{}: {name}", self.what);
        for (found, expected) in found.iter().zip(&expected) {
            let is_same = found == expected || (found - expected).norm() <= tolerance * factor;
            assert!(
                is_same,
                "{}: {name} has {found} instead of {expected}; the tolerance is {:e}",
                self.what,
                tolerance * factor
            );
        }
    }

    #[track_caller]
    fn agrees_real(&self, name: &str, found: &Wide, tolerance: f64) {
        let expected = self.case.reals(name).unwrap_or_else(|| panic!("the case has no {name}"));
        assert_eq!(found.len(), expected.len(), "{}: {name}", self.what);
        for (found, expected) in found.iter().zip(expected) {
            let is_same = found.re == expected || (found.re - expected).abs() <= tolerance;
            assert!(
                is_same && found.im == 0.0,
                "{}: {name} has {found} instead of {expected}; the tolerance is {tolerance:e}",
                self.what
            );
        }
    }

    /// Fails unless the columns have length 1 and are orthogonal.
    #[track_caller]
    fn is_orthogonal(&self, what: &str, q: &Wide) {
        self.near(what, &adjoint(q).dot(q), &eye(q.ncols()), self.rounding() * (q.ncols() as f64).sqrt());
    }

    #[track_caller]
    fn is_triangular(&self, what: &str, a: &Wide, is_lower: bool) {
        for ((row, column), value) in a.indexed_iter() {
            let is_outside = if is_lower { column > row } else { column < row };
            assert!(!is_outside || *value == Complex::from(0.0), "{}: {what} is not triangular", self.what);
        }
    }

    pub fn check(&self, operator: Operator, found: &[Wide]) {
        let (a, b) = (&self.a, &self.b);
        let (rounding, condition, n) = (self.rounding(), self.condition(), self.case.rows);
        let half = || (a / Complex::from(2.0)) + (adjoint(a) / Complex::from(2.0));
        match operator {
            Operator::Cholesky => {
                let (l, half) = (&found[0], half());
                self.is_triangular("l", l, true);
                assert!(l.diag().iter().all(|x| x.re > 0.0 && x.im == 0.0), "{}: {l}", self.what);
                self.near("l l^H", &l.dot(&adjoint(l)), &half, rounding * norm(&half));
                self.agrees("cholesky", l, rounding * condition * norm(l));
            }
            Operator::SolveTriangular(side) => self.check_triangular(side, &found[0]),
            Operator::Solve | Operator::SolveVector => {
                let x = &found[0];
                let b = if operator == Operator::Solve { b.clone() } else { b.slice(s![.., ..1]).to_owned() };
                self.near("a x", &a.dot(x), &b, rounding * norm(a) * norm(x));
                if operator == Operator::Solve {
                    self.agrees("solve", x, rounding * condition * norm(x));
                }
            }
            Operator::Inverse => {
                let x = &found[0];
                self.near("a a^-1", &a.dot(x), &eye(n), rounding * norm(a) * norm(x));
                self.agrees("inverse", x, rounding * condition * norm(x));
            }
            Operator::Det => self.check_det(found[0][[0, 0]]),
            Operator::SlogDet => {
                let (sign, log) = (found[0][[0, 0]], found[1][[0, 0]]);
                let Some(expected) = self.case.numbers("slogdet") else { return };
                let tolerance = rounding * (n as f64).sqrt() * condition;
                assert!(
                    (sign - expected[0]).norm() <= tolerance,
                    "{}: the sign {sign} instead of {}",
                    self.what,
                    expected[0]
                );
                assert!(
                    log == expected[1] || (log - expected[1]).norm() <= tolerance + rounding * log.norm(),
                    "{}: the logarithm {log} instead of {}",
                    self.what,
                    expected[1]
                );
            }
            Operator::Lu => self.check_lu(found),
            Operator::Qr => {
                let (q, r) = (&found[0], &found[1]);
                self.is_orthogonal("q^H q", q);
                self.is_triangular("r", r, false);
                self.near("q r", &q.dot(r), a, rounding * norm(a));
                // With a positive diagonal, `r` is unique.
                let mut r = r.clone();
                for (at, mut row) in r.rows_mut().into_iter().enumerate() {
                    let (own, size) = (row[at], row[at].norm());
                    if size > 0.0 {
                        row.mapv_inplace(|x| x * (own.conj() / size));
                    }
                }
                self.agrees("upper_factor", &r, rounding * condition * norm(&r));
            }
            Operator::Eigh => {
                let (w, v, half) = (&found[0], &found[1], half());
                assert!(w.iter().map(|w| w.re).is_sorted(), "{}: {w}", self.what);
                self.is_orthogonal("v^H v", v);
                self.near("a v", &half.dot(v), &v.dot(&diagonal(w)), rounding * norm(&half));
                self.agrees_real("eigh", w, rounding * norm(&half));
            }
            Operator::Svd => {
                let (u, s, v) = (&found[0], &found[1], &found[2]);
                self.is_orthogonal("u^H u", u);
                self.is_orthogonal("v^H v", v);
                self.near("u s v^H", &u.dot(&diagonal(s)).dot(&adjoint(v)), a, rounding * norm(a));
                self.check_singular_values(s);
            }
            Operator::SingularValues => self.check_singular_values(&found[0]),
            Operator::Pinv => {
                let p = &found[0];
                let error = rounding * condition * norm(a) * norm(p);
                self.near("a p a", &a.dot(p).dot(a), a, error * norm(a));
                self.near("p a p", &p.dot(a).dot(p), p, error * norm(p));
                self.near("(a p)^H", &adjoint(&a.dot(p)), &a.dot(p), error);
                self.near("(p a)^H", &adjoint(&p.dot(a)), &p.dot(a), error);
                self.agrees("pinv", p, rounding * condition * norm(p));
                if self.case.numbers("pinv").is_none() {
                    self.agrees("inverse", p, rounding * condition * norm(p));
                }
            }
            Operator::Lstsq => {
                // The pseudoinverse, whose norm is `1 / the least nonzero singular value`, is
                // multiplied by `b`.
                let x = &found[0];
                let size = if self.size() == 0.0 { 0.0 } else { condition / self.size() };
                let tolerance = rounding * condition * (n as f64).sqrt() * size * norm(b);
                self.agrees("lstsq", x, tolerance);
                if self.case.numbers("lstsq").is_none() {
                    self.agrees("solve", x, tolerance);
                }
            }
            Operator::Rank => self.agrees_real("rank", &found[0], 0.0),
            Operator::Cond => {
                let found = found[0][[0, 0]].re;
                match self.case.real("cond") {
                    Some(expected) => {
                        let is_near = (found - expected).abs() <= rounding * expected * expected;
                        assert!(is_near, "{}: {found} instead of {expected}", self.what);
                    }
                    None => assert!(found >= 1.0 / rounding, "{}: {found}", self.what),
                }
            }
            Operator::Power(0) => self.near("a^0", &found[0], &eye(n), 0.0),
            Operator::Power(3) => self.agrees("matrix_power", &found[0], rounding * 3.0 * norm(a).powi(3)),
            Operator::Power(_) => {
                let inverse = (n as f64).sqrt() * condition / self.size();
                let tolerance = rounding * 3.0 * condition * inverse * inverse;
                self.agrees("matrix_power_negative", &found[0], tolerance);
            }
            Operator::Expm => {
                // The condition is at most `e^2` for a matrix whose norm is at most 1.
                let condition = self.case.real("expm_cond").unwrap_or(8.0).max(1.0);
                self.agrees("expm", &found[0], rounding * condition * norm(&found[0]));
            }
        }
    }

    #[track_caller]
    fn check_singular_values(&self, s: &Wide) {
        assert!(s.iter().map(|s| -s.re).is_sorted() && s.iter().all(|s| s.re >= 0.0), "{}: {s}", self.what);
        self.agrees_real("singular_values", s, self.rounding() * self.size());
    }

    /// The derivative of the determinant in the direction `e` is `tr(cofactors^T e)`. The norm of
    /// the cofactors is that of the products of all singular values but one.
    #[track_caller]
    fn check_det(&self, found: Complex<f64>) {
        let Some(expected) = self.case.numbers("det") else { return };
        let s = self.case.reals("singular_values").expect("all cases have singular values");
        // The largest change of the determinant if each singular value changes by the rounding.
        let error = self.rounding() * s[0];
        let own = s.iter().map(|s| s + error).product::<f64>() - s.iter().product::<f64>();
        // NumPy computes the determinant from its logarithm.
        let size = expected[0].norm();
        let of_numpy = if size == 0.0 { 0.0 } else { size * 2.0 * f64::EPSILON * (1.0 + size.ln().abs()) };
        let tolerance = own + of_numpy;
        let [least, most] = self.range;
        let is_near = found == expected[0] || (found - expected[0]).norm() <= tolerance;
        // Outside the range of floats, the determinant is 0 or infinite; products of complex
        // numbers are then NaN.
        let is_too_small = expected[0].norm() < least && found.norm() <= least;
        let is_too_large = expected[0].norm() > most && !found.is_finite();
        let is_right = is_near || is_too_small || is_too_large;
        assert!(is_right, "{}: {found} instead of {}", self.what, expected[0]);
    }

    fn check_lu(&self, found: &[Wide]) {
        let (order, l, u) = (&found[0], &found[1], &found[2]);
        let (a, rounding) = (&self.a, self.rounding());
        let order: Vec<usize> = order.iter().map(|x| x.re as usize).collect();
        let mut sorted = order.clone();
        sorted.sort();
        assert_eq!(sorted, (0..a.nrows()).collect::<Vec<_>>(), "{}: the order of rows", self.what);
        self.is_triangular("l", l, true);
        self.is_triangular("u", u, false);
        assert!(l.diag().iter().all(|x| *x == Complex::from(1.0)), "{}: {l}", self.what);
        // A complex pivot may be the greatest in another norm.
        assert!(l.iter().all(|x| x.norm() <= 1.5), "{}: {l}", self.what);
        let ordered = a.select(ndarray::Axis(0), &order);
        let growth = norm(l) * norm(u);
        self.near("l u", &l.dot(u), &ordered, rounding * growth);
        // If candidates for a pivot are equal, the order can differ.
        let Some(expected) = self.case.reals("order") else { return };
        if order.iter().zip(expected).all(|(own, other)| *own == other as usize) {
            let condition = self.case.real("lu_cond").expect("the case has `lu_cond`");
            let error = rounding * condition * growth / norm(a);
            self.agrees("lower", l, error * norm(l));
            self.agrees("upper", u, error * norm(u));
        }
    }

    /// The triangle that a system reads.
    pub fn triangle(&self, side: Triangular) -> Wide {
        let (is_lower, is_unit) = match side {
            Triangular::Lower => (true, false),
            Triangular::Upper => (false, false),
            Triangular::UnitLower => (true, true),
            Triangular::UnitUpper => (false, true),
        };
        let mut t = self.a.clone();
        for ((row, column), value) in t.indexed_iter_mut() {
            let is_outside = if is_lower { column > row } else { column < row };
            if row == column && is_unit {
                *value = Complex::from(1.0);
            } else if is_outside {
                *value = Complex::from(0.0);
            }
        }
        t
    }

    /// The error bound is `m(t)^-1 |t| |x|` times the rounding of sums, where `m(t)` has the
    /// absolute values of the elements of `t`, negated off the diagonal.
    fn check_triangular(&self, side: Triangular, x: &Wide) {
        let (t, n) = (self.triangle(side), self.case.rows);
        let rounding = self.rounding();
        let sizes = t.mapv(|x| x.norm());
        let terms = sizes.dot(&x.mapv(|x| x.norm()));
        let residual = t.dot(x) - &self.b;
        for (found, terms) in residual.iter().zip(&terms) {
            assert!(found.norm() <= rounding * terms, "{}: {x} is no solution", self.what);
        }
        let mut bound = terms.clone();
        let is_lower = matches!(side, Triangular::Lower | Triangular::UnitLower);
        for step in 0..n {
            let row = if is_lower { step } else { n - 1 - step };
            for column in 0..bound.ncols() {
                let known = if is_lower { 0..row } else { row + 1..n };
                let rest: f64 = known.map(|k| sizes[[row, k]] * bound[[k, column]]).sum();
                bound[[row, column]] = (terms[[row, column]] + rest) / sizes[[row, row]];
            }
        }
        let name = match side {
            Triangular::Lower => "solve_lower",
            Triangular::Upper => "solve_upper",
            Triangular::UnitLower => "solve_lower_unit",
            Triangular::UnitUpper => "solve_upper_unit",
        };
        self.agrees(name, x, rounding * norm(&bound.mapv(Complex::from)));
    }

    /// Compares eigenvalues in any order. They must be within the smaller of `condition of v * |e|`
    /// and `2 |a| (|e| / |a|)^(1 / n)` of those expected, where `e` is the rounding of `a`.
    /// Defective matrices have only the second bound. (F. L. Bauer and C. T. Fike, 1960;
    /// L. Elsner, 1985.)
    pub fn check_eig(&self, w: &Wide, v: &Wide) {
        let (a, rounding) = (&self.a, self.rounding());
        let n = self.case.rows;
        self.near("a v", &a.dot(v), &v.dot(&diagonal(w)), rounding * norm(a) * (n as f64).sqrt());
        for column in v.columns() {
            let length = column.iter().map(|x| x.norm_sqr()).sum::<f64>().sqrt();
            assert!((length - 1.0).abs() <= rounding, "{}: the length {length}", self.what);
        }
        let few = 2.0 * rounding.powf(1.0 / n as f64);
        let tolerance = norm(a) * self.case.real("eig_cond").map_or(few, |own| (own * rounding).min(few));
        let mut rest: Vec<Complex<f64>> = w.iter().copied().collect();
        for expected in self.case.numbers("eig").expect("real matrices have eigenvalues") {
            let distance = |x: &Complex<f64>| (x - expected).norm();
            let nearest = (0..rest.len()).min_by(|&i, &j| distance(&rest[i]).total_cmp(&distance(&rest[j])));
            let found = rest.swap_remove(nearest.expect("the lengths are equal"));
            assert!(
                distance(&found) <= tolerance,
                "{}: the eigenvalue {found} instead of {expected}; the tolerance is {tolerance:e}",
                self.what
            );
        }
        assert!(rest.is_empty());
    }
}
