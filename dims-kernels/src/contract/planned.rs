//! Products of two operands that are planned once and run many times with different elements.

use crate::contract::LoopAxes;
use crate::contract::pair::{PairPlan, loop_step, sum_loop};
use crate::error::Error;
use crate::gemm;
use crate::loops::steps::{ProductDims, note};
use crate::memory::axes::{Axis, contiguous};
use crate::memory::destination::Destination;
use crate::memory::elements::Elements;
use crate::reduce::reducers::Sum;
use crate::scalar::Num;
use alloc::vec::Vec;
use core::any::TypeId;
use smallvec::SmallVec;

/// The product of two operands, summed over some loops, as [`contract`](super::contract) computes
/// it.
pub(crate) struct PreparedProduct {
    plan: PairPlan,
    /// The axes of each operand.
    operands: [SmallVec<[Axis; 8]>; 2],
    /// The number of results.
    len: usize,
    /// The names of the axes, for plans.
    dims: ProductDims,
}

impl PreparedProduct {
    /// The plan for operands with these strides and a result that is contiguous in the given order
    /// of axes. `None` if an operand must be summed or may have to be packed first, or if the
    /// accumulators and the elements have different types.
    pub(crate) fn new<T: Num>(strides: [&[isize]; 2], axes: LoopAxes<'_>, order: &[usize]) -> Option<Self> {
        let sizes = axes.sizes;
        let is_kept = |axis: usize| order.contains(&axis);
        let is_lone = |axis: usize| sizes[axis] != 1 && (strides[0][axis] == 0) != (strides[1][axis] == 0);
        if TypeId::of::<T>() != TypeId::of::<T::Acc>()
            || (0..sizes.len()).any(|axis| is_lone(axis) && !is_kept(axis))
        {
            return None;
        }
        let plan = PairPlan::new::<T>(strides, sizes, order, &contiguous(order, sizes));
        if matches!(plan, PairPlan::Packed(_)) {
            return None;
        }
        let names = |axes_of: &dyn Fn(usize) -> bool| {
            (0..sizes.len()).filter(|&axis| axes_of(axis)).map(|axis| (axes.name)(axis)).collect()
        };
        let of = |operand: usize| names(&|axis| strides[operand][axis] != 0);
        let [left, right] = if plan.is_exchanged() { [1, 0] } else { [0, 1] };
        let dims =
            ProductDims::new(of(left), of(right), order.iter().map(|&axis| (axes.name)(axis)).collect());
        let axes_of = |strides: &[isize]| {
            sizes.iter().zip(strides).map(|(&size, &stride)| Axis::new(size, stride)).collect()
        };
        let len = order.iter().map(|&axis| sizes[axis]).product();
        Some(PreparedProduct { plan, operands: strides.map(axes_of), len, dims })
    }

    /// Runs the product of operands that start at these addresses. Returns the results if `to` is
    /// new memory, otherwise an empty vector.
    ///
    /// # Safety
    ///
    /// The plan was made for this type. Each operand has an element for each position along its
    /// strides.
    pub(crate) unsafe fn run<T: Num>(
        &self,
        starts: [*const T; 2],
        to: Destination<'_, T>,
    ) -> Result<Vec<T>, Error> {
        assert_eq!(to.len(), self.len, "the destination has room for each result");
        // SAFETY: the caller's promise.
        let elements = |at: usize| unsafe { Elements::new(starts[at], &self.operands[at], &[]) };
        let (a, b) = (elements(0), elements(1));
        match &self.plan {
            PairPlan::Products(products) => {
                note(|| products.step::<T>(self.dims.clone()));
                // SAFETY: the plan was made from the strides of the operands and of a contiguous
                // result. `products::run` writes all of it.
                unsafe {
                    to.write(|c| {
                        gemm::products::run(products, a, b, c);
                        Ok(())
                    })
                }
            }
            #[cfg(x86_vectors)]
            PairPlan::Row(products) => {
                note(|| products.step::<T>(self.dims.clone()));
                // SAFETY: likewise, with the operands in the other order.
                unsafe {
                    to.write(|c| {
                        gemm::products::run(products, b, a, c);
                        Ok(())
                    })
                }
            }
            #[cfg(x86_vectors)]
            PairPlan::InPanels(products) => {
                note(|| products.step::<T>(self.dims.clone()));
                // SAFETY: as for `Products`.
                unsafe {
                    to.write(|c| {
                        gemm::in_panels::run(products, a, b, c);
                        Ok(())
                    })
                }
            }
            PairPlan::Loop(nest) => {
                note(|| loop_step::<T>(nest, self.len, "mul(tensor, tensor)".into()));
                // SAFETY: the rows of the nest have the strides of the operands.
                unsafe { sum_loop(nest, [a, b], Sum::ONCE, to) }
            }
            PairPlan::Packed(_) => unreachable!("`new` returns `None` for such products"),
        }
    }
}
