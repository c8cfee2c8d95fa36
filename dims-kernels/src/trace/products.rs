//! Sums of products, computed as contractions. In the products of the chain rule, 0 times anything
//! is 0.

use super::compute::{Dense, HeldMemories, UNNAMED, filled, mapped};
use super::{Field, FieldOperand, PerLoop};
use crate::contract::planned::PreparedProduct;
use crate::contract::target::Target;
use crate::contract::{self, LoopAxes};
use crate::error::Error;
use crate::loops::axes::{AxisSet, MOST_AXES, Order};
use crate::memory::destination::Destination;
use crate::ops::code::{BinaryOpcode, Number, UnaryOpcode};
use crate::program::builder::Builder;
use crate::program::interpreter::ProgramOutput;
use crate::program::{Instruction, Register, ScalarProgram};
use crate::scalar::Real;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

/// A sum of products as a contraction, if that is worthwhile. Each product is added `count` times.
/// Factors that are not elements in memory are computed first.
pub(super) fn contracted<T: ProgramOutput + Real>(
    field: &Field,
    order: &[usize],
    reduced: &[usize],
    count: f64,
) -> Result<Option<Dense<T>>, Error> {
    let Some((fields, scale)) = factors::<T>(field, order, reduced) else { return Ok(None) };
    let product = ProductOfFields { field, order, reduced, scale: scale * count };
    let mut data = product.of::<T>(&fields)?;
    if field.program.has_chain() && has_nan(&data) {
        product.skip_zeros(&fields, &mut data)?;
    }
    Ok(Some(Dense { data, order: order.into() }))
}

/// The greatest number of values that are visited to find the factors of a contraction.
const MOST_FACTORS: usize = 128;

/// The factors of a sum of products, and the constant that multiplies the sum, if it is worth
/// computing as a contraction.
pub(super) fn factors<T: ProgramOutput + Real>(
    field: &Field,
    order: &[usize],
    reduced: &[usize],
) -> Option<(SmallVec<[Field; 4]>, f64)> {
    let (factors, constants) = field.program.factors();
    if factors.len() < 2 {
        return None;
    }
    let fields: SmallVec<[Field; 4]> = factors.into_iter().map(|value| field.with_result(value)).collect();
    let product = ProductOfFields { field, order, reduced, scale: 1.0 };
    if !product.is_worthwhile::<T>(&fields) {
        return None;
    }
    with_constants::<T>(fields, &constants)
}

/// The factors of products, and the constant that multiplies the sum of these. As in
/// [`contract`](contract::contract), constants multiply other factors, unless they have a
/// [moderate product](contract::moderate_product).
///
/// `None` if the constants must multiply factors, and either the factors have half precision, so
/// that the products would be rounded, or a constant is not finite, because 0 times such a constant
/// is 0 in the chain rule.
pub(super) fn with_constants<T: ProgramOutput + Real>(
    mut fields: SmallVec<[Field; 4]>,
    constants: &[(usize, f64)],
) -> Option<(SmallVec<[Field; 4]>, f64)> {
    if let Some(product) = contract::moderate_product(constants.iter().map(|&(_, value)| T::of(value))) {
        return Some((fields, Number::float(product)));
    }
    if TypeId::of::<T>() != TypeId::of::<T::Acc>() {
        return None;
    }
    for &(before, value) in constants {
        let factor = fields.get_mut(before.saturating_sub(1)).filter(|_| T::of(value).is_finite())?;
        *factor = factor.scaled(value);
    }
    Some((fields, 1.0))
}

/// Whether an element is NaN. Elements are tested in blocks, because a loop that may end at each
/// element uses no vector instructions.
pub(super) fn has_nan<T: Real>(data: &[T]) -> bool {
    data.chunks(512).any(|block| block.iter().fold(false, |found, value| found | value.is_nan()))
}

/// The plan of a contraction of two factors that are in memory.
pub(super) struct PlannedContraction {
    /// The elements of both factors.
    pub(super) operands: [FieldOperand; 2],
    /// Whether elements that are NaN must be [computed again](contracted), because 0 times anything
    /// is 0 in the chain rule.
    pub(super) has_chain: bool,
    product: PreparedProduct,
    scale: f64,
}

impl PlannedContraction {
    /// The plan of a sum of products with these [factors]; `None` unless there are two, neither of
    /// which must be computed, summed or packed first.
    pub(super) fn new<T: ProgramOutput + Real>(
        field: &Field,
        order: &[usize],
        reduced: &[usize],
        (fields, scale): &(SmallVec<[Field; 4]>, f64),
    ) -> Option<Self> {
        let [a, b] = &fields[..] else { return None };
        let operands = [a.plain::<T>()?.1, b.plain::<T>()?.1];
        let of = ProductOfFields { field, order, reduced, scale: *scale };
        let sizes = of.sizes();
        let strides = operands.map(|operand| strides_of(operand, &field.sizes));
        let name = |axis: usize| of.name(axis);
        let axes = LoopAxes { sizes: &sizes, name: &name };
        let product = PreparedProduct::new::<T>([&strides[0], &strides[1]], axes, order)?;
        let has_chain = field.program.has_chain();
        Some(PlannedContraction { operands: operands.map(Clone::clone), has_chain, product, scale: *scale })
    }

    /// Computes the sums for factors that start at these addresses. Returns the sums if `to` is new
    /// memory, otherwise an empty vector.
    ///
    /// # Safety
    ///
    /// The plan was made for this type. Each start is the address of the operand's element at the
    /// origin of the loops, and each position along the operand's strides is an element.
    pub(super) unsafe fn run<T: Real>(
        &self,
        starts: [*const T; 2],
        to: Destination<'_, T>,
    ) -> Result<Vec<T>, Error> {
        let scale = <T as num_traits::NumCast>::from(self.scale).unwrap_or_else(T::nan);
        let scaled = |data: &mut [T]| {
            if scale != T::ONE {
                data.iter_mut().for_each(|value| *value = *value * scale);
            }
        };
        // SAFETY: the caller's promise. The plan was made from the strides of these operands.
        let run = |to: Destination<'_, T>| unsafe { self.product.run(starts, to) };
        match to {
            Destination::Given(places) => {
                run(Destination::Given(&mut *places))?;
                scaled(places);
                Ok(Vec::new())
            }
            to => {
                let mut data = run(to)?;
                scaled(&mut data);
                Ok(data)
            }
        }
    }
}

/// The strides of an operand along loops; 0 along loops of size 1.
pub(super) fn strides_of(operand: &FieldOperand, sizes: &[usize]) -> SmallVec<[isize; 8]> {
    let strides = operand.place.strides.iter().zip(sizes);
    strides.map(|(&stride, &size)| if size == 1 { 0 } else { stride }).collect()
}

/// The loops along which a field varies.
fn support(field: &Field) -> AxisSet {
    let varies =
        |axis: &usize| field.sizes[*axis] != 1 && field.operands.iter().any(|own| own.place.varies(*axis));
    (0..field.sizes.len()).filter(varies).fold(0, |axes, axis| axes | 1 << axis)
}

/// The sum of the products of some fields over the loops of `field`, times a constant.
struct ProductOfFields<'a> {
    field: &'a Field,
    order: &'a [usize],
    reduced: &'a [usize],
    scale: f64,
}

impl ProductOfFields<'_> {
    /// Recomputes the sums without the products that have a factor of 0: in the chain rule, 0 times
    /// anything is 0. A sum keeps its value if one of its other products has a factor that is not
    /// finite.
    #[cold]
    fn skip_zeros<T: ProgramOutput + Real>(&self, fields: &[Field], data: &mut [T]) -> Result<(), Error> {
        let mapped = |f: &dyn Fn(&mut Builder, Register) -> Register| -> SmallVec<[Field; 4]> {
            fields.iter().map(|own| own.map([], |build, value, []| f(build, value))).collect()
        };
        let number = |build: &mut Builder, like, value| build.float(value, build.kind(like));
        let finite = mapped(&|build, value| {
            let (is_finite, zero) = (build.unary(UnaryOpcode::IsFinite, value), number(build, value, 0.0));
            build.select(is_finite, value, zero)
        });
        let is_other = mapped(&|build, value| {
            let is_finite = build.unary(UnaryOpcode::IsFinite, value);
            let (zero, one) = (number(build, value, 0.0), number(build, value, 1.0));
            build.select(is_finite, zero, one)
        });
        let counts = mapped(&|build, value| {
            let (zero, one) = (number(build, value, 0.0), number(build, value, 1.0));
            let is_zero = build.binary(BinaryOpcode::Eq, value, zero);
            build.select(is_zero, zero, one)
        });
        let sums = self.of::<T>(&finite)?;
        // An element of `others` is greater than 0 if one of the products in its sum has a factor
        // that is not finite, and no factor of 0.
        let unscaled = ProductOfFields { scale: 1.0, ..*self };
        let mut others = filled::<T>(data.len())?;
        for at in 0..fields.len() {
            let mut factors = counts.clone();
            factors[at] = is_other[at].clone();
            let found = unscaled.of::<T>(&factors)?;
            others.iter_mut().zip(found).for_each(|(other, found)| *other = *other + found);
        }
        for ((value, sum), other) in data.iter_mut().zip(sums).zip(others) {
            if other == T::ZERO {
                *value = sum;
            }
        }
        Ok(())
    }

    /// The size of each loop; 1 for loops that are neither kept nor reduced, along which the field
    /// does not vary.
    fn sizes(&self) -> PerLoop<usize> {
        let is_run = |axis: usize| self.order.contains(&axis) || self.reduced.contains(&axis);
        let sizes = self.field.sizes.iter().enumerate();
        sizes.map(|(axis, &size)| if is_run(axis) { size } else { 1 }).collect()
    }

    /// The name of a loop, for plans.
    fn name(&self, axis: usize) -> &'static str {
        let unnamed = || UNNAMED.get(axis).copied().unwrap_or("..");
        self.field.names.as_ref().map_or_else(unnamed, |names| names[axis])
    }

    fn is_worthwhile<T: 'static + Real>(&self, fields: &[Field]) -> bool {
        if self.field.sizes.len() >= MOST_AXES {
            return false;
        }
        let supports: SmallVec<[AxisSet; 4]> = fields.iter().map(support).collect();
        let (sizes, order) = (self.sizes(), self.order);
        let in_memory = fields
            .iter()
            .enumerate()
            .fold(0, |bits, (at, own)| bits | u64::from(own.plain::<T>().is_some()) << at);
        contract::is_worthwhile(&supports, &sizes, order)
            || contract::is_matrix_vector::<T>(&supports, in_memory, &sizes, order)
    }

    /// The sum, contiguous in the order.
    fn of<T: ProgramOutput + Real>(&self, fields: &[Field]) -> Result<Vec<T>, Error> {
        let ProductOfFields { field, order, scale, .. } = *self;
        let (sizes, own) = (&field.sizes[..], self.sizes());
        let memories: Vec<HeldMemories> = fields.iter().map(HeldMemories::of).collect();
        let mut operands: contract::ContractionFactors<'_, T> = SmallVec::new();
        for (own, memories) in fields.iter().zip(&memories) {
            operands.push(match own.plain::<T>() {
                Some((number, operand)) => {
                    // SAFETY: the elements have an axis for each loop of the field, with its size
                    // and, unless the size is 1, this stride. The contraction runs over these
                    // loops.
                    unsafe {
                        contract::ContractionFactor::borrowed(
                            memories.elements::<T>(own, number),
                            strides_of(operand, sizes),
                        )
                    }
                }
                None => {
                    let support = support(own);
                    let order: Order = (0..sizes.len()).filter(|axis| support >> axis & 1 == 1).collect();
                    contract::ContractionFactor::owned(mapped::<T>(own, &order)?, &order, sizes)
                }
            });
        }
        let name = |axis: usize| self.name(axis);
        let axes = LoopAxes { sizes: &own, name: &name };
        contract::contract(operands, &[], accumulated::<T>(scale), axes, Target::new(order, &own))
    }
}

/// A number in the type in which sums are accumulated. Many counts are too large for half
/// precisions.
fn accumulated<T: Real>(number: f64) -> T::Acc {
    let wide = <T::Wide as num_traits::NumCast>::from(number);
    wide.unwrap_or_else(<T::Wide as num_traits::Float>::nan)
}

impl ScalarProgram {
    /// Whether one of the products that the [factors](ScalarProgram::factors) come from is a
    /// product of the chain rule.
    fn has_chain(&self) -> bool {
        let mut open: SmallVec<[Register; 8]> = SmallVec::from_slice(&[self.result()]);
        while let Some(register) = open.pop() {
            match self.instruction(register) {
                Instruction::Binary(BinaryOpcode::Chain, ..) => return true,
                Instruction::Binary(BinaryOpcode::Mul, a, b) => open.extend([a, b]),
                Instruction::Unary(UnaryOpcode::Neg | UnaryOpcode::Square, a) => open.push(a),
                _ => {}
            }
        }
        false
    }

    /// The factors of the result, and its [constant factors](contract::ConstantFactors). If more
    /// than [`MOST_FACTORS`] values would be visited, the result counts as one factor, because
    /// nested squares can have millions of factors.
    pub(super) fn factors(&self) -> (SmallVec<[Register; 4]>, contract::ConstantFactors<f64>) {
        let mut factors: SmallVec<[Register; 4]> = SmallVec::new();
        let (mut constants, mut visits) = (SmallVec::new(), 0);
        let mut open: SmallVec<[Register; 8]> = SmallVec::from_slice(&[self.result()]);
        while let Some(register) = open.pop() {
            match self.instruction(register) {
                Instruction::Constant(Number::Float(value)) => constants.push((factors.len(), value)),
                Instruction::Binary(BinaryOpcode::Mul | BinaryOpcode::Chain, a, b) => {
                    let is_constant = matches!(self.instruction(a), Instruction::Constant(Number::Float(_)));
                    open.extend(if is_constant { [a, b] } else { [b, a] });
                }
                Instruction::Unary(UnaryOpcode::Neg, a) => {
                    constants.push((factors.len(), -1.0));
                    open.push(a);
                }
                Instruction::Unary(UnaryOpcode::Square, a) => open.extend([a, a]),
                _ => factors.push(register),
            }
            visits += 1;
            if visits > MOST_FACTORS {
                return (SmallVec::from_slice(&[self.result()]), SmallVec::new());
            }
        }
        (factors, constants)
    }
}
