//~ words: missing: `SEAL` | Removal
use typed_dims::types::set::{Nothing, True};
use typed_dims::types::set::remove::Removal;

struct Mine;

/// A removal that never reports a dim as missing or named twice.
impl Removal for Mine {
    type Left = ();
    type Had = True;
    type Missing = Nothing;
    type Twice = Nothing;
    type Behind<H> = Mine;
}

fn main() {}
