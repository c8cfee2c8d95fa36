//! Code that only programs with gradients need.
//!
//! Each expression can be recorded, so all programs refer to the code that records. The large parts of it, with the interpreter of programs, are reached by pointers that
//! the first variable sets: a program that makes no variable refers to none of them, and links none.

use crate::error::{Error, Origin};
use crate::loops::rows::Rows;
use crate::map::formula::UpdateProgram;
use crate::program::Register;
use crate::trace::record::{Unrecorded, Writer};
use crate::trace::rules::RulePullBacks;
use crate::trace::updates::{UpdatedElements, updated_linked};
use crate::trace::{Field, Held};
use alloc::sync::Arc;
use std::sync::OnceLock;

type UpdateSteps = fn(&UpdateProgram, &[Arc<dyn Held>], usize, Origin) -> Result<UpdatedElements, Error>;

pub(super) struct Linked {
    pub(super) finish: fn(Writer<'_>, Register, &[usize], &Rows) -> Result<Field, Unrecorded>,
    pub(super) pull_backs: RulePullBacks,
    pub(super) updated: UpdateSteps,
}

static LINKED: OnceLock<Linked> = OnceLock::new();

/// Sets the pointers.
pub(super) fn link() {
    LINKED.get_or_init(|| Linked {
        finish: |writer, value, sizes, rows| writer.finish_linked(value, sizes, rows),
        pull_backs: RulePullBacks::ALL,
        updated: updated_linked,
    });
}

/// What a variable has set: there is one, or nothing would be traced.
pub(super) fn linked() -> &'static Linked {
    LINKED.get().expect("the first variable has set the pointers")
}
