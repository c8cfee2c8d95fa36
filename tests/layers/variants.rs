//! Layers without a bias, and other variants, compared with PyTorch's.

use super::*;
use typed_dims::grad::grad;
use typed_dims::nn::{ConvTranspose, GroupNorm, NoBias, NormMode};
use typed_dims::operators::attention::Attend;
use typed_dims::program::record;

type Images = Tensor<f64, (Batch, Channel, Row, Column)>;

#[test]
fn layer_norm_without_bias() {
    type Layer = LayerNorm<(Width,), f64, NoBias>;
    let layer: Layer = loaded(&[("weight", &[4])]);
    Expected::of("layer_norm_without_bias").is(0, layer.apply(&x()).order((Batch, Time, Width)));
    // The input can also be an expression.
    let twice = layer.apply(x() + x());
    assert!(
        (twice - layer.clone().with_epsilon(2.5e-6).apply(&x())).abs().max((Batch, Time, Width)).order(())
            < 1e-12
    );
    assert_eq!(Layer::without_bias(Width.of(4)).names(), ["weight"]);
    check(|(layer, x): &(Layer, X)| layer.apply(x), &(layer, x()));
}

#[test]
fn group_norm() {
    type Layer = GroupNorm<Channel, 2, f64>;
    let x: Images = array(20, (Batch.of(2), Channel.of(4), Row.of(3), Column.of(2)));
    let layer: Layer = loaded(&[("weight", &[4]), ("bias", &[4])]);
    Expected::of("group_norm").is(0, layer.apply(&x, (Row, Column)).order((Batch, Channel, Row, Column)));
    check(|(layer, x): &(Layer, Images)| layer.apply(x, (Row, Column)), &(layer, x.clone()));
    let (with, without) =
        (Layer::new(Channel.of(4)), GroupNorm::<Channel, 2, f64, NoBias>::without_bias(Channel.of(4)));
    assert_eq!(with.apply(&x, (Row, Column)), without.apply(&x, (Row, Column)));
}

#[test]
#[should_panic(expected = "dim `Channel` of size 4 cannot be split into 3 equal groups")]
fn groups_that_do_not_fit() {
    let x: Images = array(20, (Batch.of(2), Channel.of(4), Row.of(3), Column.of(2)));
    GroupNorm::<Channel, 3, f64>::new(Channel.of(4)).apply(&x, (Row, Column));
}

#[test]
fn convolution_without_bias() {
    type Layer = Conv<(Channel,), (Made,), (Kh, Kw), f64, NoBias>;
    let layer: Layer = loaded(&[("weight", &[4, 3, 3, 2])]);
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(6), Column.of(5)));
    let apply = |(layer, x): &(Layer, Images)| -> Tensor<f64, (Batch, Made, Row, Column)> {
        layer.apply(x, (Row, Column), &Window::new().padding_same())
    };
    let y = apply(&(layer.clone(), x.clone()));
    Expected::of("conv2d_without_bias").is(0, y.order((Batch, Made, Row, Column)));
    let kernel = (Kh.of(3), Kw.of(2));
    let drawn = Layer::without_bias(Channel.of(3), Made.of(4), kernel, 1);
    let biased = Conv::<(Channel,), (Made,), (Kh, Kw), f64>::new(Channel.of(3), Made.of(4), kernel, 1);
    assert_eq!(drawn.weight, biased.weight);
    check(apply, &(layer, x));
}

#[test]
fn transposed_convolution() {
    type Layer = ConvTranspose<(Channel,), (Made,), (Kh, Kw), f64>;
    let layer: Layer = loaded(&[("weight", &[3, 4, 3, 2]), ("bias", &[4])]);
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(4), Column.of(5)));
    let steps = Window::new().stride((2, 1)).padding(1).output_padding((1, 0));
    let apply = |(layer, x): &(Layer, Images)| -> Tensor<f64, (Batch, Made, Row, Column)> {
        layer.apply(x, (Row, Column), &steps)
    };
    let y = apply(&(layer.clone(), x.clone()));
    Expected::of("conv_transpose2d").is(0, y.order((Batch, Made, Row, Column)));
    check(apply, &(layer, x));
}

#[test]
fn attention_without_biases() {
    type Layer = MultiHeadAttention<(Width,), (Head, Feat), (Head, Feat), Feat, f64, NoBias>;
    let layer: Layer = loaded(&[
        ("q_proj.weight", &[8, 8]),
        ("k_proj.weight", &[8, 8]),
        ("v_proj.weight", &[8, 8]),
        ("out_proj.weight", &[8, 8]),
    ]);
    let y = layer.among(&texts(), Time, Key, true);
    Expected::of("attention_without_biases").is(0, y.order((Batch, Time, Width)));
    let heads = (Head, Feat.of(4));
    let drawn = Layer::without_bias(Width.of(8), heads, heads, 1);
    assert_eq!(drawn.names(), ["query.weight", "key.weight", "value.weight", "out.weight"]);
}

/// Dropout of attention weights equals the same operations written out.
#[test]
fn attention_with_dropout() {
    type Heads<D> = Tensor<f64, (Batch, D, Feat)>;
    let (feat, batch) = (Feat.of(4), Batch.of(2));
    let q: Heads<Time> = randn((batch, Time.of(5), feat), 1);
    let k: Heads<Key> = randn((batch, Key.of(6), feat), 2);
    let v: Heads<Key> = randn((batch, Key.of(6), feat), 3);
    let settings = || Attend::new(Feat, Key).mask(Key.lt(Time));
    let noisy = settings().dropout(0.3, 7).apply(&q, &k, &v);
    let scores = ((&q * &k).sum(Feat) * 0.5).masked_fill(Key.ge(Time), f64::NEG_INFINITY);
    let weights = select(Key.lt(Time), scores.softmax(Key).dropout(0.3, 7), 0.0);
    let written_out: Heads<Time> = (weights * &v).sum(Key);
    assert!((&noisy - written_out).abs().max((Batch, Time, Feat)).order(()) < 1e-12);
    // The first query has no key.
    assert_eq!((&noisy).index(Time, 0).abs().max((Batch, Feat)).order(()), 0.0);
    // A bias of minus infinity excludes keys as a mask does.
    let bias = zeros::<f64, _>((Time.of(5), Key.of(6))).masked_fill(Key.ge(Time), f64::NEG_INFINITY).eval();
    let biased = |q: &Heads<Time>| Attend::new(Feat, Key).mask(&bias).dropout(0.3, 7).apply(q, &k, &v);
    assert_eq!(biased(&q), noisy);
    let slopes = [
        grad(|q: &Heads<Time>| biased(q).square().sum((Batch, Time, Feat)), &q),
        grad(
            |q: &Heads<Time>| settings().dropout(0.3, 7).apply(q, &k, &v).square().sum((Batch, Time, Feat)),
            &q,
        ),
    ];
    assert_eq!(slopes[0], slopes[1]);
    // Where the mask is false, the bias is not read.
    let table = from_vec(Width.of(5), vec![0.0, 1.0, 2.0, 3.0, 4.0]);
    let far = || (Key.lt(Time), (&table).take(Width, Time.of(5) - Key.of(6)));
    let known = from_fn((Time.of(5), Key.of(6)), |(time, key)| time as f64 - key as f64);
    assert_eq!(
        Attend::new(Feat, Key).mask(far()).apply(&q, &k, &v),
        Attend::new(Feat, Key).mask((Key.lt(Time), &known)).apply(&q, &k, &v)
    );
    assert_eq!(
        Attend::new(Feat, Key).mask(far()).dropout(0.3, 7).apply(&q, &k, &v),
        Attend::new(Feat, Key).mask((Key.lt(Time), &known)).dropout(0.3, 7).apply(&q, &k, &v)
    );
    // With the probability 0, no weight is dropped. With 1, all weights are.
    let plain = settings().apply(&q, &k, &v);
    assert!(
        (settings().dropout(0.0, 7).apply(&q, &k, &v) - &plain).abs().max((Batch, Time, Feat)).order(())
            < 1e-12
    );
    assert_eq!(settings().dropout(1.0, 7).apply(&q, &k, &v).abs().max((Batch, Time, Feat)).order(()), 0.0);
    let error = settings().dropout(1.5, 7).try_apply(&q, &k, &v).expect_err("1.5 is not a probability");
    assert_eq!(error.to_string(), "`dropout` with the probability 1.5: it must be between 0 and 1");
    check(
        |(q, k, v): &(Heads<Time>, _, _)| -> Heads<Time> { settings().dropout(0.3, 7).apply(q, k, v) },
        &(q, k, v),
    );
    let (layer, x) = (attention(), texts());
    let (first, second) = (layer.with_dropout(0.2, 1), layer.with_dropout(0.2, 2));
    let apply = |layer: &Attention| layer.among(&x, Time, Key, true);
    assert_eq!(apply(&first), apply(&layer.with_dropout(0.2, 1)));
    assert_ne!(apply(&first), apply(&second));
    assert_ne!(apply(&first), apply(&layer));
}

#[test]
fn the_row_of_padding_has_no_gradient() {
    let mut layer: Embedding<Word, (Width,), f64> = loaded(&[("weight", &[5, 4])]);
    layer.padding = Some(1);
    let ids = from_vec((Batch.of(2), Time.of(3)), vec![4_u32, 0, 2, 1, 1, 3]);
    let expected = Expected::of("embedding_with_padding");
    expected.is(0, layer.apply(&ids).order((Batch, Time, Width)));
    let by_x = |layer: &Embedding<Word, (Width,), f64>| -> Tensor<f64, ()> {
        (layer.apply(&ids) * x()).sum((Batch, Time, Width))
    };
    let slope = grad(&by_x, &layer);
    expected.is(1, slope.weight.order((Word, Width)));
    assert!(recorded(&by_x, &layer), "the layer cannot be recorded");
    let fresh = Embedding::<Word, (Width,)>::new(Word.of(5), Width.of(4), 1).with_padding(2);
    assert_eq!((&fresh.weight).index(Word, 2).abs().max(Width).order(()), 0.0);
    // The row is set to 0, even if it has numbers that are not finite.
    let weight = from_vec((Word.of(3), Width.of(2)), vec![1.0, 2.0, f64::NAN, f64::INFINITY, 3.0, -4.0]);
    let padded = Embedding::<Word, (Width,), f64> { weight, padding: None }.with_padding(1);
    let expected = ndarray::array![[1.0, 2.0], [0.0, 0.0], [3.0, -4.0]];
    assert_eq!(padded.weight.order((Word, Width)), expected);
}

/// The row of padding is 0 for all weights, so its slope is 0.
#[test]
fn padding_is_set_within_a_gradient_and_a_program() {
    type Table = Tensor<f64, (Word, Width)>;
    let ids = from_vec(Time.of(3), vec![2_u32, 1, 1]);
    let sum = |weight: &Table| -> Tensor<f64, ()> {
        let layer =
            Embedding::<Word, (Width,), f64> { weight: weight.clone(), padding: None }.with_padding(1);
        ((&layer.weight).square().sum((Word, Width)) + layer.apply(&ids).sum((Time, Width))).eval()
    };
    let weight: Table =
        from_vec((Word.of(3), Width.of(2)), vec![1.0, 2.0, f64::NAN, f64::INFINITY, 3.0, -4.0]);
    let slope = grad(sum, &weight).order((Word, Width));
    assert_eq!(slope, ndarray::array![[2.0, 4.0], [0.0, 0.0], [7.0, -7.0]]);
    let program = record(sum, &(&weight * 2.0).eval()).expect("the function can be recorded");
    assert_eq!(program.call(&weight).order(()), 29.0);
}

#[test]
fn features_that_are_neighbors_are_turned() {
    type Heads = Tensor<f64, (Batch, Time, Feat)>;
    let layer = Rope::<Time, Feat, f64>::interleaved(Time.of(12), Feat.of(6), 10_000.0);
    let x: Heads = array(20, (Batch.of(2), Time.of(5), Feat.of(6)));
    Expected::of("neighbors").is(0, layer.apply(&x, 7).order((Batch, Time, Feat)));
    check(|x: &Heads| layer.apply(x, 7), &x);
}

#[test]
fn a_batch_norm_runs_in_its_mode() {
    let x: Images = array(20, (Batch.of(2), Channel.of(3), Row.of(4), Column.of(2)));
    let mut layer = BatchNorm::<(Channel,), f64>::new(Channel.of(3));
    let mut mode = NormMode::training();
    let y = layer.apply_in(&x, (Batch, Row, Column), &mut mode);
    let (expected, moments) = layer.train(&x, (Batch, Row, Column));
    assert_eq!(y, expected);
    let [found] = &mode.into_moments()[..] else { panic!("the moments are not those of one layer") };
    assert_eq!((&found.mean, &found.var), (&moments.mean, &moments.var));
    layer.remember(found);
    let mut mode = NormMode::Inference;
    assert_eq!(layer.apply_in(&x, (Batch, Row, Column), &mut mode), layer.apply(&x));
    assert!(mode.into_moments().is_empty());
}
