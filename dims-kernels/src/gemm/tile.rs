//! Register tiles of [panels](crate::gemm::panels) and [products in place](crate::gemm::unpacked).

use crate::machine::params::tile::MAX_MR;
use crate::machine::vector::Vector;
use core::arch::asm;

/// Repeats a block for each row of a tile. The row is a constant in the block: sums at constant
/// indices stay in registers.
macro_rules! each_row {
    ($row:ident of $rows:ident => $block:block) => {
        each_row!($row of $rows => $block; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($row:ident of $rows:ident => $block:block; $($number:literal)*) => {
        $(if const { $number < $rows } {
            const $row: usize = $number;
            $block
        })*
    };
}
pub(crate) use each_row;

/// The number of rows that one pointer addresses, at offsets of 0, 1 and 2 row distances.
const REACH: usize = 3;

/// The position of a tile in the `R` rows of the left matrix that it reads: a pointer into every
/// third row, as a pointer per row would need too many registers.
pub struct LeftRows<T, const R: usize> {
    places: [*const T; MAX_MR.div_ceil(REACH)],
    /// The distance between rows.
    step: isize,
}

impl<T, const R: usize> LeftRows<T, R> {
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn new(first: *const T, step: isize) -> Self {
        let place = |at: usize| {
            let row = REACH * at;
            if row < R { unrelated(first.wrapping_offset(row as isize * step)) } else { first }
        };
        LeftRows { places: core::array::from_fn(place), step }
    }

    /// The pointer into a row.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn place(&self, row: usize) -> *const T {
        self.places[row / REACH].wrapping_offset((row % REACH) as isize * self.step)
    }

    /// Moves all pointers by `by` elements.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub fn advance(&mut self, by: isize) {
        for place in self.places.iter_mut().take(R.div_ceil(REACH)) {
            *place = unrelated(place.wrapping_offset(by));
        }
    }

    /// Adds to the sums of a tile the products of two vectors with each row's element at offset
    /// `AT`.
    ///
    /// # Safety
    ///
    /// The machine has the vectors; the elements are valid.
    #[cfg_attr(not(unoptimized), inline(always))]
    pub unsafe fn add_products<V: Vector<Elem = T>, const AT: usize>(
        &self,
        first: &mut [V; R],
        second: &mut [V; R],
        right: (V, V),
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            each_row!(I of R => {
                let (sums, x) = ((&mut first[I], &mut second[I]), self.places[I / REACH]);
                match I % REACH {
                    0 => V::add_products::<AT>(sums, x, &right),
                    1 => V::add_products_of::<AT>(sums, x, self.step, &right),
                    _ => V::add_products_of::<AT>(sums, x, 2 * self.step, &right),
                }
            });
        }
    }
}

/// The same pointer, hidden from the compiler. Otherwise it would compute each row's pointer from
/// the previous one, a chain of additions that takes longer than the products.
#[cfg_attr(not(unoptimized), inline(always))]
#[allow(clippy::pointers_in_nomem_asm_block)] // nothing is read at the pointer
fn unrelated<T>(mut place: *const T) -> *const T {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) place, options(pure, nomem, nostack, preserves_flags)) };
    place
}

/// The same stride, hidden from the compiler. Otherwise it would compute the stride's multiples for
/// tiles of all heights in advance, which takes longer than a small product.
#[cfg_attr(not(unoptimized), inline(always))]
pub fn unforeseen(mut stride: isize) -> isize {
    // SAFETY: there is no instruction.
    unsafe { asm!("/* {0} */", inout(reg) stride, options(nomem, nostack, preserves_flags)) };
    stride
}
