//! Elementwise passes: to new memory, and combined with existing elements.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use typed_dims_kernels::load::nodes::{BinaryKernel, Constant, UnaryKernel};
use typed_dims_kernels::load::strided::Strided;
use typed_dims_kernels::loops::nest::{Nest, NestParts};
use typed_dims_kernels::loops::rows::Rows;
use typed_dims_kernels::map::elementwise::collect;
use typed_dims_kernels::map::update::{LoweredUpdate, update};
use typed_dims_kernels::memory::axes::{Axis, row_major};
use typed_dims_kernels::memory::destination::Destination;
use typed_dims_kernels::memory::elements::Elements;
use typed_dims_kernels::memory::freed::Freed;
use typed_dims_kernels::ops::{Add, Mul, Neg};
use typed_dims_kernels::scalar::Signed;

/// `-(a + b) * 3`, with the axes of the result in any order.
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
    let parts: NestParts = nest.split(0, choices.within(1, 4));
    for parts in [std::slice::from_ref(&nest), &parts] {
        let found = collect(parts, &lower, Destination::New(expected.len())).expect("nothing fails");
        assert_same(&found, &expected, &(case, parts.len()));
        let mut there: Vec<T> = expected.iter().map(|x| x.neg()).collect();
        collect(parts, &lower, Destination::Given(&mut there)).expect("nothing fails");
        assert_same(&there, &expected, &("given", case, parts.len()));
    }
    reused::<T>(&expected, &result, parts.len());
}

/// `-x`, computed in place.
fn reused<T: Signed + Value>(x: &[T], sizes: &[usize], parts: usize) {
    let mut data = x.to_vec();
    // SAFETY: the elements outlive `freed`, and each is read only at the position that is written.
    let freed = unsafe { Freed::of(&mut data[..]) };
    // SAFETY: these are the elements of `data`, and only the pass accesses them meanwhile.
    let elements = unsafe { Elements::new(freed.start(), &[Axis::new(x.len(), 1)], &[]) };
    let mut rows = Rows::new(sizes.len());
    rows.push().copy_from_slice(&row_major(sizes));
    let order: Vec<usize> = (0..sizes.len()).collect();
    let parts: NestParts = Nest::map(sizes, &order, &rows).split(0, parts);
    let lower = |nest| {
        // SAFETY: the row iterates over the elements.
        let a = unsafe { Strided::<T, ()>::new(elements, Nest::operands(nest).next_row(), ()) };
        UnaryKernel { op: &Neg, a }
    };
    collect(&parts, &lower, Destination::Reused(&freed)).expect("nothing fails");
    let expected: Vec<T> = x.iter().map(|x| x.neg()).collect();
    assert_same(&data, &expected, &("reused", sizes, parts.len()));
}

/// `c += a`, where elements of `c` may occur several times.
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
    unsafe { update(&nest, &mut NestParts::new(), c.elements_mut(), lower, Add) }.expect("nothing fails");
    c.assert_same(&expected, &case);
}
