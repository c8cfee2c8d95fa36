//! Values, gradients, directional derivatives and second derivatives of whole functions, compared
//! with those that JAX computes in double precision.
//!
//! `golden.json` has the output of `reference.py`. If Python has JAX, a second test runs the script
//! again; set `PYTHON` to choose an interpreter.

use serde_json::Value;
use std::process::Command;
use typed_dims::grad::{hvp, jvp, vjp};
use typed_dims::prelude::*;

#[path = "../support/gradients.rs"]
#[allow(dead_code, reason = "derivatives are compared with those of another system")]
mod gradients;

mod cases;
mod special;

/// The allowed difference from JAX, relative to the greatest of 1 and the absolute values of both
/// numbers.
const TOLERANCE: f64 = 1e-10;

/// The results of JAX for all cases.
struct Reference(Value);

impl Reference {
    fn golden() -> Self {
        Reference(serde_json::from_str(include_str!("golden.json")).unwrap())
    }

    /// Runs a script to recompute the numbers, if Python has JAX.
    fn computed(script: &str) -> Option<Self> {
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
        let run = |args: &[&str]| Command::new(&python).args(args).output();
        if !run(&["-c", "import jax"]).is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: {python} has no jax");
            return None;
        }
        let script = format!("{}/tests/agreement/{script}", env!("CARGO_MANIFEST_DIR"));
        let output = run(&[&script]).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Reference(serde_json::from_slice(&output.stdout).unwrap()))
    }

    fn numbers(&self, case: &str, what: &str) -> Vec<f64> {
        let all = self.0[case][what].as_array().unwrap_or_else(|| panic!("{case} has no {what}"));
        all.iter().map(|number| number.as_f64().unwrap()).collect()
    }

    /// Compares a function with the case of this name. `inputs` makes the inputs from their
    /// elements, in the axis order of `reference.py`, and `output` makes the output.
    #[track_caller]
    fn check<P: Parameters, Y: Parameters>(
        &self,
        case: &str,
        inputs: impl Fn(&mut dyn FnMut(usize) -> Vec<f64>) -> P,
        output: impl Fn(Vec<f64>) -> Y,
        f: impl Fn(&P) -> Y,
    ) {
        let [x, v] = [1, 11].map(|first| {
            let mut seed = first;
            inputs(&mut |len| {
                seed += 1;
                numbers(len, seed - 1)
            })
        });
        let value = self.numbers(case, "value");
        let c = output(numbers(value.len(), 99));
        let expected_inputs = |what| {
            let (all, mut start) = (self.numbers(case, what), 0);
            let made = inputs(&mut |len| {
                start += len;
                all[start - len..start].to_vec()
            });
            assert_eq!(start, all.len(), "{case}: the length of the {what}");
            made
        };
        let (found, slope) = jvp(&f, &x, &v);
        assert_near(case, "value", &found, &output(value.clone()));
        assert_near(case, "slope", &slope, &output(self.numbers(case, "slope")));
        let (found, pull) = vjp(&f, &x);
        assert_near(case, "value", &found, &output(value));
        assert_near(case, "gradient", &pull(&c), &expected_inputs("gradient"));
        let gradient = |x: &P| vjp(&f, x).1(&c);
        assert_near(case, "product", &jvp(gradient, &x, &v).1, &expected_inputs("product"));
    }
}

#[track_caller]
fn assert_near<P: Parameters>(case: &str, what: &str, found: &P, expected: &P) {
    for (found, expected) in gradients::pairs(found, expected) {
        let scale = found.abs().max(expected.abs()).max(1.0);
        let near = (found - expected).abs() < TOLERANCE * scale;
        assert!(near, "{case}: the {what} is {found} instead of {expected}");
    }
}

/// The same formula as `numbers` in `reference.py`.
fn numbers(len: usize, seed: usize) -> Vec<f64> {
    (1..=len).map(|n| ((n * 7919 + seed * 104_729) % 2003) as f64 / 1001.5 - 1.0).collect()
}

#[test]
fn golden_numbers() {
    let reference = Reference::golden();
    assert_eq!(cases::check(&reference), reference.0.as_object().unwrap().len(), "a case is not compared");
}

#[test]
fn numbers_of_jax() {
    if let Some(reference) = Reference::computed("reference.py") {
        cases::check(&reference);
    }
}
