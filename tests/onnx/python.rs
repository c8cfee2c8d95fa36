//! Exchanges models with the real Python package `onnx`, in both directions. If the package is
//! missing, the tests are skipped with a notice. Set `PYTHON` to choose an interpreter.

use super::{NCHW, chain, short};
use std::path::Path;
use std::process::Command;
use typed_dims::onnx::OnnxModel;
use typed_dims::onnx::proto::{self, node};

/// Runs a script in a directory, if Python has the package.
fn python(dir: &Path, script: &str) -> bool {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let run = |code: &str| Command::new(&python).args(["-c", code]).current_dir(dir).output();
    match run("import onnx") {
        Ok(output) if output.status.success() => {
            let output = run(script).unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        _ => {
            eprintln!("skipped: {python} has no onnx");
            false
        }
    }
}

const SCRIPT: &str = "
import onnx
from onnx import TensorProto, helper, numpy_helper
import numpy as np

def tensor(name, shape, denotations=None, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape, shape_denotation=denotations)

nchw = ['DATA_BATCH', 'DATA_CHANNEL', 'DATA_FEATURE', 'DATA_FEATURE']
oihw = ['FILTER_OUT_CHANNEL', 'FILTER_IN_CHANNEL', 'FILTER_SPATIAL', 'FILTER_SPATIAL']
image = tensor('image', ['N', 3, 32, 32], nchw)

def save(name, nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, name + '.onnx')
    onnx.save(onnx.shape_inference.infer_shapes(model), name + '_inferred.onnx')

w = numpy_helper.from_array(np.zeros((8, 3, 3, 3), 'f4'), 'w')
fc = numpy_helper.from_array(np.zeros((10, 2048), 'f4'), 'fc')
flat = numpy_helper.from_array(np.array([0, -1]), 'flat')
save('good', [
    helper.make_node('Conv', ['image', 'w'], ['c'], pads=[1, 1, 1, 1]),
    helper.make_node('Relu', ['c'], ['r']),
    helper.make_node('MaxPool', ['r'], ['p'], kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node('Reshape', ['p', 'flat'], ['f']),
    helper.make_node('Gemm', ['f', 'fc'], ['logits'], transB=1),
], [image], [tensor('logits', ['N', 10])], [w, fc, flat])
save('bad', [
    helper.make_node('Transpose', ['image'], ['t'], name='swap', perm=[0, 2, 1, 3]),
    helper.make_node('AveragePool', ['t'], ['y'], name='pool', kernel_shape=[2, 2]),
], [image], [tensor('y', ['N', 31, 2, 31])])
save('typed', [helper.make_node('Identity', ['a'], ['b']), helper.make_node('Identity', ['c'], ['d'])],
    [tensor('a', ['batch', None, 4], type=TensorProto.INT64), tensor('c', [], type=TensorProto.BOOL)],
    [tensor('b', ['batch', None, 4], type=TensorProto.INT64), tensor('d', [], type=TensorProto.BOOL)])

ours = onnx.load('ours.onnx')
onnx.checker.check_model(ours)
assert [d.denotation for d in ours.graph.input[0].type.tensor_type.shape.dim] == nchw
assert [n.op_type for n in ours.graph.node] == ['Relu', 'Transpose']
assert list(ours.graph.node[1].attribute[0].ints) == [0, 3, 2, 1]
for name in ['classifier', 'mistaken']:
    onnx.checker.check_model(onnx.load(name + '.onnx'))
";

/// The models of ONNX's node tests. They are correct, so the checker must find no mismatched axes
/// and no broken nodes.
#[test]
fn all_models_of_onnx_s_own_tests() {
    let dir = tempfile::tempdir().unwrap();
    let script = "
import warnings
warnings.simplefilter('ignore')
import onnx.backend.test.case as case
for one in case.node.collect_testcases(None):
    if one.model is not None:
        onnx.save(one.model, one.name + '.onnx')
";
    if !python(dir.path(), &format!("import onnx{script}")) {
        return;
    }
    let mut count = 0;
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let path = entry.unwrap().path();
        let report = OnnxModel::open(&path).unwrap().check_denotations();
        assert!(report.is_clean(), "{}: {report}", path.display());
        count += 1;
    }
    assert!(count > 1000, "only {count} models");
}

#[test]
fn models_written_by_onnx_are_read_and_ours_are_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let nodes =
        vec![node("Relu", &["x"], &["r"]), node("Transpose", &["r"], &["y"]).ints("perm", &[0, 3, 2, 1])];
    let mut ours = chain(NCHW, nodes);
    ours.output = vec![proto::float_tensor("y", &[("N", ""), ("10", ""), ("8", ""), ("3", "")])];
    std::fs::write(at("ours.onnx"), proto::model(ours).to_bytes()).unwrap();
    for name in ["classifier.onnx", "mistaken.onnx"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/onnx/models");
        std::fs::copy(format!("{folder}/{name}"), at(name)).unwrap();
    }
    if !python(dir.path(), SCRIPT) {
        return;
    }
    // With and without the shapes of intermediate results.
    for name in ["good.onnx", "good_inferred.onnx"] {
        let good = OnnxModel::open(at(name)).unwrap();
        assert_eq!(
            good.inputs().unwrap()[0].to_string(),
            "image: f32[N: DATA_BATCH, 3: DATA_CHANNEL, 32: DATA_FEATURE, 32: DATA_FEATURE]"
        );
        let report = good.check_denotations();
        assert!(report.is_clean() && report.opaque.is_empty(), "{report}");
        assert_eq!(short(&report), "N _");
    }
    for name in ["bad.onnx", "bad_inferred.onnx"] {
        let report = OnnxModel::open(at(name)).unwrap().check_denotations();
        assert_eq!(
            report.mismatches[0].to_string(),
            "node `pool` (AveragePool), input `t`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected; axis 2 is \
             DATA_CHANNEL, but DATA_FEATURE is expected"
        );
    }
    let typed = OnnxModel::open(at("typed.onnx")).unwrap();
    let names: Vec<String> = typed.inputs().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a: i64[batch, ?, 4]", "c: bool[]"]);
}
