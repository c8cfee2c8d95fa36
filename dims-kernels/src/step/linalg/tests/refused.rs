//! Matrices for which an operation returns an error.

use super::*;

/// Why an operation on 2 x 2 matrices fails, if it does, and the index of the matrix.
fn failure(work: MatrixWork, data: &[f64]) -> Option<(MatrixFailure, usize)> {
    let batch = data.len() / 4;
    let mut operands = vec![data.to_vec()];
    let mut sizes = MatrixSizes::square(batch, 2);
    if work.takes(sizes).len() > 1 {
        sizes = sizes.with_right(1);
        operands.push(vec![1.0; 2 * batch]);
    }
    match run(work, sizes, &operands).err()? {
        Error::Matrix { failure, at, batch: of, .. } if of == batch => Some((failure, at)),
        error => panic!("{error}"),
    }
}

#[test]
fn matrices_that_are_refused() {
    use MatrixFailure::{NotFinite, NotPositiveDefinite, OutOfRange, Singular};
    let triangle = MatrixWork::SolveTriangular(ReadTriangle { lower: true, transposed: false, unit: false });
    let solve = MatrixWork::Solve { transposed: false };
    let (fine, singular) = ([2.0, 1.0, 1.0, 3.0], [1.0, 2.0, 2.0, 4.0]);
    for work in [MatrixWork::Inverse, solve, MatrixWork::Power { exponent: -1 }] {
        assert_eq!(failure(work, &[fine, singular, fine].concat()), Some((Singular, 1)), "{work:?}");
        assert_eq!(failure(work, &[0.0; 4]), Some((Singular, 0)), "{work:?}");
        assert_eq!(failure(work, &fine), None, "{work:?}");
    }
    assert_eq!(failure(triangle, &[fine, [1.0, 5.0, 1.0, 0.0]].concat()), Some((Singular, 1)));
    let tiny = [1e-310, 0.0, 0.0, 1e-310];
    assert_eq!(failure(MatrixWork::Pinv, &[fine, tiny].concat()), Some((OutOfRange, 1)));
    assert_eq!(failure(MatrixWork::Inverse, &[fine, tiny].concat()), Some((OutOfRange, 1)));
    for bad in [[1.0, 2.0, 2.0, 1.0], [0.0; 4], singular, [-1.0, 0.0, 0.0, 1.0]] {
        let found = failure(MatrixWork::Cholesky, &[fine, bad].concat());
        assert_eq!(found, Some((NotPositiveDefinite, 1)), "{bad:?}");
    }
    let works = [
        MatrixWork::Cholesky,
        MatrixWork::Inverse,
        MatrixWork::Det,
        MatrixWork::SlogDet,
        MatrixWork::Cofactors,
        MatrixWork::Lu,
        MatrixWork::Qr,
        MatrixWork::Eigh,
        MatrixWork::Svd,
        MatrixWork::SingularValues,
        MatrixWork::Pinv,
        MatrixWork::Lstsq,
        MatrixWork::Rank,
        MatrixWork::Cond,
        MatrixWork::Power { exponent: 2 },
        MatrixWork::Expm,
        solve,
    ];
    for (work, bad) in works.into_iter().flat_map(|work| [(work, f64::NAN), (work, f64::INFINITY)]) {
        for at in 0..4 {
            let mut own = fine;
            own[at] = bad;
            let found = failure(work, &[fine, fine, own].concat());
            assert_eq!(found, Some((NotFinite, 2)), "{work:?} with {bad} at {at}");
        }
    }
}
