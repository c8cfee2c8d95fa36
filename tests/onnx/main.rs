//! ONNX's "Dimension Denotation" for models, section by section, and models as typed code.
//! `tests/texts/roles.rs` has the same sections for typed dims. `ui-tests/fail/onnx` and
//! `ui-tests/fail/roles` have programs that must not compile.

#![cfg(feature = "onnx")]

mod dimension_denotation;
mod hostile;
mod models;
#[path = "../mutations/mod.rs"]
mod mutations;
mod python;
mod signatures;

use typed_dims::onnx::{DenotationReport, OnnxModel, proto};

const NCHW: &[(&str, &str)] =
    &[("N", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("8", "DATA_FEATURE"), ("10", "DATA_FEATURE")];

/// A graph with these nodes, one input `x`, and the result `y`.
fn chain(x: &[(&str, &str)], nodes: Vec<proto::NodeProto>) -> proto::GraphProto {
    proto::GraphProto {
        node: nodes,
        name: "chain".to_owned(),
        input: vec![proto::float_tensor("x", x)],
        output: vec![proto::ValueInfoProto { name: "y".to_owned(), r#type: None }],
        ..Default::default()
    }
}

/// The checker's report about a graph.
fn check(graph: proto::GraphProto) -> DenotationReport {
    OnnxModel::from_bytes(proto::model(graph).to_bytes()).unwrap().check_denotations()
}

/// The meaning of the axes of `y` in a graph without mistakes, abbreviated: `N C F`, with `_` for
/// no meaning.
fn meaning(graph: proto::GraphProto) -> String {
    let report = check(graph);
    assert!(report.is_clean(), "{report}");
    short(&report)
}

/// The meaning of the axes of the first output.
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
