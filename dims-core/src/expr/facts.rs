//! Facts about an expression that follow from its type, for the code that chooses how to run it.

use crate::plan::axes::Layout;
use crate::plan::direct::Typed;
use crate::types::set::Keys;

/// Static facts about an expression.
#[derive(Clone, Copy)]
pub struct Facts {
    /// The number of factors that the expression is a product of, not counting constants.
    pub factors: usize,
    /// A bit for each factor: whether its elements are in memory.
    pub factors_in_memory: u64,
    /// The dims, if the expression is a tensor in memory without positional axes or computed
    /// indices.
    pub memory: Option<&'static Keys>,
    /// The dims and layouts of both factors, if the expression is a product of two tensors that
    /// have [`memory`](Facts::memory).
    pub pair: Option<[Typed; 2]>,
    /// The order of all operands' elements in memory, if their types determine it.
    pub layout: Layout,
    /// Whether an element takes only a few instructions, and its value does not depend on the
    /// instruction set. Short lines are then computed without a plan.
    pub simple: bool,
    /// Whether any operand owns its elements, so that a result may be written over them.
    pub owns: bool,
}

impl Facts {
    /// Nothing is known: one factor, which must be computed.
    pub const COMPUTED: Facts = Facts {
        factors: 1,
        factors_in_memory: 0,
        memory: None,
        pair: None,
        layout: Layout::Unknown,
        simple: false,
        owns: false,
    };
}
