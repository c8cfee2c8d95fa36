//! A rate that falls when a value stops improving.

use super::scalars::{StepsTaken, one};
use super::settings::{at_least_0, below_1};
use crate::error::{DimError, unwrap};
use crate::expr::step::{check_buffer_unrecorded, check_taken};
use crate::tensors::named::Named;
use twins::panicking_twin;

/// A learning rate that falls each time a value, such as the validation loss, has not improved for
/// some time. This is `torch.optim.lr_scheduler.ReduceLROnPlateau`.
///
/// Call [`observe`](Plateau::observe) with the value after each epoch. It returns the rate for the
/// next epoch. The state of a `Plateau` consists of tensors
/// ([`Parameters`](crate::grad::Parameters)), so checkpoints can save it.
///
/// ```
/// use typed_dims::optim::{Optimizer, Plateau, Sgd};
/// use typed_dims::prelude::*;
///
/// dims! { struct Feature; }
/// let mut optimizer = Sgd::<Tensor<f32, (Feature,)>>::new(0.1);
/// let mut plateau = Plateau::new(0.1).patience(1).factor(0.5);
/// for loss in [1.0, 0.5, 0.5, 0.5, 0.4] {
///     optimizer.set_rate(plateau.observe(loss));
/// }
/// assert_eq!(optimizer.rate(), 0.05); // after the second loss that was not better than 0.5
/// ```
#[derive(Clone, Debug)]
pub struct Plateau {
    pub(super) settings: PlateauSettings,
    pub(super) rate: Named<f64, ()>,
    /// The best value so far. NaN until there is a value below infinity (with `maximize`, above
    /// minus infinity).
    pub(super) best: Named<f64, ()>,
    /// The number of consecutive values that were not better, outside the cooldown.
    pub(super) worse: StepsTaken,
    /// The number of values that are left in the cooldown.
    pub(super) pause: StepsTaken,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlateauSettings {
    factor: f64,
    patience: u64,
    threshold: f64,
    absolute: bool,
    cooldown: u64,
    least: f64,
    maximize: bool,
}

impl Plateau {
    /// Makes a `Plateau` that starts with this rate, which must be finite and 0 or more.
    pub fn new(rate: f64) -> Self {
        let settings = PlateauSettings {
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            absolute: false,
            cooldown: 0,
            least: 0.0,
            maximize: false,
        };
        Plateau {
            settings,
            rate: one(rate),
            best: one(f64::NAN),
            worse: StepsTaken::default(),
            pause: StepsTaken::default(),
        }
    }

    /// Sets the factor that multiplies the rate at each fall: 0 or more, less than 1, default 0.1.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.settings.factor = factor;
        self
    }

    /// Sets how many consecutive values may be no better than the best one. The rate falls at the
    /// next such value. Default 10.
    #[must_use]
    pub fn patience(mut self, values: u64) -> Self {
        self.settings.patience = values;
        self
    }

    /// Sets a relative threshold: a value is better if it is less than `best * (1 - threshold)` or,
    /// with [`maximize`](Plateau::maximize), greater than `best * (1 + threshold)`. The threshold
    /// is 0 or more, default 1e-4.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Self {
        (self.settings.threshold, self.settings.absolute) = (threshold, false);
        self
    }

    /// Sets an absolute threshold: a value is better if it is less than `best - threshold` or, with
    /// [`maximize`](Plateau::maximize), greater than `best + threshold`. The threshold is 0 or
    /// more.
    #[must_use]
    pub fn absolute_threshold(mut self, threshold: f64) -> Self {
        (self.settings.threshold, self.settings.absolute) = (threshold, true);
        self
    }

    /// Sets how many values after each fall do not count against the
    /// [`patience`](Plateau::patience). Default 0.
    #[must_use]
    pub fn cooldown(mut self, values: u64) -> Self {
        self.settings.cooldown = values;
        self
    }

    /// Sets the minimum rate: 0 or more, default 0.
    #[must_use]
    pub fn least_rate(mut self, least: f64) -> Self {
        self.settings.least = least;
        self
    }

    /// Treats greater values as better, for example if the values are accuracies.
    #[must_use]
    pub fn maximize(mut self) -> Self {
        self.settings.maximize = true;
        self
    }

    /// The current rate.
    ///
    /// # Panics
    ///
    /// In a recorded function that takes this `Plateau` as an input, or if a gradient is being
    /// taken through the rate.
    #[track_caller]
    pub fn rate(&self) -> f64 {
        unwrap(check_taken(self.rate.expr.all(), "rate"));
        self.rate.expr.all()[0]
    }

    /// Takes a value, and returns the new rate. NaN and infinity never count as better values. With
    /// [`maximize`](Plateau::maximize), NaN and minus infinity never do.
    ///
    /// # Errors
    ///
    /// If the rate or a setting is out of range, in a recorded function that takes this `Plateau`
    /// as an input, or if a gradient is being taken through the `Plateau`. On an error, nothing is
    /// changed.
    #[panicking_twin(but = "invalid settings are an error")]
    pub fn try_observe(&mut self, value: f64) -> Result<f64, DimError> {
        /// If the rate would fall by this or less, it stays as it is. (PyTorch calls this `eps`.)
        const LEAST_FALL: f64 = 1e-8;
        for number in [&self.rate, &self.best] {
            check_taken(number.expr.all(), "observe")?;
        }
        for count in [&self.worse, &self.pause] {
            check_buffer_unrecorded(count.tensor().expr.buffer(), "observe")?;
        }
        let PlateauSettings { factor, patience, cooldown, least, .. } = self.settings;
        at_least_0("Plateau", "rate", self.rate())?;
        below_1("Plateau", "factor", factor)?;
        at_least_0("Plateau", "threshold", self.settings.threshold)?;
        at_least_0("Plateau", "least rate", least)?;
        let (mut worse, mut pause) = (self.worse.get(), self.pause.get());
        if self.settings.is_better(value, self.best.expr.all()[0]) {
            self.best = one(value);
            worse = 0;
        } else {
            worse = worse.saturating_add(1);
        }
        if pause > 0 {
            (pause, worse) = (pause - 1, 0);
        }
        if worse > patience {
            (pause, worse) = (cooldown, 0);
            let (rate, next) = (self.rate(), (self.rate() * factor).max(least));
            if rate - next > LEAST_FALL {
                self.rate = one(next);
            }
        }
        (self.worse, self.pause) = (StepsTaken::new(worse), StepsTaken::new(pause));
        Ok(self.rate())
    }
}

impl PlateauSettings {
    fn is_better(&self, value: f64, best: f64) -> bool {
        if best.is_nan() {
            return if self.maximize { value > f64::NEG_INFINITY } else { value < f64::INFINITY };
        }
        let PlateauSettings { threshold, absolute, maximize, .. } = *self;
        let sign = if maximize { 1.0 } else { -1.0 };
        let bound = if absolute { best + sign * threshold } else { best * (1.0 + sign * threshold) };
        if maximize { value > bound } else { value < bound }
    }
}
