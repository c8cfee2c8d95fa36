//! Functions that are recorded from sizes alone.

use typed_dims::fallible::try_concat;
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::init::orthogonal;
use typed_dims::nn::{Embedding, LayerNorm, Linear};
use typed_dims::optim::{Adam, Optimizer, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::{jit, record, spec};

dims! {
    struct Row;
    struct In;
    struct Out;
}

type Data = Tensor<f32, (Row, In)>;
type Layer = Linear<(In,), (Out,)>;

/// A network of linear maps with residual connections.
#[derive(Clone, Parameters)]
struct Tower {
    norms: Vec<LayerNorm<(In,)>>,
    layers: Vec<(Linear<(In,), (Out,)>, Linear<(Out,), (In,)>)>,
    table: Tensor<f32, (Out, In)>,
    #[parameters(constant)]
    scale: Tensor<f32, (In,)>,
}

impl Tower {
    fn new(width: usize, hidden: usize, layers: u64) -> Self {
        let (input, hidden) = (In.of(width), Out.of(hidden));
        Tower {
            norms: (0..layers).map(|_| LayerNorm::new(input)).collect(),
            layers: (0..layers)
                .map(|at| (Linear::new(input, hidden, 2 * at), Linear::new(hidden, input, 2 * at + 1)))
                .collect(),
            table: randn((hidden, input), 5),
            scale: from_fn(input, |at| 1.0 + at as f32),
        }
    }

    fn apply(&self, x: &Data, ids: &Tensor<i64, (Row,)>) -> Data {
        let mut x = (x * &self.scale + (&self.table).take(Out, ids)).eval();
        for (norm, (up, down)) in self.norms.iter().zip(&self.layers) {
            let hidden: Tensor<f32, (Row, Out)> = up.apply(&norm.apply(&x));
            let own: Data = down.apply(&hidden.gelu().eval());
            x = (x + own).eval();
        }
        x
    }

    fn step(&self, x: &Data, ids: &Tensor<i64, (Row,)>) -> (Tensor<f32, ()>, Tower) {
        let loss = |net: &Tower| net.apply(x, ids).softmax(In).square().mean((Row, In));
        let (loss, mut gradient) = loss_and_grad(loss, self);
        clip_by_global_norm(&mut gradient, 1.0);
        (loss, gradient)
    }
}

#[test]
fn a_table_is_not_drawn() {
    type Table = Embedding<Row, (In,)>;
    let table = |seed: u64| Table::new(Row.of(5), In.of(4), seed).with_padding(2);
    let ids = from_vec(Out.of(3), vec![4_u32, 2, 0]);
    let rows = |table: &Table| -> Tensor<f32, (In, Out)> { table.apply(&ids) };
    let program = record(rows, spec(|| table(1))).expect("the function can be recorded");
    assert_eq!(program.call(&table(7)), rows(&table(7)));
}

/// The peak memory of the process, in MiB.
fn touched() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("VmHWM: 0 kB");
    line.split_whitespace().nth(1).expect("a number").parse::<usize>().expect("a number") >> 10
}

#[test]
fn the_program_is_that_of_the_function() {
    let (rows, width) = (3, 8);
    let x = |seed| -> Data { randn((Row.of(rows), In.of(width)), seed) };
    let ids = from_vec(Row.of(rows), vec![1i64, 0, 4]);
    let net = Tower::new(width, 5, 2);
    let sizes = (spec(|| Tower::new(width, 5, 2)), spec((Row.of(rows), In.of(width))), spec(Row.of(rows)));
    let program = record(|(net, x, ids): (&Tower, &Data, &_)| net.step(x, ids), sizes)
        .expect("the function can be recorded");
    for seed in 0..3 {
        let (loss, gradient) = program.call((&net, &x(seed), &ids));
        let (expected_loss, expected) = net.step(&x(seed), &ids);
        assert_eq!(loss, expected_loss);
        assert_eq!(gradient.table, expected.table);
        for ((up, down), (other_up, other_down)) in gradient.layers.iter().zip(&expected.layers) {
            assert_eq!((&up.weight, &down.bias), (&other_up.weight, &other_down.bias));
        }
    }
}

/// A `spec` has no elements, so programs cannot be called with one.
#[test]
fn calls_need_elements() {
    let rows = || spec::<Data, _>((Row.of(2), In.of(3)));
    let program = record(|x: &Data| x.view().sum(In), rows()).unwrap();
    let wrapped = jit::<&Data, _>(|x| x.view().sum(In));
    let mut out = zeros(Row.of(2));
    let errors = [
        program.try_call(rows()).map(|_| ()),
        program.try_call_into(rows(), &mut out),
        wrapped.try_call(rows()).map(|_| ()),
        wrapped.try_call_into(rows(), &mut out),
    ];
    for error in errors {
        let error = error.unwrap_err().to_string();
        assert_eq!(error, "an input of a call is a `spec`, which has no elements: pass a tensor");
    }
    assert_eq!(wrapped.programs(), 0);
}

#[test]
fn the_optimizer_is_recorded_from_sizes() {
    type State = (Layer, Adam<Layer>);
    let step = |(mut layer, mut adam): State, x: &Data| -> State {
        let loss = |layer: &Layer| {
            let y: Tensor<f32, (Row, Out)> = layer.apply(x);
            y.square().mean((Row, Out))
        };
        let (_, gradient) = loss_and_grad(loss, &layer);
        adam.step(&mut layer, &gradient);
        (layer, adam)
    };
    let start = || -> State { (Layer::new(In.of(4), Out.of(3), 1), Adam::new(0.1)) };
    let program = record(
        |(state, x): (&State, &Data)| step(state.clone(), x),
        (spec(start), spec((Row.of(6), In.of(4)))),
    )
    .expect("the function can be recorded");
    let x: Data = randn((Row.of(6), In.of(4)), 1);
    let ((found, _), (expected, _)) = (program.call((&start(), &x)), step(start(), &x));
    assert_eq!(found.weight, expected.weight);
}

/// The parameters and their gradient would take more than 28 GB each.
#[test]
#[cfg(target_os = "linux")]
fn no_memory_is_touched() {
    if std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2") {
        return; // the system does not overcommit memory
    }
    let (rows, width, hidden) = (2, 16 << 10, 64 << 10);
    let before = touched();
    let program = record(
        |(net, x, ids): (&Tower, &Data, &Tensor<i64, (Row,)>)| net.step(x, ids),
        (spec(|| Tower::new(width, hidden, 3)), spec((Row.of(rows), In.of(width))), spec(Row.of(rows))),
    )
    .expect("the function can be recorded");
    assert!(program.steps() > 50);
    let bytes: usize = program.listing().inputs.iter().map(|input| input.bytes).sum();
    assert!(bytes > 28_000_000_000, "{bytes}");
    // (Other tests in this process can raise the peak, too.)
    let touched = touched().saturating_sub(before);
    assert!(touched < 1024, "{touched} MiB are touched");
}

/// A recording from sizes draws no random numbers: a function that uses a constant of random
/// numbers is refused, and the steps that initialize parameters are not part of the program.
#[test]
fn numbers_that_were_not_drawn_are_not_read() {
    #[derive(Clone, Parameters)]
    struct Features {
        layer: Layer,
        #[parameters(constant)]
        drawn: Tensor<f32, (In,)>,
    }
    let new = || Features { layer: Layer::new(In.of(4), Out.of(3), 1), drawn: randn(In.of(4), 2) };
    let apply =
        |net: &Features, x: &Data| -> Tensor<f32, (Row, Out)> { net.layer.apply(&(x * &net.drawn).eval()) };
    let recorded =
        record(|(net, x): (&Features, &Data)| apply(net, x), (spec(new), spec((Row.of(2), In.of(4)))));
    let error = recorded.err().expect("an error").to_string();
    assert!(error.contains("spec"), "{error}");

    let net: Layer = orthogonal_layer();
    let recorded = record(
        |(net, x): (&Layer, &Data)| -> Tensor<f32, (Row, Out)> { net.apply(x) },
        (spec(orthogonal_layer), spec((Row.of(2), In.of(4)))),
    )
    .expect("the function can be recorded");
    let x: Data = randn((Row.of(2), In.of(4)), 1);
    assert_eq!(recorded.call((&net, &x)), net.apply(&x));
}

fn orthogonal_layer() -> Layer {
    Layer { weight: orthogonal::<f32, _, _, _>((In.of(4), Out.of(3)), In, 1), bias: zeros(Out.of(3)) }
}

/// Parts of a result that are constants keep their elements, before and after an input.
#[test]
fn constant_parts() {
    type Line = Tensor<f32, (Row,)>;
    let x: Line = from_vec(Row.of(2), vec![1.0, 2.0]);
    let kept: Line = from_vec(Row.of(3), vec![7.0, 8.0, 9.0]);
    let joined = |x: &Line| -> (Line, Line, Tensor<f32, (Row, In)>) {
        let ends = from_vec(Row.of(2), vec![5.0, 6.0]);
        (
            concat(Row, [x, &kept]).same_set(),
            concat(Row, [&kept, x]).same_set(),
            stack(In, [&ends, x, &ends]).same_set(),
        )
    };
    let program = record(joined, spec(Row.of(2))).unwrap();
    assert_eq!(program.call(&x), joined(&x));
}

/// The derivative of `sort` adds at positions that only a call knows. The recording does not write
/// or read them: they would take gigabytes.
#[test]
fn the_derivative_of_sort() {
    let slopes = |x: &Data| grad(|x: &Data| (x.sort(In) * In.cast::<f32>()).sum((Row, In)), x);
    record(slopes, spec((Row.of(100), In.of(2_000_000)))).expect("the function can be recorded");
    let program = record(slopes, spec((Row.of(2), In.of(3)))).expect("the function can be recorded");
    let x: Data = from_vec((Row.of(2), In.of(3)), vec![3.0, 1.0, 2.0, -1.0, 0.0, 5.0]);
    assert_eq!(program.call(&x), slopes(&x));
}

/// Programs can only add at indices.
#[test]
fn scatter_names_scatter_add() {
    let ids = from_vec(Row.of(2), vec![0_usize, 2]);
    let added = |x: &Tensor<f32, (Row,)>| {
        let error = x.try_scatter(Row, Out.of(3), &ids, 0.0).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("`scatter` cannot be recorded (at "), "{error}");
        assert!(error.contains("if all indices differ, write `scatter_add`"), "{error}");
        x.scatter_add(Row, Out.of(3), &ids)
    };
    let program = record(added, spec(Row.of(2))).unwrap();
    let x = from_vec(Row.of(2), vec![1.0, 2.0]);
    assert_eq!(program.call(&x), (&x).scatter(Row, Out.of(3), &ids, 0.0));
}

/// Constant indices are checked although no element is computed.
#[test]
fn constant_indices_out_of_range_are_errors() {
    let ids = from_vec(Row.of(2), vec![0_usize, 7]);
    let assert_refused = |error: DimError| {
        assert!(matches!(error, DimError::OutOfBounds { index: 7, size: 3, .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("index 7 of dim `Out` is out of range for an axis of size 3"), "{text}");
    };
    let others = from_vec(Row.of(2), vec![0_usize, 2]);
    let scattered = |x: &Tensor<f32, (Row,)>| {
        assert_refused(x.try_scatter_add(Row, Out.of(3), &ids).map(drop).unwrap_err());
        x.scatter_add(Row, Out.of(3), &others)
    };
    let program = record(scattered, spec(Row.of(2))).unwrap();
    let x = from_vec(Row.of(2), vec![1.0, 2.0]);
    assert_eq!(program.call(&x), scattered(&x));
    assert_eq!(program.call(&x).order(Out).to_vec(), [1.0, 0.0, 2.0]);

    let taken = |x: &Tensor<f32, (Out,)>| {
        assert_refused(x.take(Out, &ids).try_eval().map(drop).unwrap_err());
        // (An element that is not used needs no index within the range.)
        select((&ids).lt(3), x.take(Out, &ids), 0.0).eval()
    };
    let program = record(taken, spec(Out.of(3))).unwrap();
    let x = from_vec(Out.of(3), vec![1.0, 2.0, 3.0]);
    assert_eq!(program.call(&x), taken(&x));
    assert_eq!(program.call(&x).order(Row).to_vec(), [1.0, 0.0]);

    // The message is that of the function itself.
    let looked_up = |x: &Tensor<f32, (Out,)>| {
        let text = x.lookup(Out, &ids).try_eval().map(drop).unwrap_err().to_string();
        let what = "index 7 of dim `Out`, computed from dim `Row`, is out of range for an axis of size 3";
        assert!(text.starts_with(what), "{text}");
        (x * 2.0).eval()
    };
    let program = record(looked_up, spec(Out.of(3))).unwrap();
    assert_eq!(program.call(&x), looked_up(&x));
}

#[test]
fn results_for_which_there_is_no_memory_are_errors() {
    const MANY: usize = 1 << (usize::BITS - 6);
    let joined = |x: &Tensor<f32, (Row,)>| {
        let wide = || x.view().expand(In.of(MANY));
        let error = try_concat(Row, [wide(), wide()]).map(drop).unwrap_err();
        assert!(matches!(error, DimError::TooLarge { .. }), "{error}");
        (x + 1.0).eval()
    };
    let x = from_vec(Row.of(2), vec![1.0, 2.0]);
    assert_eq!(record(joined, spec(Row.of(2))).unwrap().call(&x), joined(&x));
}
