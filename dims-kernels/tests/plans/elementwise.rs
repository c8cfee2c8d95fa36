//! Elementwise passes: into new memory, and combined with elements that are there.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use typed_dims_kernels::load::nodes::{BinaryKernel, Constant, UnaryKernel};
use typed_dims_kernels::loops::nest::{Nest, Parts};
use typed_dims_kernels::loops::rows::Rows;
use typed_dims_kernels::map::elementwise::{collect, collect_parts};
use typed_dims_kernels::map::update::{LoweredUpdate, update};
use typed_dims_kernels::ops::{Add, Mul, Neg};
use typed_dims_kernels::scalar::Signed;

/// `-(a + b) * 3`, in the order of some axes.
pub fn elementwise(choices: &mut Choices<'_>) {
    match choices.below(3) {
        0 => pass::<f64>(choices),
        1 => pass::<i32>(choices),
        _ => pass::<f32>(choices),
    }
}

fn pass<T: Signed + Value>(choices: &mut Choices<'_>) {
    let axes = choices.within(1, 5);
    let sizes = choices.sizes(axes, 400, 20_000);
    let [a, b] = [(); 2].map(|()| Placed::<T>::new(choices, &sizes, true));
    let order = choices.permutation(axes);
    let mut rows = Rows::new(axes);
    [&a, &b].iter().for_each(|x| rows.push().copy_from_slice(&x.strides));
    let nest = Nest::map(&sizes, &order, &rows);
    let three = T::of(3);
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        let sum = BinaryKernel { op: &Add, a: a.reader(&mut operands), b: b.reader(&mut operands) };
        BinaryKernel { op: &Mul, a: UnaryKernel { op: &Neg, a: sum }, b: Constant(three) }
    };
    let result: Vec<usize> = order.iter().map(|&axis| sizes[axis]).collect();
    let mut at = vec![0; axes];
    let expected: Vec<T> = positions(&result)
        .map(|result| {
            order.iter().zip(result).for_each(|(&axis, position)| at[axis] = position);
            a.at(&at).add(b.at(&at)).neg().mul(three)
        })
        .collect();
    let case = (&sizes, &order, [&a.strides, &b.strides]);
    let found = collect(lower(&nest), &nest, expected.len()).expect("nothing fails");
    assert_same(&found, &expected, &case);
    let parts: Parts = nest.split(0, choices.within(1, 4));
    let found = collect_parts(&parts, lower, expected.len()).expect("nothing fails");
    assert_same(&found, &expected, &(case, parts.len()));
}

/// `c += a`, where elements of `c` may come up several times.
pub fn updates(choices: &mut Choices<'_>) {
    if choices.once_in(2) { addition::<f32>(choices) } else { addition::<i64>(choices) }
}

fn addition<T: Signed + Value>(choices: &mut Choices<'_>) {
    let axes = choices.within(1, 5);
    let sizes = choices.sizes(axes, 400, 20_000);
    let a = Placed::<T>::new(choices, &sizes, true);
    let mut c = Placed::<T>::new(choices, &sizes, true);
    let order = choices.permutation(axes);
    let mut rows = Rows::new(axes);
    [&c, &a].iter().for_each(|x| rows.push().copy_from_slice(&x.strides));
    let nest = Nest::map(&sizes, &order, &rows);
    let mut expected = c.clone();
    a.positions().for_each(|at| expected.set(&at, expected.at(&at).add(a.at(&at))));
    let case = (&sizes, &order, [&a.strides, &c.strides.clone()]);
    let lower = |nest| {
        let mut operands = Nest::operands(nest);
        let row = operands.next_row();
        LoweredUpdate { row, indices: (), value: a.reader(&mut operands) }
    };
    // SAFETY: the first row of the nest has the strides of `c`, along axes of its sizes.
    unsafe { update(&nest, &mut Parts::new(), c.elements_mut(), lower, Add) }.expect("nothing fails");
    c.assert_same(&expected, &case);
}
