//! Elements that are in memory or computed, as one kernel: the loops over them are compiled once
//! for both.

use crate::load::strided::Strided;
use crate::load::{Faults, Kernel, Tile, read_line};
use crate::machine::isa::Isa;
use crate::scalar::Element;
use alloc::boxed::Box;

/// Computes the elements of tiles.
///
/// # Safety
///
/// Each call of `tile` returns a pointer to as many elements as the tile has. They stay valid until
/// the next call. Sources of one expression may run on several threads.
pub(crate) unsafe trait TileSource<T> {
    fn tile(&mut self, tile: &Tile<'_>) -> *const T;
}

pub(crate) struct AnyElements<'k, T> {
    source: ElementSource<'k, T>,
    current: *const T,
}

enum ElementSource<'k, T> {
    Memory(Strided<'k, T, ()>),
    Computed(Box<dyn TileSource<T> + 'k>),
}

impl<'k, T: Element> AnyElements<'k, T> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub(crate) fn memory(elements: Strided<'k, T, ()>) -> Self {
        AnyElements { source: ElementSource::Memory(elements), current: core::ptr::null() }
    }

    pub(crate) fn computed(source: impl TileSource<T> + 'k) -> Self {
        AnyElements { source: ElementSource::Computed(Box::new(source)), current: core::ptr::null() }
    }
}

// SAFETY: `starts` and `steps` return pointers of `Strided`, and none to computed elements.
// `current` points to all elements of the tile, as `Strided` and `TileSource` promise.
unsafe impl<T: Element> Kernel for AnyElements<'_, T> {
    type Elem = T;
    type TileReader = *const T;
    type Pairs = ();
    const READS: bool = true;

    #[cfg_attr(not(unoptimized), inline(always))]
    fn prefetch<I: Isa>(&mut self, tile: &Tile<'_>) {
        if let ElementSource::Memory(elements) = &mut self.source {
            elements.prefetch::<I>(tile);
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn starts<I: Isa>(
        &mut self,
        at: &mut [usize],
        along: usize,
        starts: &mut [*const T],
        faults: &mut Faults,
    ) -> bool {
        match &mut self.source {
            ElementSource::Memory(elements) => elements.starts::<I>(at, along, starts, faults),
            ElementSource::Computed(_) => false,
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn steps(&self, at: &[usize], along: usize) -> Option<(*const T, isize)> {
        match &self.source {
            ElementSource::Memory(elements) => elements.steps(at, along),
            ElementSource::Computed(_) => None,
        }
    }

    #[cfg_attr(not(unoptimized), inline(always))]
    fn load<I: Isa>(&mut self, tile: &Tile<'_>, faults: &mut Faults) {
        self.current = match &mut self.source {
            ElementSource::Memory(elements) => {
                elements.load::<I>(tile, faults);
                elements.tile_reader::<I, true>()
            }
            ElementSource::Computed(source) => source.tile(tile),
        };
    }

    read_line!(T);
}
