//! The readers of files as a fuzz target: safetensors, npy, npz and ONNX. For any bytes, a reader
//! must return a value or an error with a reason.
//!
//! The first byte of an input says whether the others are a file, or changes to a valid file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use typed_dims::file::{npy, npz, safetensors};
use typed_dims::onnx::OnnxModel;
use typed_dims::prelude::*;

#[path = "../tests/files/every_reader.rs"]
mod every_reader;

dims! {
    struct Out;
    struct In = 3;
}

/// Valid files: at least one of each kind.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let counted = || from_fn((Out.of(2), In), |(row, column)| (row * 3 + column) as f32);
    let mut many = safetensors::SafetensorsWriter::new();
    many.put("w", counted()).unwrap().put("flag", full(Out.of(3), true)).unwrap();
    let (mut stored, mut packed) = (npz::NpzWriter::new(), npz::NpzWriter::compressed());
    stored.put("w", counted()).unwrap();
    packed.put("w", counted()).unwrap();
    let mut files = vec![
        many.to_bytes().unwrap(),
        npy::to_bytes(counted()).unwrap(),
        stored.into_bytes().unwrap(),
        packed.into_bytes().unwrap(),
    ];
    for model in [
        &include_bytes!("../tests/onnx/models/classifier.onnx")[..],
        include_bytes!("../tests/onnx/models/decoder.onnx"),
        include_bytes!("../tests/onnx/models/mistaken.onnx"),
    ] {
        files.push(model.to_vec());
    }
    files
});

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let files = &*FILES;
    match files.get(usize::from(first)) {
        Some(file) => try_all(&changed(file, rest)),
        None => try_all(rest),
    }
});

/// Applies changes to a file. Each change is four bytes: two for the position, one for the kind of
/// change, and one for the value or the length.
fn changed(file: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for change in changes.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (file.len() + 1);
        let (what, with) = (change[2], change[3]);
        let end = (at + usize::from(with)).min(file.len());
        match what % 6 {
            0 if at < file.len() => file[at] = with,
            1 if at < file.len() => file[at] ^= 1 << (with % 8),
            2 => file.insert(at, with),
            3 => drop(file.drain(at..end)),
            4 => {
                let part = file[at..end].to_vec();
                file.splice(at..at, part);
            }
            _ => file.truncate(at),
        }
    }
    file
}

fn try_all(bytes: &[u8]) {
    every_reader::try_all(bytes);
    if let Ok(model) = OnnxModel::from_bytes(bytes.to_vec()) {
        let show = |tensors: Vec<_>| tensors.iter().map(ToString::to_string).collect::<Vec<String>>();
        let _ = (model.inputs().map(show), model.outputs().map(show));
        let _ = model.check_denotations().to_string();
    }
}
