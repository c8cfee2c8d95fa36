//! Times programs on a device: see README.md.

use clap::Parser;
use gpt::model::{Batch, Gpt, Sizes, Texts, Token};
use half::bf16;
use std::error::Error;
use std::time::Instant;
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::optim::{AdamW, Optimizer};
use typed_dims::prelude::*;
use typed_dims::program::{record, spec};
use typed_dims_xla::{AttentionKernel, OnDevice, Pjrt, Precision, RunOptions};

dims! {
    struct Row;
    struct In;
    struct Hidden;
    struct Class;
    struct Place;
    struct Query;
    struct Key;
    struct Heads;
    struct Feat;
    struct Left;
    struct Inner;
    struct Right;
}

/// Times programs on a device.
#[derive(Parser)]
struct Args {
    /// The path of the plugin. By default, the first one found is used
    #[arg(long)]
    plugin: Option<String>,
    /// Run only the groups with this text in their names: gpt, mlp, chain, attention or product
    #[arg(long, default_value = "")]
    only: String,
    /// Number of timed calls, at least 5
    #[arg(long, default_value_t = 50)]
    calls: usize,
    /// Small sizes, to try the program on a CPU
    #[arg(long)]
    small: bool,
    /// A flag of XLA, as `name=value`, or `name` for `name=true`
    #[arg(long)]
    flag: Vec<String>,
    /// A folder for compiled programs
    #[arg(long)]
    cache: Option<String>,
}

/// How soon a queued call returns is measured with this many calls.
const FIRST: usize = 5;

/// Prints the median time of single calls, the mean time of queued ones, and how soon a queued call
/// returns, in microseconds. The argument of `call` says whether to wait for the results.
fn time(
    name: &str,
    calls: usize,
    compiled: f64,
    mut call: impl FnMut(bool) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..3 {
        call(true)?;
    }
    let mut single = Vec::new();
    for _ in 0..calls {
        let start = Instant::now();
        call(true)?;
        single.push(1e6 * start.elapsed().as_secs_f64());
    }
    single.sort_by(f64::total_cmp);
    let start = Instant::now();
    let mut first = 0.0;
    for at in 0..calls {
        call(at + 1 == calls)?;
        if at + 1 == FIRST {
            first = 1e6 * start.elapsed().as_secs_f64() / FIRST as f64;
        }
    }
    let queued = 1e6 * start.elapsed().as_secs_f64() / calls as f64;
    println!(
        "{name:32} single {:10.0}  queued {queued:10.0}  a call returns in {first:7.0}  compiled in {compiled:6.1} s",
        single[calls / 2]
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    if args.calls < FIRST {
        return Err(format!("--calls {}: at least {FIRST} calls are needed", args.calls).into());
    }
    let pjrt = match &args.plugin {
        Some(path) => Pjrt::load(path)?,
        None => Pjrt::find()?,
    };
    println!("{} ({}), {}", pjrt.platform_name(), pjrt.platform_version(), pjrt.devices()[0].kind());
    let wanted = |name: &str| name.contains(&args.only);
    let options = |precision| {
        let mut options = RunOptions::new().precision(precision);
        for flag in &args.flag {
            let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
            options = options.flag(name, value);
        }
        match &args.cache {
            Some(folder) => options.cache(folder),
            None => options,
        }
    };
    for (name, precision) in [("exact", Precision::Exact), ("tf32", Precision::Tf32)] {
        let case = format!("gpt gradient {name}");
        if wanted(&case) {
            gradient_of_gpt(&pjrt, &args, &case, &options(precision))?;
        }
        let case = format!("gpt training step {name}");
        if wanted(&case) {
            step_of_gpt(&pjrt, &args, &case, &options(precision))?;
        }
    }
    if wanted("mlp") {
        mlp(&pjrt, &args, &options(Precision::Exact))?;
    }
    if wanted("chain") {
        chain(&pjrt, &args, &options(Precision::Exact))?;
    }
    if wanted("attention") {
        for (name, kernel) in [("operations", AttentionKernel::Operations), ("cuDNN", AttentionKernel::Cudnn)]
        {
            let result =
                attention_of_halves(&pjrt, &args, name, &options(Precision::Exact).attention(kernel));
            // Only CUDA has cuDNN.
            if let Err(error) = result {
                println!("attention bf16, {name}: {error}");
            }
        }
    }
    if wanted("product") {
        product(&pjrt, &args, &options(Precision::Exact))?;
    }
    if let Ok(memory) = pjrt.memory_stats(0) {
        println!("{memory:?}");
    }
    Ok(())
}

/// The decoder, a batch of texts, and the character to predict at each position.
fn decoder(small: bool) -> (Gpt, Texts, Texts) {
    let (batch, context, layers, width) = if small { (2, 16, 2, 32) } else { (8, 256, 6, 256) };
    let inner = (8 * width as usize).div_ceil(3).next_multiple_of(8);
    let sizes = Sizes { chars: 65, layers, heads: 8, width, inner };
    let text = |seed: u32| {
        let char = move |at: u32| at.wrapping_mul(2_654_435_761).wrapping_add(seed) % 65;
        from_vec((Batch.of(batch), Token.of(context)), (0..(batch * context) as u32).map(char).collect())
    };
    (Gpt::random(sizes, 1), text(1), text(7))
}

fn gradient_of_gpt(pjrt: &Pjrt, args: &Args, name: &str, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    let (gpt, texts, next) = decoder(args.small);
    let program = record(|(gpt, x, y): (&Gpt, &Texts, &Texts)| gpt.gradient(x, y), (&gpt, &texts, &next))?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    let (device, x, y) = (pjrt.put(&gpt)?, pjrt.put(&texts)?, pjrt.put(&next)?);
    let (loss, _) = run.call((&device, &x, &y))?;
    println!(
        "  loss {} here, {} on the device",
        gpt.loss(&texts, &next).order(()),
        loss.to_host()?.order(())
    );
    time(name, args.calls, compiled, |wait| {
        let (loss, gradient) = run.call((&device, &x, &y))?;
        if wait {
            loss.ready()?;
            gradient.ready()?;
        }
        Ok(())
    })
}

fn step_of_gpt(pjrt: &Pjrt, args: &Args, name: &str, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    type State = (Gpt, AdamW<Gpt>);
    let (gpt, texts, next) = decoder(args.small);
    let mut adam = AdamW::new(1e-3);
    adam.prepare(&gpt);
    let state: State = (gpt, adam);
    let on_device = pjrt.put(&state)?;
    let step = |((mut gpt, mut adam), x, y): (State, &Texts, &Texts)| {
        let (loss, gradient) = gpt.gradient(x, y);
        adam.step(&mut gpt, &gradient);
        ((gpt, adam), loss)
    };
    let program = record(step, (state, &texts, &next))?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    let counts = run.executable().instruction_counts()?;
    let of = |name: &str| counts.get(name).copied().unwrap_or(0);
    println!("  {} fusions, {} copies, {} products", of("fusion"), of("copy"), of("dot"));
    println!("  {counts:?}");
    let (x, y) = (pjrt.put(&texts)?, pjrt.put(&next)?);
    let mut state: Option<OnDevice<State>> = Some(on_device);
    time(name, args.calls, compiled, |wait| {
        let own = state.take().expect("the previous call stored the new state");
        let (next, loss) = run.call((own, &x, &y))?;
        if wait {
            loss.ready()?;
            next.ready()?;
        }
        state = Some(next);
        Ok(())
    })
}

type Weights =
    (Tensor<f32, (In, Hidden)>, Tensor<f32, (Hidden,)>, Tensor<f32, (Hidden, Class)>, Tensor<f32, (Class,)>);

fn mlp(pjrt: &Pjrt, args: &Args, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    for (rows, inputs, hidden) in [(32, 64, 32), (256, 784, 512)] {
        let x: Tensor<f32, (Row, In)> = randn((Row.of(rows), In.of(inputs)), 1);
        let y: Tensor<i64, (Row,)> = from_vec(Row.of(rows), (0..rows as i64).map(|at| at % 10).collect());
        let weights: Weights = (
            randn((In.of(inputs), Hidden.of(hidden)), 2),
            zeros(Hidden.of(hidden)),
            randn((Hidden.of(hidden), Class.of(10)), 3),
            zeros(Class.of(10)),
        );
        let program = record(
            |(w, x, y): (&Weights, &Tensor<f32, (Row, In)>, &Tensor<i64, (Row,)>)| {
                loss_and_grad(
                    |(w1, b1, w2, b2): &Weights| -> Tensor<f32, ()> {
                        let hidden = ((x * w1).sum(In) + b1).relu();
                        ((hidden * w2).sum(Hidden) + b2).cross_entropy(Class, y).mean(Row)
                    },
                    w,
                )
            },
            (&weights, &x, &y),
        )?;
        let start = Instant::now();
        let run = pjrt.compile_with(&program, options)?;
        let compiled = start.elapsed().as_secs_f64();
        let (weights, x, y) = (pjrt.put(&weights)?, pjrt.put(&x)?, pjrt.put(&y)?);
        time(&format!("mlp {rows}x{inputs}-{hidden}-10"), args.calls, compiled, |wait| {
            let (loss, gradient) = run.call((&weights, &x, &y))?;
            if wait {
                loss.ready()?;
                gradient.ready()?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn chain(pjrt: &Pjrt, args: &Args, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    let x: Tensor<f32, (Place,)> = randn(Place.of(1_000_000), 1);
    let program = record(
        |x: &Tensor<f32, (Place,)>| {
            loss_and_grad(|x| ((x.sin() * x + 1.0).tanh() * x.exp()).square().sum(Place), x)
        },
        &x,
    )?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    let x = pjrt.put(&x)?;
    time("chain of 10^6", args.calls, compiled, |wait| {
        let (loss, gradient) = run.call(&x)?;
        if wait {
            loss.ready()?;
            gradient.ready()?;
        }
        Ok(())
    })
}

type Queries = Tensor<bf16, (Row, Query, Heads, Feat)>;
type Keys = Tensor<bf16, (Row, Key, Heads, Feat)>;

fn attention_of_halves(
    pjrt: &Pjrt,
    args: &Args,
    kernel: &str,
    options: &RunOptions,
) -> Result<(), Box<dyn Error>> {
    let (rows, len) = if args.small { (1, 32) } else { (16, 1024) };
    let queries = (Row.of(rows), Query.of(len), Heads.of(16), Feat.of(64));
    let keys = (Row.of(rows), Key.of(len), Heads.of(16), Feat.of(64));
    let attend = |q: &Queries, k: &Keys, v: &Keys| -> Queries {
        attention(q, k, v, Feat, Key, bf16::from_f32(0.125), Key.le(Query)).eval()
    };
    let (q, k, v): (Queries, Keys, Keys) = (randn(queries, 1), randn(keys, 2), randn(keys, 3));
    let (dq, dk, dv) = (pjrt.put(&q)?, pjrt.put(&k)?, pjrt.put(&v)?);
    let program = record(
        move |(q, k, v): (&Queries, &Keys, &Keys)| attend(q, k, v),
        (spec(queries), spec(keys), spec(keys)),
    )?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    time(&format!("attention bf16, {kernel}"), args.calls, compiled, |wait| {
        let out = run.call((&dq, &dk, &dv))?;
        if wait {
            out.ready()?;
        }
        Ok(())
    })?;
    let gradient = move |(q, k, v): (&Queries, &Keys, &Keys)| -> (Queries, Keys, Keys) {
        let loss = |(q, k, v): (&Queries, &Keys, &Keys)| -> Tensor<f32, ()> {
            attend(q, k, v).cast::<f32>().sum((Row, Query, Heads, Feat))
        };
        grad(loss, (q, k, v))
    };
    let program = record(gradient, (spec(queries), spec(keys), spec(keys)))?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    time(&format!("attention bf16, {kernel}, gradient"), args.calls, compiled, |wait| {
        let (a, b, c) = run.call((&dq, &dk, &dv))?;
        if wait {
            a.ready()?;
            b.ready()?;
            c.ready()?;
        }
        Ok(())
    })
}

type A = Tensor<bf16, (Left, Inner)>;
type B = Tensor<bf16, (Inner, Right)>;

fn product(pjrt: &Pjrt, args: &Args, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    let size = if args.small { 64 } else { 8192 };
    let program = record(
        |(a, b): (&A, &B)| (a * b).sum(Inner),
        (spec((Left.of(size), Inner.of(size))), spec((Inner.of(size), Right.of(size)))),
    )?;
    let start = Instant::now();
    let run = pjrt.compile_with(&program, options)?;
    let compiled = start.elapsed().as_secs_f64();
    let a: A = rand((Left.of(size), Inner.of(size)), 1);
    let b: B = rand((Inner.of(size), Right.of(size)), 2);
    let (a, b) = (pjrt.put(&a)?, pjrt.put(&b)?);
    time("product of bf16", args.calls, compiled, |wait| {
        let out = run.call((&a, &b))?;
        if wait {
            out.ready()?;
        }
        Ok(())
    })
}
