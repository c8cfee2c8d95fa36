//! Programs with dims of any size.

use crate::bits::support::assert_same;
use crate::reloaded;
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::{grad, loss_and_grad, vjp};
use typed_dims::nn::Linear;
use typed_dims::optim::{Adam, Optimizer, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::{dynamic, record, spec};

dims! {
    struct Row;
    struct Col;
    struct In;
    struct Hidden;
    struct Class;
    struct Seq;
    struct Key;
    struct Feat;
}

type Matrix = Tensor<f32, (Row, Col)>;
type Data = Tensor<f32, (Row, In)>;
type Labels = Tensor<usize, (Row,)>;
type Network = (Linear<(In,), (Hidden,)>, Linear<(Hidden,), (Class,)>);

fn network() -> Network {
    (Linear::new(In.of(6), Hidden.of(5), 1), Linear::new(Hidden.of(5), Class.of(4), 2))
}

fn data(rows: usize, seed: u64) -> (Data, Labels) {
    let x: Data = randn((Row.of(rows), In.of(6)), seed);
    let y: Labels = from_fn(Row.of(rows), |at| (at * 3 + seed as usize) % 4);
    (x, y)
}

fn step((net, x, y): (&Network, &Data, &Labels)) -> (Tensor<f32, ()>, Network) {
    let loss = |net: &Network| {
        let hidden: Tensor<f32, (Row, Hidden)> = net.0.apply(x);
        let scores: Tensor<f32, (Row, Class)> = net.1.apply(&hidden.relu().eval());
        scores.cross_entropy(Class, y).mean(Row)
    };
    let (loss, mut gradient) = loss_and_grad(loss, net);
    clip_by_global_norm(&mut gradient, 0.1);
    (loss, gradient)
}

#[test]
fn a_training_step_takes_batches_of_any_size() {
    let program = record(step, (&network(), spec((dynamic(Row), In.of(6))), spec(dynamic(Row))));
    let program = program.expect("the function can be recorded");
    let net = network();
    let loaded = reloaded(&program, &step((&net, &data(5, 1).0, &data(5, 1).1)));
    for rows in [7, 1, 2, 64, 300, 7] {
        let (x, y) = data(rows, rows as u64);
        let ((loss, gradient), (expected_loss, expected)) =
            (program.call((&net, &x, &y)), step((&net, &x, &y)));
        assert_same(&loaded.call((&net, &x, &y)), &program.call((&net, &x, &y)));
        assert!((loss.order(()) - expected_loss.order(())).abs() < 1e-6, "`Row` = {rows}");
        let difference = (&gradient.0.weight - &expected.0.weight).abs().max((In, Hidden)).order(());
        assert!(difference < 1e-6, "`Row` = {rows}: {difference}");
    }
    // Sizes that are not open are fixed, and the inputs must agree on open sizes.
    let wide: Data = randn((Row.of(3), In.of(7)), 1);
    assert!(program.try_call((&net, &wide, &data(3, 1).1)).is_err());
    let (x, _) = data(3, 1);
    assert!(program.try_call((&net, &x, &data(4, 1).1)).is_err());
    let text = program.to_string();
    assert!(text.contains("[Row = any, In = 6]"), "{text}");
}

#[test]
fn products_of_two_dims_follow_both() {
    type Words = Tensor<f64, (Seq, Feat)>;
    let attend = |x: &Words| -> Words {
        let keys = x.view().rename(Seq, Key);
        let scores = (x * &keys).sum(Feat) * 0.5;
        (select(Key.le(Seq), scores, f64::NEG_INFINITY).softmax(Key) * keys).sum(Key)
    };
    let program = record(attend, spec((dynamic(Seq), dynamic(Feat)))).expect("the function can be recorded");
    for (words, features) in [(3, 4), (1, 1), (20, 2), (5, 70)] {
        let x: Words = randn((Seq.of(words), Feat.of(features)), 1);
        let difference = (program.call(&x) - attend(&x)).abs().max((Seq, Feat)).order(());
        assert!(difference < 1e-12, "`Seq` = {words}, `Feat` = {features}: {difference}");
    }
}

#[test]
fn sizes_add_up() {
    let f = |x: &Matrix| {
        let longer = concat(Row, [x.clone(), x.view().flip(Row).slice(Row, 0..1).eval()]);
        (
            (&longer).cumsum(Row).mean(Row),
            concat(Col, [x.clone(), (x * 2.0).eval()]),
            x.view().pad(Col, 1, 2, Pad::Constant(0.0)),
        )
    };
    let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
    let program = reloaded(&program, &f(&ones((Row.of(2), Col.of(2)))));
    for (rows, columns) in [(3, 2), (1, 1), (9, 30)] {
        let x: Matrix = randn((Row.of(rows), Col.of(columns)), 1);
        assert_eq!(program.call(&x), f(&x), "`Row` = {rows}, `Col` = {columns}");
    }
}

#[test]
fn elements_around_parts_need_not_be_zeros() {
    let f = |x: &Matrix| {
        let last: Matrix = full((Row.of(1), Col.of(x.size(Col))), 2.5);
        (x.view().pad(Row, 1, 0, Pad::Constant(-1.5)), concat(Row, [x.clone(), last]))
    };
    let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
    let program = reloaded(&program, &f(&ones((Row.of(2), Col.of(2)))));
    for (rows, columns) in [(3, 2), (1, 1), (9, 30)] {
        let x: Matrix = randn((Row.of(rows), Col.of(columns)), 1);
        assert_eq!(program.call(&x), f(&x), "`Row` = {rows}, `Col` = {columns}");
    }
}

/// The positions around the parts need no memory at the sizes of recordings.
#[test]
fn three_dims_of_padded_tensors_are_dynamic() {
    // (The tensors are large at the recorded sizes.)
    type Image = Tensor<u8, (Row, Col, Seq)>;
    let f = |x: &Image| {
        (x.view().pad((Col, Seq), 1, 2, Pad::Constant(7)), concat(Row, [x.clone(), (x + 1).eval()]))
    };
    let program = record(f, spec((dynamic(Row), dynamic(Col), dynamic(Seq))));
    let program = program.expect("the function can be recorded");
    let program = reloaded(&program, &f(&ones((Row.of(2), Col.of(2), Seq.of(1)))));
    for sizes in [(3, 2, 1), (1, 1, 1), (4, 9, 3)] {
        let x = rand::<f32, _>((Row.of(sizes.0), Col.of(sizes.1), Seq.of(sizes.2)), 1) * 200.0;
        let x: Image = x.cast::<u8>().eval();
        assert_eq!(program.call(&x), f(&x), "{sizes:?}");
    }
}

/// The gradients read `1 / (rows - 1)` and the like.
#[test]
fn means_over_parts_have_gradients() {
    let functions: [fn(&Matrix) -> Matrix; 6] = [
        |x| grad(|x: &Matrix| x.view().slice(Row, 1..).square().mean((Row, Col)), x),
        |x| grad(|x: &Matrix| x.view().slice(Row, 1..).square().eval().mean((Row, Col)), x),
        |x| grad(|x: &Matrix| x.view().diff(Row).square().mean(Row).sum(Col), x),
        |x| grad(|x: &Matrix| x.view().max_pool(Row, 2, &Window::new()).square().mean((Row, Col)), x),
        |x| grad(|x: &Matrix| x.view().pad(Row, 1, 1, Pad::Constant(0.0)).var((Row, Col)), x),
        |x| {
            let next = x.view().argmax(Col);
            let loss = |x: &Matrix| {
                x.view().slice(Row, ..-1).cross_entropy(Col, next.view().slice(Row, 1..)).mean(Row)
            };
            grad(loss, x)
        },
    ];
    for (at, f) in functions.into_iter().enumerate() {
        let one = record(f, spec((dynamic(Row), Col.of(3)))).expect("the function can be recorded");
        let both = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        let like = ones((Row.of(2), Col.of(3)));
        let (one, both) = (reloaded(&one, &like), reloaded(&both, &like));
        for rows in [2, 5, 40] {
            let x: Matrix = randn((Row.of(rows), Col.of(3)), 1);
            for program in [&one, &both] {
                let difference = (program.call(&x) - f(&x)).abs().max((Row, Col)).order(());
                assert!(difference < 1e-6, "function {at}, `Row` = {rows}: {difference}");
            }
        }
    }
}

/// Some steps of these backward passes read only constants.
#[test]
fn backward_passes_of_constants_follow_sizes() {
    type Line = Tensor<f32, (Row,)>;
    fn check(f: impl Fn(&Line) -> Line + Copy) {
        let program = record(|x: &Line| f(x), spec(dynamic(Row))).expect("the function can be recorded");
        for rows in [3, 4, 7, 600, 1001] {
            let x: Line = (randn(Row.of(rows), 1) * 8.0).round().eval();
            assert_eq!(program.call(&x), f(&x), "`Row` = {rows}");
        }
    }
    check(|x| grad(|x: &Line| x.index(Row, -1).eval(), x));
    check(|x| grad(|x: &Line| x.square().eval().index(Row, -1).eval(), x));
    check(|x| grad(|x: &Line| x.sort(Row).index(Row, 0).eval(), x));
    check(|x| grad(|x: &Line| x.unfold(Row, Key.of(3), 1, 1).sum((Row, Key)), x));
    check(|x| grad(|x: &Line| x.shift(Row, 1, 0.0).sum(Row), x));
    check(|x| grad(|x: &Line| x.pad(Row, 1, 1, Pad::Reflect).sum(Row), x));
    check(|x| grad(|x: &Line| x.masked_fill(Row.eq(0), 0.0).sum(Row), x));
    check(|x| grad(|x: &Line| (x * Row.cast::<f32>()).sum(Row), x));
    check(|x| grad(|x: &Line| grad(|x: &Line| x.powi(3).eval().index(Row, -1).eval(), x).sum(Row), x));
    // The cotangent of a loss that is NaN is 1, too.
    let last = |x: &Line| grad(|x: &Line| (x.index(Row, -1) * 2.0).eval(), x);
    let program = record(last, spec(dynamic(Row))).expect("the function can be recorded");
    let x: Line = full(Row.of(5), f32::NAN);
    assert_eq!(program.call(&x), last(&x));
    // The cotangents have one element for each column.
    let sums = |x: &Matrix| {
        let (_, pull_back) = vjp(|x: &Matrix| x.cumsum(Row).mean(Row), x);
        pull_back(&ones(Col.of(2)))
    };
    let program = record(sums, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [1, 5, 700] {
        let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
        let difference = (program.call(&x) - sums(&x)).abs().max((Row, Col)).order(());
        assert!(difference < 1e-5, "`Row` = {rows}: {difference}");
    }
    let median = |x: &Line| grad(|x: &Line| x.median(Row), x);
    let error = record(median, spec(dynamic(Row))).err().expect("an error").to_string();
    assert!(error.contains("the gradients of `median`"), "{error}");
}

#[test]
fn strides_above_one_are_refused() {
    let pooled = |x: &Matrix| x.view().max_pool(Row, 2, &Window::new().stride(2)).eval();
    let summed = |x: &Matrix| x.view().max_pool(Row, 2, &Window::new().stride(2)).mean(Row);
    let every_second = |x: &Matrix| x.view().slice_step(Row, .., 2).eval();
    let input = || spec((dynamic(Row), Col.of(2)));
    for error in
        [record(pooled, input()).err(), record(summed, input()).err(), record(every_second, input()).err()]
    {
        let error = error.expect("an error").to_string();
        assert!(error.contains("windows with a stride of 2"), "{error}");
    }
}

/// The gradients read `1 / (rows * columns)` and products of it: as a number, and as the elements
/// of a tensor.
#[test]
fn means_over_several_dims_have_gradients() {
    let functions: [fn(&Matrix) -> Matrix; 4] = [
        |x| grad(|x: &Matrix| x.square().mean((Row, Col)), x),
        |x| grad(|x: &Matrix| x.square().eval().mean((Row, Col)), x),
        |x| grad(|x: &Matrix| (x.square() * 0.1).mean((Row, Col)), x),
        |x| grad(|x: &Matrix| (x.square() * 3.0).eval().mean(Row).mean(Col), x),
    ];
    for (at, f) in functions.into_iter().enumerate() {
        let fixed = record(f, spec((dynamic(Row), Col.of(3)))).expect("the function can be recorded");
        let open = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        for rows in [1, 5, 40] {
            let x: Matrix = randn((Row.of(rows), Col.of(3)), 1);
            for program in [&fixed, &open] {
                let difference = (program.call(&x) - f(&x)).abs().max((Row, Col)).order(());
                assert!(difference < 1e-6, "function {at}, `Row` = {rows}: {difference}");
            }
        }
    }
}

#[test]
fn captured_tensors_of_equal_elements_follow_sizes() {
    let weighted = |x: &Matrix| {
        let rows = x.size(Row);
        let shares: Tensor<f32, (Row,)> = full(Row.of(rows), 3.0 / rows as f32);
        (x * &shares).sum(Row)
    };
    let program = record(weighted, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let program = reloaded(&program, &ones(Col.of(2)));
    for rows in [1, 7, 300] {
        let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
        let difference = (program.call(&x) - weighted(&x)).abs().max(Col).order(());
        assert!(difference < 1e-5, "`Row` = {rows}: {difference}");
    }
    type Doubles = Tensor<f64, (Row, Col)>;
    let weighted = |x: &Doubles| {
        let rows = x.size(Row);
        let shares: Tensor<f64, (Row,)> = full(Row.of(rows), 3.0 / rows as f64);
        (x * &shares).sum(Row)
    };
    let program = record(weighted, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let program = reloaded(&program, &ones(Col.of(2)));
    for rows in [1, 7, 300] {
        let x: Doubles = randn((Row.of(rows), Col.of(2)), 1);
        let difference = (program.call(&x) - weighted(&x)).abs().max(Col).order(());
        assert!(difference < 1e-13, "`Row` = {rows}: {difference}");
    }
}

/// Floats can be the numbers that integers can be.
#[test]
fn whole_numbers_are_floats() {
    fn check(f: fn(&Matrix) -> Matrix) {
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        for sizes in [(1, 1), (2, 1), (7, 4), (30, 600)] {
            let x: Matrix = randn((Row.of(sizes.0), Col.of(sizes.1)), 1);
            assert_eq!(program.call(&x), f(&x), "{sizes:?}");
        }
    }
    check(|x| (x / (x.size(Row) as f32 - 1.0)).eval());
    check(|x| (x * (2 * x.size(Row) + 1) as f32).eval());
    check(|x| (x * (x.size(Row) * x.size(Col) + x.size(Row)) as f32).eval());
    check(|x| (x * (x.size(Row) * (x.size(Row) - 1)) as f32).eval());
    let weighted = |x: &Matrix| (x * (100.1 * x.size(Row) as f32 * x.size(Col) as f32)).eval();
    assert!(record(weighted, spec((dynamic(Row), dynamic(Col)))).is_ok());
    // At some of the recorded sizes, this number is rounded to `64 x rows x columns`.
    let almost = |x: &Matrix| (x / (64 * x.size(Row) * x.size(Col) - 1) as f32).eval();
    let error = record(almost, spec((dynamic(Row), dynamic(Col)))).err().expect("an error").to_string();
    assert!(error.contains("depends on the size of `Row` or `Col`, but"), "{error}");
}

/// At large sizes, these numbers are almost `1 / rows`.
#[test]
fn numbers_that_are_almost_fractions_are_refused() {
    type Doubles = Tensor<f64, (Row, Col)>;
    let error = |error: Option<DimError>| error.expect("an error").to_string();
    let shifted = |x: &Matrix| (x.view().sum(Row) * (1.0 / (x.size(Row) as f32 + 0.01))).eval();
    let refused = error(record(shifted, spec((dynamic(Row), Col.of(2)))).err());
    assert!(refused.contains("depends on the size of `Row`"), "{refused}");
    let curved = |x: &Doubles| (x.view().sum(Row) * (1.0 / x.size(Row) as f64).sin()).eval();
    let refused = error(record(curved, spec((dynamic(Row), Col.of(2)))).err());
    assert!(refused.contains("depends on the size of `Row`"), "{refused}");
    // The same numbers as elements of tensors.
    let shifted = |x: &Matrix| {
        let rows = x.size(Row);
        let shares: Tensor<f32, (Row,)> = full(Row.of(rows), 1.0 / (rows as f32 + 0.01));
        (x * &shares).sum(Row)
    };
    let refused = error(record(shifted, spec((dynamic(Row), Col.of(2)))).err());
    assert!(refused.contains("constants for other sizes of `Row`"), "{refused}");
    let curved = |x: &Doubles| {
        let rows = x.size(Row);
        let shares: Tensor<f64, (Row,)> = full(Row.of(rows), (1.0 / rows as f64).sin());
        (x * &shares).sum(Row)
    };
    let refused = error(record(curved, spec((dynamic(Row), Col.of(2)))).err());
    assert!(refused.contains("constants for other sizes of `Row`"), "{refused}");
    // In half precision, the elements do not tell which number they are.
    macro_rules! of_halves {
        ($($half:ty)*) => {$({
            let weighted = |x: &Tensor<$half, (Row, Col)>| {
                let rows = x.size(Row);
                let shares: Tensor<$half, (Row,)> = full(Row.of(rows), <$half>::from_f32(rows as f32));
                (x * &shares).sum(Row)
            };
            let refused = error(record(weighted, spec((dynamic(Row), Col.of(2)))).err());
            assert!(refused.contains("constants for other sizes of `Row`"), "{refused}");
        })*};
    }
    of_halves!(half::f16 half::bf16);
}

/// A program is recorded at some of these sizes.
#[test]
fn sizes_of_recordings_are_ordinary_sizes() {
    let sums = |x: &Matrix| x.view().sum(Col);
    let x: Matrix = ones((Row.of(3), Col.of(2)));
    let program = record(sums, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert_eq!(program.call(&x), sums(&x));
    let made = || -> Matrix { zeros((dynamic(Row), Col.of(2))) };
    let program = record(sums, spec(made)).expect("the function can be recorded");
    assert_eq!(program.call(&x), sums(&x));
    for rows in 499..800 {
        let program = record(sums, spec((Row.of(rows), Col.of(2)))).expect("the function can be recorded");
        assert!(program.try_call(&x).is_err(), "`Row` = {rows}");
    }
}

#[test]
fn dynamic_outside_of_the_argument_of_spec_is_named() {
    let text = |run: &dyn Fn()| {
        let payload = crate::caught(run).expect_err("a panic");
        payload.downcast_ref::<String>().expect("the message is text").clone()
    };
    let sums = |x: &Matrix| x.view().sum(Col);
    let rows = dynamic(Row);
    let before = text(&|| {
        let made = || -> Matrix { zeros((rows, Col.of(2))) };
        drop(record(sums, spec(made)));
    });
    let added = |x: &Matrix| {
        let more: Matrix = zeros((dynamic(Row), Col.of(2)));
        (x + more).eval()
    };
    let within = text(&|| drop(record(added, spec((dynamic(Row), Col.of(2))))));
    for error in [before, within] {
        assert!(error.contains("call `dynamic(Row)` in the argument of `spec`"), "{error}");
    }
}

/// At these sizes, the function itself would refuse to read these positions. Most of them are
/// elements of other rows.
#[test]
fn positions_beyond_the_end_of_an_axis_are_refused() {
    type Line = Tensor<f32, (Row,)>;
    let x = |rows: usize, columns: usize| -> Matrix { randn((Row.of(rows), Col.of(columns)), 1) };
    let functions: [(fn(&Matrix) -> Line, usize, &str); 6] = [
        (|x| x.view().slice(Row, 0..2).slice(Col, 0..10).sum(Col), 10, "positions 0..10 of dim `Col`"),
        (|x| x.view().slice(Row, 0..2).slice(Col, -3..).sum(Col), 3, "positions -1..2 of dim `Col`"),
        (|x| x.view().slice(Row, 0..2).index(Col, 5).eval(), 6, "positions 5..6 of dim `Col`"),
        (|x| x.lookup(Col, Feat.of(4) + 3).slice(Row, 0..2).sum(Feat), 7, "positions 3..7 of dim `Col`"),
        (
            |x| {
                let ids: Tensor<usize, (Feat,)> = from_vec(Feat.of(2), vec![0, 5]);
                x.take(Col, &ids).slice(Row, 0..2).sum(Feat)
            },
            6,
            "positions 5..6 of dim `Col`",
        ),
        (
            |x| x.unfold(Col, Key.of(3), 1, 1).slice(Row, 0..2).sum((Col, Key)),
            3,
            "a window along dim `Col` needs at least 3 elements",
        ),
    ];
    for (at, (f, least, expected)) in functions.into_iter().enumerate() {
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        let program = reloaded(&program, &f(&x(2, 10)));
        for (rows, columns) in [(50, least), (2, least), (7, 30)] {
            let found = program.call(&x(rows, columns));
            let difference = (found - f(&x(rows, columns))).abs().max(Row).order(());
            assert!(difference < 1e-5, "function {at}, `Row` = {rows}, `Col` = {columns}: {difference}");
        }
        let error = program.try_call(&x(50, least - 1)).expect_err("an error").to_string();
        let size = format!(" {} if dims `Row` = 50", least - 1);
        assert!(error.contains(expected) && error.contains(&size), "function {at}: {error}");
        let error = program.try_call(&x(1, 30)).expect_err("an error").to_string();
        assert!(error.contains("positions 0..2 of dim `Row`, which has size 1"), "function {at}: {error}");
    }
    let moments = |x: &Matrix| x.batch_norm(Row, 1e-5).var;
    let program = record(moments, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert!(program.try_call(&x(2, 2)).is_ok());
    let error = program.try_call(&x(1, 2)).expect_err("an error").to_string();
    let expected =
        "each channel of `batch_norm` over `Row` needs at least 2 elements, but has 1 if dim `Row` = 1";
    assert_eq!(error, expected);
}

/// Positions from the end move among the others when the size changes, so a range around all of them
/// does not tell whether each is within the axis.
#[test]
fn each_position_of_a_table_is_checked() {
    let x = |columns: usize| -> Matrix { randn((Row.of(4), Col.of(columns)), 1) };
    for (ids, least) in [(vec![0, 5, -1], 6), (vec![2, -3], 3)] {
        let ids: Tensor<i64, (Feat,)> = from_vec(Feat.of(ids.len()), ids);
        let f = |x: &Matrix| x.take(Col, (&ids).from_end(x.size(Col))).slice(Row, 0..2).eval();
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        let program = reloaded(&program, &f(&x(6)));
        for columns in [least, 6, 30] {
            assert_eq!(program.call(&x(columns)), f(&x(columns)), "`Col` = {columns}");
        }
        let error = program.try_call(&x(least - 1)).expect_err("an error").to_string();
        assert!(error.contains(&format!("of dim `Col`, which has size {}", least - 1)), "{error}");
    }
}

/// The recorded diagonal has the length of the shorter axis. At these sizes, the other one is shorter.
#[test]
fn diagonals_beyond_the_end_of_an_axis_are_refused() {
    type Cube = Tensor<f32, (Seq, Row, Col)>;
    let x = |rows: usize| -> Cube { randn((Seq.of(4), Row.of(rows), Col.of(5)), 1) };
    let open = || spec((Seq.of(4), dynamic(Row), Col.of(5)));
    let below = |x: &Cube| x.view().index(Seq, 0).diagonal(Row, Col, -1).eval();
    let program = record(below, open()).expect("the function can be recorded");
    for rows in [6, 9] {
        assert_eq!(program.call(&x(rows)), below(&x(rows)), "`Row` = {rows}");
    }
    let error = program.try_call(&x(5)).expect_err("an error").to_string();
    let expected = "reads positions 1..6 of dim `Row`, which has size 5 if dim `Row` = 5";
    assert!(error.contains(expected), "{error}");
    let trace = |x: &Cube| x.view().index(Seq, 0).trace(Row, Col);
    let program = record(trace, open()).expect("the function can be recorded");
    for rows in [5, 9] {
        let difference = (program.call(&x(rows)) - trace(&x(rows))).abs().order(());
        assert!(difference < 1e-5, "`Row` = {rows}: {difference}");
    }
    let error = program.try_call(&x(3)).expect_err("an error").to_string();
    let expected = "reads positions 0..5 of dim `Row`, which has size 3 if dim `Row` = 3";
    assert!(error.contains(expected), "{error}");
}

/// At these sizes, the window is larger than the padded dim, or the padding leaves nothing.
#[test]
fn sizes_too_small_for_windows_are_refused() {
    let x = |rows: usize| -> Matrix { randn((Row.of(rows), Col.of(2)), 1) };
    let weight = |len: usize| -> Tensor<f32, (Key,)> { randn(Key.of(len), 2) };
    let (five, three) = (weight(5), weight(3));
    let convolved = |x: &Matrix| conv(x, &five, (), Row, Key, &Window::new().padding(1));
    let program = record(convolved, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [3, 9] {
        let difference = (program.call(&x(rows)) - convolved(&x(rows))).abs().max((Row, Col)).order(());
        assert!(difference < 1e-5, "`Row` = {rows}: {difference}");
    }
    let error = program.try_call(&x(2)).expect_err("an error").to_string();
    assert_eq!(error, "a window along dim `Row` needs at least 5 elements, but has 4 if dim `Row` = 2");
    let spread = |x: &Matrix| conv_transpose(x, &three, (), Row, Key, &Window::new().padding(2));
    let program = record(spread, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [3, 9] {
        let difference = (program.call(&x(rows)) - spread(&x(rows))).abs().max((Row, Col)).order(());
        assert!(difference < 1e-5, "`Row` = {rows}: {difference}");
    }
    let error = program.try_call(&x(2)).expect_err("an error").to_string();
    assert!(error.ends_with("needs at least 5 elements, but has 4 if dim `Row` = 2"), "{error}");
}

#[test]
fn pieces_and_gradients_read_positions() {
    let x = |rows: usize| -> Matrix { randn((Row.of(rows), Col.of(2)), 1) };
    let rest = |x: &Matrix| x.split(Row, &[2, x.size(Row) - 2]).swap_remove(1).eval();
    let program = record(rest, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert_eq!(program.call(&x(3)), rest(&x(3)));
    let error = program.try_call(&x(1)).expect_err("an error").to_string();
    assert!(error.contains("positions 0..2 of dim `Row`, which has size 1"), "{error}");
    let slope = |x: &Matrix| grad(|x: &Matrix| x.view().slice(Row, 0..3).square().sum((Row, Col)), x);
    let program = record(slope, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [4, 9] {
        assert_eq!(program.call(&x(rows)), slope(&x(rows)), "`Row` = {rows}");
    }
    let error = program.try_call(&x(2)).expect_err("an error").to_string();
    assert!(error.contains("positions 0..3 of dim `Row`, which has size 2"), "{error}");
}

/// Only the first call of the function reads the table.
#[test]
fn tensors_that_are_computed_once_can_be_used() {
    let cached: OnceCell<Tensor<f32, (Col,)>> = OnceCell::new();
    let f = |x: &Matrix| {
        let own = cached.get_or_init(|| {
            let table: Tensor<f32, (Feat, Col)> = ones((Feat.of(3), Col.of(2)));
            table.view().index(Feat, 1).eval()
        });
        (x.view().slice(Row, 0..2) * own).eval()
    };
    let program = record(f, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let x = |rows: usize| -> Matrix { randn((Row.of(rows), Col.of(2)), 1) };
    assert_eq!(program.call(&x(3)), f(&x(3)));
    assert!(program.try_call(&x(1)).is_err());
}

/// A recording inside of the function, which panics, does not lose the function's own positions.
#[test]
fn a_panic_leaves_the_positions_of_the_outer_function() {
    let fails = |x: &Matrix| -> Matrix {
        let _rows = x.view().slice(Row, 0..7);
        panic!("there is no result")
    };
    let first = |x: &Matrix| {
        let rows = x.view().slice(Row, 0..3).sum(Row).eval();
        assert!(crate::caught(|| drop(record(fails, spec((dynamic(Row), Col.of(2)))))).is_err());
        rows
    };
    let program = record(first, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let x: Matrix = randn((Row.of(3), Col.of(2)), 1);
    assert_eq!(program.call(&x), x.view().slice(Row, 0..3).sum(Row).eval());
    let short: Matrix = ones((Row.of(2), Col.of(2)));
    let error = program.try_call(&short).expect_err("an error").to_string();
    assert!(error.contains("reads positions 0..3 of dim `Row`, which has size 2"), "{error}");
}

/// At these sizes, steps would read elements that do not exist, or have results of other shapes.
#[test]
fn sizes_for_which_steps_are_wrong_are_refused() {
    let x = |rows: usize| -> Matrix { ones((Row.of(rows), Col.of(2))) };
    let first = |x: &Matrix| x.view().slice(Row, 0..10).sum(Row);
    let program = record(first, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert_eq!(program.call(&x(10)), first(&x(10)));
    let error = program.try_call(&x(9)).expect_err("an error").to_string();
    let expected =
        "the recorded function reads positions 0..10 of dim `Row`, which has size 9 if dim `Row` = 9";
    assert_eq!(error, expected);
    let first = |x: &Matrix| x.view().slice(Row, 0..10).eval();
    let program = record(first, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert_eq!(program.try_call(&x(9)).expect_err("an error").to_string(), expected);
    #[cfg(feature = "linalg")]
    {
        let factors = |x: &Matrix| x.view().qr(Row, Col, Key);
        let program = record(factors, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
        let drawn: Matrix = randn((Row.of(5), Col.of(2)), 1);
        assert_eq!(program.call(&drawn), factors(&drawn));
        let error = program.try_call(&x(1)).expect_err("an error").to_string();
        assert!(error.contains("the step `qr(") && error.contains("with dim `Row` = 1"), "{error}");
        assert!(error.ends_with(": record the function for these sizes"), "{error}");
    }
}

/// Repeated rows need no table of positions.
#[test]
fn elements_are_repeated() {
    fn check(f: fn(&Matrix) -> Matrix) {
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        for sizes in [(1, 1), (4, 1), (1, 3), (5, 4)] {
            let x: Matrix = (randn((Row.of(sizes.0), Col.of(sizes.1)), 1) * 8.0).round().eval();
            assert_eq!(program.call(&x), f(&x), "{sizes:?}");
        }
    }
    check(|x| x.view().repeat(Row, 3));
    check(|x| x.view().repeat_interleave(Row, 3));
    check(|x| x.view().repeat_interleave(Col, 2));
    check(|x| grad(|x: &Matrix| x.view().repeat(Row, 3).square().sum((Row, Col)), x));
    check(|x| grad(|x: &Matrix| x.view().repeat_interleave(Col, 3).square().sum((Row, Col)), x));
}

/// The numbers of elements are products of sums, such as `(h + 2) (w + 2)`.
#[test]
fn several_dims_are_padded_and_convolved() {
    fn check(f: fn(&Matrix) -> Matrix) {
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        let program = reloaded(&program, &f(&ones((Row.of(9), Col.of(9)))));
        for sizes in [(4, 4), (3, 7), (5, 4), (600, 3)] {
            let x: Matrix = (randn((Row.of(sizes.0), Col.of(sizes.1)), 1) * 8.0).round().eval();
            assert_eq!(program.call(&x), f(&x), "{sizes:?}");
        }
        // The program may refuse small sizes, but must not accept more than the function does.
        for sizes in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 4), (3, 1)] {
            let x: Matrix = ones((Row.of(sizes.0), Col.of(sizes.1)));
            let (result, expected) = (program.try_call(&x), std::panic::catch_unwind(|| f(&x)).ok());
            assert!(result.is_err() || result.ok() == expected, "{sizes:?}");
        }
    }
    fn convolved(x: &Matrix, window: Window) -> Matrix {
        let weight = from_fn((Key.of(3), Feat.of(2)), |(row, column)| (2 * row + column) as f32 - 2.0);
        conv(x, &weight, (), (Row, Col), (Key, Feat), &window).eval()
    }
    check(|x| x.view().pad((Row, Col), 1, 2, Pad::Constant(7.0)));
    check(|x| x.view().pad((Row, Col), 1, 1, Pad::Circular));
    check(|x| x.view().pad((Row, Col), 2, 1, Pad::Reflect));
    check(|x| x.view().pad((Row, Col), 0, 3, Pad::Replicate));
    check(|x| convolved(x, Window::new()));
    check(|x| convolved(x, Window::new().padding(2)));
    check(|x| {
        grad(|x: &Matrix| x.view().pad((Row, Col), 1, 2, Pad::Constant(7.0)).square().sum((Row, Col)), x)
    });
    check(|x| grad(|x: &Matrix| x.view().pad((Row, Col), 1, 2, Pad::Reflect).square().sum((Row, Col)), x));
    check(|x| grad(|x: &Matrix| convolved(x, Window::new()).view().square().sum((Row, Col)), x));
}

#[test]
fn elements_are_moved() {
    /// Calls the program with few elements, too: `least` along the dim, and one less.
    fn check(dim: &str, least: usize, f: fn(&Matrix) -> Matrix) {
        let program = record(f, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
        let program = reloaded(&program, &f(&ones((Row.of(9), Col.of(9)))));
        let sized = |len: usize| if dim == "Row" { (len, 2) } else { (2, len) };
        for sizes in [(4, 4), (4, 9), (5, 4), (600, 5), sized(least)] {
            let x: Matrix = (randn((Row.of(sizes.0), Col.of(sizes.1)), 1) * 8.0).round().eval();
            assert_eq!(program.call(&x), f(&x), "{sizes:?}");
        }
        if least > 1 {
            let (rows, columns) = sized(least - 1);
            let error = program.try_call(&ones((Row.of(rows), Col.of(columns)))).expect_err("too few");
            let needs = format!("needs at least {least} elements, but has {}", least - 1);
            assert!(error.to_string().contains(&needs), "{error}");
        }
    }
    check("Row", 2, |x| x.view().roll(Row, 2));
    check("Col", 3, |x| x.view().roll(Col, -3));
    check("Row", 3, |x| x.view().shift(Row, 3, 7.0));
    check("Col", 2, |x| x.view().shift(Col, -2, 7.0));
    check("Row", 3, |x| x.view().pad(Row, 1, 2, Pad::Reflect));
    check("Col", 3, |x| x.view().pad(Col, 3, 1, Pad::Circular));
    check("Col", 1, |x| x.view().pad(Col, 4, 2, Pad::Replicate));
    check("Row", 2, |x| grad(|x: &Matrix| x.view().roll(Row, 2).square().sum((Row, Col)), x));
    check("Row", 3, |x| grad(|x: &Matrix| x.view().shift(Row, -3, 7.0).square().sum((Row, Col)), x));
    check("Row", 3, |x| grad(|x: &Matrix| x.view().pad(Row, 1, 2, Pad::Reflect).square().sum((Row, Col)), x));
    check("Col", 3, |x| {
        grad(|x: &Matrix| x.view().pad(Col, 3, 1, Pad::Circular).square().sum((Row, Col)), x)
    });
    check("Col", 1, |x| {
        grad(|x: &Matrix| x.view().pad(Col, 4, 2, Pad::Replicate).square().sum((Row, Col)), x)
    });
    check("Row", 2, |x| {
        let slope = |x: &Matrix| grad(|x: &Matrix| x.view().roll(Row, 2).powi(3).sum((Row, Col)), x);
        grad(|x: &Matrix| slope(x).square().sum((Row, Col)), x)
    });
}

/// At the recorded sizes, the shift leaves no elements.
#[test]
fn shifts_beyond_the_recorded_sizes_are_refused_for_other_sizes() {
    let check = |program: &dyn Fn(&Matrix) -> Result<Matrix, DimError>, f: &dyn Fn(&Matrix) -> Matrix| {
        let x: Matrix = randn((Row.of(1500), Col.of(2)), 1);
        assert_eq!(program(&x).unwrap(), f(&x));
        let error = program(&randn((Row.of(3000), Col.of(2)), 1)).unwrap_err().to_string();
        let needs = "the part of dim `Row` that a shift fills needs at least 3000 elements";
        assert!(error.contains(needs) && error.contains("has 2000 if dim `Row` = 3000"), "{error}");
    };
    for by in [2000, -2000] {
        let shifted = |x: &Matrix| x.view().shift(Row, by, 7.0);
        let program = record(shifted, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
        check(&|x| program.try_call(x), &shifted);
        let slope = |x: &Matrix| grad(|x: &Matrix| x.view().shift(Row, by, 7.0).sum((Row, Col)), x);
        let program = record(slope, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
        check(&|x| program.try_call(x), &slope);
    }
    let by_columns = |x: &Matrix| x.view().shift(Row, x.size(Col) as isize, 7.0).eval();
    let program =
        record(by_columns, spec((dynamic(Row), dynamic(Col)))).expect("the function can be recorded");
    let x: Matrix = randn((Row.of(10), Col.of(20)), 1);
    assert_eq!(program.call(&x), by_columns(&x));
    let error = program.try_call(&randn((Row.of(20), Col.of(10)), 1)).unwrap_err().to_string();
    assert!(error.contains("needs at least 20 elements, but has 10"), "{error}");
    // The size of the shifted dim is fixed.
    let by_rows = |x: &Matrix| x.view().shift(Col, x.size(Row) as isize, 7.0).eval();
    let program = record(by_rows, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [2, 3, 600] {
        let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
        assert_eq!(program.call(&x), by_rows(&x));
    }
    let error = program.try_call(&randn((Row.of(1), Col.of(2)), 1)).unwrap_err().to_string();
    assert!(error.contains("needs at least 2 elements, but has 1"), "{error}");
}

/// The recorded sizes do not say whether the divisor of a variance is positive for other sizes.
#[test]
fn the_sign_of_a_divisor_depends_on_the_sizes() {
    fn check(slope: impl Fn(&Matrix) -> Matrix) {
        let program = record(&slope, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
        for rows in [1, 2, 3, 4, 3000] {
            let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
            let [found, expected] = [program.call(&x), slope(&x)].map(|x| x.order((Row, Col)));
            for (found, expected) in found.into_iter().zip(expected) {
                let is_same = found == expected || (found.is_nan() && expected.is_nan());
                assert!(is_same || (found - expected).abs() <= 1e-6, "{rows} rows: {found}, not {expected}");
            }
        }
    }
    check(|x| grad(|x: &Matrix| x.var_with(Row, 1.0).sum(Col), x));
    check(|x| grad(|x: &Matrix| x.var_with(Row, 3.0).sum(Col), x));
    check(|x| grad(|x: &Matrix| x.var_with(Row, 2000.0).sum(Col), x));
}

/// A window steps over a dim that is shorter than the dilation.
#[test]
fn windows_need_an_element() {
    // The second of three elements always hits.
    let pooled = |x: &Matrix| x.max_pool(Row, 3, &Window::new().dilation(3).padding(3));
    let program = record(pooled, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    for rows in [1, 2, 3, 10] {
        let x: Matrix = randn((Row.of(rows), Col.of(2)), 1);
        assert_eq!(program.call(&x), pooled(&x));
    }
    let pooled = |x: &Matrix| x.max_pool(Row, 2, &Window::new().dilation(3).padding(2));
    let program = record(pooled, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let x: Matrix = randn((Row.of(3), Col.of(2)), 1);
    assert_eq!(program.call(&x), pooled(&x));
    let short: Matrix = ones((Row.of(2), Col.of(2)));
    assert!(short.view().try_max_pool(Row, 2, &Window::new().dilation(3).padding(2)).is_err());
    let error = program.try_call(&short).expect_err("an error").to_string();
    assert_eq!(
        error,
        "dim `Row`, along which padded windows are dilated, needs at least 3 elements, but has 2 if dim `Row` = 2"
    );
}

#[test]
fn batches_without_examples_have_moments() {
    let moments = |x: &Matrix| {
        let found = x.batch_norm(Row, 1e-5);
        (found.mean, found.var)
    };
    for sizes in [(0, 5), (0, 1)] {
        let x: Matrix = zeros((Row.of(sizes.0), Col.of(sizes.1)));
        let program = reloaded(&record(moments, &x).expect("the function can be recorded"), &moments(&x));
        let (mean, var) = program.call(&x);
        assert_eq!((mean.size(Col), var.size(Col)), (sizes.1, sizes.1));
    }
}

/// If a program cannot track the size of a dim, the error names the dim.
#[test]
fn untracked_sizes_are_refused() {
    let scaled = |x: &Matrix| (x.view().sum(Row) * (x.size(Row) as f32).sqrt()).eval();
    let error = record(scaled, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("depends on the size of `Row`") && error.contains("open.rs"), "{error}");
    let loops = |x: &Matrix| {
        let mut sum: Tensor<f32, (Col,)> = zeros(Col.of(2));
        for row in 0..x.size(Row) {
            sum = (sum + x.view().index(Row, row)).eval();
        }
        sum
    };
    let error = record(loops, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    let expected = "steps for some sizes of `Row`, and ";
    assert!(error.contains(expected), "{error}");
    let sums = |x: &Matrix| {
        scan(x, Row, zeros(Col.of(2)), |sum: Tensor<f32, (Col,)>, row| {
            let sum = (sum + row).eval();
            (sum.clone(), sum)
        })
        .1
    };
    let error = record(sums, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains(expected), "{error}");
    // These numbers have one formula for odd sizes and another for even ones.
    let slope = |x: &Matrix| grad(|x: &Matrix| x.median(Row).square().sum(Col), x);
    let error = record(slope, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("sizes of `Row`") || error.contains("the size of `Row`"), "{error}");
    let pairs = |x: &Matrix| x.view().slice(Row, 0..x.size(Row) / 2 * 2).sum(Row).eval();
    let error = record(pairs, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(error.contains("sizes of `Row`") || error.contains("the size of `Row`"), "{error}");
    let resized = |x: &Matrix| x.view().interpolate_nearest(Row, 3).eval();
    let error = record(resized, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    assert!(
        error.contains("tests/recorded/open.rs") && error.contains("the elements that the step"),
        "{error}"
    );
    // The mask of another size is not known.
    let few = |x: &Matrix| -> Matrix {
        typed_dims::prelude::dims!(n);
        let mask = from_fn(Row.of(x.size(Row)), |row| row < 2000);
        let first: Tensor<f32, (Col, Class)> = x.view().masked_select(mask, Row, n).rename(n, Class).eval();
        first.rename(Class, Row).eval()
    };
    let error = record(few, spec((dynamic(Row), Col.of(2)))).err().expect("an error").to_string();
    let expected = "a mask along dim `Row` is known for one size only: record for one size";
    assert!(error.contains(expected), "{error}");
    // A division by the size itself can be tracked.
    let mean = |x: &Matrix| (x.view().sum(Row) / x.size(Row) as f32).eval();
    let program = record(mean, spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    let x: Matrix = randn((Row.of(11), Col.of(2)), 1);
    assert_eq!(program.call(&x), mean(&x));
}

/// The sizes of an input come from the line with its `spec`.
#[test]
fn sizes_that_disagree_are_those_of_the_specs() {
    let sum = |(x, y): (&Matrix, &Matrix)| (x + y).eval();
    let line = line!() + 1;
    let inputs = || (spec((dynamic(Row), Col.of(2))), spec((Row.of(5), Col.of(2))));
    let payload = crate::caught(|| drop(record(sum, inputs()))).expect_err("a panic");
    let text = payload.downcast_ref::<String>().expect("the message is text");
    assert_eq!(text.matches(&format!("(at tests/recorded/open.rs:{line}:")).count(), 2, "{text}");
}

#[test]
fn equal_functions_have_equal_open_programs() {
    let scaled = |by: f32| move |x: &Matrix| (x.view().sum(Row) * by).eval();
    let open =
        |by| record(scaled(by), spec((dynamic(Row), Col.of(2)))).expect("the function can be recorded");
    assert!(open(2.0) == open(2.0) && open(2.0) != open(3.0));
    let sized = record(scaled(2.0), spec((Row.of(7), Col.of(2)))).expect("the function can be recorded");
    let saved = open(2.0).to_saved().expect("the program can be saved");
    assert!(open(2.0) != sized && saved != sized.to_saved().expect("the program can be saved"));
    assert!(saved.restore::<&Matrix, Tensor<f32, (Col,)>>(&ones(Col.of(2))).is_ok());
}

/// The examples of a batch are dynamic, the parameters and the state of the optimizer are not.
#[test]
fn an_optimizer_takes_batches_of_any_size() {
    type State = (Network, Adam<Network>);
    let step = |((mut network, mut adam), x): (State, &Data)| -> (State, Tensor<f32, ()>) {
        let loss = |network: &Network| {
            let hidden: Tensor<f32, (Row, Hidden)> = network.0.apply(x).relu().eval();
            let y: Tensor<f32, (Row, Class)> = network.1.apply(&hidden);
            y.square().mean((Row, Class))
        };
        let (loss, gradient) = loss_and_grad(loss, &network);
        adam.step(&mut network, &gradient);
        ((network, adam), loss)
    };
    for prepared in [false, true] {
        let start = || -> State {
            let mut adam = Adam::new(0.1);
            let network = network();
            if prepared {
                adam.prepare(&network);
            }
            (network, adam)
        };
        let program = record(step, (start(), spec((dynamic(Row), In.of(6)))));
        let program = program.expect("the function can be recorded");
        let mut out = step((start(), &ones((Row.of(2), In.of(6)))));
        let restored = reloaded(&program, &out);
        for rows in [7, 1, 300] {
            let x: Data = randn((Row.of(rows), In.of(6)), rows as u64);
            let ((expected, _), expected_loss) = step((start(), &x));
            program.call_into((start(), &x), &mut out);
            for ((found, _), loss) in [program.call((start(), &x)), restored.call((start(), &x)), out.clone()]
            {
                let difference = (loss - &expected_loss).abs().order(());
                assert!(difference < 1e-5, "{rows}: {difference}");
                let difference = (&found.0.weight - &expected.0.weight).abs().max((In, Hidden)).order(());
                assert!(difference < 1e-3, "{rows}: {difference}");
            }
        }
    }
}

/// Messages do not contain sizes that only the recording has, or say where they come from.
#[test]
fn sizes_that_do_not_fit() {
    let product = |(a, b): (&Matrix, &Tensor<f32, (Row,)>)| (a * b).eval();
    let program = record(product, (spec((dynamic(Row), Col.of(4))), spec(dynamic(Row)))).unwrap();
    let a: Matrix = ones((Row.of(3), Col.of(4)));
    let expected = "input `0` has dim `Row` = 3, but input `1` has dim `Row` = 2";
    for _ in 0..2 {
        assert_eq!(program.try_call((&a, &ones(Row.of(2)))).unwrap_err().to_string(), expected);
    }
    assert_eq!(program.call((&a, &ones(Row.of(3)))), a);

    let text = |f: &dyn Fn()| {
        let panicked = catch_unwind(AssertUnwindSafe(f)).expect_err("the call panics");
        panicked.downcast_ref::<String>().expect("the message is text").clone()
    };
    let found = text(&|| drop(record(product, (spec((dynamic(Row), Col.of(4))), spec(Row.of(3))))));
    assert!(
        found.contains("; `Row` is dynamic, and ") && found.ends_with("at which it is recorded"),
        "{found}"
    );
    dims! { struct Three = 3; }
    let found = text(&|| _ = dynamic(Three));
    assert_eq!(found, "dim `Three` has the static size 3, so it cannot be dynamic");
}

#[test]
fn optimizers_have_fixed_sizes() {
    type State = (Matrix, Adam<Matrix>);
    let step = |(state, x): (&State, &Matrix)| -> State {
        let (mut w, mut adam) = state.clone();
        adam.step(&mut w, x);
        (w, adam)
    };
    let start = || -> State {
        let w = ones((dynamic(Row), Col.of(2)));
        let mut adam = Adam::new(0.1);
        adam.prepare(&w);
        (w, adam)
    };
    let error = record(step, (spec(start), spec((dynamic(Row), Col.of(2))))).err().expect("an error");
    let expected = "the state of an optimizer, whose size depends on the size of `Row`: record for one size";
    assert!(error.to_string().contains(expected), "{error}");
}
