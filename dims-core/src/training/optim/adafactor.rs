//! Adafactor.

use super::by_path::{MomentLayout, ParameterState, StateWalk, factored_axes};
use super::factored::FactoredBlocks;
use super::implement::with_state;
use super::moments::kept;
use super::scalars::{StepScalars, one};
use super::settings::{at_least_0, below_1, decaying, settings, within};
use super::state_tensor::{StateElem, StateTensor};
use super::step_after::StepAfter;
use super::unchanged::Unchanged;
use super::update::{
    OfStep, OperandCheck, WITH_GRADIENT, check_parameters, copies_along, is_any_recorded, lie_densely,
    prepare,
};
use super::{Optimizer, Schedule, State};
use crate::error::DimError;
use crate::execute::reduce::Reductions;
use crate::expr::Expr;
use crate::expr::evaluate::evaluate;
use crate::grad::Parameters;
use crate::grad::parameters::{Path, Visitor, is_learned};
use crate::operators::elementwise::Elementwise;
#[cfg(feature = "half")]
use crate::operators::elementwise::select;
use crate::storage::{Evaluated, Place};
use crate::tensors::named::Named;
use crate::types::brand::LoopVar;
use crate::types::rank::{Rank, Rank0};
use crate::types::set::Dims;
use core::any::{Any, TypeId};
use kernels::map::formula::Quantity;
use kernels::map::in_place::{slice_as_mut, squares};
use kernels::memory::buffer::Buffer;
#[cfg(feature = "half")]
use kernels::scalar::Real;
use kernels::scalar::{CastTo, Element};
#[cfg(feature = "std")]
use kernels::trace::sum_of_squares;

/// Adam without the mean of gradients. The second moment is factored to save memory: for a large
/// matrix of `n` times `m` elements, the moment has `n + m` elements.
///
/// At step `t`, counted from 1, with `fresh = t^-decay_exponent`, and for a parameter with the
/// factored dims `i` and `j`:
///
/// ```text
/// square[i]  = (1 - fresh) * square[i]  + fresh * mean over j of (g[i, j]^2 + epsilon)
/// columns[j] = (1 - fresh) * columns[j] + fresh * mean over i of (g[i, j]^2 + epsilon)
/// u[i, j]    = g[i, j] / sqrt(square[i] / (mean over i of square[i]) * columns[j])
/// p         -= rate * max(rms(p), least_scale) / max(1, rms(u) / clipping_threshold) * u
/// ```
///
/// where `rms` is the root mean square over all elements of a parameter. If the parameter has more
/// dims, the formulas for `square`, `columns` and `u` apply at each position along the other dims.
///
/// * A parameter is factored over its two largest dims, as in optax, whatever their order. If dims
///   have the same size, those that are declared later count as larger. The largest dim is `j`.
///   PyTorch instead factors over the last two axes of each parameter with at least two axes.
/// * A parameter that has fewer than two dims, or whose second largest dim is smaller than
///   [`min_dim_size_to_factor`](Adafactor::min_dim_size_to_factor) (default 128), is not factored:
///   `square = (1 - fresh) * square + fresh * (g^2 + epsilon)`, and `u = g / sqrt(square)`.
/// * With [`relative_step`](Adafactor::relative_step), `min(rate, 1 / sqrt(t))` replaces the rate
///   in the formula for `p`.
/// * With [`momentum`](Adafactor::momentum), `p -= mean`, where
///   `mean = momentum * mean + (1 - momentum) * step`, and `step` is what the formula above
///   subtracts from `p`.
/// * With [`weight_decay`](Adafactor::weight_decay), `p` is multiplied by `1 - rate * weight_decay`
///   before the step, but after `rms(p)` is computed. Here `rate` is the learning rate, even with
///   `relative_step`.
///
/// The defaults are those of `optax.adafactor`. For `torch.optim.Adafactor`, set
/// `min_dim_size_to_factor(1)` and `relative_step()`. PyTorch uses its epsilon as a lower bound
/// instead of adding it.
///
/// In the [`State`], the moment `square` of a factored parameter lacks the largest dim, and
/// `columns` lacks the second largest. For other parameters, `square` has all dims, and `columns`
/// is a scalar 0. A step allocates memory for `u` of one parameter at a time.
///
/// (N. Shazeer, M. Stern, 2018, "Adafactor: Adaptive learning rates with sublinear memory cost".)
///
/// ```
/// use typed_dims::optim::{Adafactor, Optimizer};
/// use typed_dims::prelude::*;
///
/// dims! { struct Token; struct Feature; }
/// let mut table = ones::<f64, _>((Token.of(1000), Feature.of(200)));
/// let gradient = full((Token.of(1000), Feature.of(200)), 0.5);
/// let mut optimizer = Adafactor::new(0.01);
/// optimizer.step(&mut table, &gradient); // `u` is 1, and so is the root mean square of the parameter
/// assert!((table.order((Token, Feature))[[0, 0]] - 0.99).abs() < 1e-12);
///
/// let state = optimizer.state().parameter("").expect("of the only parameter").moments();
/// let [square, columns] = [&state[0], &state[1]];
/// assert!(square.tensor::<f64, (Feature,)>().is_some() && columns.tensor::<f64, (Token,)>().is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Adafactor<P> {
    pub(super) state: State<P>,
    pub(super) settings: AdafactorSettings,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AdafactorSettings {
    pub(super) min_dim_size_to_factor: usize,
    pub(super) decay_exponent: f64,
    pub(super) clipping_threshold: f64,
    pub(super) multiply_by_parameter_scale: bool,
    pub(super) least_scale: f64,
    pub(super) relative_step: bool,
    pub(super) momentum: f64,
    pub(super) weight_decay: f64,
    pub(super) epsilon: f64,
    pub(super) maximize: bool,
}

impl<P> Adafactor<P> {
    /// Makes an optimizer with a learning rate: a number, or a [`Schedule`]. PyTorch's default is
    /// 0.01. For optax's default, which is no learning rate, pass 1.
    #[rustfmt::skip] // rustc quotes the next line in errors
    pub fn new(rate: impl Into<Schedule>) -> Self where P: Parameters {
        let settings = AdafactorSettings {
            min_dim_size_to_factor: 128,
            decay_exponent: 0.8,
            clipping_threshold: 1.0,
            multiply_by_parameter_scale: true,
            least_scale: 1e-3,
            relative_step: false,
            momentum: 0.0,
            weight_decay: 0.0,
            epsilon: 1e-30,
            maximize: false,
        };
        Adafactor { state: State::new(rate.into()), settings }
    }

    /// A parameter is factored if its two largest dims have at least this size, default 128. Set it
    /// before the first step.
    #[must_use]
    pub fn min_dim_size_to_factor(mut self, size: usize) -> Self {
        self.settings.min_dim_size_to_factor = size;
        self
    }

    /// Sets whether a step is multiplied by the scale of its parameter (see `least_scale`), default
    /// `true`.
    #[must_use]
    pub fn multiply_by_parameter_scale(mut self, multiply: bool) -> Self {
        self.settings.multiply_by_parameter_scale = multiply;
        self
    }
}

settings! { Adafactor, AdafactorSettings {
    /// At step `t`, new squares have the weight `t^-decay_exponent` in the second moment. The
    /// exponent is 0 or more, default 0.8. optax calls it `decay_rate`; PyTorch's `beta2_decay` is
    /// its negative.
    decay_exponent,
    /// The maximum of `rms(u)`: more than 0, default 1. If `rms(u)` is larger, `u` is scaled down
    /// to this maximum. For no limit, set it to infinity.
    clipping_threshold,
    /// The least scale of a parameter: 0 or more, default 1e-3. A step is multiplied by the scale,
    /// which is `rms(p)` or, if that is smaller, this number.
    least_scale,
    /// The decay rate of the mean of the steps: 0 or more, less than 1, default 0.
    momentum,
    /// Subtracts this multiple of each parameter, times the learning rate, before each step: 0 or
    /// more, default 0. optax does not multiply it by the learning rate.
    weight_decay,
    /// The number added to the squares of gradients: 0 or more, default 1e-30.
    epsilon,
} {
    /// Limits the learning rate of step `t`, counted from 1, to at most `1 / sqrt(t)`. The weight
    /// decay uses the full rate.
    relative_step,
    /// Maximizes: steps along the gradient instead of against it.
    maximize,
} }

decaying! { AdafactorSettings }

impl AdafactorSettings {
    fn check(&self) -> Result<(), DimError> {
        let name = "Adafactor";
        at_least_0(name, "decay exponent", self.decay_exponent)?;
        let clips = self.clipping_threshold > 0.0;
        within(clips, name, "clipping threshold", self.clipping_threshold, "it must be more than 0")?;
        at_least_0(name, "least scale", self.least_scale)?;
        below_1(name, "momentum", self.momentum)?;
        at_least_0(name, "weight decay", self.weight_decay)?;
        at_least_0(name, "epsilon", self.epsilon)
    }
}

impl OfStep<3> for AdafactorSettings {
    /// The factor of the old parameter, the factor of the step, and the weight of the new squares.
    fn of_step<Q: Quantity>(&self, rate: Q, step: Q) -> [Q; 3] {
        let most = rate.constant(1.0) / step.sqrt();
        let factor = if self.relative_step { Q::choose(most.is_less(rate), most, rate) } else { rate };
        [kept(rate, self.weight_decay), factor, step.powf(rate.constant(-self.decay_exponent))]
    }
}

impl<P: Parameters> Optimizer<P> for Adafactor<P> {
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError> {
        self.settings.check()?;
        let layout = self.moment_layout();
        let state = &mut self.state;
        let unchanged = Unchanged { frozen: state.frozen.clone() };
        let mut step = StepAfter::<AdafactorSettings, 3>::new("Adafactor", self.settings, state)?;
        let check = OperandCheck::new(WITH_GRADIENT, step.is_recorded(), Some(&state.by_path), &unchanged);
        check_parameters(&*parameters, [gradient], check)?;
        prepare(&mut state.by_path, Some(&state.steps), &*parameters, layout, &unchanged)?;
        let along = StateWalk::new(&mut state.by_path, Some(&state.steps));
        let mut pass = FactoredPass { step: &mut step, along, unchanged: &unchanged };
        P::visit([parameters], [gradient], &mut Path::new(), &mut pass)?;
        state.count_step(&unchanged);
        Ok(())
    }

    fn moment_layout(&self) -> MomentLayout {
        MomentLayout::factored(self.moments().len(), self.settings.min_dim_size_to_factor)
    }

    with_state!("Adafactor", |optimizer: &Self| {
        if optimizer.settings.momentum == 0.0 {
            &["square", "columns"]
        } else {
            &["square", "columns", "mean"]
        }
    });
}

struct FactoredPass<'u> {
    step: &'u mut StepAfter<AdafactorSettings, 3>,
    along: StateWalk<'u>,
    unchanged: &'u Unchanged,
}

impl Visitor<1, 1> for FactoredPass<'_> {
    type Error = DimError;

    fn tensor<T: Element, S: Dims, R: Rank>(
        &mut self,
        path: &Path,
        [tensor]: [&mut Named<T, S, R>; 1],
        [gradient]: [&Named<T, S, R>; 1],
    ) -> Result<(), DimError> {
        if !is_learned::<T>() {
            return Ok(());
        }
        let kept = self.along.ready::<T>(path).expect("the state of all parameters is ready");
        let sizes = tensor.expr.sizes();
        if self.unchanged.has(path) || sizes.contains(&0) {
            return Ok(());
        }
        let ParameterState { settings, missed, .. } = &*kept;
        self.step.begin_parameter(settings.as_ref().expect("the settings were found"));
        let scalars = self.step.scalars_after(missed.as_ref());
        let (moments, mut master) = kept.tensors();
        let order = lie_densely(tensor, &mut [], &mut master)?;
        let [copy] = copies_along([gradient], &order)?;
        let gradient = copy.as_ref().unwrap_or(gradient);
        let settings = *self.step.formula();
        let axes = factored_axes(&sizes, settings.min_dim_size_to_factor);
        for (at, moment) in moments.iter_mut().enumerate() {
            match (axes, at) {
                (None, 1) | (Some(_), 0 | 1) => {}
                _ => moment.lie_along::<S, R>(&order)?,
            }
        }
        let records = matches!(scalars, StepScalars::Tensors(_))
            || is_any_recorded(tensor.expr.buffer(), &[gradient.expr.buffer()], moments, master.as_deref());
        let step = ParameterStep {
            settings,
            blocks: axes.map(|axes| FactoredBlocks::new(&order, &sizes, axes)),
            scalars,
            moments,
            records,
        };
        let id = TypeId::of::<T>();
        if id == TypeId::of::<f32>() {
            step.of_floats::<f32, T, S, R>(tensor, gradient)
        } else if id == TypeId::of::<f64>() {
            step.of_floats::<f64, T, S, R>(tensor, gradient)
        } else {
            step.of_other_floats(tensor, gradient, master)
        }
    }
}

// Dims for the elements of a parameter, in the order of its axes in memory: the axes before both
// factored axes, one factored axis, the axes between, the other factored axis, and the axes after.
// `LargestAxis` and `SecondAxis` may be swapped in memory.
type OuterAxes = LoopVar<0, 'o', 'u', 't', 'e', 'r'>;
type LargestAxis = LoopVar<1, 'l', 'a', 'r', 'g', 'e', 's', 't'>;
type AxesBetween = LoopVar<2, 'b', 'e', 't', 'w', 'e', 'e', 'n'>;
type SecondAxis = LoopVar<3, 's', 'e', 'c', 'o', 'n', 'd'>;
type InnerAxes = LoopVar<4, 'i', 'n', 'n', 'e', 'r'>;
/// The one dim of all elements in memory order.
type PlaceInMemory = LoopVar<0, 'p', 'o', 's', 'i', 't', 'i', 'o', 'n'>;

/// Elements that a step changes.
enum Changed<'e, W> {
    InPlace(&'e mut [W]),
    /// Elements of a recorded function, which are replaced by results of recorded operations.
    #[cfg_attr(not(feature = "std"), allow(dead_code))]
    Recorded(&'e mut Buffer<W>),
}

/// Applies an operator to elements with the one dim `PlaceInMemory`.
macro_rules! change {
    ($own:expr, $op:tt $in_place:ident, $value:expr) => {
        match &mut $own {
            Changed::InPlace(own) => {
                let len = own.len();
                Place::<_, (PlaceInMemory,)>::in_order(own, &[0], &[len]).$in_place($value)?;
            }
            Changed::Recorded(own) => **own = elements_in(line(own) $op $value, &[0])?,
        }
    };
}

/// A tensor with these elements, which are contiguous in this order of dims. `sizes` has the sizes
/// in the same order.
fn tensor<W: Element, S: Dims>(data: &Buffer<W>, order: &[usize], sizes: &[usize]) -> Named<W, S> {
    Named::from_expr(Evaluated::in_order(data.clone(), order, sizes).with_origin(None))
}

fn line<W: Element>(data: &Buffer<W>) -> Named<W, (PlaceInMemory,)> {
    tensor(data, &[0], &[data.len()])
}

/// The elements of an expression, contiguous in this order of dims.
fn elements_in<W: Element, S: Dims, E: Expr<Elem = W>>(
    tensor: Named<W, S, Rank0, E>,
    order: &[usize],
) -> Result<Buffer<W>, DimError> {
    let shape = tensor.unified_shape()?;
    evaluate::<S, Rank0, _>(tensor.expr, &shape, order)
}

/// The same buffer as a `Buffer<U>`. `U` must be the same type as `T`.
fn buffer_as<T: 'static, U: 'static>(data: &Buffer<T>) -> &Buffer<U> {
    let data: &dyn Any = data;
    data.downcast_ref().expect("the types were compared")
}

/// A step of one parameter.
struct ParameterStep<'s> {
    settings: AdafactorSettings,
    /// `None` if the parameter is not factored.
    blocks: Option<FactoredBlocks>,
    scalars: StepScalars<3>,
    moments: &'s mut [StateTensor],
    /// Whether an operand depends on inputs of a recorded function.
    records: bool,
}

impl ParameterStep<'_> {
    /// The step of a tensor with elements of `T`, which must be the same type as `W`.
    fn of_floats<W: StateElem + CastTo<f64>, T: Element, S: Dims, R: Rank>(
        self,
        tensor: &mut Named<T, S, R>,
        gradient: &Named<T, S, R>,
    ) -> Result<(), DimError>
    where
        f64: CastTo<W>,
    {
        let gradient = buffer_as::<T, W>(gradient.expr.buffer());
        #[cfg(feature = "std")]
        if self.records {
            let mut own = buffer_as::<T, W>(tensor.expr.buffer()).clone();
            self.run(Changed::Recorded(&mut own), gradient)?;
            *tensor = Named::from_expr(tensor.expr.with_buffer(buffer_as::<W, T>(&own).clone()));
            return Ok(());
        }
        let own = slice_as_mut::<T, W>(tensor.expr.all_mut()).expect("the types were compared");
        self.run(Changed::InPlace(own), gradient)
    }

    /// The step of a tensor of half precision.
    #[cfg(feature = "half")]
    fn of_other_floats<T: Element, S: Dims, R: Rank>(
        self,
        tensor: &mut Named<T, S, R>,
        gradient: &Named<T, S, R>,
        master: Option<&mut StateTensor>,
    ) -> Result<(), DimError> {
        if TypeId::of::<T>() == TypeId::of::<half::f16>() {
            self.of_halves::<half::f16, T, S, R>(tensor, gradient, master)
        } else {
            self.of_halves::<half::bf16, T, S, R>(tensor, gradient, master)
        }
    }

    #[cfg(not(feature = "half"))]
    fn of_other_floats<T: Element, S: Dims, R: Rank>(
        self,
        _: &mut Named<T, S, R>,
        _: &Named<T, S, R>,
        _: Option<&mut StateTensor>,
    ) -> Result<(), DimError> {
        unreachable!("floats are `f32` or `f64`")
    }

    /// The step of a tensor with elements of `T`, which must be the same type as `H`. The step is
    /// computed in `f32`.
    #[cfg(feature = "half")]
    fn of_halves<H: Real + CastTo<f32>, T: Element, S: Dims, R: Rank>(
        self,
        tensor: &mut Named<T, S, R>,
        gradient: &Named<T, S, R>,
        master: Option<&mut StateTensor>,
    ) -> Result<(), DimError>
    where
        f32: CastTo<H>,
    {
        let records = self.records;
        let gradient = line(buffer_as::<T, H>(gradient.expr.buffer()));
        let gradient = elements_in(gradient.cast::<f32>(), &[0])?;
        let rounded = line(buffer_as::<T, H>(tensor.expr.buffer()));
        let mut exact = match master.as_deref() {
            // An element that differs from the rounded master was changed by the user.
            Some(master) => {
                let exact = line(master.buffer::<f32>().ok_or_else(StateTensor::of_other_elements)?);
                let is_own = exact.view().cast::<H>().cast::<f32>().eq(rounded.view().cast::<f32>());
                elements_in(select(is_own, exact.view(), rounded.view().cast::<f32>()), &[0])?
            }
            None => elements_in(rounded.cast::<f32>(), &[0])?,
        };
        let own = if records { Changed::Recorded(&mut exact) } else { Changed::InPlace(&mut exact) };
        self.run(own, &gradient)?;
        let rounded = elements_in(line(&exact).cast::<H>(), &[0])?;
        let rounded = buffer_as::<H, T>(&rounded);
        #[cfg(feature = "std")]
        if records {
            *tensor = Named::from_expr(tensor.expr.with_buffer(rounded.clone()));
        }
        if !records {
            tensor.expr.all_mut().copy_from_slice(rounded);
        }
        if let Some(master) = master {
            set(master, exact);
        }
        Ok(())
    }

    fn run<W: StateElem + CastTo<f64>>(
        mut self,
        mut own: Changed<'_, W>,
        gradient: &Buffer<W>,
    ) -> Result<(), DimError>
    where
        f64: CastTo<W>,
    {
        let [kept, factor, fresh] = self.scalars.clone().tensors();
        let new = fresh.view().cast::<W>().eval();
        let old = (1.0 - fresh).cast::<W>().eval();
        let direction = match self.blocks.take() {
            Some(blocks) => self.factored(&blocks, gradient, [&old, &new])?,
            None => self.whole(gradient, [&old, &new])?,
        };
        let AdafactorSettings { clipping_threshold, least_scale, momentum, .. } = self.settings;
        let root = |squares: Named<f64, ()>, len: usize| (squares / len as f64).sqrt().eval();
        let mut scale = if self.settings.maximize { (-factor).eval() } else { factor };
        if self.settings.multiply_by_parameter_scale {
            let squares = match &own {
                Changed::InPlace(own) => one(squares(own)),
                Changed::Recorded(own) => squares_of(own)?,
            };
            scale = (scale * root(squares, gradient.len()).maximum(least_scale)).eval();
        }
        if clipping_threshold < f64::INFINITY {
            let squares = if self.records { squares_of(&direction)? } else { one(squares(&direction)) };
            let over = root(squares, gradient.len()) / clipping_threshold;
            scale = (scale / over.maximum(1.0)).eval();
        }
        let direction = line(&direction);
        if self.settings.weight_decay != 0.0 {
            change!(own, *try_mul_assign, kept.cast::<W>());
        }
        let [_, _, mean @ ..] = self.moments else { unreachable!("there are two moments") };
        let Some(mean) = mean.first_mut() else {
            change!(own, -try_sub_assign, direction.view() * scale.cast::<W>());
            return Ok(());
        };
        let scale = (scale * (1.0 - momentum)).cast::<W>().eval();
        let decay = one(momentum).cast::<W>().eval();
        let mut changed = changed(mean, self.records)?;
        change!(changed, *try_mul_assign, decay.view());
        change!(changed, + try_add_assign, direction.view() * scale.view());
        mean.name_axes();
        let mean = line(mean.buffer::<W>().ok_or_else(StateTensor::of_other_elements)?);
        change!(own, -try_sub_assign, mean.view());
        Ok(())
    }

    /// Updates the moments `square` and `columns` of a factored parameter. Returns `u`, in the
    /// memory order of the gradient.
    fn factored<W: StateElem>(
        &mut self,
        blocks: &FactoredBlocks,
        gradient: &Buffer<W>,
        [old, new]: [&Named<W, ()>; 2],
    ) -> Result<Buffer<W>, DimError> {
        let (largest, second) = (LargestAxis::minted(), SecondAxis::minted());
        let [square, columns, ..] = self.moments else { unreachable!("there are two moments") };
        square.reorder(&blocks.moments[0])?;
        columns.reorder(&blocks.moments[1])?;
        let epsilon = W::from(self.settings.epsilon).expect("any float type has this number, rounded");
        let g: Named<W, (OuterAxes, LargestAxis, AxesBetween, SecondAxis, InnerAxes)> =
            tensor(gradient, &blocks.order, &blocks.sizes);
        let kept = square.buffer().ok_or_else(StateTensor::of_other_elements)?;
        let sizes = [0, 2, 3, 4].map(|block| blocks.size(block));
        let kept: Named<W, (OuterAxes, AxesBetween, SecondAxis, InnerAxes)> =
            tensor(kept, &[0, 1, 2, 3], &sizes);
        let rows = (kept * old + (g.view().square() + epsilon).mean(&largest) * new).eval();
        let kept = columns.buffer().ok_or_else(StateTensor::of_other_elements)?;
        let sizes = [0, 1, 2, 4].map(|block| blocks.size(block));
        let kept: Named<W, (OuterAxes, LargestAxis, AxesBetween, InnerAxes)> =
            tensor(kept, &[0, 1, 2, 3], &sizes);
        let others = (kept * old + (g.view().square() + epsilon).mean(&second) * new).eval();
        let by_row = (&rows / rows.mean(&second)).rsqrt().eval();
        let by_column = (&others).rsqrt().eval();
        set(square, elements_in(rows, &[0, 1, 2, 3])?);
        set(columns, elements_in(others, &[0, 1, 2, 3])?);
        elements_in(g * by_row * by_column, &blocks.order)
    }

    /// Updates the second moment of a parameter that is not factored. Returns `u`.
    fn whole<W: StateElem>(
        &mut self,
        gradient: &Buffer<W>,
        [old, new]: [&Named<W, ()>; 2],
    ) -> Result<Buffer<W>, DimError> {
        let [square, ..] = self.moments else { unreachable!("there are two moments") };
        let epsilon = W::from(self.settings.epsilon).expect("any float type has this number, rounded");
        let g = line(gradient);
        let mut own = changed(square, self.records)?;
        change!(own, *try_mul_assign, old);
        change!(own, + try_add_assign, (g.view().square() + epsilon) * new);
        square.name_axes();
        let square = line(square.buffer::<W>().ok_or_else(StateTensor::of_other_elements)?);
        elements_in(g * square.rsqrt(), &[0])
    }
}

/// The elements of a moment, to be changed.
fn changed<W: StateElem>(moment: &mut StateTensor, records: bool) -> Result<Changed<'_, W>, DimError> {
    let changed = if records {
        moment.buffer_mut().map(Changed::Recorded)
    } else {
        moment.elements_mut().map(Changed::InPlace)
    };
    changed.ok_or_else(StateTensor::of_other_elements)
}

/// Sets the elements of a state, in its memory order.
fn set<W: StateElem>(state: &mut StateTensor, data: Buffer<W>) {
    if let Some(own) = state.buffer_mut::<W>() {
        *own = data;
    }
    state.name_axes();
}

/// The sum of the squares, as a recorded operation.
#[cfg(feature = "std")]
fn squares_of<W: StateElem>(data: &Buffer<W>) -> Result<Named<f64, ()>, DimError> {
    let squares = sum_of_squares(&[data.held()], None)?;
    Ok(Named::from_expr(one::<f64>(0.0).expr.with_buffer(squares)))
}

#[cfg(not(feature = "std"))]
fn squares_of<W: StateElem>(_: &Buffer<W>) -> Result<Named<f64, ()>, DimError> {
    unreachable!("recording needs the feature `std`")
}
