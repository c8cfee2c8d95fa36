//! Lowers every operator that can be recorded, or checks that lowering refuses it. With a plugin,
//! runs the operator and its gradient on XLA, with inputs other than the recorded ones. The results
//! must agree with those of the operator itself.

use crate::Flat;
use crate::check::{Sizes, can_be_empty, free_dims};
use crate::derivatives::{Call, Derivative, Elements, derivative, drawn};
use crate::recorded::{AsTensors, gradient, recordable, refusal, refusal_of_xla};
use crate::table::Operator;
use crate::value::{Layout, Random};
use std::sync::LazyLock;
use typed_dims::grad::Parameters;
use typed_dims::program::{Program, RecordInputs, record};
use typed_dims_xla::Pjrt;
use typed_dims_xla::stablehlo::{Options, lower};
use xla_tests::{assert_near, plugin};

static PLUGIN: LazyLock<Option<Pjrt>> = LazyLock::new(|| plugin(1));

/// The allowed difference, relative to the greatest number of a tensor, or to 1 if that is greater.
/// Both sides compute in `f64`.
const TOLERANCE: f64 = 1e-9;

fn compare<Out: Parameters + RecordInputs<Value = Out>>(
    pjrt: &Pjrt,
    program: &Program<&Vec<Elements>, Out>,
    memory: &Vec<Elements>,
    expected: &Out,
    what: &str,
) where
    typed_dims::program::engine::EngineParts<Out, typed_dims_xla::engine::DeviceParts>: Read<Out>,
{
    let run = pjrt.compile(program).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = run.call(memory).unwrap_or_else(|error| panic!("{what}: {error}\n{}", run.stablehlo()));
    let found = found.read().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_near(&found, expected, TOLERANCE, what);
}

/// A result on devices, which can be read.
trait Read<P> {
    fn read(self) -> Result<P, typed_dims_xla::XlaError>;
}

impl<P: Parameters> Read<P> for typed_dims_xla::OnDevice<P> {
    fn read(self) -> Result<P, typed_dims_xla::XlaError> {
        self.to_host()
    }
}

fn compare_call(pjrt: &Pjrt, call: &Call<'_>, other: &Call<'_>, has_derivative: bool, what: &str) {
    let program = record(|memory: &Vec<Elements>| call.floats(memory), &call.memory)
        .expect("the function can be recorded");
    compare(pjrt, &program, &other.memory, &call.floats(&other.memory), what);
    if !has_derivative {
        return;
    }
    let cotangent = drawn(call.floats(&call.memory).size(Flat), &mut Random(7));
    let gradient = |memory: &Vec<Elements>| gradient(call, &cotangent, memory);
    let program = record(gradient, &call.memory).expect("the gradient can be recorded");
    compare(pjrt, &program, &other.memory, &gradient(&other.memory), &format!("the gradient of {what}"));
}

pub fn check(operator: &Operator) {
    let name = operator.name;
    // Other tests check that operators that cannot be recorded are refused.
    let Some(slopes) = recordable(operator).filter(|_| refusal(operator).is_none()) else { return };
    let _tensors = AsTensors::new();
    // Lowering needs no plugin.
    let call = Call::draw(operator, slopes, &Sizes::usual(), Layout::Contiguous, &mut Random(5));
    let program = record(|memory: &Vec<Elements>| call.floats(memory), &call.memory)
        .expect("the function can be recorded");
    let program = program.to_engine().expect("the program can be given to an engine");
    if refusal_of_xla(operator).is_some() {
        let error = lower(&program, Options::default(), &[]).map(drop).expect_err("an error");
        let error = error.to_string();
        let is_explained = error.contains("StableHLO has no `") && error.contains("`: run it on the host");
        assert!(is_explained, "`{name}`: {error}");
        return;
    }
    lower(&program, Options::default(), &[]).unwrap_or_else(|error| panic!("`{name}`: {error}"));
    let Some(pjrt) = &*PLUGIN else { return };
    let has_derivative = derivative(operator) == Derivative::Yes;
    let compare_all = |sizes: &Sizes, layout: Layout, what: &str| {
        let call = Call::draw(operator, slopes, sizes, layout, &mut Random(5));
        let other = Call::draw(operator, slopes, sizes, layout, &mut Random(6));
        compare_call(pjrt, &call, &other, has_derivative, &format!("`{name}`, {what}"));
    };
    for layout in Layout::ALL {
        compare_all(&Sizes::usual(), layout, &format!("{layout:?}"));
    }
    for dim in free_dims(operator).into_iter().filter(|dim| can_be_empty(operator, dim)).take(1) {
        let sizes = Sizes::usual().with(dim, 0);
        compare_all(&sizes, Layout::Contiguous, &format!("no elements along {dim}"));
    }
}
