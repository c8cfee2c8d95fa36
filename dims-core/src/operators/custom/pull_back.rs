//! Pull-backs of users' operations on arrays.

use super::arrays::Pull;
use super::tensors::Takes;
use super::{ArrayOp, NdOf};
use crate::types::rank::RankOf;
use alloc::sync::Arc;
use core::marker::PhantomData;
use kernels::scalar::Element;
use ndarray::ArrayView;

/// The pull-back of an operation on arrays, for one example: from the array `x`, the result `y`,
/// and the cotangent `dy` of the result, it computes the cotangent of `x`,
///
/// ```text
/// dx[i] = sum over o of dy[o] * d y[o] / d x[i]
/// ```
///
/// which has the shape of `x`. For an operation on several arrays, `x` and its cotangent are
/// tuples. [`ArrayOp::pull_back`] returns a `PullBack`.
pub struct PullBack<Args: 'static, In: Takes<Args>, E: Element, Out: RankOf> {
    // (Recording needs the standard library.)
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    function: Pull<In::Flat, E>,
    marker: PhantomData<fn() -> Out>,
}

/// The pull-back of the operation `O` on arrays of `Args`.
pub type PullBackOf<O, Args> =
    PullBack<Args, <O as ArrayOp<Args>>::In, <O as ArrayOp<Args>>::Elem, <O as ArrayOp<Args>>::Out>;

impl<Args, In: Takes<Args>, E: Element, Out: RankOf> PullBack<Args, In, E, Out> {
    /// Creates a pull-back from a function.
    pub fn new<F>(f: F) -> Self
    where
        F: Fn(In::Views<'_>, ArrayView<'_, E, NdOf<Out>>, ArrayView<'_, E, NdOf<Out>>) -> In::Arrays
            + Send
            + Sync
            + 'static,
    {
        let same = "the ranks are the same";
        let function: Pull<In::Flat, E> = Arc::new(move |tensors, layouts, at, y, dy, flat| {
            let (y, dy) = (y.into_dimensionality().expect(same), dy.into_dimensionality().expect(same));
            In::flatten(f(In::views(tensors, layouts, at), y, dy), layouts, flat)
        });
        PullBack { function, marker: PhantomData }
    }
}

#[cfg(feature = "std")]
mod derivative {
    use super::super::arrays::Layouts;
    use super::super::calls::sizes_of_result;
    use super::super::pulled::{PulledExamples, ResultsOfCalls, in_type};
    use super::*;
    use alloc::vec::Vec;
    use kernels::error::Error;
    use kernels::loops::axes::Sizes;
    use kernels::step::{Pulled, StepDerivative};
    use kernels::trace::{Node, Part};

    impl<Args, In: Takes<Args>, E: Element, Out: RankOf> PullBack<Args, In, E, Out> {
        /// The derivative of the calls for all positions of dims with the sizes `counts`.
        pub(in super::super) fn of_calls(
            self,
            name: &'static str,
            counts: Sizes,
            layouts: Layouts,
        ) -> PullOfCalls<Args, In, E> {
            PullOfCalls { name, counts, layouts, function: self.function, args: PhantomData }
        }
    }

    /// The derivative of an operation on arrays.
    pub(in super::super) struct PullOfCalls<Args: 'static, In: Takes<Args>, E: Element> {
        name: &'static str,
        /// The sizes of all dims.
        counts: Sizes,
        layouts: Layouts,
        function: Pull<In::Flat, E>,
        args: PhantomData<fn() -> Args>,
    }

    impl<Args, In: Takes<Args>, E: Element> StepDerivative for PullOfCalls<Args, In, E> {
        fn name(&self) -> &'static str {
            self.name
        }

        fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
            let results = ResultsOfCalls {
                name: self.name,
                counts: self.counts.clone(),
                layouts: self.layouts.clone(),
                function: Arc::clone(&self.function),
                y: in_type(step.value),
                y_shape: sizes_of_result(step),
                of_fields: In::of_fields,
            };
            let flat = results.pulled(step.operands, &in_type(step.cotangent))?;
            Ok(In::parts(flat, &PulledExamples { step, results: &Arc::new(results) }))
        }
    }
}
