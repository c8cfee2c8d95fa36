//! Numbers as parameters and results of mapped functions: such a function is called for each
//! element.

use super::applies::{ByValue, Given, one_after_the_other};
use super::argument::Further;
use super::closed::EndsInRest;
use super::each::Collect;
use super::mapped::{HasAny, MappedOne};
use super::way::{Alike, OneByOne, Way};
use crate::error::{DimError, Origin};
use crate::execute::lines::arranged;
use crate::execute::loops::check_taken;
use crate::execute::reduce::TensorOf;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimList;
use crate::types::set::remove::Within;
use crate::types::set::{Bool, Dims, False, FirstWith, True};
use alloc::vec::Vec;
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
    /// Whether the numbers are all elements, in memory order.
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

    /// The number at this row-major index of the mapped dims.
    #[inline]
    fn nth(&self, number: usize) -> T {
        if self.is_whole { self.data[number] } else { self.strided(number) }
    }

    #[inline(never)]
    fn strided(&self, mut number: usize) -> T {
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, self.axes.len());
        for (at, axis) in at.iter_mut().zip(&self.axes).rev() {
            *at = number % axis.size;
            number /= axis.size;
        }
        self.at(&at)
    }
}

/// Converts a sealed tensor `X` to numbers of `T`. `Self` says whether it has a mapped dim.
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

            fn size_of(&self, _: u64) -> Option<usize> {
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
                line.nth(0)
            }

            fn one(line: &NumberLine<$t>, at: &[usize]) -> $t {
                line.at(at)
            }

            #[inline]
            fn nth(line: &NumberLine<$t>, number: usize) -> $t {
                line.nth(number)
            }

            fn size(_: &NumberLine<$t>, _: u64) -> Option<usize> {
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

            #[inline]
            fn add(self, results: &mut Vec<$t>) -> Result<(), DimError> {
                if results.len() == results.capacity() {
                    grow(results)?;
                }
                results.push(self);
                Ok(())
            }

            fn bytes(results: &Vec<$t>) -> usize {
                size_of_val(&results[..])
            }

            fn finish(
                results: Vec<$t>,
                counts: &[usize],
                _: &dyn Fn(u64) -> Option<usize>,
                place: Origin,
            ) -> Result<Self::All, DimError> {
                let order: Order = (0..counts.len()).collect();
                let all: Self::All = arranged(results, &order, counts)?;
                Ok(Named::from_expr(all.expr.with_origin(place)))
            }
        }
    )*};
}

/// Makes room for more results.
#[cold]
fn grow<T>(results: &mut Vec<T>) -> Result<(), DimError> {
    let too_large = |_| DimError::TooLarge { dims: "the results of a function of numbers".into() };
    results.try_reserve(results.len().max(64)).map_err(too_large)
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
