//! Running sums along lines of elements in memory.

use crate::choices::Choices;
use crate::placed::{Placed, Value, assert_same, positions};
use typed_dims_kernels::loops::nest::Nest;
use typed_dims_kernels::loops::rows::Rows;
use typed_dims_kernels::scalar::Num;
use typed_dims_kernels::scan::{Cumulate, LineOp, ScanInput};

/// Running sums along one axis, with the axes of the result in any order.
pub fn lines(choices: &mut Choices<'_>) {
    match choices.below(3) {
        0 => running::<f32>(choices),
        1 => running::<f64>(choices),
        _ => running::<i32>(choices),
    }
}

fn running<T: Num + Value>(choices: &mut Choices<'_>) {
    let axes = choices.within(1, 5);
    let sizes = choices.sizes(axes, 400, 20_000);
    let x = Placed::<T>::new(choices, &sizes, true);
    let order = choices.permutation(axes);
    let (blocks, lines) = order.split_at(choices.below(axes));
    let mut rows = Rows::new(axes);
    rows.push().copy_from_slice(&x.strides);
    let nest = Nest::blocks(&sizes, blocks, lines, &rows);
    let parts = nest.split(0, if nest.outer > 0 { choices.within(1, 4) } else { 1 });

    let result: Vec<usize> = order.iter().map(|&axis| sizes[axis]).collect();
    let inner = lines[1..].iter().map(|&axis| sizes[axis]).product::<usize>();
    let mut at = vec![0; axes];
    let mut expected: Vec<T> = Vec::new();
    for (number, position) in positions(&result).enumerate() {
        order.iter().zip(&position).for_each(|(&axis, &position)| at[axis] = position);
        let before = if at[lines[0]] == 0 { T::ZERO } else { expected[number - inner] };
        expected.push(before.add(x.at(&at)));
    }
    // SAFETY: the nest has the sizes and strides of `x`.
    let memory = || unsafe { ScanInput::new(x.elements(), &parts, expected.len(), inner) };
    let case = (&sizes, &order, blocks.len(), &x.strides, parts.len());
    assert_same(&memory().collect(Cumulate).expect("there is memory"), &expected, &case);
    assert_same(&Cumulate.collect_memory(memory()).expect("there is memory"), &expected, &("compiled", case));
}
