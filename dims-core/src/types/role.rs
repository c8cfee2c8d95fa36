//! The *role* of a dim is what it means: ONNX's Dimension Denotation as a type.
//!
//! ```text
//! dims! {
//!     pub struct Batch: DataBatch;
//!     pub struct Channel: DataChannel = 64;
//!     pub struct Height: DataFeature;
//! }
//! ```
//!
//! **Definition**: a dim is declared with its role. **Propagation** follows from the types: an
//! operation may permute, reduce or create axes, but each dim of the result keeps the role it was
//! declared with. Renaming must keep the meaning, and so must splitting and merging:
//!
//! | operation | compiles if |
//! |---|---|
//! | `rename(old, new)`, and methods that give a part or a result a new dim, such as `slice_to` | `old` has the role of `new`, or one that refines it |
//! | `flatten(parts, whole)` | one of the parts has the role of `whole`, or one that refines it |
//! | `unflatten(whole, parts)` | `whole` has the role of one of the parts, or one that refines it |
//! | [`Stream::reshape`](crate::stream::Stream::reshape) | for each new dim, an old axis has its role, or one that refines it |
//! | an axis of a file, read as a dim | the axis has the role of the dim, or one that refines it (checked when the file is read) |
//! | [`redefine(old, new)`](crate::operators::restructure::Restructure::redefine) | always: it changes the meaning |
//!
//! A [prime](crate::types::prime) has the role of its dim. [`DataChannel`], [`FilterInChannel`] and
//! [`FilterOutChannel`] count as one role in this table: you can rename the `FilterOutChannel` of
//! one layer to the `DataChannel` of the next.
//!
//! **Verification** happens at operations that expect a role: pooling along a channel does not
//! compile.
//!
//! | operation | expects |
//! |---|---|
//! | pooling along dims | [`DataFeature`] |
//! | `conv` and `conv_transpose`, along dims | [`DataFeature`] |
//! | `conv` and `conv_transpose`, the channels that they sum over | [`AnyChannel`]: [`DataChannel`] or [`FilterInChannel`] |
//! | `conv` and `conv_transpose`, positions in the window | [`FilterSpatial`] |
//! | `batch_norm`, the dims that are not passed to it | [`DataChannel`] |
//! | [`scan`](crate::operators::scan::scan) over a dim | [`DataTime`] |
//!
//! A dim without a role is accepted everywhere. Declare your own roles with `roles!`. A role can
//! refine another:
//!
//! ```text
//! roles! {
//!     /// A position in a picture.
//!     pub struct Pixel: DataFeature;
//! }
//! ```
//!
//! A dim of the role `Pixel` is accepted where a `DataFeature` is expected. Your functions can
//! expect a `Pixel`, or a role that refines it, with `D: Plays<Pixel>`.

use crate::types::brand::{Brand, CompareKeys, Rest, digits::*};
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::OfTypes;
use crate::types::set::remove::{ListWithout, Removal, Remove};
use crate::types::set::{Bool, Dims, Fails, False, FirstWith, MaybeDim, NoDim, Satisfies, True};
use core::marker::PhantomData;

/// The role of a dim.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a role",
    label = "a role is expected here",
    note = "roles are `DataBatch`, `DataChannel`, .., and those of `roles! {{ pub struct Pixel: DataFeature; }}`; a dim without a role has no `:`, as in `pub struct Heads = 12;`"
)]
pub trait Role: Sized + 'static {
    /// Its name and the names of the roles that it refines, nearest first. ONNX's roles have ONNX's
    /// names: `DATA_CHANNEL`.
    const NAMES: &'static [&'static str] = {
        let (names, _) =
            <<Self as WithPath>::Path as Names>::ALL.split_at(<<Self as WithPath>::Path as Names>::COUNT);
        names
    };
    /// Its own name.
    #[doc(hidden)]
    const NAME: &'static str;
    /// The role that it refines, or [`Undenoted`].
    #[doc(hidden)]
    type Refined: RefinedBy<Self>;
    /// [`IsDeclared`], or [`Undenoted`].
    #[doc(hidden)]
    type Kind: OnPath;
    /// The role itself. `roles!` names a refined role through this type, so that a type that is not
    /// a role causes no further errors.
    #[doc(hidden)]
    type Itself: Role;
}

/// A role that was declared: it can be compared with others.
pub trait DeclaredRole: Role {
    /// The digits that identify the role.
    #[doc(hidden)]
    type Key;
}

/// The maximum length of a chain of refinements. Without a maximum, the path of roles that refine
/// one another in a cycle would never end.
pub const MOST_REFINED: usize = 16;

/// One step for the role itself, [`MOST_REFINED`] for those it refines, and one for the end.
type RoleSteps = (((((((((((((((((((),),),),),),),),),),),),),),),),),),);

/// Steps along the roles that a role refines.
pub trait RoleWalk {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The role and those that it refines, as nested pairs; truncated where the steps end.
    type Path<R: Role>: Names;
    /// [`True`] if the path is not truncated.
    type Ends<R: Role>;
}
impl RoleWalk for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path<R: Role> = ();
    type Ends<R: Role> = False;
}
impl<N: RoleWalk> RoleWalk for (N,) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path<R: Role> = <R::Kind as OnPath>::Path<R, N>;
    type Ends<R: Role> = <R::Kind as OnPath>::Ends<R, N>;
}

/// The path of a role `R` of this kind, with `N` further steps.
pub trait OnPath {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// See [`RoleWalk`].
    type Path<R: Role, N: RoleWalk>: Names;
    /// See [`RoleWalk`].
    type Ends<R: Role, N: RoleWalk>;
}
impl OnPath for Undenoted {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path<R: Role, N: RoleWalk> = ();
    type Ends<R: Role, N: RoleWalk> = True;
}
/// The kind of a declared role.
pub struct IsDeclared;
impl OnPath for IsDeclared {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path<R: Role, N: RoleWalk> = (R, N::Path<R::Refined>);
    type Ends<R: Role, N: RoleWalk> = N::Ends<R::Refined>;
}

/// A role with its path: itself and the roles that it refines, as nested pairs.
#[diagnostic::on_unimplemented(
    message = "the role `{Self}` of a generic dim is not known",
    label = "this needs the dim's role",
    note = "write `D: AnyDim + Brand<Role = Undenoted>`, with `use typed_dims::types::{{brand::Brand, role::Undenoted}};`"
)]
pub trait WithPath: Role {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The path.
    type Path: Names;
}
#[diagnostic::do_not_recommend]
impl<R: Role> WithPath for R {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path = <RoleSteps as RoleWalk>::Path<R>;
}

/// A role that the role `R` can refine without a cycle.
pub trait RefinedBy<R>: Role {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<F: Role, R: Role> RefinedBy<R> for F
where
    <RoleSteps as RoleWalk>::Ends<R>: EndsSomewhere<R>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the chain of roles that `R` refines ends.
    #[diagnostic::on_unimplemented(
        message = "the role `{R}` refines itself, or more than 16 other roles, one through another",
        label = "the chain of roles that starts at `{R}` is a cycle or too long"
    )]
    pub trait EndsSomewhere<R> for True;
}

/// The names on a path of roles.
pub trait Names: NestedPairs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The number of names.
    const COUNT: usize;
    /// The names, padded with empty ones.
    const ALL: &'static [&'static str; MOST_REFINED + 2];
}
impl Names for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const COUNT: usize = 0;
    const ALL: &'static [&'static str; MOST_REFINED + 2] = &[""; MOST_REFINED + 2];
}
impl<H: Role, T: Names> Names for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    const COUNT: usize = T::COUNT + 1;
    const ALL: &'static [&'static str; MOST_REFINED + 2] = &prepended(H::NAME, T::ALL);
}

/// The names with `first` in front and without the last one.
const fn prepended<const N: usize>(first: &'static str, others: &[&'static str; N]) -> [&'static str; N] {
    let mut names = [first; N];
    let mut at = 1;
    while at < N {
        names[at] = others[at - 1];
        at += 1;
    }
    names
}

/// The names of a role, for `dims!`.
#[doc(hidden)]
pub const fn role_names<R: Role>() -> &'static [&'static str] {
    R::NAMES
}

/// No role: the role of a dim declared without one. It is accepted everywhere.
pub struct Undenoted;

#[diagnostic::do_not_recommend]
impl Role for Undenoted {
    const NAME: &'static str = "";
    type Refined = Undenoted;
    type Kind = Undenoted;
    type Itself = Undenoted;
}

macro_rules! standard {
    ($($(#[$doc:meta])* $name:ident $text:literal $digit:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        #[diagnostic::do_not_recommend]
        impl Role for $name {
            const NAME: &'static str = $text;
            type Refined = Undenoted;
            type Kind = IsDeclared;
            type Itself = $name;
        }

        impl DeclaredRole for $name {
            // Roles that are declared elsewhere start with other digits: see `key.rs` of the
            // macros.
            type Key = H15<H15<H15<$digit<()>>>>;
        }
    )*};
}

standard! {
    /// `DATA_BATCH`: examples, the `N` of `NCHW`.
    DataBatch "DATA_BATCH" H0;
    /// `DATA_CHANNEL`: channels of the data, the `C` of `NCHW`.
    DataChannel "DATA_CHANNEL" H1;
    /// `DATA_TIME`: time steps.
    DataTime "DATA_TIME" H2;
    /// `DATA_FEATURE`: positions in space, the `H` and `W` of `NCHW`, or the features of a
    /// recurrent network.
    DataFeature "DATA_FEATURE" H3;
    /// `FILTER_IN_CHANNEL`: channels that a filter takes.
    FilterInChannel "FILTER_IN_CHANNEL" H4;
    /// `FILTER_OUT_CHANNEL`: channels that a filter yields.
    FilterOutChannel "FILTER_OUT_CHANNEL" H5;
    /// `FILTER_SPATIAL`: positions in a filter's window.
    FilterSpatial "FILTER_SPATIAL" H6;
}

/// [`DataChannel`] or [`FilterInChannel`]: the role expected of the dim that a convolution
/// contracts and that the data and the filter share.
pub struct AnyChannel;

/// The condition that a path of roles contains `E`.
pub struct Refines<E>(PhantomData<E>);

#[diagnostic::do_not_recommend]
impl<E: DeclaredRole> Satisfies<Refines<E>> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = False;
}

#[diagnostic::do_not_recommend]
impl<H, T, E> Satisfies<Refines<E>> for (H, T)
where
    H: DeclaredRole<Key: CompareKeys<E::Key, Out: Satisfies<OfTypes<H, E>>>>,
    T: Satisfies<Refines<E>>,
    E: DeclaredRole,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds =
        <<<H::Key as CompareKeys<E::Key>>::Out as Satisfies<OfTypes<H, E>>>::Holds as Bool>::Or<T::Holds>;
}

#[diagnostic::do_not_recommend]
impl<P> Satisfies<Refines<AnyChannel>> for P
where
    P: Satisfies<Refines<DataChannel>> + Satisfies<Refines<FilterInChannel>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <<P as Satisfies<Refines<DataChannel>>>::Holds as Bool>::Or<
        <P as Satisfies<Refines<FilterInChannel>>>::Holds,
    >;
}

/// The condition that an element of a set plays the role `E`: the element has the role, a role that
/// refines it, or no role.
pub struct OfRole<E>(PhantomData<E>);

#[diagnostic::do_not_recommend]
impl<D, E> Satisfies<OfRole<E>> for D
where
    D: Brand<Role: WithPath<Path: Satisfies<Refines<E>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds =
        <<PathOf<D> as NestedPairs>::IsEmpty as Bool>::Or<<PathOf<D> as Satisfies<Refines<E>>>::Holds>;
}

// The dims behind a `Rest` are not checked: the caller chose them.
#[diagnostic::do_not_recommend]
impl<B: Dims, E> Satisfies<OfRole<E>> for Rest<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = True;
}

/// Channels of any kind: of data, or those that a filter takes or yields.
pub struct EveryChannel;

#[diagnostic::do_not_recommend]
impl<P> Satisfies<Refines<EveryChannel>> for P
where
    P: Satisfies<Refines<AnyChannel>> + Satisfies<Refines<FilterOutChannel>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <<P as Satisfies<Refines<AnyChannel>>>::Holds as Bool>::Or<
        <P as Satisfies<Refines<FilterOutChannel>>>::Holds,
    >;
}

/// The condition that a dim with this path of roles means what a dim with the path `Q` does: one of
/// the paths is empty, this path contains the first role of `Q`, or this path contains a channel
/// and the first role of `Q` is a channel.
pub struct Means<Q>(PhantomData<Q>);

impl<Q> Satisfies<Means<Q>> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = True;
}

#[diagnostic::do_not_recommend]
impl<H, T> Satisfies<Means<()>> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = True;
}

#[diagnostic::do_not_recommend]
impl<H, T, R, U> Satisfies<Means<(R, U)>> for (H, T)
where
    (H, T): Satisfies<Refines<R>> + Satisfies<Refines<EveryChannel>>,
    (R, ()): Satisfies<Refines<EveryChannel>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <<(H, T) as Satisfies<Refines<R>>>::Holds as Bool>::Or<ChannelsBoth<(H, T), R>>;
}

/// Whether the role itself is a channel.
type IsChannel<R> = <(R, ()) as Satisfies<Refines<EveryChannel>>>::Holds;

type ChannelsBoth<P, R> = <<P as Satisfies<Refines<EveryChannel>>>::Holds as Bool>::And<IsChannel<R>>;

/// [`Means`] at run time. `there` and `here` are the [names of the roles](Role::NAMES) of an axis
/// in a file and of the dim that it is read as.
#[cfg(any(feature = "safetensors", feature = "npy"))]
pub(crate) fn means<R: AsRef<str>>(there: &[R], here: &[&str]) -> bool {
    const CHANNELS: [&str; 3] = ["DATA_CHANNEL", "FILTER_IN_CHANNEL", "FILTER_OUT_CHANNEL"];
    let refines = |role: &str| there.iter().any(|own| own.as_ref() == role);
    match here.first() {
        None => true,
        Some(_) if there.is_empty() => true,
        Some(here) => refines(here) || CHANNELS.contains(here) && CHANNELS.iter().any(|role| refines(role)),
    }
}

type PathOf<D> = <<D as Brand>::Role as WithPath>::Path;

/// [`Means`] for the brand `Old` renamed to `New`.
type Renamed<Old, New> = <PathOf<Old> as Satisfies<Means<PathOf<New>>>>::Holds;

/// [`True`] if the list `L` does not have the brand `D`.
type Free<D, L> = <<<L as Remove<D>>::Out as Removal>::Had as Bool>::Not;

/// A name for the dim `Old` that keeps its meaning: see the [table](self). If the set `S` already
/// has another dim with this name, rustc reports only the duplicate.
pub trait KeepsRole<Old, S = ()>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<New, Old, S: Dims> KeepsRole<Old, S> for New
where
    Old: DimRef<Brand: Brand<Role: WithPath<Path: Satisfies<Means<PathOf<New::Brand>>>>>>,
    New: DimRef<Brand: Brand<Role: WithPath>>,
    S::List: Remove<Old::Brand, Out: Removal>,
    ListWithout<S, <Old as DimRef>::Brand>: Remove<New::Brand, Out: Removal>,
    <Free<New::Brand, ListWithout<S, <Old as DimRef>::Brand>> as Bool>::Implies<
        Renamed<Old::Brand, New::Brand>,
    >: SameMeaning<Old::Brand, New::Brand, <Old::Brand as Brand>::Role, <New::Brand as Brand>::Role>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the dim `Old` with the role `R` means what `New` with the role `Q` does.
    #[diagnostic::on_unimplemented(
        message = "dimension `{Old}` has the role `{R}`, but its new name `{New}` has the role `{Q}`",
        label = "expected a dim with the role `{R}` or without a role; to change the meaning: `.redefine(old, new)`"
    )]
    pub trait SameMeaning<Old, New, R, Q> for True;
}

/// Compares the meanings of the brands of a list with that of the brand `W`.
pub trait Meanings<W> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] if one brand of the list means what `W` does, or the list is empty.
    type AnyMeans: Bool;
    /// [`True`] if `W` means what one brand of the list does, or the list is empty.
    type MeantByAny: Bool;
}
impl<W> Meanings<W> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type AnyMeans = True;
    type MeantByAny = True;
}
#[diagnostic::do_not_recommend]
impl<H, W> Meanings<W> for (H, ())
where
    H: Brand<Role: WithPath<Path: Satisfies<Means<PathOf<W>>>>>,
    W: Brand<Role: WithPath<Path: Satisfies<Means<PathOf<H>>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type AnyMeans = Renamed<H, W>;
    type MeantByAny = Renamed<W, H>;
}
#[diagnostic::do_not_recommend]
impl<H, G, T, W> Meanings<W> for (H, (G, T))
where
    H: Brand<Role: WithPath<Path: Satisfies<Means<PathOf<W>>>>>,
    W: Brand<Role: WithPath<Path: Satisfies<Means<PathOf<H>>>>>,
    (G, T): Meanings<W>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type AnyMeans = <Renamed<H, W> as Bool>::Or<<(G, T) as Meanings<W>>::AnyMeans>;
    type MeantByAny = <Renamed<W, H> as Bool>::Or<<(G, T) as Meanings<W>>::MeantByAny>;
}

type NamesOf<P> = <<P as DimList>::Brands as List>::Tuple;

/// Dims that can be flattened into the dim `W`: one of them means what `W` does. See the
/// [table](self).
pub trait RolesFlatten<W>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<P, W> RolesFlatten<W> for P
where
    W: DimRef,
    P: DimList<
        Brands: Meanings<W::Brand, AnyMeans: MeaningKept<NamesOf<P>, W::Brand, <W::Brand as Brand>::Role>>
                    + List,
    >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the meaning is kept when dims `P` become the dim `W` with the role `R`,
    /// or the reverse.
    #[diagnostic::on_unimplemented(
        message = "`{W}` has the role `{R}`, which none of `{P}` has",
        label = "one of them must have the role `{R}` or no role; to change the meaning: `.redefine(old, new)`"
    )]
    pub trait MeaningKept<P, W, R> for True;
}

/// Dims that the dim `W` can be unflattened into: `W` means what one of them does. See the
/// [table](self).
pub trait RolesUnflatten<W>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<P, W> RolesUnflatten<W> for P
where
    W: DimRef,
    P: DimList<
        Brands: Meanings<
            W::Brand,
            MeantByAny: MeaningKept<NamesOf<P>, W::Brand, <W::Brand as Brand>::Role>,
        > + List,
    >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The condition that one brand of the list `L` means what this brand does.
pub struct MeansOneOf<L>(PhantomData<L>);

#[diagnostic::do_not_recommend]
impl<D, L: Meanings<D>> Satisfies<MeansOneOf<L>> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = L::AnyMeans;
}

/// Dims that can replace a tensor's axes `L`: for each dim, an axis means what the dim does.
pub trait RolesKept<L>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<P, L> RolesKept<L> for P
where
    L: Dims,
    P: DimList<Brands: FirstWith<Fails<MeansOneOf<L::List>>>>,
    NoDim<Unmeant<P, L>>: MeaningKept<L, Unmeant<P, L>, <Unmeant<P, L> as MaybeDim>::Role>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first brand of the dims `P` whose meaning no axis of `L` has.
type Unmeant<P, L> = <<P as DimList>::Brands as FirstWith<Fails<MeansOneOf<<L as Dims>::List>>>>::Found;

/// The dims play the role `E`: each dim has the role, a role that refines it, or no role.
///
/// Use it as a bound of your own functions: `fn blur<D: Plays<Pixel> + DimsOf<..>, ..>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` lacks the role `{E}`",
    label = "expected dims with the role `{E}` or without a role",
    note = "if this is a window over a generic dim, it needs the bounds `D: AnyDim + Brand<Size = Dyn, Role = Undenoted>`, with `use typed_dims::types::{{brand::Brand, role::Undenoted, size::Dyn}};`"
)]
pub trait Plays<E>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<L, E> Plays<E> for L
where
    L: DimList<Brands: FirstWith<Fails<OfRole<E>>>>,
    NoDim<First<L, E>>: Expected<First<L, E>, <First<L, E> as MaybeDim>::Role, E>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first dim of a list that does not play the role `E`.
type First<L, E> = <<L as DimList>::Brands as FirstWith<Fails<OfRole<E>>>>::Found;

/// All dims of the set [play](Plays) the role `E`.
pub trait AllPlay<E>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<S, E> AllPlay<E> for S
where
    S: Dims<List: FirstWith<Fails<OfRole<E>>>>,
    NoDim<FirstOf<S, E>>: Expected<FirstOf<S, E>, <FirstOf<S, E> as MaybeDim>::Role, E>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first dim of a set that does not play the role `E`.
type FirstOf<S, E> = <<S as Dims>::List as FirstWith<Fails<OfRole<E>>>>::Found;

condition! {
    /// The condition that the dim `D` with the role `R` plays `E`.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` has the role `{R}`, but `{E}` is expected here",
        label = "expected the role `{E}`, or no role"
    )]
    pub trait Expected<D, R, E> for True;
}
