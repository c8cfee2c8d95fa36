//! Union of two sets, a merge of two sorted lists.

use super::Dims;
use super::distinct::Canonical;
use super::list::List;
use crate::types::brand::{Compare, CompareKeys, Equal, Greater, Less, SetElement};
use crate::types::dim::DimList;

/// The union of two sets: the dims that an operation on two tensors loops over.
///
/// ```text
/// (Batch, Seq) with (Seq, Feat) gives (Batch, Seq, Feat)
/// ```
#[diagnostic::on_unimplemented(
    message = "the dims `{Self}` and `{O}` cannot be united",
    label = "they have two different `Rest<..>`, or a set or a dim here is generic and lacks a bound",
    note = "a set of one dim needs a comma: `(Batch,)`",
    note = "to combine tensors over any set `S`, write `S: Union<S, Out = S>`; a generic dim `D` needs `D: AnyDim`, with `Before` and `After`",
    note = "in a nested closure, pass captured tensors as arguments: `batched(m, (x, y), |(x, y)| ..)`",
    note = "two dims of one name, declared at the same position of the same file, cannot be told apart: rename one of them"
)]
pub trait Union<O>: Dims {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The united set.
    type Out: Dims;
}

#[diagnostic::do_not_recommend]
impl<S: Dims, O: Dims> Union<O> for S
where
    S::List: Merge<O::List, Out: List>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <<S::List as Merge<O::List>>::Out as List>::Tuple;
}

/// Union of sorted lists.
pub trait Merge<O> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sorted union.
    type Out;
}

#[diagnostic::do_not_recommend]
impl<O> Merge<O> for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = O;
}

#[diagnostic::do_not_recommend]
impl<H, T> Merge<()> for (H, T) {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H, T);
}

#[diagnostic::do_not_recommend]
impl<H1: SetElement, T1, H2: SetElement, T2> Merge<(H2, T2)> for (H1, T1)
where
    H1::Key: CompareKeys<H2::Key>,
    Compare<H1, H2>: MergeStep<H1, T1, H2, T2>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = <Compare<H1, H2> as MergeStep<H1, T1, H2, T2>>::Out;
}

/// Takes the smaller head, or one of two equal heads.
pub trait MergeStep<H1, T1, H2, T2> {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// The sorted union.
    type Out;
}

#[diagnostic::do_not_recommend]
impl<H1, T1, H2, T2> MergeStep<H1, T1, H2, T2> for Less
where
    T1: Merge<(H2, T2)>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H1, T1::Out);
}

#[diagnostic::do_not_recommend]
impl<H1, T1, H2, T2> MergeStep<H1, T1, H2, T2> for Greater
where
    (H1, T1): Merge<T2>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H2, <(H1, T1) as Merge<T2>>::Out);
}

// Equal keys must belong to the same type. So neither a hash collision nor a dim of another
// execution of the same `dims!` compiles.
#[diagnostic::do_not_recommend]
impl<H, T1, T2> MergeStep<H, T1, H, T2> for Equal
where
    T1: Merge<T2>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = (H, T1::Out);
}

/// The union of several sorted lists.
pub trait MergeAll {
    #[doc(hidden)]
    const SEAL: crate::seal::Seal;
    /// All their elements, sorted.
    type Out;
}

#[diagnostic::do_not_recommend]
impl MergeAll for () {
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = ();
}

#[diagnostic::do_not_recommend]
impl<H, T: MergeAll> MergeAll for (H, T)
where
    H: Merge<T::Out>,
{
    const SEAL: crate::seal::Seal = crate::seal::SEAL;
    type Out = H::Out;
}

/// The dims `D`, one or a tuple of them, as a set.
pub type SetNamed<D> = <Canonical<<D as DimList>::Brands> as List>::Tuple;
