//! Functions that are recorded with one input and called with others: other numbers, indices, masks
//! and labels. The program returns what the function returns for them.

#[path = "recorded/seeds.rs"]
mod seeds;
#[path = "support/splitmix.rs"]
mod splitmix;

use typed_dims::grad::{checkpoint, custom_vjp, grad, loss_and_grad, value_and_grad};
use typed_dims::nn::{Embedding, LayerNorm, Linear};
use typed_dims::optim::{Adam, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::{Program, record};

#[cfg(all(feature = "serde", feature = "half"))]
#[path = "recorded/damaged.rs"]
mod damaged;
#[cfg(feature = "serde")]
#[path = "support/reloaded.rs"]
mod reload;
#[cfg(feature = "serde")]
#[path = "recorded/saved.rs"]
mod saved;

#[cfg(feature = "serde")]
use reload::reloaded;

/// Without `serde`, programs cannot be serialized. This converts the program to its saved form and
/// back.
#[cfg(not(feature = "serde"))]
fn reloaded<In: RecordInputs, Out: Parameters>(program: &Program<In, Out>, like: &Out) -> Program<In, Out> {
    program.to_saved().and_then(|saved| saved.restore(like)).expect("the program can be restored")
}

#[path = "recorded/bits.rs"]
mod bits;
#[path = "recorded/fused.rs"]
mod fused;
#[path = "recorded/jit.rs"]
mod jit;
#[path = "recorded/open.rs"]
mod open;
#[path = "recorded/prepared.rs"]
mod prepared;
#[path = "recorded/spec.rs"]
mod spec;
#[path = "recorded/training.rs"]
mod training;

dims! {
    struct Batch;
    struct Seq;
    struct Key;
    struct Word;
    struct Width;
    struct Hidden;
    struct Class;
}

type Floats = Tensor<f32, (Batch, Width)>;
type Ids = Tensor<i64, (Batch, Seq)>;
type Labels = Tensor<usize, (Batch,)>;

fn floats(seed: u64) -> Floats {
    randn((Batch.of(4), Width.of(6)), seed)
}

fn ids(seed: u64) -> Ids {
    (rand::<f32, _>((Batch.of(4), Seq.of(3)), seed) * 7.0).cast::<i64>().eval()
}

fn labels(seed: u64) -> Labels {
    (rand::<f32, _>(Batch.of(4), seed) * 5.0).cast::<usize>().eval()
}

/// Checks that programs of one tensor return the function's results for other tensors.
macro_rules! same {
    ($($f:expr, $first:expr, $($other:expr),+;)*) => {$({
        let f = $f;
        let program = record(f, &$first).expect("the function can be recorded");
        assert!(program.steps() > 0);
        let loaded = reloaded(&program, &f(&$first));
        for other in [$(&$other),+] {
            assert_eq!(program.call(other), f(other), "{}", stringify!($f));
            assert_eq!(loaded.call(other), f(other), "{}, loaded", stringify!($f));
        }
    })*};
}

#[test]
fn integers_and_masks_are_recorded() {
    let (x, y, z) = (floats(1), floats(2), floats(3));
    same! {
        |x: &Floats| x.gt(0.0).eval(), x, y, z;
        |x: &Floats| x.gt(0.0).count(Width), x, y, z;
        |x: &Floats| x.gt(1.0).any(Width), x, y, z;
        |x: &Floats| x.lt(1.0).all(Width), x, y, z;
        |x: &Floats| x.argmax(Width), x, y, z;
        |x: &Floats| x.argmin((Batch, Width)), x, y, z;
        |x: &Floats| (x * 10.0).cast::<i32>().sum(Width), x, y, z;
        |x: &Floats| (x * 10.0).cast::<i64>().max(Batch), x, y, z;
        |x: &Floats| (x * 10.0).cast::<i16>().cumsum(Width), x, y, z;
        |x: &Floats| x.argsort(Width), x, y, z;
        |x: &Floats| x.take(Width, x.argsort(Width)).eval(), x, y, z;
        |x: &Floats| select(x.gt(0.0), x, x.exp()).eval(), x, y, z;
        |x: &Floats| x.masked_fill(x.lt(0.0), -1.0).eval(), x, y, z;
        |x: &Floats| x.topk(Width, 2).0, x, y, z;
        |x: &Floats| x.topk(Width, 2).1, x, y, z;
        |x: &Floats| concat(Width, [x.view(), ones((Batch.of(4), Width.of(2))).view()]), x, y, z;
        |x: &Floats| x.pad(Width, 1, 2, Pad::Constant(3.0)), x, y, z;
        |x: &Floats| x.detach().eval(), x, y, z;
    }
    let (x, y, z) = (ids(1), ids(2), ids(3));
    same! {
        |x: &Ids| (x * 3 - 1).eval(), x, y, z;
        |x: &Ids| x.sum(Seq), x, y, z;
        |x: &Ids| x.max((Batch, Seq)), x, y, z;
        |x: &Ids| x.roll(Seq, 1), x, y, z;
        |x: &Ids| x.sort(Seq), x, y, z;
        |x: &Ids| x.eq(2).cast::<f32>().mean(Batch), x, y, z;
        |x: &Ids| x.one_hot::<f32, _>(Word.of(7)).eval(), x, y, z;
        |x: &Ids| stack(Hidden, [x, x]), x, y, z;
    }
}

#[test]
fn logic_is_recorded() {
    type Mask = Tensor<bool, (Batch, Width)>;
    type Bytes = Tensor<u8, (Batch, Width)>;
    let mask = |seed| -> Mask { floats(seed).gt(0.2).eval() };
    let (x, y, z) = (mask(1), mask(2), zeros::<f32, _>((Batch.of(4), Width.of(6))).gt(0.0).eval());
    same! {
        |x: &Mask| (!x).eval(), x, y, z;
        |x: &Mask| (x & x.roll(Width, 1)).eval(), x, y, z;
        |x: &Mask| (x | x.roll(Width, 1)).eval(), x, y, z;
        |x: &Mask| (x ^ x.roll(Width, 1)).eval(), x, y, z;
        |x: &Mask| x.any(Width), x, y, z;
        |x: &Mask| x.all(Batch), x, y, z;
        |x: &Mask| x.count((Batch, Width)), x, y, z;
        |x: &Mask| x.cast::<u8>().sum(Width), x, y, z;
    }
    let bytes =
        |seed| -> Bytes { (rand::<f32, _>((Batch.of(4), Width.of(6)), seed) * 255.0).cast::<u8>().eval() };
    let (x, y, z) = (bytes(1), bytes(2), bytes(3));
    same! {
        |x: &Bytes| (!x).eval(), x, y, z;
        |x: &Bytes| (x & 15).eval(), x, y, z;
        |x: &Bytes| (x | 15).eval(), x, y, z;
        |x: &Bytes| (x ^ x.roll(Batch, 1)).eval(), x, y, z;
        |x: &Bytes| (x + 200).eval(), x, y, z;
        |x: &Bytes| (x * 3).max(Width), x, y, z;
    }
    let (x, y, z) = (ids(1), ids(2), (ids(3) - 10).eval());
    same! {
        |x: &Ids| x.floor_div(4).eval(), x, y, z;
        |x: &Ids| (x % 4).eval(), x, y, z;
        |x: &Ids| (x - 5).abs().eval(), x, y, z;
        |x: &Ids| (-x).clamp(-3, 3).eval(), x, y, z;
        |x: &Ids| x.prod(Seq), x, y, z;
        |x: &Ids| x.argsort(Seq), x, y, z;
    }
}

#[test]
fn sums_of_selected_numbers_wrap_around() {
    type Mask = Tensor<bool, (Batch, Width)>;
    let mask = |seed| -> Mask { floats(seed).gt(0.2).eval() };
    let (x, y, z) = (mask(1), mask(2), mask(3));
    same! {
        |x: &Mask| (select(x, 100_i8, 0_i8) + 100).lt(0).eval(), x, y, z;
        |x: &Mask| (select(x, 200_u8, 0_u8) + 100).cast::<f32>().eval(), x, y, z;
        |x: &Mask| (select(x, i16::MAX, 0_i16) + 1).cast::<f32>().eval(), x, y, z;
        |x: &Mask| (select(x, u16::MAX, 0_u16) + 1).cast::<i64>().eval(), x, y, z;
        |x: &Mask| (select(x, i32::MAX, 0_i32) + 1).cast::<i64>().eval(), x, y, z;
        |x: &Mask| (select(x, u32::MAX, 0_u32) + 1).cast::<i64>().eval(), x, y, z;
        // Equal numbers of two types.
        |x: &Mask| {
            let (short, long) = (select(x, 100_i8, 0_i8) + 100, select(x, 100_i64, 0_i64) + 100);
            (short.cast::<i64>() + long).eval()
        }, x, y, z;
    }
}

#[test]
fn unsigned_integers_are_recorded_up_to_the_greatest() {
    type Numbers = Tensor<u64, (Batch,)>;
    let all = |numbers: [u64; 5]| -> Numbers { from_vec(Batch.of(5), numbers.to_vec()) };
    let half = 1 << 63;
    let (x, y, z) = (
        all([3, 4, 5, 6, 9]),
        all([0, u64::MAX, half + 5, half, half + (1 << 53) + 1025]),
        all([half + 1025, half + 1024, half - 1, u64::MAX - 1024, 1]),
    );
    let other = &all([1, 2, u64::MAX, half, 7]);
    same! {
        |x: &Numbers| (x * 0x9E37_79B9_7F4A_7C15 + other).eval(), x, y, z;
        |x: &Numbers| (!(x & 255) | (x ^ other)).eval(), x, y, z;
        |x: &Numbers| x.gt(5).eval(), x, y, z;
        |x: &Numbers| x.lt(half + 1).eval(), x, y, z;
        |x: &Numbers| x.ge(other).eval(), x, y, z;
        |x: &Numbers| x.le(other).eval(), x, y, z;
        |x: &Numbers| x.eq(u64::MAX).eval(), x, y, z;
        |x: &Numbers| x.maximum(other).eval(), x, y, z;
        |x: &Numbers| x.minimum(7).eval(), x, y, z;
        |x: &Numbers| x.clamp(2, 9).eval(), x, y, z;
        |x: &Numbers| x.clamp(5, u64::MAX - 1).eval(), x, y, z;
        |x: &Numbers| (x / 3).eval(), x, y, z;
        |x: &Numbers| (x % 10).eval(), x, y, z;
        |x: &Numbers| x.remainder(half + 3).eval(), x, y, z;
        |x: &Numbers| x.floor_div(other).eval(), x, y, z;
        |x: &Numbers| x.signum().eval(), x, y, z;
        |x: &Numbers| x.cast::<f32>().eval(), x, y, z;
        |x: &Numbers| x.cast::<f64>().eval(), x, y, z;
        |x: &Numbers| x.cast::<bool>().eval(), x, y, z;
        |x: &Numbers| x.cast::<i64>().lt(0).eval(), x, y, z;
        |x: &Numbers| x.cast::<i64>().max(Batch), x, y, z;
        |x: &Numbers| x.cast::<i64>().argmin(Batch), x, y, z;
        |x: &Numbers| (x.cast::<i64>() / 3).cast::<u64>().gt(7).eval(), x, y, z;
        |x: &Numbers| select(x.cast::<i64>().lt(5), x.lt(5), x.gt(half)).eval(), x, y, z;
        |x: &Numbers| (x.cast::<u32>().cast::<f64>() * 1e19 / 3.0).cast::<u64>().eval(), x, y, z;
        |x: &Numbers| (x.cast::<i32>() - 30).cast::<usize>().cast::<f32>().eval(), x, y, z;
        |x: &Numbers| select(x.gt(5), half, 7).lt(other).eval(), x, y, z;
        |x: &Numbers| select(x.gt(other), x, other).eval(), x, y, z;
        |x: &Numbers| x.max(Batch), x, y, z;
        |x: &Numbers| x.min(Batch), x, y, z;
        |x: &Numbers| (x + 1).argmax(Batch), x, y, z;
        |x: &Numbers| x.argmin(Batch), x, y, z;
        |x: &Numbers| x.sum(Batch), x, y, z;
        |x: &Numbers| x.cumsum(Batch), x, y, z;
        |x: &Numbers| x.cummax(Batch), x, y, z;
        |x: &Numbers| x.sort(Batch), x, y, z;
        |x: &Numbers| x.from_end(4).eval(), x, y, z;
        |x: &Numbers| x.from_end(4).lt(0).eval(), x, y, z;
        |x: &Numbers| tensor!([] => count[i in 0..5](i - 3 < x[])), x, y, z;
        |x: &Numbers| tensor!([] => count[i in 0..5](x[] - i < 0)), x, y, z;
    }
    let f = |x: &Numbers| x.clamp(2, half).eval();
    assert!(caught(|| record(f, &x).err()).is_err(), "the bound 2^63 is refused");
}

#[test]
fn bounds_of_integers_are_exact() {
    type Numbers = Tensor<i64, (Batch,)>;
    let all = |numbers: [i64; 4]| -> Numbers { from_vec(Batch.of(4), numbers.to_vec()) };
    let far = (1 << 53) - 1;
    let (x, y, z) = (
        all([3, 4, 5, 6]),
        all([i64::MAX, i64::MAX - 1, i64::MIN + 1, i64::MIN]),
        all([far, far + 1, -far - 2, -far]),
    );
    same! {
        |x: &Numbers| x.clamp(i64::MIN, i64::MAX).eval(), x, y, z;
        |x: &Numbers| x.clamp(-far, far).eval(), x, y, z;
        |x: &Numbers| x.minimum(i64::MAX - 1).maximum(i64::MIN + 1).eval(), x, y, z;
    }
    for (low, high) in [(0, i64::MAX - 1), (i64::MIN + 1, 0), (0, far + 2)] {
        let f = |x: &Numbers| x.clamp(low, high).eval();
        assert!(caught(|| record(f, &x).err()).is_err(), "the bounds {low} and {high} are refused");
    }
}

#[test]
fn a_table_is_read_at_the_indices_of_the_call() {
    let table = from_fn((Word.of(7), Width.of(2)), |(word, width)| (10 * word + width) as f32);
    // The table is an input, or captured.
    let both = record(
        |(table, ids): (&Tensor<f32, (Word, Width)>, &Ids)| table.take(Word, ids).sum(Seq),
        (&table, &ids(1)),
    );
    let one = record(|ids: &Ids| (&table).take(Word, ids).sum(Seq), &ids(1)).unwrap();
    for other in [ids(1), ids(2), ids(9)] {
        let expected = (&table).take(Word, &other).sum(Seq);
        assert_eq!(both.as_ref().unwrap().call((&table, &other)), expected);
        assert_eq!(one.call(&other), expected);
    }
    // The table may be a borrowed array: the program copies it.
    let array = table.view().order((Word, Width));
    let rows = array.view();
    let lent = record(|ids: &Ids| rows.at((ids, Width)).sum(Seq), &ids(1)).unwrap();
    assert_eq!(lent.call(&ids(9)), rows.at((&ids(9), Width)).sum(Seq));
    let wrong = (ids(1) + 9).eval();
    assert!(lent.try_call(&wrong).is_err());
    let error = one.try_call(&wrong).expect_err("the index is out of range").to_string();
    assert!(error.contains("is out of range for an axis of size 7"), "{error}");
}

#[derive(Parameters)]
struct Classifier {
    words: Embedding<Word, (Width,)>,
    norm: LayerNorm<(Width,)>,
    inner: Linear<(Width,), (Hidden,)>,
    outer: Linear<(Hidden,), (Class,)>,
}

impl Classifier {
    fn new(seed: u64) -> Self {
        Classifier {
            words: Embedding::new(Word.of(7), Width.of(6), seed),
            norm: LayerNorm::new(Width.of(6)),
            inner: Linear::new(Width.of(6), Hidden.of(8), seed + 1),
            outer: Linear::new(Hidden.of(8), Class.of(5), seed + 2),
        }
    }

    fn scores(&self, ids: &Ids) -> Tensor<f32, (Batch, Class)> {
        let x: Tensor<f32, (Batch, Seq, Width)> = self.words.apply(ids);
        let x: Tensor<f32, (Batch, Width)> = x.mean(Seq);
        let x: Tensor<f32, (Batch, Hidden)> = self.inner.apply(&self.norm.apply(&x));
        self.outer.apply(&x.gelu().eval())
    }

    fn loss(&self, ids: &Ids, labels: &Labels) -> Tensor<f32, ()> {
        self.scores(ids).cross_entropy(Class, labels).mean(Batch)
    }
}

fn assert_near(found: &Classifier, expected: &Classifier) {
    let difference = found.zip_elements(expected, |a: f32, b| (a - b).abs());
    let mut all = Vec::new();
    difference.map_elements(|x: f32| x);
    all.extend(difference.names());
    let most = typed_dims::optim::global_norm(&difference).order(());
    assert!(most < 1e-5, "the differences of {all:?} have the norm {most}");
}

#[test]
fn a_gradient_is_recorded_with_its_labels() {
    let (network, other) = (Classifier::new(1), Classifier::new(20));
    let step = record(
        |(network, ids, labels): (&Classifier, &Ids, &Labels)| {
            loss_and_grad(|network: &Classifier| network.loss(ids, labels), network)
        },
        (&network, &ids(1), &labels(1)),
    )
    .unwrap();
    for (network, ids, labels) in
        [(&network, ids(1), labels(1)), (&other, ids(5), labels(6)), (&other, ids(7), labels(8))]
    {
        let (loss, gradient) = step.call((network, &ids, &labels));
        let (expected_loss, expected) =
            loss_and_grad(|network: &Classifier| network.loss(&ids, &labels), network);
        assert!((loss.order(()) - expected_loss.order(())).abs() < 1e-6);
        assert_near(&gradient, &expected);
    }
}

#[test]
fn attention_is_recorded_with_its_mask() {
    type X = Tensor<f32, (Batch, Seq, Width)>;
    type Mask = Tensor<bool, (Seq, Key)>;
    let x = |seed: u64| -> X { randn((Batch.of(2), Seq.of(4), Width.of(6)), seed) };
    let mask = |seed: u64| -> Mask { rand::<f32, _>((Seq.of(4), Key.of(4)), seed).gt(0.4).eval() };
    fn attend(x: &X, mask: &Mask) -> X {
        let keys = x.rename(Seq, Key);
        attention(x, &keys, &keys, Width, Key, 0.4, mask)
    }
    let program = record(|(x, mask): (&X, &Mask)| attend(x, mask), (&x(1), &mask(1))).unwrap();
    let slope = record(
        |(x, mask): (&X, &Mask)| grad(|x: &X| attend(x, mask).square().sum((Batch, Seq, Width)), x),
        (&x(1), &mask(1)),
    )
    .unwrap();
    for (x, mask) in [(x(1), mask(1)), (x(5), mask(6))] {
        let most = |a: X, b: X| (a - b).abs().max((Batch, Seq, Width)).order(());
        assert!(most(program.call((&x, &mask)), attend(&x, &mask)) < 1e-5);
        let expected = grad(|x: &X| attend(x, &mask).square().sum((Batch, Seq, Width)), &x);
        assert!(most(slope.call((&x, &mask)), expected) < 1e-4);
    }
}

/// Without features, the products of queries and keys are 0, so all keys count equally.
#[test]
fn attention_without_features_is_recorded() {
    type Queries = Tensor<f32, (Batch, Width)>;
    type Keys = Tensor<f32, (Key, Width)>;
    type Values = Tensor<f32, (Key, Hidden)>;
    type Bias = Tensor<f32, (Batch, Key)>;
    let (q, k): (Queries, Keys) = (zeros((Batch.of(3), Width.of(0))), zeros((Key.of(4), Width.of(0))));
    let elements: Vec<f32> = (1..9_u8).map(f32::from).collect();
    let v: Values = from_vec((Key.of(4), Hidden.of(2)), elements.clone());
    let f = |(q, k, v): (&Queries, &Keys, &Values)| -> Tensor<f32, (Batch, Hidden)> {
        attention(q, k, v * 2.0, Width, Key, 1.0, true)
    };
    let expected = f((&q, &k, &v));
    assert_eq!((&expected).index(Batch, 0).order(Hidden).to_vec(), [8.0, 10.0]);
    let program = record(f, (&q, &k, &v)).expect("the function can be recorded");
    assert_eq!(program.call((&q, &k, &v)), expected);
    // Values that the function captures.
    let array = ndarray::Array2::from_shape_vec((4, 2), elements).expect("there is a number for each place");
    let f = |(q, k, bias): (&Queries, &Keys, &Bias)| -> Tensor<f32, (Batch, Hidden)> {
        attention(q, k, array.at((Key, Hidden)), Width, Key, 1.0, bias)
    };
    let bias: Bias = zeros((Batch.of(3), Key.of(4)));
    let expected = f((&q, &k, &bias));
    assert_eq!((&expected).index(Batch, 0).order(Hidden).to_vec(), [4.0, 5.0]);
    let program = record(f, (&q, &k, &bias)).expect("the function can be recorded");
    assert_eq!(program.call((&q, &k, &bias)), expected);
    let slope = grad(|bias: &Bias| f((&q, &k, bias)).square().sum((Batch, Hidden)), &bias);
    assert_eq!(slope.index(Batch, 0).order(Key).to_vec(), [-13.5, -4.5, 4.5, 13.5]);
}

#[test]
fn a_mask_alone_is_recorded() {
    type Mask = Tensor<bool, (Batch, Key)>;
    let x: Floats = floats(3);
    let keys: Tensor<f32, (Key, Width)> = randn((Key.of(5), Width.of(6)), 4);
    let attend = |x: &Floats, mask: &Mask| attention(x, &keys, &keys, Width, Key, 0.5, mask);
    let mask = |seed: u64| -> Mask { rand::<f32, _>((Batch.of(4), Key.of(5)), seed).gt(0.5).eval() };
    let none = zeros::<f32, _>((Batch.of(4), Key.of(5))).gt(0.5).eval();
    let program = record(|mask: &Mask| attend(&x, mask), &mask(1)).unwrap();
    let slope = record(
        |(x, mask): (&Floats, &Mask)| grad(|x: &Floats| attend(x, mask).square().sum((Batch, Width)), x),
        (&x, &mask(1)),
    )
    .unwrap();
    for mask in [mask(7), none] {
        let most = |a: Floats, b: Floats| (a - b).abs().max((Batch, Width)).order(());
        assert!(most(program.call(&mask), attend(&x, &mask)) < 1e-5);
        let expected = grad(|x: &Floats| attend(x, &mask).square().sum((Batch, Width)), &x);
        assert!(most(slope.call((&x, &mask)), expected) < 1e-4, "the gradients differ");
    }
}

#[test]
fn what_values_decide_in_a_backward_pass_is_computed_again() {
    let distinct = from_fn((Batch.of(4), Width.of(6)), |(b, w)| (1 + 6 * b + w) as f32);
    let equal = from_fn((Batch.of(4), Width.of(6)), |_| -1.0_f32);
    let infinite = from_fn((Batch.of(4), Width.of(6)), |(b, w)| if w < 1 + b { f32::INFINITY } else { 0.5 });
    let gradients: [fn(&Floats) -> Floats; 4] = [
        |x| grad(|x: &Floats| x.relu().max(Width).sum(Batch), x),
        |x| grad(|x: &Floats| x.relu().min((Batch, Width)), x),
        |x| grad(|x: &Floats| x.logsumexp(Width).sum(Batch), x),
        |x| grad(|x: &Floats| x.logcumsumexp(Width).max(Width).sum(Batch), x),
    ];
    for (number, gradient) in gradients.into_iter().enumerate() {
        for first in [&distinct, &equal, &infinite] {
            let program = record(|x: &Floats| gradient(x), first).unwrap();
            for other in [&distinct, &equal, &infinite] {
                let (found, expected) =
                    (program.call(other).memory().to_vec(), gradient(other).memory().to_vec());
                for (found, expected) in found.into_iter().zip(expected) {
                    let is_same = found.is_nan() && expected.is_nan() || (found - expected).abs() < 1e-5;
                    assert!(is_same, "gradient {number}: {found} instead of {expected}");
                }
            }
        }
    }
}

#[test]
fn a_checkpoint_is_recorded_with_its_indices() {
    let network = Classifier::new(1);
    let loss_of = |ids: &Ids, labels: &Labels| {
        loss_and_grad(
            |network: &Classifier| {
                checkpoint(|(network, ids, labels)| network.loss(ids, labels), (network, ids, labels))
            },
            &network,
        )
    };
    let program =
        record(|(ids, labels): (&Ids, &Labels)| loss_of(ids, labels), (&ids(1), &labels(1))).unwrap();
    let (loss, gradient) = program.call((&ids(4), &labels(5)));
    let (expected_loss, expected) = loss_of(&ids(4), &labels(5));
    assert!((loss.order(()) - expected_loss.order(())).abs() < 1e-6);
    assert_near(&gradient, &expected);
}

#[test]
fn inputs_are_those_that_were_recorded() {
    type Lists = (Vec<Floats>, Vec<Floats>);
    let f = |(a, b): &Lists| (&a[0] + &b[0]).eval();
    let recorded: Lists = (vec![floats(1), floats(2)], vec![floats(3)]);
    let program = record(f, &recorded).unwrap();
    let error = |lists: &Lists| program.try_call(lists).expect_err("the inputs differ").to_string();
    let found = error(&(vec![floats(1)], vec![floats(2), floats(3)]));
    let expected = "found input `1.0`, but `0.1` was recorded at this position: record it again; `jit` does so by itself";
    assert_eq!(found, expected);
    assert_eq!(error(&(vec![floats(1), floats(2)], vec![])), "input `1.0` is missing");
    let program = record(|x: &Floats| (x * 2.0).eval(), &floats(1)).unwrap();
    let inner = caught(|| grad(|x: &Floats| program.call(x).sum((Batch, Width)), &floats(1)));
    let text = inner
        .expect_err("a program has no derivative")
        .downcast_ref::<String>()
        .expect("the message is text")
        .clone();
    assert!(text.contains("belongs to a gradient"), "{text}");
}

/// The result of a function, or its panic.
fn caught<T>(f: impl FnOnce() -> T) -> Result<T, Box<dyn std::any::Any + Send>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(f))
}

/// The message with which recording `f` fails, as an error or a panic.
fn refused<Y: Parameters>(f: fn(&Floats) -> Y) -> String {
    let x = floats(1);
    let run =
        std::panic::AssertUnwindSafe(|| record(|x: &Floats| f(x), &x).err().map(|error| error.to_string()));
    match std::panic::catch_unwind(run) {
        Ok(error) => error.expect("an error"),
        Err(payload) => payload.downcast_ref::<String>().expect("the message is text").clone(),
    }
}

#[test]
fn what_the_function_reads_by_itself_is_refused() {
    for (operation, error) in [
        ("order", refused(|x| from_vec(Batch.of(1), vec![x.max((Batch, Width)).order(())]))),
        (
            "order",
            refused(|x| {
                let total = x.argmax((Batch, Width)).order(());
                from_vec(Batch.of(1), vec![total])
            }),
        ),
        (
            "scatter_add",
            refused(|x| {
                ones::<f32, _>((Batch.of(4), Width.of(6))).scatter_add(Width, Class.of(6), x.argsort(Width))
            }),
        ),
        ("==", refused(|x| if x.max((Batch, Width)) == zeros(()) { x.exp().eval() } else { x.clone() })),
        ("custom_vjp", refused(|x| custom_vjp(|x| (x * 2.0).eval(), |_, _, dy| dy.clone(), x))),
        ("scatter", refused(|x| x.scatter(Width, Class.of(6), x.argsort(Width), 0.0))),
    ] {
        let place = " (at tests/recorded.rs:";
        assert!(error.contains(&format!("`{operation}` cannot be recorded{place}")), "{operation}: {error}");
    }
}

#[test]
fn other_sizes_are_an_error() {
    let program = record(|x: &Floats| x.sum(Width), &floats(1)).unwrap();
    let other = randn((Batch.of(5), Width.of(6)), 1);
    let error = program.try_call(&other).expect_err("the sizes differ").to_string();
    assert!(error.contains("has dims `Batch` = 5, `Width` = 6, but the program was recorded for dims `Batch` = 4, `Width` = 6"), "{error}");
}

#[test]
fn memory_that_is_changed_in_place_is_refused() {
    let counted = |ids: &Labels| {
        let mut counts = [0_i64; 5];
        counts.at_mut(ids).add_assign(1);
        from_vec(Word.of(5), counts.to_vec())
    };
    let text = |payload: Box<dyn std::any::Any + Send>| {
        payload.downcast_ref::<String>().expect("the message is text").clone()
    };
    let found = caught(|| record(counted, &labels(1)).err());
    assert!(text(found.expect_err("an error")).contains("`add_assign` cannot be recorded"));
}

#[test]
fn each_refusal_says_what_to_do() {
    let why = |error: String, operation: &str| -> String {
        let at = format!("`{operation}` cannot be recorded (at tests/recorded.rs:");
        let rest = error.strip_prefix(&at).unwrap_or_else(|| panic!("{operation}: {error}"));
        rest.split_once("): ").expect("the message has a reason").1.to_string()
    };
    let closure = "a program cannot call a closure; write a `ScalarOp` with a derivative, for `x.apply(op)`";
    assert_eq!(why(refused(|x| x.map(|x| x + 1.0).eval()), "map"), closure);
    assert_eq!(
        why(refused(|x| grad(|x: &Floats| x.map(|x| x + 1.0).sum((Batch, Width)), x)), "map"),
        closure
    );
    let pairs = why(refused(|x| x.zip_map(x, |x, y| x + y).eval()), "zip_map");
    assert!(pairs.starts_with("a program cannot call a closure"), "{pairs}");
    let counts = |x: &Floats| {
        ones::<f32, _>((Batch.of(4), Width.of(6))).scatter_add(Width, Class.of(6), x.argsort(Width))
    };
    assert_eq!(
        why(refused(counts), "scatter_add"),
        "its indices depend on an input; capture them, or write `contract` and `one_hot`"
    );
    let number = refused(|x| {
        let (_, slope) = value_and_grad(|x: &Floats| x.square().sum((Batch, Width)), x);
        slope
    });
    assert_eq!(
        why(number, "value_and_grad"),
        "it returns a number; `loss_and_grad` returns the loss as a tensor"
    );
    let text = std::cell::RefCell::new(String::new());
    let f = |x: &Floats| {
        *text.borrow_mut() = serde_json::to_string(x).expect_err("the function reads elements").to_string();
        x.exp().eval()
    };
    assert!(record(f, &floats(1)).is_ok());
    assert!(text.borrow().starts_with("`serialize` cannot be recorded"), "{}", text.borrow());
}

#[test]
fn a_tensor_that_changes_in_place_has_a_new_value() {
    type Line = Tensor<f32, (Width,)>;
    let (x, y, z) = (floats(1), floats(2), floats(3));
    let line = |x: &Floats| x.mean(Batch);
    same! {
        |x: &Floats| { let mut y = x.clone(); y += x; y *= 2.0; y -= x.exp(); y /= x; y }, x, y, z;
        |x: &Floats| { let mut y = x.exp().eval(); y.assign(1.0); y += line(x); y }, x, y, z;
        // A tensor that is not an input.
        |x: &Floats| { let mut y = ones((Batch.of(4), Width.of(6))); y += x; y += x.gt(0.0).cast::<f32>(); y }, x, y, z;
        // A clone from before the change keeps its value.
        |x: &Floats| { let mut y = x.exp().eval(); let before = y.clone(); y += x; (before, y) }, x, y, z;
        // Other memory orders, and repeated elements.
        |x: &Floats| { let mut y: Floats = from_fn((Width.of(6), Batch.of(4)), |(a, b)| (a * b) as f32); y += x; y }, x, y, z;
        |x: &Floats| { let mut y: Line = full(Width.of(6), 2.0); y %= line(x); y }, x, y, z;
        |x: &Floats| { let mut ids = x.argsort(Width); ids += 1; ids *= 2; ids }, x, y, z;
        |x: &Floats| {
            let mut w = x.clone();
            for _ in 0..3 {
                w -= grad(|w: &Floats| (w * x).exp().sum((Batch, Width)), &w) * 0.1;
            }
            w
        }, x, y, z;
    }
    let program = record(
        |mut x: Floats| {
            x += 1.0;
            x
        },
        floats(1),
    )
    .expect("the function can be recorded");
    assert_eq!(program.call(floats(2)), (floats(2) + 1.0).eval());
    let f = |x: &Floats| {
        let mut y = ones((Batch.of(4), Width.of(6)));
        y += x.index(Batch, 0);
        y
    };
    assert_eq!(record(f, &floats(1)).expect("the function can be recorded").call(&floats(2)), f(&floats(2)));
}

#[test]
fn half_precisions_are_rounded_by_each_operation() {
    macro_rules! of {
        ($half:ty) => {{
            type Halves = Tensor<$half, (Batch, Width)>;
            type Numbers = Tensor<u64, (Batch,)>;
            let halves = |seed| -> Halves { (floats(seed) * 3.0).cast::<$half>().eval() };
            let (x, y, z) = (halves(1), halves(2), halves(3));
            let third = <$half>::from_f32(1.0 / 3.0);
            // `big + 1` is rounded to `big`.
            let (one, big) = (<$half>::ONE, <$half>::from_f32((1 << <$half>::MANTISSA_DIGITS) as f32));
            let numbers = |from: u64| -> Numbers { from_vec(Batch.of(3), vec![from, from + 1, from + 2]) };
            let (u, v) = (numbers(1 << <$half>::MANTISSA_DIGITS), numbers(0));
            same! {
                |x: &Halves| (select(x.gt(third), big, one) + one - big).eval(), x, y, z;
                |x: &Numbers| (x.cast::<$half>() + one - big).eval(), u, v, u;
                |x: &Halves| (x * x + x).eval(), x, y, z;
                |x: &Halves| (x * third - x.exp() / x).eval(), x, y, z;
                |x: &Halves| select(x.gt(third), x * x, -x).tanh().eval(), x, y, z;
                |x: &Halves| (x * x + third).sum(Width), x, y, z;
                |x: &Halves| (x * x).maximum(x.exp()).softmax(Width), x, y, z;
                |x: &Halves| (x.cast::<f32>() * 1.1).cast::<$half>().cast::<f32>().eval(), x, y, z;
                |x: &Halves| (x.cast::<f64>() * 1.1).cast::<$half>().eval(), x, y, z;
                |x: &Halves| ((x.cast::<f32>() * 100.0).cast::<i64>() * 7).cast::<$half>().eval(), x, y, z;
                |x: &Halves| grad(|x: &Halves| (x * x + x).exp().sum((Batch, Width)), x), x, y, z;
            }
        }};
    }
    of!(half::f16);
    of!(half::bf16);
    let x = floats(1);
    let f = |x: &Floats| (x.cast::<half::f16>().cast::<f32>() + x.cast::<half::bf16>().cast::<f32>()).eval();
    let program = record(f, &floats(2)).expect("the function can be recorded");
    assert_eq!(program.call(&x), f(&x));
}

#[test]
fn parts_of_recorded_tensors_do_not_change_in_place() {
    for error in [
        refused(|x| {
            let mut y = x.exp().eval();
            y.slice_mut(Width, 0..2).assign(0.0);
            y
        }),
        refused(|x| {
            let mut y = x.clone();
            y.as_place().assign(1.0);
            y
        }),
    ] {
        let at = "a tensor cannot be changed in place while a function is recorded (at tests/recorded.rs:";
        assert!(error.starts_with(at), "{error}");
        assert!(error.ends_with("compute a new one: `let x = (x + y).eval();`"), "{error}");
    }
    let count = caught(|| record(|adam: &Adam<Floats>| full((), adam.steps()), &Adam::new(0.1)).err());
    let text = count
        .expect_err("the step count cannot be recorded")
        .downcast_ref::<String>()
        .expect("the message is text")
        .clone();
    assert!(text.starts_with("`steps` cannot be recorded (at tests/recorded.rs:"), "{text}");
}

#[test]
fn a_tensor_of_an_outer_function_is_no_constant() {
    type Total = Tensor<f32, ()>;
    let (x, own) = (floats(1), floats(2));
    let inner = |outer: &Floats| -> Result<Program<Floats, Total>, DimError> {
        record(|y: Floats| (y.exp() * outer).sum((Batch, Width)), floats(2))
    };
    let mut found = Vec::new();
    let slope = grad(
        |x: &Floats| {
            found.push(inner(x).err().expect("the tensor belongs to a gradient").to_string());
            x.sum((Batch, Width))
        },
        &x,
    );
    assert_eq!(slope, ones((Batch.of(4), Width.of(6))));
    let program = record(
        |x: &Floats| {
            found.push(inner(x).err().expect("the tensor belongs to a recorded function").to_string());
            (x * 2.0).eval()
        },
        &x,
    );
    assert_eq!(program.expect("the function can be recorded").call(&own), (&own * 2.0).eval());
    for error in &found {
        let start = "the recorded function captures a tensor of an outer gradient or of an outer recorded function (at tests/recorded.rs:";
        assert!(error.starts_with(start) && error.ends_with("): pass it as an input"), "{error}");
    }
    assert_eq!(found.len(), 2);
    // After the outer function has returned, the tensor is a constant.
    assert_eq!(
        inner(&x).expect("the outer function has returned").call(&own),
        (own.exp() * &x).sum((Batch, Width))
    );
}

#[test]
fn signed_zeros_and_constants_are_those_of_the_function() {
    type Zeros = Tensor<f32, (Width,)>;
    let zeros = |sign: f32| -> Zeros { from_vec(Width.of(3), vec![0.0 * sign, -0.0 * sign, sign]) };
    let bits = |x: &Zeros| x.memory().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let all: [fn(&Zeros) -> Zeros; 9] = [
        |x| (x + 0.0).eval(),
        |x| (x - 0.0).eval(),
        |x| (0.0 - x).eval(),
        |x| (x * 1.0 + 0.0).eval(),
        |x| (x * -1.0).eval(),
        |x| (1.0 / (x + 0.0)).eval(),
        |x| (x.abs() + 0.0 - x).eval(),
        |x| select(x.gt(0.0), x + 0.0, 0.0 - x).eval(),
        |x| (x.roll(Width, 1) + 0.0 + x).eval(),
    ];
    for (number, f) in all.into_iter().enumerate() {
        let program = record(f, &zeros(1.0)).expect("the function can be recorded");
        for sign in [1.0, -1.0] {
            assert_eq!(bits(&program.call(&zeros(sign))), bits(&f(&zeros(sign))), "function {number}");
        }
    }
}

/// A listing names the operations.
#[test]
fn steps_have_the_names_of_methods() {
    type Table = Tensor<f32, (Batch, Width)>;
    let input: Table = ones((Batch.of(2), Width.of(3)));
    macro_rules! assert_operations {
        ($($expected:literal: |$x:ident| $call:expr;)*) => {$(
            let program = record(|$x: &Table| $call, &input).expect("the function can be recorded");
            assert_eq!(program.listing().steps[0].operation, $expected);
        )*};
    }
    assert_operations! {
        "cumsum(%1)": |x| x.cumsum(Width);
        "cumprod(%1)": |x| x.cumprod(Width);
        "cummax(%1)": |x| x.cummax(Width);
        "cummin(%1)": |x| x.cummin(Width);
        "logcumsumexp(%1)": |x| x.logcumsumexp(Width);
        "softmax(%1)": |x| x.softmax(Width);
        "log_softmax(%1)": |x| x.log_softmax(Width);
        "standardize(%1)": |x| x.layer_norm(Width, 1e-5);
        "rms_norm(%1)": |x| x.rms_norm(Width, 1e-5);
        "normalize(%1)": |x| x.normalize(Width, 1e-5);
        "mean(%1)": |x| x.mean(Width);
        "prod(%1)": |x| x.prod(Width);
        "max(%1)": |x| x.max(Width);
        "min(%1)": |x| x.min(Width);
        "var(%1)": |x| x.var(Width);
        "std(%1)": |x| x.std(Width);
        "logsumexp(%1)": |x| x.logsumexp(Width);
        "norm(%1)": |x| x.norm(Width);
        "norm_p(%1)": |x| x.norm_p(Width, 3.0);
        "argmax(%1)": |x| x.argmax(Width);
        "argmin(%1)": |x| x.argmin(Width);
        "any(gt(%1, 0))": |x| x.gt(0.0).any(Width);
        "all(is_nan(%1))": |x| x.is_nan().all(Width);
        "count(is_finite(%1))": |x| x.is_finite().count(Width);
        "nan_to(%1, 0.5)": |x| x.nan_to(0.5).eval();
        "leaky_relu(%1, 0.25)": |x| x.leaky_relu(0.25).eval();
        "clamp(%1, 0.0, 1.5)": |x| x.clamp(0.0, 1.5).eval();
        "logaddexp(%1, 0.5)": |x| x.logaddexp(0.5).eval();
        "exp_m1(%1)": |x| x.exp_m1().eval();
        "powi(%1, 3)": |x| x.powi(3).eval();
        "ln_1p(%1)": |x| x.ln_1p().eval();
        "atan2(%1, 0.5)": |x| x.atan2(0.5).eval();
        "mse_loss(%1, 0.5)": |x| x.mse_loss(0.5).eval();
        "huber_loss(%1, 0.5, 2.0)": |x| x.huber_loss(0.5, 2.0).eval();
    }
}
