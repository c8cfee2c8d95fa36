use typed_dims::prelude::*;

dims! {
    struct Seq;
}

fn exp<S: Dims>(x: Named<f32, S>) -> Named<f32, S> {
    x.exp().eval()
}

#[test]
fn compiles_and_runs() {
    let x = ones::<f32, _>(Seq.of(2));
    assert_eq!(exp(x).size(Seq), 2);
}
