//! Type-level strides. The stride of an axis is the product of the sizes of the axes after it.
//! Types represent it in two parts: the product of the static sizes, and the list of the dims
//! without a static size.

use crate::types::brand::Brand;
use crate::types::set::list::NestedPairs;
use crate::types::set::ordered::Minus;
use crate::types::set::{Bool, False};
use crate::types::size::{SizeWith, SizesTogether};

/// Finds the first brand of a list that has a given stride: the static size `S` times the sizes of
/// the dims `Q`.
pub trait WithStride<S, Q, D> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// [`True`](crate::types::set::True) if a brand has this stride, else [`False`].
    type Holds: Bool;
    /// The brand, or `D` if no brand has this stride.
    type Data: Brand;
}
impl<S, Q, D: Brand> WithStride<S, Q, D> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = False;
    type Data = D;
}
#[diagnostic::do_not_recommend]
impl<H, T, S, Q, D> WithStride<S, Q, D> for (H, T)
where
    H: Brand,
    T: SizesTogether<Volume: SizeWith<S>, Unsized: Minus<Q>> + WithStride<S, Q, D>,
    Q: Minus<T::Unsized>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Holds = <HasVolume<T, S, Q> as Bool>::Or<T::Holds>;
    type Data = <HasVolume<T, S, Q> as Bool>::Pick<H, T::Data>;
}

/// Whether the sizes of the dims `T` multiply to the static size `S` times the sizes of `Q`.
type HasVolume<T, S, Q> = <<<T as SizesTogether>::Volume as SizeWith<S>>::MaySame as Bool>::And<
    SameDims<<T as SizesTogether>::Unsized, Q>,
>;

/// Whether two lists have the same brands, in any order.
type SameDims<Q, O> = <<<Q as Minus<O>>::Out as NestedPairs>::IsEmpty as Bool>::And<
    <<O as Minus<Q>>::Out as NestedPairs>::IsEmpty,
>;
