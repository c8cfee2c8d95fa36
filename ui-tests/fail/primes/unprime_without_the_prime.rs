//~ words: dimension `Prime<Row>` is not bound | (Row, Col)
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
}

fn main() {
    let x = ones::<f32, _>((Row.of(2), Col.of(2)));
    println!("{}", x.unprime(Row));
}
