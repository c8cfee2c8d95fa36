//! Random inputs: elements whose sums and products are exact, and views of arrays with random
//! memory layouts.

#[path = "../support/splitmix.rs"]
mod splitmix;

use ndarray::{ArrayD, ArrayViewD, Axis, Dimension, Slice};
use num_complex::Complex;
use proptest::prelude::*;
pub use splitmix::Random;

impl Random {
    /// An integer from -3 to 3.
    pub fn small(&mut self) -> i32 {
        self.below(7) as i32 - 3
    }
}

/// Elements whose arithmetic is exact on the samples in tests: integers of the full range, which
/// wrap around, and floats and complex numbers made of small integers, whose sums and products need
/// no rounding in any order.
pub trait Sample: Copy + Default + std::fmt::Debug + PartialEq + 'static {
    /// 0
    const ZERO_VALUE: Self;
    /// A random element.
    fn sample(random: &mut Random) -> Self;
    /// `self + other`
    fn plus(self, other: Self) -> Self;
    /// `self - other`
    fn minus(self, other: Self) -> Self;
    /// `self * other`
    fn times(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Sample for $t {
            const ZERO_VALUE: Self = 0;
            fn sample(random: &mut Random) -> Self { random.next() as $t }
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
        }
    )*};
}

integers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! floats {
    ($($t:ty, $zero:expr, $from:expr;)*) => {$(
        impl Sample for $t {
            const ZERO_VALUE: Self = $zero;
            fn sample(random: &mut Random) -> Self { $from(random) }
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
        }
    )*};
}

floats! {
    f32, 0.0, |random: &mut Random| random.small() as f32;
    f64, 0.0, |random: &mut Random| random.small() as f64;
    Complex<f32>, Complex::new(0.0, 0.0), |random: &mut Random| Complex::new(random.small() as f32, random.small() as f32);
    Complex<f64>, Complex::new(0.0, 0.0), |random: &mut Random| Complex::new(random.small() as f64, random.small() as f64);
}

// `bf16` represents all integers up to 256. Short sums of products of -1, 0 and 1 do not exceed
// that.
#[cfg(feature = "half")]
floats! {
    half::f16, half::f16::ZERO, |random: &mut Random| half::f16::from_f32(random.below(3) as f32 - 1.0);
    half::bf16, half::bf16::ZERO, |random: &mut Random| half::bf16::from_f32(random.below(3) as f32 - 1.0);
}

/// A memory layout: the order of the axes, and a step along each axis. Negative steps run
/// backwards, and 0 repeats one element.
#[derive(Clone, Debug)]
pub struct Layout {
    order: Vec<usize>,
    steps: Vec<isize>,
}

impl Layout {
    /// A random layout. Seed 0 gives the standard layout.
    pub fn new(rank: usize, seed: u64) -> Self {
        let mut layout = Layout { order: (0..rank).collect(), steps: vec![1; rank] };
        if seed == 0 {
            return layout;
        }
        let mut random = Random(seed);
        for at in (1..rank).rev() {
            layout.order.swap(at, random.below(at + 1));
        }
        for step in &mut layout.steps {
            *step = [1, 1, 1, 1, -1, 2, -2, 3, 0][random.below(9)];
        }
        layout
    }
}

/// The memory of an array. Tests use a view of it.
#[derive(Clone, Debug)]
pub struct Buffer<T> {
    memory: ArrayD<T>,
    sizes: Vec<usize>,
    layout: Layout,
}

impl<T: Clone> Buffer<T> {
    /// An array of these sizes with elements from `f`, in a random layout, or in the standard one
    /// if `plain` is true.
    pub fn new(
        sizes: &[usize],
        random: &mut Random,
        plain: bool,
        mut f: impl FnMut(&mut Random) -> T,
    ) -> Self {
        let layout = Layout::new(sizes.len(), if plain { 0 } else { random.next() | 1 });
        let shape: Vec<usize> =
            layout
                .order
                .iter()
                .map(|&axis| {
                    if layout.steps[axis] == 0 { 1 } else { sizes[axis] * layout.steps[axis].unsigned_abs() }
                })
                .collect();
        let memory = ArrayD::from_shape_simple_fn(shape, || f(random));
        Buffer { memory, sizes: sizes.to_vec(), layout }
    }

    /// The view, with dynamic rank.
    pub fn dynamic(&self) -> ArrayViewD<'_, T> {
        let Layout { order, steps } = &self.layout;
        let repeated: Vec<usize> = order
            .iter()
            .zip(self.memory.shape())
            .map(|(&axis, &size)| if steps[axis] == 0 { self.sizes[axis] } else { size })
            .collect();
        let whole = self.memory.broadcast(repeated).expect("axes of one element can be repeated");
        let mut back = vec![0; order.len()];
        for (at, &axis) in order.iter().enumerate() {
            back[axis] = at;
        }
        let mut view = whole.permuted_axes(back);
        for (axis, &step) in steps.iter().enumerate() {
            if step != 0 {
                view.slice_axis_inplace(Axis(axis), Slice::new(0, None, step));
            }
        }
        assert_eq!(view.shape(), self.sizes);
        view
    }

    /// The view, with the rank of `D`.
    pub fn view<D: Dimension>(&self) -> ndarray::ArrayView<'_, T, D> {
        self.dynamic().into_dimensionality().expect("the rank is that of the sizes")
    }
}

/// A random case: sizes for up to six dims, and a seed for layouts and elements.
#[derive(Clone, Debug)]
pub struct Case {
    /// The sizes of the dims A to F.
    pub sizes: [usize; 6],
    /// The seed of elements and layouts.
    pub seed: u64,
    /// Whether arrays have the standard layout.
    pub plain: bool,
}

impl Case {
    /// The generator of the case.
    pub fn random(&self) -> Random {
        Random(self.seed)
    }

    /// The size of a dim, by its name.
    pub fn size(&self, name: &str) -> usize {
        self.sizes["ABCDEF".find(name).expect("the dim is one of A to F")]
    }

    /// An array with these dims.
    pub fn buffer<T: Clone>(
        &self,
        random: &mut Random,
        names: &[&str],
        f: impl FnMut(&mut Random) -> T,
    ) -> Buffer<T> {
        let sizes: Vec<usize> = names.iter().map(|name| self.size(name)).collect();
        Buffer::new(&sizes, random, self.plain, f)
    }
}

fn size(greatest: usize) -> impl Strategy<Value = usize> {
    prop_oneof![1 => Just(0usize), 3 => Just(1usize), 16 => 2..=greatest]
}

/// Random cases with sizes up to `greatest`.
pub fn cases(greatest: usize) -> impl Strategy<Value = Case> {
    (proptest::array::uniform6(size(greatest)), any::<u64>(), prop::bool::weighted(0.2))
        .prop_map(|(sizes, seed, plain)| Case { sizes, seed, plain })
}

/// Like `cases`, but without empty dims.
pub fn filled_cases(greatest: usize) -> impl Strategy<Value = Case> {
    (proptest::array::uniform6(1..=greatest), any::<u64>(), prop::bool::weighted(0.2))
        .prop_map(|(sizes, seed, plain)| Case { sizes, seed, plain })
}
