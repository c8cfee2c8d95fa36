//! Random tensors whose elements are not drawn. If only the sizes of a value matter, as in `spec(||
//! Network::new(..))`, memory for its weights is reserved, but no weights are drawn.

use super::create::{build, memory, sizes, volume};
use crate::creation::create::Written;
use crate::error::DimError;
use crate::tensors::named::Named;
use crate::types::set::DimKey;
use alloc::sync::Arc;
use core::cell::RefCell;
use kernels::memory::buffer::Buffer;
use kernels::memory::hollow;
use kernels::program::code::DType;
use kernels::scalar::{Element, Real};
use kernels::trace::{GradientCall, Node};

std::thread_local! {
    /// The call that records undrawn tensors as its variables. `None` unless a value is being made
    /// for its sizes.
    static CALL: RefCell<Option<Arc<GradientCall>>> = const { RefCell::new(None) };
}

/// A value made for its sizes. While this exists, reading elements that were not drawn is an error.
pub(crate) struct ForSizes<X> {
    pub(crate) value: X,
    call: Arc<GradientCall>,
}

impl<X> Drop for ForSizes<X> {
    fn drop(&mut self) {
        self.call.end();
    }
}

/// While this exists, functions that use [`undrawn`] draw no random numbers. (This is a guard,
/// because a function that takes a closure would hide the caller's source location.)
pub(crate) struct MakingForSizes {
    call: Arc<GradientCall>,
    before: Option<Arc<GradientCall>>,
}

impl Drop for MakingForSizes {
    fn drop(&mut self) {
        CALL.set(self.before.take());
    }
}

impl MakingForSizes {
    pub(crate) fn start() -> Self {
        let call = Arc::new(GradientCall::recording_sizes());
        let before = CALL.replace(Some(Arc::clone(&call)));
        MakingForSizes { call, before }
    }

    /// The value that was made.
    pub(crate) fn made<X>(self, value: X) -> ForSizes<X> {
        ForSizes { value, call: Arc::clone(&self.call) }
    }
}

/// Whether a value is being made for its sizes.
pub(crate) fn is_for_sizes() -> bool {
    CALL.with_borrow(Option::is_some)
}

/// A tensor whose elements are not drawn. `None` unless a value is being made for its sizes.
#[track_caller]
pub(super) fn undrawn<T: Real, D: Written>(dims: &D) -> Result<Option<Named<T, D::Set>>, DimError> {
    let Some(call) = CALL.with_borrow(Clone::clone) else { return Ok(None) };
    let sizes = sizes(dims)?;
    let Some(data) = hollow::reserved::<T>(volume::<T>(&sizes)?)? else { return Ok(None) };
    let Some(dtype) = DType::of::<T>() else { return Ok(None) };
    let node = Node::variable(dtype, data.len(), None, &call);
    Ok(Some(build::<T, D>(&sizes, Buffer::traced(data, node))))
}

/// A tensor of zeros with these dims. If the element type allows it, the memory is reserved but not
/// touched. `size` gets each dim with its size, and returns the size to use.
#[track_caller]
pub(crate) fn without_elements<T: Element, D: Written>(
    dims: &D,
    size: &dyn Fn(&DimKey, usize) -> usize,
) -> Result<Named<T, D::Set>, DimError> {
    let mut sizes = sizes(dims)?;
    sizes.iter_mut().for_each(|(key, own)| *own = size(key, *own));
    Ok(match hollow::reserved::<T>(volume::<T>(&sizes)?)? {
        Some(data) => build::<T, D>(&sizes, data),
        None => {
            let (mut data, len) = memory(&sizes)?;
            data.resize(len, T::default());
            build::<T, D>(&sizes, data)
        }
    })
}
