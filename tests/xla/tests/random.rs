//! Random programs and their gradients on XLA, compared with the library's own results.
//!
//! `GRAD_CASES=10000 cargo test --release -p xla-tests --test random` runs more cases than usual.

#![allow(missing_docs)]

#[path = "../../support/random_programs.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod random_programs;

use random_programs::{Case, Matrix, Pair, Random, Vector, check_all};
use std::cell::Cell;
use std::sync::LazyLock;
use typed_dims::program::record;
use typed_dims_xla::Pjrt;
use xla_tests::{assert_near, plugin};

static PLUGIN: LazyLock<Option<Pjrt>> = LazyLock::new(|| plugin(1));

/// If a value is closer to a kink than this, rounding can decide which side is taken.
const MARGIN: f64 = 1e-6;

/// The tolerance of [`assert_near`].
const TOLERANCE: f64 = 1e-9;

/// Compiles the value and the gradient for one input, and calls both with another input. Returns
/// `false` if a function cannot be recorded, or if the other input is too close to a kink.
fn check(case: &Case) -> bool {
    let pjrt = PLUGIN.as_ref().expect("there is a plugin");
    let mut random = Random(case.seed ^ 0x5DEE_CE66);
    let [first, other] = [(); 2].map(|()| random.pair(case.sizes.0, case.sizes.1));
    let (first, other) = ((&first.0, &first.1), (&other.0, &other.1));
    let margin = Cell::new(f64::INFINITY);
    case.run(other, Some(&margin));
    if margin.get() < MARGIN {
        return false;
    }
    type Function<'f> = &'f dyn Fn((&Matrix, &Vector)) -> Pair;
    let value: Function<'_> = &|inputs| case.run(inputs, None);
    let gradient: Function<'_> = &|inputs| case.gradient(inputs);
    for (what, function) in [("the value", value), ("the gradient", gradient)] {
        let Ok(program) = record(|inputs: (&Matrix, &Vector)| function(inputs), first) else { return false };
        let run = pjrt.compile(&program).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (matrix, vector) = run.call(other).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = (matrix.to_host(), vector.to_host());
        let found = (found.0.expect("the matrix can be read"), found.1.expect("the vector can be read"));
        assert_near(&found, &function(other), TOLERANCE, what);
    }
    true
}

#[test]
fn random_programs() {
    if PLUGIN.is_none() {
        return;
    }
    let (compared, count) = check_all(25, Case::longer, check);
    println!("{compared} of {count} random programs were compared");
    assert!(compared > count * 3 / 5, "only {compared} of {count} random programs were compared");
}
