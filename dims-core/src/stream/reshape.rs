//! Reshapes, which keep the stride of the data dimension.
//!
//! The *stride* of an axis is the product of the sizes of all axes after it: `[(b * c) c 1]` for
//! `[a b c]`. It is not a stride in this computer's memory.

use super::Stream;
use super::axes::TakesPlaceOf;
use super::ledger::{CostClass, StreamShape};
use super::stride::WithStride;
use crate::bind::split::sizes_within;
use crate::error::DimError;
use crate::laid::SideBySide;
use crate::operators::restructure::names::PartsOf;
use crate::plan::shape::volume;
use crate::storage::shared::{SharedElements, contiguous};
use crate::types::brand::{Brand, DimInfo, Rest};
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::role::{RolesFlatten, RolesKept, RolesUnflatten};
use crate::types::set::Bool;
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::{AxisOf, DividesInto, MergesIn, Minus, NamedTwice, NamesSome, Shares};
use crate::types::set::{Dims, NamedOnce, NoDim, NotYetBound};
use crate::types::size::{ProductOf, SizeWith, SizesTogether};
use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use kernels::loops::axes::Sizes;
use kernels::scalar::Element;
use smallvec::SmallVec;
use twins::panicking_twin;

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// Splits one axis into several dims; the last dim varies fastest. One of their sizes may be
    /// unknown. If the axis is the data dimension, the last dim becomes the data dimension,
    /// which keeps the stride.
    ///
    /// ```text
    /// [a! (b * c)] -> [a! b c]       free
    /// [a (n * b)! c] -> [a n b! c]   compute: the extent of the data dimension changes
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct Whole; pub struct N; pub struct B = 3; pub struct C; }
    /// let x = ones::<f32, _>((A.of(2), Whole.of(6), C.of(5))).stream((A, Whole, C), Whole);
    /// let y: Stream<f32, (A, N, B, C), B> = x.unflatten(Whole, (N, B));
    /// assert_eq!(y.shape().to_string(), "[A=2 N=2 B!=3 C=5]");
    /// ```
    ///
    /// # Panics
    ///
    /// If the product of the sizes is not the size of `whole`, an unknown size cannot be inferred,
    /// a size given with `whole` is not its size, or the elements must be copied and do not fit
    /// into memory.
    #[panicking_twin]
    pub fn try_unflatten<W: AxisOf<L>, P: PartsOf<W> + TakesPlaceOf<W, L, D> + RolesUnflatten<W>>(
        &self,
        whole: W,
        parts: P,
    ) -> Result<Stream<T, P::Axes, P::Data>, DimError> {
        self.check_given(&whole)?;
        let at = Self::position(whole);
        let mut sizes: Sizes = self.data.sizes().collect();
        let own = sizes_within(whole.info().name, &parts, sizes[at], None)?;
        sizes.remove(at);
        sizes.insert_many(at, own);
        self.reshaped(&sizes, || format!("unflatten({}, {})", whole.info().name, tuple::<P>()))
    }

    /// Merges adjacent axes into one dim `whole`, whose size is the product of their sizes. If the
    /// last of them is the data dimension, `whole` becomes the data dimension. None of the others
    /// may be the data dimension, because its stride would change.
    ///
    /// ```text
    /// [a b! c] -> [(a * b)! c]   compute
    /// [a! b c] -> [a! (b * c)]   free
    /// [a b! c] -> [a (b * c)!]   is refused: the stride is c before, but 1 after
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct C; pub struct Both; }
    /// let x = ones::<f32, _>((A.of(2), B.of(3), C.of(5))).stream((A, B, C), B);
    /// let y: Stream<f32, (Both, C), Both> = x.flatten((A, B), Both);
    /// assert_eq!(y.shape().to_string(), "[Both!=6 C=5]");
    /// ```
    ///
    /// # Panics
    ///
    /// If `whole` has a different size, a size given with a part is not its size, the product of
    /// the sizes overflows, or the elements must be copied and do not fit into memory.
    #[panicking_twin]
    pub fn try_flatten<P: UnitesIn<L, D>, W: UnitedOf<P, L, D>>(
        &self,
        parts: P,
        whole: W,
    ) -> Result<Stream<T, W::Axes, W::Data>, DimError> {
        self.check_given(&parts)?;
        let parts = P::KEYS.as_slice();
        let first = parts.first().and_then(|key| L::KEYS.position(key)).expect("the parts are axes");
        let mut sizes: Sizes = self.data.sizes().collect();
        let flattened = volume(sizes.drain(first..first + parts.len()), 1);
        let flattened = flattened.ok_or_else(|| DimError::TooLarge { dims: self.shape().to_string() })?;
        whole.info().unify(flattened, None)?;
        sizes.insert(first, flattened);
        self.reshaped(&sizes, || format!("flatten({}, {})", tuple::<P>(), whole.info().name))
    }

    /// The elements in the same order with other axes. The data dimension of the result is the
    /// first axis with the stride of the old data dimension.
    ///
    /// rustc compares the strides: the product of the static sizes after the data dimension must
    /// not change, nor may the set of dims after it that have no static size. To flatten or
    /// unflatten dims without a static size after the data dimension, use
    /// [`flatten`](Stream::flatten) and [`unflatten`](Stream::unflatten), which keep the stride for
    /// all sizes. A dim that the stream already has keeps its size unless another size is given.
    /// One of the other dims may have an unknown size.
    ///
    /// ```text
    /// [a b c!] -> [b a c!]         the stride is 1 before and after
    /// [a (n * b)! c] -> [a n b! c] the stride is c before and after
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct Whole = 6; pub struct N = 2; pub struct B = 3; pub struct C = 5; }
    /// let x = ones::<f32, _>((A.of(2), Whole, C)).stream((A, Whole, C), Whole);
    /// let y: Stream<f32, (A, N, B, C), B> = x.reshape((A, N, B, C));
    /// assert_eq!(y.shape().to_string(), "[A=2 N=2 B!=3 C=5]");
    /// ```
    ///
    /// # Panics
    ///
    /// If the number of elements or, because of dynamic sizes, the stride of the data dimension
    /// would change, if an unknown size cannot be inferred, if a static dim or a new local dim is
    /// given a size other than its own, or if the elements must be copied and do not fit into
    /// memory.
    #[panicking_twin]
    pub fn try_reshape<P: ReshapeOf<L, D> + RolesKept<L>>(
        &self,
        axes: P,
    ) -> Result<Stream<T, P::Axes, P::Data>, DimError> {
        let own: Sizes = self.data.sizes().collect();
        let mut known: SmallVec<[Option<usize>; 8]> = SmallVec::new();
        axes.each(|dim| {
            let kept = L::KEYS.position(&dim.key()).map(|at| own[at]);
            known.push(dim.fixed.or(dim.given.map(|(size, _)| size)).or(kept).or(dim.size()));
        });
        let refused = |why: &str| {
            let names = P::KEYS.as_slice().iter().map(|key| key.name).zip(&known);
            let part = |(name, size): (&str, &Option<usize>)| match size {
                Some(size) => format!("{name}={size}"),
                None => name.to_owned(),
            };
            let to: Vec<String> = names.map(part).collect();
            DimError::Shape {
                what: format!("{} cannot be reshaped to [{}]: {why}", self.shape(), to.join(" ")),
            }
        };
        let elements = volume(own.iter().copied(), 1).ok_or_else(|| refused("it has too many elements"))?;
        let others = volume(known.iter().copied().flatten(), 1)
            .ok_or_else(|| refused("the product of the sizes is too large"))?;
        let left = match known.iter().filter(|size| size.is_none()).count() {
            0 if others == elements => 0,
            0 => return Err(refused("the numbers of elements differ")),
            1 if others == 0 => {
                return Err(refused("the other sizes multiply to 0, so the unknown one cannot be found"));
            }
            1 if elements % others != 0 => {
                return Err(refused("the product of the known sizes does not divide its number of elements"));
            }
            1 => elements / others,
            _ => return Err(refused("only one size can be inferred, but more are unknown")),
        };
        let sizes: Sizes = known.iter().map(|size| size.unwrap_or(left)).collect();
        let (mut at, mut unified) = (0, Ok(()));
        axes.each(|dim| {
            // A local dim remembers the size that it was bound with. An axis of the stream may have
            // another size.
            let cell = if L::KEYS.position(&dim.key()).is_some() { None } else { dim.cell };
            if unified.is_ok() {
                unified = DimInfo { cell, ..dim }.unify(sizes[at], None);
            }
            at += 1;
        });
        unified?;
        // The types do not rule out that dims without a static size, after the data dimension, have
        // been given other sizes.
        let stride = |sizes: &[usize], data: Option<usize>| {
            sizes[data.map_or(0, |at| at + 1)..].iter().product::<usize>()
        };
        let data = Stream::<T, P::Axes, P::Data>::DATA;
        if elements > 0 && stride(&own, Self::DATA) != stride(&sizes, data) {
            return Err(refused("the stride of the data dimension would change"));
        }
        self.reshaped(&sizes, || format!("reshape({})", tuple::<P>()))
    }

    /// The elements in the same order with axes of other sizes.
    fn reshaped<M: Dims, E: Brand>(
        &self,
        sizes: &[usize],
        operation: impl FnOnce() -> String,
    ) -> Result<Stream<T, M, E>, DimError> {
        let data = if self.data.is_contiguous() {
            self.data.with_axes(0, contiguous(sizes))
        } else {
            SharedElements::contiguous(self.to_vec()?, sizes)
        };
        let out = Stream::<T, M, E>::from_shared(data)?;
        let extent = |shape: &StreamShape| shape.data.map(|at| shape.axes[at].1);
        let same = extent(&self.shape()) == extent(&out.shape());
        out.note(if same { CostClass::Free } else { CostClass::Compute }, operation, || vec![self.shape()]);
        Ok(out)
    }
}

/// The names of dims in parentheses.
fn tuple<P: DimList>() -> String {
    let names: Vec<&str> = P::KEYS.as_slice().iter().map(|key| key.name).collect();
    format!("({})", names.join(", "))
}

/// Adjacent axes among `L` that can be flattened: the data dimension `D` is the last of them, or
/// not among them.
pub trait UnitesIn<L, D>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<P, L, D> UnitesIn<L, D> for P
where
    P: DimList<Brands: NestedPairs<IsEmpty: NamesSome<P>> + DividesInto<D, (), Behind: NestedPairs>>,
    L: Dims<List: MergesIn<P::Brands, Rest<()>, Holds: SideBySide<P, L>>>,
    // If the parts are not adjacent or not in order, no other mistake is reported.
    <Flattening<P, L> as Bool>::Implies<<HasData<P, D> as Bool>::Implies<NoneBehind<P, D>>>:
        StrideStays<P, L, D>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Whether the dims `P` are adjacent and in order in the axes `L`.
type Flattening<P, L> = <<L as Dims>::List as MergesIn<<P as DimList>::Brands, Rest<()>>>::Holds;
/// Whether the data dimension `D` is one of the dims `P`.
type HasData<P, D> = <<P as DimList>::Brands as DividesInto<D, ()>>::Holds;
/// Whether none of the dims `P` is after the data dimension `D`.
type NoneBehind<P, D> = <<<P as DimList>::Brands as DividesInto<D, ()>>::Behind as NestedPairs>::IsEmpty;

/// A dim that can replace the adjacent axes `P` among the axes `L` of a stream with the data
/// dimension `D`.
pub trait UnitedOf<P, L, D>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
    /// The data dimension afterwards.
    type Data: Brand;
}
impl<W, P, L, D> UnitedOf<P, L, D> for W
where
    W: DimRef,
    D: Brand,
    P: PartsOf<W> + RolesFlatten<W> + DimList<Brands: DividesInto<D, ()>>,
    L: Dims<List: MergesIn<P::Brands, W::Brand> + Minus<P::Brands>>,
    <L::List as Minus<P::Brands>>::Out: Shares<(W::Brand, ())>,
    NoDim<TakenName<L, P, W>>: NotYetBound<TakenName<L, P, W>, L>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = <<L::List as MergesIn<P::Brands, W::Brand>>::Out as List>::Tuple;
    type Data = <HasData<P, D> as Bool>::Pick<W::Brand, D>;
}

/// `W` if it is an axis outside `P`, or [`Nothing`](crate::types::set::Nothing).
type TakenName<L, P, W> =
    <<<L as Dims>::List as Minus<<P as DimList>::Brands>>::Out as Shares<(<W as DimRef>::Brand, ())>>::Found;

condition! {
    /// The condition that flattening `P` keeps the stride of the data dimension `D`.
    #[diagnostic::on_unimplemented(
        message = "flattening `{P}` would change the stride of the data dimension `{D}` of `{L}`",
        label = "the data dimension can only be the last of the dims that are flattened: `[a b! c] -> [a (b * c)!]` has the stride c before, 1 after"
    )]
    pub trait StrideStays<P, L, D> for True;
}

/// Dims that a stream with the axes `L` and the data dimension `D` can be reshaped to. One of them
/// has the stride of `D`.
pub trait ReshapeOf<L, D>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The axes afterwards.
    type Axes: Dims;
    /// The data dimension afterwards.
    type Data: Brand;
}
impl<P, L, D> ReshapeOf<L, D> for P
where
    D: Brand,
    L: Dims<List: DividesInto<D, (), Behind: SizesTogether> + SizesTogether<Unsized: NestedPairs>>,
    P: DimList<Brands: List + SizesTogether<Unsized: NestedPairs>>,
    ProductOf<P::Brands>: SizeWith<ProductOf<L::List>, MaySame: SameVolume<StreamAxes<P>, L>>,
    (): Shares<P::Brands>,
    NoDim<NamedTwice<P>>: NamedOnce<NamedTwice<P>, P>,
    P::Brands: WithStride<StaticStride<L, D>, OtherStride<L, D>, D, Holds: KeepsStride<StreamAxes<P>, L, D>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Axes = StreamAxes<P>;
    type Data = <P::Brands as WithStride<StaticStride<L, D>, OtherStride<L, D>, D>>::Data;
}

/// The dims `P` as the axes of a stream.
type StreamAxes<P> = <<P as DimList>::Brands as List>::Tuple;
/// The product of the static sizes after `D`.
type StaticStride<L, D> = <<<L as Dims>::List as DividesInto<D, ()>>::Behind as SizesTogether>::Volume;
/// The dims after `D` without a static size.
type OtherStride<L, D> = <<<L as Dims>::List as DividesInto<D, ()>>::Behind as SizesTogether>::Unsized;

condition! {
    /// The condition that the products of the sizes of `P` and `L` are equal, or one of them is not
    /// static.
    #[diagnostic::on_unimplemented(
        message = "`{P}` and `{L}` do not have the same number of elements",
        label = "a reshape keeps the number of elements"
    )]
    pub trait SameVolume<P, L> for True;
}

condition! {
    /// The condition that one of the axes `P` has the stride of the data dimension `D` among the
    /// axes `L`.
    #[diagnostic::on_unimplemented(
        message = "no axis of `{P}` has the stride that the data dimension `{D}` has in `{L}`",
        label = "a reshape keeps the stride of the data dimension: the product of the sizes after it",
        note = "dims without a static size after the data dimension must stay there; to flatten or unflatten them, use `flatten` and `unflatten`"
    )]
    pub trait KeepsStride<P, L, D> for True;
}
