//! Compares solvers and decompositions with direct calls of `faer` and `nalgebra`, for matrices of
//! 4, 16, 64 and 512 rows in batches of 100,000, 10,000, 1,000 and 1.
//!
//! `cargo bench --features linalg --bench linalg`; `benches/python/linalg.py` measures NumPy,
//! PyTorch and JAX at the same sizes. Times are microseconds per matrix on one thread: the median
//! of rounds in which the candidates take turns.

use nalgebra::DMatrix;
use rayon::ThreadPoolBuilder;
use std::hint::black_box;
use std::time::Instant;
use typed_dims::operators::linalg::systems::Triangular;
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Row;
    struct Column;
    struct Right;
    struct Least;
}

/// The number of rows, and the number of matrices.
const SIZES: [(usize, usize); 4] = [(4, 100_000), (16, 10_000), (64, 1_000), (512, 1)];

type Matrices = Tensor<f64, (Batch, Row, Column)>;

/// Positive definite matrices.
fn matrices(rows: usize, batch: usize) -> Matrices {
    let small = randn::<f64, _>((Batch.of(batch), Row.of(rows), Column.of(rows)), 1) * (0.1 / rows as f64);
    let turned = (&small).eval();
    let symmetric = (&turned + (&turned).rename(Row, Least).rename(Column, Row).rename(Least, Column)).eval();
    (symmetric + eye::<f64, _, _>(Row.of(rows), Column.of(rows))).eval()
}

/// Each matrix as a slice. The matrices are symmetric, so row-major and column-major order agree.
fn each(all: &Matrices, rows: usize) -> impl Iterator<Item = &[f64]> {
    all.memory().chunks_exact(rows * rows)
}

fn faer_view(data: &[f64], rows: usize) -> faer::MatRef<'_, f64> {
    faer::MatRef::from_column_major_slice(data, rows, rows)
}

/// A candidate: its name, and the call to measure.
type Measured<'m> = (&'static str, Box<dyn Fn() + 'm>);

fn cases<'m>(
    all: &'m Matrices,
    right: &'m Tensor<f64, (Batch, Row)>,
    rows: usize,
) -> Vec<(&'static str, Vec<Measured<'m>>)> {
    use faer::linalg::solvers::{DenseSolveCore, Solve};
    macro_rules! all_of {
        ($data:ident => $value:expr) => {
            Box::new(move || {
                for $data in each(all, rows) {
                    black_box($value);
                }
            }) as Box<dyn Fn() + 'm>
        };
    }
    vec![
        (
            "cholesky",
            vec![
                ("dims", Box::new(move || drop(black_box(all.cholesky(Row, Column))))),
                (
                    "faer",
                    all_of!(data => faer_view(data, rows).llt(faer::Side::Lower).expect("positive definite").L().nrows()),
                ),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).cholesky())),
            ],
        ),
        (
            "solve",
            vec![
                ("dims", Box::new(move || drop(black_box(all.solve(right, Row, Column))))),
                (
                    "faer",
                    Box::new(move || {
                        for (data, b) in each(all, rows).zip(right.memory().chunks_exact(rows)) {
                            let b = faer::MatRef::from_column_major_slice(b, rows, 1);
                            black_box(faer_view(data, rows).partial_piv_lu().solve(b));
                        }
                    }),
                ),
                (
                    "nalgebra",
                    Box::new(move || {
                        for (data, b) in each(all, rows).zip(right.memory().chunks_exact(rows)) {
                            let b = nalgebra::DVector::from_column_slice(b);
                            black_box(DMatrix::from_column_slice(rows, rows, data).lu().solve(&b));
                        }
                    }),
                ),
            ],
        ),
        (
            "inverse",
            vec![
                ("dims", Box::new(move || drop(black_box(all.inverse(Row, Column))))),
                ("faer", all_of!(data => faer_view(data, rows).partial_piv_lu().inverse())),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).try_inverse())),
            ],
        ),
        (
            "det",
            vec![
                ("dims", Box::new(move || drop(black_box(all.det(Row, Column))))),
                ("faer", all_of!(data => faer_view(data, rows).determinant())),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).determinant())),
            ],
        ),
        (
            "eigh",
            vec![
                ("dims", Box::new(move || drop(black_box(all.eigh(Row, Column))))),
                (
                    "faer",
                    all_of!(data => faer_view(data, rows).self_adjoint_eigen(faer::Side::Lower).expect("it converges").S().dim()),
                ),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).symmetric_eigen())),
            ],
        ),
        (
            "svd",
            vec![
                ("dims", Box::new(move || drop(black_box(all.svd(Row, Column, Least))))),
                ("faer", all_of!(data => faer_view(data, rows).thin_svd().expect("it converges").S().dim())),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).svd(true, true))),
            ],
        ),
        (
            "qr",
            vec![
                ("dims", Box::new(move || drop(black_box(all.qr(Row, Column, Least))))),
                ("faer", all_of!(data => faer_view(data, rows).qr().compute_thin_Q())),
                ("nalgebra", all_of!(data => DMatrix::from_column_slice(rows, rows, data).qr().unpack())),
            ],
        ),
        (
            "solve_triangular",
            vec![(
                "dims",
                Box::new(move || {
                    drop(black_box(all.solve_triangular(right, Row, Column, Triangular::Lower)))
                }),
            )],
        ),
    ]
}

/// The median time of each candidate, in seconds. The candidates take turns, so that noise on the
/// machine affects them equally.
fn times(cases: &[Measured<'_>]) -> Vec<f64> {
    const ROUNDS: usize = 7;
    let mut all = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (times, (_, run)) in all.iter_mut().zip(cases) {
            let start = Instant::now();
            run();
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    all.into_iter().map(median).collect()
}

fn main() {
    faer::set_global_parallelism(faer::Par::Seq);
    let pool = ThreadPoolBuilder::new().num_threads(1).build().expect("a thread starts");
    pool.install(|| {
        for (rows, batch) in SIZES {
            let all = matrices(rows, batch);
            let right = randn::<f64, _>((Batch.of(batch), Row.of(rows)), 2);
            for (name, cases) in cases(&all, &right, rows) {
                let found = times(&cases);
                let own = found[0];
                let each = cases.iter().zip(&found).map(|((name, _), seconds)| {
                    format!("{name} {:.3} us ({:.2})", 1e6 * seconds / batch as f64, own / seconds)
                });
                println!("{name}, {batch} of {rows} x {rows}: {}", each.collect::<Vec<_>>().join(", "));
            }
        }
    });
}
