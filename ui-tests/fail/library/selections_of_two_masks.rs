//~ words: f32 | m<'_>
use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn mixed(x: &Tensor<f32, (Seq,)>, a: &Tensor<bool, (Seq,)>, b: &Tensor<bool, (Seq,)>) -> f32 {
    dims!(n, m);
    let (of_a, of_b) = (x.masked_select(a, Seq, n), x.masked_select(b, Seq, m));
    (of_a * of_b).sum(n).order(())
}

fn main() {
    let _ = mixed;
}
