//! Shared memory, whatever its element type, and what is known of it beside its elements.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::{Any, TypeId};

/// What is known of shared memory beside its elements: the step of a recorded program that computed them. (Higher layers say of which type it is.)
pub type Mark = Box<dyn Any + Send + Sync>;

/// Shared memory, whatever its element type.
pub trait Held: Send + Sync {
    /// The first element.
    fn start(&self) -> *const u8;
    /// How many elements there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Their type.
    fn element(&self) -> TypeId;
    /// The bytes of all elements.
    fn bytes(&self) -> usize;
    /// What is known of the memory.
    fn mark(&self) -> Option<&Mark>;
    /// The same, if nobody else has the memory, which is freed.
    fn into_mark(self: Arc<Self>) -> Option<Mark>;
    /// The memory in its type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
