//~ words: missing: `SEAL` | SameSize
use typed_dims::types::size::SameSize;

struct Mine;

/// A size that equals any other size.
impl<Other, Old, New> SameSize<Other, Old, New> for Mine {}

fn main() {}
