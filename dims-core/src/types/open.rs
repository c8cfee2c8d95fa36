//! The dims of an expression that have no size yet.

use core::marker::PhantomData;

/// The dim `D`, and the dims `T`, which wait for a size.
pub struct NoSize<D, T = ()>(PhantomData<(D, T)>);

/// Dims that wait for a size: `()`, or [`NoSize`].
pub trait Open {
    /// These dims and others.
    type And<O: Open>: Open;
}

impl Open for () {
    type And<O: Open> = O;
}

impl<D, T: Open> Open for NoSize<D, T> {
    type And<O: Open> = NoSize<D, T::And<O>>;
}

/// The dims of either list.
pub type Both<A, B> = <A as Open>::And<B>;
