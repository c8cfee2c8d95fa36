//! Splitting an axis into the dims of a group: `(c, h2, w2)`, the last one innermost.

use super::binding::Binding;
use crate::error::{DimError, Origin};
use crate::types::brand::DimInfo;
use crate::types::dim::DimList;
use alloc::string::ToString;
use alloc::vec::Vec;
use kernels::memory::axes::Axis;
use smallvec::SmallVec;

/// Binds the next axis to a group. The size of one dim may be unknown; it is inferred from the
/// other sizes and that of the axis.
pub fn split(dims: &[DimInfo<'_>], binding: &mut Binding<'_>) -> Result<(), DimError> {
    let (axis, _) = binding.take();
    let sizes = sizes(dims, axis.size, binding)?;
    let mut stride = axis.stride;
    for (dim, &size) in dims.iter().zip(&sizes).rev() {
        binding.bind(dim, Axis::new(size, stride))?;
        stride = stride.wrapping_mul(size as isize);
    }
    Ok(())
}

/// The sizes of the dims of a group for an axis of `size` elements. Each is unified with the dim's
/// size.
pub(crate) fn sizes_of<L: DimList>(
    dims: &L,
    size: usize,
    origin: Origin,
) -> Result<SmallVec<[usize; 8]>, DimError> {
    let mut known: SmallVec<[(Option<usize>, &str); 6]> = SmallVec::new();
    dims.each(|dim| known.push((dim.size(), dim.name)));
    let found = solve(&known, None, size, origin)?;
    let (mut sizes, mut unified) = (SmallVec::new(), Ok(()));
    dims.each(|dim| {
        let size = dim.size().unwrap_or(found);
        sizes.push(size);
        if unified.is_ok() {
            unified = dim.unify(size, origin);
        }
    });
    unified.map(|()| sizes)
}

/// Like [`sizes_of`], but a [`Split`](DimError::Split) error names the dim `whole`.
pub(crate) fn sizes_within<L: DimList>(
    whole: &'static str,
    parts: &L,
    size: usize,
    origin: Origin,
) -> Result<SmallVec<[usize; 8]>, DimError> {
    sizes_of(parts, size, origin).map_err(|error| match error {
        DimError::Split { group, size, why, origin, .. } => {
            DimError::Split { dim: Some(whole), group, size, why, origin }
        }
        error => error,
    })
}

fn sizes(dims: &[DimInfo<'_>], size: usize, binding: &Binding<'_>) -> Result<SmallVec<[usize; 6]>, DimError> {
    let known: SmallVec<[(Option<usize>, &str); 6]> = dims.iter().map(|dim| (dim.size(), dim.name)).collect();
    let found = solve(&known, binding.dim, size, binding.origin)?;
    Ok(known.iter().map(|(size, _)| size.unwrap_or(found)).collect())
}

/// Computes the size of the one dim of a group whose size is unknown, from the size of the axis.
/// Returns 0 if all sizes are known. Errors name the axis `whole`.
fn solve(
    dims: &[(Option<usize>, &str)],
    whole: Option<&'static str>,
    size: usize,
    origin: Origin,
) -> Result<usize, DimError> {
    let fail = |why| {
        let part = |(size, name): &(Option<usize>, &str)| match size {
            Some(size) => format!("{name} = {size}"),
            None => name.to_string(),
        };
        let parts: Vec<_> = dims.iter().map(part).collect();
        Err(DimError::Split { dim: whole, group: format!("`({})`", parts.join(", ")), size, why, origin })
    };
    let mut known: usize = 1;
    let mut open = 0;
    let mut zero = false;
    for (size, _) in dims {
        match size {
            Some(0) => zero = true,
            Some(size) => known = known.saturating_mul(*size),
            None => open += 1,
        }
    }
    known = if zero { 0 } else { known };
    match open {
        0 if known != size => fail("the product of the sizes differs"),
        0 => Ok(0),
        1 if known == 0 => fail("the other sizes multiply to 0, so the unknown one cannot be found"),
        1 if !size.is_multiple_of(known) => fail("the product of the known sizes does not divide it"),
        1 => Ok(size / known),
        _ => fail("only one size can be inferred, but more are unknown"),
    }
}
