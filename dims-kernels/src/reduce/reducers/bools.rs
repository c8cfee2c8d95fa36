//! Reductions of `bool`s.

use crate::error::Error;
use crate::machine::isa::Isa;
use crate::memory::destination::Destination;
use crate::ops::code::ReductionKind;
use crate::reduce::Reducer;
use crate::reduce::input::ReduceInput;
use alloc::vec::Vec;

/// A reduction of `bool`s in memory as a function, compiled here.
macro_rules! bools_in_memory {
    ($name:ident, $reducer:ty => $out:ty) => {
        #[inline(never)]
        fn $name(
            memory: ReduceInput<'_, bool>,
            to: Destination<'_, $out>,
            reducer: $reducer,
        ) -> Result<Vec<$out>, Error> {
            memory.reduce(to, reducer)
        }
    };
}

bools_in_memory!(any_memory, Any => bool);
bools_in_memory!(all_memory, All => bool);
bools_in_memory!(count_memory, Count => usize);

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
    reduces_memory_by!(any_memory, bool);
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
    reduces_memory_by!(all_memory, bool);
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
    reduces_memory_by!(count_memory, bool);
}
