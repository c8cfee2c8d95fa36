//! Renaming dims.

use super::{Remapped, whole};
use crate::error::DimError;
use crate::expr::Remap;
use crate::tensors::named::Named;
use crate::tensors::tensor::Computable;
use crate::types::dim::DimRef;
use crate::types::set::Dims;

/// Renames the dim `old` to `new`; the result has the dims `S`.
pub(crate) fn renamed<A: Computable, S: Dims, Old: DimRef, New: DimRef>(
    tensor: A,
    old: Old,
    new: New,
) -> Result<Remapped<A, S>, DimError> {
    let tensor = tensor.into_named();
    let (given, old) = (old.info(), old.info().key());
    if Old::GIVES_SIZE || New::GIVES_SIZE || new.info().cell.is_some() || new.info().fixed.is_some() {
        let shape = tensor.unified_shape()?;
        shape.check_given(&given)?;
        let at = shape.position(&old).expect("the dim is one of the tensor's");
        let (size, origin) = shape.known(at);
        new.info().unify(size, origin)?;
    }
    Ok(Named::from_expr(Remap::new(tensor.expr, old, whole(new.info().key()))))
}
