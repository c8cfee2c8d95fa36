//~ words: missing: `SEAL` | RemoveStep
use typed_dims::types::set::remove::{RemoveStep, Taken};

struct Mine;

/// What removes a dim, and leaves it where it is.
impl<D, H, T> RemoveStep<D, H, T> for Mine {
    type Out = Taken<(H, T)>;
}

fn main() {}
