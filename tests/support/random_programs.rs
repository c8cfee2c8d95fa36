//! Random programs of a matrix and a vector, shared by the tests of gradients and of XLA.
//!
//! `GRAD_CASES=n` sets the number of programs, `GRAD_FIRST=n` the first seed. A failing program is
//! shortened and printed.

#[path = "splitmix.rs"]
mod splitmix;

pub use splitmix::Random;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typed_dims::grad::loss_and_grad;
use typed_dims::prelude::*;

dims! { pub struct A; pub struct B; pub struct C; }

pub type Matrix = Tensor<f64, (A, B)>;
pub type Vector = Tensor<f64, (A,)>;
type View<'a> = TensorView<'a, f64, (A, B)>;
/// The input of a program, and its output.
pub type Pair = (Matrix, Vector);

impl Random {
    pub fn floats(&mut self, len: usize) -> Vec<f64> {
        (0..len).map(|_| self.unit() * 3.0 - 1.5).collect()
    }

    pub fn pair(&mut self, a: usize, b: usize) -> Pair {
        (from_vec((A.of(a), B.of(b)), self.floats(a * b)), from_vec(A.of(a), self.floats(a)))
    }
}

/// One operation: its kind, its operands, and a number for everything else.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    operation: Operation,
    first: usize,
    second: usize,
    number: usize,
}

/// The values so far.
struct Machine<'m> {
    matrices: Vec<Matrix>,
    vectors: Vec<Vector>,
    /// The distance of the values to the nearest kink, at which a derivative does not exist. `None`
    /// if it is not needed, or if the values are traced and must not be read.
    margin: Option<&'m Cell<f64>>,
}

enum Made {
    Matrix(Matrix),
    Vector(Vector),
    /// The operation does not fit the sizes.
    Nothing,
}
use Made::Nothing;

/// The maximum number of elements along a dim.
const LARGEST: usize = 8;

/// Elementwise operations.
const MAPS: &[for<'a, 'b> fn(View<'a>, View<'b>) -> Matrix] = &[
    |x, y| ((x * 1.3 - y).tanh() * 0.7 + x.sin()).eval(),
    |x, y| (x.gelu() - (y * 0.5).softplus()).tanh().eval(),
    |x, y| ((x.tanh() * 0.5).exp() * y.cos()).eval(),
    |x, y| (x / (y.square() + 1.0)).eval(),
    |x, y| ((x.square() + 0.5).ln() + (y.square() + 0.3).sqrt()).tanh().eval(),
    |x, y| (x.sigmoid() * y.silu() + x.atan()).eval(),
    |x, y| ((x.square() + 0.3).powf(y.sin()) * 0.5).tanh().eval(),
    |x, y| (x.hypot(y + 4.0) - 4.0 + y.atan2(x.square() + 0.5)).eval(),
    |x, y| (x.erf() - y.asinh() + (x * 0.3).powi(3)).sin().eval(),
    |x, y| (x.logaddexp(y) * 0.5 + x.lerp(y, 0.25).mish()).tanh().eval(),
    |x, y| ((-x).exp_m1().tanh() + (y.square() + 1.0).recip() + (x.square() + 1.0).rsqrt()).eval(),
    |x, y| ((x - y).square() + 0.2).sqrt().cos().eval(),
    |x, _| (x * 0.5).eval(),
    |x, y| (x.ln_sigmoid() + y.gelu_tanh() * x.softsign().square()).tanh().eval(),
];

/// Operations with a vector. Most of them broadcast the vector.
#[derive(Clone, Copy, Debug)]
enum Broadcast {
    TanhTimesVector,
    VectorTimesMean,
    VectorPlusSum,
    VectorTimesLast,
    RowTimesVector,
}

const BROADCASTS: [Broadcast; 5] = [
    Broadcast::TanhTimesVector,
    Broadcast::VectorTimesMean,
    Broadcast::VectorPlusSum,
    Broadcast::VectorTimesLast,
    Broadcast::RowTimesVector,
];

/// Operations that are neither in [`MAPS`] nor in [`BROADCASTS`].
#[derive(Clone, Copy, Debug)]
enum Other {
    SumOfProduct,
    Variance,
    LogSumExp,
    Norm,
    Product,
    MaxAlongA,
    MinAlongA,
    StandardDeviation,
    MeanOfAll,
    Gram,
    SoftmaxGram,
    SumTimesQuotient,
    Transpose,
    SlicedProduct,
    EverySecond,
    Flip,
    Roll,
    Regroup,
    Concat,
    AddFirstRow,
    TakeRows,
    TakeShiftedRows,
    TakePerRow,
    ScatterAdd,
    SelectByValue,
    RootOfMagnitude,
    Clamp,
    Maximum,
    Relu,
    SelectByPosition,
    SelectOfLogarithm,
    TakeNextRow,
    WindowsAlongB,
    WindowsAlongA,
}

const OTHERS: [Other; 34] = [
    Other::SumOfProduct,
    Other::Variance,
    Other::LogSumExp,
    Other::Norm,
    Other::Product,
    Other::MaxAlongA,
    Other::MinAlongA,
    Other::StandardDeviation,
    Other::MeanOfAll,
    Other::Gram,
    Other::SoftmaxGram,
    Other::SumTimesQuotient,
    Other::Transpose,
    Other::SlicedProduct,
    Other::EverySecond,
    Other::Flip,
    Other::Roll,
    Other::Regroup,
    Other::Concat,
    Other::AddFirstRow,
    Other::TakeRows,
    Other::TakeShiftedRows,
    Other::TakePerRow,
    Other::ScatterAdd,
    Other::SelectByValue,
    Other::RootOfMagnitude,
    Other::Clamp,
    Other::Maximum,
    Other::Relu,
    Other::SelectByPosition,
    Other::SelectOfLogarithm,
    Other::TakeNextRow,
    Other::WindowsAlongB,
    Other::WindowsAlongA,
];

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// One of [`MAPS`].
    Map(usize),
    Broadcast(Broadcast),
    Other(Other),
}

impl Operation {
    fn random(random: &mut Random) -> Self {
        let broadcasts = MAPS.len() + BROADCASTS.len();
        match random.below(broadcasts + OTHERS.len()) {
            at if at < MAPS.len() => Operation::Map(at),
            at if at < broadcasts => Operation::Broadcast(BROADCASTS[at - MAPS.len()]),
            at => Operation::Other(OTHERS[at - broadcasts]),
        }
    }
}

impl Broadcast {
    fn run(self, step: Step, x: View<'_>, v: &Vector) -> Made {
        let (v, a, k) = (v.view(), x.size(A), step.number);
        match self {
            Broadcast::TanhTimesVector => Made::Matrix((x.tanh() * v + v.sin()).eval()),
            Broadcast::VectorTimesMean => Made::Matrix((v * x.mean(A)).eval()),
            Broadcast::VectorPlusSum => Made::Vector(((v * 0.7).tanh() + x.sum(B) * 0.1).eval()),
            Broadcast::VectorTimesLast => Made::Vector((v * x.index(B, -1)).eval()),
            Broadcast::RowTimesVector => Made::Matrix((x.index(A, (k % a) as isize) * v).eval()),
        }
    }
}

/// `len` pseudo-random positions below `end`.
fn ids(number: usize, len: usize, end: usize) -> Vec<usize> {
    let mut random = Random(number as u64);
    (0..len).map(|_| random.below(end)).collect()
}

impl Machine<'_> {
    /// Records how close the elements are to 0.
    fn kink(&self, distance: impl FnOnce() -> Matrix) {
        if let Some(margin) = self.margin {
            margin.set(margin.get().min(distance().abs().min((A, B)).order(())));
        }
    }

    /// Records how close to each other the two greatest elements of each column are.
    fn ties(&self, x: View<'_>) {
        let Some(margin) = self.margin else { return };
        for column in x.order((A, B)).columns() {
            let mut column = column.to_vec();
            column.sort_by(|a, b| b.total_cmp(a));
            if let [first, second, ..] = column[..] {
                margin.set(margin.get().min(first - second));
            }
        }
    }

    fn step(&mut self, step: Step) {
        let x = &self.matrices[step.first % self.matrices.len()];
        let (a, b) = (x.size(A), x.size(B));
        // All matrices of the same sizes, including `x` itself.
        let same: Vec<&Matrix> = self.matrices.iter().filter(|y| (y.size(A), y.size(B)) == (a, b)).collect();
        let y = same[step.second % same.len()];
        let fitting: Vec<&Vector> = self.vectors.iter().filter(|v| v.size(A) == a).collect();
        let made = match step.operation {
            Operation::Map(number) => Made::Matrix(MAPS[number](x.view(), y.view())),
            Operation::Broadcast(own) => {
                let Some(v) = fitting.get(step.second % fitting.len().max(1)) else { return };
                own.run(step, x.view(), v)
            }
            Operation::Other(own) => self.other(own, step, x.view(), y.view()),
        };
        match made {
            Made::Matrix(matrix) => self.matrices.push(matrix),
            Made::Vector(vector) => self.vectors.push(vector),
            Nothing => {}
        }
    }

    fn other(&self, operation: Other, step: Step, x: View<'_>, y: View<'_>) -> Made {
        let (a, b, k) = (x.size(A), x.size(B), step.number);
        match operation {
            // Reductions. Those with kinks get elements away from the kinks, or record how close
            // the elements are.
            Other::SumOfProduct => Made::Vector((x * y).sum(B).tanh().eval()),
            Other::Variance => Made::Vector(x.var(B)),
            Other::LogSumExp => Made::Vector((x + y * 0.3).logsumexp(B)),
            Other::Norm => Made::Vector((x + 3.0).norm(B)),
            Other::Product => Made::Vector((x.tanh() + 0.5).prod(B)),
            Other::MaxAlongA => {
                self.ties(x);
                Made::Matrix((x.max(A) * y).sin().eval())
            }
            Other::MinAlongA => {
                self.ties((-x).eval().view());
                Made::Matrix((x.min(A) + y).sin().eval())
            }
            Other::StandardDeviation => Made::Vector((x.tanh() + B.of(b).cast::<f64>() * 3.0).std(B)),
            Other::MeanOfAll => Made::Vector((x.mean((A, B)) * y.sum(B)).sin().eval()),
            // Contractions.
            Other::Gram => {
                let gram = (x * y.rename(A, C)).sum(B) * 0.2;
                Made::Matrix((gram * y.rename(A, C)).sum(C).sin().eval())
            }
            Other::SoftmaxGram => {
                let share = ((x * y.rename(A, C)).sum(B) * 0.5).softmax(C);
                Made::Matrix((share * x.rename(A, C)).sum(C))
            }
            Other::SumTimesQuotient => Made::Matrix(((x * y).sum(B) * x * y.exp().recip()).tanh().eval()),
            // Reordering, slices and concatenation.
            Other::Transpose => Made::Matrix(x.rename(A, C).rename(B, A).rename(C, B).eval()),
            Other::SlicedProduct if a > 1 => Made::Matrix((x.slice(A, 1..) * y.slice(A, ..-1)).eval()),
            Other::EverySecond if b > 1 => Made::Matrix(x.slice_step(B, (k % 2) as isize.., 2).eval()),
            Other::Flip => Made::Matrix((x.flip(B) * y).sin().eval()),
            Other::Roll => Made::Matrix((x.roll(A, k as isize % 5 - 2) + y * 0.5).tanh().eval()),
            Other::Regroup => Made::Matrix(x.flatten((B, A), C).unflatten(C, (A.of(b), B.of(a))).eval()),
            Other::Concat if 2 * a <= LARGEST => Made::Matrix(concat(A, [x, y])),
            Other::AddFirstRow => Made::Matrix((x + y.slice(A, 0..1).index(A, 0) * 0.5).eval()),
            // Lookups and a scatter.
            Other::TakeRows => Made::Matrix(x.take(A, ids(k, a, a).at(C)).rename(C, A).eval()),
            Other::TakeShiftedRows => {
                Made::Matrix((x.tanh() * 2.0).take(A, (ids(k, 3, a).at(C) + 1) % a).rename(C, A).eval())
            }
            Other::TakePerRow => Made::Vector((x * 1.5).take(B, ids(k, a, b).at(A)).sin().eval()),
            Other::ScatterAdd => {
                Made::Matrix(x.scatter_add(A, C.of(4), ids(k, a, 4).at(A)).tanh().rename(C, A).eval())
            }
            // Selections by value and by position, and elementwise operations with kinks.
            Other::SelectByValue => {
                self.kink(|| (x - y * 0.9 - 0.1).eval());
                Made::Matrix(select(x.gt(y * 0.9 + 0.1), x.sin(), y * 0.5).eval())
            }
            Other::RootOfMagnitude => {
                self.kink(|| (x + 0.2).eval());
                Made::Matrix(((x + 0.2).abs() + 0.1).sqrt().eval())
            }
            Other::Clamp => {
                self.kink(|| (x - 0.3).eval());
                self.kink(|| (x + 0.4).eval());
                Made::Matrix((x.clamp(-0.4, 0.3) + y).sin().eval())
            }
            Other::Maximum => {
                self.kink(|| (x - y * 0.7 - 0.1).eval());
                Made::Matrix(x.maximum(y * 0.7 + 0.1).eval())
            }
            Other::Relu => {
                self.kink(|| x.eval());
                Made::Matrix((x.relu() + x.ln().nan_to(0.25).tanh() * 0.1 + y.tanh()).eval())
            }
            Other::SelectByPosition => {
                Made::Matrix(select((A + B * 2).lt((k % 9) as isize), x, y.cos()).eval())
            }
            // Where the first operand is not selected, its value or derivative can be infinite or
            // NaN, or its index out of range.
            Other::SelectOfLogarithm => {
                self.kink(|| x.eval());
                Made::Matrix(select(x.gt(0.0), x.ln().tanh(), y).eval())
            }
            Other::TakeNextRow => {
                Made::Matrix(select(A.lt(a as isize - 1), x.take(A, A + 1), y * 0.5).eval())
            }
            // Windows of two elements.
            Other::WindowsAlongB if b > 1 => {
                let weights = from_vec(C.of(2), vec![0.75, -0.5]);
                Made::Matrix((x.unfold(B, C.of(2), 1, 1) * weights).sum(C))
            }
            Other::WindowsAlongA if a > 2 => {
                let weights = from_vec(C.of(2), vec![0.75, -0.5]);
                Made::Matrix(
                    ((x.unfold(A, C.of(2), 1, 2) * weights).sum(C).softmax((A, B)) + y.mean(A)).eval(),
                )
            }
            _ => Nothing,
        }
    }
}

/// A program, with the sizes and the seed of its inputs.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub sizes: (usize, usize),
    pub steps: Vec<Step>,
}

impl Case {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let sizes = (1 + random.below(5), 1 + random.below(5));
        let count = 1 + random.below(8);
        let step = |random: &mut Random| Step {
            operation: Operation::random(random),
            first: random.below(1 << 16),
            second: random.below(1 << 16),
            number: random.below(1 << 16),
        };
        let mut steps: Vec<Step> = (0..count).map(|_| step(&mut random)).collect();
        // Many steps use the latest matrix if each step before made a matrix, so that programs are
        // deep, not wide.
        for (at, step) in steps.iter_mut().enumerate() {
            if random.below(3) > 0 {
                step.first = at;
            }
        }
        Case { seed, sizes, steps }
    }

    /// One to three programs in sequence, which give fusion passes more to merge.
    pub fn longer(seed: u64) -> Self {
        let mut case = Case::new(seed);
        for further in 1..seed % 4 {
            case.steps.extend(Case::new(seed.wrapping_add(further << 32)).steps);
        }
        case
    }

    /// Runs the steps. Returns the last matrix and the last vector. Lowers `margin` to the distance
    /// to the nearest kink.
    pub fn run(&self, (x, v): (&Matrix, &Vector), margin: Option<&Cell<f64>>) -> Pair {
        let mut machine = Machine { matrices: vec![x.clone()], vectors: vec![v.clone()], margin };
        for &step in &self.steps {
            machine.step(step);
        }
        (
            machine.matrices.pop().expect("there is a matrix"),
            machine.vectors.pop().expect("there is a vector"),
        )
    }

    /// A loss of the results, to which each input contributes.
    pub fn loss(&self, inputs: (&Matrix, &Vector)) -> Tensor<f64, ()> {
        let (matrix, vector) = self.run(inputs, None);
        let linear = inputs.0.sum((A, B)) + inputs.1.sum(A);
        (matrix.sin().sum((A, B)) + vector.sin().sum(A) + linear).eval()
    }

    /// The gradient of the loss. The loss itself is added to the gradient of the vector.
    pub fn gradient(&self, inputs: (&Matrix, &Vector)) -> Pair {
        let (loss, (x, v)) = loss_and_grad(|inputs| self.loss(inputs), inputs);
        (x, (v * 1.0 + loss).eval())
    }
}

/// All elements, those of the matrix first.
pub fn flat((matrix, vector): &Pair) -> Vec<f64> {
    matrix.view().order((A, B)).into_iter().chain(vector.view().order(A)).collect()
}

#[track_caller]
pub fn assert_all_near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= tolerance * scale,
            "{what}, element {at}: {found} instead of {expected}"
        );
    }
}

/// Whether the check compared anything, or the text of its failure.
fn tried(case: &Case, check: fn(&Case) -> bool) -> Result<bool, String> {
    catch_unwind(AssertUnwindSafe(|| check(case))).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default()
    })
}

/// Removes steps that are not needed for the failure.
fn shortened(mut case: Case, check: fn(&Case) -> bool) -> Case {
    let mut at = 0;
    while at < case.steps.len() {
        let mut shorter = case.clone();
        shorter.steps.remove(at);
        if tried(&shorter, check).is_err() {
            case = shorter;
        } else {
            at += 1;
        }
    }
    case
}

pub fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Checks random programs. Returns the number of compared programs, and the total number.
pub fn check_all(usual: u64, new: fn(u64) -> Case, check: fn(&Case) -> bool) -> (u64, u64) {
    let (first, count) = (number("GRAD_FIRST", 0), number("GRAD_CASES", usual));
    let mut compared = 0;
    for seed in first..first + count {
        let case = new(seed);
        match tried(&case, check) {
            Ok(is_compared) => compared += u64::from(is_compared),
            Err(_) => {
                let shorter = shortened(case, check);
                panic!("{}\n{shorter:#?}", tried(&shorter, check).expect_err("an error"));
            }
        }
    }
    (compared, count)
}
