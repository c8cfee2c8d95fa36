//! Learning rates over the steps.

use core::f64::consts::PI;
use num_traits::Float;

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
        match step.checked_sub(self.warm_up) {
            None => self.shape.at(0) * ((step + 1) as f64 / self.warm_up as f64),
            Some(step) => self.shape.at(step),
        }
    }
}

impl ScheduleShape {
    fn at(&self, step: u64) -> f64 {
        match *self {
            ScheduleShape::Constant { rate } => rate,
            ScheduleShape::Cosine { rate, last, steps } => {
                if step < steps {
                    between(rate, last, step as f64 / steps as f64)
                } else {
                    last
                }
            }
            ScheduleShape::Step { rate, every, factor } => rate * Float::powf(factor, (step / every) as f64),
            ScheduleShape::OneCycle { most, steps } => {
                let (first, end) = (most / 25.0, steps.saturating_sub(1) as f64);
                let last = first / 1e4;
                let top = 0.3 * steps as f64 - 1.0;
                let step = step as f64;
                if step <= top {
                    between(first, most, step / top)
                } else if step < end {
                    between(most, last, (step - top) / (end - top))
                } else {
                    last
                }
            }
        }
    }
}

/// A value between two, after a part of the way, along half a cosine.
fn between(from: f64, to: f64, part: f64) -> f64 {
    to + (from - to) / 2.0 * (1.0 + Float::cos(PI * part))
}
