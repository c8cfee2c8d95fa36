//~ words: (In, Out) | in order of declaration
use typed_dims::file::{FileError, safetensors};
use typed_dims::prelude::*;

dims! {
    struct Out;
    struct In;
}

fn weights(bytes: &[u8]) -> Result<(), FileError> {
    let file = safetensors::SafetensorsReader::new(bytes)?;
    let w = file.get("w")?.load::<f32, (In, Out)>()?;
    println!("{w}");
    Ok(())
}

fn main() {
    weights(&[]).unwrap();
}
