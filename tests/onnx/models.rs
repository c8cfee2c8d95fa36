//! The models in `models/`, which macros read while tests compile. They are generated here;
//! `ONNX_MODELS=write` rewrites the files.

use typed_dims::onnx::proto::{self, GraphProto, ModelProto};

const IMAGE: &[(&str, &str)] =
    &[("N", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("H", "DATA_FEATURE"), ("W", "DATA_FEATURE")];

/// An image, and scores of its classes.
fn classifier() -> ModelProto {
    proto::model(GraphProto {
        name: "classifier".to_owned(),
        node: vec![
            proto::node("Conv", &["image", "filter"], &["c"]).ints("pads", &[1, 1, 1, 1]),
            proto::node("Relu", &["c"], &["r"]),
            proto::node("GlobalAveragePool", &["r"], &["p"]),
            proto::node("Flatten", &["p"], &["f"]),
            proto::node("Gemm", &["f", "weight"], &["logits"]).int("transB", 1),
        ],
        initializer: vec![weight("filter", &[4, 3, 3, 3]), weight("weight", &[10, 4])],
        // Like older models, it lists a weight among its inputs.
        input: vec![
            proto::float_tensor("image", IMAGE),
            proto::float_tensor("weight", &[("10", ""), ("4", "")]),
        ],
        output: vec![proto::float_tensor("logits", &[("N", "DATA_BATCH"), ("10", "")])],
        ..Default::default()
    })
}

fn weight(name: &str, dims: &[i64]) -> proto::TensorProto {
    let count: i64 = dims.iter().product();
    let raw: Vec<u8> = (0..count).flat_map(|at| (at as f32 / count as f32).to_le_bytes()).collect();
    proto::TensorProto {
        dims: dims.to_vec(),
        data_type: 1,
        name: name.to_owned(),
        raw_data: raw.into(),
        ..Default::default()
    }
}

/// A step of a language model: names that are not identifiers, integers, booleans, two axes of
/// equal size, a number, and a tensor with an unknown number of axes.
fn decoder() -> ModelProto {
    let mut any = proto::float_tensor("hidden", &[]);
    if let Some(proto::TypeProto { value: Some(proto::TypeValue::Tensor(tensor)), .. }) = &mut any.r#type {
        tensor.shape = None;
    }
    proto::model(GraphProto {
        name: "decoder".to_owned(),
        node: vec![proto::node("Custom", &["input.ids", "mask", "type"], &["logits", "hidden", "present.0"])],
        input: vec![
            proto::tensor("input.ids", 7, &[("batch_size", "DATA_BATCH"), ("seq", "DATA_TIME")]),
            proto::tensor("mask", 9, &[("batch_size", ""), ("seq", ""), ("seq", "")]),
            proto::tensor("type", 10, &[]),
        ],
        output: vec![
            proto::tensor("logits", 1, &[("batch_size", ""), ("seq", ""), ("32000", "VOCABULARY")]),
            any,
            proto::tensor("present.0", 16, &[("batch_size", ""), ("past + seq", ""), ("", ""), ("64", "")]),
        ],
        ..Default::default()
    })
}

fn mistaken() -> ModelProto {
    proto::model(GraphProto {
        name: "mistaken".to_owned(),
        node: vec![
            proto::node("Transpose", &["input_in_NCHW"], &["t"]).named("swap").ints("perm", &[0, 2, 1, 3]),
            proto::node("AveragePool", &["t"], &["pooled"]).named("pool").ints("kernel_shape", &[2, 2]),
        ],
        input: vec![proto::float_tensor("input_in_NCHW", IMAGE)],
        output: vec![proto::float_tensor("pooled", &[("N", ""), ("", ""), ("", ""), ("", "")])],
        ..Default::default()
    })
}

/// Strings, which cannot be elements of the library's tensors.
fn strings() -> ModelProto {
    proto::model(GraphProto {
        name: "strings".to_owned(),
        node: vec![proto::node("StringNormalizer", &["text"], &["normal"])],
        input: vec![proto::tensor("text", 8, &[("N", "")])],
        output: vec![proto::tensor("normal", 8, &[("N", "")])],
        ..Default::default()
    })
}

/// Two inputs that no node combines, and whose first axes have different denotations.
fn roles() -> ModelProto {
    proto::model(GraphProto {
        name: "roles".to_owned(),
        node: vec![proto::node("Relu", &["steps"], &["all"]), proto::node("Relu", &["rows"], &["none"])],
        input: vec![
            proto::float_tensor("steps", &[("", "DATA_TIME"), ("4", "")]),
            proto::float_tensor("rows", &[("", "DATA_BATCH"), ("4", "")]),
        ],
        output: vec![proto::float_tensor("all", &[("", ""), ("4", "")])],
        ..Default::default()
    })
}

/// A tensor of each supported element type, and one with many axes.
fn kinds() -> ModelProto {
    let types =
        [("f32", 1), ("u8", 2), ("i8", 3), ("u16", 4), ("i16", 5), ("i32", 6), ("i64", 7), ("bool", 9)];
    let more = [("f16", 10), ("f64", 11), ("u32", 12), ("u64", 13), ("c32", 14), ("c64", 15), ("bf16", 16)];
    let tensor = |(name, number): (&str, i32)| proto::tensor(name, number, &[("N", "")]);
    proto::model(GraphProto {
        name: "kinds".to_owned(),
        node: vec![proto::node("Custom", &["f32"], &["many"])],
        input: types.into_iter().chain(more).map(tensor).collect(),
        output: vec![proto::float_tensor(
            "many",
            &["N", "a", "0", "c", "d", "e", "f"].map(|size| (size, "")),
        )],
        ..Default::default()
    })
}

#[test]
fn the_files_are_these_models() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/onnx/models");
    for (name, model) in [
        ("classifier", classifier()),
        ("decoder", decoder()),
        ("mistaken", mistaken()),
        ("strings", strings()),
        ("roles", roles()),
        ("kinds", kinds()),
    ] {
        let (path, bytes) = (format!("{folder}/{name}.onnx"), model.to_bytes());
        if std::env::var("ONNX_MODELS").is_ok_and(|what| what == "write") {
            std::fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{path}: `ONNX_MODELS=write` rewrites the file");
    }
}
