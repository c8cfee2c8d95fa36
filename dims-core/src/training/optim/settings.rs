//! Settings of optimizers, checked at each step.

use crate::error::DimError;
use alloc::string::String;

/// Settings whose weight decay a parameter group can override.
pub(super) trait Decaying: Copy {
    /// The same settings with this weight decay.
    fn with_weight_decay(self, weight_decay: f64) -> Self;
}

/// The methods that set an optimizer's settings: numbers, then flags.
macro_rules! settings {
    ($name:ident, $settings:ident { $($(#[$doc:meta])* $number:ident,)* } { $($(#[$about:meta])* $flag:ident,)* }) => {
        impl<P> $name<P> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $number(self, $number: f64) -> Self {
                    $name { settings: $settings { $number, ..self.settings }, ..self }
                }
            )*
            $(
                $(#[$about])*
                #[must_use]
                pub fn $flag(self) -> Self {
                    $name { settings: $settings { $flag: true, ..self.settings }, ..self }
                }
            )*
        }
    };
}
pub(super) use settings;

/// Lets parameter groups override the weight decay.
macro_rules! decaying {
    ($settings:ident) => {
        impl $crate::training::optim::settings::Decaying for $settings {
            fn with_weight_decay(self, weight_decay: f64) -> Self {
                $settings { weight_decay, ..self }
            }
        }
    };
}
pub(super) use decaying;

/// Implements [`Optimizer`](super::Optimizer) by formulas over one parameter, its moments and its
/// gradient. `$form` of the settings selects the formula. Each has a number of scalars, a number of
/// changed tensors, and the names of its moments.
macro_rules! optimizer {
    ($name:ident by $form:expr => { $($pattern:pat => $k:literal $m:literal [$($moment:literal),*],)+ }) => {
        impl<P: $crate::grad::Parameters> $crate::training::optim::Optimizer<P> for $name<P> {
            fn try_step(&mut self, parameters: &mut P, gradient: &P) -> Result<(), $crate::error::DimError> {
                self.settings.check()?;
                let form = $form;
                match form(&self.settings) {
                    $($pattern => {
                        let mut step =
                            $crate::training::optim::update::StepAfter::new(stringify!($name), self.settings, &self.state)?;
                        self.state.step::<$k, $m>(&mut step, parameters, gradient)
                    })+
                }
            }

            fn programs(&self, elements: ::kernels::program::code::DType) -> Option<$crate::training::optim::StepPrograms> {
                let form = $form;
                Some(match form(&self.settings) {
                    $($pattern => {
                        $crate::training::optim::StepPrograms::of::<_, $k, $m, 1>(&self.settings, elements)
                    })+
                })
            }

            $crate::training::optim::settings::with_state!(stringify!($name), |optimizer: &Self| {
                let form = $form;
                match form(&optimizer.settings) {
                    $($pattern => &[$($moment),*],)+
                }
            });
        }
    };
}
pub(super) use optimizer;

/// The methods that return the state and the names, for an optimizer with the field `state`.
macro_rules! with_state {
    ($kind:expr, $moments:expr) => {
        fn kind(&self) -> &'static str {
            $kind
        }

        fn state(&self) -> &$crate::training::optim::State<P> {
            &self.state
        }

        fn state_mut(&mut self) -> &mut $crate::training::optim::State<P> {
            &mut self.state
        }

        fn moments(&self) -> &'static [&'static str] {
            let moments: fn(&Self) -> &'static [&'static str] = $moments;
            moments(self)
        }
    };
}
pub(super) use with_state;

/// Checks for a finite number, 0 or more.
pub(super) fn at_least_0(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within(value >= 0.0 && value.is_finite(), of, setting, value, "it must be finite and 0 or more")
}

/// Checks for a decay rate: 0 or more, and less than 1.
pub(super) fn below_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..1.0).contains(&value), of, setting, value, "it must be 0 or more, and less than 1")
}

/// Checks for a number from 0 to 1.
pub(super) fn up_to_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..=1.0).contains(&value), of, setting, value, "it must be between 0 and 1")
}

/// Checks for a limit: 0 or more, possibly infinite.
pub(super) fn limit(of: &str, value: f64) -> Result<(), DimError> {
    within(value >= 0.0, of, "limit", value, "it must be 0 or more")
}

/// Checks that a number is within the range that the text describes.
pub(super) fn within(
    is_within: bool,
    of: &str,
    setting: &str,
    value: f64,
    range: &str,
) -> Result<(), DimError> {
    if is_within { Ok(()) } else { Err(error(format!("`{of}` with the {setting} {value}: {range}"))) }
}

/// The error for invalid settings.
pub(super) fn error(what: String) -> DimError {
    DimError::Shape { what }
}
