//! [`Parameters`] that consist of other [`Parameters`].

use super::{DerivedParameters, Mismatch, ParameterField, Parameters, Path, TensorSets, Visitor, Walk};
use crate::operators::nn::bias::NoBias;
use crate::operators::nn::linear::{Linear, Projection};
use crate::tensors::named::Named;
use crate::types::dim::DimList;
use crate::types::set::{Dims, Union};
use crate::types::tuples::each_tuple;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kernels::scalar::Element;

/// Walks over the elements of slices, which must have equal lengths.
pub(crate) fn walk_slices<P: Parameters, const N: usize, W: Walk<N>>(
    of: [&[P]; N],
    path: &mut Path,
    walk: &mut W,
) -> Result<Vec<P>, W::Error> {
    let first = of[0].len();
    if let Some(other) = of.iter().map(|of| of.len()).find(|&len| len != first) {
        return Err(walk.mismatch(path, Mismatch::Length { first, other }));
    }
    (0..first).map(|at| path.index(at, |path| P::walk(of.map(|of| &of[at]), path, walk))).collect()
}

/// Visits the elements of slices, which must have equal lengths.
pub(crate) fn visit_slices<P: Parameters, const M: usize, const N: usize, V: Visitor<M, N>>(
    mut changed: [&mut [P]; M],
    read: [&[P]; N],
    path: &mut Path,
    visit: &mut V,
) -> Result<(), V::Error> {
    let mut lens = changed.iter().map(|of| of.len()).chain(read.iter().map(|of| of.len()));
    let first = lens.next().unwrap_or(0);
    if let Some(other) = lens.find(|&len| len != first) {
        return Err(visit.mismatch(path, Mismatch::Length { first, other }));
    }
    for at in 0..first {
        path.index(at, |path| {
            let changed = changed.each_mut().map(|of| &mut of[at]);
            P::visit(changed, read.map(|of| &of[at]), path, visit)
        })?;
    }
    Ok(())
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> Parameters for Vec<P> {
    const TENSORS: TensorSets = P::TENSORS;

    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        walk_slices(of.map(|of| &of[..]), path, walk)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        visit_slices(changed.map(|of| &mut of[..]), read.map(|of| &of[..]), path, visit)
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters, const LEN: usize> Parameters for [P; LEN] {
    const TENSORS: TensorSets = P::TENSORS;

    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        let mut failed = None;
        // Stop at the first error, as for a `Vec`.
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

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        for at in 0..LEN {
            path.index(at, |path| {
                let changed = changed.each_mut().map(|of| &mut of[at]);
                P::visit(changed, read.map(|of| &of[at]), path, visit)
            })?;
        }
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<P: Parameters> Parameters for Option<P> {
    const TENSORS: TensorSets = P::TENSORS;

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

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let mut present = changed.iter().map(|of| of.is_some()).chain(read.iter().map(|of| of.is_some()));
        let first = present.next().unwrap_or(false);
        if present.any(|other| other != first) {
            return Err(visit.mismatch(path, Mismatch::Presence { first }));
        }
        if !first {
            return Ok(());
        }
        let changed = changed.map(|of| of.as_mut().expect("all are there if the first one is"));
        let read = read.map(|of| of.as_ref().expect("all are there if the first one is"));
        P::visit(changed, read, path, visit)
    }
}

// (Not `Parameters`: rustc assumes that other crates could derive that for a box.)
impl<P: Parameters> DerivedParameters for Box<P> {
    const TENSORS: TensorSets = P::TENSORS;

    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        P::walk(of.map(|of| &**of), path, walk).map(Box::new)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        P::visit(changed.map(|of| &mut **of), read.map(|of| &**of), path, visit)
    }
}

macro_rules! without_tensors {
    ($([$($generics:tt)*] $of:ty = $value:expr;)*) => {$(
        /// No tensors.
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Parameters for $of {
            fn walk<const N: usize, W: Walk<N>>(_: [&Self; N], _: &mut Path, _: &mut W) -> Result<Self, W::Error> {
                Ok($value)
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                _: [&mut Self; M],
                _: [&Self; N],
                _: &mut Path,
                _: &mut V,
            ) -> Result<(), V::Error> {
                Ok(())
            }
        }
    )*};
}

without_tensors! {
    [T: ?Sized] PhantomData<T> = PhantomData;
    [] () = ();
    [] NoBias = NoBias;
}

macro_rules! tuples {
    ($($p:ident $n:tt)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($p: Parameters),*> Parameters for ($($p,)*) {
            const TENSORS: TensorSets = TensorSets { keys: TensorSets::UNKNOWN.keys, parts: &[$($p::TENSORS),*] };

            fn walk<const N: usize, W: Walk<N>>(of: [&Self; N], path: &mut Path, walk: &mut W) -> Result<Self, W::Error> {
                Ok(($(path.index($n, |path| $p::walk(of.map(|of| &of.$n), path, walk))?,)*))
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                $(path.index($n, |path| {
                    let changed = changed.each_mut().map(|of| &mut of.$n);
                    $p::visit(changed, read.map(|of| &of.$n), path, visit)
                })?;)*
                Ok(())
            }
        }
    };
}

each_tuple!(tuples);

macro_rules! linear_maps {
    ($($layer:ident { $($field:ident: $of:ty),* })*) => {$(
        #[diagnostic::do_not_recommend]
        impl<I, O, T> Parameters for $layer<I, O, T>
        where
            I: Dims + DimList,
            O: Dims + Union<I>,
            T: Element,
        {
            const TENSORS: TensorSets =
                TensorSets { keys: TensorSets::UNKNOWN.keys, parts: &[$(<$of as Parameters>::TENSORS),*] };

            fn walk<const N: usize, W: Walk<N>>(
                of: [&Self; N],
                path: &mut Path,
                walk: &mut W,
            ) -> Result<Self, W::Error> {
                $(let $field =
                    ParameterField::walk_field(of.map(|of| &of.$field), stringify!($field), path, walk)?;)*
                Ok($layer { $($field),* })
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                $(
                    let tensors = changed.each_mut().map(|of| &mut of.$field);
                    let fixed = read.map(|of| &of.$field);
                    ParameterField::visit_field(tensors, fixed, stringify!($field), path, visit)?;
                )*
                Ok(())
            }
        }
    )*};
}

linear_maps! {
    Linear { weight: Named<T, <O as Union<I>>::Out>, bias: Named<T, O> }
    Projection { weight: Named<T, <O as Union<I>>::Out> }
}
