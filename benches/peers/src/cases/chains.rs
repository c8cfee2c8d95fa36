//! Products of four matrices: the cost of the order of multiplication.

use crate::bench::{Bench, candle};
use crate::gemms::{product, products};
use ndarray_einsum::einsum;
use std::sync::Arc;
use typed_dims::prelude::*;

type Matrices = [Arc<Array2<f32>>; 4];

fn in_dims(matrices: &Matrices) -> Array2<f32> {
    dims!(a, b, c, d, e);
    let [ab, bc, cd, de] = matrices;
    (ab.at((a, b)) * bc.at((b, c)) * cd.at((c, d)) * de.at((d, e))).sum((b, c, d)).order((a, e))
}

/// All peers use the best order, except ndarray-einsum, which multiplies from left to right. For
/// the matrices `a b c d`, the best order is `(a b) (c d)` if `thin`, and `(a (b c)) d` otherwise.
fn chain(bench: &mut Bench, sizes: [usize; 5], thin: bool) {
    let threads = bench.threads;
    let names = ["a", "b", "c", "d"];
    let matrices: Matrices =
        [0, 1, 2, 3].map(|at| bench.input::<f32, _>(names[at], (sizes[at], sizes[at + 1])));
    {
        let matrices = matrices.clone();
        bench.peer("typed-dims", move || in_dims(&matrices));
    }
    {
        let [a, b, c, d] = matrices.clone();
        bench.peer(
            "ndarray",
            move || {
                if thin { a.dot(&*b).dot(&c.dot(&*d)) } else { a.dot(&b.dot(&*c)).dot(&*d) }
            },
        );
    }
    {
        let [a, b, c, d] = matrices.clone();
        bench.peer("ndarray-einsum", move || {
            einsum("ab,bc,cd,de->ae", &[&*a, &*b, &*c, &*d]).expect("the pattern is valid")
        });
    }
    {
        let [a, b, c, d] = matrices.clone().map(|matrix| candle(&matrix));
        bench.peer("candle", move || {
            let run = || {
                if thin { a.matmul(&b)?.matmul(&c.matmul(&d)?) } else { a.matmul(&b.matmul(&c)?)?.matmul(&d) }
            };
            run().expect("the sizes agree")
        });
    }
    #[cfg(feature = "burn")]
    {
        let matrices = matrices.clone().map(|matrix| crate::bench::burn::<2, _, _>(&matrix));
        bench.peer("burn", move || {
            let [a, b, c, d] = matrices.clone();
            if thin { a.matmul(b).matmul(c.matmul(d)) } else { a.matmul(b.matmul(c)).matmul(d) }
        });
    }
    for (name, by) in products() {
        let [a, b, c, d] = matrices.clone();
        bench.peer(name, move || {
            let times = |a: &Array2<f32>, b: &Array2<f32>| product(by, a.view(), b.view(), threads);
            if thin { times(&times(&a, &b), &times(&c, &d)) } else { times(&times(&a, &times(&b, &c)), &d) }
        });
    }
}

pub fn thin(bench: &mut Bench) {
    chain(bench, [10, 1000, 10, 1000, 10], true);
}

pub fn fat(bench: &mut Bench) {
    chain(bench, [1000, 10, 1000, 10, 1000], false);
}
