//! Facts about an expression that its type decides, for the code that chooses how it runs.

use crate::plan::axes::Layout;
use crate::plan::direct::Typed;
use crate::types::set::Keys;

/// The facts that rustc knows about an expression beside its dims.
#[derive(Clone, Copy)]
pub struct Facts {
    /// The number of factors that the expression is a product of.
    pub factors: usize,
    /// Which of the factors are elements in memory, without a computation: a bit for each.
    pub factors_in_memory: u64,
    /// The dims, if the expression is elements in memory without positional axes.
    pub memory: Option<&'static Keys>,
    /// The dims and layouts of both factors, if the expression is a product of two such.
    pub pair: Option<[Typed; 2]>,
    /// In which order the elements of all operands lie, if their types fix it.
    pub layout: Layout,
    /// Whether an element takes a few instructions, the same on every machine: short lines are then computed without a plan.
    pub simple: bool,
    /// Whether operands own their elements, so that a result may be written in their place.
    pub owns: bool,
}

impl Facts {
    /// An expression with no known facts: one factor, which is computed.
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
