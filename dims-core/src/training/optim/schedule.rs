//! Learning rate schedules.

use super::scalars::by_tensors;
use super::settings::is_at_least_0;
use crate::tensors::named::Named;
use core::f64::consts::PI;
use kernels::map::formula::Quantity;

/// The learning rate of each step. Steps are counted from 0. An `f64` or an `i32` converts to a
/// constant schedule.
///
/// A step with a rate that is negative, infinite or NaN is an error. A recorded program does not
/// check its rates, so recording a step is an error if the schedule has such a rate at any step.
/// (One case is not detected: with [`step`](Schedule::step) and a `factor` above 1, the rate
/// eventually becomes infinite, or NaN if `rate` is 0.)
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
    Polynomial { rate: f64, last: f64, steps: u64, power: f64 },
    Restarts { rate: f64, last: f64, steps: u64, longer: u64 },
    Step { rate: f64, every: u64, factor: f64 },
    MultiStep { rate: f64, after: &'static [u64], factor: f64 },
    OneCycle { most: f64, steps: u64 },
}

impl From<f64> for Schedule {
    fn from(rate: f64) -> Self {
        Schedule::constant(rate)
    }
}

/// Allows an integer literal, as in `Sgd::new(1)`.
impl From<i32> for Schedule {
    fn from(rate: i32) -> Self {
        Schedule::constant(f64::from(rate))
    }
}

impl Schedule {
    /// The same rate at all steps.
    pub fn constant(rate: f64) -> Self {
        Schedule::of(ScheduleShape::Constant { rate })
    }

    /// From `rate` down to 0 in `steps` steps, along half a cosine:
    /// `rate * (1 + cos(pi * step / steps)) / 2`; 0 afterwards.
    pub fn cosine(rate: f64, steps: u64) -> Self {
        Schedule::cosine_to(rate, 0.0, steps)
    }

    /// From `rate` to `last` in `steps` steps, along half a cosine; `last` afterwards. This is
    /// `torch.optim.lr_scheduler.CosineAnnealingLR`, except that PyTorch's rate rises again after
    /// `steps` steps.
    pub fn cosine_to(rate: f64, last: f64, steps: u64) -> Self {
        Schedule::of(ScheduleShape::Cosine { rate, last, steps })
    }

    /// Repeats [`cosine_to`](Schedule::cosine_to): from `rate` to `last` in `steps` steps, then
    /// from `rate` to `last` in `longer` times as many, and so on. This is
    /// `torch.optim.lr_scheduler.CosineAnnealingWarmRestarts`.
    ///
    /// (I. Loshchilov, F. Hutter, 2017, "SGDR: Stochastic gradient descent with warm restarts".)
    ///
    /// ```
    /// use typed_dims::optim::Schedule;
    ///
    /// let schedule = Schedule::cosine_restarts(1.0, 0.0, 10, 2);
    /// assert_eq!([0, 10, 30, 70].map(|step| schedule.at(step)), [1.0; 4]); // periods of 10, 20, 40
    /// assert!((schedule.at(20) - 0.5).abs() < 1e-12);
    /// ```
    ///
    /// # Panics
    ///
    /// If `steps` or `longer` is 0.
    #[track_caller]
    pub fn cosine_restarts(rate: f64, last: f64, steps: u64, longer: u64) -> Self {
        assert!(steps > 0, "the first period has 0 steps");
        assert!(longer > 0, "each period is 0 times as long as the one before");
        Schedule::of(ScheduleShape::Restarts { rate, last, steps, longer })
    }

    /// Linearly from `rate` to `last` in `steps` steps; `last` afterwards. With `steps` above 0,
    /// this is `optax.linear_schedule` and, with `start_factor` as `rate` and `end_factor` as
    /// `last`, `torch.optim.lr_scheduler.LinearLR` for a base rate of 1.
    ///
    /// ```
    /// use typed_dims::optim::Schedule;
    ///
    /// let schedule = Schedule::linear(1.0, 0.0, 4);
    /// assert_eq!([0, 1, 4, 9].map(|step| schedule.at(step)), [1.0, 0.75, 0.0, 0.0]);
    /// ```
    pub fn linear(rate: f64, last: f64, steps: u64) -> Self {
        Schedule::polynomial(rate, last, steps, 1.0)
    }

    /// `last + (rate - last) * (1 - step / steps)^power` for `steps` steps; `last` afterwards. With
    /// `steps` and `power` above 0, this is `optax.polynomial_schedule` and, with a `last` of 0,
    /// `torch.optim.lr_scheduler.PolynomialLR`.
    ///
    /// ```
    /// use typed_dims::optim::Schedule;
    ///
    /// let schedule = Schedule::polynomial(1.0, 0.0, 4, 2.0);
    /// assert_eq!([0, 1, 4, 9].map(|step| schedule.at(step)), [1.0, 0.5625, 0.0, 0.0]);
    /// ```
    pub fn polynomial(rate: f64, last: f64, steps: u64, power: f64) -> Self {
        Schedule::of(ScheduleShape::Polynomial { rate, last, steps, power })
    }

    /// `rate`, multiplied by `factor` after each number of steps in `after`. This is
    /// `torch.optim.lr_scheduler.MultiStepLR`. To pass a computed `Vec`, leak it: `after.leak()`.
    ///
    /// ```
    /// use typed_dims::optim::Schedule;
    ///
    /// let schedule = Schedule::multi_step(1.0, &[30, 80], 0.5);
    /// assert_eq!([29, 30, 79, 80].map(|step| schedule.at(step)), [1.0, 0.5, 0.5, 0.25]);
    /// ```
    pub fn multi_step(rate: f64, after: &'static [u64], factor: f64) -> Self {
        Schedule::of(ScheduleShape::MultiStep { rate, after, factor })
    }

    /// `rate * factor^(step / every)`, with the exponent rounded down. This is
    /// `torch.optim.lr_scheduler.StepLR` and, with an `every` of 1, `ExponentialLR`.
    ///
    /// # Panics
    ///
    /// If `every` is 0.
    #[track_caller]
    pub fn step(rate: f64, every: u64, factor: f64) -> Self {
        assert!(every > 0, "the rate changes every 0 steps");
        Schedule::of(ScheduleShape::Step { rate, every, factor })
    }

    /// From `most / 25` up to `most` in three tenths of the steps, then down to `most / 250000`,
    /// each along half a cosine; `most / 250000` afterwards. This is
    /// `torch.optim.lr_scheduler.OneCycleLR` with its defaults, except that the momentum does not
    /// change.
    ///
    /// (L. N. Smith, N. Topin, 2018, "Super-convergence".)
    pub fn one_cycle(most: f64, steps: u64) -> Self {
        Schedule::of(ScheduleShape::OneCycle { most, steps })
    }

    fn of(shape: ScheduleShape) -> Self {
        Schedule { shape, warm_up: 0 }
    }

    /// Prepends `steps` steps in which the rate rises linearly to the first rate: at `step`, it is
    /// `(step + 1) / steps` times the first rate.
    #[must_use]
    pub fn warm_up(self, steps: u64) -> Self {
        Schedule { warm_up: steps, ..self }
    }

    /// The rate of a step, counted from 0.
    pub fn at(&self, step: u64) -> f64 {
        self.of_step(step as f64)
    }

    /// A rate that is out of range, if the schedule has one, and otherwise any rate. For
    /// [`Schedule::step`], only the rates up to the first change are checked, although later ones
    /// can become infinite.
    pub(super) fn worst(&self) -> f64 {
        let extremes = self.shape.extremes();
        let after: &[u64] = match self.shape {
            ScheduleShape::MultiStep { after, .. } => after,
            _ => &[],
        };
        let after = after.iter().map(|&step| self.shape.of_step(step as f64));
        extremes.into_iter().chain(after).rfind(|&rate| !is_at_least_0(rate)).unwrap_or(extremes[2])
    }

    /// Whether the first rate is in range.
    pub(super) fn begins_in_range(&self) -> bool {
        is_at_least_0(self.at(0))
    }

    /// Like [`at`](Schedule::at), computed by tensor operations from a step that is a tensor.
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

    /// Generic over numbers and tensors. Both alternatives of a `choose` are computed. The one that
    /// is not chosen may be infinite or NaN.
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
    /// Three rates. If they are finite and 0 or more, so are all other rates. There are two
    /// exceptions: for `Step`, this holds only up to the first change, and for `MultiStep`, all
    /// three are the first rate.
    fn extremes(&self) -> [f64; 3] {
        let until = |steps: u64| [0, steps.saturating_sub(1), steps].map(|step| self.of_step(step as f64));
        match *self {
            ScheduleShape::Constant { .. } | ScheduleShape::MultiStep { .. } => until(0),
            ScheduleShape::Cosine { steps, .. }
            | ScheduleShape::Polynomial { steps, .. }
            | ScheduleShape::OneCycle { steps, .. } => until(steps),
            // Each period ends closer to the last rate than the one before.
            ScheduleShape::Restarts { last, longer: 2.., .. } => [self.of_step(0.0), last, last],
            ScheduleShape::Restarts { steps, .. } => until(steps - 1),
            ScheduleShape::Step { every, .. } => until(every),
        }
    }

    fn of_step<Q: Quantity>(&self, step: Q) -> Q {
        let number = |value: f64| step.constant(value);
        match *self {
            ScheduleShape::Constant { rate } => number(rate),
            ScheduleShape::Cosine { rate, last, steps } => {
                let steps = number(steps as f64);
                let falling = between(number(rate), number(last), step / steps);
                Q::choose(step.is_less(steps), falling, number(last))
            }
            ScheduleShape::Polynomial { rate, last, steps, power } => {
                let steps = number(steps as f64);
                let left = (number(1.0) - step / steps).powf(number(power));
                let falling = number(last) + number(rate - last) * left;
                Q::choose(step.is_less(steps), falling, number(last))
            }
            ScheduleShape::Restarts { rate, last, steps, longer } => {
                let (into, period) = period(step, steps as f64, longer as f64);
                between(number(rate), number(last), into / period)
            }
            ScheduleShape::MultiStep { rate, after, factor } => {
                let (zero, one) = (number(0.0), number(1.0));
                let passed = after.iter().fold(zero, |passed, &after| {
                    passed + Q::choose(step.is_less(number(after as f64)), zero, one)
                });
                number(rate) * number(factor).powf(passed)
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

/// The steps since the current period began, and the length of the period. The first period has
/// `first` steps, and each later period is `longer` times as long as the one before.
fn period<Q: Quantity>(step: Q, first: f64, longer: f64) -> (Q, Q) {
    let number = |value: f64| step.constant(value);
    let one = number(1.0);
    if longer == 1.0 {
        let before = (step / number(first)).floor();
        return (step - before * number(first), number(first));
    }
    let start = |before: Q| number(first) * ((number(longer).powf(before) - one) / number(longer - 1.0));
    // Because of rounding, this number of periods can be too large or too small by 1.
    let before = ((step * number((longer - 1.0) / first) + one).ln() / number(longer).ln()).floor();
    let before = Q::choose(start(before + one).is_at_most(step), before + one, before);
    let before = Q::choose(step.is_less(start(before)), before - one, before);
    (step - start(before), number(first) * number(longer).powf(before))
}

/// Interpolates between two values along half a cosine.
fn between<Q: Quantity>(from: Q, to: Q, part: Q) -> Q {
    let height = from.constant(1.0) + (from.constant(PI) * part).cos();
    to + (from - to) / from.constant(2.0) * height
}
