//! Linear algebra compared with NumPy and SciPy, over sizes, batches, element types, memory layouts
//! and matrices that are singular, badly scaled or have repeated eigenvalues.
//!
//! `reference.json` has the numbers that `reference.py` prints. If Python has NumPy and SciPy, a
//! test recomputes them; set `PYTHON` to choose an interpreter.

#![cfg(feature = "linalg")]

#[path = "../support/splitmix.rs"]
mod splitmix;

mod checks;
mod exponential;
mod gradients;
mod inputs;
mod refused;
mod run;

use checks::Found;
use inputs::{Case, Wide};
use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn};
use num_complex::Complex;
use run::{Layout, Operator, Results, TestElement, alone, batch, batches, matrix, narrow};
use std::process::Command;
use typed_dims::operators::linalg::RealMatrixElement;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::types::scalar::Num;

fn golden() -> Vec<Case> {
    Case::all(include_str!("reference.json"))
}

/// Runs `reference.py`, if Python has NumPy and SciPy.
fn recomputed() -> Option<Vec<Case>> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let run = |args: &[&str]| Command::new(&python).args(args).output();
    if !run(&["-c", "import numpy, scipy"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} cannot import numpy and scipy");
        return None;
    }
    let output = run(&[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/linalg/reference.py")]).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Case::all(&String::from_utf8(output.stdout).expect("the output is text")))
}

fn operators(case: &Case) -> Vec<Operator> {
    let square: &[Operator] = if case.is_square() { &Operator::SQUARE } else { &[] };
    square.iter().chain(&Operator::ANY).copied().collect()
}

fn operand(case: &Case, operator: Operator) -> Wide {
    match operator {
        Operator::Expm => case.exponent(),
        // With ones on the diagonal, large elements make the results grow with the size.
        Operator::SolveTriangular(Triangular::UnitLower | Triangular::UnitUpper) => {
            case.a() / Complex::from(64.0 * case.scale())
        }
        _ => case.a(),
    }
}

/// Whether the operator has no result for this matrix, according to the reference.
fn is_refused(case: &Case, operator: Operator) -> bool {
    let name = match operator {
        Operator::Cholesky => "cholesky",
        Operator::Solve | Operator::SolveVector => "solve",
        Operator::Inverse => "inverse",
        Operator::Power(-2) => "matrix_power_negative",
        _ => return false,
    };
    case.refused(name).is_some()
}

/// Whether to check this operator on the matrix. Some operators are checked only if the reference
/// lists a result, or the reason why there is none.
fn is_known(case: &Case, operator: Operator) -> bool {
    let has = |name: &str| case.reals(name).is_some() || case.refused(name).is_some();
    match operator {
        Operator::Cholesky => has("cholesky"),
        Operator::SolveTriangular(Triangular::Lower | Triangular::Upper) => has("solve_lower"),
        Operator::SolveTriangular(_) => has("solve_lower_unit"),
        Operator::Solve | Operator::SolveVector => has("solve"),
        Operator::Inverse => has("inverse"),
        Operator::Power(exponent) if exponent < 0 => has("matrix_power_negative"),
        Operator::Power(_) => has("matrix_power"),
        Operator::Expm => has("expm"),
        _ => true,
    }
}

fn found<'c, T: TestElement>(case: &'c Case, operator: Operator, how: &str) -> Found<'c> {
    let Case { matrix, rows, columns, seed, .. } = case;
    let what = format!("{operator:?} of {matrix} {rows} x {columns} {seed} of {}, {how}", T::NAME);
    Found { case, a: operand(case, operator), b: case.b(), epsilon: T::EPSILON, range: T::RANGE, what }
}

/// Checks the operators on one matrix alone.
fn check_alone<T: TestElement>(case: &Case) {
    for operator in operators(case).into_iter().filter(|&operator| is_known(case, operator)) {
        let own = found::<T>(case, operator, "alone");
        let (a, b) = (narrow::<T>(&own.a), narrow::<T>(&own.b));
        match alone::run(operator, &a.view(), &b.view()) {
            Ok(results) => {
                assert!(!is_refused(case, operator), "{}: there is a result", own.what);
                own.check(operator, &results.into_iter().map(matrix).collect::<Vec<_>>());
            }
            Err(error) => assert!(is_refused(case, operator), "{}: {error}", own.what),
        }
    }
}

fn check_eig<T: TestElement + RealMatrixElement>(case: &Case)
where
    Complex<T>: Num + TestElement,
{
    if !case.is_square() {
        return;
    }
    let mut own = found::<T>(case, Operator::Eigh, "alone");
    own.what = own.what.replace("Eigh", "Eig");
    let a = narrow::<T>(&own.a);
    let [w, v]: [Wide; 2] = match alone::eig(&a.view()) {
        Ok(results) => results.into_iter().map(matrix).collect::<Vec<_>>().try_into().expect("two results"),
        Err(error) => panic!("{}: {error}", own.what),
    };
    own.check_eig(&w, &v);
}

/// The greatest part of `a v - v w`.
fn residual<T: TestElement + RealMatrixElement>(a: &Wide) -> f64
where
    Complex<T>: Num + TestElement,
{
    let found = alone::eig(&narrow::<T>(a).view()).expect("the elements are finite");
    let [w, v]: [Wide; 2] =
        found.into_iter().map(matrix).collect::<Vec<_>>().try_into().expect("two results");
    let scaled = Wide::from_shape_fn(v.raw_dim(), |(row, column)| v[[row, column]] * w[[column, 0]]);
    (a.dot(&v) - scaled).iter().fold(0.0, |most, own| own.norm().max(most))
}

/// Determinants of 2x2 blocks are products of two elements, and can be far less than the epsilon of
/// the type.
#[test]
fn eigenvectors_of_small_blocks() {
    let block = [[1.0, 2.0, 1.0, 0.0], [-2.0, 1.0, 0.0, 1.0], [0.0, 0.0, 3.0, 1.0], [0.0, 0.0, -1.0, 3.0]];
    let alone = |scale: f64| Wide::from_shape_fn((4, 4), |(row, column)| (scale * block[row][column]).into());
    for scale in [1e-12, 1e-10, 1e-8, 1.0, 1e10] {
        // (The elements are rounded to `f32` before.)
        let own = alone(scale).mapv(|x| Complex::from(f64::from(x.re as f32)));
        assert!(residual::<f32>(&own) < 1e-5 * scale, "{scale}");
    }
    for scale in [1e-120, 1e-20, 1e-17, 1.0, 1e100] {
        assert!(residual::<f64>(&alone(scale)) < 1e-13 * scale, "{scale}");
    }
    for scale in [1e-6, 1e-9, 1e-12] {
        let beside = Wide::from_shape_fn((5, 5), |at| match at {
            (0, 0) => 1.0.into(),
            (0, _) | (_, 0) => 0.0.into(),
            (row, column) => Complex::from(scale * block[row - 1][column - 1]),
        });
        assert!(residual::<f64>(&beside) < 1e-14, "{scale}");
    }
}

fn check_all(cases: &[Case]) {
    for case in cases {
        if case.is_complex {
            if case.is_double {
                check_alone::<Complex<f64>>(case);
            }
            if case.is_single {
                check_alone::<Complex<f32>>(case);
            }
        } else {
            if case.is_double {
                check_alone::<f64>(case);
                check_eig::<f64>(case);
                check_alone::<Complex<f64>>(case);
            }
            if case.is_single {
                check_alone::<f32>(case);
                check_eig::<f32>(case);
            }
        }
    }
}

#[test]
fn golden_numbers_of_small_matrices() {
    let cases: Vec<Case> = golden().into_iter().filter(|own| own.rows.max(own.columns) <= 16).collect();
    check_all(&cases);
}

#[test]
fn golden_numbers_of_larger_matrices() {
    let cases: Vec<Case> = golden().into_iter().filter(|own| own.rows.max(own.columns) > 16).collect();
    assert!(!cases.is_empty());
    check_all(&cases);
}

#[test]
fn numbers_of_numpy() {
    if let Some(cases) = recomputed() {
        check_all(&cases);
    }
}

/// The general matrices of a shape, which are stacked into batches.
fn general(cases: &[Case], rows: usize, columns: usize, is_complex: bool) -> Vec<&Case> {
    let is_one = |own: &&Case| {
        own.matrix == "general" && (own.rows, own.columns, own.is_complex) == (rows, columns, is_complex)
    };
    cases.iter().filter(is_one).collect()
}

/// The matrices, stacked along one or two leading axes.
fn stacked<T: TestElement>(matrices: &[Wide], batch: &[usize]) -> ArrayD<T> {
    let views: Vec<_> = matrices.iter().map(|own| own.view()).collect();
    let all = ndarray::stack(Axis(0), &views).expect("the shapes agree").mapv(T::of);
    let sizes: Vec<usize> = batch.iter().copied().chain(all.shape()[1..].iter().copied()).collect();
    all.into_shape_with_order(IxDyn(&sizes)).expect("the sizes fit")
}

/// The results of the matrix `at` of a batch, whose axes have the sizes `batch`.
fn results_at(results: &[ArrayD<Complex<f64>>], batch: &[usize], at: usize) -> Vec<Wide> {
    let of = |result: &ArrayD<Complex<f64>>| {
        let sizes: Vec<usize> =
            [count_of(batch)].into_iter().chain(result.shape()[batch.len()..].iter().copied()).collect();
        let all = result.to_shape(IxDyn(&sizes)).expect("the axes of the batch come first");
        matrix(all.index_axis(Axis(0), at).to_owned())
    };
    results.iter().map(of).collect()
}

fn count_of(batch: &[usize]) -> usize {
    batch.iter().product()
}

type Run<T> = fn(Operator, &ArrayViewD<'_, T>, &ArrayViewD<'_, T>) -> Results;

/// Checks the results of each matrix of a batch, in each layout.
fn check_batches<T: TestElement>(cases: &[&Case], run: Run<T>, sizes: &[usize]) {
    let count = count_of(sizes);
    for operator in operators(cases[0]) {
        // A matrix without a result makes the whole batch an error, which other tests check.
        let known: Vec<&Case> = cases
            .iter()
            .copied()
            .filter(|case| is_known(case, operator) && !is_refused(case, operator))
            .collect();
        if known.is_empty() {
            continue;
        }
        let members: Vec<&Case> = known.iter().copied().cycle().take(count).collect();
        let all = |of: &dyn Fn(&Case) -> Wide| -> ArrayD<T> {
            stacked(&members.iter().map(|case| of(case)).collect::<Vec<_>>(), sizes)
        };
        let (a, b) = (all(&|case| operand(case, operator)), all(&Case::b));
        for (number, layout) in Layout::ALL.into_iter().enumerate() {
            let other = Layout::ALL[(number + 1) % Layout::ALL.len()];
            let (a, b) = (layout.apply(&a), other.apply(&b));
            let results = run(operator, &a.view(), &b.view()).unwrap_or_else(|error| panic!("{error}"));
            for (at, case) in members.iter().enumerate() {
                let how = format!("{at} of {sizes:?}, {layout:?}");
                found::<T>(case, operator, &how).check(operator, &results_at(&results, sizes, at));
            }
        }
    }
}

fn check_batches_of<T: TestElement>(rows: usize, columns: usize, is_complex: bool) {
    let cases = golden();
    let cases = general(&cases, rows, columns, is_complex);
    if rows.max(columns) > 16 {
        // These are computed one by one, whatever their number.
        check_batches::<T>(&cases, batches::run, &[1, 2]);
        return;
    }
    check_batches::<T>(&cases, batch::run, &[1]);
    check_batches::<T>(&cases, batches::run, &[2, 3]);
    // More matrices than are computed at once.
    check_batches::<T>(&cases, batch::run, &[11]);
}

const BATCHED: [(usize, usize); 8] = [(1, 1), (2, 2), (4, 4), (8, 8), (9, 9), (33, 33), (9, 7), (7, 9)];

#[test]
fn batches_of_singles() {
    BATCHED.into_iter().for_each(|(rows, columns)| check_batches_of::<f32>(rows, columns, false));
}

#[test]
fn batches_of_doubles() {
    BATCHED.into_iter().for_each(|(rows, columns)| check_batches_of::<f64>(rows, columns, false));
}

#[test]
fn batches_of_complex_numbers() {
    for (rows, columns) in BATCHED {
        check_batches_of::<Complex<f32>>(rows, columns, true);
        check_batches_of::<Complex<f64>>(rows, columns, true);
    }
}

#[test]
fn batches_of_eigenvalues() {
    let cases = golden();
    for size in [1, 2, 4, 9] {
        let own = general(&cases, size, size, false);
        for sizes in [&[5][..], &[2, 3]] {
            let members: Vec<&Case> = own.iter().copied().cycle().take(count_of(sizes)).collect();
            let a: ArrayD<f64> = stacked(&members.iter().map(|case| case.a()).collect::<Vec<_>>(), sizes);
            for layout in Layout::ALL {
                let a = layout.apply(&a);
                let found_all = match sizes.len() {
                    1 => batch::eig(&a.view()),
                    _ => batches::eig(&a.view()),
                };
                let results = found_all.unwrap_or_else(|error| panic!("{error}"));
                for (at, case) in members.iter().enumerate() {
                    let [w, v]: [Wide; 2] = results_at(&results, sizes, at).try_into().expect("two results");
                    found::<f64>(case, Operator::Eigh, &format!("{layout:?}")).check_eig(&w, &v);
                }
            }
        }
    }
}

/// One matrix and its right-hand sides are repeated along a batch, with strides of 0.
#[test]
fn broadcast_operands() {
    let cases = golden();
    for (rows, columns) in [(4, 4), (9, 9), (9, 7)] {
        let case = general(&cases, rows, columns, false)[0];
        for operator in operators(case) {
            if !is_known(case, operator) || is_refused(case, operator) {
                continue;
            }
            let own = found::<f64>(case, operator, "broadcast");
            let (a, b) = (narrow::<f64>(&own.a), narrow::<f64>(&own.b));
            let (all_a, all_b) = (a.broadcast(IxDyn(&[5, rows, columns])), b.broadcast(IxDyn(&[5, rows, 3])));
            let (all_a, all_b) =
                (all_a.expect("the matrix has no batch"), all_b.expect("the matrix has no batch"));
            let results = batch::run(operator, &all_a, &all_b).unwrap_or_else(|error| panic!("{error}"));
            for at in 0..5 {
                own.check(operator, &results_at(&results, &[5], at));
            }
        }
    }
}

/// Positional axes of the matrices form a batch, and are also axes of the results.
#[test]
fn positional_axes() {
    use typed_dims::prelude::*;

    dims!(p, q, r, c, s);
    let matrices = Array4::from_shape_fn((2, 3, 4, 4), |(p, q, r, c)| {
        if r == c { 5.0 + (p + q) as f64 } else { ((3 * p + 5 * q + 7 * r + 2 * c) % 4) as f64 / 4.0 }
    });
    let sides = Array2::from_shape_fn((4, 2), |(r, s)| (r * 2 + s) as f64 - 3.0);
    let (a, named, b) = (matrices.at((.., .., r, c)), matrices.at((p, q, r, c)), sides.at((r, s)));
    assert_eq!(a.solve(b, r, c).order((c, s)), named.solve(b, r, c).order((c, s, p, q)));
    assert_eq!(a.lstsq(b, r, c).order((c, s)), named.lstsq(b, r, c).order((c, s, p, q)));
    assert_eq!(
        a.solve_triangular(b, r, c, Triangular::Upper).order((c, s)),
        named.solve_triangular(b, r, c, Triangular::Upper).order((c, s, p, q))
    );
    assert_eq!(a.inverse(r, c).order((r, c)), named.inverse(r, c).order((r, c, p, q)));
    assert_eq!(a.det(r, c).order(()), named.det(r, c).order((p, q)));
    let a = matrices.at((p, .., r, c));
    let b = Array2::from_shape_fn((2, 4), |(p, r)| (p * 4 + r) as f64).into_tensor((p, r));
    assert_eq!(a.solve(&b, r, c).order((p, c)), named.solve(&b, r, c).order((p, c, q)));
}

/// The squares of the small singular values are 0.
#[test]
fn singular_values_far_below_the_greatest() {
    use typed_dims::prelude::*;

    dims!(r, c, k);
    let single = Array2::from_diag(&array![1.0_f32, 1e-23]);
    assert_eq!(single.at((r, c)).singular_values(r, c, k).order(k), array![1.0, 1e-23]);
    let condition = single.at((r, c)).cond(r, c).order(());
    assert!((condition / 1e23 - 1.0).abs() < 1e-6, "{condition}");
    dims!(r, c);
    let condition = Array2::from_diag(&array![1e-170_f64, 1.0]).at((r, c)).cond(r, c).order(());
    assert!((condition / 1e170 - 1.0).abs() < 1e-14, "{condition}");
}

/// Batches without matrices, and matrices without elements.
fn check_empty<T: TestElement>() {
    let zeros = |sizes: &[usize]| ArrayD::<T>::from_elem(IxDyn(sizes), T::ZERO);
    for size in [1, 4, 9] {
        for operator in Operator::SQUARE.into_iter().chain(Operator::ANY) {
            let (a, b) = (zeros(&[0, size, size]), zeros(&[0, size, 3]));
            let results =
                batch::run(operator, &a.view(), &b.view()).unwrap_or_else(|error| panic!("{error}"));
            assert!(results.iter().all(|own| own.shape()[0] == 0), "{operator:?}");
            let (a, b) = (zeros(&[2, 0, size, size]), zeros(&[2, 0, size, 3]));
            let results =
                batches::run(operator, &a.view(), &b.view()).unwrap_or_else(|error| panic!("{error}"));
            assert!(results.iter().all(|own| own.shape()[..2] == [2, 0]), "{operator:?}");
        }
    }
    let one = Complex::from(1.0);
    for operator in Operator::SQUARE.into_iter().chain(Operator::ANY) {
        let (a, b) = (zeros(&[2, 0, 0]), zeros(&[2, 0, 3]));
        let results = batch::run(operator, &a.view(), &b.view()).unwrap_or_else(|error| panic!("{error}"));
        match operator {
            Operator::Det => assert!(results[0].iter().all(|x| *x == one)),
            Operator::SlogDet => {
                assert!(results[0].iter().all(|x| *x == one) && results[1].iter().all(|x| x.norm() == 0.0));
            }
            Operator::Rank | Operator::Cond => assert!(results[0].iter().all(|x| x.norm() == 0.0)),
            _ => assert!(results.iter().all(|own| own.is_empty() && own.shape()[0] == 2), "{operator:?}"),
        }
    }
    for (rows, columns) in [(0, 3), (3, 0)] {
        for operator in Operator::ANY {
            let (a, b) = (zeros(&[2, rows, columns]), zeros(&[2, rows, 3]));
            let results =
                batch::run(operator, &a.view(), &b.view()).unwrap_or_else(|error| panic!("{error}"));
            let shapes: Vec<Vec<usize>> = results.iter().map(|own| own.shape()[1..].to_vec()).collect();
            let expected = match operator {
                Operator::Lu => vec![vec![rows], vec![rows, 0], vec![0, columns]],
                Operator::Qr => vec![vec![rows, 0], vec![0, columns]],
                Operator::Svd => vec![vec![rows, 0], vec![0], vec![columns, 0]],
                Operator::SingularValues => vec![vec![0]],
                Operator::Pinv => vec![vec![columns, rows]],
                Operator::Lstsq => vec![vec![columns, 3]],
                _ => vec![vec![]],
            };
            assert_eq!(shapes, expected, "{operator:?} of {rows} x {columns}");
            // The order of the rows is kept. All other elements, such as those of a solution,
            // are 0.
            match operator {
                Operator::Lu => {
                    let order: Vec<f64> = results[0].iter().map(|x| x.re).collect();
                    assert_eq!(order, (0..2).flat_map(|_| (0..rows).map(|at| at as f64)).collect::<Vec<_>>());
                }
                _ => assert!(results.iter().flatten().all(|x| x.norm() == 0.0), "{operator:?}"),
            }
        }
    }
}

#[test]
fn empty_batches_and_empty_matrices() {
    check_empty::<f32>();
    check_empty::<f64>();
    check_empty::<Complex<f32>>();
    check_empty::<Complex<f64>>();
}
