//! Arrays on devices.

use super::{ElementType, ffi};
use crate::XlaError;
use std::fmt;

/// An array in the memory of a device: the result of [`Pjrt::upload`](super::Pjrt::upload), or an
/// output of a program.
///
/// The output of a program may not have been computed yet. [`ready`](Self::ready),
/// [`to_host`](Self::to_host) and [`to_host_into`](Self::to_host_into) wait for it.
///
/// ```no_run
/// # use typed_dims_xla::pjrt::{ElementType, Pjrt};
/// # let pjrt = Pjrt::find()?;
/// let buffer = pjrt.upload(&[1, 2, 3, 4, 5, 6], ElementType::U8, &[2, 3], None, 0)?;
/// assert_eq!((buffer.sizes(), buffer.len_bytes()), (&[2, 3][..], 6));
/// assert_eq!(buffer.to_host()?, [1, 2, 3, 4, 5, 6]);
/// # Ok::<_, typed_dims_xla::XlaError>(())
/// ```
pub struct DeviceBuffer {
    inner: ffi::Buffer,
}

impl DeviceBuffer {
    pub(super) fn new(inner: ffi::Buffer) -> DeviceBuffer {
        DeviceBuffer { inner }
    }

    pub(super) fn inner(&self) -> &ffi::Buffer {
        &self.inner
    }

    /// The type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.inner.element_type()
    }

    /// The size of each axis.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        self.inner.sizes()
    }

    /// The size of the elements in bytes, without padding. `usize::MAX` if it exceeds
    /// `isize::MAX`.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.element_type().bytes(self.sizes()).unwrap_or(usize::MAX)
    }

    /// The position of the array's device in [`Pjrt::devices`](super::Pjrt::devices).
    #[must_use]
    pub fn device(&self) -> usize {
        self.inner.device()
    }

    /// Whether the array was donated to a program, which has taken its memory. A donated array
    /// cannot be used again.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.inner.is_deleted()
    }

    /// Waits until the array has been computed.
    ///
    /// # Errors
    ///
    /// Returns an error if the array could not be computed or uploaded, or if it was donated.
    pub fn ready(&self) -> Result<(), XlaError> {
        self.inner.ready()
    }

    /// Waits until the array has been computed, and returns its elements in row-major order.
    ///
    /// # Errors
    ///
    /// As for [`ready`](Self::ready). Also returns an error if the elements have more than
    /// `isize::MAX` bytes.
    pub fn to_host(&self) -> Result<Vec<u8>, XlaError> {
        let bytes = self.element_type().bytes(self.sizes());
        let bytes = bytes.ok_or_else(|| XlaError::arguments(format!("{self:?} is too large for memory")))?;
        let mut target = vec![0; bytes];
        self.inner.read(&mut target)?;
        Ok(target)
    }

    /// Like [`to_host`](Self::to_host), into a slice of [`len_bytes`](Self::len_bytes) bytes.
    ///
    /// # Errors
    ///
    /// As for [`ready`](Self::ready). Also returns an error if the slice has another length.
    pub fn to_host_into(&self, target: &mut [u8]) -> Result<(), XlaError> {
        self.inner.read(target)
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} on device {}", self.element_type(), self.sizes(), self.device())
    }
}
