//! [`Parameters`] that consist of other [`Parameters`].

use super::{
    DerivedParameters, Mismatch, ParameterField, Parameters, Path, Segment, TensorSets, Visitor, Walk,
};
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

/// The same part of each value.
///
/// Walks call this function instead of the `map` of an array, for which rustc compiles several
/// functions for each closure. `part` is a function pointer, so all calls with the same types share
/// one function.
#[doc(hidden)]
pub fn each_part<'v, P, Q: ?Sized, const N: usize>(of: [&'v P; N], part: fn(&'v P) -> &'v Q) -> [&'v Q; N] {
    if const { N == 0 } {
        return nothing();
    }
    let mut parts = [part(of[0]); N];
    for at in 1..N {
        parts[at] = part(of[at]);
    }
    parts
}

/// Like [`each_part`], by mutable reference.
#[doc(hidden)]
pub fn each_part_mut<'v, P, Q: ?Sized, const M: usize>(
    changed: &'v mut [&mut P; M],
    part: fn(&'v mut P) -> &'v mut Q,
) -> [&'v mut Q; M] {
    let mut changed = changed.iter_mut();
    core::array::from_fn(|_| part(changed.next().expect("there are `M` values")))
}

/// The references to no values, for `N` = 0.
fn nothing<'v, Q: ?Sized, const N: usize>() -> [&'v Q; N] {
    core::array::from_fn(|_| unreachable!("there is no value"))
}

/// The element at a position of each slice.
fn each_element<P, const N: usize>(of: [&[P]; N], at: usize) -> [&P; N] {
    if const { N == 0 } {
        return nothing();
    }
    let mut elements = [&of[0][at]; N];
    for number in 1..N {
        elements[number] = &of[number][at];
    }
    elements
}

/// Like [`each_element`], by mutable reference.
fn each_element_mut<'v, P, const M: usize>(changed: &'v mut [&mut [P]; M], at: usize) -> [&'v mut P; M] {
    let mut changed = changed.iter_mut();
    core::array::from_fn(|_| &mut changed.next().expect("there are `M` slices")[at])
}

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
    let mut elements = Vec::with_capacity(first);
    for at in 0..first {
        path.push(Segment::Index(at));
        let element = P::walk(each_element(of, at), path, walk);
        path.pop();
        elements.push(element?);
    }
    Ok(elements)
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
        path.push(Segment::Index(at));
        let visited = P::visit(each_element_mut(&mut changed, at), each_element(read, at), path, visit);
        path.pop();
        visited?;
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
        walk_slices(each_part(of, |of| &of[..]), path, walk)
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let changed = each_part_mut(&mut changed, |of| &mut of[..]);
        visit_slices(changed, each_part(read, |of| &of[..]), path, visit)
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
        let elements = walk_slices(each_part(of, |of| &of[..]), path, walk)?;
        Ok(elements.try_into().ok().expect("the lengths are equal"))
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let changed = each_part_mut(&mut changed, |of| &mut of[..]);
        visit_slices(changed, each_part(read, |of| &of[..]), path, visit)
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
        let parts = each_part(of, |of| of.as_ref().expect("if the first part is there, all are"));
        Ok(Some(P::walk(parts, path, walk)?))
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
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
        let changed =
            each_part_mut(&mut changed, |of| of.as_mut().expect("if the first part is there, all are"));
        let read = each_part(read, |of| of.as_ref().expect("if the first part is there, all are"));
        P::visit(changed, read, path, visit)
    }
}

// `Box<P>` cannot implement `Parameters` directly: another crate could implement
// `DerivedParameters` for a box of its own type, which would then implement `Parameters` twice.
impl<P: Parameters> DerivedParameters for Box<P> {
    const TENSORS: TensorSets = P::TENSORS;

    fn walk<const N: usize, W: Walk<N>>(
        of: [&Self; N],
        path: &mut Path,
        walk: &mut W,
    ) -> Result<Self, W::Error> {
        Ok(Box::new(P::walk(each_part(of, |of| &**of), path, walk)?))
    }

    fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
        mut changed: [&mut Self; M],
        read: [&Self; N],
        path: &mut Path,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        P::visit(each_part_mut(&mut changed, |of| &mut **of), each_part(read, |of| &**of), path, visit)
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
                Ok(($({
                    path.push(Segment::Index($n));
                    let part = $p::walk(each_part(of, |of| &of.$n), path, walk);
                    path.pop();
                    part?
                },)*))
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                $(
                    path.push(Segment::Index($n));
                    let parts = each_part_mut(&mut changed, |of| &mut of.$n);
                    let visited = $p::visit(parts, each_part(read, |of| &of.$n), path, visit);
                    path.pop();
                    visited?;
                )*
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
                    ParameterField::walk_field(each_part(of, |of| &of.$field), stringify!($field), path, walk)?;)*
                Ok($layer { $($field),* })
            }

            fn visit<const M: usize, const N: usize, V: Visitor<M, N>>(
                mut changed: [&mut Self; M],
                read: [&Self; N],
                path: &mut Path,
                visit: &mut V,
            ) -> Result<(), V::Error> {
                $(
                    let tensors = each_part_mut(&mut changed, |of| &mut of.$field);
                    let fixed = each_part(read, |of| &of.$field);
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
