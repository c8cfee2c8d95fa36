//~ words: has the role | DataChannel | `Step`
//! A broadcast dim keeps its role.

use typed_dims::prelude::*;

dims! {
    pub struct One: DataChannel = 1;
    pub struct Step: DataTime;
    pub struct Feat;
}

fn wide(x: &Stream<f32, (One, Feat), Feat>) {
    let _ = x.broadcast(One, Step.of(4));
}

fn main() {}
