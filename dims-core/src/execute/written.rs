//! Reports writes to existing memory to listeners.

use crate::bind::source::SourceMut;
use crate::storage::source::elements_mut;
use crate::storage::unchecked::line_mut;
use kernels::loops::axes::sort_few;
use kernels::loops::steps::{is_listening, ran, told_given};
use kernels::memory::axes::Axis;
use kernels::memory::elements::ElementsMut;
use kernels::scalar::Element;
use smallvec::SmallVec;

/// Reports the new elements of `out` to listeners.
#[cfg_attr(not(unoptimized), inline(always))]
pub(super) fn written<O: SourceMut<Elem: Element> + ?Sized>(out: &mut O) {
    if is_listening() {
        tell_memory(out);
    }
}

#[cold]
#[inline(never)]
fn tell_memory<O: SourceMut<Elem: Element> + ?Sized>(out: &mut O) {
    let (places, axes) = elements_mut(out);
    tell_places(places, axes.as_slice().into());
}

/// Reports that the pending step ran, with the elements of `places` if they are contiguous in some
/// order of the axes.
pub(super) fn tell_places<T: Element>(places: ElementsMut<'_, T>, mut axes: SmallVec<[Axis; 8]>) {
    axes.retain(|axis| axis.size != 1);
    sort_few(&mut axes, |axis| core::cmp::Reverse(axis.stride));
    match line_mut(places, &axes, axes.iter().map(|axis| axis.size)) {
        Some(line) => told_given(line),
        None => ran(),
    }
}
