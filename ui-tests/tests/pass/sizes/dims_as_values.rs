//! A declared dim as a value has the size given by an operand, its type, or `of`.

use typed_dims::ndarray::{Array1, Array2, array};
use typed_dims::prelude::*;

dims! { struct Batch; struct Tok; struct Half; struct Four = 4; }

/// `out[d, ..] = d * x[d, ..]`
fn weighted<D: AnyDim, B: Dims>(x: &Tensor<f32, (D, Rest<B>)>) -> Tensor<f32, (D, Rest<B>)> {
    (x * D::default().cast::<f32>()).eval()
}

fn both<I: AnyDim + Before<O>, O: AnyDim + After<I>>(x: &Tensor<isize, (I, O)>) -> Tensor<isize, (I, O)> {
    (x + I::default() - O::default()).eval()
}

#[test]
fn some_operand_says_the_size() {
    let x = from_vec((Batch.of(2), Tok.of(3)), vec![1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!((&x * Tok.cast::<f32>()).sum(Tok).order(Batch), array![8.0, 17.0]);
    assert_eq!((Tok.cast::<f32>() - &x).order((Batch, Tok)), array![[-1.0, -1.0, -1.0], [-4.0, -4.0, -4.0]]);
    // Only the last operand has sizes.
    assert_eq!((Tok.cast::<f32>() * 2.0 + Batch.cast::<f32>() + &x).sum((Batch, Tok)).order(()), 36.0);
    assert_eq!(select(Tok.eq(0), &x, 0.0).sum((Batch, Tok)).order(()), 5.0);
    assert_eq!(x.dot(Tok.cast::<f32>(), Tok).order(Batch), array![8.0, 17.0]);
    assert_eq!(
        weighted::<Tok, _>(&x.seal(Tok)).unseal().order((Batch, Tok)),
        array![[0.0, 2.0, 6.0], [0.0, 5.0, 12.0]]
    );
}

#[test]
fn two_generic_dims_have_sizes() {
    let x = zeros::<isize, _>((Batch.of(2), Tok.of(2)));
    assert_eq!(both::<Batch, Tok>(&x).order((Batch, Tok)), array![[0, -1], [1, 0]]);
}

#[test]
fn a_type_or_a_value_says_the_size() {
    let expected: Array1<isize> = array![0, 1, 2, 3];
    assert_eq!(Four.order(Four), expected);
    assert_eq!(Tok.of(4).order(Tok), expected);
    assert_eq!((Tok.of(4) * 1 + 0 * Tok).order(Tok), expected);
    let freq = from_vec(Half.of(2), vec![1.0_f32, 0.5]);
    let angles: Array2<f32> = (Tok.of(3).cast::<f32>() * &freq).order((Tok, Half));
    assert_eq!(angles, array![[0.0, 0.0], [1.0, 0.5], [2.0, 1.0]]);
    assert_eq!((&freq).expand(Tok.of(2)).sum(Tok).order(Half), array![2.0, 1.0]);
    dims!(i = 4);
    assert_eq!((i * 1).order(i), expected);
}

#[test]
fn an_operand_that_comes_later_says_the_size() {
    let x = from_vec(Tok.of(3), vec![1.0_f32, 2.0, 3.0]);
    let freq = from_vec(Half.of(2), vec![1.0_f32, 0.5]);
    let open = Tok.cast::<f32>() * &freq;
    assert_eq!((open * &x).sum(Tok).order(Half), array![8.0, 4.0]);
    let renamed = from_vec(Batch.of(3), vec![1.0_f32, 2.0, 3.0]).rename(Batch, Tok);
    assert_eq!((renamed * Tok.cast::<f32>()).sum(Tok).order(()), 8.0);
    let ids = from_vec(Half.of(2), vec![2_usize, 0]);
    assert_eq!((&x).take(Tok, &ids).order(Half), array![3.0, 1.0]);
}
