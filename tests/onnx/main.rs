//! ONNX's "Dimension Denotation" for models, section by section, and models as typed code. For typed dims the same sections are in
//! `tests/texts/roles.rs`; what must not compile is in `ui-tests/fail/onnx` and `ui-tests/fail/roles`.

#![cfg(feature = "onnx")]

mod dimension_denotation;
mod hostile;
mod models;
#[path = "../mutations/mod.rs"]
mod mutations;
mod python;
mod signatures;

use typed_dims::onnx::{DenotationReport, OnnxModel, proto};

/// `NCHW`.
const NCHW: &[(&str, &str)] =
    &[("N", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("8", "DATA_FEATURE"), ("10", "DATA_FEATURE")];

/// A model of some nodes with one input `x`, whose result is `y`.
fn chain(x: &[(&str, &str)], nodes: Vec<proto::NodeProto>) -> proto::GraphProto {
    proto::GraphProto {
        node: nodes,
        name: "chain".to_owned(),
        input: vec![proto::float_tensor("x", x)],
        output: vec![proto::ValueInfoProto { name: "y".to_owned(), r#type: None }],
        ..Default::default()
    }
}

/// What the checker says of a graph.
fn check(graph: proto::GraphProto) -> DenotationReport {
    OnnxModel::from_bytes(proto::model(graph).to_bytes()).unwrap().check_denotations()
}

/// What the axes of `y` mean in a graph without mistakes, in short: `N C F`, with `_` for nothing.
fn meaning(graph: proto::GraphProto) -> String {
    let report = check(graph);
    assert!(report.is_clean(), "{report}");
    short(&report)
}

/// What the axes of the first output mean.
fn short(report: &DenotationReport) -> String {
    let Some(axes) = &report.outputs[0].axes else { return "unknown".to_owned() };
    let letter = |axis: &Option<String>| match axis.as_deref() {
        Some("DATA_BATCH") => "N",
        Some("DATA_CHANNEL") => "C",
        Some("DATA_TIME") => "T",
        Some("DATA_FEATURE") => "F",
        Some("FILTER_IN_CHANNEL") => "I",
        Some("FILTER_OUT_CHANNEL") => "O",
        Some("FILTER_SPATIAL") => "S",
        Some(_) => "?",
        None => "_",
    };
    axes.iter().map(letter).collect::<Vec<_>>().join(" ")
}
