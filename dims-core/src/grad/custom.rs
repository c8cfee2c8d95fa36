//! Functions with a custom pull-back, and functions that run again in the backward pass.

use crate::creation::positions::CurrentExample;
use crate::error::{DimError, list_names};
use crate::expr::evaluate::evaluate_unrecorded;
use crate::expr::step::unrecorded;
use crate::grad::inputs::Inputs;
use crate::grad::parameters::{Mismatch, Parameters, Path, Sides, Walk, is_learned, same_sizes};
use crate::grad::variables::{Collected, Detached, Elements, FloatPairs, Variables};
use crate::plan::axes::AxisList;
use crate::storage::Evaluated;
use crate::storage::axes::AxisBlock;
use crate::tensors::named::Named;
use crate::types::rank::Rank;
use crate::types::set::Dims;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::panic::Location;
use kernels::error::{Error, Origin};
use kernels::memory::axes::Axis;
use kernels::memory::buffer::Buffer;
use kernels::program::code::DType;
use kernels::scalar::Element;
use kernels::step::{PullFunction, Pulled, rule_of};
use kernels::trace::{
    Field, Held, Node, Part, Rule, StridedPlace, evaluate, gradients, names_of_variables, with_rule,
};
use smallvec::SmallVec;
use twins::panicking_twin;

/// Calls `f` and gives it a custom pull-back. The value is `f(inputs)`. The gradient with respect
/// to the inputs is `pull_back` of the inputs, the value, and the cotangent of the value.
///
/// `f` runs once, and its operations are not recorded. `pull_back` runs in each backward pass
/// through the value. If gradients of gradients are taken, the operations of `pull_back` are
/// recorded and differentiated.
///
/// All tensors through which a gradient flows must be among the inputs. `pull_back` must be
/// `'static`: a closure must own its captures (clones of tensors share their elements), and dims
/// must not be local. In a function with `#[batched]`, name the rest, with the bound
/// `B: Dims + 'static`.
///
/// ```
/// use typed_dims::grad::{custom_vjp, grad};
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
///
/// /// Rounds, with the gradient of the identity: a straight-through estimator.
/// fn rounded(x: &Tensor<f64, (In,)>) -> Tensor<f64, (In,)> {
///     custom_vjp(|x| x.round().eval(), |_, _, dy| dy.clone(), x)
/// }
///
/// let x = from_vec(In.of(2), vec![0.4, 1.6]);
/// let dx = grad(|x| (rounded(x) * x).sum(In), &x);
/// assert_eq!(dx.order(In), ndarray::array![0.4, 3.6]);
/// ```
///
/// # Panics
///
/// If [`try_custom_vjp`] returns an error. The backward pass fails if the gradient and the inputs
/// differ in sizes or structure. Unless `pull_back` is recorded, it also fails if the gradient
/// depends on a traced tensor that `pull_back` captures.
///
/// # Errors
///
/// If the value depends on a traced tensor that is not among the inputs, if the inputs belong to a
/// function that is being [recorded](crate::program), or if memory runs out.
#[panicking_twin(but = "mistakes that are found before the backward pass are errors")]
pub fn try_custom_vjp<P: Inputs<Value: Send + Sync + 'static>, Y: Parameters + Send + Sync + 'static>(
    f: impl FnOnce(&P::Value) -> Y,
    pull_back: impl Fn(&P::Value, &Y, &Y) -> P::Value + Send + Sync + 'static,
    inputs: P,
) -> Result<Y, DimError> {
    let call = CustomCall { operation: "custom_vjp", origin: Some(Location::caller()) };
    let pull =
        move |inputs: &P::Value, value: &dyn Fn() -> Result<Y, DimError>, cotangent: &Y, recorded: bool| {
            if recorded {
                return Ok(pull_back(inputs, &value()?, cotangent));
            }
            let constants = P::walk_value(inputs, &mut Path::new(), &mut Detached::all())?;
            let gradient = pull_back(&constants, &value()?, cotangent);
            call.check_constant(&gradient)?;
            Ok(gradient)
        };
    call.run(f, pull, inputs)
}

/// Computes `f(inputs)`, keeps only the inputs for the backward pass, and runs `f` again there.
/// This saves memory and costs time.
///
/// The gradient equals the gradient of `f`. As for [`custom_vjp`], all tensors through which a
/// gradient flows must be among the inputs, `f` must be `Send`, `Sync` and `'static`, and dims must
/// not be local. In a function with `#[batched]`, name the rest, with the bound
/// `B: Dims + 'static`. `f` gets one reference; if there are several inputs, it refers to a tuple
/// of them. `f` must return the same value each time, so draw random numbers from a seed. While a
/// function is being [recorded](crate::program), `checkpoint` only calls `f`, and so saves no
/// memory.
///
/// ```
/// use typed_dims::grad::{checkpoint, grad};
/// use typed_dims::prelude::*;
///
/// dims! { pub struct In; }
/// type Line = Tensor<f64, (In,)>;
///
/// let (x, w) = (from_vec(In.of(2), vec![0.5, -1.0]), from_vec(In.of(2), vec![2.0, 3.0]));
/// fn layer(x: &Line, w: &Line) -> Line {
///     (x * w).tanh().eval()
/// }
/// let dw = grad(|w| checkpoint(|(x, w)| layer(x, w), (&x, w)).sum(In), &w);
/// assert_eq!(dw.order(In), grad(|w| layer(&x, w).sum(In), &w).order(In));
/// ```
///
/// # Errors
///
/// If the value depends on a traced tensor that is not among the inputs, or memory runs out.
#[panicking_twin(but = "mistakes that are found before the backward pass are errors")]
pub fn try_checkpoint<P: Inputs<Value: Send + Sync + 'static>, Y: Parameters + Send + Sync + 'static>(
    f: impl Fn(&P::Value) -> Y + Send + Sync + 'static,
    inputs: P,
) -> Result<Y, DimError> {
    let call = CustomCall { operation: "checkpoint", origin: Some(Location::caller()) };
    let f = Arc::new(f);
    let again = Arc::clone(&f);
    let pull =
        move |inputs: &P::Value, _: &dyn Fn() -> Result<Y, DimError>, cotangent: &Y, recorded: bool| {
            // A gradient that is not recorded is constant, so the inputs must be constant too.
            let constants;
            let inputs = if recorded {
                inputs
            } else {
                constants = P::walk_value(inputs, &mut Path::new(), &mut Detached::all())?;
                &constants
            };
            let mut variables = Variables::default();
            let traced = P::walk_value(inputs, &mut Path::new(), &mut variables)?;
            let value = again(&traced);
            let mut pairs = FloatPairs::with_cotangent();
            Y::walk([&value, cotangent], &mut Path::new(), &mut pairs)?;
            let mut found = gradients(pairs.pairs, &variables.nodes, &[&variables.call], recorded)?;
            let nodes = variables.nodes.iter();
            let collected = &mut Collected { gradients: &mut found, nodes, refused: None };
            P::walk_value(&traced, &mut Path::new(), collected)
        };
    call.run(|inputs| f(inputs), pull, inputs)
}

/// A call of [`custom_vjp`] or [`checkpoint`].
#[derive(Clone, Copy)]
struct CustomCall {
    operation: &'static str,
    origin: Origin,
}

impl CustomCall {
    /// Returns an error if the value, which must be constant, is traced.
    fn check_constant<Y: Parameters>(self, value: &Y) -> Result<(), DimError> {
        let mut floats = FloatElements::default();
        Y::walk([value], &mut Path::new(), &mut floats)?;
        let CustomCall { operation, origin } = self;
        if !floats.are_traced() {
            return Ok(());
        }
        let nodes = floats.0.iter().filter_map(|own| own.held.node());
        Err(DimError::NotAnInput { operation, origin, parameters: list_names(&names_of_variables(nodes)) })
    }

    /// The value of `f`, as a step with the pull-back `pull`. The arguments of `pull` are the
    /// inputs, the value, the value's cotangent, and whether the gradient is recorded.
    #[track_caller]
    fn run<P: Inputs<Value: Send + Sync + 'static>, Y: Parameters + Send + Sync + 'static>(
        self,
        f: impl FnOnce(&P::Value) -> Y,
        pull: impl Fn(&P::Value, &dyn Fn() -> Result<Y, DimError>, &Y, bool) -> Result<P::Value, DimError>
        + Send
        + Sync
        + 'static,
        inputs: P,
    ) -> Result<Y, DimError> {
        let mut operands = FloatElements::default();
        let inputs = inputs.walk(&mut Path::new(), &mut operands)?;
        let mut recorded = IsRecorded(false);
        P::walk_value(&inputs, &mut Path::new(), &mut recorded)?;
        if recorded.0 && self.operation == "checkpoint" {
            // A recorded function cannot call the pull-back, so the operations of `f` are recorded.
            return Ok(f(&inputs));
        }
        if recorded.0 {
            return Err(unrecorded(self.operation));
        }
        if !operands.are_traced() {
            let value = f(&inputs);
            self.check_constant(&value)?;
            return Ok(value);
        }
        let constants = P::walk_value(&inputs, &mut Path::new(), &mut Detached::all())?;
        let value = f(&constants);
        drop(constants);
        self.check_constant(&value)?;
        let mut flat = FlatFloats::default();
        let template = Y::walk([&value], &mut Path::new(), &mut flat)?;
        let operation = self.operation;
        // In a loop of calls, the pull-back draws the same random numbers as this call.
        let example = CurrentExample::new();
        let derivative = PullFunction {
            name: operation,
            pull: move |step: &Pulled<'_>| {
                let Pulled { value, cotangent, recorded, asked, .. } = *step;
                let pulled = || -> Result<_, DimError> {
                    let filled = |flat| {
                        Y::walk([&template], &mut Path::new(), &mut Filled { flat, start: 0, recorded })
                    };
                    let (value, cotangent) = (|| filled(value), filled(cotangent)?);
                    let gradient = example.call(|| pull(&inputs, &value, &cotangent, recorded))?;
                    let mut parts = GradientParts { parts: Vec::new(), asked };
                    P::walk_pair([&inputs, &gradient], &mut Path::new(), &mut parts)?;
                    Ok(parts.parts)
                };
                pulled().map_err(|error| Error::PullBack { what: error.to_string() })
            },
        };
        let operands = operands.0.iter().map(Elements::field).collect();
        let Some(whole) = flat.memory(rule_of(derivative, operands))? else { return Ok(value) };
        Y::walk([&value], &mut Path::new(), &mut Filled { flat: &whole, start: 0, recorded: true })
    }
}

/// The floats of a value. The walk returns the same value.
#[derive(Default)]
struct FloatElements(Vec<Elements>);

impl FloatElements {
    fn are_traced(&self) -> bool {
        self.0.iter().any(|own| own.held.is_traced())
    }
}

impl Walk<1> for FloatElements {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if is_learned::<T>() {
            self.0.push(Elements::of(&tensor.expr));
        }
        Ok(tensor.clone())
    }
}

/// Whether a tensor of a value belongs to a function that is being recorded.
struct IsRecorded(bool);

impl Walk<1> for IsRecorded {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        self.0 |= tensor.expr.buffer().node().is_some_and(|node| node.is_recorded());
        Ok(tensor.clone())
    }
}

/// The concatenated floats of a value. The tensors that the walk returns have the same sizes, but
/// use almost no memory.
#[derive(Default)]
struct FlatFloats {
    tensors: Vec<(Arc<dyn Held>, DType)>,
}

impl FlatFloats {
    fn dtype(&self) -> Option<DType> {
        let (_, first) = *self.tensors.first()?;
        Some(if self.tensors.iter().all(|&(_, own)| own == first) { first } else { DType::F64 })
    }

    /// All elements as one buffer, as the result of `rule`. `None` for a value without floats.
    fn memory(mut self, rule: impl Rule + 'static) -> Result<Option<Arc<dyn Held>>, DimError> {
        let Some(dtype) = self.dtype() else { return Ok(None) };
        if let [_] = self.tensors[..]
            && let Some((held, _)) = self.tensors.pop()
        {
            return Ok(Some(with_rule(held, rule)?));
        }
        let mut parts = Vec::new();
        let mut len = 0;
        for (held, _) in &self.tensors {
            let field = Field::held(&[held.len()], held, StridedPlace::strided(0, [1]));
            parts.push(Part { field, place: StridedPlace::strided(len as isize, [1]) });
            len += held.len();
        }
        Ok(Some(with_rule(evaluate(&parts, len, dtype, false)?, rule)?))
    }
}

/// The axes of a tensor, dims first.
fn axes<T, S: Dims, R: Rank>(tensor: &Evaluated<T, S, R>) -> SmallVec<[Axis; 8]> {
    tensor.named().as_slice().iter().chain(tensor.positional().as_slice()).copied().collect()
}

impl Walk<1> for FlatFloats {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if !is_learned::<T>() {
            return Ok(tensor.clone());
        }
        let shape = tensor.unified_shape()?;
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        let data = evaluate_unrecorded::<S, R, _>(&tensor.expr, &shape, order)?;
        let dtype = DType::of::<T>().expect("each float type has a `DType`");
        self.tensors.push((Buffer::from(data).held(), dtype));
        let still =
            |axes: &[Axis]| axes.iter().map(|axis| Axis::new(axis.size, 0)).collect::<SmallVec<[Axis; 8]>>();
        let (mut named, mut positional) = (*tensor.expr.named(), *tensor.expr.positional());
        named.as_mut_slice().copy_from_slice(&still(tensor.expr.named().as_slice()));
        positional.as_mut_slice().copy_from_slice(&still(tensor.expr.positional().as_slice()));
        let one = vec![T::default()];
        Ok(Named::from_expr(Evaluated::strided(one, 0, named, positional, None)))
    }
}

/// Restores the floats of a value from a buffer in the order of [`FlatFloats`].
struct Filled<'h> {
    flat: &'h Arc<dyn Held>,
    start: usize,
    /// Whether the tensors are traced if the buffer is.
    recorded: bool,
}

impl Walk<1> for Filled<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        _: &Path,
        [tensor]: [&Named<T, S, R>; 1],
    ) -> Result<Named<T, S, R>, DimError> {
        if !is_learned::<T>() {
            return Ok(tensor.clone());
        }
        let axes = axes(&tensor.expr);
        let order = AxisList::in_memory_of::<S, R>().as_slice();
        let sizes: SmallVec<[usize; 8]> = order.iter().map(|&at| axes[at].size).collect();
        let len: usize = sizes.iter().product();
        let own = if self.start == 0 && len == self.flat.len() && self.recorded == self.flat.node().is_some()
        {
            Buffer::<T>::of_held(self.flat)
        } else {
            None
        };
        let buffer = match own {
            Some(buffer) => buffer,
            None => {
                let field = Field::held(&[len], self.flat, StridedPlace::strided(self.start as isize, [1]));
                let part = Part { field, place: StridedPlace::strided(0, [1]) };
                let dtype = DType::of::<T>().expect("each float type has a `DType`");
                let held = evaluate(&[part], len, dtype, self.recorded)?;
                Buffer::of_held(&held).expect("a buffer of this type was asked for")
            }
        };
        self.start += len;
        Ok(Named::from_expr(Evaluated::laid_out(buffer, &sizes).with_origin(tensor.expr.origin())))
    }
}

/// The gradients with respect to the inputs whose nodes are `asked` for, as parts.
struct GradientParts<'a> {
    parts: Vec<(Arc<Node>, Part)>,
    asked: &'a dyn Fn(u64) -> bool,
}

impl Walk<2> for GradientParts<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [input, gradient]: [&Named<T, S, R>; 2],
    ) -> Result<Named<T, S, R>, DimError> {
        if is_learned::<T>() {
            same_sizes(path, WITH_RESULT, [input, gradient])?;
            let input = Elements::of(&input.expr);
            if let Some(node) = input.held.node().filter(|node| (self.asked)(node.id)) {
                let field = Elements::of(&gradient.expr).field();
                self.parts.push((Arc::clone(node), Part { field, place: input.place().clone() }));
            }
        }
        Ok(gradient.clone())
    }

    fn mismatch(&mut self, path: &Path, what: Mismatch) -> DimError {
        what.between(WITH_RESULT, path)
    }
}

const WITH_RESULT: Sides = ["the inputs", "the result of the pull-back"];
