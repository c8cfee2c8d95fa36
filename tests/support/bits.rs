//! Compares values bit by bit.

use typed_dims::grad::Parameters;
use typed_dims::grad::parameters::{Path, Walk};
use typed_dims::prelude::*;
use typed_dims::types::rank::Rank;
use typed_dims::types::scalar::Element;

/// Panics with the names of the tensors that differ, unless two values have the same bits.
#[track_caller]
pub fn assert_same<P: Parameters>(found: &P, expected: &P) {
    let (found, expected) = (bits(found), bits(expected));
    assert_eq!(found.len(), expected.len(), "both have the same number of tensors");
    let others = found.iter().zip(&expected).filter(|(found, expected)| found != expected);
    let others: Vec<&str> = others.map(|(found, _)| found.split(':').next().expect("a name")).collect();
    assert!(others.is_empty(), "{} of {} tensors differ: {others:#?}", others.len(), found.len());
}

/// The names, dims and elements of all tensors of a value, including state that is not learned.
/// Rust prints enough digits to distinguish all floats.
fn bits(of: &impl Parameters) -> Vec<String> {
    struct Bits(Vec<String>);
    impl Walk<1> for Bits {
        type Error = DimError;
        const STATE: bool = true;

        fn tensor<T: Element, S: Dims, R: Rank>(
            &mut self,
            path: &Path,
            [tensor]: [&Named<T, S, R>; 1],
        ) -> Result<Named<T, S, R>, DimError> {
            // The elements are in the order of the dims.
            let own = tensor.view().eval();
            self.0.push(format!("{path} {:?}: {:?}", own.dims(), own.memory()));
            Ok(own)
        }
    }

    let mut bits = Bits(Vec::new());
    Parameters::walk([of], &mut Path::new(), &mut bits).expect("each tensor fits into memory");
    bits.0
}
