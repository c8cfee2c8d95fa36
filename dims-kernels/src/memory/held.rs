//! Shared memory of any element type, and its mark.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::{Any, TypeId};

/// The mark of shared memory: the step of a recorded program that computed the elements. The type
/// of that step is defined in a higher layer.
pub trait Marker: Any + Send + Sync {
    /// Whether the program is still being recorded. If it is not, the elements are constants.
    fn is_live(&self) -> bool;

    /// Whether the elements depend on inputs of a recorded function, and not only on variables of a
    /// gradient.
    fn is_recorded(&self) -> bool {
        false
    }
}

/// A mark of any type.
pub type Mark = Box<dyn Marker>;

/// Shared memory, whatever its element type.
pub trait Held: Send + Sync {
    /// A pointer to the first element.
    fn start(&self) -> *const u8;
    /// A pointer to the first element, for writing. `None` if there is no memory, or others may
    /// read it although this borrow is exclusive.
    fn start_mut(&mut self) -> Option<*mut u8>;
    /// The number of elements.
    fn len(&self) -> usize;
    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The element type.
    fn element(&self) -> TypeId;
    /// The size of all elements in bytes.
    fn bytes(&self) -> usize;
    /// The mark.
    fn mark(&self) -> Option<&Mark>;
    /// The mark, if this is the only owner of the memory. The memory is then freed.
    fn into_mark(self: Arc<Self>) -> Option<Mark>;
    /// The memory with its concrete type.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
