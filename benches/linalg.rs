//! Linear algebra compared with `faer` and `nalgebra` called directly, on matrices of 4, 16, 64 and
//! 512 rows (`f32`: up to 64), in batches of 100,000, 10,000, 1,000 and 1.
//!
//! ```sh
//! taskset -c 0 cargo bench --features linalg,nalgebra --bench linalg -- [ROUNDS [FILTER]]
//! ```
//!
//! `FILTER`, such as `f64 svd 16`, selects the lines that contain it before the first `|`. A line
//! has the element type, the case, the number of rows and of matrices, the mean magnitude of our
//! results for the first matrices, and each library's microseconds per matrix.
//! `benches/python/linalg.py` runs this program and NumPy, SciPy, PyTorch and JAX in turns.
//!
//! Times are processor times of one thread, the minimum of the rounds. Each library gets its
//! matrices in its own types and layout, and returns all results of the batch in new memory.
//! `nalgebra` runs with matrices of dynamic size, and for 4 and 16 rows also of static size. Before
//! the first round, the magnitudes of all results (of `lu`, only the factors) for the first
//! matrices of the batch are compared.

use faer::linalg::solvers::{DenseSolveCore, Solve, SolveLstsq};
use faer::{Mat, MatRef, Par};
use nalgebra::{DMatrix, DVector, SMatrix, SVector};
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::Duration;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::prelude::*;
use typed_dims_kernels::scalar::Real;
use typed_dims_kernels::step::linalg::MatrixElement;

dims! {
    struct Batch;
    struct Row;
    struct Column;
    struct Half;
    struct Least;
}

/// The number of rows, and of matrices.
const SIZES: [(usize, usize); 4] = [(4, 100_000), (16, 10_000), (64, 1_000), (512, 1)];

/// The number of matrices whose results are compared.
const COMPARED: usize = 64;

trait BenchElement: MatrixElement<Part = Self> + Real + nalgebra::RealField {
    const NAME: &'static str;
    /// How far a result may differ, relative to its magnitude plus the mean magnitude.
    const TOLERANCE: f64;
}
impl BenchElement for f32 {
    const NAME: &'static str = "f32";
    const TOLERANCE: f64 = 1e-1;
}
impl BenchElement for f64 {
    const NAME: &'static str = "f64";
    const TOLERANCE: f64 = 1e-7;
}

fn of<T: BenchElement>(value: f64) -> T {
    num_traits::NumCast::from(value).expect("the float converts")
}

fn to<T: BenchElement>(value: T) -> f64 {
    num_traits::ToPrimitive::to_f64(&value).expect("the float converts")
}

/// The number at a position of a stream, from -1 to 1: a hash (splitmix64), so that
/// `benches/python/linalg.py` gets the same numbers.
fn number(stream: u64, at: usize) -> f64 {
    let mut z = (stream << 32).wrapping_add(at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as f64 / 2_f64.powi(63) - 1.0
}

/// Inputs of a case.
#[derive(Clone, Copy)]
enum Input {
    /// Random elements.
    General,
    Symmetric,
    /// Symmetric and positive definite.
    Definite,
    /// Random elements, half as many columns as rows.
    Tall,
    /// A random right-hand side.
    Right,
}

impl Input {
    fn columns(self, rows: usize) -> usize {
        match self {
            Input::Right => 1,
            Input::Tall => rows / 2,
            _ => rows,
        }
    }

    fn element(self, rows: usize, [matrix, row, column]: [usize; 3]) -> f64 {
        let scale = (3.0 / rows as f64).sqrt();
        let columns = self.columns(rows);
        let random = |stream, row, column| scale * number(stream, (matrix * rows + row) * columns + column);
        match self {
            Input::General => random(1, row, column),
            Input::Symmetric => (random(2, row, column) + random(2, column, row)) / 2.0,
            Input::Definite if row == column => 3.0 + Input::Symmetric.element(rows, [matrix, row, column]),
            Input::Definite => Input::Symmetric.element(rows, [matrix, row, column]),
            Input::Tall => random(3, row, column),
            Input::Right => random(4, row, column),
        }
    }

    /// The matrices of a batch. `make` builds each one from a function that returns its elements.
    fn batch<T: BenchElement, M>(
        self,
        (rows, batch): (usize, usize),
        make: impl Fn(&dyn Fn(usize, usize) -> T) -> M,
    ) -> Vec<M> {
        let one = |matrix| make(&|row, column| of(self.element(rows, [matrix, row, column])));
        (0..batch).map(one).collect()
    }
}

/// One library in a case.
struct LibraryRun<'m> {
    name: &'static str,
    run: Box<dyn Fn() + 'm>,
    /// The magnitudes of all results for the first matrices, sorted: signs and the order of
    /// elements depend on the library.
    numbers: Box<dyn Fn() -> Vec<f64> + 'm>,
}

fn sorted(numbers: Vec<f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.into_iter().map(f64::abs).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// A library that computes one matrix at a time.
fn each<'m, R: 'm>(
    name: &'static str,
    batch: usize,
    compute: impl Fn(usize) -> R + Copy + 'm,
    numbers: impl Fn(&R) -> Vec<f64> + 'm,
) -> LibraryRun<'m> {
    LibraryRun {
        name,
        run: Box::new(move || drop(black_box((0..batch).map(compute).collect::<Vec<R>>()))),
        numbers: Box::new(move || {
            sorted((0..batch.min(COMPARED)).flat_map(|at| numbers(&compute(at))).collect())
        }),
    }
}

/// This library. `results` returns the elements of each result.
fn own<'m, T: BenchElement, R: 'm>(
    batch: usize,
    compute: impl Fn() -> R + Copy + 'm,
    results: impl Fn(&R) -> Vec<&[T]> + 'm,
) -> LibraryRun<'m> {
    LibraryRun {
        name: "typed-dims",
        run: Box::new(move || drop(black_box(compute()))),
        numbers: Box::new(move || {
            let found = compute();
            let first = |own: &[T]| {
                let len = own.len() / batch * batch.min(COMPARED);
                own[..len].iter().map(|&value| to(value)).collect::<Vec<f64>>()
            };
            sorted(results(&found).into_iter().flat_map(first).collect())
        }),
    }
}

fn of_faer<T: BenchElement>(own: MatRef<'_, T>) -> Vec<f64> {
    (0..own.ncols()).flat_map(|column| (0..own.nrows()).map(move |row| to(own[(row, column)]))).collect()
}

fn of_slices<T: BenchElement>(all: &[&[T]]) -> Vec<f64> {
    all.iter().flat_map(|own| own.iter().map(|&value| to(value))).collect()
}

struct FaerInputs<T> {
    general: Vec<Mat<T>>,
    symmetric: Vec<Mat<T>>,
    definite: Vec<Mat<T>>,
    tall: Vec<Mat<T>>,
    right: Vec<Mat<T>>,
}

impl<T: BenchElement> FaerInputs<T> {
    fn of(sizes: (usize, usize)) -> Self {
        let all = |input: Input| {
            let columns = input.columns(sizes.0);
            input.batch(sizes, |element: &dyn Fn(usize, usize) -> T| Mat::from_fn(sizes.0, columns, element))
        };
        FaerInputs {
            general: all(Input::General),
            symmetric: all(Input::Symmetric),
            definite: all(Input::Definite),
            tall: all(Input::Tall),
            right: all(Input::Right),
        }
    }

    /// `faer` in a case, or `None` if it lacks the operation.
    fn side(&self, case: &str) -> Option<LibraryRun<'_>> {
        let FaerInputs { general, symmetric, definite, tall, right } = self;
        let batch = general.len();
        let name = "faer";
        let lower = faer::Side::Lower;
        Some(match case {
            "cholesky" => each(
                name,
                batch,
                move |at| definite[at].llt(lower).expect("the matrix is positive definite"),
                |found| of_faer(found.L()),
            ),
            "solve" => each(
                name,
                batch,
                move |at| general[at].partial_piv_lu().solve(&right[at]),
                |found| of_faer(found.as_ref()),
            ),
            "solve_triangular" => each(
                name,
                batch,
                move |at| {
                    let mut x = right[at].clone();
                    definite[at].solve_lower_triangular_in_place(&mut x);
                    x
                },
                |found| of_faer(found.as_ref()),
            ),
            "inverse" => each(
                name,
                batch,
                move |at| general[at].partial_piv_lu().inverse(),
                |found| of_faer(found.as_ref()),
            ),
            "det" => each(name, batch, move |at| general[at].determinant(), |&found| vec![to(found)]),
            "lu" => each(
                name,
                batch,
                move |at| general[at].partial_piv_lu(),
                |found| [of_faer(found.L()), of_faer(found.U())].concat(),
            ),
            "qr" => each(
                name,
                batch,
                move |at| {
                    let own = general[at].qr();
                    (own.compute_thin_Q(), own)
                },
                |(q, own)| [of_faer(q.as_ref()), of_faer(own.thin_R())].concat(),
            ),
            "svd" => each(
                name,
                batch,
                move |at| general[at].thin_svd().expect("the algorithm converges"),
                |own| {
                    let s = own.S().column_vector();
                    [of_faer(own.U()), of_faer(own.V()), of_faer(s.as_mat())].concat()
                },
            ),
            "eigh" => each(
                name,
                batch,
                move |at| symmetric[at].self_adjoint_eigen(lower).expect("the algorithm converges"),
                |own| [of_faer(own.U()), of_faer(own.S().column_vector().as_mat())].concat(),
            ),
            "lstsq" => each(
                name,
                batch,
                move |at| tall[at].qr().solve_lstsq(&right[at]),
                |found| of_faer(found.as_ref()),
            ),
            _ => return None,
        })
    }
}

/// Matrices of one size, in the types of `nalgebra`.
struct NalgebraInputs<S, H, V> {
    general: Vec<S>,
    symmetric: Vec<S>,
    definite: Vec<S>,
    tall: Vec<H>,
    right: Vec<V>,
}

macro_rules! nalgebra_inputs {
    ($name:literal $function:ident, $square:ty, $tall:ty, $vector:ty) => {
        fn $function<'m, T: BenchElement>(
            inputs: &'m NalgebraInputs<$square, $tall, $vector>,
            case: &str,
        ) -> LibraryRun<'m> {
            let NalgebraInputs { general, symmetric, definite, tall, right } = inputs;
            let batch = general.len();
            let epsilon: T = of(to(<T as num_traits::Float>::epsilon()) * general[0].nrows() as f64);
            let name = $name;
            match case {
                "cholesky" => each(
                    name,
                    batch,
                    move |at| {
                        definite[at].clone().cholesky().expect("the matrix is positive definite").unpack()
                    },
                    |found| of_slices(&[found.as_slice()]),
                ),
                "solve" => each(
                    name,
                    batch,
                    move |at| general[at].clone().lu().solve(&right[at]).expect("the matrix is regular"),
                    |found| of_slices(&[found.as_slice()]),
                ),
                "solve_triangular" => each(
                    name,
                    batch,
                    move |at| definite[at].solve_lower_triangular(&right[at]).expect("the matrix is regular"),
                    |found| of_slices(&[found.as_slice()]),
                ),
                "inverse" => each(
                    name,
                    batch,
                    move |at| general[at].clone().try_inverse().expect("the matrix is regular"),
                    |found| of_slices(&[found.as_slice()]),
                ),
                "det" => each(name, batch, move |at| general[at].determinant(), |&found| vec![to(found)]),
                "lu" => each(
                    name,
                    batch,
                    move |at| general[at].clone().lu().unpack(),
                    |(_, l, u)| of_slices(&[l.as_slice(), u.as_slice()]),
                ),
                "qr" => each(
                    name,
                    batch,
                    move |at| general[at].clone().qr().unpack(),
                    |(q, r)| of_slices(&[q.as_slice(), r.as_slice()]),
                ),
                "svd" => each(
                    name,
                    batch,
                    move |at| general[at].clone().svd(true, true),
                    |own| {
                        let [u, v] =
                            [&own.u, &own.v_t].map(|own| own.as_ref().expect("the SVD has the factor"));
                        of_slices(&[u.as_slice(), v.as_slice(), own.singular_values.as_slice()])
                    },
                ),
                "eigh" => each(
                    name,
                    batch,
                    move |at| symmetric[at].clone().symmetric_eigen(),
                    |own| of_slices(&[own.eigenvectors.as_slice(), own.eigenvalues.as_slice()]),
                ),
                "lstsq" => each(
                    name,
                    batch,
                    move |at| {
                        tall[at]
                            .clone()
                            .svd(true, true)
                            .solve(&right[at], epsilon)
                            .expect("the SVD has both factors")
                    },
                    |found| of_slices(&[found.as_slice()]),
                ),
                "expm" => {
                    each(name, batch, move |at| general[at].exp(), |found| of_slices(&[found.as_slice()]))
                }
                case => unreachable!("`{case}` is a case"),
            }
        }
    };
}
nalgebra_inputs!("nalgebra" dynamic, DMatrix<T>, DMatrix<T>, DVector<T>);
nalgebra_inputs!("nalgebra static" of_4, SMatrix<T, 4, 4>, SMatrix<T, 4, 2>, SVector<T, 4>);
nalgebra_inputs!("nalgebra static" of_16, SMatrix<T, 16, 16>, SMatrix<T, 16, 8>, SVector<T, 16>);

impl<T: BenchElement> NalgebraInputs<DMatrix<T>, DMatrix<T>, DVector<T>> {
    fn of(sizes: (usize, usize)) -> Self {
        let rows = sizes.0;
        let all = |input: Input| {
            input.batch(sizes, |element: &dyn Fn(usize, usize) -> T| {
                DMatrix::from_fn(rows, input.columns(rows), element)
            })
        };
        NalgebraInputs {
            general: all(Input::General),
            symmetric: all(Input::Symmetric),
            definite: all(Input::Definite),
            tall: all(Input::Tall),
            right: Input::Right
                .batch(sizes, |element: &dyn Fn(usize, usize) -> T| DVector::from_fn(rows, element)),
        }
    }

    /// The same matrices, of static size.
    fn fixed<const N: usize, const H: usize>(
        &self,
    ) -> NalgebraInputs<SMatrix<T, N, N>, SMatrix<T, N, H>, SVector<T, N>> {
        let square =
            |all: &[DMatrix<T>]| all.iter().map(|own| SMatrix::from_column_slice(own.as_slice())).collect();
        NalgebraInputs {
            general: square(&self.general),
            symmetric: square(&self.symmetric),
            definite: square(&self.definite),
            tall: self.tall.iter().map(|own| SMatrix::from_column_slice(own.as_slice())).collect(),
            right: self.right.iter().map(|own| SVector::from_column_slice(own.as_slice())).collect(),
        }
    }
}

type Squares<T> = Tensor<T, (Batch, Row, Column)>;

struct OwnInputs<T> {
    general: Squares<T>,
    symmetric: Squares<T>,
    definite: Squares<T>,
    tall: Tensor<T, (Batch, Row, Half)>,
    right: Tensor<T, (Batch, Row)>,
}

impl<T: BenchElement> OwnInputs<T> {
    fn of(sizes: (usize, usize)) -> Self {
        let (rows, batch) = sizes;
        let elements = |input: Input| {
            let columns = input.columns(rows);
            let own = (0..batch * rows * columns)
                .map(|at| [at / (rows * columns), at / columns % rows, at % columns])
                .map(|at| of::<T>(input.element(rows, at)));
            own.collect::<Vec<T>>()
        };
        let square =
            |input: Input| from_vec((Batch.of(batch), Row.of(rows), Column.of(rows)), elements(input));
        OwnInputs {
            general: square(Input::General),
            symmetric: square(Input::Symmetric),
            definite: square(Input::Definite),
            tall: from_vec((Batch.of(batch), Row.of(rows), Half.of(rows / 2)), elements(Input::Tall)),
            right: from_vec((Batch.of(batch), Row.of(rows)), elements(Input::Right)),
        }
    }

    fn side(&self, case: &str) -> LibraryRun<'_> {
        let OwnInputs { general, symmetric, definite, tall, right } = self;
        let batch = general.size(Batch);
        match case {
            "cholesky" => own(batch, move || definite.cholesky(Row, Column), |l| vec![l.memory()]),
            "solve" => own(batch, move || general.solve(right, Row, Column), |x| vec![x.memory()]),
            "solve_triangular" => own(
                batch,
                move || definite.solve_triangular(right, Row, Column, Triangular::Lower),
                |x| vec![x.memory()],
            ),
            "inverse" => own(batch, move || general.inverse(Row, Column), |x| vec![x.memory()]),
            "det" => own(batch, move || general.det(Row, Column), |x| vec![x.memory()]),
            "lu" => {
                own(batch, move || general.lu(Row, Column, Least), |(_, l, u)| vec![l.memory(), u.memory()])
            }
            "qr" => own(batch, move || general.qr(Row, Column, Least), |(q, r)| vec![q.memory(), r.memory()]),
            "svd" => own(
                batch,
                move || general.svd(Row, Column, Least),
                |(u, s, v)| vec![u.memory(), s.memory(), v.memory()],
            ),
            "eigh" => own(batch, move || symmetric.eigh(Row, Column), |(w, v)| vec![w.memory(), v.memory()]),
            "lstsq" => own(batch, move || tall.lstsq(right, Row, Half), |x| vec![x.memory()]),
            "expm" => own(batch, move || general.expm(Row, Column), |x| vec![x.memory()]),
            case => unreachable!("`{case}` is a case"),
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|own| own != "--bench").collect();
    let rounds = arguments.first().map_or(7, |own| own.parse().expect("ROUNDS is a number"));
    let filter = arguments[1.min(arguments.len())..].join(" ");
    faer::set_global_parallelism(Par::Seq);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
    pool.install(|| {
        race_all::<f64>(rounds, &filter);
        race_all::<f32>(rounds, &filter);
    });
}

const CASES: [&str; 11] =
    ["cholesky", "solve", "solve_triangular", "inverse", "det", "lu", "qr", "svd", "eigh", "lstsq", "expm"];

fn race_all<T: BenchElement>(rounds: usize, filter: &str) {
    for (rows, batch) in SIZES {
        // `f32` has no cases of 512 rows: the determinants would underflow.
        let has_case = |case: &str| {
            (rows < 512 || T::NAME == "f64") && format!("{} {case} {rows} {batch}", T::NAME).contains(filter)
        };
        let cases: Vec<&str> = CASES.into_iter().filter(|case| has_case(case)).collect();
        if cases.is_empty() {
            continue;
        }
        let sizes = (rows, batch);
        let (own, faer, nalgebra) = (
            OwnInputs::<T>::of(sizes),
            FaerInputs::<T>::of(sizes),
            NalgebraInputs::<DMatrix<T>, DMatrix<T>, DVector<T>>::of(sizes),
        );
        let small = (rows == 4).then(|| nalgebra.fixed::<4, 2>());
        let middle = (rows == 16).then(|| nalgebra.fixed::<16, 8>());
        for case in cases {
            let mut sides = vec![own.side(case)];
            sides.extend(faer.side(case));
            sides.push(dynamic(&nalgebra, case));
            sides.extend(small.as_ref().map(|own| of_4(own, case)));
            sides.extend(middle.as_ref().map(|own| of_16(own, case)));
            let check = compare::<T>(case, &sides);
            let times = race(rounds, &sides);
            let each = sides.iter().zip(times);
            let each =
                each.map(|(side, seconds)| format!("{} {:.5}", side.name, 1e6 * seconds / batch as f64));
            println!(
                "{} {case} {rows} {batch} | {check:.9e} | {}",
                T::NAME,
                each.collect::<Vec<_>>().join(" | ")
            );
        }
    }
}

/// Compares the results of the other libraries with ours, and returns the mean magnitude of ours.
fn compare<T: BenchElement>(case: &str, sides: &[LibraryRun<'_>]) -> f64 {
    let own = (sides[0].numbers)();
    let mean = own.iter().sum::<f64>() / own.len() as f64;
    for side in &sides[1..] {
        let other = (side.numbers)();
        assert_eq!(own.len(), other.len(), "{case}: {}", side.name);
        for (one, other) in own.iter().zip(&other) {
            let error = (one - other).abs() / (mean + one.abs());
            assert!(error < T::TOLERANCE, "{case}: {one} instead of {other} ({})", side.name);
        }
    }
    mean
}

/// The processor time of this thread. Other programs on the machine affect it less than wall time.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes to the struct.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "the thread has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The least time of each library, in seconds. Libraries take turns, so that a slow minute of the
/// machine affects all of them.
fn race(rounds: usize, sides: &[LibraryRun<'_>]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; sides.len()];
    for _ in 0..=rounds {
        for (least, side) in least.iter_mut().zip(sides) {
            let start = processor_time();
            (side.run)();
            *least = least.min((processor_time() - start).as_secs_f64());
        }
    }
    least
}
