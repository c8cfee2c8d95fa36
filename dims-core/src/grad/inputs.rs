//! The inputs of gradients.

use crate::batch::closed::EndsInRest;
use crate::error::DimError;
use crate::execute::reduce::Reductions;
use crate::grad::Parameters;
use crate::grad::lent::{Lend, Referring};
use crate::grad::parameters::{Path, Walk};
use crate::grad::variables::{InPlace, Variables};
use crate::storage::View;
use crate::tensors::named::Named;
use crate::types::brand::Rest;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use kernels::scalar::Element;

/// The inputs with respect to which a gradient is taken: a reference to [`Parameters`], or a tuple
/// of references.
///
/// The function gets the inputs in the same form: `|w| ..` for `&w`, `|(w, b)| ..` for `(&w, &b)`.
/// The gradient is an owned value of the type of `w`, or a tuple.
///
/// Each call copies the parameters, so that they can be told apart from constants that share their
/// memory. [`grad`](crate::grad::grad), [`value_and_grad`](crate::grad::value_and_grad),
/// [`loss_and_grad`](crate::grad::loss_and_grad) and the forms with `_with` do not copy for
/// `&mut w`, unless the memory of `w` is shared or traced, or an axis repeats its elements. The
/// function still gets `&w`, and `w` is unchanged afterwards. Other functions, such as
/// [`vjp`](crate::grad::vjp), treat `&mut w` as `&w`.
///
/// ```
/// use typed_dims::grad::value_and_grad;
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// let mut w = from_vec(In.of(2), vec![1.0_f64, -2.0]);
/// let (loss, gradient) = value_and_grad(|w| w.square().sum(In), &mut w);
/// w = (w - 0.25 * gradient).eval();
/// assert_eq!((loss, w.order(In)), (5.0, ndarray::array![0.5, -1.0]));
/// ```
#[diagnostic::on_unimplemented(
    message = "no derivative with respect to `{Self}`",
    label = "expected a reference to an owned tensor, to a struct with `#[derive(Parameters)]`, or a tuple of up to 12 such references: `&w`, `(&w, &b)`",
    note = "compute an expression first, `&x.eval()`; pass a number as a tensor without dims, `&full((), x)`; where the type is a parameter, write `P: Parameters`"
)]
pub trait Inputs: Referring<Value: Parameters> + for<'t> Lend<'t> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// Guards for the values of `&mut` references, which are variables in their own memory until
    /// the guards are dropped.
    #[doc(hidden)]
    type InPlace;
    /// The values as variables, in place for `&mut` references, copied for others.
    #[doc(hidden)]
    fn variables(
        self,
        path: &mut Path,
        variables: &mut Variables,
    ) -> Result<(Self::InPlace, Self::Value), DimError>;
    /// [`Parameters::walk`] of the values.
    #[doc(hidden)]
    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error>;
    /// [`Parameters::walk`] of the owned values.
    #[doc(hidden)]
    fn walk_value<W: Walk<1>>(
        value: &Self::Value,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self::Value, W::Error>;
    /// [`Parameters::walk`] of two owned values.
    #[doc(hidden)]
    fn walk_pair<W: Walk<2>>(
        values: [&Self::Value; 2],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self::Value, W::Error>;
    /// [`Parameters::walk`] of an owned value and these inputs.
    #[doc(hidden)]
    fn walk_with<W: Walk<2>>(
        &self,
        value: &Self::Value,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self::Value, W::Error>;
}

#[diagnostic::do_not_recommend]
impl<T: Element, S: Dims, R: Rank> Inputs for Named<T, S, R, View<'_, T, S, R>> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type InPlace = ();

    fn variables(self, path: &mut Path, variables: &mut Variables) -> Result<((), Self::Value), DimError> {
        Ok(((), self.walk(path, variables)?))
    }

    fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Named<T, S, R>, W::Error> {
        Parameters::walk([&self.try_eval()?], path, walk)
    }

    fn walk_value<W: Walk<1>>(
        value: &Named<T, S, R>,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Named<T, S, R>, W::Error> {
        Parameters::walk([value], path, walk)
    }

    fn walk_pair<W: Walk<2>>(
        values: [&Named<T, S, R>; 2],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Named<T, S, R>, W::Error> {
        Parameters::walk(values, path, walk)
    }

    fn walk_with<W: Walk<2>>(
        &self,
        value: &Named<T, S, R>,
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Named<T, S, R>, W::Error> {
        Parameters::walk([value, &self.try_eval()?], path, walk)
    }
}

/// Tensors that all have the extra dims `Rest<B>`, so that each example has its own values.
#[diagnostic::on_unimplemented(
    message = "the loss has the extra dims `Rest<{B}>`, but `{Self}` lacks them",
    label = "for the gradient of each example, pass a tensor with `Rest<{B}>`: `&Tensor<f32, (.., Rest<{B}>)>`, or a tuple of them"
)]
pub trait OfEach<B> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}

#[diagnostic::do_not_recommend]
impl<B: Dims, T, S: Dims<List: EndsInRest<Rest = (Rest<B>,)>>, R: Rank> OfEach<B> for &Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl<B: Dims, T, S: Dims<List: EndsInRest<Rest = (Rest<B>,)>>, R: Rank> OfEach<B> for &mut Named<T, S, R> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

#[diagnostic::do_not_recommend]
impl<'a, B: Dims, T, S: Dims<List: EndsInRest<Rest = (Rest<B>,)>>, R: Rank> OfEach<B>
    for Named<T, S, R, View<'a, T, S, R>>
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// The walks of [`Inputs`], for references.
macro_rules! walks_of_references {
    () => {
        fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
            P::walk([self], path, walk)
        }

        fn walk_value<W: Walk<1>>(value: &P, path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
            P::walk([value], path, walk)
        }

        fn walk_pair<W: Walk<2>>(values: [&P; 2], path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
            P::walk(values, path, walk)
        }

        fn walk_with<W: Walk<2>>(&self, value: &P, path: &mut Path, walk: &mut W) -> Result<P, W::Error> {
            P::walk([value, self], path, walk)
        }
    };
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> Inputs for &P {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type InPlace = ();

    fn variables(self, path: &mut Path, variables: &mut Variables) -> Result<((), Self::Value), DimError> {
        Ok(((), self.walk(path, variables)?))
    }

    walks_of_references!();
}

#[diagnostic::do_not_recommend]
impl<'m, P: Parameters> Inputs for &'m mut P {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type InPlace = InPlace<'m, P>;

    fn variables(self, path: &mut Path, variables: &mut Variables) -> Result<(InPlace<'m, P>, P), DimError> {
        let own = InPlace::new(self, path, variables)?;
        let value = own.variables(path, variables)?;
        Ok((own, value))
    }

    walks_of_references!();
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<Z, $($p: OfEach<Z>),*> OfEach<Z> for ($($p,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

        #[diagnostic::do_not_recommend]
        impl<$($p: Inputs),*> Inputs for ($($p,)*) {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type InPlace = ($($p::InPlace,)*);

            fn variables(
                self,
                path: &mut Path,
                variables: &mut Variables,
            ) -> Result<(Self::InPlace, Self::Value), DimError> {
                let each = ($(path.index($n, |path| self.$n.variables(path, variables))?,)*);
                Ok((($(each.$n.0,)*), ($(each.$n.1,)*)))
            }

            fn walk<W: Walk<1>>(&self, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error> {
                Ok(($(path.index($n, |path| self.$n.walk(path, walk))?,)*))
            }

            fn walk_value<W: Walk<1>>(value: &Self::Value, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error> {
                Ok(($(path.index($n, |path| $p::walk_value(&value.$n, path, walk))?,)*))
            }

            fn walk_pair<W: Walk<2>>([first, second]: [&Self::Value; 2], path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error> {
                Ok(($(path.index($n, |path| $p::walk_pair([&first.$n, &second.$n], path, walk))?,)*))
            }

            fn walk_with<W: Walk<2>>(&self, value: &Self::Value, path: &mut Path, walk: &mut W) -> Result<Self::Value, W::Error> {
                Ok(($(path.index($n, |path| self.$n.walk_with(&value.$n, path, walk))?,)*))
            }
        }
    };
}

crate::types::tuples::each_tuple_of_inputs!(tuples);
