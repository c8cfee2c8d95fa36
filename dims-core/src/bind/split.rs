//! Splitting an axis into the dims of a group: `(c, h2, w2)`, the last one fastest.

use super::binding::Binding;
use crate::brand::{Brand, DimInfo};
use crate::error::DimError;
use crate::set::Dims;
use crate::set::list::List;
use crate::set::union::Sort;
use crate::storage::axes::Axis;
use smallvec::SmallVec;

/// The brands of a group as nested pairs.
pub trait Group {
    /// The canonical set of them.
    type Set: Dims;
}

#[diagnostic::do_not_recommend]
impl<L: Sort> Group for L {
    type Set = <L::Out as List>::Tuple;
}

/// Binds the next axis to a group. The size of one dim may be unknown: it is what the others leave.
pub fn split(dims: &[DimInfo<'_>], binding: &mut Binding) -> Result<(), DimError> {
    let (axis, _) = binding.take();
    let fail = |why| {
        let parts: Vec<_> = dims
            .iter()
            .map(|dim| match dim.size() {
                Some(size) => format!("{} = {size}", dim.name),
                None => dim.name.to_string(),
            })
            .collect();
        Err(DimError::Split { group: format!("`({})`", parts.join(", ")), size: axis.size, why, origin: binding.origin })
    };
    let mut known: usize = 1;
    let mut open = None;
    for dim in dims {
        match dim.size() {
            Some(size) => match known.checked_mul(size) {
                Some(product) => known = product,
                None => return fail("the product of the sizes overflows"),
            },
            None if open.is_some() => return fail("the size of one dim can be found, but more are unknown"),
            None => open = Some(dim),
        }
    }
    let found = match open {
        None if known != axis.size => return fail("the product of the sizes differs"),
        None => 0,
        Some(_) if known == 0 => {
            return fail("the other sizes multiply to 0, so that of the unknown dim cannot be found");
        }
        Some(_) if axis.size % known != 0 => return fail("the known sizes do not divide it"),
        Some(_) => axis.size / known,
    };
    let sizes: SmallVec<[usize; 6]> = dims.iter().map(|dim| dim.size().unwrap_or(found)).collect();
    let mut stride = axis.stride;
    for (dim, &size) in dims.iter().zip(&sizes).rev() {
        binding.bind(dim, Axis::new(size, stride))?;
        stride = stride.wrapping_mul(size as isize);
    }
    Ok(())
}

/// The static size of a brand as a typenum.
pub type NumOf<B> = <B as Brand>::Num;
