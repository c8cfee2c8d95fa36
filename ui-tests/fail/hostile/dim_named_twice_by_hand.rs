//~ words: missing: `SEAL` | NamedOnce
use typed_dims::prelude::*;
use typed_dims::types::set::{False, NamedOnce};

dims! { struct I; }

/// A dim that is named twice, but claims not to be.
impl<X> NamedOnce<I, X> for False {}

fn main() {
    let x = ones::<f32, _>(I.of(2));
    let _ = x.sum((I, I));
}
