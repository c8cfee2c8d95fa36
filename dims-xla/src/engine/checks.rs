//! The checks of a call, such as that indices are in range. The call does not wait for them: their
//! outcome is read with a result, or when a later result depends on too many calls with unread
//! checks.

use crate::error::XlaError;
use crate::pjrt::DeviceBuffer;
use crate::stablehlo::Check;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The checks of a call, and their outcome once it has been read.
pub(super) struct Pending {
    pub(super) failed: DeviceBuffer,
    pub(super) checks: Arc<[Check]>,
    /// The check that failed, if one did. Set when the outcome is first read.
    pub(super) outcome: OnceLock<Option<Check>>,
    pub(super) is_reported: AtomicBool,
}

impl Pending {
    /// Waits for the call. Returns the check that failed, if one did.
    pub(super) fn outcome(&self) -> Result<Option<Check>, XlaError> {
        if let Some(known) = self.outcome.get() {
            return Ok(*known);
        }
        let bytes = self.failed.to_host()?;
        let number = <[u8; 4]>::try_from(&bytes[..]).map_or(-1, i32::from_le_bytes);
        let failed = usize::try_from(number).ok().and_then(|number| self.checks.get(number));
        Ok(*self.outcome.get_or_init(|| failed.copied()))
    }

    pub(super) fn is_known_right(&self) -> bool {
        matches!(self.outcome.get(), Some(None))
    }
}

/// A call that a value depends on.
#[derive(Clone)]
pub(super) struct Dependence {
    pub(super) call: Arc<Pending>,
    /// Whether the value depends only on state that the call leaves unchanged if a check fails. The
    /// failure is then reported once, and the value can be read afterwards.
    pub(super) is_kept: bool,
}

impl Dependence {
    /// Waits for the call, and returns an error if a check failed. For state that the call leaves
    /// unchanged, a failure that was already reported is no error.
    pub(super) fn check(&self) -> Result<(), XlaError> {
        let Some(Check { what, operation, origin }) = self.call.outcome()? else { return Ok(()) };
        if self.call.is_reported.swap(true, Ordering::Relaxed) && self.is_kept {
            return Ok(());
        }
        Err(XlaError::Check { what, operation, origin })
    }

    /// Whether it is known, without waiting, that no failure remains to be reported.
    pub(super) fn is_settled(&self) -> bool {
        self.call.is_known_right() || self.is_kept && self.call.is_reported.load(Ordering::Relaxed)
    }
}

/// The maximum number of calls with unread checks that a value may depend on. A further call waits
/// for the oldest of them before it returns.
pub(super) const UNCHECKED: usize = 64;
