//~ words: missing: `SEAL` | CompareKeys
use typed_dims::types::brand::CompareKeys;

struct Key;
struct Mine;

/// A result other than less, equal or greater.
impl CompareKeys<Key> for Key {
    type Out = Mine;
}

fn main() {}
