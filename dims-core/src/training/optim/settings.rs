//! Settings of optimizers, checked at each step.

use crate::error::DimError;
use alloc::string::String;

/// Settings whose weight decay a parameter group can override.
pub(super) trait Decaying: Copy {
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

pub(super) fn at_least_0(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within(is_at_least_0(value), of, setting, value, AT_LEAST_0)
}

pub(super) const AT_LEAST_0: &str = "it must be finite and 0 or more";

pub(super) fn is_at_least_0(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}

pub(super) fn below_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..1.0).contains(&value), of, setting, value, "it must be 0 or more, and less than 1")
}

pub(super) fn up_to_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..=1.0).contains(&value), of, setting, value, "it must be between 0 and 1")
}

/// Checks a limit, which may be infinite.
pub(super) fn limit(of: &str, value: f64) -> Result<(), DimError> {
    within(value >= 0.0, of, "limit", value, "it must be 0 or more")
}

/// Returns an error unless `is_within`. In the message, `range` describes the allowed numbers.
pub(super) fn within(
    is_within: bool,
    of: &str,
    setting: &str,
    value: f64,
    range: &str,
) -> Result<(), DimError> {
    if is_within { Ok(()) } else { Err(error(format!("`{of}` with the {setting} {value}: {range}"))) }
}

pub(super) fn error(what: String) -> DimError {
    DimError::Shape { what }
}
