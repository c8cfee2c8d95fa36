//~ words: (D, Col) | D: After<First>
use typed_dims::prelude::*;

dims! { struct Col; }

struct Table<D: AnyDim>
where
    Col: Before<D>,
{
    cells: Tensor<f32, (D, Col)>,
}

fn main() {}
