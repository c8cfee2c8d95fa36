//! Parameters and optimizers in files: saving and resuming training.

use typed_dims::file::FileError;
use typed_dims::file::load::LoadError;
use typed_dims::file::safetensors;
use typed_dims::grad::value_and_grad;
use typed_dims::optim::checkpoint::{Checkpoint, Saved};
use typed_dims::optim::{
    Accumulator, Adafactor, Adagrad, Adam, AdamW, Average, Lamb, Lion, NAdam, Optimizer, RAdam, RmsProp,
    Schedule, Sgd,
};
use typed_dims::prelude::*;

dims! {
    struct Example;
    struct In;
    struct Hidden;
    struct Wide;
    struct Out = 2;
    struct Token;
}

#[derive(Parameters, Clone)]
struct Layer<I: AnyDim + Before<O>, O: AnyDim + After<I>> {
    weight: Tensor<f32, (I, O)>,
    bias: Option<Tensor<f32, (O,)>>,
}

#[derive(Parameters, Clone)]
struct Network {
    up: Layer<In, Hidden>,
    down: Vec<Layer<Hidden, Out>>,
    ids: Tensor<usize, (Token,)>,
    mask: Tensor<bool, (Token,)>,
    #[parameters(constant)]
    rate: f32,
}

fn network(hidden: usize, seed: u64) -> Network {
    Network {
        up: Layer {
            weight: randn((In.of(3), Hidden.of(hidden)), seed),
            bias: Some(randn(Hidden.of(hidden), seed + 1)),
        },
        down: vec![Layer { weight: randn((Hidden.of(hidden), Out), seed + 2), bias: None }],
        ids: from_fn(Token.of(4), |at| at + seed as usize),
        mask: from_fn(Token.of(4), |at| at % 2 == seed as usize % 2),
        rate: 0.5,
    }
}

fn bits(network: &Network) -> Vec<u32> {
    let mut all: Vec<f32> = network.up.weight.view().order((In, Hidden)).into_iter().collect();
    all.extend(network.up.bias.as_ref().unwrap().view().order(Hidden));
    all.extend(network.down[0].weight.view().order((Hidden, Out)));
    all.into_iter().map(f32::to_bits).collect()
}

fn train<O: Optimizer<Network>>(network: &mut Network, optimizer: &mut O, steps: usize) {
    let x = randn::<f32, _>((Example.of(8), In.of(3)), 5);
    for _ in 0..steps {
        let loss = |network: &Network| {
            let hidden = ((&x * &network.up.weight).sum(In) + network.up.bias.as_ref().unwrap()).tanh();
            let out = (hidden.eval() * &network.down[0].weight).sum(Hidden);
            (out - 1.0).square().mean((Example, Out))
        };
        let (_, gradient) = value_and_grad(loss, &*network);
        optimizer.step(network, &gradient);
    }
}

fn bytes(network: &Network) -> Vec<u8> {
    Checkpoint::new().put("network", network).unwrap().to_bytes().unwrap()
}

/// The lines of an error, without the first.
fn faults(result: Result<(), LoadError>) -> Vec<String> {
    let text = result.expect_err("an error").to_string();
    text.lines().skip(1).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn values_come_back() {
    let first = network(5, 1);
    let mut second = network(5, 2);
    Saved::new(bytes(&first)).unwrap().load("network", &mut second).unwrap();
    assert_eq!(bits(&second), bits(&first));
    assert_eq!(second.ids.order(Token), first.ids.order(Token));
    assert_eq!(second.mask.order(Token), first.mask.order(Token));
}

#[test]
fn a_training_goes_on_bit_for_bit() {
    fn resumed<O: Optimizer<Network>>(optimizer: impl Fn() -> O) {
        let (mut whole, mut one) = (network(5, 1), optimizer());
        train(&mut whole, &mut one, 10);

        let (mut first, mut one) = (network(5, 1), optimizer());
        train(&mut first, &mut one, 4);
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("network", &first).unwrap().put_optimizer("optimizer", &one).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("training.safetensors");
        checkpoint.save(&path).unwrap();

        let (mut second, mut other) = (network(5, 9), optimizer());
        let saved = Saved::open(&path).unwrap();
        saved.load("network", &mut second).unwrap();
        saved.load_optimizer("optimizer", &mut other, &second).unwrap();
        assert_eq!(other.steps(), 4);
        train(&mut second, &mut other, 6);
        assert_eq!(bits(&second), bits(&whole));
    }
    resumed(|| Adam::new(Schedule::cosine(0.1, 10).warm_up(3)));
    resumed(|| Lion::new(0.01));
    resumed(|| Sgd::new(0.01).momentum(0.9));
    resumed(|| Sgd::new(0.01));
    resumed(|| AdamW::new(0.01).amsgrad());
    resumed(|| RmsProp::new(0.01).centered().momentum(0.9));
    resumed(|| Adagrad::new(0.01));
    resumed(|| NAdam::new(0.01));
    resumed(|| RAdam::new(0.01));
    resumed(|| Lamb::new(0.01));
    resumed(|| Adafactor::new(0.01));
    resumed(|| Adafactor::new(0.01).min_dim_size_to_factor(2).momentum(0.9));
}

/// Norms round in the order of the axes in memory, which a file does not have.
#[test]
fn a_training_of_axes_in_another_order_goes_on_bit_for_bit() {
    type Weight = Tensor<f64, (In, Hidden)>;
    fn resumed<O: Optimizer<Weight>>(optimizer: impl Fn() -> O) {
        let new = |seed: u64| -> Weight { randn((Hidden.of(4), In.of(3)), seed) };
        let (mut whole, mut one) = (new(1), optimizer());
        (0..7).for_each(|step| one.step(&mut whole, &new(10 + step)));
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("weight", &whole).unwrap().put_optimizer("optimizer", &one).unwrap();
        let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
        let (mut second, mut other) = (new(3), optimizer());
        saved.load("weight", &mut second).unwrap();
        saved.load_optimizer("optimizer", &mut other, &second).unwrap();
        for step in 7..20 {
            one.step(&mut whole, &new(10 + step));
            other.step(&mut second, &new(10 + step));
            assert_eq!(second, whole, "step {step}");
        }
    }
    resumed(|| Lamb::new(0.05));
    resumed(|| Adafactor::new(0.05));
    resumed(|| Adafactor::new(0.05).min_dim_size_to_factor(1).momentum(0.9));
}

#[test]
fn an_optimizer_without_steps_is_saved_as_such() {
    let value = network(5, 1);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("optimizer", &Adam::<Network>::new(0.1)).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let mut optimizer = Adam::new(0.1);
    train(&mut value.clone(), &mut optimizer, 1);
    saved.load_optimizer("optimizer", &mut optimizer, &value).unwrap();
    assert_eq!((optimizer.steps(), optimizer.state().parameters().len()), (0, 0));
    assert_eq!(
        faults(saved.load_optimizer("other", &mut optimizer, &value)),
        ["`other` cannot be read: the file has no optimizer of this name; it has `optimizer`"]
    );
}

/// A parameter that was frozen has taken fewer steps than the optimizer, and its bias correction
/// depends on the number of its own steps.
#[test]
fn a_training_with_frozen_parameters_goes_on_bit_for_bit() {
    let start = |network: &mut Network, optimizer: &mut Adam<Network>| {
        optimizer.freeze("up");
        train(network, optimizer, 3);
        optimizer.unfreeze("up");
        train(network, optimizer, 1);
    };
    let (mut whole, mut one) = (network(5, 1), Adam::new(0.1));
    start(&mut whole, &mut one);
    train(&mut whole, &mut one, 2);

    let (mut first, mut one) = (network(5, 1), Adam::new(0.1));
    start(&mut first, &mut one);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put("network", &first).unwrap().put_optimizer("adam", &one).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    assert_eq!(
        ["of adam", "in adam of up.weight", "in adam of down.0.weight"]
            .map(|name| saved.note(&format!("steps {name}"))),
        [Some("4"), Some("1"), None]
    );
    let (mut second, mut other) = (network(5, 9), Adam::new(0.1));
    saved.load("network", &mut second).unwrap();
    saved.load_optimizer("adam", &mut other, &second).unwrap();
    let steps = ["up.weight", "up.bias", "down.0.weight"].map(|name| other.state().steps_of(name));
    assert_eq!((other.steps(), steps), (4, [1, 1, 4]));
    train(&mut second, &mut other, 2);
    assert_eq!(bits(&second), bits(&whole));
}

/// If the value is a single tensor, its name is `""`. The optimizer `both.1` has the same name as a
/// part of `both`.
#[test]
fn step_counts_are_separate() {
    let of = |size| ones::<f32, _>(In.of(size));
    let (mut tensor, mut alone) = (of(2), Adam::new(0.1));
    alone.step(&mut tensor, &of(2));
    alone.freeze("");
    alone.step(&mut tensor, &of(2));
    let (mut pair, mut both, mut second) = ((of(2), of(3)), Adam::new(0.1), Adam::new(0.1));
    both.step(&mut pair, &(of(2), of(3)));
    both.freeze("0");
    both.step(&mut pair, &(of(2), of(3)));
    (0..5).for_each(|_| second.step(&mut pair.1, &of(3)));

    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("alone", &alone).unwrap().put_optimizer("both", &both).unwrap();
    checkpoint.put_optimizer("both.1", &second).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let (mut alone, mut both) = (Adam::new(0.1), Adam::new(0.1));
    saved.load_optimizer("alone", &mut alone, &tensor).unwrap();
    saved.load_optimizer("both", &mut both, &pair).unwrap();
    assert_eq!((alone.steps(), alone.state().steps_of("")), (2, 1));
    assert_eq!((both.state().steps_of("0"), both.state().steps_of("1")), (1, 2));
}

/// Saves the state of one optimizer, and returns the errors of loading it into another.
fn refused<O: Optimizer<Network>, L: Optimizer<Network>>(mut saved: O, mut loaded: L) -> Vec<String> {
    train(&mut network(5, 1), &mut saved, 1);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("optimizer", &saved).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let result = saved.load_optimizer("optimizer", &mut loaded, &network(5, 1));
    assert_eq!(loaded.steps(), 0);
    faults(result)
}

#[test]
fn the_state_of_another_optimizer_is_refused() {
    assert_eq!(
        refused(Adam::new(0.1), Lion::new(0.1)),
        ["`optimizer` cannot be read: it is the state of `Adam: mean, square`, not of `Lion: mean`"]
    );
    assert_eq!(
        refused(Lion::new(0.1), AdamW::new(0.1)),
        ["`optimizer` cannot be read: it is the state of `Lion: mean`, not of `AdamW: mean, square`"]
    );
    assert_eq!(
        refused(Sgd::new(0.1).momentum(0.9), Sgd::new(0.1)),
        ["`optimizer` cannot be read: it is the state of `Sgd: velocity`, not of `Sgd: no moments`"]
    );
    // Adam and AdamW have the same moments.
    let mut adam = Adam::new(0.1);
    train(&mut network(5, 1), &mut adam, 2);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("adam", &adam).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let mut decayed = AdamW::new(0.1);
    saved.load_optimizer("adam", &mut decayed, &network(5, 1)).unwrap();
    assert_eq!(decayed.steps(), 2);
}

/// Files written by older versions contain neither the kind of the optimizer nor the step counts of
/// single parameters.
#[test]
fn the_state_of_an_optimizer_without_its_kind_is_read() {
    let mut adam = Adam::new(0.1);
    train(&mut network(5, 1), &mut adam, 2);
    let [mean, square] = [0, 1].map(|moment| Learned::of(&adam, moment));
    let saved = |steps: &str| {
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("adam.mean", &mean).unwrap();
        checkpoint.put("adam.square", &square).unwrap();
        checkpoint.note("steps of adam", steps).unwrap();
        Saved::new(checkpoint.to_bytes().unwrap()).unwrap()
    };
    let mut other = Adam::new(0.1);
    saved("2").load_optimizer("adam", &mut other, &network(5, 1)).unwrap();
    assert_eq!((other.steps(), other.state().steps_of("up.bias")), (2, 2));
    let error = faults(saved("2").load_optimizer("adam", &mut Lion::new(0.1), &network(5, 1)));
    let expected = "`adam` cannot be read: it is the state of an optimizer with the moment `square`, not of `Lion: mean`";
    assert_eq!(error, [expected]);
    // The greatest number of steps, and texts that are not a `u64`.
    saved("18446744073709551615").load_optimizer("adam", &mut other, &network(5, 1)).unwrap();
    train(&mut network(5, 1), &mut other, 2);
    assert_eq!(other.steps(), u64::MAX);
    for steps in ["18446744073709551616", "-1", "NaN", ""] {
        let error = faults(saved(steps).load_optimizer("adam", &mut other, &network(5, 1)));
        assert_eq!(error, ["`adam` cannot be read: its step count is not an unsigned 64-bit integer"]);
    }
}

/// One moment of each learned tensor of a [`Network`].
#[derive(Parameters)]
struct Learned {
    up: Layer<In, Hidden>,
    down: Vec<Layer<Hidden, Out>>,
}

impl Learned {
    fn of(adam: &Adam<Network>, moment: usize) -> Self {
        let kept = |name: &str| &adam.state().parameter(name).unwrap().moments()[moment];
        Learned {
            up: Layer {
                weight: kept("up.weight").tensor().unwrap(),
                bias: Some(kept("up.bias").tensor().unwrap()),
            },
            down: vec![Layer { weight: kept("down.0.weight").tensor().unwrap(), bias: None }],
        }
    }
}

#[test]
fn a_parameter_with_more_steps_than_its_optimizer_is_refused() {
    let mut checkpoint = Checkpoint::new();
    checkpoint.note("steps of adam", "0").unwrap().note("steps in adam of up.bias", "1").unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    assert_eq!(
        faults(saved.load_optimizer("adam", &mut Adam::new(0.1), &network(5, 1))),
        ["`adam.up.bias` cannot be read: it has taken more steps than the optimizer"]
    );
}

#[test]
fn files_have_names_of_tensors_and_dims() {
    let file = safetensors::SafetensorsReader::new(bytes(&network(5, 1))).unwrap();
    assert_eq!(
        file.tensors(),
        ["network.down.0.weight", "network.ids", "network.mask", "network.up.bias", "network.up.weight"]
    );
    assert_eq!(file.note("dims of network.up.weight"), Some("In, Hidden"));
    assert_eq!(file.note("dims of network.down.0.weight"), Some("Hidden, Out = 2"));
    let weight: Tensor<f32, (In, Hidden)> = file.get("network.up.weight").unwrap().load().unwrap();
    assert_eq!(weight, network(5, 1).up.weight);
}

#[test]
fn axes_without_names_are_in_the_order_of_the_dims() {
    let other = safetensors_without_names();
    let mut layer = Layer::<In, Hidden> { weight: zeros((In.of(2), Hidden.of(3))), bias: None };
    Saved::new(other).unwrap().load("", &mut layer).unwrap();
    assert_eq!(layer.weight.order((In, Hidden)), ndarray::array![[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
}

/// A file without names of dims, as the Python library `safetensors` writes it.
fn safetensors_without_names() -> Vec<u8> {
    use ::safetensors::tensor::{Dtype, TensorView, serialize};
    let elements: Vec<u8> = (0..6u8).flat_map(|at| f32::from(at).to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![2, 3], &elements).unwrap();
    serialize([("weight", view)], None).unwrap()
}

#[test]
fn all_that_does_not_fit_is_listed_and_nothing_changes() {
    #[derive(Parameters, Clone)]
    struct Other {
        up: Layer<In, Hidden>,
        down: Vec<Tensor<f32, (Hidden, Out)>>,
        ids: Tensor<i32, (Token,)>,
        mask: Tensor<bool, (Hidden,)>,
    }
    let saved = Saved::new(bytes(&network(5, 1))).unwrap();
    let mut other = Other {
        up: Layer { weight: zeros((In.of(4), Hidden.of(6))), bias: None },
        down: vec![zeros((Hidden.of(5), Out))],
        ids: zeros(Token.of(4)),
        mask: full(Hidden.of(4), false),
    };
    let before = other.up.weight.clone();
    assert_eq!(
        faults(saved.load("network", &mut other)),
        [
            "dim `In` has size 3 in `network.up.weight`, expected 4",
            "dim `Hidden` has size 5 in `network.up.weight`, expected 6",
            "`network.down.0` is missing: expected f32 (Hidden = 5, Out = 2)",
            "`network.ids` has elements of type u64, not i32",
            "`network.mask` has the axes (Token = 4), but its field has the axes (Hidden = 4)",
            "`network.down.0.weight` of sizes [5, 2] is not used by any field",
            "`network.up.bias` of sizes [5] is not used by any field",
            "if `Token` is the old name of `Hidden`, write `saved.renaming(\"Token\", Hidden)`",
        ]
    );
    assert_eq!(other.up.weight, before);
    // `net` is not a parent of `network`.
    let expected = "`net` cannot be read: the file has no tensor of this name; it has `network`";
    assert_eq!(faults(saved.load("net", &mut other)), [expected]);
    // A part of a part is missing as such.
    assert_eq!(
        faults(saved.load("network.up.wieght", &mut other.up.weight)),
        ["`network.up.wieght` is missing: expected f32 (In = 4, Hidden = 6)"]
    );
    let nothing = Saved::new(Checkpoint::new().note("a", "b").unwrap().to_bytes().unwrap()).unwrap();
    let expected = "`network` cannot be read: the file has no tensor of this name";
    assert_eq!(faults(nothing.load("network", &mut other)), [expected]);
}

/// `put` would write the state of an optimizer as it lies in memory, without its kind.
#[test]
fn an_optimizer_is_not_put_as_a_value() {
    let (mut value, mut adam) = (network(5, 1), Adam::new(0.1));
    let sgd = Sgd::<Network>::new(0.1);
    let refused = |result: Result<&mut Checkpoint, FileError>| result.map(|_| ()).unwrap_err().to_string();
    let of = |name: &str| {
        format!("cannot be written: `{name}` is an optimizer: write `put_optimizer(\"{name}\", ..)`")
    };
    assert_eq!(refused(Checkpoint::new().put("opt", &adam)), of("opt"));
    assert_eq!(refused(Checkpoint::new().put("opt", &sgd)), of("opt"));
    train(&mut value, &mut adam, 1);
    assert_eq!(refused(Checkpoint::new().put("opt", &adam)), of("opt"));
    let (mut checkpoint, run) = (Checkpoint::new(), (value, adam));
    let within = refused(checkpoint.put("run", &run));
    assert_eq!(within, of("run.1") + ", and put the other parts one by one");
    // The call that failed has added nothing.
    checkpoint.put("run.0", &run.0).unwrap().put_optimizer("run.1", &run.1).unwrap();
    checkpoint.to_bytes().unwrap();
}

/// A call that fails adds nothing, so it can be repeated under another name.
#[test]
fn an_optimizer_that_is_refused_is_not_in_the_file() {
    let (mut value, mut adam) = (network(5, 1), Adam::new(0.1));
    train(&mut value, &mut adam, 1);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put("adam.square.up.bias", &value.ids).unwrap();
    for _ in 0..2 {
        assert_eq!(
            checkpoint.put_optimizer("adam", &adam).map(|_| ()).unwrap_err().to_string(),
            "cannot be written: `adam.square.up.bias` is in the file already"
        );
    }
    let file = safetensors::SafetensorsReader::new(checkpoint.to_bytes().unwrap()).unwrap();
    assert_eq!(file.tensors(), ["adam.square.up.bias"]);
    assert_eq!((file.note("steps of adam"), file.note("state of adam")), (None, None));
}

/// The remedy is code that works, if there is one.
#[test]
fn a_remedy_renames_dims_without_primes() {
    fn remedy<T: Parameters, L: Parameters>(value: &T, mut like: L) -> Option<String> {
        let bytes = Checkpoint::new().put("x", value).unwrap().to_bytes().unwrap();
        let found = faults(Saved::new(bytes).unwrap().load("x", &mut like));
        assert!(found[0].starts_with("`x` has the axes "), "{found:?}");
        found.get(1).cloned()
    }
    let of_prime = ones::<f32, _>((In.of(3), prime(Hidden.of(5))));
    let square = ones::<f32, _>((Hidden.of(5), prime(Hidden.of(5))));
    assert_eq!(
        remedy(&of_prime, zeros::<f32, _>((In.of(3), prime(Wide.of(5))))).unwrap(),
        "if `Hidden` is the old name of `Wide`, write `saved.renaming(\"Hidden\", Wide)`"
    );
    assert_eq!(remedy(&of_prime, zeros::<f32, _>((In.of(3), Hidden.of(5)))), None);
    // One dim cannot become two, and the number of axes stays.
    assert_eq!(remedy(&square, zeros::<f32, _>((Hidden.of(5), Wide.of(5)))), None);
    assert_eq!(remedy(&square, zeros::<f32, _>(Wide.of(5))), None);

    let bytes = Checkpoint::new().put("x", &of_prime).unwrap().to_bytes().unwrap();
    for old in ["Hidden", "Hidden'"] {
        let mut found = zeros::<f32, _>((In.of(3), prime(Wide.of(5))));
        Saved::new(&bytes[..]).unwrap().renaming(old, Wide).load("x", &mut found).unwrap();
        assert_eq!(found, ones((In.of(3), prime(Wide.of(5)))));
    }
}

#[test]
fn renamed_dims_are_read_under_their_new_names() {
    #[derive(Parameters, Clone)]
    struct Renamed {
        up: Tensor<f32, (In, Wide)>,
        square: Tensor<f32, (Wide, Prime<Wide>)>,
        down: Tensor<f32, (Wide, Out)>,
    }
    #[derive(Parameters, Clone)]
    struct Before {
        up: Tensor<f32, (In, Hidden)>,
        square: Tensor<f32, (Hidden, Prime<Hidden>)>,
        down: Tensor<f32, (Hidden, Out)>,
    }
    let mut value = Before {
        up: randn((In.of(3), Hidden.of(5)), 1),
        square: randn((Hidden.of(5), prime(Hidden.of(5))), 2),
        down: randn((Hidden.of(5), Out), 3),
    };
    let mut adam = Adam::new(0.1);
    let gradient = value.clone();
    adam.step(&mut value, &gradient);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put("network", &value).unwrap().put_optimizer("adam", &adam).unwrap();
    let bytes = checkpoint.to_bytes().unwrap();

    let empty = || Renamed {
        up: zeros((In.of(3), Wide.of(5))),
        square: zeros((Wide.of(5), prime(Wide.of(5)))),
        down: zeros((Wide.of(5), Out)),
    };
    let (mut renamed, mut resumed) = (empty(), Adam::new(0.1));
    let saved = Saved::new(&bytes[..]).unwrap();
    assert_eq!(
        faults(saved.load("network", &mut renamed)),
        [
            "`network.up` has the axes (In = 3, Hidden = 5), but its field has the axes (In = 3, Wide = 5)",
            "`network.square` has the axes (Hidden = 5, Hidden' = 5), but its field has the axes (Wide = 5, Wide' = 5)",
            "`network.down` has the axes (Hidden = 5, Out = 2), but its field has the axes (Wide = 5, Out = 2)",
            "if `Hidden` is the old name of `Wide`, write `saved.renaming(\"Hidden\", Wide)`",
        ]
    );
    let saved = saved.renaming("Hidden", Wide);
    saved.load("network", &mut renamed).unwrap();
    saved.load_optimizer("adam", &mut resumed, &renamed).unwrap();
    assert_eq!(renamed.up, value.up.view().rename(Hidden, Wide));
    assert_eq!(renamed.down, value.down.view().rename(Hidden, Wide));
    let square = value.square.view().rename(Hidden, Wide).rename(prime(Hidden), prime(Wide));
    assert_eq!(renamed.square, square);
    // The next step is that of the old network, so each moment is in its place.
    let moved = |before: &Before| Renamed {
        up: before.up.view().rename(Hidden, Wide).eval(),
        square: before.square.view().rename(Hidden, Wide).rename(prime(Hidden), prime(Wide)).eval(),
        down: before.down.view().rename(Hidden, Wide).eval(),
    };
    let gradient = gradient.map_elements(|g: f32| 0.5 - g);
    resumed.step(&mut renamed, &moved(&gradient));
    let mut old = value.clone();
    adam.step(&mut old, &gradient);
    let expected = moved(&old);
    assert_eq!(renamed.up, expected.up);
    assert_eq!(renamed.square, expected.square);
    assert_eq!(renamed.down, expected.down);
    assert_eq!(resumed.steps(), 2);

    // Two dims of one name cannot be told apart, so such a tensor keeps its names.
    let mut kept = zeros::<f32, _>((In.of(3), Hidden.of(5)));
    let swapped = Saved::new(&bytes[..]).unwrap().renaming("In", Hidden).renaming("Hidden", In);
    assert_eq!(
        faults(swapped.load("network.up", &mut kept)),
        [
            "dim `Hidden` has size 3 in `network.up`, expected 5",
            "dim `In` has size 5 in `network.up`, expected 3",
        ]
    );
    let saved = Saved::new(&bytes[..]).unwrap().renaming("In", Hidden);
    saved.load("network.up", &mut kept).unwrap();
    assert_eq!(kept, value.up);
}

#[test]
fn moments_of_other_sizes_are_refused() {
    let (mut value, mut optimizer) = (network(5, 1), Adam::new(0.1));
    train(&mut value, &mut optimizer, 2);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_optimizer("adam", &optimizer).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let mut other = Adam::new(0.1);
    let found = faults(saved.load_optimizer("adam", &mut other, &network(6, 1)));
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(found[0], "dim `Hidden` has size 5 in `adam.mean.up.weight`, expected 6");
    assert_eq!(other.steps(), 0);
}

#[test]
fn moments_that_are_factored_over_other_dims_are_refused() {
    let of = |least: usize| Adafactor::new(0.1).min_dim_size_to_factor(least);
    for (saved, loaded) in [(2, 128), (128, 2)] {
        let found = refused(of(saved), of(loaded));
        let why = "it is factored over other dims: it belongs to an optimizer with another `min_dim_size_to_factor`, or to a parameter with other axes";
        // `square` has an axis more or less, and so has `columns`, which is empty without factors.
        let refused = |name: &str| format!("`optimizer.{name}` cannot be read: {why}");
        let names =
            ["square.up.weight", "square.down.0.weight", "columns.up.weight", "columns.down.0.weight"];
        assert_eq!(found, names.map(refused), "{saved}, {loaded}");
    }
}

/// The moments of a parameter of `f64` are `f64`, and those of any other parameter are `f32`.
#[test]
fn moments_are_converted_with_the_floats_of_parameters() {
    let (mut value, mut adam) = (ones::<f64, _>(In.of(2)), Adam::new(0.1));
    adam.step(&mut value, &full(In.of(2), 0.3));
    let mut checkpoint = Checkpoint::new();
    checkpoint.put("value", &value).unwrap().put_optimizer("adam", &adam).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let (mut single, mut other) = (ones::<f32, _>(In.of(2)), Adam::new(0.1));
    assert_eq!(
        faults(saved.load_optimizer("adam", &mut other, &single)),
        ["`adam.mean` has elements of type f64, not f32", "`adam.square` has elements of type f64, not f32"]
    );
    let saved = saved.converting_floats();
    saved.load("value", &mut single).unwrap();
    saved.load_optimizer("adam", &mut other, &single).unwrap();
    for at in 0..2 {
        let exact: Tensor<f64, (In,)> = adam.state().parameters()[0].moments()[at].tensor().unwrap();
        let found: Tensor<f32, (In,)> = other.state().parameters()[0].moments()[at].tensor().unwrap();
        assert_eq!(found, exact.cast::<f32>().eval());
    }
    assert_eq!((other.steps(), single), (1, value.cast::<f32>().eval()));
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let error = |result: Result<(), typed_dims::file::FileError>| result.unwrap_err().to_string();
    let positional = Array2::from_elem((1, 5), 1.0).at((.., ..)).eval();
    let put = |value: &(Tensor<f64, (), U2>,)| Checkpoint::new().put("x", value).map(|_| ());
    assert_eq!(
        error(put(&(positional,))),
        "cannot be written: `x.0` has positional axes: give each of them a dim"
    );
    let mut checkpoint = Checkpoint::new();
    let value = ones::<f32, _>(In.of(2));
    checkpoint.put("x", &value).unwrap();
    assert_eq!(
        error(checkpoint.put("x", &value).map(|_| ())),
        "cannot be written: `x` is in the file already"
    );
    let adam = Adam::<Tensor<f32, (In,)>>::new(0.1);
    checkpoint.put_optimizer("adam", &adam).unwrap();
    assert_eq!(
        error(checkpoint.put_optimizer("adam", &adam).map(|_| ())),
        "cannot be written: an optimizer named `adam` is in the file already"
    );
}

#[cfg(feature = "half")]
#[test]
fn half_precision_is_written_and_read() {
    use half::f16;
    let first = network(5, 1);
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_f16("network", &first).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
    let mut second = network(5, 2);
    assert_eq!(
        faults(saved.load("network", &mut second))[0],
        "`network.up.weight` has elements of type f16, not f32"
    );
    let saved = saved.converting_floats();
    saved.load("network", &mut second).unwrap();
    let rounded = first.map_elements(|a: f32| f16::from_f32(a).to_f32());
    assert_eq!(bits(&second), bits(&rounded));
    assert_eq!(second.ids.order(Token), first.ids.order(Token));
    let mut up =
        Layer16 { weight: full((In.of(3), Hidden.of(5)), f16::ZERO), bias: full(Hidden.of(5), f16::ZERO) };
    saved.load("network.up", &mut up).unwrap();
    assert_eq!(up.weight, first.up.weight.cast::<f16>().eval());
}

/// Floats are not converted to integers, not even in a tensor without elements.
#[test]
fn floats_are_converted_only_to_floats() {
    for len in [0, 2] {
        let bytes = Checkpoint::new().put("x", &(zeros::<f32, _>(In.of(len)),)).unwrap().to_bytes().unwrap();
        let saved = Saved::new(bytes).unwrap().converting_floats();
        let error = faults(saved.load("x", &mut (zeros::<i64, _>(In.of(len)),)));
        assert_eq!(error, ["`x.0` has elements of type f32, not i64"]);
    }
}

#[cfg(feature = "half")]
#[test]
fn bf16_keeps_the_range_of_f32() {
    use half::bf16;
    let first = (randn::<f32, _>(In.of(5), 1).map_elements(|a: f32| 1e30 * a), randn::<f64, _>(In.of(4), 2));
    let mut checkpoint = Checkpoint::new();
    checkpoint.put_bf16("x", &first).unwrap();
    let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap().converting_floats();
    let mut second = first.zero();
    saved.load("x", &mut second).unwrap();
    assert_eq!(second.0, first.0.map_elements(|a: f32| bf16::from_f32(a).to_f32()));
    assert_eq!(second.1, first.1.map_elements(|a: f64| bf16::from_f64(a).to_f64()));
    assert!(second.0.abs().max(In).order(()) > 1e29);

    // Just above the midpoint of two `bf16` values, of which the lower one is even.
    let above = (full(In.of(1), 1.0 + f32::powi(2.0, -8) + f32::EPSILON),);
    let bytes = Checkpoint::new().put("x", &above).unwrap().to_bytes().unwrap();
    let mut rounded = (full(In.of(1), bf16::ZERO),);
    Saved::new(bytes).unwrap().converting_floats().load("x", &mut rounded).unwrap();
    assert_eq!(rounded.0.order(In)[0].to_f32(), 1.0 + f32::powi(2.0, -7));
}

#[cfg(feature = "npy")]
mod npz {
    use super::*;
    use typed_dims::file::npz::{NpzReader, NpzWriter};

    #[test]
    fn an_archive_has_what_a_checkpoint_has() {
        let (mut first, mut one) = (network(5, 1), Adam::new(0.1));
        train(&mut first, &mut one, 3);
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("network", &first).unwrap().put_optimizer("optimizer", &one).unwrap();
        checkpoint.note("options", "größer = ja").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("training.npz");
        checkpoint.save_npz(&path).unwrap();

        let (mut second, mut other) = (network(5, 9), Adam::new(0.1));
        let saved = Saved::open(&path).unwrap();
        saved.load("network", &mut second).unwrap();
        saved.load_optimizer("optimizer", &mut other, &second).unwrap();
        assert_eq!((bits(&second), other.steps()), (bits(&first), 3));
        assert_eq!(second.ids, first.ids);
        assert_eq!(second.mask, first.mask);
        assert_eq!((saved.note("options"), saved.note("seed")), (Some("größer = ja"), None));
        train(&mut first, &mut one, 3);
        train(&mut second, &mut other, 3);
        assert_eq!(bits(&second), bits(&first));

        let mut file = NpzReader::open(&path).unwrap();
        assert!(file.tensors().contains(&"text of steps of optimizer".to_string()), "{:?}", file.tensors());
        let weight: Tensor<f32, (In, Hidden)> = file.load("network.up.weight").unwrap();
        assert_eq!(weight.dims(), [("In", 3), ("Hidden", 5)]);
    }

    #[test]
    fn an_archive_of_others_is_read() {
        let mut archive = NpzWriter::compressed();
        archive.put("weight", ones::<f32, _>((Hidden.of(2), In.of(3)))).unwrap();
        archive.put("other", ones::<f32, _>(In.of(3))).unwrap();
        let saved = Saved::new(archive.into_bytes().unwrap()).unwrap();
        let mut layer =
            Layer::<In, Hidden> { weight: zeros((In.of(3), Hidden.of(2))), bias: Some(zeros(Hidden.of(2))) };
        assert_eq!(
            faults(saved.load("", &mut layer)),
            ["`bias` is missing: expected f32 (Hidden = 2)", "`other` of sizes [3] is not used by any field"]
        );
        saved.load("weight", &mut layer.weight).unwrap();
        assert_eq!(layer.weight.sum((In, Hidden)).order(()), 6.0);
    }

    /// `numpy.savez(file, weight=numpy.asfortranarray([[0, 1, 2], [3, 4, 5]], "f4"))`
    #[test]
    fn an_array_whose_first_axis_is_the_innermost_is_read() {
        let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
        let mut member = b"\x93NUMPY\x01\0".to_vec();
        member.extend(118u16.to_le_bytes());
        member.extend(format!("{header:<117}\n").bytes());
        member.extend([0.0f32, 3.0, 1.0, 4.0, 2.0, 5.0].iter().flat_map(|a| a.to_le_bytes()));
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        archive.start_file("weight.npy", zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut archive, &member).unwrap();
        let saved = Saved::new(archive.finish().unwrap().into_inner()).unwrap();
        let mut layer = Layer::<In, Hidden> { weight: zeros((In.of(2), Hidden.of(3))), bias: None };
        saved.load("", &mut layer).unwrap();
        assert_eq!(layer.weight.order((In, Hidden)), ndarray::array![[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let mut checkpoint = Checkpoint::new();
        let bytes = checkpoint.put("network", &network(5, 1)).unwrap().to_npz().unwrap();
        for len in [4, 5, 60, bytes.len() / 2, bytes.len() - 1] {
            assert!(Saved::new(&bytes[..len]).is_err(), "{len}");
        }
        let mut archive = NpzWriter::new();
        let mut like_a_note = Checkpoint::new();
        like_a_note.put("text of x", &(ones::<f32, _>(In.of(2)),)).unwrap();
        assert_eq!(
            like_a_note.to_npz().unwrap_err().to_string(),
            "cannot be written: the name of the tensor `text of x.0` is that of a note in an archive"
        );
        archive.put("text of options", from_vec(In.of(2), vec![0xff_u8, 0xfe])).unwrap();
        let error = Saved::new(archive.into_bytes().unwrap()).err().unwrap();
        assert_eq!(error.to_string(), "not a valid file: `text of options` is not UTF-8");
        let mut empty = (network(5, 1).mask,);
        let saved = Saved::new(Checkpoint::new().to_npz().unwrap()).unwrap();
        assert_eq!(faults(saved.load("", &mut empty)), ["`0` is missing: expected bool (Token = 4)"]);
    }

    #[cfg(feature = "half")]
    #[test]
    fn numpy_has_no_bf16() {
        let mut checkpoint = Checkpoint::new();
        checkpoint.put_bf16("x", &ones::<f32, _>(In.of(2))).unwrap();
        let error = checkpoint.to_npz().unwrap_err().to_string();
        assert_eq!(error, "cannot be written: numpy has no elements of type `bf16`");
    }
}

#[cfg(feature = "half")]
mod state_of_halves {
    use super::*;
    use half::f16;

    type Half = (Tensor<f16, (In, Hidden)>, Tensor<f32, (Hidden,)>);

    fn start() -> Half {
        let single = randn::<f32, _>((In.of(3), Hidden.of(5)), 1);
        (single.cast::<f16>().eval(), randn(Hidden.of(5), 2))
    }

    fn gradient(step: usize) -> Half {
        let number = |at: usize| 1e-3 * (1.7 * at as f32 + 0.9 * step as f32).sin();
        (
            from_fn((In.of(3), Hidden.of(5)), |(i, h)| f16::from_f32(number(5 * i + h))),
            from_fn(Hidden.of(5), number),
        )
    }

    fn steps<O: Optimizer<Half>>(value: &mut Half, optimizer: &mut O, steps: std::ops::Range<usize>) {
        steps.for_each(|step| optimizer.step(value, &gradient(step)));
    }

    fn saved<O: Optimizer<Half>>(value: &Half, optimizer: &O) -> Saved<Vec<u8>> {
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("value", value).unwrap().put_optimizer("optimizer", optimizer).unwrap();
        Saved::new(checkpoint.to_bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_training_goes_on_bit_for_bit() {
        fn resumed<O: Optimizer<Half>>(optimizer: impl Fn() -> O) {
            let (mut whole, mut one) = (start(), optimizer());
            steps(&mut whole, &mut one, 0..20);
            let (mut first, mut one) = (start(), optimizer());
            steps(&mut first, &mut one, 0..9);
            let saved = saved(&first, &one);
            let (mut second, mut other) = (start(), optimizer());
            saved.load("value", &mut second).unwrap();
            saved.load_optimizer("optimizer", &mut other, &second).unwrap();
            steps(&mut second, &mut other, 9..20);
            assert_eq!(second, whole);
            let master = |optimizer: &O| {
                let kept = optimizer.state().parameter("0").unwrap();
                kept.master().map(|master| master.tensor::<f32, (In, Hidden)>().unwrap())
            };
            assert_eq!(master(&other), master(&one_after(&optimizer)));
        }
        fn one_after<O: Optimizer<Half>>(optimizer: &impl Fn() -> O) -> O {
            let (mut whole, mut one) = (start(), optimizer());
            steps(&mut whole, &mut one, 0..20);
            one
        }
        resumed(|| Adam::new(1e-3));
        resumed(|| Sgd::new(1e-2));
        resumed(|| Lion::new(1e-4));
        resumed(|| Adam::new(1e-3).master_weights(false));
    }

    /// A file with master weights fits an optimizer without them, and vice versa.
    #[test]
    fn master_weights_come_and_go_with_a_file() {
        let (mut value, mut with, mut without) =
            (start(), Adam::new(1e-3), Adam::new(1e-3).master_weights(false));
        steps(&mut value.clone(), &mut without, 0..3);
        steps(&mut value, &mut with, 0..3);
        let mut other = Adam::new(1e-3).master_weights(false);
        saved(&value, &with).load_optimizer("optimizer", &mut other, &value).unwrap();
        assert!(other.state().parameter("0").unwrap().master().is_none());
        // Master weights that are not in the file start as copies of the parameters.
        let mut other = Adam::new(1e-3);
        saved(&value, &without).load_optimizer("optimizer", &mut other, &value).unwrap();
        steps(&mut value, &mut other, 3..4);
        let master: Tensor<f32, (In, Hidden)> =
            other.state().parameter("0").unwrap().master().unwrap().tensor().unwrap();
        assert_eq!(master.cast::<f16>().eval(), value.0);
    }

    /// Older versions wrote half-precision moments for half-precision parameters.
    #[test]
    fn moments_in_half_precision_are_converted() {
        let moment = |scale: f32| {
            (
                start().0.map(move |a: f16| f16::from_f32(scale * a.to_f32().abs())).eval(),
                ones::<f32, _>(Hidden.of(5)),
            )
        };
        let mut checkpoint = Checkpoint::new();
        checkpoint.put("adam.mean", &moment(0.1)).unwrap().put("adam.square", &moment(0.01)).unwrap();
        checkpoint.note("steps of adam", "3").unwrap().note("state of adam", "Adam: mean, square").unwrap();
        let saved = Saved::new(checkpoint.to_bytes().unwrap()).unwrap();
        let (mut value, mut adam) = (start(), Adam::new(1e-3));
        saved.load_optimizer("adam", &mut adam, &value).unwrap();
        let kept = adam.state().parameter("0").unwrap();
        for (at, scale) in [0.1, 0.01].into_iter().enumerate() {
            let found: Tensor<f32, (In, Hidden)> = kept.moments()[at].tensor().unwrap();
            assert_eq!(found, moment(scale).0.cast::<f32>().eval());
        }
        steps(&mut value, &mut adam, 3..5);
        assert_eq!(adam.steps(), 5);
        // Half-precision moments do not fit a single-precision parameter.
        let mut wide = (randn::<f32, _>((In.of(3), Hidden.of(5)), 1), ones::<f32, _>(Hidden.of(5)));
        let error = faults(saved.load_optimizer("adam", &mut Adam::new(1e-3), &wide));
        assert_eq!(error[0], "`adam.mean.0` has elements of type f16, not f32");
        // New files have moments in single precision, which fit.
        let mut other = Adam::new(1e-3);
        self::saved(&value, &adam).load_optimizer("optimizer", &mut other, &wide).unwrap();
        other.step(&mut wide, &(ones((In.of(3), Hidden.of(5))), ones(Hidden.of(5))));
        assert_eq!(other.steps(), 6);
    }

    #[test]
    fn files_have_master_weights_by_name() {
        let (mut value, mut adam) = (start(), Adam::new(1e-3));
        steps(&mut value, &mut adam, 0..1);
        let bytes = Checkpoint::new().put_optimizer("adam", &adam).unwrap().to_bytes().unwrap();
        let file = safetensors::SafetensorsReader::new(bytes).unwrap();
        assert_eq!(
            file.tensors(),
            ["adam.master.0", "adam.mean.0", "adam.mean.1", "adam.square.0", "adam.square.1"]
        );
        let master: Tensor<f32, (In, Hidden)> = file.get("adam.master.0").unwrap().load().unwrap();
        assert_eq!(master.cast::<f16>().eval(), value.0);
    }
}

#[cfg(feature = "half")]
#[derive(Parameters)]
struct Layer16 {
    weight: Tensor<half::f16, (In, Hidden)>,
    bias: Tensor<half::f16, (Hidden,)>,
}

/// Running moments are not learned, but they are part of the model.
#[test]
fn state_is_saved() {
    use typed_dims::nn::BatchNorm;

    #[derive(Parameters, Clone)]
    struct Model {
        norm: BatchNorm<(Hidden,)>,
        #[parameters(state)]
        calls: Vec<Tensor<u64, (Token,)>>,
        mask: Tensor<bool, (Token,)>,
    }

    let x = randn::<f32, _>((Example.of(8), Hidden.of(3)), 1);
    let model = || Model {
        norm: BatchNorm::new(Hidden.of(3)),
        calls: vec![zeros(Token.of(2))],
        mask: full(Token.of(2), false),
    };
    let mut trained = model();
    let (_, moments) = trained.norm.train(&x, (Example,));
    trained.norm.remember(&moments);
    trained.calls[0] = full(Token.of(2), 3);
    trained.mask = full(Token.of(2), true);
    let bytes = Checkpoint::new().put("model", &trained).unwrap().to_bytes().unwrap();
    let mut loaded = model();
    Saved::new(&bytes[..]).unwrap().load("model", &mut loaded).unwrap();
    assert_eq!(loaded.norm.running_mean, trained.norm.running_mean);
    assert_eq!(loaded.norm.running_var, trained.norm.running_var);
    assert_eq!(loaded.calls[0], trained.calls[0]);
    assert_ne!(loaded.norm.running_mean, model().norm.running_mean);
    assert_eq!(trained.names(), ["norm.weight", "norm.bias", "mask"]);

    // An average of the parameters has the state and the mask of its last update.
    let mut average = Average::new(0.75);
    average.update(&model());
    average.update(&trained);
    let value = average.value().unwrap();
    assert_eq!(value.norm.running_mean, trained.norm.running_mean);
    assert_eq!(value.calls[0], trained.calls[0]);
    assert_eq!(value.mask, trained.mask);
}

#[test]
fn an_empty_average_cannot_be_loaded_into() {
    let bytes = {
        let (mut average, mut sum) = (Average::new(0.75), Accumulator::new());
        average.update(&network(4, 1));
        sum.add(network(4, 1));
        let mut file = Checkpoint::new();
        file.put("average", &average).unwrap().put("sum", &sum).unwrap();
        file.to_bytes().unwrap()
    };
    let saved = Saved::new(&bytes[..]).unwrap();
    let error = saved.load("average", &mut Average::<Network>::new(0.75)).unwrap_err().to_string();
    assert!(error.contains("`average` cannot be read: the value to load into is empty"), "{error}");
    assert!(error.contains("call `update` once before loading") && !error.contains("not used"), "{error}");
    let error = saved.load("sum", &mut Accumulator::<Network>::new()).unwrap_err().to_string();
    assert!(error.contains("call `add` once before loading") && !error.contains("not used"), "{error}");
    let mut average = Average::new(0.75);
    average.update(&network(4, 2));
    saved.load("average", &mut average).unwrap();
    assert_eq!(bits(average.value().unwrap()), bits(&network(4, 1)));
}

/// The sums and averages of half precision are in `f32`, and so are they in the file.
#[cfg(feature = "half")]
#[test]
fn averages_of_half_precision_continue_bit_for_bit() {
    use half::bf16;
    type Weights = (Tensor<bf16, (In, Hidden)>, Vec<Tensor<f32, (Out,)>>, Tensor<bf16, ()>);
    let at = |seed: u64| -> Weights {
        (
            randn::<f32, _>((Hidden.of(3), In.of(2)), seed).cast::<bf16>().eval(),
            vec![randn(Out, seed + 1)],
            full((), bf16::from_f32(seed as f32 / 3.0)),
        )
    };
    let same = |a: &Weights, b: &Weights| {
        assert_eq!(a.0, b.0);
        assert_eq!(a.1[0], b.1[0]);
        assert_eq!(a.2, b.2);
    };
    // One update has no average in `f32` yet; further updates have one.
    for (before, template) in [(1, 1), (2, 1), (1, 2), (5, 1), (5, 3)] {
        let (mut average, mut sum) = (Average::new(0.9), Accumulator::new());
        for seed in 0..before {
            average.update(&at(seed));
            sum.add(at(seed));
        }
        let mut file = Checkpoint::new();
        file.put("average", &average).unwrap().put("sum", &sum).unwrap();
        let bytes = file.to_bytes().unwrap();
        let (mut resumed, mut resumed_sum) = (Average::new(0.9), Accumulator::new());
        for seed in 0..template {
            resumed.update(&at(seed + 50));
            resumed_sum.add(at(seed + 50));
        }
        let saved = Saved::new(&bytes[..]).unwrap();
        saved.load("average", &mut resumed).unwrap();
        saved.load("sum", &mut resumed_sum).unwrap();
        assert_eq!(resumed_sum.count(), before);
        same(average.value().unwrap(), resumed.value().unwrap());
        for seed in 10..40 {
            average.update(&at(seed));
            resumed.update(&at(seed));
            sum.add(at(seed));
            resumed_sum.add(at(seed));
            same(average.value().unwrap(), resumed.value().unwrap());
        }
        same(&sum.take().unwrap(), &resumed_sum.take().unwrap());
    }
}

/// In `f32`, an average of half precision is the one that the file has in `f32`.
#[cfg(feature = "half")]
#[test]
fn averages_are_converted_from_and_to_half_precision() {
    use half::bf16;
    type Half = (Tensor<bf16, (In, Hidden)>, Tensor<bf16, ()>);
    type Single = (Tensor<f32, (In, Hidden)>, Tensor<f32, ()>);
    let single = |seed: u64| -> Single {
        let weight: Tensor<f32, (In, Hidden)> = randn((Hidden.of(3), In.of(2)), seed);
        (weight.cast::<bf16>().cast::<f32>().eval(), full((), bf16::from_f32(seed as f32 / 3.0).to_f32()))
    };
    let rounded =
        |of: &Single| -> Half { (of.0.view().cast::<bf16>().eval(), of.1.view().cast::<bf16>().eval()) };
    for updates in [1, 2, 5] {
        let (mut wide, mut narrow) = (Average::new(0.9), Average::new(0.9));
        let (mut wide_sum, mut narrow_sum) = (Accumulator::new(), Accumulator::new());
        for seed in 0..updates {
            wide.update(&single(seed));
            wide_sum.add(single(seed));
            narrow.update(&rounded(&single(seed)));
            narrow_sum.add(rounded(&single(seed)));
        }
        let (mut of_wide, mut of_narrow) = (Checkpoint::new(), Checkpoint::new());
        of_wide.put("average", &wide).unwrap().put("sum", &wide_sum).unwrap();
        of_narrow.put("average", &narrow).unwrap().put("sum", &narrow_sum).unwrap();

        let saved = Saved::new(of_narrow.to_bytes().unwrap()).unwrap();
        let (mut average, mut sum) = (Average::new(0.9), Accumulator::new());
        average.update(&single(50));
        sum.add(single(50));
        assert_eq!(
            faults(saved.load("average", &mut average)),
            [
                "`average.value.0` has elements of type bf16, not f32",
                "`average.value.1` has elements of type bf16, not f32",
            ]
        );
        let saved = saved.converting_floats();
        saved.load("average", &mut average).unwrap();
        saved.load("sum", &mut sum).unwrap();
        assert_eq!(average.value(), wide.value());
        assert_eq!((sum.count(), sum.take()), (updates, wide_sum.clone().take()));

        let saved = Saved::new(of_wide.to_bytes().unwrap()).unwrap().converting_floats();
        let (mut average, mut sum) = (Average::new(0.9), Accumulator::new());
        for seed in 50..53 {
            average.update(&rounded(&single(seed)));
            sum.add(rounded(&single(seed)));
        }
        saved.load("average", &mut average).unwrap();
        saved.load("sum", &mut sum).unwrap();
        assert_eq!(*average.value().unwrap(), rounded(wide.value().unwrap()));
        average.update(&rounded(&single(9)));
        assert_eq!(sum.count(), updates);
    }
}
