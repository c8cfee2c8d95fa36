//! What a dim means: its *role*, the Dimension Denotation of ONNX as a type.
//!
//! ```text
//! dims! {
//!     pub struct Batch: DataBatch;
//!     pub struct Channel: DataChannel = 64;
//!     pub struct Height: DataFeature;
//! }
//! ```
//!
//! **Definition** is on the dim. **Propagation** is by construction: whatever permutes, reduces or creates axes, each dim of the result is
//! one whose role is known from where it was declared. Another name keeps what a dim means, and so do parts and wholes:
//!
//! | operation | compiles if |
//! |---|---|
//! | `rename(old, new)` | `old` means what `new` does: it has the same role, or one that refines it |
//! | `flatten(parts, whole)` | one of the parts means what `whole` does |
//! | `unflatten(whole, parts)` | `whole` means what one of the parts does |
//! | [`Stream::reshape`](crate::stream::Stream::reshape) | each new dim means what one of the axes before does |
//! | an axis of a file, read as a dim | the axis means what the dim does (found when the file is read) |
//! | [`redefine(old, new)`](crate::operators::restructure::Restructure::redefine) | always: this is how to say that a dim means something else from here on |
//!
//! A dim without a role on either side is always accepted, and so are [`DataChannel`], [`FilterInChannel`] and [`FilterOutChannel`] for one another: they are
//! defined as the channels of what a filter takes and yields, so one layer's `FilterOutChannel` is the next one's `DataChannel`.
//!
//! **Verification** is where an operation expects a role: pooling along a channel does not compile.
//!
//! | operation | expects |
//! |---|---|
//! | pooling along dims | [`DataFeature`] |
//! | `conv`, along dims | [`DataFeature`] |
//! | `conv`, its channels | [`AnyChannel`]: [`DataChannel`] or [`FilterInChannel`] |
//! | `conv`, positions in the window | [`FilterSpatial`] |
//! | `batch_norm`, what is left | [`DataChannel`] |
//! | [`scan`](crate::operators::scan::scan) over a dim | [`DataTime`] |
//!
//! A dim without a role is accepted everywhere. Roles of one's own are declared by `roles!`, and can refine another:
//!
//! ```text
//! roles! {
//!     /// A position in a picture.
//!     pub struct Pixel: DataFeature;
//! }
//! ```
//!
//! A dim of the role `Pixel` is accepted where a `DataFeature` is expected, and a function of one's own can expect a `Pixel`, or what
//! refines it: `D: Plays<Pixel>`.

use crate::types::brand::{Brand, CompareKeys, Rest, digits::*};
use crate::types::condition::condition;
use crate::types::dim::{DimList, DimRef};
use crate::types::set::list::{List, NestedPairs};
use crate::types::set::ordered::Same;
use crate::types::set::remove::{RemovalStep, Remove};
use crate::types::set::{Bool, Dims, Fails, False, FirstWith, MaybeDim, NoDim, Satisfies, True};
use core::marker::PhantomData;

/// The role of a dim.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a role",
    label = "a role is expected here",
    note = "roles are `DataBatch`, `DataChannel`, .., and those of `roles! {{ pub struct Pixel: DataFeature; }}`; write a size after `=`"
)]
pub trait Role: Sized + 'static {
    /// Its name, and the names of the roles that it refines, from the nearest on. Those of ONNX are written as there: `DATA_CHANNEL`.
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
    /// The role itself: as `roles!` names the one that another refines, so that what is none has no further consequence.
    #[doc(hidden)]
    type Itself: Role;
}

/// A role that was declared: it can be compared with others.
pub trait DeclaredRole: Role {
    /// The digits that tell the role from others.
    #[doc(hidden)]
    type Key;
}

/// How many roles a role can refine, one after the other. The path of roles that refine one another in a circle would never end.
pub const MOST_REFINED: usize = 16;

/// A step for the role itself, [`MOST_REFINED`] for others, and one for the end.
type RoleSteps = (((((((((((((((((((),),),),),),),),),),),),),),),),),),);

/// Steps along the roles that a role refines.
pub trait RoleWalk {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The role and those that it refines, as nested pairs; cut off where there are no more steps.
    type Path<R: Role>: Names;
    /// [`True`] if the path is not cut off.
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

/// The path of the role `R`, with `N` further steps.
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
/// The kind of role that was declared.
pub struct IsDeclared;
impl OnPath for IsDeclared {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Path<R: Role, N: RoleWalk> = (R, N::Path<R::Refined>);
    type Ends<R: Role, N: RoleWalk> = N::Ends<R::Refined>;
}

/// A role with its path: itself and the roles that it refines, as nested pairs.
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

/// A role that the role `R` can refine: this leads to no circle.
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
    /// The condition that the roles that `R` refines end somewhere.
    #[diagnostic::on_unimplemented(
        message = "the role `{R}` refines itself, or its chain of roles is longer than 16",
        label = "the chain of roles that starts at `{R}` does not end"
    )]
    pub trait EndsSomewhere<R> for True;
}

/// The names on a path of roles.
pub trait Names: NestedPairs {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// How many there are.
    const COUNT: usize;
    /// The names, and nothing behind them.
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

/// Names with another one in front, and without the last.
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

/// No role: what a dim has that was declared without one. It is accepted everywhere.
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
            // Roles that are declared elsewhere start with other digits: see `key.rs` of the macros.
            type Key = H15<H15<H15<$digit<()>>>>;
        }
    )*};
}

standard! {
    /// `DATA_BATCH`: examples, the `N` of `NCHW`.
    DataBatch "DATA_BATCH" H0;
    /// `DATA_CHANNEL`: channels of the data, the `C` of `NCHW`.
    DataChannel "DATA_CHANNEL" H1;
    /// `DATA_TIME`: steps of time.
    DataTime "DATA_TIME" H2;
    /// `DATA_FEATURE`: positions in space, the `H` and `W` of `NCHW`, or the features of a recurrent network.
    DataFeature "DATA_FEATURE" H3;
    /// `FILTER_IN_CHANNEL`: channels that a filter takes.
    FilterInChannel "FILTER_IN_CHANNEL" H4;
    /// `FILTER_OUT_CHANNEL`: channels that a filter yields.
    FilterOutChannel "FILTER_OUT_CHANNEL" H5;
    /// `FILTER_SPATIAL`: positions in a filter's window.
    FilterSpatial "FILTER_SPATIAL" H6;
}

/// [`DataChannel`] or [`FilterInChannel`]: expected of the dim that a convolution contracts, which the data and the filter share.
pub struct AnyChannel;

/// Whether a path of roles has `E` in it.
pub trait Refines<E> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Out: Bool;
}

#[diagnostic::do_not_recommend]
impl<E: DeclaredRole> Refines<E> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = False;
}

#[diagnostic::do_not_recommend]
impl<H, T, E> Refines<E> for (H, T)
where
    H: DeclaredRole<Key: CompareKeys<E::Key, Out: Same<H, E>>>,
    T: Refines<E>,
    E: DeclaredRole,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<<H::Key as CompareKeys<E::Key>>::Out as Same<H, E>>::Out as Bool>::Or<T::Out>;
}

#[diagnostic::do_not_recommend]
impl<P> Refines<AnyChannel> for P
where
    P: Refines<DataChannel> + Refines<FilterInChannel>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<P as Refines<DataChannel>>::Out as Bool>::Or<<P as Refines<FilterInChannel>>::Out>;
}

/// The condition on an element of a set that it plays the role `E`: it has it, or one that refines it, or none.
pub struct OfRole<E>(PhantomData<E>);

#[diagnostic::do_not_recommend]
impl<D, E> Satisfies<OfRole<E>> for D
where
    D: Brand<Role: WithPath<Path: Refines<E>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <<PathOf<D> as NestedPairs>::IsEmpty as Bool>::Or<<PathOf<D> as Refines<E>>::Out>;
}

// What is behind a rest cannot be looked at: it was the caller's to choose.
#[diagnostic::do_not_recommend]
impl<B: Dims, E> Satisfies<OfRole<E>> for Rest<B> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = True;
}

/// Channels of any kind: of data, or of what a filter takes or yields. They are the same channels, seen from either side of a filter.
pub struct EveryChannel;

#[diagnostic::do_not_recommend]
impl<P> Refines<EveryChannel> for P
where
    P: Refines<AnyChannel> + Refines<FilterOutChannel>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<P as Refines<AnyChannel>>::Out as Bool>::Or<<P as Refines<FilterOutChannel>>::Out>;
}

/// The condition on a path of roles, or none, where a dim gets another name whose path is `Q`: does it mean that already?
pub trait Means<Q> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] or [`False`].
    type Out: Bool;
}

impl<Q> Means<Q> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}

#[diagnostic::do_not_recommend]
impl<H, T> Means<()> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = True;
}

#[diagnostic::do_not_recommend]
impl<H, T, R, U> Means<(R, U)> for (H, T)
where
    (H, T): Refines<R> + Refines<EveryChannel>,
    (R, ()): Refines<EveryChannel>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<(H, T) as Refines<R>>::Out as Bool>::Or<ChannelsBoth<(H, T), R>>;
}

/// Whether the role itself is one of the channels.
type IsChannel<R> = <(R, ()) as Refines<EveryChannel>>::Out;

/// Whether a path and a role are both channels.
type ChannelsBoth<P, R> = <<P as Refines<EveryChannel>>::Out as Bool>::And<IsChannel<R>>;

/// Whether something with the role `there`, and those that it refines, means what one with the role `here` does, by their
/// [names](Role::NAMES): [`Means`] for what rustc does not see.
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

/// The path of the role of a brand.
type PathOf<D> = <<D as Brand>::Role as WithPath>::Path;

/// The condition on the brand `Old` under the name `New`.
type Renamed<Old, New> = <PathOf<Old> as Means<PathOf<New>>>::Out;

/// [`True`] if the set `S` does not have the brand `D`.
type Free<D, S> = <<<<S as Dims>::List as Remove<D>>::Out as RemovalStep>::Had as Bool>::Not;

/// A name for the dim `Old` that does not change what it means: see the [table](self). (Where a dim of the set `S` has the name, the error is about that.)
pub trait KeepsRole<Old, S = ()>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<New, Old, S: Dims> KeepsRole<Old, S> for New
where
    Old: DimRef<Brand: Brand<Role: WithPath<Path: Means<PathOf<New::Brand>>>>>,
    New: DimRef<Brand: Brand<Role: WithPath>>,
    S::List: Remove<New::Brand, Out: RemovalStep>,
    <Free<New::Brand, S> as Bool>::Implies<Renamed<Old::Brand, New::Brand>>:
        SameMeaning<Old::Brand, New::Brand, <Old::Brand as Brand>::Role, <New::Brand as Brand>::Role>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that the dim `Old` of the role `R` means what `New` does, which has the role `Q`.
    #[diagnostic::on_unimplemented(
        message = "dimension `{Old}` has the role `{R}`, but its new name `{New}` has the role `{Q}`",
        label = "expected a dim with the role `{R}` or without a role; to change the meaning: `.redefine(old, new)`"
    )]
    pub trait SameMeaning<Old, New, R, Q> for True;
}

/// Whether brands of a list, if there are any, mean what the brand `W` does, or `W` what they do.
pub trait Meanings<W> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`] if one of them means what `W` does, or there is none.
    type AnyMeans: Bool;
    /// [`True`] if `W` means what one of them does, or there is none.
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
    H: Brand<Role: WithPath<Path: Means<PathOf<W>>>>,
    W: Brand<Role: WithPath<Path: Means<PathOf<H>>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type AnyMeans = Renamed<H, W>;
    type MeantByAny = Renamed<W, H>;
}
#[diagnostic::do_not_recommend]
impl<H, G, T, W> Meanings<W> for (H, (G, T))
where
    H: Brand<Role: WithPath<Path: Means<PathOf<W>>>>,
    W: Brand<Role: WithPath<Path: Means<PathOf<H>>>>,
    (G, T): Meanings<W>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type AnyMeans = <Renamed<H, W> as Bool>::Or<<(G, T) as Meanings<W>>::AnyMeans>;
    type MeantByAny = <Renamed<W, H> as Bool>::Or<<(G, T) as Meanings<W>>::MeantByAny>;
}

/// The brands of a list of dims, as a tuple.
type NamesOf<P> = <<P as DimList>::Brands as List>::Tuple;

/// Dims of which one means what the dim `W` does, into which they are flattened: see the [table](self).
pub trait RolesFlatten<W>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<P, W> RolesFlatten<W> for P
where
    W: DimRef,
    P: DimList<
        Brands: Meanings<
            W::Brand,
            AnyMeans: FlattenedMeaning<NamesOf<P>, W::Brand, <W::Brand as Brand>::Role>,
        > + List,
    >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that one of the dims `P` means what the dim `W` of the role `R` does.
    #[diagnostic::on_unimplemented(
        message = "`{W}` has the role `{R}`, which none of `{P}` has",
        label = "one of them must have the role `{R}`, or `{W}` no role; to change the meaning: `.redefine(old, new)`"
    )]
    pub trait FlattenedMeaning<P, W, R> for True;
}

/// Dims that the dim `W` is unflattened into, one of which keeps what it means: see the [table](self).
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
            MeantByAny: UnflattenedMeaning<NamesOf<P>, W::Brand, <W::Brand as Brand>::Role>,
        > + List,
    >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

condition! {
    /// The condition that one of the dims `P` means what the dim `W` of the role `R` does.
    #[diagnostic::on_unimplemented(
        message = "`{W}` has the role `{R}`, which none of `{P}` would keep",
        label = "one of the dims must have the role `{R}` or no role; to change the meaning: `.redefine(old, new)`"
    )]
    pub trait UnflattenedMeaning<P, W, R> for True;
}

/// The condition on a brand that it means what one of the list `L` does.
pub struct MeansOneOf<L>(PhantomData<L>);

#[diagnostic::do_not_recommend]
impl<D, L: Meanings<D>> Satisfies<MeansOneOf<L>> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = L::AnyMeans;
}

/// Dims for which a tensor's axes `L` are exchanged: each means what one of those does.
pub trait RolesKept<L>: DimList {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<P, L> RolesKept<L> for P
where
    L: Dims,
    P: DimList<Brands: FirstWith<Fails<MeansOneOf<L::List>>>>,
    NoDim<Unmeant<P, L>>: FlattenedMeaning<L, Unmeant<P, L>, <Unmeant<P, L> as MaybeDim>::Role>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The first brand of the dims `P` that means what none of the axes `L` does.
type Unmeant<P, L> = <<P as DimList>::Brands as FirstWith<Fails<MeansOneOf<<L as Dims>::List>>>>::Found;

/// The dims play the role `E`: each has it, or one that refines it, or none.
///
/// A function of one's own can ask for it: `fn blur<D: Plays<Pixel> + DimsOf<..>, ..>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` lacks the role `{E}`",
    label = "expected dims with the role `{E}` or without a role"
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

/// The first dim of a list whose role is not `E`.
type First<L, E> = <<L as DimList>::Brands as FirstWith<Fails<OfRole<E>>>>::Found;

/// All dims of the set play the role `E`: each has it, or one that refines it, or none.
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

/// The first dim of a set whose role is not `E`.
type FirstOf<S, E> = <<S as Dims>::List as FirstWith<Fails<OfRole<E>>>>::Found;

condition! {
    /// The dim `D` of the role `R` is one that plays `E`.
    #[diagnostic::on_unimplemented(
        message = "dimension `{D}` has the role `{R}`, but `{E}` is expected here",
        label = "expected the role `{E}`, or no role"
    )]
    pub trait Expected<D, R, E> for True;
}
