use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
    struct Heads = 12;
    struct Feat = 64;
}

fn attention(
    q: &Tensor<f32, (Batch, Seq, Heads, Feat)>,
    k: &Tensor<f32, (Batch, Key, Heads, Feat)>,
    v: &Tensor<f32, (Batch, Key, Heads, Feat)>,
) -> Tensor<f32, (Batch, Seq, Heads, Feat)> {
    let scores = (q * k).sum(Feat) * (Feat::SIZE as f32).powf(-0.5);
    (scores.softmax(Key) * v).sum(Key)
}

#[test]
fn compiles_and_runs() {
    let x = ones::<f32, _>((Batch.of(1), Seq.of(2), Heads, Feat));
    let y = x.clone().rename(Seq, Key).eval();
    assert_eq!(attention(&x, &y, &y).size(Seq), 2);
}
