//! How accurate cofactors are.

use crate::scalar::Real;

/// Whether cofactors that were computed as the determinant times the transposed inverse are
/// accurate to at least half of the digits of the type. `sizes` has the magnitudes of each element
/// and of its cofactor, and `det` is the magnitude of the determinant. Rounding the elements
/// changes the determinant by up to about the sum of the products of `sizes`, times the epsilon of
/// the type.
pub(super) fn are_accurate<P: Real>(sizes: impl Iterator<Item = [P; 2]>, det: P) -> bool {
    let change = sizes.fold(P::ZERO, |sum, [a, cofactor]| sum + a * cofactor);
    change * num_traits::Float::sqrt(<P as num_traits::Float>::epsilon()) < det
}
