//! The layers of `nn`, compared with PyTorch's (`reference.json`, written by `reference.py`), and
//! their gradients with finite differences.

#![cfg(any(feature = "safetensors", feature = "pjrt"))]

#[path = "../support/gradients.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod gradients;
mod losses;
mod recipes;
mod several;
mod variants;
mod windows;

use gradients::{noise, recorded};
use ndarray::Dimension;
use safetensors::{Dtype, serialize, tensor::TensorView as Array};
use serde_json::Value;
use typed_dims::file::safetensors::SafetensorsReader;
use typed_dims::nn::norm::{BatchNorm, ChannelMoments, LayerNorm, RmsNorm};
use typed_dims::nn::recurrent::{Gru, Lstm, LstmState};
use typed_dims::nn::{Conv, Embedding, KeyValues, Linear, MultiHeadAttention, Projection, Rope, SwiGlu};
use typed_dims::prelude::*;

dims! {
    struct Batch;
    struct Time;
    struct Key;
    struct Source;
    struct Width;
    struct Inner;
    struct Head = 2;
    struct Group = 2;
    struct Feat;
    struct Channel;
    struct Made;
    struct Row;
    struct Column;
    struct Kh;
    struct Kw;
    struct Word;
    struct Next;
}

type X = Tensor<f64, (Batch, Time, Width)>;

/// Element `at` of the array `k` of a case: see `reference.py`.
fn element(k: usize, at: usize) -> f64 {
    (1.3 * at as f64 + 0.7 * k as f64).sin()
}

fn array<D: typed_dims::creation::create::SizedDims>(k: usize, dims: D) -> Named<f64, D::Set> {
    let mut places = 0..;
    from_fn(dims, |_| element(k, places.next().expect("the range has no end")))
}

/// The layer whose weights are the arrays 0, 1, .., with these names and sizes.
fn loaded<M: for<'a> Load<'a>>(arrays: &[(&str, &[usize])]) -> M {
    let bytes: Vec<Vec<u8>> = (0..arrays.len())
        .map(|k| (0..arrays[k].1.iter().product()).flat_map(|at| element(k, at).to_le_bytes()).collect())
        .collect();
    let views = arrays.iter().zip(&bytes).map(|((name, sizes), bytes)| {
        (*name, Array::new(Dtype::F64, sizes.to_vec(), bytes).expect("the sizes fit"))
    });
    let bytes = serialize(views, None).expect("the arrays are well-formed");
    let file = SafetensorsReader::new(&bytes).expect("the file is well-formed");
    Weights::of(&file).expect("there are no names of axes").load().unwrap_or_else(|error| panic!("{error}"))
}

/// The numbers that PyTorch computes for a case.
struct Expected(Vec<Vec<f64>>);

impl Expected {
    fn of(case: &str) -> Self {
        let all: Value = serde_json::from_str(include_str!("reference.json")).expect("the text is JSON");
        let list = |value: &Value| value.as_array().expect("the value is a list").clone();
        let number = |value: Value| value.as_f64().expect("the value is a number");
        let numbers = |value: Value| list(&value).into_iter().map(number).collect();
        Expected(list(&all[case]).into_iter().map(numbers).collect())
    }

    /// Compares the elements. The axes must be in PyTorch's order.
    #[track_caller]
    fn is<D: Dimension>(&self, at: usize, found: ndarray::Array<f64, D>) {
        assert_eq!(found.len(), self.0[at].len(), "result {at}");
        for (place, (found, expected)) in found.iter().zip(&self.0[at]).enumerate() {
            let near = (found - expected).abs() < 1e-11 * expected.abs().max(1.0);
            assert!(near, "result {at}, place {place}: {found} instead of {expected}");
        }
    }
}

/// Compares the derivatives of a layer with finite differences. Then compares recorded programs of
/// the layer and its gradient with the functions themselves.
#[track_caller]
fn check<P: Parameters, Y: Parameters>(f: impl Fn(&P) -> Y, at: &P) {
    gradients::check(&f, at);
    assert!(recorded(&f, at), "the layer cannot be recorded");
}

fn x() -> X {
    array(20, (Batch.of(2), Time.of(3), Width.of(4)))
}

#[test]
fn layer_norm() {
    let expected = Expected::of("layer_norm");
    let arrays: [(&str, &[usize]); 2] = [("weight", &[4]), ("bias", &[4])];
    let layer: LayerNorm<(Width,), f64> = loaded(&arrays);
    expected.is(0, layer.apply(&x()).order((Batch, Time, Width)));
    let arrays: [(&str, &[usize]); 2] = [("weight", &[3, 4]), ("bias", &[3, 4])];
    let layer: LayerNorm<(Time, Width), f64> = loaded(&arrays);
    expected.is(1, layer.apply(&x()).order((Batch, Time, Width)));
    check(|(layer, x): &(LayerNorm<(Time, Width), f64>, X)| layer.apply(x), &(layer, x()));
}

#[test]
fn rms_norm() {
    let layer: RmsNorm<(Width,), f64> = loaded(&[("weight", &[4])]);
    Expected::of("rms_norm").is(0, layer.apply(&x()).order((Batch, Time, Width)));
    check(|(layer, x): &(RmsNorm<(Width,), f64>, X)| layer.apply(x), &(layer, x()));
}

#[test]
fn embedding() {
    let layer: Embedding<Word, (Width,), f64> = loaded(&[("weight", &[5, 4])]);
    let ids = from_vec((Batch.of(2), Time.of(3)), vec![4_u32, 0, 2, 1, 1, 3]);
    let y: X = layer.apply(&ids);
    Expected::of("embedding").is(0, y.order((Batch, Time, Width)));
    check(|layer: &Embedding<Word, (Width,), f64>| -> X { layer.apply(&ids) }, &layer);
}

#[test]
fn convolutions() {
    let layer: Conv<(Channel,), (Made,), (Kw,), f64> = loaded(&[("weight", &[4, 3, 2]), ("bias", &[4])]);
    let x = array(20, (Batch.of(2), Channel.of(3), Column.of(6)));
    let y = layer.apply(&x, Column, &Window::new().dilation(2));
    Expected::of("conv1d").is(0, y.order((Batch, Made, Column)));

    type Images = Tensor<f64, (Batch, Channel, Row, Column)>;
    type Layer = Conv<(Channel,), (Made,), (Kh, Kw), f64>;
    let layer: Layer = loaded(&[("weight", &[4, 3, 3, 2]), ("bias", &[4])]);
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(6), Column.of(5)));
    let steps = Window::new().stride((2, 1)).padding(1);
    let apply = |(layer, x): &(Layer, Images)| -> Tensor<f64, (Batch, Made, Row, Column)> {
        layer.apply(x, (Row, Column), &steps)
    };
    Expected::of("conv2d").is(0, apply(&(layer.clone(), x.clone())).order((Batch, Made, Row, Column)));
    check(apply, &(layer, x));
}

#[test]
fn batch_norm() {
    type Images = Tensor<f64, (Batch, Channel, Row, Column)>;
    let arrays: [(&str, &[usize]); 4] =
        [("weight", &[3]), ("bias", &[3]), ("running_mean", &[3]), ("running_var", &[3])];
    let mut layer: BatchNorm<(Channel,), f64> = loaded(&arrays);
    layer.running_var = layer.running_var.map_elements(|x: f64| x * x);
    assert_eq!(layer.names(), ["weight", "bias"]);

    let expected = Expected::of("batch_norm");
    let images = |k| -> Images { array(k, (Batch.of(2), Channel.of(3), Row.of(4), Column.of(2))) };
    let order = (Batch, Channel, Row, Column);
    for step in 0..2 {
        let (y, moments) = layer.train(&images(10 + step), (Batch, Row, Column));
        expected.is(step, y.order(order));
        layer.remember(&moments);
    }
    expected.is(2, (&layer.running_mean).order(Channel));
    expected.is(3, (&layer.running_var).order(Channel));
    expected.is(4, layer.apply(&images(12)).order(order));

    let all = (layer, images(12));
    check(|(layer, x): &(BatchNorm<(Channel,), f64>, Images)| layer.train(x, (Batch, Row, Column)).0, &all);
    check(|(layer, x): &(BatchNorm<(Channel,), f64>, Images)| layer.apply(x), &all);
}

/// The eight features of a token are two heads of four features.
type Attention = MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat, f64>;

/// Two query heads share each of the two key heads.
type GroupedAttention = MultiHeadAttention<(Width,), (Head, Group, Feat), (Head, Feat), Feat, f64>;

fn attention() -> Attention {
    loaded(&[
        ("q_proj.weight", &[8, 8]),
        ("q_proj.bias", &[8]),
        ("k_proj.weight", &[8, 8]),
        ("k_proj.bias", &[8]),
        ("v_proj.weight", &[8, 8]),
        ("v_proj.bias", &[8]),
        ("out_proj.weight", &[8, 8]),
        ("out_proj.bias", &[8]),
    ])
}

fn texts() -> X {
    array(20, (Batch.of(2), Time.of(5), Width.of(8)))
}

#[test]
fn attention_to_itself_and_to_others() {
    let (expected, layer, x) = (Expected::of("attention"), attention(), texts());
    let memory: Tensor<f64, (Batch, Source, Width)> = array(21, (Batch.of(2), Source.of(3), Width.of(8)));
    let order = (Batch, Time, Width);
    expected.is(0, layer.among(&x, Time, Key, true).order(order));
    expected.is(1, layer.among(&x, Time, Key, Key.le(Time)).order(order));
    expected.is(2, layer.to(&x, &memory, Source, true).order(order));
    let small = noise(&layer, 3);
    check(|(layer, x): &(Attention, X)| layer.among(x, Time, Key, Key.le(Time)), &(small.clone(), x.clone()));
    let to = |(layer, x, memory): &(Attention, X, _)| layer.to(x, memory, Source, true);
    check(to, &(small, x, memory));
}

#[test]
fn several_queries_share_a_key() {
    let layer: GroupedAttention = loaded(&[
        ("q_proj.weight", &[12, 8]),
        ("q_proj.bias", &[12]),
        ("k_proj.weight", &[6, 8]),
        ("k_proj.bias", &[6]),
        ("v_proj.weight", &[6, 8]),
        ("v_proj.bias", &[6]),
        ("out_proj.weight", &[8, 12]),
        ("out_proj.bias", &[8]),
    ]);
    let y = layer.among(&texts(), Time, Key, Key.le(Time));
    Expected::of("grouped_attention").is(0, y.order((Batch, Time, Width)));
}

/// Tokens arrive one by one or several at once, in a cache with the capacity that they need, with
/// more, or with less. Queries and keys have rotary position embeddings.
#[test]
fn a_cache_agrees_with_the_whole_text() {
    let (layer, x) = (attention(), texts());
    let rope = Rope::<Time, Feat, f64>::new(Time.of(5), Feat.of(4), 100.0);
    let part = |x: &X, past: &mut KeyValues<_, Key, f64>| -> X {
        let start = past.len();
        let queries = rope.apply(&layer.query.apply(x), start);
        let keys = rope.apply(&layer.key.apply(x), start).rename(Time, Key);
        past.push(keys, layer.value.apply(x).rename(Time, Key));
        layer.attend(&queries, past.keys(), past.values(), Key, (Key - Time).le(start as isize))
    };
    let whole = part(&x, &mut KeyValues::new((Batch.of(2), Head, Key.of(5), Feat.of(4))));
    for (room, end) in [(5, 5), (9, 9), (1, 6), (3, 6)] {
        let mut past = KeyValues::new((Batch.of(2), Head, Key.of(room), Feat.of(4)));
        assert!(past.is_empty());
        for (start, end) in [(0, 1), (1, 3), (3, 4), (4, 5)] {
            let before = past.clone();
            let y = part(&(&x).slice(Time, start..end).eval(), &mut past);
            let expected = (&whole).slice(Time, start..end);
            assert!((y - expected).abs().max((Batch, Time, Width)).order(()) < 1e-12);
            // The clone still has only the earlier tokens.
            assert_eq!((before.len(), past.len()), (start as usize, end as usize));
            assert_eq!(before.keys(), past.keys().slice(Key, ..start));
        }
        assert_eq!(past.capacity(), end);
        past.clear();
        assert!(past.is_empty());
    }
}

#[test]
fn rope() {
    type Heads = Tensor<f64, (Batch, Time, Feat)>;
    let layer = Rope::<Time, Feat, f64>::new(Time.of(12), Feat.of(6), 10_000.0);
    let x: Heads = array(20, (Batch.of(2), Time.of(5), Feat.of(6)));
    let expected = Expected::of("rope");
    expected.is(0, layer.apply(&x, 0).order((Batch, Time, Feat)));
    expected.is(1, layer.apply(&x, 7).order((Batch, Time, Feat)));
    check(|x: &Heads| layer.apply(x, 7), &x);
    assert_eq!(layer.names(), [""; 0]);
}

#[test]
#[should_panic(expected = "5 features cannot be paired")]
fn rope_of_an_odd_number_of_features() {
    Rope::<Time, Feat>::new(Time.of(12), Feat.of(5), 10_000.0);
}

#[test]
#[should_panic(expected = "dim `Time`")]
fn rope_behind_the_last_position() {
    let layer = Rope::<Time, Feat>::new(Time.of(4), Feat.of(2), 10_000.0);
    layer.apply(&ones::<f32, _>((Time.of(2), Feat.of(2))), 3);
}

#[test]
fn swi_glu() {
    let layer: SwiGlu<(Width,), (Inner,), f64> =
        loaded(&[("gate_proj.weight", &[6, 4]), ("up_proj.weight", &[6, 4]), ("down_proj.weight", &[4, 6])]);
    Expected::of("swi_glu").is(0, layer.apply(&x()).order((Batch, Time, Width)));
    check(|(layer, x): &(SwiGlu<(Width,), (Inner,), f64>, X)| layer.apply(x), &(layer, x()));
}

type State = Tensor<f64, (Batch, Inner)>;

fn steps() -> X {
    array(20, (Batch.of(2), Time.of(5), Width.of(3)))
}

fn state(k: usize) -> State {
    array(k, (Batch.of(2), Inner.of(4)))
}

fn recurrent(gates: usize) -> [(&'static str, Vec<usize>); 4] {
    let gates = 4 * gates;
    [
        ("weight_ih_l0", vec![gates, 3]),
        ("weight_hh_l0", vec![gates, 4]),
        ("bias_ih_l0", vec![gates]),
        ("bias_hh_l0", vec![gates]),
    ]
}

#[test]
fn lstm() {
    type Layer = Lstm<Width, Inner, Next, f64>;
    type Shown = Tensor<f64, (Batch, Time, Inner)>;
    let arrays = recurrent(4);
    let layer: Layer = loaded(&arrays.each_ref().map(|(name, sizes)| (*name, sizes.as_slice())));
    let expected = Expected::of("lstm");
    let given = LstmState { hidden: state(21), cell: state(22) };
    for (at, first) in [(0, None), (3, Some(given.clone()))] {
        let (shown, last): (Shown, _) = layer.apply(&steps(), Time, first.clone());
        expected.is(at, shown.order((Batch, Time, Inner)));
        expected.is(at + 1, (&last.hidden).order((Batch, Inner)));
        expected.is(at + 2, (&last.cell).order((Batch, Inner)));
        let Some(mut state) = first else { continue };
        for at in 0..5 {
            state = layer.step(&steps().index(Time, at).eval(), &state);
        }
        expected.is(at + 1, state.hidden.order((Batch, Inner)));
    }
    let all = (layer, steps(), given);
    check(
        |(layer, x, first): &(Layer, X, LstmState<_, f64>)| -> (Shown, _) {
            layer.apply(x, Time, Some(first.clone()))
        },
        &all,
    );
}

#[test]
fn gru() {
    type Layer = Gru<Width, Inner, Next, f64>;
    type Shown = Tensor<f64, (Batch, Time, Inner)>;
    let arrays = recurrent(3);
    let layer: Layer = loaded(&arrays.each_ref().map(|(name, sizes)| (*name, sizes.as_slice())));
    let expected = Expected::of("gru");
    for (at, first) in [(0, None), (2, Some(state(21)))] {
        let (shown, last): (Shown, _) = layer.apply(&steps(), Time, first.clone());
        expected.is(at, shown.order((Batch, Time, Inner)));
        expected.is(at + 1, last.order((Batch, Inner)));
        let Some(mut state) = first else { continue };
        for at in 0..5 {
            state = layer.step(&steps().index(Time, at).eval(), &state);
        }
        expected.is(at + 1, state.order((Batch, Inner)));
    }
    let all = (layer, steps(), state(21));
    check(
        |(layer, x, first): &(Layer, X, State)| -> (Shown, _) { layer.apply(x, Time, Some(first.clone())) },
        &all,
    );
}

/// Calls several layers from a function that is generic over the other dims of its argument.
#[test]
fn layers_work_under_the_rest_of_the_dims() {
    struct Block {
        norm: LayerNorm<(Width,)>,
        attention: MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat>,
        rms: RmsNorm<(Width,)>,
        glu: SwiGlu<(Width,), (Inner,)>,
        memory: Lstm<Width, Inner, Next>,
        gates: Gru<Width, Inner, Next>,
        up: Projection<(Width,), (Inner,)>,
        down: Linear<(Inner,), (Width,)>,
    }

    impl Block {
        fn apply<B: Dims>(
            &self,
            x: &Tensor<f32, (Time, Width, Rest<B>)>,
        ) -> Tensor<f32, (Time, Width, Rest<B>)> {
            let x = (x + self.attention.among(&self.norm.apply(x), Time, Key, Key.le(Time))).eval();
            let x = (&x + self.glu.apply(&self.rms.apply(&x))).eval();
            let (shown, _) = self.memory.apply(&x, Time, None);
            let (other, _) = self.gates.apply(&x, Time, None);
            self.down.apply(&(shown + other + self.up.apply(&x)).eval())
        }
    }

    let heads = (Head, Feat.of(2));
    let block = Block {
        norm: LayerNorm::new(Width.of(4)),
        attention: MultiHeadAttention::new(Width.of(4), heads, heads, 1),
        rms: RmsNorm::new(Width.of(4)),
        glu: SwiGlu::new(Width.of(4), Inner.of(6), 2),
        memory: Lstm::new(Width.of(4), Inner.of(6), 3),
        gates: Gru::new(Width.of(4), Inner.of(6), 4),
        up: Projection::new(Width.of(4), Inner.of(6), 5),
        down: Linear::new(Inner.of(6), Width.of(4), 6),
    };
    let x: Tensor<f32, (Batch, Time, Width)> = randn((Batch.of(3), Time.of(5), Width.of(4)), 7);
    let all: Tensor<f32, (Batch, Time, Width)> = block.apply(&x.clone().seal((Time, Width))).unseal();
    for at in 0..3 {
        let one: Tensor<f32, (Time, Width)> =
            block.apply(&(&x).index(Batch, at).eval().seal((Time, Width))).unseal();
        assert!((one - (&all).index(Batch, at)).abs().max((Time, Width)).order(()) < 1e-5);
    }
}

/// The deviation of weights follows from their fan-in, and the same seed gives the same weights.
#[test]
fn constructors_draw_from_a_seed() {
    let deviation =
        |weight: Tensor<f32, (Width, Inner)>| weight.square().mean((Width, Inner)).order(()).sqrt();
    let layer = Linear::<(Width,), (Inner,)>::new(Width.of(100), Inner.of(60), 1);
    assert!((deviation(layer.weight.clone()) - 0.1).abs() < 0.005);
    assert_eq!(layer.bias.sum(Inner).order(()), 0.0);
    let same = Projection::<(Width,), (Inner,)>::new(Width.of(100), Inner.of(60), 1);
    assert_eq!(layer.weight, same.weight);
    let other = Projection::<(Width,), (Inner,)>::new(Width.of(100), Inner.of(60), 2);
    assert_ne!(layer.weight, other.weight);
    let conv =
        Conv::<(Channel,), (Made,), (Kh, Kw)>::new(Channel.of(25), Made.of(60), (Kh.of(2), Kw.of(2)), 1);
    let all = (Channel, Made, Kh, Kw);
    assert!((conv.weight.square().mean(all).order(()).sqrt() - 0.1_f32).abs() < 0.005);
    let glu = SwiGlu::<(Width,), (Inner,)>::new(Width.of(100), Inner.of(60), 1);
    assert!(glu.gate.weight != glu.up.weight);
    let memory = Lstm::<Width, Inner, Next>::new(Width.of(3), Inner.of(5), 1);
    assert_eq!(memory.names(), ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]);
    assert_eq!(memory.count_elements(), 4 * 5 * (3 + 5 + 2));
}

/// With a momentum of 0, the running moments stay; with 1, they become exactly those of the batch.
#[test]
fn running_moments_are_exact_at_both_ends() {
    let moments = ChannelMoments::<(Channel,), f64> {
        mean: from_vec(Channel.of(2), vec![1e-20, 0.3]),
        var: from_vec(Channel.of(2), vec![0.7, 1e-20]),
    };
    let mut layer = BatchNorm::<(Channel,), f64>::new(Channel.of(2));
    layer.running_mean = from_vec(Channel.of(2), vec![1.0, 1e20]);
    layer.momentum = 0.0;
    layer.remember(&moments);
    assert_eq!((&layer.running_mean).order(Channel), ndarray::array![1.0, 1e20]);
    assert_eq!((&layer.running_var).order(Channel), ndarray::array![1.0, 1.0]);
    layer.momentum = 1.0;
    layer.remember(&moments);
    assert_eq!(layer.running_mean, moments.mean);
    assert_eq!(layer.running_var, moments.var);

    // A batch without examples has the running moments.
    let none = zeros::<f64, _>((Batch.of(0), Channel.of(2)));
    let (output, of_none) = layer.train(&none, Batch);
    layer.remember(&of_none);
    assert!(output.is_empty());
    assert_eq!((&layer.running_mean, &layer.running_var), (&moments.mean, &moments.var));
}

/// The text of a panic.
fn panic_of(f: impl FnOnce()) -> String {
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).expect_err("a panic");
    payload.downcast_ref::<String>().cloned().expect("the message is text")
}

#[test]
fn settings_out_of_their_range_are_refused() {
    let x = randn::<f64, _>((Batch.of(2), Channel.of(3), Row.of(1), Column.of(1)), 1);
    let mut layer = BatchNorm::<(Channel,), f64>::new(Channel.of(3));
    let one = randn::<f64, _>((Batch.of(1), Channel.of(3), Row.of(1), Column.of(1)), 1);
    assert_eq!(
        panic_of(|| drop(layer.train(&one, (Batch, Row, Column)))),
        "`batch_norm` over `Batch`, `Row`, `Column` has only one value for each channel: two or more are needed for a variance"
    );
    let (_, moments) = layer.train(&x, (Batch, Row, Column));
    layer.momentum = 1.5;
    assert_eq!(
        panic_of(|| layer.remember(&moments)),
        "`BatchNorm` with the momentum 1.5: it must be between 0 and 1"
    );
    layer.epsilon = -1.0;
    let expected = "`batch_norm` with the epsilon -1.0: it must be 0 or more";
    assert_eq!(panic_of(|| drop(layer.train(&x, (Batch, Row, Column)))), expected);
    let mut layer = LayerNorm::<(Channel,), f64>::new(Channel.of(3));
    layer.epsilon = -0.5;
    assert_eq!(
        panic_of(|| drop(layer.apply(&x))),
        "`layer_norm` with the epsilon -0.5: it must be 0 or more"
    );
    let y = zeros::<f64, _>(Channel.of(3));
    for (found, expected) in [
        ((&y).try_huber_loss(&y, 0.0).err(), "`huber_loss` with the delta 0.0: it must be greater than 0"),
        (
            (&y).try_huber_loss(&y, f64::NAN).err(),
            "`huber_loss` with the delta NaN: it must be greater than 0",
        ),
        (
            (&y).try_smooth_l1_loss(&y, -1.0).err(),
            "`smooth_l1_loss` with the beta -1.0: it must be 0 or more",
        ),
        (
            typed_dims::init::try_truncated_normal::<f64, _>(Channel.of(3), -1.0, 1).err(),
            "`truncated_normal` with the deviation -1: it must be finite and 0 or more",
        ),
    ] {
        assert_eq!(found.expect("the setting is refused").to_string(), expected);
    }
    assert_eq!(
        panic_of(|| drop(Rope::<Row, Column, f64>::new(Row.of(2), Column.of(2), -1.0))),
        "`Rope` with the base -1: it must be finite and greater than 0"
    );
}
