//! Work along lines: softmax, normalizations and scans.

use super::recurrence::recurrence;
use super::{NodeParts, along, constant, exp_weight, plan_along, pull_backs, quotient, sum, wide};
use crate::error::Error;
use crate::loops::nest::Nest;
use crate::loops::rows::Rows;
use crate::loops::steps::PlanStep;
use crate::machine::threads;
use crate::memory::allocate::reserve;
use crate::memory::buffer::Buffer;
use crate::ops::code::{BinaryOpcode, DType, LineWork, UnaryOpcode};
use crate::program::Register;
use crate::program::builder::Builder;
use crate::program::interpreter::ProgramOutput;
use crate::scalar::{Ordered, Real};
use crate::scan::pull::{ForwardLines, needs_input, pull_back};
use crate::scan::{self, LineOp, ScanInput};
use crate::trace::compute::{HeldMemories, floats, hollow_of, mapped, stepped, with_rule};
use crate::trace::{Field, FieldSource, Held, Node, NodeStep, Part, Rule, StridedPlace, Table, evaluate};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// Work along lines of a field. The result is contiguous in an order of all loops.
pub struct LineRule {
    /// The operand.
    pub field: Field,
    /// The loops, in the memory order of the result.
    pub order: Vec<usize>,
    /// The loops along a line.
    pub lines: Vec<usize>,
    /// The work.
    pub work: LineWork,
    /// The type of the result.
    pub dtype: DType,
    /// Whether the softmax of a line of minus infinities is 0, as for masked scores.
    pub is_masked: bool,
}

impl Rule for LineRule {
    fn name(&self) -> &'static str {
        self.work.name()
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

    fn pull(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        (pull_backs().along)(self, value, cotangent, recorded)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, mut operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let field = operands.pop()?;
        Some((pull_backs().repeat_lines)(self, &field))
    }

    fn plan(&self, operands: &[Field], _: usize, bytes: usize) -> Option<PlanStep> {
        let outer: Vec<usize> =
            self.order.iter().copied().filter(|axis| !self.lines.contains(axis)).collect();
        Some(plan_along(self.name(), operands.first()?, [&outer, &self.lines], bytes))
    }

    fn pull_parts(
        &self,
        value: &Arc<dyn Held>,
        parts: &[Part],
        recorded: bool,
    ) -> Result<Option<NodeParts>, Error> {
        (pull_backs().along_parts)(self, value, parts, recorded)
    }

    fn pull_to_run_again(
        &self,
        value: &Arc<dyn Held>,
        cotangent: &Arc<dyn Held>,
    ) -> Result<Option<NodeParts>, Error> {
        (pull_backs().along_again)(self, value, cotangent)
    }
}

impl LineRule {
    /// The work, applied to the lines of another field.
    pub(super) fn repeat(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        macro_rules! by_type {
            ($($name:ident $t:ty,)*) => {
                match self.dtype {
                    DType::F32 => self.repeat_floats::<f32>(field),
                    DType::F64 => self.repeat_floats::<f64>(field),
                    #[cfg(feature = "half")]
                    DType::F16 => self.repeat_floats::<half::f16>(field),
                    #[cfg(feature = "half")]
                    DType::Bf16 => self.repeat_floats::<half::bf16>(field),
                    $(DType::$name => self.repeat_numbers::<$t>(field),)*
                    #[cfg(not(feature = "half"))]
                    DType::F16 | DType::Bf16 => unreachable!("elements of half precision need the feature `half`"),
                    DType::Bool => unreachable!("there is no work on lines of `bool`s"),
                }
            };
        }
        by_type!(I8 i8, I16 i16, I32 i32, I64 i64, Isize isize, U8 u8, U16 u16, U32 u32, U64 u64, Usize usize,)
    }

    fn repeat_floats<T: ProgramOutput + Real>(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        use crate::scan::norm::{RootMeanSquare, Standardize, UnitLength};
        let eps = |eps: f64| T::of(eps);
        match self.work {
            LineWork::Softmax { log: true } => self.worked::<T>(field, scan::Softmax::<true>),
            LineWork::Softmax { log: false } if self.is_masked => {
                Ok(Buffer::from(masked_softmax::<T>(self, field)?).held())
            }
            LineWork::Softmax { log: false } => self.worked::<T>(field, scan::Softmax::<false>),
            LineWork::CumulateLogSumExp => self.worked::<T>(field, scan::CumulateLogSumExp),
            LineWork::Standardize { eps: own } => self.worked::<T>(field, Standardize(eps(own))),
            LineWork::RootMeanSquare { eps: own } => self.worked::<T>(field, RootMeanSquare(eps(own))),
            LineWork::UnitLength { eps: own } => self.worked::<T>(field, UnitLength(eps(own))),
            _ => self.repeat_numbers::<T>(field),
        }
    }

    fn repeat_numbers<T: ProgramOutput + Ordered>(&self, field: &Field) -> Result<Arc<dyn Held>, Error> {
        match self.work {
            LineWork::Cumulate => self.worked::<T>(field, scan::Cumulate),
            LineWork::CumulateProduct => self.worked::<T>(field, scan::CumulateProduct),
            LineWork::CumulateBest { greatest: true } => self.worked::<T>(field, scan::CumulateBest::<true>),
            LineWork::CumulateBest { greatest: false } => {
                self.worked::<T>(field, scan::CumulateBest::<false>)
            }
            _ => unreachable!("this work requires floats"),
        }
    }

    fn worked<T: ProgramOutput>(&self, field: &Field, work: impl LineOp<T>) -> Result<Arc<dyn Held>, Error> {
        let LineRule { order, lines, .. } = self;
        let first = order.iter().position(|axis| lines.contains(axis)).unwrap_or(order.len());
        let volume = |axes: &[usize]| axes.iter().map(|&axis| field.sizes[axis]).product::<usize>();
        let inner = volume(&order[(first + lines.len()).min(order.len())..]);
        let (len, block) = (volume(order), volume(lines) * inner);
        let threads = threads::parts(len);
        if let (Some((number, operand)), false) = (field.plain::<T>(), field.sizes.contains(&0)) {
            // Elements in memory are read without a copy.
            let mut rows = Rows::new(field.sizes.len());
            rows.push().copy_from_slice(&operand.place.strides);
            let nest = Nest::blocks(&field.sizes, &order[..first], &order[first..], &rows);
            let parts = nest.split(0, if nest.outer > 0 { threads } else { 1 });
            let memories = HeldMemories::of(field);
            // SAFETY: the elements have an axis for each loop of the field, with its size and
            // stride.
            let input = unsafe { ScanInput::new(memories.elements(field, number), &parts, len, inner) };
            return Ok(Buffer::from(work.collect_memory(input)?).held());
        }
        let mut data = mapped::<T>(field, order)?;
        if !data.is_empty() {
            scan::in_place(&mut data, block, inner, threads, work);
        }
        Ok(Buffer::from(data).held())
    }

    pub(super) fn pull_back(
        &self,
        value: &Arc<dyn Held>,
        cotangent: Arc<dyn Held>,
        recorded: bool,
    ) -> Result<NodeParts, Error> {
        let LineRule { field, order, lines, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let (y, dy) = (along(sizes, value, order), along(sizes, &cotangent, order));
        if sizes.contains(&0) {
            return Ok(field.pull(&dy));
        }
        let given = match self.work {
            LineWork::Cumulate => {
                along(sizes, &recurrence(None, dy, lines[0], order, true, *dtype, recorded)?, order)
            }
            LineWork::CumulateProduct => return self.product(&y, dy, recorded),
            LineWork::CumulateLogSumExp => self.log_sum_exp(&y, dy, recorded)?,
            LineWork::CumulateBest { .. } => along(sizes, &self.best(value, dy, recorded)?, order),
            LineWork::Opaque => unreachable!("a step without a derivative is not recorded"),
            _ if recorded || !self.has_inner_lines() => self.composed(&y, &dy, recorded)?,
            _ => {
                drop(dy);
                along(sizes, &floats!(*dtype, fused(self, value, cotangent))?, order)
            }
        };
        Ok(field.pull(&given))
    }

    /// Whether the elements of a line are contiguous.
    fn has_inner_lines(&self) -> bool {
        let LineRule { order, lines, .. } = self;
        order[order.len() - lines.len()..].iter().all(|axis| lines.contains(axis))
    }

    /// The pull-back as one step that can run again, if there is a fused loop for it.
    pub(super) fn pull_back_again(
        &self,
        value: &Arc<dyn Held>,
        cotangent: &Arc<dyn Held>,
    ) -> Result<Option<NodeParts>, Error> {
        let LineRule { field, order, work, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let is_known = matches!(
            work,
            LineWork::Softmax { .. }
                | LineWork::Standardize { .. }
                | LineWork::RootMeanSquare { .. }
                | LineWork::UnitLength { .. }
        );
        if !is_known || sizes.contains(&0) || !self.has_inner_lines() {
            return Ok(None);
        }
        let data = floats!(*dtype, fused(self, value, Arc::clone(cotangent)))?;
        let (y, dy) = (along(sizes, value, order), along(sizes, cotangent, order));
        let read = if needs_input(self.work) { field.clone() } else { field.loops_alone() };
        let lines = LineRule { field: read, order: order.clone(), lines: self.lines.clone(), ..*self };
        let given = with_rule(data, LinePullBack { lines, y, dy })?;
        Ok(Some(field.pull(&along(sizes, &given, order))))
    }

    /// Log-softmax: `dx = dy - e^y * (the line's sum of dy)`. If few elements have a cotangent, as
    /// in a cross entropy, only the second term is computed for the elements without a cotangent.
    pub(super) fn pull_back_parts(
        &self,
        value: &Arc<dyn Held>,
        parts: &[Part],
        recorded: bool,
    ) -> Result<Option<NodeParts>, Error> {
        let LineRule { field, order, lines, work, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let ([part], LineWork::Softmax { log: true }) = (parts, *work) else { return Ok(None) };
        let count = part.field.sizes.iter().try_fold(1, |count: usize, &size| count.checked_mul(size));
        let is_few = count.is_some_and(|count| count <= value.len() / 8);
        let (outer, inner) = order.split_at(order.len() - lines.len());
        if sizes.contains(&0) || !is_few || !inner.iter().all(|axis| lines.contains(axis)) {
            return Ok(None);
        }
        let start = match *dtype {
            DType::F32 => field.lying::<f32>(order).map(|(_, start)| start),
            DType::F64 => field.lying::<f64>(order).map(|(_, start)| start),
            _ => None,
        };
        let len = lines.iter().map(|&axis| sizes[axis]).product();
        let (Some(start), Some(place)) = (start, part.place.of_lines(&part.field.sizes, len)) else {
            return Ok(None);
        };
        let total = Part { field: part.field.clone(), place };
        let total = along(sizes, &evaluate(&[total], value.len() / len, *dtype, recorded)?, outer);
        let others = along(sizes, value, order).map([&total], |build, y, [total]| {
            let (share, total) = (build.unary(UnaryOpcode::Exp, y), build.unary(UnaryOpcode::Neg, total));
            build.binary(BinaryOpcode::Chain, share, total)
        });
        let mut pulled = field.pull(&others);
        let mut own = part.clone();
        own.place.offset += start as isize;
        let node = field.nodes().next().expect("the operand is traced");
        pulled.push((Arc::clone(node), own));
        Ok(Some(pulled))
    }
}

/// The softmax of scores along the loops `lines`, which are the last loops in `order`; 0 where all
/// scores of a line are minus infinity.
pub(super) fn softmax(
    field: Field,
    order: &[usize],
    lines: &[usize],
    dtype: DType,
    recorded: bool,
) -> Result<Arc<dyn Held>, Error> {
    fn computed<T: ProgramOutput + Real>(rule: LineRule, is_traced: bool) -> Result<Arc<dyn Held>, Error> {
        let data = masked_softmax::<T>(&rule, &rule.field)?;
        Ok(stepped(data, is_traced.then_some(rule)))
    }
    let is_traced = recorded && field.is_traced();
    let (order, lines) = (order.to_vec(), lines.to_vec());
    let work = LineWork::Softmax { log: false };
    let rule = LineRule { field, order, lines, work, dtype, is_masked: true };
    floats!(dtype, computed(rule, is_traced))
}

/// The softmax of a field's lines; 0 where all elements of a line are minus infinity.
fn masked_softmax<T: ProgramOutput + Real>(rule: &LineRule, field: &Field) -> Result<Vec<T>, Error> {
    let mut data = mapped::<T>(field, &rule.order)?;
    let len = rule.lines.iter().map(|&axis| field.sizes[axis]).product();
    if !data.is_empty() {
        let threads = threads::parts(data.len());
        let is_masked = |line: &[T]| line.iter().all(|&score| score == T::LOWEST);
        let masked: Vec<bool> = data.chunks_exact(len).map(is_masked).collect();
        scan::in_place(&mut data, len, 1, threads, scan::Softmax::<false>);
        let lines = data.chunks_exact_mut(len).zip(masked).filter(|(_, is_masked)| *is_masked);
        lines.for_each(|(line, _)| line.fill(T::ZERO));
    }
    Ok(data)
}

/// The number of elements to work on at once: as many whole blocks as stay in the second-level
/// cache, but at least one.
fn blocks_at_hand<T>(block: usize) -> usize {
    const AT_HAND: usize = 128 << 10;
    (AT_HAND / size_of::<T>() / block.max(1)).max(1) * block.max(1)
}

/// The pull-back of contiguous lines in one pass. It overwrites the cotangents if nothing else
/// holds them.
fn fused<T: ProgramOutput + Real>(
    rule: &LineRule,
    value: &Arc<dyn Held>,
    cotangent: Arc<dyn Held>,
) -> Result<Arc<dyn Held>, Error> {
    let elements = |held| Buffer::<T>::of_held(held).expect("the elements are of the result's type");
    let is_hollow = |held: &Arc<dyn Held>| held.node().is_some_and(|node| node.is_hollow());
    if is_hollow(value) || is_hollow(&cotangent) {
        return Ok(Buffer::from(hollow_of::<T>(value.len())?).held());
    }
    let (y, mut dy) = (elements(value), elements(&cotangent));
    drop(cotangent);
    let len = rule.lines.iter().map(|&axis| rule.field.sizes[axis]).product();
    let pull = |x: &[T]| -> Result<Vec<T>, Error> {
        let lines = |x, y, dy: &mut [T]| pull_back(ForwardLines { x, y, len, work: rule.work }, dy);
        if dy.is_unshared() {
            let mut dy = dy.into_vec();
            lines(x, &y, &mut dy);
            return Ok(dy);
        }
        let mut data = reserve(dy.len())?;
        let many = if threads::parts(dy.len()) == 1 { blocks_at_hand::<T>(len) } else { dy.len().max(1) };
        for dy in dy.chunks(many) {
            let own = data.len()..data.len() + dy.len();
            data.extend_from_slice(dy);
            lines(x.get(own.clone()).unwrap_or(&[]), &y[own.clone()], &mut data[own]);
        }
        Ok(data)
    };
    let pulled = match rule.field.lying::<T>(&rule.order) {
        _ if !needs_input(rule.work) => pull(&[]),
        Some((buffer, start)) => pull(&buffer[start..][..y.len()]),
        None => pull(&mapped::<T>(&rule.field, &rule.order)?),
    };
    Ok(Buffer::from(pulled?).held())
}

/// The pull-back of contiguous lines as a step that can run again. It has no derivative.
pub(in crate::trace) struct LinePullBack {
    pub(in crate::trace) lines: LineRule,
    /// The results.
    pub(in crate::trace) y: Field,
    /// The cotangents of the results.
    pub(in crate::trace) dy: Field,
}

impl Rule for LinePullBack {
    fn name(&self) -> &'static str {
        match self.lines.work {
            LineWork::Softmax { log: false } => "gradient of softmax",
            LineWork::Softmax { log: true } => "gradient of log_softmax",
            LineWork::Standardize { .. } => "gradient of standardize",
            LineWork::RootMeanSquare { .. } => "gradient of rms_norm",
            LineWork::UnitLength { .. } => "gradient of normalize",
            _ => "gradient of lines",
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        let x = needs_input(self.lines.work).then_some(&self.lines.field);
        [&self.y, &self.dy].into_iter().chain(x).collect()
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        vec![&mut self.lines.field, &mut self.y, &mut self.dy]
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some((pull_backs().repeat_pull_back)(self, operands))
    }

    fn plan(&self, _: &[Field], len: usize, bytes: usize) -> Option<PlanStep> {
        let LineRule { field, lines, .. } = &self.lines;
        let size: usize = lines.iter().map(|&axis| field.sizes[axis]).product();
        let (lines, threads) = (len.checked_div(size).unwrap_or(0), threads::parts(len));
        Some(PlanStep::Lines { work: self.name(), lines, len: size, bytes, threads })
    }

    fn pull(&self, _: &Arc<dyn Held>, _: Arc<dyn Held>, _: bool) -> Result<NodeParts, Error> {
        unreachable!("steps that are only recorded to run again have no gradient")
    }
}

impl LinePullBack {
    /// Computes the pull-back for other lines.
    pub(super) fn repeat(&self, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
        let LineRule { field, order, lines, work, dtype, is_masked } = &self.lines;
        let mut operands = operands.into_iter();
        let mut memory = || {
            let mut field = operands.next().expect("all operands of the step are passed");
            match field.take_sources().pop() {
                Some(FieldSource::Memory(memory)) => memory,
                _ => unreachable!("results and cotangents are in memory"),
            }
        };
        let (y, dy) = (memory(), memory());
        let rule = LineRule {
            field: operands.next().unwrap_or_else(|| field.clone()),
            order: order.clone(),
            lines: lines.clone(),
            work: *work,
            dtype: *dtype,
            is_masked: *is_masked,
        };
        floats!(*dtype, fused(&rule, &y, dy))
    }
}

/// A value times a constant.
fn scaled(build: &mut Builder, value: Register, by: f64) -> Register {
    let by = constant(build, value, by);
    build.binary(BinaryOpcode::Mul, value, by)
}

/// The pull-back of work along lines `z` with results `y`, as fields: the cotangent of `z` for the
/// cotangent `dy` of `y`.
struct Composed<'a> {
    rule: &'a LineRule,
    y: &'a Field,
    dy: &'a Field,
    /// Whether its steps are recorded.
    recorded: bool,
}

impl Composed<'_> {
    /// The number of elements of a line.
    fn count(&self) -> f64 {
        self.rule.lines.iter().map(|&axis| self.rule.field.sizes[axis] as f64).product()
    }

    /// The sum of each line, repeated along the line.
    fn total(&self, field: Field) -> Result<Field, Error> {
        let LineRule { field: own, order, lines, dtype, .. } = self.rule;
        let kept: Vec<usize> = order.iter().copied().filter(|axis| !lines.contains(axis)).collect();
        Ok(along(&own.sizes, &sum(field, &kept, wide(*dtype), self.recorded)?, &kept))
    }

    /// `share y dy`
    fn products(&self, share: f64) -> Field {
        self.y.map([self.dy], |build, y, [dy]| {
            let product = build.binary(BinaryOpcode::Chain, y, dy);
            scaled(build, product, share)
        })
    }

    /// `share z^2`
    fn squares(&self, share: f64) -> Field {
        self.rule.field.map([], |build, z, []| {
            let square = build.unary(UnaryOpcode::Square, z);
            scaled(build, square, share)
        })
    }

    /// `y (dy - sum(y dy))`
    fn softmax(&self) -> Result<Field, Error> {
        let total = self.total(self.products(1.0))?;
        Ok(self.y.map([self.dy, &total], |build, y, [dy, total]| {
            let difference = build.binary(BinaryOpcode::Sub, dy, total);
            build.binary(BinaryOpcode::Chain, y, difference)
        }))
    }

    /// `dy - exp(y) sum(dy)`
    fn log_softmax(&self) -> Result<Field, Error> {
        let total = self.total(self.dy.clone())?;
        Ok(self.y.map([self.dy, &total], |build, y, [dy, total]| {
            let share = build.unary(UnaryOpcode::Exp, y);
            let share = build.binary(BinaryOpcode::Chain, share, total);
            build.binary(BinaryOpcode::Sub, dy, share)
        }))
    }

    /// `(dy - mean(dy) - y mean(y dy)) / sqrt(var(z) + eps)`
    fn standardize(&self, eps: f64) -> Result<Field, Error> {
        let (z, share) = (&self.rule.field, 1.0 / self.count());
        let mean = self.total(z.map([], |build, z, []| scaled(build, z, share)))?;
        let var = self.total(z.map([&mean], |build, z, [mean]| {
            let difference = build.binary(BinaryOpcode::Sub, z, mean);
            let square = build.unary(UnaryOpcode::Square, difference);
            scaled(build, square, share)
        }))?;
        let mean = self.total(self.dy.map([], |build, dy, []| scaled(build, dy, share)))?;
        let part = self.total(self.products(share))?;
        Ok(self.y.map([self.dy, &var, &mean, &part], |build, y, [dy, var, mean, part]| {
            let difference = build.binary(BinaryOpcode::Sub, dy, mean);
            let part = build.binary(BinaryOpcode::Chain, y, part);
            let difference = build.binary(BinaryOpcode::Sub, difference, part);
            let factor = root(build, var, eps);
            build.binary(BinaryOpcode::Chain, difference, factor)
        }))
    }

    /// `(dy - y mean(y dy)) / sqrt(mean(z^2) + eps)`
    fn root_mean_square(&self, eps: f64) -> Result<Field, Error> {
        let share = 1.0 / self.count();
        let mean = self.total(self.squares(share))?;
        let part = self.total(self.products(share))?;
        Ok(self.y.map([self.dy, &mean, &part], |build, y, [dy, mean, part]| {
            let part = build.binary(BinaryOpcode::Chain, y, part);
            let difference = build.binary(BinaryOpcode::Sub, dy, part);
            let factor = root(build, mean, eps);
            build.binary(BinaryOpcode::Chain, difference, factor)
        }))
    }

    /// `(dy - y sum(y dy)) / length` if the length is more than `eps`, otherwise `dy / eps`
    fn unit_length(&self, eps: f64) -> Result<Field, Error> {
        let squares = self.total(self.squares(1.0))?;
        let part = self.total(self.products(1.0))?;
        Ok(self.y.map([self.dy, &squares, &part], |build, y, [dy, squares, part]| {
            let (eps, zero) = (constant(build, dy, eps), constant(build, dy, 0.0));
            let length = build.unary(UnaryOpcode::Sqrt, squares);
            let short = build.binary(BinaryOpcode::Le, length, eps);
            // A root has no slope at 0, so the branch that is not taken gets the root of a
            // constant.
            let one = constant(build, dy, 1.0);
            let squares = build.select(short, one, squares);
            let length = build.unary(UnaryOpcode::Sqrt, squares);
            let length = build.select(short, eps, length);
            let part = build.select(short, zero, part);
            let part = build.binary(BinaryOpcode::Chain, y, part);
            let difference = build.binary(BinaryOpcode::Sub, dy, part);
            let factor = build.unary(UnaryOpcode::Recip, length);
            build.binary(BinaryOpcode::Chain, difference, factor)
        }))
    }
}

impl LineRule {
    /// The pull-back as fields, with sums over lines computed one by one.
    fn composed(&self, y: &Field, dy: &Field, recorded: bool) -> Result<Field, Error> {
        let pull_back = Composed { rule: self, y, dy, recorded };
        match self.work {
            LineWork::Softmax { log: false } => pull_back.softmax(),
            LineWork::Softmax { log: true } => pull_back.log_softmax(),
            LineWork::Standardize { eps } => pull_back.standardize(eps),
            LineWork::RootMeanSquare { eps } => pull_back.root_mean_square(eps),
            LineWork::UnitLength { eps } => pull_back.unit_length(eps),
            _ => unreachable!("scans have their own rules"),
        }
    }

    /// Running products: `dx[j] = y[j - 1] s[j]` with `y[-1] = 1` and
    /// `s[j] = dy[j] + x[j + 1] s[j + 1]`, which is correct even if elements are 0.
    fn product(&self, y: &Field, dy: Field, recorded: bool) -> Result<NodeParts, Error> {
        let LineRule { field, order, lines, dtype, .. } = self;
        let (sizes, axis) = (&field.sizes[..], lines[0]);
        let rest = sizes[axis] - 1;
        let later = field.slice(axis, 1, rest);
        let s = recurrence(Some(later.clone()), dy, axis, order, true, wide(*dtype), recorded)?;
        let s = along(sizes, &s, order);
        let mut parts = field.slice(axis, 0, 1).pull(&s.slice(axis, 0, 1));
        let given = s.slice(axis, 1, rest).map([&y.slice(axis, 0, rest)], |build, s, [before]| {
            build.binary(BinaryOpcode::Chain, s, before)
        });
        parts.extend(later.pull(&given));
        Ok(parts)
    }

    /// Running log-sum-exp: `dx[j] = q[j] s[j]` with `s[j] = dy[j] + p[j] s[j + 1]`, where `q[j]`
    /// is the share of `x[j]` in the sum `j`, and `p[j]` the share of the sum `j` in the next one.
    /// The results `y` are rounded, so `e^(x[j] - y[j])` is divided by the sum `r[j]` of these
    /// weights: `r[j] = e^(x[j] - y[j]) + e^(y[j - 1] - y[j]) r[j - 1]`.
    fn log_sum_exp(&self, y: &Field, dy: Field, recorded: bool) -> Result<Field, Error> {
        let LineRule { field, order, lines, dtype, .. } = self;
        let (sizes, axis) = (&field.sizes[..], lines[0]);
        let rest = sizes[axis] - 1;
        let (earlier, later) = (y.slice(axis, 0, rest), y.slice(axis, 1, rest));
        let factors = earlier.map([&later], |build, x, [y]| exp_weight(build, x, y));
        let own = field.map([y], |build, x, [y]| exp_weight(build, x, y));
        let r = recurrence(Some(factors.clone()), own.clone(), axis, order, false, wide(*dtype), recorded)?;
        let r = along(sizes, &r, order);
        let own = own.map([&r], |build, own, [r]| quotient(build, own, r));
        let (before, after) = (r.slice(axis, 0, rest), r.slice(axis, 1, rest));
        let shares = factors.map([&before, &after], |build, factor, [before, after]| {
            let part = build.binary(BinaryOpcode::Mul, factor, before);
            quotient(build, part, after)
        });
        let s = recurrence(Some(shares), dy, axis, order, true, wide(*dtype), recorded)?;
        let s = along(sizes, &s, order);
        Ok(s.map([&own], |build, s, [own]| build.binary(BinaryOpcode::Chain, s, own)))
    }

    /// Running extremes: each cotangent goes to the element that was chosen.
    fn best(&self, value: &Arc<dyn Held>, dy: Field, recorded: bool) -> Result<Arc<dyn Held>, Error> {
        let LineRule { field, order, lines, dtype, .. } = self;
        let sizes = &field.sizes[..];
        let rule = BestOf {
            x: field.clone(),
            y: along(sizes, value, order),
            order: order.clone(),
            axis: lines[0],
            dtype: *dtype,
        };
        let sources = along(sizes, &rule.recorded()?, order);
        let place = StridedPlace {
            offset: 0,
            strides: core::iter::repeat_n(0, sizes.len()).collect(),
            table: Some(Box::new(Table::computed(sources, value.len(), order)?)),
        };
        evaluate(&[Part { field: dy, place }], value.len(), *dtype, recorded)
    }
}

/// The positions of the elements that running extremes choose, in the order of the result: an
/// element's own position if the element is NaN or equals the result, otherwise the position chosen
/// before.
pub(in crate::trace) struct BestOf {
    pub(in crate::trace) x: Field,
    pub(in crate::trace) y: Field,
    pub(in crate::trace) order: Vec<usize>,
    pub(in crate::trace) axis: usize,
    pub(in crate::trace) dtype: DType,
}

impl BestOf {
    fn sources(&self, x: &Field, y: &Field) -> Result<Vec<isize>, Error> {
        floats!(self.dtype, sources(x, y, &self.order, self.axis))
    }

    /// The positions, as a step if the elements are recorded to run again.
    fn recorded(self) -> Result<Arc<dyn Held>, Error> {
        let data = match self.x.is_hollow() || self.y.is_hollow() {
            true => hollow_of(self.order.iter().map(|&axis| self.x.sizes[axis]).product())?,
            false => self.sources(&self.x, &self.y)?,
        };
        let nodes = self.x.all_nodes().into_iter().chain(self.y.all_nodes());
        if !{ nodes }.any(|node| node.is_recorded()) {
            return Ok(Buffer::from(data).held());
        }
        let node = Node::new(DType::Isize, data.len(), NodeStep::Rule(Box::new(self)), None);
        Ok(Buffer::traced(data, node).held())
    }
}

impl Rule for BestOf {
    fn name(&self) -> &'static str {
        "positions of running extremes"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        vec![&self.x, &self.y]
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        vec![&mut self.x, &mut self.y]
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        let [x, y] = &operands[..] else { return None };
        Some(self.sources(x, y).map(|data| Buffer::from(data).held()))
    }

    fn plan(&self, _: &[Field], len: usize, bytes: usize) -> Option<PlanStep> {
        let size = self.x.sizes[self.axis];
        let lines = len.checked_div(size).unwrap_or(0);
        Some(PlanStep::Lines { work: self.name(), lines, len: size, bytes, threads: 1 })
    }

    fn pull(&self, _: &Arc<dyn Held>, _: Arc<dyn Held>, _: bool) -> Result<NodeParts, Error> {
        // Positions have no derivative.
        Ok(Vec::new())
    }
}

/// `1 / sqrt(value + eps)`
fn root(build: &mut Builder, value: Register, eps: f64) -> Register {
    let eps = constant(build, value, eps);
    let raised = build.binary(BinaryOpcode::Add, value, eps);
    build.unary(UnaryOpcode::Rsqrt, raised)
}

fn sources<T: ProgramOutput + Real>(
    x: &Field,
    y: &Field,
    order: &[usize],
    axis: usize,
) -> Result<Vec<isize>, Error> {
    let inner = super::recurrence::inner(&x.sizes, order, axis);
    let block = inner * x.sizes[axis];
    let (x, y) = (mapped::<T>(x, order)?, mapped::<T>(y, order)?);
    let mut offsets: Vec<isize> = Vec::with_capacity(x.len());
    for (at, (x, y)) in x.iter().zip(y.iter()).enumerate() {
        let is_own = at % block < inner || x == y || x.is_nan();
        offsets.push(if is_own { at as isize } else { offsets[at - inner] });
    }
    Ok(offsets)
}
