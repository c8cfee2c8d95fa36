//! Settings of optimizers, which are checked at each step.

use crate::error::DimError;
use alloc::string::String;

/// Settings that are a formula as well, whose weight decay a group of parameters can replace.
pub(super) trait Decaying: Copy {
    /// The same settings with this weight decay.
    fn with_weight_decay(self, weight_decay: f64) -> Self;
}

/// The methods that set the settings of an optimizer: numbers, then flags.
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

/// Lets groups of parameters replace the weight decay of settings.
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

/// A finite number, 0 or more.
pub(super) fn at_least_0(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within(value >= 0.0 && value.is_finite(), of, setting, value, "it must be finite and 0 or more")
}

/// A share that stays: 0 or more, and less than 1.
pub(super) fn below_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..1.0).contains(&value), of, setting, value, "it must be 0 or more, and less than 1")
}

/// A number from 0 to 1.
pub(super) fn up_to_1(of: &str, setting: &str, value: f64) -> Result<(), DimError> {
    within((0.0..=1.0).contains(&value), of, setting, value, "it must be between 0 and 1")
}

/// A limit: 0 or more, perhaps infinite.
pub(super) fn limit(of: &str, value: f64) -> Result<(), DimError> {
    within(value >= 0.0, of, "limit", value, "it must be 0 or more")
}

/// A number within a range, which the text describes.
pub(super) fn within(
    is_within: bool,
    of: &str,
    setting: &str,
    value: f64,
    range: &str,
) -> Result<(), DimError> {
    if is_within { Ok(()) } else { Err(error(format!("`{of}` with the {setting} {value}: {range}"))) }
}

/// The error of settings that do not go together.
pub(super) fn error(what: String) -> DimError {
    DimError::Shape { what }
}
