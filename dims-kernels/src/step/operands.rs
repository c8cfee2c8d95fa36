//! Operands and results of steps, with element types erased.

#[cfg(feature = "std")]
use crate::loops::modes::ResultMemory;
use crate::memory::buffer::Buffer;
#[cfg(feature = "std")]
use crate::ops::code::{DType, match_dtype};
use crate::scalar::Element;
#[cfg(feature = "std")]
use crate::trace::{Held, Node};
use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use smallvec::SmallVec;

/// A buffer of any element type.
pub trait AnyBuffer: Any {
    /// The number of elements.
    fn count(&self) -> usize;

    /// The size of all elements in bytes.
    fn bytes(&self) -> usize;

    /// Whether a program that is being recorded contains the elements.
    fn is_known(&self) -> bool;

    /// The memory, shared with the buffer.
    #[cfg(feature = "std")]
    fn memory(&self) -> Arc<dyn Held>;

    /// The type of the elements, if programs support it.
    #[cfg(feature = "std")]
    fn dtype(&self) -> Option<DType>;

    /// The elements, in the form that listeners receive.
    #[cfg(feature = "std")]
    fn as_result(&self) -> ResultMemory<'_>;

    /// Notes that a step computed the elements.
    #[cfg(feature = "std")]
    fn trace(&mut self, node: Arc<Node>);

    /// The buffer, to be downcast to its type.
    fn as_any(&mut self) -> &mut dyn Any;

    /// The buffer, to be downcast to its type for reading.
    fn as_any_ref(&self) -> &dyn Any;
}

impl<T: Element> AnyBuffer for Buffer<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        size_of_val(&self[..])
    }

    fn is_known(&self) -> bool {
        self.is_traced()
    }

    #[cfg(feature = "std")]
    fn memory(&self) -> Arc<dyn Held> {
        self.held()
    }

    #[cfg(feature = "std")]
    fn dtype(&self) -> Option<DType> {
        DType::of::<T>()
    }

    #[cfg(feature = "std")]
    fn as_result(&self) -> ResultMemory<'_> {
        ResultMemory::of(self)
    }

    #[cfg(feature = "std")]
    fn trace(&mut self, node: Arc<Node>) {
        self.set_mark(Box::new(node));
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn as_any_ref(&self) -> &dyn Any {
        self
    }
}

/// Shared memory as a buffer of its element type, if programs support that type.
#[cfg(feature = "std")]
pub(super) fn buffer_of(held: &Arc<dyn Held>) -> Option<Box<dyn AnyBuffer>> {
    match_dtype!(held.dtype()?, T => Some(Box::new(Buffer::<T>::of_held(held)?) as Box<dyn AnyBuffer>))
}

/// The operands of a step that runs.
pub struct StepOperands<'s, 'b> {
    buffers: &'s mut [&'b mut dyn AnyBuffer],
    keeps: bool,
}

const TYPED: &str = "an operand of a step has the element type of its kind";

impl<'s, 'b> StepOperands<'s, 'b> {
    /// Operands in these buffers. `keeps` says whether the step should keep the elements that its
    /// derivative needs.
    pub fn new(buffers: &'s mut [&'b mut dyn AnyBuffer], keeps: bool) -> Self {
        StepOperands { buffers, keeps }
    }
}

impl StepOperands<'_, '_> {
    /// Whether the step should [keep](StepResults::keeping) the elements that its derivative needs.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The number of operands.
    pub fn count(&self) -> usize {
        self.buffers.len()
    }

    /// The elements of an operand.
    ///
    /// # Panics
    ///
    /// If they are of another type.
    pub fn of<T: Element>(&self, number: usize) -> &[T] {
        self.buffers[number].as_any_ref().downcast_ref::<Buffer<T>>().expect(TYPED)
    }

    /// Takes the memory of an operand, so that the result can overwrite it. Copies shared elements.
    /// The operand is empty afterwards.
    ///
    /// # Panics
    ///
    /// If the elements are of another type.
    pub fn take<T: Element>(&mut self, number: usize) -> Vec<T> {
        let buffer = self.buffers[number].as_any().downcast_mut::<Buffer<T>>().expect(TYPED);
        core::mem::replace(buffer, Buffer::from(Vec::new())).into_vec()
    }
}

/// The results of a step, and the elements kept for its derivative.
#[derive(Default)]
pub struct StepResults {
    pub(super) values: SmallVec<[Box<dyn AnyBuffer>; 2]>,
    #[cfg(feature = "std")]
    pub(super) kept: Option<Arc<dyn Held>>,
}

impl StepResults {
    /// A single result.
    pub fn one<T: Element>(data: Vec<T>) -> Self {
        StepResults::default().and(data)
    }

    /// Adds a result.
    pub fn and<T: Element>(mut self, data: Vec<T>) -> Self {
        self.values.push(Box::new(Buffer::from(data)));
        self
    }

    /// Sets the elements to keep for the derivative.
    #[cfg(feature = "std")]
    pub fn keeping<T: Element>(mut self, data: Vec<T>) -> Self {
        self.kept = Some(Buffer::from(data).held());
        self
    }

    /// Takes the next result, as a buffer of its type.
    pub(super) fn next<T: Element>(values: &mut alloc::vec::IntoIter<Box<dyn AnyBuffer>>) -> Buffer<T> {
        let mut value = values.next().expect("a step has as many results as its kind says");
        let buffer = value.as_any().downcast_mut::<Buffer<T>>().expect("a result has the type of its kind");
        core::mem::replace(buffer, Buffer::from(Vec::new()))
    }
}
