//! Elements along axes, in memory that holds other values elsewhere.

use crate::choices::Choices;
use typed_dims_kernels::load::strided::Strided;
use typed_dims_kernels::loops::nest::OperandRows;
use typed_dims_kernels::memory::axes::Axis;
use typed_dims_kernels::memory::elements::{Elements, ElementsMut};
use typed_dims_kernels::scalar::Element;

/// An element type of the tests.
pub trait Value: Copy + PartialEq + std::fmt::Debug {
    /// A value that results never have: it surrounds the elements, and fills memory for results.
    const POISON: Self;
    /// A value made from a small integer.
    fn of(number: i8) -> Self;
    /// Whether the two values are equal, where NaN equals NaN.
    #[allow(clippy::eq_op)] // Only NaN is unequal to itself.
    fn is_same(self, other: Self) -> bool {
        self == other || self != self && other != other
    }
}

macro_rules! values {
    ($($t:ty: $poison:expr, |$number:ident| $of:expr;)*) => {$(
        impl Value for $t {
            const POISON: Self = $poison;
            fn of($number: i8) -> Self {
                $of
            }
        }
    )*};
}

values! {
    f32: f32::NAN, |number| f32::from(number);
    f64: f64::NAN, |number| f64::from(number);
    num_complex::Complex32: Self::new(f32::NAN, f32::NAN), |number| Self::new(f32::from(number), f32::from(number / 3));
    num_complex::Complex64: Self::new(f64::NAN, f64::NAN), |number| Self::new(f64::from(number), f64::from(number / 3));
    i8: i8::MIN, |number| number;
    u16: u16::MAX, |number| number.unsigned_abs().into();
    i32: i32::MIN, |number| number.into();
    i64: i64::MIN, |number| number.into();
    u64: u64::MAX, |number| number.unsigned_abs().into();
    [u8; 3]: [0xff; 3], |number| [number as u8 & 0x7f, 1, 2];
}

/// Elements along axes. The memory ends with the last element, so the address sanitizer detects
/// accesses past it.
#[derive(Clone)]
pub struct Placed<T> {
    pub memory: Vec<T>,
    origin: usize,
    pub sizes: Vec<usize>,
    pub strides: Vec<isize>,
}

impl<T: Value> Placed<T> {
    /// Elements along axes of these sizes: in some memory order, with gaps, in either direction,
    /// and constant along some axes if `broadcasts`.
    pub fn new(choices: &mut Choices<'_>, sizes: &[usize], broadcasts: bool) -> Self {
        let order = choices.permutation(sizes.len());
        Self::in_order(choices, sizes, &order, broadcasts)
    }

    /// Like [`new`](Self::new), with the memory order `order`.
    pub fn in_order(choices: &mut Choices<'_>, sizes: &[usize], order: &[usize], broadcasts: bool) -> Self {
        let before = choices.one_of(&[0, 0, 1, 5]);
        let (mut strides, mut origin, mut step) = (vec![0; sizes.len()], before, 1);
        if choices.once_in(8) {
            step = choices.within(2, 3);
        }
        for &axis in order.iter().rev() {
            if broadcasts && choices.once_in(8) {
                continue;
            }
            strides[axis] = step as isize;
            let last = sizes[axis].saturating_sub(1) * step;
            if choices.once_in(8) {
                strides[axis] = -strides[axis];
                origin += last;
            }
            step += last;
            if choices.once_in(4) {
                step += choices.within(1, 40);
            }
        }
        let mut placed = Placed { memory: Vec::new(), origin, sizes: sizes.to_vec(), strides };
        let last = placed.positions().map(|at| placed.place(&at)).max();
        placed.memory = vec![T::POISON; last.map_or(before, |last| last + 1)];
        let mut number = choices.numbers();
        for at in placed.positions().collect::<Vec<_>>() {
            let place = placed.place(&at);
            placed.memory[place] = T::of(number());
        }
        placed
    }

    pub fn positions(&self) -> impl Iterator<Item = Vec<usize>> + use<T> {
        positions(&self.sizes)
    }

    /// The index in memory of the element at a position.
    pub fn place(&self, at: &[usize]) -> usize {
        let offset: isize = at.iter().zip(&self.strides).map(|(&at, stride)| at as isize * stride).sum();
        (self.origin as isize + offset) as usize
    }

    pub fn at(&self, at: &[usize]) -> T {
        self.memory[self.place(at)]
    }

    pub fn set(&mut self, at: &[usize], value: T) {
        let place = self.place(at);
        self.memory[place] = value;
    }

    /// A pointer to the element at the origin of the axes.
    pub fn start(&self) -> *const T {
        self.memory.as_ptr().wrapping_add(self.origin)
    }

    pub fn start_mut(&mut self) -> *mut T {
        self.memory.as_mut_ptr().wrapping_add(self.origin)
    }

    pub fn elements(&self) -> Elements<'_, T> {
        let axes: Vec<Axis> =
            self.sizes.iter().zip(&self.strides).map(|(&size, &stride)| Axis::new(size, stride)).collect();
        // SAFETY: the elements at all positions are in the memory, which the result borrows.
        unsafe { Elements::new(self.start(), &axes, &[]) }
    }

    pub fn elements_mut(&mut self) -> ElementsMut<'_, T> {
        let start = self.start_mut();
        // SAFETY: the elements at all positions are in the memory, which the result borrows
        // exclusively.
        unsafe { ElementsMut::along(start, &self.sizes, &self.strides) }
    }

    /// A reader of the elements along the next row of a nest, for a run over this nest. The nest
    /// must have been made from `sizes`, and its row from `strides`.
    pub fn reader<'k>(&'k self, operands: &mut OperandRows<'k>) -> Strided<'k, T, ()>
    where
        T: Element,
    {
        // SAFETY: each position of the loops is a position of the axes, because all callers make
        // their nests from axes of these sizes.
        unsafe { Strided::new(self.elements(), operands.next_row(), ()) }
    }

    /// The same memory, filled with poison.
    pub fn poisoned(mut self) -> Self {
        self.memory.fill(T::POISON);
        self
    }

    /// Panics unless the memories are equal, including the values around the elements.
    #[track_caller]
    pub fn assert_same(&self, expected: &Self, case: &dyn std::fmt::Debug) {
        assert_same(&self.memory, &expected.memory, case);
    }
}

/// Panics unless `found` and `expected` have the same elements.
#[track_caller]
pub fn assert_same<T: Value>(found: &[T], expected: &[T], case: &dyn std::fmt::Debug) {
    assert_eq!(found.len(), expected.len(), "{case:?}");
    if let Some(at) = found.iter().zip(expected).position(|(x, y)| !x.is_same(*y)) {
        panic!("element {at} is {:?} instead of {:?}: {case:?}", found[at], expected[at]);
    }
}

/// All positions of axes of these sizes, the last axis fastest.
pub fn positions(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let sizes = sizes.to_vec();
    (0..sizes.iter().product()).map(move |number: usize| {
        let mut rest = number;
        let mut at = vec![0; sizes.len()];
        for (at, size) in at.iter_mut().zip(&sizes).rev() {
            (*at, rest) = (rest % size, rest / size);
        }
        at
    })
}
