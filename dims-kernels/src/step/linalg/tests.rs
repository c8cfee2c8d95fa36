//! Each work against the property that defines it, over element types, sizes and batches; and
//! against numbers of NumPy.

use super::*;
use crate::error::MatrixFailure;
use crate::memory::buffer::Buffer;
use crate::scalar::Num;
use crate::step::{AnyBuffer, Executed, execute};
use alloc::vec::Vec;
use num_complex::Complex;
use num_traits::{Float, ToPrimitive};

/// Numbers from -1 to 1.
struct TestNumbers(u64);

impl TestNumbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Elements of the types, of two numbers.
trait TestElement: MatrixElement {
    fn of(re: f64, im: f64) -> Self;
}

macro_rules! test_elements {
    ($($t:ident)*) => {$(
        impl TestElement for $t {
            fn of(re: f64, _: f64) -> Self {
                re as $t
            }
        }
        impl TestElement for Complex<$t> {
            fn of(re: f64, im: f64) -> Self {
                Complex::new(re as $t, im as $t)
            }
        }
    )*};
}
test_elements!(f32 f64);

/// A matrix, row by row.
#[derive(Clone, Debug)]
struct TestMatrix<T> {
    rows: usize,
    columns: usize,
    data: Vec<T>,
}

impl<T: TestElement> TestMatrix<T> {
    fn new(data: &[T], rows: usize, columns: usize) -> Self {
        assert_eq!(data.len(), rows * columns);
        TestMatrix { rows, columns, data: data.to_vec() }
    }

    fn of(rows: usize, columns: usize, f: impl Fn(usize, usize) -> T) -> Self {
        let data = (0..rows * columns).map(|at| f(at / columns, at % columns)).collect();
        TestMatrix { rows, columns, data }
    }

    fn random(rows: usize, columns: usize, random: &mut TestNumbers) -> Self {
        let data = (0..rows * columns).map(|_| T::of(random.next(), random.next())).collect();
        TestMatrix { rows, columns, data }
    }

    fn identity(size: usize) -> Self {
        TestMatrix::of(size, size, |row, column| if row == column { T::ONE } else { T::ZERO })
    }

    fn at(&self, row: usize, column: usize) -> T {
        self.data[row * self.columns + column]
    }

    fn t(&self) -> Self {
        TestMatrix::of(self.columns, self.rows, |row, column| self.at(column, row))
    }

    fn h(&self) -> Self {
        TestMatrix::of(self.columns, self.rows, |row, column| self.at(column, row).conjugate())
    }

    fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        TestMatrix::of(self.rows, other.columns, |row, column| {
            (0..self.columns)
                .fold(T::ZERO, |sum, k| Num::add(sum, Num::mul(self.at(row, k), other.at(k, column))))
        })
    }

    fn plus(&self, other: &Self) -> Self {
        TestMatrix::of(self.rows, self.columns, |row, column| {
            Num::add(self.at(row, column), other.at(row, column))
        })
    }

    fn scaled(&self, by: f64) -> Self {
        TestMatrix::of(self.rows, self.columns, |row, column| Num::mul(self.at(row, column), T::of(by, 0.0)))
    }

    #[track_caller]
    fn assert_near(&self, other: &Self, what: &str) {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns), "{what}");
        let size = |value: T| value.size().to_f64().expect("a float");
        let most = other.data.iter().map(|&value| size(value)).fold(1.0, f64::max);
        let tolerance =
            most * (1 + self.rows.max(self.columns)) as f64 * 100.0 * T::Part::epsilon().to_f64().unwrap();
        for (at, (&found, &expected)) in self.data.iter().zip(&other.data).enumerate() {
            let error = size(Num::sub(found, expected));
            assert!(error <= tolerance, "{what}, element {at}: {found:?} is not {expected:?}");
        }
    }
}

fn run<T: MatrixElement>(
    work: MatrixWork,
    sizes: MatrixSizes,
    operands: &[Vec<T>],
) -> Result<Executed, Error> {
    let mut buffers: Vec<Buffer<T>> = operands.iter().cloned().map(Buffer::from).collect();
    let mut operands: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|own| own as _).collect();
    execute(&MatrixStep::<T>::new(work, sizes), &mut operands)
}

/// The same of one operand.
fn run_one<T: MatrixElement>(work: MatrixWork, sizes: MatrixSizes, data: &[T]) -> Result<Executed, Error> {
    run(work, sizes, &[data.to_vec()])
}

/// The matrices of a result.
fn pieces<T: TestElement>(data: &[T], rows: usize, columns: usize, batch: usize) -> Vec<TestMatrix<T>> {
    (0..batch)
        .map(|at| TestMatrix::new(&data[at * rows * columns..(at + 1) * rows * columns], rows, columns))
        .collect()
}

const SIZES: [usize; 10] = [0, 1, 2, 3, 4, 5, 8, 9, 16, 33];

fn all<T: TestElement>(
    batch: usize,
    make: impl Fn(&mut TestNumbers) -> TestMatrix<T>,
) -> (Vec<TestMatrix<T>>, Vec<T>) {
    let mut random = TestNumbers(batch as u64 + 7);
    let own: Vec<TestMatrix<T>> = (0..batch).map(|_| make(&mut random)).collect();
    let data = own.iter().flat_map(|own| own.data.clone()).collect();
    (own, data)
}

fn regular<T: TestElement>(size: usize) -> impl Fn(&mut TestNumbers) -> TestMatrix<T> {
    move |random| {
        let share = 2.0 / (1.0 + size as f64);
        TestMatrix::random(size, size, random).scaled(share).plus(&TestMatrix::identity(size))
    }
}

fn square_works<T: TestElement>() {
    for (size, batch) in SIZES.into_iter().flat_map(|size| [(size, 0), (size, 1), (size, 3), (size, 19)]) {
        let (own, data) = all::<T>(batch, regular(size));
        let sizes = MatrixSizes::square(batch, size);
        let what = |work: &str| format!("{work} of {batch} {size} x {size}");
        let values = |work| run_one(work, sizes, &data).unwrap().next::<T>();
        let inverses = pieces(&values(MatrixWork::Inverse), size, size, batch);
        let dets = values(MatrixWork::Det);
        let cofactors = pieces(&values(MatrixWork::Cofactors), size, size, batch);
        let powers = pieces(&values(MatrixWork::Power { exponent: -2 }), size, size, batch);
        let mut logs = run_one(MatrixWork::SlogDet, sizes, &data).unwrap();
        let (signs, logs) = (logs.next::<T>(), logs.next::<T::Part>());
        for (at, a) in own.iter().enumerate() {
            let inverse = inverses[at].t();
            a.times(&inverse).assert_near(&TestMatrix::identity(size), &what("inverse"));
            powers[at].times(a).times(a).assert_near(&TestMatrix::identity(size), &what("power"));
            let scalar = |value: T| TestMatrix::new(&[value], 1, 1);
            let again = Num::mul(signs[at], T::of_part(logs[at].exp()));
            scalar(again).assert_near(&scalar(dets[at]), &what("slogdet"));
            let expected =
                TestMatrix::of(size, size, |row, column| Num::mul(inverse.at(column, row), dets[at]));
            cofactors[at].assert_near(&expected, &what("cofactors"));
            if size <= 5 {
                scalar(dets[at]).assert_near(&scalar(expanded(a)), &what("det"));
            }
        }
        for transposed in [false, true] {
            let (b, right) = all::<T>(batch, |random| TestMatrix::random(size, 3, random));
            let work = MatrixWork::Solve { transposed };
            let found = run(work, sizes.with_right(3), &[data.clone(), right]).unwrap().next::<T>();
            for (at, x) in pieces(&found, size, 3, batch).iter().enumerate() {
                let a = if transposed { own[at].t() } else { own[at].clone() };
                a.times(x).assert_near(&b[at], &what("solve"));
            }
        }
        triangles(&own, &data, sizes);
        hermitian_works(&own, &data, sizes);
    }
}

fn expanded<T: TestElement>(a: &TestMatrix<T>) -> T {
    if a.rows == 0 {
        return T::ONE;
    }
    (0..a.rows).fold(T::ZERO, |sum, left| {
        let minor = TestMatrix::of(a.rows - 1, a.rows - 1, |row, column| {
            a.at(row + 1, column + usize::from(column >= left))
        });
        let term = Num::mul(a.at(0, left), expanded(&minor));
        if left % 2 == 0 { Num::add(sum, term) } else { Num::sub(sum, term) }
    })
}

fn triangles<T: TestElement>(own: &[TestMatrix<T>], data: &[T], sizes: MatrixSizes) {
    let (size, batch) = (sizes.rows, sizes.batch);
    let (b, right) = all::<T>(batch, |random| TestMatrix::random(size, 2, random));
    for bits in 0..8 {
        let [lower, transposed, unit] = [1, 2, 4].map(|bit| bits & bit != 0);
        // (Large elements beside a diagonal of ones would make numbers that grow with the size.)
        let (own, data): (Vec<TestMatrix<T>>, Vec<T>) = if unit {
            let own: Vec<_> = own.iter().map(|own| own.scaled(0.5 / (1.0 + size as f64))).collect();
            let data = own.iter().flat_map(|own| own.data.clone()).collect();
            (own, data)
        } else {
            (own.to_vec(), data.to_vec())
        };
        let work = MatrixWork::SolveTriangular(ReadTriangle { lower, transposed, unit });
        let found = run(work, sizes.with_right(2), &[data, right.clone()]).unwrap().next::<T>();
        for (at, x) in pieces(&found, size, 2, batch).iter().enumerate() {
            let triangle = TestMatrix::of(size, size, |row, column| match row == column {
                true if unit => T::ONE,
                true => own[at].at(row, column),
                false if (row > column) == lower => own[at].at(row, column),
                false => T::ZERO,
            });
            let triangle = if transposed { triangle.t() } else { triangle };
            triangle.times(x).assert_near(&b[at], &format!("{work:?} of size {size}"));
        }
    }
}

fn hermitian_works<T: TestElement>(own: &[TestMatrix<T>], data: &[T], sizes: MatrixSizes) {
    let (size, batch) = (sizes.rows, sizes.batch);
    let what = |work: &str| format!("{work} of {batch} {size} x {size}");
    let halves: Vec<TestMatrix<T>> = own.iter().map(|own| own.plus(&own.h()).scaled(0.5)).collect();
    let mut found = run(MatrixWork::Eigh, sizes, &[data.to_vec()]).unwrap();
    let (w, v) = (found.next::<T::Part>(), found.next::<T>());
    for (at, v) in pieces(&v, size, size, batch).iter().enumerate() {
        let w = &w[at * size..(at + 1) * size];
        assert!(w.is_sorted(), "{}", what("eigh"));
        v.h().times(v).assert_near(&TestMatrix::identity(size), &what("eigh"));
        let scaled =
            TestMatrix::of(size, size, |row, column| Num::mul(v.at(row, column), T::of_part(w[column])));
        scaled.times(&v.h()).assert_near(&halves[at], &what("eigh"));
    }
    let definite: Vec<TestMatrix<T>> =
        own.iter().map(|own| own.times(&own.h()).plus(&TestMatrix::identity(size))).collect();
    let data = definite.iter().flat_map(|own| own.data.clone()).collect();
    let l = run(MatrixWork::Cholesky, sizes, &[data]).unwrap().next::<T>();
    for (at, l) in pieces(&l, size, size, batch).iter().enumerate() {
        l.times(&l.h()).assert_near(&definite[at], &what("cholesky"));
        assert!((0..size).all(|row| (row + 1..size).all(|column| l.at(row, column) == T::ZERO)));
    }
}

fn rectangular_works<T: TestElement>() {
    let shapes = SIZES.into_iter().flat_map(|rows| SIZES.into_iter().map(move |columns| (rows, columns)));
    for (rows, columns) in shapes {
        let (batch, least) = (3, rows.min(columns));
        let (own, data) = all::<T>(batch, |random| TestMatrix::random(rows, columns, random));
        let sizes = MatrixSizes::of(batch, rows, columns);
        let what = |work: &str| format!("{work} of {rows} x {columns}");
        let mut found = run_one(MatrixWork::Qr, sizes, &data).unwrap();
        let q = pieces(&found.next::<T>(), rows, least, batch);
        let r = pieces(&found.next::<T>(), least, columns, batch);
        let mut found = run_one(MatrixWork::Lu, sizes, &data).unwrap();
        let order = found.next::<usize>();
        let l = pieces(&found.next::<T>(), rows, least, batch);
        let u = pieces(&found.next::<T>(), least, columns, batch);
        let mut found = run_one(MatrixWork::Svd, sizes, &data).unwrap();
        let left = pieces(&found.next::<T>(), rows, least, batch);
        let s = found.next::<T::Part>();
        let right = pieces(&found.next::<T>(), columns, least, batch);
        let same = run_one(MatrixWork::SingularValues, sizes, &data).unwrap().next::<T::Part>();
        let inverses =
            pieces(&run_one(MatrixWork::Pinv, sizes, &data).unwrap().next::<T>(), rows, columns, batch);
        let ranks = run_one(MatrixWork::Rank, sizes, &data).unwrap().next::<usize>();
        let conds = run_one(MatrixWork::Cond, sizes, &data).unwrap().next::<T::Part>();
        for (at, a) in own.iter().enumerate() {
            q[at].times(&r[at]).assert_near(a, &what("qr"));
            q[at].h().times(&q[at]).assert_near(&TestMatrix::identity(least), &what("qr"));
            assert!((0..least).all(|row| (0..row).all(|column| r[at].at(row, column) == T::ZERO)));
            let order = &order[at * rows..(at + 1) * rows];
            let ordered = TestMatrix::of(rows, columns, |row, column| a.at(order[row], column));
            l[at].times(&u[at]).assert_near(&ordered, &what("lu"));
            let s = &s[at * least..(at + 1) * least];
            assert!(s.iter().rev().is_sorted(), "{}", what("svd"));
            let scaled =
                TestMatrix::of(rows, least, |row, k| Num::mul(left[at].at(row, k), T::of_part(s[k])));
            scaled.times(&right[at].h()).assert_near(a, &what("svd"));
            for own in [&left[at], &right[at]] {
                own.h().times(own).assert_near(&TestMatrix::identity(least), &what("svd"));
            }
            let as_row = |values: &[T::Part]| TestMatrix::of(1, least, |_, k| T::of_part(values[k]));
            as_row(&same[at * least..(at + 1) * least]).assert_near(&as_row(s), &what("singular values"));
            assert_eq!(ranks[at], least, "{}", what("rank"));
            let expected = if least == 0 { 0.0 } else { (s[0] / s[least - 1]).to_f64().unwrap() };
            let found = conds[at].to_f64().unwrap();
            assert!(
                (found - expected).abs() <= 1e-2 * expected,
                "{}: {found} is not {expected}",
                what("cond")
            );
            // The four properties of Penrose, where the matrix is not too near to one of a lower
            // rank.
            if expected < 1e2 {
                let p = inverses[at].t();
                a.times(&p).times(a).assert_near(a, &what("pinv"));
                let [one, other] = [a.times(&p), p.times(a)];
                one.h().assert_near(&one, &what("pinv"));
                other.h().assert_near(&other, &what("pinv"));
            }
        }
    }
}

macro_rules! for_types {
    ($($name:ident $t:ty;)*) => {$(
        mod $name {
            #[test]
            fn square_matrices() {
                super::square_works::<$t>();
            }

            #[test]
            fn rectangular_matrices() {
                super::rectangular_works::<$t>();
            }

            #[test]
            fn exponentials() {
                super::exponentials::<$t>();
            }
        }
    )*};
}
for_types! {
    singles f32;
    doubles f64;
    complex_singles num_complex::Complex<f32>;
    complex_doubles num_complex::Complex<f64>;
}

fn exponentials<T: TestElement>() {
    for (size, scale) in SIZES.into_iter().flat_map(|size| [(size, 0.01), (size, 1.0), (size, 6.0)]) {
        let scale = scale / (1.0 + size as f64);
        let (own, data) = all::<T>(2, |random| TestMatrix::random(size, size, random).scaled(scale));
        let found = run(MatrixWork::Expm, MatrixSizes::square(2, size), &[data]).unwrap().next::<T>();
        for (a, found) in own.iter().zip(pieces(&found, size, size, 2)) {
            let (mut sum, mut term) = (TestMatrix::identity(size), TestMatrix::identity(size));
            for at in 1..60 {
                term = term.times(a).scaled(1.0 / at as f64);
                sum = sum.plus(&term);
            }
            found.assert_near(&sum, "expm");
        }
    }
}

#[test]
fn eigenvalues_of_any_matrix() {
    for (size, batch) in SIZES.into_iter().flat_map(|size| [(size, 0), (size, 1), (size, 3)]) {
        let (own, data) = all::<f64>(batch, |random| TestMatrix::random(size, size, random));
        let mut data = Buffer::from(data);
        let step = EigenStep { batch, size, element: PhantomData::<f64> };
        let mut found = execute(&step, &mut [&mut data]).unwrap();
        let (w, v) = (found.next::<Complex<f64>>(), found.next::<Complex<f64>>());
        for (at, v) in pieces(&v, size, size, batch).iter().enumerate() {
            let a = TestMatrix::of(size, size, |row, column| Complex::from(own[at].at(row, column)));
            let scaled = TestMatrix::of(size, size, |row, column| v.at(row, column) * w[at * size + column]);
            a.times(v).assert_near(&scaled, "eig");
            for column in 0..size {
                let length: f64 = (0..size).map(|row| v.at(row, column).norm_sqr()).sum();
                assert!((length - 1.0).abs() < 1e-12);
            }
        }
    }
}

/// The error of a work on matrices of two rows.
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
    use MatrixFailure::{NotFinite, NotPositiveDefinite, Singular};
    let triangle = MatrixWork::SolveTriangular(ReadTriangle { lower: true, transposed: false, unit: false });
    let solve = MatrixWork::Solve { transposed: false };
    let (fine, singular) = ([2.0, 1.0, 1.0, 3.0], [1.0, 2.0, 2.0, 4.0]);
    for work in [MatrixWork::Inverse, solve, MatrixWork::Power { exponent: -1 }] {
        assert_eq!(failure(work, &[fine, singular, fine].concat()), Some((Singular, 1)), "{work:?}");
        assert_eq!(failure(work, &[0.0; 4]), Some((Singular, 0)), "{work:?}");
        assert_eq!(failure(work, &fine), None, "{work:?}");
    }
    assert_eq!(failure(triangle, &[fine, [1.0, 5.0, 1.0, 0.0]].concat()), Some((Singular, 1)));
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

#[test]
fn matrices_without_an_inverse_have_cofactors() {
    let singular = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]].concat();
    let a = TestMatrix::new(&singular, 3, 3);
    let found = run(MatrixWork::Cofactors, MatrixSizes::square(1, 3), &[singular]).unwrap().next::<f64>();
    let expected = TestMatrix::of(3, 3, |row, column| {
        let of = |i: usize, j: usize| a.at(i + usize::from(i >= row), j + usize::from(j >= column));
        let minor = of(0, 0) * of(1, 1) - of(0, 1) * of(1, 0);
        if (row + column) % 2 == 0 { minor } else { -minor }
    });
    TestMatrix::new(&found, 3, 3).assert_near(&expected, "cofactors");
}

#[test]
fn ranks_of_products() {
    for (size, rank) in [(4, 0), (4, 1), (5, 3), (16, 7), (33, 20)] {
        let mut random = TestNumbers(3);
        let a = TestMatrix::<f64>::random(size, rank, &mut random);
        let b = TestMatrix::<f64>::random(rank, size, &mut random);
        let product = if rank == 0 { vec![0.0; size * size] } else { a.times(&b).data };
        let found = run(MatrixWork::Rank, MatrixSizes::square(1, size), &[product]).unwrap().next::<usize>();
        assert_eq!(found[..], [rank]);
    }
}

/// `a[i, j] = 1 / (1 + i + j) + (2 where i is j)`, of four rows, and what NumPy 2 and SciPy compute
/// of it.
#[test]
fn numbers_of_numpy() {
    let a = TestMatrix::<f64>::of(4, 4, |row, column| {
        1.0 / (1 + row + column) as f64 + if row == column { 2.0 } else { 0.0 }
    });
    let sizes = MatrixSizes::square(1, 4);
    let near = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
    };
    near(
        &run_one(MatrixWork::Cholesky, sizes, &a.data).unwrap().next::<f64>(),
        &[
            1.7320508075688772,
            0.0,
            0.0,
            0.0,
            0.2886751345948129,
            1.5,
            0.0,
            0.0,
            0.19245008972987526,
            0.1296296296296296,
            1.4649775158974447,
            0.0,
            0.14433756729740646,
            0.10555555555555554,
            0.08546599518298505,
            1.4503714689287532,
        ],
    );
    near(
        &run_one(MatrixWork::Inverse, sizes, &a.data).unwrap().next::<f64>(),
        &[
            0.3521051923454527,
            -0.06813137560011892,
            -0.04323149699540997,
            -0.03135756095131539,
            -0.06813137560011892,
            0.44995317070721974,
            -0.038455379548953304,
            -0.031055994814408048,
            -0.043231496995409964,
            -0.0384553795489533,
            0.46756662979815355,
            -0.02773345002137847,
            -0.03135756095131539,
            -0.031055994814408044,
            -0.027733450021378468,
            0.47538065440643873,
        ],
    );
    near(&run_one(MatrixWork::Det, sizes, &a.data).unwrap().next::<f64>(), &[30.47362979497354]);
    near(
        &run_one(MatrixWork::Eigh, sizes, &a.data).unwrap().next::<f64>(),
        &[2.000096702304023, 2.006738273605761, 2.1691412202214493, 3.500214280059243],
    );
    near(
        &run_one(MatrixWork::SingularValues, sizes, &a.data).unwrap().next::<f64>(),
        &[3.500214280059243, 2.16914122022145, 2.006738273605761, 2.0000967023040226],
    );
    near(&run_one(MatrixWork::Cond, sizes, &a.data).unwrap().next::<f64>(), &[1.75002252442452]);
    near(
        &run_one(MatrixWork::Pinv, sizes, &a.data).unwrap().next::<f64>(),
        &[
            0.3521051923454529,
            -0.06813137560011905,
            -0.04323149699541003,
            -0.031357560951315484,
            -0.06813137560011898,
            0.4499531707072197,
            -0.03845537954895341,
            -0.031055994814407892,
            -0.043231496995410026,
            -0.03845537954895325,
            0.4675666297981537,
            -0.027733450021378482,
            -0.03135756095131546,
            -0.031055994814407902,
            -0.027733450021378496,
            0.47538065440643873,
        ],
    );
    near(
        &run_one(MatrixWork::Power { exponent: 3 }, sizes, &a.data).unwrap().next::<f64>(),
        &[
            30.664484126984124,
            12.008392857142859,
            8.261415343915345,
            6.321004818594105,
            12.008392857142859,
            15.471917989417994,
            5.492886904761906,
            4.357121315192744,
            8.261415343915344,
            5.492886904761906,
            12.200579365079365,
            3.418632842025699,
            6.321004818594104,
            4.357121315192744,
            3.418632842025699,
            10.834372367994815,
        ],
    );
    near(
        &run(MatrixWork::Expm, sizes, &[a.scaled(0.25).data]).unwrap().next::<f64>(),
        &[
            2.1442863573706576,
            0.25302225698684166,
            0.17066314529331955,
            0.1289649646616643,
            0.2530222569868417,
            1.813264598088229,
            0.12254942782498263,
            0.09775337985595359,
            0.1706631452933195,
            0.12254942782498258,
            1.745259343782526,
            0.07981399762353891,
            0.12896496466166432,
            0.0977533798559536,
            0.07981399762353894,
            1.7163885768200122,
        ],
    );
    near(
        &run(
            MatrixWork::Solve { transposed: false },
            sizes.with_right(1),
            &[a.data.clone(), vec![1.0, 2.0, 3.0, 4.0]],
        )
        .unwrap()
        .next::<f64>(),
        &[-0.03928229364627652, 0.5921848479098285, 1.1716238332156301, 1.724852716981488],
    );
}
