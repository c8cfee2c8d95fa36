//! The declared dims that an expression uses as values without a size: `Batch`, not `Batch.of(2)`.

use crate::types::brand::Brand;
use crate::types::condition::{Bool, MaybeDim, Nothing};
use crate::types::size::Size;
use core::marker::PhantomData;

/// The dim `D` and the dims `T`, which are used without a size.
pub struct NoSize<D, T = ()>(PhantomData<(D, T)>);

/// Dims that are used without a size: `()`, or [`NoSize`]. Some of them may have static sizes.
pub trait Open {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// These dims, then the dims `O`.
    type And<O: Open>: Open;
    /// The first dim that has no static size, or [`Nothing`].
    type FirstUnsized: MaybeDim;
}

impl Open for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type And<O: Open> = O;
    type FirstUnsized = Nothing;
}

impl<D: Brand, T: Open> Open for NoSize<D, T> {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type And<O: Open> = NoSize<D, T::And<O>>;
    type FirstUnsized =
        <<<<D::Size as Size>::IsStatic as Bool>::Not as Bool>::OrNothing<D> as MaybeDim>::Or<T::FirstUnsized>;
}

/// The dims of `A`, then those of `B`.
pub type OpenInEither<A, B> = <A as Open>::And<B>;
