//~ words: missing: `SEAL` | Expected
use typed_dims::prelude::*;
use typed_dims::types::role::Expected;
use typed_dims::types::set::False;

dims! { struct I; }

/// A dim that plays any role.
impl<R, E> Expected<I, R, E> for False {}

fn main() {}
