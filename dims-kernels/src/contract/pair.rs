//! The product of two operands. It is a matrix product where there are rows, columns and a sum, else one fused loop.

use crate::contract::LoopAxes;
use crate::contract::operand::ContractionFactor;
use crate::contract::target::Target;
use crate::error::Error;
use crate::gemm;
#[cfg(x86_vectors)]
use crate::gemm::dispatch::is_skinny;
#[cfg(x86_vectors)]
use crate::gemm::plan::panels::InPanels;
use crate::gemm::plan::products::{Loop, PerRole, Products, merge};
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
use crate::ops::Mul;
use crate::reduce::dots::{are_lines, sum_products};
use crate::reduce::{reduce, reducers};
use crate::scalar::Num;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

/// The product of two operands, summed over all axes but those that the target keeps.
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
    let (in_a, in_b) = (a.axes(sizes), b.axes(sizes));
    let sum = in_a & in_b & !result;
    let (m, n) = (in_a & !in_b, in_b & !in_a);
    if sum == 0 || m == 0 || n == 0 {
        #[cfg(x86_vectors)]
        if m | n != 0 && in_a & in_b & result == 0 {
            let (vector, matrix) = if m == 0 { (&a, &b) } else { (&b, &a) };
            let roles = PerRole { batch: 0, m: 0, n: m | n, k: sum };
            if let Some(products) = row_times_matrix(vector, matrix, sizes, target.strides(), roles) {
                note(|| products.step::<T>(axes.product(vector, matrix, target.order())));
                // SAFETY: the plan was made of the strides of these operands and of the target.
                return unsafe { run_products(products, vector, matrix, target) };
            }
        }
        let reduced: SmallVec<[usize; 8]> = each((in_a | in_b) & !result).collect();
        return fused_loop([&a, &b], sizes, &reduced, target, &|| "mul(tensor, tensor)".into());
    }
    matrix_pair(a, b, axes, target, PerRole { batch: in_a & in_b & result, m, n, k: sum })
}

/// What only one operand has, and the result has not, is summed before the product.
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

/// A vector times a large matrix, as the product of one row, if there is a kernel for [few rows](is_skinny).
///
/// `c` are the strides of the result. (Where the elements of a sum are neighbours, some processors are faster in [`sum_products`], which reads one line of the matrix after the other.)
#[cfg(x86_vectors)]
fn row_times_matrix<T: Num>(
    vector: &ContractionFactor<'_, T>,
    matrix: &ContractionFactor<'_, T>,
    sizes: &[usize],
    c: &[isize],
    roles: PerRole<AxisSet>,
) -> Option<Products> {
    let count = |axes| each(axes).map(|axis| sizes[axis]).product::<usize>();
    if roles.k == 0 || !is_skinny::<T>(1, count(roles.n), count(roles.k)) {
        return None;
    }
    let loops = |axes| merge(axes, sizes, vector.strides(), matrix.strides(), c);
    let (&[n], &[k]) = (&*loops(roles.n), &*loops(roles.k)) else { return None };
    let m = Loop { size: 1, a: 0, b: 0, c: 0 };
    let is_wanted = n.b == 1 || k.b == 1 && params().dots.as_rows;
    is_wanted.then(|| Products { loops: SmallVec::new(), results: 0, m, n, k })
}

/// Runs the products of two operands.
///
/// # Safety
///
/// The plan was made of the strides of these operands, which are valid for its loops as the callers of `borrowed` promised, and of those of the target, whose results its batch,
/// rows and columns run over.
unsafe fn run_products<T: Num>(
    products: Products,
    a: &ContractionFactor<'_, T>,
    b: &ContractionFactor<'_, T>,
    target: &mut Target<'_, T>,
) -> Result<Vec<T>, Error> {
    let results: SmallVec<[Loop; 8]> = products.over_results().copied().collect();
    // SAFETY: the caller's promise, for the operands and for the target, whose places are distinct.
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
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    [a, b].iter().for_each(|own| own.assert_within(sizes));
    fused_loop([a, b], sizes, reduced, &mut Target::new(kept, sizes), describe)
}

/// A product that is no matrix product: one fused loop.
#[track_caller]
fn fused_loop<T: Num>(
    [a, b]: [&ContractionFactor<'_, T>; 2],
    sizes: &[usize],
    reduced: &[usize],
    target: &mut Target<'_, T>,
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    let kept = target.order();
    let mut rows = Rows::new(sizes.len());
    a.row(&mut rows);
    b.row(&mut rows);
    let nest = Nest::reduce(sizes, kept, reduced, &rows);
    let len = kept.iter().map(|&axis| sizes[axis]).product();
    note(|| PlanStep::Reduce {
        reduction: "sum",
        expression: describe(),
        loops: Loops::new::<T>(&nest, len, threads::parts(nest.positions())),
        count: reduced.iter().map(|&axis| sizes[axis]).product(),
    });
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        // SAFETY: the first row of the nest has the strides of `a`, whose positions are elements, as the caller of `borrowed` promised; `reduce` runs the
        // kernel over the nest that it is made for.
        let a = unsafe { Strided::new(a.elements(), operands.next_row(), ()) };
        // SAFETY: likewise, of the second row and `b`.
        let b = unsafe { Strided::new(b.elements(), operands.next_row(), ()) };
        BinaryKernel { op: &Mul, a, b }
    };
    let (to, is_there) = match target.line() {
        Some(to) => (to, true),
        None => (Destination::New(len), false),
    };
    // (What sums up products in lines has accumulators of the elements' type.)
    let data = if TypeId::of::<T>() == TypeId::of::<T::Acc>() && are_lines(&nest) {
        sum_products([a.elements(), b.elements()], &nest, to)?
    } else {
        reduce(&nest, &mut NestParts::new(), lower, nest.positions(), to, 0, reducers::Sum)?
    };
    Ok(if is_there { data } else { target.take(data, sizes) })
}

#[track_caller]
fn matrix_pair<T: Num>(
    mut a: ContractionFactor<'_, T>,
    mut b: ContractionFactor<'_, T>,
    axes: LoopAxes<'_>,
    target: &mut Target<'_, T>,
    roles: PerRole<AxisSet>,
) -> Result<Vec<T>, Error> {
    let (sizes, c) = (axes.sizes, target.strides());
    let loops = |axes, a: &ContractionFactor<'_, T>, b: &ContractionFactor<'_, T>| {
        merge(axes, sizes, a.strides(), b.strides(), c)
    };
    let mut runs = roles.map(|axes| loops(axes, &a, &b));
    #[cfg(x86_vectors)]
    if let Some(products) = InPanels::of::<T>(&runs) {
        note(|| products.step::<T>(axes.product(&a, &b, target.order())));
        let PerRole { batch, m, n, .. } = &products.roles;
        let results = [batch, m, n].into_iter().flatten().map(|l| (l.size, l.c));
        // SAFETY: the plan was made of the operands' strides, which are valid for loops of these sizes, as the callers of `borrowed` promised, and of the
        // target's, whose places are distinct.
        return unsafe {
            target.write(results, |c| gemm::in_panels::run(&products, a.elements(), b.elements(), c))
        };
    }
    if runs.m.len() + runs.n.len() + runs.k.len() > 3 {
        (a, b) = packed_pair(a, b, c, sizes, roles)?;
        runs = roles.map(|axes| loops(axes, &a, &b));
    }
    let products = runs.products();
    note(|| products.step::<T>(axes.product(&a, &b, target.order())));
    // SAFETY: the plan was made of the strides of these operands and of the target.
    unsafe { run_products(products, &a, &b, target) }
}

/// The operands of a product whose rows, columns or sums are several loops: an operand is packed if then fewer are left, if that does not
/// multiply its memory (windows overlap), and if its elements are used often enough.
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
