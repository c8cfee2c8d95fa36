//! Merging adjacent axes of a layout into one dim, and splitting a dim into adjacent axes.

use super::{Laid, ListOf, Memory};
use crate::bind::split::sizes_within;
use crate::error::{DimError, list_sizes};
use crate::operators::restructure::names::PartsOf;
use crate::plan::axes::AxisList;
use crate::plan::shape::volume;
use crate::tensors::named::Named;
use crate::types::brand::Rest;
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::role::{RolesFlatten, RolesUnflatten};
use crate::types::set::distinct::{Once, SortOnce};
use crate::types::set::list::NestedPairs;
use crate::types::set::ordered::{AxisOf, DividesInto, InPlaceOf, MergesIn, Minus, NamesSome, Shares};
use crate::types::set::{Dims, NoDim, NotYetBound, SetOf};
use kernels::scalar::Element;
use twins::panicking_twin;

impl<T: Element, L: SetOf + Dims, M: Memory<Elem = T>> Laid<T, L, M> {
    /// Merges adjacent axes into one dim `whole`, whose size is the product of their sizes:
    /// `(N, H, W, C)` with `(H, W)` as `Pixel` becomes `(N, Pixel, C)`. The type proves that no
    /// elements move.
    ///
    /// # Panics
    ///
    /// If `whole` has a size other than the product, other sizes do not match, or the product
    /// overflows.
    #[panicking_twin]
    pub fn try_flatten<P: Neighbors<L>, W: UnionOf<P, L>>(
        self,
        parts: P,
        whole: W,
    ) -> Result<Laid<T, W::Axes, M>, DimError> {
        self.0.unified_shape()?.check_all_given(&parts)?;
        let mut sizes = self.sizes();
        let parts = P::KEYS.as_slice();
        let first =
            parts.first().and_then(|key| L::KEYS.position(key)).expect("the parts are axes of the tensor");
        let parts = first..first + parts.len();
        let Some(size) = volume(sizes[parts.clone()].iter().copied(), 1) else {
            let names = L::KEYS.as_slice()[parts.clone()].iter().map(|key| key.name);
            return Err(DimError::TooLarge { dims: list_sizes(names.zip(sizes[parts].iter().copied())) });
        };
        sizes.drain(parts);
        whole.info().unify(size, None)?;
        sizes.insert(first, size);
        self.with_axes(&sizes)
    }

    /// Splits one axis into the dims `parts`, the last one fastest. One of their sizes may be
    /// unknown. `(N, Pixel, C)` with `Pixel` as `(H, W)` becomes `(N, H, W, C)`. The type proves
    /// that no elements move.
    ///
    /// # Panics
    ///
    /// If the sizes of `parts` do not fit the axis, more than one of them is unknown, or other sizes
    /// do not match.
    #[panicking_twin]
    pub fn try_unflatten<W: AxisOf<L>, P: PartsOf<W> + InPlaceOf<W, L> + RolesUnflatten<W>>(
        self,
        whole: W,
        parts: P,
    ) -> Result<Laid<T, Divided<L, W, P>, M>, DimError>
    where
        ListOf<L>: DividesInto<W::Brand, P::Brands, Out: SortOnce>,
        Divided<L, W, P>: SetOf + Dims,
    {
        self.0.unified_shape()?.check_given(&whole.info())?;
        let mut sizes = self.sizes();
        let at = L::KEYS.position(&whole.info().key()).expect("the dim is an axis of the tensor");
        let own = sizes_within(whole.info().name, &parts, sizes[at], None)?;
        sizes.splice(at..=at, own);
        self.with_axes(&sizes)
    }

    /// The same elements with other axes, whose `sizes` are in memory order.
    #[track_caller]
    fn with_axes<N: SetOf + Dims>(self, sizes: &[usize]) -> Result<Laid<T, N, M>, DimError> {
        N::KEYS.check_primes(|at| (sizes[at], None))?;
        let order = const { &AxisList::of(N::KEYS, <N::Set as Dims>::KEYS) }.as_slice();
        Ok(Laid(Named::from_expr(M::with_axes::<L::Set, N::Set>(self.0.expr, order, sizes))))
    }
}

/// The order `L` with the dim `W` replaced by the dims `P`.
pub type Divided<L, W, P> = Once<DividedList<L, W, P>>;

/// Dims that are adjacent in the layout `L`, in this order.
pub trait Neighbors<L>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<P, L> Neighbors<L> for P
where
    P: DimList<Brands: NestedPairs<IsEmpty: NamesSome<P>>>,
    L: Dims<List: MergesIn<P::Brands, Rest<()>, Holds: SideBySide<P, L>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the dims `P` are adjacent in `L`.
    #[diagnostic::on_unimplemented(
        message = "`{P}` are not neighbors, in this order, in the layout `{L}`",
        label = "only adjacent axes can be flattened without moving elements"
    )]
    pub trait SideBySide<P, L> for True;
}

/// A dim that can replace the adjacent dims `P` in the layout `L`: no other axis has it.
pub trait UnionOf<P, L>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The order `L` with this dim in place of `P`.
    type Axes: SetOf + Dims;
}
impl<W, P, L> UnionOf<P, L> for W
where
    W: DimRef,
    P: PartsOf<W> + RolesFlatten<W>,
    L: Dims<List: MergesIn<P::Brands, W::Brand, Out: SortOnce> + Minus<P::Brands>>,
    Once<Flattened<L, P, W>>: SetOf,
    <ListOf<L> as Minus<P::Brands>>::Out: Shares<(W::Brand, ())>,
    NoDim<TakenBeside<L, P, (W::Brand, ())>>: NotYetBound<TakenBeside<L, P, (W::Brand, ())>, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = Once<Flattened<L, P, W>>;
}

/// The order `L` with the dim `W` in place of `P`.
type Flattened<L, P, W> = <ListOf<L> as MergesIn<<P as DimList>::Brands, <W as DimRef>::Brand>>::Out;

/// The first brand of `B` that is an axis of `L` outside `P`, or
/// [`Nothing`](crate::types::set::Nothing).
type TakenBeside<L, P, B> = <<ListOf<L> as Minus<<P as DimList>::Brands>>::Out as Shares<B>>::Found;

/// The axes of [`Divided`], as nested pairs.
type DividedList<L, W, P> = <ListOf<L> as DividesInto<<W as DimRef>::Brand, <P as DimList>::Brands>>::Out;
