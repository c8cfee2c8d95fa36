//! Pull-backs of users' operations on arrays.

use super::tensors::{ArrayLayout, Takes};
use super::{ArrayOp, NdOf};
use crate::types::rank::RankOf;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
#[cfg(feature = "std")]
use kernels::loops::axes::Sizes;
use kernels::scalar::Element;
use kernels::step::StepOperands;
use ndarray::{ArrayView, ArrayViewD};

/// The pull-back of an operation on arrays, for one example: from the array `x`, the result `y`,
/// and the cotangent `dy` of the result, it computes the cotangent of `x`,
///
/// ```text
/// dx[i] = sum over o of dy[o] * d y[o] / d x[i]
/// ```
///
/// which has the shape of `x`. For an operation on several arrays, `x` and its cotangent are
/// tuples. [`ArrayOp::pull_back`] returns it.
pub struct PullBack<Args: 'static, In: Takes<Args>, E: Element, Out: RankOf> {
    // (Recording needs the standard library.)
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    function: Pull<In::Flat, E>,
    marker: PhantomData<fn() -> Out>,
}

/// The pull-back of the operation `O` on arrays of `Args`.
pub type PullBackOf<O, Args> =
    PullBack<Args, <O as ArrayOp<Args>>::In, <O as ArrayOp<Args>>::Elem, <O as ArrayOp<Args>>::Out>;

/// A pull-back without ranks in its type. Its arguments are all tensors and their layouts, the
/// position of an example, its result, and the cotangent. It appends the gradients to the gradients
/// of other examples. They must have the shapes of the arrays.
type Pull<Flat, E> = Arc<
    dyn Fn(
            &StepOperands<'_, '_>,
            &[ArrayLayout],
            &[usize],
            ArrayViewD<'_, E>,
            ArrayViewD<'_, E>,
            &mut Flat,
        ) -> Result<(), WrongShape>
        + Send
        + Sync,
>;

/// A gradient has another shape than its array.
pub struct WrongShape {
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(super) found: Vec<usize>,
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(super) expected: Vec<usize>,
}

impl<Args, In: Takes<Args>, E: Element, Out: RankOf> PullBack<Args, In, E, Out> {
    /// Makes a pull-back of this function.
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
pub use derivative::PulledExamples;

#[cfg(feature = "std")]
mod derivative {
    use super::super::calls::sizes_of_result;
    use super::super::tensors::{Layouts, each, view};
    use super::*;
    use alloc::boxed::Box;
    use alloc::string::String;
    use kernels::error::Error;
    use kernels::loops::axes::Order;
    use kernels::memory::buffer::Buffer;
    use kernels::ops::function::element;
    use kernels::program::code::Number;
    use kernels::step::{AnyBuffer, PullFunction, Pulled, StepDerivative};
    use kernels::trace::{Field, Held, Node, Part, StridedPlace};

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

    /// The results of all examples, from which the derivative is computed. (The operands' types are
    /// erased, so that it is compiled once for several of them.)
    struct ResultsOfCalls<Flat, E> {
        name: &'static str,
        counts: Sizes,
        layouts: Layouts,
        function: Pull<Flat, E>,
        y: Buffer<E>,
        y_shape: Sizes,
        of_fields: fn(&[Field]) -> Vec<Box<dyn AnyBuffer>>,
    }

    impl<Flat: Default + 'static, E: Element> ResultsOfCalls<Flat, E> {
        /// The gradients of all examples, whose cotangents are `dy`.
        fn pulled(&self, operands: &[Field], dy: &[E]) -> Result<Flat, Error> {
            let (mut flat, mut call, len) = (Flat::default(), 0, self.len());
            self.each(operands, |example| {
                example.pull(&dy[call * len..][..len], &mut flat)?;
                call += 1;
                Ok(())
            })?;
            Ok(flat)
        }

        /// The directional derivatives in the direction `v` of an operand: the pull-back of each
        /// unit cotangent is a row of the Jacobian.
        fn pushed<T: Element>(
            &self,
            operands: &[Field],
            v: &[T],
            number: usize,
            of: fn(&Flat) -> &[T],
        ) -> Result<Vec<f64>, Error> {
            let layout = &self.layouts[number];
            let mut slopes = Vec::with_capacity(self.y.len());
            let mut from = 0;
            let x_len: usize = layout.axes().iter().product();
            self.each(operands, |example| {
                let v = &v[from..][..x_len];
                from += x_len;
                for at in 0..self.len() {
                    let mut unit = vec![element::<E>(0.0); self.len()];
                    unit[at] = element(1.0);
                    let mut row = Flat::default();
                    example.pull(&unit, &mut row)?;
                    let products = of(&row).iter().zip(v).map(|(&a, &b)| Number::float(a) * Number::float(b));
                    slopes.push(products.sum());
                }
                Ok(())
            })?;
            Ok(slopes)
        }

        /// The number of elements of one result.
        fn len(&self) -> usize {
            self.y_shape.iter().product()
        }

        fn each(
            &self,
            operands: &[Field],
            mut f: impl FnMut(&PulledExample<'_, '_, Flat, E>) -> Result<(), Error>,
        ) -> Result<(), Error> {
            let mut buffers = (self.of_fields)(operands);
            let mut buffers: Vec<&mut dyn AnyBuffer> =
                buffers.iter_mut().map(|buffer| &mut **buffer).collect();
            let operands = StepOperands::new(&mut buffers, false);
            let (mut call, len) = (0, self.len());
            each(&self.counts, |at| {
                let y = &self.y[call * len..][..len];
                call += 1;
                f(&PulledExample { results: self, operands: &operands, at, y })
            })
        }
    }

    /// One example, whose gradients are computed.
    struct PulledExample<'a, 'b, Flat, E> {
        results: &'a ResultsOfCalls<Flat, E>,
        operands: &'a StepOperands<'a, 'b>,
        at: &'a [usize],
        y: &'a [E],
    }

    impl<Flat, E: Element> PulledExample<'_, '_, Flat, E> {
        /// Its gradients, for the cotangent `dy`, at the end of those in `flat`.
        fn pull(&self, dy: &[E], flat: &mut Flat) -> Result<(), Error> {
            let ResultsOfCalls { name, layouts, function, y_shape, .. } = self.results;
            let (y, dy) = (view(y_shape, self.y), view(y_shape, dy));
            function(self.operands, layouts, self.at, y, dy, flat).map_err(|WrongShape { found, expected }| {
                failed(format!(
                    "the pull-back of `{name}` yields an array of shape {found:?}, but its argument has {expected:?}"
                ))
            })
        }
    }

    /// The gradients of all examples, to be recorded in a program.
    pub struct PulledExamples<'a, Flat, E> {
        step: &'a Pulled<'a>,
        results: &'a Arc<ResultsOfCalls<Flat, E>>,
    }

    impl<Flat: Default + 'static, E: Element> PulledExamples<'_, Flat, E> {
        /// The gradients by an operand, if they are needed. `of` selects them from the gradients by
        /// all operands.
        pub(in super::super) fn by<T: Element>(
            &self,
            number: usize,
            gradients: Vec<T>,
            of: fn(&Flat) -> &[T],
        ) -> Option<(Arc<Node>, Part)> {
            let node = self.step.asked_operand(number)?;
            let gradients =
                if self.step.recorded { self.recorded(number, gradients, of) } else { gradients.into() };
            Some((Arc::clone(node), self.part(&gradients.held(), &self.results.layouts[number])))
        }

        /// The gradients of all examples by a tensor, summed along the dims that the tensor lacks.
        fn part(&self, gradients: &Arc<dyn Held>, layout: &ArrayLayout) -> Part {
            let len: usize = layout.axes().iter().product();
            let sizes: Sizes = self.results.counts.iter().copied().chain([len]).collect();
            let order: Order = (0..sizes.len()).collect();
            let strides = layout.strides().iter().map(|&stride| (stride * len) as isize).chain([1]);
            let strides = sizes.iter().zip(strides).map(|(&size, stride)| if size == 1 { 0 } else { stride });
            let field = Field::held(&sizes, gradients, StridedPlace::contiguous(&sizes, &order));
            Part { field, place: StridedPlace::strided(0, strides) }
        }

        /// Records the gradients as a step of the program. They are linear in the cotangent, and
        /// have no derivative by the operands.
        fn recorded<T: Element>(&self, number: usize, gradients: Vec<T>, of: fn(&Flat) -> &[T]) -> Buffer<T> {
            let memory = |field: &Field| Arc::clone(field.memory().expect("operands are in memory"));
            let mut operands: Vec<Arc<dyn Held>> = self.step.operands.iter().map(memory).collect();
            let count = operands.len();
            operands.push(Arc::clone(self.step.cotangent));
            let results = Arc::clone(self.results);
            let pull = move |step: &Pulled<'_>| {
                if step.recorded || (0..count).any(|operand| step.asked_operand(operand).is_some()) {
                    let name = results.name;
                    return Err(failed(format!(
                        "no gradient of a gradient can be taken through `{name}`: its pull-back is not made of tensor operations; use `custom_vjp`"
                    )));
                }
                let Some(node) = step.asked_operand(count) else { return Ok(Vec::new()) };
                let slopes =
                    results.pushed(&step.operands[..count], &in_type::<T>(step.cotangent), number, of)?;
                let slopes = Buffer::from(slopes);
                let place = || StridedPlace::strided(0, [1]);
                let field = Field::held(&[slopes.len()], &slopes.held(), place());
                Ok(vec![(Arc::clone(node), Part { field, place: place() })])
            };
            self.step.computed(gradients, &operands, PullFunction { name: "a pull-back", pull })
        }
    }

    /// Downcasts elements to their type.
    fn in_type<T: Element>(held: &Arc<dyn Held>) -> Buffer<T> {
        Buffer::of_held(held).expect("the elements are of this type")
    }

    fn failed(what: String) -> Error {
        Error::PullBack { what }
    }
}
