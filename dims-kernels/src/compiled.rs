//! Routines that depend on the element type alone, compiled in this crate for the common types.
//!
//! rustc compiles a generic function anew in each crate that calls it. So a routine that is written with the macro `compiled` is a function of this crate for
//! each of the types that it lists, and callers only link it. For other types, those of users among them, it is generic.
//!
//! Which of the common types a type is, its constant [`Num::COMPILED`](crate::scalar::Num::COMPILED) says. An element type of a user has the default, which
//! says that it is none, and nobody can make another value for it.

use core::marker::PhantomData;
use core::mem::{ManuallyDrop, transmute_copy};

/// Which of the common types `T` is, if it is one. A value that says so exists for the common types alone, and is made here.
pub struct Precompiled<T> {
    common: Option<CommonType>,
    of: PhantomData<fn(T) -> T>,
}

impl<T> Precompiled<T> {
    /// It is none of them.
    pub const NO: Self = Precompiled { common: None, of: PhantomData };
}

macro_rules! common_types {
    ($($t:ident)*) => {
        /// The element types for which some routines are compiled here.
        #[allow(non_camel_case_types)] // so that a macro can name both by one word
        #[derive(Clone, Copy)]
        pub(crate) enum CommonType { $($t),* }

        $(impl Precompiled<$t> {
            /// It is this one.
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

/// The value, where two names stand for its type.
///
/// # Safety
///
/// `A` and `B` are one type.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) unsafe fn same<A, B>(value: A) -> B {
    // SAFETY: the result has the type that the value has, as the caller promises, and takes its place.
    unsafe { transmute_copy(&ManuallyDrop::new(value)) }
}

/// A routine that is compiled here for the types behind `for`: `for f32 f64: pub fn name<'a, T: Num>(argument: &'a [T]) -> T { body }`.
///
/// The body should be a call of a generic function, since each type has a copy of it. What follows `else` is the body for all other types, if that is another one. Lifetimes have names.
macro_rules! compiled {
    (for $($common:ident)+: $(#[$attribute:meta])* $vis:vis fn $($function:tt)+) => {
        $crate::compiled::compiled!(@routine [$($common)+] [$(#[$attribute])*] [$vis] [] $($function)+);
    };
    (for $($common:ident)+: $(#[$attribute:meta])* $vis:vis unsafe fn $($function:tt)+) => {
        $crate::compiled::compiled!(@routine [$($common)+] [$(#[$attribute])*] [$vis] [unsafe] $($function)+);
    };
    (
        @routine $types:tt [$($attribute:tt)*] [$vis:vis] [$($unsafe:tt)?]
        $name:ident<$($lifetime:lifetime,)* $T:ident: $bound:ident>$arguments:tt $(-> $out:ty)? $body:block $(else $other:block)?
    ) => {
        $($attribute)*
        #[cfg_attr(not(debug_assertions), inline(always))] // (Without optimization what is inlined takes time to build, and gains none.)
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
            // SAFETY: `T` is this type, as its constant says. So the types of an argument, and those of the result, are one type: they are the same text, in which `T` is the name
            // of the parameter or of this type, and the lifetimes are those of the parameters. An unsafe routine has the promise of its caller.
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
