//~ words: missing: `SEAL` | AndThen
use typed_dims::types::set::remove::AndThen;

struct Mine;

/// What goes on after a dim was removed, and removes no further one.
impl<T, S> AndThen<T, S> for Mine {
    type Out = Mine;
}

fn main() {}
