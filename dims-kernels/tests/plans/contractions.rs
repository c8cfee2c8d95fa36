//! Contractions: products of several operands, summed over the axes that are not kept.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use smallvec::SmallVec;
use typed_dims_kernels::contract::contract;
use typed_dims_kernels::contract::target::Target;
use typed_dims_kernels::contract::{ContractionFactor, ContractionFactors, LoopAxes, is_worthwhile};
use typed_dims_kernels::loops::axes::AxisSet;
use typed_dims_kernels::scalar::Num;

/// A contraction of `f32`, `f64` or integers.
pub fn contractions(choices: &mut Choices<'_>) {
    match choices.below(4) {
        0 => contraction::<f64>(choices),
        1 => contraction::<i64>(choices),
        _ => contraction::<f32>(choices),
    }
}

/// An operand: its loop axes, and its elements along them.
struct Factor<T> {
    axes: Vec<usize>,
    placed: Placed<T>,
}

impl<T: Value> Factor<T> {
    fn new(choices: &mut Choices<'_>, sizes: &[usize]) -> Self {
        let axes: Vec<usize> = (0..sizes.len()).filter(|_| !choices.once_in(3)).collect();
        let own: Vec<usize> = axes.iter().map(|&axis| sizes[axis]).collect();
        Factor { placed: Placed::new(choices, &own, false), axes }
    }

    /// The element at a position of the loops.
    fn at(&self, at: &[usize]) -> T {
        let own: Vec<usize> = self.axes.iter().map(|&axis| at[axis]).collect();
        self.placed.at(&own)
    }

    /// The stride along each of the loop axes.
    fn strides(&self, loops: usize) -> SmallVec<[isize; 8]> {
        let mut strides = SmallVec::from_elem(0, loops);
        self.axes.iter().zip(&self.placed.strides).for_each(|(&axis, &stride)| strides[axis] = stride);
        strides
    }
}

fn contraction<T: Num + Value>(choices: &mut Choices<'_>) {
    let loops = choices.within(1, 5);
    let sizes = choices.sizes(loops, 90, 30_000);
    let factors: Vec<Factor<T>> = (0..choices.within(2, 3)).map(|_| Factor::new(choices, &sizes)).collect();
    let mut kept = choices.permutation(loops);
    kept.truncate(choices.within(0, loops));
    let supports: Vec<AxisSet> = factors
        .iter()
        .map(|factor| {
            let varies = factor.axes.iter().filter(|&&axis| sizes[axis] != 1);
            varies.fold(0, |axes, axis| axes | 1 << axis)
        })
        .collect();
    // Other contractions run as fused loops.
    if !is_worthwhile(&supports, &sizes, &kept) {
        return;
    }
    // The product of the last ones is so large that they multiply an operand instead of the sums.
    let (constant, count) = choices.one_of(&[(1, 1), (2, 1), (64, 5)]);
    let constants = vec![(choices.within(0, factors.len()), T::of(constant)); count];
    let scale = constants.iter().fold(T::ONE, |product, &(_, constant)| product.mul(constant));
    let kept_sizes: Vec<usize> = kept.iter().map(|&axis| sizes[axis]).collect();
    let mut expected = vec![T::ZERO; kept_sizes.iter().product()];
    for at in positions(&sizes) {
        let product = factors.iter().fold(scale, |product, factor| product.mul(factor.at(&at)));
        let place = kept.iter().fold(0, |place, &axis| place * sizes[axis] + at[axis]);
        expected[place] = expected[place].add(product);
    }
    let operands = || -> ContractionFactors<'_, T> {
        factors
            .iter()
            // SAFETY: the strides are the factor's, along loops of its sizes.
            .map(|factor| unsafe {
                ContractionFactor::borrowed(factor.placed.elements(), factor.strides(loops))
            })
            .collect()
    };
    let axes = LoopAxes { sizes: &sizes, name: &|_| "axis" };
    let strides: Vec<_> = factors.iter().map(|factor| factor.strides(loops)).collect();
    let case = (std::any::type_name::<T>(), &sizes, &kept, strides);
    let target = Target::new(&kept, &sizes);
    let found = contract(operands(), &constants, Num::ONE, axes, target).expect("there is memory");
    assert_same(&found, &expected, &case);

    let mut target = Placed::<T>::new(choices, &kept_sizes, false).poisoned();
    let mut whole = target.clone();
    positions(&kept_sizes).zip(&expected).for_each(|(at, &sum)| whole.set(&at, sum));
    let mut strides = SmallVec::from_elem(0, loops);
    kept.iter().zip(&target.strides).for_each(|(&axis, &stride)| strides[axis] = stride);
    // SAFETY: along the kept axes, the target has these sizes and strides. Its slots are distinct.
    let there = unsafe { Target::places(target.elements_mut(), strides, &sizes, &kept) };
    contract(operands(), &constants, Num::ONE, axes, there).expect("there is memory");
    target.assert_same(&whole, &case);
}
