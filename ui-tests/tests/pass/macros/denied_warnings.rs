#![deny(warnings, rust_2018_idioms, unused, nonstandard_style, missing_docs)]
//! A module that denies all warnings.

use typed_dims::prelude::*;

dims! {
    /// Words.
    pub struct Seq;
    /// Heads of attention.
    pub struct Heads = 12;
}

#[test]
fn compiles_and_runs() {
    dims!(i, J, unused, n = 3);
    let a = Array2::<f32>::ones((2, 3));
    assert_eq!(a.at((i, J)).sum((i, J)).order(()), 6.0);
    assert_eq!(zeros::<f32, _>((Seq.of(n.size()), Heads)).size(Seq), 3);
}
