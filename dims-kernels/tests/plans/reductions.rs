//! Reductions of elements in memory, and of a product of two operands that is not stored.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use std::fmt::Debug;
use typed_dims_kernels::load::nodes::BinaryKernel;
use typed_dims_kernels::loops::nest::{Nest, NestParts};
use typed_dims_kernels::loops::rows::Rows;
use typed_dims_kernels::memory::destination::Destination;
use typed_dims_kernels::ops::Mul;
use typed_dims_kernels::reduce::input::ReduceInput;
use typed_dims_kernels::reduce::reducers::{ArgExtremum, Max, Min, Prod, Sum};
use typed_dims_kernels::reduce::{Reducer, reduce};
use typed_dims_kernels::scalar::{Num, Ordered};

/// Axes that are kept, in some order, and axes that are reduced.
struct Axes {
    sizes: Vec<usize>,
    kept: Vec<usize>,
    reduced: Vec<usize>,
}

impl Axes {
    fn new(choices: &mut Choices<'_>) -> Self {
        let count = choices.within(1, 5);
        let sizes = choices.sizes(count, 400, 20_000);
        let mut kept = choices.permutation(count);
        let reduced = kept.split_off(choices.within(0, count));
        Axes { sizes, kept, reduced }
    }

    /// The sizes of the kept axes and of the reduced axes.
    fn split(&self) -> [Vec<usize>; 2] {
        [&self.kept, &self.reduced].map(|axes| axes.iter().map(|&axis| self.sizes[axis]).collect())
    }

    /// The values that are reduced to each result, in order.
    fn groups<T>(&self, value: impl Fn(&[usize]) -> T) -> Vec<Vec<T>> {
        let [kept, reduced] = self.split();
        let mut at = vec![0; self.sizes.len()];
        positions(&kept)
            .map(|outer| {
                self.kept.iter().zip(outer).for_each(|(&axis, position)| at[axis] = position);
                positions(&reduced)
                    .map(|inner| {
                        self.reduced.iter().zip(inner).for_each(|(&axis, position)| at[axis] = position);
                        value(&at)
                    })
                    .collect()
            })
            .collect()
    }

    fn nest(&self, operands: &[&[isize]]) -> Nest {
        let mut rows = Rows::new(self.sizes.len());
        operands.iter().for_each(|strides| rows.push().copy_from_slice(strides));
        Nest::reduce(&self.sizes, &self.kept, &self.reduced, &rows)
    }
}

/// A reduction of one of several kinds, for floats or integers.
pub fn reductions(choices: &mut Choices<'_>) {
    match choices.below(4) {
        0 => reduction::<f32>(choices),
        1 => reduction::<f64>(choices),
        2 => reduction::<i32>(choices),
        _ => reduction::<u64>(choices),
    }
}

fn reduction<T: Ordered + Value>(choices: &mut Choices<'_>) {
    let axes = Axes::new(choices);
    let mut x = Placed::<T>::new(choices, &axes.sizes, true);
    match choices.below(5) {
        0 => {
            let sum = |group: &[T]| group.iter().fold(T::ZERO, |sum, &value| sum.add(value));
            check(&axes, &x, Sum::ONCE, sum);
        }
        1 => {
            // Powers of two, whose product is exact because few of them are not 1.
            let mut left = 20;
            for at in x.positions().collect::<Vec<_>>() {
                let is_two = left > 0 && choices.once_in(4);
                left -= usize::from(is_two);
                x.set(&at, if is_two { T::ONE.add(T::ONE) } else { T::ONE });
            }
            check(&axes, &x, Prod, |group| group.iter().fold(T::ONE, |product, &value| product.mul(value)));
        }
        2 => check(&axes, &x, Max, |group| group.iter().fold(T::LOWEST, |most, &value| most.maximum(value))),
        3 => {
            check(&axes, &x, Min, |group| group.iter().fold(T::HIGHEST, |least, &value| least.minimum(value)))
        }
        _ => {
            let first = |group: &[T]| {
                let better = |best: Option<usize>, at: usize| match best {
                    Some(best) if group[at] <= group[best] => Some(best),
                    _ => Some(at),
                };
                (0..group.len()).fold(None, better).unwrap_or(usize::MAX)
            };
            // The result is a position along one axis: several axes cannot be reduced at once.
            if axes.reduced.len() <= 1 {
                check(&axes, &x, ArgExtremum::<true>, first);
            }
        }
    }
}

/// Compares a reduction with `expected`, applied to the values of each result. The function that is
/// compiled for the type must give the same results.
#[track_caller]
fn check<T, R>(axes: &Axes, x: &Placed<T>, reducer: R, expected: impl Fn(&[T]) -> R::Out)
where
    T: Num + Value,
    R: Reducer<T, Out: Send + PartialEq + Debug>,
{
    let nest = axes.nest(&[&x.strides]);
    let expected: Vec<R::Out> = axes.groups(|at| x.at(at)).iter().map(|group| expected(group)).collect();
    let [_, reduced] = axes.split();
    let (work, len, count) = (nest.positions(), expected.len(), reduced.iter().product());
    // SAFETY: the row of the nest has the strides of `x`, along axes of its sizes.
    let memory = || unsafe { ReduceInput::new(x.elements(), &nest, work, count) };
    let case =
        || format!("{} {:?} {:?}", reducer.name(), (&axes.sizes, &axes.kept, &axes.reduced), x.strides);
    let new = || Destination::New(len);
    assert_eq!(memory().reduce(new(), reducer).expect("there is memory"), expected, "{}", case());
    let compiled = reducer.reduce_memory(memory(), new());
    assert_eq!(compiled.expect("there is memory"), expected, "compiled, {}", case());
    let mut there: Vec<R::Out> = expected.iter().rev().copied().collect();
    reducer.reduce_memory(memory(), Destination::Given(&mut there)).expect("there is memory");
    assert_eq!(there, expected, "in place, {}", case());
}

/// Sums of products of two operands, each of which may be constant along some axes.
pub fn fused_sums(choices: &mut Choices<'_>) {
    if choices.once_in(2) { fused_sum::<f32>(choices) } else { fused_sum::<i64>(choices) }
}

fn fused_sum<T: Num + Value>(choices: &mut Choices<'_>) {
    let axes = Axes::new(choices);
    let [a, b] = [(); 2].map(|()| Placed::<T>::new(choices, &axes.sizes, true));
    let nest = axes.nest(&[&a.strides, &b.strides]);
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        BinaryKernel { op: &Mul, a: a.reader(&mut operands), b: b.reader(&mut operands) }
    };
    let sums: Vec<T> = axes
        .groups(|at| a.at(at).mul(b.at(at)))
        .into_iter()
        .map(|group| group.into_iter().fold(T::ZERO, T::add))
        .collect();
    let to = Destination::New(sums.len());
    let found = reduce(&nest, &mut NestParts::new(), &lower, nest.positions(), to, 0, Sum::ONCE);
    let case = (&axes.sizes, &axes.kept, &axes.reduced, [&a.strides, &b.strides]);
    assert_same(&found.expect("there is memory"), &sums, &case);
}
