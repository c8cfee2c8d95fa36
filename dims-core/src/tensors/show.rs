//! `Debug`, `Display`, `PartialEq`, and `approx`'s `AbsDiffEq` and `RelativeEq` for tensors.

use crate::error::unwrap;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate_unrecorded;
use crate::expr::step::check_unrecorded;
use crate::plan::shape::Shape;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::{Dims, Keys};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use kernels::scalar::Element;
use ndarray::ArrayViewD;
use smallvec::SmallVec;

impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> Named<T, S, R, E> {
    /// The elements in the order of the set, with their shape.
    pub(crate) fn elements(&self) -> Result<(Vec<T>, Shape), crate::error::DimError> {
        let shape = self.unified_shape()?;
        let order: SmallVec<[usize; 8]> = (0..shape.sizes().len()).collect();
        let data = evaluate_unrecorded::<S, R, _>(&self.expr, &shape, &order)?;
        Ok((data, shape))
    }

    /// Writes the elements, then the text that `axes` makes from the sizes. If the elements cannot
    /// be computed, writes the error instead.
    pub(crate) fn show(
        &self,
        f: &mut fmt::Formatter<'_>,
        element: impl Fn(&ArrayViewD<'_, T>, &mut fmt::Formatter<'_>) -> fmt::Result,
        axes: impl FnOnce(&[usize]) -> String,
    ) -> fmt::Result {
        let (data, shape) = match self.elements() {
            Ok(elements) => elements,
            Err(error) => return write!(f, "<tensor that cannot be evaluated: {error}>"),
        };
        let sizes = shape.sizes();
        match ArrayViewD::from_shape(sizes, &data) {
            Ok(view) => element(&view, f)?,
            Err(_) => f.write_str("[]")?,
        }
        write!(f, "\nwith {}", axes(sizes))
    }
}

/// The dims with their sizes, positional axes as `..`.
fn dims<S: Dims>(sizes: &[usize]) -> String {
    dims_of(S::KEYS, sizes)
}

fn dims_of(keys: &Keys, sizes: &[usize]) -> String {
    let names = keys.as_slice().iter().map(|key| key.name).chain(core::iter::repeat(".."));
    let dims: Vec<String> = names.zip(sizes).map(|(name, size)| format!("{name}: {size}")).collect();
    format!("dims ({})", dims.join(", "))
}

/// Writes elements with their `Debug`. (ndarray's own `Debug` adds shape and strides, which the
/// dims make redundant.)
pub(crate) fn debugged<T: Element>(view: &ArrayViewD<'_, T>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    fmt::Display::fmt(&view.map(|&element| Shown(element)), f)
}

/// The elements, as ndarray shows them, then the dims with their sizes. An expression is evaluated
/// first.
impl<T: Element, S: Dims, R: Rank, E: Expr<Elem = T>> fmt::Debug for Named<T, S, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, debugged, dims::<S>)
    }
}

/// The elements, as ndarray shows them, then the dims with their sizes. An expression is evaluated
/// first.
impl<T: Element + fmt::Display, S: Dims, R: Rank, E: Expr<Elem = T>> fmt::Display for Named<T, S, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, |view, f| fmt::Display::fmt(view, f), dims::<S>)
    }
}

/// An element whose `Display` is its `Debug`, with the width and the precision that were given for
/// the tensor.
#[derive(Clone, Copy)]
struct Shown<T>(T);

impl<T: fmt::Debug> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(element) = self;
        match (f.width(), f.precision()) {
            (Some(width), Some(precision)) => write!(f, "{element:width$.precision$?}"),
            (None, Some(precision)) => write!(f, "{element:.precision$?}"),
            (Some(width), None) => write!(f, "{element:width$?}"),
            (None, None) => write!(f, "{element:?}"),
        }
    }
}

/// Panics if one of the tensors depends on inputs of a function that is being recorded: the
/// recorded program could not branch on the result of the comparison.
#[track_caller]
fn check_compared<T: Element, S: Dims, R: Rank, E1: Expr<Elem = T>, E2: Expr<Elem = T>>(
    a: &Named<T, S, R, E1>,
    b: &Named<T, S, R, E2>,
    operation: &'static str,
) {
    unwrap(check_unrecorded(&a.expr, operation));
    unwrap(check_unrecorded(&b.expr, operation));
}

/// Two tensors are equal if their sizes and all their elements are equal. An expression that cannot
/// be computed is equal to no tensor. In a function that is [recorded](crate::program::record),
/// comparing a tensor that depends on the inputs panics.
impl<T, S, R, E1, E2> PartialEq<Named<T, S, R, E2>> for Named<T, S, R, E1>
where
    T: Element + PartialEq,
    S: Dims,
    R: Rank,
    E1: Expr<Elem = T>,
    E2: Expr<Elem = T>,
{
    #[track_caller]
    fn eq(&self, other: &Named<T, S, R, E2>) -> bool {
        check_compared(self, other, "==");
        match (self.elements(), other.elements()) {
            (Ok((a, a_shape)), Ok((b, b_shape))) => a_shape.sizes() == b_shape.sizes() && a == b,
            _ => false,
        }
    }
}

#[cfg(feature = "approx")]
mod approximate {
    use super::*;
    use approx::{AbsDiffEq, RelativeEq};

    impl<T, S, R, E1, E2> AbsDiffEq<Named<T, S, R, E2>> for Named<T, S, R, E1>
    where
        T: Element + AbsDiffEq<Epsilon: Clone>,
        S: Dims,
        R: Rank,
        E1: Expr<Elem = T>,
        E2: Expr<Elem = T>,
    {
        type Epsilon = T::Epsilon;

        fn default_epsilon() -> T::Epsilon {
            T::default_epsilon()
        }

        #[track_caller]
        fn abs_diff_eq(&self, other: &Named<T, S, R, E2>, epsilon: T::Epsilon) -> bool {
            check_compared(self, other, "abs_diff_eq");
            match (self.elements(), other.elements()) {
                (Ok((a, a_shape)), Ok((b, b_shape))) => {
                    a_shape.sizes() == b_shape.sizes()
                        && a.iter().zip(&b).all(|(a, b)| a.abs_diff_eq(b, epsilon.clone()))
                }
                _ => false,
            }
        }
    }

    impl<T, S, R, E1, E2> RelativeEq<Named<T, S, R, E2>> for Named<T, S, R, E1>
    where
        T: Element + RelativeEq<Epsilon: Clone>,
        S: Dims,
        R: Rank,
        E1: Expr<Elem = T>,
        E2: Expr<Elem = T>,
    {
        fn default_max_relative() -> T::Epsilon {
            T::default_max_relative()
        }

        #[track_caller]
        fn relative_eq(
            &self,
            other: &Named<T, S, R, E2>,
            epsilon: T::Epsilon,
            max_relative: T::Epsilon,
        ) -> bool {
            check_compared(self, other, "relative_eq");
            match (self.elements(), other.elements()) {
                (Ok((a, a_shape)), Ok((b, b_shape))) => {
                    a_shape.sizes() == b_shape.sizes()
                        && a.iter()
                            .zip(&b)
                            .all(|(a, b)| a.relative_eq(b, epsilon.clone(), max_relative.clone()))
                }
                _ => false,
            }
        }
    }
}
