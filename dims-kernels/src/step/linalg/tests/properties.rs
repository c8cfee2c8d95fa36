//! Checks the properties that define the results of operations.

use super::*;

fn square_works<T: TestElement>(all_sizes: &[usize], batches: &[usize]) {
    for (size, batch) in all_sizes.iter().flat_map(|&size| batches.iter().map(move |&batch| (size, batch))) {
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
        // With a unit diagonal, large elements elsewhere would make the solutions grow with the
        // size.
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

fn rectangular_works<T: TestElement>(shapes: impl IntoIterator<Item = (usize, usize)>) {
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
        let (sides, solutions) = least_squares(sizes, &data);
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
                "{}: {found} instead of {expected}",
                what("cond")
            );
            // Matrices that are close to a lower rank would need other tolerances.
            if expected < 1e2 {
                assert_pseudoinverse(&inverses[at].t(), a, &what("pinv"));
                let (b, x) = (&sides[at], &solutions[at]);
                inverses[at].t().times(b).assert_near(x, &what("lstsq"));
            }
        }
    }
}

/// Right-hand sides with three columns, and the least-squares solutions.
fn least_squares<T: TestElement>(sizes: MatrixSizes, data: &[T]) -> (Vec<TestMatrix<T>>, Vec<TestMatrix<T>>) {
    let (sides, b) = all::<T>(sizes.batch, |random| TestMatrix::random(sizes.rows, 3, random));
    let found = run(MatrixWork::Lstsq, sizes.with_right(3), &[data.to_vec(), b]).unwrap().next::<T>();
    (sides, pieces(&found, sizes.columns, 3, sizes.batch))
}

/// The four Penrose conditions, which only the pseudoinverse meets.
#[track_caller]
fn assert_pseudoinverse<T: TestElement>(p: &TestMatrix<T>, a: &TestMatrix<T>, what: &str) {
    let [one, other] = [a.times(p), p.times(a)];
    one.times(a).assert_near(a, what);
    other.times(p).assert_near(p, what);
    one.h().assert_near(&one, what);
    other.h().assert_near(&other, what);
}

/// Pseudoinverses and least-squares solutions of matrices without full rank.
fn low_ranks<T: TestElement>() {
    for (rows, columns, rank) in [(33, 20, 0), (33, 20, 7), (20, 33, 19), (24, 24, 23), (18, 2, 1)] {
        let (own, data) = all::<T>(2, |random| {
            let left = TestMatrix::random(rows, rank, random);
            left.times(&TestMatrix::random(rank, columns, random))
        });
        let sizes = MatrixSizes::of(2, rows, columns);
        let ranks = run_one(MatrixWork::Rank, sizes, &data).unwrap().next::<usize>();
        assert_eq!(ranks[..], [rank; 2]);
        let found = run_one(MatrixWork::Pinv, sizes, &data).unwrap().next::<T>();
        let (sides, solutions) = least_squares(sizes, &data);
        for (at, p) in pieces(&found, rows, columns, 2).iter().enumerate() {
            let what = format!("{rows} x {columns} of rank {rank}");
            assert_pseudoinverse(&p.t(), &own[at], &what);
            p.t().times(&sides[at]).assert_near(&solutions[at], &what);
        }
    }
}

/// Triangles of large matrices are copied in several blocks.
#[test]
fn large_matrices() {
    square_works::<f64>(&[70], &[1]);
    square_works::<Complex<f32>>(&[129], &[1]);
    rectangular_works::<f64>([(70, 131), (131, 70), (80, 0)]);
    rectangular_works::<Complex<f32>>([(65, 66), (66, 65)]);
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    SIZES.into_iter().flat_map(|rows| SIZES.into_iter().map(move |columns| (rows, columns)))
}

macro_rules! for_types {
    ($($name:ident $t:ty;)*) => {$(
        mod $name {
            #[test]
            fn square_matrices() {
                super::square_works::<$t>(&super::SIZES, &[0, 1, 3, 19]);
            }

            #[test]
            fn rectangular_matrices() {
                super::rectangular_works::<$t>(super::pairs());
            }

            #[test]
            fn low_ranks() {
                super::low_ranks::<$t>();
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

/// A polynomial through points that lie on it: the residual is about as large as rounding errors.
#[test]
fn least_squares_of_nearly_dependent_columns() {
    fn check<T: TestElement>(rows: usize, columns: usize, batch: usize, tolerance: f64) {
        let power = |row: usize, column: usize| ((row + 1) as f64 / rows as f64).powi(column as i32);
        let a = TestMatrix::of(rows, columns, |row, column| T::of(power(row, column), 0.0));
        let b = a.times(&TestMatrix::of(columns, 1, |_, _| T::ONE));
        let sizes = MatrixSizes::of(batch, rows, columns).with_right(1);
        let operands = [a.data.repeat(batch), b.data.repeat(batch)];
        let x = run(MatrixWork::Lstsq, sizes, &operands).unwrap().next::<T>();
        let found = a.times(&TestMatrix::new(&x[..columns], columns, 1));
        for (&x, &b) in found.data.iter().zip(&b.data) {
            let error = Num::sub(x, b).size().to_f64().unwrap();
            assert!(error < tolerance, "{rows} x {columns}: {error}");
        }
    }
    for batch in [1, 3] {
        check::<f32>(30, 6, batch, 1e-5);
        check::<f32>(16, 5, batch, 1e-5);
        check::<f64>(40, 12, batch, 1e-13);
        check::<Complex<f64>>(16, 9, batch, 1e-13);
    }
}

#[test]
fn sizes_at_the_ends_of_the_range() {
    let rank = |sizes, data: Vec<f32>| run_one(MatrixWork::Rank, sizes, &data).unwrap().next::<usize>()[0];
    let large: Vec<f32> = TestMatrix::<f32>::identity(5).data.iter().map(|own| own * 1e38).collect();
    assert_eq!(rank(MatrixSizes::square(1, 5), large), 5);
    assert_eq!(rank(MatrixSizes::square(1, 20), vec![1e38; 400]), 1);
    for size in [2, 20] {
        for number in [1e308, 1e-300] {
            let scaled = |number: f64| -> Vec<f64> {
                TestMatrix::<f64>::identity(size).data.iter().map(|own| own * number).collect()
            };
            let near = |found: Buffer<f64>, expected: f64, what: &str| {
                let is_near = |(at, &own): (usize, &f64)| {
                    let expected = if at % (size + 1) == 0 { expected } else { 0.0 };
                    (own - expected).abs() <= 1e-9 * expected.abs()
                };
                assert!(found.iter().enumerate().all(is_near), "{what} of {size} rows: {:?}", &found[..]);
            };
            let sizes = MatrixSizes::square(1, size);
            near(run_one(MatrixWork::Pinv, sizes, &scaled(number)).unwrap().next(), 1.0 / number, "pinv");
            near(
                run_one(MatrixWork::Inverse, sizes, &scaled(number)).unwrap().next(),
                1.0 / number,
                "inverse",
            );
            let operands = [scaled(number), scaled(number)];
            for work in [MatrixWork::Lstsq, MatrixWork::Solve { transposed: false }] {
                let found = run(work, sizes.with_right(size), &operands).unwrap().next();
                near(found, 1.0, work.name());
            }
        }
        // The reciprocal of a pivot is infinite, but the solution is not.
        let subnormal: Vec<f64> =
            TestMatrix::<f64>::identity(size).data.iter().map(|own| own * 1e-310).collect();
        let sizes = MatrixSizes::square(1, size).with_right(1);
        for work in [MatrixWork::Lstsq, MatrixWork::Solve { transposed: false }] {
            let found = run(work, sizes, &[subnormal.clone(), vec![1e-310; size]]).unwrap().next::<f64>();
            assert!(found.iter().all(|own| (own - 1.0).abs() < 1e-9), "{work:?}: {:?}", &found[..]);
        }
    }
}

/// `faer` cannot divide by these pivots. All results are exact.
#[test]
fn triangles_with_pivots_at_the_ends_of_the_range() {
    fn check<T: TestElement>(first: T, others: T) {
        let less = |own: T, other: T| Num::sub(own, other);
        for (size, bits) in [2, 5, 9].into_iter().flat_map(|size| (0..4).map(move |bits| (size, bits))) {
            let [lower, transposed] = [1, 2].map(|bit| bits & bit != 0);
            let a = TestMatrix::of(size, size, |row, column| match (row, column) {
                (0, 0) => first,
                _ if row == column => others,
                // These elements are not read.
                _ if (row > column) != lower => T::of(f64::NAN, 0.0),
                (0 | 1, 0 | 1) => others,
                _ => T::ZERO,
            });
            let column = |values: [T; 2]| {
                let mut column = vec![T::ZERO; size];
                column[..2].copy_from_slice(&values);
                column
            };
            let b = match lower != transposed {
                true => column([first, T::ZERO]),
                false => column([less(first, others), less(T::ZERO, others)]),
            };
            let work = MatrixWork::SolveTriangular(ReadTriangle { lower, transposed, unit: false });
            let sizes = MatrixSizes::square(1, size).with_right(1);
            let found = run(work, sizes, &[a.data, b]).unwrap().next::<T>();
            assert_eq!(found[..], column([T::ONE, less(T::ZERO, T::ONE)])[..], "{work:?} of size {size}");
        }
    }
    let single = |part: f32| Complex::new(part, part);
    let double = |part: f64| Complex::new(part, part);
    for large in [2f32.powi(127), f32::MAX] {
        check(single(large), single(large));
        check(single(large), single(0.25));
    }
    for large in [2f64.powi(1023), f64::MAX] {
        check(double(large), double(large));
        check(double(large), double(0.25));
    }
    let (of_single, of_double) = (f32::MIN_POSITIVE / 64.0, f64::MIN_POSITIVE / 64.0);
    check(1.0, of_single);
    check(1.0, of_double);
    check(Complex::new(1.0, 0.0), Complex::new(of_single, 0.0));
    check(Complex::new(1.0, 0.0), Complex::new(of_double, 0.0));
}

/// `faer` cannot divide by the later pivots.
#[test]
fn quotients_near_the_least_number_are_rounded_once() {
    fn check<T: TestElement>(least: f64, pivot: f64) {
        let a = TestMatrix::of(5, 5, |row, column| match (row, column) {
            (0, 0) => T::of(3072.0, 0.0),
            _ if row == column => T::of(pivot, 0.0),
            _ => T::ZERO,
        });
        let column = |count: f64| {
            let mut column = vec![T::ZERO; 5];
            column[0] = T::of(count * least, 0.0);
            column
        };
        let work = MatrixWork::SolveTriangular(ReadTriangle { lower: true, transposed: false, unit: false });
        let sizes = MatrixSizes::square(1, 5).with_right(1);
        let found = run(work, sizes, &[a.data, column(5000.0)]).unwrap().next::<T>();
        // 5000 / 3072 is about 1.6.
        assert_eq!(found[..], column(2.0)[..]);
    }
    check::<f32>(f32::from_bits(1).into(), (f32::MIN_POSITIVE / 64.0).into());
    check::<f64>(f64::from_bits(1), f64::MIN_POSITIVE / 64.0);
}
