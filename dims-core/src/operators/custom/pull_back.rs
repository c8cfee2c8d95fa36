//! Pull-backs of users' operations on arrays.

use super::{ArrayOp, NdOf};
use crate::rank::RankOf;
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
pub(super) use recorded::*;

#[cfg(feature = "std")]
mod recorded {
    use super::*;
    use crate::error::DimError;
    use crate::expr::record::{FunctionRule, node_of, ruled, underivable};
    use alloc::string::String;
    use alloc::vec::Vec;
    use kernels::error::Error;
    use kernels::memory::buffer::Buffer;
    use kernels::ops::function::element;
    use kernels::program::code::{DType, Number};
    use kernels::trace::{Field, Held, Node, Part, StridedPlace, names_of_variables};
    use ndarray::IxDyn;

    /// How to give an operation on arrays a derivative.
    const REMEDY: &str = "give the operation a pull-back, as `fn pull_back` of its `ArrayOp`";

    /// A run of an operation on arrays: `calls` examples, one behind the other.
    #[derive(Clone)]
    pub struct ArrayOpRun<T, E> {
        pub name: &'static str,
        pub calls: usize,
        pub x: Buffer<T>,
        pub x_shape: Vec<usize>,
        pub y_shape: Vec<usize>,
        pub pull: Option<Pull<T, E>>,
    }

    impl<T: Element, E: Element> ArrayOpRun<T, E> {
        /// The results, as a step of the program if `x` is traced.
        #[track_caller]
        pub fn result(self, out: Vec<E>) -> Result<Buffer<E>, DimError> {
            let floats = [DType::of::<T>(), DType::of::<E>()];
            let constant = floats.iter().any(|own| own.is_some_and(|own| !own.is_float()));
            if constant || !self.x.is_traced() {
                return Ok(out.into());
            }
            // (Programs know no floats but these: whatever else the results are, they may depend on `x`.)
            if self.pull.is_none() || floats.contains(&None) {
                return Err(underivable(self.name, REMEDY, names_of_variables(self.x.node())));
            }
            let operands = vec![whole(&self.x)];
            let pull = move |value: &Arc<dyn Held>,
                             cotangent: &Arc<dyn Held>,
                             recorded: bool,
                             _: &dyn Fn(u64) -> bool| {
                let known = "the elements are of this type";
                let y = Buffer::<E>::of_held(value).expect(known);
                let dy = Buffer::<E>::of_held(cotangent).expect(known);
                let node = Arc::clone(self.x.node().expect("the operand is traced"));
                let dx = self.pulled(&y, &dy)?;
                let dx = if recorded { self.clone().recorded(dx, y, dy) } else { dx.into() };
                Ok(vec![(node, Part { field: whole(&dx), place: StridedPlace::strided(0, [1]) })])
            };
            Ok(ruled(out, FunctionRule { name: "an operation on arrays", operands, pull }))
        }

        /// The gradients of all examples.
        fn pulled(&self, y: &[E], dy: &[E]) -> Result<Vec<T>, Error> {
            let mut dx = Vec::with_capacity(self.x.len());
            for call in 0..self.calls {
                dx.extend(self.one(call, y, &dy[call * self.y_len()..][..self.y_len()])?);
            }
            Ok(dx)
        }

        fn y_len(&self) -> usize {
            self.y_shape.iter().product()
        }

        /// The gradient of one example, whose cotangent is `dy`.
        fn one(&self, call: usize, y: &[E], dy: &[E]) -> Result<ArrayD<T>, Error> {
            let len: usize = self.x_shape.iter().product();
            let fits = "the sizes are the shape of the data";
            let x = ArrayViewD::from_shape(IxDyn(&self.x_shape), &self.x[call * len..][..len]).expect(fits);
            let y = ArrayViewD::from_shape(IxDyn(&self.y_shape), &y[call * self.y_len()..][..self.y_len()]);
            let dy = ArrayViewD::from_shape(IxDyn(&self.y_shape), dy).expect(fits);
            let pull = self.pull.as_ref().expect("the operation has a pull-back");
            let dx = pull(x, y.expect(fits), dy);
            if *dx.shape() != self.x_shape[..] {
                let (found, expected) = (dx.shape(), &self.x_shape);
                let name = self.name;
                return Err(failed(format!(
                    "the pull-back of `{name}` yields an array of shape {found:?}, but `x` has {expected:?}"
                )));
            }
            Ok(dx)
        }

        /// The gradients as a step of the program: they are linear in the cotangent. By `x` they have no derivative.
        fn recorded(self, dx: Vec<T>, y: Buffer<E>, dy: Buffer<E>) -> Buffer<T> {
            let operands = vec![whole(&self.x), whole(&dy)];
            let pull = move |_: &Arc<dyn Held>,
                             cotangent: &Arc<dyn Held>,
                             recorded: bool,
                             asked: &dyn Fn(u64) -> bool| {
                let is_asked = |node: Option<&Arc<Node>>| node.is_some_and(|node| asked(node.id));
                if is_asked(self.x.node()) || recorded {
                    let name = self.name;
                    return Err(failed(format!(
                        "no gradient of a gradient can be taken through `{name}`: its pull-back is not made of tensor operations; use `custom_vjp`"
                    )));
                }
                if !is_asked(dy.node()) {
                    return Ok(Vec::new());
                }
                let v = Buffer::<T>::of_held(cotangent).expect("the elements are of this type");
                let node = Arc::clone(dy.node().expect("it is traced"));
                let field = whole(&self.pushed(&y, &v)?.into());
                Ok(vec![(node, Part { field, place: StridedPlace::strided(0, [1]) })])
            };
            node_of(dx, FunctionRule { name: "a pull-back", operands, pull })
        }

        /// The directional derivatives in the direction `v`: the pull-back of each unit cotangent is a row of the Jacobian.
        fn pushed(&self, y: &[E], v: &[T]) -> Result<Vec<f64>, Error> {
            let len: usize = self.x_shape.iter().product();
            let mut slopes = Vec::with_capacity(y.len());
            for call in 0..self.calls {
                for at in 0..self.y_len() {
                    let mut unit = vec![element::<E>(0.0); self.y_len()];
                    unit[at] = element(1.0);
                    let row = self.one(call, y, &unit)?;
                    let products = row.iter().zip(&v[call * len..][..len]);
                    slopes.push(products.map(|(&a, &b)| Number::float(a) * Number::float(b)).sum());
                }
            }
            Ok(slopes)
        }
    }

    /// All elements of a buffer.
    pub fn whole<T: Element>(buffer: &Buffer<T>) -> Field {
        Field::held(&[buffer.len()], &buffer.held(), StridedPlace::strided(0, [1]))
    }

    pub fn failed(what: String) -> Error {
        Error::PullBack { what }
    }
}
