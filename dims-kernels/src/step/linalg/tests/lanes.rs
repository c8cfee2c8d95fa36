//! Small matrices in lanes, compared with the same matrices computed one by one.

use super::super::driver;
use super::*;
use crate::loops::steps::PlanStep;
use crate::step::{Step, StepDerivative, StepOperands, StepResults};
use alloc::string::ToString;
use alloc::sync::Arc;
use core::cmp::Ordering;

/// A step whose matrices are computed one by one.
struct OneByOne<T>(MatrixStep<T>);

impl<T: MatrixElement> Step for OneByOne<T> {
    fn name(&self) -> &'static str {
        "one by one"
    }

    fn plan(&self, _: usize, _: usize) -> Option<PlanStep> {
        None
    }

    fn run(&self, operands: &mut StepOperands<'_, '_>, threads: usize) -> Result<StepResults, Error> {
        driver::run_with(&self.0, operands, threads, |_, _| false)
    }

    fn derivative(&self) -> Option<Arc<dyn StepDerivative>> {
        None
    }
}

/// The results or errors of a step with lanes, and of the same step without lanes.
fn both<T: TestElement>(
    work: MatrixWork,
    sizes: MatrixSizes,
    operands: &[Vec<T>],
) -> [Result<Executed, Error>; 2] {
    let mut buffers: Vec<Buffer<T>> = operands.iter().cloned().map(Buffer::from).collect();
    let mut borrowed: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| own as _).collect();
    let step = MatrixStep::<T>::new(work, sizes);
    assert!(T::has_lanes(work, sizes), "{work:?} {sizes:?}");
    [execute(&step, &mut borrowed), execute(&OneByOne(step), &mut borrowed)]
}

/// Compares each result, or the errors.
#[track_caller]
fn assert_alike<T: TestElement>(work: MatrixWork, sizes: MatrixSizes, operands: &[Vec<T>], tolerance: f64) {
    let what = format!("{work:?} {sizes:?}");
    let [own, other] = both(work, sizes, operands);
    let (mut own, mut other) = match (own, other) {
        (Ok(own), Ok(other)) => (own, other),
        (own, other) => {
            let [own, other] = [own, other].map(|own| own.err().map(|error| error.to_string()));
            assert_eq!(own, other, "{what}");
            return;
        }
    };
    for result in work.yields(sizes) {
        let count = result.count();
        match result {
            MatrixResult::Positions(_) => {
                assert_eq!(own.next::<usize>()[..], other.next::<usize>()[..], "{what}");
            }
            MatrixResult::Values(_) => {
                assert_close(&own.next::<T>(), &other.next::<T>(), count, tolerance, &what);
            }
            MatrixResult::Parts(_) => {
                assert_close(&own.next::<T::Part>(), &other.next::<T::Part>(), count, tolerance, &what);
            }
        }
    }
}

/// Compares the elements of each matrix, with a tolerance relative to the greatest element.
#[track_caller]
fn assert_close<T: MatrixElement>(own: &[T], other: &[T], count: usize, tolerance: f64, what: &str) {
    assert_eq!(own.len(), other.len());
    let size = |value: T| value.size().to_f64().expect("a float");
    for (own, other) in own.chunks(count.max(1)).zip(other.chunks(count.max(1))) {
        let most = other.iter().map(|&own| size(own)).filter(|own| own.is_finite()).fold(0.0, f64::max);
        for (&x, &y) in own.iter().zip(other) {
            let is_same = x == y || (!x.is_number() && !y.is_number());
            let error = size(Num::sub(x, y));
            assert!(is_same || error <= tolerance * most, "{what}: {x:?} instead of {y:?}");
        }
    }
}

/// The numbers of rows and columns: few in unoptimized builds, which are slow.
fn sizes() -> impl Iterator<Item = usize> {
    (1..=16).filter(|size| !cfg!(unoptimized) || [1, 2, 4, 9].contains(size))
}

/// Operations whose results are alike in lanes and one by one if the matrices are regular.
const UNIQUE: [MatrixWork; 10] = [
    MatrixWork::Inverse,
    MatrixWork::Cofactors,
    MatrixWork::Det,
    MatrixWork::SlogDet,
    MatrixWork::Lu,
    MatrixWork::Qr,
    MatrixWork::SingularValues,
    MatrixWork::Pinv,
    MatrixWork::Cond,
    MatrixWork::Rank,
];

fn triangles() -> impl Iterator<Item = MatrixWork> {
    (0..8).map(|bits| {
        let [lower, transposed, unit] = [1, 2, 4].map(|bit| bits & bit != 0);
        MatrixWork::SolveTriangular(ReadTriangle { lower, transposed, unit })
    })
}

fn random_matrices<T: TestElement>() {
    let tolerance = 1e4 * T::Part::epsilon().to_f64().unwrap();
    for (size, batch) in sizes().flat_map(|size| [2, 7, 8, 9, 33].map(|batch| (size, batch))) {
        let sizes = MatrixSizes::square(batch, size);
        let (own, data) = all::<T>(batch, regular(size));
        for work in UNIQUE {
            assert_alike(work, sizes, core::slice::from_ref(&data), tolerance);
        }
        assert_alike(MatrixWork::Expm, sizes, core::slice::from_ref(&data), tolerance);
        let large = own.iter().flat_map(|own| own.scaled(9.0).data).collect();
        assert_alike(MatrixWork::Expm, sizes, &[large], 10.0 * tolerance);
        let definite: Vec<T> =
            own.iter().flat_map(|own| own.times(&own.h()).plus(&TestMatrix::identity(size)).data).collect();
        assert_alike(MatrixWork::Cholesky, sizes, &[definite], tolerance);
        for right in [1, 2, 5, 16] {
            let sizes = sizes.with_right(right);
            let (_, b) = all::<T>(batch, |random| TestMatrix::random(size, right, random));
            let small: Vec<T> = own.iter().flat_map(|own| own.scaled(0.5).data).collect();
            for work in triangles().chain([false, true].map(|transposed| MatrixWork::Solve { transposed })) {
                assert_alike(work, sizes, &[small.clone(), b.clone()], 100.0 * tolerance);
            }
        }
        spectra(sizes, &data);
    }
    for (rows, columns) in sizes().flat_map(|rows| sizes().map(move |columns| (rows, columns))) {
        let sizes = MatrixSizes::of(9, rows, columns);
        let (_, data) = all::<T>(9, |random| TestMatrix::random(rows, columns, random));
        for work in [MatrixWork::Lu, MatrixWork::Qr] {
            assert_alike(work, sizes, core::slice::from_ref(&data), 100.0 * tolerance);
        }
        assert_alike(MatrixWork::SingularValues, sizes, core::slice::from_ref(&data), tolerance);
        assert_alike(MatrixWork::Rank, sizes, core::slice::from_ref(&data), tolerance);
        spectra(sizes, &data);
    }
}

/// Compares eigenvalues and singular values, and checks that the vectors are orthonormal and that
/// the product of the factors is the matrix, or its symmetric part.
fn spectra<T: TestElement>(sizes: MatrixSizes, data: &[T]) {
    let MatrixSizes { batch, rows, columns, .. } = sizes;
    let least = sizes.least();
    let what = format!("{sizes:?}");
    let tolerance = 1e3 * T::Part::epsilon().to_f64().unwrap();
    let matrices = pieces(data, rows, columns, batch);
    let diagonal = |values: &[T::Part]| {
        TestMatrix::of(values.len(), values.len(), |row, column| {
            if row == column { T::of_part(values[row]) } else { T::ZERO }
        })
    };
    let is_orthogonal = |own: &TestMatrix<T>| {
        own.h().times(own).assert_near(&TestMatrix::identity(least), &what);
    };
    let [own, other] = both(MatrixWork::Svd, sizes, &[data.to_vec()]).map(Result::unwrap);
    let (mut own, mut other) = (own, other);
    let (u, s, v) = (own.next::<T>(), own.next::<T::Part>(), own.next::<T>());
    other.next::<T>();
    assert_close(&s, &other.next::<T::Part>(), least, tolerance, &what);
    let (u, v) = (pieces(&u, rows, least, batch), pieces(&v, columns, least, batch));
    for (at, a) in matrices.iter().enumerate() {
        let s = &s[at * least..(at + 1) * least];
        assert!(s.iter().rev().is_sorted(), "{what}");
        is_orthogonal(&u[at]);
        is_orthogonal(&v[at]);
        u[at].times(&diagonal(s)).times(&v[at].h()).assert_near(a, &what);
    }
    if rows != columns {
        return;
    }
    let [own, other] = both(MatrixWork::Eigh, sizes, &[data.to_vec()]).map(Result::unwrap);
    let (mut own, mut other) = (own, other);
    let (w, v) = (own.next::<T::Part>(), own.next::<T>());
    assert_close(&w, &other.next::<T::Part>(), least, tolerance, &what);
    for (at, v) in pieces(&v, rows, rows, batch).iter().enumerate() {
        let w = &w[at * rows..(at + 1) * rows];
        assert!(w.is_sorted(), "{what}");
        is_orthogonal(v);
        let half = matrices[at].plus(&matrices[at].h()).scaled(0.5);
        v.times(&diagonal(w)).times(&v.h()).assert_near(&half, &what);
    }
}

/// A batch of regular matrices, one of them replaced by `odd`.
fn with<T: TestElement>(size: usize, batch: usize, at: usize, odd: &TestMatrix<T>) -> Vec<T> {
    let (mut own, _) = all::<T>(batch, regular(size));
    own[at] = odd.clone();
    own.iter().flat_map(|own| own.data.clone()).collect()
}

fn odd_matrices<T: TestElement>() {
    let tolerance = 1e4 * T::Part::epsilon().to_f64().unwrap();
    let number = |value: f64| T::of(value, 0.0);
    let tiny = T::Part::min_positive_value().to_f64().unwrap();
    for size in sizes().filter(|size| [1, 2, 3, 4, 7, 16].contains(size)) {
        let identity = TestMatrix::<T>::identity(size);
        let mut random = TestNumbers(5);
        let column = TestMatrix::<T>::random(size, 1, &mut random);
        let row = TestMatrix::<T>::random(1, size, &mut random);
        let zeros = identity.scaled(0.0);
        let negative_zeros = TestMatrix::of(size, size, |_, _| number(-0.0));
        let signed_identity =
            TestMatrix::of(size, size, |row, column| number(if row == column { 1.0 } else { -0.0 }));
        let exchange = TestMatrix::of(size, size, |row, column| number(f64::from(row + column == size - 1)));
        let repeated = TestMatrix::of(size, size, |_, column| number(column as f64 + 1.0));
        let graded = TestMatrix::of(size, size, |row, column| {
            number(0.5_f64.powi((2 * row + 3 * column) as i32) + f64::from(row == column))
        });
        // Rounding decides whether elimination finds an inverse of this matrix of rank 1.
        let product = column.times(&row);
        let odd = [
            zeros,
            negative_zeros,
            signed_identity,
            exchange,
            product.clone(),
            repeated,
            graded,
            identity.scaled(1e-3),
            identity.scaled(-1.0),
            TestMatrix::of(size, size, |_, _| number(1.0)),
        ];
        for (at, own) in odd.iter().flat_map(|own| [0, 3, 18].map(|at| (at, own))) {
            let sizes = MatrixSizes::square(19, size);
            let data = with(size, 19, at, own);
            let is_regular = run_one(MatrixWork::Inverse, sizes, &data).is_ok();
            let eliminates =
                |work| matches!(work, MatrixWork::Inverse | MatrixWork::Det | MatrixWork::SlogDet);
            let is_rank_1 = size > 1 && own.data == product.data;
            for work in UNIQUE.into_iter().filter(|&work| !is_rank_1 || !eliminates(work)) {
                // Rounding decides these results if the matrix is singular. Results of `Lu` also
                // differ because `faer` chooses differently among equal pivots.
                let by_rounding = matches!(work, MatrixWork::Cond | MatrixWork::Lu | MatrixWork::Qr);
                if is_regular && !is_rank_1 && work != MatrixWork::Lu || !by_rounding {
                    assert_alike(work, sizes, core::slice::from_ref(&data), 10.0 * tolerance);
                }
            }
            if !is_rank_1 {
                assert_alike(MatrixWork::Cholesky, sizes, core::slice::from_ref(&data), tolerance);
            }
            assert_alike(MatrixWork::Expm, sizes, core::slice::from_ref(&data), tolerance);
            spectra(sizes, &data);
            factors(sizes, &data);
        }
        // Elements so large or small that their squares are at or beyond the limits of the type.
        for scale in [tiny * 4.0, tiny.sqrt(), tiny.sqrt().recip(), 0.1 / tiny] {
            let (own, _) = all::<T>(19, regular(size));
            let data: Vec<T> = own.iter().flat_map(|own| own.scaled(scale).data).collect();
            let sizes = MatrixSizes::square(19, size);
            for work in [MatrixWork::SingularValues, MatrixWork::Qr, MatrixWork::Lu, MatrixWork::Rank] {
                assert_alike(work, sizes, core::slice::from_ref(&data), tolerance);
            }
            let mixed = with(size, 19, 2, &own[0].scaled(scale));
            for work in [MatrixWork::SingularValues, MatrixWork::Qr, MatrixWork::Lu, MatrixWork::Rank] {
                assert_alike(work, sizes, core::slice::from_ref(&mixed), tolerance);
            }
        }
        // Large elements that cancel out in the symmetric part do not influence the scaling.
        let skew = TestMatrix::of(size, size, |row, column| {
            number(match row.cmp(&column) {
                Ordering::Less => 1e30,
                Ordering::Equal => 1e-25,
                Ordering::Greater => -1e30,
            })
        });
        let data = with(size, 19, 2, &skew);
        for results in both(MatrixWork::Eigh, MatrixSizes::square(19, size), core::slice::from_ref(&data)) {
            for value in &results.unwrap().next::<T::Part>()[2 * size..3 * size] {
                assert!((value.to_f64().unwrap() * 1e25 - 1.0).abs() <= tolerance, "{value:?} of {size}");
            }
        }
        // Infinite elements and NaN are errors, which name the matrix.
        for (value, at) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
            .into_iter()
            .flat_map(|value| [(value, 0), (value, 18)])
        {
            let mut odd = identity.clone();
            odd.data[size * size / 2] = number(value);
            let data = with(size, 19, at, &odd);
            let sizes = MatrixSizes::square(19, size);
            for work in UNIQUE.into_iter().chain([
                MatrixWork::Cholesky,
                MatrixWork::Eigh,
                MatrixWork::Svd,
                MatrixWork::Expm,
            ]) {
                let [own, other] =
                    both(work, sizes, core::slice::from_ref(&data)).map(|own| own.err().unwrap().to_string());
                assert_eq!(own, other, "{work:?}");
            }
            let b = vec![number(1.0); 19 * size];
            for work in triangles().chain([MatrixWork::Solve { transposed: false }]) {
                assert_alike(work, sizes.with_right(1), &[data.clone(), b.clone()], tolerance);
            }
            let mut bad = b.clone();
            bad[at * size] = number(value);
            let regular: Vec<T> = with(size, 19, at, &identity);
            for work in triangles().chain([MatrixWork::Solve { transposed: true }]) {
                assert_alike(work, sizes.with_right(1), &[regular.clone(), bad.clone()], tolerance);
            }
        }
    }
}

/// Checks that the product of factors is the matrix, for factorizations that are not unique.
fn factors<T: TestElement>(sizes: MatrixSizes, data: &[T]) {
    let (batch, size) = (sizes.batch, sizes.rows);
    let own = pieces(data, size, size, batch);
    let [found, _] = both(MatrixWork::Lu, sizes, &[data.to_vec()]).map(Result::unwrap);
    let mut found = found;
    let order = found.next::<usize>();
    let (l, u) =
        (pieces(&found.next::<T>(), size, size, batch), pieces(&found.next::<T>(), size, size, batch));
    let [found, _] = both(MatrixWork::Qr, sizes, &[data.to_vec()]).map(Result::unwrap);
    let mut found = found;
    let (q, r) =
        (pieces(&found.next::<T>(), size, size, batch), pieces(&found.next::<T>(), size, size, batch));
    for (at, a) in own.iter().enumerate() {
        let order = &order[at * size..(at + 1) * size];
        let ordered = TestMatrix::of(size, size, |row, column| a.at(order[row], column));
        l[at].times(&u[at]).assert_near(&ordered, "lu");
        q[at].times(&r[at]).assert_near(a, "qr");
        q[at].h().times(&q[at]).assert_near(&TestMatrix::identity(size), "qr");
    }
}

#[test]
fn random_matrices_of_doubles() {
    random_matrices::<f64>();
}

#[test]
fn random_matrices_of_singles() {
    random_matrices::<f32>();
}

#[test]
fn odd_matrices_of_doubles() {
    odd_matrices::<f64>();
}

#[test]
fn odd_matrices_of_singles() {
    odd_matrices::<f32>();
}
