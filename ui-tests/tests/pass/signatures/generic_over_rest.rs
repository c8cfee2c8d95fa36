use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Feat;
}

fn norm<B: Dims>(
    x: Tensor<f32, (Seq, Feat, Rest<B>)>,
    g: Tensor<f32, (Feat,)>,
) -> Tensor<f32, (Seq, Rest<B>)> {
    (x * g).sum(Feat)
}

#[test]
fn compiles_and_runs() {
    let _ = (norm::<()>, norm::<(Batch,)>);
}
