//! Brands: zero-sized types, one for each dimension, and the keys that order them.
//!
//! Stable Rust cannot ask whether two types differ, so the comparison is computed. A brand carries
//! a *key*, a list of base 16 digits as types, and [`CompareKeys`] walks two keys to the first
//! digit that differs. The first digits are the dim's position inside its `dims!` invocation,
//! so dims declared together sort in order of declaration. The others are a hash of the package,
//! the place of the declaration and the dim's name.
//!
//! Hashes can collide, but two different brands with the same key never unify: where keys compare
//! as [`Equal`], the types must be the same, or rustc reports an error.

use crate::error::Origin;
use crate::types::axes::{AxisBlock, OneAxis};
use crate::types::dim::{Dim, DimCell};
use crate::types::prime::{Primed, UnderPrime};
use crate::types::role::Undenoted;
use crate::types::set::{DimKey, Dims, Keys};
use crate::types::size::{Dyn, Size};
use core::marker::PhantomData;

/// A dimension, as a type. `dims!` makes such types.
///
/// A declared dim (`pub struct Batch;`) is its own brand and value. A local dim `i` has the brand
/// `i<'_>`, whose invariant lifetime is unique to one execution of the `dims!` that made it, and a
/// value of the type `&Dim<i<'_>>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension",
    label = "a dim is expected here",
    note = "declare dims with `dims! {{ pub struct Batch; }}`, or local ones with `dims!(i, j);`"
)]
pub trait Brand: SetElement + Sized {
    /// A number that identifies [`SetElement::Key`], for use at run time.
    #[doc(hidden)]
    const ID: u64 = Self::KEYS.only().id;
    /// [`Dyn`], or [`Static<N>`](crate::types::size::Static).
    type Size: Size;
    /// The static size as a typenum, or [`Dyn`].
    #[doc(hidden)]
    type Num;
    /// The dim's meaning: a [`Role`](crate::types::role::Role), or [`Undenoted`]. The bound `Role`
    /// is checked where a dim is named, not here, so a type that is not a role gives one error.
    type Role;
    /// Macros make a dim from a value of this type. For a local dim, the type has the brand's
    /// lifetime.
    #[doc(hidden)]
    type Anchor;
    /// The name, as written where the dim was declared.
    const NAME: &'static str = Self::KEYS.only().name;
}

/// A brand that can be named anywhere: made by `dims! { pub struct Batch; }`, or the
/// [prime](crate::types::prime) of one.
pub trait Declared: Brand + Copy + Default + 'static {}

/// Any declared dim: the bound of a function or a struct that is generic over which dim it works
/// along.
///
/// ```
/// use typed_dims::prelude::*;
///
/// /// `out[d, ..] = x[d, ..] - mean over d of x[d, ..]`
/// fn centered<D: AnyDim, B: Dims>(x: &Tensor<f32, (D, Rest<B>)>) -> Tensor<f32, (D, Rest<B>)> {
///     (x - x.mean(D::default())).eval()
/// }
///
/// dims! { struct Batch; struct Feat; }
/// let x = from_vec((Batch.of(2), Feat.of(2)), vec![1.0, 3.0, 2.0, 6.0]);
/// let y = centered::<Feat, _>(&x.seal(Feat)).unseal();
/// assert_eq!(y.order((Batch, Feat)), ndarray::array![[-1.0, 1.0], [-2.0, 2.0]]);
/// ```
///
/// The dim as a value is `D::default()`. Calls must name the dim, because rustc cannot infer it
/// through the sorted set of `Tensor`. If a tensor has two generic dims, rustc also needs their
/// order: see [`Before`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a declared dim",
    label = "expected one dim declared with `dims! {{ pub struct Batch; }}`: `Batch`, not the tuple `(Batch,)`"
)]
pub trait AnyDim:
    Declared
    // rustc must know that the key of a generic dim equals itself, and is less than the keys of its
    // prime and of `Rest`.
    + SetElement<
        Key: Digits
                 + CompareKeys<<Self as SetElement>::Key, Out = Equal>
                 + CompareKeys<Last, Out = Less>
                 + CompareKeys<Primed<<Self as SetElement>::Key>, Out = Less>
                 + UnderPrime<<Self as SetElement>::Key, Out = Greater>,
    >
{
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<D> AnyDim for D
where
    D: Declared
        + SetElement<
            Key: Digits
                     + CompareKeys<D::Key, Out = Equal>
                     + CompareKeys<Last, Out = Less>
                     + CompareKeys<Primed<D::Key>, Out = Less>
                     + UnderPrime<D::Key, Out = Greater>,
        >,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that sorts before the dim `O`, such as one declared earlier in the same `dims!`.
///
/// Dims of different `dims!` have no fixed order, so use this bound only for dims of one `dims!`.
///
/// A set of dims is sorted, so a tensor with two generic dims needs their order, stated for both
/// dims:
///
/// ```
/// use typed_dims::prelude::*;
///
/// struct Linear<I: AnyDim + Before<O>, O: AnyDim + After<I>> {
///     weight: Tensor<f32, (I, O)>,
///     bias: Tensor<f32, (O,)>,
/// }
///
/// impl<I: AnyDim + Before<O>, O: AnyDim + After<I>> Linear<I, O> {
///     fn apply<B: Dims>(&self, x: &Tensor<f32, (I, Rest<B>)>) -> Tensor<f32, (O, Rest<B>)> {
///         ((x * &self.weight).sum(I::default()) + &self.bias).eval()
///     }
/// }
///
/// dims! { struct Batch; struct Pixel; struct Class; }
/// let layer = Linear::<Pixel, Class> { weight: ones((Pixel.of(3), Class.of(2))), bias: zeros(Class.of(2)) };
/// let x = ones::<f32, _>((Batch.of(4), Pixel.of(3)));
/// let scores = layer.apply(&x.seal(Pixel)).unseal();
/// assert_eq!(scores.order((Batch, Class)), Array2::from_elem((4, 2), 3.0));
/// ```
#[diagnostic::on_unimplemented(
    message = "the dim `{Self}` does not sort before the dim `{O}`",
    label = "expected two dims of one `dims!`, `{Self}` declared before `{O}`",
    note = "dims of different `dims!` have no fixed order: in a library, use this bound only for the library's own dims, and rename a dim of the user first: `x.rename(I::default(), In)`"
)]
pub trait Before<O: SetElement>: SetElement<Key: CompareKeys<O::Key, Out = Less>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<O: SetElement, D: SetElement<Key: CompareKeys<O::Key, Out = Less>>> Before<O> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A dim that sorts after the dim `O`: see [`Before`].
#[diagnostic::on_unimplemented(
    message = "the dim `{Self}` does not sort after the dim `{O}`",
    label = "expected two dims of one `dims!`, `{Self}` declared after `{O}`",
    note = "dims of different `dims!` have no fixed order: in a library, use this bound only for the library's own dims, and rename a dim of the user first: `x.rename(I::default(), In)`"
)]
pub trait After<O: SetElement>: SetElement<Key: CompareKeys<O::Key, Out = Greater>> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<O: SetElement, D: SetElement<Key: CompareKeys<O::Key, Out = Greater>>> After<O> for D {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// Stands for the dims of the caller that a signature does not name.
///
/// `fn f<B: Dims>(x: Tensor<f32, (Seq, Rest<B>)>)` takes a tensor with `Seq` and any other dims
/// `B`. The function cannot look inside `B`, so its own dims never clash with the caller's.
pub struct Rest<B>(PhantomData<B>);

/// An element of a set of dims: a brand, or [`Rest<B>`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension",
    label = "a dim is expected here",
    note = "declare dims with `dims! {{ pub struct Batch; }}`, or local ones with `dims!(i, j);`"
)]
pub trait SetElement {
    /// The digits that order the element among others.
    #[doc(hidden)]
    type Key;
    /// Sizes and strides of the element's dims.
    #[doc(hidden)]
    type Axes: AxisBlock;
    /// The element's keys, for use at run time.
    #[doc(hidden)]
    const KEYS: Keys;
}

/// The key of a brand. Plans read only this, because an impl of [`Brand`] can override the other
/// constants.
pub(crate) struct KeyOf<B>(PhantomData<B>);

impl<B: Brand> KeyOf<B> {
    pub(crate) const KEY: &'static DimKey = B::KEYS.only();
    /// The keys of a list of this one dim.
    pub(crate) const KEYS: &'static Keys = {
        B::KEYS.only();
        &B::KEYS
    };

    /// The facts about the dim that are needed at run time, apart from a size that a value carries.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) const fn info<'a>() -> DimInfo<'a> {
        let &DimKey { id, name, fixed, .. } = Self::KEY;
        DimInfo { id, name, fixed, given: None, cell: None }
    }
}

impl<B: Dims> SetElement for Rest<B> {
    type Key = Last;
    type Axes = B::Axes;
    const KEYS: Keys = B::KEYS.behind_rest();
}

/// The key of `Rest`: greater than every brand's.
pub struct Last;

/// The result of a comparison: the left key sorts first.
pub struct Less;
/// The result of a comparison: the keys are the same, so the types must be too.
pub struct Equal;
/// The result of a comparison: the right key sorts first.
pub struct Greater;

/// Compares two keys, digit by digit.
pub trait CompareKeys<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`Less`], [`Equal`] or [`Greater`].
    type Out;
}

impl CompareKeys<()> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Equal;
}

impl CompareKeys<Last> for Last {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Equal;
}

/// The key of a brand, which may be a prime. It is less than the key of `Rest`.
pub trait Digits {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

impl<K: Digits> CompareKeys<K> for Last {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Greater;
}

/// The end of the key of a loop variable: equal to itself and less than any digit.
pub struct Inner;

impl CompareKeys<Inner> for Inner {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = Equal;
}

macro_rules! loop_brand {
    ($($letter:ident)*) => {
        /// The brand of a loop variable of `tensor!`, `einsum!` or `gather!`: the position of its
        /// name among the names of the loops, and the letters of the name.
        ///
        /// The result of the macro never has such a dim. A loop variable only meets the dims of its
        /// own call and of the operands, so its key needs no hash: the key is the position, then
        /// [`Inner`]. Calls share these types, so rustc does not check a new declaration for each
        /// call. The ID of a loop variable has bit 63, unlike the IDs of dims that users name.
        pub enum LoopVar<const AT: usize, $(const $letter: char = '\0'),*> {}

        impl<const AT: usize, $(const $letter: char),*> LoopVar<AT, $($letter),*> {
            const NAME: &'static Text<64> = &Text::of_letters(&[$($letter),*]);
        }

        impl<const AT: usize, $(const $letter: char),*> LoopVar<AT, $($letter),*>
        where
            AtPlace<AT>: HasPlace,
        {
            /// The loop variable, whose size is not known yet.
            #[cfg_attr(not(unoptimized), inline(always))]
            pub fn minted() -> Dim<Self> {
                Dim::minted(())
            }

            /// The loop variable with this size.
            #[cfg_attr(not(unoptimized), inline(always))]
            #[track_caller]
            pub fn minted_with(size: usize) -> Dim<Self> {
                Dim::minted_with((), size)
            }
        }

        impl<const AT: usize, $(const $letter: char),*> SetElement for LoopVar<AT, $($letter),*>
        where
            AtPlace<AT>: HasPlace,
        {
            type Key = <AtPlace<AT> as HasPlace>::Key;
            type Axes = OneAxis;
            const KEYS: Keys = keys_of::<Dyn>(1 << 63 | AT as u64, Self::NAME.as_str(), &[]);
        }

        impl<const AT: usize, $(const $letter: char),*> Brand for LoopVar<AT, $($letter),*>
        where
            AtPlace<AT>: HasPlace,
        {
            type Size = Dyn;
            type Num = Dyn;
            type Role = Undenoted;
            type Anchor = ();
        }
    };
}

// The macros truncate longer names.
loop_brand!(A B C D E F G H I J K L M N O P);

/// Text of at most `N` bytes, built in a constant.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) const EMPTY: Self = Text { bytes: [0; N], len: 0 };

    /// The letters without the padding.
    const fn of_letters(letters: &[char]) -> Self {
        let mut text = Self::EMPTY;
        let mut at = 0;
        while at < letters.len() && letters[at] != '\0' {
            text = text.and(letters[at].encode_utf8(&mut [0; 4]));
            at += 1;
        }
        text
    }

    /// This text with `more` appended.
    ///
    /// # Panics
    ///
    /// If the text is too long. In a constant, this is a compile error.
    pub(crate) const fn and(mut self, more: &str) -> Self {
        let more = more.as_bytes();
        assert!(more.len() <= N - self.len, "the name of the dim is too long");
        let mut at = 0;
        while at < more.len() {
            self.bytes[self.len] = more[at];
            self.len += 1;
            at += 1;
        }
        self
    }

    pub(crate) const fn as_str(&self) -> &str {
        match core::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => panic!("the parts are UTF-8"),
        }
    }
}

/// A position among the names of the loops of a macro call.
pub struct AtPlace<const AT: usize>;

/// A position that the name of a loop can have.
pub trait HasPlace {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The digits of the position.
    type Key;
}

macro_rules! positions {
    ($($at:literal $key:ty,)*) => {$(
        impl HasPlace for AtPlace<$at> {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Key = $key;
        }
    )*};
}

#[rustfmt::skip]
mod positions {
    use super::digits::*;
    use super::{Inner, HasPlace, AtPlace};

    type Far<T> = H15<T>;

    positions! {
        0 H0<Inner>, 1 H1<Inner>, 2 H2<Inner>, 3 H3<Inner>, 4 H4<Inner>,
        5 H5<Inner>, 6 H6<Inner>, 7 H7<Inner>, 8 H8<Inner>, 9 H9<Inner>,
        10 H10<Inner>, 11 H11<Inner>, 12 H12<Inner>, 13 H13<Inner>, 14 H14<Inner>,
        15 Far<H0<Inner>>, 16 Far<H1<Inner>>, 17 Far<H2<Inner>>, 18 Far<H3<Inner>>, 19 Far<H4<Inner>>,
        20 Far<H5<Inner>>, 21 Far<H6<Inner>>, 22 Far<H7<Inner>>, 23 Far<H8<Inner>>, 24 Far<H9<Inner>>,
        25 Far<H10<Inner>>, 26 Far<H11<Inner>>, 27 Far<H12<Inner>>, 28 Far<H13<Inner>>, 29 Far<H14<Inner>>,
        30 Far<H15<Inner>>,
    }
}

pub(crate) type Compare<A, B> = <<A as SetElement>::Key as CompareKeys<<B as SetElement>::Key>>::Out;

/// The facts about a dim at run time.
#[derive(Clone, Copy, Debug)]
pub struct DimInfo<'a> {
    /// See [`Brand::ID`].
    pub id: u64,
    /// See [`Brand::NAME`].
    pub name: &'static str,
    /// The static size, if any.
    pub fixed: Option<usize>,
    /// The size that the value carries, `Batch.of(2)`, and where it was given.
    pub given: Option<(usize, Origin)>,
    /// The cell in which a local dim and its primes keep their size.
    pub cell: Option<&'a DimCell>,
}

/// The base 16 digits as types, and their comparison table. The parameter of a digit is the rest of
/// the key.
///
/// The table compares whole keys, so that each digit costs rustc one step. The base is small,
/// because rustc tries each row of the table.
pub mod digits {
    use super::{CompareKeys, Digits, Greater, Inner, Last, Less};
    use core::marker::PhantomData;

    macro_rules! table {
        ($($digit:ident)*) => {
            $(
                #[doc(hidden)]
                pub struct $digit<T>(PhantomData<T>);
                impl<T: CompareKeys<U>, U> CompareKeys<$digit<U>> for $digit<T> {
                    const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = T::Out; }
                impl<T> CompareKeys<Last> for $digit<T> {
                    const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = Less; }
                impl<T> Digits for $digit<T> {
                    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}
                impl<T> CompareKeys<Inner> for $digit<T> {
                    const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = Greater; }
                impl<T> CompareKeys<$digit<T>> for Inner {
                    const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = Less; }
            )*
            table!(@pairs $($digit)*);
        };
        (@pairs) => {};
        (@pairs $first:ident $($later:ident)*) => {
            $(impl<T, U> CompareKeys<$later<U>> for $first<T> {
                const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = Less; }
              impl<T, U> CompareKeys<$first<U>> for $later<T> {
                  const SEAL: crate::seal::Seal = crate::seal::SEAL;
 type Out = Greater; })*
            table!(@pairs $($later)*);
        };
    }

    table!(H0 H1 H2 H3 H4 H5 H6 H7 H8 H9 H10 H11 H12 H13 H14 H15);
}

/// The keys of a set of one brand, for `dims!`.
#[doc(hidden)]
pub const fn keys_of<N: Size>(id: u64, name: &'static str, roles: &'static [&'static str]) -> Keys {
    Keys::one(DimKey { depth: 0, id, name, fixed: N::FIXED, roles })
}
