//! Loops for patterns. The number of loops is known only at run time.
//!
//! A pattern gives the size of each loop, the strides of its operands along the loops, and the
//! loops of the result. This module computes the elements.

use crate::error::DimError;
use crate::expr::Factors;
use crate::expr::evaluate::few;
use crate::expr::step::ExprStep;
use crate::plan::direct::ElementsAlong;
use crate::plan::still::Still;
use crate::storage::unchecked::{copy_few, factor};
use alloc::vec::Vec;
use kernels::contract::target::Target;
use kernels::contract::{self, LoopAxes, Supports};
use kernels::copy::FEW;
use kernels::load::Kernel;
use kernels::loops::axes::AxisSet;
use kernels::loops::nest::{Nest, NestParts, OperandRows};
use kernels::loops::rows::Rows;
use kernels::loops::steps::{Loops, PlanStep, note};
use kernels::machine::threads;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::memory::destination::Destination;
use kernels::ops::code::ReductionKind;
use kernels::reduce::Reducer;
use kernels::reduce::reducers::{Sum, times};
use kernels::scalar::{Element, Num};

pub(crate) use crate::expr::step::{
    LoopOperand, check_elements_taken, check_operand_taken, check_taken, short_way, taken,
};

/// A [`LoopOperand`] that is read position by position.
pub(crate) trait LoopKernel: LoopOperand {
    /// The reader of the elements.
    type Kernel<'k>: Kernel<Elem = Self::Elem>
    where
        Self: 'k;

    /// The reader; each array takes its row of a loop nest.
    fn kernel<'k>(&'k self, operands: &mut OperandRows<'k>) -> Self::Kernel<'k>;
}

/// The size of each loop, and the strides of operands along it.
#[derive(Clone, Copy)]
pub(crate) struct RunLoops<'a> {
    pub(crate) sizes: &'a [usize],
    pub(crate) rows: &'a Rows,
}

/// The loops of a result with `len` elements, in order. Each element combines `count` positions of
/// the other loops; `count` is `None` if it overflows.
#[derive(Clone, Copy)]
pub(crate) struct KeptLoops<'a> {
    pub(crate) kept: &'a [usize],
    pub(crate) reduced: &'a [usize],
    pub(crate) len: usize,
    pub(crate) count: Option<usize>,
}

impl KeptLoops<'_> {
    fn count(&self) -> Result<usize, DimError> {
        self.count.ok_or_else(|| DimError::TooLarge { dims: "all loops of a sum".into() })
    }
}

/// The elements of an operand, contiguous in `order`, which lists all loops along which they vary.
#[track_caller]
pub(crate) fn mapped<A: LoopOperand>(
    operand: &A,
    loops: RunLoops<'_>,
    order: &[usize],
    len: usize,
) -> Result<Buffer<A::Elem>, DimError> {
    let step = ExprStep::of_loops::<A::Elem>(operand, loops.sizes, loops.rows)?;
    let scope = step.scope();
    let data = operand.collect(&Nest::map(loops.sizes, order, loops.rows), len)?;
    drop(scope);
    Ok(step.map(data, order))
}

/// Like [`mapped`], on the [fast path](short_way), for elements in memory. They are copied one by
/// one if there are few.
#[inline]
#[track_caller]
pub(crate) fn mapped_short<A: LoopOperand>(
    operand: &A,
    few_of: Option<(ElementsAlong<'_, A::Elem>, [Axis; FEW])>,
    loops: RunLoops<'_>,
    order: &[usize],
    len: usize,
) -> Result<Vec<A::Elem>, DimError> {
    match few_of {
        Some(((elements, _), axes)) => few(elements, &axes, Destination::New(len)),
        None => operand.collect(&Nest::map(loops.sizes, order, loops.rows), len),
    }
}

/// Reduces the elements along the loops that are not kept.
#[track_caller]
pub(crate) fn reduced<A: LoopKernel, Q: Reducer<A::Elem, Out: Element>>(
    operand: &A,
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
    reducer: Q,
) -> Result<Buffer<Q::Out>, DimError> {
    let step = ExprStep::of_loops::<Q::Out>(operand, loops.sizes, loops.rows)?;
    let scope = step.scope();
    let data = reduced_short(operand, loops, result, reducer)?;
    drop(scope);
    step.reduce(data, result.kept, result.reduced, reducer.derivative(), reducer.name())
}

/// Like [`reduced`], on the [fast path](short_way).
#[track_caller]
pub(crate) fn reduced_short<A: LoopKernel, Q: Reducer<A::Elem, Out: Element>>(
    operand: &A,
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
    reducer: Q,
) -> Result<Vec<Q::Out>, DimError> {
    let nest = Nest::reduce(loops.sizes, result.kept, result.reduced, loops.rows);
    combined(operand, &nest, result.len, result.count()?, reducer)
}

/// The results along the loops of a nest, each combined from `count` elements.
#[track_caller]
fn combined<A: LoopKernel, Q: Reducer<A::Elem, Out: Element>>(
    operand: &A,
    nest: &Nest,
    len: usize,
    count: usize,
    reducer: Q,
) -> Result<Vec<Q::Out>, DimError> {
    let work = if A::Kernel::<'_>::PARALLEL { len.saturating_mul(count) } else { 0 };
    note(|| PlanStep::Reduce {
        reduction: reducer.name(),
        expression: operand.describe(),
        loops: Loops::new::<Q::Out>(nest, len, threads::parts(work)),
        count,
    });
    let mut parts = NestParts::new();
    let lower = |nest| operand.kernel(&mut Nest::operands(nest));
    Ok(kernels::reduce::reduce(nest, &mut parts, &lower, work, Destination::of_step(len), count, reducer)?)
}

/// Functions that compute the factors of a product, and the loops along which each varies.
#[derive(Clone, Copy)]
pub(crate) struct LoopFactors<'f, T: Num> {
    /// The loops of each factor.
    pub(crate) supports: &'f dyn Fn() -> Result<Supports, DimError>,
    /// The factors, with strides along the loops.
    pub(crate) factors: &'f dyn Fn() -> Result<Factors<'f, T>, DimError>,
}

/// Sums of products of operands along loops. `name` returns the name of a loop, for plans.
#[track_caller]
pub(crate) fn summed<A: LoopKernel<Elem: Num>>(
    product: &A,
    factors: Option<LoopFactors<'_, A::Elem>>,
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
    name: &dyn Fn(usize) -> &'static str,
) -> Result<Buffer<A::Elem>, DimError> {
    let step = ExprStep::of_loops::<A::Elem>(product, loops.sizes, loops.rows)?;
    let scope = step.scope();
    let data = match factors {
        Some(factors) => contracted(product, factors, loops, result, name)?,
        None => fused(product, loops, result)?,
    };
    drop(scope);
    step.reduce(data, result.kept, result.reduced, ReductionKind::Sum, "einsum!")
}

/// A contraction if that shares work, otherwise one fused pass.
fn contracted<A: LoopKernel<Elem: Num>>(
    product: &A,
    factors: LoopFactors<'_, A::Elem>,
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
    name: &dyn Fn(usize) -> &'static str,
) -> Result<Vec<A::Elem>, DimError> {
    let (sizes, kept) = (loops.sizes, result.kept);
    let supports = (factors.supports)()?;
    let still = Still::of_supports(&supports, sizes, kept);
    let (live, own) = still.as_ref().map_or((sizes, kept), |still| (&still.sizes[..], &still.kept[..]));
    if !contract::is_worthwhile(&supports, live, own) {
        return fused(product, loops, result);
    }
    let Factors { constants, operands } = (factors.factors)()?;
    if still.as_ref().is_some_and(|still| still.times == usize::MAX) {
        result.count()?;
    }
    let times = still.as_ref().map_or(Num::ONE, |still| times(Num::ONE, still.times));
    let axes = LoopAxes { sizes: live, name };
    let data = contract::contract(operands, &constants, times, axes, Target::new(own, live))?;
    match still {
        Some(still) => still.repeated(data, sizes, kept),
        None => Ok(data),
    }
}

/// One pass over the product of all operands.
#[track_caller]
fn fused<A: LoopKernel<Elem: Num>>(
    product: &A,
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
) -> Result<Vec<A::Elem>, DimError> {
    let RunLoops { sizes, rows } = loops;
    let KeptLoops { kept, reduced, .. } = result;
    // (If the number of positions overflows, it is an error even if few of them differ.)
    result.count()?;
    let Some(still) = Still::of_rows(rows, sizes, kept) else {
        return reduced_short(product, loops, result, Sum::ONCE);
    };
    let nest = Nest::reduce(&still.sizes, kept, reduced, rows);
    let sum = Sum { times: still.times };
    let data = combined(product, &nest, still.volume(kept), still.volume(reduced), sum)?;
    still.repeated(data, sizes, kept)
}

/// Sums of products on the [fast path](short_way), for operands in memory, each with a row. `None`
/// if the general path is needed.
#[track_caller]
pub(crate) fn summed_short<A: LoopKernel<Elem: Num>>(
    product: &A,
    memories: &[ElementsAlong<'_, A::Elem>],
    loops: RunLoops<'_>,
    result: KeptLoops<'_>,
    name: &dyn Fn(usize) -> &'static str,
) -> Option<Vec<A::Elem>> {
    let RunLoops { sizes, rows } = loops;
    let (mut supports, mut union) = (Supports::new(), 0);
    for row in rows.iter() {
        let mut axes = 0;
        for (axis, (&stride, &size)) in row.iter().zip(sizes).enumerate() {
            axes |= AxisSet::from(stride != 0 && size != 1) << axis;
        }
        supports.push(axes);
        union |= axes;
    }
    if (0..sizes.len()).any(|axis| sizes[axis] != 1 && union >> axis & 1 == 0) {
        return None;
    }
    if memories.len() == 1 && result.reduced.is_empty() {
        return product.collect(&Nest::map(sizes, result.kept, rows), result.len).ok();
    }
    if contract::is_worthwhile(&supports, sizes, result.kept) {
        let operands = memories.iter().zip(rows.iter());
        let operands = operands.map(|(&(elements, _), row)| factor(elements, row.into())).collect();
        let (axes, target) = (LoopAxes { sizes, name }, Target::new(result.kept, sizes));
        return contract::contract(operands, &[], Num::ONE, axes, target).ok();
    }
    reduced_short(product, loops, result, Sum::ONCE).ok()
}

/// Products of few elements in memory, one by one, on the [fast path](short_way). `axes(n)` returns
/// the axes of the `n`th factor, in the order of the result. `None` if the general path is needed.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn few_products<A: LoopOperand<Elem: Num>>(
    product: &A,
    memories: &[ElementsAlong<'_, A::Elem>],
    loops: RunLoops<'_>,
    (kept, len): (&[usize], usize),
    axes: impl Fn(usize) -> Option<[Axis; FEW]>,
) -> Option<Vec<A::Elem>> {
    let ((first, _), others) = memories.split_first()?;
    let own = axes(0)?;
    if others.is_empty() {
        return few(*first, &own, Destination::New(len)).ok();
    }
    note(|| PlanStep::Elementwise {
        expression: product.describe(),
        loops: Loops::new::<A::Elem>(&Nest::map(loops.sizes, kept, loops.rows), len, 1),
    });
    let mut data = copy_few(*first, &own, Destination::New(len)).ok()?;
    for (number, (elements, _)) in others.iter().enumerate() {
        let factor = copy_few(*elements, &axes(number + 1)?, Destination::New(len)).ok()?;
        data.iter_mut().zip(factor).for_each(|(product, factor)| *product = product.mul(factor));
    }
    Some(data)
}
