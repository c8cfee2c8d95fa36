use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Feat;
}

fn first(x: Tensor<f32, (Batch, Seq, Feat)>) -> Tensor<f32, (Feat, Seq, Batch)> {
    x
}

fn second(x: Tensor<f32, (Seq, Feat, Batch)>) -> Tensor<f32, (Batch, Seq, Feat)> {
    first(x)
}

fn third<B: Dims>(x: Tensor<f32, (Rest<B>, Seq, Batch)>) -> Tensor<f32, (Batch, Rest<B>, Seq)> {
    x
}

#[test]
fn compiles_and_runs() {
    let x = ones::<f32, _>((Feat.of(2), Batch.of(3), Seq.of(4)));
    assert_eq!(second(x).order((Batch, Seq, Feat)).shape(), [3, 4, 2]);
    let _ = third::<(Feat,)>;
}
