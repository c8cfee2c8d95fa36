//! Joining tensors: `concat` along a dim that they have, `stack` along a new one.

use crate::assign::write_into;
use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::named::{Named, position};
use crate::plan::axes::AxisList;
use crate::plan::evaluate::evaluate_in;
use crate::plan::shape::{Shape, volume};
use crate::set::rename::Has;
use crate::set::{Dims, DimsOf, Keys, Right, Union, Verdict};
use crate::size::Resizable;
use crate::storage::Owned;
use crate::storage::memory::InParts;
use crate::tensor::{AsTensor, Computable, NamedOf};
use alloc::string::String;
use alloc::vec::Vec;
use smallvec::SmallVec;

/// The parts one after the other along `dim`, whose size is the sum of theirs, and is not static; all other sizes must agree. Each part is computed, or copied,
/// right into its place in the result.
///
/// `parts` is an array, a vector or any other collection of tensors of one type; expressions of different types are
/// `eval`uated first.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Seq; struct Feat = 2; }
/// let a = from_vec((Seq.of(1), Feat), vec![1, 2]);
/// let b = from_vec((Seq.of(2), Feat), vec![3, 4, 5, 6]);
/// let both = concat(Seq, [&a, &b]);                  // both[s] = a[s] where s < 1, else b[s - 1]
/// assert_eq!(both.order((Seq, Feat)), ndarray::array![[1, 2], [3, 4], [5, 6]]);
/// ```
///
/// # Panics
///
/// Where [`try_concat`] returns an error.
#[track_caller]
pub fn concat<A: Computable, D: DimRef + DimsOf<A::Dims, X> + Resizable, X: Dims>(
    dim: D,
    parts: impl IntoIterator<Item = A>,
) -> Named<A::Elem, A::Dims, A::Rank> {
    unwrap(try_concat(dim, parts))
}

/// As [`concat()`], but what sizes decide is an error; so is having no parts.
pub fn try_concat<D, A, X>(
    dim: D,
    parts: impl IntoIterator<Item = A>,
) -> Result<Named<A::Elem, A::Dims, A::Rank>, DimError>
where
    D: DimRef + DimsOf<A::Dims, X> + Resizable,
    X: Dims,
    A: Computable,
{
    let mut all = Parts::<A>::new();
    let mut sizes: Option<Sizes> = None;
    let mut along = 0;
    for part in parts {
        let part = part.into_named();
        let shape = part.unified_shape()?;
        along = position(&shape, dim.info());
        let own = shape.sizes();
        match &mut sizes {
            None => sizes = Some(own.into()),
            Some(sizes) => {
                for axis in (0..own.len()).filter(|&axis| axis != along) {
                    if sizes[axis] != own[axis] {
                        let what = format!(
                            "parts of a concatenation along `{}` differ: {} and {}",
                            dim.info().name,
                            describe(A::Dims::KEYS, sizes),
                            describe(A::Dims::KEYS, own)
                        );
                        return Err(DimError::Shape { what });
                    }
                }
                let total = sizes[along].checked_add(own[along]);
                sizes[along] =
                    total.ok_or_else(|| DimError::TooLarge { dims: describe(A::Dims::KEYS, own) })?;
            }
        }
        all.push((part, shape));
    }
    let Some(sizes) = sizes else {
        return Err(DimError::Shape { what: format!("nothing to concatenate along `{}`", dim.info().name) });
    };
    dim.info().resized().meet(sizes[along], None)?;
    let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
    let place = |shape: &Shape| {
        let strides = contiguous(&sizes, order);
        let next = shape.sizes()[along] * strides[along] as usize;
        (strides, next)
    };
    let data = side_by_side::<A>(all, A::Dims::KEYS, &sizes, place)?;
    Ok(Named::from_expr(Owned::of_sizes(data, &sizes)))
}

fn describe(keys: &Keys, sizes: &[usize]) -> String {
    let names = keys.as_slice().iter().map(|key| key.name);
    crate::error::list_sizes(names.chain(core::iter::repeat("positional axis")).zip(sizes.iter().copied()))
}

/// The parts, none of which has run yet, with the sizes that their operands met in.
type Parts<A> = SmallVec<[(NamedOf<A>, Shape); 4]>;

type Sizes = SmallVec<[usize; 8]>;

/// The strides of axes of these sizes that lie in this order, the last one innermost.
fn contiguous(sizes: &[usize], order: &[usize]) -> SmallVec<[isize; 8]> {
    let mut strides = SmallVec::from_elem(1, sizes.len());
    let mut step = 1;
    for &at in order.iter().rev() {
        strides[at] = step;
        step *= sizes[at] as isize;
    }
    strides
}

/// Runs each part right into its place in the result, which has these dims and sizes. `place` says of a part with which strides it lies
/// there, and how far behind it the next one starts. All parts together are the result.
fn side_by_side<A: Computable>(
    mut parts: Parts<A>,
    keys: &Keys,
    sizes: &[usize],
    place: impl Fn(&Shape) -> (SmallVec<[isize; 8]>, usize),
) -> Result<Vec<A::Elem>, DimError> {
    let too_large = || DimError::TooLarge { dims: describe(keys, sizes) };
    let len = volume(sizes.iter().copied(), size_of::<A::Elem>()).ok_or_else(too_large)?;
    if parts.len() == 1 {
        let (part, shape) = parts.remove(0);
        let order = AxisList::in_memory_of::<A::Dims, A::Rank>().as_slice();
        return evaluate_in::<A::Dims, A::Rank, _>(part.expr, &shape, order);
    }
    let mut out = InParts::of(len).map_err(|_| too_large())?;
    let mut start = 0;
    for (part, shape) in parts {
        let (strides, next) = place(&shape);
        write_into::<A::Dims, A::Rank, _>(&part.expr, &shape, out.places(), start, &strides)?;
        start += next;
    }
    // (No two parts share a place: each starts behind the one before along the axis on which they lie side by side.)
    Ok(out.finish())
}

/// A tensor stacked along a new dim.
pub type Stacked<A, D> = Named<
    <A as AsTensor>::Elem,
    <<A as AsTensor>::Dims as Union<(<D as DimRef>::Brand,)>>::Out,
    <A as AsTensor>::Rank,
>;

/// The dim to stack along is not in the set `S`; `D` is that dim if it is, or [`Nothing`](crate::set::Nothing).
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` is already bound in tensors with dims `{S}`",
    label = "`stack` takes a new dim; along one that the parts have, `concat` joins them"
)]
pub trait Stackable<D, S> {}
#[diagnostic::do_not_recommend]
impl<D, S> Stackable<D, S> for Right {}

/// A dim that the set `S` does not have.
pub trait NewDim<S: Dims>: DimRef {}
impl<S: Dims, D: DimRef> NewDim<S> for D
where
    S::List: Has<D::Brand>,
    Verdict<<S::List as Has<D::Brand>>::Found>: Stackable<<S::List as Has<D::Brand>>::Found, S>,
{
}

/// The parts along the new dim `dim`, which gets as many elements as there are parts; all sizes must agree.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { struct Part; struct Feat = 2; }
/// let parts = [from_vec(Feat, vec![1, 2]), from_vec(Feat, vec![3, 4])];
/// let all = stack(Part, &parts);                     // all[p, f] = parts[p][f]
/// assert_eq!(all.order((Feat, Part)), ndarray::array![[1, 3], [2, 4]]);
/// ```
///
/// # Panics
///
/// Where [`try_stack`] returns an error.
#[track_caller]
pub fn stack<A: Computable, D: NewDim<A::Dims>>(dim: D, parts: impl IntoIterator<Item = A>) -> Stacked<A, D>
where
    A::Dims: Union<(D::Brand,)>,
{
    unwrap(try_stack(dim, parts))
}

/// As [`stack`], but what sizes decide is an error; so is having no parts.
pub fn try_stack<A: Computable, D: NewDim<A::Dims>>(
    dim: D,
    parts: impl IntoIterator<Item = A>,
) -> Result<Stacked<A, D>, DimError>
where
    A::Dims: Union<(D::Brand,)>,
{
    let mut all = Parts::<A>::new();
    let mut sizes: Option<Sizes> = None;
    for part in parts {
        let part = part.into_named();
        let shape = part.unified_shape()?;
        let own = shape.sizes();
        if let Some(first) = &sizes
            && first[..] != *own
        {
            let what = format!(
                "parts of a stack along `{}` differ: {} and {}",
                dim.info().name,
                describe(A::Dims::KEYS, first),
                describe(A::Dims::KEYS, own)
            );
            return Err(DimError::Shape { what });
        }
        sizes = Some(own.into());
        all.push((part, shape));
    }
    let Some(mut sizes) = sizes else {
        return Err(DimError::Shape { what: format!("nothing to stack along `{}`", dim.info().name) });
    };
    let count = all.len();
    dim.info().meet(count, None)?;
    let keys = <<A::Dims as Union<(D::Brand,)>>::Out as Dims>::KEYS;
    let order = AxisList::in_memory_of::<<A::Dims as Union<(D::Brand,)>>::Out, A::Rank>().as_slice();
    let along = keys.position(&dim.info().key()).expect("the new dim is one of the result's");
    sizes.insert(along, count);
    let place = |_: &Shape| {
        let mut strides = contiguous(&sizes, order);
        let next = strides.remove(along);
        (strides, next as usize)
    };
    let data = side_by_side::<A>(all, keys, &sizes, place)?;
    Ok(Named::from_expr(Owned::of_sizes(data, &sizes)))
}
