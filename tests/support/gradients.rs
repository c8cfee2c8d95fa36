//! Compares derivatives with central differences. Several tests of gradients include this file.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(feature = "pjrt")]
use std::sync::LazyLock;
use typed_dims::grad::{jvp, vjp};
use typed_dims::prelude::*;
use typed_dims::program::record;

/// Half the distance between the two points of a difference.
const STEP: f64 = 1e-5;

/// Allowed error of a derivative, relative to the greatest of 1 and the magnitudes of both numbers.
const TOLERANCE: f64 = 1e-6;

/// Compares derivatives of a function of `f64` tensors with central differences. The derivatives
/// are those of `jvp` and `vjp`, and Hessian-vector products, both forward over reverse and reverse
/// over reverse. Also checks the programs of the function and its gradient, if these can be
/// recorded.
///
/// The function must be smooth around `at`: no maxima with ties, no `abs` near 0. Pass several
/// tensors as a tuple or as a struct of parameters.
#[track_caller]
pub fn check<P: Parameters, Y: Parameters>(f: impl Fn(&P) -> Y, at: &P) {
    checked(&f, at);
}

/// Separate from `check`, so that it is compiled once for each pair of types, not for each
/// function.
#[track_caller]
fn checked<P: Parameters, Y: Parameters>(f: &dyn Fn(&P) -> Y, at: &P) {
    let value = f(at);
    recorded(f, at);
    for seed in 0..2 {
        let (v, w) = (noise(at, 10 + seed), noise(at, 20 + seed));
        let u = noise(&value, 30 + seed);
        let expected = difference(f, at, &v);
        let (seen, slope) = jvp(|x| f(x), at, &v);
        assert_close("the value while it is traced", &seen, &value);
        assert_close("jvp", &slope, &expected);
        let (seen, pull) = vjp(|x| f(x), at);
        assert_close("the value while it is traced", &seen, &value);
        assert_near("vjp", dot(&pull(&u), &v), dot(&u, &expected));
        // The second derivative of `<u, f>`, times a direction.
        let gradient = |x: &P| vjp(|x| f(x), x).1(&u);
        let expected = difference(&gradient, at, &v);
        assert_close("forward over reverse", &jvp(gradient, at, &v).1, &expected);
        let (_, pull) = vjp(gradient, at);
        assert_near("reverse over reverse", dot(&pull(&w), &v), dot(&w, &expected));
    }
}

/// Records a function and its gradient with one input, calls both programs with other inputs, and
/// compares the results with those of the functions. Returns `false` if the function or its
/// gradient cannot be recorded.
#[track_caller]
pub fn recorded<P: Parameters, Y: Parameters>(f: &dyn Fn(&P) -> Y, at: &P) -> bool {
    let others = [60, 61].map(|seed| at.zip_elements(&noise(at, seed), |x: f64, v| x + 0.01 * v));
    let cotangent = noise(&f(at), 62);
    let gradient = |x: &P| vjp(|x| f(x), x).1(&cotangent);
    agrees(f, at, &others) && agrees(&gradient, at, &others)
}

/// Records a function with `at`, and compares the program with the function for the other inputs.
/// Returns `false` if the function cannot be recorded.
#[track_caller]
fn agrees<P: Parameters, Y: Parameters>(f: &dyn Fn(&P) -> Y, at: &P, others: &[P]) -> bool {
    let refusal = match catch_unwind(AssertUnwindSafe(|| record(|x: &P| f(x), at))) {
        Ok(Ok(program)) => {
            for other in others {
                for (found, expected) in pairs(&program.call(other), &f(other)) {
                    let near = (found - expected).abs() < 1e-12 * expected.abs().max(1.0);
                    assert!(near, "a program yields {found} instead of {expected}");
                }
            }
            #[cfg(feature = "pjrt")]
            agrees_on_xla(f, at, others);
            return true;
        }
        Ok(Err(error)) => error.to_string(),
        Err(payload) => payload.downcast_ref::<String>().expect("the message is text").clone(),
    };
    assert!(refusal.contains("cannot be recorded"), "{refusal}");
    false
}

/// Compares a function on XLA with the function itself. The program returns a list, so that its
/// result is one `OnDevice` even if the function returns a tuple.
#[cfg(feature = "pjrt")]
#[track_caller]
fn agrees_on_xla<P: Parameters, Y: Parameters>(f: &dyn Fn(&P) -> Y, at: &P, others: &[P]) {
    static PLUGIN: LazyLock<Option<typed_dims_xla::Pjrt>> = LazyLock::new(|| xla_tests::plugin(1));
    let Some(pjrt) = &*PLUGIN else { return };
    let program = record(|x: &P| vec![f(x)], at).expect("the function can be recorded");
    let run = pjrt.compile(&program).unwrap_or_else(|error| panic!("{error}"));
    for other in others {
        let found = xla_tests::read(&run.call(other).unwrap_or_else(|error| panic!("{error}")));
        xla_tests::assert_near(&found, &vec![f(other)], 1e-10, "on XLA");
    }
}

/// Like [`check`], for `f`, and for `f` after a nonlinear function: if `f` is linear, only the
/// latter has second derivatives other than zero.
#[track_caller]
pub fn check_curved<S: Dims, Y: Parameters>(f: impl Fn(&Named<f64, S>) -> Y, at: &Named<f64, S>) {
    check(|x| f(x), at);
    check(|x: &Named<f64, S>| f(&x.sin().eval()), at);
}

/// Checks that applying the function to a traced input panics with the name of the operation.
#[track_caller]
pub fn assert_lost<P: Parameters, Y: Parameters>(operation: &str, f: impl Fn(&P) -> Y, at: &P) {
    lost(operation, &f, at);
}

#[track_caller]
fn lost<P: Parameters, Y: Parameters>(operation: &str, f: &dyn Fn(&P) -> Y, at: &P) {
    let result = catch_unwind(AssertUnwindSafe(|| vjp(|x| f(x), at).0));
    let Err(payload) = result else { panic!("`{operation}` loses the gradient without an error") };
    let text = payload.downcast_ref::<String>().expect("the message is text");
    let expected = format!("no gradient can be taken through `{operation}`");
    assert!(text.contains(&expected), "{text}\ndoes not contain\n{expected}");
}

/// Numbers between -1 and 1, with the sizes of a value.
pub fn noise<P: Parameters>(like: &P, seed: u64) -> P {
    let at = Cell::new(seed << 32);
    like.map_elements(|_: f64| {
        at.set(at.get() + 1);
        let z = at.get().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    })
}

/// The directional derivative, as a central difference.
pub fn difference<P: Parameters, Y: Parameters>(f: &dyn Fn(&P) -> Y, at: &P, direction: &P) -> Y {
    let moved = |by: f64| f(&at.zip_elements(direction, |x: f64, v| x + by * v));
    moved(STEP).zip_elements(&moved(-STEP), |a: f64, b| (a - b) / (2.0 * STEP))
}

/// The elements of two values, in pairs.
pub fn pairs<P: Parameters>(a: &P, b: &P) -> Vec<(f64, f64)> {
    let all = RefCell::new(Vec::new());
    a.zip_elements(b, |a: f64, b| {
        all.borrow_mut().push((a, b));
        a
    });
    all.into_inner()
}

fn dot<P: Parameters>(a: &P, b: &P) -> f64 {
    pairs(a, b).into_iter().map(|(a, b)| a * b).sum()
}

/// Compares two values element by element.
#[track_caller]
pub fn assert_close<P: Parameters>(what: &str, found: &P, expected: &P) {
    pairs(found, expected).into_iter().for_each(|(found, expected)| assert_near(what, found, expected));
}

#[track_caller]
fn assert_near(what: &str, found: f64, expected: f64) {
    let scale = found.abs().max(expected.abs()).max(1.0);
    let near = (found - expected).abs() < TOLERANCE * scale;
    assert!(near, "{what}: {found} instead of {expected}");
}
