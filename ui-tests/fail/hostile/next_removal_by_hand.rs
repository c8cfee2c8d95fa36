//~ words: missing: `SEAL` | AndThen
use typed_dims::types::set::remove::AndThen;

struct Mine;

/// Continues after the removal of a dim, but removes no further dims.
impl<T, S> AndThen<T, S> for Mine {
    type Out = Mine;
}

fn main() {}
