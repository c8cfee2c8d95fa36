//! The optimizers' formulas as programs. The interpreter must return the same bits as the compiled
//! loops.

use super::{Row, noise};
use typed_dims::optim::{
    Accumulator, Adagrad, Adam, AdamW, Average, Lion, NAdam, Optimizer, RAdam, RmsProp, Schedule, Sgd,
    StateTensor, clip_by_global_norm, clip_by_value, programs,
};
use typed_dims::prelude::*;
#[cfg(feature = "half")]
use typed_dims::types::scalar::CastTo;
use typed_dims_kernels::map::formula::{UpdateOperand, UpdateProgram};
use typed_dims_kernels::program::code::DType;
use typed_dims_kernels::program::interpreter::ProgramOutput;

/// Longer than a tile of the interpreter, and than a half-precision block.
const LEN: usize = 1100;

type Line<T> = Tensor<T, (Row,)>;

/// Elements of parameters. Their state has elements of the type `State`.
trait Parameter: Real {
    type State: StateNumber;
    fn operand(line: &[Self]) -> UpdateOperand<'_>;
    fn of_state(state: Self::State) -> Self;
    fn to_state(self) -> Self::State;
    /// The bits, or `None` for NaN.
    fn bits(self) -> Option<u64>;
    fn of(value: f64) -> Self;
    const IS_HALF: bool;
}

/// Elements of state.
trait StateNumber: Parameter<State = Self> + ProgramOutput {}
impl StateNumber for f32 {}
impl StateNumber for f64 {}

macro_rules! parameters {
    ($($t:ty, $state:ty, $variant:ident, $is_half:literal, |$value:ident| $of:expr, |$wide:ident| $narrow:expr, |$own:ident| $widen:expr;)*) => {$(
        impl Parameter for $t {
            type State = $state;
            const IS_HALF: bool = $is_half;
            fn operand(line: &[Self]) -> UpdateOperand<'_> {
                UpdateOperand::$variant(line)
            }
            fn of_state($wide: $state) -> Self {
                $narrow
            }
            fn to_state(self) -> $state {
                let $own = self;
                $widen
            }
            fn bits(self) -> Option<u64> {
                (!self.is_nan()).then(|| self.to_bits().into())
            }
            fn of($value: f64) -> Self {
                $of
            }
        }
    )*};
}

parameters! {
    f32, f32, F32, false, |value| value as f32, |wide| wide, |own| own;
    f64, f64, F64, false, |value| value, |wide| wide, |own| own;
}
#[cfg(feature = "half")]
parameters! {
    half::f16, f32, F16, true, |value| half::f16::from_f64(value), |wide| CastTo::cast_to(wide), |own| own.to_f32();
    half::bf16, f32, Bf16, true, |value| half::bf16::from_f64(value), |wide| CastTo::cast_to(wide), |own| own.to_f32();
}

fn bits<T: Parameter>(line: &[T]) -> Vec<Option<u64>> {
    line.iter().map(|a| a.bits()).collect()
}

/// Numbers of several magnitudes, including zeros, and in some steps numbers that are not finite.
fn drawn<T: Parameter>(step: usize) -> Vec<T> {
    let number = |at: usize| match (at, step % 10) {
        (7, _) => 0.0,
        (8, _) => -0.0,
        (9, 6) => f64::NAN,
        (10, 7) => f64::INFINITY,
        (11, 8) => f64::NEG_INFINITY,
        _ => noise(at, step) * 10f64.powi(-(at as i32 % 7)),
    };
    (0..LEN).map(|at| T::of(number(at))).collect()
}

#[track_caller]
fn assert_same<T: Parameter>(found: &[T], expected: &[T], what: &str) {
    let (found, expected) = (bits(found), bits(expected));
    assert_eq!(found.len(), expected.len(), "{what}");
    let differs = (0..found.len()).find(|&at| found[at] != expected[at]);
    assert!(differs.is_none(), "{what}: differs at {differs:?}");
}

fn line<T: Parameter>(elements: &[T]) -> Line<T> {
    from_vec(Row.of(elements.len()), elements.to_vec())
}

fn elements<T: Parameter>(line: &Line<T>) -> Vec<T> {
    line.view().order(Row).to_vec()
}

fn scalars(program: &UpdateProgram, inputs: &[f64]) -> Vec<f64> {
    let inputs: Vec<UpdateOperand<'_>> = inputs.iter().map(|&input| UpdateOperand::Scalar(input)).collect();
    program.run::<f64>(&inputs, 1).unwrap().into_iter().map(|result| result[0]).collect()
}

/// Values that change: the state, and the elements that its first part is rounded to.
struct Changed<T: Parameter> {
    state: Vec<Vec<T::State>>,
    rounded: Vec<T>,
}

impl<T: Parameter> Changed<T> {
    fn new(first: &[T], moments: usize) -> Self {
        let mut state = vec![first.iter().map(|a| a.to_state()).collect()];
        state.resize(1 + moments, vec![<T::State as Parameter>::of(0.0); first.len()]);
        Changed { state, rounded: first.to_vec() }
    }

    fn run(&mut self, program: &UpdateProgram, scalars: &[f64], read: &[&[T]]) {
        let mut operands: Vec<UpdateOperand<'_>> =
            scalars.iter().map(|&scalar| UpdateOperand::Scalar(scalar)).collect();
        operands.extend(self.state.iter().map(|line| <T::State as Parameter>::operand(line)));
        operands.extend(read.iter().map(|line| T::operand(line)));
        if program.follows {
            operands.push(T::operand(&self.rounded));
        }
        assert_eq!(program.follows, T::IS_HALF);
        self.state = program.run::<T::State>(&operands, self.rounded.len()).unwrap();
        self.rounded = self.state[0].iter().map(|&a| T::of_state(a)).collect();
    }
}

fn agrees<T: Parameter, O: Optimizer<Line<T>>>(mut optimizer: O) {
    let kind = optimizer.kind();
    let recorded = optimizer.programs(DType::of::<T>().unwrap()).expect("the optimizer has programs");
    let first = drawn::<T>(0);
    let mut p = line(&first);
    let mut found = Changed::new(&first, optimizer.moments().len());
    for step in 1..=40_u32 {
        let what = format!("{kind}, step {step}");
        if step == 25 {
            // The user modifies the parameters.
            let new = drawn::<T>(1000);
            found.rounded.clone_from(&new);
            if !T::IS_HALF {
                found.state[0] = new.iter().map(|a| a.to_state()).collect();
            }
            p = line(&new);
        }
        let gradient = drawn::<T>(step as usize);
        let numbers = scalars(&recorded.scalars, &[optimizer.rate(), f64::from(step)]);
        found.run(&recorded.update, &numbers, &[&gradient]);
        optimizer.step(&mut p, &line(&gradient));
        assert_same(&found.rounded, &elements(&p), &what);
        let kept = optimizer.state().parameter("").unwrap();
        let of = |kept: &StateTensor| elements(&kept.tensor::<T::State, (Row,)>().unwrap());
        for (found, kept) in found.state[1..].iter().zip(kept.moments()) {
            assert_same(found, &of(kept), &what);
        }
        if let Some(master) = kept.master() {
            assert_same(&found.state[0], &of(master), &what);
        }
    }
}

fn all_of<T: Parameter>() {
    let rate = || Schedule::cosine(0.05, 60).warm_up(3);
    agrees::<T, _>(Sgd::new(rate()));
    agrees::<T, _>(Sgd::new(rate()).momentum(0.9));
    agrees::<T, _>(Sgd::new(rate()).momentum(0.9).nesterov().weight_decay(0.02));
    agrees::<T, _>(Adam::new(rate()));
    agrees::<T, _>(Adam::new(rate()).betas(0.8, 0.95).epsilon(1e-6).weight_decay(0.1));
    agrees::<T, _>(AdamW::new(rate()));
    agrees::<T, _>(Lion::new(rate()));
    agrees::<T, _>(Sgd::new(rate()).momentum(0.9).dampening(0.4).maximize());
    agrees::<T, _>(Adam::new(rate()).amsgrad());
    agrees::<T, _>(RmsProp::new(rate()));
    agrees::<T, _>(RmsProp::new(rate()).momentum(0.9).weight_decay(0.1));
    agrees::<T, _>(RmsProp::new(rate()).centered());
    agrees::<T, _>(RmsProp::new(rate()).centered().momentum(0.9));
    agrees::<T, _>(Adagrad::new(rate()).rate_decay(0.1).first_sum(0.1));
    agrees::<T, _>(NAdam::new(rate()).weight_decay(0.1));
    agrees::<T, _>(RAdam::new(rate()).weight_decay(0.1).decoupled());
    beside_optimizers::<T>();
}

/// Clipping, sums of gradients and averages.
fn beside_optimizers<T: Parameter>() {
    let dtype = DType::of::<T>().unwrap();
    for step in [1, 6, 7] {
        let first = drawn::<T>(step);
        // Fewer elements than a sum of squares has lanes, so they are added in order.
        let few = &first[6..12];
        let squares = few.iter().map(|a| a.to_f64().unwrap() * a.to_f64().unwrap()).sum();
        for most in [0.0, 1e-3, 0.5, 1e6, f64::INFINITY] {
            let mut clipped = line(few);
            let norm = clip_by_global_norm(&mut clipped, most).order(());
            let numbers = scalars(&programs::norm_and_factor(most), &[squares]);
            assert_eq!(numbers[0].bits(), norm.bits());
            let mut found = Changed::new(few, 0);
            found.run(&programs::scale(dtype), &numbers[1..], &[]);
            assert_same(&found.rounded, &elements(&clipped), &format!("{norm} within {most}"));

            let mut limited = line(&first);
            clip_by_value(&mut limited, most);
            let mut found = Changed::new(&first, 0);
            found.run(&programs::limit(most, dtype), &[], &[]);
            assert_same(&found.rounded, &elements(&limited), &format!("each within {most}"));
        }
    }
    let (mut sum, mut average) = (Accumulator::new(), Average::new(0.9));
    let (mut found_sum, mut found_average) =
        (Changed::new(&drawn::<T>(1), 0), Changed::new(&drawn::<T>(1), 0));
    for step in 1..=9 {
        let gradient = drawn::<T>(step);
        sum.add(line(&gradient));
        average.update(&line(&gradient));
        if step > 1 {
            found_sum.run(&programs::sum(dtype), &[], &[&gradient]);
            found_average.run(&programs::average(0.9, dtype), &[], &[&gradient]);
        }
        assert_same(&found_average.rounded, &elements(average.value().unwrap()), "average");
    }
    let share = scalars(&programs::share(), &[9.0]);
    found_sum.run(&programs::scale(dtype), &share, &[]);
    assert_same(&found_sum.rounded, &elements(&sum.take().unwrap()), "mean");
}

#[test]
fn programs_of_single_precision_compute_what_loops_do() {
    all_of::<f32>();
}

#[test]
fn programs_of_double_precision_compute_what_loops_do() {
    all_of::<f64>();
}

#[cfg(feature = "half")]
#[test]
fn programs_of_half_precision_compute_what_loops_do() {
    all_of::<half::f16>();
    all_of::<half::bf16>();
}

/// All results of an update are rounded to the requested type, not only the first.
#[cfg(feature = "half")]
#[test]
fn each_result_is_rounded() {
    fn rounded<T: Parameter<State = f32> + ProgramOutput>() {
        let dtype = DType::of::<T>().unwrap();
        let update = Adam::<Line<T>>::new(0.1).programs(dtype).unwrap().update;
        let first = drawn::<T>(1);
        let (state, gradient) = (Changed::new(&first, 2).state, drawn::<T>(2));
        let numbers = scalars(&Adam::<Line<T>>::new(0.1).programs(dtype).unwrap().scalars, &[0.1, 1.0]);
        let mut operands: Vec<UpdateOperand<'_>> =
            numbers.iter().map(|&scalar| UpdateOperand::Scalar(scalar)).collect();
        operands.extend(state.iter().map(|line| UpdateOperand::F32(line)));
        operands.extend([T::operand(&gradient), T::operand(&first)]);
        let exact = update.run::<f32>(&operands, LEN).unwrap();
        let found = update.run::<T>(&operands, LEN).unwrap();
        assert_eq!(found.len(), 3);
        for (found, exact) in found.iter().zip(&exact) {
            let expected: Vec<T> = exact.iter().map(|&a| T::of_state(a)).collect();
            assert_same(found, &expected, "rounded");
        }
    }
    rounded::<half::f16>();
    rounded::<half::bf16>();
}

/// Settings are constants of a program; values that change from step to step are operands.
#[test]
fn numbers_of_a_step_are_operands() {
    let of = |rate: f64| Adam::<Line<f32>>::new(rate).programs(DType::F32).unwrap();
    let recorded = of(0.1);
    assert_eq!(
        (&of(0.2).update.program, &of(0.2).scalars.program),
        (&recorded.update.program, &recorded.scalars.program)
    );
    let UpdateProgram { name, scalars, changed, read, follows, ref results, .. } = recorded.update;
    assert_eq!((name, scalars, changed, read, follows, results.len()), ("adam", 3, 3, 1, false, 3));
    assert_eq!((recorded.scalars.scalars, recorded.scalars.results.len()), (2, 3));
}
