//! Optimizers: how parameters change by their gradient.
//!
//! ```
//! use typed_dims::grad::value_and_grad;
//! use typed_dims::optim::{AdamW, Schedule, clip_by_global_norm};
//! use typed_dims::prelude::*;
//!
//! dims! { pub struct Example; pub struct Feature; }
//!
//! #[derive(Parameters)]
//! struct Line {
//!     slope: Tensor<f32, (Feature,)>,
//!     offset: Tensor<f32, ()>,
//! }
//!
//! let x = randn::<f32, _>((Example.of(64), Feature.of(3)), 1);
//! let y = (x.sum(Feature) + 0.5).eval();
//! let mut line = Line { slope: zeros(Feature.of(3)), offset: zeros(()) };
//! let mut optimizer = AdamW::new(Schedule::cosine(0.1, 200).warm_up(10)).weight_decay(0.0);
//! for _ in 0..200 {
//!     let loss = |line: &Line| {
//!         let error = (&x * &line.slope).sum(Feature) + &line.offset - &y;
//!         error.square().mean(Example)
//!     };
//!     let (_, mut gradient) = value_and_grad(loss, &line);
//!     clip_by_global_norm(&mut gradient, 1.0);
//!     optimizer.step(&mut line, &gradient);
//! }
//! assert!((line.offset.order(()) - 0.5).abs() < 1e-2);
//! ```
//!
//! * [`Sgd`], [`Adam`], [`AdamW`], [`NAdam`], [`RAdam`], [`RmsProp`], [`Adagrad`], [`Lamb`] and [`Lion`] compute what PyTorch's and optax's optimizers of these names
//!   compute, and have their defaults.
//! * [`group`](Optimizer::group) and [`no_decay`](Optimizer::no_decay) give some parameters another rate or weight decay.
//! * A step is one pass over each parameter, in place. ([`Lamb`] needs three, as it takes norms first.) Memory is allocated at the first step, for the [`State`]; and later where a clone shares the parameter's
//!   elements, which are copied then, or where a gradient lies in another order of axes than its parameter.
//! * Tensors that are not learned stay as they are: see [`Parameters`].
//! * The state of a parameter in half precision (`f16`, `bf16`) is in `f32`: its moments, and *master weights*, a copy of the parameter that takes the steps. The parameter
//!   is the rounded master after each step, so that small steps add up. [`master_weights(false)`](Optimizer::master_weights) does without the copy.
//! * If you change a parameter between two steps, the optimizer goes on from your values: where an element of the parameter is not the rounded master, it replaces the
//!   master. A change that rounds to the same element is none. Gradients in half precision are the user's concern: scale the loss if they underflow.
//! * Weights that two layers share are one field, which both read. Its gradient is the sum of both, and it has one state. Clones of a tensor are parameters of
//!   their own, though they share memory until the first step.
//!
//! There is no Adafactor: it factors the second moment of a matrix over two axes (PyTorch takes the last two, optax the two largest), and a tensor with named dims
//! has no such two by itself.

mod adagrad;
mod adam;
pub(crate) mod by_path;
mod gradients;
mod groups;
mod implement;
mod lamb;
mod lion;
mod moments;
mod nadam;
mod normed;
mod plateau;
mod radam;
mod rms_prop;
mod scalars;
mod schedule;
mod settings;
mod sgd;
mod state;
pub(crate) mod state_tensor;
mod step_after;
mod unchanged;
mod update;
mod walks;

pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
pub use by_path::ParameterState;
pub use gradients::{
    Accumulator, Average, clip_by_global_norm, clip_by_value, global_norm, try_clip_by_global_norm,
    try_clip_by_value, try_global_norm,
};
#[doc(hidden)]
pub use gradients::{in_place, programs};
pub use groups::{GroupSettings, ParameterInfo};
pub use lamb::Lamb;
pub use lion::Lion;
pub use nadam::NAdam;
pub use plateau::Plateau;
pub use radam::RAdam;
pub use rms_prop::RmsProp;
pub use schedule::Schedule;
pub use sgd::Sgd;
pub use state::State;
pub use state_tensor::StateTensor;
use twins::panicking_twin;
#[doc(hidden)]
pub use update::StepPrograms;

use crate::error::{DimError, unwrap};
use crate::grad::Parameters;
use alloc::sync::Arc;
use groups::Members;
use kernels::program::code::DType;

/// What changes parameters by their gradient.
pub trait Optimizer<P: Parameters> {
    /// Changes the parameters by one step against their gradient.
    ///
    /// # Panics
    ///
    /// Where [`try_step`](Optimizer::try_step) returns an error; and if a gradient is taken through the parameters at the moment.
    ///
    /// # Errors
    ///
    /// If a setting of the optimizer is out of its range, the learning rate of this step among them; if the parameters, the gradient and the state differ in the length
    /// of a `Vec`, in whether an `Option` is `None`, or in the size of a dim; if no parameter has the name of one that is frozen; or if the state does not fit into
    /// memory. Nothing is changed then.
    #[panicking_twin(but = "what settings and sizes decide is an error")]
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError>;

    /// Makes the state for these parameters as the first step would, with moments that are 0.
    ///
    /// Without it, the first step makes the state. A recorded training step takes state with the same tensors in each call, so prepare the optimizer before the step is recorded.
    ///
    /// ```
    /// use typed_dims::optim::{Adam, Optimizer};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Feat; }
    /// let weight: Tensor<f32, (Feat,)> = ones(Feat.of(3));
    /// let mut adam = Adam::new(0.1);
    /// adam.prepare(&weight);
    /// assert_eq!((adam.state().parameters().len(), adam.steps()), (1, 0));
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the state does not fit into memory, or if it is of other parameters.
    #[track_caller]
    fn prepare(&mut self, parameters: &P) {
        let moments = self.moments().len();
        unwrap(self.state_mut().prepare(parameters, moments));
    }

    /// The state: moments, and the number of steps.
    fn state(&self) -> &State<P>;

    /// The state, to change it.
    fn state_mut(&mut self) -> &mut State<P>;

    /// What messages and files call the optimizer: `Adam`.
    fn kind(&self) -> &'static str;

    /// The names of the moments that the state has for each parameter.
    fn moments(&self) -> &'static [&'static str];

    /// The step as programs, for parameters with elements of this type: what `try_step` computes, bit for bit. Nothing if the optimizer does not have them.
    #[doc(hidden)]
    fn programs(&self, elements: DType) -> Option<StepPrograms> {
        let _ = elements;
        None
    }

    /// How many steps were taken, as a number for the program: it is read from the [tensor](State::step_count) that counts them. (A parameter that was frozen has taken fewer:
    /// [`State::steps_of`].)
    #[track_caller]
    fn steps(&self) -> u64 {
        self.state().steps()
    }

    /// The learning rate of the next step, as a number for the program: it is computed from the steps that are read. As a tensor it is
    /// `optimizer.state().rate()`.
    #[track_caller]
    fn rate(&self) -> f64 {
        self.state().schedule.at(self.steps())
    }

    /// Sets the learning rate of further steps: a number, or a [`Schedule`], which counts all steps from the first.
    fn set_rate(&mut self, rate: impl Into<Schedule>)
    where
        Self: Sized,
    {
        self.state_mut().schedule = rate.into();
    }

    /// Whether the optimizer keeps *master weights* for parameters of half precision: a copy in `f32`, which takes the steps, and of which the parameter is the rounded one.
    /// It does unless this says `false`. Then each step begins with the rounded parameter, and a step of less than half the distance to the next number is lost.
    ///
    /// Where an element of the parameter is not that of the master, rounded, the user has changed it, and the step begins with the user's value.
    ///
    /// ```
    /// # #[cfg(feature = "half")] {
    /// use half::bf16;
    /// use typed_dims::optim::Sgd;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feature; }
    /// let gradient = full(Feature.of(1), bf16::ONE);
    /// let after_100_steps = |mut optimizer: Sgd<Tensor<bf16, (Feature,)>>| {
    ///     let mut w = full(Feature.of(1), bf16::ONE);
    ///     (0..100).for_each(|_| optimizer.step(&mut w, &gradient));
    ///     w.order(Feature)[0].to_f32()
    /// };
    /// assert_eq!(after_100_steps(Sgd::new(1e-3)), 0.8984375); // 0.9, rounded
    /// assert_eq!(after_100_steps(Sgd::new(1e-3).master_weights(false)), 1.0);
    /// # }
    /// ```
    #[must_use]
    fn master_weights(mut self, keep: bool) -> Self
    where
        Self: Sized,
    {
        self.state_mut().by_path.set_masters(keep);
        self
    }

    /// Gives the parameters of these names other settings than the optimizer's.
    ///
    /// `*` in a pattern stands for any characters, and `*.` at its start for nothing as well: `*.bias` is each parameter called `bias`. The name of a part stands for all
    /// parameters in it: `layers.*.norm` has `layers.3.norm.weight`. A parameter can be in several groups. Each of its settings is then that of the last group which has
    /// it.
    ///
    /// A step is an error if no parameter has such a name.
    ///
    /// ```
    /// use typed_dims::optim::{AdamW, Sgd};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Feature; }
    /// let mut w = (ones::<f64, _>(Feature.of(2)), ones::<f64, _>(Feature.of(2)));
    /// let gradient = w.clone();
    /// let mut optimizer = Sgd::new(0.1).group("1", |group| group.rate(0.5));
    /// optimizer.step(&mut w, &gradient);
    /// assert_eq!((w.0.view().order(Feature)[0], w.1.view().order(Feature)[0]), (0.9, 0.5));
    /// ```
    #[must_use]
    fn group(mut self, names: &str, settings: impl FnOnce(GroupSettings) -> GroupSettings) -> Self
    where
        Self: Sized,
    {
        self.state_mut().group(Members::named(names), settings(GroupSettings::default()));
        self
    }

    /// As [`group`](Optimizer::group), for the parameters for which `is_member` returns `true`. It is asked once for each parameter, at the first step.
    ///
    /// ```
    /// use typed_dims::optim::Sgd;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct Token; struct Feature; }
    /// type Weights = (Tensor<f64, (Token, Feature)>, Tensor<f64, (Feature,)>);
    /// let mut w: Weights = (ones((Token.of(3), Feature.of(2))), ones(Feature.of(2)));
    /// let gradient = w.clone();
    /// let mut optimizer = Sgd::new(0.1).group_where(|p| p.has(Token), |group| group.rate_factor(2.0));
    /// optimizer.step(&mut w, &gradient);
    /// assert_eq!(w.0.view().order((Token, Feature))[[0, 0]], 0.8);
    /// ```
    #[must_use]
    fn group_where(
        mut self,
        is_member: impl Fn(&ParameterInfo<'_>) -> bool + Send + Sync + 'static,
        settings: impl FnOnce(GroupSettings) -> GroupSettings,
    ) -> Self
    where
        Self: Sized,
    {
        self.state_mut().group(Members::Where(Arc::new(is_member)), settings(GroupSettings::default()));
        self
    }

    /// Takes the weight decay from the parameters for which `is_member` returns `true`.
    ///
    /// ```
    /// use typed_dims::nn::linear::Linear;
    /// use typed_dims::optim::AdamW;
    /// use typed_dims::prelude::*;
    ///
    /// dims! { struct In; struct Out; }
    /// let mut layer = Linear::<(In,), (Out,)>::new(In.of(3), Out.of(2), 1);
    /// layer.bias = ones(Out.of(2));
    /// let mut optimizer = AdamW::new(1e-3).weight_decay(0.1).no_decay(|p| p.rank() < 2); // biases and norms
    /// let zero = layer.zero();
    /// optimizer.step(&mut layer, &zero);
    /// assert_eq!(layer.bias.order(Out)[0], 1.0);
    /// ```
    #[must_use]
    fn no_decay(self, is_member: impl Fn(&ParameterInfo<'_>) -> bool + Send + Sync + 'static) -> Self
    where
        Self: Sized,
    {
        self.group_where(is_member, |group| group.weight_decay(0.0))
    }

    /// Parameters that stay as they are: one by its name, or all whose names begin with `name` and a dot. Their moments stay as well, and they count no steps.
    fn freeze(&mut self, name: &str)
    where
        Self: Sized,
    {
        self.state_mut().freeze(name);
    }

    /// Lets parameters change again, by the name that they were frozen by.
    fn unfreeze(&mut self, name: &str)
    where
        Self: Sized,
    {
        self.state_mut().unfreeze(name);
    }
}
