//! Compares the routes by which matrix products can be computed.
//!
//! `cargo bench -p typed-dims-kernels --bench routes` prints a line for each shape and element
//! type. The columns are the microseconds of one product by each route. The route that the
//! dispatcher chooses is marked by `*`; the last column is its time divided by that of the fastest
//! route, or `slow` if the chosen route took too long in a first trial. An argument selects the
//! lines whose label contains it.
//!
//! The routes take short turns, and the fastest turn of each route counts, because other programs
//! rarely slow down all turns of one route.

use std::hint::black_box;
use std::time::{Duration, Instant};
use typed_dims_kernels::gemm::dispatch::{Route, multiply_by, route_of};
use typed_dims_kernels::gemm::{Matrix, Product};
use typed_dims_kernels::scalar::Num;

const TURNS: usize = 40;

/// The intended least duration of a turn.
const TURN: Duration = Duration::from_millis(1);

/// A route that takes more than this many times as long as the fastest route in a first trial is
/// not measured again.
const HOPELESS: u32 = 8;

/// The layout of a matrix: row-major, column-major, or without adjacent elements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum OperandLayout {
    Rows,
    Columns,
    Apart,
}

impl OperandLayout {
    /// The strides of rows and columns, and the length of the memory in elements.
    fn strides(self, rows: usize, columns: usize) -> ([isize; 2], usize) {
        let (row, col) = match self {
            OperandLayout::Rows => (columns, 1),
            OperandLayout::Columns => (1, rows),
            OperandLayout::Apart => (2 * columns, 2),
        };
        ([row as isize, col as isize], rows * columns * if self == OperandLayout::Apart { 2 } else { 1 })
    }
}

use OperandLayout::{Apart, Columns, Rows};

/// `count` products of one size and layout, each with separate memory.
struct Shape {
    class: &'static str,
    count: usize,
    sizes: [usize; 3],
    layouts: [OperandLayout; 3],
}

const fn shape(class: &'static str, count: usize, sizes: [usize; 3], layouts: [OperandLayout; 3]) -> Shape {
    Shape { class, count, sizes, layouts }
}

const ROW_MAJOR: [OperandLayout; 3] = [Rows, Rows, Rows];
const TRANSPOSED_B: [OperandLayout; 3] = [Rows, Columns, Rows];
const TRANSPOSED_A: [OperandLayout; 3] = [Columns, Rows, Rows];

/// The products to measure. The sizes are `m`, `k` and `n`: an `m` x `k` matrix times a `k` x `n`
/// matrix.
const SHAPES: &[Shape] = &[
    shape("small", 1, [4, 4, 4], ROW_MAJOR),
    shape("small", 1, [8, 8, 8], ROW_MAJOR),
    shape("small", 1, [16, 16, 16], ROW_MAJOR),
    shape("small", 1, [16, 16, 16], TRANSPOSED_B),
    shape("small", 1, [16, 16, 16], [Rows, Apart, Rows]),
    shape("small, one column", 1, [32, 64, 1], ROW_MAJOR),
    shape("square", 1, [24, 24, 24], ROW_MAJOR),
    shape("square", 1, [32, 32, 32], ROW_MAJOR),
    shape("square", 1, [48, 48, 48], ROW_MAJOR),
    shape("square", 1, [64, 64, 64], ROW_MAJOR),
    shape("square", 64, [64, 64, 64], ROW_MAJOR),
    shape("square", 1, [96, 96, 96], ROW_MAJOR),
    shape("square", 64, [96, 96, 96], ROW_MAJOR),
    shape("square", 1, [128, 128, 128], ROW_MAJOR),
    shape("square", 64, [128, 128, 128], ROW_MAJOR),
    shape("square", 1, [192, 192, 192], ROW_MAJOR),
    shape("square", 16, [256, 256, 256], ROW_MAJOR),
    shape("square", 4, [512, 512, 512], ROW_MAJOR),
    shape("square", 1, [1024, 1024, 1024], ROW_MAJOR),
    shape("square, left transposed", 1, [128, 128, 128], TRANSPOSED_A),
    shape("square, left transposed", 4, [512, 512, 512], TRANSPOSED_A),
    shape("square, right transposed", 1, [32, 32, 32], TRANSPOSED_B),
    shape("square, right transposed", 1, [64, 64, 64], TRANSPOSED_B),
    shape("square, right transposed", 1, [128, 128, 128], TRANSPOSED_B),
    shape("square, right transposed", 16, [256, 256, 256], TRANSPOSED_B),
    shape("square, right transposed", 4, [512, 512, 512], TRANSPOSED_B),
    shape("square, right transposed", 1, [1024, 1024, 1024], TRANSPOSED_B),
    shape("square, no neighbors", 4, [256, 256, 256], [Rows, Apart, Rows]),
    shape("square, result apart", 4, [256, 256, 256], [Rows, Rows, Apart]),
    shape("narrow", 1, [64, 32, 10], ROW_MAJOR),
    shape("narrow", 1, [256, 64, 16], ROW_MAJOR),
    shape("narrow, right transposed", 1, [256, 64, 8], TRANSPOSED_B),
    shape("narrow, right transposed", 1, [256, 64, 16], TRANSPOSED_B),
    shape("short sums", 1, [1000, 10, 1000], ROW_MAJOR),
    shape("short sums", 1, [256, 16, 256], ROW_MAJOR),
    shape("attention, queries by keys", 64, [128, 64, 128], ROW_MAJOR),
    shape("attention, queries by keys", 64, [128, 64, 128], TRANSPOSED_B),
    shape("long sums", 1, [64, 4096, 64], ROW_MAJOR),
    shape("long sums, right transposed", 1, [64, 4096, 64], TRANSPOSED_B),
    shape("wide", 1, [64, 64, 4096], ROW_MAJOR),
    shape("tall", 1, [4096, 64, 64], ROW_MAJOR),
    shape("tall, right transposed", 1, [4096, 64, 64], TRANSPOSED_B),
    shape("few rows", 4, [1, 1024, 1024], ROW_MAJOR),
    shape("few rows", 4, [1, 1024, 1024], TRANSPOSED_B),
    shape("few rows", 4, [4, 128, 512], ROW_MAJOR),
    shape("few rows", 4, [4, 1024, 1024], ROW_MAJOR),
    shape("few rows", 4, [4, 1024, 1024], TRANSPOSED_B),
    shape("few rows", 4, [8, 1024, 1024], ROW_MAJOR),
    shape("few rows", 4, [8, 1024, 1024], TRANSPOSED_B),
    shape("few columns", 4, [1024, 1024, 4], ROW_MAJOR),
    shape("twelve rows", 4, [12, 1024, 1024], ROW_MAJOR),
    shape("twelve rows", 4, [12, 1024, 1024], TRANSPOSED_B),
    shape("sixteen rows", 4, [16, 1024, 1024], ROW_MAJOR),
];

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    print!("{:58}", "microseconds");
    Route::ALL.iter().for_each(|route| print!("{:>12}", format!("{route:?}")));
    println!("{:>10}", "chosen");
    for shape in SHAPES {
        line::<f32>("f32", shape, &filter, |x| x);
        line::<f64>("f64", shape, &filter, f64::from);
        line("c32", shape, &filter, |x| num_complex::Complex32::new(x, 1.0 - x));
        line::<i32>("i32", shape, &filter, |x| (8.0 * x) as i32);
    }
}

/// Prints the line of a shape and an element type.
fn line<T: Num>(elements: &str, shape: &Shape, filter: &str, element: fn(f32) -> T) {
    let &Shape { class, count, sizes: [m, k, n], layouts: [a, b, c] } = shape;
    let name = format!("{class}: {count} {elements} {m}x{k} by {k}x{n} {a:?} {b:?} {c:?}");
    if !name.contains(filter) {
        return;
    }
    let matrices = |layout: OperandLayout, rows, columns| {
        let (strides, len) = layout.strides(rows, columns);
        let data: Vec<T> = (0..count * len).map(|at| element((at * 7 % 23) as f32 / 23.0 - 0.5)).collect();
        (data, strides, len as isize)
    };
    let (a, a_strides, a_len) = matrices(a, m, k);
    let (b, b_strides, b_len) = matrices(b, k, n);
    let (mut c, c_strides, c_len) = matrices(c, m, n);
    let first = Product {
        m,
        k,
        n,
        a: Matrix { start: a.as_ptr(), row: a_strides[0], col: a_strides[1] },
        b: Matrix { start: b.as_ptr(), row: b_strides[0], col: b_strides[1] },
        c: c.as_mut_ptr(),
        c_row: c_strides[0],
        c_col: c_strides[1],
        accumulate: false,
    };
    let products: Vec<Product<T>> =
        (0..count as isize).map(|at| first.moved(at * a_len, at * b_len, at * c_len)).collect();
    let run = |route: Route, rounds: u32| {
        let start = Instant::now();
        for _ in 0..rounds {
            for product in &products {
                // SAFETY: the matrices are within the vectors, which nothing else accesses
                // meanwhile.
                black_box(unsafe { multiply_by(route, black_box(product)) });
            }
        }
        start.elapsed()
    };
    // SAFETY: as for `run`.
    let mut routes: Vec<Route> =
        Route::ALL.into_iter().filter(|&route| unsafe { multiply_by(route, &first) }).collect();
    let once: Vec<Duration> = routes.iter().map(|&route| run(route, 2) / 2).collect();
    let fastest = once.iter().min().copied().expect("loops can compute all products");
    let mut kept = once.iter().map(|&time| time <= HOPELESS * fastest);
    routes.retain(|_| kept.next().expect("there is a time for each route"));
    let rounds: Vec<u32> = routes
        .iter()
        .map(|&route| {
            let mut rounds = 1;
            while run(route, rounds) < TURN {
                rounds *= 2;
            }
            rounds
        })
        .collect();
    let mut times = vec![Vec::new(); routes.len()];
    for _ in 0..TURNS {
        for ((&route, &rounds), times) in routes.iter().zip(&rounds).zip(&mut times) {
            times.push(run(route, rounds).as_secs_f64() * 1e6 / f64::from(rounds) / count as f64);
        }
    }
    let least: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[0]
        })
        .collect();
    let chosen = route_of(&first);
    print!("{name:58}");
    for route in Route::ALL {
        match routes.iter().position(|&measured| measured == route) {
            Some(at) => print!("{:>11.3}{}", least[at], if route == chosen { '*' } else { ' ' }),
            None => print!("{:>12}", if route == chosen { "*" } else { "" }),
        }
    }
    let best = least.iter().copied().fold(f64::INFINITY, f64::min);
    match routes.iter().position(|&route| route == chosen) {
        Some(at) => println!("{:>10.2}", least[at] / best),
        None => println!("{:>10}", "slow"),
    }
}
