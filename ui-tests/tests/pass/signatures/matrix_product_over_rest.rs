use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Heads = 12;
}

fn mm<B: Dims>(
    a: Tensor<f32, (Rest<B>,), U2>,
    b: Tensor<f32, (Rest<B>,), U2>,
) -> Tensor<f32, (Rest<B>,), U2> {
    dims!(i, j, k);
    (a.at((i, k)) * b.at((k, j))).sum(k).order((i, j))
}

#[test]
fn compiles_and_runs() {
    let _ = (mm::<()>, mm::<(Batch,)>, mm::<(Batch, Heads)>);
}
