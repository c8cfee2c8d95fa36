//! Arrays with a dynamic element type, random elements, and memory layouts.

#[path = "../support/splitmix.rs"]
mod splitmix;

use ndarray::{Array, ArrayBase, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, RawData, Slice};
use num_complex::Complex;
pub use splitmix::Random;
use typed_dims::types::scalar::CastTo;

/// The elements that an argument may have. The ranges are those of floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// From -3 to 3.
    Any,
    /// Few distinct values, so that some are equal.
    Ties,
    /// Greater than 0.
    Positive,
    /// Between -1 and 1.
    Unit,
    /// Between 0 and 1.
    Share,
    /// From 1 on.
    Above,
    /// From 1.5 on.
    FarAbove,
    /// Not 0.
    Nonzero,
    /// Positions along a dim.
    Below(&'static str),
}

/// An element type of the database.
pub trait Dtype: Copy + Default + std::fmt::Debug + 'static {
    const NAME: &'static str;
    /// The type in which loops compute the expected result.
    type Loops: Dtype;
    fn wrap(array: ArrayD<Self>) -> Elements;
    fn unwrap(elements: &Elements) -> &ArrayD<Self>;
    /// An element of the domain; positions are below `limit`.
    fn draw(random: &mut Random, domain: Domain, limit: usize) -> Self;
    /// Whether two results agree up to rounding.
    fn close(self, other: Self) -> bool;
    /// Returns an array of `f64` as an array of this type, which must be `f64`.
    fn of_f64(array: ArrayViewD<'_, f64>) -> ArrayViewD<'_, Self> {
        unreachable!("{array} has elements of the type f64, not {}", Self::NAME)
    }
}

/// The elements of an array, by type.
#[derive(Clone, Debug)]
pub enum Elements {
    F32(ArrayD<f32>),
    F64(ArrayD<f64>),
    I32(ArrayD<i32>),
    I64(ArrayD<i64>),
    U8(ArrayD<u8>),
    Usize(ArrayD<usize>),
    Isize(ArrayD<isize>),
    Bool(ArrayD<bool>),
    C64(ArrayD<Complex<f64>>),
    #[cfg(feature = "half")]
    F16(ArrayD<half::f16>),
    #[cfg(feature = "half")]
    Bf16(ArrayD<half::bf16>),
}

/// Evaluates the same expression for an array of any type.
macro_rules! each {
    ($elements:expr, $array:ident => $value:expr) => {
        match $elements {
            Elements::F32($array) => $value,
            Elements::F64($array) => $value,
            Elements::I32($array) => $value,
            Elements::I64($array) => $value,
            Elements::U8($array) => $value,
            Elements::Usize($array) => $value,
            Elements::Isize($array) => $value,
            Elements::Bool($array) => $value,
            Elements::C64($array) => $value,
            #[cfg(feature = "half")]
            Elements::F16($array) => $value,
            #[cfg(feature = "half")]
            Elements::Bf16($array) => $value,
        }
    };
}

macro_rules! dtypes {
    ($($t:ty, $variant:ident, $name:literal, $loops:ty, |$random:ident, $domain:ident, $limit:ident| $draw:expr, |$a:ident, $b:ident| $close:expr $(, |$array:ident|)?;)*) => {$(
        impl Dtype for $t {
            const NAME: &'static str = $name;
            type Loops = $loops;
            fn wrap(array: ArrayD<Self>) -> Elements { Elements::$variant(array) }
            fn unwrap(elements: &Elements) -> &ArrayD<Self> {
                match elements {
                    Elements::$variant(array) => array,
                    other => panic!("expected elements of type {}, found {other:?}", $name),
                }
            }
            fn draw($random: &mut Random, $domain: Domain, $limit: usize) -> Self { $draw }
            fn close(self, other: Self) -> bool { let ($a, $b) = (self, other); $close }
            $(fn of_f64($array: ArrayViewD<'_, f64>) -> ArrayViewD<'_, Self> { $array })?
        }
    )*};
}

/// Whether two floats differ by less than `tolerance * (1 + |b|)`. NaN agrees with NaN, and an
/// infinity only with itself.
fn near(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < tolerance * (1.0 + b.abs())
}

fn float(random: &mut Random, domain: Domain) -> f64 {
    let unit = random.unit();
    match domain {
        Domain::Any => unit * 6.0 - 3.0,
        Domain::Ties => (unit * 4.0).floor() - 2.0,
        Domain::Positive => 0.1 + unit * 3.0,
        Domain::Unit => unit * 1.8 - 0.9,
        Domain::Share => 0.05 + unit * 0.9,
        Domain::Above => 1.0 + unit * 3.0,
        Domain::FarAbove => 1.5 + unit * 3.0,
        Domain::Nonzero => (0.5 + unit * 3.0) * if random.next().is_multiple_of(2) { -1.0 } else { 1.0 },
        Domain::Below(_) => unreachable!("positions are integers"),
    }
}

fn integer(random: &mut Random, domain: Domain, limit: usize) -> i64 {
    let number =
        |from: i64, below: i64, random: &mut Random| from + (random.next() % (below - from) as u64) as i64;
    match domain {
        Domain::Any => number(-5, 6, random),
        Domain::Ties => number(-2, 2, random),
        Domain::Positive | Domain::Above | Domain::FarAbove => number(1, 6, random),
        Domain::Unit | Domain::Share => number(-1, 2, random),
        Domain::Nonzero => [-3, -2, -1, 1, 2, 5][(random.next() % 6) as usize],
        Domain::Below(_) => number(0, limit.max(1) as i64, random),
    }
}

dtypes! {
    f32, F32, "f32", f32, |random, domain, _limit| float(random, domain) as f32, |a, b| near(a.into(), b.into(), 1e-5);
    f64, F64, "f64", f64, |random, domain, _limit| float(random, domain), |a, b| near(a, b, 1e-12), |array|;
    i32, I32, "i32", i32, |random, domain, limit| integer(random, domain, limit) as i32, |a, b| a == b;
    i64, I64, "i64", i64, |random, domain, limit| integer(random, domain, limit), |a, b| a == b;
    u8, U8, "u8", u8, |random, domain, limit| integer(random, domain, limit).unsigned_abs() as u8, |a, b| a == b;
    usize, Usize, "usize", usize, |random, domain, limit| integer(random, domain, limit).unsigned_abs() as usize, |a, b| a == b;
    isize, Isize, "isize", isize, |random, domain, limit| integer(random, domain, limit) as isize, |a, b| a == b;
    bool, Bool, "bool", bool, |random, _domain, _limit| random.next().is_multiple_of(2), |a, b| a == b;
    Complex<f64>, C64, "Complex<f64>", Complex<f64>,
        |random, domain, _limit| Complex::new(float(random, domain), float(random, domain)),
        |a, b| near(a.re, b.re, 1e-12) && near(a.im, b.im, 1e-12);
}

// Sums in another order can round to the next number.
#[cfg(feature = "half")]
dtypes! {
    half::f16, F16, "f16", f32, |random, domain, _limit| half::f16::from_f64(float(random, domain)),
        |a, b| near_half(a.into(), b.into(), 1.0 / 1024.0);
    half::bf16, Bf16, "bf16", f32, |random, domain, _limit| half::bf16::from_f64(float(random, domain)),
        |a, b| near_half(a.into(), b.into(), 1.0 / 128.0);
}

/// Whether the half-precision number `a` agrees with `b`, up to a relative difference of `epsilon`
/// and rounding in single precision.
#[cfg(feature = "half")]
fn near_half(a: f64, b: f64, epsilon: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1.01 * epsilon * b.abs() + 1e-5 * (1.0 + b.abs())
}

/// A constant of an entry in its element type, which may be half precision.
pub fn of<T>(value: f64) -> T
where
    f64: CastTo<T>,
{
    value.cast_to()
}

/// The result of an operator or a loop.
pub trait IntoElements {
    fn into_elements(self) -> Elements;
}

impl<T: Dtype> IntoElements for T {
    fn into_elements(self) -> Elements {
        T::wrap(ndarray::arr0(self).into_dyn())
    }
}

impl<T: Dtype, D: Dimension> IntoElements for Array<T, D> {
    fn into_elements(self) -> Elements {
        T::wrap(self.into_dyn())
    }
}

impl Elements {
    pub fn shape(&self) -> Vec<usize> {
        each!(self, array => array.shape().to_vec())
    }

    pub fn dtype(&self) -> &'static str {
        fn name<T: Dtype>(_: &ArrayD<T>) -> &'static str {
            T::NAME
        }
        each!(self, array => name(array))
    }

    /// The elements at one position along an axis.
    pub fn index(&self, axis: usize, at: usize) -> Elements {
        fn index<T: Dtype>(array: &ArrayD<T>, axis: usize, at: usize) -> Elements {
            T::wrap(array.index_axis(Axis(axis), at).to_owned())
        }
        each!(self, array => index(array, axis, at))
    }

    /// The elements as floats. They must be booleans or integers.
    pub fn as_floats(&self) -> Vec<f64> {
        match self {
            Elements::I32(array) => array.iter().map(|&x| x.into()).collect(),
            Elements::I64(array) => array.iter().map(|&x| x as f64).collect(),
            Elements::U8(array) => array.iter().map(|&x| x.into()).collect(),
            Elements::Usize(array) => array.iter().map(|&x| x as f64).collect(),
            Elements::Isize(array) => array.iter().map(|&x| x as f64).collect(),
            Elements::Bool(array) => array.iter().map(|&x| u8::from(x).into()).collect(),
            other => panic!("the elements are not booleans or integers: {other:?}"),
        }
    }

    /// The same elements in the type that loops use.
    pub fn widened(self) -> Elements {
        match self {
            #[cfg(feature = "half")]
            Elements::F16(array) => Elements::F32(array.mapv(f32::from)),
            #[cfg(feature = "half")]
            Elements::Bf16(array) => Elements::F32(array.mapv(f32::from)),
            other => other,
        }
    }

    /// Whether rounding the elements of `other` once gives those of `self`. `None` unless `self` is
    /// in half precision and `other` is `f32`.
    #[cfg(feature = "half")]
    fn rounds(&self, other: &Elements) -> Option<bool> {
        fn all<T: Dtype + Into<f64>>(halves: &ArrayD<T>, other: &Elements, epsilon: f64) -> Option<bool> {
            let Elements::F32(other) = other else { return None };
            let near = |(&a, &b): (&T, &f32)| near_half(a.into(), b.into(), 0.5 * epsilon);
            Some(halves.shape() == other.shape() && halves.iter().zip(other).all(near))
        }
        match self {
            Elements::F16(array) => all(array, other, 1.0 / 1024.0),
            Elements::Bf16(array) => all(array, other, 1.0 / 128.0),
            _ => None,
        }
    }

    /// Whether both have the same shape, and the same elements up to rounding.
    pub fn close(&self, other: &Elements) -> bool {
        #[cfg(feature = "half")]
        if let Some(is_close) = self.rounds(other) {
            return is_close;
        }
        fn close<T: Dtype>(a: &ArrayD<T>, b: &Elements) -> bool {
            let b = T::unwrap(b);
            a.shape() == b.shape() && a.iter().zip(b.iter()).all(|(&a, &b)| a.close(b))
        }
        self.dtype() == other.dtype() && each!(self, array => close(array, other))
    }
}

/// A memory layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    /// The last axis fastest.
    Contiguous,
    /// The first axis fastest.
    Transposed,
    /// Every other element along each axis of a larger array, from the second on.
    Sliced,
    /// All axes backwards.
    Reversed,
    /// The first axis repeats one element.
    Broadcast,
    /// The last axis repeats one element.
    BroadcastLast,
}

impl Layout {
    pub const ALL: [Layout; 6] = [
        Layout::Contiguous,
        Layout::Transposed,
        Layout::Sliced,
        Layout::Reversed,
        Layout::Broadcast,
        Layout::BroadcastLast,
    ];

    /// The sizes of an array in standard layout to which `apply` gives this layout.
    pub fn sizes_in_memory(self, shape: &[usize]) -> Vec<usize> {
        let mut sizes = shape.to_vec();
        let repeated = match self {
            Layout::Broadcast => sizes.first_mut(),
            Layout::BroadcastLast => sizes.last_mut(),
            _ => None,
        };
        if let Some(size) = repeated {
            *size = 1;
        }
        if self == Layout::Sliced {
            sizes.iter_mut().for_each(|size| *size = 2 * *size + 1);
        }
        if self == Layout::Transposed {
            sizes.reverse();
        }
        sizes
    }

    /// The array in this layout. Axes that repeat an element have size 1.
    pub fn apply<S: RawData>(self, mut array: ArrayBase<S, IxDyn>) -> ArrayBase<S, IxDyn> {
        for axis in (0..array.ndim()).map(Axis) {
            match self {
                Layout::Sliced => array.slice_axis_inplace(axis, Slice::new(1, None, 2)),
                Layout::Reversed => array.invert_axis(axis),
                _ => {}
            }
        }
        if self == Layout::Transposed { array.reversed_axes() } else { array }
    }
}

/// An argument: elements in memory with a layout.
#[derive(Clone, Debug)]
pub struct Argument {
    shape: Vec<usize>,
    memory: Elements,
}

impl Argument {
    pub fn random<T: Dtype>(
        shape: &[usize],
        layout: Layout,
        random: &mut Random,
        domain: Domain,
        limit: usize,
    ) -> Argument {
        let sizes = layout.sizes_in_memory(shape);
        let array = ArrayD::from_shape_simple_fn(IxDyn(&sizes), || T::draw(random, domain, limit));
        Argument { shape: shape.to_vec(), memory: T::wrap(layout.apply(array)) }
    }

    /// Elements in the standard layout.
    pub fn plain(elements: Elements) -> Argument {
        Argument { shape: elements.shape(), memory: elements }
    }

    /// A view of the elements, with each repeated axis at its full size.
    pub fn view<T: Dtype>(&self) -> ArrayViewD<'_, T> {
        T::unwrap(&self.memory).broadcast(IxDyn(&self.shape)).expect("each axis has its full size or size 1")
    }

    /// The elements as an owned array.
    pub fn elements(&self) -> Elements {
        fn owned<T: Dtype>(_: &ArrayD<T>, argument: &Argument) -> Elements {
            T::wrap(argument.view::<T>().to_owned())
        }
        each!(&self.memory, array => owned(array, self))
    }
}
