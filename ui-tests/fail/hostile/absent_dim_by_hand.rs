//~ words: missing: `SEAL` | MaybeDim
use typed_dims::types::set::{MaybeDim, True};

struct Mine;

/// A dim that violates a condition, but claims to be `Nothing`.
impl MaybeDim for Mine {
    type IsMissing = True;
    type Or<Next: MaybeDim> = Next;
    type Role = ();
}

fn main() {}
