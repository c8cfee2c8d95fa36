//~ words: `Seq` | not bound | Rest<B>
use typed_dims::prelude::*;

dims! {
    struct Seq;
    struct Feat;
}

fn total<B: Dims>(x: Tensor<f32, (Feat, Rest<B>)>) {
    x.sum(Seq);
}

fn main() {
    let _ = total::<(Seq,)>;
}
