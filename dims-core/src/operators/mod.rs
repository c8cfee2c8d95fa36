//! The operators, each over all other dims of a tensor.

/// A method that can fail, in both of its forms, each with its documentation: `name` panics, and `try_name` has the body, and returns an error.
///
/// ```text
/// operator! {
///     /// What it computes.
///     name try_name, "so is what else is an error",
///     [D: DimRef + .., X: Dims]
///     (self, dim: D) -> Named<Self::Elem, X, Self::Rank> { .. }
/// }
/// ```
macro_rules! operator {
    (
        $(#[doc = $doc:literal])*
        $name:ident $try_name:ident, $errors:literal,
        [$($generics:tt)*]
        ($self:ident $(, $argument:ident: $type:ty)*) -> $out:ty $body:block
    ) => {
        $(#[doc = $doc])*
        ///
        /// # Panics
        ///
        #[doc = concat!("Where [`", stringify!($try_name), "`](Self::", stringify!($try_name), ") returns an error.")]
        #[track_caller]
        fn $name<$($generics)*>($self $(, $argument: $type)*) -> $out {
            $crate::error::unwrap($self.$try_name($($argument),*))
        }

        #[doc = concat!("As [`", stringify!($name), "`](Self::", stringify!($name), "), but what sizes decide is an error; ", $errors, ".")]
        #[track_caller]
        fn $try_name<$($generics)*>($self $(, $argument: $type)*) -> Result<$out, $crate::error::DimError> $body
    };
}

pub mod attention;
mod borrow;
pub mod custom;
pub mod dynamic;
pub mod elementwise;
pub mod fold;
pub mod interpolate;
pub mod join;
pub mod linalg;
pub mod nan;
pub mod nn;
pub mod restructure;
pub mod scan;
pub mod scans;
pub mod select;
pub mod shift;
pub mod sort;
pub mod window;
