//~ words: missing: `SEAL` | Example
use typed_dims::batch::Example;
use typed_dims::types::rank::Rank0;

struct Mine;

/// A value that is not a tensor, as an example of a batch.
impl Example for Mine {
    type Elem = f32;
    type Dims = ();
    type Rank = Rank0;
}

fn main() {}
