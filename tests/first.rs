#![allow(missing_docs)]

use ndarray::array;
use typed_dims::prelude::*;

fn mm(a: &Array2<f32>, b: &Array2<f32>) -> Array2<f32> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

#[test]
fn matmul() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    let b = array![[1.0, 0.5], [0.0, 1.0]];
    assert_eq!(mm(&a, &b), a.dot(&b));
}

fn pixel_shuffle(img: &Array4<f32>, r: usize) -> Array4<f32> {
    dims!(b, c, h, w, h2 = r, w2 = r);
    img.at((b, (c, h2, w2), h, w)).order((b, c, (h, h2), (w, w2)))
}
#[test]
fn shuffle() {
    let x = Array4::from_shape_fn((1, 4, 2, 3), |(_, c, h, w)| (c * 100 + h * 10 + w) as f32);
    let y = pixel_shuffle(&x, 2);
    assert_eq!(y.shape(), [1, 1, 4, 6]);
    assert_eq!(y[[0, 0, 1, 2]], 201.0);
}
fn triu(a: &Array2<f32>) -> Array2<f32> {
    dims!(i, j);
    select(i.le(j), a.at((i, j)), 0.0).order((i, j))
}
fn embedding_bag(ids: &Array2<usize>, w: &Array2<f32>) -> Array2<f32> {
    dims!(batch, seq, feat);
    w.at((ids.at((batch, seq)), feat)).sum(seq).order((batch, feat))
}
fn conv2d(x: &Array4<f32>, w: &Array4<f32>) -> Array4<f32> {
    dims!(b, c, o, h, y, kh, kw);
    let w = w.at((o, c, kh, kw));
    (x.at((b, c, h + kh, y + kw)) * w).sum((c, kh, kw)).order((b, o, h, y))
}
#[test]
fn values() {
    assert_eq!(triu(&array![[1., 2.], [3., 4.]]), array![[1., 2.], [0., 4.]]);
    assert_eq!(embedding_bag(&array![[0, 2]], &array![[1., 2.], [3., 4.], [5., 6.]]), array![[6., 8.]]);
    let x = Array4::ones((1, 2, 4, 5));
    let y = conv2d(&x, &Array4::ones((3, 2, 3, 3)));
    assert_eq!(y, Array4::from_elem((1, 3, 2, 3), 18.0));
    let a = array![1, 2, 3, 4, 5];
    dims!(i);
    assert_eq!(a.at(2 * i + 1).order(i), array![2, 4]);
    dims!(j);
    assert_eq!(a.at(a.len() - 1 - j).order(j), array![5, 4, 3, 2, 1]);
    dims!(k = 5);
    let d = select((k - 1).ge(0), a.at(k) - a.at(k - 1), a.at(k)).order(k);
    assert_eq!(d.shape(), [5]);
    assert_eq!(d, array![1, 1, 1, 1, 1]);
    assert!(a.at(k - 1).try_order(k).is_err());
}
dims! {
    /// Examples
    pub struct Batch;
    pub struct Seq;
    pub struct Key;
    pub struct Heads = 12;
    pub struct Feat = 64;
}
fn attention(
    q: &Tensor<f32, (Batch, Seq, Heads, Feat)>,
    k: &Tensor<f32, (Batch, Key, Heads, Feat)>,
    v: &Tensor<f32, (Batch, Key, Heads, Feat)>,
) -> Tensor<f32, (Batch, Seq, Heads, Feat)> {
    let scores = (q * k).sum(Feat) * (Feat::SIZE as f32).powf(-0.5);
    (scores.softmax(Key) * v).sum(Key)
}
fn norm<B: Dims>(
    x: Tensor<f32, (Seq, Feat, Rest<B>)>,
    g: Tensor<f32, (Feat,)>,
) -> Tensor<f32, (Seq, Rest<B>)> {
    (x * g).sum(Feat)
}
fn gmm<B: Dims>(
    a: Tensor<f32, (Rest<B>,), U2>,
    b: Tensor<f32, (Rest<B>,), U2>,
) -> Tensor<f32, (Rest<B>,), U2> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}
#[test]
fn generic() {
    let _ = (attention as fn(&_, &_, &_) -> _, norm::<(Batch,)>, gmm::<(Batch,)>);
}
