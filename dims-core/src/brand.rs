//! Brands: zero-sized types, one for each dimension, and the keys that order them.
//!
//! Stable Rust cannot ask whether two types differ, so the question is computed: each brand carries a *key*, a list of
//! digits to base 64 as types, and [`CompareKeys`] walks two keys until the first digit that differs. The first
//! digit is the position of the dim inside its `dims!` invocation, so that dims declared together sort in the order in
//! which they were declared; the others are a hash of where the dim was declared and of its name.
//!
//! A hash can collide. Two different brands with one key never unify in silence: wherever two keys compare as
//! [`Equal`], the impl behind it demands the very same type, and rustc refuses anything else.

use crate::dim::DimCell;
use crate::set::{DimKey, Dims, Keys};
use crate::size::Size;
use crate::storage::axes::AxisBlock;
use std::marker::PhantomData;

/// A dimension, as a type. Made by `dims!` alone.
///
/// A declared dim (`pub struct Batch;`) is its own brand and value. A local dim `i` has the brand `i<'_>`, whose
/// invariant lifetime is unique to one execution of the `dims!` that made it, and the value `&Dim<i<'_>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension",
    label = "a dim is expected here",
    note = "declare dims with `dims! {{ pub struct Batch; }}`, or local ones with `dims!(i, j);`"
)]
pub trait Brand: Element + Sized {
    /// The digits of [`Element::Key`] as a number, for use at run time.
    #[doc(hidden)]
    const ID: u64;
    /// [`Dyn`](crate::size::Dyn), or [`Static<N>`](crate::size::Static).
    type Size: Size;
    /// The static size as a typenum, or [`Dyn`](crate::size::Dyn).
    #[doc(hidden)]
    type Num;
    /// The name, as written where the dim was declared.
    const NAME: &'static str;
}

/// A brand that can be named anywhere: one made by `dims! { pub struct Batch; }`.
///
/// Its unit struct is both the type and the value of the dim.
pub trait Declared: Brand + Copy + Default + 'static {}

/// Stands for whatever dims the caller has bound besides those that a signature names.
///
/// `fn f<B: Dims>(x: Tensor<f32, (Seq, Rest<B>)>)` takes a tensor that has `Seq` and any other dims `B`. The function
/// cannot look inside, so its own dims never clash with the caller's.
pub struct Rest<B>(PhantomData<B>);

/// An element of a set of dims: a brand, or [`Rest<B>`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension",
    label = "a dim is expected here",
    note = "declare dims with `dims! {{ pub struct Batch; }}`, or local ones with `dims!(i, j);`"
)]
pub trait Element {
    /// The digits that order the element among others.
    #[doc(hidden)]
    type Key;
    /// Sizes and strides of the element's dims.
    #[doc(hidden)]
    type Axes: AxisBlock;
    /// What is left of the element at run time.
    #[doc(hidden)]
    const KEYS: Keys;
}

impl<B: Dims> Element for Rest<B> {
    type Key = Last;
    type Axes = B::Axes;
    const KEYS: Keys = B::KEYS.behind_rest();
}

/// The key of `Rest`: greater than every brand's.
pub struct Last;

/// Verdict of a comparison: the left key sorts first.
pub struct Less;
/// Verdict of a comparison: the two keys are the same, and so must be their types.
pub struct Equal;
/// Verdict of a comparison: the right key sorts first.
pub struct Greater;

/// Compares two digits.
pub trait CompareDigits<O> {
    /// [`Less`], [`Equal`] or [`Greater`].
    type Out;
}

/// Compares two keys, digit by digit.
pub trait CompareKeys<O> {
    /// [`Less`], [`Equal`] or [`Greater`].
    type Out;
}

impl CompareKeys<()> for () {
    type Out = Equal;
}

impl CompareKeys<Last> for Last {
    type Out = Equal;
}

impl<H, T> CompareKeys<Last> for (H, T) {
    type Out = Less;
}

impl<H, T> CompareKeys<(H, T)> for Last {
    type Out = Greater;
}

impl<H1, T1, H2, T2> CompareKeys<(H2, T2)> for (H1, T1)
where
    H1: CompareDigits<H2>,
    H1::Out: OrElse<T1, T2>,
{
    type Out = <H1::Out as OrElse<T1, T2>>::Out;
}

/// The verdict so far, or else the comparison of what is left of both keys.
pub trait OrElse<A, B> {
    /// [`Less`], [`Equal`] or [`Greater`].
    type Out;
}

impl<A, B> OrElse<A, B> for Less {
    type Out = Less;
}

impl<A, B> OrElse<A, B> for Greater {
    type Out = Greater;
}

impl<A: CompareKeys<B>, B> OrElse<A, B> for Equal {
    type Out = A::Out;
}

/// The verdict on two elements of a set.
pub(crate) type Compare<A, B> = <<A as Element>::Key as CompareKeys<<B as Element>::Key>>::Out;

/// What is known of a dim at run time, once its type is gone.
#[derive(Clone, Copy, Debug)]
pub struct DimInfo<'a> {
    /// See [`Brand::ID`].
    pub id: u64,
    /// See [`Brand::NAME`].
    pub name: &'static str,
    /// The static size, if there is one.
    pub fixed: Option<usize>,
    /// Where a local dim keeps its size; declared dims keep none.
    pub cell: Option<&'a DimCell>,
}

/// The digits to base 64 as types, and their comparison table.
pub mod digits {
    use super::{CompareDigits, Equal, Greater, Less};

    macro_rules! table {
        ($($digit:ident)*) => {
            $(#[doc(hidden)] pub struct $digit; impl CompareDigits<$digit> for $digit { type Out = Equal; })*
            table!(@pairs $($digit)*);
        };
        (@pairs) => {};
        (@pairs $first:ident $($later:ident)*) => {
            $(impl CompareDigits<$later> for $first { type Out = Less; }
              impl CompareDigits<$first> for $later { type Out = Greater; })*
            table!(@pairs $($later)*);
        };
    }

    table!(
        H0 H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11 H12 H13 H14 H15
        H16 H17 H18 H19 H20 H21 H22 H23 H24 H25 H26 H27 H28 H29 H30 H31
        H32 H33 H34 H35 H36 H37 H38 H39 H40 H41 H42 H43 H44 H45 H46 H47
        H48 H49 H50 H51 H52 H53 H54 H55 H56 H57 H58 H59 H60 H61 H62 H63
    );
}

/// The keys of a set of one brand, for `dims!`.
#[doc(hidden)]
pub const fn keys_of<D: Brand>() -> Keys {
    Keys::one(DimKey { depth: 0, id: D::ID, name: D::NAME, fixed: D::Size::FIXED })
}
