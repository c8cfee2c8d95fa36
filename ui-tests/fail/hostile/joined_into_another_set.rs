//~ words: private
use typed_dims::operators::join::{Joinable, Side};
use typed_dims::prelude::*;

dims! {
    struct Row;
    struct Col;
}

fn joined(x: &Tensor<f32, (Row,)>) {
    let side: Side<'_, (Row, Col)> = Side { new: true };
    let _ = [x, x].joined(side);
}

fn main() {
    let _ = joined;
}
