//~ words: missing: `SEAL` | impl AsTensor for Liar
use typed_dims::prelude::*;
use typed_dims::types::rank::Rank0;
use typed_dims::pipeline::storage::Evaluated;
use typed_dims::tensors::tensor::NamedOf;

dims! {
    struct A;
}

/// A tensor whose elements may be those of another tensor.
struct Liar(Tensor<f32, (A,)>);

impl AsTensor for Liar {
    type Elem = f32;
    type Dims = (A,);
    type Rank = Rank0;
    type Expr = Evaluated<f32, (A,)>;

    fn into_named(self) -> NamedOf<Self> {
        self.0
    }
}

fn main() {}
