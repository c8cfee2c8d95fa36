//! The fallback: what cannot be planned for all examples together is called once for each of them.

use super::seal::EndsInRest;
use crate::error::{DimError, Origin, unwrap};
use crate::named::Named;
use crate::plan::axes::AxisList;
use crate::plan::explain::{Step, aside, record};
use crate::plan::nest::Odometer;
use crate::plan::shape::Shape;
use crate::rank::Rank;
use crate::reduce::evaluate_in;
use crate::scalar::Element;
use crate::set::list::List;
use crate::set::{Dims, Keys};
use crate::storage::axes::{Axis, AxisBlock};
use crate::storage::{Owned, View};
use crate::tensor::Computable;
use smallvec::SmallVec;

/// Calls `f` once for each example: for each position of the dims behind `Rest`. The results are one tensor, with those dims.
///
/// ```text
/// map_each(&x, f)          for n, m, .. behind the rest of x { out at (n, m, ..) = f(x at (n, m, ..)) }
/// ```
///
/// A function made of the operations of this crate needs no such loop: what it does is planned for all examples together. This is for what
/// is not made of them, a function of a crate that knows arrays alone, or one that goes on until its own example is done.
/// [`explain`](crate::plan::explain::explain) shows it as what it is, a loop of calls.
///
/// `f` sees a view of one example; several tensors with one rest go in as a tuple, and what is the same for all examples need not go
/// in, but can be borrowed by the closure. The results must be equally large. Dims are sealed by
/// [`seal`](Named::seal), or in a function with `#[batched]`, where all are:
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
/// Where [`try_map_each`] returns an error, and where `f` panics.
#[track_caller]
pub fn map_each<X: Apiece, Y: Computable>(
    tensors: X,
    mut f: impl FnMut(X::One) -> Y,
) -> Named<Y::Elem, <Y::Dims as Dims>::Sealed<X::Rest>, Y::Rank> {
    unwrap(try_map_each(tensors, |one| Ok(f(one))))
}

/// As [`map_each`], but what sizes decide is an error, and `f` can fail.
///
/// # Errors
///
/// Whatever `f` returns first; if its results differ in size, or the tensors along the dims behind their rest; if there are no examples, and
/// so no result that says how large its dims are: those of the tensors are as large there, and static sizes are known.
pub fn try_map_each<X: Apiece, Y: Computable>(
    tensors: X,
    mut f: impl FnMut(X::One) -> Result<Y, DimError>,
) -> Result<Named<Y::Elem, <Y::Dims as Dims>::Sealed<X::Rest>, Y::Rank>, DimError> {
    const {
        let (own, further) = (Y::Dims::KEYS.as_slice().len(), X::Rest::KEYS.as_slice().len());
        let all = <Y::Dims as Dims>::Sealed::<X::Rest>::KEYS.as_slice().len();
        assert!(all == own + further, "the result of one example has no room for further dims");
    }
    let mut further = Shape::new::<X::Rest, crate::rank::Rank0>();
    tensors.meet(&mut further)?;
    further.finish()?;
    let counts: SmallVec<[usize; 8]> = further.sizes().into();
    let mut results = Results::<Y>::new();
    let mut steps = Vec::new();
    let mut calls = 0;
    let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, counts.len());
    let mut odometer = Odometer::new(&counts);
    while !odometer.is_done() {
        let (added, own) = aside(|| f(tensors.one(&at)).and_then(|result| results.add(result)));
        added?;
        calls += 1;
        steps.extend(own);
        odometer.advance(&mut at);
    }
    record(|| Step::Calls { function: "a closure", calls, steps, bytes: size_of_val(&results.data[..]) });
    let own = match results.sizes {
        Some(sizes) => sizes,
        None => sizes_of_none::<Y>(&tensors)?,
    };
    // Results lie with what is behind the rest outermost, which is how they came.
    let order = AxisList::in_memory_of::<Y::Dims, Y::Rank>().as_slice();
    let sizes: SmallVec<[usize; 8]> = counts.into_iter().chain(order.iter().map(|&axis| own[axis])).collect();
    Ok(Named::from_expr(Owned::laid_out(results.data, &sizes)))
}

/// The results so far, one after the other.
struct Results<Y: Computable> {
    data: Vec<Y::Elem>,
    /// Of each, those of its dims and then those of its positional axes.
    sizes: Option<SmallVec<[usize; 8]>>,
}

impl<Y: Computable> Results<Y> {
    fn new() -> Self {
        Results { data: Vec::new(), sizes: None }
    }

    fn add(&mut self, result: Y) -> Result<(), DimError> {
        let result = result.into_named();
        let shape = result.shape()?;
        let order = AxisList::in_memory_of::<Y::Dims, Y::Rank>().as_slice();
        match &self.sizes {
            None => self.sizes = Some(shape.sizes().into()),
            Some(sizes) if sizes[..] != *shape.sizes() => {
                let names = Y::Dims::KEYS.as_slice().iter().map(|key| key.name);
                let named = names.chain(std::iter::repeat("positional axis")).zip(sizes.iter().copied());
                let (first, second) =
                    (crate::error::list_sizes(named), shape.describe(0..shape.sizes().len()));
                let what = format!("the results of single examples differ: {first}, but then {second}");
                return Err(DimError::Shape { what });
            }
            Some(_) => (),
        }
        let part = evaluate_in::<Y::Dims, Y::Rank, _>(result.expr, &shape, order)?;
        self.data.try_reserve(part.len()).map_err(|_| DimError::TooLarge { dims: shape.describe(0..0) })?;
        self.data.extend_from_slice(&part);
        Ok(())
    }
}

/// The sizes of a result, where there is none.
fn sizes_of_none<Y: Computable>(tensors: &impl Apiece) -> Result<SmallVec<[usize; 8]>, DimError> {
    if Y::Rank::N > 0 {
        let what = "there are no examples, so nothing says how large the positional axes of a result are";
        return Err(DimError::Shape { what: what.into() });
    }
    let size = |key: &crate::set::DimKey| {
        let known = key.fixed.or_else(|| tensors.size(key.id));
        known.ok_or_else(|| {
            let what = format!("there are no examples, so nothing says how large `{}` is", key.name);
            DimError::Shape { what }
        })
    };
    Y::Dims::KEYS.as_slice().iter().map(size).collect()
}

/// A tensor in memory with a rest, or several with the same one, as a tuple: what [`map_each`] takes apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken apart into examples",
    label = "a tensor in memory that has a `Rest`, or a tuple of up to 6 such, is expected here",
    note = "`x.seal((Seq, Feat))` leaves these dims to the function, and puts all others behind `Rest`; an expression is evaluated first, and \
            borrowed: `&x.eval()`"
)]
pub trait Apiece {
    /// The dims behind the rest.
    type Rest: Dims;
    /// One example of each.
    type One;
    #[doc(hidden)]
    fn meet(&self, further: &mut Shape) -> Result<(), DimError>;
    #[doc(hidden)]
    fn one(&self, at: &[usize]) -> Self::One;
    /// How large a dim of the examples is, if it is one.
    #[doc(hidden)]
    fn size(&self, id: u64) -> Option<usize>;
}

/// The axes of a set are those that a function sees, and then those behind its rest.
struct Sealed<'x> {
    keys: &'static Keys,
    axes: &'x [Axis],
    seen: usize,
}

impl Sealed<'_> {
    fn meet(&self, further: &mut Shape, origin: Origin) -> Result<(), DimError> {
        for (at, axis) in self.axes[self.seen..].iter().enumerate() {
            further.meet(at, axis.size, origin)?;
        }
        Ok(())
    }

    fn offset(&self, at: &[usize]) -> isize {
        self.axes[self.seen..].iter().zip(at).map(|(axis, &at)| at as isize * axis.stride).sum()
    }

    fn size(&self, id: u64) -> Option<usize> {
        let keys = self.keys.as_slice()[..self.seen].iter();
        keys.zip(self.axes).find(|(key, _)| key.id == id).map(|(_, axis)| axis.size)
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
            type Rest = B;
            type One = Named<T, V, R, View<'a, T, V, R>>;

            fn meet(&self, further: &mut Shape) -> Result<(), DimError> {
                let axes = self.expr.named().as_slice();
                Sealed { keys: S::KEYS, axes, seen: V::Axes::LEN }.meet(further, self.expr.origin())
            }

            fn one(&self, at: &[usize]) -> Self::One {
                let axes = self.expr.named().as_slice();
                let start = self.expr.as_ptr().wrapping_offset(Sealed { keys: S::KEYS, axes, seen: V::Axes::LEN }.offset(at));
                let mut named = V::Axes::filled(Axis::default());
                named.as_mut_slice().copy_from_slice(&axes[..V::Axes::LEN]);
                // SAFETY: the positions behind the rest are those of its axes, as `try_map_each` has met them; with one of them
                // fixed, the other axes are those of the tensor, which is borrowed for `'a`.
                Named::from_expr(unsafe { View::new(start, named, *self.expr.positional(), (), self.expr.origin()) })
            }

            fn size(&self, id: u64) -> Option<usize> {
                Sealed { keys: S::KEYS, axes: self.expr.named().as_slice(), seen: V::Axes::LEN }.size(id)
            }
        }
    )*};
}

tensors! {
    () &'a Named<T, S, R, Owned<T, S, R>>;
    () Named<T, S, R, View<'a, T, S, R>>;
    ('v) &'v Named<T, S, R, View<'a, T, S, R>>;
}

macro_rules! tuples {
    ($first:ident 0 $($a:ident $n:tt)*) => {
        impl<$first: Apiece, $($a: Apiece<Rest = $first::Rest>),*> Apiece for ($first, $($a,)*) {
            type Rest = $first::Rest;
            type One = ($first::One, $($a::One,)*);

            fn meet(&self, further: &mut Shape) -> Result<(), DimError> {
                self.0.meet(further)?;
                $(self.$n.meet(further)?;)*
                Ok(())
            }

            fn one(&self, at: &[usize]) -> Self::One {
                (self.0.one(at), $(self.$n.one(at),)*)
            }

            fn size(&self, id: u64) -> Option<usize> {
                self.0.size(id)$(.or_else(|| self.$n.size(id)))*
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
