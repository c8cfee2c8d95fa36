//! Copies between layouts.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use typed_dims_kernels::copy::{FEW, copy, copy_few, copy_onto};
use typed_dims_kernels::loops::nest::Nest;
use typed_dims_kernels::loops::rows::Rows;
use typed_dims_kernels::memory::axes::Axis;
use typed_dims_kernels::memory::destination::Destination;

/// The nest of a copy to memory with the axis order `order`.
fn nest(sizes: &[usize], order: &[usize], operands: &[&[isize]]) -> Nest {
    let mut rows = Rows::new(sizes.len());
    operands.iter().for_each(|strides| rows.push().copy_from_slice(strides));
    Nest::map(sizes, order, &rows)
}

/// A copy of elements of one of several widths, to new memory or in place.
pub fn copies(choices: &mut Choices<'_>) {
    match choices.below(6) {
        0 => to_new_memory::<i8>(choices),
        1 => to_new_memory::<u16>(choices),
        2 => to_new_memory::<f32>(choices),
        3 => to_new_memory::<f64>(choices),
        4 => to_new_memory::<num_complex::Complex64>(choices),
        _ => to_new_memory::<[u8; 3]>(choices),
    }
}

fn to_new_memory<T: Value + 'static>(choices: &mut Choices<'_>) {
    let axes = choices.within(1, 5);
    let sizes = choices.sizes(axes, 200, 40_000);
    let x = Placed::<T>::new(choices, &sizes, true);
    let order = choices.permutation(axes);
    let result: Vec<usize> = order.iter().map(|&axis| sizes[axis]).collect();
    let mut at = vec![0; axes];
    let expected: Vec<T> = positions(&result)
        .map(|result| {
            order.iter().zip(result).for_each(|(&axis, position)| at[axis] = position);
            x.at(&at)
        })
        .collect();
    let mut found = Vec::with_capacity(expected.len());
    let nest = nest(&sizes, &order, &[&x.strides]);
    // SAFETY: the row of the nest has the strides of `x`, along axes of its sizes; a copy writes
    // all slots of the result.
    unsafe {
        copy(x.elements(), &nest, &mut found.spare_capacity_mut()[..expected.len()]);
        found.set_len(expected.len());
    }
    assert_same(&found, &expected, &(&sizes, &order, &x.strides));
    if axes <= FEW {
        let mut few = [Axis::new(1, 0); FEW];
        let own = order.iter().map(|&axis| Axis::new(sizes[axis], x.strides[axis]));
        few[FEW - axes..].iter_mut().zip(own).for_each(|(few, own)| *few = own);
        let mut there: Vec<T> = expected.iter().rev().copied().collect();
        for to in [Destination::New(expected.len()), Destination::Given(&mut there)] {
            let is_new = matches!(to, Destination::New(_));
            // SAFETY: these are the axes of `x` in another order, and axes of one element.
            let found = unsafe { copy_few(x.elements(), &few, to) }.expect("there is memory");
            let new = if is_new { &expected[..] } else { &[] };
            assert_same(&found, new, &("one by one", &sizes, &order, &x.strides));
        }
        assert_same(&there, &expected, &("one by one, in place", &sizes, &order, &x.strides));
    }
}

/// A copy to existing elements, along any axes.
pub fn copies_onto(choices: &mut Choices<'_>) {
    if choices.once_in(2) { to_elements::<f32>(choices) } else { to_elements::<u16>(choices) }
}

fn to_elements<T: Value + 'static>(choices: &mut Choices<'_>) {
    let axes = choices.within(1, 5);
    let sizes = choices.sizes(axes, 200, 40_000);
    let x = Placed::<T>::new(choices, &sizes, true);
    let order = choices.permutation(axes);
    let mut target = Placed::<T>::in_order(choices, &sizes, &order, false).poisoned();
    let mut expected = target.clone();
    x.positions().for_each(|at| expected.set(&at, x.at(&at)));
    let nest = nest(&sizes, &order, &[&target.strides, &x.strides]);
    let mut operands = nest.operands();
    let (result, row) = (operands.next_row(), operands.next_row());
    // SAFETY: the rows of the nest have the strides of `target` and of `x`, along axes of their
    // sizes.
    unsafe { copy_onto(x.elements(), row, target.elements_mut(), result, &nest.sizes) };
    target.assert_same(&expected, &(&sizes, &order, [&x.strides, &expected.strides]));
}
