//! Square matrices, whose dims are a dim and its prime. XLA's results are compared with the
//! library's own results.

#![allow(missing_docs)]

use typed_dims::grad::grad;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims_xla::stablehlo::{Options, lower};
use xla_tests::{assert_near, plugin};

dims! { pub struct Row; pub struct In; pub struct Class; }

type Square = Tensor<f64, (Row, Prime<Row>)>;
type Batched = Tensor<f64, (Row, Prime<Row>, Class)>;
type Sides = Tensor<f64, (Row, In)>;

fn square(n: usize, seed: u64) -> Square {
    randn((Row.of(n), prime(Row.of(n))), seed)
}

/// `x x^T + I`, which is positive definite.
fn definite(x: &Square) -> Square {
    (x.compose(x.transpose(Row), Row) + eye::<f64, _, _>(Row.of(x.size(Row)), prime(Row.of(x.size(Row)))))
        .eval()
}

/// Solves `a x = b`. Returns `x` and the Cholesky factor of `a`.
fn solved(a: &Square, b: &Sides) -> (Sides, Square) {
    let l = a.cholesky(Row, prime(Row));
    let y: Sides = l.view().solve_triangular(b, Row, prime(Row), Triangular::Lower).unprime(Row).eval();
    let upper = (&l).transpose(Row);
    let x = upper.solve_triangular(&y, Row, prime(Row), Triangular::Upper).unprime(Row).eval();
    (x, l)
}

#[test]
fn square_matrices_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    for n in [1, 4, 9, 33] {
        let b: Sides = randn((Row.of(n), In.of(3)), 2);
        let other: Sides = randn((Row.of(n), In.of(3)), 5);
        let (first, second) = (square(n, 1), square(n, 4));

        let moved = |x: &Square| -> (Square, Square, Sides) {
            let outer = (x.sum(prime(Row)) * x.sum(Row)).eval();
            (
                (x.transpose(Row) * 2.0).eval(),
                x.compose(&outer, Row),
                (&other * x.sum(Row).unprime(Row)).eval(),
            )
        };
        let run = pjrt.compile(&record(moved, &first).unwrap()).unwrap();
        let (a, c, d) = run.call(&second).unwrap();
        let (e, f, g) = moved(&second);
        assert_near(&a.to_host().unwrap(), &e, 1e-12, "the transpose");
        assert_near(&c.to_host().unwrap(), &f, 1e-12, "the product");
        assert_near(&d.to_host().unwrap(), &g, 1e-12, "the sum over rows");

        let systems = |(x, b): (&Square, &Sides)| solved(&definite(x), b);
        let run = pjrt.compile(&record(systems, (&first, &b)).unwrap()).unwrap();
        let (found, factor) = run.call((&second, &other)).unwrap();
        let (expected, l) = systems((&second, &other));
        // The condition number of `x x^T + I` is at most its norm.
        assert_near(&factor.to_host().unwrap(), &l, 1e-10, "the Cholesky factor");
        assert_near(&found.to_host().unwrap(), &expected, 1e-10, "the solution");
        // `expected` is the solution.
        let a = definite(&second);
        let product: Sides = a.contract((&expected).prime(Row), prime(Row));
        assert_near(&product, &other, 1e-10, "a x");

        let slopes = |(x, b): (&Square, &Sides)| {
            let loss = |(x, b): &(Square, Sides)| -> Tensor<f64, ()> {
                let (solution, l) = solved(&definite(x), b);
                (solution.square().sum((Row, In)) + l.diagonal(Row, prime(Row), 0).ln().sum(Row)).eval()
            };
            grad(loss, &(x.clone(), b.clone()))
        };
        let run = pjrt.compile(&record(slopes, (&first, &b)).unwrap()).unwrap();
        let (of_x, of_b) = run.call((&second, &other)).unwrap();
        let (x, b) = slopes((&second, &other));
        assert_near(&of_x.to_host().unwrap(), &x, 1e-9, "the gradient of the matrix");
        assert_near(&of_b.to_host().unwrap(), &b, 1e-9, "the gradient of the right-hand sides");
    }
}

#[test]
fn batches_of_square_matrices_are_the_same() {
    let Some(pjrt) = plugin(1) else { return };
    let batch = |seed: u64| -> Batched { randn((Row.of(4), prime(Row.of(4)), Class.of(3)), seed) };
    let f = |x: &Batched| -> (Batched, Batched) {
        let a = (x.compose(x.transpose(Row), Row) + eye::<f64, _, _>(Row.of(4), prime(Row.of(4)))).eval();
        (a.view().cholesky(Row, prime(Row)), x.compose(&a, Row))
    };
    let run = pjrt.compile(&record(f, &batch(1)).unwrap()).unwrap();
    let (l, product) = run.call(&batch(2)).unwrap();
    let (expected_l, expected_product) = f(&batch(2));
    assert_near(&l.to_host().unwrap(), &expected_l, 1e-11, "the Cholesky factors");
    assert_near(&product.to_host().unwrap(), &expected_product, 1e-12, "the products");
}

#[test]
fn the_inverse_is_refused() {
    let Some(pjrt) = plugin(1) else { return };
    let error = pjrt.compile(&record(|x: &Square| x.inverse(Row, prime(Row)), &square(3, 1)).unwrap());
    let error = error.map(drop).unwrap_err().to_string();
    assert!(error.contains("StableHLO has no `inverse`: run it on the host"), "{error}");
}

#[test]
fn bad_diagonals_are_errors() {
    let Some(pjrt) = plugin(1) else { return };
    let with = |n: usize, first: f64, above: f64| -> Square {
        let element = |at: usize| match (at / n, at % n) {
            (0, 0) => first,
            (row, column) if row == column => 1.0,
            (row, column) if row < column => above,
            _ => 0.0,
        };
        from_vec((Row.of(n), prime(Row.of(n))), (0..n * n).map(element).collect())
    };
    for n in [1, 2] {
        let good = with(n, 4.0, 0.0);
        let run = pjrt.compile(&record(|a: &Square| a.cholesky(Row, prime(Row)), &good).unwrap()).unwrap();
        assert!(run.call(&good).unwrap().to_host().is_ok());
        for first in [0.0, -1.0, f64::INFINITY] {
            let error = run.call(&with(n, first, 0.0)).unwrap().to_host().unwrap_err();
            assert!(error.to_string().contains("is not positive definite"), "{first}: {error}");
        }
        let b: Sides = randn((Row.of(n), In.of(3)), 2);
        let solve = |(a, b): (&Square, &Sides)| -> Sides {
            a.solve_triangular(b, Row, prime(Row), Triangular::Lower).unprime(Row).eval()
        };
        let run = pjrt.compile(&record(solve, (&good, &b)).unwrap()).unwrap();
        // The other triangle is not read.
        assert!(run.call((&with(n, 4.0, f64::INFINITY), &b)).unwrap().to_host().is_ok());
        for first in [0.0, f64::INFINITY] {
            let error = run.call((&with(n, first, 0.0), &b)).unwrap().to_host().unwrap_err();
            assert!(error.to_string().contains("a matrix is singular, or an element"), "{first}: {error}");
        }
    }
}

#[test]
fn matrices_without_a_factor_are_errors() {
    let (good, bad) = (definite(&square(3, 1)), (definite(&square(3, 1)) * -1.0).eval());
    let program = record(|a: &Square| a.cholesky(Row, prime(Row)), &good).unwrap();
    // Lowering needs no plugin.
    let module = lower(&program.to_engine().unwrap(), Options::default(), &[]).unwrap();
    let [check] = module.checks[..] else { panic!("{:?}", module.checks) };
    assert_eq!(check.operation, "cholesky");
    assert!(check.what.starts_with("a matrix is not positive definite"), "{}", check.what);
    let Some(pjrt) = plugin(1) else { return };
    let run = pjrt.compile(&program).unwrap();
    assert!(run.call(&good).unwrap().to_host().is_ok());
    let error = run.call(&bad).unwrap().to_host().unwrap_err().to_string();
    assert!(error.starts_with("`cholesky` at ") && error.contains("matrices.rs"), "{error}");
    assert!(error.contains(check.what), "{error}");
}
