//! Steps with their own gradients, such as reductions other than sums, operations along lines, and
//! attention.

pub(in crate::trace) mod attention;
mod detached;
mod lines;
mod placed;
mod recurrence;

pub use attention::Attention;
pub(super) use attention::AttentionPullBack;
pub(super) use detached::DetachedElements;
pub use detached::detached;
pub use lines::LineRule;
pub(super) use lines::{BestOf, LinePullBack};
pub(super) use placed::Placed;
pub use placed::{placed, placed_around};
pub use recurrence::Recurrence;

use crate::error::Error;
use crate::loops::nest::Nest;
use crate::loops::steps::{Loops, PlanStep};
use crate::machine::threads;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, Number, ReductionKind, RegisterKind, UnaryOpcode};
use crate::program::Register;
use crate::program::builder::Builder;
use crate::program::interpreter::ProgramOutput;
use crate::reduce::{Reducer, reducers};
use crate::scalar::{Ordered, Real};
use crate::trace::compute::{floats, rows};
use crate::trace::link::Linked;
use crate::trace::replay::reduced_of;
use crate::trace::{Field, Held, Node, NodeStep, Part, Rule, StridedPlace, evaluate};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use recurrence::recurrence;

pub(super) type NodeParts = Vec<(Arc<Node>, Part)>;

type RulePullBack<R> = fn(&R, &Arc<dyn Held>, Arc<dyn Held>, bool) -> Result<NodeParts, Error>;

/// The code of these rules that is only linked into programs with gradients or recorded functions:
/// see [`link`](super::link).
struct RulePullBacks {
    reduced: RulePullBack<ReductionRule>,
    product_again: fn(&ReductionRule, &Arc<dyn Held>, &Arc<dyn Held>) -> Result<NodeParts, Error>,
    along: RulePullBack<LineRule>,
    along_parts: fn(&LineRule, &Arc<dyn Held>, &[Part], bool) -> Result<Option<NodeParts>, Error>,
    along_again: fn(&LineRule, &Arc<dyn Held>, &Arc<dyn Held>) -> Result<Option<NodeParts>, Error>,
    attention: RulePullBack<Attention>,
    attention_again: fn(&Attention, &Arc<dyn Held>) -> Result<Option<NodeParts>, Error>,
    recurrence: RulePullBack<Recurrence>,
    repeat_reduction: RuleRepetition<ReductionRule>,
    repeat_lines: RuleRepetition<LineRule>,
    repeat_pull_back: fn(&lines::LinePullBack, Vec<Field>) -> Result<Arc<dyn Held>, Error>,
    repeat_detached: fn(&detached::DetachedElements, Vec<Field>) -> Result<Arc<dyn Held>, Error>,
    repeat_placed: fn(&placed::Placed, Vec<Field>) -> Result<Arc<dyn Held>, Error>,
    repeat_attention: fn(&Attention, Vec<Field>) -> Result<Arc<dyn Held>, Error>,
    repeat_attention_pull_back: fn(&attention::AttentionPullBack, Vec<Field>) -> Result<Arc<dyn Held>, Error>,
    repeat_recurrence: fn(&Recurrence, Option<Field>, Field) -> Result<Arc<dyn Held>, Error>,
}

type RuleRepetition<R> = fn(&R, &Field) -> Result<Arc<dyn Held>, Error>;

impl RulePullBacks {
    const ALL: RulePullBacks = RulePullBacks {
        reduced: ReductionRule::pull_back,
        product_again: ReductionRule::pull_back_product_again,
        along: LineRule::pull_back,
        along_parts: LineRule::pull_back_parts,
        along_again: LineRule::pull_back_again,
        attention: Attention::pull_back,
        attention_again: Attention::pull_back_again,
        recurrence: Recurrence::pull_back,
        repeat_reduction: ReductionRule::repeat,
        repeat_lines: LineRule::repeat,
        repeat_pull_back: lines::LinePullBack::repeat,
        repeat_detached: detached::DetachedElements::repeat,
        repeat_placed: placed::Placed::repeat,
        repeat_attention: Attention::repeat,
        repeat_attention_pull_back: attention::AttentionPullBack::repeat,
        repeat_recurrence: Recurrence::repeat,
    };
}

static PULL_BACKS: Linked<RulePullBacks> = Linked::new();

/// Links the code that rules need.
pub(super) fn link() {
    PULL_BACKS.set(RulePullBacks::ALL);
}

fn pull_backs() -> &'static RulePullBacks {
    PULL_BACKS.get()
}

/// A field whose elements are contiguous in `order`, and constant along the other loops.
fn along(sizes: &[usize], held: &Arc<dyn Held>, order: &[usize]) -> Field {
    Field::held(sizes, held, StridedPlace::contiguous(sizes, order))
}

/// The sums of a field over all loops except `kept`, contiguous in the order of `kept`.
pub fn sum(field: Field, kept: &[usize], dtype: DType, recorded: bool) -> Result<Arc<dyn Held>, Error> {
    let len = kept.iter().map(|&axis| field.sizes[axis]).product();
    let place = StridedPlace::contiguous(&field.sizes, kept);
    evaluate(&[Part { field, place }], len, dtype, recorded)
}

/// A step of a plan that combines the elements of a field along some loops. Its result has `bytes`
/// bytes.
fn plan_along(name: &'static str, field: &Field, loops: [&[usize]; 2], bytes: usize) -> PlanStep {
    let [kept, reduced] = loops;
    let nest = Nest::reduce(&field.sizes, kept, reduced, &rows(field));
    let work = field.sizes.iter().copied().fold(1, usize::saturating_mul);
    PlanStep::Reduce {
        reduction: name,
        expression: field.program.describe(),
        loops: Loops::of_bytes(&nest, bytes, threads::parts(work)),
        count: reduced.iter().map(|&axis| field.sizes[axis]).product(),
    }
}

/// The accumulator type for sums of this element type.
fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// A register with a constant, of the same kind as `like`.
fn constant(build: &mut Builder, like: Register, value: f64) -> Register {
    let kind = build.kind(like);
    build.float(value, kind)
}

/// A reduction of a field over some loops. The result is contiguous in the order of `kept`.
pub struct ReductionRule {
    /// The operand.
    pub field: Field,
    /// The loops of the result.
    pub kept: Vec<usize>,
    /// The other loops.
    pub reduced: Vec<usize>,
    /// The reduction.
    pub reduction: ReductionKind,
    /// The type of the result.
    pub dtype: DType,
}

impl ReductionRule {
    fn count(&self) -> f64 {
        self.reduced.iter().map(|&axis| self.field.sizes[axis] as f64).product()
    }

    /// The reduction as a step of a program.
    pub fn into_step(self) -> NodeStep {
        // A recorded mean stays a reduction, so that each call rounds like the function itself.
        let is_mean = self.reduction == ReductionKind::Mean;
        let is_recorded = self.field.is_recorded();
        match self.as_sum() {
            Some(part) if !(is_mean && is_recorded) => NodeStep::Parts(vec![part]),
            _ => NodeStep::Rule(Box::new(self)),
        }
    }

    /// The reduction as a part, if it is a sum or a mean.
    fn as_sum(&self) -> Option<Part> {
        let place = StridedPlace::contiguous(&self.field.sizes, &self.kept);
        match self.reduction {
            ReductionKind::Sum => Some(Part { field: self.field.clone(), place }),
            ReductionKind::Mean => {
                let share = 1.0 / self.count();
                let field = self.field.map([], |build, z, []| {
                    let share = constant(build, z, share);
                    build.binary(BinaryOpcode::Mul, z, share)
                });
                Some(Part { field, place })
            }
            _ => None,
        }
    }
}

impl Rule for ReductionRule {
    fn name(&self) -> &'static str {
        self.reduction.name()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        vec![&self.field]
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        vec![&mut self.field]
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, mut operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let field = operands.pop()?;
        Some((pull_backs().repeat_reduction)(self, &field))
    }

    fn plan(&self, operands: &[Field], _: usize, bytes: usize) -> Option<PlanStep> {
        Some(plan_along(self.name(), operands.first()?, [&self.kept, &self.reduced], bytes))
    }

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        (pull_backs().reduced)(self, value, cotangent, recorded)
    }

    fn pull_to_run_again(
        &self,
        value: &Arc<dyn Held>,
        cotangent: &Arc<dyn Held>,
    ) -> Result<Option<NodeParts>, Error> {
        let is_product = self.reduction == ReductionKind::Prod;
        is_product.then(|| (pull_backs().product_again)(self, value, cotangent)).transpose()
    }
}

impl ReductionRule {
    /// The reduction, applied to another field.
    pub(super) fn repeat(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        match field.kind() {
            RegisterKind::Bool => self.repeat_bools(field),
            RegisterKind::Int => self.repeat_integers(field),
            RegisterKind::F64 => self.repeat_floats::<f64>(field),
            RegisterKind::F32 => match self.dtype {
                DType::F64 => self.repeat_floats::<f64>(field),
                // The recorded step reduced elements of half precision. The same reducer runs here,
                // so the same values are rounded.
                #[cfg(feature = "half")]
                DType::F16 => self.repeat_floats::<half::f16>(field),
                #[cfg(feature = "half")]
                DType::Bf16 => self.repeat_floats::<half::bf16>(field),
                _ => self.repeat_floats::<f32>(field),
            },
        }
    }

    fn reduced<T, Q>(&self, field: &Field, reducer: Q) -> Result<Vec<Q::Out>, Error>
    where
        T: ProgramOutput,
        Q: Reducer<T, Out: Send> + Send + Sync,
    {
        reduced_of::<T, Q>(field, &self.kept, &self.reduced, reducer)
    }

    fn repeat_bools(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        Ok(match self.reduction {
            ReductionKind::Any => Buffer::from(self.reduced::<bool, _>(field, reducers::Any)?).held(),
            ReductionKind::All => Buffer::from(self.reduced::<bool, _>(field, reducers::All)?).held(),
            ReductionKind::Count => Buffer::from(self.reduced::<bool, _>(field, reducers::Count)?).held(),
            _ => unreachable!("this is not a reduction of `bool`s"),
        })
    }

    fn repeat_integers(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        use ReductionKind::{ArgMax, ArgMin, Max, Min};
        if matches!(self.reduction, ArgMax | ArgMin | Max | Min) && field.is_unsigned() {
            // With the top bit flipped, unsigned integers keep their order when they are compared
            // as signed ones.
            let ordered = field.map([], |build, value, []| {
                let least = build.constant(Number::Int(isize::MIN), RegisterKind::Int);
                build.binary(BinaryOpcode::Xor, value, least)
            });
            let mut data = match self.reduction {
                Max => self.reduced::<isize, _>(&ordered, reducers::Max)?,
                Min => self.reduced::<isize, _>(&ordered, reducers::Min)?,
                _ => return self.repeat_positions::<isize>(&ordered),
            };
            data.iter_mut().for_each(|value| *value ^= isize::MIN);
            return self.as_result(&Buffer::from(data).held());
        }
        let data = match self.reduction {
            ReductionKind::ArgMax | ReductionKind::ArgMin => return self.repeat_positions::<isize>(field),
            ReductionKind::Prod => self.reduced::<isize, _>(field, reducers::Prod)?,
            ReductionKind::Max => self.reduced::<isize, _>(field, reducers::Max)?,
            ReductionKind::Min => self.reduced::<isize, _>(field, reducers::Min)?,
            _ => unreachable!("this is not a reduction of integers"),
        };
        self.as_result(&Buffer::from(data).held())
    }

    fn repeat_positions<T: ProgramOutput + Ordered>(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        let data = match self.reduction {
            ReductionKind::ArgMax => self.reduced::<T, _>(field, reducers::ArgExtremum::<true>)?,
            _ => self.reduced::<T, _>(field, reducers::ArgExtremum::<false>)?,
        };
        Ok(Buffer::from(data).held())
    }

    fn repeat_floats<T: ProgramOutput + Real>(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        let data = match self.reduction {
            ReductionKind::ArgMax | ReductionKind::ArgMin => return self.repeat_positions::<T>(field),
            ReductionKind::Sum => self.reduced::<T, _>(field, reducers::Sum::ONCE)?,
            ReductionKind::Mean => self.reduced::<T, _>(field, reducers::Mean)?,
            ReductionKind::Prod => self.reduced::<T, _>(field, reducers::Prod)?,
            ReductionKind::Max => self.reduced::<T, _>(field, reducers::Max)?,
            ReductionKind::Min => self.reduced::<T, _>(field, reducers::Min)?,
            ReductionKind::Variance { ddof, root } => {
                self.reduced::<T, _>(field, reducers::Variance { ddof: T::of(ddof), root })?
            }
            ReductionKind::LogSumExp => {
                self.reduced::<T, _>(field, reducers::LogSumExp::<T>(core::marker::PhantomData))?
            }
            ReductionKind::Norm => self.reduced::<T, _>(field, reducers::Norm)?,
            ReductionKind::NormP(p) => self.reduced::<T, _>(field, reducers::NormP(T::of(p)))?,
            ReductionKind::Any | ReductionKind::All | ReductionKind::Count | ReductionKind::Opaque => {
                unreachable!("this is not a reduction of floats")
            }
        };
        self.as_result(&Buffer::from(data).held())
    }

    /// Elements converted to the type of the result.
    fn as_result(&self, held: &Arc<dyn Held>) -> Result<Arc<dyn Held>, Error> {
        if held.dtype() == Some(self.dtype) {
            return Ok(Arc::clone(held));
        }
        Field::held(&[held.len()], held, StridedPlace::strided(0, [1])).computed(&[0], self.dtype)
    }

    pub(super) fn pull_back(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        if let Some(part) = self.as_sum() {
            return crate::trace::pull_parts(&[part], &cotangent, recorded, &|_| true);
        }
        let ReductionRule { field, kept, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let (y, dy) = (along(sizes, value, kept), along(sizes, &cotangent, kept));
        let given = match self.reduction {
            ReductionKind::Sum | ReductionKind::Mean => unreachable!("sums are parts"),
            ReductionKind::Max | ReductionKind::Min => {
                let is_best = field.map([&y], |build, z, [y]| {
                    let same = build.binary(BinaryOpcode::Eq, z, y);
                    let (one, zero) = (constant(build, z, 1.0), constant(build, z, 0.0));
                    build.select(same, one, zero)
                });
                let ties = along(sizes, &sum(is_best, kept, wide(*dtype), recorded)?, kept);
                field.map([&y, &dy, &ties], |build, z, [y, dy, ties]| {
                    let (same, share) =
                        (build.binary(BinaryOpcode::Eq, z, y), build.binary(BinaryOpcode::Div, dy, ties));
                    // If the result is NaN, it equals none of the elements, and all slopes are NaN.
                    let (nan, zero) = (build.unary(UnaryOpcode::IsNan, y), constant(build, z, 0.0));
                    let slope = build.select(nan, y, zero);
                    let other = build.binary(BinaryOpcode::Chain, dy, slope);
                    build.select(same, share, other)
                })
            }
            // The result is rounded, so the weights are divided by their own sum.
            ReductionKind::LogSumExp => {
                let weights = field.map([&y], |build, z, [y]| exp_weight(build, z, y));
                let total = along(sizes, &sum(weights.clone(), kept, wide(*dtype), recorded)?, kept);
                weights.map([&dy, &total], |build, weight, [dy, total]| {
                    let share = quotient(build, weight, total);
                    build.binary(BinaryOpcode::Chain, dy, share)
                })
            }
            ReductionKind::Variance { ddof, root } => {
                let (count, share) = (self.count(), 1.0 / self.count());
                let part = field.map([], |build, z, []| {
                    let share = constant(build, z, share);
                    build.binary(BinaryOpcode::Mul, z, share)
                });
                let mean = along(sizes, &sum(part, kept, wide(*dtype), recorded)?, kept);
                field.map([&y, &dy, &mean], |build, z, [y, dy, mean]| {
                    let difference = build.binary(BinaryOpcode::Sub, z, mean);
                    let scale = if root { 1.0 } else { 2.0 };
                    let scale = if ddof == 0.0 {
                        constant(build, z, scale / count)
                    } else {
                        // The sign of this difference may depend on sizes that a program leaves
                        // open.
                        let (difference, zero) = (constant(build, z, count - ddof), constant(build, z, 0.0));
                        let divisor = build.binary(BinaryOpcode::Maximum, difference, zero);
                        let scale = constant(build, z, scale);
                        build.binary(BinaryOpcode::Div, scale, divisor)
                    };
                    let slope = build.binary(BinaryOpcode::Mul, difference, scale);
                    let slope = if root { quotient(build, slope, y) } else { slope };
                    build.binary(BinaryOpcode::Chain, dy, slope)
                })
            }
            ReductionKind::Norm => field.map([&y, &dy], |build, z, [y, dy]| {
                let slope = quotient(build, z, y);
                build.binary(BinaryOpcode::Chain, dy, slope)
            }),
            // (z / y)^(p - 1). The derivative of the formula with `sign(z)`, below, is wrong at 0.
            ReductionKind::NormP(p) if p > 0.0 && p % 2.0 == 0.0 && p < 1e9 => {
                field.map([&y, &dy], |build, z, [y, dy]| {
                    let ratio = quotient(build, z, y);
                    let slope = build.unary(UnaryOpcode::Powi(p as i32 - 1), ratio);
                    build.binary(BinaryOpcode::Chain, dy, slope)
                })
            }
            ReductionKind::NormP(p) => field.map([&y, &dy], |build, z, [y, dy]| {
                // sign(z) (|z| / y)^(p - 1)
                let (size, sign) = (build.unary(UnaryOpcode::Abs, z), build.unary(UnaryOpcode::Signum, z));
                let ratio = quotient(build, size, y);
                let exponent = constant(build, z, p - 1.0);
                let power = build.binary(BinaryOpcode::Powf, ratio, exponent);
                let slope = build.binary(BinaryOpcode::Chain, sign, power);
                build.binary(BinaryOpcode::Chain, dy, slope)
            }),
            // The quotient below is wrong if the product has lost digits. A recorded pull-back may
            // be differentiated again; where a factor is small, the derivatives of the quotient
            // would be differences of large numbers.
            ReductionKind::Prod if recorded || has_lost_digits(&y, *dtype)? => {
                let others = products_of_others(field, kept, &self.reduced, *dtype, recorded)?;
                dy.map([&others], |build, dy, [others]| build.binary(BinaryOpcode::Chain, dy, others))
            }
            // No factor is 0, so the product of the others is a quotient.
            ReductionKind::Prod => field.map([&y, &dy], |build, z, [y, dy]| {
                let others = build.binary(BinaryOpcode::Div, y, z);
                build.binary(BinaryOpcode::Chain, dy, others)
            }),
            ReductionKind::ArgMax
            | ReductionKind::ArgMin
            | ReductionKind::Any
            | ReductionKind::All
            | ReductionKind::Count
            | ReductionKind::Opaque => unreachable!("no gradient reaches a reduction without a derivative"),
        };
        Ok(field.pull(&given))
    }

    /// The gradient of a product, as steps that can run again. The values of each call decide how
    /// the product of the other factors is computed: the whole product is divided by the factor,
    /// unless [a product has lost digits](has_lost_digits).
    pub(super) fn pull_back_product_again(
        &self,
        value: &Arc<dyn Held>,
        cotangent: &Arc<dyn Held>,
    ) -> Result<NodeParts, Error> {
        let ReductionRule { field, kept, reduced, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let (y, dy) = (along(sizes, value, kept), along(sizes, cotangent, kept));
        let is_lost = y.only(kept).map([], |build, y, []| {
            let lost = loses_digits(build, y, *dtype);
            let (one, zero) = (constant(build, y, 1.0), constant(build, y, 0.0));
            build.select(lost, one, zero)
        });
        let lost = along(sizes, &sum(is_lost, &[], wide(*dtype), true)?, &[]);
        let others = products_of_others(field, kept, reduced, *dtype, true)?;
        let given = field.map([&y, &dy, &others, &lost], |build, z, [y, dy, others, lost]| {
            let quotient = build.binary(BinaryOpcode::Div, y, z);
            let zero = constant(build, lost, 0.0);
            let (none, quotient, others) = (
                build.binary(BinaryOpcode::Eq, lost, zero),
                build.binary(BinaryOpcode::Chain, dy, quotient),
                build.binary(BinaryOpcode::Chain, dy, others),
            );
            build.select(none, quotient, others)
        });
        Ok(field.pull(&given))
    }
}

/// Whether a value equals a number.
fn is(build: &mut Builder, value: Register, number: f64) -> Register {
    let number = constant(build, value, number);
    build.binary(BinaryOpcode::Eq, value, number)
}

/// Whether any element of a field of this type is 0, subnormal, infinite or NaN.
fn has_lost_digits(field: &Field, dtype: DType) -> Result<bool, Error> {
    any(&field.map([], |build, value, []| loses_digits(build, value, dtype)))
}

/// Whether a value of this type is 0, subnormal, infinite or NaN.
fn loses_digits(build: &mut Builder, value: Register, dtype: DType) -> Register {
    let least = match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        #[cfg(feature = "half")]
        DType::F16 => half::f16::MIN_POSITIVE.to_f64(),
        _ => f32::MIN_POSITIVE.into(),
    };
    let (size, least) = (build.unary(UnaryOpcode::Abs, value), constant(build, value, least));
    let (finite, small) =
        (build.unary(UnaryOpcode::IsFinite, value), build.binary(BinaryOpcode::Lt, size, least));
    let other = build.unary(UnaryOpcode::Not, finite);
    build.select(finite, small, other)
}

/// Whether any element of a field is true.
fn any(field: &Field) -> Result<bool, Error> {
    let number = field.map([], |build, value, []| build.cast(DType::Isize, value));
    let varies = |axis: &usize| field.operands.iter().any(|own| own.place.varies(*axis));
    let order: Vec<usize> = (0..field.sizes.len()).filter(varies).collect();
    Ok(!field.sizes.contains(&0) && super::compute::mapped::<isize>(&number, &order)?.contains(&1))
}

/// `e^(z - y)`: the weight of an element in a sum of exponentials with logarithm `y`. If `y` is
/// infinite, the difference could be NaN; the weight is then 1 if `z` is positive infinity, and 0
/// otherwise.
fn exp_weight(build: &mut Builder, z: Register, y: Register) -> Register {
    let (one, zero) = (constant(build, z, 1.0), constant(build, z, 0.0));
    let (infinite, same) = (build.unary(UnaryOpcode::IsInfinite, y), is(build, z, f64::INFINITY));
    let tie = build.select(same, one, zero);
    let difference = build.binary(BinaryOpcode::Sub, z, y);
    let weight = build.unary(UnaryOpcode::Exp, difference);
    build.select(infinite, tie, weight)
}

/// For each element of a field, the product of the other elements over some loops: the product of
/// the elements before it times the product of those after it.
fn products_of_others(
    field: &Field,
    kept: &[usize],
    reduced: &[usize],
    dtype: DType,
    recorded: bool,
) -> Result<Field, Error> {
    fn unit<T: ProgramOutput + Real>(len: usize, at: usize) -> Result<Arc<dyn Held>, Error> {
        let mut unit = super::compute::filled::<T>(len)?;
        unit[at] = T::ONE;
        Ok(Buffer::from(unit).held())
    }
    if field.sizes.contains(&0) {
        return Ok(field.clone());
    }
    // A product of some factors of half precision may be out of range although the product of all
    // is not.
    let dtype = wide(dtype);
    // The elements along two loops: over factors, and over products.
    let order: Vec<usize> = reduced.iter().chain(kept).copied().collect();
    let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
    let sizes = [volume(reduced), volume(kept)];
    let whole = StridedPlace::contiguous(&sizes, &[0, 1]);
    let factors = Field::held(&sizes, &sum(field.clone(), &order, dtype, recorded)?, whole);
    let rest = sizes[0] - 1;
    // A running product that starts with 1 and multiplies by each factor.
    let running = |start: usize, factors: Field, backward: bool| {
        let start = floats!(dtype, unit(sizes[0], start))?;
        let start = Field::held(&sizes, &start, StridedPlace::strided(0, [1, 0]));
        let products = recurrence(Some(factors), start, 0, &[0, 1], backward, dtype, recorded)?;
        Ok::<_, Error>(along(&field.sizes, &products, &order))
    };
    let before = running(0, factors.slice(0, 0, rest), false)?;
    let behind = running(rest, factors.slice(0, 1, rest), true)?;
    Ok(before.map([&behind], |build, a, [b]| build.binary(BinaryOpcode::Mul, a, b)))
}

/// `a / b`, or 0 if `b` is 0.
fn quotient(build: &mut Builder, a: Register, b: Register) -> Register {
    let zero = constant(build, a, 0.0);
    let (none, quotient) = (build.binary(BinaryOpcode::Eq, b, zero), build.binary(BinaryOpcode::Div, a, b));
    build.select(none, zero, quotient)
}
