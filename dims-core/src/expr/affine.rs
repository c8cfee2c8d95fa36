//! Affine index expressions: `2 * i + kh - 1` is a constant plus dims with constant coefficients,
//! so an offset and strides can express it.

use crate::types::brand::DimInfo;
use smallvec::SmallVec;

/// `offset + sum of coefficient * dim`.
#[derive(Clone, Debug)]
pub struct Affine<'a> {
    /// The constant part.
    pub offset: isize,
    /// The dims with their coefficients, each dim once.
    pub terms: SmallVec<[(DimInfo<'a>, isize); 4]>,
}

impl<'a> Affine<'a> {
    /// A constant.
    pub fn constant(offset: isize) -> Self {
        Affine { offset, terms: SmallVec::new() }
    }

    /// The index along one dim.
    pub fn dim(dim: DimInfo<'a>) -> Self {
        Affine { offset: 0, terms: SmallVec::from_iter([(dim, 1)]) }
    }

    /// `self + sign * other`, if that does not overflow, and no dim has different sizes in the two.
    pub fn plus(mut self, sign: isize, other: Affine<'a>) -> Option<Self> {
        self.offset = self.offset.checked_add(other.offset.checked_mul(sign)?)?;
        for (dim, coefficient) in other.terms {
            let coefficient = coefficient.checked_mul(sign)?;
            match self.terms.iter_mut().find(|(own, _)| own.id == dim.id) {
                Some((own, sum)) => {
                    match (own.size(), dim.size()) {
                        // The general path reports it.
                        (Some(first), Some(second)) if first != second => return None,
                        (None, Some(_)) => *own = dim,
                        _ => {}
                    }
                    *sum = sum.checked_add(coefficient)?;
                }
                None => self.terms.push((dim, coefficient)),
            }
        }
        Some(self)
    }

    /// `self * other`, if one of them is a constant and nothing overflows.
    pub fn times(self, other: Affine<'a>) -> Option<Self> {
        let (mut terms, factor) = match (self.terms.is_empty(), other.terms.is_empty()) {
            (_, true) => (self, other.offset),
            (true, false) => (other, self.offset),
            (false, false) => return None,
        };
        terms.offset = terms.offset.checked_mul(factor)?;
        for (_, coefficient) in &mut terms.terms {
            *coefficient = coefficient.checked_mul(factor)?;
        }
        Some(terms)
    }
}
