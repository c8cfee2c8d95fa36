//! Truncated and invalid files give an error or a report, never a panic.

use super::{NCHW, chain, check, mutations};
use typed_dims::onnx::proto::{self, GraphProto, NodeProto, float_tensor, node, tensor};
use typed_dims::onnx::{OnnxModel, OnnxSize};

const CLASSIFIER: &[u8] = include_bytes!("models/classifier.onnx");
const DECODER: &[u8] = include_bytes!("models/decoder.onnx");
const MISTAKEN: &[u8] = include_bytes!("models/mistaken.onnx");

fn try_all(bytes: &[u8]) {
    if let Ok(model) = OnnxModel::from_bytes(bytes.to_vec()) {
        let _ = (model.inputs().map_err(|error| error.to_string()), model.outputs());
        let _ = model.check_denotations().to_string();
    }
}

fn refused(bytes: &[u8]) -> String {
    let error = OnnxModel::from_bytes(bytes.to_vec()).unwrap_err().to_string();
    assert!(error.len() < 400, "{error}");
    error
}

fn samples() -> Vec<Vec<u8>> {
    [CLASSIFIER, DECODER, MISTAKEN].map(<[u8]>::to_vec).to_vec()
}

#[test]
fn files_that_are_cut_off_anywhere() {
    mutations::cut_off(&samples(), try_all);
    for file in samples() {
        assert!(refused(&file[..file.len() - 1]).starts_with("this is not an ONNX model: "));
    }
    assert_eq!(refused(b""), "this is not an ONNX model: it has no graph");
    refused(b"PK\x03\x04 not a model");
}

#[test]
fn files_with_a_wrong_byte() {
    mutations::wrong_bytes(
        &samples(),
        |byte| [0x01, 0x02, 0x10, 0x80, 0xff].map(|change| byte ^ change),
        try_all,
    );
}

#[test]
fn random_changes() {
    // Small and endless lengths, and field tags.
    let words: [&[u8]; 7] = [&[0], &[1], &[0x7f], &[0x80], &[0xff; 9], &[0x0a], &[0x3a]];
    mutations::random_changes(&samples(), &words, try_all);
}

#[test]
fn lengths_that_the_file_does_not_have() {
    // A graph, a name or a list that claims more bytes than there are.
    for field in [0x3a, 0x12, 0x42] {
        for length in [
            &[0x7f][..],
            &[0xff, 0xff, 0xff, 0xff, 0x07],
            &[0xff; 10],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ] {
            refused(&[&[field][..], length].concat());
        }
    }
}

/// A node or a name takes much more memory than its bytes in the file. Files with millions of such
/// parts are refused before they are decoded.
#[test]
fn files_with_more_parts_than_any_model() {
    let field = |number: u8, content: &[u8]| {
        let mut all = vec![number << 3 | 2];
        let mut length = content.len();
        while length >= 0x80 {
            all.push(length as u8 | 0x80);
            length >>= 7;
        }
        all.push(length as u8);
        all.extend_from_slice(content);
        all
    };
    let count = 2_000_100;
    let nodes = field(7, &[0x0a, 0x00].repeat(count));
    let inputs = field(7, &field(1, &[0x0a, 0x00].repeat(count)));
    let options = field(7, &field(1, &[0x2a, 0x00].repeat(count)));
    let axes = field(7, &field(11, &field(2, &field(1, &field(2, &[0x0a, 0x00].repeat(count))))));
    // After a field that the reader skips.
    let hidden = field(7, &[&[0x1b, 0x1c][..], &[0x0a, 0x00].repeat(count)].concat());
    for file in [hidden, nodes, inputs, options, axes] {
        assert_eq!(
            refused(&file),
            "this is not an ONNX model: it has more than 2000000 nodes, names, attributes, weights, types and axes"
        );
    }
    // The bytes of weights are not counted.
    let mut graph = chain(NCHW, Vec::new());
    graph
        .initializer
        .push(proto::TensorProto { raw_data: vec![0x0a; 8_000_000].into(), ..Default::default() });
    assert!(OnnxModel::from_bytes(proto::model(graph).to_bytes()).is_ok());
}

#[test]
fn names_that_are_no_text() {
    let mut graph = chain(NCHW, Vec::new());
    graph.input[0].name = "Q".repeat(8);
    let bytes = proto::model(graph).to_bytes();
    let at = bytes.windows(8).position(|window| window == b"QQQQQQQQ").unwrap();
    let mut wrong = bytes.clone();
    wrong[at] = 0xff;
    assert!(refused(&wrong).contains("UTF-8"), "{}", refused(&wrong));
    // Text with terminal control characters is escaped, and long text is truncated.
    let name = |name: &str| {
        let model = OnnxModel::from_proto(proto::model(GraphProto {
            input: vec![float_tensor(name, &[("NaN", "NaN")])],
            ..Default::default()
        }));
        model.unwrap().inputs().unwrap()[0].to_string()
    };
    assert_eq!(name("\u{1b}[2J\u{202e}x\n"), "\\u{1b}[2J\\u{202e}x\\u{a}: f32[NaN: NaN]");
    assert!(name(&"long".repeat(1 << 16)).len() < 100);
}

#[test]
fn graphs_that_are_nested() {
    let nested = |depth: usize| {
        let inner = (0..depth).fold(chain(&[], vec![node("Relu", &["x"], &["y"])]), |graph, _| {
            chain(&[], vec![node("If", &["c"], &["y"]).graph("then_branch", graph)])
        });
        proto::model(inner).to_bytes()
    };
    try_all(&nested(30));
    assert!(refused(&nested(40)).contains("recursion limit"));
    // Far deeper, with lengths that do not fit the content.
    let deep = |depth| {
        [0x3a, 0x7f]
            .into_iter()
            .chain([0x0a, 0x7e, 0x2a, 0x7c, 0x32, 0x7a].repeat(depth))
            .collect::<Vec<u8>>()
    };
    refused(&deep(100_000));
    refused(&[0x3a, 0x7f].repeat(100_000));
}

#[test]
fn sizes_that_no_array_has() {
    let read = |axes: &[(&str, &str)]| {
        let model = OnnxModel::from_proto(proto::model(chain(axes, Vec::new()))).unwrap();
        model.inputs().map_err(|error| error.to_string())
    };
    for (axes, why) in [
        (&[("-2", "")][..], "the tensor `x` has the size -2 along axis 0"),
        (&[("9223372036854775807", "")], "the tensor `x` has more elements than memory can hold"),
        (&[("4294967296", ""), ("4294967296", "")], "the tensor `x` has more elements than memory can hold"),
        (&[("0", ""), ("9223372036854775807", "")], "the tensor `x` has more elements than memory can hold"),
        (&[("1", ""); 27], "the tensor `x` has 27 axes, but at most 26 are supported"),
    ] {
        assert_eq!(read(axes).unwrap_err(), why);
    }
    assert_eq!(read(&[("-1", "")]).unwrap()[0].axes.as_ref().unwrap()[0].size, OnnxSize::Unknown);
    let elements = |number: i32| {
        let graph = GraphProto { input: vec![tensor("x", number, &[])], ..Default::default() };
        OnnxModel::from_proto(proto::model(graph)).unwrap().inputs().map_err(|error| error.to_string())
    };
    assert!((1..=16).filter(|number| *number != 8).all(|number| elements(number).is_ok()));
    assert_eq!(elements(8).unwrap_err(), "the tensor `x` has strings as elements, which are not supported");
    assert_eq!(elements(0).unwrap_err(), "the tensor `x` has elements of an undefined type");
    assert!(elements(-1).is_err() && elements(17).is_err() && elements(i32::MAX).is_err());
}

#[test]
fn what_is_no_tensor() {
    use proto::{OtherType, TypeProto, TypeValue, ValueInfoProto};
    for value in [
        None,
        Some(TypeValue::Sequence(OtherType {})),
        Some(TypeValue::Map(OtherType {})),
        Some(TypeValue::Sparse(OtherType {})),
        Some(TypeValue::Optional(OtherType {})),
    ] {
        let input = ValueInfoProto {
            name: "x".to_owned(),
            r#type: Some(TypeProto { value, denotation: String::new() }),
        };
        let graph = GraphProto { input: vec![input], ..Default::default() };
        let model = OnnxModel::from_bytes(proto::model(graph).to_bytes()).unwrap();
        assert!(model.inputs().is_err());
        assert!(model.check_denotations().is_clean());
    }
}

/// Graphs in which a list or the number of axes grows exponentially, and huge shapes and axes: the
/// checker stops at some length, or reports a broken node.
#[test]
fn graphs_that_ask_for_much() {
    let doubled = |operator: fn(&str, &str) -> NodeProto, first: &str| {
        let names: Vec<String> = (0..80).map(|at| format!("{first}{at}")).collect();
        names.windows(2).map(|names| operator(&names[0], &names[1])).collect::<Vec<_>>()
    };
    let mut list = chain(&[], doubled(|x, y| node("Concat", &[x, x], &[y]).int("axis", 0), "list"));
    list.initializer.push(proto::integers("list0", &[1, 2, 3]));
    assert!(check(list).is_clean());
    let many = chain(&[("2", "")], vec![node("Concat", &["x"; 300_000], &["y"]).int("axis", 0)]);
    assert!(check(many).is_clean());
    let mut axes = chain(&[("2", ""), ("2", "")], doubled(|x, y| node("Gather", &[x, x], &[y]), "x"));
    axes.input[0].name = "x0".to_owned();
    assert!(check(axes).is_clean());
    let mut shape = chain(
        NCHW,
        vec![node("Reshape", &["x", "shape"], &["y"]), node("ConstantOfShape", &["shape"], &["z"])],
    );
    shape.initializer.push(proto::integers("shape", &[i64::MAX; 200]));
    let _ = check(shape).to_string();
    let mut unsqueezed =
        chain(NCHW, vec![node("Unsqueeze", &["x"], &["y"]).ints("axes", &[i64::MAX, i64::MIN])]);
    assert_eq!(check(unsqueezed.clone()).broken.len(), 1);
    unsqueezed.node[0] = node("Flatten", &["x"], &["y"]).int("axis", i64::MIN);
    assert_eq!(check(unsqueezed).broken.len(), 1);
}

#[test]
fn invalid_graphs() {
    let nodes = vec![
        node("Relu", &["later"], &["early"]),
        node("Add", &["self", "self"], &["self"]),
        node("MaxPool", &["early"], &["later"]),
        node("MaxPool", &["x"], &["later", "later", ""]),
        node("Conv", &[], &[]),
        node("Einsum", &["x", ""], &["y"]).text("equation", "....,->...."),
        node("If", &[], &["y"]),
        node("Scan", &[], &["y"]).int("num_scan_inputs", 5),
        node("Loop", &[], &["y"]),
        node("", &[""], &[""]),
    ];
    let report = check(chain(NCHW, nodes));
    assert_eq!(report.nodes, 10);
    let _ = report.to_string();
}
