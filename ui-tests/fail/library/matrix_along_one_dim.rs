//~ words: a vector has one axis, a matrix has two
use typed_dims::nalgebra::DMatrix;
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn main() {
    let x = zeros::<f32, _>(Seq.of(3));
    let _: DMatrix<f32> = x.into_matrix(Seq);
}
