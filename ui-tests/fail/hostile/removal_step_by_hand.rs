//~ words: missing: `SEAL` | RemoveStep
use typed_dims::types::set::remove::{RemoveStep, Taken};

struct Mine;

/// Claims to remove a dim, but keeps it.
impl<D, H, T> RemoveStep<D, H, T> for Mine {
    type Out = Taken<(H, T)>;
}

fn main() {}
