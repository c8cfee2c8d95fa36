//! Settings of optimizers, which are checked at each step.

use crate::error::DimError;
use alloc::string::String;

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

fn within(is_within: bool, of: &str, setting: &str, value: f64, range: &str) -> Result<(), DimError> {
    if is_within { Ok(()) } else { Err(error(format!("`{of}` with the {setting} {value}: {range}"))) }
}

pub(super) fn error(what: String) -> DimError {
    DimError::Shape { what }
}
