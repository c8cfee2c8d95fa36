//! The product of two operands: a matrix product if there are rows, columns and a sum, or if there
//! is a kernel for a vector times a matrix of this size; otherwise one fused loop.

use crate::contract::LoopAxes;
use crate::contract::operand::{ContractionFactor, axes_of};
use crate::contract::target::Target;
use crate::error::Error;
use crate::gemm;
#[cfg(x86_vectors)]
use crate::gemm::dispatch::is_skinny;
#[cfg(x86_vectors)]
use crate::gemm::plan::panels::InPanels;
use crate::gemm::plan::products::{Loop, PerRole, Products, RoleLoops, merge};
use crate::load::nodes::BinaryKernel;
use crate::load::strided::Strided;
use crate::loops::axes::{AxisSet, each, set, sorted, volume};
use crate::loops::nest::{Nest, NestParts};
use crate::loops::rows::Rows;
use crate::loops::steps::{Loops, PlanStep, note};
#[cfg(x86_vectors)]
use crate::machine::params::params;
use crate::machine::threads;
use crate::memory::axes::contiguous;
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::ops::Mul;
use crate::reduce::dots::{are_lines, sum_products};
use crate::reduce::reduce;
use crate::reduce::reducers::Sum;
use crate::scalar::Num;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

/// The product of two operands, summed over all axes that the target does not keep.
#[track_caller]
pub(super) fn pair<T: Num>(
    mut a: ContractionFactor<'_, T>,
    mut b: ContractionFactor<'_, T>,
    axes: LoopAxes<'_>,
    target: &mut Target<'_, T>,
) -> Result<Vec<T>, Error> {
    let (sizes, result) = (axes.sizes, set(target.order()));
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    a = without(a, in_a & !in_b & !result, sizes)?;
    b = without(b, in_b & !in_a & !result, sizes)?;
    let mut plan = PairPlan::new::<T>([a.strides(), b.strides()], sizes, target.order(), target.strides());
    if let PairPlan::Packed(roles) = plan {
        (a, b) = packed_pair(a, b, target.strides(), sizes, roles)?;
        plan = PairPlan::Products(
            loops_of(roles, sizes, [a.strides(), b.strides()], target.strides()).products(),
        );
    }
    match &plan {
        PairPlan::Products(products) => {
            note(|| products.step::<T>(axes.product(&a, &b, target.order())));
            // SAFETY: the plan was made from the strides of these operands and of the target.
            unsafe { run_products(products, &a, &b, target) }
        }
        #[cfg(x86_vectors)]
        PairPlan::Row(products) => {
            note(|| products.step::<T>(axes.product(&b, &a, target.order())));
            // SAFETY: likewise, for the operands in the other order.
            unsafe { run_products(products, &b, &a, target) }
        }
        #[cfg(x86_vectors)]
        PairPlan::InPanels(products) => {
            note(|| products.step::<T>(axes.product(&a, &b, target.order())));
            let results = products.over_results().map(|l| (l.size, l.c));
            // SAFETY: the plan was made for this type, from the operands' strides, which are valid
            // for loops of these sizes, as the callers of `borrowed` promised, and from the
            // target's strides, which lead to distinct elements.
            unsafe {
                target.write(results, |c| gemm::in_panels::run(products, a.elements(), b.elements(), c))
            }
        }
        PairPlan::Loop(nest) => {
            run_loop(nest, [&a, &b], sizes, target, Sum::ONCE, &|| "mul(tensor, tensor)".into())
        }
        PairPlan::Packed(_) => unreachable!("the operands are packed"),
    }
}

/// How to compute the product of two operands. Each axis that only one operand has is in the
/// result.
pub(super) enum PairPlan {
    /// Products of matrices.
    Products(Products),
    /// Products of matrices with the operands exchanged, because the right one is a vector.
    #[cfg(x86_vectors)]
    Row(Products),
    /// Products of matrices in which rows, columns or sums may span several loops.
    #[cfg(x86_vectors)]
    InPanels(InPanels),
    /// One fused loop.
    Loop(Nest),
    /// Products of matrices whose operands may have to be [packed](packed_pair) first.
    Packed(PerRole<AxisSet>),
}

impl PairPlan {
    /// The plan for operands and a result with these strides. `order` lists the axes of the result
    /// from the outermost in memory to the innermost.
    #[cfg_attr(
        not(x86_vectors),
        expect(clippy::extra_unused_type_parameters, reason = "some plans are for types with vectors")
    )]
    pub(super) fn new<T: Num>([a, b]: [&[isize]; 2], sizes: &[usize], order: &[usize], c: &[isize]) -> Self {
        let result = set(order);
        let (in_a, in_b) = (axes_of(a, sizes), axes_of(b, sizes));
        let sum = in_a & in_b & !result;
        let (m, n) = (in_a & !in_b, in_b & !in_a);
        if sum == 0 || m == 0 || n == 0 {
            #[cfg(x86_vectors)]
            if m | n != 0 && in_a & in_b & result == 0 {
                let (vector, matrix) = if m == 0 { (a, b) } else { (b, a) };
                let roles = PerRole { batch: 0, m: 0, n: m | n, k: sum };
                if let Some(products) = row_times_matrix::<T>(vector, matrix, sizes, c, roles) {
                    return if m == 0 { PairPlan::Products(products) } else { PairPlan::Row(products) };
                }
            }
            let reduced: SmallVec<[usize; 8]> = each((in_a | in_b) & !result).collect();
            return PairPlan::Loop(loop_nest([a, b], sizes, order, &reduced));
        }
        let roles = PerRole { batch: in_a & in_b & result, m, n, k: sum };
        let runs = loops_of(roles, sizes, [a, b], c);
        #[cfg(x86_vectors)]
        if let Some(products) = InPanels::of::<T>(&runs) {
            return PairPlan::InPanels(products);
        }
        if runs.m.len() + runs.n.len() + runs.k.len() > 3 {
            return PairPlan::Packed(roles);
        }
        PairPlan::Products(runs.products())
    }

    /// Whether the products have the operands exchanged.
    #[cfg(feature = "std")]
    pub(super) fn is_exchanged(&self) -> bool {
        #[cfg(x86_vectors)]
        if let PairPlan::Row(_) = self {
            return true;
        }
        false
    }
}

fn loops_of(
    roles: PerRole<AxisSet>,
    sizes: &[usize],
    [a, b]: [&[isize]; 2],
    c: &[isize],
) -> PerRole<RoleLoops> {
    roles.map(|axes| merge(axes, sizes, a, b, c))
}

/// Sums an operand over the axes that neither the other operand nor the result has.
#[track_caller]
fn without<'a, T: Num>(
    operand: ContractionFactor<'a, T>,
    lone: AxisSet,
    sizes: &[usize],
) -> Result<ContractionFactor<'a, T>, Error> {
    if lone == 0 {
        return Ok(operand);
    }
    let order: SmallVec<[usize; 8]> = each(operand.axes(sizes) & !lone).collect();
    let reduced: SmallVec<[usize; 8]> = each(lone).collect();
    operand.summed(&order, &reduced, sizes)
}

/// A vector times a large matrix, as the product of one row, if there is a kernel for [few
/// rows](is_skinny).
///
/// `vector` and `matrix` are the strides of the operands, `c` the strides of the result. If the
/// elements of a sum are adjacent, [`sum_products`] is faster on some processors, because it reads
/// the matrix line by line.
#[cfg(x86_vectors)]
fn row_times_matrix<T: Num>(
    vector: &[isize],
    matrix: &[isize],
    sizes: &[usize],
    c: &[isize],
    roles: PerRole<AxisSet>,
) -> Option<Products> {
    let count = |axes| each(axes).map(|axis| sizes[axis]).product::<usize>();
    if roles.k == 0 || !is_skinny::<T>(1, count(roles.n), count(roles.k)) {
        return None;
    }
    let loops = |axes| merge(axes, sizes, vector, matrix, c);
    let (&[n], &[k]) = (&*loops(roles.n), &*loops(roles.k)) else { return None };
    let m = Loop { size: 1, a: 0, b: 0, c: 0 };
    let is_wanted = n.b == 1 || k.b == 1 && params().dots.as_rows;
    is_wanted.then(|| Products { loops: SmallVec::new(), results: 0, m, n, k })
}

/// # Safety
///
/// The plan was made from the strides of these operands and of the target. The strides of the
/// operands are valid for the plan's loops, as the callers of `borrowed` promised. The plan's
/// batch, rows and columns run over the target's results.
unsafe fn run_products<T: Num>(
    products: &Products,
    a: &ContractionFactor<'_, T>,
    b: &ContractionFactor<'_, T>,
    target: &mut Target<'_, T>,
) -> Result<Vec<T>, Error> {
    let results: SmallVec<[Loop; 8]> = products.over_results().copied().collect();
    // SAFETY: the caller's promise, for the operands and for the target, whose elements are
    // distinct.
    unsafe {
        target.write(results.iter().map(|l| (l.size, l.c)), |c| {
            gemm::products::run(products, a.elements(), b.elements(), c);
        })
    }
}

/// [`sum_of_pair`](crate::contract::sum_of_pair) as a generic function.
#[track_caller]
pub(super) fn summed_pair<T: Num>(
    [a, b]: [&ContractionFactor<'_, T>; 2],
    sizes: &[usize],
    [kept, reduced]: [&[usize]; 2],
    sum: Sum,
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    [a, b].iter().for_each(|own| own.assert_within(sizes));
    let nest = loop_nest([a.strides(), b.strides()], sizes, kept, reduced);
    run_loop(&nest, [a, b], sizes, &mut Target::new(kept, sizes), sum, describe)
}

/// The loops of a product that is not a matrix product.
fn loop_nest([a, b]: [&[isize]; 2], sizes: &[usize], kept: &[usize], reduced: &[usize]) -> Nest {
    let mut rows = Rows::new(sizes.len());
    rows.push().copy_from_slice(a);
    rows.push().copy_from_slice(b);
    Nest::reduce(sizes, kept, reduced, &rows)
}

/// Runs the loops that [`loop_nest`] makes.
#[track_caller]
fn run_loop<T: Num>(
    nest: &Nest,
    [a, b]: [&ContractionFactor<'_, T>; 2],
    sizes: &[usize],
    target: &mut Target<'_, T>,
    sum: Sum,
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    let len = target.order().iter().map(|&axis| sizes[axis]).product();
    note(|| loop_step::<T>(nest, len, describe()));
    let (to, is_there) = match target.line() {
        Some(to) => (to, true),
        None => (Destination::of_step(len), false),
    };
    // SAFETY: the callers pass a nest whose rows have the strides of the operands. These strides
    // map all positions to elements, as the callers of `borrowed` promised.
    let data = unsafe { sum_loop(nest, [a.elements(), b.elements()], sum, to)? };
    Ok(if is_there { data } else { target.take(data, sizes) })
}

pub(super) fn loop_step<T: Num>(nest: &Nest, len: usize, expression: String) -> PlanStep {
    PlanStep::Reduce {
        reduction: "sum",
        expression,
        loops: Loops::new::<T>(nest, len, threads::parts(nest.positions())),
        count: nest.positions().checked_div(len).unwrap_or_default(),
    }
}

/// The sums of products along the loops.
///
/// # Safety
///
/// The nest has a row for each operand. That row maps each position of the nest to one of the
/// operand's elements.
pub(super) unsafe fn sum_loop<T: Num>(
    nest: &Nest,
    [a, b]: [Elements<'_, T>; 2],
    sum: Sum,
    to: Destination<'_, T>,
) -> Result<Vec<T>, Error> {
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        // SAFETY: the first row of the nest maps all positions to elements of `a`, as the caller
        // promises. `reduce` runs the kernel over the nest that it is made for.
        let a = unsafe { Strided::new(a, operands.next_row(), ()) };
        // SAFETY: likewise, for the second row and `b`.
        let b = unsafe { Strided::new(b, operands.next_row(), ()) };
        BinaryKernel { op: &Mul, a, b }
    };
    // `sum_products` accumulates in the element type, so it is only for types whose accumulators
    // have that type.
    if TypeId::of::<T>() == TypeId::of::<T::Acc>() && are_lines(nest) {
        // SAFETY: the caller's promise.
        return unsafe { sum_products([a, b], nest, sum, to) };
    }
    reduce(nest, &mut NestParts::new(), &lower, nest.positions(), to, 0, sum)
}

/// The operands of a product whose rows, columns or sums are several loops. An operand is packed if
/// packing leaves fewer loops and does not multiply the operand's memory (as it would for
/// overlapping windows), and if each element is used at least four times.
#[track_caller]
fn packed_pair<'a, 'b, T: Num>(
    mut a: ContractionFactor<'a, T>,
    mut b: ContractionFactor<'b, T>,
    c: &[isize],
    sizes: &[usize],
    roles: PerRole<AxisSet>,
) -> Result<(ContractionFactor<'a, T>, ContractionFactor<'b, T>), Error> {
    let count = |a: &[isize], b: &[isize]| -> usize {
        let loops = |&axes: &AxisSet| merge(axes, sizes, a, b, c).len();
        [roles.m, roles.n, roles.k].iter().map(loops).sum()
    };
    let a_axes = roles.batch | roles.m | roles.k;
    if volume(roles.n, sizes) >= 4.0 && a.is_injective(a_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.m, c))
            .chain(sorted(roles.k, b.strides()))
            .collect();
        if count(&contiguous(&order, sizes), b.strides()) < count(a.strides(), b.strides()) {
            a = ContractionFactor::owned(a.packed(&order, sizes)?, &order, sizes);
        }
    }
    let b_axes = roles.batch | roles.n | roles.k;
    if volume(roles.m, sizes) >= 4.0 && b.is_injective(b_axes, sizes) {
        let order: SmallVec<[usize; 8]> = sorted(roles.batch, c)
            .into_iter()
            .chain(sorted(roles.k, a.strides()))
            .chain(sorted(roles.n, c))
            .collect();
        if count(a.strides(), &contiguous(&order, sizes)) < count(a.strides(), b.strides()) {
            b = ContractionFactor::owned(b.packed(&order, sizes)?, &order, sizes);
        }
    }
    Ok((a, b))
}
