//~ words: has the role | DataTime | `One`
//! What is left of a dim that is reduced means what the dim did.

use typed_dims::prelude::*;

dims! {
    pub struct One: DataChannel = 1;
    pub struct Step: DataTime;
    pub struct Feat;
}

fn total(x: &Stream<f32, (Step, Feat), Step>) {
    let _ = x.sum_keepdim(Step, One);
}

fn main() {}
