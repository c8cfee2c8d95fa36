//! Functions at special points, up to the third derivative, compared with JAX. `special.json` has
//! the output of `special.py`.
//!
//! `reason` and `DIFFERENCES` give the reason for each intended difference. The guide's page on
//! special values lists the main ones. `special_own.json` has the differing numbers of this
//! library; `UPDATE=1` rewrites it.

use serde_json::Value;
use std::collections::BTreeMap;
use typed_dims::grad::vjp;
use typed_dims::prelude::*;

dims! { struct I; struct O; struct F; struct Key; }

type Line = Tensor<f64, (I,)>;
type Output = Tensor<f64, (O,)>;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// The numbers, pairs and lines of `special.py`.
const POINTS: [f64; 25] = [
    0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 1e-5, -1e-5, 20.0, -20.0, 800.0, -800.0,
    1e-310, -1e-310, 1e300, -1e300, INF, -INF, NAN,
];
const PAIRS: [f64; 10] = [0.0, -0.0, 1.0, -2.0, 0.5, 1e-200, 1e200, INF, -INF, NAN];
const LINES: [[f64; 4]; 11] = [
    [0.3, -1.2, 2.0, 0.7],
    [0.0, 0.0, 0.0, 0.0],
    [0.0, -0.0, 1.0, -1.0],
    [2.0, 2.0, -1.0, 2.0],
    [1e-310, 1.0, -1e-310, 0.5],
    [1e3, -1e3, 0.5, 1e3],
    [INF, 1.0, 2.0, 0.5],
    [-INF, 1.0, 2.0, 0.5],
    [-INF, -INF, -INF, -INF],
    [INF, -INF, 1.0, INF],
    [0.5, NAN, 2.0, 1.0],
];
const WEIGHTS: [f64; 4] = [0.7, -0.4, 1.1, 0.6];
const DIRECTION: [f64; 4] = [0.2, 0.9, -0.5, 0.3];

fn of(data: &[f64]) -> Line {
    from_vec(I.of(data.len()), data.to_vec())
}

fn one(f: fn(&Line) -> Line) -> fn(&Line) -> Line {
    f
}

fn ones_of() -> Vec<(&'static str, fn(&Line) -> Line)> {
    macro_rules! methods {
        ($($name:ident)*) => { vec![$((stringify!($name), one(|x| x.view().$name().eval()))),*] };
    }
    let mut all = methods! {
        abs exp exp_m1 exp2 ln ln_1p log2 log10 sqrt cbrt rsqrt recip square sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid
        relu relu6 gelu gelu_tanh silu softplus ln_sigmoid ln_gamma logit selu mish hard_sigmoid hard_swish softsign tanh_shrink sinc to_degrees
        to_radians floor round round_ties_even fract signum
    };
    all.extend([
        ("neg", one(|x| (-x).eval())),
        ("powi", one(|x| x.view().powi(3).eval())),
        ("clamp", one(|x| x.view().clamp(-1.0, 2.5).eval())),
        ("leaky_relu", one(|x| x.view().leaky_relu(0.25).eval())),
        ("elu", one(|x| x.view().elu(0.5).eval())),
        ("celu", one(|x| x.view().celu(0.5).eval())),
        ("hard_shrink", one(|x| x.view().hard_shrink(0.5).eval())),
        ("soft_shrink", one(|x| x.view().soft_shrink(0.5).eval())),
        ("nan_to", one(|x| x.view().nan_to(7.0).eval())),
    ]);
    all
}

type OfTwo = fn(&Line, &Line) -> Line;

fn two(f: OfTwo) -> OfTwo {
    f
}

fn twos() -> Vec<(&'static str, OfTwo)> {
    macro_rules! methods {
        ($($name:ident)*) => { vec![$((stringify!($name), two(|a, b| a.view().$name(b).eval()))),*] };
    }
    let mut all = methods! {
        maximum minimum fmax fmin powf atan2 hypot copysign logaddexp xlogy mse_loss l1_loss bce_with_logits_loss
    };
    all.extend([
        ("add", two(|a, b| (a + b).eval())),
        ("sub", two(|a, b| (a - b).eval())),
        ("mul", two(|a, b| (a * b).eval())),
        ("div", two(|a, b| (a / b).eval())),
        ("rem", two(|a, b| (a % b).eval())),
        ("huber_loss", two(|a, b| a.view().huber_loss(b, 1.5).eval())),
        ("lerp", two(|a, b| a.view().lerp(b, 0.25).eval())),
    ]);
    all
}

fn along(x: Line) -> Output {
    x.rename(I, O).eval()
}

fn number(x: Tensor<f64, ()>) -> Output {
    x.expand(O.of(1)).eval()
}

type OfLine = fn(&Line) -> Output;

fn line(f: OfLine) -> OfLine {
    f
}

fn weights() -> Line {
    of(&WEIGHTS)
}

fn lines() -> Vec<(&'static str, OfLine)> {
    vec![
        ("sum", line(|x| number(x.sum(I)))),
        ("mean", line(|x| number(x.mean(I)))),
        ("prod", line(|x| number(x.prod(I)))),
        ("max", line(|x| number(x.max(I)))),
        ("min", line(|x| number(x.min(I)))),
        ("var", line(|x| number(x.var(I)))),
        ("std", line(|x| number(x.std(I)))),
        ("logsumexp", line(|x| number(x.logsumexp(I)))),
        ("norm", line(|x| number(x.norm(I)))),
        ("norm_1", line(|x| number(x.norm_p(I, 1.0)))),
        ("norm_inf", line(|x| number(x.norm_p(I, INF)))),
        ("softmax", line(|x| along(x.view().softmax(I)))),
        ("log_softmax", line(|x| along(x.view().log_softmax(I)))),
        ("cumsum", line(|x| along(x.view().cumsum(I)))),
        ("cumprod", line(|x| along(x.view().cumprod(I)))),
        ("cummax", line(|x| along(x.view().cummax(I)))),
        ("logcumsumexp", line(|x| along(x.view().logcumsumexp(I)))),
        ("sort", line(|x| along(x.view().sort(I)))),
        ("reversed", line(|x| along(x.view().flip(I).eval()))),
        ("layer_norm", line(|x| along(x.view().layer_norm(I, 1e-5)))),
        ("rms_norm", line(|x| along(x.view().rms_norm(I, 1e-5)))),
        ("cross_entropy", line(|x| number(x.cross_entropy(I, from_vec((), vec![2_usize])).eval()))),
        ("attention", line(|x| attended(x, false))),
        ("causal_attention", line(|x| attended(x, true))),
        ("cosine", line(|x| number(x.cosine_similarity(&weights(), I, 1e-300)))),
        (
            "distances",
            line(|x| {
                let difference = x - x.rename(I, Key);
                along(((difference.square() + 1.0).sum(Key)).sqrt().eval())
            }),
        ),
        ("guarded_sqrt", line(|x| along(x.gt(0.0).select(x.view().sqrt(), 0.0).eval()))),
        ("guarded_ln", line(|x| along(x.gt(0.0).select(x.view().ln(), x).eval()))),
        ("guarded_div", line(|x| along(x.eq(0.0).select(1.0, x.view().sin() / x).eval()))),
        ("softplus_chain", line(|x| along((x.view().softplus() + 1.0).ln().eval()))),
        ("tanh_of_exp", line(|x| along(x.view().exp().tanh().eval()))),
        ("gaussian", line(|x| along((x.view().square() * -0.5).exp().eval()))),
        ("mse", line(|x| number(x.view().mse_loss(&weights()).mean(I)))),
        ("huber", line(|x| along(x.view().huber_loss(&weights(), 1.0).eval()))),
        ("max_pool", line(|x| x.max_pool(I, 2, &Window::new().stride(2)).rename(I, O).eval())),
        ("avg_pool", line(|x| x.avg_pool(I, 2, &Window::new().stride(2)).rename(I, O).eval())),
        ("product_of_sums", line(|x| number((x.sum(I) * (x * weights()).sum(I)).eval()))),
        ("clamped_sum", line(|x| along((x.view().clamp(-1.0, 1.0) * x.sum(I)).eval()))),
    ]
}

fn attended(x: &Line, causal: bool) -> Output {
    let one = F.of(1);
    if causal {
        let keys = x.rename(I, Key).expand(one).eval();
        let values = x.rename(I, Key).eval();
        let mask = I.of(4).ge(Key.of(4));
        return along(attention(x.view().expand(one).eval(), keys, values, F, Key, 1.0, mask));
    }
    let keys = (x.rename(I, Key) + 1.0).expand(one).eval();
    let values = x.rename(I, Key).square().eval();
    along(attention((x * 0.5).expand(one).eval(), keys, values, F, Key, 1.0, true))
}

/// The derivative of each element with respect to its own operand.
fn slope(f: &dyn Fn(&Line) -> Line, x: &Line) -> Line {
    vjp(|x| f(x), x).1(&of(&vec![1.0; x.size(I)]))
}

fn data(x: &Line) -> Vec<f64> {
    x.order(I).to_vec()
}

fn of_one(f: fn(&Line) -> Line) -> Vec<Vec<f64>> {
    let x = of(&POINTS);
    let first = |x: &Line| slope(&f, x);
    let second = |x: &Line| slope(&first, x);
    vec![data(&f(&x)), data(&first(&x)), data(&second(&x)), data(&slope(&second, &x))]
}

fn of_two(f: OfTwo) -> Vec<Vec<f64>> {
    let pairs: Vec<(f64, f64)> = PAIRS.iter().flat_map(|&a| PAIRS.map(|b| (a, b))).collect();
    let x = of(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let y = of(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    type Order<'o> = &'o dyn Fn(&Line, &Line) -> Line;
    fn by_a(f: Order<'_>, a: &Line, b: &Line) -> Line {
        slope(&|a| f(a, b), a)
    }
    fn by_b(f: Order<'_>, a: &Line, b: &Line) -> Line {
        slope(&|b| f(a, b), b)
    }
    let a = |x: &Line, y: &Line| by_a(&f, x, y);
    let b = |x: &Line, y: &Line| by_b(&f, x, y);
    let aa = |x: &Line, y: &Line| by_a(&a, x, y);
    let ab = |x: &Line, y: &Line| by_b(&a, x, y);
    let bb = |x: &Line, y: &Line| by_b(&b, x, y);
    let all = [
        f(&x, &y),
        a(&x, &y),
        b(&x, &y),
        aa(&x, &y),
        ab(&x, &y),
        bb(&x, &y),
        by_a(&aa, &x, &y),
        by_b(&aa, &x, &y),
        by_b(&ab, &x, &y),
        by_b(&bb, &x, &y),
    ];
    all.iter().map(data).collect()
}

fn of_line(f: OfLine) -> Vec<Vec<Vec<f64>>> {
    let loss = |x: &Line| {
        let y = f(x);
        let c: Output = from_vec(O.of(y.size(O)), WEIGHTS[..y.size(O)].to_vec());
        (y * c).sum(O)
    };
    let gradient = |f: &dyn Fn(&Line) -> Tensor<f64, ()>, x: &Line| -> Line {
        vjp(|x| f(x), x).1(&from_vec((), vec![1.0]))
    };
    let v = of(&DIRECTION);
    let first = |x: &Line| gradient(&loss, x);
    let second = |x: &Line| gradient(&|x| (first(x) * &v).sum(I), x);
    let third = |x: &Line| gradient(&|x| (second(x) * &v).sum(I), x);
    let at = |g: &dyn Fn(&Line) -> Vec<f64>| LINES.iter().map(|line| g(&of(line))).collect::<Vec<_>>();
    vec![
        at(&|x| f(x).order(O).to_vec()),
        at(&|x| data(&first(x))),
        at(&|x| data(&second(x))),
        at(&|x| data(&third(x))),
    ]
}

/// All numbers of this library, by case.
fn own() -> BTreeMap<String, Vec<Vec<f64>>> {
    let mut all = BTreeMap::new();
    for (name, f) in ones_of() {
        all.insert(format!("one:{name}"), of_one(f));
    }
    for (name, f) in twos() {
        all.insert(format!("two:{name}"), of_two(f));
    }
    for (name, f) in lines() {
        let orders = of_line(f).into_iter().map(|order| order.into_iter().flatten().collect());
        all.insert(format!("line:{name}"), orders.collect());
    }
    all
}

fn floats(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(floats).collect(),
        Value::String(text) => vec![text.parse().unwrap()],
        number => vec![number.as_f64().unwrap()],
    }
}

fn near(found: f64, expected: f64) -> bool {
    found == expected
        || found.is_nan() && expected.is_nan()
        || (found - expected).is_finite()
            && (found - expected).abs() <= 1e-9 * found.abs().max(expected.abs()).max(1.0)
}

/// The reason for a difference from JAX, if the numbers show it.
fn reason(operands: &[f64], found: f64, expected: f64) -> Option<&'static str> {
    if operands.iter().any(|x| x.is_subnormal()) {
        Some("JAX treats subnormal numbers as 0")
    } else if operands.iter().any(|x| x.is_nan()) {
        Some("the derivative at NaN is NaN where a comparison chooses")
    } else if expected.is_nan() && !found.is_nan() {
        Some("there is a limit, or a factor is 0, and 0 times anything is 0")
    } else {
        None
    }
}

/// Functions that differ for reasons other than those of `reason`.
const DIFFERENCES: &[(&str, &str)] = &[
    ("one:abs", "0 at 0, as in PyTorch"),
    ("two:l1_loss", "0 for equal operands, as in PyTorch; NaN where the value is NaN"),
    ("two:copysign", "0 where the first operand is 0, as in PyTorch"),
    ("one:softsign", "the derivative of `|x|` at 0 is 0"),
    ("one:leaky_relu", "the slope of the negative side at 0, as in PyTorch"),
    ("one:celu", "higher derivatives at 0 are those of one side"),
    ("two:fmax", "each of two equal operands gets half of the derivative"),
    ("two:fmin", "each of two equal operands gets half of the derivative"),
    ("two:hypot", "0 at the origin; JAX has other derivatives for equal operands, and none for large ones"),
    ("line:norm_1", "0 where an element is 0"),
    ("line:norm_inf", "0 for a zero vector"),
    ("line:cummax", "the last of equal elements gets the derivative, as in PyTorch"),
    ("two:xlogy", "no logarithm of a negative number is taken where the factor is 0"),
    ("two:rem", "NaN where the value is NaN"),
    ("one:acosh", "NaN where the value is NaN"),
    ("two:huber_loss", "NaN where the value is NaN"),
    (
        "two:bce_with_logits_loss",
        "infinite logits and targets; higher derivatives for targets outside of 0 to 1",
    ),
    ("line:prod", "second derivatives of infinite products: the finite factors are added up first"),
    (
        "two:logaddexp",
        "each of two equal infinities gets half of the derivative; JAX counts +inf as 0, and gives one of two equal large operands all of the derivative",
    ),
    ("line:logcumsumexp", "infinite elements get all of the derivative; JAX counts +inf as 0"),
    ("one:sinc", "JAX truncates the series near 0"),
    ("one:cbrt", "at 0, a factor of higher derivatives is 0, and 0 times anything is 0"),
    ("two:atan2", "exact where the sum of the squares underflows"),
    ("two:div", "exact where the square of the divisor underflows"),
    ("line:attention", "JAX loses digits of scores of a million"),
    ("line:causal_attention", "JAX loses digits of scores of a million"),
];

/// The numbers that differ from JAX, by case: the index of the derivative, the position, and the
/// number of this library.
type Differing = BTreeMap<String, Vec<(usize, usize, f64)>>;

/// The operands of the number at this position.
fn operands(case: &str, order: usize, at: usize, len: usize) -> Vec<f64> {
    match case.split_once(':').expect("a case has a group and a name").0 {
        "one" => vec![POINTS[at]],
        "two" => vec![PAIRS[at / PAIRS.len()], PAIRS[at % PAIRS.len()]],
        _ => {
            let each = len / LINES.len();
            assert!(order == 0 || each == 4, "{case}: {each} derivatives instead of 4");
            LINES[at / each].to_vec()
        }
    }
}

/// Compares all functions with their references, and returns the numbers that differ. Panics if a
/// number differs without a known reason.
fn differing(reference: &Value) -> Differing {
    let (mut all, mut unknown) = (Differing::new(), String::new());
    let own = own();
    let names: Vec<&String> = reference.as_object().unwrap().keys().collect();
    assert_eq!(own.keys().collect::<Vec<_>>(), names, "a case is not compared");
    for (case, orders) in own {
        for (order, found) in orders.iter().enumerate() {
            let expected = floats(&reference[&case][order]);
            assert_eq!(found.len(), expected.len(), "{case}");
            for (at, (&found, expected)) in found.iter().zip(expected).enumerate() {
                if near(found, expected) {
                    continue;
                }
                let operands = operands(&case, order, at, orders[order].len());
                let listed = DIFFERENCES.iter().any(|(name, _)| *name == case);
                if reason(&operands, found, expected).is_none() && !listed {
                    unknown += &format!(
                        "{case}, order {order}, at {operands:?}: {found:?} instead of {expected:?}\n"
                    );
                }
                all.entry(case.clone()).or_default().push((order, at, found));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown}");
    for (case, _) in DIFFERENCES {
        assert!(all.contains_key(*case), "`DIFFERENCES` lists {case}, which does not differ");
    }
    all
}

fn path() -> String {
    format!("{}/tests/agreement/special_own.json", env!("CARGO_MANIFEST_DIR"))
}

fn text(differing: &Differing) -> String {
    let number =
        |x: f64| if x.is_finite() { format!("{x:?}") } else { format!("\"{x}\"").replace("NaN", "nan") };
    let lines = differing.iter().map(|(case, numbers)| {
        let numbers: Vec<String> =
            numbers.iter().map(|&(order, at, found)| format!("[{order}, {at}, {}]", number(found))).collect();
        format!(" \"{case}\": [{}]", numbers.join(", "))
    });
    format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"))
}

/// Checks that the differing numbers are those of `special_own.json`.
fn check(reference: &Value) {
    let found = differing(reference);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path(), text(&found)).unwrap();
    }
    let known: Value = serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap();
    let mut wrong = String::new();
    let count = |numbers: &Value| numbers.as_array().map_or(0, Vec::len);
    for (case, numbers) in known.as_object().expect("the file is a JSON object") {
        let differing = found.get(case).map_or(0, Vec::len);
        if differing < count(numbers) {
            wrong += &format!("{case}: {differing} numbers instead of {} differ\n", count(numbers));
        }
    }
    for (case, numbers) in &found {
        let known: BTreeMap<(usize, usize), f64> =
            known[case].as_array().map_or_else(BTreeMap::new, |known| {
                let row = |row: &Value| {
                    let row = floats(row);
                    ((row[0] as usize, row[1] as usize), row[2])
                };
                known.iter().map(row).collect()
            });
        for &(order, at, found) in numbers {
            match known.get(&(order, at)) {
                Some(&known) if near(found, known) => {}
                known => {
                    wrong += &format!("{case}, order {order}, number {at}: {found:?} instead of {known:?}\n")
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn special_points() {
    check(&serde_json::from_str(include_str!("special.json")).unwrap());
}

/// Functions with a zero of another sign than in JAX: of the greater or lesser of 0 and -0, and of
/// functions that JAX computes by another formula.
const OTHER_ZEROS: &[&str] = &[
    "one:celu",
    "one:relu",
    "one:soft_shrink",
    "one:tanh_shrink",
    "two:fmax",
    "two:fmin",
    "two:maximum",
    "two:minimum",
];

#[test]
fn zeros_have_their_sign() {
    let reference: Value = serde_json::from_str(include_str!("special.json")).unwrap();
    let differing = own().into_iter().filter(|(case, orders)| {
        let expected = floats(&reference[case][0]);
        let mut pairs = orders[0].iter().zip(expected);
        !case.starts_with("line:")
            && pairs.any(|(x, y)| *x == 0.0 && y == 0.0 && x.is_sign_negative() != y.is_sign_negative())
    });
    assert_eq!(differing.map(|(case, _)| case).collect::<Vec<_>>(), OTHER_ZEROS);
}

#[test]
fn special_points_of_jax() {
    if let Some(reference) = super::Reference::computed("special.py") {
        check(&reference.0);
    }
}
