//! Runs expressions as programs in builds that optimize the kernels but not the crate with the
//! expressions.
//!
//! A kernel is instantiated in the crate that runs the expression, so its loops are optimized only
//! if that crate is. With `[profile.dev.package."*"] opt-level = 3`, a development build has
//! optimized kernels, but the user's crate is not optimized. In such a build, an expression
//! [writes](Expr::write) a program for the interpreter, which runs over the same nest with the same
//! results. Expressions whose programs would not compute the same bits still run as kernels, for
//! example closures, computed indices, half precision, complex numbers, and quotients of integers.

use crate::expr::Expr;
use kernels::memory::elements::ElementsMut;
use kernels::ops::BinaryOp;
use kernels::program::lowered::LoweredProgram;
use kernels::scalar::Element;

/// Whether this build can run programs instead of kernels. (If not, the code that this constant
/// guards is not instantiated.)
pub(crate) const LOWERS: bool = cfg!(all(feature = "std", debug_assertions));

/// Whether expressions with `positions` elements run as programs, if they can.
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn is_lowered(positions: usize) -> bool {
    #[cfg(all(feature = "std", debug_assertions))]
    return kernels::program::lowered::is_lowered(positions);
    #[cfg(not(all(feature = "std", debug_assertions)))]
    {
        let _ = positions;
        false
    }
}

/// The program that replaces the kernel of an expression with `positions` elements, if any.
#[cfg(all(feature = "std", debug_assertions))]
#[inline(never)]
pub(crate) fn lowered<E: Expr + ?Sized>(expr: &E, positions: usize) -> Option<LoweredProgram<'_>> {
    written(expr, positions, false)
}

/// The program of an expression. With `for_places`, the first row of the nest belongs to the places
/// that are written.
#[cfg(all(feature = "std", debug_assertions))]
fn written<E: Expr + ?Sized>(expr: &E, positions: usize, for_places: bool) -> Option<LoweredProgram<'_>> {
    use kernels::trace::record::Writer;
    if !is_lowered(positions) {
        return None;
    }
    let mut writer = Writer::exact();
    if for_places {
        writer.skip();
    }
    let value = expr.write(&mut writer);
    writer.lowered::<E::Elem>(value)
}

#[cfg(not(all(feature = "std", debug_assertions)))]
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn lowered<E: Expr + ?Sized>(_: &E, _: usize) -> Option<LoweredProgram<'_>> {
    None
}

/// Like [`lowered`], for `op(old, new)` on the elements of a place and an expression. The place has
/// the first row.
#[cfg(all(feature = "std", debug_assertions))]
#[inline(never)]
pub(crate) fn lowered_update<'w, T, E, O>(
    place: &mut ElementsMut<'_, T>,
    value: &'w E,
    op: O,
    positions: usize,
) -> Option<LoweredProgram<'w>>
where
    T: Element,
    E: Expr,
    O: BinaryOp<T, E::Elem, Out = T>,
{
    use kernels::trace::record::Writer;
    if !is_lowered(positions) || op.function().is_some() {
        return None;
    }
    let mut writer = Writer::exact();
    let old = writer.place(place);
    let new = value.write(&mut writer);
    let value = writer.operation(op.code(), O::NAME, &[old, new]);
    writer.lowered::<T>(value)
}

#[cfg(not(all(feature = "std", debug_assertions)))]
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn lowered_update<'w, T, E, O>(
    _: &mut ElementsMut<'_, T>,
    _: &'w E,
    _: O,
    _: usize,
) -> Option<LoweredProgram<'w>>
where
    T: Element,
    E: Expr,
    O: BinaryOp<T, E::Elem, Out = T>,
{
    None
}

/// Like [`lowered`], for a nest whose first row belongs to places, which are not read.
#[cfg(all(feature = "std", debug_assertions))]
#[inline(never)]
pub(crate) fn lowered_for_places<E: Expr + ?Sized>(expr: &E, positions: usize) -> Option<LoweredProgram<'_>> {
    written(expr, positions, true)
}

#[cfg(not(all(feature = "std", debug_assertions)))]
#[cfg_attr(not(unoptimized), inline(always))]
pub(crate) fn lowered_for_places<E: Expr + ?Sized>(_: &E, _: usize) -> Option<LoweredProgram<'_>> {
    None
}
