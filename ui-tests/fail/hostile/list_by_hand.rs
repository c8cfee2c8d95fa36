//~ words: missing: `SEAL` | impl DimList for Liar
use typed_dims::types::brand::DimInfo;
use typed_dims::types::dim::DimList;
use typed_dims::types::set::{Dims, Keys};

/// A list of dims that differ from those of its type.
struct Liar;

impl DimList for Liar {
    type Brands = ();
    type Sizes = ();
    const KEYS: &'static Keys = <() as Dims>::KEYS;
    const GIVES_SIZE: bool = false;

    fn each<'a>(&'a self, _: impl FnMut(DimInfo<'a>)) {}
}

fn main() {}
