//! Reductions of `bool`s.

use crate::error::Error;
use crate::machine::isa::Isa;
use crate::memory::destination::Destination;
use crate::ops::code::ReductionKind;
use crate::reduce::Reducer;
use crate::reduce::input::ReduceInput;
use alloc::vec::Vec;

/// [`Reducer::reduce_memory`] for `bool`s: not generic, so it is compiled in this crate.
macro_rules! reduces_memory_here {
    () => {
        #[inline(never)]
        fn reduce_memory(
            self,
            memory: ReduceInput<'_, bool>,
            to: Destination<'_, Self::Out>,
        ) -> Result<Vec<Self::Out>, Error> {
            memory.reduce(to, self)
        }
    };
}

/// Whether any element is true.
#[derive(Clone, Copy)]
pub struct Any;

impl Reducer<bool> for Any {
    fn name(&self) -> &'static str {
        "any"
    }
    type Acc = bool;
    type Out = bool;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Any
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> bool {
        false
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: bool, value: bool, _: usize) -> bool {
        acc | value
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: bool, b: bool) -> bool {
        a | b
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: bool, _: usize) -> bool {
        acc
    }
    reduces_memory_here!();
}

/// Whether all elements are true.
#[derive(Clone, Copy)]
pub struct All;

impl Reducer<bool> for All {
    fn name(&self) -> &'static str {
        "all"
    }
    type Acc = bool;
    type Out = bool;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::All
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> bool {
        true
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: bool, value: bool, _: usize) -> bool {
        acc & value
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: bool, b: bool) -> bool {
        a & b
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: bool, _: usize) -> bool {
        acc
    }
    reduces_memory_here!();
}

/// The number of true elements.
#[derive(Clone, Copy)]
pub struct Count;

impl Reducer<bool> for Count {
    fn name(&self) -> &'static str {
        "count"
    }
    type Acc = usize;
    type Out = usize;
    fn derivative(&self) -> ReductionKind {
        ReductionKind::Count
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn start(&self) -> usize {
        0
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn step<I: Isa>(&self, acc: usize, value: bool, _: usize) -> usize {
        acc + usize::from(value)
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn join<I: Isa>(&self, a: usize, b: usize) -> usize {
        a + b
    }
    #[cfg_attr(not(unoptimized), inline(always))]
    fn finish(&self, acc: usize, _: usize) -> usize {
        acc
    }
    reduces_memory_here!();
}
