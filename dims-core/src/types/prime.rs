//! Two axes over one index set: `Prime<N>` is a second dim that has the size of `N`.
//!
//! A tensor has each dim at most once. Where two axes are over the same index set, as in a
//! covariance, a Gram matrix, an adjacency matrix or a Hessian, the dims are `(N, Prime<N>)`:
//!
//! ```
//! use typed_dims::prelude::*;
//!
//! dims! { pub struct Item; pub struct Feat; }
//!
//! /// `out[n, n'] = sum over f of x[n, f] * x[n', f]`
//! fn gram(x: &Tensor<f64, (Item, Feat)>) -> Tensor<f64, (Item, Prime<Item>)> {
//!     (x * x.prime(Item)).sum(Feat)
//! }
//!
//! let x = from_vec((Item.of(2), Feat.of(2)), vec![1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(gram(&x).order((Item, prime(Item))), ndarray::array![[5.0, 11.0], [11.0, 25.0]]);
//! ```
//!
//! | | |
//! |---|---|
//! | type | `Prime<Item>`; for a local dim, rustc shows `Prime<i<'_>>` |
//! | value | [`prime(Item)`](prime), `prime(Item.of(2))`, and `prime(i)` after `dims!(i);`. It can be used wherever a dim can |
//! | name | `Item'`, in errors, in files, and wherever tensors are shown |
//! | size | the size of `Item`: its static size, the size of the local dim `i`, or, where a tensor or an expression has both dims, the size of either. Different sizes give a [`DimError::PrimeConflict`] |
//! | role | the role of `Item` |
//! | order | after all dims that are not primes; primes among themselves in the order of their dims. A `Rest` still comes last |
//!
//! [`Priming`](crate::operators::priming::Priming) has the methods: `x.prime(Item)`,
//! `x.unprime(Item)`, the transpose `x.transpose(Item)`, and the matrix product
//! `a.compose(&b, Item)`. To take a part of both axes, pass another dim:
//! `x.slice_to(Item, 1.., Part).slice_to(prime(Item), 1.., prime(Part))`.
//!
//! A prime has a prime too: `Prime<Prime<Item>>`, named `Item''`, is a third dim of the same size.
//!
//! In a function over a generic dim `D: AnyDim`, you can use `Prime<D>` without further bounds
//! (except in `compose`). If a tensor has other generic dims, rustc needs their order, as without
//! primes: `O: AnyDim + Before<Prime<D>>` and `Prime<D>: After<O>`.

use crate::error::{DimError, unwrap};
use crate::types::axes::OneAxis;
use crate::types::brand::{
    Brand, CompareKeys, Declared, Digits, DimInfo, Greater, KeyOf, Last, Less, SetElement, Text, digits::*,
};
use crate::types::dim::{DimCell, DimRef};
use crate::types::set::Keys;
use core::fmt;
use core::marker::PhantomData;

/// A second dim of the size of `N`: see the [module](self).
///
/// Its value is [`prime(N)`](prime).
#[derive(Clone, Copy, Default)]
pub struct Prime<N>(PhantomData<N>);

/// The [`Prime`] of a dim, as a value.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let distances = ndarray::array![[0, 3], [4, 0]];
/// dims!(i);
/// let x = distances.at((i, prime(i)));
/// assert_eq!(x.sum(prime(i)).order(i), ndarray::array![3, 4]);
/// assert_eq!(x.order((prime(i), i)), ndarray::array![[0, 4], [3, 0]]);
///
/// dims!(j);
/// let error = ndarray::Array2::<f32>::zeros((3, 4)).try_at((j, prime(j))).map(|_| ()).unwrap_err();
/// assert!(matches!(error, DimError::PrimeConflict { dim: "j", first: 3, other: "j'", second: 4, .. }));
/// ```
pub fn prime<D: DimRef>(dim: D) -> D::Prime {
    dim.primed()
}

/// The longest name of a prime, in bytes.
const LONGEST_NAME: usize = 256;

impl<N: Brand> Prime<N> {
    const NAME: &'static Text<LONGEST_NAME> = &Text::EMPTY.and(KeyOf::<N>::KEY.name).and("'");

    /// The value for a declared dim.
    pub(crate) const VALUE: Self = Prime(PhantomData);
}

impl<N: Brand> SetElement for Prime<N> {
    type Key = Primed<N::Key>;
    type Axes = OneAxis;
    const KEYS: Keys = Keys::one(KeyOf::<N>::KEY.primed(Self::NAME.as_str()));
}

impl<N: Brand> Brand for Prime<N> {
    type Size = N::Size;
    type Num = N::Num;
    type Role = N::Role;
    type Anchor = N::Anchor;
}

impl<N: Declared> Declared for Prime<N> {}

impl<N: Brand> fmt::Debug for Prime<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME.as_str())
    }
}

/// The key of a prime: greater than the key of every dim that is not a prime, and less than the key
/// of `Rest`. Two primes compare as their dims do.
pub struct Primed<K>(PhantomData<K>);

impl<K> Digits for Primed<K> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

impl<J, K: UnderPrime<J>> CompareKeys<K> for Primed<J> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = K::Out;
}

/// A key that can be compared with the key of a prime, [`Primed<J>`](Primed). The trait is
/// implemented for this key, not for the prime's, so that the bounds of a generic dim can say that
/// the dim sorts before its prime: see [`AnyDim`](crate::types::brand::AnyDim).
pub trait UnderPrime<J> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The result of comparing `Primed<J>` with this key.
    type Out;
}

impl<J> UnderPrime<J> for Last {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Less;
}

impl<J: CompareKeys<K>, K> UnderPrime<J> for Primed<K> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = J::Out;
}

macro_rules! digits_before_primes {
    ($($digit:ident)*) => {$(
        impl<T, J> UnderPrime<J> for $digit<T> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Greater;
        }

        impl<T, J> CompareKeys<Primed<J>> for $digit<T> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Out = Less;
        }
    )*};
}

digits_before_primes!(H0 H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11 H12 H13 H14 H15);

/// The prime of a local dim, as a value: `B` is [`Prime<i<'_>>`](Prime). It shares the size of `i`.
pub struct LocalPrime<'a, B> {
    cell: &'a DimCell,
    brand: PhantomData<&'a B>,
}

impl<B> Clone for LocalPrime<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for LocalPrime<'_, B> {}

impl<'a, B: Brand> LocalPrime<'a, B> {
    pub(crate) fn of(cell: &'a DimCell) -> Self {
        LocalPrime { cell, brand: PhantomData }
    }

    /// The size of the prime and its dim.
    ///
    /// # Panics
    ///
    /// If neither the prime nor its dim is bound or given a size.
    #[track_caller]
    pub fn size(self) -> usize {
        unwrap(self.info().size().ok_or(DimError::Unsized { dim: B::NAME }))
    }
}

impl<B: Brand> fmt::Debug for LocalPrime<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info().size() {
            Some(size) => write!(f, "{} = {size}", B::NAME),
            None => f.write_str(B::NAME),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<'b, B: Brand> DimRef for LocalPrime<'b, B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brand = B;
    type Open = ();
    type Prime = LocalPrime<'b, Prime<B>>;

    fn info<'a>(self) -> DimInfo<'a>
    where
        Self: 'a,
    {
        DimInfo { cell: Some(self.cell), ..KeyOf::<B>::info() }
    }

    fn primed(self) -> Self::Prime {
        LocalPrime::of(self.cell)
    }
}
