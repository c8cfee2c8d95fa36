//~ words: missing: `SEAL` | Removal
use typed_dims::types::set::Nothing;
use typed_dims::types::set::remove::Removal;

struct Mine;

/// A removal that never reports a dim as missing or named twice.
impl Removal for Mine {
    type Left = ();
    type Missing = Nothing;
    type Twice = Nothing;
}

fn main() {}
