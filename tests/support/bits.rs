//! Compares values bit by bit, except that all NaNs are equal.

use typed_dims::grad::Parameters;
use typed_dims::grad::parameters::{Path, Walk};
use typed_dims::prelude::*;
use typed_dims::types::rank::Rank;
use typed_dims::types::scalar::Element;

/// Panics unless two values have the same bits. The message names the tensors that differ.
#[track_caller]
pub fn assert_same<P: Parameters>(found: &P, expected: &P) {
    let (found, expected) = (bits(found), bits(expected));
    assert_eq!(found.len(), expected.len(), "the numbers of tensors differ");
    let others = found.iter().zip(&expected).filter(|(found, expected)| found != expected);
    let others: Vec<&str> =
        others.map(|(found, _)| found.split(':').next().expect("the text has a name")).collect();
    assert!(others.is_empty(), "{} of {} tensors differ: {others:#?}", others.len(), found.len());
}

/// The names, dims and elements of all tensors of a value as text, including state that is not
/// learned. Rust prints enough digits to distinguish all floats other than NaNs.
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
