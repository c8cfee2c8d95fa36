//! Matrices: systems of equations, decompositions, functions.
//!
//! The entries scale their arguments down and add the diagonal 1, 2, 3, .., so that matrices are
//! invertible and have distinct eigenvalues and singular values. Results that are unique only up to
//! sign are compared through a function that does not depend on the sign.

use crate::table::Family;
use crate::value::of;
use crate::{C, D, I, Inner, J, K, O, Outer};
use ndarray::ArrayD;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::prelude::*;

pub fn family() -> Family {
    Family {
        title: "Matrices",
        about: "These operators need the feature `linalg`. They run immediately. The first two dims that you pass are the rows and columns of a matrix; all other dims of the tensor are a batch. Elements are `f32` or `f64` or, except in `eig`, complex numbers, for which there are no derivatives. `x^H` is the conjugate transpose; for real numbers, it is the transpose.",
        operators: entries(),
    }
}

/// A matrix, row by row.
type Rows = Vec<Vec<f64>>;

fn rows(height: usize, width: usize, f: impl Fn(usize, usize) -> f64) -> Rows {
    (0..height).map(|row| (0..width).map(|column| f(row, column)).collect()).collect()
}

/// The matrix that entries compute from their argument.
fn regular<T: Copy + Into<f64>>(x: &ArrayD<T>) -> Rows {
    rows(x.shape()[0], x.shape()[1], |row, column| {
        let on_diagonal = if row == column { row as f64 + 1.0 } else { 0.0 };
        x[[row, column]].into() * 0.05 + on_diagonal
    })
}

fn plain<T: Copy + Into<f64>>(x: &ArrayD<T>) -> Rows {
    rows(x.shape()[0], x.shape()[1], |row, column| x[[row, column]].into())
}

fn t(a: &Rows) -> Rows {
    rows(a.first().map_or(0, Vec::len), a.len(), |row, column| a[column][row])
}

fn times(a: &Rows, b: &Rows) -> Rows {
    rows(a.len(), b[0].len(), |row, column| (0..b.len()).map(|k| a[row][k] * b[k][column]).sum())
}

fn symmetric(a: &Rows) -> Rows {
    rows(a.len(), a.len(), |row, column| (a[row][column] + a[column][row]) / 2.0)
}

/// `x` in `a x = b`, by elimination with partial pivoting.
fn solved(a: &Rows, b: &Rows) -> Rows {
    let (mut a, mut b) = (a.clone(), b.clone());
    let size = a.len();
    for pivot in 0..size {
        let best = (pivot..size).max_by(|&i, &j| a[i][pivot].abs().total_cmp(&a[j][pivot].abs())).unwrap();
        a.swap(pivot, best);
        b.swap(pivot, best);
        for row in (0..size).filter(|&row| row != pivot) {
            let share = a[row][pivot] / a[pivot][pivot];
            for own in [&mut a, &mut b] {
                let other = own[pivot].clone();
                own[row].iter_mut().zip(other).for_each(|(own, other)| *own -= share * other);
            }
        }
    }
    rows(size, b[0].len(), |row, column| b[row][column] / a[row][row])
}

fn identity(size: usize) -> Rows {
    rows(size, size, |row, column| f64::from(u8::from(row == column)))
}

/// The determinant, by expansion along the first row.
fn expanded(a: &Rows) -> f64 {
    let minor = |left: usize| -> Rows {
        a[1..].iter().map(|row| [&row[..left], &row[left + 1..]].concat()).collect()
    };
    if a.is_empty() {
        return 1.0;
    }
    (0..a.len()).map(|at| (if at % 2 == 0 { 1.0 } else { -1.0 }) * a[0][at] * expanded(&minor(at))).sum()
}

fn lower_factor(a: &Rows) -> Rows {
    let mut l = rows(a.len(), a.len(), |_, _| 0.0);
    for row in 0..a.len() {
        for column in 0..=row {
            let rest = a[row][column] - (0..column).map(|k| l[row][k] * l[column][k]).sum::<f64>();
            l[row][column] = if row == column { rest.sqrt() } else { rest / l[column][column] };
        }
    }
    l
}

/// `q` and `r`, whose diagonal is positive: `r^T r = a^T a`.
fn orthogonal(a: &Rows) -> (Rows, Rows) {
    let least = a.len().min(a[0].len());
    let first = rows(a.len(), least, |row, column| a[row][column]);
    let upper = t(&lower_factor(&times(&t(&first), &first)));
    let q = t(&solved(&t(&upper), &t(&first)));
    (q.clone(), times(&t(&q), a))
}

/// The triangular factors, without row exchanges.
fn triangular(a: &Rows) -> (Rows, Rows) {
    let least = a.len().min(a[0].len());
    let (mut l, mut u) = (rows(a.len(), least, |_, _| 0.0), rows(least, a[0].len(), |_, _| 0.0));
    for at in 0..least {
        for column in at..a[0].len() {
            u[at][column] = a[at][column] - (0..at).map(|k| l[at][k] * u[k][column]).sum::<f64>();
        }
        for row in at..a.len() {
            l[row][at] = (a[row][at] - (0..at).map(|k| l[row][k] * u[k][at]).sum::<f64>()) / u[at][at];
        }
    }
    (l, u)
}

/// `e^a`, by its series.
fn exponential(a: &Rows) -> Rows {
    let (mut sum, mut term) = (identity(a.len()), identity(a.len()));
    for at in 1..60 {
        term =
            times(&term, a).into_iter().map(|row| row.into_iter().map(|x| x / at as f64).collect()).collect();
        sum = rows(a.len(), a.len(), |row, column| sum[row][column] + term[row][column]);
    }
    sum
}

/// The greatest singular value, by power iteration.
fn greatest(a: &Rows) -> f64 {
    let gram = times(&t(a), a);
    let mut x: Rows = rows(gram.len(), 1, |row, _| 1.0 + row as f64);
    let mut size = 0.0;
    for _ in 0..2000 {
        x = times(&gram, &x);
        size = x.iter().map(|row| row[0] * row[0]).sum::<f64>().sqrt();
        x.iter_mut().for_each(|row| row[0] /= size);
    }
    size.sqrt()
}

/// The sum of `i * w[i]` over the ascending eigenvalues `w` of a symmetric matrix, by Jacobi
/// rotations.
fn numbered_sum(a: &Rows) -> f64 {
    let mut a = a.clone();
    let size = a.len();
    for _ in 0..50 {
        for (p, q) in (0..size).flat_map(|p| (p + 1..size).map(move |q| (p, q))) {
            let angle = 0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p]);
            let turn = rows(size, size, |row, column| match (row, column) {
                (row, column) if (row, column) == (p, q) => angle.sin(),
                (row, column) if (row, column) == (q, p) => -angle.sin(),
                (row, column) if row == column && (row == p || row == q) => angle.cos(),
                (row, column) => f64::from(u8::from(row == column)),
            });
            a = times(&times(&t(&turn), &a), &turn);
        }
    }
    let mut values: Vec<f64> = (0..size).map(|at| a[at][at]).collect();
    values.sort_by(f64::total_cmp);
    values.iter().enumerate().map(|(at, value)| at as f64 * value).sum()
}

fn pseudoinverse(a: &Rows) -> Rows {
    solved(&times(&t(a), a), &t(a))
}

/// The matrix as an array with elements of `T`.
macro_rules! array_of {
    ($rows:expr) => {{
        let rows: Rows = $rows;
        crate::loops::build(&[rows.len(), rows.first().map_or(0, Vec::len)], |at| rows[at[0]][at[1]] as T)
    }};
}

/// The number as an array without axes.
macro_rules! scalar_of {
    ($value:expr) => {{
        let value: f64 = $value;
        crate::loops::build(&[], |_| value as T)
    }};
}

/// The argument times 0.05, plus the diagonal 1, 2, 3, .., as `regular` computes it.
macro_rules! diagonal {
    ($x:ident, $rows:ident = $height:literal, $columns:ident = $width:literal) => {
        $x * of::<T>(0.05)
            + eye::<T, _, _>($rows.of($height), $columns.of($width)) * ($rows.cast::<T>() + of::<T>(1.0))
    };
}

crate::operators! {
    /// The lower triangular factor `l`: `(x + x^H) / 2 = l l^H`
    cholesky [f32 f64] (x: T [J C]) -> [C J],
        call: shown!(x.cholesky(J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: array_of!(t(&lower_factor(&symmetric(&regular(x))))),
        along: [J C], keep: [J C],
        errors: [
            array![[1.0, 2.0], [2.0, 1.0]].at((J, C)).try_cholesky(J, C) => "`cholesky`: the matrix is not positive definite",
            array![[1.0, f64::NAN], [2.0, 1.0]].at((J, C)).try_cholesky(J, C)
                => "`cholesky`: the matrix has an element that is infinite or NaN",
            array![[[1.0], [2.0]], [[2.0], [1.0]]].at((J, K, C)).try_cholesky(J, C)
                => "`cholesky` of matrices that are not square: `J` = 2, `C` = 1",
            array![[[1.0]], [[-1.0]]].at((K, J, C)).try_cholesky(J, C)
                => "`cholesky`: the matrix at K = 1 is not positive definite",
        ],
        names: "linalg.cholesky" "numpy.linalg.cholesky" "linalg.cholesky";
    /// The inverse; its rows are along `C`, its columns along `J`
    inverse [f32 f64] (x: T [J C]) -> [C J],
        call: shown!(x.inverse(J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: array_of!(solved(&regular(x), &identity(4))),
        along: [J C], keep: [J C],
        errors: [array![[1.0, 2.0], [2.0, 4.0]].at((J, C)).try_inverse(J, C) => "`inverse`: the matrix is singular"],
        names: "linalg.inv" "numpy.linalg.inv" "linalg.inv";
    /// The determinant
    det [f32 f64] (x: T [J C]) -> [],
        call: shown!(x.det(J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: scalar_of!(expanded(&regular(x))),
        along: [J C], keep: [J C],
        errors: [array![[1.0, f64::INFINITY], [0.0, 4.0]].at((J, C)).try_det(J, C)
            => "`det`: the matrix has an element that is infinite or NaN"],
        names: "linalg.det" "numpy.linalg.det" "linalg.det";
    /// The sign of the determinant, and the logarithm of its magnitude
    slogdet [f32 f64] (x: T [J C]) -> [],
        call: shown!(x.slogdet(J, C); where { let x = diagonal!(x, J = 4, C = 4); } then |found| found.1 * found.0),
        loops: scalar_of!(expanded(&regular(x)).ln()),
        along: [J C], keep: [J C],
        names: "linalg.slogdet" "numpy.linalg.slogdet" "linalg.slogdet";
    /// `y` in `x y = b`
    solve [f32 f64] (x: T [J C], b: T [K J]) -> [C K],
        call: shown!(x.solve(b, J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: array_of!(solved(&regular(x), &t(&plain(b)))),
        along: [J C], keep: [J C K],
        errors: [array![[1.0, 2.0], [2.0, 4.0]].at((J, C)).try_solve(array![1.0, 2.0].at(J), J, C)
            => "`solve`: the matrix is singular"],
        names: "linalg.solve" "numpy.linalg.solve" "linalg.solve";
    /// `y` in `l y = b`, where `l` is the lower triangle
    solve_triangular [f32 f64] (x: T [J C], b: T [J K]) -> [C K],
        call: shown!(x.solve_triangular(b, J, C, Triangular::Lower); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: {
            let a = regular(x);
            array_of!(solved(&rows(4, 4, |row, column| if column <= row { a[row][column] } else { 0.0 }), &plain(b)))
        },
        along: [J C], keep: [J C K],
        errors: [array![[1.0, 2.0], [2.0, 0.0]].at((J, C)).try_solve_triangular(array![1.0, 2.0].at(J), J, C, Triangular::Lower)
            => "`solve_triangular`: the matrix is singular"],
        names: "linalg.solve_triangular" "scipy.linalg.solve_triangular" "scipy.linalg.solve_triangular";
    /// `y` in `u y = b`, where `u` is the upper triangle with ones on its diagonal
    solve_triangular_unit [f32 f64] (x: T [J C], b: T [J K]) -> [C K],
        call: shown!(x.solve_triangular(b, J, C, Triangular::UnitUpper); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: {
            let a = regular(x);
            array_of!(solved(&rows(4, 4, |row, column| match column.cmp(&row) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => a[row][column],
            }), &plain(b)))
        },
        along: [J C], keep: [J C K],
        names: "linalg.solve_triangular(unitriangular=True)" "scipy.linalg.solve_triangular(unit_diagonal=True)" "scipy.linalg.solve_triangular(unit_diagonal=True)";
    /// The order of the rows, and the factors: `x[order[i]] = sum over k of l[i, k] * u[k]`
    lu [f32 f64] (x: T [J C]) -> [J C],
        call: shown!(x.lu(J, C, D); where { let x = diagonal!(x, J = 4, C = 4).flip(J); } then |found| found.1.exp().contract(found.2.sin(), D)),
        loops: {
            let (l, u) = triangular(&regular(x));
            array_of!(rows(4, 4, |row, column| (0..4).map(|k| l[row][k].exp() * u[k][column].sin()).sum()))
        },
        along: [J C], keep: [J C],
        names: "linalg.lu_factor" "scipy.linalg.lu" "scipy.linalg.lu";
    /// The factors of a matrix with more rows than columns
    lu_tall [f32 f64] (x: T [J I]) -> [J I],
        call: shown!(x.lu(J, I, O); where { let x = diagonal!(x, J = 4, I = 3); } then |found| found.1.exp().contract(found.2.sin(), O)),
        loops: {
            let (l, u) = triangular(&regular(x));
            array_of!(rows(4, 3, |row, column| (0..3).map(|k| l[row][k].exp() * u[k][column].sin()).sum()))
        },
        along: [J I], keep: [J I],
        names: "linalg.lu_factor" "scipy.linalg.lu" "scipy.linalg.lu";
    /// The factors of a matrix with more columns than rows
    lu_wide [f32 f64] (x: T [I J]) -> [I J],
        call: shown!(x.lu(I, J, O); where { let x = diagonal!(x, I = 3, J = 4); } then |found| found.1.exp().contract(found.2.sin(), O)),
        loops: {
            let (l, u) = triangular(&regular(x));
            array_of!(rows(3, 4, |row, column| (0..3).map(|k| l[row][k].exp() * u[k][column].sin()).sum()))
        },
        along: [I J], keep: [I J],
        names: "linalg.lu_factor" "scipy.linalg.lu" "scipy.linalg.lu";
    /// The orthogonal factor `q` and the upper triangular factor `r`: `x = q r`
    qr [f32 f64] (x: T [J I]) -> [J D],
        call: shown!(x.qr(J, I, O); where { let x = diagonal!(x, J = 4, I = 3); } then |found| {
            let q = found.0;
            q.contract((&q).rename(J, D), O)
        }),
        loops: {
            let (q, _) = orthogonal(&regular(x));
            array_of!(times(&q, &t(&q)))
        },
        along: [J I], keep: [J I],
        names: "linalg.qr" "numpy.linalg.qr" "linalg.qr";
    /// The triangular factor of a matrix with more rows than columns
    qr_upper [f32 f64] (x: T [J I]) -> [O I],
        call: shown!(x.qr(J, I, O); where { let x = diagonal!(x, J = 4, I = 3); } then |found| found.1.abs()),
        loops: array_of!(orthogonal(&regular(x)).1.into_iter().map(|row| row.into_iter().map(f64::abs).collect()).collect()),
        along: [J I], keep: [J I],
        names: "linalg.qr(mode='r')" "numpy.linalg.qr(mode='r')" "linalg.qr(mode='r')";
    /// The triangular factor of a matrix with more columns than rows
    qr_wide [f32 f64] (x: T [I J]) -> [O J],
        call: shown!(x.qr(I, J, O); where { let x = diagonal!(x, I = 3, J = 4); } then |found| found.1.abs()),
        loops: array_of!(orthogonal(&regular(x)).1.into_iter().map(|row| row.into_iter().map(f64::abs).collect()).collect()),
        along: [I J], keep: [I J],
        names: "linalg.qr(mode='r')" "numpy.linalg.qr(mode='r')" "linalg.qr(mode='r')";
    /// Eigenvalues and eigenvectors of `(x + x^H) / 2`
    eigh [f32 f64] (x: T [J C]) -> [J D],
        call: shown!(x.eigh(J, C); where { let x = diagonal!(x, J = 4, C = 4); } then |found| {
            let (w, v) = found;
            ((&v) * (w * of::<T>(0.5)).exp()).contract((&v).rename(J, D), C)
        }),
        loops: {
            let half = symmetric(&regular(x)).into_iter().map(|row| row.into_iter().map(|x| x / 2.0).collect()).collect();
            array_of!(exponential(&half))
        },
        along: [J C], keep: [J C],
        errors: [array![[1.0, f64::NAN], [2.0, 1.0]].at((J, C)).try_eigh(J, C)
            => "`eigh`: the matrix has an element that is infinite or NaN"],
        names: "linalg.eigh" "numpy.linalg.eigh" "linalg.eigh";
    /// The eigenvalues alone
    eigh_values [f32 f64] (x: T [J C]) -> [],
        call: shown!(x.eigh(J, C); where { let x = diagonal!(x, J = 4, C = 4); } then |found| (found.0 * C.cast::<T>()).sum(C)),
        loops: {
            scalar_of!(numbered_sum(&symmetric(&regular(x))))
        },
        along: [J C], keep: [J C],
        names: "linalg.eigvalsh" "numpy.linalg.eigvalsh" "linalg.eigvalsh";
    /// The eigenvalues and eigenvectors of any real square matrix
    eig [f64 f32] (x: T [J C]) -> [],
        call: shown!(x.eig(J, C); where { let x = diagonal!(x, J = 4, C = 4); } then |found| found.0.abs().prod(C)),
        loops: scalar_of!(expanded(&regular(x))),
        along: [J C], keep: [J C],
        names: "linalg.eig" "numpy.linalg.eig" "linalg.eig";
    /// The left singular vectors, the singular values, and the right singular vectors
    svd [f32 f64] (x: T [J I]) -> [J I],
        call: shown!(x.svd(J, I, O); where { let x = diagonal!(x, J = 4, I = 3); } then |found| {
            let (u, s, v) = found;
            (u * (&s) * (&s) * (&s)).contract(&v, O)
        }),
        loops: {
            let a = regular(x);
            array_of!(times(&times(&a, &t(&a)), &a))
        },
        along: [J I], keep: [J I],
        names: "linalg.svd(full_matrices=False)" "numpy.linalg.svd(full_matrices=False)" "linalg.svd(full_matrices=False)";
    /// The singular vectors of a matrix with more columns than rows
    svd_wide [f32 f64] (x: T [I J]) -> [J D],
        call: shown!(x.svd(I, J, O); where { let x = diagonal!(x, I = 3, J = 4); } then |found| {
            let v = found.2;
            v.contract((&v).rename(J, D), O)
        }),
        loops: {
            let a = t(&regular(x));
            array_of!(times(&a, &pseudoinverse(&a)))
        },
        along: [I J], keep: [I J],
        names: "linalg.svd(full_matrices=False)" "numpy.linalg.svd(full_matrices=False)" "linalg.svd(full_matrices=False)";
    /// The singular values alone
    singular_values [f32 f64] (x: T [J I]) -> [],
        call: shown!(x.singular_values(J, I, O); where { let x = diagonal!(x, J = 4, I = 3); } then |found| found.slice(O, ..1).sum(O)),
        loops: scalar_of!(greatest(&regular(x))),
        along: [J I], keep: [J I],
        names: "linalg.svdvals" "numpy.linalg.svdvals" "linalg.svdvals";
    /// The pseudoinverse; its rows are along `I`, its columns along `J`
    pinv [f32 f64] (x: T [J I]) -> [I J],
        call: shown!(x.pinv(J, I); where { let x = diagonal!(x, J = 4, I = 3); }),
        loops: array_of!(pseudoinverse(&regular(x))),
        along: [J I], keep: [J I],
        names: "linalg.pinv" "numpy.linalg.pinv" "linalg.pinv";
    /// The least squares solution
    lstsq [f32 f64] (x: T [J I], b: T [J K]) -> [I K],
        call: shown!(x.lstsq(b, J, I); where { let x = diagonal!(x, J = 4, I = 3); }),
        loops: array_of!(times(&pseudoinverse(&regular(x)), &plain(b))),
        along: [J I], keep: [J I K],
        names: "linalg.lstsq" "numpy.linalg.lstsq" "linalg.lstsq";
    /// The rank
    matrix_rank [f32 f64] (x: T [J I]) -> [],
        call: shown!(x.matrix_rank(J, I); where { let x = diagonal!(x, J = 4, I = 3); }),
        loops: crate::loops::build(&[], |_| 3usize),
        along: [J I], keep: [J I],
        names: "linalg.matrix_rank" "numpy.linalg.matrix_rank" "linalg.matrix_rank";
    /// The condition number
    cond [f32 f64] (x: T [J C]) -> [],
        call: shown!(x.cond(J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: {
            let a = regular(x);
            scalar_of!(greatest(&a) * greatest(&solved(&a, &identity(4))))
        },
        along: [J C], keep: [J C],
        names: "linalg.cond" "numpy.linalg.cond" "linalg.cond";
    /// The power with an exponent of 0 or more
    matrix_power [f32 f64] (x: T [J C]) -> [J C],
        call: shown!(x.matrix_power(J, C, 3); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: {
            let a = regular(x);
            array_of!(times(&times(&a, &a), &a))
        },
        along: [J C], keep: [J C],
        names: "linalg.matrix_power" "numpy.linalg.matrix_power" "linalg.matrix_power";
    /// The power with a negative exponent
    matrix_power_negative [f32 f64] (x: T [J C]) -> [J C],
        call: shown!(x.matrix_power(J, C, -2); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: {
            let inverse = solved(&regular(x), &identity(4));
            array_of!(times(&inverse, &inverse))
        },
        along: [J C], keep: [J C],
        errors: [array![[1.0, 2.0], [2.0, 4.0]].at((J, C)).try_matrix_power(J, C, -1) => "`matrix_power`: the matrix is singular"],
        names: "linalg.matrix_power" "numpy.linalg.matrix_power" "linalg.matrix_power";
    /// The exponential `1 + x + x x / 2 + ..`
    expm [f32 f64] (x: T [J C]) -> [J C],
        call: shown!(x.expm(J, C); where { let x = diagonal!(x, J = 4, C = 4); }),
        loops: array_of!(exponential(&regular(x))),
        along: [J C], keep: [J C],
        names: "linalg.matrix_exp" "scipy.linalg.expm" "scipy.linalg.expm";
}
