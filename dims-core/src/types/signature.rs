//! Functions that only `onnx_dims!` calls.

use crate::error::DimError;
use crate::types::brand::Brand;
use crate::types::role::Role;
use crate::types::size::Size;
use alloc::vec::Vec;

pub use half::{bf16, f16};
pub use num_complex::Complex;

/// Whether the dim has this static size.
pub const fn has_size<D: Brand>(size: usize) -> bool {
    match <D::Size as Size>::FIXED {
        Some(fixed) => fixed == size,
        None => false,
    }
}

/// Whether the dim has no role, the role with this denotation, or a role that refines that one.
pub const fn has_role<D: Brand<Role: Role>>(denotation: &str) -> bool {
    let names = <D::Role as Role>::NAMES;
    let mut at = 0;
    while at < names.len() {
        if same(names[at], denotation) {
            return true;
        }
        at += 1;
    }
    names.is_empty()
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Checks that each dim has the same size in all tensors. Each entry of `tensors` is a tensor's
/// name and its dims with their sizes. Each entry of `aliases` has two dims that share one name in
/// the model, and then that name. The sizes of the two dims must be equal too.
///
/// # Errors
///
/// If two sizes differ. The error names the two tensors, or the two dims of an alias.
pub fn unify_sizes(
    tensors: &[(&str, Vec<(&'static str, usize)>)],
    aliases: &[(&str, &str, &str)],
) -> Result<(), DimError> {
    let mut sizes: Vec<(&str, usize, &str)> = Vec::new();
    for (tensor, dims) in tensors {
        for &(dim, size) in dims {
            match sizes.iter().find(|(other, ..)| *other == dim) {
                Some(&(_, first, place)) if first != size => {
                    let what = format!("dim `{dim}` has size {first} in `{place}`, but {size} in `{tensor}`");
                    return Err(DimError::Shape { what });
                }
                Some(_) => {}
                None => sizes.push((dim, size, tensor)),
            }
        }
    }
    for &(first, second, param) in aliases {
        let size = |dim| sizes.iter().find(|(other, ..)| *other == dim).map(|&(_, size, _)| size);
        if let (Some(one), Some(other)) = (size(first), size(second))
            && one != other
        {
            let what = format!(
                "dims `{first}` and `{second}` have the sizes {one} and {other}, but are both `{param}` in the model"
            );
            return Err(DimError::Shape { what });
        }
    }
    Ok(())
}
