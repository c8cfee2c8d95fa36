//! Lists of axes for `order`.

use crate::error::DimError;
use crate::plan::shape::Shape;
use crate::types::brand::SetElement;
use crate::types::dim::{DimList, DimRef, Each};
use crate::types::rank::{Rank, Rank0, Rank1};
use crate::types::set::remove::Loses;
use crate::types::set::{Bound, Dims, Keys, NamedOnce, NoDim};
use crate::types::tuples::{each_tuple, fold, fold_back, nested};
use ndarray::NewAxis;

/// The axes that `order` makes. An axis is a dim, a tuple of dims flattened into one axis (last
/// dim fastest), or `NewAxis`, an axis of size 1. [`Each`] makes a separate axis of each dim in a
/// tuple.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of dims",
    label = "expected a dim, or a tuple of dims and of tuples of dims: `(b, (h, h2), w)`; `NewAxis` in it is an axis of size 1"
)]
pub trait OrderList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The brands of all dims, as nested pairs.
    #[doc(hidden)]
    type Brands;
    /// The number of axes.
    #[doc(hidden)]
    type Count: Rank;
    /// The run-time form of the brands.
    #[doc(hidden)]
    const KEYS: &'static Keys;
    /// The number of dims of each axis.
    #[doc(hidden)]
    const GROUPS: &'static Groups;
    /// Whether any of the dims carries a size.
    #[doc(hidden)]
    const GIVES_SIZE: bool = false;
    /// Checks the sizes that dims carry.
    #[doc(hidden)]
    fn check_given(&self, _: &Shape) -> Result<(), DimError> {
        Ok(())
    }
}

/// An element of an order: one axis, or several ([`Each`]).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an axis of an order",
    label = "expected a dim, a tuple of dims to flatten, or `NewAxis`"
)]
pub trait OrderAxis {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// `Tail` with the brands of this element in front, as nested pairs.
    #[doc(hidden)]
    type Before<Tail>;
    /// `N` plus the number of axes of this element.
    #[doc(hidden)]
    type Behind<N: Rank>: Rank;
    /// The number of dims of each of its axes.
    #[doc(hidden)]
    const GROUPS: Groups;
    /// The run-time form of the brands.
    #[doc(hidden)]
    const KEYS: Keys;
    /// Whether any of the dims carries a size.
    #[doc(hidden)]
    const GIVES_SIZE: bool;
    /// Checks the sizes that dims carry.
    #[doc(hidden)]
    fn check_given(&self, shape: &Shape) -> Result<(), DimError>;
}

/// The number of dims of each axis of an order: 1 for a dim, 0 for `NewAxis`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    len: usize,
    dims: [usize; MOST_AXES],
}

/// The maximum number of axes of an order; see [`Rank`].
const MOST_AXES: usize = 26;

impl Groups {
    const EMPTY: Self = Groups { len: 0, dims: [0; MOST_AXES] };

    const fn one(dims: usize) -> Self {
        Self::EMPTY.with(dims)
    }

    const fn singles(count: usize) -> Self {
        let mut groups = Self::EMPTY;
        while groups.len < count {
            groups = groups.with(1);
        }
        groups
    }

    const fn with(mut self, dims: usize) -> Self {
        assert!(self.len < MOST_AXES, "an order has more than 26 axes");
        self.dims[self.len] = dims;
        self.len += 1;
        self
    }

    const fn join(mut self, other: &Self) -> Self {
        let mut at = 0;
        while at < other.len {
            self = self.with(other.dims[at]);
            at += 1;
        }
        self
    }

    pub(crate) const fn as_slice(&self) -> &[usize] {
        self.dims.split_at(self.len).0
    }
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderAxis for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Before<Tail> = (D::Brand, Tail);
    type Behind<N: Rank> = N::Succ;
    const GROUPS: Groups = Groups::one(1);
    const KEYS: Keys = <D::Brand as SetElement>::KEYS;
    const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        shape.check_all_given(self)
    }
}

/// The rank, increased by one for each parameter.
macro_rules! more {
    ($rank:ty;) => { $rank };
    ($rank:ty; $head:ident $($tail:ident)*) => { more![<$rank as Rank>::Succ; $($tail)*] };
}

macro_rules! groups {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> OrderAxis for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Before<Tail> = nested![$($d::Brand),*; Tail];
            type Behind<N: Rank> = N::Succ;
            const GROUPS: Groups = Groups::one(<Self as OrderAxis>::KEYS.as_slice().len());
            const KEYS: Keys = Keys::EMPTY$(.join(&<$d::Brand as SetElement>::KEYS))*;
            const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                shape.check_all_given(self)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> OrderAxis for Each<($($d,)*)> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Before<Tail> = nested![$($d::Brand),*; Tail];
            type Behind<N: Rank> = more![N; $($d)*];
            const GROUPS: Groups = Groups::singles(<Self as OrderAxis>::KEYS.as_slice().len());
            const KEYS: Keys = <($($d,)*) as OrderAxis>::KEYS;
            const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                shape.check_all_given(self)
            }
        }
    };
}

each_tuple!(groups);

#[diagnostic::do_not_recommend]
impl OrderAxis for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Before<Tail> = Tail;
    type Behind<N: Rank> = N::Succ;
    const GROUPS: Groups = Groups::one(0);
    const KEYS: Keys = Keys::EMPTY;
    const GIVES_SIZE: bool = false;

    fn check_given(&self, _: &Shape) -> Result<(), DimError> {
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> OrderList for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = (D::Brand, ());
    type Count = Rank1;
    const KEYS: &'static Keys = &<D::Brand as SetElement>::KEYS;
    const GROUPS: &'static Groups = &Groups::one(1);
    const GIVES_SIZE: bool = <Self as DimList>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        shape.check_all_given(self)
    }
}

#[diagnostic::do_not_recommend]
impl<L> OrderList for Each<L>
where
    Each<L>: OrderAxis,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = <Self as OrderAxis>::Before<()>;
    type Count = <Self as OrderAxis>::Behind<Rank0>;
    const KEYS: &'static Keys = &<Self as OrderAxis>::KEYS;
    const GROUPS: &'static Groups = &<Self as OrderAxis>::GROUPS;
    const GIVES_SIZE: bool = <Self as OrderAxis>::GIVES_SIZE;

    fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
        OrderAxis::check_given(self, shape)
    }
}

#[diagnostic::do_not_recommend]
impl OrderList for NewAxis {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Count = Rank1;
    const KEYS: &'static Keys = &Keys::EMPTY;
    const GROUPS: &'static Groups = &Groups::one(0);
}

#[diagnostic::do_not_recommend]
impl OrderList for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Count = Rank0;
    const KEYS: &'static Keys = &Keys::EMPTY;
    const GROUPS: &'static Groups = &Groups::EMPTY;
}

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: OrderAxis),*> OrderList for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Brands = fold_back![Before; (); $($d)*];
            type Count = fold![Behind; Rank0; $($d)*];
            const KEYS: &'static Keys = &Keys::EMPTY$(.join(&$d::KEYS))*;
            const GROUPS: &'static Groups = &Groups::EMPTY$(.join(&$d::GROUPS))*;
            const GIVES_SIZE: bool = false $(|| $d::GIVES_SIZE)*;

            fn check_given(&self, shape: &Shape) -> Result<(), DimError> {
                $(self.$n.check_given(shape)?;)*
                Ok(())
            }
        }
    };
}

each_tuple!(lists);

/// An order of dims of `S`: it names only dims of `S`, each at most once. `Rest` are the remaining
/// dims, which rustc infers; see [`DimsOf`](crate::types::set::DimsOf).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an order of dims",
    label = "expected a dim, or a tuple of dims and of tuples of dims: `(b, (h, h2), w)`; `NewAxis` in it is an axis of size 1"
)]
pub trait OrderOf<S: Dims, Rest: Dims>: OrderList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S, Rest: Dims, L: OrderList> OrderOf<S, Rest> for L
where
    S: Loses<L, L::Brands, Rest>,
    NoDim<S::Missing>: Bound<S::Missing, S, Then<S::Left> = Rest>,
    NoDim<S::Twice>: NamedOnce<S::Twice, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
