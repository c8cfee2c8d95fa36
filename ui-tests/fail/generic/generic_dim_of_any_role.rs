//~ words: <D as Brand>::Role | Role = Undenoted
use typed_dims::prelude::*;
use typed_dims::types::brand::Brand;
use typed_dims::types::size::Dyn;

dims! { struct Row; }

fn rows<D: AnyDim + Brand<Size = Dyn>>(x: &Tensor<f32, (D,)>) -> Tensor<f32, (Row,)> {
    x.rename(D::default(), Row).eval()
}

fn main() {}
