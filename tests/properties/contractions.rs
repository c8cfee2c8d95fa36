//! Products summed over some of their dims.

use crate::reference::contract;
use crate::reference::input::{Case, Random, Sample, cases, filled_cases};
use crate::{A, B, C, D, E, F, assert_same, bound, inputs, ordered, properties};
use ndarray::{ArrayD, ArrayViewMutD, Slice};
use num_complex::Complex;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Num;

/// Each line is a check. The product of the operands is summed over the dims after `sum`, and
/// compared in the order of the dims after `to`.
macro_rules! contractions {
    ($name:ident: $($(($first:ident [$($d:ident)*]))+ sum [$($s:ident)*] to [$($o:ident)*];)*) => {
        fn $name<T: Sample + Num>(case: &Case, which: usize) {
            let mut checks: Vec<fn(&Case)> = Vec::new();
            $(checks.push(|case| {
                let mut random = case.random();
                inputs!(case, random, T; $($first[$($d)*]),+ => references);
                let expected = contract(&references, &[$(stringify!($s)),*]);
                let expected = expected.order(&[$(&[stringify!($o)]),*]);
                let found = ordered!((contractions!(@product $($first [$($d)*])+)).sum(($($s,)*)), [$($o)*]);
                assert_eq!(found, expected);
            });)*
            checks[which % checks.len()](case);
        }
    };
    (@product $x:ident [$($d:ident)*] $($more:ident [$($e:ident)*])*) => {
        bound!($x[$($d)*]) $(* bound!($more[$($e)*]))*
    };
}

// Cases for several element types: rows, columns, sums, batches, unpaired dims.
contractions! { pairs:
    (x [A B]) (y [B C]) sum [B] to [A C];
    (x [A B]) (y [B C]) sum [B] to [C A];
    (x [D A B]) (y [B D C]) sum [B] to [D A C];
    (x [A B C]) (y [C B D]) sum [C B] to [A D];
    (x [A B]) (y [B C]) sum [A B] to [C];
    (x [A B]) (y [A B]) sum [A B] to [];
    (x [A]) (y [B]) sum [] to [B A];
}

// Dims of every role, in different positions.
contractions! { two:
    (x [A B C D]) (y [D C E F]) sum [C D] to [A F E B];
    (x [A B C D]) (y [D C E F]) sum [D] to [C A B F E];
    (x [A C B]) (y [F B A]) sum [B] to [A F C];
    (x [A B]) (y [C D]) sum [B D] to [C A];
    (x [A B]) (y [C D]) sum [A B C D] to [];
    (x [A B C]) (y [B]) sum [C] to [B A];
    (x [A B C]) (y [B]) sum [B] to [C A];
    (x [A]) (y [A B C D]) sum [A C] to [D B];
    (x [A B C]) (y [A B C]) sum [B] to [C A];
    (x [A B C D E F]) (y [F B]) sum [A B F] to [E C D];
    (x []) (y [A B]) sum [A] to [B];
    (x [B A]) (y [C B A]) sum [A] to [B C];
}

contractions! { three:
    (x [A B]) (y [B C]) (z [C D]) sum [B C] to [A D];
    (x [A B]) (y [B C]) (z [C A]) sum [A B C] to [];
    (x [A B]) (y [A C]) (z [A D]) sum [A] to [D C B];
    (x [A]) (y [B]) (z [C]) sum [B] to [C A];
    (x [A B C]) (y [C D]) (z [D E F]) sum [A C D] to [F B E];
    (x [E A B]) (y [E B C]) (z [E C D]) sum [B C] to [E A D];
    (x [A B]) (y [A B]) (z [B]) sum [B] to [A];
    (x [A B]) (y []) (z [B C]) sum [B] to [C A];
    (x [A B]) (y [C]) (z [C]) sum [C] to [B A];
}

contractions! { four:
    (x [A B]) (y [B C]) (z [C D]) (w [D E]) sum [B C D] to [A E];
    (x [A B]) (y [A C]) (z [B D]) (w [C D]) sum [A B C D] to [];
    (x [A]) (y [A B]) (z [B]) (w [C]) sum [A] to [C B];
    (x [F A B]) (y [B C]) (z [F C]) (w [D]) sum [C D] to [B A F];
}

contractions! { five:
    (x [A B]) (y [B C]) (z [C D]) (w [D E]) (v [E F]) sum [B C D E] to [F A];
    (x [A]) (y [B]) (z [C]) (w [D]) (v [E]) sum [B D] to [E A C];
    (x [A B]) (y [B]) (z [A]) (w [A C]) (v [C D]) sum [A C] to [D B];
    (x [A B]) (y [C D]) (z [A D]) (w [B C]) (v [E]) sum [A B C D E] to [];
}

/// Runs `write` on a part of an array whose axes have any order, may go backwards, and may skip
/// elements. The other elements must not change.
fn into_part<T: Sample>(
    random: &mut Random,
    expected: &ArrayD<T>,
    write: impl FnOnce(&mut ArrayViewMutD<'_, T>),
) {
    let rank = expected.ndim();
    let mut order: Vec<usize> = (0..rank).collect();
    (1..rank).for_each(|at| order.swap(at, random.below(at + 1)));
    let spread = random.below(2) == 0;
    let steps: Vec<isize> =
        order.iter().map(|_| if spread { [1, -1, 2, -3][random.below(4)] } else { 1 }).collect();
    let lengths: Vec<usize> =
        order.iter().zip(&steps).map(|(&axis, step)| expected.shape()[axis] * step.unsigned_abs()).collect();
    let before = ArrayD::from_shape_simple_fn(lengths, || T::sample(random));
    let part = |array: &mut ArrayD<T>, run: &mut dyn FnMut(&mut ArrayViewMutD<'_, T>)| {
        let view = array.slice_each_axis_mut(|axis| Slice::new(0, None, steps[axis.axis.index()]));
        let places: Vec<usize> = (0..rank)
            .map(|axis| order.iter().position(|&at| at == axis).expect("the order has each axis"))
            .collect();
        run(&mut view.permuted_axes(places));
    };
    let (mut found, mut all, mut write) = (before.clone(), before, Some(write));
    part(&mut found, &mut |view| write.take().expect("the function runs once")(view));
    part(&mut all, &mut |view| view.assign(expected));
    assert_eq!(found, all);
}

/// Sums into existing memory: of products of two and of three operands, and of a single operand.
fn into_places<T: Sample + Num>(case: &Case, which: usize) {
    macro_rules! checks {
        ($($(($first:ident [$($d:ident)*]))+ sum [$($s:ident)*] to [$($group:tt),*], [$($o:tt),*];)*) => {{
            let mut checks: Vec<fn(&Case)> = Vec::new();
            $(checks.push(|case| {
                let mut random = case.random();
                inputs!(case, random, T; $($first[$($d)*]),+ => references);
                let expected = contract(&references, &[$(stringify!($s)),*]).order(&[$(&$group),*]);
                into_part(&mut random, &expected, |out| {
                    (contractions!(@product $($first [$($d)*])+)).sum_into(($($s,)*), out, ($($o,)*));
                });
            });)*
            checks[which % checks.len()](case);
        }};
    }
    checks! {
        (x [A B]) (y [B C]) sum [B] to [["C"], ["A"]], [C, A];
        (x [D A B]) (y [B D C]) sum [B] to [["D"], ["A"], ["C"]], [D, A, C];
        (x [A D B]) (y [C B]) sum [B] to [["A", "D"], ["C"]], [(A, D), C];
        (x [A B C]) (y [C B D]) sum [C B] to [["D"], ["A"]], [D, A];
        (x [A B]) (y [A B]) sum [B] to [["A"]], [A];
        (x [A B C]) sum [B] to [["C"], ["A"]], [C, A];
        (x [A B]) (y [B C]) (z [C D]) sum [B C] to [["D"], ["A"]], [D, A];
    }
}

properties! {
    sums_into_places_f32 60: |case in cases(4), which| into_places::<f32>(&case, which);
    sums_into_large_places_f32 8: |case in filled_cases(28), which| into_places::<f32>(&case, which);
    sums_into_places_i32 20: |case in cases(4), which| into_places::<i32>(&case, which);
    pairs_f32 40: |case in cases(5), which| pairs::<f32>(&case, which);
    pairs_f64 40: |case in cases(5), which| pairs::<f64>(&case, which);
    pairs_i8 20: |case in cases(4), which| pairs::<i8>(&case, which);
    pairs_i32 20: |case in cases(4), which| pairs::<i32>(&case, which);
    pairs_u64 20: |case in cases(4), which| pairs::<u64>(&case, which);
    pairs_complex32 30: |case in cases(5), which| pairs::<Complex<f32>>(&case, which);
    pairs_complex64 30: |case in cases(5), which| pairs::<Complex<f64>>(&case, which);
    pairs_of_large_f32 8: |case in filled_cases(28), which| pairs::<f32>(&case, which % 2);
    pairs_of_large_complex 4: |case in filled_cases(28), which| pairs::<Complex<f64>>(&case, which % 2);
    pairs_of_large_i32 4: |case in filled_cases(28), which| pairs::<i32>(&case, which % 2);
    two_f32 120: |case in cases(4), which| two::<f32>(&case, which);
    three_f32 100: |case in cases(4), which| three::<f32>(&case, which);
    four_f64 60: |case in cases(4), which| four::<f64>(&case, which);
    five_f64 60: |case in cases(3), which| five::<f64>(&case, which);
}

#[cfg(feature = "half")]
properties! {
    pairs_f16 20: |case in cases(4), which| pairs::<half::f16>(&case, which);
    sums_into_places_f16 20: |case in cases(3), which| into_places::<half::f16>(&case, which);
    pairs_bf16 20: |case in cases(4), which| pairs::<half::bf16>(&case, which);
}

#[test]
fn matrix_products_across_tiles() {
    for (m, k, n) in [(1, 300, 1), (65, 17, 33), (7, 513, 9), (130, 3, 70)] {
        let case = Case { sizes: [m, k, n, 1, 1, 1], seed: (m * k * n) as u64, plain: false };
        for which in 0..2 {
            pairs::<f32>(&case, which);
            pairs::<f64>(&case, which);
            pairs::<Complex<f32>>(&case, which);
        }
    }
}

fn scaled(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, f64; x[A B], y[B C] => references);
    let expected = contract(&references, &["B"]).map(|x| 6.0 * x);
    let product = (2.0 * bound!(x[A B]) * 3.0 * bound!(y[B C])).sum(B);
    assert_same!(product, [C A], expected);
    into_part(&mut random, &expected.order(&[&["C"], &["A"]]), |out| {
        (2.0 * bound!(x[A B]) * 3.0 * bound!(y[B C])).sum_into(B, out, (C, A));
    });
    // A computed factor: (x + 1) y, (x + x) x.
    let expected = references[0].map(|x| x + 1.0).zip(&references[1], |x, y| x * y);
    let expected = expected.reduce(&["B"], |line| line.iter().sum::<f64>());
    assert_same!(((bound!(x[A B]) + 1.0) * bound!(y[B C])).sum(B), [A C], expected);
    let expected = references[0].map(|x| 2.0 * x * x).reduce(&["A"], |line| line.iter().sum::<f64>());
    assert_same!(((bound!(x[A B]) + bound!(x[A B])) * bound!(x[A B])).sum(A), [B], expected);
    // A summed dim that only a constant factor has.
    dims!(z = 3);
    let total = (bound!(x[A B]) * bound!(y[B C]) * (z * 0 + 1).cast::<f64>()).sum((B, z));
    assert_same!(total, [A C], contract(&references, &["B"]).map(|x| 3.0 * x));
}

fn with_positional_axes(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, f64; x[A B D], y[B C D] => references);
    let expected = contract(&references, &["B"]);
    let (x, y) = (x.view::<ndarray::Ix3>(), y.view::<ndarray::Ix3>());
    let product = (x.at((A, B, ..)) * y.at((B, C, ..))).sum(B).order((C, A));
    assert_eq!(product.into_dyn(), expected.order(&[&["C"], &["A"], &["D"]]));
}

properties! {
    scalars_and_computed_factors 40: |case in cases(4), _which| scaled(&case);
    positional_axes_are_batches 40: |case in cases(4), _which| with_positional_axes(&case);
}

/// Products of half precision are summed, and multiplied by constant factors, in `f32`: nothing
/// overflows if the result fits.
#[cfg(feature = "half")]
#[test]
fn constant_factors_of_half_precisions_come_before_rounding() {
    use half::f16;
    let x = ndarray::Array2::from_elem((2, 8), f16::from_f32(200.0));
    let eighth = f16::from_f32(0.125);
    dims!(i, j, k);
    let scores = (x.at((i, k)) * eighth * x.at((j, k))).sum(k);
    assert_eq!(scores.order((i, j)), ndarray::Array2::from_elem((2, 2), f16::from_f32(40_000.0)));
}

/// A product whose sizes are close to those of the kernel's blocks, compared with plain loops.
/// Elements are integers, so sums are exact in any order.
fn across_blocks(case: &Case, which: usize) {
    let near = |edge: usize, shift: usize| edge - 2 + shift % 5;
    let [p, q, r, ..] = case.sizes;
    let (m, n, k) = [
        (near(16, p), near(256, q), near(256, r)),
        (near(17, p), near(40, q), near(1640, r)),
        (near(64, p), near(32, q), near(48, r)),
        (near(4, p), near(16, q), near(16, r)),
    ][which % 4];
    let mut random = case.random();
    let mut matrix =
        |rows, columns| ndarray::Array2::from_shape_simple_fn((rows, columns), || random.small() as f32);
    // The columns of the right operand are a page or more apart.
    let (left, right) = (matrix(m, k), matrix(n, 1024 + k));
    let right = right.slice(ndarray::s![.., 3..3 + k]);
    let expected = ndarray::Array2::from_shape_fn((m, n), |(i, j)| {
        left.row(i).iter().zip(right.row(j)).map(|(x, y)| x * y).sum::<f32>()
    });
    dims!(i, j, l);
    assert_eq!((left.at((i, l)) * right.at((j, l))).sum(l).order((i, j)), expected);
    assert_eq!((right.at((j, l)) * left.at((i, l))).sum(l).order((j, i)), expected.t());
    let backwards = right.slice(ndarray::s![.., ..;-1]);
    let turned = left.slice(ndarray::s![.., ..;-1]);
    assert_eq!((turned.at((i, l)) * backwards.at((j, l))).sum(l).order((i, j)), expected);
    let doubles = (left.mapv(f64::from), right.mapv(f64::from));
    let product = (doubles.0.at((i, l)) * doubles.1.at((j, l))).sum(l).order((i, j));
    assert_eq!(product, expected.mapv(f64::from));
}

properties! {
    products_across_blocks 6: |case in filled_cases(5), which| across_blocks(&case, which);
}
