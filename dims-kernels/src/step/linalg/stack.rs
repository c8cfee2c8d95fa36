//! Scratch memory for `faer`, and the error type for work on one matrix.

use crate::error::{Error, MatrixFailure};
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};

/// Why the work on one matrix failed.
#[derive(Debug)]
pub enum Failure {
    /// The work has no result for the matrix.
    Matrix(MatrixFailure),
    /// The memory cannot be allocated.
    Memory(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Memory(error)
    }
}

impl From<MatrixFailure> for Failure {
    fn from(failure: MatrixFailure) -> Self {
        Failure::Matrix(failure)
    }
}

/// Scratch memory for `faer`, which grows as needed.
#[derive(Default)]
pub struct Stack(Option<MemBuffer>);

impl Stack {
    /// Memory of at least the size that `needed` asks for.
    pub(super) fn of(&mut self, needed: StackReq) -> Result<&mut MemStack, Failure> {
        // The buffer is reused for types with other alignments, so its length includes padding for
        // any alignment.
        let len = needed.unaligned_bytes_required();
        if self.0.as_ref().is_none_or(|own| own.len() < len) {
            let buffer = MemBuffer::try_new(StackReq::new::<u8>(len));
            self.0 = Some(buffer.map_err(|_| Error::TooLarge { elements: len })?);
        }
        Ok(MemStack::new(self.0.as_mut().expect("the buffer was made")))
    }
}
