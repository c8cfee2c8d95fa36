//! The types that are made of tensors because their parts are.

use super::{Mismatch, ParameterField, Parameters, Path, Walk};
use crate::dim::DimList;
use crate::nn::linear::Linear;
use crate::set::{Dims, Union};
use crate::types::tuples::each_tuple;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;

#[diagnostic::do_not_recommend]
impl<P: Parameters> Parameters for Vec<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let first = of[0].len();
        if let Some(other) = of.iter().map(|of| of.len()).find(|&len| len != first) {
            return Err(walk.mismatch(path, Mismatch::Length { first, other }));
        }
        let part = |at| path.index(at, |path| P::walk(of.map(|of| &of[at]), path, walk));
        (0..first).map(part).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters, const LEN: usize> Parameters for [P; LEN] {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let mut failed = None;
        // Nothing is walked behind an error, as in a `Vec`.
        let parts: [Option<P>; LEN] = core::array::from_fn(|at| {
            if failed.is_some() {
                return None;
            }
            let part = path.index(at, |path| P::walk(of.map(|of| &of[at]), path, walk));
            part.map_err(|error| failed = Some(error)).ok()
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(parts.map(|part| part.expect("no part failed"))),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> Parameters for Option<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let first = of[0].is_some();
        if of.iter().any(|of| of.is_some() != first) {
            return Err(walk.mismatch(path, Mismatch::Presence { first }));
        }
        if !first {
            return Ok(None);
        }
        let parts = of.map(|of| of.as_ref().expect("all are there if the first one is"));
        P::walk(parts, path, walk).map(Some)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> Parameters for Box<P> {
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        P::walk(of.map(|of| &**of), path, walk).map(Box::new)
    }
}

/// No tensors.
#[diagnostic::do_not_recommend]
impl<T: ?Sized> Parameters for PhantomData<T> {
    fn walk<const N: usize, W: Walk<N>>(_: [&Self; N], _: &mut Path, _: &mut W) -> Result<Self, W::Error> {
        Ok(PhantomData)
    }
}

/// No tensors.
#[diagnostic::do_not_recommend]
impl Parameters for () {
    fn walk<const N: usize, W: Walk<N>>(_: [&Self; N], _: &mut Path, _: &mut W) -> Result<Self, W::Error> {
        Ok(())
    }
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($p: Parameters),*> Parameters for ($($p,)*) {
            fn walk<const N: usize, W: Walk<N>>(of: [&Self; N], path: &mut Path, walk: &mut W) -> Result<Self, W::Error> {
                Ok(($(path.index($n, |path| $p::walk(of.map(|of| &of.$n), path, walk))?,)*))
            }
        }
    };
}

each_tuple!(tuples);

#[diagnostic::do_not_recommend]
impl<I, O, T> Parameters for Linear<I, O, T>
where
    I: Dims + DimList,
    O: Dims + Union<I>,
    T: Element,
{
    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let weight = ParameterField::walk_field(of.map(|of| &of.weight), "weight", path, walk)?;
        let bias = ParameterField::walk_field(of.map(|of| &of.bias), "bias", path, walk)?;
        Ok(Linear { weight, bias })
    }
}
