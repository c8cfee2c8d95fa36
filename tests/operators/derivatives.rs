//! Compares the derivatives of operators, in reverse and forward mode, with central differences, in
//! double precision.

use crate::Flat;
use crate::check::{Sizes, can_be_empty, dims_of, free_dims};
use crate::table::{Operator, Slopes};
use crate::value::{Argument, Domain, Dtype, Layout, Random};
use ndarray::{Array1, ArrayViewD, IxDyn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::{hvp, jvp, vjp};
use typed_dims::prelude::*;

/// Whether an operator has a derivative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Derivative {
    /// The operator has a derivative.
    Yes,
    /// The derivative is 0 wherever it exists: values are piecewise constant, or not floats. (Only
    /// `heaviside` has another derivative at a point: 1 with respect to `y` where `x` is 0.)
    Zero,
    /// The library refuses to differentiate the operator. The error names the operation.
    None { operation: &'static str, reason: &'static str },
}

/// Operators whose derivative is 0, though their first element type is a float.
const ZERO: &[&str] = &[
    // Piecewise constant.
    "floor",
    "ceil",
    "round",
    "trunc",
    "round_ties_even",
    "signum",
    "heaviside",
    // Booleans, positions and integers.
    "is_nan",
    "is_finite",
    "is_infinite",
    "signbit",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "argmax",
    "argmin",
    "argsort",
    "argsort_descending",
    "topk_positions",
    "categorical_of",
    "unique_counts",
    "unique_inverse",
    "unique_consecutive_counts",
    "cast",
    "iota",
    "one_hot",
    // Only read shapes, or count.
    "full_like",
    "norm_zero",
    "matrix_rank",
    "rand_like_of",
    "randn_like_of",
];

/// Operators without a derivative: the operation that the error names, and the reason.
const NONE: &[(&str, &str, &str)] = &[
    ("map", "map", "a closure; a [custom operator](custom-operators.md) can have a derivative"),
    ("zip_map", "zip_map", "a closure; a [custom operator](custom-operators.md) can have a derivative"),
    ("eig", "eig", "complex numbers"),
];

/// Operators on complex numbers, with their operations.
const COMPLEX: &[(&str, &str)] = &[("exp_complex", "exp")];

pub fn derivative(operator: &Operator) -> Derivative {
    let name = operator.name;
    if let Some((_, operation, reason)) = NONE.iter().find(|(own, ..)| *own == name) {
        return Derivative::None { operation, reason };
    }
    if let Some((_, operation)) = COMPLEX.iter().find(|(own, _)| *own == name) {
        return Derivative::None { operation, reason: "complex numbers" };
    }
    if ZERO.contains(&name) || operator.slopes.is_none() { Derivative::Zero } else { Derivative::Yes }
}

/// An argument: a variable, or a constant.
pub enum Given<'a> {
    /// The elements of a variable in memory, and the sizes to which axes with one element are
    /// broadcast.
    Variable(ArrayViewD<'a, f64>, &'a [usize]),
    /// An argument that the derivative is not taken with respect to.
    Constant(&'a Argument),
}

impl Given<'_> {
    /// The elements, which must have the type `T`.
    pub fn view<T: Dtype>(&self) -> ArrayViewD<'_, T> {
        match self {
            Given::Variable(elements, shape) => {
                T::of_f64(elements.broadcast(IxDyn(shape)).expect("each axis has its size or 1"))
            }
            Given::Constant(argument) => argument.view(),
        }
    }
}

/// The elements of a result, in the order of its dims, or of a variable, in memory order.
pub type Elements = Tensor<f64, (Flat,)>;

/// The result of a call.
pub enum Outcome {
    /// Floats, which can be differentiated.
    Floats(Elements),
    /// Elements of another type.
    Others,
}

pub trait IntoOutcome {
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Elements {
    fn into_outcome(self) -> Outcome {
        Outcome::Floats(self)
    }
}

macro_rules! others {
    ($($t:ty)*) => {$(
        impl IntoOutcome for Tensor<$t, (Flat,)> {
            fn into_outcome(self) -> Outcome {
                if crate::recorded::is_recording() {
                    return Outcome::Floats(self.cast::<f64>().eval());
                }
                // `order` panics if the elements are traced.
                let _ = self.order(Flat);
                Outcome::Others
            }
        }
    )*};
}

others! { bool i32 i64 isize usize f32 }

/// The variables and constants of a call.
pub struct Call<'a> {
    slopes: &'a Slopes,
    /// The elements of the variables, in memory order.
    pub memory: Vec<Elements>,
    constants: Vec<Argument>,
    shapes: Vec<Vec<usize>>,
    layouts: Vec<Layout>,
}

impl<'a> Call<'a> {
    pub fn draw(
        operator: &Operator,
        slopes: &'a Slopes,
        sizes: &Sizes,
        layout: Layout,
        random: &mut Random,
    ) -> Self {
        let mut call = Call {
            slopes,
            memory: Vec::new(),
            constants: Vec::new(),
            shapes: Vec::new(),
            layouts: Vec::new(),
        };
        for (at, parameter) in operator.parameters.iter().enumerate() {
            let shape: Vec<usize> =
                dims_of(operator, usize::from(slopes.further), at).iter().map(|dim| sizes.of(dim)).collect();
            let limit = if let Domain::Below(dim) = parameter.domain { sizes.of(dim) } else { 0 };
            if slopes.cast {
                let drawn = slopes.draw[at](&shape, Layout::Contiguous, random, parameter.domain, limit);
                let floats = drawn.elements().as_floats();
                call.memory.push(from_vec(Flat.of(floats.len()), floats));
                call.shapes.push(shape);
                call.layouts.push(Layout::Contiguous);
                continue;
            }
            let layout = Layout::ALL[(layout as usize + at) % Layout::ALL.len()];
            let domain = match parameter.domain {
                // Operators can have kinks where elements are equal.
                Domain::Ties => Domain::Any,
                // The slope of `acosh` at 1 is infinite.
                Domain::Above => Domain::FarAbove,
                domain => domain,
            };
            if slopes.floats[at] {
                let len = layout.sizes_in_memory(&shape).iter().product();
                let data = (0..len).map(|_| f64::draw(random, domain, limit)).collect();
                call.memory.push(from_vec(Flat.of(len), data));
            } else {
                call.constants.push(slopes.draw[at](&shape, layout, random, domain, limit));
            }
            call.shapes.push(shape);
            call.layouts.push(layout);
        }
        call
    }

    fn outcome(&self, memory: &[Elements]) -> Outcome {
        let (mut memory, mut constants) = (memory.iter(), self.constants.iter());
        let given: Vec<Given<'_>> = (0..self.shapes.len())
            .map(|at| {
                if !self.slopes.floats[at] {
                    return Given::Constant(constants.next().expect("a constant is left"));
                }
                let (shape, layout) = (&self.shapes[at], self.layouts[at]);
                let own = layout.sizes_in_memory(shape);
                let all = ArrayViewD::from_shape(own, memory.next().expect("a variable is left").memory())
                    .expect("the memory has all elements");
                Given::Variable(layout.apply(all), shape)
            })
            .collect();
        (self.slopes.run)(&given)
    }

    /// The floats that the call returns, or no elements if it returns another type.
    pub fn floats(&self, memory: &[Elements]) -> Elements {
        match self.outcome(memory) {
            Outcome::Floats(elements) => elements,
            Outcome::Others => zeros(Flat.of(0)),
        }
    }

    /// The variables, moved in a direction.
    fn moved(&self, direction: &[Elements], by: f64) -> Vec<Elements> {
        self.memory.iter().zip(direction).map(|(x, v)| (x + v * by).eval()).collect()
    }

    fn direction(&self, random: &mut Random) -> Vec<Elements> {
        self.memory.iter().map(|x| drawn(x.size(Flat), random)).collect()
    }
}

pub fn drawn(len: usize, random: &mut Random) -> Elements {
    from_vec(Flat.of(len), (0..len).map(|_| f64::draw(random, Domain::Any, 0)).collect())
}

pub fn values(elements: &Elements) -> Array1<f64> {
    elements.view().order(Flat)
}

fn dot(a: &[Elements], b: &[Elements]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (&values(a) * &values(b)).sum()).sum()
}

#[track_caller]
fn assert_near(found: f64, expected: f64, scale: f64, what: &dyn Fn() -> String) {
    let is_near =
        (found - expected).abs() < 1e-6 * (scale + expected.abs()) || (found.is_nan() && expected.is_nan());
    assert!(is_near, "{}: {found} instead of {expected}", what());
}

/// The step of the differences.
const STEP: f64 = 1e-5;

/// Compares reverse and forward mode with differences, and with each other.
///
/// `is_zero` says whether the gradient must be 0, or must not be. `None` allows both, because there
/// may be too few elements to tell.
fn compare(call: &Call<'_>, is_zero: Option<bool>, random: &mut Random, context: &dyn Fn() -> String) {
    let value = call.floats(&call.memory);
    let len = value.size(Flat);
    let (y, pull) = vjp(|memory| call.floats(memory), &call.memory);
    assert_eq!(y.size(Flat), len, "{}", context());
    for (found, expected) in values(&y).iter().zip(&values(&value)) {
        let is_same = found == expected || (found.is_nan() && expected.is_nan());
        assert!(
            is_same || (found - expected).abs() < 1e-12 * (1.0 + expected.abs()),
            "the value of {} is {found} instead of {expected}",
            context()
        );
    }
    let cotangent = drawn(len, random);
    let gradient = pull(&cotangent);
    let direction = call.direction(random);
    let (_, slope) = jvp(|memory| call.floats(memory), &call.memory, &direction);
    let (after, before) = (call.moved(&direction, STEP), call.moved(&direction, -STEP));
    let difference = (call.floats(&after) - call.floats(&before)) * (0.5 / STEP);
    let (slope, difference, value) = (values(&slope), difference.order(Flat), values(&value));
    for (at, (&found, &expected)) in slope.iter().zip(&difference).enumerate() {
        // Some results, such as the mean of no elements, are not finite.
        if !value[at].is_finite() {
            continue;
        }
        assert_near(found, expected, 1.0, &|| format!("forward, element {at} of {}", context()));
    }
    let is_0 = |elements: &[Elements]| elements.iter().all(|own| values(own).iter().all(|&x| x == 0.0));
    match is_zero {
        Some(true) => {
            assert!(is_0(&gradient) && slope.iter().all(|&x| x == 0.0), "{} is not constant", context());
        }
        Some(false) => assert!(!is_0(&gradient), "{} has the derivative 0, but is not in `ZERO`", context()),
        None => {}
    }
    let (forward, reverse) = ((&slope * &values(&cotangent)).sum(), dot(&gradient, &direction));
    let scale = 1e-6 + (&slope * &values(&cotangent)).mapv(f64::abs).sum();
    assert_near(reverse, forward, scale, &|| format!("reverse compared with forward mode of {}", context()));
    // Single elements, including those that are not read.
    for (number, x) in call.memory.iter().enumerate().filter(|(_, x)| !x.is_empty()) {
        for _ in 0..2 {
            let element = random.next() as usize % x.len();
            let unit = |own: usize, len: usize| {
                from_vec(
                    Flat.of(len),
                    (0..len).map(|at| f64::from(u8::from(own == number && at == element))).collect(),
                )
            };
            let unit: Vec<Elements> =
                call.memory.iter().enumerate().map(|(own, x)| unit(own, x.len())).collect();
            let (after, before) = (call.moved(&unit, STEP), call.moved(&unit, -STEP));
            let difference = (values(&call.floats(&after)) - values(&call.floats(&before))) * (0.5 / STEP);
            let (expected, found) = ((&difference * &values(&cotangent)).sum(), dot(&gradient, &unit));
            let scale = 1.0 + (&difference * &values(&cotangent)).mapv(f64::abs).sum();
            assert_near(found, expected, scale, &|| {
                format!("reverse, element {element} of argument {number} of {}", context())
            });
        }
    }
}

/// Compares the Hessian-vector product of a loss with differences of gradients.
fn compare_second_order(call: &Call<'_>, random: &mut Random, context: &dyn Fn() -> String) {
    let cotangent = drawn(call.floats(&call.memory).size(Flat), random);
    let direction = call.direction(random);
    // Without the linear term, a loss that does not depend on a variable would be an error.
    let loss = |memory: &Vec<Elements>| -> Tensor<f64, ()> {
        let linear = memory.iter().fold(zeros(()), |sum, x| (sum + x.sum(Flat)).eval());
        ((call.floats(memory).sin() * &cotangent).sum(Flat) + linear).eval()
    };
    let found = hvp(loss, &call.memory, &direction);
    let gradient = |memory: Vec<Elements>| {
        let (y, pull) = vjp(|memory| call.floats(memory), &memory);
        pull(&(y.cos() * &cotangent).eval())
    };
    let (after, before) = (gradient(call.moved(&direction, STEP)), gradient(call.moved(&direction, -STEP)));
    for ((found, after), before) in found.iter().zip(&after).zip(&before) {
        let expected = (values(after) - values(before)) * (0.5 / STEP);
        let scale = 1.0 + expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        for (at, (&found, &expected)) in values(found).iter().zip(&expected).enumerate() {
            assert_near(found, expected, 10.0 * scale, &|| {
                format!("the second order, element {at} of {}", context())
            });
        }
    }
}

/// The panic message of the derivative, or `None` if there is no panic.
fn error(call: &Call<'_>) -> Option<String> {
    let run = || vjp(|memory| call.floats(memory), &call.memory).0;
    let payload = catch_unwind(AssertUnwindSafe(run)).err()?;
    Some(payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic without a text".into()))
}

/// Tests that the derivative of an operator is correct and agrees with the lists.
pub fn check(operator: &Operator) {
    let Some(slopes) = &operator.slopes else { return };
    let name = operator.name;
    let derivative = derivative(operator);
    let mut random = Random(3);
    if let Derivative::None { operation, .. } = derivative {
        let call = Call::draw(operator, slopes, &Sizes::usual(), Layout::Contiguous, &mut random);
        let error = error(&call).unwrap_or_else(|| panic!("`{name}` has a derivative, contrary to the list"));
        let expected = format!("no gradient can be taken through `{operation}");
        assert!(error.contains(&expected), "{name}: {error}");
        return;
    }
    let is_zero = derivative == Derivative::Zero;
    let mut compare_all = |sizes: &Sizes, layout: Layout, what: &str, is_zero: Option<bool>| {
        let call = Call::draw(operator, slopes, sizes, layout, &mut random);
        let context = || format!("`{name}`, {what}");
        compare(&call, is_zero, &mut random, &context);
        if layout == Layout::Sliced {
            compare_second_order(&call, &mut random, &context);
        }
    };
    for layout in Layout::ALL {
        compare_all(&Sizes::usual(), layout, &format!("{layout:?}"), Some(is_zero));
    }
    for dim in free_dims(operator).into_iter().chain(["Outer", "Inner"]) {
        if can_be_empty(operator, dim) {
            compare_all(
                &Sizes::usual().with(dim, 0),
                Layout::Contiguous,
                &format!("no elements along {dim}"),
                is_zero.then_some(true),
            );
        }
        let what = format!("one element along {dim}");
        compare_all(&Sizes::usual().with(dim, 1), Layout::Contiguous, &what, is_zero.then_some(true));
    }
}

#[test]
fn lists_name_operators() {
    let families = crate::families();
    let is_one =
        |name: &str| families.iter().flat_map(|family| &family.operators).any(|own| own.name == name);
    let none = NONE.iter().map(|(name, ..)| name);
    for name in ZERO.iter().chain(none).chain(COMPLEX.iter().map(|(name, _)| name)) {
        assert!(is_one(name), "there is no operator `{name}`");
    }
}
