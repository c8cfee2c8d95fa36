//! The second model uses the dim `Picture` of the first.

use typed_dims::prelude::*;

mod first {
    typed_dims::onnx_dims!("../tests/onnx/models/classifier.onnx", image: [Picture, _, _, _]);
}
mod second {
    typed_dims::onnx_dims!("../tests/onnx/models/classifier.onnx", image: [use super::first::Picture, _, _, _], logits: [_, Class]);
}

fn best_of_both(one: first::Outputs, other: second::Outputs) -> Tensor<bool, (first::Picture,)> {
    one.logits.max(first::LogitsAxis1).lt(other.logits.max(second::Class)).eval()
}

#[test]
fn compiles_and_runs() {
    let one = first::Outputs::from_arrays((Array2::zeros((2, 10)),));
    let other = second::Outputs::from_arrays((Array2::ones((2, 10)),));
    assert_eq!(best_of_both(one, other).order(first::Picture).to_vec(), [true, true]);
}
