//~ words: missing: `SEAL` | Bool
use typed_dims::types::brand::Brand;
use typed_dims::types::set::{Bool, MaybeDim, Nothing, True};

struct Mine;

/// Neither `True` nor `False`: no dim would ever violate a condition.
impl Bool for Mine {
    const VALUE: bool = false;
    type If<Y, N> = N;
    type Pick<Y: Brand, N: Brand> = N;
    type OrNothing<Y: MaybeDim> = Nothing;
    type And<V: Bool> = True;
    type Or<V: Bool> = True;
    type Implies<V: Bool> = True;
    type Differs<V: Bool> = True;
    type Not = True;
}

fn main() {}
