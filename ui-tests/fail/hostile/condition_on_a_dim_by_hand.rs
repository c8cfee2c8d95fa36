//~ words: missing: `SEAL` | Satisfies
use typed_dims::set::{Satisfies, True};

struct Always;
struct Mine;

/// A condition on dims, of which its author says that it holds.
impl Satisfies<Always> for Mine {
    type Holds = True;
}

fn main() {}
