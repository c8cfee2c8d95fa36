//! Calls each macro except the `try_` forms, in a package that imports the library as `td`.

#![deny(warnings)]
#![cfg(all(test, feature = "all"))]

use td::einsum_path;
use td::ndarray::array;
use td::prelude::*;

/// The library's usual name, used for something else.
mod typed_dims {
    pub fn two() -> usize {
        2
    }
}

dims! {
    struct Rows;
    struct Columns = 2;
}

roles! {
    struct Time;
}

#[derive(Load, Parameters)]
struct Layer {
    #[load(axes = (Rows, Columns))]
    weight: Tensor<f32, (Rows, Columns)>,
}

mod classifier {
    td::onnx_dims!("../onnx/models/classifier.onnx", image: [use super::Rows, _, _, _]);
}

#[batched]
fn doubled(x: &Tensor<f64, (Rows,)>) -> Tensor<f64, (Rows,)> {
    (x * 2.0).eval()
}

#[test]
fn every_macro_finds_the_library() {
    let a = array![[1.0, 2.0], [3.0, 4.0]];
    dims!(i, j);
    assert_eq!(a.at((i, j)).order((j, i)), a.t());
    let x = a.at((Rows, Columns)).eval();
    assert_eq!(doubled(&x).order((Rows, Columns)), &a * 2.0);
    assert_eq!(rearrange!(a, h w -> w h), a.t());
    assert_eq!(rearrange!([&a, &a], n h w -> (n h) w).dim(), (4, 2));
    assert_eq!(rearrange_view!(a, h w -> (h w)).len(), 4);
    assert_eq!(reduce!(a, h w -> h, max), array![2.0, 4.0]);
    assert_eq!(repeat!(a, h w -> h w c, c = crate::typed_dims::two()).dim(), (2, 2, 2));
    assert_eq!(einsum!("ij,jk->ik", a, a), a.dot(&a));
    assert_eq!(einsum!(a[i, j] * a[j, k] => [i, k]), a.dot(&a));
    assert_eq!(einsum_path!("ij,jk,kl->il", a, a, a).steps.len(), 2);
    assert_eq!(tensor!([i, j] => a[j, i] + typed_dims::two() as f64), &a.t() + 2.0);
    assert_eq!(gather!(a[_ f], array![1_usize][b] => b f), array![[3.0, 4.0]]);
    let (packed, shape) = pack!([a, a], h *);
    let [one, _] = unpack!(packed, shape, h *);
    assert_eq!(one, a);
    assert_eq!(parse_shape!(a, h _).h, 2);
    assert_eq!(<Time as td::types::role::Role>::NAMES, ["Time"]);
    let layer = Layer { weight: x.cast::<f32>().eval() };
    assert_eq!(layer.names(), ["weight"]);
    let outputs = classifier::Outputs::from_arrays((Array2::zeros((2, 10)),));
    assert_eq!(outputs.logits.size(Rows), 2);
}
