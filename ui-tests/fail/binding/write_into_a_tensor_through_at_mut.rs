//~ words: is not an array whose axes can be bound
use typed_dims::prelude::*;

dims! { struct Row; struct Column; }

fn main() {
    let mut x = zeros::<f32, _>((Row.of(2), Column.of(3)));
    x.at_mut((Row, Column)).assign(1.0);
}
