//! Pull-backs of users' operations on arrays.

use super::{ArrayOp, NdOf};
use crate::types::rank::RankOf;
use alloc::sync::Arc;
use core::marker::PhantomData;
use kernels::scalar::Element;
use ndarray::{Array, ArrayD, ArrayView, ArrayViewD};

/// The pull-back of an operation on one array, for one example: of the array `x`, the result `y`, and the cotangent `dy` of the result it makes that
/// of `x`,
///
/// ```text
/// dx[i] = sum over o of dy[o] * d y[o] / d x[i]
/// ```
///
/// which has the shape of `x`. [`ArrayOp::pull_back`] returns it.
pub struct PullBack<T: Element, In: RankOf, E: Element, Out: RankOf> {
    // (Nothing is recorded without the standard library.)
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    pub(super) function: Pull<T, E>,
    marker: PhantomData<fn() -> (In, Out)>,
}

/// The pull-back of the operation `O` on arrays of `T`.
pub type PullBackOf<O, T> =
    PullBack<T, <O as ArrayOp<T>>::In, <O as ArrayOp<T>>::Elem, <O as ArrayOp<T>>::Out>;

/// The same, of arrays whose ranks are not in the type.
pub(super) type Pull<T, E> =
    Arc<dyn Fn(ArrayViewD<'_, T>, ArrayViewD<'_, E>, ArrayViewD<'_, E>) -> ArrayD<T> + Send + Sync>;

impl<T: Element, In: RankOf + 'static, E: Element, Out: RankOf + 'static> PullBack<T, In, E, Out> {
    /// The pull-back that this function computes.
    pub fn new<F>(f: F) -> Self
    where
        F: Fn(
                ArrayView<'_, T, NdOf<In>>,
                ArrayView<'_, E, NdOf<Out>>,
                ArrayView<'_, E, NdOf<Out>>,
            ) -> Array<T, NdOf<In>>
            + Send
            + Sync
            + 'static,
    {
        let same = "the ranks are the same";
        let function: Pull<T, E> = Arc::new(move |x, y, dy| {
            let y = y.into_dimensionality().expect(same);
            f(x.into_dimensionality().expect(same), y, dy.into_dimensionality().expect(same)).into_dyn()
        });
        PullBack { function, marker: PhantomData }
    }
}

#[cfg(feature = "std")]
pub(super) use derivative::*;

#[cfg(feature = "std")]
mod derivative {
    use super::super::calls::sizes_of_result;
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;
    use kernels::error::Error;
    use kernels::loops::axes::Sizes;
    use kernels::memory::buffer::Buffer;
    use kernels::ops::function::element;
    use kernels::program::code::Number;
    use kernels::step::{PullFunction, Pulled, StepDerivative};
    use kernels::trace::{Field, Held, Node, Part, StridedPlace};
    use ndarray::IxDyn;

    /// The derivative of an operation on one array, for examples that lie one behind the other.
    #[derive(Clone)]
    pub struct PullOfOne<T, E> {
        pub name: &'static str,
        /// How many examples there are.
        pub count: usize,
        /// The sizes of one.
        pub x_shape: Sizes,
        pub function: Pull<T, E>,
    }

    impl<T: Element, E: Element> StepDerivative for PullOfOne<T, E> {
        fn name(&self) -> &'static str {
            self.name
        }

        fn pull(&self, step: &Pulled<'_>) -> Result<Vec<(Arc<Node>, Part)>, Error> {
            let Some(node) = step.asked_operand(0) else { return Ok(Vec::new()) };
            let (x, dy) = (operand::<T>(step, 0), in_type::<E>(step.cotangent));
            let (y, y_shape) = (in_type::<E>(step.value), sizes_of_result(step).clone());
            let results = ResultsOfOne { of: self.clone(), y, y_shape };
            let dx = results.pulled(&x, &dy)?;
            let dx = if step.recorded { results.recorded(step, dx, &x, &dy) } else { dx.into() };
            Ok(vec![(Arc::clone(node), Part { field: whole(&dx), place: StridedPlace::strided(0, [1]) })])
        }
    }

    /// The results of the examples, by which the derivative is computed.
    struct ResultsOfOne<T, E> {
        of: PullOfOne<T, E>,
        y: Buffer<E>,
        y_shape: Sizes,
    }

    impl<T: Element, E: Element> ResultsOfOne<T, E> {
        /// The gradients of all examples.
        fn pulled(&self, x: &[T], dy: &[E]) -> Result<Vec<T>, Error> {
            let mut dx = Vec::with_capacity(x.len());
            for call in 0..self.of.count {
                dx.extend(self.one(call, x, &dy[call * self.y_len()..][..self.y_len()])?);
            }
            Ok(dx)
        }

        fn y_len(&self) -> usize {
            self.y_shape.iter().product()
        }

        fn x_len(&self) -> usize {
            self.of.x_shape.iter().product()
        }

        /// The gradient of one example, whose cotangent is `dy`.
        fn one(&self, call: usize, x: &[T], dy: &[E]) -> Result<ArrayD<T>, Error> {
            let (x_shape, y_shape) = (&self.of.x_shape, &self.y_shape);
            let fits = "the sizes are the shape of the data";
            let x = ArrayViewD::from_shape(IxDyn(x_shape), &x[call * self.x_len()..][..self.x_len()]);
            let y = ArrayViewD::from_shape(IxDyn(y_shape), &self.y[call * self.y_len()..][..self.y_len()]);
            let dy = ArrayViewD::from_shape(IxDyn(y_shape), dy).expect(fits);
            let dx = (self.of.function)(x.expect(fits), y.expect(fits), dy);
            if *dx.shape() != x_shape[..] {
                let (found, name) = (dx.shape(), self.of.name);
                return Err(failed(format!(
                    "the pull-back of `{name}` yields an array of shape {found:?}, but `x` has {x_shape:?}"
                )));
            }
            Ok(dx)
        }

        /// The gradients as a step of the program: they are linear in the cotangent. By `x` they have no derivative.
        fn recorded(self, step: &Pulled<'_>, dx: Vec<T>, x: &Buffer<T>, dy: &Buffer<E>) -> Buffer<T> {
            let pull = move |step: &Pulled<'_>| {
                if step.asked_operand(0).is_some() || step.recorded {
                    let name = self.of.name;
                    return Err(failed(format!(
                        "no gradient of a gradient can be taken through `{name}`: its pull-back is not made of tensor operations; use `custom_vjp`"
                    )));
                }
                let Some(node) = step.asked_operand(1) else { return Ok(Vec::new()) };
                let slopes = self.pushed(&operand::<T>(step, 0), &in_type::<T>(step.cotangent))?;
                let part = Part { field: whole(&slopes.into()), place: StridedPlace::strided(0, [1]) };
                Ok(vec![(Arc::clone(node), part)])
            };
            step.computed(dx, &[x.held(), dy.held()], PullFunction { name: "a pull-back", pull })
        }

        /// The directional derivatives in the direction `v`: the pull-back of each unit cotangent is a row of the Jacobian.
        fn pushed(&self, x: &[T], v: &[T]) -> Result<Vec<f64>, Error> {
            let mut slopes = Vec::with_capacity(self.y.len());
            for call in 0..self.of.count {
                for at in 0..self.y_len() {
                    let mut unit = vec![element::<E>(0.0); self.y_len()];
                    unit[at] = element(1.0);
                    let row = self.one(call, x, &unit)?;
                    let products = row.iter().zip(&v[call * self.x_len()..][..self.x_len()]);
                    slopes.push(products.map(|(&a, &b)| Number::float(a) * Number::float(b)).sum());
                }
            }
            Ok(slopes)
        }
    }

    /// An operand of a step in its type.
    fn operand<T: Element>(step: &Pulled<'_>, number: usize) -> Buffer<T> {
        in_type(step.operands[number].memory().expect("operands are in memory"))
    }

    /// Elements in their type.
    pub fn in_type<T: Element>(held: &Arc<dyn Held>) -> Buffer<T> {
        Buffer::of_held(held).expect("the elements are of this type")
    }

    /// All elements of a buffer.
    fn whole<T: Element>(buffer: &Buffer<T>) -> Field {
        Field::held(&[buffer.len()], &buffer.held(), StridedPlace::strided(0, [1]))
    }

    pub fn failed(what: String) -> Error {
        Error::PullBack { what }
    }
}
