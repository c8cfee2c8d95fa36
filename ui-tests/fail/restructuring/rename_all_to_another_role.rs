//~ words: DataTime | DataFeature
use typed_dims::prelude::*;

dims! {
    struct Row: DataFeature;
    struct Step: DataTime;
    struct Col;
    struct Page;
}

fn renamed(x: Tensor<f32, (Row, Col)>) {
    x.rename_all((Row, Col), (Step, Page));
}

fn main() {
    let _ = renamed;
}
