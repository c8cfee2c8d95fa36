//! One module for each section of ONNX's "Dimension Denotation".

use super::{NCHW, chain, check, meaning, short};
use typed_dims::onnx::proto::{self, GraphProto, NodeProto, float_tensor, node};

/// A graph with the inputs `x` and `w`, and the result `y`.
fn pair(x: &[(&str, &str)], w: &[(&str, &str)], nodes: Vec<NodeProto>) -> GraphProto {
    let mut graph = chain(x, nodes);
    graph.input.push(float_tensor("w", w));
    graph
}

/// The mistakes of a graph, as the checker reports them.
fn mistakes(graph: GraphProto) -> Vec<String> {
    check(graph).mismatches.iter().map(ToString::to_string).collect()
}

const FILTER: &[(&str, &str)] = &[
    ("16", "FILTER_OUT_CHANNEL"),
    ("3", "FILTER_IN_CHANNEL"),
    ("3", "FILTER_SPATIAL"),
    ("3", "FILTER_SPATIAL"),
];

mod motivation {
    use super::*;

    /// `input_in_NCHW -> Transpose(input, perm=[0, 2, 1, 3]) -> AveragePool(input, ...)`
    #[test]
    fn nchw_is_transposed_to_nhcw_and_pooled() {
        let nodes = vec![
            node("Transpose", &["x"], &["t"]).named("swap").ints("perm", &[0, 2, 1, 3]),
            node("AveragePool", &["t"], &["y"]).named("pool").ints("kernel_shape", &[2, 2]),
        ];
        let report = check(chain(NCHW, nodes));
        assert_eq!(
            report.to_string(),
            "node `pool` (AveragePool), input `t`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected; \
             axis 2 is DATA_CHANNEL, but DATA_FEATURE is expected
    found    [DATA_BATCH, DATA_FEATURE, DATA_CHANNEL, DATA_FEATURE]
    expected [DATA_BATCH, DATA_CHANNEL, DATA_FEATURE, DATA_FEATURE]
output `y`: [DATA_BATCH, _, _, DATA_FEATURE]
2 nodes, 1 mismatch"
        );
    }

    /// ONNX Runtime ignores the case of denotations, too.
    #[test]
    fn denotations_are_read_without_regard_to_case() {
        let lower: Vec<_> =
            NCHW.iter().map(|&(size, denotation)| (size, denotation.to_lowercase())).collect();
        let lower: Vec<_> = lower.iter().map(|(size, denotation)| (*size, denotation.as_str())).collect();
        let nodes = || {
            vec![
                node("Transpose", &["x"], &["t"]).named("swap").ints("perm", &[0, 2, 1, 3]),
                node("AveragePool", &["t"], &["y"]).named("pool").ints("kernel_shape", &[2, 2]),
            ]
        };
        assert_eq!(mistakes(chain(&lower, nodes())), mistakes(chain(NCHW, nodes())));
        assert_eq!(mistakes(chain(&lower, nodes())).len(), 1);
    }

    #[test]
    fn without_denotations_no_one_can_tell() {
        let plain: Vec<_> = NCHW.iter().map(|&(size, _)| (size, "")).collect();
        let nodes = vec![
            node("Transpose", &["x"], &["t"]).ints("perm", &[0, 2, 1, 3]),
            node("AveragePool", &["t"], &["y"]).ints("kernel_shape", &[2, 2]),
        ];
        assert_eq!(meaning(chain(&plain, nodes)), "_ _ _ _");
    }
}

mod denotation_definition {
    use super::*;
    use typed_dims::onnx::OnnxModel;
    use typed_dims::onnx::denotation::STANDARD_DENOTATIONS;

    #[test]
    fn the_seven_standard_denotations() {
        assert_eq!(
            STANDARD_DENOTATIONS,
            [
                "DATA_BATCH",
                "DATA_CHANNEL",
                "DATA_TIME",
                "DATA_FEATURE",
                "FILTER_IN_CHANNEL",
                "FILTER_OUT_CHANNEL",
                "FILTER_SPATIAL"
            ]
        );
        let axes: Vec<_> = STANDARD_DENOTATIONS.iter().map(|&denotation| ("2", denotation)).collect();
        assert_eq!(meaning(chain(&axes, vec![node("Identity", &["x"], &["y"])])), "N C T F I O S");
        let model = OnnxModel::from_proto(proto::model(chain(&axes, Vec::new()))).unwrap();
        let read = model.inputs().unwrap().remove(0).axes.unwrap();
        let read: Vec<_> = read.iter().map(|axis| axis.denotation.as_deref().unwrap()).collect();
        assert_eq!(read, STANDARD_DENOTATIONS);
    }

    /// Principle 1: a channel is not a position in space.
    #[test]
    fn fine_enough_to_tell_channels_from_features() {
        let axes = [("N", "DATA_BATCH"), ("8", "DATA_FEATURE"), ("8", "DATA_FEATURE"), ("3", "DATA_CHANNEL")];
        assert_eq!(mistakes(chain(&axes, vec![node("GlobalMaxPool", &["x"], &["y"])])).len(), 1);
    }

    /// Principle 2: width and height are both features.
    #[test]
    fn coarse_enough_to_take_width_for_height() {
        let nodes = vec![
            node("Transpose", &["x"], &["t"]).ints("perm", &[0, 1, 3, 2]),
            node("MaxPool", &["t"], &["y"]).ints("kernel_shape", &[2, 2]),
        ];
        assert_eq!(meaning(chain(NCHW, nodes)), "N C F F");
    }

    /// Principle 3: the features of a recurrent network are features.
    #[test]
    fn the_same_for_recurrent_and_convolutional_networks() {
        let steps = [("T", "DATA_TIME"), ("N", "DATA_BATCH"), ("8", "DATA_FEATURE")];
        for operator in ["RNN", "GRU", "LSTM"] {
            let y =
                meaning(chain(&steps, vec![node(operator, &["x", "w", "r"], &["y"]).int("hidden_size", 4)]));
            assert_eq!(y, "T _ N F", "{operator}");
        }
        let first = [steps[1], steps[0], steps[2]];
        let last = vec![node("GRU", &["x", "w", "r"], &["", "y"]).int("layout", 1)];
        assert_eq!(meaning(chain(&first, last)), "N _ F");
        assert_eq!(mistakes(chain(&first, vec![node("GRU", &["x", "w", "r"], &["y"])])).len(), 1);
    }
}

mod denotation_propagation {
    use super::*;

    /// `for i, j in enumerate(perm): out_dim_denotaion[i] = in_dim_denotation[j]`
    #[test]
    fn transpose() {
        let axes = [("2", "DATA_BATCH"), ("3", "DATA_CHANNEL"), ("4", "DATA_TIME"), ("5", "DATA_FEATURE")];
        let letters = ["N", "C", "T", "F"];
        for number in 0..256usize {
            let perm: Vec<usize> = (0..4).map(|digit| number >> (2 * digit) & 3).collect();
            if (0..4).any(|axis| !perm.contains(&axis)) {
                continue;
            }
            let expected: Vec<_> = perm.iter().map(|&j| letters[j]).collect();
            let perm: Vec<i64> = perm.iter().map(|&axis| axis as i64).collect();
            let y = meaning(chain(&axes, vec![node("Transpose", &["x"], &["y"]).ints("perm", &perm)]));
            assert_eq!(y, expected.join(" "));
        }
        assert_eq!(meaning(chain(&axes, vec![node("Transpose", &["x"], &["y"])])), "F T C N");
    }

    fn reshaped(axes: &[(&str, &str)], shape: &[i64]) -> String {
        let mut graph = chain(axes, vec![node("Reshape", &["x", "shape"], &["y"])]);
        graph.initializer.push(proto::integers("shape", shape));
        meaning(graph)
    }

    #[test]
    fn reshape_and_flatten() {
        for (shape, expected) in [
            (&[0, 3, 8, 10][..], "N C F F"),
            (&[0, 0, -1], "N C F"),           // two features in one
            (&[0, -1], "N _"),                // a channel and features
            (&[0, 3, 2, 4, 10], "N C _ _ F"), // parts mean nothing
            (&[0, 1, 3, 80], "N _ C F"),
        ] {
            assert_eq!(reshaped(NCHW, shape), expected, "{shape:?}");
        }
        let flat = |axis| meaning(chain(NCHW, vec![node("Flatten", &["x"], &["y"]).int("axis", axis)]));
        assert_eq!(
            (flat(1), flat(2), flat(0), flat(4)),
            ("N _".into(), "_ F".into(), "_ _".into(), "_ _".into())
        );
        let pooled = vec![node("GlobalAveragePool", &["x"], &["p"]), node("Flatten", &["p"], &["y"])];
        assert_eq!(meaning(chain(NCHW, pooled)), "N C");
    }

    /// Exporters compute the shape from another shape.
    #[test]
    fn reshape_to_a_computed_shape() {
        let axes = [("N", "DATA_BATCH"), ("T", "DATA_TIME"), ("12", ""), ("64", "DATA_FEATURE")];
        let nodes = vec![
            node("Shape", &["x"], &["shape"]),
            node("Gather", &["shape", "zero"], &["n"]).int("axis", 0),
            node("Unsqueeze", &["n", "axes"], &["ns"]),
            node("Slice", &["shape", "one", "two"], &["ts"]),
            node("Constant", &[], &["features"]).ints("value_ints", &[768]),
            node("Concat", &["ns", "ts", "features"], &["wanted"]).int("axis", 0),
            node("Reshape", &["x", "wanted"], &["y"]),
        ];
        let mut graph = chain(&axes, nodes);
        graph.initializer =
            vec![proto::integers("axes", &[0]), proto::integers("one", &[1]), proto::integers("two", &[2])];
        graph.initializer.push(proto::TensorProto { dims: Vec::new(), ..proto::integers("zero", &[0]) });
        assert_eq!(meaning(graph), "N T _");
    }

    /// An unknown size does not hide the others.
    #[test]
    fn reshape_to_a_shape_that_is_known_in_part() {
        let axes = [("N", "DATA_BATCH"), ("T", "DATA_TIME"), ("F", "DATA_FEATURE")];
        let nodes = vec![
            node("Shape", &["x"], &["shape"]),
            node("Slice", &["shape", "zero", "two"], &["ns"]),
            node("Slice", &["shape", "two", "three"], &["f"]),
            node("Div", &["f", "two"], &["half"]),
            node("Concat", &["ns", "half", "two"], &["wanted"]).int("axis", 0),
            node("Reshape", &["x", "wanted"], &["halves"]),
            node("Mul", &["half", "two"], &["whole"]),
            node("Concat", &["ns", "whole"], &["wanted_again"]).int("axis", 0),
            node("Reshape", &["halves", "wanted_again"], &["again"]),
            node("Expand", &["again", "mystery"], &["y"]),
        ];
        let mut graph = chain(&axes, nodes);
        let list = |name, at| proto::integers(name, &[at]);
        graph.initializer = vec![list("zero", 0), list("two", 2), list("three", 3)];
        graph.input.push(float_tensor("mystery", &[("3", "")]));
        assert_eq!(meaning(graph), "N T _");
        // A shape that is another shape times constants.
        let nodes = vec![
            node("Shape", &["x"], &["shape"]),
            node("Mul", &["shape", "factors"], &["wanted"]),
            node("Expand", &["one", "wanted"], &["big"]),
            node("Reshape", &["big", "last"], &["r"]),
            node("Concat", &["r", "r"], &["y"]).int("axis", 0),
        ];
        let mut graph = chain(&[("2", ""), ("3", "")], nodes);
        graph.initializer = vec![proto::integers("factors", &[5, 4]), list("last", -1)];
        graph.input.push(float_tensor("one", &[("1", "DATA_BATCH"), ("1", "DATA_BATCH")]));
        assert_eq!(meaning(graph), "N");
    }

    /// Floats divide in another way than integers, and other types change numbers.
    #[test]
    fn shapes_that_are_cast_to_other_types() {
        let reshaped_by = |to: &[i64]| {
            let mut nodes = vec![node("Cast", &["shape"], &["cast0"]).int("to", to[0])];
            for (at, &to) in to.iter().enumerate().skip(1) {
                let [from, into] = [at - 1, at].map(|at| format!("cast{at}"));
                nodes.push(node("Cast", &[&from], &[&into]).int("to", to));
            }
            nodes.push(node("Reshape", &["x", &format!("cast{}", to.len() - 1)], &["y"]));
            let mut graph = chain(&[("2", "DATA_BATCH"), ("3", "DATA_TIME")], nodes);
            graph.initializer.push(proto::integers("shape", &[1, 2, 3]));
            meaning(graph)
        };
        let (float, bool, int32, int64) = (1, 9, 6, 7);
        assert_eq!(reshaped_by(&[int64]), "_ N T");
        assert_eq!(reshaped_by(&[int32, int64]), "_ N T");
        assert_eq!(reshaped_by(&[float, int64]), "_ _ _");
        assert_eq!(reshaped_by(&[bool, int64]), "_ _ _");
    }

    #[test]
    fn squeeze_and_unsqueeze() {
        let squeezed = vec![
            node("ReduceMean", &["x"], &["m"]).ints("axes", &[2, -1]),
            node("Squeeze", &["m"], &["s"]).ints("axes", &[-2, 3]),
            node("Unsqueeze", &["s"], &["y"]).ints("axes", &[0, 2]),
        ];
        assert_eq!(meaning(chain(NCHW, squeezed)), "_ N _ C");
    }

    #[test]
    fn reductions() {
        for operator in
            ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp"]
        {
            let reduced = |keep| {
                meaning(chain(
                    NCHW,
                    vec![node(operator, &["x"], &["y"]).ints("axes", &[1, -1]).int("keepdims", keep)],
                ))
            };
            assert_eq!((reduced(0), reduced(1)), ("N F".into(), "N C F F".into()), "{operator}");
        }
        let all =
            |operator: &str| meaning(chain(NCHW, vec![node(operator, &["x"], &["y"]).int("keepdims", 0)]));
        assert_eq!((all("ReduceSum"), all("ArgMax")), (String::new(), "C F F".into()));
        // The axes are an input.
        let mut graph = chain(NCHW, vec![node("ReduceSum", &["x", "axes"], &["y"]).int("keepdims", 0)]);
        graph.initializer.push(proto::integers("axes", &[0]));
        assert_eq!(meaning(graph), "C F F");
    }

    #[test]
    fn operators_that_leave_axes_as_they_are() {
        for operator in [
            "Abs",
            "Cast",
            "Ceil",
            "Clip",
            "CumSum",
            "Dropout",
            "Elu",
            "Erf",
            "Exp",
            "Gelu",
            "HardSwish",
            "Identity",
            "LayerNormalization",
            "LeakyRelu",
            "Log",
            "LogSoftmax",
            "Neg",
            "Not",
            "Pad",
            "QuantizeLinear",
            "Relu",
            "Resize",
            "Sigmoid",
            "Slice",
            "Softmax",
            "Split",
            "Sqrt",
            "Tanh",
            "Tile",
            "TopK",
            "Trilu",
            "BatchNormalization",
            "InstanceNormalization",
            "GroupNormalization",
            "LRN",
            "DepthToSpace",
            "SpaceToDepth",
        ] {
            assert_eq!(meaning(chain(NCHW, vec![node(operator, &["x"], &["y"])])), "N C F F", "{operator}");
        }
    }

    #[test]
    fn gather_expand_and_one_hot() {
        let ids = [("N", "DATA_BATCH"), ("T", "DATA_TIME")];
        let table = [("32000", ""), ("64", "DATA_FEATURE")];
        assert_eq!(meaning(pair(&table, &ids, vec![node("Gather", &["x", "w"], &["y"])])), "N T F");
        assert_eq!(meaning(chain(&ids, vec![node("OneHot", &["x"], &["y"]).int("axis", 1)])), "N _ T");
        let mut graph = chain(&[("1", "DATA_CHANNEL")], vec![node("Expand", &["x", "shape"], &["y"])]);
        graph.initializer.push(proto::integers("shape", &[2, 3]));
        assert_eq!(meaning(graph), "_ C");
    }

    #[test]
    fn convolution() {
        assert_eq!(meaning(pair(NCHW, FILTER, vec![node("Conv", &["x", "w"], &["y"])])), "N C F F");
        // The channels of the result take the denotation of the filter's or the data's channels.
        let plain: Vec<_> = FILTER.iter().map(|&(size, _)| (size, "")).collect();
        assert_eq!(meaning(pair(NCHW, &plain, vec![node("Conv", &["x", "w"], &["y"])])), "N C F F");
        let image: Vec<_> = NCHW.iter().map(|&(size, _)| (size, "")).collect();
        assert_eq!(meaning(pair(&image, FILTER, vec![node("Conv", &["x", "w"], &["y"])])), "_ C _ _");
        let swapped = [FILTER[1], FILTER[0], FILTER[2], FILTER[3]];
        assert_eq!(
            meaning(pair(NCHW, &swapped, vec![node("ConvTranspose", &["x", "w"], &["y"])])),
            "N C F F"
        );
    }

    #[test]
    fn products() {
        let rows = [("N", "DATA_BATCH"), ("64", "DATA_FEATURE")];
        let weight = [("64", ""), ("10", "DATA_CHANNEL")];
        assert_eq!(meaning(pair(&rows, &weight, vec![node("MatMul", &["x", "w"], &["y"])])), "N C");
        assert_eq!(meaning(pair(&rows, &weight, vec![node("Gemm", &["x", "w"], &["y"])])), "N C");
        let turned = [weight[1], weight[0]];
        assert_eq!(
            meaning(pair(&rows, &turned, vec![node("Gemm", &["x", "w"], &["y"]).int("transB", 1)])),
            "N C"
        );
        assert_eq!(meaning(pair(&rows, &[("64", "")], vec![node("MatMul", &["x", "w"], &["y"])])), "N");
        let heads = [("N", "DATA_BATCH"), ("12", ""), ("T", "DATA_TIME"), ("64", "DATA_FEATURE")];
        let scores = vec![
            node("Transpose", &["x"], &["t"]).ints("perm", &[0, 1, 3, 2]),
            node("MatMul", &["x", "t"], &["y"]),
        ];
        assert_eq!(meaning(chain(&heads, scores)), "N _ T T");
    }

    #[test]
    fn einsum() {
        let rows = [("N", "DATA_BATCH"), ("T", "DATA_TIME"), ("64", "DATA_FEATURE")];
        let weight = [("64", "DATA_FEATURE"), ("10", "DATA_CHANNEL")];
        for (equation, expected) in [
            ("ntf,fc->nct", "N C T"),
            ("ntf, fc -> ntc", "N T C"),
            ("...f,fc->...c", "N T C"),
            ("ntf,fc", "C N T"), // in alphabetical order
            ("...f,fc", "N T C"),
            ("ntf,fc->", ""),
        ] {
            let nodes = vec![node("Einsum", &["x", "w"], &["y"]).text("equation", equation)];
            assert_eq!(meaning(pair(&rows, &weight, nodes)), expected, "{equation}");
        }
    }

    #[test]
    fn elementwise_and_concatenation() {
        for operator in ["Add", "Sub", "Mul", "Div", "Max", "Less", "PRelu"] {
            // The operands complement each other.
            let scale = [("3", ""), ("8", ""), ("1", "DATA_FEATURE")];
            let y = meaning(pair(NCHW, &scale, vec![node(operator, &["x", "w"], &["y"])]));
            assert_eq!(y, "N C F F", "{operator}");
            let alone = meaning(pair(&[], NCHW, vec![node(operator, &["x", "w"], &["y"])]));
            assert_eq!(alone, "N C F F", "{operator}");
        }
        let plain: Vec<_> = NCHW.iter().map(|&(size, _)| (size, "")).collect();
        for axis in [0, 1, -1] {
            let nodes = vec![node("Concat", &["x", "w"], &["y"]).int("axis", axis)];
            assert_eq!(meaning(pair(&plain, NCHW, nodes)), "N C F F");
        }
    }

    #[test]
    fn branches_and_loops() {
        let body = |operator: &str, value: &str| {
            let mut graph = chain(&[], vec![node(operator, &[value], &["r"])]);
            graph.input.clear();
            graph.output[0].name = "r".to_owned();
            graph
        };
        let branches = |other: &str| {
            let test = node("If", &["c"], &["y"])
                .graph("then_branch", body("Relu", "x"))
                .graph("else_branch", body(other, "x"));
            meaning(chain(NCHW, vec![test]))
        };
        assert_eq!(branches("Tanh"), "N C F F");
        assert_eq!(branches("Transpose"), "_ _ _ _");

        let mut turn = chain(&[], vec![node("Relu", &["s"], &["r"])]);
        let named = |name: &str| proto::ValueInfoProto { name: name.to_owned(), r#type: None };
        turn.input = vec![named("i"), named("go"), named("s")];
        turn.output = vec![named("go"), named("r"), named("r")];
        let state = vec![node("Loop", &["", "", "x"], &["y", "all"]).graph("body", turn.clone())];
        assert_eq!(meaning(chain(NCHW, state)), "N C F F");
        let stacked = vec![node("Loop", &["", "", "x"], &["state", "y"]).graph("body", turn)];
        assert_eq!(meaning(chain(NCHW, stacked)), "_ N C F F");
    }

    #[test]
    fn products_in_two_notations() {
        let kinds = ["", "DATA_BATCH", "DATA_CHANNEL", "DATA_TIME", "FILTER_OUT_CHANNEL"];
        let mut random = 1u32;
        let mut next = |below: usize| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) as usize % below
        };
        for _ in 0..300 {
            let mut axes = |sizes: &[&'static str]| -> Vec<(&'static str, &'static str)> {
                sizes.iter().map(|&size| (if next(4) == 0 { "1" } else { size }, kinds[next(5)])).collect()
            };
            let (mut x, mut w) = (axes(&["6", "2", "3"]), axes(&["6", "3", "4"]));
            (x[2].0, w[1].0) = ("3", "3");
            let matmul = check(pair(&x, &w, vec![node("MatMul", &["x", "w"], &["y"])]));
            let einsum = check(pair(
                &x,
                &w,
                vec![node("Einsum", &["x", "w"], &["y"]).text("equation", "...ij,...jk->...ik")],
            ));
            assert_eq!(matmul.outputs, einsum.outputs, "{x:?} {w:?}");
            let wrong = |report: &typed_dims::onnx::DenotationReport| {
                report.mismatches.iter().map(|mismatch| mismatch.axes.len()).collect::<Vec<_>>()
            };
            assert_eq!(wrong(&matmul), wrong(&einsum), "{x:?} {w:?}");
        }
    }

    #[test]
    fn weights_are_denoted_by_their_value_info() {
        let mut graph =
            chain(&[("N", ""), ("3", ""), ("8", ""), ("8", "")], vec![node("Conv", &["x", "w"], &["y"])]);
        graph.initializer.push(proto::TensorProto {
            dims: vec![16, 3, 3, 3],
            data_type: 1,
            name: "w".to_owned(),
            ..Default::default()
        });
        assert_eq!(meaning(graph.clone()), "_ _ _ _");
        graph.value_info.push(float_tensor("w", FILTER));
        assert_eq!(meaning(graph.clone()), "_ C _ _");
        graph.value_info[0] = float_tensor("w", &[FILTER[1], FILTER[0], FILTER[2], FILTER[3]]);
        assert_eq!(mistakes(graph).len(), 1);
    }

    #[test]
    fn what_the_model_says_of_values_on_the_way() {
        let mut graph = chain(NCHW, vec![node("Mystery", &["x"], &["t"]), node("Relu", &["t"], &["y"])]);
        let report = check(graph.clone());
        assert_eq!((short(&report), report.opaque["Mystery"]), ("unknown".to_owned(), 1));
        assert!(report.to_string().contains("not propagated through: Mystery (1)"), "{report}");
        graph.value_info.push(float_tensor("t", NCHW));
        assert_eq!(meaning(graph), "N C F F");
    }
}

mod denotation_verification {
    use super::*;

    /// Expects [`DATA_BATCH`, `DATA_CHANNEL`, `DATA_FEATURE`, `DATA_FEATURE`] in the 2D case, and
    /// likewise for other numbers of spatial axes.
    #[test]
    fn pooling() {
        for operator in
            ["AveragePool", "MaxPool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]
        {
            assert_eq!(meaning(chain(NCHW, vec![node(operator, &["x"], &["y"])])), "N C F F");
            assert_eq!(meaning(chain(&NCHW[..3], vec![node(operator, &["x"], &["y"])])), "N C F");
            let nhwc = [NCHW[0], NCHW[2], NCHW[3], NCHW[1]];
            assert_eq!(
                mistakes(chain(&nhwc, vec![node(operator, &["x"], &["y"])])),
                [format!(
                    "node `#0` ({operator}), input `x`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected; axis 3 is \
                     DATA_CHANNEL, but DATA_FEATURE is expected"
                )]
            );
        }
        // If the input is only partly annotated, the existing annotations count.
        let partly = [("N", ""), ("3", "DATA_FEATURE"), ("8", ""), ("8", "DATA_FEATURE")];
        assert_eq!(mistakes(chain(&partly, vec![node("MaxPool", &["x"], &["y"])])).len(), 1);
    }

    #[test]
    fn convolution() {
        let oiss = |filter: &[(&str, &str)]| {
            mistakes(pair(NCHW, filter, vec![node("Conv", &["x", "w"], &["y"]).named("c")]))
        };
        assert!(oiss(FILTER).is_empty());
        assert_eq!(
            oiss(&[FILTER[1], FILTER[0], FILTER[2], FILTER[3]]),
            [
                "node `c` (Conv), input `w`: axis 0 is FILTER_IN_CHANNEL, but FILTER_OUT_CHANNEL is expected; axis 1 is \
              FILTER_OUT_CHANNEL, but FILTER_IN_CHANNEL is expected"
            ]
        );
        let data = [("N", "DATA_TIME"), ("3", "DATA_CHANNEL"), ("8", "DATA_FEATURE"), ("8", "DATA_FEATURE")];
        assert_eq!(
            mistakes(pair(&data, FILTER, vec![node("Conv", &["x", "w"], &["y"])])),
            ["node `#0` (Conv), input `x`: axis 0 is DATA_TIME, but DATA_BATCH is expected"]
        );
    }

    #[test]
    fn normalization() {
        let nhwc = [NCHW[0], NCHW[2], NCHW[3], NCHW[1]];
        for (operator, wrong) in
            [("BatchNormalization", 1), ("GroupNormalization", 1), ("InstanceNormalization", 2), ("LRN", 2)]
        {
            let report = check(chain(&nhwc, vec![node(operator, &["x"], &["y"])]));
            assert_eq!(report.mismatches[0].axes.len(), wrong, "{operator}");
        }
        let scale = vec![node("BatchNormalization", &["x", "w"], &["y"])];
        assert_eq!(mistakes(pair(NCHW, &[("3", "DATA_FEATURE")], scale)).len(), 1);
    }

    #[test]
    fn operands_agree() {
        let add =
            |w: &[(&str, &str)]| mistakes(pair(NCHW, w, vec![node("Add", &["x", "w"], &["y"]).named("sum")]));
        assert_eq!(
            add(&[("8", "DATA_FEATURE"), ("10", "DATA_CHANNEL")]),
            [
                "node `sum` (Add), input `w`: axis 1 is DATA_CHANNEL, but DATA_FEATURE is expected, as axis 3 of `x`"
            ]
        );
        // An axis with one position has no meaning; channels of a filter are channels.
        assert!(add(&[("3", "FILTER_OUT_CHANNEL"), ("1", "DATA_CHANNEL"), ("1", "")]).is_empty());
        // Of several operands, only those with more than one position along the axis count.
        let mut sum = pair(
            &[("1", "DATA_TIME")],
            &[("8", "DATA_FEATURE")],
            vec![node("Sum", &["x", "w", "v"], &["y"])],
        );
        sum.input.push(float_tensor("v", &[("8", "DATA_CHANNEL")]));
        assert_eq!(
            mistakes(sum),
            [
                "node `#0` (Sum), input `v`: axis 0 is DATA_CHANNEL, but DATA_FEATURE is expected, as axis 0 of `w`"
            ]
        );
        let concat = |w| mistakes(pair(NCHW, w, vec![node("Concat", &["x", "w"], &["y"]).int("axis", 1)]));
        assert!(concat(NCHW).is_empty());
        assert_eq!(concat(&[NCHW[0], NCHW[2], NCHW[1], NCHW[3]]).len(), 1);
    }

    #[test]
    fn sums_of_products_agree() {
        let rows = [("N", "DATA_BATCH"), ("64", "DATA_FEATURE")];
        let weight = [("64", "DATA_TIME"), ("10", "")];
        for product in [
            node("MatMul", &["x", "w"], &["y"]),
            node("Gemm", &["x", "w"], &["y"]),
            node("Einsum", &["x", "w"], &["y"]).text("equation", "ij,jk->ik"),
        ] {
            let operator = product.op_type.clone();
            assert_eq!(
                mistakes(pair(&rows, &weight, vec![product])),
                [format!(
                    "node `#0` ({operator}), input `w`: axis 0 is DATA_TIME, but DATA_FEATURE is expected, as axis 1 of `x`"
                )]
            );
        }
    }

    #[test]
    fn a_scan_goes_over_time() {
        let mut body = chain(&[], vec![node("Add", &["s", "step"], &["r"])]);
        let named = |name: &str| proto::ValueInfoProto { name: name.to_owned(), r#type: None };
        body.input = vec![named("s"), named("step")];
        body.output = vec![named("r"), named("r")];
        let scan = |axis| {
            let scan = node("Scan", &["w", "x"], &["last", "y"])
                .int("num_scan_inputs", 1)
                .graph("body", body.clone());
            let steps = [("N", "DATA_BATCH"), ("T", "DATA_TIME"), ("8", "DATA_FEATURE")];
            pair(&steps, &[], vec![scan.ints("scan_input_axes", &[axis])])
        };
        assert_eq!(meaning(scan(1)), "T N F");
        assert_eq!(
            mistakes(scan(2)),
            ["node `#0` (Scan), input `x`: axis 2 is DATA_FEATURE, but DATA_TIME is expected"]
        );
    }

    /// The state counts the steps, so its elements are not those that it starts with.
    #[test]
    fn the_state_of_a_scan_changes() {
        let mut body = chain(&[], vec![node("Add", &["count", "one"], &["next"])]);
        let named = |name: &str| proto::ValueInfoProto { name: name.to_owned(), r#type: None };
        body.input = vec![named("count"), named("step")];
        body.output = vec![named("next")];
        let scan = node("Scan", &["one", "x"], &["six"]).int("num_scan_inputs", 1).graph("body", body);
        let reshaped = node("Reshape", &["w", "six"], &["y"]);
        let mut graph = pair(&[("5", "DATA_TIME")], &[("2", ""), ("3", "")], vec![scan, reshaped]);
        graph.initializer.push(proto::integers("one", &[1]));
        assert_eq!(meaning(graph), "_");
    }

    #[test]
    fn a_result_without_a_name_is_no_input() {
        let lstm = node("LSTM", &["x", "weights", "recurrence"], &["", "h"]);
        let product = node("Gemm", &["w", "w2", ""], &["y"]);
        let steps = [("T", "DATA_TIME"), ("N", "DATA_BATCH"), ("8", "DATA_FEATURE")];
        let mut graph = pair(&steps, &[("N", "DATA_BATCH"), ("8", "DATA_FEATURE")], vec![lstm, product]);
        graph.input.push(float_tensor("w2", &[("8", "DATA_FEATURE"), ("4", "")]));
        assert_eq!(meaning(graph), "N _");
    }

    #[test]
    fn results_are_what_the_model_says() {
        let mut graph =
            chain(NCHW, vec![node("Transpose", &["x"], &["y"]).named("t").ints("perm", &[0, 2, 3, 1])]);
        graph.output[0] = float_tensor("y", NCHW);
        let report = check(graph);
        assert_eq!(
            report.mismatches[0].to_string(),
            "node `t` (Transpose), result `y`: axis 1 is DATA_FEATURE, but DATA_CHANNEL is expected, as the model declares for \
             this value; axis 3 is DATA_CHANNEL, but DATA_FEATURE is expected, as the model declares for this value"
        );
        assert!(report.mismatches[0].is_result);
    }

    #[test]
    fn a_mistake_is_reported_once() {
        let nhwc = [NCHW[0], NCHW[2], NCHW[3], NCHW[1]];
        let nodes =
            ["a", "b", "c", "d"].windows(2).map(|names| node("MaxPool", &[names[0]], &[names[1]])).collect();
        let mut graph = chain(&nhwc, nodes);
        graph.input[0].name = "a".to_owned();
        assert_eq!(mistakes(graph).len(), 1);
    }

    #[test]
    fn denotations_that_are_no_standard_are_refused_where_others_are_expected() {
        let mut axes = NCHW.to_vec();
        axes[1].1 = "SENSOR";
        assert_eq!(
            mistakes(chain(&axes, vec![node("MaxPool", &["x"], &["y"])])),
            ["node `#0` (MaxPool), input `x`: axis 1 is SENSOR, but DATA_CHANNEL is expected"]
        );
    }

    #[test]
    fn nodes_that_do_not_fit_together() {
        for (node, why) in [
            (
                node("Transpose", &["x"], &["y"]).ints("perm", &[0, 1, 1, 3]),
                "`perm` is not a permutation of 4 axes",
            ),
            (node("Squeeze", &["x"], &["y"]).ints("axes", &[4]), "there is no axis 4 in 4 axes"),
            (node("ReduceSum", &["x"], &["y"]).ints("axes", &[1, -3]), "axis -3 is named twice"),
            (node("Concat", &["x"], &["y"]), "there is no `axis`"),
            (
                node("Einsum", &["x"], &["y"]).text("equation", "ij->i"),
                "a term of the equation has 2 letters for 4 axes",
            ),
            (
                node("Einsum", &["x"], &["y"]).text("equation", "i->i"),
                "a term of the equation has 1 letter for 4 axes",
            ),
            (
                node("Einsum", &["x"], &["y"]).text("equation", "i,j->i"),
                "the number of terms in the equation is 2, but that of inputs is 1",
            ),
            (node("Gemm", &["x", "x"], &["y"]), "the operands of a matrix product have two axes"),
        ] {
            let report = check(chain(NCHW, vec![node]));
            assert_eq!(report.broken[0].why, why);
            assert!(!report.is_clean());
        }
        let mut sized = chain(NCHW, vec![node("Relu", &["x"], &["y"])]);
        sized.output[0] = float_tensor("y", &[("N", ""), ("4", ""), ("8", ""), ("10", "")]);
        assert_eq!(
            check(sized.clone()).broken[0].why,
            "axis 1 of result `y` has the size 3, but the model says 4"
        );
        sized.output[0] = float_tensor("y", &[("N", "")]);
        assert_eq!(check(sized).broken[0].why, "result `y` has 4 axes, but the model says 1");
        let flat = check(chain(&NCHW[..2], vec![node("MaxPool", &["x"], &["y"]).named("p")]));
        assert!(flat.is_clean(), "pooling accepts an input without spatial axes: {flat}");
        let flatter = check(chain(&NCHW[..1], vec![node("MaxPool", &["x"], &["y"]).named("p")]));
        assert_eq!(
            flatter.to_string(),
            "node `p` (MaxPool): input `x` has 1 axis; 2 or more are expected\noutput `y`: unknown\n1 node, no mismatch, 1 broken node"
        );
    }
}

mod type_denotation {
    use super::*;

    /// The denotation of a whole tensor, such as `IMAGE`, says nothing about its axes.
    #[test]
    fn of_the_whole_is_read_and_left_alone() {
        let mut graph = chain(NCHW, vec![node("Relu", &["x"], &["y"])]);
        graph.input[0].r#type.as_mut().unwrap().denotation = "IMAGE".to_owned();
        assert_eq!(meaning(graph), "N C F F");
    }
}
