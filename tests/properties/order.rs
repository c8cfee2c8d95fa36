//! `order`, `order_into`, positional axes, `eval`, `into_tensor`.

use crate::reference::input::{Case, Sample, cases};
use crate::reference::{Reference, positions, union};
use crate::{A, B, C, D, E, F, bound, inputs, properties};
use ndarray::{Array2, Array3, ArrayD, Axis, Ix2, Ix3, Ix4, Slice};
use num_complex::Complex;
use typed_dims::prelude::*;
use typed_dims::types::scalar::Element;

fn moves<T: Element + PartialEq>(case: &Case, sample: fn(&mut crate::reference::input::Random) -> T) {
    let mut random = case.random();
    let x = case.buffer(&mut random, &["A", "B", "C"], sample);
    let rx = Reference::bind(&x.dynamic(), &["A", "B", "C"]);
    assert_eq!(bound!(x[A B C]).order((C, A, B)).into_dyn(), rx.order(&[&["C"], &["A"], &["B"]]));
    assert_eq!(bound!(x[A B C]).order((A, B, C)).into_dyn(), x.dynamic());
    assert_eq!(bound!(x[A B C]).order(((C, A), B)).into_dyn(), rx.order(&[&["C", "A"], &["B"]]));
    assert_eq!(bound!(x[A B C]).order((B, (A, C))).into_dyn(), rx.order(&[&["B"], &["A", "C"]]));
    assert_eq!(bound!(x[A B C]).order(((B, C, A),)).into_dyn(), rx.order(&[&["B", "C", "A"]]));
}

fn six(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, u16; x[C A F B E D] => refs);
    let [rx] = &refs;
    let found = bound!(x[C A F B E D]).order((D, (B, A), (F, E), C)).into_dyn();
    assert_eq!(found, rx.order(&[&["D"], &["B", "A"], &["F", "E"], &["C"]]));
    let found = bound!(x[C A F B E D]).order((F, E, D, C, B, A)).into_dyn();
    assert_eq!(found, rx.order(&[&["F"], &["E"], &["D"], &["C"], &["B"], &["A"]]));
    let found = bound!(x[C A F B E D]).order((A, D)).order((F, C)).order((E, B)).into_dyn();
    assert_eq!(found, rx.order(&[&["E"], &["B"], &["F"], &["C"], &["A"], &["D"]]));
}

/// Writes into a strided view of another array, whose other elements must not change.
fn into_strided(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B C], y[B] => refs);
    let expected = refs[0].zip(&refs[1], |x, y| x.plus(y)).order(&[&["C", "A"], &["B"]]);
    let (rows, columns) = (expected.shape()[0], expected.shape()[1]);
    let steps = [1isize, -1, 2, -3];
    let (down, right) = (steps[random.below(4)], steps[random.below(4)]);
    let before =
        Array2::from_shape_fn((1 + rows * down.unsigned_abs(), columns * right.unsigned_abs()), |(i, j)| {
            1_000_000 + (100 * i + j) as i32
        });
    let part = |axis: usize| if axis == 0 { Slice::new(1, None, down) } else { Slice::new(0, None, right) };
    let mut out = before.clone();
    let mut view = out.slice_axis_mut(Axis(0), part(0));
    view.slice_axis_inplace(Axis(1), part(1));
    (bound!(x[A B C]) + bound!(y[B])).order_into(&mut view, ((C, A), B));
    let mut all = before;
    let mut place = all.slice_axis_mut(Axis(0), part(0));
    place.slice_axis_inplace(Axis(1), part(1));
    place.assign(&expected.into_dimensionality::<Ix2>().expect("the result has two axes"));
    assert_eq!(out, all);
}

/// Operands with equal layouts. A few elements are computed one by one, many elements by a kernel.
fn lines(case: &Case) {
    let case = Case { plain: true, ..case.clone() };
    let mut random = case.random();
    inputs!(case, random, i32; x[A B], y[A B] => refs);
    let [rx, ry] = &refs;
    let expected = rx.zip(ry, |x, y| if x < y { x.plus(y).times(x) } else { y.minus(3) });
    let (a, b) = (case.size("A"), case.size("B"));
    macro_rules! found {
        () => {
            select(
                bound!(x[A B]).lt(bound!(y[A B])),
                (bound!(x[A B]) + bound!(y[A B])) * bound!(x[A B]),
                bound!(y[A B]) - 3,
            )
        };
    }
    let (forth, back) = (expected.order(&[&["A"], &["B"]]), expected.order(&[&["B"], &["A"]]));
    assert_eq!(found!().order((A, B)).into_dyn(), forth);
    assert_eq!(found!().order((B, A)).into_dyn(), back);
    let mut out = Array2::zeros((a, b));
    found!().order_into(&mut out, (A, B));
    assert_eq!(out.clone().into_dyn(), forth);
    let mut turned = Array2::zeros((b, a));
    out.at((A, B)).order_into(&mut turned, (B, A));
    assert_eq!(turned.into_dyn(), back);
    let mut spread = Array2::from_elem((a, 2 * b), -1);
    out.at((A, B)).order_into(&mut spread.slice_mut(ndarray::s![.., ..;2]), (A, B));
    assert!(
        spread.indexed_iter().all(|((i, j), &found)| found == if j % 2 == 0 { out[(i, j / 2)] } else { -1 })
    );
    let wrong = out.at((A, B)).try_order_into(&mut Array2::zeros((b, a + 1)), (B, A));
    assert!(matches!(wrong, Err(DimError::Shape { .. })), "{wrong:?}");
}

/// Positional axes broadcast from the right, as in ndarray; dims broadcast by name.
fn broadcasting(case: &Case) {
    let mut random = case.random();
    let mut wide = case.clone();
    // The other operands have the same positional axes, or one element along some of them.
    for at in [2, 3] {
        if random.below(2) == 0 {
            wide.sizes[at] = 1;
        }
    }
    inputs!(case, random, i32; x[C A D] => rx);
    inputs!(wide, random, i32; y[B C D] => ry);
    inputs!(wide, random, i32; z[D] => rz);
    let [rx, ry, rz] = [&rx[0], &ry[0], &rz[0]];
    let dims: Vec<_> =
        [("B", case.size("B")), ("A", case.size("A")), ("C", case.size("C")), ("D", case.size("D"))].into();
    let at_most = |r: &Reference<i32>, at: &crate::reference::Place| {
        let at = at
            .iter()
            .map(|&(n, i)| (n, r.dims.iter().find(|d| d.0 == n).map_or(i, |d| i.min(d.1.saturating_sub(1)))));
        r.get(&at.collect())
    };
    let expected = Reference::build(&dims, |at| rx.get(at).plus(at_most(ry, at)).times(at_most(rz, at)));
    let (x, y, z) = (x.view::<Ix3>(), y.view::<Ix3>(), z.view::<ndarray::Ix1>());
    let found = (x.at((.., A, ..)) + y.at((B, .., ..))) * z.at(..);
    assert_eq!(found.positional_sizes(), [case.size("C"), case.size("D")]);
    assert_eq!(found.order((B, A)).into_dyn(), expected.order(&[&["B"], &["A"], &["C"], &["D"]]));
    let mut out = ArrayD::from_elem(vec![case.size("A"), case.size("B"), case.size("C"), case.size("D")], -1);
    out.view_mut()
        .into_dimensionality::<Ix4>()
        .expect("the output has four axes")
        .at_mut((A, B, .., ..))
        .assign(found);
    assert_eq!(out, expected.order(&[&["A"], &["B"], &["C"], &["D"]]));
}

/// Owned tensors: in the sorted order of the dims, in the order of an array, and bound again.
fn owned(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, f32; x[C A D B] => refs);
    let [rx] = &refs;
    let t = bound!(x[C A D B]).eval();
    assert_eq!(
        t.dims(),
        [("A", case.size("A")), ("B", case.size("B")), ("C", case.size("C")), ("D", case.size("D"))]
    );
    assert_eq!(t.len(), rx.data.len());
    assert_eq!(t.is_empty(), rx.data.is_empty());
    assert_eq!((&t).order((D, B, A, C)).into_dyn(), rx.order(&[&["D"], &["B"], &["A"], &["C"]]));
    let positional = (&t).order((D, B));
    let again = positional.at((F, E)).order((E, C, F, A)).into_dyn();
    assert_eq!(again, rx.rename("D", "F").rename("B", "E").order(&[&["E"], &["C"], &["F"], &["A"]]));
    let x3: Array3<f32> = bound!(x[C A D B]).index_or_zero();
    let mut strided = x3.clone().permuted_axes([2, 0, 1]);
    strided.invert_axis(Axis(1));
    let expected = strided.clone();
    let tensor = strided.into_tensor((A, B, C));
    assert_eq!(tensor.order((A, B, C)), expected);
    assert_eq!(x3.into_tensor((A, B, C)).sum((A, B, C)).order(()), expected.sum());
}

/// For `owned`: the first element along `D`, or zeros if there is none.
trait IndexOrZero {
    fn index_or_zero(self) -> Array3<f32>;
}

impl<E2: typed_dims::pipeline::expr::Expr<Elem = f32>> IndexOrZero
    for Named<f32, (A, B, C, D), typed_dims::types::rank::Rank0, E2>
{
    fn index_or_zero(self) -> Array3<f32> {
        let (a, b, c) = (self.size(A), self.size(B), self.size(C));
        if self.size(D) == 0 { Array3::zeros((a, b, c)) } else { self.index(D, 0).order((A, B, C)) }
    }
}

fn equality(case: &Case) {
    let mut random = case.random();
    inputs!(case, random, i32; x[A B], y[B A] => refs);
    let (t, u) = (bound!(x[A B]).eval(), bound!(y[B A]).eval());
    let dims = union(&refs[0].dims, &refs[1].dims);
    let same = positions(&dims).iter().all(|at| refs[0].get(at) == refs[1].get(at));
    assert_eq!(t == u, same);
    assert!(t == bound!(x[A B]));
    assert!(&t + 1 != t || t.is_empty());
    // Sizes are compared, even if a tensor is empty.
    let grown = full((A.of(case.size("A") + 1), B.of(case.size("B"))), 0);
    assert!(grown != t);
}

properties! {
    moves_i32 40: |case in cases(6), _which| moves::<i32>(&case, Sample::sample);
    moves_f64 20: |case in cases(6), _which| moves::<f64>(&case, Sample::sample);
    moves_u8 20: |case in cases(6), _which| moves::<u8>(&case, Sample::sample);
    moves_bool 20: |case in cases(6), _which| moves::<bool>(&case, |r| r.below(2) == 0);
    moves_complex 20: |case in cases(6), _which| moves::<Complex<f32>>(&case, Sample::sample);
    moves_values_of_any_type 20: |case in cases(6), _which| moves::<(u8, Option<char>)>(&case, |r| (r.next() as u8, char::from_u32(r.next() as u32)));
    moves_values_without_size 10: |case in cases(6), _which| moves::<()>(&case, |_| ());
    moves_of_six_dims 40: |case in cases(3), _which| six(&case);
    operands_that_lie_alike 40: |case in cases(12), _which| lines(&case);
    into_strided_outputs 60: |case in cases(4), _which| into_strided(&case);
    positional_axes_broadcast 60: |case in cases(4), _which| broadcasting(&case);
    owned_tensors 40: |case in cases(4), _which| owned(&case);
    equal_tensors 40: |case in cases(2), _which| equality(&case);
}
