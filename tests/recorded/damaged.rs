//! Saved programs with modified numbers, lists and texts: each is refused, or runs. Debug
//! assertions and AddressSanitizer detect invalid accesses.

use crate::splitmix::Random;
use serde_json::{Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::{grad, loss_and_grad};
use typed_dims::nn::{LayerNorm, Linear};
use typed_dims::optim::{Adam, Optimizer, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::{Program, RecordInputs, SavedProgram, dynamic, record, spec};

dims! {
    struct Batch;
    struct Seq;
    struct Key;
    struct Word;
    struct Width;
    struct Class;
    struct Three = 3;
}

/// The paths of all values inside a value that satisfy `is`.
fn places(value: &Value, path: &mut String, is: &dyn Fn(&Value) -> bool, found: &mut Vec<String>) {
    if is(value) {
        found.push(path.clone());
    }
    let len = path.len();
    let mut below = |name: &str, value: &Value| {
        path.push('/');
        path.push_str(name);
        places(value, path, is, found);
        path.truncate(len);
    };
    match value {
        Value::Array(values) => values.iter().enumerate().for_each(|(at, own)| below(&at.to_string(), own)),
        // Names and locations in the listing do not affect steps.
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "listing").for_each(|(name, own)| below(name, own));
        }
        _ => {}
    }
}

/// An estimate of the number of loop iterations. Programs for which it is large are not called,
/// because they could run for hours.
fn longest(value: &Value) -> f64 {
    match value {
        Value::Array(values) => values.iter().map(longest).fold(0.0, f64::max),
        Value::Object(fields) => {
            let own = fields.get("sizes").and_then(Value::as_array).map_or(0.0, |sizes| {
                sizes.iter().map(|size| size.as_f64().unwrap_or(1.0).max(1.0)).product()
            });
            let counts =
                ["len", "count", "size", "outer", "inner"].iter().filter_map(|name| fields.get(*name));
            let counts = counts.filter_map(Value::as_f64).fold(own, f64::max);
            fields.values().map(longest).fold(counts, f64::max)
        }
        _ => 0.0,
    }
}

/// Changes a program in many ways. Each changed program must be refused or loaded, without a panic.
/// A loaded program is called unless it could run for hours.
fn damage<P, I, Out>(name: &str, program: &Program<P, Out>, like: &Out, inputs: I, times: usize)
where
    P: RecordInputs,
    I: RecordInputs<Value = P::Value> + Clone,
    Out: Parameters,
{
    let saved = program.to_saved().expect("the program can be saved");
    let value = serde_json::to_value(&saved).expect("the program can be written");
    let find = |is: &dyn Fn(&Value) -> bool| {
        let mut found = Vec::new();
        places(&value, &mut String::new(), is, &mut found);
        found
    };
    let numbers = find(&|value| value.is_number());
    let lists = find(&|value| value.as_array().is_some_and(|list| !list.is_empty()));
    let texts = find(&|value| value.is_string());
    let mut draws = Random(name.len() as u64);
    let (mut refused, mut ran) = (0, 0);
    for number in 0..times {
        let mut changed = value.clone();
        for _ in 0..1 + draws.below(2) {
            match draws.below(8) {
                0 => {
                    let from = value.pointer(&texts[draws.below(texts.len())]).cloned();
                    if let Some(own) = changed.pointer_mut(&texts[draws.below(texts.len())]) {
                        *own = from.unwrap_or_default();
                    }
                }
                1 => {
                    let Some(Value::Array(list)) = changed.pointer_mut(&lists[draws.below(lists.len())])
                    else {
                        continue;
                    };
                    let at = draws.below(list.len().max(1));
                    match draws.below(3) {
                        _ if list.is_empty() => {}
                        0 => drop(list.remove(at)),
                        1 => list.push(list[at].clone()),
                        _ => list.reverse(),
                    }
                }
                _ => {
                    let other = value.pointer(&numbers[draws.below(numbers.len())]).cloned();
                    let Some(own) = changed.pointer_mut(&numbers[draws.below(numbers.len())]) else {
                        continue;
                    };
                    let old = own.as_i64().unwrap_or(0);
                    *own = match draws.below(12) {
                        0 => 0.into(),
                        1 => (-1).into(),
                        2 => 1.into(),
                        3 => (old.wrapping_add(1)).into(),
                        4 => (old.wrapping_sub(1)).into(),
                        5 => (old.wrapping_neg()).into(),
                        6 => (old.wrapping_mul(2)).into(),
                        7 => i64::MAX.into(),
                        8 => i64::MIN.into(),
                        9 => u64::MAX.into(),
                        10 => (1_i64 << 62).into(),
                        _ => other.unwrap_or_default(),
                    };
                }
            }
        }
        let long = longest(&changed);
        let run = || -> Result<bool, String> {
            let read: SavedProgram =
                serde_json::from_value(changed.clone()).map_err(|error| error.to_string())?;
            let loaded: Program<P, Out> = read.restore(like).map_err(|error| error.to_string())?;
            if long < 1e6 {
                // An index may be out of range, or a result too large.
                let _ = loaded.try_call(inputs.clone());
            }
            Ok(true)
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(_)) => ran += 1,
            Ok(Err(_)) => refused += 1,
            Err(_) => {
                let differences = differences(&value, &changed, &mut String::new());
                panic!("change {number} of `{name}` panics: {differences}");
            }
        }
    }
    assert!(
        refused > times / 8 && ran > 0,
        "{name}: {refused} of {times} programs are refused, {ran} are loaded"
    );
}

/// The differences between two values.
fn differences(a: &Value, b: &Value, path: &mut String) -> String {
    match (a, b) {
        (a, b) if a == b => String::new(),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let each = a.iter().zip(b).enumerate();
            each.map(|(at, (a, b))| differences(a, b, &mut format!("{path}/{at}"))).collect()
        }
        (Value::Object(a), Value::Object(b)) => {
            let each = a.iter().filter_map(|(name, a)| Some((name, a, b.get(name)?)));
            each.map(|(name, a, b)| differences(a, b, &mut format!("{path}/{name}"))).collect()
        }
        (a, b) => format!("\n{path}: {b} instead of {a}"),
    }
}

/// The number of changed versions of each program: `DAMAGED_TIMES`, or 400 by default.
fn times() -> usize {
    std::env::var("DAMAGED_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(400)
}

type Floats = Tensor<f32, (Batch, Width)>;

fn floats(seed: u64) -> Floats {
    randn((Batch.of(4), Width.of(6)), seed)
}

/// The saved form of a program.
fn written<P, Out>(program: &Program<P, Out>) -> Value {
    let saved = program.to_saved().expect("the program can be saved");
    serde_json::to_value(saved).expect("the program can be written")
}

/// The path of the first value that satisfies `is`.
fn first(value: &Value, is: &dyn Fn(&Value) -> bool) -> String {
    let mut found = Vec::new();
    places(value, &mut String::new(), is, &mut found);
    found.into_iter().next().expect("the program has such a value")
}

fn restored<P: RecordInputs, Out: Parameters>(value: Value, like: &Out) -> Result<Program<P, Out>, String> {
    let read: SavedProgram = serde_json::from_value(value).expect("the program can be read");
    read.restore(like).map_err(|error| error.to_string())
}

fn append(list: &mut Value, value: Value) {
    list.as_array_mut().expect("this is a list").push(value);
}

/// If a loop is empty, a field reads no elements. But attention reads each operand only along some
/// of the loops.
#[test]
fn operands_of_attention_are_checked_along_the_loops_that_it_reads() {
    type Queries = Tensor<f32, (Seq, Width)>;
    type Keys = Tensor<f32, (Key, Width)>;
    type Values = Tensor<f32, (Key, Class)>;
    let q: Queries = randn((Seq.of(3), Width.of(6)), 1);
    let k: Keys = randn((Key.of(4), Width.of(6)), 2);
    let v: Values = randn((Key.of(4), Class.of(2)), 3);
    let f = |(q, k, v): (&Queries, &Keys, &Values)| attention(q, k, -v, Width, Key, 0.4, true);
    let like: Tensor<f32, (Seq, Class)> = f((&q, &k, &v));
    let value = written(&record(f, (&q, &k, &v)).expect("the function can be recorded"));
    let path = first(&value, &|value| value.get("scores").is_some());
    // Appends an empty loop along which no operand varies.
    let restore = |change: &dyn Fn(&mut Value)| {
        let mut changed = value.clone();
        let attention = changed.pointer_mut(&path).expect("the pointer is valid");
        for name in ["/operands/0", "/operands/1", "/operands/2", "/mask"] {
            let field = attention.pointer_mut(name).expect("attention has this operand");
            append(&mut field["sizes"], 0.into());
            for operand in field["operands"].as_array_mut().expect("operands are a list") {
                append(&mut operand["place"]["strides"], 0.into());
            }
        }
        change(attention);
        restored::<(&Queries, &Keys, &Values), _>(changed, &like)
    };
    let program = restore(&|_| {}).expect("each element that attention reads exists");
    assert_eq!(program.call((&q, &k, &v)), like);
    for operand in [0_usize, 1, 2] {
        let far = restore(&|attention| {
            attention["operands"][operand]["operands"][0]["place"]["offset"] = (1_i64 << 40).into();
        });
        let error = far.err().expect("the elements do not exist");
        assert!(error.contains("a step reads or writes out of bounds"), "{error}");
    }
    // The new loop is one over features, and the values vary along it.
    let varying = restore(&|attention| {
        let strides = &mut attention["operands"][2]["operands"][0]["place"]["strides"];
        let loops = strides.as_array().map_or(0, Vec::len);
        strides[loops - 1] = 1.into();
        append(&mut attention["features"], (loops - 1).into());
    });
    let error = varying.err().expect("the result lacks the loop");
    assert!(error.contains("a field varies along loops that its result lacks"), "{error}");
}

#[test]
fn lines_that_start_outside_of_an_operand_are_refused() {
    type Line = Tensor<f32, (Width,)>;
    let f = |x: &Floats| -> Line { x.batch_norm(Batch, 1e-5).mean };
    let x = floats(1);
    let mut value = written(&record(f, &x).expect("the function can be recorded"));
    let moment = "/work/Rule/MomentOfLines";
    let path = first(&value, &|value| value.pointer(moment).is_some());
    let mut step = value.pointer(&path).expect("the pointer is valid").clone();
    let field = step.pointer_mut(&format!("{moment}/field")).expect("the step has an operand");
    field["sizes"][0] = 0.into();
    field["operands"][0]["place"]["offset"] = 1000.into();
    step["len"] = 0.into();
    let (steps, _) = path.rsplit_once('/').expect("the step is in a list");
    append(value.pointer_mut(steps).expect("the pointer is valid"), step);
    let error = restored::<&Floats, _>(value, &f(&x)).err().expect("the operand has fewer elements");
    assert!(error.contains("lines are not contiguous"), "{error}");
}

#[test]
fn computed_places_of_parts_are_refused() {
    let f = |x: &Floats| -> Floats { concat(Width, [x.view(), ones((Batch.of(4), Width.of(2))).view()]) };
    let x = floats(1);
    let mut value = written(&record(f, &x).expect("the function can be recorded"));
    // The offset 0, computed in each call, but not from an input.
    let program = json!({ "instructions": [[{ "Int": 0 }, "Int"]], "result": 0 });
    let field = json!({ "sizes": [], "program": program, "operands": [] });
    let table =
        json!({ "Computed": { "indices": [{ "field": field, "stride": 1, "size": 1 }], "order": [] } });
    let path = first(&value, &|value| value.get("tables").is_some());
    let tables = &mut value.pointer_mut(&path).expect("the pointer is valid")["tables"];
    let number = tables.as_array().map_or(0, Vec::len);
    append(tables, table);
    let path = first(&value, &|value| value.get("Placed").is_some());
    let place = &mut value.pointer_mut(&path).expect("the pointer is valid")["Placed"]["parts"][0]["place"];
    let strides = vec![0; place["strides"].as_array().map_or(0, Vec::len)];
    place["table"] = json!({ "number": number, "start": 0, "strides": strides });
    let error = restored::<&Floats, _>(value, &f(&x)).err().expect("the place is computed");
    assert!(error.contains("parts of a result have computed places"), "{error}");
}

/// If two positions of a result shared an element, changing one in place would change the other.
#[test]
fn results_whose_positions_share_elements_are_refused() {
    let x = floats(1);
    let program = record(|x: &Floats| (x * 2.0).eval(), &x).expect("the function can be recorded");
    let value = serde_json::to_value(program.to_saved().expect("the program can be saved"))
        .expect("the program can be written");
    let mut found = Vec::new();
    places(&value, &mut String::new(), &|value| value.get("strides").is_some(), &mut found);
    let result = found.iter().find(|path| path.contains("/results/")).expect("there is a result");
    let restore = |strides: [isize; 2], start: usize| {
        let mut changed = value.clone();
        changed.pointer_mut(result).expect("the pointer is valid")["strides"] = strides.to_vec().into();
        changed.pointer_mut(result).expect("the pointer is valid")["start"] = start.into();
        let read: SavedProgram = serde_json::from_value(changed).expect("the program can be read");
        let restored: Result<Program<&Floats, Floats>, DimError> = read.restore(&x);
        restored.map(|_| ()).map_err(|error| error.to_string())
    };
    for (strides, start) in [([6, 1], 0), ([1, 4], 0), ([-6, 1], 18), ([0, 1], 0)] {
        restore(strides, start).expect("positions are distinct, or the stride is 0");
    }
    for (strides, start) in [([1, 1], 0), ([5, 1], 0), ([-1, 1], 3), ([2, 3], 0)] {
        let error = restore(strides, start).expect_err("positions share elements");
        assert!(error.contains("a result has elements that no step computes"), "{error}");
    }
}

/// A stride of an axis with at most one element reaches no other element, but sums of such strides
/// could overflow.
#[test]
fn results_with_large_strides_are_refused() {
    for rows in [0, 1] {
        let x: Floats = zeros((Batch.of(rows), Width.of(6)));
        let program = record(|x: &Floats| (x * 2.0).eval(), &x).expect("the function can be recorded");
        let mut value = written(&program);
        let restore = |value: &Value| restored::<&Floats, _>(value.clone(), &x).err();
        assert_eq!(restore(&value), None);
        let mut found = Vec::new();
        places(&value, &mut String::new(), &|value| value.get("strides").is_some(), &mut found);
        let result = found.iter().find(|path| path.contains("/results/")).expect("there is a result");
        value.pointer_mut(result).expect("the pointer is valid")["strides"][0] = isize::MAX.into();
        let error = restore(&value).expect("the stride is too large");
        assert!(error.contains("a result has elements that no step computes"), "{error}");
    }
}

/// The strides of a state without elements are products that may wrap.
#[test]
fn empty_states_may_have_large_strides() {
    let (w, mut adam): (Floats, _) = (zeros((Batch.of(0), Width.of(6))), Adam::new(0.1));
    adam.prepare(&w);
    let program = record(|adam: &Adam<Floats>| adam.clone(), &adam).expect("the function can be recorded");
    let mut value = written(&program);
    let results = value["content"]["results"].as_array_mut().expect("results are a list");
    for own in results.iter_mut().filter(|own| own["state"].is_array()) {
        own["strides"] = vec![isize::MAX / 4].into();
    }
    let program = restored::<&Adam<Floats>, _>(value, &adam).expect("the strides are near enough");
    let engine = program.to_engine().expect("engines can run the program");
    let states = engine.results.iter().filter(|own| own.tensor.sizes() == [0, 6]);
    assert!(states.map(|own| own.strides[1]).eq([isize::MAX / 4; 2]));
}

#[test]
fn lookups() {
    type Table = Tensor<f32, (Word, Width)>;
    type Ids = Tensor<i64, (Batch, Seq)>;
    let table: Table = randn((Word.of(5), Width.of(6)), 1);
    let ids: Ids = from_fn((Batch.of(4), Seq.of(3)), |(batch, seq)| ((batch + seq) % 5) as i64);
    let f = |(table, ids): (&Table, &Ids)| {
        let mean: Floats = table.take(Word, ids).mean(Seq);
        let slope = grad(|table: &Table| table.take(Word, ids).square().sum((Batch, Seq, Width)), table);
        (mean, slope)
    };
    let program = record(f, (&table, &ids)).expect("the function can be recorded");
    damage("lookups", &program, &f((&table, &ids)), (&table, &ids), times());
}

#[test]
fn training_steps() {
    type State = (Linear<(Width,), (Class,)>, Adam<Linear<(Width,), (Class,)>>);
    let y: Tensor<usize, (Batch,)> = from_vec(Batch.of(4), vec![0, 1, 2, 1]);
    let norm: LayerNorm<(Class,)> = LayerNorm::new(Class.of(3));
    let step =
        |((mut net, mut adam), x, y, seed): (State, &Floats, &Tensor<usize, (Batch,)>, &Tensor<u64, ()>)| {
            let loss = |net: &Linear<(Width,), (Class,)>| {
                let scores: Tensor<f32, (Batch, Class)> = net.apply(x);
                let scores: Tensor<f32, (Batch, Class)> = norm.apply(&scores);
                scores.dropout(0.3, seed).cross_entropy(Class, y).mean(Batch)
            };
            let (loss, mut gradient) = loss_and_grad(loss, &net);
            clip_by_global_norm(&mut gradient, 0.1);
            adam.step(&mut net, &gradient);
            ((net, adam), loss)
        };
    let state: State = (Linear::new(Width.of(6), Class.of(3), 1), Adam::new(0.1));
    let seed = full((), 3);
    let state = step((state, &floats(1), &y, &seed)).0;
    let program = record(step, (state.clone(), &floats(1), &y, &seed)).expect("the function can be recorded");
    let like = step((state.clone(), &floats(1), &y, &seed));
    damage("training", &program, &like, (state, &floats(1), &y, &seed), times());
}

#[test]
fn attention_and_its_gradient() {
    type X = Tensor<f32, (Batch, Seq, Width)>;
    type Mask = Tensor<bool, (Seq, Key)>;
    let x: X = randn((Batch.of(2), Seq.of(4), Width.of(6)), 1);
    let mask: Mask = rand::<f32, _>((Seq.of(4), Key.of(4)), 2).gt(0.4).eval();
    let f = |(x, mask): (&X, &Mask)| {
        let attend = |x: &X| -> X {
            let keys = x.rename(Seq, Key);
            attention(x, &keys, &keys, Width, Key, 0.4, mask)
        };
        (attend(x), grad(|x: &X| attend(x).square().sum((Batch, Seq, Width)), x))
    };
    let program = record(f, (&x, &mask)).expect("the function can be recorded");
    damage("attention", &program, &f((&x, &mask)), (&x, &mask), times());
}

#[test]
fn lines_and_orders() {
    let f = |x: &Floats| {
        let slope = grad(
            |x: &Floats| {
                let sorted = x.sort(Width).cumprod(Batch).sum((Batch, Width));
                let best = x.cummax(Width).softmax(Width).square().sum((Batch, Width));
                let chosen = x.topk(Width, 2).0.sum((Batch, Width));
                let middle = x.median(Width).sum(Batch) + x.view().prod(Width).sum(Batch);
                (sorted + best + chosen + middle + x.view().logsumexp(Width).sum(Batch)).eval()
            },
            x,
        );
        let positions = (x.argsort(Width), x.argmax(Width), x.topk(Width, 3).1);
        (slope, positions.0, positions.1, positions.2)
    };
    let program = record(f, &floats(1)).expect("the function can be recorded");
    damage("lines", &program, &f(&floats(1)), &floats(1), times());
}

#[test]
fn integers_masks_and_places() {
    let f = |x: &Floats| {
        let mask = x.gt(0.0).eval();
        let integers = (x * 10.0).cast::<i16>().eval();
        let joined = concat(Width, [x.view(), ones((Batch.of(4), Width.of(2))).view()]);
        (
            mask.count(Width),
            select(&mask, x, x.exp()).eval(),
            integers.cumsum(Width),
            joined.pad(Batch, 1, 1, Pad::Constant(2.0)).roll(Width, 1),
            x.cast::<half::f16>().exp().sum(Width),
        )
    };
    let program = record(f, &floats(1)).expect("the function can be recorded");
    damage("places", &program, &f(&floats(1)), &floats(1), times());
}

#[test]
fn draws() {
    let seed: Tensor<u64, ()> = full((), 5);
    let f = |seed: &Tensor<u64, ()>| {
        let x: Floats = randn((Batch.of(4), Width.of(6)), seed);
        (x.dropout(0.5, seed), random_order(seed))
    };
    fn random_order(seed: &Tensor<u64, ()>) -> Tensor<usize, (Batch,)> {
        typed_dims::creation::random::permutation(Batch.of(4), seed)
    }
    let program = record(f, &seed).expect("the function can be recorded");
    damage("draws", &program, &f(&seed), &seed, times());
}

#[test]
fn sizes_that_are_open() {
    type Table = Tensor<f32, (Batch, Word)>;
    let f = |(x, table): (&Floats, &Table)| {
        let slope = grad(|x: &Floats| (x * table).softmax(Batch).square().sum((Batch, Word, Width)), x);
        let mean = x.view().mean(Batch);
        (slope, mean, table.view().pad((Batch, Word), 1, 2, Pad::Constant(0.0)))
    };
    let program = record(f, (spec((dynamic(Batch), Width.of(6))), spec((dynamic(Batch), dynamic(Word)))));
    let program = program.expect("the function can be recorded");
    let table: Table = randn((Batch.of(4), Word.of(2)), 2);
    damage("open", &program, &f((&floats(1), &table)), (&floats(1), &table), times());
}

/// A result must not get another size along a static dim, even if its elements are there.
#[test]
fn static_sizes_that_are_open() {
    type Triples = Tensor<f32, (Batch, Three)>;
    let f = |x: &Triples| (x * 2.0).eval();
    let program = record(f, spec((dynamic(Batch), Three))).expect("the function can be recorded");
    let mut saved = json!(program.to_saved().expect("the program can be saved"));
    let numbers = saved["open"]["numbers"].as_array_mut().expect("some numbers are open");
    // The two sizes of the input have the numbers 0 and 1, the start of the result has 2, and its
    // sizes have 3 and 4.
    let behind = numbers.iter().position(|own| own["at"].as_u64() > Some(3)).unwrap_or(numbers.len());
    assert!(behind == numbers.len() || numbers[behind]["at"] != 4);
    let formula = numbers[behind - 1]["formula"].clone();
    numbers.insert(behind, json!({ "at": 4, "formula": formula }));
    let saved: SavedProgram = serde_json::from_value(saved).expect("the numbers have formulas");
    let x: Triples = ones((Batch.of(2), Three));
    let program: Program<&Triples, Triples> = saved.restore(&x).expect("the recorded sizes fit");
    let error = program.try_call(&x).expect_err("an error").to_string();
    assert!(error.contains("result 0 has other dims or elements for these sizes"), "{error}");
}
