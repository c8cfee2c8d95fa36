//! Values to the last bit.

use typed_dims::grad::Parameters;
use typed_dims::grad::parameters::{Path, Walk};
use typed_dims::prelude::*;
use typed_dims::rank::Rank;
use typed_dims::scalar::Element;

/// The tensors of a value, state that is not learned among them: names, dims and elements. (Rust writes as many digits as tell a float from all others.)
pub fn bits(of: &impl Parameters) -> Vec<String> {
    struct Bits(Vec<String>);
    impl Walk<1> for Bits {
        type Error = DimError;
        const STATE: bool = true;

        fn tensor<T: Element, S: Dims, R: Rank>(
            &mut self,
            path: &Path,
            [tensor]: [&Named<T, S, R>; 1],
        ) -> Result<Named<T, S, R>, DimError> {
            // (In the order of the dims.)
            let own = tensor.view().eval();
            self.0.push(format!("{path} {:?}: {:?}", own.dims(), own.memory()));
            Ok(own)
        }
    }

    let mut bits = Bits(Vec::new());
    Parameters::walk([of], &mut Path::new(), &mut bits).expect("each tensor fits into memory");
    bits.0
}
