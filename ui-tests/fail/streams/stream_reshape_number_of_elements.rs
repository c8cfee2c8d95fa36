//~ words: `(Two, Five)` and `(Three, Four)` do not have the same number
//! Twelve elements cannot become ten.

use typed_dims::prelude::*;

dims! {
    pub struct Two = 2;
    pub struct Three = 3;
    pub struct Four = 4;
    pub struct Five = 5;
}

fn ten(x: &Stream<f32, (Three, Four), Four>) {
    let _ = x.reshape((Two, Five));
}

fn main() {}
