//~ words: is not a tensor that can be in a file | `put_array`
use typed_dims::file::safetensors::SafetensorsWriter;
use typed_dims::prelude::*;

fn main() {
    let a = Array2::<f32>::zeros((2, 3));
    SafetensorsWriter::new().put("a", &a).unwrap();
}
