//! Gradients of random programs: reverse and forward mode, compared with finite differences and
//! with each other, in double precision. Recordings of random programs are compared with the
//! functions.
//!
//! `GRAD_CASES=100000 cargo test --release --test grad_random` runs more cases than usual;
//! `GRAD_FIRST=n` sets the first seed. A failing program is shortened and printed.

#[path = "support/random_programs.rs"]
mod random_programs;

use random_programs::{A, B, Case, Matrix, Pair, Random, Vector, assert_all_near, check_all, flat};
use std::cell::Cell;
use typed_dims::grad::{grad, hvp, jvp, vjp};
use typed_dims::prelude::*;
use typed_dims::program::{Program, record};
use typed_dims_kernels::trace::run_plainly;

impl Case {
    /// Compares derivatives with differences and with each other. Returns `false` if the values are
    /// too close to a kink for differences.
    fn check(&self) -> bool {
        let mut random = Random(self.seed ^ 0x5DEE_CE66);
        let (x, v) = random.pair(self.sizes.0, self.sizes.1);
        let (dx, dv) = random.pair(self.sizes.0, self.sizes.1);
        let margin = Cell::new(f64::INFINITY);
        let value = self.run((&x, &v), Some(&margin));
        if margin.get() < 1e-3 {
            return false;
        }
        let values = flat(&value);
        let (y, pull) = vjp(|inputs| self.run(inputs, None), (&x, &v));
        let (z, slope) = jvp(|inputs| self.run(inputs, None), (&x, &v), (&dx, &dv));
        for found in [&y, &z] {
            assert_all_near(&flat(found), &values, 1e-12, "the value");
        }
        let moved = |dx: &Matrix, dv: &Vector, by: f64| {
            flat(&self.run((&(&x + dx * by).eval(), &(&v + dv * by).eval()), None))
        };
        let difference = |dx: &Matrix, dv: &Vector| slopes(|by| moved(dx, dv, by));
        let slope = flat(&slope);
        assert_all_near(&slope, &difference(&dx, &dv), 1e-6, "forward mode");
        let cotangent = random.pair(value.0.size(A), value.0.size(B)).0;
        let other = from_vec(A.of(value.1.size(A)), random.floats(value.1.size(A)));
        let cotangent = (cotangent, other);
        let gradient = pull(&cotangent);
        let (forward, scale) = dot(&slope, &flat(&cotangent));
        let (reverse, own_scale) = dot(&flat(&gradient), &flat(&(dx.clone(), dv.clone())));
        assert!(
            (forward - reverse).abs() <= 1e-10 * (1.0 + scale + own_scale),
            "forward {forward}, reverse {reverse}"
        );
        // The gradient of a single element.
        let element = random.below(x.len());
        let unit = from_vec(
            (A.of(self.sizes.0), B.of(self.sizes.1)),
            (0..x.len()).map(|at| f64::from(u8::from(at == element))).collect(),
        );
        let expected = dot(&difference(&unit, &zeros(A.of(self.sizes.0))), &flat(&cotangent));
        let found = flat(&gradient)[element];
        assert!(
            (found - expected.0).abs() <= 1e-6 * (1.0 + expected.1),
            "element {element}: {found} instead of {}",
            expected.0
        );
        if self.seed.is_multiple_of(4) {
            self.check_second_order((&x, &v), (&dx, &dv), &cotangent);
        }
        true
    }

    /// Records the value and the gradient with one input, and calls both programs with another. The
    /// results must have the bits of the recorded steps run one by one, and must be close to the
    /// functions' own results. Returns `false` if a function cannot be recorded.
    fn check_recorded(&self) -> bool {
        let mut random = Random(self.seed ^ 0x5DEE_CE66);
        let [first, other] = [(); 2].map(|()| random.pair(self.sizes.0, self.sizes.1));
        let value = |inputs: (&Matrix, &Vector)| self.run(inputs, None);
        let gradient = |inputs: (&Matrix, &Vector)| self.gradient(inputs);
        fn compared<'i>(
            program: Result<Program<(&'i Matrix, &'i Vector), Pair>, DimError>,
            (x, v): (&'i Matrix, &'i Vector),
            expected: &Pair,
        ) -> bool {
            let Ok(program) = program else { return false };
            let call = |plainly| {
                run_plainly(plainly);
                let found = program.try_call((x, v));
                run_plainly(false);
                flat(&found.expect("the program runs"))
            };
            let (plain, found) = (call(true), call(false));
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&found), bits(&plain), "the prepared program");
            assert_eq!(bits(&found), bits(&call(false)), "the second call");
            // Inputs that are moved in are overwritten.
            let moved = program.call(((x * 1.0).eval(), (v * 1.0).eval()));
            assert_eq!(bits(&flat(&moved)), bits(&found), "inputs that are moved in");
            let mut out = moved;
            program.call_into((x, v), &mut out);
            assert_eq!(bits(&flat(&out)), bits(&found), "into an existing result");
            assert_all_near(&found, &flat(expected), 1e-12, "the function itself");
            true
        }
        let (first, other) = ((&first.0, &first.1), (&other.0, &other.1));
        let is_recorded = compared(record(value, first), other, &value(other));
        is_recorded & compared(record(gradient, first), other, &gradient(other))
    }

    /// The Hessian-vector product of a loss, compared with differences of gradients.
    fn check_second_order(&self, (x, v): (&Matrix, &Vector), (dx, dv): (&Matrix, &Vector), (u, w): &Pair) {
        let loss = |inputs: (&Matrix, &Vector)| -> Tensor<f64, ()> {
            let (matrix, vector) = self.run(inputs, None);
            ((matrix.sin() * u).sum((A, B)) + (vector.sin() * w).sum(A)).eval()
        };
        // A loss that does not depend on a parameter is an error, so linear terms are added.
        let with_linear = |inputs: (&Matrix, &Vector)| -> Tensor<f64, ()> {
            (loss(inputs) + inputs.0.sum((A, B)) + inputs.1.sum(A)).eval()
        };
        // Copies with their own memory, which become variables in place.
        let (mut own_x, mut own_v) = ((x * 1.0).eval(), (v * 1.0).eval());
        let copied = flat(&grad(with_linear, (x, v)));
        assert_eq!(flat(&grad(with_linear, (&mut own_x, &mut own_v))), copied, "variables in place");
        assert_eq!(flat(&(own_x, own_v)), flat(&(x.clone(), v.clone())), "variables in place, afterwards");
        let found = flat(&hvp(with_linear, (x, v), (dx, dv)));
        // `grad` refuses a loss that does not depend on a parameter, but a pull-back does not.
        let gradient = |by: f64| {
            let (x, v) = ((x + dx * by).eval(), (v + dv * by).eval());
            let (_, pull) = vjp(loss, (&x, &v));
            flat(&pull(&full((), 1.0)))
        };
        assert_all_near(&found, &slopes(gradient), 1e-5, "the second order");
    }
}

/// The step of the differences.
const STEP: f64 = 1e-5;

/// The slope at 0 of each value of a function, from differences of fourth order, because some
/// values change steeply.
fn slopes(of: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let [a, b, c, d] = [1.0, -1.0, 2.0, -2.0].map(|steps| of(steps * STEP));
    let slope = |at: usize| (8.0 * (a[at] - b[at]) - (c[at] - d[at])) / (12.0 * STEP);
    (0..a.len()).map(slope).collect()
}

/// The sum of products, and of their absolute values.
fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()))
}

#[test]
fn gradients_of_random_programs() {
    let (compared, count) = check_all(500, Case::new, Case::check);
    assert!(compared > count / 2, "only {compared} of {count} programs were far enough from kinks");
}

#[test]
fn recorded_random_programs() {
    let (compared, count) = check_all(300, Case::longer, Case::check_recorded);
    assert!(compared > count * 2 / 3, "only {compared} of {count} programs were recorded");
}
