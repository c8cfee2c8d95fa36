//~ words: `Feat` | DataFeature` | DataTime` is expected
//! A scan along a dim that is not time.

use typed_dims::prelude::*;

dims! {
    pub struct Time: DataTime;
    pub struct Feat: DataFeature;
}

fn scanned(x: &Tensor<f32, (Time, Feat)>) {
    let _ = scan(x, Feat, 0.0, |sum, x| (sum, x.exp().eval()));
}

fn main() {}
