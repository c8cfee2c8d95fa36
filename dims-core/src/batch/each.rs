//! The fallback: functions that cannot run for all examples together are called once for each
//! example.

use super::closed::EndsInRest;
use crate::creation::positions::of_example;
use crate::error::{DimError, Origin, list_sizes, unwrap};
use crate::execute::lines::arranged;
use crate::execute::place::ResultsInSequence;
use crate::execute::step::NotedCalls;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate;
use crate::plan::axes::AxisList;
use crate::plan::shape::{Shape, volume};
use crate::storage::axes::AxisBlock;
use crate::storage::{Evaluated, View};
use crate::tensors::named::Named;
use crate::tensors::tensor::{AsTensor, Computable, NamedOf};
use crate::types::rank::Rank;
use crate::types::set::list::List;
use crate::types::set::{DimKey, Dims, Keys};
use core::panic::Location;
use kernels::loops::axes::{Order, Sizes};
use kernels::loops::nest::Odometer;
use kernels::memory::axes::Axis;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// Calls `f` once for each example, that is, for each position of the dims in the `Rest`. The
/// results form one tensor with those dims.
///
/// ```text
/// map_each(&x, f)          for n, m, .. in the rest of x { out at (n, m, ..) = f(x at (n, m, ..)) }
/// ```
///
/// Functions made of tensor operations do not need this loop: they run for all examples together.
/// Use it for other functions, such as a function of another crate that takes arrays, or an
/// iteration whose number of steps depends on the example.
/// [`explain`](crate::plan::explain::explain) shows a loop of calls.
///
/// `f` gets a view of one example. Pass several tensors with the same rest as a tuple; values that
/// are the same for all examples can be captured by the closure. Random operations (`dropout`,
/// `rand_like`) draw the same numbers as in one call for all examples; without the feature `std`,
/// they draw the same numbers for each example. The results must have the same sizes. Pack the dims
/// to loop over into `Rest` with [`seal`](Named::seal), or call `map_each` in a function with
/// `#[batched]`:
///
/// ```text
/// #[batched]
/// fn sorted(x: &Tensor<f32, (Seq,)>) -> Tensor<f32, (Seq,)> {
///     map_each(x, |x| sort(x.order(Seq).to_vec()).into_tensor(Seq))
/// }
/// ```
///
/// # Panics
///
/// If [`try_map_each`] returns an error or `f` panics.
#[track_caller]
pub fn map_each<X: Apiece, Y: Computable>(
    tensors: X,
    mut f: impl FnMut(X::One) -> Y,
) -> Named<Y::Elem, <Y::Dims as Dims>::Sealed<X::Rest>, Y::Rank> {
    unwrap(try_map_each(tensors, |one| Ok(f(one))))
}

/// Like [`map_each`], but size mismatches are errors, and `f` can fail.
///
/// # Errors
///
/// Returns the first error of `f`. It is also an error if a result of `f` cannot be computed, if
/// the results differ in size, or if the tensors differ in size along the dims in their rest. If
/// there are no examples, the result must not have positional axes, and each of its dims must have
/// a static size, or a size in the input of `f`. (A dim and its primes have the same size.)
#[track_caller]
pub fn try_map_each<X: Apiece, Y: Computable>(
    tensors: X,
    mut f: impl FnMut(X::One) -> Result<Y, DimError>,
) -> Result<Named<Y::Elem, <Y::Dims as Dims>::Sealed<X::Rest>, Y::Rank>, DimError> {
    let mut further = Shape::new::<X::Rest, crate::types::rank::Rank0>();
    tensors.unify(&mut further)?;
    further.finish()?;
    let call = |at: &[usize]| f(tensors.one(at)).map(AsTensor::into_named);
    let place = Some(Location::caller());
    looped::<X::Rest, NamedOf<Y>>("a closure", further.sizes(), call, |is| tensors.size(is), place)
}

/// Calls `f` for each position of dims with the sizes `counts`, and collects the results. `size`
/// returns the size of the examples' dim that satisfies a condition, if there is one. The results
/// get the origin `place`.
#[track_caller]
pub(super) fn looped<B: Dims, Y: Collect<B>>(
    function: &'static str,
    counts: &[usize],
    mut f: impl FnMut(&[usize]) -> Result<Y, DimError>,
    size: impl Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
    place: Origin,
) -> Result<Y::All, DimError> {
    let mut results = Y::none();
    let mut calls = NotedCalls::of(function);
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, counts.len());
    let mut odometer = Odometer::new(counts);
    while !odometer.is_done() {
        let call = || f(&at).and_then(|result| result.add(&mut results));
        calls.run(1, || of_example(B::KEYS, &at, call))?;
        odometer.advance(&mut at);
    }
    calls.finish(Y::bytes(&results));
    Y::finish(results, counts, &size, place)
}

/// The number of positions of dims with these sizes.
pub(super) fn number_of_examples<M: Dims>(sizes: &[usize]) -> Result<usize, DimError> {
    volume(sizes.iter().copied(), 1).ok_or_else(|| {
        let names = M::KEYS.as_slice().iter().map(|key| key.name);
        DimError::TooLarge { dims: list_sizes(names.zip(sizes.iter().copied())) }
    })
}

/// The result of a single call: a tensor or a number, or a tuple of these. There is a call for each
/// position of the dims `B`.
#[diagnostic::on_unimplemented(
    message = "a function that is called for each example cannot return `{Self}`",
    label = "a tensor or a number, or a tuple of up to 6 of these, is expected here"
)]
pub trait Collect<B: Dims>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Whether all results are numbers.
    #[doc(hidden)]
    const NUMBERS: bool = false;
    /// The results so far.
    type Results;
    /// All results, with the rest `B`.
    type All;
    #[doc(hidden)]
    fn none() -> Self::Results;
    /// Makes room for this many results, if they are numbers.
    #[doc(hidden)]
    fn make_room(_: usize, _: &mut Self::Results) -> Result<(), DimError> {
        Ok(())
    }
    #[doc(hidden)]
    fn add(self, results: &mut Self::Results) -> Result<(), DimError>;
    /// Adds results for which there is room.
    #[doc(hidden)]
    fn add_all(
        mut all: impl ExactSizeIterator<Item = Self>,
        results: &mut Self::Results,
    ) -> Result<(), DimError> {
        all.try_for_each(|own| own.add(results))
    }
    #[doc(hidden)]
    fn bytes(results: &Self::Results) -> usize;
    #[doc(hidden)]
    fn finish(
        results: Self::Results,
        counts: &[usize],
        size: &dyn Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
        place: Origin,
    ) -> Result<Self::All, DimError>;
}

impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>, B: Dims> Collect<B> for Named<T, S, R, E> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Results = Results<T>;
    type All = Named<T, S::Sealed<B>, R>;

    fn none() -> Results<T> {
        const {
            let (own, further) = (S::KEYS.as_slice().len(), B::KEYS.as_slice().len());
            let all = S::Sealed::<B>::KEYS.as_slice().len();
            assert!(all == own + further, "the result of one example has no room for extra dims");
        }
        Results { all: ResultsInSequence::new(), sizes: None }
    }

    #[track_caller]
    fn add(self, results: &mut Results<T>) -> Result<(), DimError> {
        let shape = self.unified_shape()?;
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        match &results.sizes {
            None => results.sizes = Some(shape.sizes().into()),
            Some(sizes) if sizes[..] != *shape.sizes() => {
                let names = S::KEYS.as_slice().iter().map(|key| key.name);
                let named = names.chain(core::iter::repeat("positional axis")).zip(sizes.iter().copied());
                let (first, second) = (list_sizes(named), shape.describe(&shape.all_axes()));
                let what = format!("the results of single examples differ: {first}, but then {second}");
                return Err(DimError::Shape { what });
            }
            Some(_) => (),
        }
        let result = evaluate::<S, R, _>(self.expr, &shape, order)?;
        results.all.push(&result, &shape)
    }

    fn bytes(results: &Results<T>) -> usize {
        results.all.bytes()
    }

    fn finish(
        results: Results<T>,
        counts: &[usize],
        size: &dyn Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
        place: Origin,
    ) -> Result<Self::All, DimError> {
        let own = match results.sizes {
            Some(sizes) => sizes,
            None => sizes_of_none(S::KEYS, R::N, size)?,
        };
        // The results are stored in the order of the calls. `arranged` reorders them if the axes of
        // the whole tensor have another order in memory, as when the rest contains another rest.
        let (named, further) = (S::KEYS.as_slice().len(), counts.len());
        let own_axes = AxisList::in_memory_of::<S, R>().as_slice().iter().copied();
        let (order, sizes): (Order, Sizes) = (named..named + further)
            .zip(counts.iter().copied())
            .chain(own_axes.map(|axis| (if axis < named { axis } else { axis + further }, own[axis])))
            .unzip();
        let all: Self::All = arranged(results.all.finish(), &order, &sizes)?;
        Ok(Named::from_expr(all.expr.with_origin(place)))
    }
}

/// The results so far, concatenated.
pub struct Results<T> {
    all: ResultsInSequence<T>,
    /// The sizes of each result: its dims, then its positional axes.
    sizes: Option<SmallVec<[usize; 8]>>,
}

/// The sizes of a result if there are no examples.
fn sizes_of_none(
    keys: &Keys,
    rank: usize,
    size: &dyn Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
) -> Result<SmallVec<[usize; 8]>, DimError> {
    if rank > 0 {
        let what = "there are no examples, so the sizes of a result's positional axes are unknown";
        return Err(DimError::Shape { what: what.into() });
    }
    let size = |key: &DimKey| {
        let own = key.fixed.or_else(|| size(&|own: &DimKey| own.same(key)));
        // A dim and its primes have the same size.
        own.or_else(|| size(&|own: &DimKey| own.is_kin(key))).ok_or_else(|| {
            let what = format!("there are no examples, so the size of `{}` is unknown", key.name);
            DimError::Shape { what }
        })
    };
    keys.as_slice().iter().map(size).collect()
}

/// The input of [`map_each`]: a view or a borrowed tensor in memory, with a rest, or a tuple of
/// these with the same rest.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be split into examples",
    label = "expected a tensor in memory with a `Rest`, or a tuple of up to 6 of them",
    note = "`x.seal((Seq, Feat))` keeps these dims for the function, and packs all others into `Rest`; evaluate and borrow an expression: `&x.eval()`"
)]
pub trait Apiece {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dims in the rest.
    type Rest: Dims;
    /// One example of each tensor.
    type One;
    #[doc(hidden)]
    fn unify(&self, further: &mut Shape) -> Result<(), DimError>;
    #[doc(hidden)]
    fn one(&self, at: &[usize]) -> Self::One;
    /// The size of the examples' dim that satisfies `is`, if there is one.
    #[doc(hidden)]
    fn size(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize>;
}

/// The axes of a sealed tensor: those that a function sees, then those in the rest.
struct Sealed<'x> {
    keys: &'static Keys,
    axes: &'x [Axis],
    seen: usize,
}

impl Sealed<'_> {
    fn unify(&self, further: &mut Shape, origin: Origin) -> Result<(), DimError> {
        for (at, axis) in self.axes[self.seen..].iter().enumerate() {
            further.unify(at, axis.size, origin)?;
        }
        Ok(())
    }

    fn size(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
        let keys = self.keys.as_slice()[..self.seen].iter();
        keys.zip(self.axes).find(|(key, _)| is(key)).map(|(_, axis)| axis.size)
    }
}

macro_rules! tensors {
    ($(($($held:lifetime)?) $tensor:ty;)*) => {$(
        impl<'a, $($held,)? T, S, R, V, B> Apiece for $tensor
        where
            T: Element,
            S: Dims<List: EndsInRest<Visible: List<Tuple = V>, Behind = B>>,
            R: Rank,
            V: Dims,
            B: Dims,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Rest = B;
            type One = Named<T, V, R, View<'a, T, V, R>>;

            fn unify(&self, further: &mut Shape) -> Result<(), DimError> {
                let axes = self.expr.named().as_slice();
                Sealed { keys: S::KEYS, axes, seen: V::Axes::LEN }.unify(further, self.expr.origin())
            }

            fn one(&self, at: &[usize]) -> Self::One {
                Named::from_expr(self.expr.view().at_last(at))
            }

            fn size(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
                let axes = self.expr.named().as_slice();
                Sealed { keys: S::KEYS, axes, seen: V::Axes::LEN }.size(is)
            }
        }
    )*};
}

tensors! {
    () &'a Named<T, S, R, Evaluated<T, S, R>>;
    () Named<T, S, R, View<'a, T, S, R>>;
    ('v) &'v Named<T, S, R, View<'a, T, S, R>>;
}

macro_rules! tuples {
    ($first:ident 0 $($a:ident $n:tt)*) => {
        impl<$first: Collect<Further>, $($a: Collect<Further>,)* Further: Dims> Collect<Further> for ($first, $($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            const NUMBERS: bool = $first::NUMBERS$( && $a::NUMBERS)*;
            type Results = ($first::Results, $($a::Results,)*);
            type All = ($first::All, $($a::All,)*);

            fn none() -> Self::Results {
                ($first::none(), $($a::none(),)*)
            }

            fn make_room(count: usize, results: &mut Self::Results) -> Result<(), DimError> {
                $first::make_room(count, &mut results.0)?;
                $($a::make_room(count, &mut results.$n)?;)*
                Ok(())
            }

            #[inline]
            fn add(self, results: &mut Self::Results) -> Result<(), DimError> {
                self.0.add(&mut results.0)?;
                $(self.$n.add(&mut results.$n)?;)*
                Ok(())
            }

            fn bytes(results: &Self::Results) -> usize {
                $first::bytes(&results.0)$( + $a::bytes(&results.$n))*
            }

            fn finish(
                results: Self::Results,
                counts: &[usize],
                size: &dyn Fn(&dyn Fn(&DimKey) -> bool) -> Option<usize>,
                place: Origin,
            ) -> Result<Self::All, DimError> {
                Ok(($first::finish(results.0, counts, size, place)?, $($a::finish(results.$n, counts, size, place)?,)*))
            }
        }

        impl<$first: Apiece, $($a: Apiece<Rest = $first::Rest>),*> Apiece for ($first, $($a,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Rest = $first::Rest;
            type One = ($first::One, $($a::One,)*);

            fn unify(&self, further: &mut Shape) -> Result<(), DimError> {
                self.0.unify(further)?;
                $(self.$n.unify(further)?;)*
                Ok(())
            }

            fn one(&self, at: &[usize]) -> Self::One {
                (self.0.one(at), $(self.$n.one(at),)*)
            }

            fn size(&self, is: &dyn Fn(&DimKey) -> bool) -> Option<usize> {
                self.0.size(is)$(.or_else(|| self.$n.size(is)))*
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0 B 1);
tuples!(A 0 B 1 C 2);
tuples!(A 0 B 1 C 2 D 3);
tuples!(A 0 B 1 C 2 D 3 E 4);
tuples!(A 0 B 1 C 2 D 3 E 4 F 5);
