//! Expressions that run as programs, in builds where the kernels are optimized and the crate that has the expressions is not.
//!
//! A kernel is a type of the crate that runs the expression, and its loops are compiled as that crate is. So where debug assertions are on and the kernels are
//! optimized, which `[profile.dev.package."*"] opt-level = 3` makes of a development build, an expression [writes](Expr::write) a program, and the interpreter
//! runs that: over the same nest, with the same results. What programs do not compute bit by bit as kernels do (closures, computed indices, half precisions)
//! still runs as a kernel.

use crate::expr::Expr;
use kernels::memory::elements::ElementsMut;
use kernels::ops::BinaryOp;
use kernels::program::lowered::LoweredProgram;
use kernels::scalar::Element;

/// Whether this build has programs in the place of kernels. (Code behind it is not even instantiated where it is false.)
pub(crate) const LOWERS: bool = cfg!(all(feature = "std", debug_assertions));

/// Whether expressions of so many elements run as programs, if they can.
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

/// The program that replaces the kernel of an expression over so many positions, if one does.
#[cfg(all(feature = "std", debug_assertions))]
#[inline(never)]
pub(crate) fn lowered<E: Expr + ?Sized>(expr: &E, positions: usize) -> Option<LoweredProgram<'_>> {
    written(expr, positions, false)
}

/// The program of an expression. If its nest is one `for_places`, the first row is theirs.
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

/// The same for `op(old, new)` of the elements of a place and an expression: the place has the first row.
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

/// The same for a nest whose first row is that of places, which are not read.
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
