//~ words: cannot find value `feet` | feat
use typed_dims::prelude::*;

fn main() {
    dims!(feat);
    let a = Array1::<f32>::zeros(3);
    a.at(feat).sum(feet);
}
