//! Elements through which no gradient flows.

use super::{NodeParts, pull_backs};
use crate::error::Error;
use crate::loops::steps::PlanStep;
use crate::ops::code::DType;
use crate::trace::{Field, Held, NodeStep, Rule};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;

/// The step that makes a field's elements constant for gradients. The result is contiguous in
/// `order`, an order of the field's loops.
pub fn detached(field: Field, order: &[usize], dtype: DType) -> NodeStep {
    NodeStep::Rule(Box::new(DetachedElements { field, order: order.to_vec(), dtype }))
}

pub(in crate::trace) struct DetachedElements {
    pub(in crate::trace) field: Field,
    pub(in crate::trace) order: Vec<usize>,
    pub(in crate::trace) dtype: DType,
}

impl Rule for DetachedElements {
    fn name(&self) -> &'static str {
        "detach"
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn operands(&self) -> Vec<&Field> {
        vec![&self.field]
    }

    fn operands_mut(&mut self) -> Vec<&mut Field> {
        vec![&mut self.field]
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn run(&self, operands: Vec<Field>) -> Option<Result<Arc<dyn Held>, Error>> {
        Some((pull_backs().repeat_detached)(self, operands))
    }

    fn plan(&self, _: &[Field], _: usize, _: usize) -> Option<PlanStep> {
        None
    }

    fn pull(&self, _: &Arc<dyn Held>, _: Arc<dyn Held>, _: bool) -> Result<NodeParts, Error> {
        Ok(Vec::new())
    }
}

impl DetachedElements {
    /// The step, applied to another field.
    pub(super) fn repeat(&self, operands: Vec<Field>) -> Result<Arc<dyn Held>, Error> {
        operands.first().expect("there is an operand").computed(&self.order, self.dtype)
    }
}
