#![forbid(unsafe_code)]

use typed_dims::prelude::*;

dims! {
    struct Seq;
}

#[test]
fn compiles_and_runs() {
    dims!(i);
    let a = Array2::<f32>::ones((2, 3));
    assert_eq!(a.at((i, Seq)).sum((i, Seq)).order(()), 6.0);
}
