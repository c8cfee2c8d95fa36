//~ words: call to unsafe function
// Reading from the memory of an expression is `unsafe`: nothing checks the offset.

use typed_dims::pipeline::expr::{Expr, Operand};
use typed_dims::prelude::*;

dims! { struct Batch; }

fn main() {
    let x = ones::<f32, _>(Batch.of(2));
    let expr = Operand::<f32>::into_expr(&x);
    let (elements, _) = expr.memory();
    elements.nth(1 << 30);
}
