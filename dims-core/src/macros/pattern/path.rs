//! The order in which an einsum multiplies its operands.

use super::args::{Args, ValueList, unify};
use super::data::{GivenSize, Pattern};
use super::einsum::{multiplies_in_pairs, supports};
use super::layout::PatternLayout;
use crate::error::DimError;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use kernels::contract::path::path;
use kernels::loops::axes::AxisSet;
use kernels::scalar::Num;

/// The sequence of pairwise products of an einsum, and their costs. Printing it lists the steps.
#[derive(Clone, Debug, PartialEq)]
pub struct EinsumPath {
    /// The pattern.
    pub pattern: String,
    /// The products in order.
    pub steps: Vec<PathStep>,
    /// Multiplications and additions without a path, in one loop over all indices.
    pub naive_flops: f64,
    /// Multiplications and additions of all steps.
    pub flops: f64,
    /// Elements of the largest product, which may be the final result.
    pub largest: f64,
}

/// One product of two operands.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// The positions of both operands in the list of remaining operands. Their product is appended
    /// to this list.
    pub operands: (usize, usize),
    /// The product as a pattern, `ik,kj->ij`.
    pub pattern: String,
    /// Multiplications and additions.
    pub flops: f64,
    /// Elements of the product.
    pub size: f64,
}

/// The path of an einsum over these operands. No product is computed. There are no steps if one loop
/// computes the result: for a single operand, or for 128 axes or more.
pub fn einsum_path<T: Num, L: Args<T>>(
    pattern: &'static Pattern,
    operands: L,
    given: &[GivenSize],
) -> Result<EinsumPath, DimError> {
    let mut values = operands.values();
    values.settle()?;
    let (shapes, layout) = unify::<T, L::Dims>(pattern, given, &values)?;
    let kept = layout.order(pattern.output);
    let in_pairs = multiplies_in_pairs(&layout);
    let (mut sets, products) = if in_pairs {
        let sets = supports::<T, L::Dims>(&layout, &shapes, &values)?;
        let products = path(&sets, &layout.sizes, &kept);
        (sets, products)
    } else {
        Default::default()
    };
    let all = |axes: AxisSet| {
        let within = (0..layout.sizes.len()).filter(|&axis| axes >> axis & 1 == 1);
        within.map(|axis| layout.sizes[axis] as f64).product::<f64>()
    };
    let mut steps = Vec::new();
    for (i, j, product) in products {
        let (b, a) = (sets.remove(j), sets.remove(i));
        sets.push(product);
        let shown = format!("{},{}->{}", names(&layout, a), names(&layout, b), names(&layout, product));
        let factor = if (a | b) == product { 1.0 } else { 2.0 };
        steps.push(PathStep {
            operands: (i, j),
            pattern: shown,
            flops: all(a | b) * factor,
            size: all(product),
        });
    }
    let everything: f64 = layout.sizes.iter().map(|&size| size as f64).product();
    // For each position, the products of the operands, and an addition if there is a sum.
    let operations = pattern.inputs.len().saturating_sub(1) + usize::from(kept.len() < layout.sizes.len());
    let naive_flops = everything * operations as f64;
    let (flops, largest) = if in_pairs {
        (steps.iter().map(|step| step.flops).sum(), steps.iter().map(|step| step.size).fold(0.0, f64::max))
    } else {
        (naive_flops, kept.iter().map(|&axis| layout.sizes[axis] as f64).product())
    };
    Ok(EinsumPath { pattern: pattern.text.into(), naive_flops, flops, largest, steps })
}

fn names(layout: &PatternLayout, axes: AxisSet) -> String {
    let pattern = layout.pattern;
    let short = pattern.axes.iter().all(|name| name.chars().count() == 1);
    let first = layout.axis(0);
    let name = |axis: usize| match axis.checked_sub(first) {
        Some(axis) => pattern.axes[axis].to_owned(),
        None => "...".to_owned(),
    };
    let mut names: Vec<String> =
        (0..layout.sizes.len()).filter(|&axis| axes >> axis & 1 == 1).map(name).collect();
    names.dedup();
    names.join(if short { "" } else { " " })
}

impl fmt::Display for EinsumPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "einsum path of `{}`", self.pattern)?;
        writeln!(f, "  one loop over all indices: {:.3e} flops", self.naive_flops)?;
        writeln!(
            f,
            "  along the path:            {:.3e} flops, largest product {:.3e} elements",
            self.flops, self.largest
        )?;
        for (at, step) in self.steps.iter().enumerate() {
            let (i, j) = step.operands;
            writeln!(
                f,
                "  {:>2}. operands {i} and {j}: {} ({:.3e} flops)",
                at + 1,
                step.pattern,
                step.flops
            )?;
        }
        Ok(())
    }
}
