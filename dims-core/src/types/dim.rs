//! Dims as values: what users pass to `at`, `sum` and `order`.

use crate::error::{DimError, Origin, SizeFrom, list_sizes, unwrap};
use crate::types::brand::{Brand, Declared, DimInfo, KeyOf};
use crate::types::open::{NoSize, Open};
use crate::types::prime::{LocalPrime, Prime};
use crate::types::set::list::NestedPairs;
use crate::types::set::{DimKey, False, Keys};
use crate::types::tuples::{each_tuple, nested};
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use twins::panicking_twin;

/// Stands for a size that is not known yet.
pub const UNSIZED: usize = usize::MAX;

/// The size of a local dim and where it came from.
///
/// This is one cell with a descriptive name, because rustc reports each cell that cannot be shared
/// with another thread.
pub type DimCell = Cell<SizeOfLocalDim>;

/// The contents of a [`DimCell`].
#[derive(Clone, Copy, Debug)]
pub struct SizeOfLocalDim {
    size: usize,
    origin: Origin,
    /// Which dim got the size: this one, or one of its primes.
    of: &'static str,
}

impl SizeOfLocalDim {
    /// Whether the dim has no size yet. A given size can also have the value [`UNSIZED`], but it
    /// has an origin.
    #[inline]
    fn is_open(&self) -> bool {
        self.size == UNSIZED && self.origin.is_none()
    }
}

#[inline]
fn size_in(cell: &DimCell) -> Option<usize> {
    let own = cell.get();
    (!own.is_open()).then_some(own.size)
}

impl DimInfo<'_> {
    /// The size, if it is known without looking at any tensor.
    #[inline]
    pub fn size(&self) -> Option<usize> {
        match (self.fixed, self.given, self.cell) {
            (Some(size), ..) | (None, Some((size, _)), _) => Some(size),
            (None, None, Some(cell)) => size_in(cell),
            (None, None, None) => None,
        }
    }

    /// The size for a loop along the dim, or [`UNSIZED`] if it is not known. A given size that has
    /// this value is an error.
    #[inline]
    pub fn size_of_loop(&self) -> Result<usize, DimError> {
        match self.size() {
            Some(UNSIZED) => Err(self.too_large()),
            size => Ok(size.unwrap_or(UNSIZED)),
        }
    }

    #[cold]
    fn too_large(&self) -> DimError {
        DimError::TooLarge { dims: list_sizes([(self.name, UNSIZED)]) }
    }

    /// The dim without the size that a local dim remembers, for operations that change the size.
    #[inline]
    pub fn resized(&self) -> DimInfo<'static> {
        DimInfo { id: self.id, name: self.name, fixed: self.fixed, given: self.given, cell: None }
    }

    /// The dim without a given or remembered size.
    pub(crate) fn without_size(&self) -> DimInfo<'static> {
        DimInfo { given: None, ..self.resized() }
    }

    /// Unifies the dim's size with an axis's size. They must agree if the dim has a size. A local
    /// dim without a size gets the size of the axis.
    #[inline]
    pub fn unify(&self, size: usize, origin: Origin) -> Result<(), DimError> {
        if let Some((first, first_origin)) = self.given
            && first != size
        {
            return Err(DimError::SizeConflict {
                dim: self.name,
                first,
                first_origin,
                second: size,
                second_origin: origin,
            });
        }
        if let Some(fixed) = self.fixed {
            if fixed != size {
                return Err(DimError::StaticSize { dim: self.name, fixed, found: size, origin });
            }
        } else if let Some(cell) = self.cell {
            let first = cell.get();
            if first.is_open() {
                cell.set(SizeOfLocalDim { size, origin, of: self.name });
            } else if first.size != size {
                let first = SizeFrom { dim: first.of, size: first.size, origin: first.origin };
                return Err(DimError::two_sizes(first, SizeFrom { dim: self.name, size, origin }));
            }
        }
        Ok(())
    }

    /// The dim's key in a set that names the dim itself. (It is not behind a `Rest`.)
    #[cfg_attr(not(unoptimized), inline(always))]
    pub const fn key(&self) -> DimKey {
        DimKey { depth: 0, id: self.id, name: self.name, fixed: self.fixed, roles: &[] }
    }
}

/// A local dim, made by `dims!(i, j);`. Each execution of that line makes a different type `B`.
///
/// `i` is a `&Dim<..>`, so it can be used as often as needed.
pub struct LocalDim<B> {
    cell: DimCell,
    brand: PhantomData<B>,
}

/// The condition that the local dim `B` can be used from another thread. It never holds.
#[diagnostic::on_unimplemented(
    message = "the local dim `{B}` stays in its thread",
    label = "call `dims!` in the other thread, or declare the dim: `dims! {{ struct Batch; }}`"
)]
pub trait InAnyThread<B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

// The cell already makes a dim `!Sync`. This impl replaces rustc's message about `Cell`.
#[expect(unsafe_code, reason = "the bound never holds, so no type becomes `Sync`")]
// SAFETY: `InAnyThread` has no impl here, and no other crate can write one, not even for its own
// dim, because it cannot name the type of `SEAL`. So the bound holds for no dim, and no `LocalDim`
// is `Sync`.
unsafe impl<B> Sync for LocalDim<B> where False: InAnyThread<B> {}

/// A local dim. rustc's messages show the longer name, because `Dim` could be ndarray's.
pub type Dim<B> = LocalDim<B>;

impl<B: Brand> Dim<B> {
    /// A dim without a size. Only for `dims!` and loop variables.
    #[doc(hidden)]
    pub fn minted(_: B::Anchor) -> Self {
        Dim {
            cell: Cell::new(SizeOfLocalDim { size: UNSIZED, origin: None, of: B::NAME }),
            brand: PhantomData,
        }
    }

    /// A dim with a size. Only for `dims!` and loop variables.
    #[doc(hidden)]
    #[track_caller]
    pub fn minted_with(anchor: B::Anchor, size: usize) -> Self {
        let dim = Self::minted(anchor);
        dim.cell.set(SizeOfLocalDim { size, origin: Some(Location::caller()), of: B::NAME });
        dim
    }

    /// The dim's size.
    ///
    /// # Panics
    ///
    /// If the dim is neither bound nor given a size.
    #[track_caller]
    pub fn size(&self) -> usize {
        unwrap(size_in(&self.cell).ok_or(DimError::Unsized { dim: B::NAME }))
    }

    /// The dim's size, if the dim is bound or given a size.
    pub fn try_size(&self) -> Option<usize> {
        size_in(&self.cell)
    }

    /// Gives the dim a size, as the first binding to an axis would.
    ///
    /// # Panics
    ///
    /// If the dim already has a different size.
    #[panicking_twin(but = "a different size is an error")]
    pub fn try_set_size(&self, size: usize) -> Result<(), DimError> {
        self.info_ref().unify(size, Some(Location::caller()))
    }

    pub(crate) fn key(&self) -> DimKey {
        self.info_ref().key()
    }

    fn info_ref(&self) -> DimInfo<'_> {
        DimInfo { cell: Some(&self.cell), ..KeyOf::<B>::info() }
    }
}

impl<B: Brand> fmt::Debug for Dim<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match size_in(&self.cell) {
            Some(size) => write!(f, "{} = {size}", B::NAME),
            None => write!(f, "{}", B::NAME),
        }
    }
}

/// A declared dim together with a size: `Batch.of(2)`.
///
/// You can pass it wherever you can pass a dim. If the tensor has the dim, the sizes must be equal:
/// otherwise you get a [`DimError::SizeConflict`] with both sizes and where they come from.
/// Operations that change a size, such as `slice` and `concat`, compare the given size with the
/// size in their result instead; `split` and `chunk` compare it with the size of the whole dim.
///
/// ```
/// use typed_dims::prelude::*;
///
/// dims! { pub struct Batch; pub struct Feat; }
/// let x = ones::<f32, _>((Batch.of(2), Feat.of(3)));
/// assert_eq!((&x).sum(Feat.of(3)).order(Batch.of(2)), ndarray::array![3.0, 3.0]);
/// let error = (&x).try_sum(Feat.of(7)).unwrap_err();
/// assert!(matches!(error, DimError::SizeConflict { first: 3, second: 7, .. }));
/// assert_eq!((&x).slice(Feat.of(2), 1..).size(Feat), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Of<D> {
    pub(crate) dim: D,
    pub(crate) size: usize,
    origin: &'static Location<'static>,
}

impl<D: Declared> Of<D> {
    /// The dim's size.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The dim without the size.
    pub fn dim(&self) -> D {
        self.dim
    }
}

/// Gives declared dims a size.
pub trait DimOf: Declared {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim with `size` elements.
    ///
    /// # Panics
    ///
    /// If the dim has another static size.
    #[track_caller]
    fn of(self, size: usize) -> Of<Self> {
        let origin = Location::caller();
        unwrap(self.info().unify(size, Some(origin)));
        Of { dim: self, size, origin }
    }
}

impl<D: Declared> DimOf for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A value that stands for one dim: `i`, `Batch`, `Batch.of(2)`, or a
/// [prime](crate::types::prime), such as `prime(i)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim",
    label = "a dim is expected here",
    note = "pass a dim by its name: `Batch` if it is declared, `i` after `dims!(i);`",
    note = "a new dim with its size is `Batch.of(3)`; for several dims, call the method for each, or `rename_all`"
)]
pub trait DimRef: Copy {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The dim's type.
    type Brand: Brand;

    /// [`NoSize`] for a declared dim without `of`. `()` for other values, which can have a size.
    #[doc(hidden)]
    type Open: Open;

    /// The value that stands for the dim's [prime](crate::types::prime).
    type Prime: DimRef<Brand = Prime<Self::Brand>>;

    /// Whether each value carries a size, to be compared with that of a tensor's dim.
    #[doc(hidden)]
    const GIVES_SIZE: bool = false;

    /// See [`prime`](crate::types::prime::prime).
    #[doc(hidden)]
    fn primed(self) -> Self::Prime;

    /// The facts about the dim.
    #[doc(hidden)]
    fn info<'a>(self) -> DimInfo<'a>
    where
        Self: 'a;

    /// The size, if it is known without looking at any tensor.
    #[doc(hidden)]
    #[cfg_attr(not(unoptimized), inline(always))]
    fn known_size(self) -> Option<usize> {
        self.info().size()
    }
}

#[diagnostic::do_not_recommend]
impl<'b, B: Brand> DimRef for &'b Dim<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brand = B;
    type Open = ();
    type Prime = LocalPrime<'b, Prime<B>>;

    fn primed(self) -> Self::Prime {
        LocalPrime::of(&self.cell)
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn info<'a>(self) -> DimInfo<'a>
    where
        Self: 'a,
    {
        DimInfo { cell: Some(&self.cell), ..KeyOf::<B>::info() }
    }
}

#[diagnostic::do_not_recommend]
impl<D: Declared> DimRef for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brand = D;
    type Open = NoSize<D>;
    type Prime = Prime<D>;

    fn primed(self) -> Prime<D> {
        Prime::VALUE
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn info<'a>(self) -> DimInfo<'a>
    where
        Self: 'a,
    {
        KeyOf::<D>::info()
    }
}

#[diagnostic::do_not_recommend]
impl<D: Declared> DimRef for Of<D> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brand = D;
    type Open = ();
    type Prime = Of<Prime<D>>;
    const GIVES_SIZE: bool = true;

    fn primed(self) -> Of<Prime<D>> {
        Of { dim: Prime::VALUE, size: self.size, origin: self.origin }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn info<'a>(self) -> DimInfo<'a>
    where
        Self: 'a,
    {
        let given = Some((self.size, Some(self.origin)));
        DimInfo { given, ..KeyOf::<D>::info() }
    }
}

/// A size: a number, or a dim that has a size.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a size",
    label = "expected a dim that has a size, or a number of type `usize`"
)]
pub trait Extent {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The size, or an error if the dim has no size.
    #[doc(hidden)]
    fn extent(self) -> Result<usize, DimError>;
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> Extent for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn extent(self) -> Result<usize, DimError> {
        let info = self.info();
        info.size().ok_or(DimError::Unsized { dim: info.name })
    }
}

#[diagnostic::do_not_recommend]
impl Extent for usize {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;

    fn extent(self) -> Result<usize, DimError> {
        Ok(self)
    }
}

/// A dim or a tuple of dims, as reductions take them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dim or a tuple of dims",
    label = "a dim or a tuple of dims is expected here"
)]
pub trait DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The brands as nested pairs.
    #[doc(hidden)]
    type Brands: NestedPairs;

    /// The sizes of the brands.
    #[doc(hidden)]
    type Sizes;

    /// The run-time form of the brands.
    #[doc(hidden)]
    const KEYS: &'static Keys;

    /// Whether any of the dims carries a size.
    #[doc(hidden)]
    const GIVES_SIZE: bool;

    /// Calls `visit` with each dim in order.
    #[doc(hidden)]
    fn each<'a>(&'a self, visit: impl FnMut(DimInfo<'a>));
}

#[diagnostic::do_not_recommend]
impl<D: DimRef> DimList for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = (D::Brand, ());
    type Sizes = (<D::Brand as Brand>::Size,);
    const KEYS: &'static Keys = KeyOf::<D::Brand>::KEYS;
    const GIVES_SIZE: bool = D::GIVES_SIZE;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn each<'a>(&'a self, mut visit: impl FnMut(DimInfo<'a>)) {
        visit(self.info());
    }
}

macro_rules! lists {
    ($($d:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($d: DimRef),*> DimList for ($($d,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Brands = nested![$($d::Brand),*];
            type Sizes = ($(<$d::Brand as Brand>::Size,)*);
            const KEYS: &'static Keys = &Keys::EMPTY$(.join(KeyOf::<$d::Brand>::KEYS))*;
            const GIVES_SIZE: bool = false $(|| $d::GIVES_SIZE)*;

            #[cfg_attr(not(unoptimized), inline(always))]
            fn each<'a>(&'a self, mut visit: impl FnMut(DimInfo<'a>)) {
                $(visit(self.$n.info());)*
            }
        }
    };
}

each_tuple!(lists);

#[diagnostic::do_not_recommend]
impl DimList for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Sizes = ();
    const KEYS: &'static Keys = &Keys::EMPTY;
    const GIVES_SIZE: bool = false;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn each<'a>(&'a self, _: impl FnMut(DimInfo<'a>)) {}
}

/// A tuple of dims that stand for one axis each. Within the list of axes, a plain tuple splits one
/// axis in `at`, and becomes one axis in `order`. `Each((h, w))` is two axes in both. Where a tuple
/// of dims is expected (`sum`, `softmax`), `Each` works too.
///
/// `dims!(l: [3])` makes the dims `l0`, `l1` and `l2`, and `l`, which is `Each((l0, l1, l2))`.
///
/// ```
/// use typed_dims::prelude::*;
///
/// let images = ndarray::Array4::from_shape_fn((2, 3, 4, 5), |(b, c, h, w)| b + c + h * w);
/// dims!(b, c, space: [2]);
/// let x = images.at((b, c, space));                        // x[b, c, space0, space1]
/// assert_eq!(x.max(space).order((b, c)), ndarray::array![[12, 13, 14], [13, 14, 15]]);
/// assert_eq!(x.order((space, c, b)).dim(), (4, 5, 3, 2));
/// assert_eq!(x.order((space.0, c, b)).dim(), (20, 3, 2));  // the tuple itself is one axis
///
/// dims!(h, w);
/// assert_eq!(images.at((b, c, Each((h, w)))).order((b, c, Each((w, h)))).dim(), (2, 3, 5, 4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Each<L>(pub L);

#[diagnostic::do_not_recommend]
impl<L: DimList> DimList for Each<L> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = L::Brands;
    type Sizes = L::Sizes;
    const KEYS: &'static Keys = L::KEYS;
    const GIVES_SIZE: bool = L::GIVES_SIZE;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn each<'a>(&'a self, visit: impl FnMut(DimInfo<'a>)) {
        self.0.each(visit);
    }
}

/// A list that has only the [keys](DimList::KEYS) of two lists, concatenated.
pub(crate) struct JoinedKeys<C, K>(PhantomData<(C, K)>);

impl<C: DimList, K: DimList> DimList for JoinedKeys<C, K> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Brands = ();
    type Sizes = ();
    const KEYS: &'static Keys = &Keys::EMPTY.join(C::KEYS).join(K::KEYS);
    const GIVES_SIZE: bool = false;

    fn each<'a>(&'a self, _: impl FnMut(DimInfo<'a>)) {}
}

/// The anchor of a local dim's lifetime. Only for `dims!`.
#[doc(hidden)]
pub fn anchor<'id>() -> Id<'id> {
    Id(PhantomData)
}

/// An invariant lifetime, which [`tie`] makes unique: the technique of the crate `generativity`.
/// Memory safety does not depend on it, because sizes are compared whenever two tensors are
/// combined.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Id<'id>(PhantomData<fn(&'id ()) -> &'id ()>);

/// Ties a local dim's lifetime to the variable that holds the dim, and to the end of the scope.
/// Only for `dims!`.
///
/// The argument is the only borrow of that variable, so using the dim outside its block gives one
/// error.
#[doc(hidden)]
pub fn tie<'id, B: Brand<Anchor = Id<'id>>>(_: &'id LocalDim<B>) -> Tie<'id> {
    Tie(PhantomData)
}

/// Has drop glue, so the lifetime must end between the drop of this value and the drop of the dim's
/// variable. No other execution of `dims!` shares that point.
#[doc(hidden)]
pub struct Tie<'id>(PhantomData<&'id Id<'id>>);

impl Drop for Tie<'_> {
    #[cfg_attr(not(unoptimized), inline(always))]
    fn drop(&mut self) {}
}
