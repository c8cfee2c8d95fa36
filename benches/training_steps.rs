//! Training steps, value and gradient without an optimizer: `value_and_grad` beside the same backward pass written by hand in typed dims.
//!
//! `cargo bench --bench training_steps -- [rounds]` prints the least time of each in microseconds, on one thread; both take turns.
//! `benches/python/training_steps.py` has the same steps in PyTorch and JAX.

use std::hint::black_box;
use std::time::Instant;
use typed_dims::grad::{grad, value_and_grad};
use typed_dims::prelude::*;

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
}

#[derive(Parameters)]
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

/// The least times of steps that take turns, in microseconds.
fn race(rounds: usize, steps: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; steps.len()];
    let mut calls = vec![1_u32; steps.len()];
    for (step, calls) in steps.iter_mut().zip(&mut calls) {
        step();
        let start = Instant::now();
        step();
        *calls = (0.005 / start.elapsed().as_secs_f64()).clamp(1.0, 10_000.0) as u32;
    }
    for _ in 0..rounds {
        for ((step, &calls), least) in steps.iter_mut().zip(&calls).zip(&mut least) {
            let start = Instant::now();
            (0..calls).for_each(|_| step());
            *least = least.min(start.elapsed().as_secs_f64() / f64::from(calls) * 1e6);
        }
    }
    least
}

fn print(name: &str, rounds: usize, traced: &mut dyn FnMut(), by_hand: Option<&mut dyn FnMut()>) {
    match by_hand {
        Some(by_hand) => {
            let times = race(rounds, &mut [traced, by_hand]);
            println!("{name:<28} {:>10.1} {:>10.1} {:>8.2}", times[0], times[1], times[0] / times[1]);
        }
        None => {
            let times = race(rounds, &mut [traced]);
            println!("{name:<28} {:>10.1} {:>10} {:>8}", times[0], "", "");
        }
    }
}

fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(20);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread can be had");
    pool.install(|| run(rounds));
}

fn run(rounds: usize) {
    println!("{:<28} {:>10} {:>10} {:>8}", "step, microseconds", "grad", "by hand", "ratio");
    for (examples, input, hidden) in [(32, 64, 32), (64, 64, 128), (256, 784, 512)] {
        let mlp = Mlp::new(input, hidden, 10);
        let x = randn::<f32, _>((Example.of(examples), Input.of(input)), 3);
        let y = from_fn(Example.of(examples), |e: usize| e % 10);
        print(
            &format!("mlp {examples}x{input}-{hidden}-10"),
            rounds,
            &mut || drop(black_box(value_and_grad(|mlp| mlp.loss(&x, &y), &mlp))),
            Some(&mut || drop(black_box(mlp.by_hand(&x, &y)))),
        );
    }
    {
        let [a, b, c] = [1, 2, 3].map(|seed| randn::<f32, _>(N.of(1_000_000), seed));
        let chain = |a: &Tensor<f32, (N,)>, b: &Tensor<f32, (N,)>, c: &Tensor<f32, (N,)>| {
            ((a * b + c).tanh() * a.sigmoid()).sum(N)
        };
        print(
            "chain of 10^6",
            rounds.min(8),
            &mut || drop(black_box(value_and_grad(|(a, b, c)| chain(a, b, c), (&a, &b, &c)))),
            Some(&mut || {
                let loss = chain(&a, &b, &c).order(());
                let t = (&a * &b + &c).tanh().eval();
                let s = (&a).sigmoid().eval();
                let inner = (&s * (1.0 - &t * &t)).eval();
                let da = (&inner * &b + &t * &s * (1.0 - &s)).eval();
                let db = (&inner * &a).eval();
                black_box((loss, da, db, inner));
            }),
        );
    }
    {
        let scores = randn::<f32, _>((Example.of(4096), Class.of(1024)), 1);
        let labels = from_fn(Example.of(4096), |e: usize| e % 1024);
        print(
            "cross entropy 4096x1024",
            rounds.min(8),
            &mut || {
                drop(black_box(value_and_grad(|s| s.cross_entropy(Class, &labels).mean(Example), &scores)))
            },
            Some(&mut || {
                let log_p = (&scores).log_softmax(Class);
                let one_hot = (&labels).cast::<isize>().eq(Class).cast::<f32>();
                let loss = -(&log_p * one_hot).sum(Class).mean(Example).order(());
                black_box((loss, ((log_p.exp() - one_hot) / 4096.0).eval()));
            }),
        );
    }
    {
        let x = randn::<f32, _>((Example.of(4096), Feat.of(768)), 1);
        let (gain, bias) = (ones::<f32, _>(Feat.of(768)), zeros::<f32, _>(Feat.of(768)));
        let weight = randn::<f32, _>((Example.of(4096), Feat.of(768)), 2);
        print(
            "layer norm 4096x768",
            rounds.min(8),
            &mut || {
                let f =
                    |x: &Tensor<f32, (Example, Feat)>, g: &Tensor<f32, (Feat,)>, b: &Tensor<f32, (Feat,)>| {
                        (x.layer_norm(Feat, 1e-5) * g + b).eval()
                    };
                drop(black_box(grad(
                    |(x, g, b)| (f(x, g, b) * &weight).sum((Example, Feat)),
                    (&x, &gain, &bias),
                )));
            },
            None,
        );
    }
    {
        let q = randn::<f32, _>((Batch.of(4), Head.of(8), Query.of(256), Feat.of(64)), 1);
        let k = randn::<f32, _>((Batch.of(4), Head.of(8), Key.of(256), Feat.of(64)), 2);
        let v = randn::<f32, _>((Batch.of(4), Head.of(8), Key.of(256), Feat.of(64)), 3);
        print(
            "attention 4x8x256x64 causal",
            rounds.min(8),
            &mut || {
                drop(black_box(grad(
                    |(q, k, v)| {
                        attention(q, k, v, Feat, Key, 0.125, Key.le(Query)).sum((Batch, Head, Query, Feat))
                    },
                    (&q, &k, &v),
                )));
            },
            None,
        );
    }
    {
        let table = randn::<f32, _>((Word.of(50_000), Feat.of(128)), 1);
        let ids = from_fn(Example.of(4096), |e: usize| e * 7919 % 50_000);
        let weight = randn::<f32, _>((Example.of(4096), Feat.of(128)), 2);
        print(
            "embedding 50000x128, 4096",
            rounds.min(8),
            &mut || drop(black_box(grad(|t| (t.take(Word, &ids) * &weight).sum((Example, Feat)), &table))),
            None,
        );
    }
    {
        // A damped oscillator of 64 particles, 100 explicit steps.
        let x = randn::<f32, _>(N.of(64), 1);
        let stiffness = randn::<f32, _>(N.of(64), 2).square().eval();
        print(
            "100 steps of 64 oscillators",
            rounds,
            &mut || {
                drop(black_box(value_and_grad(
                    |k| {
                        let (mut x, mut v) = (x.clone(), zeros::<f32, _>(N.of(64)));
                        for _ in 0..100 {
                            v = (&v - (k * &x + &v * 0.1) * 0.01).eval();
                            x = (&x + &v * 0.01).eval();
                        }
                        x.square().sum(N)
                    },
                    &stiffness,
                )));
            },
            None,
        );
    }
}
