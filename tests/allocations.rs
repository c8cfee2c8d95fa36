//! The memory that operations allocate.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typed_dims::prelude::*;

/// The system's allocator, which records the sizes of the allocations of a watched thread.
struct Watched;

thread_local! {
    static SIZES: RefCell<Option<Vec<usize>>> = const { RefCell::new(None) };
}

fn note(bytes: usize) {
    // Recording allocates too. These allocations are not recorded.
    let _ = SIZES.try_with(|sizes| {
        if let Ok(mut sizes) = sizes.try_borrow_mut()
            && let Some(sizes) = sizes.as_mut()
        {
            sizes.push(bytes);
        }
    });
}

// SAFETY: forwards to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Makes tests run one at a time, because while a thread records a function or its gradient,
/// operations on all threads allocate nodes.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const NONE: [usize; 0] = [];

/// The sizes in bytes of this thread's allocations of at least `least` bytes during `f`.
fn allocations<T>(least: usize, f: impl FnOnce() -> T) -> Vec<usize> {
    SIZES.set(Some(Vec::with_capacity(1000)));
    let result = f();
    let sizes = SIZES.take().expect("the thread is watched");
    drop(result);
    sizes.into_iter().filter(|&bytes| bytes >= least).collect()
}

#[test]
fn a_fused_expression_allocates_its_result() {
    let _alone = alone();
    let (x, scale, bias) = (Array3::<f32>::ones((8, 16, 100)), Array1::ones(16), Array1::ones(16));
    dims!(n, c, w);
    let run = || ((x.at((n, c, w)) * scale.at(c) + bias.at(c)).relu() * 2.0).order((w, n, c));
    let bytes = 4 * x.len();
    assert_eq!(allocations(bytes / 4, run), [bytes]);
}

#[test]
fn a_reduction_allocates_no_more_than_its_result() {
    let _alone = alone();
    let (x, y) = (Array2::<f32>::ones((60, 50)), Array2::<f32>::ones((40, 50)));
    dims!(i, j, k);
    let run = || (x.at((i, k)) - y.at((j, k))).abs().sum(k).order((i, j));
    // `y` is transposed once, which takes less memory than the result.
    let found = allocations(4 * 60 * 40, run);
    assert_eq!(found, [4 * 60 * 40]);
}

#[test]
fn a_batch_of_products_copies_no_operand() {
    let _alone = alone();
    let x = Array3::<f32>::ones((64, 64, 64));
    dims!(n, i, j, k);
    let run = || (x.at((n, i, k)) * x.at((n, j, k))).sum(k).order((n, i, j));
    let bytes = 4 * x.len();
    assert_eq!(allocations(bytes, run), [bytes]);
}

#[test]
fn a_convolution_copies_no_input() {
    let _alone = alone();
    let (x, weight) = (Array4::<f32>::ones((4, 16, 40, 40)), Array4::<f32>::ones((8, 16, 3, 3)));
    dims!(b, c, o, h = 38, w = 38, y = 3, z = 3);
    let run = || (x.at((b, c, h + y, w + z)) * weight.at((o, c, y, z))).sum((c, y, z)).order((b, o, h, w));
    assert_eq!(allocations(4 * x.len(), run), NONE);
}

/// The index proposes a size for a dim and for its prime. Each rename keeps one proposal for each.
#[test]
fn proposed_sizes_are_kept_once() {
    let _alone = alone();
    dims! { struct Item; struct Feat; struct First; struct Second; }
    let (n, m, x) = (Item, prime(Item), from_vec(Feat.of(4), vec![1.0, 2.0, 3.0, 4.0]));
    let above = (x.lookup(Feat, n + 1) * select(n.lt(m), 1.0, 0.0)).expand(First.of(2));
    macro_rules! renamed {
        ($tensor:expr;) => { $tensor };
        ($tensor:expr; $twice:tt $($more:tt)*) => {
            renamed!($tensor.rename(First, Second).rename(Second, First); $($more)*)
        };
    }
    let renamed = renamed!(above; 1 2 3 4 5 6 7);
    assert_eq!(allocations(1 << 16, || renamed.order((n, m, First))), NONE);
}

/// Only a few elements of a large tensor are printed, and no others are formatted.
#[test]
fn printing_does_not_allocate_for_each_element() {
    let _alone = alone();
    let x = Array1::<f32>::ones(10_000);
    dims!(i);
    let found = allocations(0, || format!("{:?} {:5.1?}", x.at(i), x.at(i)));
    assert!(found.len() < 100, "{} allocations", found.len());
}

#[test]
fn a_small_expression_into_an_array_allocates_nothing() {
    let _alone = alone();
    let (x, y) = (Array2::<f32>::ones((3, 4)), Array2::<f32>::ones((3, 4)));
    let mut out = Array2::zeros((3, 4));
    dims!(i, j);
    let found = allocations(0, || (x.at((i, j)) * 2.0 + y.at((i, j))).order_into(&mut out, (i, j)));
    assert_eq!(found, NONE);
    let mut turned = Array2::zeros((4, 3));
    assert_eq!(allocations(0, || x.at((i, j)).order_into(&mut turned, (j, i))), NONE);
}

#[test]
fn a_sum_into_an_array_allocates_nothing() {
    let _alone = alone();
    let (x, y) = (Array2::<f32>::ones((30, 40)), Array2::<f32>::ones((40, 30)));
    let mut out = Array2::zeros((30, 30));
    dims!(i, j, k);
    let (a, b) = (x.at((i, k)), y.at((k, j)));
    assert_eq!(allocations(0, || (a * b).sum_into(k, &mut out, (i, j))), NONE);
    assert_eq!(allocations(0, || a.sum_into(k, &mut out.row_mut(1), i)), NONE);
}

#[test]
fn a_tensor_that_is_used_up_gives_its_elements() {
    let _alone = alone();
    let x = Array2::<f32>::ones((30, 40));
    dims!(i, j, k);
    let sums = (x.at((i, k)) * x.at((j, k))).sum(k);
    assert_eq!(allocations(0, || sums.order((i, j))), NONE);
}

#[test]
fn an_expression_reuses_the_memory_of_an_owned_tensor() {
    let _alone = alone();
    let (x, bias) = (Array2::<f32>::ones((60, 40)), Array1::<f32>::ones(60));
    dims!(i, j, k);
    let bytes = 4 * 60 * 60;
    let run = || ((x.at((i, k)) * x.at((j, k))).sum(k) * 0.5 + bias.at(i)).relu().order((i, j));
    assert_eq!(allocations(bytes, run), [bytes]);
    assert_eq!(run()[[59, 59]], 21.0);
    // In the other order, the product is not stored in the order of the result.
    let turned = || ((x.at((i, k)) * x.at((j, k))).sum(k) + bias.at(i)).order((j, i));
    assert_eq!(allocations(bytes, turned), [bytes, bytes]);
}

#[test]
fn tensors_side_by_side_are_copied_once() {
    let _alone = alone();
    let (x, y) = (Array2::<f32>::ones((30, 40)), Array2::<f32>::zeros((30, 40)));
    dims!(i, j, k);
    let bytes = 4 * (x.len() + y.len());
    let (x, y) = (x.at((i, j)), y.at((i, j)));
    // Views are copied into the result, and expressions are computed there.
    assert_eq!(allocations(bytes / 4, || concat(j, [x, y])), [bytes]);
    assert_eq!(allocations(bytes / 4, || concat(i, [x + 1.0, y + 1.0])), [bytes]);
    assert_eq!(allocations(bytes / 4, || stack(k, [x, y])), [bytes]);
    let (out, plan) = explain(|| concat(j, [x, y]));
    assert_eq!((plan.steps.len(), plan.bytes()), (2, bytes), "{plan}");
    assert_eq!(
        (out.size(j), out.index(i, 29).order(j)),
        (80, Array1::from_shape_fn(80, |at| if at < 40 { 1.0 } else { 0.0 }))
    );
    let (out, plan) = explain(|| concat(i, [x * 2.0, y * 3.0]));
    assert_eq!((plan.steps.len(), plan.bytes()), (2, bytes), "{plan}");
    assert_eq!(out.index(j, 39).sum(i).order(()), 30.0 * 2.0);
}

#[test]
fn attention_written_out_allocates_its_scores_and_its_result() {
    let _alone = alone();
    let x = Array4::<f32>::ones((2, 40, 3, 8));
    dims!(b, q, k, h, d);
    let sizes = allocations(2 * 40 * 3 * 8 * 4, || {
        let scores = (x.at((b, q, h, d)) * x.at((b, k, h, d))).sum(d) * 0.5;
        (scores.softmax(k) * x.at((b, k, h, d))).sum(k).order((b, q, h, d))
    });
    assert_eq!(sizes, [2 * 3 * 40 * 40 * 4, 2 * 40 * 3 * 8 * 4]);
}

/// A function of one example runs in a loop. Its arguments are put in order once, and each example
/// is a slice of them.
#[test]
fn a_loop_over_examples_copies_none_of_them() {
    let _alone = alone();
    dims!(n);
    let (x, y) = (ndarray::Array2::<f64>::ones((100, 50)), ndarray::Array2::<f64>::ones((100, 50)));
    let example = 50 * size_of::<f64>();
    let each = vmap(
        |x: Tensor<f64, (), U1>, y: &Tensor<f64, (), U1>| {
            dims!(k);
            (x.at(k) * y.at(k)).sum(k)
        },
        n,
    );
    // Two allocations are copies of the arguments. The others are for the growing results.
    let large = allocations(example, || each((x.at((n, ..)), y.at((n, ..)))));
    assert_eq!(large.iter().filter(|&&bytes| bytes == 100 * example).count(), 2, "{large:?}");
    assert!(large.len() <= 4, "{large:?}");
}

/// Clones share their elements until one of them is modified. The last owner is modified in place.
#[test]
fn clones_share_their_elements() {
    let _alone = alone();
    dims! { struct Row; struct Column; }
    let bytes = 4 * 200 * 100;
    let x = from_fn((Row.of(200), Column.of(100)), |(i, j)| (i + 2 * j) as f32);
    let first = (&x).index(Row, 1).order(Column);
    assert_eq!(allocations(100, || (x.clone(), x.clone())), NONE);

    let mut changed = x.clone();
    assert_eq!(allocations(bytes / 4, || changed += 1.0), [bytes]);
    assert_eq!(allocations(bytes / 4, || changed += 1.0), NONE);
    assert_eq!((&x).index(Row, 1).order(Column), first);
    assert_eq!(changed.index(Row, 1).order(Column), &first + 2.0);

    // The doubled clone gets its own memory, because `x` shares its elements.
    let other = x.clone();
    let mut doubled = zeros::<f32, _>((Row.of(1), Column.of(1)));
    assert_eq!(allocations(bytes / 4, || doubled = (other * 2.0).eval()), [bytes]);
    assert_eq!((&x).index(Row, 1).order(Column), first);
    assert_eq!(doubled.index(Row, 1).order(Column), &first * 2.0);
    assert_eq!(allocations(bytes / 4, || drop((x * 2.0).eval())), NONE);
}

#[test]
fn a_step_of_an_optimizer_allocates_its_state() {
    let _alone = alone();
    use typed_dims::optim::{AdamW, clip_by_global_norm};
    dims! { struct In; struct Out; }
    let mut parameters = vec![(ones::<f32, _>((In.of(30), Out.of(40))), Some(ones::<f32, _>(Out.of(40))))];
    let mut gradient = parameters.clone();
    gradient[0].0 += 1.0; // in its own memory, as gradients are
    gradient[0].1 = Some(full(Out.of(40), 2.0));
    let mut optimizer = AdamW::new(0.1);
    let bytes = [4 * 30 * 40, 4 * 40];
    let found = allocations(bytes[1], || optimizer.step(&mut parameters, &gradient));
    let moments = found.iter().filter(|found| bytes.contains(found)).count();
    assert_eq!(moments, 4, "{found:?}");
    let found = allocations(0, || {
        let norm = clip_by_global_norm(&mut gradient, 1.0);
        optimizer.step(&mut parameters, &gradient);
        norm
    });
    assert_eq!(found, [size_of::<f64>()], "something other than the norm is allocated");
}

/// While the cache has room, adding a token allocates no memory for keys or values.
#[test]
fn a_cache_of_keys_and_values_is_filled_in_place() {
    let _alone = alone();
    use typed_dims::nn::KeyValues;

    dims! {
        struct Head = 4;
        struct Key;
        struct Feat = 8;
    }
    let mut past = KeyValues::<_, Key>::new((Head, Key.of(1000), Feat));
    let token = |at: usize| full((Head, Key.of(1), Feat), at as f32);
    for at in 0..100 {
        let (keys, values) = (token(at), token(at + 1));
        assert_eq!(allocations(4 * 4 * 8, || past.push(keys, values)), NONE);
    }
    assert_eq!(past.values().max((Head, Key, Feat)).order(()), 100.0);
    // While a clone shares the elements, they are copied once.
    let clone = past.clone();
    let bytes = 4 * 4 * 1000 * 8;
    assert_eq!(allocations(bytes, || past.push(token(100), token(101))), [bytes, bytes]);
    assert_eq!(allocations(bytes, || past.push(token(101), token(102))), NONE);
    assert_eq!((clone.len(), past.len()), (100, 102));
}

/// State that is moved into a program is returned in the same memory.
#[test]
fn a_call_allocates_no_state() {
    let _alone = alone();
    use typed_dims::grad::loss_and_grad;
    use typed_dims::nn::Linear;
    use typed_dims::optim::AdamW;
    use typed_dims::program::jit;

    dims! { struct Row; struct In; struct Out; }
    type Network = Linear<(In,), (Out,)>;
    type State = (Network, AdamW<Network>, Tensor<u64, ()>);
    type Data = Tensor<f32, (Row, In)>;
    let step = |(mut net, mut adam, count): State, x: &Data| -> (State, Tensor<f32, ()>) {
        let loss = |net: &Network| {
            let y: Tensor<f32, (Row, Out)> = net.apply(x);
            (y - 1.0).square().mean((Row, Out))
        };
        let (loss, gradient) = loss_and_grad(loss, &net);
        adam.step(&mut net, &gradient);
        ((net, adam, (count + 1).eval()), loss)
    };
    let train = jit::<(State, &Data), _>(|(state, x)| step(state, x));
    let x = randn((Row.of(32), In.of(60)), 1);
    let start = || -> State { (Network::new(In.of(60), Out.of(80), 1), AdamW::new(0.1), zeros(())) };
    let (mut state, mut expected) = (start(), start());
    for round in 0..5 {
        let mut after = None;
        let found = allocations(4 * 32 * 60, || after = Some(train.call((state, &x))));
        // The first call records a step without moments, and the second one records a step with
        // them.
        if round > 1 {
            assert_eq!(found, NONE, "round {round} allocates weights, moments or intermediate results");
        }
        let loss;
        (state, loss) = after.expect("the function was called");
        let (next, expected_loss) = step(expected, &x);
        expected = next;
        assert_eq!(loss, expected_loss);
    }
    assert_eq!(state.0.weight, expected.0.weight);

    // While another owner has the state, it is not overwritten.
    let (kept, found) = (state.0.clone(), state.0.weight.clone());
    (state, _) = train.call((state, &x));
    assert_eq!(kept.weight, found);
    assert_ne!(state.0.weight, found);
}

/// A call compares constant fields with the recorded ones without writing them as text.
#[test]
fn a_call_allocates_nothing_for_constant_fields() {
    let _alone = alone();
    use typed_dims::program::record;

    dims! { struct Feat; }
    type Line = Tensor<f32, (Feat,)>;
    #[derive(Parameters)]
    struct Plain {
        w: Line,
    }
    #[derive(Parameters)]
    struct Constant {
        w: Line,
        #[parameters(constant)]
        rate: Option<f64>,
        #[parameters(constant)]
        range: (f64, f64),
    }
    let w = || -> Line { ones(Feat.of(3)) };
    let (plain, constant) = (Plain { w: w() }, Constant { w: w(), rate: Some(0.25), range: (0.0, f64::NAN) });
    let one = record(|x: &Plain| (&x.w * 2.0).eval(), &plain).expect("the function can be recorded");
    let other = record(|x: &Constant| (&x.w * 2.0).eval(), &constant).expect("the function can be recorded");
    assert_eq!(one.call(&plain), other.call(&constant));
    assert_eq!(allocations(0, || other.call(&constant)), allocations(0, || one.call(&plain)));
}

#[test]
fn a_call_into_tensors_allocates_no_result() {
    let _alone = alone();
    use typed_dims::optim::{Adam, Optimizer};
    use typed_dims::program::{jit, record};

    dims! { struct Row; struct Col; }
    type Matrix = Tensor<f32, (Row, Col)>;
    type Sums = Tensor<f32, (Row,)>;
    let f = |x: &Matrix| -> (Matrix, Sums) { ((x * 2.0).exp().eval(), x.view().sum(Col)) };
    let x = |seed| -> Matrix { randn((Row.of(500), Col.of(300)), seed) };
    let program = record(f, &x(1)).expect("the function can be recorded");
    let fast = jit::<&Matrix, _>(f);
    let (mut out, mut same) = (program.call(&x(1)), fast.call(&x(1)));
    for seed in 2..5 {
        let x = x(seed);
        assert_eq!(allocations(4 * 500, || program.call_into(&x, &mut out)), NONE);
        assert_eq!(allocations(4 * 500, || fast.call_into(&x, &mut same)), NONE);
        assert_eq!(out, f(&x));
        assert_eq!(same, f(&x));
    }
    // An optimizer's state is not copied, either.
    type State = (Matrix, Adam<Matrix>);
    let step = |((mut w, mut adam), x): (State, &Matrix)| -> State {
        adam.step(&mut w, x);
        (w, adam)
    };
    let state = || -> State {
        let mut own: State = (x(1), Adam::new(0.1));
        own.1.prepare(&own.0);
        own
    };
    let training = record(step, (state(), &x(1))).expect("the function can be recorded");
    let mut next = training.call((state(), &x(2)));
    let (given, x2) = (state(), x(2));
    let (expected, plan) = explain(|| training.call((given.clone(), &x2)));
    let (_, plan_into) = explain(|| training.call_into((given.clone(), &x2), &mut next));
    assert_eq!(plan_into.steps.len(), plan.steps.len(), "{plan_into}\ninstead of\n{plan}");
    assert_eq!(next.0, expected.0);
    // If the memory is shared or has another size, the result gets its own.
    let kept = out.0.clone();
    program.call_into(&x(7), &mut out);
    assert_eq!((kept, &out), (f(&x(4)).0, &f(&x(7))));
    let wide = randn((Row.of(4), Col.of(5)), 1);
    fast.call_into(&wide, &mut same);
    assert_eq!(same, f(&wide));
    // Refused inputs leave the output unchanged.
    assert!(program.try_call_into(&wide, &mut out).is_err());
    assert_eq!(out, f(&x(7)));
}
