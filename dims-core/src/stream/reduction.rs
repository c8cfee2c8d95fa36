//! Reductions. A reduction along the data dimension keeps this axis, with one element. Reductions
//! along other dims are generally slower.

use super::Stream;
use super::axes::KeptAs;
use super::ledger::CostClass;
use crate::error::DimError;
use crate::execute::reduce::{Empty, combined};
use crate::plan::shape::Shape;
use crate::types::brand::Brand;
use crate::types::condition::condition;
use crate::types::dim::DimRef;
use crate::types::rank::Rank0;
use crate::types::set::list::List;
use crate::types::set::ordered::{DividesInto, Is, Replaced};
use crate::types::set::{Bound, Dims, Satisfies};
use core::marker::PhantomData;
use kernels::loops::axes::Sizes;
use kernels::reduce::Reducer;
use kernels::reduce::reducers;
use kernels::scalar::{Analytic, Element, Num, Ordered, Real};
use twins::panicking_twin;

/// One of the axes `L` of a stream that can be reduced away: any but the data dimension `D`.
pub trait ReducedAway<L, D>: DimRef {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The remaining axes.
    type Left: Dims;
}
impl<A, L, D> ReducedAway<L, D> for A
where
    A: DimRef<Brand: Satisfies<Is<D>, Holds: NotTheDataDim<D, L>>>,
    L: Dims<List: DividesInto<A::Brand, (), Holds: Bound<A::Brand, L>>>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Left = <Replaced<L, A, ()> as List>::Tuple;
}

condition! {
    /// The condition that a dim is not the data dimension `D` of a stream of `L`.
    #[diagnostic::on_unimplemented(
        message = "`{D}` is the data dimension of this stream of `{L}`, and cannot be reduced away",
        label = "a reduction along the data dimension keeps it, with one element",
        note = "name what it becomes: `dims! {{ pub struct One = 1; }}`, and `x.sum_keepdim({D}, One)` instead of `x.sum({D})`"
    )]
    pub trait NotTheDataDim<D, L> for False;
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $try_name:ident $keep:ident $try_keep:ident [$($bound:tt)*] $reducer:expr, $empty:expr;)*) => {
        impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {$(
            $(#[$doc])*
            ///
            /// Reduces a dim other than the data dimension. This is generally slower. The data
            /// dimension is kept.
            #[panicking_twin]
            pub fn $try_name<A: ReducedAway<L, D>>(&self, axis: A) -> Result<Stream<T, A::Left, D>, DimError>
            where
                T: $($bound)*,
            {
                let out = self.reduced::<A, A::Left, D, _>(axis, None, $reducer, $empty)?;
                let name = stringify!($name);
                out.note(CostClass::Slower, || format!("{name}({})", axis.info().name), || vec![self.shape()]);
                Ok(out)
            }

            $(#[$doc])*
            ///
            /// Reduces any dim, and replaces it with the dim `one`, which has one element. If the
            /// reduced dim is the data dimension, `one` becomes the data dimension.
            #[panicking_twin]
            pub fn $try_keep<A: DimRef, N: KeptAs<A, L, D>>(
                &self,
                axis: A,
                one: N,
            ) -> Result<Stream<T, N::Axes, N::Data>, DimError>
            where
                T: $($bound)*,
            {
                one.info().unify(1, None)?;
                let out = self.reduced::<A, N::Axes, N::Data, _>(axis, Some(1), $reducer, $empty)?;
                let cost = if Self::is_data(axis) { CostClass::Compute } else { CostClass::Slower };
                let name = stringify!($keep);
                out.note(cost, || format!("{name}({})", axis.info().name), || vec![self.shape()]);
                Ok(out)
            }
        )*}
    };
}

reductions! {
    /// The sum; 0 if there are no elements.
    ///
    /// ```text
    /// [a! b].sum(dim=1) -> [a!]
    /// ```
    ///
    /// ```
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct A; pub struct B; pub struct One = 1; }
    /// let x = from_vec((A.of(2), B.of(3)), vec![1, 2, 3, 4, 5, 6]).stream((A, B), A);
    /// let away: Stream<i32, (A,), A> = x.sum(B);
    /// let kept: Stream<i32, (One, B), One> = x.sum_keepdim(A, One);
    /// assert_eq!((away.to_array(), kept.to_array()), (ndarray::array![6, 15], ndarray::array![[5, 7, 9]]));
    /// ```
    sum try_sum sum_keepdim try_sum_keepdim [Num] reducers::Sum::ONCE, Empty::Allowed;
    /// The product; 1 if there are no elements.
    prod try_prod prod_keepdim try_prod_keepdim [Num] reducers::Prod, Empty::Allowed;
    /// The mean; NaN if there are no elements.
    mean try_mean mean_keepdim try_mean_keepdim [Analytic] reducers::Mean, Empty::Allowed;
    /// The population variance, `mean of (x - mean)^2`.
    var try_var var_keepdim try_var_keepdim [Real] reducers::Variance { ddof: T::ZERO, root: false }, Empty::Allowed;
    /// The greatest element. There must be at least one element.
    max try_max max_keepdim try_max_keepdim [Ordered] reducers::Max, Empty::Refused("max");
    /// The least element. There must be at least one element.
    min try_min min_keepdim try_min_keepdim [Ordered] reducers::Min, Empty::Refused("min");
    /// `ln(sum of e^x)`, without overflow.
    logsumexp try_logsumexp logsumexp_keepdim try_logsumexp_keepdim [Real] reducers::LogSumExp(PhantomData), Empty::Allowed;
}

impl<T: Element, L: Dims, D: Brand> Stream<T, L, D> {
    /// Reduces an axis. If `kept` is given, an axis of this size replaces it. `M` are the axes
    /// afterwards, and `E` is the data dimension afterwards.
    fn reduced<A: DimRef, M: Dims, E: Brand, Q: Reducer<T, Out = T>>(
        &self,
        axis: A,
        kept: Option<usize>,
        reducer: Q,
        empty: Empty,
    ) -> Result<Stream<T, M, E>, DimError> {
        let tensor = self.in_memory();
        let mut shape = Shape::new::<L, Rank0>();
        tensor.unify(&mut shape)?;
        shape.check_given(&axis.info())?;
        let at = Self::position(axis);
        let data = combined::<L, Rank0, _, A, Q>(&tensor.expr, &shape, reducer, empty)?;
        let mut sizes: Sizes = shape.sizes().into();
        match kept {
            Some(size) => sizes[at] = size,
            None => drop(sizes.remove(at)),
        }
        Stream::from_vec(data, &sizes)
    }
}
