//! Matrices that have no result: the error says why, and where in the batch they are.

use crate::inputs::{Case, Wide, norm};
use crate::run::{C, Inner, K, Operator, Outer, R, TestElement, alone, batch, batches, matrix, narrow};
use crate::{count_of, golden, stacked};
use ndarray::{Array2, ArrayD, Axis, Ix4, array};
use num_complex::Complex;
use typed_dims::fallible::try_map_each;
use typed_dims::grad::grad;
use typed_dims::operators::linalg::RealMatrixElement;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

const SIZES: [usize; 6] = [1, 2, 4, 8, 9, 17];

const OUT_OF_RANGE: &str = "has a result that is too large for its type";

/// The operator's name in messages.
fn name(operator: Operator) -> &'static str {
    match operator {
        Operator::Cholesky => "cholesky",
        Operator::SolveTriangular(_) => "solve_triangular",
        Operator::Solve | Operator::SolveVector => "solve",
        Operator::Inverse => "inverse",
        Operator::Det => "det",
        Operator::SlogDet => "slogdet",
        Operator::Lu => "lu",
        Operator::Qr => "qr",
        Operator::Eigh => "eigh",
        Operator::Svd => "svd",
        Operator::SingularValues => "singular_values",
        Operator::Pinv => "pinv",
        Operator::Lstsq => "lstsq",
        Operator::Rank => "matrix_rank",
        Operator::Cond => "cond",
        Operator::Power(_) => "matrix_power",
        Operator::Expm => "expm",
    }
}

fn wide(rows: usize, columns: usize, f: impl Fn(usize, usize) -> f64) -> Wide {
    Array2::from_shape_fn((rows, columns), |(row, column)| Complex::from(f(row, column)))
}

/// A symmetric, positive definite matrix.
fn fine(size: usize) -> Wide {
    wide(size, size, |row, column| 1.0 / (1.0 + row as f64 + column as f64) + f64::from(row == column))
}

#[track_caller]
fn assert_message(found: Result<Vec<ArrayD<Complex<f64>>>, DimError>, expected: &str) {
    match found {
        Ok(_) => panic!("there is no error `{expected}`"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

/// Checks the error for one bad matrix: alone, in a batch along one dim, and in a batch along two
/// dims. The other matrices are fine.
fn check<T: TestElement>(operator: Operator, bad: &Wide, b: &Wide, why: &str) {
    let name = name(operator);
    let (a, right) = (narrow::<T>(bad), narrow::<T>(b));
    let alone = alone::run(operator, &a.view(), &right.view());
    assert_message(alone, &format!("`{name}`: the matrix {why}"));
    let fine_right = wide(b.nrows(), 3, |_, _| 1.0);
    let all = |sizes: &[usize], at: usize| {
        let members = |own: &Wide, other: &Wide| -> ArrayD<T> {
            let pick = |place| if place == at { own.clone() } else { other.clone() };
            stacked(&(0..count_of(sizes)).map(pick).collect::<Vec<_>>(), sizes)
        };
        let others = match bad.is_square() {
            true => fine(bad.nrows()),
            false => wide(bad.nrows(), bad.ncols(), |row, column| f64::from(row == column)),
        };
        (members(bad, &others), members(b, &fine_right))
    };
    // More matrices than are computed at once.
    for &at in if bad.nrows() <= 4 { &[0, 3, 8, 10][..] } else { &[10] } {
        let (a, right) = all(&[11], at);
        let found = batch::run(operator, &a.view(), &right.view());
        assert_message(found, &format!("`{name}`: the matrix at Outer = {at} {why}"));
    }
    let (a, right) = all(&[2, 3], 5);
    let found = batches::run(operator, &a.view(), &right.view());
    assert_message(found, &format!("`{name}`: the matrix at Outer = 1, Inner = 2 {why}"));
}

fn check_elements<T: TestElement>() {
    let why = "has an element that is infinite or NaN";
    for size in SIZES {
        let b = wide(size, 3, |_, _| 1.0);
        let places: Vec<(usize, usize)> = match size {
            ..=4 => (0..size * size).map(|at| (at / size, at % size)).collect(),
            _ => vec![(0, 0), (0, size - 1), (size - 1, 0), (size / 2, size / 3), (size - 1, size - 1)],
        };
        // Each value in turn, and each once at the first position.
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().cycle();
        let places = [places[0]; 2].into_iter().chain(places);
        for ((row, column), value) in places.zip(values) {
            let mut bad = fine(size);
            bad[[row, column]] = Complex::from(value);
            for operator in Operator::SQUARE.into_iter().chain(Operator::ANY) {
                // `solve_triangular` only reads a triangle.
                let is_read = match operator {
                    Operator::SolveTriangular(Triangular::Lower) => row >= column,
                    Operator::SolveTriangular(Triangular::Upper) => row <= column,
                    Operator::SolveTriangular(Triangular::UnitLower) => row > column,
                    Operator::SolveTriangular(Triangular::UnitUpper) => row < column,
                    _ => true,
                };
                if is_read {
                    check::<T>(operator, &bad, &b, why);
                    continue;
                }
                let (a, right) = (narrow::<T>(&bad), narrow::<T>(&b));
                let same = alone::run(operator, &narrow::<T>(&fine(size)).view(), &right.view());
                assert_eq!(alone::run(operator, &a.view(), &right.view()).unwrap(), same.unwrap());
            }
        }
    }
    for (rows, columns) in [(5, 3), (3, 5)] {
        let mut bad = wide(rows, columns, |row, column| (row + 2 * column) as f64);
        bad[[2, 1]] = Complex::from(f64::NAN);
        for operator in Operator::ANY {
            check::<T>(operator, &bad, &wide(rows, 3, |_, _| 1.0), why);
        }
    }
    for size in SIZES {
        for value in [f64::NAN, f64::INFINITY] {
            let mut b = wide(size, 3, |_, _| 1.0);
            b[[size / 2, 1]] = Complex::from(value);
            for side in [Triangular::Lower, Triangular::Upper, Triangular::UnitLower, Triangular::UnitUpper] {
                let operator = Operator::SolveTriangular(side);
                check::<T>(
                    operator,
                    &fine(size),
                    &b,
                    "has a right-hand side with an element that is infinite or NaN",
                );
            }
            check::<T>(
                Operator::Solve,
                &fine(size),
                &b,
                "has a right-hand side with an element that is infinite or NaN",
            );
        }
    }
}

/// Matrices without an inverse, and those that are not positive definite.
fn check_singular<T: TestElement>() {
    for size in SIZES {
        let b = wide(size, 3, |row, column| 1.0 + (row + column) as f64);
        let mut zero_column = fine(size);
        zero_column.column_mut(size / 2).fill(Complex::from(0.0));
        let mut zero_row = fine(size);
        zero_row.row_mut(size - 1).fill(Complex::from(0.0));
        for bad in [wide(size, size, |_, _| 0.0), zero_column, zero_row] {
            for operator in [
                Operator::Solve,
                Operator::SolveVector,
                Operator::Inverse,
                Operator::Power(-1),
                Operator::Power(-2),
            ] {
                check::<T>(operator, &bad, &b, "is singular");
            }
            for side in [Triangular::Lower, Triangular::Upper] {
                check::<T>(Operator::SolveTriangular(side), &bad, &b, "is singular");
            }
        }
        let ones = wide(size, size, |_, _| 1.0);
        if size > 1 {
            check::<T>(Operator::Solve, &ones, &b, "is singular");
            check::<T>(Operator::Inverse, &ones, &b, "is singular");
        }
        let mut negative = fine(size);
        negative[[size - 1, size - 1]] = Complex::from(-1.0);
        let mut not_definite = fine(size);
        not_definite[[0, size - 1]] += 100.0;
        for bad in [wide(size, size, |_, _| 0.0), negative, fine(size) * Complex::from(-1.0)] {
            check::<T>(Operator::Cholesky, &bad, &b, "is not positive definite");
        }
        if size > 1 {
            // The symmetric part of the matrix is not positive definite.
            check::<T>(Operator::Cholesky, &not_definite, &b, "is not positive definite");
        }
    }
}

/// If several matrices have no result, the error names the first.
fn check_first<T: TestElement>() {
    for size in SIZES {
        let zero = wide(size, size, |_, _| 0.0);
        let members: Vec<Wide> =
            (0..40).map(|at| if at % 13 == 9 { zero.clone() } else { fine(size) }).collect();
        let a = stacked::<T>(&members, &[40]);
        let b = stacked::<T>(&vec![wide(size, 3, |_, _| 1.0); 40], &[40]);
        for operator in [Operator::Cholesky, Operator::Solve, Operator::Inverse] {
            let error = batch::run(operator, &a.view(), &b.view()).expect_err("some matrices have no result");
            assert!(error.to_string().contains("the matrix at Outer = 9 is"), "{error}");
        }
    }
}

/// The error names the position in a loop of calls, then the position in a batch.
#[test]
fn examples_of_a_loop() {
    let zero = wide(2, 2, |_, _| 0.0);
    let members: Vec<Wide> = (0..6).map(|at| if at == 4 { zero.clone() } else { fine(2) }).collect();
    let a = stacked::<f64>(&members, &[2, 3]).into_dimensionality::<Ix4>().expect("the array has four axes");
    let a = a.at((Outer, Inner, R, C)).eval();
    let failure = |found: Result<(), DimError>| found.expect_err("a matrix is singular").to_string();
    let batches = try_map_each(&a.clone().seal((Inner, R, C)), |a| a.try_inverse(R, C));
    let expected = "`inverse`: the matrix at Outer = 1, Inner = 1 is singular";
    assert_eq!(failure(batches.map(|_| ())), expected);
    let matrices = try_map_each(&a.clone().seal((R, C)), |a| a.try_inverse(R, C));
    assert_eq!(failure(matrices.map(|_| ())), expected);
    let loops = try_map_each(&a.seal((Inner, R, C)), |a| {
        try_map_each(&a.eval().seal((R, C)), |a| a.try_inverse(R, C)).map(|_| ones::<f64, _>(()))
    });
    assert_eq!(failure(loops.map(|_| ())), expected);
}

macro_rules! of_types {
    ($($name:ident $t:ty;)*) => {$(
        mod $name {
            #[test]
            fn elements_that_are_not_finite() {
                super::check_elements::<$t>();
            }

            #[test]
            fn singular_matrices() {
                super::check_singular::<$t>();
                super::check_first::<$t>();
            }
        }
    )*};
}
of_types! {
    singles f32;
    doubles f64;
    complex_singles num_complex::Complex<f32>;
    complex_doubles num_complex::Complex<f64>;
}

fn check_eigenvalues<T: TestElement + RealMatrixElement>()
where
    Complex<T>: Num + TestElement,
{
    for (size, value) in SIZES.into_iter().flat_map(|size| [(size, f64::NAN), (size, f64::INFINITY)]) {
        let mut bad = fine(size);
        bad[[size / 2, size / 3]] = Complex::from(value);
        let why = "has an element that is infinite or NaN";
        assert_message(alone::eig(&narrow::<T>(&bad).view()), &format!("`eig`: the matrix {why}"));
        let a = stacked::<T>(&[fine(size), fine(size), bad.clone()], &[3]);
        assert_message(batch::eig(&a.view()), &format!("`eig`: the matrix at Outer = 2 {why}"));
        let members: Vec<Wide> = (0..6).map(|at| if at == 4 { bad.clone() } else { fine(size) }).collect();
        let a = stacked::<T>(&members, &[2, 3]);
        assert_message(batches::eig(&a.view()), &format!("`eig`: the matrix at Outer = 1, Inner = 1 {why}"));
    }
    let error = narrow::<T>(&wide(2, 3, |_, _| 1.0)).view().at((R, C)).try_eig(R, C).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "`eig` of matrices that are not square: `R` = 2, `C` = 3");
}

#[test]
fn eigenvalues() {
    check_eigenvalues::<f32>();
    check_eigenvalues::<f64>();
}

#[test]
fn matrices_that_are_not_square() {
    let (a, b) = (narrow::<f64>(&wide(2, 3, |_, _| 1.0)), narrow::<f64>(&wide(2, 3, |_, _| 1.0)));
    for operator in Operator::SQUARE {
        let found = alone::run(operator, &a.view(), &b.view());
        let name = name(operator);
        assert_message(found, &format!("`{name}` of matrices that are not square: `R` = 2, `C` = 3"));
    }
}

#[test]
fn right_hand_sides_of_other_sizes() {
    let (a, b) = (narrow::<f64>(&fine(3)), narrow::<f64>(&wide(4, 3, |_, _| 1.0)));
    for operator in [Operator::Solve, Operator::SolveTriangular(Triangular::Lower), Operator::Lstsq] {
        let error = alone::run(operator, &a.view(), &b.view()).expect_err("the sizes differ").to_string();
        assert!(error.contains("`R`") && error.contains('3') && error.contains('4'), "{error}");
    }
    let a = stacked::<f64>(&vec![fine(3); 2], &[2]);
    let b = stacked::<f64>(&vec![wide(3, 3, |_, _| 1.0); 5], &[5]);
    let error = batch::run(Operator::Solve, &a.view(), &b.view()).expect_err("the sizes differ").to_string();
    assert!(error.contains("`Outer`") && error.contains('2') && error.contains('5'), "{error}");
}

/// Cholesky factors, eigenvalues and eigenvectors are those of the symmetric part.
#[test]
fn matrices_that_are_not_symmetric() {
    for case in golden().iter().filter(|case| case.matrix == "definite" && !case.is_complex) {
        let a = case.a();
        let mut other = a.clone();
        for ((row, column), value) in other.indexed_iter_mut() {
            let part = (row as f64 - column as f64) / 4.0;
            *value += part;
        }
        let right = narrow::<f64>(&case.b());
        for operator in [Operator::Cholesky, Operator::Eigh] {
            let of = |a: &Wide| {
                let found = alone::run(operator, &narrow::<f64>(a).view(), &right.view()).unwrap();
                found.into_iter().map(matrix).collect::<Vec<_>>()
            };
            for (found, expected) in of(&other).iter().zip(&of(&a)) {
                assert!(norm(&(found - expected)) <= 1e-14 * norm(expected), "{operator:?}");
            }
        }
    }
}

#[test]
fn batches_of_one_operand() {
    let cases = golden();
    let cases: Vec<&Case> = crate::general(&cases, 4, 4, false);
    let members: Vec<Wide> = cases.iter().map(|case| case.a()).collect();
    let a = stacked::<f64>(&members, &[members.len()]);
    let b = narrow::<f64>(&cases[0].b());
    let found = a.at((Outer, R, C)).solve(b.at((R, K)), R, C).order((Outer, C, K));
    for (at, own) in members.iter().enumerate() {
        let x = matrix(found.index_axis(Axis(0), at).mapv(Complex::from).into_dyn());
        assert!(norm(&(own.dot(&x) - cases[0].b())) <= 1e-13 * norm(own) * norm(&x));
    }
    let rights = stacked::<f64>(&[cases[0].b(), cases[0].b() * Complex::from(2.0)], &[2]);
    let found = narrow::<f64>(&members[0]).at((R, C)).solve(rights.at((Inner, R, K)), R, C);
    let found = found.order((Inner, C, K));
    for at in 0..2 {
        let x = matrix(found.index_axis(Axis(0), at).mapv(Complex::from).into_dyn());
        let b = matrix(rights.index_axis(Axis(0), at).mapv(Complex::from).into_dyn());
        assert!(norm(&(members[0].dot(&x) - b)) <= 1e-13 * norm(&members[0]) * norm(&x));
    }
    assert_eq!(found.shape(), [2, 4, 3]);
}

#[test]
fn elements_near_the_greatest() {
    let large = array![[1.2e308, 0.0], [0.0, 1.7e308]];
    let l = large.at((R, C)).cholesky(R, C).order((R, C));
    assert!(
        (l[[0, 0]] / 1.2e308_f64.sqrt() - 1.0).abs() < 1e-15
            && (l[[1, 1]] / 1.7e308_f64.sqrt() - 1.0).abs() < 1e-15
    );
    let (w, _) = large.at((R, C)).eigh(R, C);
    assert_eq!(w.order(C), array![1.2e308, 1.7e308]);
}

/// Products of some pivots are out of range, but the determinant is not.
#[test]
fn determinants_of_large_and_small_pivots() {
    for size in [2, 4, 8, 10] {
        let of = |sizes: [f64; 2]| {
            let a = Array2::from_shape_fn((size, size), |(row, column)| match row == column {
                true => sizes[usize::from(2 * row >= size)],
                false => 0.0,
            });
            let cofactors = grad(|a: &Tensor<f64, (R, C)>| a.det(R, C), &a.clone().into_tensor((R, C)));
            (a.at((R, C)).det(R, C).order(()), cofactors.order((R, C)))
        };
        for sizes in [[2f64.powi(600), 2f64.powi(-600)], [2f64.powi(-600), 2f64.powi(600)]] {
            let (det, cofactors) = of(sizes);
            assert_eq!(det, 1.0, "{size}");
            assert_eq!(cofactors[[0, 0]], 1.0 / sizes[0], "{size}");
        }
    }
    // A huge matrix without an inverse.
    let huge = Array2::from_shape_fn((3, 3), |(row, column)| 2f64.powi(600) * (row + column) as f64);
    assert_eq!(huge.at((R, C)).det(R, C).order(()), 0.0);
    for size in [3, 9] {
        let mut huge = Array2::<f64>::eye(size) * 2f64.powi(600);
        huge[[1, 1]] = 0.0;
        assert_eq!(huge.at((R, C)).det(R, C).order(()), 0.0);
        let huge = huge.mapv(Complex::from);
        assert_eq!(huge.at((R, C)).det(R, C).order(()), Complex::from(0.0));
    }
}

/// The second pivot is twice the greatest power of two, `2^exponent`, and the third is tiny.
fn check_pivots_out_of_range<T: TestElement>(exponent: i32) {
    let (large, small) = (2f64.powi(exponent), 2f64.powi(-exponent) / 8.0);
    for size in SIZES.into_iter().filter(|&size| size > 1) {
        let a = wide(size, size, |row, column| match (row, column) {
            (0, 0) | (0 | 1, 1) => large,
            (1, 0) => -large,
            (2, 2) => small,
            _ => f64::from(row == column),
        });
        let b = wide(size, 3, |row, _| [large, -large].get(row).copied().unwrap_or(0.0));
        let many = |own: &Wide| stacked::<T>(&vec![own.clone(); 11], &[11]);
        let (one_a, one_b, many_a, many_b) = (narrow::<T>(&a), narrow::<T>(&b), many(&a), many(&b));
        // One matrix, and several that are computed at once.
        let numbers = |operator: Operator| -> Vec<Vec<Complex<f64>>> {
            let one = alone::run(operator, &one_a.view(), &one_b.view()).unwrap();
            let many = batch::run(operator, &many_a.view(), &many_b.view()).unwrap();
            one.iter().zip(&many).map(|(one, many)| one.iter().chain(many).copied().collect()).collect()
        };
        let power = if size == 2 { 2 * exponent + 1 } else { exponent - 2 };
        let found = numbers(Operator::SlogDet);
        let (signs, logs) = (&found[0], &found[1]);
        assert!(signs.iter().all(|sign| *sign == Complex::from(1.0)), "{size}: {signs:?}");
        let log = f64::from(power) * std::f64::consts::LN_2;
        // The logarithm is computed with a product and a sum, from a rounded logarithm of 2.
        let is_near = |own: &Complex<f64>| (*own - log).norm() <= 2.0 * T::EPSILON * log;
        assert!(logs.iter().all(is_near), "{size}: {logs:?} instead of {log}");
        for det in &numbers(Operator::Det)[0] {
            // (If it is out of range, it is infinite, or NaN for complex numbers.)
            let is_right = if size == 2 { !det.is_finite() } else { *det == Complex::from(2f64.powi(power)) };
            assert!(is_right, "{size}: {det}");
        }
        if size == 2 {
            let solutions = &numbers(Operator::Solve)[0];
            let expected: [Complex<f64>; 6] = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0].map(Complex::from);
            assert!(solutions.chunks(6).all(|own| own == expected), "{solutions:?}");
        }
    }
}

/// `faer` takes 0 for the reciprocals of the first pivots. All results are exact.
fn check_large_pivots<T: TestElement>() {
    let (large, greatest) = (2.0 / T::RANGE[0], T::RANGE[1]);
    let [zero, one] = [0.0, 1.0].map(Complex::from);
    let pivots = [[large, large], [large, 0.25], [greatest, greatest], [greatest, 0.25]];
    for (&size, parts) in SIZES[1..].iter().flat_map(|size| pivots.map(|parts| (size, parts))) {
        // The absolute value is infinite if the parts are the greatest numbers.
        let [first, second] = parts.map(|part| Complex::new(part, part));
        let of = |[first, others, below]: [Complex<f64>; 3]| -> Wide {
            Array2::from_shape_fn((size, size), |place| match place {
                (0, 0) => first,
                (1, 0) => below,
                (row, column) if row == column => others,
                _ => zero,
            })
        };
        let column = |first: [Complex<f64>; 2]| -> Wide {
            Array2::from_shape_fn((size, 1), |(row, _)| first.get(row).copied().unwrap_or(zero))
        };
        let run = |operator, a: &Wide, b: &Wide| {
            alone::run(operator, &narrow::<T>(a).view(), &narrow::<T>(b).view()).unwrap()
        };
        let (a, x) = (of([first, second, second]), column([one, -one]).into_dyn());
        let (lower, upper) = (Triangular::Lower, Triangular::Upper);
        let found = run(Operator::SolveTriangular(lower), &a, &column([first, zero]));
        assert_eq!(found[0], x, "{parts:?} of {size}");
        let b = column([first - second, -second]);
        let found = run(Operator::SolveTriangular(upper), &a.t().to_owned(), &b);
        assert_eq!(found[0], x, "{parts:?} of {size}");
        let a = of([first, second, first]);
        let expected = [of([one, one, one]), of([first, second, zero])].map(Array2::into_dyn);
        assert_eq!(run(Operator::Lu, &a, &a)[1..], expected, "{parts:?} of {size}");
        if parts[0] == large {
            let a = of([first, second, zero]);
            let found = run(Operator::Solve, &a, &column([first, second]));
            assert_eq!(found[0], column([one, one]).into_dyn(), "{parts:?} of {size}");
            let [first, second] = parts.map(|part| Complex::new(0.5 / part, -0.5 / part));
            let found = run(Operator::Inverse, &a, &a);
            assert_eq!(found[0], of([first, second, zero]).into_dyn(), "{parts:?} of {size}");
        }
    }
}

#[test]
fn complex_pivots_near_the_greatest() {
    check_large_pivots::<Complex<f32>>();
    check_large_pivots::<Complex<f64>>();
}

/// The reciprocals of some pivots are infinite. All results are exact.
fn check_small_pivots<T: TestElement>() {
    let small = T::RANGE[0] / 64.0;
    for size in SIZES {
        let triangles = [Triangular::Lower, Triangular::Upper].map(Operator::SolveTriangular);
        let diagonal = |first: f64, last: f64| {
            wide(size, size, |row, column| match row == column {
                true if row == 0 => first,
                true if row + 1 == size => last,
                is_diagonal => f64::from(is_diagonal),
            })
        };
        let (a, ones) = (diagonal(small, 1.0), wide(size, 3, |_, _| 1.0));
        let b = narrow::<T>(&wide(size, 3, |row, _| if row == 0 { small } else { 1.0 }));
        for operator in triangles {
            let found = alone::run(operator, &narrow::<T>(&a).view(), &b.view()).unwrap();
            assert_eq!(found[0], ones.clone().into_dyn(), "{operator:?} of {size}");
        }
        for operator in triangles.into_iter().chain([Operator::Solve, Operator::Inverse]) {
            check::<T>(operator, &a, &ones, OUT_OF_RANGE);
            if size > 1 {
                check::<T>(operator, &diagonal(small, 0.0), &ones, "is singular");
            }
        }
        // A tall matrix: no pivot depends on the last one.
        let tall = |on: f64, below: f64| {
            wide(size + 1, size, |row, column| match row.checked_sub(column) {
                Some(0) if row + 1 == size => on,
                Some(1) if row == size => below,
                distance => f64::from(distance == Some(0)),
            })
        };
        let a = narrow::<T>(&tall(small, small / 2.0));
        let factors = alone::run(Operator::Lu, &a.view(), &a.view()).unwrap();
        assert_eq!(factors[1], tall(1.0, 0.5).into_dyn(), "{size}");
        let upper = wide(size, size, |row, column| match row == column {
            true if row + 1 == size => small,
            is_diagonal => f64::from(is_diagonal),
        });
        assert_eq!(factors[2], upper.into_dyn(), "{size}");
    }
}

#[test]
fn pivots_with_infinite_reciprocals() {
    check_small_pivots::<f32>();
    check_small_pivots::<f64>();
    check_small_pivots::<Complex<f32>>();
    check_small_pivots::<Complex<f64>>();
}

/// If these matrices are scaled, the second pivot becomes 0, but they are not singular.
fn check_unequal_pivots<T: TestElement>() {
    let large = 0.25 / T::RANGE[0];
    for size in SIZES.into_iter().filter(|&size| size > 1) {
        let of = |second: f64| {
            wide(size, size, |row, column| match (row, column) {
                (0, 0) => large,
                (1, 1) => second,
                _ => f64::from(row == column),
            })
        };
        let b = wide(size, 3, |row, _| if row == 1 { large } else { 1.0 });
        let triangles = [Triangular::Lower, Triangular::Upper].map(Operator::SolveTriangular);
        for operator in triangles.into_iter().chain([Operator::Solve]) {
            check::<T>(operator, &of(1.0 / large), &b, OUT_OF_RANGE);
        }
        check::<T>(Operator::Inverse, &of(T::RANGE[0] / 64.0), &b, OUT_OF_RANGE);
    }
}

#[test]
fn unequal_pivots() {
    check_unequal_pivots::<f32>();
    check_unequal_pivots::<f64>();
    check_unequal_pivots::<Complex<f32>>();
    check_unequal_pivots::<Complex<f64>>();
}

/// Three times the least positive number, times 2/3, is twice that number.
fn check_least_pivots<T: TestElement>() {
    let least = T::RANGE[0] * T::EPSILON;
    for size in SIZES {
        let a = narrow::<T>(&wide(size, size, |row, column| if row == column { 3.0 * least } else { 0.0 }));
        let b = narrow::<T>(&wide(size, 3, |_, _| 2.0 * least));
        for operator in [Operator::Solve, Operator::SolveTriangular(Triangular::Lower)] {
            let found = alone::run(operator, &a.view(), &b.view()).unwrap();
            // The reciprocal is rounded at most three times, and its product with `b` once, each
            // time by at most `EPSILON / 2`.
            let is_near = |x: &Complex<f64>| (*x - 2.0 / 3.0).norm() <= 2.0 * T::EPSILON;
            assert!(found[0].iter().all(is_near), "{operator:?} of {size}: {:?}", found[0]);
        }
    }
}

#[test]
fn least_pivots() {
    check_least_pivots::<f32>();
    check_least_pivots::<f64>();
    check_least_pivots::<Complex<f32>>();
    check_least_pivots::<Complex<f64>>();
}

#[test]
fn pivots_out_of_range() {
    check_pivots_out_of_range::<f32>(127);
    check_pivots_out_of_range::<f64>(1023);
    check_pivots_out_of_range::<Complex<f32>>(127);
    check_pivots_out_of_range::<Complex<f64>>(1023);
}
