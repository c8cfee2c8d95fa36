//! Records every operator, and its gradient if it has one, with some inputs, and calls both
//! programs with other inputs. The results must agree with those of the operator and of its
//! gradient. Operators that cannot be recorded must be refused.

use crate::Flat;
use crate::check::{Sizes, can_be_empty, free_dims};
use crate::derivatives::{Call, Derivative, Elements, derivative, drawn, values};
use crate::table::{Operator, Slopes};
use crate::value::{Layout, Random};
#[cfg(feature = "serde")]
use reload::reloaded;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::grad;
use typed_dims::prelude::*;
use typed_dims::program::{record, spec};

#[cfg(feature = "serde")]
#[path = "../support/reloaded.rs"]
mod reload;

/// Without `serde`, programs cannot be serialized. This converts the program to its saved form and
/// back.
#[cfg(not(feature = "serde"))]
fn reloaded<In: typed_dims::program::RecordInputs, Out: Parameters>(
    program: &typed_dims::program::Program<In, Out>,
    like: &Out,
) -> typed_dims::program::Program<In, Out> {
    program.to_saved().and_then(|saved| saved.restore(like)).expect("the program can be restored")
}

/// Operators that cannot be recorded, with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("map", "a closure"),
    ("zip_map", "a closure"),
    ("iota", "a closure; dims as values can be recorded"),
    ("scatter", "it assigns in place"),
    ("bincount", "the index of `scatter_add` depends on an input"),
    ("unique", "the size of the result depends on the data"),
    ("unique_counts", "the size of the result depends on the data"),
    ("unique_inverse", "the number of distinct elements depends on the data"),
    ("unique_consecutive", "the size of the result depends on the data"),
    ("unique_consecutive_counts", "the size of the result depends on the data"),
    ("nonzero", "the size of the result depends on the data"),
    ("exp_complex", "complex numbers"),
    ("eig", "complex numbers"),
];

/// Operators that can be recorded, but not lowered to StableHLO.
const NOT_LOWERED: &[&str] = &[
    "cond",
    "det",
    "eigh",
    "eigh_values",
    "expm",
    "inverse",
    "lstsq",
    "lu",
    "lu_tall",
    "lu_wide",
    "matrix_power",
    "matrix_power_negative",
    "matrix_rank",
    "pinv",
    "qr",
    "qr_upper",
    "qr_wide",
    "singular_values",
    "slogdet",
    "solve",
    "svd",
    "svd_wide",
];

/// The reason why an operator does not run on XLA, if it does not.
pub(crate) fn refusal_of_xla(operator: &Operator) -> Option<&'static str> {
    let is_lowered = !NOT_LOWERED.contains(&operator.name);
    refusal(operator).or((!is_lowered).then_some("StableHLO has no such operation"))
}

/// The reason why an operator cannot be recorded, if it cannot.
pub(crate) fn refusal(operator: &Operator) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| *name == operator.name).map(|(_, reason)| *reason)
}

#[test]
fn refused_operators_exist() {
    let families = crate::families();
    let not_lowered = if cfg!(feature = "linalg") { NOT_LOWERED } else { &[] };
    for name in REFUSED.iter().map(|(name, _)| name).chain(not_lowered) {
        let is_one = families.iter().flat_map(|family| &family.operators).any(|own| own.name == *name);
        assert!(is_one, "there is no operator `{name}`");
    }
}

/// Factors that are expressions are evaluated before the product, except in a recording from sizes.
#[test]
fn products_of_expressions_are_recorded_from_sizes() {
    use crate::{I, J, K};
    type Left = Tensor<f64, (I, J)>;
    type Right = Tensor<f64, (J, K)>;
    let sizes = ((I.of(3), J.of(4)), (J.of(4), K.of(2)));
    let product = |(x, y): (&Left, &Right)| x.exp().contract(y.sin() * 2.0, J);
    let program =
        record(product, (spec(sizes.0), spec(sizes.1))).expect("the function can be recorded from sizes");
    let inputs = (&randn(sizes.0, 1), &randn(sizes.1, 2));
    assert_eq!(program.call(inputs), product(inputs));
}

/// Products of halves widen their operands, except in a recording from sizes.
#[test]
#[cfg(feature = "half")]
fn products_of_halves_are_recorded_from_sizes() {
    use crate::{I, J, K};
    use half::f16;
    type Left = Tensor<f16, (I, J)>;
    type Right = Tensor<f16, (J, K)>;
    let sizes = ((I.of(3), J.of(4)), (J.of(4), K.of(2)));
    let product = |(x, y): (&Left, &Right)| x.contract(y, J);
    let program =
        record(product, (spec(sizes.0), spec(sizes.1))).expect("the function can be recorded from sizes");
    let inputs = (&randn(sizes.0, 1), &randn(sizes.1, 2));
    let same = record(product, inputs).expect("the function can be recorded");
    assert_eq!(program.call(inputs), same.call(inputs));
}

/// How to record an operator, unless it has complex numbers.
pub(crate) fn recordable(operator: &Operator) -> Option<&Slopes> {
    operator.slopes.as_ref().or(operator.whole.as_ref())
}

/// Panics unless recording a call is refused, with an error or a panic.
fn assert_refused(call: &Call<'_>, name: &str) {
    let recorded = || record(|memory: &Vec<Elements>| call.floats(memory), &call.memory).err();
    let message = match catch_unwind(AssertUnwindSafe(recorded)) {
        Ok(None) => panic!("`{name}` is recorded: remove it from `REFUSED`"),
        Ok(Some(error)) => error.to_string(),
        Err(payload) => payload.downcast_ref::<String>().cloned().unwrap_or_default(),
    };
    assert!(message.contains("cannot be recorded"), "{name}: {message}");
}

/// Operators whose programs round differently, because they sum products in another order.
const ROUNDED: &[&str] = &["cosine_similarity"];

std::thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether results of types other than `f64` are cast to it, so that a program returns them too.
pub fn is_recording() -> bool {
    RECORDING.get()
}

/// While this value exists, [`is_recording`] returns `true`.
pub(crate) struct AsTensors;

impl AsTensors {
    pub(crate) fn new() -> Self {
        RECORDING.set(true);
        AsTensors
    }
}

impl Drop for AsTensors {
    fn drop(&mut self) {
        RECORDING.set(false);
    }
}

#[track_caller]
fn assert_same(found: &Elements, expected: &Elements, exact: bool, what: &dyn Fn() -> String) {
    let (found, expected) = (values(found), values(expected));
    assert_eq!(found.len(), expected.len(), "the number of elements of {}", what());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let is_same = found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan());
        let is_near = !exact && (found - expected).abs() < 1e-12 * (1.0 + expected.abs());
        assert!(is_same || is_near, "element {at} of {}: {found} instead of {expected}", what());
    }
}

fn compare(call: &Call<'_>, other: &Call<'_>, exact: bool, has_derivative: bool, what: &dyn Fn() -> String) {
    let program = record(|memory: &Vec<Elements>| call.floats(memory), &call.memory)
        .expect("the function can be recorded");
    let from_sizes = record(|memory: &Vec<Elements>| call.floats(memory), spec(|| call.memory.clone()));
    let from_sizes = from_sizes.expect("the function can be recorded from sizes");
    let loaded = reloaded(&program, &call.floats(&call.memory));
    let from_sizes = reloaded(&from_sizes, &call.floats(&call.memory));
    for memory in [&other.memory, &call.memory] {
        let expected = call.floats(memory);
        let mut out = program.call(memory);
        assert_same(&out, &expected, exact, what);
        assert_same(&loaded.call(memory), &out, true, &|| format!("{}, loaded", what()));
        // The call may overwrite inputs that are moved in.
        let moved: Vec<Elements> = memory.iter().map(|x| (x * 1.0).eval()).collect();
        program.call_into(moved, &mut out);
        assert_same(&out, &expected, exact, what);
        assert_same(&from_sizes.call(memory), &expected, exact, &|| format!("{}, from sizes", what()));
    }
    if !has_derivative {
        return;
    }
    let cotangent = drawn(call.floats(&call.memory).size(Flat), &mut Random(7));
    let gradient = |memory: &Vec<Elements>| gradient(call, &cotangent, memory);
    let program = record(gradient, &call.memory).expect("the gradient can be recorded");
    let from_sizes =
        record(gradient, spec(|| call.memory.clone())).expect("the gradient can be recorded from sizes");
    let (found, expected) = (program.call(&other.memory), gradient(&other.memory));
    let same = from_sizes.call(&other.memory);
    let loaded = reloaded(&program, &found).call(&other.memory);
    for (loaded, found) in loaded.iter().zip(&found) {
        assert_same(loaded, found, true, &|| format!("the gradient of {}, loaded", what()));
    }
    for ((found, same), expected) in found.iter().zip(&same).zip(&expected) {
        assert_same(found, expected, false, &|| format!("the gradient of {}", what()));
        assert_same(same, found, true, &|| format!("the gradient of {}, from sizes", what()));
    }
}

/// The gradient of a loss: the sum of a call's result times a cotangent, plus the sum of all
/// inputs.
pub(crate) fn gradient(call: &Call<'_>, cotangent: &Elements, memory: &Vec<Elements>) -> Vec<Elements> {
    let loss = |memory: &Vec<Elements>| -> Tensor<f64, ()> {
        let linear = memory.iter().fold(zeros(()), |sum, x| (sum + x.sum(Flat)).eval());
        ((call.floats(memory) * cotangent).sum(Flat) + linear).eval()
    };
    grad(loss, memory)
}

pub fn check(operator: &Operator) {
    let name = operator.name;
    let Some(slopes) = recordable(operator) else {
        // Only entries with complex numbers have neither `slopes` nor `whole`.
        assert!(operator.cases.iter().all(|case| case.dtype.starts_with("Complex")), "{name} is not tested");
        assert!(refusal(operator).is_some(), "`{name}` is not in `REFUSED`");
        return;
    };
    let _tensors = AsTensors::new();
    if refusal(operator).is_some() {
        let call = Call::draw(operator, slopes, &Sizes::usual(), Layout::Contiguous, &mut Random(5));
        assert_refused(&call, name);
        return;
    }
    let exact = !ROUNDED.contains(&name);
    let has_derivative = derivative(operator) == Derivative::Yes;
    let compare_all = |sizes: &Sizes, layout: Layout, what: &str| {
        let call = Call::draw(operator, slopes, sizes, layout, &mut Random(5));
        let other = Call::draw(operator, slopes, sizes, layout, &mut Random(6));
        compare(&call, &other, exact, has_derivative, &|| format!("`{name}`, {what}"));
    };
    for layout in Layout::ALL {
        compare_all(&Sizes::usual(), layout, &format!("{layout:?}"));
    }
    for dim in free_dims(operator) {
        if can_be_empty(operator, dim) {
            compare_all(
                &Sizes::usual().with(dim, 0),
                Layout::Contiguous,
                &format!("no elements along {dim}"),
            );
        }
    }
}
