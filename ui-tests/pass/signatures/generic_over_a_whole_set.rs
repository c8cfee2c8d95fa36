use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn doubled<S: Dims>(x: Named<f32, S>) -> Named<f32, S> {
    (&x + &x).eval()
}

fn main() {
    let x = ones::<f32, _>(Seq.of(2));
    assert_eq!(doubled(x).size(Seq), 2);
}
