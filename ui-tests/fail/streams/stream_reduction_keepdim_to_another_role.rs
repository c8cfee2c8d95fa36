//~ words: has the role | DataTime | `One`
//! The kept dim must have the role of the reduced one.

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
