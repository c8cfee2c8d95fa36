//! How accurate cofactors are.

use crate::scalar::Real;

/// Whether cofactors that were computed as the determinant times the inverse have at least half of
/// the digits of the type. `sizes` are the magnitudes of elements and of their cofactors: the sum
/// of their products says how much rounding the elements changes the determinant.
pub(super) fn are_accurate<P: Real>(sizes: impl Iterator<Item = [P; 2]>, det: P) -> bool {
    let change = sizes.fold(P::ZERO, |sum, [a, cofactor]| sum + a * cofactor);
    change * num_traits::Float::sqrt(<P as num_traits::Float>::epsilon()) < det
}
