//! Optimizers.
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
//! * [`Sgd`], [`Adam`], [`AdamW`], [`NAdam`], [`RAdam`], [`RmsProp`] and [`Adagrad`] are PyTorch's
//!   optimizers of these names, with the same defaults. [`Lamb`], [`Adafactor`] and [`Lion`] are
//!   optax's.
//! * [`group`](Optimizer::group) and [`no_decay`](Optimizer::no_decay) give some parameters a
//!   different rate or weight decay.
//! * A step is one pass over each parameter, in place. [`Lamb`] and [`Adafactor`] need more passes,
//!   because they compute norms and means first. Memory for the [`State`] is allocated at the first
//!   step of each parameter. Later steps copy elements if a clone shares them, or if a parameter,
//!   its state and its gradient are not contiguous in the same order of axes.
//! * Tensors that are not learned are unchanged: see [`Parameters`].
//! * The state of a parameter in half precision (`f16`, `bf16`) is in `f32`. It includes *master
//!   weights*, a copy of the parameter that takes the steps. After each step, the parameter is the
//!   rounded copy, so that small steps add up. Turn this off with
//!   [`master_weights(false)`](Optimizer::master_weights).
//! * If you change a parameter between two steps, the optimizer continues from your values: an
//!   element that differs from the rounded master weight replaces it.
//! * For weights that two layers share, use one field that both read. Its gradient is the sum of
//!   the gradients from both layers, and it has one state. Clones of a tensor are separate
//!   parameters (memory is copy on write).

mod adafactor;
mod adagrad;
mod adam;
pub(crate) mod by_path;
mod factored;
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

pub use adafactor::Adafactor;
pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
#[doc(hidden)]
pub use by_path::MomentLayout;
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

/// An algorithm that updates parameters using their gradient.
pub trait Optimizer<P: Parameters> {
    /// Takes one step: updates the parameters using their gradient. Tensors whose elements are not
    /// floats, such as integers, are not learned: a step leaves them as they are.
    ///
    /// State is stored by the name of the parameter. A parameter that the last step did not have,
    /// as after `push` to a `Vec`, starts with a new state and counts its own steps. The state of a
    /// parameter that is gone, as after `pop`, is dropped. The name of an element of a `Vec` is its
    /// position, so after `insert` or `remove` the elements that have moved continue with the state
    /// of their new positions.
    ///
    /// ```
    /// use typed_dims::optim::{Adam, Optimizer};
    /// use typed_dims::prelude::*;
    ///
    /// dims! { pub struct Feat; }
    /// let ones = |len: usize| vec![ones::<f32, _>(Feat.of(3)); len];
    /// let (mut layers, mut adam) = (ones(1), Adam::new(0.1));
    /// adam.step(&mut layers, &ones(1));
    /// layers.extend(ones(1));
    /// adam.step(&mut layers, &ones(2));
    /// assert_eq!((adam.state().steps_of("0"), adam.state().steps_of("1")), (2, 1));
    /// layers.pop();
    /// adam.step(&mut layers, &ones(1));
    /// assert_eq!(adam.state().parameters().len(), 1);
    /// ```
    ///
    /// # Errors
    ///
    /// If a setting is out of range, such as the learning rate of this step; if the parameters and
    /// the gradient differ in the length of a `Vec`, in whether an `Option` is `None`, or in the
    /// size of an axis; if the state of a parameter does not fit it; if a name of `freeze` or
    /// `unfreeze`, or the pattern of a group, matches no parameter; if an outer gradient is being
    /// taken through a parameter that is not frozen, or through its gradient or state, because a
    /// step in place has no derivative; or if the state or a copy of elements does not fit into
    /// memory. On an error, no parameter is changed, unless the error is that a copy of elements
    /// does not fit into memory.
    #[panicking_twin(but = "invalid settings and sizes that do not match are errors")]
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError>;

    /// Makes the state for these parameters, with moments that are 0. Frozen parameters get no
    /// moments yet. Parameters that have a state keep it. The state of parameters that are not in
    /// `parameters` is dropped.
    ///
    /// Without this call, each step makes the state that is missing. A recorded training step needs
    /// the same state tensors in each call, so prepare the optimizer before you record the step.
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
    /// Panics if the state does not fit into memory, if the optimizer has state that does not fit a
    /// parameter, or if the pattern of a group matches no parameter.
    #[track_caller]
    fn prepare(&mut self, parameters: &P) {
        let moments = self.moment_layout();
        unwrap(self.state_mut().prepare(parameters, moments));
    }

    /// The state: the number of steps, the moments, and the master weights.
    fn state(&self) -> &State<P>;

    /// The state, mutably.
    fn state_mut(&mut self) -> &mut State<P>;

    /// The name of the optimizer in messages and files, such as `Adam`.
    fn kind(&self) -> &'static str;

    /// The names of the moments that the state has for each parameter.
    fn moments(&self) -> &'static [&'static str];

    /// The axes of the moments of each parameter.
    #[doc(hidden)]
    fn moment_layout(&self) -> MomentLayout {
        MomentLayout::whole(self.moments().len())
    }

    /// The step as programs, for parameters with elements of this type. Their results equal those
    /// of `try_step` bit for bit. `None` if the optimizer has no programs.
    #[doc(hidden)]
    fn programs(&self, elements: DType) -> Option<StepPrograms> {
        let _ = elements;
        None
    }

    /// The number of steps taken, read from the [tensor](State::step_count) that counts them. A
    /// parameter that was frozen or added later has taken fewer: see [`State::steps_of`].
    ///
    /// # Panics
    ///
    /// If the tensor depends on inputs of a recorded function.
    #[track_caller]
    fn steps(&self) -> u64 {
        self.state().steps()
    }

    /// The learning rate of the next step, as a number. For a tensor, use
    /// `optimizer.state().rate()`.
    ///
    /// # Panics
    ///
    /// If the number of steps depends on inputs of a recorded function.
    #[track_caller]
    fn rate(&self) -> f64 {
        let why = "it returns a number; `optimizer.state().rate()` is the rate as a tensor";
        self.state().schedule.at(self.state().steps.read_by("rate", why))
    }

    /// Sets the learning rate of later steps: a number, or a [`Schedule`], which counts all steps
    /// from the first.
    fn set_rate(&mut self, rate: impl Into<Schedule>)
    where
        Self: Sized,
    {
        self.state_mut().schedule = rate.into();
    }

    /// Sets whether the optimizer keeps *master weights* for parameters in half precision: a copy
    /// in `f32` that takes the steps, and whose rounded values become the parameter. The default is
    /// `true`. With `false`, each step starts from the rounded parameter, and a step of less than
    /// half the distance to the next number is lost.
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

    /// Overrides the optimizer's settings for the parameters whose names match the pattern `names`.
    ///
    /// `*` matches any characters, or none. A leading `*.` may match nothing: `*.bias` matches both
    /// `bias` and `layers.3.bias`. The name of a part matches all parameters in it: `layers.*.norm`
    /// matches `layers.3.norm.weight`. If a parameter is in several groups, each setting comes from
    /// the last group that sets it.
    ///
    /// If no parameter matches, each step is an error.
    ///
    /// ```
    /// use typed_dims::optim::Sgd;
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

    /// Like [`group`](Optimizer::group), for the parameters for which `is_member` returns `true`.
    /// `is_member` is called at the first step of each parameter or in
    /// [`prepare`](Optimizer::prepare). Later steps use the same result, until a group is added or
    /// the state is loaded or [restored](State::restore). It is not an error if no parameter is a
    /// member.
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

    /// Disables weight decay for the parameters for which `is_member` returns `true`.
    ///
    /// ```
    /// use typed_dims::nn::Linear;
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

    /// Freezes the parameter with this name, or all parameters in the part with this name. In the
    /// name, `*` stands for any characters, as in [`group`](Optimizer::group): `*.bias`. The
    /// moments of a frozen parameter are unchanged, and it counts no steps. If no parameter
    /// matches, each step is an error.
    fn freeze(&mut self, name: &str)
    where
        Self: Sized,
    {
        self.state_mut().freeze(name);
    }

    /// Unfreezes the parameter with this name, or all parameters in the part with this name. `*` is
    /// as in [`freeze`](Optimizer::freeze). For each parameter, the last call that matches it
    /// counts: after `freeze("*")` and `unfreeze("head")`, only the part `head` is learned. If no
    /// parameter matches, and others are still frozen, each step is an error.
    fn unfreeze(&mut self, name: &str)
    where
        Self: Sized,
    {
        self.state_mut().unfreeze(name);
    }
}
