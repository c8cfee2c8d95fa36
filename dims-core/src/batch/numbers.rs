//! Numbers as parameters and results of mapped functions: each number is one element of a tensor.

use super::applies::{ByValue, Given, one_after_the_other};
use super::argument::Further;
use super::closed::EndsInRest;
use super::each::Collect;
use super::mapped::{HasAny, MappedOne};
use super::way::{Alike, OneByOne, Way};
use crate::error::{DimError, Origin};
use crate::execute::lines::arranged;
use crate::execute::loops::check_taken;
use crate::execute::place::memory_of_numbers;
use crate::execute::reduce::TensorOf;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, DimKey, Dims, False, FirstWith, True};
use alloc::vec::Vec;
use core::ops::Range;
use kernels::loops::axes::Order;
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::scalar::Element;
use num_complex::Complex;
use smallvec::SmallVec;

/// The numbers that a parameter takes, one in each call.
pub struct NumberLine<T> {
    data: Buffer<T>,
    start: usize,
    axes: SmallVec<[Axis; 8]>,
    /// Whether the numbers are all elements of `data`, in memory order.
    is_whole: bool,
}

impl<T: Element> NumberLine<T> {
    fn new<S: Dims>(sealed: &Named<T, S>) -> Self {
        let axes: SmallVec<[Axis; 8]> = sealed.expr.axes().collect();
        let order: Order = (0..axes.len()).collect();
        let is_whole = !axes.is_empty() && sealed.expr.is_contiguous(&order);
        NumberLine { data: sealed.expr.buffer().clone(), start: sealed.expr.start(), axes, is_whole }
    }

    /// The number at a position of the mapped dims.
    fn at(&self, at: &[usize]) -> T {
        let offsets = self.axes.iter().zip(at).map(|(axis, &at)| at as isize * axis.stride);
        self.data[self.start.wrapping_add_signed(offsets.sum())]
    }

    /// The numbers at these row-major indices of the mapped dims. They are copied to `copies`
    /// unless `is_whole`.
    fn numbers<'l>(&'l self, indices: Range<usize>, copies: &'l mut Vec<T>) -> &'l [T] {
        if self.is_whole {
            return &self.data[self.start..][indices];
        }
        copies.clear();
        self.copy(indices, copies);
        copies
    }

    #[inline(never)]
    fn copy(&self, indices: Range<usize>, copies: &mut Vec<T>) {
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, self.axes.len());
        let mut number = indices.start;
        for (at, axis) in at.iter_mut().zip(&self.axes).rev() {
            *at = number % axis.size;
            number /= axis.size;
        }
        let Some((inner, outer)) = self.axes.split_last() else {
            return copies.resize(indices.len(), self.data[self.start]);
        };
        while copies.len() < indices.len() {
            let (last, before) = at.split_last_mut().expect("there is an index for each axis");
            let run = (inner.size - *last).min(indices.len() - copies.len());
            let offsets = outer.iter().zip(&*before).map(|(axis, &at)| at as isize * axis.stride);
            let start = self.start.wrapping_add_signed(offsets.sum());
            let place = |at: usize| start.wrapping_add_signed(at as isize * inner.stride);
            copies.extend((*last..*last + run).map(|at| self.data[place(at)]));
            // If there is another run, it starts at the beginning of a row.
            *last = 0;
            for (at, axis) in before.iter_mut().zip(outer).rev() {
                *at += 1;
                if *at < axis.size {
                    break;
                }
                *at = 0;
            }
        }
    }
}

/// Converts a sealed tensor `X` to numbers of type `T`. `Self` says whether the argument has a
/// mapped dim.
pub trait HandsNumbers<X, T> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// See [`Way`].
    type Way: Way;
    #[doc(hidden)]
    fn line(sealed: &X) -> NumberLine<T>;
}

impl<T: Element, S: Dims<List: EndsInRest<Visible = ()>>> HandsNumbers<Named<T, S>, T> for True {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = OneByOne;

    fn line(sealed: &Named<T, S>) -> NumberLine<T> {
        NumberLine::new(sealed)
    }
}

impl<T: Element> HandsNumbers<Named<T, ()>, T> for False {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Way = Alike;

    fn line(sealed: &Named<T, ()>) -> NumberLine<T> {
        NumberLine::new(sealed)
    }
}

macro_rules! numbers {
    ($($(#[$cfg:meta])? $t:ty),*) => {$(
        $(#[$cfg])?
        impl ByValue for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;

            fn size_of(&self, _: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
                None
            }
        }

        $(#[$cfg])?
        #[diagnostic::do_not_recommend]
        impl<A, D, M, V> Given<$t, D, M> for A
        where
            A: Computable<Dims: Dims<List: EndsInRest<HasRest: Bool<Or<HasAny<A::Dims, D>> = V>>>>,
            D: DimList<Brands: FirstWith<Within<<A::Dims as Dims>::List>>>,
            M: Dims,
            TensorOf<A>: MappedOne<D, M>,
            V: HandsNumbers<<TensorOf<A> as MappedOne<D, M>>::Sealed, $t>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            const NUMBER: bool = true;
            type Way = V::Way;
            type Held = TensorOf<A>;
            type Sealed = NumberLine<$t>;

            fn hold(argument: Self, place: Origin) -> Result<Self::Held, DimError> {
                let held = one_after_the_other::<A, ()>(argument, place)?;
                check_taken(held.expr.all(), "vmap")?;
                Ok(held)
            }

            fn unify(held: &Self::Held, further: &mut Further<M>) -> Result<(), DimError> {
                MappedOne::unify(held, further)
            }

            fn seal(held: Self::Held, further: &Further<M>) -> NumberLine<$t> {
                V::line(&MappedOne::seal(held, further))
            }

            fn whole(line: NumberLine<$t>) -> $t {
                line.at(&[])
            }

            fn one(line: &NumberLine<$t>, at: &[usize]) -> $t {
                line.at(at)
            }

            fn numbers<'l>(line: &'l NumberLine<$t>, indices: Range<usize>, copies: &'l mut Vec<$t>) -> &'l [$t] {
                line.numbers(indices, copies)
            }

            #[inline]
            fn copied(numbers: &[$t], at: usize) -> $t {
                numbers[at]
            }

            fn size(_: &NumberLine<$t>, _: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
                None
            }
        }

        $(#[$cfg])?
        impl<B: Dims> Collect<B> for $t {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            const NUMBERS: bool = true;
            type Results = Vec<$t>;
            type All = Named<$t, <() as Dims>::Sealed<B>>;

            fn none() -> Vec<$t> {
                Vec::new()
            }

            fn make_room(count: usize, results: &mut Vec<$t>) -> Result<(), DimError> {
                *results = memory_of_numbers(count)?;
                Ok(())
            }

            fn add(self, results: &mut Vec<$t>) -> Result<(), DimError> {
                if results.len() == results.capacity() {
                    grow(results)?;
                }
                results.push(self);
                Ok(())
            }

            fn add_all(
                all: impl ExactSizeIterator<Item = Self>,
                results: &mut Vec<$t>,
            ) -> Result<(), DimError> {
                results.extend(all);
                Ok(())
            }

            fn bytes(results: &Vec<$t>) -> usize {
                size_of_val(&results[..])
            }

            fn finish(
                results: Vec<$t>,
                counts: &[usize],
                _: &dyn Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
                place: Origin,
            ) -> Result<Self::All, DimError> {
                let order: Order = (0..counts.len()).collect();
                let all: Self::All = arranged(results, &order, counts)?;
                Ok(Named::from_expr(all.expr.with_origin(place)))
            }
        }
    )*};
}

#[cold]
fn grow<T>(results: &mut Vec<T>) -> Result<(), DimError> {
    let len = results.len();
    let too_large = |_| DimError::TooLarge { dims: alloc::format!("more than {len} elements") };
    results.try_reserve(len.max(64)).map_err(too_large)
}

numbers!(
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    Complex<f32>,
    Complex<f64>,
    #[cfg(feature = "half")]
    half::f16,
    #[cfg(feature = "half")]
    half::bf16
);
