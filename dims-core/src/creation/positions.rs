//! Which number of a seed's sequence each element of a tensor draws, in functions such as
//! `rand_like` and `dropout`.
//!
//! The number follows from the names of the dims and the indices along all axes. So it does not
//! depend on the order of elements in memory or on how a function is batched: by binding extra
//! dims, by passing them through a `Rest`, or by a loop of calls with one example each. In a loop,
//! [`of_example`] records the indices of the example.

use crate::plan::shape::Shape;
use crate::types::set::{DimKey, Keys};
#[cfg(feature = "std")]
use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::cell::RefCell;
use kernels::random::{DrawNumbers, mixed};
use smallvec::SmallVec;

/// For each element of a tensor with these keys and this shape, which number of the seed's sequence
/// it draws. The elements are in the given order of axes.
pub(crate) fn draw_numbers(keys: &Keys, shape: &Shape, order: &[usize]) -> DrawNumbers {
    let keys = keys.as_slice();
    // Axes with the same name are counted from the inside: first a dim of a function, then a dim of
    // its caller.
    let mut seen: SmallVec<[&str; 16]> = SmallVec::new();
    let mut factor = |name: &'static str| {
        let before = seen.iter().filter(|&&other| other == name).count();
        seen.push(name);
        factor_of(name, before as u64)
    };
    let mut factors: SmallVec<[u64; 16]> = SmallVec::from_elem(0, shape.sizes().len());
    for at in inside_out(keys) {
        factors[at] = factor(keys[at].name);
    }
    for at in keys.len()..factors.len() {
        factors[at] = factor("");
    }
    let mut start = 0u64;
    each_looped_dim(|name, at| start = start.wrapping_add(factor(name).wrapping_mul(at as u64)));
    let sizes = shape.sizes();
    DrawNumbers::new(start, order.iter().map(|&at| (sizes[at], factors[at])))
}

/// An odd number derived from the name of an axis and the number of axes with that name before it.
fn factor_of(name: &str, before: u64) -> u64 {
    // G. Fowler, L. C. Noll, K.-P. Vo, 1991: the hash FNV-1a.
    let hash = name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    });
    mixed(hash.wrapping_add(before.wrapping_mul(0x9E37_79B9_7F4A_7C15))) | 1
}

/// The positions of the keys, innermost first: those of the named dims, then those of the dims in a
/// `Rest`, then those in a `Rest` within it, and so on. This is the reverse of their order in
/// memory.
fn inside_out(keys: &[DimKey]) -> SmallVec<[usize; 16]> {
    let mut order: SmallVec<[usize; 16]> = (0..keys.len()).rev().collect();
    order.sort_by_key(|&at| keys[at].depth);
    order
}

#[cfg(feature = "std")]
std::thread_local! {
    /// The names of the dims that are looped over, outermost first, and the index of the example
    /// along each.
    static EXAMPLE: RefCell<Vec<(&'static str, usize)>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` for the example whose index along the dim `keys[i]` is `at[i]`.
///
/// (Without the standard library there are no thread-locals, so all examples draw the same
/// numbers.)
pub(crate) fn of_example<X>(keys: &Keys, at: &[usize], f: impl FnOnce() -> X) -> X {
    #[cfg(feature = "std")]
    let _noted = {
        let keys = keys.as_slice();
        let outside_in = inside_out(keys).into_iter().rev();
        EXAMPLE.with_borrow_mut(|example| {
            let noted = Noted(example.len());
            example.extend(outside_in.map(|own| (keys[own].name, at[own])));
            noted
        })
    };
    #[cfg(not(feature = "std"))]
    let _ = (keys, at);
    f()
}

/// When dropped, truncates the list of looped dims to this length.
#[cfg(feature = "std")]
struct Noted(usize);

#[cfg(feature = "std")]
impl Drop for Noted {
    fn drop(&mut self) {
        EXAMPLE.with_borrow_mut(|example| example.truncate(self.0));
    }
}

/// The example of the current call. With it, a function can be called for this example after the
/// loop.
#[cfg(feature = "std")]
pub(crate) struct CurrentExample(Vec<(&'static str, usize)>);

#[cfg(feature = "std")]
impl CurrentExample {
    pub(crate) fn new() -> Self {
        CurrentExample(EXAMPLE.with_borrow(Clone::clone))
    }

    /// Calls `f` for this example.
    pub(crate) fn call<X>(&self, f: impl FnOnce() -> X) -> X {
        /// Restores the looped dims when dropped.
        struct Before(Vec<(&'static str, usize)>);
        impl Drop for Before {
            fn drop(&mut self) {
                EXAMPLE.set(core::mem::take(&mut self.0));
            }
        }
        let _before = Before(EXAMPLE.replace(self.0.clone()));
        f()
    }
}

/// Calls `dim` with the name of each dim that is looped over and the index of the example along it,
/// innermost first.
pub(crate) fn each_looped_dim(dim: impl FnMut(&'static str, usize)) {
    #[cfg(feature = "std")]
    EXAMPLE.with_borrow(|example| {
        let mut dim = dim;
        example.iter().rev().for_each(|&(name, at)| dim(name, at));
    });
    #[cfg(not(feature = "std"))]
    let _ = dim;
}
