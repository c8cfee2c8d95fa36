//! Training steps without an optimizer: `value_and_grad`, compared with the same step recorded and
//! run as a program and, in some cases, with the same backward pass written by hand with
//! typed-dims. Other cases measure the work after the gradient: optimizer steps, clipping,
//! averaging and accumulation.
//!
//! `cargo bench --bench training_steps -- [rounds] [part of a name]` prints the minimum CPU
//! time of each variant in microseconds, on one thread. The variants of a step take turns. The peak
//! memory is in MiB, not counting memory that was allocated before the step.
//! `benches/python/training_steps.py` has the same training steps in PyTorch and JAX.

mod measure;

use measure::Bench;
use std::hint::black_box;
use typed_dims::grad::{loss_and_grad, value_and_grad};
use typed_dims::optim::{Accumulator, Adam, AdamW, Average, Lion, Optimizer, Sgd, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::record;

dims! {
    struct Example;
    struct Input;
    struct Hidden;
    struct Class;
    struct N;
    struct Batch;
    struct Head;
    struct Query;
    struct Key;
    struct Feat;
    struct Word;
    struct Model;
    struct Out;
    struct Wide;
    struct Step;
    struct Gate;
    struct State;
    struct Next;
    struct Channel;
    struct Filter;
    struct H;
    struct W;
    struct Kh;
    struct Kw;
}

#[derive(Parameters, Clone)]
struct Mlp {
    w1: Tensor<f32, (Input, Hidden)>,
    b1: Tensor<f32, (Hidden,)>,
    w2: Tensor<f32, (Hidden, Class)>,
    b2: Tensor<f32, (Class,)>,
}

type Inputs = Tensor<f32, (Example, Input)>;
type Labels = Tensor<usize, (Example,)>;

impl Mlp {
    fn new(input: usize, hidden: usize, class: usize) -> Self {
        let (input, hidden, class) = (Input.of(input), Hidden.of(hidden), Class.of(class));
        Mlp {
            w1: randn::<f32, _>((input, hidden), 1).map_elements(|w: f32| 0.05 * w),
            b1: zeros(hidden),
            w2: randn::<f32, _>((hidden, class), 2).map_elements(|w: f32| 0.05 * w),
            b2: zeros(class),
        }
    }

    fn loss(&self, x: &Inputs, y: &Labels) -> Tensor<f32, ()> {
        let hidden = ((x * &self.w1).sum(Input) + &self.b1).relu().eval();
        let scores = ((hidden * &self.w2).sum(Hidden) + &self.b2).eval();
        scores.cross_entropy(Class, y).mean(Example)
    }

    fn by_hand(&self, x: &Inputs, y: &Labels) -> (f32, Mlp) {
        let hidden = ((x * &self.w1).sum(Input) + &self.b1).relu().eval();
        let log_p = ((&hidden * &self.w2).sum(Hidden) + &self.b2).log_softmax(Class);
        let one_hot = y.cast::<isize>().eq(Class).cast::<f32>();
        let loss = -(&log_p * one_hot).sum(Class).mean(Example).order(());
        let d_scores = ((log_p.exp() - one_hot) / x.size(Example) as f32).eval();
        let d_hidden = select((&hidden).gt(0.0), (&d_scores * &self.w2).sum(Class), 0.0).eval();
        let gradient = Mlp {
            w1: (x * &d_hidden).sum(Example),
            b1: d_hidden.sum(Example),
            w2: (&hidden * &d_scores).sum(Example),
            b2: d_scores.sum(Example),
        };
        (loss, gradient)
    }
}

/// A pre-norm transformer block: multi-head attention, and two linear maps with `gelu_tanh` between
/// them.
#[derive(Parameters)]
struct Block {
    gain: [Tensor<f32, (Model,)>; 2],
    bias: [Tensor<f32, (Model,)>; 2],
    query: Tensor<f32, (Head, Feat, Model)>,
    key: Tensor<f32, (Head, Feat, Model)>,
    value: Tensor<f32, (Head, Feat, Model)>,
    out: Tensor<f32, (Head, Feat, Out)>,
    wide: Tensor<f32, (Model, Wide)>,
    wide_bias: Tensor<f32, (Wide,)>,
    narrow: Tensor<f32, (Wide, Out)>,
    narrow_bias: Tensor<f32, (Out,)>,
}

type Tokens = Tensor<f32, (Batch, Query, Model)>;

impl Block {
    fn new(model: usize, heads: usize) -> Self {
        let (head, feat, wide) = (Head.of(heads), Feat.of(model / heads), Wide.of(4 * model));
        let small = |w: f32| 0.05 * w;
        let projection = |seed: u64| randn::<f32, _>((head, feat, Model.of(model)), seed).map_elements(small);
        Block {
            gain: [ones(Model.of(model)), ones(Model.of(model))],
            bias: [zeros(Model.of(model)), zeros(Model.of(model))],
            query: projection(1),
            key: projection(2),
            value: projection(3),
            out: randn::<f32, _>((head, feat, Out.of(model)), 4).map_elements(small),
            wide: randn::<f32, _>((Model.of(model), wide), 5).map_elements(small),
            wide_bias: zeros(wide),
            narrow: randn::<f32, _>((wide, Out.of(model)), 6).map_elements(small),
            narrow_bias: zeros(Out.of(model)),
        }
    }

    fn loss(&self, x: &Tokens, target: &Tokens) -> Tensor<f32, ()> {
        let normal = (x.layer_norm(Model, 1e-5) * &self.gain[0] + &self.bias[0]).eval();
        let q = (&normal * &self.query).sum(Model);
        let normal = normal.rename(Query, Key).eval();
        let (k, v) = ((&normal * &self.key).sum(Model), (&normal * &self.value).sum(Model));
        let scale = (self.query.size(Feat) as f32).powf(-0.5);
        let heads = attention(&q, &k, &v, Feat, Key, scale, true);
        let x = (x + (heads * &self.out).sum((Head, Feat)).rename(Out, Model)).eval();
        let normal = ((&x).layer_norm(Model, 1e-5) * &self.gain[1] + &self.bias[1]).eval();
        let wide = ((normal * &self.wide).sum(Model) + &self.wide_bias).gelu_tanh().eval();
        let narrow = ((wide * &self.narrow).sum(Wide) + &self.narrow_bias).rename(Out, Model);
        (x + narrow).mse_loss(target).mean((Batch, Query, Model))
    }
}

/// An LSTM. The input, forget, cell and output gates are stored along `Gate`.
#[derive(Parameters)]
struct Lstm {
    input: Tensor<f32, (Input, Gate, Next)>,
    recurrent: Tensor<f32, (State, Gate, Next)>,
    bias: Tensor<f32, (Gate, Next)>,
}

impl Lstm {
    fn new(input: usize, state: usize) -> Self {
        let (gate, next) = (Gate.of(4), Next.of(state));
        Lstm {
            input: randn::<f32, _>((Input.of(input), gate, next), 1).map_elements(|w: f32| 0.05 * w),
            recurrent: randn::<f32, _>((State.of(state), gate, next), 2).map_elements(|w: f32| 0.05 * w),
            bias: zeros((gate, next)),
        }
    }

    fn loss(&self, x: &Tensor<f32, (Step, Example, Input)>) -> Tensor<f32, ()> {
        let inputs = ((x * &self.input).sum(Input) + &self.bias).eval();
        let (examples, state) = (Example.of(x.size(Example)), self.bias.size(Next));
        let mut h = zeros::<f32, _>((examples, State.of(state)));
        let mut c = zeros::<f32, _>((examples, Next.of(state)));
        for step in 0..x.size(Step) {
            let gates = ((&h * &self.recurrent).sum(State) + (&inputs).index(Step, step)).eval();
            let gate = |at: usize| (&gates).index(Gate, at);
            c = (gate(1).sigmoid() * &c + gate(0).sigmoid() * gate(2).tanh()).eval();
            h = (gate(3).sigmoid() * (&c).tanh()).rename(Next, State).eval();
        }
        h.square().sum((Example, State))
    }
}

/// A convolution, batch normalization and `relu`.
#[derive(Parameters)]
struct ConvBlock {
    weight: Tensor<f32, (Channel, Filter, Kh, Kw)>,
    gain: Tensor<f32, (Filter,)>,
    bias: Tensor<f32, (Filter,)>,
}

impl ConvBlock {
    fn loss(
        &self,
        x: &Tensor<f32, (Batch, Channel, H, W)>,
        weight: &Tensor<f32, (Batch, Filter, H, W)>,
    ) -> Tensor<f32, ()> {
        let y = conv(x, &self.weight, Channel, (H, W), (Kh, Kw), &Window::new().padding(1));
        let normal = y.batch_norm((Batch, H, W), 1e-5).output;
        ((normal * &self.gain + &self.bias).relu() * weight).sum((Batch, Filter, H, W))
    }
}

fn main() {
    let words = || std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let rounds = words().find_map(|word| word.parse().ok()).unwrap_or(20);
    let part = words().find(|word| word.parse::<usize>().is_err()).unwrap_or_default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("the thread can be started");
    pool.install(|| run(&Bench { rounds, part }));
}

fn run(bench: &Bench) {
    println!(
        "{:<28} {:>10} {:>10} {:>8} {:>10} {:>8} {:>10} {:>10}",
        "step, microseconds", "grad", "by hand", "ratio", "recorded", "ratio", "peak MiB", "recorded"
    );
    elementwise(bench);
    networks(bench);
    lookups_and_loops(bench);
    updates(bench);
}

fn elementwise(bench: &Bench) {
    for (examples, input, hidden) in [(32, 64, 32), (64, 64, 128), (256, 784, 512)] {
        let name = format!("mlp {examples}x{input}-{hidden}-10");
        if !bench.is_asked(&name) {
            continue;
        }
        let [mut mlp, by_hand] = [(); 2].map(|()| Mlp::new(input, hidden, 10));
        let x = randn::<f32, _>((Example.of(examples), Input.of(input)), 3);
        let y = from_fn(Example.of(examples), |e: usize| e % 10);
        let given = (&mlp.clone(), &x, &y);
        let program = record(
            |(mlp, x, y): (&Mlp, &Inputs, &Labels)| loss_and_grad(|mlp: &Mlp| mlp.loss(x, y), mlp),
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            &name,
            &mut || drop(black_box(value_and_grad(|mlp| mlp.loss(&x, &y), &mut mlp))),
            Some(&mut || drop(black_box(by_hand.by_hand(&x, &y)))),
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("chain of 10^6") {
        let drawn = || [1, 2, 3].map(|seed| randn::<f32, _>(N.of(1_000_000), seed));
        let (mut by, [a, b, c]) = (drawn(), drawn());
        type Line = Tensor<f32, (N,)>;
        let chain = |a: &Line, b: &Line, c: &Line| ((a * b + c).tanh() * a.sigmoid()).sum(N);
        let given = (&a, &b, &c);
        let program = record(
            |given: (&Line, &Line, &Line)| {
                loss_and_grad(|(a, b, c): (&Line, &Line, &Line)| chain(a, b, c), given)
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "chain of 10^6",
            &mut || drop(black_box(value_and_grad(|[a, b, c]| chain(a, b, c), &mut by))),
            Some(&mut || {
                let loss = chain(&a, &b, &c).order(());
                let t = (&a * &b + &c).tanh().eval();
                let s = (&a).sigmoid().eval();
                let inner = (&s * (1.0 - &t * &t)).eval();
                let da = (&inner * &b + &t * &s * (1.0 - &s)).eval();
                let db = (&inner * &a).eval();
                black_box((loss, da, db, inner));
            }),
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("cross entropy 4096x1024") {
        let [mut by, scores] = [(); 2].map(|()| randn::<f32, _>((Example.of(4096), Class.of(1024)), 1));
        let labels = from_fn(Example.of(4096), |e: usize| e % 1024);
        type Scores = Tensor<f32, (Example, Class)>;
        let given = (&scores, &labels);
        let program = record(
            |(scores, labels): (&Scores, &Labels)| {
                loss_and_grad(|s: &Scores| s.cross_entropy(Class, labels).mean(Example), scores)
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "cross entropy 4096x1024",
            &mut || {
                drop(black_box(value_and_grad(|s| s.cross_entropy(Class, &labels).mean(Example), &mut by)))
            },
            Some(&mut || {
                let log_p = (&scores).log_softmax(Class);
                let one_hot = (&labels).cast::<isize>().eq(Class).cast::<f32>();
                let loss = (&log_p).nll_loss(Class, &labels).mean(Example).order(());
                black_box((loss, ((log_p.exp() - one_hot) / 4096.0).eval()));
            }),
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("layer norm 4096x768") {
        let drawn = || {
            let x = randn::<f32, _>((Example.of(4096), Feat.of(768)), 1);
            (x, ones::<f32, _>(Feat.of(768)), zeros::<f32, _>(Feat.of(768)))
        };
        let (mut by, (x, gain, bias)) = (drawn(), drawn());
        let weight = randn::<f32, _>((Example.of(4096), Feat.of(768)), 2);
        type Examples = Tensor<f32, (Example, Feat)>;
        type Feats = Tensor<f32, (Feat,)>;
        let loss = |(x, g, b): (&Examples, &Feats, &Feats), weight: &Examples| {
            let y = (x.layer_norm(Feat, 1e-5) * g + b).eval();
            (y * weight).sum((Example, Feat))
        };
        let given = (&x, &gain, &bias, &weight);
        let program = record(
            |(x, g, b, weight): (&Examples, &Feats, &Feats, &Examples)| {
                loss_and_grad(|given: (&Examples, &Feats, &Feats)| loss(given, weight), (x, g, b))
            },
            given,
        )
        .expect("the step is recorded");
        let (by_x, by_gain, by_bias) = &mut by;
        bench.print_all(
            "layer norm 4096x768",
            &mut || {
                let by = (&mut *by_x, &mut *by_gain, &mut *by_bias);
                drop(black_box(value_and_grad(|given| loss(given, &weight), by)));
            },
            Some(&mut || {
                let normal = (&x).layer_norm(Feat, 1e-5);
                let loss = ((&normal * &gain + &bias) * &weight).sum((Example, Feat)).order(());
                let d_bias = weight.sum(Example);
                let d_gain = (&weight * &normal).sum(Example);
                let slope = (&weight * &gain).eval();
                let factor = (x.var(Feat) + 1e-5).rsqrt().eval();
                let (mean, along) = (slope.mean(Feat), (&slope * &normal).mean(Feat));
                let dx = ((slope - mean - normal * along) * factor).eval();
                black_box((loss, dx, d_gain, d_bias));
            }),
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
}

fn networks(bench: &Bench) {
    if bench.is_asked("attention 4x8x256x64 causal") {
        let mut q = randn::<f32, _>((Batch.of(4), Head.of(8), Query.of(256), Feat.of(64)), 1);
        let mut k = randn::<f32, _>((Batch.of(4), Head.of(8), Key.of(256), Feat.of(64)), 2);
        let mut v = randn::<f32, _>((Batch.of(4), Head.of(8), Key.of(256), Feat.of(64)), 3);
        type Queries = Tensor<f32, (Batch, Head, Query, Feat)>;
        type Keys = Tensor<f32, (Batch, Head, Key, Feat)>;
        let loss = |(q, k, v): (&Queries, &Keys, &Keys)| {
            attention(q, k, v, Feat, Key, 0.125, Key.le(Query)).sum((Batch, Head, Query, Feat))
        };
        let copy = (q.map_elements(|x: f32| x), k.map_elements(|x: f32| x), v.map_elements(|x: f32| x));
        let given = (&copy.0, &copy.1, &copy.2);
        let program = record(
            |given: (&Queries, &Keys, &Keys)| {
                loss_and_grad(|given: (&Queries, &Keys, &Keys)| loss(given), given)
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "attention 4x8x256x64 causal",
            &mut || drop(black_box(value_and_grad(loss, (&mut q, &mut k, &mut v)))),
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("transformer block 4x128x256") {
        let mut block = Block::new(256, 8);
        let tokens = |seed: u64| randn::<f32, _>((Batch.of(4), Query.of(128), Model.of(256)), seed);
        let (x, target) = (tokens(7), tokens(8));
        let recorded = Block::new(256, 8);
        let given = (&recorded, &x, &target);
        let program = record(
            |(block, x, target): (&Block, &Tokens, &Tokens)| {
                loss_and_grad(|block: &Block| block.loss(x, target), block)
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "transformer block 4x128x256",
            &mut || drop(black_box(value_and_grad(|block| block.loss(&x, &target), &mut block))),
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("conv block 8x32x28x28") {
        let weight = randn::<f32, _>((Channel.of(32), Filter.of(32), Kh.of(3), Kw.of(3)), 1);
        let mut block = ConvBlock { weight, gain: ones(Filter.of(32)), bias: zeros(Filter.of(32)) };
        let mut x = randn::<f32, _>((Batch.of(8), Channel.of(32), H.of(28), W.of(28)), 2);
        let weight = randn::<f32, _>((Batch.of(8), Filter.of(32), H.of(28), W.of(28)), 3);
        type Images = Tensor<f32, (Batch, Channel, H, W)>;
        type Maps = Tensor<f32, (Batch, Filter, H, W)>;
        let (given_block, given_x) = (block.map_elements(|w: f32| w), x.map_elements(|x: f32| x));
        let given = (&given_block, &given_x, &weight);
        let program = record(
            |(block, x, weight): (&ConvBlock, &Images, &Maps)| {
                loss_and_grad(|(block, x): (&ConvBlock, &Images)| block.loss(x, weight), (block, x))
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "conv block 8x32x28x28",
            &mut || {
                drop(black_box(value_and_grad(|(block, x)| block.loss(x, &weight), (&mut block, &mut x))))
            },
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("lstm 32 steps of 32x128") {
        let mut lstm = Lstm::new(128, 128);
        let x = randn::<f32, _>((Step.of(32), Example.of(32), Input.of(128)), 3);
        type Sequence = Tensor<f32, (Step, Example, Input)>;
        let recorded = Lstm::new(128, 128);
        let given = (&recorded, &x);
        let program =
            record(|(lstm, x): (&Lstm, &Sequence)| loss_and_grad(|lstm: &Lstm| lstm.loss(x), lstm), given)
                .expect("the step is recorded");
        bench.print_all(
            "lstm 32 steps of 32x128",
            &mut || drop(black_box(value_and_grad(|lstm| lstm.loss(&x), &mut lstm))),
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
}

fn lookups_and_loops(bench: &Bench) {
    if bench.is_asked("embedding 50000x128, 4096") {
        let mut table = randn::<f32, _>((Word.of(50_000), Feat.of(128)), 1);
        let ids = from_fn(Example.of(4096), |e: usize| e * 7919 % 50_000);
        let weight = randn::<f32, _>((Example.of(4096), Feat.of(128)), 2);
        type Table = Tensor<f32, (Word, Feat)>;
        type Found = Tensor<f32, (Example, Feat)>;
        let loss =
            |t: &Table, ids: &Labels, weight: &Found| (t.take(Word, ids) * weight).sum((Example, Feat));
        let given_table = table.map_elements(|x: f32| x);
        let given = (&given_table, &ids, &weight);
        let program = record(
            |(table, ids, weight): (&Table, &Labels, &Found)| {
                loss_and_grad(|t: &Table| loss(t, ids, weight), table)
            },
            given,
        )
        .expect("the step is recorded");
        bench.print_all(
            "embedding 50000x128, 4096",
            &mut || drop(black_box(value_and_grad(|t| loss(t, &ids, &weight), &mut table))),
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
    if bench.is_asked("100 steps of 64 oscillators") {
        // Damped oscillators with semi-implicit Euler steps.
        let x = randn::<f32, _>(N.of(64), 1);
        let mut stiffness = randn::<f32, _>(N.of(64), 2).square().eval();
        type Line = Tensor<f32, (N,)>;
        let loss = |k: &Line, x: &Line| {
            let (mut x, mut v) = (x.clone(), zeros::<f32, _>(N.of(64)));
            for _ in 0..100 {
                v = (&v - (k * &x + &v * 0.1) * 0.01).eval();
                x = (&x + &v * 0.01).eval();
            }
            x.square().sum(N)
        };
        let given = (&stiffness.clone(), &x);
        let program = record(|(k, x): (&Line, &Line)| loss_and_grad(|k: &Line| loss(k, x), k), given)
            .expect("the step is recorded");
        bench.print_all(
            "100 steps of 64 oscillators",
            &mut || drop(black_box(value_and_grad(|k| loss(k, &x), &mut stiffness))),
            None,
            Some(&mut || drop(black_box(program.call(given)))),
        );
    }
}

fn updates(bench: &Bench) {
    fn step<O: Optimizer<Mlp>>(bench: &Bench, name: &str, sizes: [usize; 3], mut optimizer: O) {
        let [input, hidden, class] = sizes;
        let name = format!("{name} {input}-{hidden}-{class}");
        if bench.is_asked(&name) {
            let mut mlp = Mlp::new(input, hidden, class);
            let gradient = mlp.map_elements(|w: f32| 0.1 * w + 1e-3);
            bench.print(&name, &mut || optimizer.step(&mut mlp, &gradient), None);
        }
    }
    for sizes in [[64, 32, 10], [784, 512, 10]] {
        step(bench, "sgd", sizes, Sgd::new(1e-6));
        step(bench, "momentum", sizes, Sgd::new(1e-6).momentum(0.9));
        step(bench, "adam", sizes, Adam::new(1e-6));
        step(bench, "adamw", sizes, AdamW::new(1e-6));
        step(bench, "lion", sizes, Lion::new(1e-6));
        let [input, hidden, class] = sizes;
        let mlp = Mlp::new(input, hidden, class);
        let mut gradient = mlp.map_elements(|w: f32| 0.1 * w + 1e-3);
        let name = |what: &str| format!("{what} {input}-{hidden}-{class}");
        if bench.is_asked(&name("clip")) {
            // The norm is less than the limit, so the gradient is not scaled.
            let mut most = 1e3;
            bench.print(
                &name("clip"),
                &mut || {
                    most *= 0.999_999;
                    drop(black_box(clip_by_global_norm(&mut gradient, most)));
                },
                None,
            );
        }
        if bench.is_asked(&name("average")) {
            let mut average = Average::new(0.99);
            bench.print(&name("average"), &mut || average.update(&mlp), None);
        }
        if bench.is_asked(&name("accumulate")) {
            let mut sum = Accumulator::new();
            bench.print(&name("accumulate"), &mut || sum.add(mlp.clone()), None);
        }
    }
}
