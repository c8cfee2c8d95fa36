//! The gradients of a user's operation on arrays, for all examples.

use super::arrays::{ArrayLayout, Layouts, Pull, WrongShape, each, view};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kernels::error::Error;
use kernels::loops::axes::{Order, Sizes};
use kernels::memory::buffer::Buffer;
use kernels::ops::function::element;
use kernels::program::code::Number;
use kernels::scalar::Element;
use kernels::step::{AnyBuffer, PullFunction, Pulled, StepOperands};
use kernels::trace::{Field, Held, Node, Part, StridedPlace};

/// The results of all examples, from which the derivative is computed. (The ranks of the arrays are
/// not part of the type, so that the code is compiled once for each `Flat` and `E`.)
pub(super) struct ResultsOfCalls<Flat, E> {
    pub(super) name: &'static str,
    pub(super) counts: Sizes,
    pub(super) layouts: Layouts,
    pub(super) function: Pull<Flat, E>,
    pub(super) y: Buffer<E>,
    pub(super) y_shape: Sizes,
    pub(super) of_fields: fn(&[Field]) -> Vec<Box<dyn AnyBuffer>>,
}

impl<Flat: Default + 'static, E: Element> ResultsOfCalls<Flat, E> {
    /// The gradients of all examples, for the cotangents `dy`.
    pub(super) fn pulled(&self, operands: &[Field], dy: &[E]) -> Result<Flat, Error> {
        let (mut flat, mut call, len) = (Flat::default(), 0, self.len());
        self.each(operands, |example| {
            example.pull(&dy[call * len..][..len], &mut flat)?;
            call += 1;
            Ok(())
        })?;
        Ok(flat)
    }

    /// The directional derivatives in the direction `v` of operand `number`: the pull-back of each
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
        let x_len: usize = layout.axes.iter().product();
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
        let mut buffers: Vec<&mut dyn AnyBuffer> = buffers.iter_mut().map(|buffer| &mut **buffer).collect();
        let operands = StepOperands::new(&mut buffers, false);
        let (mut call, len) = (0, self.len());
        each(&self.counts, |at| {
            let y = &self.y[call * len..][..len];
            call += 1;
            f(&PulledExample { results: self, operands: &operands, at, y })
        })
    }
}

struct PulledExample<'a, 'b, Flat, E> {
    results: &'a ResultsOfCalls<Flat, E>,
    operands: &'a StepOperands<'a, 'b>,
    at: &'a [usize],
    y: &'a [E],
}

impl<Flat, E: Element> PulledExample<'_, '_, Flat, E> {
    /// Appends the gradients of this example, for the cotangent `dy`, to `flat`.
    fn pull(&self, dy: &[E], flat: &mut Flat) -> Result<(), Error> {
        let ResultsOfCalls { name, layouts, function, y_shape, .. } = self.results;
        let (y, dy) = (view(y_shape, self.y), view(y_shape, dy));
        function(self.operands, layouts, self.at, y, dy, flat).map_err(|WrongShape { found, expected }| {
            failed(format!(
                "the pull-back of `{name}` yields an array of shape {found:?}, but its argument has the shape {expected:?}"
            ))
        })
    }
}

/// Converts the gradients of all examples to parts of a program.
pub struct PulledExamples<'a, Flat, E> {
    pub(super) step: &'a Pulled<'a>,
    pub(super) results: &'a Arc<ResultsOfCalls<Flat, E>>,
}

impl<Flat: Default + 'static, E: Element> PulledExamples<'_, Flat, E> {
    /// The gradients with respect to an operand, if they are needed. `of` selects them from the
    /// gradients of all operands.
    pub(super) fn by<T: Element>(
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

    /// The gradients of all examples with respect to a tensor. Along a dim that the tensor lacks,
    /// they are summed.
    fn part(&self, gradients: &Arc<dyn Held>, layout: &ArrayLayout) -> Part {
        let len: usize = layout.axes.iter().product();
        let sizes: Sizes = self.results.counts.iter().copied().chain([len]).collect();
        let order: Order = (0..sizes.len()).collect();
        let strides = layout.strides.iter().map(|&stride| (stride * len) as isize).chain([1]);
        let strides = sizes.iter().zip(strides).map(|(&size, stride)| if size == 1 { 0 } else { stride });
        let field = Field::held(&sizes, gradients, StridedPlace::contiguous(&sizes, &order));
        Part { field, place: StridedPlace::strided(0, strides) }
    }

    /// The gradients as a step of the program. They are linear in the cotangent, and cannot be
    /// differentiated with respect to the operands.
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

/// Casts erased elements to their type.
pub(super) fn in_type<T: Element>(held: &Arc<dyn Held>) -> Buffer<T> {
    Buffer::of_held(held).expect("the elements are of this type")
}

fn failed(what: String) -> Error {
    Error::PullBack { what }
}
