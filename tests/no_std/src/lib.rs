//! The main macros, and a little of everything else, in a crate without the standard library. The
//! crate is built for a target that lacks the standard library. The tests run on a target that has
//! it, with the `no_std` build of typed-dims.
//!
//! The crate is not a default member: other packages would enable the library's feature `std` here.

#![no_std]
#![deny(warnings)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
// ndarray's `array!` needs `vec!` in scope.
use alloc::vec;
use alloc::vec::Vec;
use typed_dims::ndarray::{Array1, Array2, Array3, ArrayView2, array};
use typed_dims::prelude::*;

dims! {
    /// Positions of a sequence.
    pub struct Token;
    /// Positions that are attended to.
    pub struct Key;
    /// Attention heads.
    pub struct Head = 2;
    /// Features of a position.
    pub struct Width;
}

roles! {
    /// The role of positions in a sequence.
    pub struct Time;
}

/// `softmax(q k / 2) v` for each head, over the keys up to the token's position.
pub fn causal_attention(
    q: &Tensor<f32, (Token, Head, Width)>,
    k: &Tensor<f32, (Key, Head, Width)>,
    v: &Tensor<f32, (Key, Head, Width)>,
) -> Tensor<f32, (Token, Head, Width)> {
    dims!(out);
    let v = v.rename(Width, out);
    attention(q, k, v, Width, Key, 0.5, Token.ge(Key)).rename(out, Width).eval()
}

/// A linear layer, followed by `relu` and a softmax.
pub fn layer(x: &Array2<f32>, weight: &Array2<f32>, bias: &Array1<f32>) -> Array2<f32> {
    dims!(i, j, k);
    let y = (x.at((i, k)) * weight.at((k, j))).sum(k) + bias.at(j);
    y.relu().softmax(j).order((i, j))
}

/// Functions of floats that the standard library would provide.
pub fn functions(x: ArrayView2<'_, f64>) -> Array2<f64> {
    dims!(i, j);
    let x = x.at((i, j));
    (x.sin() + x.exp() + x.abs().sqrt() + x.tanh() + x.powi(3)).order((i, j))
}

/// Results of macros with patterns and indices.
pub fn patterns(a: &Array2<f32>) -> (Array2<f32>, Array2<f32>, Array3<f32>, Array1<f32>) {
    let product = einsum!("ij,kj->ik", a, a);
    let pairs = einsum!(a[i, j] * a[k, j] => [i, k]);
    let folded = rearrange!(a, (n h) w -> n h w, n = 2);
    (
        product,
        tensor!([i, j] => pairs[j, i] + 1.0),
        repeat!(folded, n h w -> n h (w c), c = 2),
        reduce!(a, h w -> w, max),
    )
}

/// Packs two arrays, and unpacks them.
pub fn packed(a: &Array2<f32>) -> Vec<Array2<f32>> {
    let (packed, shape) = pack!([a, a], h *);
    let parts = unpack!(packed, shape, h *);
    assert_eq!(parse_shape!(a, h _).h, a.nrows());
    parts.into_iter().map(|part| part.to_owned()).collect()
}

/// The norm of one example.
#[batched]
pub fn length(x: &Tensor<f32, (Width,)>) -> Tensor<f32, ()> {
    x.norm(Width)
}

/// The text of an error about sizes.
pub fn complaint() -> String {
    let (a, b) = (array![1.0, 2.0], array![1.0, 2.0, 3.0]);
    dims!(i);
    let error = a.at(i).try_order(i).and_then(|_| b.try_at(i).map(|_| ()));
    format!("{}", error.expect_err("the sizes differ"))
}

/// Computes large results. With the feature `std`, dropped results return their memory to a pool;
/// with `rayon`, several threads compute the product.
pub fn large() -> f64 {
    dims!(i = 300, j = 300, k);
    let a = rand::<f64, _>((i, j), 1);
    (&a * (&a).rename(i, k)).sum(j).mean((i, k)).order(())
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use typed_dims::types::role::Role;

    fn numbers<const R: usize>(sizes: [usize; R], step: f32) -> Vec<f32> {
        (0..sizes.iter().product()).map(|at| (at as f32 * step) % 1.7 - 0.8).collect()
    }

    #[test]
    fn attention_is_softmax_and_both_products() {
        let array =
            |step, n| Array3::from_shape_vec((n, 2, 4), numbers([n, 2, 4], step)).expect("the sizes fit");
        let (q, k, v) = (array(0.37, 3), array(0.91, 5), array(0.53, 5));
        let out = causal_attention(
            &q.at((Token, Head, Width)).eval(),
            &k.at((Key, Head, Width)).eval(),
            &v.at((Key, Head, Width)).eval(),
        );
        let out = out.order((Token, Head, Width));
        for ((token, head, at), &found) in out.indexed_iter() {
            let weight = |key: usize| -> f32 {
                let score: f32 = (0..4).map(|w| q[[token, head, w]] * k[[key, head, w]]).sum();
                (0.5 * score).exp()
            };
            let all: f32 = (0..=token).map(weight).sum();
            let expected: f32 = (0..=token).map(|key| weight(key) / all * v[[key, head, at]]).sum();
            assert!((found - expected).abs() < 1e-5, "{found} instead of {expected}");
        }
    }

    #[test]
    fn functions_of_floats_are_those_of_the_standard_library() {
        let x = Array2::from_shape_fn((7, 9), |(i, j)| (i * 9 + j) as f64 / 11.0 - 3.0);
        let expected = x.mapv(|x: f64| x.sin() + x.exp() + x.abs().sqrt() + x.tanh() + x.powi(3));
        for (found, expected) in functions(x.view()).iter().zip(&expected) {
            assert!(
                (found - expected).abs() < 1e-12 * expected.abs().max(1.0),
                "{found} instead of {expected}"
            );
        }
    }

    #[test]
    fn layers_patterns_lists_and_errors() {
        let a = Array2::from_shape_vec((4, 3), numbers([4, 3], 0.41)).expect("the sizes fit");
        let rows = layer(&a, &Array2::eye(3), &Array1::zeros(3));
        for (row, x) in rows.outer_iter().zip(a.outer_iter()) {
            let powers = x.mapv(|x| x.max(0.0).exp());
            row.iter().zip(&powers / powers.sum()).for_each(|(a, b)| assert!((a - b).abs() < 1e-6));
        }

        let (product, shifted, repeated, greatest) = patterns(&a);
        let expected = a.dot(&a.t());
        product.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-6));
        shifted.iter().zip(expected.t()).for_each(|(a, b)| assert!((a - (b + 1.0)).abs() < 1e-6));
        assert_eq!(repeated.dim(), (2, 2, 6));
        assert_eq!(repeated[[1, 0, 3]], a[[2, 1]]);
        assert_eq!(greatest[2], a.column(2).fold(f32::MIN, |most, &x| most.max(x)));

        assert_eq!(packed(&a), [a.clone(), a.clone()]);
        let lengths = length(a.at((Token, Width)).eval());
        assert!((lengths.order(Token)[1] - a.row(1).dot(&a.row(1)).sqrt()).abs() < 1e-6);
        assert!(complaint().contains('i'), "{}", complaint());
        assert_eq!(<Time as Role>::NAMES, ["Time"]);
        assert!((large() - 75.0).abs() < 2.0, "{}", large());
    }
}
