//! Routines that depend only on the element type, compiled in this crate for the common types.
//!
//! rustc compiles a generic function again in each crate that calls it. The macro `compiled`
//! therefore defines a routine as one function of this crate for each type in its list, and callers
//! only link these functions. For all other types, including those of users, the routine stays
//! generic.
//!
//! The constant [`Num::COMPILED`](crate::scalar::Num::COMPILED) says which of the common types a
//! type is, if any. Users' element types have the default, [`Precompiled::NO`]; no other value can
//! be constructed for them.

use core::marker::PhantomData;
use core::mem::{ManuallyDrop, transmute_copy};

/// Which of the common types `T` is, if any.
pub struct Precompiled<T> {
    common: Option<CommonType>,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Precompiled<T> {
    /// `T` is not one of the common types.
    pub const NO: Self = Precompiled { common: None, of: PhantomData };
}

macro_rules! common_types {
    ($($t:ident)*) => {
        /// The element types for which some routines are compiled here.
        #[allow(non_camel_case_types)] // so that each variant has the name of its type
        #[derive(Clone, Copy)]
        pub(crate) enum CommonType { $($t),* }

        $(impl Precompiled<$t> {
            pub(crate) const YES: Self = Precompiled { common: Some(CommonType::$t), of: PhantomData };
        })*
    };
}

common_types!(f32 f64 i32 i64 isize usize);

impl<T> Precompiled<T> {
    /// Whether `T` is this type.
    pub(crate) const fn is(&self, common: CommonType) -> bool {
        matches!(self.common, Some(own) if own as u8 == common as u8)
    }
}

/// Converts the value between two names of one type.
///
/// # Safety
///
/// `A` and `B` are the same type.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) unsafe fn same<A, B>(value: A) -> B {
    // SAFETY: the caller promises that both types are the same; `ManuallyDrop` prevents a second
    // drop.
    unsafe { transmute_copy(&ManuallyDrop::new(value)) }
}

/// Defines a routine that is compiled here for the types after `for`:
/// `for f32 f64: pub fn name<'a, T: Num>(argument: &'a [T]) -> T { body }`.
///
/// The body should be a call of a generic function, since it is copied for each type. An optional
/// `else` gives a different body for all other types. Lifetimes must be named.
macro_rules! compiled {
    (for $($common:ident)+: $(#[$attribute:meta])* $vis:vis fn $($function:tt)+) => {
        $crate::compiled::compiled!(@routine [$($common)+] [$(#[$attribute])*] [$vis] [] $($function)+);
    };
    (for $($common:ident)+: $(#[$attribute:meta])* $vis:vis unsafe fn $($function:tt)+) => {
        $crate::compiled::compiled!(@routine [$($common)+] [$(#[$attribute])*] [$vis] [unsafe] $($function)+);
    };
    (
        @routine $types:tt [$($attribute:tt)*] [$vis:vis] [$($unsafe:tt)?]
        $name:ident<$($lifetime:lifetime,)* $T:ident: $bound:path>$arguments:tt $(-> $out:ty)? $body:block $(else $other:block)?
    ) => {
        $($attribute)*
        #[cfg_attr(not(debug_assertions), inline(always))] // (In debug builds, inlining only makes compilation slower.)
        $vis $($unsafe)? fn $name<$($lifetime,)* $T: $bound>$arguments $(-> $out)? {
            $crate::compiled::compiled!(
                @choice $types [$($attribute)*] [$($unsafe)?] $name [$($lifetime,)*] $T $arguments [$(-> $out)?] $body $($other)?
            )
        }
    };
    (
        @choice [$common:ident $($others:ident)*] [$($attribute:tt)*] [$($unsafe:tt)?] $name:ident [$($lifetime:lifetime,)*] $T:ident
        ($($argument:ident: $type:ty),* $(,)?) [$($out:tt)*] $body:block $($other:block)?
    ) => {
        if const { $T::COMPILED.is($crate::compiled::CommonType::$common) } {
            type $T = $common;
            $($attribute)*
            $($unsafe)? fn $name<$($lifetime),*>($($argument: $type),*) $($out)* $body
            // SAFETY: `T` is this type, as its constant says. Each argument has the same type
            // outside and inside the inner function, and so has the result: both types have the
            // same text, where `T` is the parameter outside and this type inside, and both use the
            // same lifetimes. The promise of an unsafe routine is the caller's.
            unsafe { $crate::compiled::same($name($($crate::compiled::same::<_, $type>($argument)),*)) }
        } else {
            $crate::compiled::compiled!(
                @choice [$($others)*] [$($attribute)*] [$($unsafe)?] $name [$($lifetime,)*] $T ($($argument: $type),*) [$($out)*] $body $($other)?
            )
        }
    };
    (@choice [] $attributes:tt $unsafe:tt $name:ident $lifetimes:tt $T:ident $arguments:tt $out:tt $body:block) => { $body };
    (@choice [] $attributes:tt $unsafe:tt $name:ident $lifetimes:tt $T:ident $arguments:tt $out:tt $body:block $other:block) => { $other };
}

pub(crate) use compiled;
