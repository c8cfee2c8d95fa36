//! Comparing, saving and loading programs.

use crate::reload::reloaded;
use typed_dims::grad::loss_and_grad;
use typed_dims::nn::Linear;
use typed_dims::operators::custom::Derivative;
use typed_dims::optim::{Adam, AdamW, Optimizer, Schedule, clip_by_global_norm};
use typed_dims::prelude::*;
use typed_dims::program::{Program, SavedProgram, dynamic, record, spec};

dims! {
    struct Row;
    struct Col;
    struct Word;
    struct Class;
}

type Matrix = Tensor<f32, (Row, Col)>;
type Line = Tensor<f32, (Row,)>;

fn matrix(seed: u64) -> Matrix {
    randn((Row.of(4), Col.of(3)), seed)
}

#[test]
fn a_program_is_loaded_with_its_result() {
    let f = |x: &Matrix| (x.view().softmax(Col).sum(Row), x.view().argmax(Row));
    type Both = (Tensor<f32, (Col,)>, Tensor<usize, (Col,)>);
    let program = record(f, &matrix(1)).expect("the function can be recorded");
    let text = serde_json::to_string(&program).expect("the program can be written");
    let loaded: Program<&Matrix, Both> = serde_json::from_str(&text).expect("the program can be read");
    assert!(loaded == program);
    assert_eq!(loaded.call(&matrix(2)), f(&matrix(2)));
    assert_eq!(loaded.to_string(), program.to_string());
    assert_eq!(loaded.to_svg(), program.to_svg());
    // Numbers of the listing are not checked.
    let mut value: serde_json::Value = serde_json::from_str(&text).expect("the text is JSON");
    let steps = value["listing"]["steps"].as_array_mut().expect("the program has steps");
    assert!(steps.len() > 1);
    for step in steps {
        step["value"]["bytes"] = usize::MAX.into();
        step["operations"] = usize::MAX.into();
    }
    let loaded: Program<&Matrix, Both> = serde_json::from_value(value).expect("the program can be read");
    assert!(loaded.to_svg().contains(&format!("{0} bytes written, {0} operations", usize::MAX)));
    // Formats may omit the names of fields.
    let bytes = postcard::to_allocvec(&program).expect("the program can be written");
    let loaded: Program<&Matrix, Both> = postcard::from_bytes(&bytes).expect("the program can be read");
    assert!(loaded == program);
    for len in 0..bytes.len() {
        assert!(postcard::from_bytes::<Program<&Matrix, Both>>(&bytes[..len]).is_err(), "length {len}");
    }
    // Fields may come in another order.
    let value: serde_json::Value = serde_json::from_str(&text).expect("the text is JSON");
    let loaded: Program<&Matrix, Both> = serde_json::from_value(value).expect("the program can be read");
    assert!(loaded == program);
}

#[test]
fn a_training_step_is_loaded() {
    type Network = Linear<(Col,), (Class,)>;
    type State = (Network, AdamW<Network>);
    type Labels = Tensor<usize, (Row,)>;
    let step = |((mut net, mut adam), x, y, seed): (State, &Matrix, &Labels, &Tensor<u64, ()>)| {
        let loss = |net: &Network| {
            let scores: Tensor<f32, (Row, Class)> = net.apply(x);
            scores.dropout(0.5, seed).cross_entropy(Class, y).mean(Row)
        };
        let (loss, mut gradient) = loss_and_grad(loss, &net);
        clip_by_global_norm(&mut gradient, 0.1);
        adam.step(&mut net, &gradient);
        ((net, adam), loss)
    };
    let labels = |seed| (rand::<f32, _>(Row.of(4), seed) * 2.0).cast::<usize>().eval();
    let mut state: State =
        (Linear::new(Col.of(3), Class.of(2), 1), AdamW::new(Schedule::cosine(0.1, 9).warm_up(2)));
    // With moments, which the first step creates.
    state = step((state, &matrix(1), &labels(1), &full((), 1))).0;
    let program = record::<(State, &Matrix, &Labels, &Tensor<u64, ()>), _>(
        step,
        (state.clone(), &matrix(1), &labels(1), &full((), 1)),
    )
    .expect("the function can be recorded");
    let like = program.call((state.clone(), &matrix(1), &labels(1), &full((), 1)));
    let loaded = reloaded(&program, &like);
    for seed in 2..8 {
        let (x, y, seed) = (matrix(seed), labels(seed), full((), seed));
        let (expected, loss) = step((state.clone(), &x, &y, &seed));
        let (found, same) = loaded.call((state, &x, &y, &seed));
        assert_eq!((&found.0.weight, same), (&expected.0.weight, loss));
        state = expected;
    }
    // The settings of inputs and results must equal those of the recorded call.
    let (mut net, mut adam) = state.clone();
    adam.set_rate(0.5);
    let error = loaded.try_call((state.clone(), &matrix(1), &labels(1), &full((), 1)));
    assert!(error.is_ok());
    let error = loaded.try_call(((net.clone(), adam.clone()), &matrix(1), &labels(1), &full((), 1)));
    assert!(error.err().expect("the rate differs").to_string().contains("was recorded for"));
    let gradient = net.clone();
    adam.step(&mut net, &gradient);
    let saved = program.to_saved().expect("the program can be saved");
    let error = saved.restore::<(State, &Matrix, &Labels, &Tensor<u64, ()>), _>(&((net, adam), like.1));
    assert!(error.err().expect("the rate differs").to_string().contains("of the saved result is"));
}

#[test]
fn a_loaded_program_has_the_axes_of_states() {
    type State = (Matrix, Adam<Matrix>);
    let state = |rows, columns| -> State {
        let (w, mut adam): (Matrix, _) = (ones((Row.of(rows), Col.of(columns))), Adam::new(0.1));
        adam.prepare(&w);
        (w, adam)
    };
    let step = |(mut w, mut adam): State| -> State {
        let gradient = w.clone();
        adam.step(&mut w, &gradient);
        (w, adam)
    };
    let program = record(step, state(4, 3)).expect("the function can be recorded");
    let like = step(state(4, 3));
    let loaded = reloaded(&program, &like);
    let sizes = |program: &Program<State, State>| -> Vec<Vec<usize>> {
        let engine = program.to_engine().expect("engines can run the program");
        engine.inputs.iter().map(|own| own.tensor.sizes()).collect()
    };
    assert!(sizes(&loaded).contains(&vec![4, 3]));
    assert_eq!(sizes(&loaded), sizes(&program));
    // The state of other parameters, with as many elements.
    for program in [&program, &loaded] {
        let error = program.try_call((state(4, 3).0, state(3, 4).1)).expect_err("the sizes differ");
        let error = error.to_string();
        let expected =
            "has dims `Row` = 3, `Col` = 4, but the program was recorded for dims `Row` = 4, `Col` = 3";
        assert!(error.ends_with(expected), "{error}");
    }
    let saved = program.to_saved().expect("the program can be saved");
    let other = (step(state(4, 3)).0, step(state(3, 4)).1);
    let error = saved.restore::<State, State>(&other).err().expect("the sizes differ").to_string();
    assert!(error.contains("has other axes or sizes than that of the saved program"), "{error}");
    // Data without the axes of states does not fit any state.
    let without = |tensors: &str| -> Result<Program<State, State>, DimError> {
        let mut value = serde_json::to_value(&saved).expect("the program can be written");
        for own in value["content"][tensors].as_array_mut().expect("tensors are a list") {
            let fields = own.as_object_mut().expect("a tensor has fields");
            let state = fields.remove("state").expect("this is one of the fields");
            if !state.is_null() {
                fields.insert("dims".into(), serde_json::json!([]));
            }
        }
        let read: SavedProgram = serde_json::from_value(value).expect("the program can be read");
        read.restore(&like)
    };
    let error = without("results").err().expect("the axes are unknown").to_string();
    assert!(error.contains("has other axes or sizes than that of the saved program"), "{error}");
    let program = without("inputs").expect("inputs are only checked in a call");
    let error = program.try_call(state(4, 3)).expect_err("the axes are unknown").to_string();
    let expected =
        "has dims `Row` = 4, `Col` = 3, but the program was recorded for dim `positional axis` = 12";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn equal_functions_have_equal_programs() {
    let weight: Tensor<f32, (Col,)> = randn(Col.of(3), 5);
    let other: Tensor<f32, (Col,)> = randn(Col.of(3), 6);
    let product = |weight: Tensor<f32, (Col,)>, seed| {
        record(move |x: &Matrix| (x * &weight).sum(Col), &matrix(seed)).expect("the function can be recorded")
    };
    let own = product(weight.clone(), 1);
    assert!(own == own && own == product(weight.clone(), 2));
    assert!(own != product(other, 1));
    let sum = |x: &Matrix| (x + &weight).sum(Col);
    assert!(own != record(sum, &matrix(1)).expect("the function can be recorded"));
    let longer: Matrix = randn((Row.of(5), Col.of(3)), 1);
    assert!(
        own != record(|x: &Matrix| (x * &weight).sum(Col), &longer).expect("the function can be recorded")
    );
    // The inputs of the recorded call do not matter, nor do elements that the program overwrites.
    let joined = |x: &Matrix| concat(Row, [x.view(), ones((Row.of(1), Col.of(3))).view()]);
    let of = |seed| record(joined, &matrix(seed)).expect("the function can be recorded");
    assert!(of(1) == of(2));
    // Zeros of both signs, and NaN.
    let plus = |number: f32| {
        record(move |x: &Matrix| (x + number).eval(), &matrix(1)).expect("the function can be recorded")
    };
    assert!(plus(0.0) != plus(-0.0) && plus(f32::NAN) == plus(f32::NAN));
    let loaded = reloaded(&plus(f32::NAN), &matrix(1)).call(&matrix(1));
    assert!(loaded.memory().iter().all(|x| x.is_nan()));
}

#[test]
fn functions_of_the_user_are_refused_by_name() {
    #[derive(Clone, Copy)]
    struct Cubed;
    impl ScalarOp<f32> for Cubed {
        type Out = f32;
        const NAME: &'static str = "cubed";

        fn apply<I: Isa>(self, x: f32) -> f32 {
            x * x * x
        }

        fn derivative(self) -> Option<Derivative<f32>> {
            Some(Derivative::from_fn(|x: f32| 3.0 * x * x))
        }
    }
    let program =
        record(|x: &Line| x.apply(Cubed).eval(), &ones(Row.of(3))).expect("the function can be recorded");
    let error = program.to_saved().expect_err("the program calls a user's function");
    assert_eq!(
        error.to_string(),
        "`cubed` calls a user's function, which saved programs and engines cannot run"
    );
    let error = serde_json::to_string(&program).expect_err("the program calls a user's function");
    assert!(error.to_string().contains("`cubed`"), "{error}");
    assert!(program == program);
}

#[test]
fn other_versions_are_refused_first() {
    let program =
        record(|x: &Line| (x * 2.0).eval(), &ones(Row.of(3))).expect("the function can be recorded");
    let mut value = serde_json::to_value(&program).expect("the program can be written");
    let read = |value: &serde_json::Value| serde_json::from_str::<Program<&Line, Line>>(&value.to_string());
    assert!(read(&value).is_ok());
    value["version"] = 2.into();
    let error = read(&value).err().expect("the version differs").to_string();
    let text = "the program was saved in version 2 of the format, but this library reads version 1";
    assert!(error.contains(text), "{error}");
    // A later version, whatever its content.
    let error = serde_json::from_str::<Program<&Line, Line>>(r#"{"version": 7, "content": []}"#);
    assert!(error.err().expect("the version differs").to_string().contains("version 7 of the format"));
}

#[test]
fn other_results_and_inputs_are_errors() {
    let program = record(|x: &Matrix| x.view().sum(Col), &matrix(1)).expect("the function can be recorded");
    let saved = program.to_saved().expect("the program can be saved");
    let error = |error: Option<DimError>| error.expect("an error").to_string();
    let wrong = saved.restore::<&Matrix, Tensor<f64, (Row,)>>(&zeros(Row.of(4)));
    let expected = "the result has elements of `f64`, but the program was saved with `f32`";
    assert_eq!(error(wrong.err()), expected);
    let wrong = saved.restore::<&Matrix, (Line, Line)>(&(zeros(Row.of(4)), zeros(Row.of(4))));
    assert_eq!(error(wrong.err()), "result `1` is not in the saved program");
    let wrong = saved.restore::<&Matrix, Line>(&zeros(Row.of(5)));
    assert!(error(wrong.err()).contains("has other axes or sizes than that of the saved program"));
    let wrong = saved.restore::<&Matrix, Tensor<f32, (Col,)>>(&zeros(Col.of(4)));
    let expected = "the result has the dims (`Col`), but the program was saved with (`Row`): record it again";
    assert_eq!(error(wrong.err()), expected);
    let loaded: Program<&Line, Line> =
        saved.restore(&zeros(Row.of(4))).expect("inputs are only checked in a call");
    let expected =
        "the input has the dims (`Row`), but the program was saved with (`Row`, `Col`): record it again";
    assert_eq!(error(loaded.try_call(&ones(Row.of(4))).err()), expected);
}

#[test]
fn dims_of_loaded_programs_are_compared_by_name() {
    mod other {
        typed_dims::dims! { pub struct Row; pub struct Col; }
    }
    // Dims with other names, and names that are swapped, as a later version of a program might have
    // them. The sizes are the same.
    mod renamed {
        typed_dims::dims! { pub struct First; pub struct Second; }
    }
    mod swapped {
        typed_dims::dims! { pub struct Col; pub struct Row; }
    }
    let x: Matrix = randn((Row.of(2), Col.of(2)), 1);
    let same: Tensor<f32, (other::Row, other::Col)> = randn((other::Row.of(2), other::Col.of(2)), 1);
    let under = |dims: &str| {
        format!(
            "the input has the dims ({dims}), but the program was saved with (`Row`, `Col`): record it again"
        )
    };
    for size in [Col.of(2), dynamic(Col)] {
        let program = record(|x: &Matrix| x.view().sum(Col), spec((Row.of(2), size)));
        let saved = program.and_then(|own| own.to_saved()).expect("the program can be saved");
        let loaded: Program<&Tensor<f32, (other::Row, other::Col)>, Tensor<f32, (other::Row,)>> =
            saved.restore(&zeros(other::Row.of(2))).expect("the dims have the same names");
        assert_eq!(loaded.call(&same), same.view().sum(other::Col));
        let loaded: Program<&Tensor<f32, (renamed::First, renamed::Second)>, Line> =
            saved.restore(&zeros(Row.of(2))).expect("inputs are only checked in a call");
        let error = loaded.try_call(&randn((renamed::First.of(2), renamed::Second.of(2)), 1));
        assert_eq!(error.expect_err("the names differ").to_string(), under("`First`, `Second`"));
        let loaded: Program<&Tensor<f32, (swapped::Col, swapped::Row)>, Line> =
            saved.restore(&zeros(Row.of(2))).expect("inputs are only checked in a call");
        let error = loaded.try_call(&randn((swapped::Col.of(2), swapped::Row.of(2)), 1));
        assert_eq!(error.expect_err("the names differ").to_string(), under("`Col`, `Row`"));
        let program: Program<&Matrix, Line> =
            saved.restore(&zeros(Row.of(2))).expect("the dims are the same");
        assert_eq!(program.call(&x), x.view().sum(Col));
    }
}

#[test]
fn a_gradient_is_loaded() {
    let f = |x: &Matrix| loss_and_grad(|x: &Matrix| x.view().cumsum(Row).tanh().sum((Row, Col)), x).1;
    let program = record(f, &matrix(1)).expect("the function can be recorded");
    assert_eq!(reloaded(&program, &matrix(1)).call(&matrix(2)), f(&matrix(2)));
}
