//~ words: expected `InLine`, found `Seal`
// Only the library may read an element of an expression: nothing checks the position.

use typed_dims::pipeline::expr::{Expr, Operand};
use typed_dims::prelude::*;

dims! { struct Batch; }

fn main() {
    let x = ones::<f32, _>(Batch.of(2));
    let expr = Operand::<f32>::into_expr(&x);
    expr.nth(<() as Dims>::SEAL);
}
