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
//! * [`Sgd`], [`Adam`], [`AdamW`] and [`Lion`] compute what PyTorch's and optax's optimizers of these names compute.
//! * A step is one pass over each parameter, in place. Memory is allocated at the first step, for the [`State`]; and later where a clone shares the parameter's
//!   elements, which are copied then, or where a gradient lies in another order of axes than its parameter.
//! * Tensors that are not learned stay as they are: see [`Parameters`].
//! * Parameters in half precision have a state in half precision, as in PyTorch. Small steps are lost in the rounding: train in `f32`, and convert what was trained.
//! * Weights that two layers share are one field, which both read. Its gradient is the sum of both, and it has one state. Clones of a tensor are parameters of
//!   their own, though they share memory until the first step.
//!
//! There is no Adafactor: it factors the second moment of a matrix over two axes (PyTorch takes the last two, optax the two largest), and a tensor with named dims
//! has no such two by itself.

mod adam;
mod gradients;
mod lion;
mod schedule;
mod settings;
mod sgd;
mod state;
mod update;

pub use adam::{Adam, AdamW};
pub use gradients::{
    Accumulator, Average, clip_by_global_norm, clip_by_value, global_norm, try_clip_by_global_norm,
    try_clip_by_value, try_global_norm,
};
pub use lion::Lion;
pub use schedule::Schedule;
pub use sgd::Sgd;
pub use state::State;

use crate::error::{DimError, unwrap};
use crate::grad::Parameters;

/// What changes parameters by their gradient.
pub trait Optimizer<P: Parameters> {
    /// Changes the parameters by one step against their gradient.
    ///
    /// # Panics
    ///
    /// Where [`try_step`](Optimizer::try_step) returns an error; and if a gradient is taken through the parameters at the moment.
    #[track_caller]
    fn step(&mut self, parameters: &mut P, gradient: &P) {
        unwrap(self.try_step(parameters, gradient));
    }

    /// As [`step`](Optimizer::step), but what settings and sizes decide is an error.
    ///
    /// # Errors
    ///
    /// If a setting of the optimizer is out of its range, the learning rate of this step among them; if the parameters, the gradient and the state differ in the length
    /// of a `Vec`, in whether an `Option` is `None`, or in the size of a dim; if no parameter has the name of one that is frozen; or if the state does not fit into
    /// memory. Nothing is changed then.
    fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), DimError>;

    /// The state: moments, and the number of steps.
    fn state(&self) -> &State<P>;

    /// The state, to change it.
    fn state_mut(&mut self) -> &mut State<P>;

    /// What messages and files call the optimizer: `Adam`.
    fn kind(&self) -> &'static str;

    /// The names of the moments that the state has for each parameter.
    fn moments(&self) -> &'static [&'static str];

    /// How many steps were taken. (A parameter that was frozen has taken fewer: [`State::steps_of`].)
    fn steps(&self) -> u64 {
        self.state().steps
    }

    /// The learning rate of the next step.
    fn rate(&self) -> f64 {
        self.state().schedule.at(self.state().steps)
    }

    /// Sets the learning rate of further steps: a number, or a [`Schedule`], which counts all steps from the first.
    fn set_rate(&mut self, rate: impl Into<Schedule>)
    where
        Self: Sized,
    {
        self.state_mut().schedule = rate.into();
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

/// The methods that hand out the state, for an optimizer of this name with the field `state`.
macro_rules! with_state {
    ($kind:expr, $moments:expr) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn state(&self) -> &State<P> {
            &self.state
        }

        fn state_mut(&mut self) -> &mut State<P> {
            &mut self.state
        }

        fn moments(&self) -> &'static [&'static str] {
            let moments: fn(&Self) -> &'static [&'static str] = $moments;
            moments(self)
        }
    };
}
use with_state;
