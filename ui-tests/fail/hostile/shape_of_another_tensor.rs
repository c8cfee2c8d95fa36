//~ words: function takes 2 arguments
use typed_dims::__private::pattern::input::{Input, Values};
use typed_dims::prelude::*;

dims! { struct Batch; }

/// A shape that does not belong to the operands would let a kernel read out of bounds.
fn main() {
    let big = ones::<u8, _>(Batch.of(1 << 26));
    let _ = Values::shape::<(Batch,)>(&Input::values(&big));
}
