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
//! one whose role is known from where it was declared; `rename`, `flatten` and `unflatten` define anew, by the dims that they name.
//! **Verification** is where an operation expects a role: pooling along a channel does not compile.
//!
//! | operation | expects |
//! |---|---|
//! | pooling along dims | [`DataFeature`] |
//! | `conv`, along dims | [`DataFeature`] |
//! | `conv`, its channels | [`AnyChannel`]: [`DataChannel`] or [`FilterInChannel`] |
//! | `conv`, positions in the window | [`FilterSpatial`] |
//! | `batch_norm`, what is left | [`DataChannel`] |
//! | [`scan`](crate::scan::scan) over a dim | [`DataTime`] |
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

use crate::brand::{Brand, CompareKeys, Equal, Greater, Less, Rest, digits::*};
use crate::dim::DimList;
use crate::set::{Dims, Judged, Nothing, Right, Verdict, Wrong};

/// The role of a dim.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a role",
    label = "a role is expected here",
    note = "roles are `DataBatch`, `DataChannel`, .., and what `roles! {{ pub struct Pixel: DataFeature; }}` declares; a size is \
            written behind `=`"
)]
pub trait Role: 'static {
    /// Its name, and the names of the roles that it refines, from the nearest on. Those of ONNX are written as there: `DATA_CHANNEL`.
    const NAMES: &'static [&'static str];
    /// The role and those that it refines, as nested pairs.
    #[doc(hidden)]
    type Path;
}

/// A role that was declared: it can be compared with others.
pub trait DeclaredRole: Role {
    /// The digits that tell the role from others.
    #[doc(hidden)]
    type Key;
}

/// The names of a role: its own, and those of the role that it refines. For `roles!` alone.
#[doc(hidden)]
pub const fn prepended<const N: usize>(own: &'static str, refined: &[&'static str]) -> [&'static str; N] {
    let mut names = [own; N];
    let mut at = 1;
    while at < N {
        names[at] = refined[at - 1];
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
    const NAMES: &'static [&'static str] = &[];
    type Path = Undenoted;
}

macro_rules! standard {
    ($($(#[$doc:meta])* $name:ident $text:literal $digit:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        #[diagnostic::do_not_recommend]
        impl Role for $name {
            const NAMES: &'static [&'static str] = &[$text];
            type Path = ($name, ());
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

/// The verdict on a role, or on none, where `E` is expected.
pub trait Suits<E> {
    /// [`Right`] or [`Wrong`].
    type Out;
}

impl<E> Suits<E> for Undenoted {
    type Out = Right;
}

#[diagnostic::do_not_recommend]
impl<H, T, E> Suits<E> for (H, T)
where
    (H, T): Refines<E>,
{
    type Out = <(H, T) as Refines<E>>::Out;
}

/// The verdict on the question whether a path of roles has `E` in it.
pub trait Refines<E> {
    /// [`Right`] or [`Wrong`].
    type Out;
}

#[diagnostic::do_not_recommend]
impl<E: DeclaredRole> Refines<E> for () {
    type Out = Wrong;
}

#[diagnostic::do_not_recommend]
impl<H, T, E> Refines<E> for (H, T)
where
    H: DeclaredRole<Key: CompareKeys<E::Key, Out: Step<H, T, E>>>,
    E: DeclaredRole,
{
    type Out = <<H::Key as CompareKeys<E::Key>>::Out as Step<H, T, E>>::Out;
}

#[diagnostic::do_not_recommend]
impl<P> Refines<AnyChannel> for P
where
    P: Refines<DataChannel, Out: Or<<P as Refines<FilterInChannel>>::Out>> + Refines<FilterInChannel>,
{
    type Out = <<P as Refines<DataChannel>>::Out as Or<<P as Refines<FilterInChannel>>::Out>>::Out;
}

/// One verdict or another.
pub trait Or<V> {
    /// [`Right`] or [`Wrong`].
    type Out;
}
impl<V> Or<V> for Right {
    type Out = Right;
}
impl<V> Or<V> for Wrong {
    type Out = V;
}

/// One step of [`Refines`]: the verdict of a comparison, of the role `H` with `E`, is asked.
pub trait Step<H, T, E> {
    /// [`Right`] or [`Wrong`].
    type Out;
}
// Two roles with one key never pass for one another.
#[diagnostic::do_not_recommend]
impl<E, T> Step<E, T, E> for Equal {
    type Out = Right;
}
#[diagnostic::do_not_recommend]
impl<H, T: Refines<E>, E> Step<H, T, E> for Less {
    type Out = T::Out;
}
#[diagnostic::do_not_recommend]
impl<H, T: Refines<E>, E> Step<H, T, E> for Greater {
    type Out = T::Out;
}

/// The first brand of a list whose role is not `E`.
pub trait Stranger<E> {
    /// The brand, or [`Nothing`].
    type Found: Judged + Denoted;
}

impl<E> Stranger<E> for () {
    type Found = Nothing;
}

#[diagnostic::do_not_recommend]
impl<H, T, E> Stranger<E> for (H, T)
where
    H: Brand<Role: Role<Path: Suits<E, Out: Choose<H, T, E>>>>,
{
    type Found = <<<H::Role as Role>::Path as Suits<E>>::Out as Choose<H, T, E>>::Found;
}

// What is behind a rest cannot be looked at: it was the caller's to choose.
#[diagnostic::do_not_recommend]
impl<B: Dims, E> Stranger<E> for (Rest<B>, ()) {
    type Found = Nothing;
}

/// One step of [`Stranger`].
pub trait Choose<H, T, E> {
    /// The brand, or [`Nothing`].
    type Found: Judged + Denoted;
}
#[diagnostic::do_not_recommend]
impl<H, T: Stranger<E>, E> Choose<H, T, E> for Right {
    type Found = T::Found;
}
#[diagnostic::do_not_recommend]
impl<H: Brand, T, E> Choose<H, T, E> for Wrong {
    type Found = H;
}

/// What has a role: a brand, or [`Nothing`].
pub trait Denoted {
    /// The role.
    type Role;
}
impl Denoted for Nothing {
    type Role = Undenoted;
}
impl<D: Brand> Denoted for D {
    type Role = D::Role;
}

/// The dims play the role `E`: each has it, or one that refines it, or none.
///
/// A function of one's own can ask for it: `fn blur<D: Plays<Pixel> + DimsOf<..>, ..>`.
pub trait Plays<E>: DimList {}

impl<L, E> Plays<E> for L
where
    L: DimList<Brands: Stranger<E>>,
    Verdict<First<L, E>>: Expected<First<L, E>, <First<L, E> as Denoted>::Role, E>,
{
}

/// The first dim of a list whose role is not `E`.
type First<L, E> = <<L as DimList>::Brands as Stranger<E>>::Found;

/// All dims of the set play the role `E`: each has it, or one that refines it, or none.
pub trait AllPlay<E>: Dims {}

impl<S, E> AllPlay<E> for S
where
    S: Dims<List: Stranger<E>>,
    Verdict<FirstOf<S, E>>: Expected<FirstOf<S, E>, <FirstOf<S, E> as Denoted>::Role, E>,
{
}

/// The first dim of a set whose role is not `E`.
type FirstOf<S, E> = <<S as Dims>::List as Stranger<E>>::Found;

/// The dim `D` of the role `R` is one that plays `E`.
#[diagnostic::on_unimplemented(
    message = "dimension `{D}` has the role `{R}`, but `{E}` is expected here",
    label = "this takes dims of the role `{E}`, or of none"
)]
pub trait Expected<D, R, E> {}
#[diagnostic::do_not_recommend]
impl<D, R, E> Expected<D, R, E> for Right {}
