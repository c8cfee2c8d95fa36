//~ words: SEAL
use typed_dims::types::dim::InAnyThread;
use typed_dims::prelude::*;
use typed_dims::types::set::False;

dims! {
    struct Row;
}

impl InAnyThread<Row> for False {}

fn main() {}
