//~ words: the dims `(Column,)` are left over
use typed_dims::file::safetensors::SafetensorsWriter;
use typed_dims::prelude::*;

dims! { struct Row; struct Column; }

fn main() {
    let x = ones::<f32, _>((Row.of(2), Column.of(3)));
    SafetensorsWriter::new().put_as("x", &x, Row).unwrap();
}
