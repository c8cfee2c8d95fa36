//! A log of steps, one per line.

use super::{Mode, Ran, with};
use crate::error::StepSuffix;
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use std::io;

/// Writes each step on a line as it runs: the mode of [`log`]. Write errors are ignored.
pub struct Log<'w> {
    write: Box<dyn FnMut(&str) + 'w>,
}

impl<'w> Log<'w> {
    /// Writes to a file, a stream or a vector of bytes.
    pub fn to_writer(mut to: impl io::Write + 'w) -> Self {
        Log { write: Box::new(move |line| _ = to.write_all(line.as_bytes())) }
    }

    /// Writes to a string or another text sink.
    pub fn to_text(mut to: impl fmt::Write + 'w) -> Self {
        Log { write: Box::new(move |line| _ = to.write_str(line)) }
    }
}

impl fmt::Debug for Log<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Mode for Log<'_> {
    fn ran(&mut self, ran: &Ran<'_>) {
        let place = StepSuffix { place: ran.place, is_backward: ran.is_backward };
        let text = ran.step.to_string();
        let parts: Vec<&str> = text.lines().map(str::trim).collect();
        let mut line: String = "  ".repeat(ran.loops);
        line += &format!("{}{place}\n", parts.join("; "));
        (self.write)(&line);
    }
}

/// Runs `f`, and writes one line for each step that `f` runs on this thread. Write errors are
/// ignored. To write to a string, see [`Log::to_text`].
///
/// ```
/// use typed_dims::mode;
/// use typed_dims::prelude::*;
///
/// let a = Array2::<f32>::ones((8, 16));
/// dims!(i, j);
/// let mut lines = Vec::new(); // or `std::io::stderr()`
/// mode::log(&mut lines, || (a.at((i, j)) * 2.0).sum(j).order(i));
/// assert!(String::from_utf8(lines).unwrap().starts_with("sum over 16 of mul(view, 2.0); loops [8, 16]"));
/// ```
pub fn log<T>(to: impl io::Write, f: impl FnOnce() -> T) -> T {
    with(&mut Log::to_writer(to), f)
}
