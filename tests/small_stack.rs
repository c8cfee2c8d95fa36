//! A thread can have a small stack: on macOS, the system's default for all but the main thread is
//! 512 KiB. Typical programs must run on such a stack, even unoptimized, where each local takes up
//! stack space.

use ndarray::{Array1, Array2, Array3, Array4};
use typed_dims::prelude::*;

/// Runs `f` on a thread with a stack of 512 KiB. An overflow aborts the whole process.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(f).expect("a thread can be started");
    thread.join().expect("the thread does not panic");
}

fn filled(rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_fn((rows, columns), |(i, j)| ((7 * i + 3 * j) % 11) as f32 / 8.0 - 0.5)
}

#[test]
fn products() {
    on_a_small_stack(|| {
        // Products of different sizes, which different kernels can compute.
        for n in [3, 40, 200] {
            let (a, b) = (filled(n, n), filled(n, n));
            dims!(i, j, k);
            let found = (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j));
            assert!(found.iter().zip(&a.dot(&b)).all(|(x, y)| (x - y).abs() < 1e-3));
        }
    });
    on_a_small_stack(|| {
        for n in [3, 40, 200] {
            let (a, b) = (filled(n, n), filled(n, n));
            dims!(i, j, k);
            let found = (a.at((i, k)) * b.at((j, k))).sum(k).order((i, j));
            assert!(found.iter().zip(&a.dot(&b.t())).all(|(x, y)| (x - y).abs() < 1e-3));
            let vector = (a.at((i, k)) * b.row(0).at(k)).sum(k).order(i);
            assert!(vector.iter().zip(&a.dot(&b.row(0))).all(|(x, y)| (x - y).abs() < 1e-3));
        }
    });
    on_a_small_stack(|| {
        // Few rows times a large matrix.
        let (a, b) = (filled(8, 200).mapv(f64::from), filled(200, 200).mapv(f64::from));
        dims!(i, j, k);
        let found = (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j));
        assert!(found.iter().zip(&a.dot(&b)).all(|(x, y)| (x - y).abs() < 1e-9));
        let found = (a.at((i, k)) * b.at((j, k))).sum(k).order((i, j));
        assert!(found.iter().zip(&a.dot(&b.t())).all(|(x, y)| (x - y).abs() < 1e-9));
    });
    on_a_small_stack(|| {
        let a = filled(50, 40).mapv(f64::from);
        let ints = Array2::from_shape_fn((30, 30), |(i, j)| (i + j) as i32);
        dims!(i, j, k);
        let found = (a.at((i, k)) * a.at((j, k))).sum(k).order((i, j));
        assert!(found.iter().zip(&a.dot(&a.t())).all(|(x, y)| (x - y).abs() < 1e-9));
        dims!(i, j, k);
        assert_eq!((ints.at((i, k)) * ints.at((k, j))).sum(k).order((i, j)), ints.dot(&ints));
    });
}

#[test]
fn elementwise_chains() {
    on_a_small_stack(|| {
        let (a, b, c) = (filled(60, 70), filled(60, 70), filled(70, 60));
        let row = Array1::<f32>::ones(70);
        dims!(i, j);
        let (a, b, c, row) = (a.at((i, j)), b.at((i, j)), c.at((j, i)), row.at(j));
        let out =
            (((a * b + c) * row - 0.5).relu().exp() + (a - c).tanh() * (b + row).sigmoid()).order((i, j));
        assert_eq!(out.dim(), (60, 70));
        let chosen = select(a.lt(b), a * 2.0, select(i.le(j), c, row + b)).eval();
        assert_eq!(chosen.order((j, i)).dim(), (70, 60));
        let mut out = Array2::<f32>::zeros((60, 70));
        out.at_mut((i, j)).add_assign((a + b) * (c + row) * (a - b).abs());
        let ids = Array1::from_shape_fn(60, |i| (i * 7) % 60);
        let gathered = (filled(60, 70).at((ids.at(i), j)) + a * b).order((i, j));
        assert_eq!(gathered.dim(), (60, 70));
    });
}

#[test]
fn reductions_and_scans() {
    on_a_small_stack(|| {
        let (a, b) = (filled(50, 300), filled(300, 50));
        dims!(i, j);
        let (a, b) = (a.at((i, j)), b.at((j, i)));
        for dim_is_inner in [true, false] {
            let sum = |x: f32| assert!(x.is_finite());
            if dim_is_inner {
                (a * b + a).sum(j).order(i).iter().copied().for_each(sum);
                (a - b).abs().max(j).order(i).iter().copied().for_each(sum);
                a.var(j).order(i).iter().copied().for_each(sum);
                a.logsumexp(j).order(i).iter().copied().for_each(sum);
            } else {
                (a * b + a).sum(i).order(j).iter().copied().for_each(sum);
                (a - b).abs().max(i).order(j).iter().copied().for_each(sum);
                a.var(i).order(j).iter().copied().for_each(sum);
                a.logsumexp(i).order(j).iter().copied().for_each(sum);
            }
        }
        assert!(a.argmax(j).order(i).iter().all(|&at| at < 300));
        assert!((a + b).softmax(j).sum(j).order(i).iter().all(|x| (x - 1.0).abs() < 1e-4));
        assert!((a + b).softmax(i).sum(i).order(j).iter().all(|x| (x - 1.0).abs() < 1e-4));
        assert_eq!(a.log_softmax(j).cumsum(j).order((i, j)).dim(), (50, 300));
        assert_eq!((a * 2.0).layer_norm_affine(j, 1e-5, 2.0, 0.5).order((i, j)).dim(), (50, 300));
    });
}

#[test]
fn attention_of_heads() {
    on_a_small_stack(|| {
        let x =
            Array4::from_shape_fn((2, 70, 3, 16), |(b, s, h, d)| ((b + 3 * s + h + 5 * d) % 7) as f32 / 7.0);
        dims!(b, q, k, h, d);
        let (queries, keys) = (x.at((b, q, h, d)), x.at((b, k, h, d)));
        let tiles = attention(queries, keys, keys, d, k, 0.25, k.le(q)).order((b, q, h, d));
        let scores = (queries * keys).sum(d) * 0.25;
        let weights = select(k.le(q), scores, f32::NEG_INFINITY).softmax(k);
        let written_out = (weights * keys).sum(k).order((b, q, h, d));
        assert!(tiles.iter().zip(&written_out).all(|(x, y)| (x - y).abs() < 1e-4));
    });
}

#[test]
fn convolutions() {
    on_a_small_stack(|| {
        let x = Array4::<f32>::ones((2, 3, 20, 22));
        let w = Array4::<f32>::ones((4, 3, 3, 3));
        dims!(b, c, o, h, y, kh, kw);
        let w = w.at((o, c, kh, kw));
        let out = (x.at((b, c, h + kh, y + kw)) * w).sum((c, kh, kw)).order((b, o, h, y));
        assert!(out.iter().all(|&value| value == 27.0));
    });
}

#[test]
fn sorted_and_copied() {
    on_a_small_stack(|| {
        let x = Array3::from_shape_fn((10, 40, 30), |(i, j, k)| ((i * 31 + j * 17 + k * 7) % 101) as f64);
        dims!(i, j, k);
        let sorted = x.at((i, j, k)).sort(j).order((i, k, j));
        assert!(sorted.rows().into_iter().all(|row| row.iter().is_sorted()));
        assert_eq!(rearrange!(x, a b c -> (c a) b).dim(), (300, 40));
        assert_eq!(einsum!("abc,dbc->ad", x, x).dim(), (10, 10));
        assert_eq!(rearrange!([x, x], n a b c -> (n a) c b).dim(), (20, 30, 40));
    });
}
