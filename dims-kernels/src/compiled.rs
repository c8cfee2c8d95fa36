//! Routines that depend on the element type alone.
//!
//! rustc compiles a generic function anew in each crate that calls it. So these routines are methods of the traits of element types: their default
//! bodies are generic, and `f32` and `f64` override them with the same bodies, which then are functions of this crate that callers only link. So do the
//! common integers for their sums. Other element types, those of users among them, have the defaults.
//!
//! Callers trust the results: how many elements they have, and that all places are written. So each routine takes a [`KernelSeal`](crate::seal::KernelSeal), a type
//! that no other crate can name, and users cannot override it.

use crate::attention::{Change, Work};
use crate::contract::target::Target;
use crate::contract::{ContractionFactor, ContractionFactors, LoopAxes};
use crate::error::Error;
use crate::loops::nest;
use crate::program::lowered::LoweredProgram;
use crate::scalar::{Num, Real};
use crate::seal::SEAL;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// [`contract`](crate::contract::contract), compiled once for the common element types.
#[inline(always)]
#[track_caller]
pub fn contract<T: Num>(
    operands: ContractionFactors<'_, T>,
    scale: T,
    axes: LoopAxes<'_>,
    target: Target<'_, T>,
) -> Result<Vec<T>, Error> {
    T::contract(SEAL, operands, scale, axes, target)
}

/// The same of two operands.
#[inline(always)]
#[track_caller]
pub fn contract_pair<T: Num>(
    operands: [ContractionFactor<'_, T>; 2],
    axes: LoopAxes<'_>,
    target: Target<'_, T>,
) -> Result<Vec<T>, Error> {
    T::contract_pair(SEAL, operands, axes, target)
}

/// [`sum_of_pair`](crate::contract::sum_of_pair), compiled once for the common element types.
#[inline(always)]
#[track_caller]
pub fn sum_of_pair<T: Num>(
    operands: [&ContractionFactor<'_, T>; 2],
    sizes: &[usize],
    axes: [&[usize]; 2],
    describe: &dyn Fn() -> String,
) -> Result<Vec<T>, Error> {
    T::sum_of_pair(SEAL, operands, sizes, axes, describe)
}

/// An operand with elements in the type that is computed with, compiled once for the common element types.
#[inline(always)]
#[track_caller]
pub fn widened<'a, T: Real>(
    operand: ContractionFactor<'a, T>,
    sizes: &[usize],
) -> Result<ContractionFactor<'a, T::Wide>, Error> {
    T::widened(SEAL, operand, sizes)
}

/// [`narrowed`](crate::attention::narrowed), compiled once for the common element types.
#[inline(always)]
pub fn narrowed<T: Real>(data: Vec<T::Wide>) -> Vec<T> {
    T::narrowed(SEAL, data)
}

/// [`attend`](crate::attention::attend), compiled once for the common element types.
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub unsafe fn attend<'w, T: Real>(
    work: &'w Work<'w, T>,
    len: usize,
    threads: usize,
    lower: &dyn Fn() -> Box<dyn Change<T> + 'w>,
) -> Result<Vec<T>, Error> {
    // SAFETY: the caller's promise.
    unsafe { T::attend(SEAL, work, len, threads, lower) }
}

/// [`lowered_scores`](crate::attention::lowered_scores) for the element types that programs compute with.
///
/// # Safety
///
/// As there.
///
/// # Panics
///
/// As there.
pub unsafe fn lowered_scores<'k, T: Real>(
    mask: &'k LoweredProgram<'k>,
    bias: Option<&'k LoweredProgram<'k>>,
    rows: &mut nest::OperandRows<'k>,
) -> Option<Box<dyn Change<T> + 'k>> {
    // SAFETY: the caller's promise, which is that of the function.
    unsafe { T::lowered_scores(SEAL, mask, bias, rows) }
}
