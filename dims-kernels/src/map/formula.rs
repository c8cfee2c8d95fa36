//! Formulas that are written once, over [`Quantity`]: they can compute with floats, tensors of one
//! element, or the values of a program.
//!
//! A [`Formula`] over elements gives compiled loops (`in_place`) and an [`UpdateProgram`], which
//! compute the same bits.

use crate::error::Error;
use crate::loops::nest::Nest;
use crate::loops::rows::Rows;
use crate::machine::threads;
use crate::map::elementwise::collect;
use crate::memory::allocate::reserve;
use crate::memory::destination::Destination;
#[cfg(feature = "std")]
use crate::memory::hollow::is_hollow;
#[cfg(feature = "half")]
use crate::ops::code::BinaryOpcode;
use crate::ops::code::{DType, RegisterKind};
use crate::program::builder::Builder;
use crate::program::interpreter::{ExtraOutput, Interpreted, OperandSource, ProgramOutput};
pub use crate::program::symbol::Symbol;
use crate::program::symbol::select;
use crate::program::{Instruction, Register, ScalarProgram};
use alloc::vec::Vec;
use core::array::from_fn;
use core::cell::RefCell;
use core::ops::{Add, Div, Mul, Neg, Sub};
use num_traits::Float;
use smallvec::SmallVec;

/// A number that formulas compute with. All implementations of the same precision compute the same
/// bits for the same numbers.
pub trait Quantity:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The result of a comparison.
    type Truth: Copy;
    /// A constant of the same type.
    fn constant(self, value: f64) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// The greatest integer that is not greater than `self`.
    fn floor(self) -> Self;
    /// `self` to the power of `exponent`.
    fn powf(self, exponent: Self) -> Self;
    /// `self < other`
    fn is_less(self, other: Self) -> Self::Truth;
    /// `self <= other`
    fn is_at_most(self, other: Self) -> Self::Truth;
    /// `a` if the comparison is true, otherwise `b`.
    fn choose(is: Self::Truth, a: Self, b: Self) -> Self;
    /// `-self` if `negates`, otherwise `self`. `negates` is the same at all positions.
    fn negated_if(self, negates: bool) -> Self {
        if negates { -self } else { self }
    }
}

macro_rules! floats {
    ($($t:ty as $bits:ty;)*) => {$(
        impl Quantity for $t {
            type Truth = bool;

            #[cfg_attr(not(unoptimized), inline(always))]
            #[allow(clippy::unnecessary_cast)] // `f32` needs the cast
            fn constant(self, value: f64) -> Self {
                value as $t
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn sqrt(self) -> Self {
                Float::sqrt(self)
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn cos(self) -> Self {
                Float::cos(self)
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn ln(self) -> Self {
                Float::ln(self)
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn floor(self) -> Self {
                Float::floor(self)
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn powf(self, exponent: Self) -> Self {
                Float::powf(self, exponent)
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn is_less(self, other: Self) -> bool {
                self < other
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn is_at_most(self, other: Self) -> bool {
                self <= other
            }

            #[cfg_attr(not(unoptimized), inline(always))]
            fn choose(is: bool, a: Self, b: Self) -> Self {
                if is { a } else { b }
            }

            // Flips the sign without a branch at each element.
            #[cfg_attr(not(unoptimized), inline(always))]
            fn negated_if(self, negates: bool) -> Self {
                <$t>::from_bits(self.to_bits() ^ (<$bits>::from(negates) << (<$bits>::BITS - 1)))
            }
        }
    )*};
}

floats! { f32 as u32; f64 as u64; }

/// An update of the elements at one position: `M` elements change, `N` are only read, and `K`
/// numbers are the same at all positions.
///
/// The `K` numbers may differ from one step of an optimizer to the next. Settings of the formula
/// are constants of its program.
pub trait Formula<const K: usize, const M: usize, const N: usize>: Sync {
    /// Its name.
    const NAME: &'static str;

    /// Computes the new elements. The method must be inlined where code is optimized.
    fn apply<Q: Quantity>(&self, scalars: [Q; K], changed: [Q; M], read: [Q; N]) -> [Q; M];
}

/// A number for each position, computed from `M` elements of state and `N` other elements, with `K`
/// numbers that are the same at all positions.
pub trait Direction<const K: usize, const M: usize, const N: usize>: Sync {
    /// The name.
    const NAME: &'static str;

    /// Computes the number. The method must be inlined where code is optimized.
    fn at<Q: Quantity>(&self, scalars: [Q; K], state: [Q; M], read: [Q; N]) -> Q;
}

impl Quantity for Symbol<'_> {
    type Truth = Self;

    fn constant(self, value: f64) -> Self {
        Symbol::constant(self, value)
    }

    fn sqrt(self) -> Self {
        Symbol::sqrt(self)
    }

    fn cos(self) -> Self {
        Symbol::cos(self)
    }

    fn ln(self) -> Self {
        Symbol::ln(self)
    }

    fn floor(self) -> Self {
        Symbol::floor(self)
    }

    fn powf(self, exponent: Self) -> Self {
        Symbol::powf(self, exponent)
    }

    fn is_less(self, other: Self) -> Self {
        self.lt(other)
    }

    fn is_at_most(self, other: Self) -> Self {
        self.le(other)
    }

    fn choose(is: Self, a: Self, b: Self) -> Self {
        select(is, a, b)
    }
}

/// A formula as data.
#[derive(Clone, Debug)]
pub struct UpdateProgram {
    /// The name of the formula.
    pub name: &'static str,
    /// The program. Its operands are, in this order: the numbers that are the same everywhere, as
    /// `f64`; the elements that change; the elements that are only read; and, if the program
    /// [follows](UpdateProgram::of_halves) an element of half precision, that element.
    pub program: ScalarProgram,
    /// The new values of the elements that change, the number of a [`Direction`], or the numbers of
    /// [`of_scalars`](UpdateProgram::of_scalars).
    pub results: SmallVec<[Register; 4]>,
    /// How many numbers are the same everywhere.
    pub scalars: usize,
    /// How many elements change. For a [`Direction`] it is the number of elements of state, which
    /// are only read, and for a formula that computes numbers from numbers it is 0.
    pub changed: usize,
    /// How many elements are only read.
    pub read: usize,
    /// Whether there is one more operand: the copy of the first element that changes, rounded to
    /// half precision.
    pub follows: bool,
}

/// An operand of an [`UpdateProgram`] at all positions.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum UpdateOperand<'o> {
    /// The same number everywhere.
    Scalar(f64),
    F32(&'o [f32]),
    F64(&'o [f64]),
    #[cfg(feature = "half")]
    F16(&'o [half::f16]),
    #[cfg(feature = "half")]
    Bf16(&'o [half::bf16]),
}

impl UpdateProgram {
    /// The program of a formula whose elements all have this type, `f32` or `f64`.
    pub fn new<P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize>(
        formula: &P,
        elements: DType,
    ) -> Self {
        Self::of(formula, elements, elements, |_, changed| changed)
    }

    /// The program of a formula in half precision: the elements that are only read have the type
    /// `half`. The elements that change are `f32`. The first of them has a copy in half precision.
    /// If other code has changed the copy, the formula continues from the copy: see
    /// [`apply_halves`](super::in_place::apply_halves).
    #[cfg(feature = "half")]
    pub fn of_halves<P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize>(
        formula: &P,
        half: DType,
    ) -> Self {
        let follow = |build: &mut Builder, mut changed: [Register; M]| {
            let rounded = build.load_as((K + M + N) as u32, half.kind());
            let own = build.cast(half, changed[0]);
            let own = build.cast(DType::F32, own);
            let same = build.binary(BinaryOpcode::Eq, own, rounded);
            changed[0] = build.select(same, changed[0], rounded);
            changed
        };
        UpdateProgram { follows: true, ..Self::of(formula, DType::F32, half, follow) }
    }

    fn of<P: Formula<K, M, N>, const K: usize, const M: usize, const N: usize>(
        formula: &P,
        elements: DType,
        of_read: DType,
        begin: impl FnOnce(&mut Builder, [Register; M]) -> [Register; M],
    ) -> Self {
        let mut build = Builder::exact();
        // Operands of half precision are loaded without their type, by register kind only. With the
        // type, the builder would round the result of each operation.
        let load =
            |build: &mut Builder, number: usize, dtype: DType| build.load_as(number as u32, dtype.kind());
        let scalars: [Register; K] = from_fn(|at| {
            let number = load(&mut build, at, DType::F64);
            build.cast_kind(elements.kind(), number)
        });
        let changed: [Register; M] = from_fn(|at| load(&mut build, K + at, elements));
        let read: [Register; N] = from_fn(|at| load(&mut build, K + M + at, of_read));
        let changed = begin(&mut build, changed);
        let results = {
            let build = RefCell::new(&mut build);
            let symbol = |register| Symbol::new(&build, register);
            formula.apply(scalars.map(symbol), changed.map(symbol), read.map(symbol)).map(Symbol::register)
        };
        let (program, results) = build.finish_all(&results);
        UpdateProgram { name: P::NAME, program, results, scalars: K, changed: M, read: N, follows: false }
    }

    /// The program of a [`Direction`], over parameters with elements of this type. Its result is
    /// one number for each position.
    pub fn of_direction<D: Direction<K, M, N>, const K: usize, const M: usize, const N: usize>(
        direction: &D,
        elements: DType,
    ) -> Self {
        let mut build = Builder::exact();
        let load =
            |build: &mut Builder, number: usize, dtype: DType| build.load_as(number as u32, dtype.kind());
        let scalars: [Register; K] = from_fn(|at| {
            let number = load(&mut build, at, DType::F64);
            build.cast_kind(elements.kind(), number)
        });
        let state: [Register; M] = from_fn(|at| load(&mut build, K + at, elements));
        let read: [Register; N] = from_fn(|at| load(&mut build, K + M + at, elements));
        let number = {
            let build = RefCell::new(&mut build);
            let symbol = |register| Symbol::new(&build, register);
            direction.at(scalars.map(symbol), state.map(symbol), read.map(symbol)).register()
        };
        let (program, results) = build.finish_all(&[number]);
        UpdateProgram { name: D::NAME, program, results, scalars: K, changed: M, read: N, follows: false }
    }

    /// The program of a formula of numbers that are the same everywhere: `K` numbers are computed
    /// from `I` others.
    pub fn of_scalars<const I: usize, const K: usize>(
        name: &'static str,
        formula: impl for<'b> FnOnce([Symbol<'b>; I]) -> [Symbol<'b>; K],
    ) -> Self {
        let mut build = Builder::exact();
        let inputs: [Register; I] = from_fn(|at| build.load(at as u32, DType::F64));
        let results = {
            let build = RefCell::new(&mut build);
            formula(inputs.map(|register| Symbol::new(&build, register))).map(Symbol::register)
        };
        if K == 0 {
            let program = ScalarProgram::default();
            return UpdateProgram {
                name,
                program,
                results: SmallVec::new(),
                scalars: I,
                changed: 0,
                read: 0,
                follows: false,
            };
        }
        let (program, results) = build.finish_all(&results);
        UpdateProgram { name, program, results, scalars: I, changed: 0, read: 0, follows: false }
    }

    /// The number of operands.
    pub fn operands(&self) -> usize {
        self.scalars + self.changed + self.read + usize::from(self.follows)
    }

    /// Runs the program at `len` positions. Returns the values of each result.
    ///
    /// # Panics
    ///
    /// If the number of operands is wrong, an operand has the wrong length, an operand is not of
    /// the [kind](RegisterKind) that the program loads it as, the results are not of the kind of
    /// `T`, or results would be computed while results on this thread are hollow.
    pub fn run<T: ProgramOutput>(
        &self,
        operands: &[UpdateOperand<'_>],
        len: usize,
    ) -> Result<Vec<Vec<T>>, Error> {
        assert_eq!(operands.len(), self.operands(), "one operand for each operand of the program");
        let mut rows = Rows::new(1);
        let mut sources: SmallVec<[OperandSource; 6]> = SmallVec::new();
        for (number, operand) in operands.iter().enumerate() {
            let (start, dtype, of): (*const u8, DType, Option<usize>) = match operand {
                UpdateOperand::Scalar(value) => (core::ptr::from_ref(value).cast(), DType::F64, None),
                UpdateOperand::F32(line) => (line.as_ptr().cast(), DType::F32, Some(line.len())),
                UpdateOperand::F64(line) => (line.as_ptr().cast(), DType::F64, Some(line.len())),
                #[cfg(feature = "half")]
                UpdateOperand::F16(line) => (line.as_ptr().cast(), DType::F16, Some(line.len())),
                #[cfg(feature = "half")]
                UpdateOperand::Bf16(line) => (line.as_ptr().cast(), DType::Bf16, Some(line.len())),
            };
            assert!(of.is_none_or(|own| own == len), "operands of equal length");
            assert!(self.is_of_kind(number as u32, dtype.kind()), "operands of the program's types");
            rows.push()[0] = isize::from(of.is_some());
            // SAFETY: each position is an element of the operand, which is borrowed while the
            // program runs: there are `len` elements, or one with stride 0.
            sources.push(unsafe { OperandSource::new(start, dtype, None) });
        }
        let Some((&first, others)) = self.results.split_first() else { return Ok(Vec::new()) };
        let of_kind = |&result: &Register| self.program.kind(result) == T::KIND;
        assert!(self.results.iter().all(of_kind), "results of the kind of `T`");
        if len == 0 {
            return Ok(self.results.iter().map(|_| Vec::new()).collect());
        }
        rows.push()[0] = 1;
        let nest = Nest::map(&[len], &[0], &rows);
        // The pass must not be hollow, because it writes more than its result.
        #[cfg(feature = "std")]
        assert!(!is_hollow(), "an update is not a step of an expression");
        let mut beside: Vec<Vec<T>> = others.iter().map(|_| reserve(len)).collect::<Result<_, _>>()?;
        let places: Vec<ExtraOutput<T>> = others
            .iter()
            .zip(&mut beside)
            .map(|(&value, data)| ExtraOutput { value, start: data.as_mut_ptr() })
            .collect();
        let parts = nest.split(0, threads::parts(len));
        let kernel = |nest| {
            // SAFETY: it was asserted that the operands have the register kinds that the program
            // loads. Each operand has a row. The last row has the strides of a result of `len`
            // elements, for which each further result has room. Parts of the nest have separate
            // slots, and nothing reads the slots before the pass is over.
            unsafe {
                Interpreted::<T>::with_values(
                    &self.program,
                    first,
                    &places,
                    &sources,
                    &mut Nest::operands(nest),
                )
            }
        };
        let data = collect(&parts, &kernel, Destination::New(len))?;
        for data in &mut beside {
            // SAFETY: to read the first result, the pass has loaded the tile of each position, and
            // loading a tile writes its other results.
            unsafe { data.set_len(len) };
        }
        Ok(core::iter::once(data).chain(beside).collect())
    }

    /// Whether an operand is loaded into registers of this kind, or not at all.
    fn is_of_kind(&self, operand: u32, kind: RegisterKind) -> bool {
        let loads = self.program.instructions().iter().enumerate();
        loads
            .filter(|(_, own)| **own == Instruction::Load(operand))
            .all(|(at, _)| self.program.kind(at as Register) == kind)
    }
}
