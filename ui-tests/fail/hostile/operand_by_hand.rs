//~ words: missing: `SEAL` | impl<E: Operand<f32>> Operand<f32>
use typed_dims::pipeline::expr::Operand;
use typed_dims::prelude::*;

dims! {
    struct A;
}

/// An operand without the dims of its elements: there would be more elements than positions.
struct Liar<E>(E);

impl<E: Operand<f32>> Operand<f32> for Liar<E> {
    type Dims = ();
    type Rank = typed_dims::types::rank::Rank0;
    type Expr = E::Expr;

    fn into_expr(self) -> E::Expr {
        self.0.into_expr()
    }
}

fn main() {
    let data = vec![1.0; 64];
    let mut one = vec![0.0; 1];
    one.at_mut(A).assign(Liar(data.at(A)));
}
