//~ words: SEAL
use typed_dims::dim::InAnyThread;
use typed_dims::prelude::*;
use typed_dims::set::False;

dims! {
    struct Row;
}

impl InAnyThread<Row> for False {}

fn main() {}
