//! Prepares host arrays for plugins.

use super::ElementType;
use crate::XlaError;
use std::borrow::Cow;

/// Bytes to upload. Without strides, the elements are in row-major order.
#[derive(Debug, PartialEq)]
pub(super) struct Source<'a> {
    pub(super) data: Cow<'a, [u8]>,
    pub(super) strides: Option<Vec<i64>>,
}

/// Checks that the elements are within `data`. If they are not in row-major order, packs them when
/// the plugin does not support their strides or `data` is not aligned.
pub(super) fn source<'a>(
    data: &'a [u8],
    element_type: ElementType,
    sizes: &[usize],
    strides: Option<&[isize]>,
    takes_strides: bool,
) -> Result<Source<'a>, XlaError> {
    let array = || format!("{element_type}{sizes:?}");
    let bytes = element_type
        .bytes(sizes)
        .ok_or_else(|| XlaError::arguments(format!("{} is too large for memory", array())))?;
    let Some(strides) = strides else {
        if data.len() != bytes {
            return Err(XlaError::arguments(format!(
                "expected {bytes} bytes for {}, found {}",
                array(),
                data.len()
            )));
        }
        return Ok(Source { data: Cow::Borrowed(data), strides: None });
    };
    if strides.len() != sizes.len() {
        return Err(XlaError::arguments(format!(
            "expected {} strides for {}, found {}",
            sizes.len(),
            array(),
            strides.len()
        )));
    }
    if bytes == 0 {
        return Ok(Source { data: Cow::Borrowed(&[]), strides: None });
    }
    let element = element_type.size();
    let reach = sizes.iter().zip(strides).try_fold(element, |reach, (&size, &stride)| {
        stride.unsigned_abs().checked_mul(size - 1)?.checked_add(reach)
    });
    if reach.is_none_or(|reach| reach > data.len()) {
        return Err(XlaError::arguments(format!(
            "{} with strides {strides:?} reaches beyond the {} bytes given",
            array(),
            data.len()
        )));
    }
    if is_row_major(sizes, strides, element) {
        return Ok(Source { data: Cow::Borrowed(&data[..bytes]), strides: None });
    }
    let aligned = data.as_ptr().addr().is_multiple_of(element);
    if takes_strides && aligned && is_plain(sizes, strides, element) {
        // An axis of size 1 may have any stride, which is not used.
        let strides = sizes.iter().zip(strides).map(
            |(&size, &stride)| {
                if size == 1 { element as i64 } else { stride as i64 }
            },
        );
        return Ok(Source { data: Cow::Borrowed(data), strides: Some(strides.collect()) });
    }
    let start = sizes
        .iter()
        .zip(strides)
        .map(|(&size, &stride)| if stride < 0 { stride.unsigned_abs() * (size - 1) } else { 0 })
        .sum();
    let mut packed = Vec::with_capacity(bytes);
    pack(data, start, sizes, strides, element, &mut packed);
    Ok(Source { data: Cow::Owned(packed), strides: None })
}

fn is_row_major(sizes: &[usize], strides: &[isize], element: usize) -> bool {
    let mut expected = element;
    sizes.iter().zip(strides).rev().all(|(&size, &stride)| {
        let fits = size == 1 || usize::try_from(stride) == Ok(expected);
        expected *= size;
        fits
    })
}

/// Whether the strides describe an array or a slice of one: they are positive multiples of the
/// element size, and each step along an axis passes over all positions of the axes with smaller
/// strides.
fn is_plain(sizes: &[usize], strides: &[isize], element: usize) -> bool {
    let mut axes: Vec<(isize, usize)> =
        strides.iter().copied().zip(sizes.iter().copied()).filter(|&(_, size)| size > 1).collect();
    axes.sort_unstable();
    let mut inner = element;
    axes.into_iter().all(|(stride, size)| {
        let Ok(stride) = usize::try_from(stride) else { return false };
        let fits = stride >= inner && stride.is_multiple_of(element);
        inner = stride * size;
        fits
    })
}

/// Appends the elements in row-major order. `start` is the position of the first one.
fn pack(data: &[u8], start: usize, sizes: &[usize], strides: &[isize], element: usize, packed: &mut Vec<u8>) {
    let (Some((&size, sizes)), Some((&stride, strides))) = (sizes.split_first(), strides.split_first())
    else {
        packed.extend_from_slice(&data[start..start + element]);
        return;
    };
    if sizes.is_empty() && usize::try_from(stride) == Ok(element) {
        packed.extend_from_slice(&data[start..start + size * element]);
        return;
    }
    for index in 0..size {
        // The start is within the slice, as the caller has checked.
        let start = start.wrapping_add_signed(stride.wrapping_mul(index as isize));
        pack(data, start, sizes, strides, element, packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(data: &[u8], sizes: &[usize], strides: &[isize]) -> Vec<u8> {
        let source = source(data, ElementType::U8, sizes, Some(strides), false).unwrap();
        assert_eq!(source.strides, None);
        source.data.into_owned()
    }

    #[test]
    fn elements_are_packed_in_row_major_order() {
        let data = [0, 1, 2, 3, 4, 5];
        assert_eq!(packed(&data, &[2, 3], &[3, 1]), data);
        assert_eq!(packed(&data, &[3, 2], &[1, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(packed(&data, &[6], &[-1]), [5, 4, 3, 2, 1, 0]);
        assert_eq!(packed(&data, &[2, 3], &[-3, 1]), [3, 4, 5, 0, 1, 2]);
        assert_eq!(packed(&data, &[2, 2], &[3, -2]), [2, 0, 5, 3]);
        assert_eq!(packed(&data, &[2, 3], &[0, 1]), [0, 1, 2, 0, 1, 2]);
        assert!(packed(&data, &[3, 0], &[0, 1]).is_empty());
        assert_eq!(packed(&data, &[], &[]), [0]);
        assert_eq!(packed(&data, &[4, 2], &[1, 1]), [0, 1, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn plain_strides_are_handed_over() {
        let data = [0_u8; 24];
        let strides = |sizes: &[usize], strides: &[isize]| {
            source(&data, ElementType::U8, sizes, Some(strides), true).unwrap().strides
        };
        assert_eq!(strides(&[3, 2], &[1, 3]), Some(vec![1, 3]));
        assert_eq!(strides(&[3, 1, 2], &[1, -7, 3]), Some(vec![1, 1, 3]));
        assert_eq!(strides(&[2, 3], &[8, 2]), Some(vec![8, 2]));
        for (sizes, packed) in [([2, 3], [3, 1]), ([2, 3], [0, 1]), ([2, 3], [2, 1]), ([2, 3], [3, -1])] {
            assert_eq!(strides(&sizes, &packed), None);
        }
    }

    #[test]
    fn elements_outside_of_the_slice_are_refused() {
        let data = [0_u8; 6];
        for strides in [[3, 2], [4, 1], [-4, 1], [isize::MIN, 1], [isize::MAX, isize::MAX]] {
            assert!(source(&data, ElementType::U8, &[2, 3], Some(&strides), true).is_err(), "{strides:?}");
        }
        assert!(source(&data, ElementType::U8, &[2, 3], Some(&[1]), true).is_err());
        assert!(source(&data, ElementType::U16, &[2, 3], None, true).is_err());
        assert!(source(&data, ElementType::U8, &[5], None, true).is_err());
        assert!(source(&data, ElementType::U8, &[usize::MAX, 2], None, true).is_err());
        assert!(source(&data, ElementType::U8, &[usize::MAX, 2], Some(&[0, 0]), true).is_err());
    }
}
