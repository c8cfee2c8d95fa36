//! Checks that all peers of a case compute the same result.

use crate::bench::Peer;
use crate::cases::Case;

/// Allowed difference, relative to the largest element: some peers sum in another order, or
/// approximate `erf`.
const TOLERANCE: f64 = 2e-5;

/// Compares the results of all peers with that of the last one, the reference.
pub fn agree(case: &Case, peers: &mut [Peer]) -> Result<(), String> {
    let Some((last, others)) = peers.split_last_mut() else {
        return Err(format!("{}: `--peer` selects no peer", case.name));
    };
    let expected = (last.result)();
    let scale = expected.iter().fold(0.0, |most: f64, element| most.max(element.abs()));
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(format!("{}: the largest element of {} is {scale}", case.name, last.name));
    }
    for peer in others {
        let found = (peer.result)();
        if found.len() != expected.len() {
            let (len, right) = (found.len(), expected.len());
            return Err(format!(
                "{}: {} has {len} elements, {} has {right}",
                case.name, peer.name, last.name
            ));
        }
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (found - expected).abs();
            if error.is_nan() || error > TOLERANCE * scale {
                return Err(format!(
                    "{}: element {at} is {found} from {}, but {expected} from {}; the largest element is {scale}",
                    case.name, peer.name, last.name
                ));
            }
        }
    }
    Ok(())
}
