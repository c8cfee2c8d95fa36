//! Joining tensors: `concat` along a dim that they have, `stack` along a new one.

use crate::brand::DimInfo;
use crate::dim::DimRef;
use crate::error::{DimError, unwrap};
use crate::named::{Named, position};
use crate::plan::shape::volume;
use crate::reduce::evaluate_in;
use crate::set::rename::Has;
use crate::set::{Dims, DimsOf, Right, Union, Verdict};
use crate::storage::Owned;
use crate::storage::memory::reserve;
use crate::tensor::{AsTensor, Computable};
use alloc::string::String;
use alloc::vec::Vec;
use smallvec::SmallVec;

type Order = SmallVec<[usize; 8]>;

/// The parts one after the other along `dim`, whose size is the sum of theirs; all other sizes must agree.
///
/// `parts` is an array, a vector or any other collection of tensors of one type; expressions of different types are
/// `eval`uated first.
///
/// # Panics
///
/// Where [`try_concat`] returns an error.
#[track_caller]
pub fn concat<A: Computable, D: DimRef + DimsOf<A::Dims, X>, X: Dims>(
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
    D: DimRef + DimsOf<A::Dims, X>,
    X: Dims,
    A: Computable,
{
    let mut data: Parts<A::Elem> = Parts::new();
    let mut sizes: Option<SmallVec<[usize; 8]>> = None;
    let mut along = 0;
    for part in parts {
        let part = part.into_named();
        let shape = part.shape()?;
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
                            describe::<A>(sizes),
                            describe::<A>(own)
                        );
                        return Err(DimError::Shape { what });
                    }
                }
                let total = sizes[along].checked_add(own[along]);
                sizes[along] = total.ok_or_else(|| DimError::TooLarge { dims: describe::<A>(own) })?;
            }
        }
        let order: Order = (0..own.len()).collect();
        data.push(evaluate_in::<A::Dims, A::Rank, _>(part.expr, &shape, &order)?);
    }
    let Some(sizes) = sizes else {
        return Err(DimError::Shape { what: format!("nothing to concatenate along `{}`", dim.info().name) });
    };
    keep_static(dim.info(), sizes[along])?;
    countable::<A>(&sizes)?;
    Ok(Named::from_expr(Owned::contiguous(side_by_side(data, &sizes[..along])?, &sizes)))
}

/// The total of the parts must be the static size, if the dim has one.
fn keep_static(dim: DimInfo<'_>, size: usize) -> Result<(), DimError> {
    DimInfo { cell: None, ..dim }.meet(size, None)
}

fn countable<A: AsTensor>(sizes: &[usize]) -> Result<(), DimError> {
    match volume(sizes.iter().copied(), size_of::<A::Elem>()) {
        Some(_) => Ok(()),
        None => Err(DimError::TooLarge { dims: describe::<A>(sizes) }),
    }
}

fn describe<A: AsTensor>(sizes: &[usize]) -> String {
    let names = A::Dims::KEYS.as_slice().iter().map(|key| key.name);
    crate::error::list_sizes(names.chain(core::iter::repeat("positional axis")).zip(sizes.iter().copied()))
}

/// The elements of the parts, each in the order of the axes.
type Parts<T> = SmallVec<[Vec<T>; 4]>;

/// For each position of the outer axes what all parts have there, one part after the other.
fn side_by_side<T: Copy>(mut parts: Parts<T>, outer: &[usize]) -> Result<Vec<T>, DimError> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let blocks = outer.iter().product::<usize>();
    let mut out = reserve(parts.iter().map(Vec::len).sum())?;
    if blocks == 0 {
        return Ok(out);
    }
    for block in 0..blocks {
        for part in &parts {
            let len = part.len() / blocks;
            out.extend_from_slice(&part[block * len..][..len]);
        }
    }
    Ok(out)
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
    let mut data: Parts<A::Elem> = Parts::new();
    let mut sizes: Option<SmallVec<[usize; 8]>> = None;
    for part in parts {
        let part = part.into_named();
        let shape = part.shape()?;
        let own = shape.sizes();
        if let Some(first) = &sizes
            && first[..] != *own
        {
            let what = format!(
                "parts of a stack along `{}` differ: {} and {}",
                dim.info().name,
                describe::<A>(first),
                describe::<A>(own)
            );
            return Err(DimError::Shape { what });
        }
        let order: Order = (0..own.len()).collect();
        sizes = Some(own.into());
        data.push(evaluate_in::<A::Dims, A::Rank, _>(part.expr, &shape, &order)?);
    }
    let Some(mut sizes) = sizes else {
        return Err(DimError::Shape { what: format!("nothing to stack along `{}`", dim.info().name) });
    };
    let count = data.len();
    dim.info().meet(count, None)?;
    let keys = <<A::Dims as Union<(D::Brand,)>>::Out as Dims>::KEYS;
    let along = keys.position(&dim.info().key()).expect("the new dim is one of the result's");
    sizes.insert(along, count);
    Ok(Named::from_expr(Owned::contiguous(side_by_side(data, &sizes[..along])?, &sizes)))
}
