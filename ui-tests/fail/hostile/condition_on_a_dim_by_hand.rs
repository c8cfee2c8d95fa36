//~ words: missing: `SEAL` | Satisfies
use typed_dims::set::{Satisfies, True};

struct Mine;

/// A condition on dims, of which its author says that all satisfy it.
impl<C> Satisfies<C> for Mine {
    type Holds = True;
}

fn main() {}
