//! Sasha Rush's [Tensor Puzzles](https://github.com/srush/Tensor-Puzzles): NumPy functions,
//! each written from first principles in one line.
//!
//! The original puzzles only allow indexing, arithmetic, `@`, comparison, shapes, `arange`, `where`
//! and earlier solutions. Here each solution is one `tensor!`. The specifications are written as
//! loops below, and each solution is compared with its specification on inputs of many sizes. The
//! program panics if they differ.
//!
//! ```sh
//! cargo run --example tensor_puzzles
//! ```

use ndarray::Axis;
use std::fmt::{Debug, Display};
use typed_dims::prelude::*;

// The solutions.

fn ones(n: usize) -> Array1<i32> {
    tensor!([i in 0..n] => 1)
}

fn sum(a: &Array1<i32>) -> Array1<i32> {
    tensor!([one in 0..1] => sum[i](a[i]))
}

fn outer(a: &Array1<i32>, b: &Array1<i32>) -> Array2<i32> {
    tensor!([i, j] => a[i] * b[j])
}

fn diag(a: &Array2<i32>) -> Array1<i32> {
    tensor!([i] => a[i, i])
}

fn eye(n: usize) -> Array2<i32> {
    tensor!([i in 0..n, j in 0..n] => if i == j { 1 } else { 0 })
}

fn triu(n: usize) -> Array2<i32> {
    tensor!([i in 0..n, j in 0..n] => if i <= j { 1 } else { 0 })
}

fn cumsum(a: &Array1<i32>) -> Array1<i32> {
    tensor!([i in 0..a.len()] => sum[j](if j <= i { a[j] } else { 0 }))
}

fn diff(a: &Array1<i32>) -> Array1<i32> {
    tensor!([i] => if i == 0 { a[i] } else { a[i] - a[i - 1] })
}

fn vstack(a: &Array1<i32>, b: &Array1<i32>) -> Array2<i32> {
    tensor!([row in 0..2, i] => if row == 0 { a[i] } else { b[i] })
}

fn roll(a: &Array1<i32>) -> Array1<i32> {
    tensor!([i in 0..a.len()] => a[(i + 1) % a.len()])
}

fn flip(a: &Array1<i32>) -> Array1<i32> {
    tensor!([i] => a[a.len() - i - 1])
}

fn compress(g: &Array1<bool>, v: &Array1<i32>) -> Array1<i32> {
    tensor!([j in 0..v.len()] => sum[i](if g[i] && count[k](g[k] && k < i) == j { v[i] } else { 0 }))
}

fn pad_to(a: &Array1<i32>, n: usize) -> Array1<i32> {
    tensor!([i in 0..n] => if i < a.len() { a[i] } else { 0 })
}

fn sequence_mask(values: &Array2<i32>, length: &Array1<usize>) -> Array2<i32> {
    tensor!([i, j] => if j < length[i] { values[i, j] } else { 0 })
}

fn bincount(a: &Array1<usize>, n: usize) -> Array1<usize> {
    tensor!([value in 0..n] => count[i](a[i] == value))
}

fn scatter_add(values: &Array1<i32>, link: &Array1<usize>, n: usize) -> Array1<i32> {
    tensor!([j in 0..n] => sum[i](if link[i] == j { values[i] } else { 0 }))
}

fn flatten(a: &Array2<i32>) -> Array1<i32> {
    tensor!([k in 0..a.len()] => a[k / a.ncols(), k % a.ncols()])
}

fn linspace(from: f32, to: f32, n: usize) -> Array1<f32> {
    tensor!([i in 0..n] => from + (to - from) * i as f32 / n.saturating_sub(1).max(1) as f32)
}

fn heaviside(a: &Array1<i32>, b: &Array1<i32>) -> Array1<i32> {
    tensor!([i] => if a[i] == 0 { b[i] } else { (a[i] > 0) as i32 })
}

fn repeat(a: &Array1<i32>, n: usize) -> Array2<i32> {
    tensor!([row in 0..n, i] => a[i])
}

fn bucketize(v: &Array1<i32>, boundaries: &Array1<i32>) -> Array1<usize> {
    tensor!([i] => count[j](v[i] >= boundaries[j]))
}

/// The specifications, as loops.
#[allow(clippy::needless_range_loop)] // as in the puzzles
mod spec {
    use super::{Array1, Array2};

    pub fn ones(n: usize) -> Array1<i32> {
        let mut out = Array1::zeros(n);
        for i in 0..n {
            out[i] = 1;
        }
        out
    }

    pub fn sum(a: &Array1<i32>) -> Array1<i32> {
        let mut out = Array1::zeros(1);
        for i in 0..a.len() {
            out[0] += a[i];
        }
        out
    }

    pub fn outer(a: &Array1<i32>, b: &Array1<i32>) -> Array2<i32> {
        let mut out = Array2::zeros((a.len(), b.len()));
        for i in 0..a.len() {
            for j in 0..b.len() {
                out[[i, j]] = a[i] * b[j];
            }
        }
        out
    }

    pub fn diag(a: &Array2<i32>) -> Array1<i32> {
        let mut out = Array1::zeros(a.nrows());
        for i in 0..a.nrows() {
            out[i] = a[[i, i]];
        }
        out
    }

    pub fn eye(n: usize) -> Array2<i32> {
        let mut out = Array2::zeros((n, n));
        for i in 0..n {
            out[[i, i]] = 1;
        }
        out
    }

    pub fn triu(n: usize) -> Array2<i32> {
        let mut out = Array2::zeros((n, n));
        for i in 0..n {
            for j in i..n {
                out[[i, j]] = 1;
            }
        }
        out
    }

    pub fn cumsum(a: &Array1<i32>) -> Array1<i32> {
        let (mut out, mut total) = (Array1::zeros(a.len()), 0);
        for i in 0..a.len() {
            total += a[i];
            out[i] = total;
        }
        out
    }

    pub fn diff(a: &Array1<i32>) -> Array1<i32> {
        let mut out = a.clone();
        for i in 1..a.len() {
            out[i] = a[i] - a[i - 1];
        }
        out
    }

    pub fn vstack(a: &Array1<i32>, b: &Array1<i32>) -> Array2<i32> {
        let mut out = Array2::zeros((2, a.len()));
        for i in 0..a.len() {
            out[[0, i]] = a[i];
            out[[1, i]] = b[i];
        }
        out
    }

    pub fn roll(a: &Array1<i32>) -> Array1<i32> {
        let mut out = Array1::zeros(a.len());
        for i in 0..a.len() {
            out[i] = if i + 1 < a.len() { a[i + 1] } else { a[i + 1 - a.len()] };
        }
        out
    }

    pub fn flip(a: &Array1<i32>) -> Array1<i32> {
        let mut out = Array1::zeros(a.len());
        for i in 0..a.len() {
            out[i] = a[a.len() - i - 1];
        }
        out
    }

    pub fn compress(g: &Array1<bool>, v: &Array1<i32>) -> Array1<i32> {
        let (mut out, mut j) = (Array1::zeros(v.len()), 0);
        for i in 0..g.len() {
            if g[i] {
                out[j] = v[i];
                j += 1;
            }
        }
        out
    }

    pub fn pad_to(a: &Array1<i32>, n: usize) -> Array1<i32> {
        let mut out = Array1::zeros(n);
        for i in 0..a.len().min(n) {
            out[i] = a[i];
        }
        out
    }

    pub fn sequence_mask(values: &Array2<i32>, length: &Array1<usize>) -> Array2<i32> {
        let mut out = Array2::zeros(values.raw_dim());
        for i in 0..values.nrows() {
            for j in 0..values.ncols() {
                if j < length[i] {
                    out[[i, j]] = values[[i, j]];
                }
            }
        }
        out
    }

    pub fn bincount(a: &Array1<usize>, n: usize) -> Array1<usize> {
        let mut out = Array1::zeros(n);
        for i in 0..a.len() {
            out[a[i]] += 1;
        }
        out
    }

    pub fn scatter_add(values: &Array1<i32>, link: &Array1<usize>, n: usize) -> Array1<i32> {
        let mut out = Array1::zeros(n);
        for j in 0..values.len() {
            out[link[j]] += values[j];
        }
        out
    }

    pub fn flatten(a: &Array2<i32>) -> Array1<i32> {
        let (mut out, mut k) = (Array1::zeros(a.len()), 0);
        for i in 0..a.nrows() {
            for j in 0..a.ncols() {
                out[k] = a[[i, j]];
                k += 1;
            }
        }
        out
    }

    pub fn linspace(from: f32, to: f32, n: usize) -> Array1<f32> {
        let mut out = Array1::zeros(n);
        for k in 0..n {
            out[k] = from + (to - from) * k as f32 / n.saturating_sub(1).max(1) as f32;
        }
        out
    }

    pub fn heaviside(a: &Array1<i32>, b: &Array1<i32>) -> Array1<i32> {
        let mut out = Array1::zeros(a.len());
        for k in 0..a.len() {
            out[k] = if a[k] == 0 { b[k] } else { i32::from(a[k] > 0) };
        }
        out
    }

    pub fn repeat(a: &Array1<i32>, n: usize) -> Array2<i32> {
        let mut out = Array2::zeros((n, a.len()));
        for i in 0..n {
            for k in 0..a.len() {
                out[[i, k]] = a[k];
            }
        }
        out
    }

    pub fn bucketize(v: &Array1<i32>, boundaries: &Array1<i32>) -> Array1<usize> {
        let mut out = Array1::zeros(v.len());
        for i in 0..v.len() {
            for j in 0..boundaries.len() {
                if v[i] >= boundaries[j] {
                    out[i] = j + 1;
                }
            }
        }
        out
    }
}

/// Pseudo-random numbers from a fixed seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64, except for the last step.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) as usize % end.max(1)
    }

    fn ints(&mut self, n: usize) -> Array1<i32> {
        Array1::from_shape_fn(n, |_| self.below(11) as i32 - 5)
    }

    fn positions(&mut self, n: usize, end: usize) -> Array1<usize> {
        Array1::from_shape_fn(n, |_| self.below(end))
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Array2<i32> {
        Array2::from_shape_fn((rows, columns), |_| self.below(11) as i32 - 5)
    }
}

/// All solutions for inputs of size `n`: their names, and their printed results.
fn solve(n: usize, numbers: &mut Numbers) -> Vec<(&'static str, String)> {
    let (a, b, square) = (numbers.ints(n), numbers.ints(n), numbers.matrix(n, n));
    let (wide, link) = (numbers.matrix(n, n + 2), numbers.positions(n, n));
    let lengths = numbers.positions(n, n + 3);
    let flags = a.mapv(|value| value > 0);
    let mut boundaries = b.to_vec();
    boundaries.sort_unstable();
    let boundaries = Array1::from(boundaries);
    let mut solved = Vec::new();
    let mut puzzle = |name, (shown, same): (String, bool)| {
        assert!(same, "`{name}` differs from its specification for inputs of size {n}: {shown}");
        solved.push((name, shown));
    };
    puzzle("ones", compare(ones(n), spec::ones(n)));
    puzzle("sum", compare(sum(&a), spec::sum(&a)));
    puzzle("outer", compare(outer(&a, &b), spec::outer(&a, &b)));
    puzzle("diag", compare(diag(&square), spec::diag(&square)));
    puzzle("eye", compare(eye(n), spec::eye(n)));
    puzzle("triu", compare(triu(n), spec::triu(n)));
    puzzle("cumsum", compare(cumsum(&a), spec::cumsum(&a)));
    puzzle("diff", compare(diff(&a), spec::diff(&a)));
    puzzle("vstack", compare(vstack(&a, &b), spec::vstack(&a, &b)));
    puzzle("roll", compare(roll(&a), spec::roll(&a)));
    puzzle("flip", compare(flip(&a), spec::flip(&a)));
    puzzle("compress", compare(compress(&flags, &b), spec::compress(&flags, &b)));
    puzzle("pad_to", compare(pad_to(&a, 5), spec::pad_to(&a, 5)));
    puzzle("sequence_mask", compare(sequence_mask(&wide, &lengths), spec::sequence_mask(&wide, &lengths)));
    puzzle("bincount", compare(bincount(&link, n), spec::bincount(&link, n)));
    puzzle("scatter_add", compare(scatter_add(&a, &link, n), spec::scatter_add(&a, &link, n)));
    puzzle("flatten", compare(flatten(&wide), spec::flatten(&wide)));
    puzzle("linspace", compare(linspace(-1.0, 2.0, n), spec::linspace(-1.0, 2.0, n)));
    puzzle("heaviside", compare(heaviside(&a, &b), spec::heaviside(&a, &b)));
    puzzle("repeat", compare(repeat(&a, 3), spec::repeat(&a, 3)));
    puzzle("bucketize", compare(bucketize(&a, &boundaries), spec::bucketize(&a, &boundaries)));
    assert_eq!(repeat(&a, 3).sum_axis(Axis(0)), &a * 3);
    solved
}

fn compare<T: Debug + Display + PartialEq>(solution: T, spec: T) -> (String, bool) {
    (solution.to_string().replace('\n', ""), solution == spec)
}

/// The `tensor!` of a solution, from the source of this file.
fn line(name: &str) -> &'static str {
    let source = include_str!("tensor_puzzles.rs");
    let start = source.find(&format!("\nfn {name}(")).expect("every puzzle is a function of this file");
    source[start..]
        .lines()
        .find(|line| line.contains("tensor!"))
        .expect("every puzzle is one `tensor!`")
        .trim()
}

fn main() {
    let mut numbers = Numbers(2022);
    for n in [0, 1, 2, 3, 5, 8, 13, 40] {
        let solved = solve(n, &mut numbers);
        assert_eq!(solved.len(), 21);
    }
    for (at, (name, shown)) in solve(4, &mut numbers).into_iter().enumerate() {
        println!("{:2}. {name:13} {}\n    {shown}", at + 1, line(name));
    }
    println!("all 21 solutions agree with their specifications");
}

#[test]
fn all_puzzles_agree_with_their_specifications() {
    main();
}
