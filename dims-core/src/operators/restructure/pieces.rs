//! The pieces of `split` and `split_to`: several views of one tensor.

use super::names::AddsUpTo;
use super::{Remapped, Restructure};
use crate::error::{DimError, RecordedSizeNote};
use crate::tensors::named::position;
use crate::tensors::tensor::Computable;
use crate::types::brand::{Brand, DimInfo};
use crate::types::dim::DimRef;
use crate::types::role::KeepsRole;
use crate::types::set::Bool;
use crate::types::set::rename::PartOf;
use crate::types::size::{SizeWith, SizesTogether};
use crate::types::tuples::nested;
use alloc::vec::Vec;
use core::ops::Range;
use smallvec::SmallVec;

/// Tensors that several views can share: references to tensors, views, and expressions of these.
#[diagnostic::on_unimplemented(
    message = "all pieces of a tensor borrow its elements, but the first one would consume this tensor",
    label = "borrow it: `(&x)`; evaluate an expression first: `let x = (a * b).eval();`"
)]
pub trait Shareable: Copy {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
#[diagnostic::do_not_recommend]
impl<A: Copy> Shareable for A {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

/// A tuple of 2 to 6 dims that the dim `W` of the tensor `A` can be cut into.
#[diagnostic::on_unimplemented(
    message = "`{W}` cannot be split into `{Self}`",
    label = "expected a tuple of 2 to 6 new dims to replace `{W}`, which must be a dim of the tensor"
)]
pub trait Pieces<W, A>: Sized {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The brand of `W`.
    type Whole: Brand;
    /// The sizes of the pieces, for messages.
    type Sizes;
    /// [`False`](crate::types::set::False) if all sizes are static and do not add up.
    type AddsUp: Bool;
    /// The pieces.
    type Out;

    /// The pieces of the tensor.
    #[doc(hidden)]
    fn cut(self, tensor: A, whole: W) -> Result<Self::Out, DimError>;
}

/// [`Pieces`] whose sizes add up to the size of `W`, unless a size is dynamic.
#[diagnostic::on_unimplemented(
    message = "`{W}` cannot be split into `{Self}`",
    label = "expected a tuple of 2 to 6 new dims to replace `{W}`, which must be a dim of the tensor"
)]
pub trait PiecesOf<W, A>: Pieces<W, A> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
}
impl<W, A, P: Pieces<W, A>> PiecesOf<W, A> for P
where
    P::AddsUp: AddsUpTo<P::Whole, <P::Whole as Brand>::Size, P::Sizes>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
}

macro_rules! pieces {
    ($($d:ident $n:tt),*) => {
        #[diagnostic::do_not_recommend]
        impl<W, A, $($d),*> Pieces<W, A> for ($($d,)*)
        where
            W: DimRef,
            A: Computable + Shareable,
            $($d: PartOf<W, A::Dims> + KeepsRole<W, A::Dims>,)*
            nested![$($d::Brand),*]: SizesTogether<Total: SizeWith<<W::Brand as Brand>::Num>>,
        {
            const SEAL: crate::seal::Seal = crate::seal::SEAL;
            type Whole = W::Brand;
            type Sizes = ($(<$d::Brand as Brand>::Size,)*);
            type AddsUp =
                <<nested![$($d::Brand),*] as SizesTogether>::Total as SizeWith<<W::Brand as Brand>::Num>>::MaySame;
            type Out = ($(Remapped<A, <$d as PartOf<W, A::Dims>>::Out>,)*);

            fn cut(self, tensor: A, whole: W) -> Result<Self::Out, DimError> {
                let shape = tensor.into_named().unified_shape()?;
                shape.check_given(&whole.info())?;
                let size = shape.size(position(&shape, whole.info()));
                let ranges = piece_ranges(whole.info(), size, &[$(self.$n.info()),*])?;
                Ok(($(tensor.try_slice_to(whole, ranges[$n].clone(), self.$n)?,)*))
            }
        }
    };
}

pieces!(P 0, Q 1);
pieces!(P 0, Q 1, R 2);
pieces!(P 0, Q 1, R 2, S 3);
pieces!(P 0, Q 1, R 2, S 3, T 4);
pieces!(P 0, Q 1, R 2, S 3, T 4, U 5);

/// The range of positions of each part along a dim of `size` elements. One part may lack a size; it
/// gets the rest.
fn piece_ranges(
    whole: DimInfo<'_>,
    size: usize,
    parts: &[DimInfo<'_>],
) -> Result<SmallVec<[Range<usize>; 6]>, DimError> {
    let given = parts.iter().filter_map(DimInfo::size).try_fold(0, usize::checked_add);
    let open = parts.iter().filter(|part| part.size().is_none()).count();
    let rest = given.and_then(|given| size.checked_sub(given)).filter(|&rest| open > 0 || rest == 0);
    match rest {
        Some(rest) if open <= 1 => {
            let mut end = 0;
            let ranges = parts.iter().map(|part| {
                let start = end;
                end += part.size().unwrap_or(rest);
                start..end
            });
            Ok(ranges.collect())
        }
        _ => {
            let parts = parts.iter().map(|part| match part.size() {
                Some(size) => format!("`{}` = {size}", part.name),
                None => format!("`{}`", part.name),
            });
            let parts = parts.collect::<Vec<_>>().join(", ");
            let hint = if open > 1 { ": all sizes but one must be known" } else { "" };
            let (name, note) = (whole.name, RecordedSizeNote(&[(whole.name, size)]));
            let what = format!("dim `{name}` of size {size} cannot be split into {parts}{hint}{note}");
            Err(DimError::Shape { what })
        }
    }
}
