//~ words: missing: `SEAL` | Satisfies
use typed_dims::types::set::{Satisfies, True};

struct Always;
struct Mine;

/// A condition on dims that its author claims to hold.
impl Satisfies<Always> for Mine {
    type Holds = True;
}

fn main() {}
