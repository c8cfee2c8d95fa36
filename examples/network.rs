//! A tensor network: one `einsum!` computes the partition function of magnets on a torus. The path
//! of its contractions is printed.
//!
//! The Ising model on 3 x 3 sites, with periodic boundaries:
//! `Z = sum over all states of e^(beta * sum over pairs of neighbors of s * s')`, where the state
//! `s` of a site is 1 or -1. Each site is a tensor that shares an index with each neighbor. `Z` is
//! the sum over all indices of the product of these tensors.
//!
//! ```text
//! cargo run --example network
//! ```

use typed_dims::einsum_path;
use typed_dims::prelude::*;

/// The tensor of a site: `t[u, r, d, l] = sum over s of m[s, u] m[s, r] m[s, d] m[s, l]`, where `m`
/// times its transpose holds the weights of two neighbors: `e^beta` if they agree, otherwise
/// `e^-beta`.
fn place(beta: f64) -> Array4<f64> {
    let (same, other) = (beta.cosh().sqrt(), beta.sinh().sqrt());
    let m = ndarray::array![[same, other], [same, -other]];
    einsum!("su,sr,sd,sl->urdl", m, m, m, m)
}

/// Nine sites. Neighbors in a row share an index from `a` to `i`, neighbors in a column one from
/// `j` to `r`.
macro_rules! torus {
    ($run:ident, $t:ident) => {
        $run!("jbma,kcnb,laoc,mepd,nfqe,odrf,phjg,qikh,rgli->", $t, $t, $t, $t, $t, $t, $t, $t, $t)
    };
}

fn partition(beta: f64) -> f64 {
    let t = place(beta);
    torus!(einsum, t)
}

fn main() {
    let t = place(0.4);
    println!("{}\n", torus!(einsum_path, t));
    println!("  beta       ln Z");
    for beta in [0.1, 0.2, 0.4, 0.8] {
        println!("{beta:>6} {:>10.6}", partition(beta).ln());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_over_all_states() {
        for beta in [0.0, 0.3, 1.1] {
            let mut expected = 0.0;
            for state in 0..1 << 9 {
                let spin =
                    |y: usize, x: usize| if state >> (y % 3 * 3 + x % 3) & 1 == 1 { 1.0 } else { -1.0 };
                let mut agreement: f64 = 0.0;
                for (y, x) in (0..3).flat_map(|y| (0..3).map(move |x| (y, x))) {
                    agreement += spin(y, x) * (spin(y + 1, x) + spin(y, x + 1));
                }
                expected += (beta * agreement).exp();
            }
            let found = partition(beta);
            assert!((found - expected).abs() < 1e-12 * expected, "{found} instead of {expected}");
        }
    }
}
