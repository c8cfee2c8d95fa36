//! Programs without `unsafe` that lie to the library or misuse it. They must not access memory that
//! is not theirs. AddressSanitizer and debug assertions detect such an access.

use ndarray::{Array1, Array2, ArrayView, Axis, ShapeBuilder};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use typed_dims::__private::pattern::pack::{AsPackedShape, Several};
use typed_dims::__private::pattern::{PackPattern, Rank1 as OneAxis};
use typed_dims::grad::parameters::{Path, Visitor, Walk};
use typed_dims::prelude::*;
use typed_dims::program::record;
use typed_dims::types::scalar::{Num, Ordered};

dims! {
    struct Row;
    struct Col;
    struct Sum;
    struct Three = 3;
}

/// The text of a panic.
fn refused<T>(f: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(f)).err().expect("the call panics");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => (*panic.downcast::<&str>().expect("the message is text")).to_owned(),
    }
}

/// A shape of packed arrays whose parts need not add up to what was packed.
struct TooLong(&'static [usize]);

impl AsPackedShape for TooLong {
    type Rank = OneAxis;
    type Kind = Several<2>;
    type Shape = Self;

    fn shape(&self) -> &Self {
        self
    }

    fn parts(&self, _: usize, _: &PackPattern) -> Result<Cow<'_, [Vec<usize>]>, DimError> {
        Ok(self.0.iter().map(|&size| vec![size]).collect())
    }
}

#[test]
fn arrays_that_are_unpacked_are_parts_of_the_axis() {
    let packed = Array1::from_iter(0..6);
    let unpacked = |parts| -> [Array1<i32>; 2] { unpack!(&packed, TooLong(parts), "*") };
    assert_eq!(unpacked(&[2, 4])[1].to_vec(), [2, 3, 4, 5]);
    for wrong in [&[2, 9000][..], &[usize::MAX, 7], &[2, 3]] {
        assert!(refused(|| unpacked(wrong)).starts_with("axis `*` has size 6"));
    }
}

/// A number without bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct Nothing;

/// A number of 300 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fat([u32; 75]);

impl Default for Fat {
    fn default() -> Self {
        Fat([0; 75])
    }
}

macro_rules! numbers {
    ($($t:ty, $zero:expr, $one:expr, $join:expr;)*) => {$(
        impl Num for $t {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            const DIVIDES_BY_ZERO: bool = true;
            type Acc = Self;
            fn widen(self) -> Self {
                self
            }
            fn narrow(acc: Self) -> Self {
                acc
            }
            fn add(self, other: Self) -> Self {
                let join: fn(u32, u32) -> u32 = u32::wrapping_add;
                $join(self, other, join)
            }
            fn sub(self, other: Self) -> Self {
                $join(self, other, u32::wrapping_sub)
            }
            fn mul(self, other: Self) -> Self {
                $join(self, other, u32::wrapping_mul)
            }
            fn div(self, _: Self) -> Self {
                self
            }
        }
    )*};
}

fn fat(a: Fat, b: Fat, join: fn(u32, u32) -> u32) -> Fat {
    Fat(std::array::from_fn(|at| join(a.0[at], b.0[at])))
}

numbers! {
    Nothing, Nothing, Nothing, |a: Nothing, _: Nothing, _: fn(u32, u32) -> u32| a;
    Fat, Fat([0; 75]), Fat([1; 75]), fat;
}

/// Comparisons return meaningless results.
impl Ordered for Nothing {
    const LOWEST: Self = Nothing;
    const HIGHEST: Self = Nothing;
    fn rem(self, other: Self) -> Self {
        other
    }
    fn maximum(self, other: Self) -> Self {
        other
    }
    fn minimum(self, other: Self) -> Self {
        other
    }
    fn is_nan_value(self) -> bool {
        static ANSWERS: AtomicUsize = AtomicUsize::new(0);
        ANSWERS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3)
    }
}

/// A number with the layout of `f32`, whose sum is the maximum. Code compiled for `f32` would
/// compute something else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
struct Greatest(f32);

impl Num for Greatest {
    const ZERO: Self = Greatest(f32::NEG_INFINITY);
    const ONE: Self = Greatest(0.0);
    const DIVIDES_BY_ZERO: bool = true;
    type Acc = Self;
    fn widen(self) -> Self {
        self
    }
    fn narrow(acc: Self) -> Self {
        acc
    }
    fn add(self, other: Self) -> Self {
        Greatest(self.0.max(other.0))
    }
    fn sub(self, _: Self) -> Self {
        self
    }
    fn mul(self, other: Self) -> Self {
        Greatest(self.0 + other.0)
    }
    fn div(self, other: Self) -> Self {
        Greatest(self.0 - other.0)
    }
}

/// Checks some operations on numbers of one type.
fn exercised<T: Num>(value: impl Fn(usize) -> T, sizes: [usize; 3]) {
    let [m, k, n] = sizes;
    let a = Array2::from_shape_fn((m, k), |(i, p)| value(i * k + p));
    let b = Array2::from_shape_fn((n, k), |(j, p)| value(j * k + p));
    let (x, y) = (a.at((Row, Sum)), b.at((Col, Sum)));
    let product = (x * y).sum(Sum).eval();
    assert_eq!(product.dims(), [("Row", m), ("Col", n)]);
    for i in [0, m - 1] {
        for j in [0, n - 1] {
            let expected = (0..k).fold(T::ZERO, |sum, p| sum.add(a[[i, p]].mul(b[[j, p]])));
            assert_eq!((&product).index(Row, i).index(Col, j).order(()), expected);
        }
    }
    let turned = (x + y).order((Sum, Col, Row));
    assert_eq!(turned[[k - 1, n - 1, m - 1]], a[[m - 1, k - 1]].add(b[[n - 1, k - 1]]));
    let rows = Array1::from_iter((0..n).map(|j| j % m));
    let taken = a.at((rows.at(Col), Sum)).sum(Col).order(Sum);
    assert_eq!(taken[k - 1], (0..n).fold(T::ZERO, |sum, j| sum.add(a[[j % m, k - 1]])));
    let _ = (&x).cumsum(Sum).order((Sum, Row));
    let mut out = Array2::from_elem((k, m), T::ONE);
    out.at_mut((Sum, Row)).add_assign(&x);
    assert_eq!(out[[k - 1, m - 1]], T::ONE.add(a[[m - 1, k - 1]]));
    assert_eq!(rearrange!(&a, "a b -> b a").len(), m * k);
}

#[test]
fn numbers_can_have_no_bytes_or_many() {
    for sizes in [[1, 1, 1], [2, 3, 5], [16, 40, 33], [70, 66, 65]] {
        exercised(|_| Nothing, sizes);
    }
    let sorted = Array1::from_elem(1000, Nothing).at(Row).sort(Row).order(Row);
    assert_eq!(sorted.len(), 1000);
    // Without optimization, several tiles of fat numbers are on the stack.
    let fat = || {
        for sizes in [[1, 1, 1], [3, 14, 5], [9, 15, 40]] {
            exercised(|at| Fat([at as u32; 75]), sizes);
        }
    };
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(fat).expect("the thread can start");
    thread.join().expect("nothing panics");
}

#[test]
fn numbers_of_the_same_bytes_are_not_those_of_the_library() {
    for sizes in [[1, 1, 1], [2, 3, 5], [16, 40, 33]] {
        exercised(|at| Greatest((at * 7 % 11) as f32), sizes);
    }
}

#[test]
fn strides_of_what_has_one_element_or_none_can_be_any() {
    let data: Vec<f32> = (0..64).map(|at| at as f32).collect();
    for far in [0, 1, 2, 1 << 20, isize::MAX as usize / 4, isize::MAX as usize / 8] {
        for (rows, columns) in [(1, 8), (8, 1), (1, 1), (0, 8), (8, 0), (1, 64)] {
            let strides = if rows == 1 { (far, 1) } else { (1, far) };
            let Ok(mut x) = ArrayView::from_shape((rows, columns).strides(strides), &data) else { continue };
            for turn in 0..4 {
                if turn > 0 {
                    x.invert_axis(Axis(turn % 2));
                }
                let (a, b) = (x.at((Row, Sum)), x.at((Col, Sum)));
                let product = (a * b).sum(Sum).order((Row, Col));
                assert_eq!(product, x.dot(&x.t()));
                assert_eq!(a.order((Sum, Row)), x.t());
                assert_eq!((&a * 2.0).order((Row, Sum)), &x * 2.0);
                assert_eq!(a.sum(Sum).order(Row), x.sum_axis(Axis(1)));
                assert_eq!(rearrange!(&x, "a b -> b a"), x.t());
                assert_eq!(einsum!("ab,cb->ac", &x, &x), product);
            }
        }
    }
}

/// The number of conditions and indices that were evaluated.
static ANSWERS: AtomicUsize = AtomicUsize::new(0);

/// A condition that changes when it is evaluated again.
#[derive(Clone, Copy)]
struct Fickle;

impl ScalarOp<i32> for Fickle {
    type Out = bool;
    const NAME: &'static str = "fickle";
    fn apply<I: Isa>(self, _: i32) -> bool {
        ANSWERS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3)
    }
}

/// An index that changes when it is evaluated again. If the field is less than 1000, one index in
/// 1000 is out of range.
#[derive(Clone, Copy)]
struct Elsewhere(usize);

impl ScalarOp<i32> for Elsewhere {
    type Out = usize;
    const NAME: &'static str = "elsewhere";
    fn apply<I: Isa>(self, at: i32) -> usize {
        let answer = ANSWERS.fetch_add(1, Ordering::Relaxed);
        if answer % 1000 == self.0 { usize::MAX } else { (answer + at as usize) % 8 }
    }
}

#[test]
fn conditions_and_indices_can_change_while_they_are_read() {
    let table = Array2::from_shape_fn((8, 300), |(i, j)| (i * 300 + j) as i32);
    let ids = Array1::from_iter(0..5000);
    for none in [7, 5000] {
        let x = table.at((ids.at(Row).apply(Elsewhere(none)).eval(), Col));
        assert!(x.try_sum(Row).is_ok() == (none == 5000));
        for _ in 0..3 {
            let taken = table.at((ids.at(Row).apply(Elsewhere(none)), Col));
            let reduced = taken.try_sum(Row);
            assert!(reduced.is_err() || none == 5000);
            let columns = Array1::from_iter((0..300).map(|_| 3usize));
            let picked = table.at((ids.at(Row).apply(Elsewhere(none)), columns.at(Col)));
            let chosen = select(ids.at(Row).apply(Fickle), picked, -1).try_order((Row, Col));
            if let Ok(chosen) = chosen {
                assert!(chosen.iter().all(|value| (-1..2400).contains(value)));
            }
            let mut out = Array1::from_elem(8, 0);
            let written = out.at_mut(ids.at(Row).apply(Elsewhere(none))).try_add_assign(1);
            assert!(written.is_err() || out.sum() == 5000);
        }
    }
}

#[test]
fn operations_run_within_operations() {
    let x = Array2::from_shape_fn((300, 400), |(i, j)| (i + j) as f32);
    let inner = || {
        let (a, b) = (x.at((Row, Sum)), x.at((Col, Sum)));
        let product = rayon::join(|| (a * b).sum(Sum).order((Row, Col)), || a.softmax(Sum).order((Row, Sum)));
        product.0[[0, 0]] + product.1[[0, 0]]
    };
    let expected = inner();
    let outer =
        Array1::from_iter(0..40).at(Row).map(|at| if at % 20 == 0 { inner() } else { 0.0 }).order(Row);
    assert_eq!(outer.iter().filter(|&&value| value == expected).count(), 2);
    // A panic after many elements have been computed.
    let count = AtomicUsize::new(0);
    let text = refused(|| {
        Array1::from_iter(0..200_000)
            .at(Row)
            .map(|at| {
                assert!(count.fetch_add(1, Ordering::Relaxed) < 150_000, "enough");
                at + 1
            })
            .order(Row)
    });
    assert_eq!(text, "enough");
}

/// Two tensors, of which walks visit only some.
#[derive(Clone)]
struct Either {
    row: Tensor<f32, (Row,)>,
    three: Tensor<f32, (Three,)>,
}

thread_local! {
    /// Whether walks visit each tensor.
    static VISITED: Cell<[bool; 2]> = const { Cell::new([true, false]) };
}

impl Parameters for Either {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let mut own = of[0].clone();
        let [row, three] = VISITED.get();
        if row {
            own.row = walk.tensor(path, of.map(|own| &own.row))?;
        }
        if three {
            own.three = walk.tensor(path, of.map(|own| &own.three))?;
        }
        Ok(own)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        _: [&mut Self; M],
        _: [&Self; N],
        _: &mut Path,
        _: &mut V,
    ) -> Result<(), V::Error> {
        Ok(())
    }
}

/// A tensor with a static dim must not get the size of another tensor.
#[test]
fn results_can_have_other_tensors_than_were_recorded() {
    let x: Tensor<f32, (Row,)> = ones(Row.of(5));
    let f = |x: &Tensor<f32, (Row,)>| Either { row: (x * 2.0).eval(), three: ones(Three) };
    let program = record(f, &x).expect("the function can be recorded");
    let mut out = program.call(&x);
    assert_eq!(out.row, full(Row.of(5), 2.0));
    for visited in [[false, true], [true, true]] {
        VISITED.set(visited);
        let expected = "has other dims or elements than were recorded";
        let error = program.try_call(&x).err().expect("an error").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(program.try_call_into(&x, &mut out).is_err());
        assert_eq!((out.row.size(Row), out.three.size(Three)), (5, 3));
    }
}
