//! Learning rates over the steps.

use super::scalars::by_tensors;
use crate::tensors::named::Named;
use core::f64::consts::PI;
use kernels::map::formula::Quantity;

/// The learning rate of each step. A number is one: the same rate at all steps.
///
/// An optimizer refuses a step whose rate is negative, infinite or NaN.
///
/// ```
/// use typed_dims::optim::Schedule;
///
/// let schedule = Schedule::cosine(1.0, 100).warm_up(4);
/// assert_eq!([0, 1, 3, 4].map(|step| schedule.at(step)), [0.25, 0.5, 1.0, 1.0]);
/// assert!((schedule.at(54) - 0.5).abs() < 1e-12);
/// assert_eq!(schedule.at(1000), 0.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    shape: ScheduleShape,
    warm_up: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ScheduleShape {
    Constant { rate: f64 },
    Cosine { rate: f64, last: f64, steps: u64 },
    Step { rate: f64, every: u64, factor: f64 },
    OneCycle { most: f64, steps: u64 },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        Schedule::constant(rate)
    }
}

impl Schedule {
    /// The same rate at all steps.
    pub fn constant(rate: f64) -> Self {
        Schedule::of(ScheduleShape::Constant { rate })
    }

    /// From `rate` down to 0 in `steps` steps, along half a cosine: `rate * (1 + cos(pi * step / steps)) / 2`; 0 afterwards.
    pub fn cosine(rate: f64, steps: u64) -> Self {
        Schedule::cosine_to(rate, 0.0, steps)
    }

    /// From `rate` to `last` in `steps` steps, along half a cosine; `last` afterwards. This is `torch.optim.lr_scheduler.CosineAnnealingLR`.
    pub fn cosine_to(rate: f64, last: f64, steps: u64) -> Self {
        Schedule::of(ScheduleShape::Cosine { rate, last, steps })
    }

    /// `rate * factor^(step / every)`, rounded down. This is `torch.optim.lr_scheduler.StepLR`.
    ///
    /// # Panics
    ///
    /// If `every` is 0.
    #[track_caller]
    pub fn step(rate: f64, every: u64, factor: f64) -> Self {
        assert!(every > 0, "the rate changes every 0 steps");
        Schedule::of(ScheduleShape::Step { rate, every, factor })
    }

    /// From `most / 25` up to `most` in three tenths of the steps, then down to `most / 250000`, each along half a cosine. This is
    /// `torch.optim.lr_scheduler.OneCycleLR` with its defaults, but for the momentum, which does not change.
    ///
    /// (L. N. Smith, N. Topin, 2018, "Super-convergence".)
    pub fn one_cycle(most: f64, steps: u64) -> Self {
        Schedule::of(ScheduleShape::OneCycle { most, steps })
    }

    fn of(shape: ScheduleShape) -> Self {
        Schedule { shape, warm_up: 0 }
    }

    /// Puts `steps` steps before the others, in which the rate rises to the first rate in equal parts: `(step + 1) / steps` of it.
    #[must_use]
    pub fn warm_up(self, steps: u64) -> Self {
        Schedule { warm_up: steps, ..self }
    }

    /// The rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        self.of_step(step as f64)
    }

    /// The rate of a step that is a tensor, as a tensor: the same number as [`at`](Schedule::at) returns, computed by operations on tensors.
    ///
    /// ```
    /// use typed_dims::optim::Schedule;
    /// use typed_dims::prelude::*;
    ///
    /// let schedule = Schedule::cosine(1.0, 100).warm_up(4);
    /// let step: Tensor<u64, ()> = full((), 54);
    /// let rate: Tensor<f64, ()> = schedule.rate(&step);
    /// assert_eq!(rate.order(()), schedule.at(54));
    /// ```
    pub fn rate(&self, step: &Named<u64, ()>) -> Named<f64, ()> {
        by_tensors(step, |step| self.of_step(step))
    }

    /// The rate of a step, whatever it is computed with. (What is not chosen is computed as well, and may be any number.)
    fn of_step<Q: Quantity>(&self, step: Q) -> Q {
        if self.warm_up == 0 {
            return self.shape.of_step(step);
        }
        let warm_up = step.constant(self.warm_up as f64);
        let first = self.shape.of_step(step.constant(0.0));
        let rising = first * ((step + step.constant(1.0)) / warm_up);
        Q::choose(step.is_less(warm_up), rising, self.shape.of_step(step - warm_up))
    }
}

impl ScheduleShape {
    fn of_step<Q: Quantity>(&self, step: Q) -> Q {
        let number = |value: f64| step.constant(value);
        match *self {
            ScheduleShape::Constant { rate } => number(rate),
            ScheduleShape::Cosine { rate, last, steps } => {
                let steps = number(steps as f64);
                let falling = between(number(rate), number(last), step / steps);
                Q::choose(step.is_less(steps), falling, number(last))
            }
            ScheduleShape::Step { rate, every, factor } => {
                number(rate) * number(factor).powf((step / number(every as f64)).floor())
            }
            ScheduleShape::OneCycle { most, steps } => {
                let (first, end) = (most / 25.0, steps.saturating_sub(1) as f64);
                let last = first / 1e4;
                let top = 0.3 * steps as f64 - 1.0;
                let rising = between(number(first), number(most), step / number(top));
                let falling = between(number(most), number(last), (step - number(top)) / number(end - top));
                let behind = Q::choose(step.is_less(number(end)), falling, number(last));
                Q::choose(step.is_at_most(number(top)), rising, behind)
            }
        }
    }
}

/// A value between two, after a part of the way, along half a cosine.
fn between<Q: Quantity>(from: Q, to: Q, part: Q) -> Q {
    let height = from.constant(1.0) + (from.constant(PI) * part).cos();
    to + (from - to) / from.constant(2.0) * height
}
