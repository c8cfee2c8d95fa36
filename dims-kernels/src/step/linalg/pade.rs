//! Constants of the exponential of matrices.

/// The coefficients of the Pade approximant of `e^x` of degree 13, divided by the first, so that
/// products with large elements stay in range. (N. J. Higham, The scaling and squaring method for
/// the matrix exponential revisited, 2005.)
pub(super) const PADE: [f64; 14] = {
    let mut all = [
        64764752532480000.0,
        32382376266240000.0,
        7771770303897600.0,
        1187353796428800.0,
        129060195264000.0,
        10559470521600.0,
        670442572800.0,
        33522128640.0,
        1323241920.0,
        40840800.0,
        960960.0,
        16380.0,
        182.0,
        1.0,
    ];
    let (first, mut at) = (all[0], 0);
    while at < all.len() {
        all[at] /= first;
        at += 1;
    }
    all
};
/// Up to this norm, the backward error of the approximant is below the precision of `f64`.
pub(super) const PADE_NORM: f64 = 5.371920351148152;
